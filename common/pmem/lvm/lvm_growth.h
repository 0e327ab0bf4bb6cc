/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lvm_growth.h - the LVM commands that make a logical volume larger: at once, or by extents that were zeroed
 * before.
 *
 * lvextend gives a volume extents with the content that they had for their last owner. To zero them first, a
 * *spare*, a temporary volume, is made of free extents and zeroed, and the volume is then extended onto just
 * those. A spare is recognised by its tag together with its name, which cannot be the name of a device.
 * Threads: safe. Blocks as lvm_run().
 */
#pragma once

#include "pmem/lvm/lvm.h"

struct lvm_spare {
	char *name;
	char *path;    /* "/dev/vg/lv" */
	char **ranges; /* "/dev/pmem0:100-199", where its extents are: strv */
	uint64_t size_bytes;
};

/** lvm_spare_done() - release what @s owns; safe on a zeroed one. */
void lvm_spare_done(struct lvm_spare *s);

/** lvm_is_spare() - whether @lv is a spare, of whichever process. */
bool lvm_is_spare(const struct lvm_lv *lv);

/**
 * lvm_spare_make() - make an active spare with undefined content.
 * @vg:         its group
 * @id:         of the volume that grows, by which the spare is named; one spare at a time for each
 * @size_bytes: multiple of the extent size
 * @ret:        lvm_spare_done(); filled also after a failure if a spare may be left
 *
 * Return: 0, or -1 with ERR_EXHAUSTED (the free extents are in more pieces than one command can name, or
 * lvm_usable_add()), or as lvm_run().
 */
int lvm_spare_make(struct lvm *l, const struct lvm_vg *vg, const char *id, uint64_t size_bytes,
	struct lvm_spare *ret, struct error **err) MUST_CHECK;

/** lvm_spare_remove() - remove the spare called @name from @vg; a missing one is success. Return: 0, or -1 as
 * lvm_run(). */
int lvm_spare_remove(struct lvm *l, const struct lvm_vg *vg, const char *name, struct error **err) MUST_CHECK;

/** lvm_extend() - extend volume @name of @vg to @size_bytes, a multiple of the extent size. Its new end may
 * have any content. Return: 0, or -1 as lvm_usable_add() and lvm_run(). */
int lvm_extend(struct lvm *l, const struct lvm_vg *vg, const char *name, uint64_t size_bytes,
	struct error **err) MUST_CHECK;

/** lvm_refresh() - let the active device of volume @name of @vg be as LVM describes the volume: as large, and
 * not suspended. For what an lvextend has left that was ended in the middle. Idempotent. Return: 0, or -1 as
 * lvm_run(). */
int lvm_refresh(struct lvm *l, const struct lvm_vg *vg, const char *name, struct error **err) MUST_CHECK;

/** lvm_extend_onto() - extend volume @name of @vg by the extents that @spare had, all of them and no others;
 * lvm_spare_remove() has freed them. Return: 0, or -1 as lvm_run(); among others, when one of them is in use
 * again. */
int lvm_extend_onto(struct lvm *l, const struct lvm_vg *vg, const char *name, const struct lvm_spare *spare,
	struct error **err) MUST_CHECK;
