/* SPDX-License-Identifier: Apache-2.0 */
/*
 * label_area.h - the label area of a memory module: whether there is one, and whether anything is in it.
 *
 * Threads: safe. Blocks: sysfs and the module's control device, some milliseconds for each block that the
 * firmware transfers. Source: drivers/nvdimm/label.h (struct nd_namespace_index, struct nd_namespace_label);
 * Documentation/driver-api/nvdimm/nvdimm.rst, "LIBNVDIMM DIMM"; linux/ndctl.h.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/* The beginning of an index block, by which a label area is recognised. */
#define LABEL_INDEX_SIGNATURE "NAMESPACE_INDEX"
#define LABEL_INDEX_MAJOR_AT  60
#define LABEL_INDEX_MINOR_AT  62
#define LABEL_INDEX_BYTES     64

enum label_area {
	LABEL_AREA_NONE,  /* the module has none, or none that can be written */
	LABEL_AREA_BLANK, /* it was never written, or is erased: each byte is 0, or each is 0xff */
	LABEL_AREA_EMPTY, /* an index block that the kernel would take, with no label behind it */
	LABEL_AREA_USED,  /* anything else, whether it is understood or not */
};

/** label_area_judge() - what is in a label area of @total_bytes. @area: its first @n_bytes */
enum label_area label_area_judge(const uint8_t *area, size_t n_bytes, size_t total_bytes);

/**
 * label_area_read() - look at the label area of a module.
 * @module: "nmem0"
 * @whole:  look at each byte, which takes seconds where firmware transfers little at a time; otherwise at its
 *          beginning, where the index and the labels that are written first are
 *
 * Return: 0, or -1 with ERR_INTERNAL (it cannot be read, or is larger than any that is known).
 */
int label_area_read(const char *module, bool whole, enum label_area *ret, struct error **err) MUST_CHECK;

/** label_area_peek() - read @n_bytes, no more than the firmware transfers at a time, at @offset_bytes of the
 * label area. Return: 0, or -1 with ERR_INTERNAL. */
int label_area_peek(const char *module, uint32_t offset_bytes, uint32_t n_bytes, uint8_t *ret,
	struct error **err) MUST_CHECK;
