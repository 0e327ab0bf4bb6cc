/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json.h - reading JSON event by event and writing it straight into a buffer.
 *
 * The reader is a pull parser over yajl: the caller asks for the next event; the input is fed to yajl piece
 * by piece, so memory is bounded by one piece (4 to 256 KiB), the longest token and the depth limit (64).
 * Numbers are handed out as text, strings with a NUL or invalid UTF-8 never.
 * Duplicate keys are the caller's business. The writer escapes, places commas, and relies on buf's sticky
 * limit. Threads: one owner at a time.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/span.h"

enum json_type {
	JSON_END, /* the document is complete */
	JSON_NULL,
	JSON_BOOL,
	JSON_NUMBER, /* text of the number */
	JSON_STRING,
	JSON_KEY,
	JSON_OBJECT,     /* { */
	JSON_OBJECT_END, /* } */
	JSON_ARRAY,      /* [ */
	JSON_ARRAY_END,  /* ] */
};

struct json_event {
	enum json_type type;
	const char *text; /* JSON_NUMBER, JSON_STRING, JSON_KEY: NUL-terminated, valid until the next call */
	size_t len;       /* bytes of text */
	bool boolean;     /* JSON_BOOL */
};

struct json_reader;

/** json_reader_new() - read @input, which must outlive the reader. Return: never NULL; json_reader_free(). */
struct json_reader *json_reader_new(struct span input);

/** json_reader_free() - destroy @r; NULL is allowed. */
void json_reader_free(struct json_reader *r);
DEFINE_CLEANUP(struct json_reader *, json_reader_free);

/** json_next() - the next event. Return: 0, or -1 with ERR_INVALID_ARGUMENT (malformed, truncated, too deep,
 * bytes after the document, a string with a NUL or invalid UTF-8). */
int json_next(struct json_reader *r, struct json_event *ret, struct error **err) MUST_CHECK;

/** json_next_any() - json_next(), but a string or key with a NUL or invalid UTF-8 is an event without text:
 * NULL. */
int json_next_any(struct json_reader *r, struct json_event *ret, struct error **err) MUST_CHECK;

/** json_expect() - json_next() that must be of @type. Return: 0, or -1 with ERR_INVALID_ARGUMENT. */
int json_expect(
	struct json_reader *r, enum json_type type, struct json_event *ret, struct error **err) MUST_CHECK;

/** json_skip() - read over the value that begins with @first, the last event of json_next(). */
int json_skip(struct json_reader *r, const struct json_event *first, struct error **err) MUST_CHECK;

/** json_skip_value() - read over the value that comes next. Return: 0, or -1 with ERR_INVALID_ARGUMENT. */
int json_skip_value(struct json_reader *r, struct error **err) MUST_CHECK;

/** json_skip_odd() - as json_skip(), for a value of another type than is wanted, or a string without text. A
 * strict reader refuses it, unless it is null. Return: 0, or -1 with ERR_INVALID_ARGUMENT. */
int json_skip_odd(struct json_reader *r, const struct json_event *first, struct error **err) MUST_CHECK;

/** json_reader_be_strict() - make @r strict: json_skip_odd(). */
void json_reader_be_strict(struct json_reader *r);

/** json_reader_is_strict() - whether @r is. */
bool json_reader_is_strict(const struct json_reader *r);

/* Whole values after a key, for documents with fixed members. */

/** json_read_str() - a string into *@ret, which it replaces and frees; caller frees.
 * Return: 0, or -1 with ERR_INVALID_ARGUMENT. */
int json_read_str(struct json_reader *r, char **ret, struct error **err) MUST_CHECK;

/** json_read_u64() - a whole number. Return: 0, or -1 with ERR_INVALID_ARGUMENT. */
int json_read_u64(struct json_reader *r, uint64_t *ret, struct error **err) MUST_CHECK;

/** json_read_bool() - true or false. Return: 0, or -1 with ERR_INVALID_ARGUMENT. */
int json_read_bool(struct json_reader *r, bool *ret, struct error **err) MUST_CHECK;

/** json_read_strv() - an array of strings, added to the strv *@ret. Return: 0, or -1 with
 * ERR_INVALID_ARGUMENT. */
int json_read_strv(struct json_reader *r, char ***ret, struct error **err) MUST_CHECK;

/** Called after each key; reads the whole value (json_skip_value() if it is not needed). Return: 0 or -1. */
typedef int json_member_fn(void *user, const char *key, struct json_reader *r, struct error **err);

/**
 * json_read_members() - the members of an object whose "{" was read.
 * json_read_object() - the value that comes next, an object.
 * json_read_document() - the whole @text, an object.
 *
 * Return: 0, or -1 with ERR_INVALID_ARGUMENT, or as @member, whose error gets the key in front.
 */
int json_read_members(
	struct json_reader *r, json_member_fn *member, void *user, struct error **err) MUST_CHECK;
int json_read_object(
	struct json_reader *r, json_member_fn *member, void *user, struct error **err) MUST_CHECK;
int json_read_document(struct span text, json_member_fn *member, void *user, struct error **err) MUST_CHECK;

struct json_writer {
	struct buf *out;
	bool comma; /* a comma is due before the next value or key */
};

#define JSON_WRITER(b) ((struct json_writer){.out = (b)})

/** json_copy() - as json_skip(), and write the value, unchanged in meaning, to @w. */
int json_copy(struct json_reader *r, const struct json_event *first, struct json_writer *w,
	struct error **err) MUST_CHECK;

/* Version of the schema of all JSON documents that our programs print. Adding a member does not change it. */
#define JSON_SCHEMA_VERSION 1

/** json_document() - open the object that is a whole document for other programs: its first member says which
 * schema it follows, "schemaVersion". json_object_end() closes it. */
void json_document(struct json_writer *w);

/**
 * json_object() - open an object in @w; the caller nests tokens rightly, nothing checks it.
 * json_object_end() - close it.
 * json_array() - open an array.
 * json_array_end() - close it.
 * json_key() - add the key of the next value.
 * json_str() - add a string, escaped; NULL becomes null, bytes that are not UTF-8 become U+FFFD.
 * json_u64() - add a number.
 * json_bool() - add true or false.
 * json_raw() - add @text, a complete JSON value, as it is.
 */
void json_object(struct json_writer *w);
void json_object_end(struct json_writer *w);
void json_array(struct json_writer *w);
void json_array_end(struct json_writer *w);
void json_key(struct json_writer *w, const char *key);
void json_str(struct json_writer *w, const char *value);
void json_u64(struct json_writer *w, uint64_t value);
void json_bool(struct json_writer *w, bool value);
void json_raw(struct json_writer *w, const char *text);

/**
 * json_key_str() - json_key() and json_str().
 * json_key_u64() - json_key() and json_u64().
 * json_key_bool() - json_key() and json_bool().
 * json_key_known() - json_key_str(), or nothing where @value is NULL.
 * json_key_bytes() - json_key() and @bytes as format_bytes() writes it, a string.
 */
void json_key_str(struct json_writer *w, const char *key, const char *value);
void json_key_u64(struct json_writer *w, const char *key, uint64_t value);
void json_key_bool(struct json_writer *w, const char *key, bool value);
void json_key_known(struct json_writer *w, const char *key, const char *value);
void json_key_bytes(struct json_writer *w, const char *key, uint64_t bytes);
