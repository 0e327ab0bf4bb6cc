/* SPDX-License-Identifier: Apache-2.0 */
/* Bounded buffers: the n-th addition finds the buffer full. */
#include <stdarg.h>

#include "base/buf.h"
#include "unit/inject/wrap.h"

WRAP_AS(void, buf_add, (struct buf * b, const void *p, size_t n));
WRAP_AS(void, buf_adds, (struct buf * b, const char *s));
WRAP_AS(void, buf_addc, (struct buf * b, char c));
WRAP_AS(void, buf_addf, (struct buf * b, const char *fmt, ...)) __attribute__((format(printf, 2, 3)));
WRAP_AS(uint8_t *, buf_reserve, (struct buf * b, size_t n));

static bool is_full(struct buf *b, const char *name)
{
	if (!inject_way(INJECT_BUFFER, name, (const int[]){ENOBUFS, 0}))
		return false;
	b->overflowed = true;
	return true;
}

void __wrap_buf_add(struct buf *b, const void *p, size_t n)
{
	if (!is_full(b, "buf_add"))
		__real_buf_add(b, p, n);
}

void __wrap_buf_adds(struct buf *b, const char *s)
{
	if (!is_full(b, "buf_adds"))
		__real_buf_adds(b, s);
}

void __wrap_buf_addc(struct buf *b, char c)
{
	if (!is_full(b, "buf_addc"))
		__real_buf_addc(b, c);
}

void __wrap_buf_addf(struct buf *b, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	if (!is_full(b, "buf_addf"))
		buf_addv(b, fmt, ap);
	va_end(ap);
}

uint8_t *__wrap_buf_reserve(struct buf *b, size_t n)
{
	return is_full(b, "buf_reserve") ? NULL : __real_buf_reserve(b, n);
}
