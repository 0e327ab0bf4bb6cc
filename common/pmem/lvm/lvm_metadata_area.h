/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lvm_metadata_area.h - finds LVM's metadata on a device without using LVM: the label may be lost while the
 * text that describes the volumes still exists.
 *
 * A metadata area begins with a header that points at the current text; LVM removes the pointer when the
 * device leaves its group (vgremove, vgreduce, pvcreate). The first area is at 4096, a second one near the
 * end. The label, in one of the first four sectors, has the UUID of the physical volume and says where its
 * areas are. Source: struct mda_header, struct raw_locn and struct pv_header in LVM's
 * lib/format_text/layout.h, struct label_header in its lib/label/label.h. Threads: safe. Blocks on the
 * device.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
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

#define LVM_AREA_FIRST_OFFSET 4096U
#define LVM_AREAS_MAX         2U
#define LVM_UUID_LEN          38
/* No text is larger than half of its area, which has 2 MiB in our groups. */
#define LVM_TEXT_MAX_BYTES (8U << 20)

struct lvm_label {
	bool sound;                     /* there is one, and its checksum is right */
	char pv_uuid[LVM_UUID_LEN + 1]; /* with dashes, as LVM shows it */
	uint64_t area_offsets[LVM_AREAS_MAX];
	size_t n_areas;
};

/** lvm_label_read() - read the label of @path. A missing or damaged label is no failure: then @ret->sound is
 * false. Return: 0, or -1 with ERR_INTERNAL. */
int lvm_label_read(const char *path, struct lvm_label *ret, struct error **err) MUST_CHECK;

/**
 * lvm_metadata_area_text() - read the current text of the metadata area at @offset_bytes of @path.
 * @out:       LVM_TEXT_MAX_BYTES at least; appended to, without the NUL at its end
 * @ret_sound: whether header and text have the right checksums and LVM uses the area; otherwise @out is
 * unchanged
 *
 * Return: 0, or -1 with ERR_INTERNAL (cannot be read).
 */
int lvm_metadata_area_text(const char *path, uint64_t offset_bytes, struct buf *out, bool *ret_sound,
	struct error **err) MUST_CHECK;
