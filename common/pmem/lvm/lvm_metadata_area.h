/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lvm_metadata_area.h - finds LVM's metadata on a device without using LVM: the label may be lost while the
 * text that describes the volumes still exists.
 *
 * A metadata area begins with a header that points at the current text; LVM removes the pointer when the
 * device leaves its group (vgremove, vgreduce, pvcreate). The first area is at 4096, a second one near the
 * end. Source: struct mda_header and struct raw_locn in LVM's lib/format_text/layout.h. Threads:
 * safe. Blocks on the device.
 */
#pragma once

#include <stdint.h>

#include "base/error.h"

enum lvm_metadata_area_state {
	LVM_AREA_NONE,  /* no header */
	LVM_AREA_EMPTY, /* valid, and it describes no volume group */
	LVM_AREA_USED,  /* it describes a volume group, or cannot be parsed */
};

struct lvm_metadata_areas {
	enum lvm_metadata_area_state first;
	enum lvm_metadata_area_state second;
	uint64_t second_offset_bytes; /* 0: the device has only one area */
	uint64_t second_bytes;
};

/** lvm_metadata_area_read() - examine @path, a block device or a file. Return: 0, or -1 with ERR_INTERNAL. */
int lvm_metadata_area_read(const char *path, struct lvm_metadata_areas *ret, struct error **err) MUST_CHECK;
