/* SPDX-License-Identifier: Apache-2.0 */
#include "nodes/node_text.h"

#include <string.h>

#include "base/str.h"

static bool is_continuation(char c)
{
	return ((unsigned char)c & 0xc0) == 0x80;
}

/* Bytes of the character at @s, and of a byte that begins none: 1. */
static size_t character_len(const char *s)
{
	size_t n = 1;

	while (n < 4 && is_continuation(s[n]))
		n++;
	return str_is_utf8(s, n) ? n : 1;
}

char *node_text(const char *text, struct arena *arena)
{
	char *copy = arena_alloc(arena, NODE_TEXT_MAX + 1);
	size_t len = 0;

	for (size_t n; *text && len + (n = character_len(text)) <= NODE_TEXT_MAX; text += n) {
		if (!str_is_utf8(text, n) || str_is_control(text)) {
			copy[len++] = '?';
		} else {
			memcpy(copy + len, text, n);
			len += n;
		}
	}
	copy[len] = '\0';
	return copy;
}
