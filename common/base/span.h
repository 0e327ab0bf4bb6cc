/* SPDX-License-Identifier: Apache-2.0 */
/*
 * span.h - borrowed bytes of a peer, not yet validated, not NUL-terminated.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct span {
	const uint8_t *p;
	size_t n;
};

/** span_of() - view of the string @s without its NUL. */
static inline struct span span_of(const char *s)
{
	return (struct span){(const uint8_t *)s, strlen(s)};
}

/** span_eq() - whether @a holds exactly the bytes of the string @s. */
static inline bool span_eq(struct span a, const char *s)
{
	return a.n == strlen(s) && (a.n == 0 || memcmp(a.p, s, a.n) == 0);
}
