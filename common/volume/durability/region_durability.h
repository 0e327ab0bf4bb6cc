/* SPDX-License-Identifier: Apache-2.0 */
/*
 * region_durability.h - what is known of the durability of each region, and the file "durability" in the
 * state folder that keeps it for the next start.
 *
 * Regions are named by their identity, which contains what makes them: memory of another kind in the same
 * place is another region, of which nothing is known. The Go driver reads *.json only. Threads: one at a
 * time. Blocks on the disk.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "pmem/durability.h"

struct region_durability {
	char *region; /* its identity (struct nd_region) */
	enum durability durability;
	bool tried; /* since the start of the program */
};

struct region_durabilities {
	struct region_durability *list;
	size_t n;
};

/**
 * region_durabilities_read() - read the file. A missing one is empty. A damaged file counts as empty, which
 * is logged, and is replaced by the next region_durabilities_write().
 * @folder: the state folder
 * @ret:    region_durabilities_done()
 *
 * Return: 0, or -1 as file_read() and dir_open().
 */
int region_durabilities_read(
	const char *folder, struct region_durabilities *ret, struct error **err) MUST_CHECK;

/** region_durabilities_write() - replace the file, durably. Return: 0, or -1 as file_write_atomic() and
 * dir_open(). */
int region_durabilities_write(
	const char *folder, const struct region_durabilities *r, struct error **err) MUST_CHECK;

/** region_durabilities_of() - get what is known of @region; NULL is allowed, and is not known. */
enum durability region_durabilities_of(const struct region_durabilities *r, const char *region);

/** region_durabilities_note() - the memory of @region is of @durability. Return: whether that is news. */
bool region_durabilities_note(struct region_durabilities *r, const char *region, enum durability durability);

/** region_durabilities_begin() - note that @region is tried. Return: false: it was tried before.
 * region_durabilities_retry() - note that it was not. */
bool region_durabilities_begin(struct region_durabilities *r, const char *region);
void region_durabilities_retry(struct region_durabilities *r, const char *region);

/** region_durabilities_copy() - copy @r. @ret: region_durabilities_done() */
void region_durabilities_copy(const struct region_durabilities *r, struct region_durabilities *ret);

/** region_durabilities_done() - release what @r owns; safe on a zeroed one. */
void region_durabilities_done(struct region_durabilities *r);
