/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wrap.h - how a call is replaced. The build finds what to replace by the lines that begin with WRAP in
 * wrap_*.c.
 */
#pragma once

#include <errno.h>

#include "unit/inject/inject.h"

/** WRAP_AS() - declarations of a replacement that follows by hand. */
#define WRAP_AS(type, name, params)                                                                          \
	type __real_##name params;                                                                           \
	type __wrap_##name params

/** WRAP() - a whole replacement: gives @failure, with errno set to one of the ways that come last. */
#define WRAP(type, name, params, args, failure, ...)                                                         \
	WRAP_AS(type, name, params);                                                                         \
	type __wrap_##name params                                                                            \
	{                                                                                                    \
		if (wrap_fails(#name, (const int[]){__VA_ARGS__, 0}))                                        \
			return (failure);                                                                    \
		return __real_##name args;                                                                   \
	}

/** wrap_fails() - whether a call into the system fails now; errno is set then. */
static inline bool wrap_fails(const char *name, const int *ways)
{
	int how = inject_way(INJECT_SYSTEM, name, ways);

	if (how > 0)
		errno = how;
	return how > 0;
}
