/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cxl_regions.h - CXL regions survive a boot: each is recorded when it is seen first, and one that is missing
 * is made again as it was recorded.
 *
 * A region that cannot be put together exactly as recorded is refused, and nothing is made: in another order
 * the labels belong to nothing, and the memory looks empty. Threads: one at a time; between processes the
 * caller holds pool_ns_lock(). Blocks on sysfs, the disk and cxl_make(). Decision: docs/decisions/088.
 */
#pragma once

#include "pmem/cxl/cxl.h"
#include "pmem/nd/nd.h"

enum cxl_rule {
	CXL_OFF,    /* read and change nothing */
	CXL_LOOK,   /* change nothing */
	CXL_KEEP,   /* record regions, and make missing ones again */
	CXL_CREATE, /* also make new ones of unused devices */
};

enum cxl_finding_kind {
	CXL_AS_RECORDED,
	CXL_NOW_RECORDED,
	CXL_MADE_AGAIN,
	CXL_MADE_NEW,
	CXL_NOT_RECORDED, /* CXL_LOOK: it will be recorded */
	CXL_MISSING,      /* CXL_LOOK: it can be made again */
	CXL_PROBLEM,      /* it is refused, or has failed */
};

struct cxl_finding {
	enum cxl_finding_kind kind;
	char *text;
};

struct cxl_findings {
	struct cxl_finding *list;
	size_t n;
	size_t n_problems; /* CXL_MISSING and CXL_PROBLEM */
};

/**
 * cxl_regions_settle() - compare records with what there is, and do what @rule allows.
 * @state_path: where the records are
 * @ret:        a finding for each region, recorded or not, and for each device that could not be used; also
 *              on failure
 *
 * A region that fails does not stop the others. Idempotent. Return: 0, or -1 with ERR_INTERNAL (devices or
 * records cannot be read). @ret: cxl_findings_done().
 */
int cxl_regions_settle(const struct cxl *cxl, const char *state_path, enum cxl_rule rule,
	struct cxl_findings *ret, struct error **err) MUST_CHECK;

/** cxl_rule_parse() - "off", "keep" or "create". Return: 0, or -1 with ERR_INVALID_ARGUMENT. */
int cxl_rule_parse(const char *text, enum cxl_rule *ret, struct error **err) MUST_CHECK;

/** cxl_regions_start() - cxl_regions_settle() on this host, before namespaces are looked at; findings and a
 * failure are logged, problems as warnings. Return: whether there is no problem. */
bool cxl_regions_start(const char *state_path, enum cxl_rule rule);

/** cxl_regions_look() - cxl_regions_settle() on this host with CXL_LOOK. A host without CXL has no findings.
 * Return: as it. */
int cxl_regions_look(const char *state_path, struct cxl_findings *ret, struct error **err) MUST_CHECK;

/** cxl_findings_done() - release what @f owns; safe on a zeroed one. */
void cxl_findings_done(struct cxl_findings *f);

/**
 * cxl_nd_open() - nd_open_real() with a guard: a CXL region that is not recorded, while others are, gets
 * nd_region.refused, and has no free memory. It may consist of recorded devices in another order.
 * @state_path: where the records are, read at each listing; NULL: no guard
 *
 * Return: 0, or -1 as nd_open_real(). @ret: nd_close().
 */
int cxl_nd_open(const char *state_path, struct nd **ret, struct error **err) MUST_CHECK;

/** cxl_guard() - the guard alone, for nd_set_guard(). */
void cxl_guard(const char *state_path, struct nd_inventory *inv);
