/* SPDX-License-Identifier: Apache-2.0 */
/*
 * phase.h - the phases of a volume's life.
 */
#pragma once

enum volume_phase {
	/* Recorded, as the suffix of the state file. */
	PHASE_CREATING,
	PHASE_READY,
	PHASE_ERASING,
	/* In reports only. */
	PHASE_MISSING, /* ready, but its device cannot be seen */
	PHASE_DAMAGED, /* its state file cannot be read: only its ID is known */
	PHASE_LATER,   /* a phase that only later releases of the driver know */
};

/** volume_phase_name() - get the name that commands and metrics show; "" for PHASE_LATER. */
static inline const char *volume_phase_name(enum volume_phase phase)
{
	switch (phase) {
	case PHASE_CREATING:
		return "creating";
	case PHASE_READY:
		return "ready";
	case PHASE_ERASING:
		return "erasing";
	case PHASE_MISSING:
		return "missing";
	case PHASE_DAMAGED:
		return "damaged";
	case PHASE_LATER:
		break;
	}
	return "";
}
