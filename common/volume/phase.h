/* SPDX-License-Identifier: Apache-2.0 */
/*
 * phase.h - how far the life of a volume is.
 */
#pragma once

enum volume_phase {
	/* As recorded, by the suffix of the state file. */
	PHASE_CREATING,
	PHASE_READY,
	PHASE_ERASING,
	/* In reports only. */
	PHASE_MISSING, /* ready, but its device cannot be seen */
	PHASE_DAMAGED, /* its state file cannot be read: only its ID is known */
	PHASE_LATER,   /* one that a later release of the node has added */
};
