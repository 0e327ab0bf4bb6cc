/* SPDX-License-Identifier: Apache-2.0 */
#include "base/buf.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

#define MIN_CAP 64

void buf_done(struct buf *b)
{
	if (!b)
		return;
	free(b->data);
	*b = BUF_INIT(b->max);
}

struct buf buf_take(struct buf *b)
{
	struct buf taken = *b;

	*b = BUF_INIT(b->max);
	return taken;
}

void buf_reset(struct buf *b)
{
	b->len = 0;
	b->overflowed = false;
	if (b->data)
		b->data[0] = 0;
}

/* Doubling keeps the cost of many small additions linear; one byte more than the content holds the NUL. */
static void grow(struct buf *b, size_t need)
{
	size_t cap = b->cap > MIN_CAP ? b->cap : MIN_CAP;

	while (cap < need)
		cap = cap > SIZE_MAX / 2 ? need : cap * 2;
	if (cap - 1 > b->max)
		cap = b->max + 1;
	b->data = x_realloc(b->data, cap, 1);
	b->cap = cap;
	b->data[b->len] = 0;
}

uint8_t *buf_reserve(struct buf *b, size_t n)
{
	assert(b->len <= b->max);
	if (b->overflowed || n > b->max - b->len || n >= PTRDIFF_MAX - b->len)
		return NULL;
	if (b->len + n + 1 > b->cap)
		grow(b, b->len + n + 1);
	return b->data + b->len;
}

void buf_commit(struct buf *b, size_t n)
{
	assert(b->len + n < b->cap);
	b->len += n;
	b->data[b->len] = 0;
}

void buf_add(struct buf *b, const void *p, size_t n)
{
	uint8_t *to = buf_reserve(b, n);

	if (!to) {
		b->overflowed = true;
		return;
	}
	if (n > 0)
		memcpy(to, p, n);
	buf_commit(b, n);
}

void buf_adds(struct buf *b, const char *s)
{
	buf_add(b, s, strlen(s));
}

void buf_addc(struct buf *b, char c)
{
	buf_add(b, &c, 1);
}

void buf_addv(struct buf *b, const char *fmt, va_list ap)
{
	char small[256];
	va_list again;

	va_copy(again, ap);
	int n = vsnprintf(small, sizeof(small), fmt, ap);
	assert(n >= 0);
	if ((size_t)n < sizeof(small)) {
		buf_add(b, small, (size_t)n);
	} else {
		uint8_t *to = buf_reserve(b, (size_t)n);

		if (to) {
			vsnprintf((char *)to, (size_t)n + 1, fmt, again);
			buf_commit(b, (size_t)n);
		} else {
			b->overflowed = true;
		}
	}
	va_end(again);
}

void buf_addf(struct buf *b, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	buf_addv(b, fmt, ap);
	va_end(ap);
}

void buf_consume(struct buf *b, size_t n)
{
	assert(n <= b->len);
	if (n == 0)
		return;
	b->len -= n;
	memmove(b->data, b->data + n, b->len + 1);
}

int buf_check(const struct buf *b, const char *what, struct error **err)
{
	if (b->overflowed)
		return err_set(err, ERR_EXHAUSTED, "%s: more than %zu bytes", what, b->max);
	return 0;
}

const char *buf_str(const struct buf *b)
{
	return b->data ? (const char *)b->data : "";
}
