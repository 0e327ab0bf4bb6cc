/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json_scan.h - scans JSON text for where its values begin and end, without decoding them.
 *
 * For documents of megabytes of which only a few strings matter, and of which parts are passed on unchanged:
 * the reader of json.h takes ten times as long. A cursor moves over the text once: it goes into an object or
 * array, or over a value, whose text it returns. Everything that it passes is checked against the grammar of
 * RFC 8259, except for UTF-8, with at most JSON_SCAN_DEPTH levels. Nothing is allocated, spans point into the
 * text. Duplicate keys are the caller's business. After a failure the cursor is not used any more. Threads:
 * one owner at a time.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/json/json.h"
#include "base/span.h"

#define JSON_SCAN_DEPTH 64

struct json_scan {
	struct span text;
	size_t at;
	unsigned depth; /* objects and arrays around the cursor */
	bool entered;   /* the last one was just entered */
};

#define JSON_SCAN(span_of_text) ((struct json_scan){.text = (span_of_text)})

/** json_scan_peek() - go to the next value, which then begins at @s->at, and say what it is by its first
 * byte: one of JSON_NULL, JSON_BOOL, JSON_NUMBER,
 * JSON_STRING, JSON_OBJECT, JSON_ARRAY; JSON_END when no value begins here. */
enum json_type json_scan_peek(struct json_scan *s);

/**
 * json_scan_value() - go over the next value.
 * @ret: its text, without white space around it; a string with its quotes
 *
 * Return: 0, or -1 with ERR_INVALID_ARGUMENT that names the byte where the text is wrong.
 */
int json_scan_value(struct json_scan *s, struct span *ret, struct error **err) MUST_CHECK;

/** json_scan_skip() - json_scan_value() of which no text is needed. */
int json_scan_skip(struct json_scan *s, struct error **err) MUST_CHECK;

/** json_scan_enter() - go into the next value, which must be of @type, JSON_OBJECT or JSON_ARRAY; then
 * json_scan_member() or json_scan_element() until there is none left. Return: as json_scan_value(). */
int json_scan_enter(struct json_scan *s, enum json_type type, struct error **err) MUST_CHECK;

/**
 * json_scan_member() - go to the value of the next member; that of the one before was gone over or through.
 * @ret_key:  the key's text, with its quotes and escapes; see json_scan_key_is()
 * @ret_more: false: there is none, the object was left
 *
 * Return: as json_scan_value().
 */
int json_scan_member(
	struct json_scan *s, struct span *ret_key, bool *ret_more, struct error **err) MUST_CHECK;

/** Called at the value of each member; it moves the cursor over the value. @key: as of json_scan_member() */
typedef int json_scan_member_fn(void *user, struct span key, struct json_scan *s, struct error **err);

/** json_scan_members() - go through the next value, which must be an object. Return: as json_scan_value(), or
 * -1 from @member. */
int json_scan_members(
	struct json_scan *s, json_scan_member_fn *member, void *user, struct error **err) MUST_CHECK;

/** json_scan_element() - as json_scan_member() for the elements of an array. */
int json_scan_element(struct json_scan *s, bool *ret_more, struct error **err) MUST_CHECK;

/** json_scan_end() - that nothing follows but white space. Return: as json_scan_value(). */
int json_scan_end(struct json_scan *s, struct error **err) MUST_CHECK;

/** json_scan_key_is() - whether @key, of json_scan_member(), means @name (ASCII), which Go finds without
 * regard to case (encoding/json, Unmarshal). */
bool json_scan_key_is(struct span key, const char *name);
