/* SPDX-License-Identifier: Apache-2.0 */
/* Values of strings and numbers. */
#include <limits.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "unit/csi/mutate_private.h"

/* "Size Limits" in the CSI specification; paths may have what the system allows. */
#define STRING_MAX 128
#define MAP_MAX    4096

static void emit_text(struct mutator *m, enum mutation kind, const char *text, size_t n, const char *what)
{
	wire_bytes(mutate_rest(m), m->field->id, (struct span){(const uint8_t *)text, n});
	mutate_emit(m, kind, "%s", what);
}

/* Bytes of the current field in the valid request. */
static struct span valid_text(struct mutator *m)
{
	struct wire_field f;

	return wire_find(m->levels[m->depth].body, m->field->id, &f) ? f.payload : span_of("x");
}

/* Longest value that the specification allows, and in a map or list together with the others. */
static size_t limit_of(const struct mutator *m)
{
	if (m->field->label == PROTOBUF_C_LABEL_REPEATED || str_ends(m->levels[m->depth].type->name, "Entry"))
		return MAP_MAX;
	return str_ends(m->field->name, "_path") ? PATH_MAX : STRING_MAX;
}

static void mutate_length(struct mutator *m)
{
	static const size_t lengths[] = {
		1, 63, 64, 127, 128, 129, 255, 256, 4000, 4095, 4096, 4097, 65536, 1 << 20};
	static const char fills[] = {'a', '/', ' ', '%', '"'};
	CLEANUP(free_charp) char *text = x_calloc(1, 1 << 20);
	char what[64];

	for (size_t i = 0; i < ARRAY_SIZE(lengths) * ARRAY_SIZE(fills); i++) {
		char fill = fills[i % ARRAY_SIZE(fills)];
		size_t n = lengths[i / ARRAY_SIZE(fills)];

		if (n > 2 * PATH_MAX && fill != *fills)
			continue;
		memset(text, fill, n);
		snprintf(what, sizeof(what), "%zu times '%c'", n, fill);
		emit_text(m, n > limit_of(m) ? MUTATION_LONG : MUTATION_VALUE, text, n, what);
	}
	for (size_t i = 0; i < STRING_MAX; i += 4)
		memcpy(text + i, "\xf0\x9f\x98\x80", 4);
	emit_text(m, MUTATION_VALUE, text, STRING_MAX, "32 characters of 4 bytes");
}

/* The valid text with @extra before, in and behind it. */
static void emit_spoilt(struct mutator *m, enum mutation kind, const char *extra, size_t n, const char *what)
{
	struct span text = valid_text(m);
	const size_t places[] = {0, text.n / 2, text.n};

	for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
		CLEANUP(buf_done) struct buf spoilt = BUF_INIT(1 << 20);

		buf_add(&spoilt, text.p, places[i]);
		buf_add(&spoilt, extra, n);
		buf_add(&spoilt, text.p + places[i], text.n - places[i]);
		emit_text(m, kind, (const char *)spoilt.data, spoilt.len, what);
	}
}

static void mutate_coding(struct mutator *m)
{
	static const char *const bad[] = {"\x80", "\xbf", "\xc0\x80", "\xc1\xbf", "\xc3", "\xe0\x80\x80",
		"\xe2\x82", "\xed\xa0\x80", "\xed\xbf\xbf", "\xf0\x80\x80\x80", "\xf0\x9f\x98",
		"\xf4\x90\x80\x80", "\xf8\x88\x80\x80\x80", "\xfe", "\xff"};

	emit_spoilt(m, MUTATION_TEXT, "", 1, "U+0000");
	emit_text(m, MUTATION_TEXT, "\0\0\0", 3, "nothing but U+0000");
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		emit_text(m, MUTATION_TEXT, bad[i], strlen(bad[i]), "nothing but bytes that are not UTF-8");
		emit_spoilt(m, MUTATION_TEXT, bad[i], strlen(bad[i]), "bytes that are not UTF-8");
	}
}

/* U+0001 to U+0008, U+000B, U+000C, U+000E to U+001F, U+007F to U+009F: what CSI bans in names. */
static void mutate_control(struct mutator *m)
{
	char what[32];

	for (unsigned c = 1; c < 0xa0; c++) {
		const char c0[] = {(char)c, 0};
		const char c1[] = {(char)0xc2, (char)c, 0};
		bool banned = (c < 0x20 && !strchr("\t\n\r", (int)c)) || c >= 0x7f;

		if (c >= 0x20 && c < 0x7f)
			continue;
		snprintf(what, sizeof(what), "U+%04X", c);
		emit_spoilt(m, banned ? MUTATION_CONTROL : MUTATION_VALUE, c < 0x80 ? c0 : c1,
			c < 0x80 ? 1 : 2, what);
	}
}

void mutate_string(struct mutator *m)
{
	static const char *const texts[] = {"a", "0", "-1", "-", "--help", "-rf", ".", "..", "/", "//", "/.",
		"/..", "/../..", "../x", "relative", "relative/path", "./x", "/etc/passwd", "/proc/self/root",
		"/proc/1/root/etc", "/dev/null", "/dev/mem", "/sys", "$(reboot)", "`reboot`", "; reboot",
		"| reboot", "& reboot", "'", "\"", "\\", "%s%n%s%n", "%00", "%2e%2e/", "*", "?", "~", "{}",
		"[]", "true", "null", "\xef\xbb\xbf", "\xe2\x80\xae", "\xe2\x80\xa8", "\xef\xbf\xbf",
		"a\xcc\x88", "csi.storage.k8s.io/ephemeral", "csi.storage.k8s.io/", "eraseafter", "name",
		"size", "9223372036854775808", "1e999999999", ".lock", "x.json", "pvmove0", "snapshot"};

	emit_text(m, MUTATION_MISSING, "", 0, "empty");
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
		emit_text(m, MUTATION_VALUE, texts[i], strlen(texts[i]), texts[i]);
	for (size_t i = 0; m->texts && m->texts[i]; i++)
		emit_text(m, MUTATION_VALUE, m->texts[i], strlen(m->texts[i]), m->texts[i]);
	emit_spoilt(m, MUTATION_VALUE, "/../", 4, "with /../");
	emit_spoilt(m, MUTATION_VALUE, "/./", 3, "with /./");
	emit_spoilt(m, MUTATION_VALUE, "//", 2, "with //");
	mutate_length(m);
	mutate_coding(m);
	mutate_control(m);
}

static bool is_unsigned(const ProtobufCFieldDescriptor *f)
{
	return f->type == PROTOBUF_C_TYPE_BOOL || f->type == PROTOBUF_C_TYPE_ENUM;
}

void mutate_number(struct mutator *m)
{
	static const uint64_t values[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 99, 4096, 1 << 20, INT32_MAX - 1,
		INT32_MAX, 1ULL << 31, UINT32_MAX, 1ULL << 32, (1ULL << 32) + 1, 1ULL << 40, 1ULL << 52,
		1ULL << 62, INT64_MAX - 1, INT64_MAX, 1ULL << 63, UINT64_MAX - 1, UINT64_MAX};
	uint32_t number = m->field->id;

	for (size_t i = 0; i < ARRAY_SIZE(values); i++) {
		bool negative = !is_unsigned(m->field) &&
				(m->field->type == PROTOBUF_C_TYPE_INT32 ? (int32_t)values[i] < 0
									 : (int64_t)values[i] < 0);

		wire_int(mutate_rest(m), number, values[i]);
		mutate_emit(m,
			negative         ? MUTATION_NEGATIVE
			: values[i] == 0 ? MUTATION_MISSING
					 : MUTATION_VALUE,
			"%lld", (long long)values[i]);
	}
	struct buf *out = mutate_rest(m);
	wire_tag(out, number, WIRE_VARINT);
	buf_add(out, "\x81\x80\x80\x80\x80\x80\x80\x80\x80\x00", 10);
	mutate_emit(m, MUTATION_VALUE, "1 in ten bytes");
	out = mutate_rest(m);
	wire_tag(out, number, WIRE_VARINT);
	buf_add(out, "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 12);
	mutate_emit(m, MUTATION_MALFORMED, "more than 64 bits");
}
