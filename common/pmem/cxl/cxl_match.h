/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cxl_match.h - compares records of CXL regions with the devices and regions that there are, and decides
 * which new regions can be made. Pure: no device is looked at. Threads: safe.
 */
#pragma once

#include "pmem/cxl/cxl_record.h"

enum cxl_verdict {
	CXL_THERE,   /* a region consists of the recorded devices in the recorded order */
	CXL_TO_MAKE, /* it is missing and can be made */
	CXL_REFUSED, /* neither */
};

/**
 * cxl_match() - what has to be done so that the region of @record exists.
 * @ret_text: why it is refused, by serial numbers, and what can be done; NULL otherwise; caller frees
 *
 * The UUID does not count: labels do not know it, and whoever makes the region by hand gives it another one.
 */
enum cxl_verdict cxl_match(const struct cxl_layout *record, const struct cxl_topology *t, char **ret_text);

/** cxl_set_touches() - whether @region takes memory that @record takes, too. */
bool cxl_set_touches(const struct cxl_set *region, const struct cxl_layout *record);

/** cxl_serials() - "0x1001, 0x1002": the devices of @l in order. Return: caller frees. */
char *cxl_serials(const struct cxl_layout *l);

/**
 * cxl_plan_new() - plan a region over all devices of the root decoder number @root that are not in use, that
 * no record names, and whose whole persistent memory is to be used, in the order of their serial numbers;
 * below a root decoder that interleaves, each device at the next position of its host bridge.
 * @ret:      the layout, without UUID; its ways are 0 when there is no such device
 *
 * Return: 0, or -1 with ERR_PRECONDITION (serial numbers, sizes or numbers of devices do not allow it; or
 * several root decoders lead to one).
 */
int cxl_plan_new(const struct cxl_topology *t, const struct cxl_records *records, size_t root,
	struct cxl_layout *ret, struct error **err) MUST_CHECK;
