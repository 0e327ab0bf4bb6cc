/* SPDX-License-Identifier: Apache-2.0 */
/*
 * absent_names.h - names of objects that the API server has not found a moment ago, so that repeated
 * questions for them cost no request each. It has a limited number of names, of which the oldest is
 * forgotten first. Threads: one owner. Nothing blocks.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ABSENT_NAMES_MAX 256
/* A watch shows a new object within that time, and it is asked first. */
#define ABSENT_NAMES_NS 1000000000ULL

struct absent_names {
	struct {
		char *name; /* NULL: none */
		uint64_t until_ns;
	} entries[ABSENT_NAMES_MAX];
	size_t next; /* the oldest one */
};

/** absent_names_done() - release the names. */
void absent_names_done(struct absent_names *a);

/** absent_names_add() - @name was not found. @now_ns: of clock_ns() */
void absent_names_add(struct absent_names *a, const char *name, uint64_t now_ns);

/** absent_names_has() - whether @name was not found within the last ABSENT_NAMES_NS. */
bool absent_names_has(const struct absent_names *a, const char *name, uint64_t now_ns);
