/* SPDX-License-Identifier: Apache-2.0 */
#include "base/json/json_scan.h"

#include <assert.h>
#include <endian.h>
#include <string.h>

#define ALL_BYTES(x) (UINT64_C(0x0101010101010101) * (x))

/* A walk over one value. Nesting is a bit per level, not a call. */
struct skim {
	const uint8_t *p;
	const uint8_t *end;
	const char *wrong; /* what was expected at p; NULL: no error */
	unsigned depth;    /* of the value's own objects and arrays */
	unsigned room;     /* for depth */
	uint64_t objects;  /* bit n: level n is an object */
	struct span key;   /* the last one */
};

static bool is_space(uint8_t c)
{
	return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

static const uint8_t *skip_space(const uint8_t *p, const uint8_t *end)
{
	while (p < end && is_space(*p))
		p++;
	return p;
}

/* The first quote, backslash or control character. The lowest bit that is set in such a mask is exact: only
 * what borrows from it can be wrong. */
static const uint8_t *find_special(const uint8_t *p, const uint8_t *end)
{
	while (end - p >= 8) {
		uint64_t w, quotes, slashes, found;

		memcpy(&w, p, sizeof(w));
		w = le64toh(w);
		quotes = w ^ ALL_BYTES('"');
		slashes = w ^ ALL_BYTES('\\');
		found = ((quotes - ALL_BYTES(1)) & ~quotes) | ((slashes - ALL_BYTES(1)) & ~slashes) |
			((w - ALL_BYTES(' ')) & ~w);
		found &= ALL_BYTES(0x80);
		if (found)
			return p + (unsigned)__builtin_ctzll(found) / 8;
		p += 8;
	}
	while (p < end && *p != '"' && *p != '\\' && *p >= ' ')
		p++;
	return p;
}

static int hex_value(uint8_t c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* @p: behind the backslash. Return: behind the escape, NULL when it is not one. */
static const uint8_t *skip_escape(const uint8_t *p, const uint8_t *end)
{
	if (p == end)
		return NULL;
	if (*p != 'u')
		return *p != 0 && strchr("\"\\/bfnrt", *p) ? p + 1 : NULL;
	if (end - p < 5)
		return NULL;
	for (int i = 1; i <= 4; i++) {
		if (hex_value(p[i]) < 0)
			return NULL;
	}
	return p + 5;
}

/* Return: whether the walk goes on; if not, @expected is what was missed. */
static bool fail(struct skim *k, const char *expected)
{
	k->wrong = expected;
	return false;
}

static bool skim_string(struct skim *k)
{
	if (k->p == k->end || *k->p != '"')
		return fail(k, "a string");
	k->p++;
	for (;;) {
		const uint8_t *next;

		k->p = find_special(k->p, k->end);
		if (k->p == k->end || *k->p < ' ')
			return fail(k, "the rest of a string");
		if (*k->p == '"') {
			k->p++;
			return true;
		}
		next = skip_escape(k->p + 1, k->end);
		if (!next)
			return fail(k, "an escape");
		k->p = next;
	}
}

static bool skim_word(struct skim *k, const char *word)
{
	size_t n = strlen(word);

	if ((size_t)(k->end - k->p) < n || memcmp(k->p, word, n) != 0)
		return fail(k, "a value");
	k->p += n;
	return true;
}

static bool skim_digits(struct skim *k)
{
	const uint8_t *begin = k->p;

	while (k->p < k->end && *k->p >= '0' && *k->p <= '9')
		k->p++;
	return k->p > begin || fail(k, "a digit");
}

static bool next_is(const struct skim *k, uint8_t c)
{
	return k->p < k->end && *k->p == c;
}

static bool skim_number(struct skim *k)
{
	if (next_is(k, '-'))
		k->p++;
	if (next_is(k, '0'))
		k->p++;
	else if (!skim_digits(k))
		return false;
	if (next_is(k, '.')) {
		k->p++;
		if (!skim_digits(k))
			return false;
	}
	if (!next_is(k, 'e') && !next_is(k, 'E'))
		return true;
	k->p++;
	if (next_is(k, '+') || next_is(k, '-'))
		k->p++;
	return skim_digits(k);
}

static bool skim_scalar(struct skim *k)
{
	switch (k->p < k->end ? *k->p : 0) {
	case '"':
		return skim_string(k);
	case 't':
		return skim_word(k, "true");
	case 'f':
		return skim_word(k, "false");
	case 'n':
		return skim_word(k, "null");
	case '-':
	case '0' ... '9':
		return skim_number(k);
	default:
		return fail(k, "a value");
	}
}

static bool in_object(const struct skim *k)
{
	return k->objects >> (k->depth - 1) & 1;
}

/* A key and its colon, if it is an object that the walk is in. */
static bool skim_key(struct skim *k)
{
	if (!in_object(k))
		return true;
	k->p = skip_space(k->p, k->end);
	k->key.p = k->p;
	if (!skim_string(k))
		return false;
	k->key.n = (size_t)(k->p - k->key.p);
	k->p = skip_space(k->p, k->end);
	if (!next_is(k, ':'))
		return fail(k, "a colon");
	k->p++;
	return true;
}

static bool push(struct skim *k)
{
	bool is_object = *k->p == '{';

	if (k->depth == k->room)
		return fail(k, "at most 64 levels");
	k->objects &= ~(UINT64_C(1) << k->depth);
	k->objects |= (uint64_t)is_object << k->depth;
	k->depth++;
	k->p = skip_space(k->p + 1, k->end);
	return true;
}

/* Moves from behind a value over closing brackets to the next value, or to the end of the document (depth
 * 0). */
static bool move_on(struct skim *k)
{
	while (k->depth > 0) {
		k->p = skip_space(k->p, k->end);
		if (next_is(k, ',')) {
			k->p++;
			return skim_key(k);
		}
		if (!next_is(k, in_object(k) ? '}' : ']'))
			return fail(k, in_object(k) ? "a comma or }" : "a comma or ]");
		k->p++;
		k->depth--;
	}
	return true;
}

static bool skim_value(struct skim *k)
{
	do {
		k->p = skip_space(k->p, k->end);
		if (next_is(k, '{') || next_is(k, '[')) {
			if (!push(k))
				return false;
			/* what is not empty begins with a value */
			if (!next_is(k, in_object(k) ? '}' : ']')) {
				if (!skim_key(k))
					return false;
				continue;
			}
		} else if (!skim_scalar(k)) {
			return false;
		}
		if (!move_on(k))
			return false;
	} while (k->depth > 0);
	return true;
}

static struct skim skim_from(struct json_scan *s)
{
	const uint8_t *end = s->text.p + s->text.n;
	struct skim k = {.end = end, .room = JSON_SCAN_DEPTH - s->depth};

	k.p = skip_space(s->text.p + s->at, end);
	return k;
}

static int adopt(struct json_scan *s, const struct skim *k, struct error **err)
{
	s->at = (size_t)(k->p - s->text.p);
	if (k->wrong)
		return err_set(err, ERR_INVALID_ARGUMENT, "JSON: byte %zu: expected %s", s->at, k->wrong);
	return 0;
}

enum json_type json_scan_peek(struct json_scan *s)
{
	const struct skim k = skim_from(s);

	s->at = (size_t)(k.p - s->text.p);
	switch (k.p < k.end ? *k.p : 0) {
	case '{':
		return JSON_OBJECT;
	case '[':
		return JSON_ARRAY;
	case '"':
		return JSON_STRING;
	case 't':
	case 'f':
		return JSON_BOOL;
	case 'n':
		return JSON_NULL;
	case '-':
	case '0' ... '9':
		return JSON_NUMBER;
	default:
		return JSON_END;
	}
}

int json_scan_value(struct json_scan *s, struct span *ret, struct error **err)
{
	struct skim k = skim_from(s);
	const uint8_t *begin = k.p;

	skim_value(&k);
	if (adopt(s, &k, err) < 0)
		return -1;
	s->entered = false;
	*ret = (struct span){begin, (size_t)(k.p - begin)};
	return 0;
}

int json_scan_skip(struct json_scan *s, struct error **err)
{
	struct span ignored;

	return json_scan_value(s, &ignored, err);
}

int json_scan_enter(struct json_scan *s, enum json_type type, struct error **err)
{
	struct skim k = skim_from(s);

	if (!next_is(&k, type == JSON_OBJECT ? '{' : '['))
		fail(&k, type == JSON_OBJECT ? "an object" : "an array");
	else
		push(&k);
	if (adopt(s, &k, err) < 0)
		return -1;
	s->depth++;
	s->entered = true;
	return 0;
}

/* Up to the next value of the object or array, or out of it. @objects: 1 in an object, else 0. */
static int step(
	struct json_scan *s, uint64_t objects, struct span *ret_key, bool *ret_more, struct error **err)
{
	struct skim k = skim_from(s);

	assert(s->depth > 0);
	k.objects = objects;
	k.depth = 1;
	if (s->entered && !next_is(&k, objects ? '}' : ']'))
		skim_key(&k);
	else
		move_on(&k);
	if (adopt(s, &k, err) < 0)
		return -1;
	s->entered = false;
	s->depth -= k.depth == 0;
	*ret_more = k.depth > 0;
	*ret_key = k.key;
	return 0;
}

int json_scan_member(struct json_scan *s, struct span *ret_key, bool *ret_more, struct error **err)
{
	return step(s, 1, ret_key, ret_more, err);
}

int json_scan_members(struct json_scan *s, json_scan_member_fn *member, void *user, struct error **err)
{
	struct span key;
	bool more;

	if (json_scan_enter(s, JSON_OBJECT, err) < 0 || json_scan_member(s, &key, &more, err) < 0)
		return -1;
	while (more) {
		if (member(user, key, s, err) < 0 || json_scan_member(s, &key, &more, err) < 0)
			return -1;
	}
	return 0;
}

int json_scan_element(struct json_scan *s, bool *ret_more, struct error **err)
{
	struct span none;

	return step(s, 0, &none, ret_more, err);
}

int json_scan_end(struct json_scan *s, struct error **err)
{
	struct skim k = skim_from(s);

	assert(s->depth == 0);
	if (k.p < k.end)
		fail(&k, "the end");
	return adopt(s, &k, err);
}

/* One character of a string, by an escape or not. Return: its code, 0 when it is not ASCII. */
static unsigned next_char(const uint8_t **p)
{
	unsigned code = 0;

	if (**p != '\\')
		return *(*p)++;
	if ((*p)[1] != 'u') {
		*p += 2;
		return 0;
	}
	for (int i = 2; i < 6; i++)
		code = code << 4 | (unsigned)hex_value((*p)[i]);
	*p += 6;
	return code;
}

static unsigned fold(unsigned c)
{
	return c >= 'A' && c <= 'Z' ? c | 0x20 : c;
}

bool json_scan_key_is(struct span key, const char *name)
{
	const uint8_t *p = key.p + 1;

	for (; *p != '"' && *name; name++) {
		if (fold(next_char(&p)) != fold((unsigned char)*name))
			return false;
	}
	return *p == '"' && !*name;
}
