/* SPDX-License-Identifier: Apache-2.0 */
#include "base/str.h"

#include <stdint.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/mem.h"

bool str_eq(const char *a, const char *b)
{
	if (!a || !b)
		return a == b;
	return strcmp(a, b) == 0;
}

bool str_starts(const char *s, const char *prefix)
{
	return strncmp(s, prefix, strlen(prefix)) == 0;
}

bool str_ends(const char *s, const char *suffix)
{
	size_t n = strlen(s);
	size_t n_suffix = strlen(suffix);

	return n >= n_suffix && memcmp(s + n - n_suffix, suffix, n_suffix) == 0;
}

/*
 * Bytes of the well-formed sequence at @p, 0 if there is none. The range of the second byte depends on the
 * first one; that excludes overlong forms, surrogates and what lies above U+10FFFF (RFC 3629 section 4).
 */
static size_t utf8_sequence(const uint8_t *p, size_t n)
{
	size_t len;
	uint8_t low = 0x80;
	uint8_t high = 0xbf;

	if (p[0] < 0x80)
		return p[0] != 0;
	if (p[0] >= 0xc2 && p[0] <= 0xdf)
		len = 2;
	else if (p[0] >= 0xe0 && p[0] <= 0xef)
		len = 3;
	else if (p[0] >= 0xf0 && p[0] <= 0xf4)
		len = 4;
	else
		return 0;
	if (p[0] == 0xe0)
		low = 0xa0;
	if (p[0] == 0xed)
		high = 0x9f;
	if (p[0] == 0xf0)
		low = 0x90;
	if (p[0] == 0xf4)
		high = 0x8f;
	if (n < len || p[1] < low || p[1] > high)
		return 0;
	for (size_t i = 2; i < len; i++)
		if ((p[i] & 0xc0) != 0x80)
			return 0;
	return len;
}

bool str_is_utf8(const void *p, size_t n)
{
	const uint8_t *bytes = p;

	for (size_t i = 0; i < n;) {
		size_t len = utf8_sequence(bytes + i, n - i);

		if (len == 0)
			return false;
		i += len;
	}
	return true;
}

bool str_is_control(const char *s)
{
	const uint8_t *p = (const uint8_t *)s;

	/* U+0080 to U+009F are C2 80 to C2 9F */
	return (p[0] > 0 && p[0] < 0x20) || p[0] == 0x7f || (p[0] == 0xc2 && p[1] <= 0x9f);
}

static uint32_t code_point(const uint8_t *p, size_t len)
{
	uint32_t c = len == 1 ? p[0] : p[0] & (0x7fU >> len);

	for (size_t i = 1; i < len; i++)
		c = c << 6 | (p[i] & 0x3fU);
	return c;
}

bool str_is_format(const char *s)
{
	/* Unicode 16.0, DerivedGeneralCategory.txt: Cf, Zl and Zp */
	static const struct {
		uint32_t first, last;
	} ranges[] = {{0xad, 0xad}, {0x600, 0x605}, {0x61c, 0x61c}, {0x6dd, 0x6dd}, {0x70f, 0x70f},
		{0x890, 0x891}, {0x8e2, 0x8e2}, {0x180e, 0x180e}, {0x200b, 0x200f}, {0x2028, 0x202e},
		{0x2060, 0x2064}, {0x2066, 0x206f}, {0xfeff, 0xfeff}, {0xfff9, 0xfffb}, {0x110bd, 0x110bd},
		{0x110cd, 0x110cd}, {0x13430, 0x1343f}, {0x1bca0, 0x1bca3}, {0x1d173, 0x1d17a},
		{0xe0001, 0xe0001}, {0xe0020, 0xe007f}};
	size_t len = utf8_sequence((const uint8_t *)s, strnlen(s, 4));
	uint32_t c = len > 0 ? code_point((const uint8_t *)s, len) : 0;

	for (size_t i = 0; i < ARRAY_SIZE(ranges); i++) {
		if (c >= ranges[i].first && c <= ranges[i].last)
			return true;
	}
	return false;
}

/* @hides: whether the character at its argument, which begins a well-formed sequence, is replaced
 * @bytes: whether bytes that are not UTF-8 are replaced, too */
static void replace(char *s, bool (*hides)(const char *s), bool bytes)
{
	const char *end = s + strlen(s);
	char *out = s;

	while (s < end) {
		size_t len = utf8_sequence((const uint8_t *)s, (size_t)(end - s));
		size_t n = len > 0 ? len : 1;

		if (len > 0 ? !hides(s) : !bytes) {
			memmove(out, s, n);
			out += n;
		} else {
			*out++ = strchr("\t\n\v\f\r", *s) ? ' ' : '?';
		}
		s += n;
	}
	*out = '\0';
}

static bool is_unclean(const char *s)
{
	return str_is_control(s) || str_is_format(s);
}

void str_clean(char *s)
{
	replace(s, is_unclean, /* bytes= */ true);
}

void str_hide_formats(char *s)
{
	replace(s, str_is_format, /* bytes= */ false);
}

void strv_free(char **v)
{
	for (size_t i = 0; v && v[i]; i++)
		free(v[i]);
	free(v);
}

size_t strv_len(char *const *v)
{
	size_t n = 0;

	while (v && v[n])
		n++;
	return n;
}

void strv_add(char ***v, const char *s)
{
	size_t n = strv_len(*v);

	*v = x_realloc(*v, n + 2, sizeof(**v));
	(*v)[n] = x_strdup(s);
	(*v)[n + 1] = NULL;
}

bool strv_contains(char *const *v, const char *s)
{
	for (size_t i = 0; v && v[i]; i++)
		if (strcmp(v[i], s) == 0)
			return true;
	return false;
}

char **strv_dup(char *const *v)
{
	char **copy = NULL;

	for (size_t i = 0; v && v[i]; i++)
		strv_add(&copy, v[i]);
	return copy;
}

bool strv_eq(char *const *a, char *const *b)
{
	size_t n = strv_len(a);

	if (n != strv_len(b))
		return false;
	for (size_t i = 0; i < n; i++) {
		if (strcmp(a[i], b[i]) != 0)
			return false;
	}
	return true;
}
