/* SPDX-License-Identifier: Apache-2.0 */
/*
 * report.h - what the central controller is told about a node: its pools and the volumes that it knows of.
 *
 * From memory alone: the records of the state folder, and what was seen of devices last. Threads: safe. Never
 * waits.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "pmem/layout.h"
#include "volume/volumes.h"

enum report_phase {
	REPORT_DAMAGED, /* its state file cannot be read: only its ID is known */
	REPORT_CREATING,
	REPORT_READY,
	REPORT_ERASING,
	REPORT_MISSING, /* ready, but its device cannot be seen */
};

struct report_volume {
	char *id;
	char *name; /* that it was made for; NULL: not known */
	uint64_t size_bytes;
	enum report_phase phase;
	bool ever_staged; /* or nobody can say that it was not: of the Go driver, adopted, damaged */
	bool by_controller;
	char *claim; /* that it was made for, as claim_text(); NULL: not known */
};

struct report_pool {
	char *name;
	struct volumes_capacity capacity;
	struct layout_rules rules;
	uint64_t free_extent_bytes[LAYOUT_GAPS_MAX]; /* as struct device_pool says */
	size_t n_free_extents;
	bool incomplete; /* a device of it is missing */
};

struct volumes_report {
	struct report_pool *pools;
	size_t n_pools;
	struct report_volume *volumes; /* sorted by id, but for the damaged ones, which come last */
	size_t n_volumes;
};

/** volumes_report() - what there is. Return: false before the first snapshot. @ret: volumes_report_done(). */
bool volumes_report(struct volumes *v, struct volumes_report *ret);

/** volumes_report_done() - release what @r owns; safe on a zeroed one. */
void volumes_report_done(struct volumes_report *r);
