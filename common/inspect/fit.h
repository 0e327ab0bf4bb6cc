/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fit.h - explains with numbers why a volume can or cannot be created in a pool. Pure; the decision itself is
 * made by device_fit(), as for CreateVolume. Threads: none.
 */
#pragma once

#include "inspect/inventory.h"

struct fit_request {
	uint64_t size_bytes;
	const char *fs_type; /* "ext4" or "xfs" */
	bool sector;         /* usage=FileIO */
	bool sync;           /* it needs MAP_SYNC */
	bool block;          /* raw block: no file system is made */
};

struct fit_node {
	const struct device_manager *manager;
	const struct check_view *view;
	const struct nd_inventory *regions; /* NULL: fake devices */
	const struct lvm_report *report;    /* NULL: without LVM */
};

enum fit_kind {
	FIT_MINIMUM,       /* the file system needs more than was requested */
	FIT_ROUNDING,      /* the pool allocates multiples of a unit */
	FIT_DURABILITY,    /* the kernel refuses MAP_SYNC */
	FIT_CLOSED,        /* the pool is of the other device mode */
	FIT_INCOMPLETE,    /* parts of the pool are missing */
	FIT_SPACE,         /* too little space is free */
	FIT_FRAGMENTATION, /* enough space is free, but not in one extent */
	FIT_LABELS,        /* no label slot is free */
	FIT_METADATA,      /* the volume group cannot have more volumes */
	FIT_REGION,        /* disabled or read-only */
	FIT_ERASING,       /* deleted volumes that are not erased yet take space */
	FIT_SHARE,         /* the pool has only a share of the region */
	FIT_FOREIGN,       /* namespaces of other owners take space */
};

/** fit_kind_name() - get the name of @kind, such as "fragmentation". */
const char *fit_kind_name(enum fit_kind kind);

struct fit_reason {
	enum fit_kind kind;
	uint64_t bytes; /* the number in the text; 0 for FIT_LABELS */
	char *text;
};

struct fit_answer {
	uint64_t needed_bytes; /* smallest size that satisfies the request */
	uint64_t size_bytes;   /* size that the volume would have; UINT64_MAX: it does not fit */
	struct fit_reason *reasons;
	size_t n_reasons;
};

/** fit_explain() - explain whether @q fits into pool number @at of the view's listing. @ret:
 * fit_answer_done() */
void fit_explain(const struct fit_node *node, const struct fit_request *q, size_t at, struct fit_answer *ret);

/** fit_answer_done() - release what @a owns; safe on a zeroed one. */
void fit_answer_done(struct fit_answer *a);
