/* SPDX-License-Identifier: Apache-2.0 */
/*
 * suggest.h - the known name that a misspelt one is likely to mean, for error messages. Threads: safe; pure.
 */
#pragma once

#include <stddef.h>

/* A search in progress: suggest_begin(), suggest_consider() for each known name, then .name. */
struct suggestion {
	const char *typed;
	size_t len;
	unsigned distance;
	const char *name; /* NULL: none is near; borrowed from suggest_consider() */
};

/** suggest_begin() - look for a name that is near to the @len bytes at @typed, which are borrowed. */
struct suggestion suggest_begin(const char *typed, size_t len);

/** suggest_consider() - take @name (borrowed) if it is nearer than those before it: by the number of letters
 * that have to be inserted, removed or replaced (Levenshtein), where upper and lower case are the same. Names
 * of more than 63 bytes are never near. */
void suggest_consider(struct suggestion *s, const char *name);
