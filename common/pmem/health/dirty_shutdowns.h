/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dirty_shutdowns.h - whether the memory modules have lost power before everything was saved, at the last
 * shutdown.
 *
 * A module counts such events, and only a count that has become larger says something: it is compared with
 * the one of the boot before, which is kept in the state folder, in the file "dirty-shutdowns". The Go driver
 * reads *.json only. Threads: one at a time. Blocks on the disk.
 */
#pragma once

#include "base/error.h"
#include "pmem/nd/nd_dimms.h"

/**
 * dirty_shutdowns_compare() - set rose_by of all modules: by how much each count is larger than in the boot
 * before this one. A module that is seen for the first time, or that has no ID, has not changed.
 * @folder: the state folder
 * @record: keep the counts for the next boot, durably. false: nothing is written
 *
 * Idempotent: it stays the same until the next boot. A file that is damaged counts as none, is replaced, and
 * that is logged. Return: 0, or -1 (rose_by is set as far as the file could be read) with ERR_EXHAUSTED (disk
 * full), ERR_INTERNAL.
 */
int dirty_shutdowns_compare(const char *folder, bool record, struct dimms *d, struct error **err) MUST_CHECK;
