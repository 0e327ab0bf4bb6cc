/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mem.h - allocation that aborts when memory is out.
 *
 * CSI is crash-safe by idempotency and the supervisor restarts us, so out-of-memory branches that no test
 * reaches do not exist. Sizes that a peer controls never come here directly: they go through buf.h or
 * arena.h, which are bounded. Threads: safe.
 */
#pragma once

#include <stdarg.h>
#include <stddef.h>

/** x_malloc() - malloc of @n bytes (n may be 0). Return: never NULL; caller frees. */
void *x_malloc(size_t n);

/** x_calloc() - zeroed array of @n elements of @size bytes; aborts on overflow. Return: never NULL. */
void *x_calloc(size_t n, size_t size);

/** x_realloc() - resize @p to @n elements of @size bytes; aborts on overflow. Return: never NULL. */
void *x_realloc(void *p, size_t n, size_t size);

/** x_strdup() - copy @s; NULL gives NULL. Return: caller frees. */
char *x_strdup(const char *s);

/** x_strndup() - copy at most @n bytes of @s. Return: NUL-terminated, caller frees. */
char *x_strndup(const char *s, size_t n);

/** x_asprintf() - format into new memory. @fmt: printf format. Return: never NULL; caller frees. */
char *x_asprintf(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/** x_vasprintf() - as x_asprintf() with @ap. */
char *x_vasprintf(const char *fmt, va_list ap) __attribute__((format(printf, 1, 0)));

/**
 * mem_tune() - set malloc up for a server: allocations of @large_bytes and more get pages of their own, of
 * which only the touched ones use memory, and which are returned to the system when they are freed; threads
 * share two heaps. With MEM_LARGE_BYTES the buffers of TLS and HTTP/2 leave no memory behind when connections
 * end. A request that needs larger buffers pays for their pages each time. For main(), before threads start.
 */
void mem_tune(int large_bytes);

#define MEM_LARGE_BYTES (16 << 10)

/** mem_trim() - give free pages of the heap back to the system. Costs up to a millisecond. Threads: safe. */
void mem_trim(void);
