/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fit.h - why a volume can or cannot be made in a pool, with numbers. Pure; the decision itself is
 * device_fit()'s, as for CreateVolume. Threads: none.
 */
#pragma once

#include "inspect/inventory.h"

struct fit_request {
	uint64_t size_bytes;
	const char *fs_type; /* "ext4" or "xfs" */
	bool sector;         /* usage=FileIO */
	bool block;          /* raw block: no file system is made */
};

struct fit_node {
	const struct device_manager *manager;
	const struct check_view *view;
	const struct nd_inventory *regions; /* NULL: fake devices */
	const struct lvm_report *report;    /* NULL: without LVM */
};

enum fit_kind {
	FIT_MINIMUM,       /* the file system needs more than was asked for */
	FIT_ROUNDING,      /* the pool gives out multiples of a unit */
	FIT_CLOSED,        /* of the other device mode */
	FIT_INCOMPLETE,    /* parts of the pool are missing */
	FIT_SPACE,         /* less is free than is needed */
	FIT_FRAGMENTATION, /* enough is free, but not in one piece */
	FIT_LABELS,        /* no label slot is free */
	FIT_METADATA,      /* the volume group cannot describe more volumes */
	FIT_REGION,        /* disabled or read-only */
	FIT_ERASING,       /* deleted volumes still take space */
	FIT_SHARE,         /* the region has more that is not in the pool */
	FIT_FOREIGN,       /* others' namespaces */
};

/** fit_kind_name() - such as "fragmentation". */
const char *fit_kind_name(enum fit_kind kind);

struct fit_reason {
	enum fit_kind kind;
	uint64_t bytes; /* what the text is about; of FIT_LABELS 0 */
	char *text;
};

struct fit_answer {
	uint64_t needed_bytes; /* smallest that serves the request */
	uint64_t size_bytes;   /* what it would get; UINT64_MAX: it does not fit */
	struct fit_reason *reasons;
	size_t n_reasons;
};

/** fit_explain() - about pool number @at of the view's listing. @ret: fit_answer_done() */
void fit_explain(const struct fit_node *node, const struct fit_request *q, size_t at, struct fit_answer *ret);

/** fit_answer_done() - release what @a owns; safe on a zeroed one. */
void fit_answer_done(struct fit_answer *a);
