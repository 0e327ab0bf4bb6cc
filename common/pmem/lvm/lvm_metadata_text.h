/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lvm_metadata_text.h - reads the text in which LVM describes a volume group: a copy that vgcfgbackup(8) has
 * written, or the content of a metadata area.
 *
 * Only what says whether the text fits a device is kept; LVM itself reads the rest. Source: text_vg_export()
 * of LVM's lib/format_text/export.c, and the grammar of libdm/libdm-config.c. Threads: safe. Nothing blocks.
 */
#pragma once

#include <stdint.h>

#include "base/error.h"
#include "base/span.h"

struct lvm_text_pv {
	char *uuid;
	uint64_t device_bytes; /* as large was the device */
	uint64_t data_offset_bytes;
	uint64_t data_end_bytes; /* of the last extent; what follows belongs to no volume */
};

/* A logical volume that lies on devices and is no part of another one. */
struct lvm_text_volume {
	char *name;
	uint64_t size_bytes;
	char **tags; /* strv */
};

struct lvm_text {
	char *group;
	char *group_uuid;
	uint64_t seqno;
	uint64_t written_s; /* since 1970; 0: unknown */
	struct lvm_text_pv *pvs;
	size_t n_pvs;
	struct lvm_text_volume *volumes;
	size_t n_volumes;
};

/** lvm_text_parse() - parse @text. Return: 0, or -1 with ERR_INVALID_ARGUMENT (it describes no group; it is
 * malformed or truncated). @ret: lvm_text_done(). */
int lvm_text_parse(struct span text, struct lvm_text *ret, struct error **err) MUST_CHECK;

/** lvm_text_done() - release what @t owns; safe on a zeroed one. */
void lvm_text_done(struct lvm_text *t);

/** lvm_text_pv() - the physical volume with @uuid, or NULL. */
const struct lvm_text_pv *lvm_text_pv(const struct lvm_text *t, const char *uuid);

/** lvm_text_volume() - the logical volume with @name, or NULL. */
const struct lvm_text_volume *lvm_text_volume(const struct lvm_text *t, const char *name);
