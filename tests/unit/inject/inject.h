/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inject.h - makes the n-th call fail that common/ makes at one of its seams, for every n that there is.
 *
 * Test programs that link this library have calls of common/ into libc, libmount, libblkid and base/buf.h
 * replaced by the linker (--wrap, for each WRAP in wrap_*.c): nothing in common/ knows of it, and calls that
 * a shared library makes for itself are not seen. The seams that are vtables are wrapped by ops.h. While
 * nothing is armed, every call passes. Threads: none, one test is one thread.
 */
#pragma once

#include <stdbool.h>

/* Ways to fail beyond errno values; a caller has to go on after these and after EINTR. */
#define INJECT_SHORT (-1) /* one byte is written or read */

enum inject_kind {
	INJECT_SYSTEM = 1, /* calls into the system and its libraries */
	INJECT_BUFFER = 2, /* a bounded buffer is full */
	INJECT_OP = 4,     /* a call through a vtable: before it has done anything, or after all of it */
};
#define INJECT_ALL (INJECT_SYSTEM | INJECT_BUFFER | INJECT_OP)

enum inject_mode {
	INJECT_NEVER, /* only count */
	INJECT_ONCE,
	INJECT_LASTING, /* that call and all after it, as when a disk dies; what is to be tried again, once */
};

struct inject_plan {
	enum inject_mode mode;
	unsigned kinds; /* set of enum inject_kind: other calls pass and are not counted */
	unsigned n;     /* from 1 */
	unsigned way;   /* number of the way to fail, modulo how many the call has */
};

struct inject_result {
	unsigned points; /* calls that were passed */
	const char *hit; /* what failed first; NULL: there were fewer calls */
	enum inject_kind kind;
	int how;       /* errno or INJECT_SHORT; 0 for buffers and vtables */
	unsigned ways; /* in how many ways that call can fail */
};

/** inject_arm() - from now on calls are counted, and fail as @plan says. */
void inject_arm(const struct inject_plan *plan);

/** inject_disarm() - all calls pass again. Return: what happened meanwhile. */
struct inject_result inject_disarm(void);

/** inject_has_failed() - armed for INJECT_LASTING, and failing. */
bool inject_has_failed(void);

/**
 * inject_way() - for wrappers: a call is about to be made.
 * @name: of the call, for ever
 * @ways: errno values or INJECT_SHORT, ended by 0
 *
 * Return: 0 when the call is to pass, else how it fails.
 */
int inject_way(enum inject_kind kind, const char *name, const int *ways);

/** inject_must_go_on() - whether @how is one after which a caller tries again. */
bool inject_must_go_on(int how);
