/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pool_area.h - what LVM has left on a device, seen without LVM: its label may be gone while the text that
 * describes the volumes is still there.
 *
 * A metadata area begins with a header that points at the current text; LVM takes the pointer away when the
 * device leaves its group (vgremove, vgreduce, pvcreate). The first area is at 4096, a second one near the
 * end. Source: struct mda_header and struct raw_locn in LVM's lib/format_text/layout.h. Threads: safe. Blocks
 * on the device.
 */
#pragma once

#include <stdint.h>

#include "base/error.h"

enum pool_area_state {
	POOL_AREA_NONE,  /* no header */
	POOL_AREA_EMPTY, /* LVM itself says that it describes nothing */
	POOL_AREA_USED,  /* it describes a volume group, or cannot be understood */
};

struct pool_area {
	enum pool_area_state first;
	enum pool_area_state second;
	uint64_t second_offset_bytes; /* 0: there is none */
	uint64_t second_bytes;
};

/** pool_area_look() - look at @path, a block device or a file. Return: 0, or -1 with ERR_INTERNAL. */
int pool_area_look(const char *path, struct pool_area *ret, struct error **err) MUST_CHECK;
