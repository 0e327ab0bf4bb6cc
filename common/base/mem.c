/* SPDX-License-Identifier: Apache-2.0 */
#include "base/mem.h"

#include <errno.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Free bytes that glibc's malloc keeps at the top of the heap by default (M_TRIM_THRESHOLD). */
#define TRIM_BYTES (128 << 10)

static void *or_abort(void *p)
{
	static const char text[] = "out of memory\n";

	if (p)
		return p;
	if (write(STDERR_FILENO, text, sizeof(text) - 1) < 0)
		errno = 0;
	abort();
}

void *x_malloc(size_t n)
{
	return or_abort(malloc(n ? n : 1));
}

void *x_calloc(size_t n, size_t size)
{
	return or_abort(calloc(n ? n : 1, size ? size : 1));
}

void *x_realloc(void *p, size_t n, size_t size)
{
	return or_abort(reallocarray(p, n ? n : 1, size ? size : 1));
}

char *x_strdup(const char *s)
{
	return s ? or_abort(strdup(s)) : NULL;
}

char *x_strndup(const char *s, size_t n)
{
	return or_abort(strndup(s, n));
}

char *x_vasprintf(const char *fmt, va_list ap)
{
	char *text = NULL;

	if (vasprintf(&text, fmt, ap) < 0)
		text = NULL;
	return or_abort(text);
}

char *x_asprintf(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	char *text = x_vasprintf(fmt, ap);
	va_end(ap);
	return text;
}

void mem_tune(int large_bytes)
{
	/* NOLINTBEGIN(concurrency-mt-unsafe): no other thread runs yet */
	mallopt(M_MMAP_THRESHOLD, large_bytes);
	mallopt(M_TRIM_THRESHOLD, 2 * large_bytes > TRIM_BYTES ? 2 * large_bytes : TRIM_BYTES);
	mallopt(M_ARENA_MAX, 2);
	/* NOLINTEND(concurrency-mt-unsafe) */
}

void mem_trim(void)
{
	malloc_trim(0);
}
