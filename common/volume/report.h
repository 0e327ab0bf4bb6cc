/* SPDX-License-Identifier: Apache-2.0 */
/*
 * report.h - what a node reports of itself to the controller, and the controller to the scheduler extender:
 * its pools and the volumes that it knows of.
 *
 * A node makes its report from memory alone: the records of the state folder, and what was seen of devices
 * last. Threads: safe. Never waits.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "pmem/capacity.h"
#include "pmem/layout.h"
#include "volume/phase.h"

struct volumes;

struct volume_report {
	char *id;
	char *name; /* that it was made for; "": not known */
	uint64_t size_bytes;
	enum volume_phase phase;
	bool ever_staged; /* or nobody can say that it was not: of the Go driver, adopted, damaged */
	bool made_by_controller;
	char *claim; /* that it was made for, as claim_text(); NULL: not known */
};

struct pool_report {
	char *name;
	struct capacity capacity; /* of what can be made there now */
	struct layout_rules rules;
	uint64_t free_extent_bytes[LAYOUT_GAPS_MAX]; /* as struct device_pool says */
	size_t n_free_extents;
	bool incomplete; /* a device of it is missing */
};

struct volumes_report {
	struct pool_report *pools;
	size_t n_pools;
	struct volume_report *volumes; /* sorted by id, but for the damaged ones, which come last */
	size_t n_volumes;
};

/** pool_report_done(), volume_report_done() - release what it points to; safe on a zeroed one. */
void pool_report_done(struct pool_report *p);
void volume_report_done(struct volume_report *v);

/** pool_report_equal(), volume_report_equal() - whether both say the same. */
bool pool_report_equal(const struct pool_report *a, const struct pool_report *b);
bool volume_report_equal(const struct volume_report *a, const struct volume_report *b);

/** volumes_report() - what there is. Return: false before the first snapshot. @ret: volumes_report_done(). */
bool volumes_report(struct volumes *v, struct volumes_report *ret);

/** volumes_report_done() - release what @r owns; safe on a zeroed one. */
void volumes_report_done(struct volumes_report *r);
