/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lvm_usable.h - where in a group volumes may be made and extended: in all free space, or, where memory below
 * it has lost its content, in the extents without such places.
 *
 * lvcreate and lvextend take the extents that they may use as arguments, "PV:PE-PE:PE-PE" (lvm(8),
 * _parse_pes() of LVM's tools/toollib.c). Pure. Threads: an object belongs to one owner at a time.
 */
#pragma once

#include "pmem/health/media_errors.h"
#include "pmem/lvm/lvm.h"

/**
 * lvm_usable_find() - find what of the free space of @vg has no bad blocks, and subtract the rest from its
 * free bytes. Called once for each report.
 * @bad: array with one for each PV of @r, in that order. All space from the last entry of a list that is
 *       cut on counts as bad
 *
 * A group whose free space has no bad blocks has no limit. Space that one command cannot name is not usable,
 * so that volumes can be made in all space that counts as free.
 */
void lvm_usable_find(const struct lvm_report *r, const struct bad_ranges *bad, struct lvm_vg *vg);

/** lvm_usable_add() - append to the words of @argv the extents of @vg from which LVM may allocate, if they
 * are limited. @argv: NULL-terminated; all of its LVM_WORDS_MAX + 1 elements behind are NULL, too. The words
 * are borrowed from @vg. Return: 0, or -1 with ERR_EXHAUSTED (there are none), ERR_INTERNAL (the command has
 * too many words). */
int lvm_usable_add(const struct lvm_vg *vg, const char *argv[], struct error **err) MUST_CHECK;
