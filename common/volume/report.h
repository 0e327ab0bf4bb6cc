/* SPDX-License-Identifier: Apache-2.0 */
/*
 * report.h - what a node reports to the controllers: its pools and volumes.
 *
 * A node makes its report from memory alone: from the records and from the last listing of devices. Threads:
 * safe. Never waits.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "pmem/capacity.h"
#include "pmem/namespace_layout.h"
#include "volume/durability/volume_dax.h"
#include "volume/health/health.h"
#include "volume/phase.h"

/* How far a volume is that is being filled with the content of another one. */
struct volume_filling {
	uint64_t done_bytes;
	uint64_t total_bytes; /* at least done_bytes; 0: it is not being filled, or that is not shown */
};

/* The last time that the writers of a volume stood still because it was to be copied. */
struct volume_pause {
	uint64_t ms; /* how long */
	uint64_t
		ended_ms; /* since 1970, and later than that of the pause before; 0: it is not known of any */
};

struct volume_report {
	char *id;
	char *name; /* volume name; "": not known */
	uint64_t size_bytes;
	enum volume_phase phase;
	bool ever_staged; /* also if it is not known: of the Go driver, adopted, damaged */
	bool made_by_controller;
	bool is_inline;
	char *claim; /* for which it was created, as claim_text(); NULL: not known */
	bool snapshot;
	char *source;     /* of a snapshot: ID of the volume; else NULL */
	char *group;      /* of a snapshot: ID of the group that it belongs to; NULL: none */
	uint64_t taken_s; /* of a snapshot: when the volume was as it shows it, seconds since 1970 in UTC */
	struct volume_health health;   /* besides what the phase says */
	struct volume_filling filling; /* in phase CREATING */
	enum volume_dax dax;
	bool lacks_sync;           /* its class promises MAP_SYNC, and it does not have that */
	struct volume_pause pause; /* since the start of the driver */
	/* Whether the report that has just come is the first one with this pause, and the one before had the
	 * volume: while the node table calls its watchers. Not compared. */
	bool pause_is_new;
	/* When a controller first had a report of it as made, of the clock of its node table; 0: in the first
	 * report of its node, or not yet. Not compared. */
	uint64_t seen_ns;
};

struct pool_report {
	char *name;
	struct capacity capacity; /* of what can be created there now */
	uint64_t region_bytes;    /* size of its region; 0: not known */
	struct layout_rules rules;
	enum durability durability;                     /* of its memory */
	uint64_t free_extent_bytes[LAYOUT_EXTENTS_MAX]; /* as in struct device_pool */
	size_t n_free_extents;
	bool incomplete;        /* a device of it is missing */
	uint64_t erasing_bytes; /* of volumes that are being erased */
};

struct volumes_report {
	struct pool_report *pools;
	size_t n_pools;
	struct volume_report
		*volumes; /* first those with a record, by ID; then those being created; then damaged ones */
	size_t n_volumes;
};

/** pool_report_done(), volume_report_done() - release what the parameter points to; safe on a zeroed one. */
void pool_report_done(struct pool_report *p);
void volume_report_done(struct volume_report *v);

/** pool_report_equal(), volume_report_equal() - whether @a and @b are equal. */
bool pool_report_equal(const struct pool_report *a, const struct pool_report *b);
bool volume_report_equal(const struct volume_report *a, const struct volume_report *b);

/** volumes_report_done() - release what @r owns; safe on a zeroed one. */
void volumes_report_done(struct volumes_report *r);
