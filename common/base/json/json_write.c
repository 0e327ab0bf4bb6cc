/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <string.h>

#include "base/json/json.h"
#include "base/parse.h"
#include "base/str.h"

static void separate(struct json_writer *w)
{
	if (w->comma)
		buf_addc(w->out, ',');
	w->comma = true;
}

/* Length of the UTF-8 sequence at @p that has @n bytes left, 0 if it is ill-formed. */
static size_t utf8_len(const char *p, size_t n)
{
	uint8_t lead = (uint8_t)*p;
	size_t len = lead < 0xc0 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;

	return len <= n && str_is_utf8(p, len) ? len : 0;
}

static void add_escaped(struct buf *out, char c)
{
	switch (c) {
	case '"':
		buf_adds(out, "\\\"");
		break;
	case '\\':
		buf_adds(out, "\\\\");
		break;
	case '\n':
		buf_adds(out, "\\n");
		break;
	case '\r':
		buf_adds(out, "\\r");
		break;
	case '\t':
		buf_adds(out, "\\t");
		break;
	default:
		buf_addf(out, "\\u%04x", (unsigned)(uint8_t)c);
		break;
	}
}

static bool is_plain(char c)
{
	return (uint8_t)c >= 0x20 && (uint8_t)c < 0x80 && c != '"' && c != '\\';
}

/* Bytes that are not UTF-8 become U+FFFD, so that the document stays valid whatever a file system returned.
 */
static void add_string(struct buf *out, const char *s)
{
	size_t n = strlen(s);

	buf_addc(out, '"');
	for (size_t i = 0; i < n;) {
		size_t run = 0;

		while (i + run < n && is_plain(s[i + run]))
			run++;
		buf_add(out, s + i, run);
		i += run;
		if (i == n)
			break;
		if ((uint8_t)s[i] < 0x80) {
			add_escaped(out, s[i]);
			i++;
			continue;
		}
		size_t len = utf8_len(s + i, n - i);
		if (len > 0)
			buf_add(out, s + i, len);
		else
			buf_adds(out, "\\ufffd");
		i += len > 0 ? len : 1;
	}
	buf_addc(out, '"');
}

void json_object(struct json_writer *w)
{
	separate(w);
	buf_addc(w->out, '{');
	w->comma = false;
}

void json_object_end(struct json_writer *w)
{
	buf_addc(w->out, '}');
	w->comma = true;
}

void json_array(struct json_writer *w)
{
	separate(w);
	buf_addc(w->out, '[');
	w->comma = false;
}

void json_array_end(struct json_writer *w)
{
	buf_addc(w->out, ']');
	w->comma = true;
}

void json_key(struct json_writer *w, const char *key)
{
	separate(w);
	add_string(w->out, key);
	buf_addc(w->out, ':');
	w->comma = false;
}

void json_str(struct json_writer *w, const char *value)
{
	separate(w);
	if (value)
		add_string(w->out, value);
	else
		buf_adds(w->out, "null");
}

void json_u64(struct json_writer *w, uint64_t value)
{
	separate(w);
	buf_addf(w->out, "%" PRIu64, value);
}

void json_bool(struct json_writer *w, bool value)
{
	separate(w);
	buf_adds(w->out, value ? "true" : "false");
}

void json_raw(struct json_writer *w, const char *text)
{
	separate(w);
	buf_adds(w->out, text);
}

void json_key_str(struct json_writer *w, const char *key, const char *value)
{
	json_key(w, key);
	json_str(w, value);
}

void json_key_u64(struct json_writer *w, const char *key, uint64_t value)
{
	json_key(w, key);
	json_u64(w, value);
}

void json_key_bool(struct json_writer *w, const char *key, bool value)
{
	json_key(w, key);
	json_bool(w, value);
}

void json_key_known(struct json_writer *w, const char *key, const char *value)
{
	if (value)
		json_key_str(w, key, value);
}

void json_key_bytes(struct json_writer *w, const char *key, uint64_t bytes)
{
	char text[24];

	json_key_str(w, key, format_bytes(bytes, text));
}

void json_document(struct json_writer *w)
{
	json_object(w);
	json_key_u64(w, "schemaVersion", JSON_SCHEMA_VERSION);
}
