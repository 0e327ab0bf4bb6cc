/* SPDX-License-Identifier: Apache-2.0 */
/*
 * str.h - the few questions about C strings that more than one place asks. Threads: safe.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

/** str_eq() - equal strings; NULL equals only NULL. */
bool str_eq(const char *a, const char *b);

/** str_empty() - @s is NULL or "". */
static inline bool str_empty(const char *s)
{
	return !s || !*s;
}

/** str_starts() - @s begins with @prefix. */
bool str_starts(const char *s, const char *prefix);

/** str_ends() - @s ends with @suffix. */
bool str_ends(const char *s, const char *suffix);

/** str_is_utf8() - @n bytes at @p are well-formed UTF-8 (RFC 3629) without NUL. */
bool str_is_utf8(const void *p, size_t n);

/** str_is_control() - the character at @s, which begins a sequence of well-formed UTF-8, is one of Unicode's
 * control characters: U+0001 to U+001F, U+007F to U+009F. */
bool str_is_control(const char *s);

/** str_is_format() - the character at @s, which begins a sequence of well-formed UTF-8, shows nothing itself,
 * but hides text or changes its order: Unicode's general category Cf, and the separators of lines and
 * paragraphs. */
bool str_is_format(const char *s);

/** str_clean() - make @s one line of UTF-8 in place: a tab or the end of a line becomes a blank, any other
 * control character, each format character and each byte that is not UTF-8 becomes '?'. */
void str_clean(char *s);

/** str_hide_formats() - replace each format character of @s with '?', in place. */
void str_hide_formats(char *s);

/**
 * strv_free() - destroy a NULL-terminated array of owned strings; NULL is allowed.
 * strv_len() - number of strings in @v; NULL has none.
 * strv_add() - append a copy of @s to *@v, which may be NULL.
 * strv_contains() - whether @s is in @v.
 * strv_dup() - a copy of @v; the caller frees it.
 * strv_eq() - whether both have the same strings in the same order. NULL and an empty one are equal.
 */
void strv_free(char **v);
size_t strv_len(char *const *v);
void strv_add(char ***v, const char *s);
bool strv_contains(char *const *v, const char *s);
char **strv_dup(char *const *v);
bool strv_eq(char *const *a, char *const *b);

static inline void strv_freep(char ***v)
{
	strv_free(*v);
}
