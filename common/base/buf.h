/* SPDX-License-Identifier: Apache-2.0 */
/*
 * buf.h - growable bytes with a limit that is set at initialisation.
 *
 * Every buffer is initialised with the most bytes that it may ever hold. Adding beyond the limit adds nothing
 * and marks the buffer as overflowed, and nothing is added from then on, so writers add without checking and
 * call buf_check() once at the end. The content is always followed by a NUL that is not counted. Threads: one
 * owner at a time.
 */
#pragma once

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/span.h"

struct buf {
	uint8_t *data; /* NULL until the first byte is added */
	size_t len;
	size_t cap;
	size_t max;
	bool overflowed;
};

#define BUF_INIT(max_bytes) ((struct buf){.max = (max_bytes)})

/** buf_done() - release the memory of @b; NULL is allowed. The buffer is empty and reusable afterwards. */
void buf_done(struct buf *b);

/** buf_take() - the content of @b, which is empty and reusable afterwards. Return: buf_done(). */
struct buf buf_take(struct buf *b);

/** buf_reset() - forget the content and the overflow mark of @b, keep its memory. */
void buf_reset(struct buf *b);

/** buf_add() - append @n bytes of @p. Beyond the limit: nothing is added, the buffer is marked. */
void buf_add(struct buf *b, const void *p, size_t n);

/** buf_adds() - append the string @s. */
void buf_adds(struct buf *b, const char *s);

/** buf_addc() - append one byte @c. */
void buf_addc(struct buf *b, char c);

/** buf_addf() - append formatted text. @fmt: printf format. */
void buf_addf(struct buf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/** buf_addv() - as buf_addf() with @ap. */
void buf_addv(struct buf *b, const char *fmt, va_list ap) __attribute__((format(printf, 2, 0)));

/** buf_consume() - drop the first @n bytes (n <= len). */
void buf_consume(struct buf *b, size_t n);

/** buf_reserve() - make room for @n more bytes after the content. Return: NULL if over the limit. */
uint8_t *buf_reserve(struct buf *b, size_t n);

/** buf_commit() - @n bytes were written at the place that buf_reserve() gave. */
void buf_commit(struct buf *b, size_t n);

/**
 * buf_check() - check that everything that was added is in the buffer.
 * @what: what was being built, for the message
 *
 * Return: 0, or -1 with ERR_EXHAUSTED that names @what and the limit in bytes.
 */
int buf_check(const struct buf *b, const char *what, struct error **err) MUST_CHECK;

/** buf_str() - content as a C string, borrowed until the next change; "" when empty. */
const char *buf_str(const struct buf *b);

/** buf_span() - content as a span, borrowed until the next change. */
static inline struct span buf_span(const struct buf *b)
{
	return (struct span){b->data, b->len};
}
