/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cxl_record.h - the records of CXL regions: which devices they consist of, and in which order.
 *
 * One file per region, <statePath>/lvm/cxl/UUID.json, beside the records of volume groups. A record is only
 * removed by an administrator, or when the region that it was written for could not be made. Threads: one at
 * a time. Blocks on the disk. Decision: docs/decisions/088.
 */
#pragma once

#include "pmem/cxl/cxl.h"

struct cxl_records {
	struct cxl_layout *list;
	size_t n;
	char **damaged; /* one text for each file that cannot be used, with its path: strv */
};

/** cxl_records_read() - read all records, in the order in which they take their first device; there are none
 * without the folder. Return: 0, or -1 with
 * ERR_INTERNAL (the folder cannot be read). @ret: cxl_records_done(). */
int cxl_records_read(const char *state_path, struct cxl_records *ret, struct error **err) MUST_CHECK;

/** cxl_records_done() - release what @r owns; safe on a zeroed one. */
void cxl_records_done(struct cxl_records *r);

/** cxl_records_add() - append a copy of @l to the list in memory. */
void cxl_records_add(struct cxl_records *r, const struct cxl_layout *l);

/** cxl_record_write() - record @l, durably; the folders are made if they are missing. Replaces an older
 * record. Return: 0, or -1 as dir_open() and file_write_atomic(). */
int cxl_record_write(const char *state_path, const struct cxl_layout *l, struct error **err) MUST_CHECK;

/** cxl_record_remove() - remove the record of @uuid, durably. Idempotent. Return: 0, or -1 as dir_open() and
 * file_unlink_durable(). */
int cxl_record_remove(const char *state_path, const char *uuid, struct error **err) MUST_CHECK;

/** cxl_record_path() - where the record of @uuid is. Return: caller frees. */
char *cxl_record_path(const char *state_path, const char *uuid);

/** cxl_layout_check() - check that @l can be recorded. Return: 0, or -1 with ERR_INVALID_ARGUMENT, which says
 * what is wrong with it. */
int cxl_layout_check(const struct cxl_layout *l, struct error **err) MUST_CHECK;

/** cxl_layout_cookie() - the interleave set cookie that the kernel gives a region of this layout. Pure.
 * Source: cxl_pmem_region_probe() of drivers/cxl/pmem.c, nd_fletcher64() of drivers/nvdimm/core.c. */
uint64_t cxl_layout_cookie(const struct cxl_layout *l);
