/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The JSON reader, its readers of whole values, and the writer.
 *
 * The first byte says what is done with the rest: it is copied, skipped, read member by member as a file of
 * ours is, or written as a string.
 */
#include "base/json/json.h"

#include <stdlib.h>

#include "base/str.h"
#include "fuzz/fuzz.h"

#define COPY_MAX_BYTES (1u << 20)

/* The first value of @in into @out. Return: 0, or -1 when @in is no JSON. */
static int copy(struct span in, struct buf *out, struct error **err)
{
	CLEANUP(json_reader_freep) struct json_reader *r = json_reader_new(in);
	struct json_writer w = JSON_WRITER(out);
	struct json_event ev;

	if (json_next(r, &ev, err) < 0)
		return -1;
	if (json_copy(r, &ev, &w, err) < 0)
		return -1;
	return json_expect(r, JSON_END, &ev, err);
}

/* A copy is JSON, and its copy is the same. */
static void check_copy(struct span in)
{
	CLEANUP(buf_done) struct buf first = BUF_INIT(COPY_MAX_BYTES);
	CLEANUP(buf_done) struct buf second = BUF_INIT(COPY_MAX_BYTES);
	struct error *err = NULL;

	if (copy(in, &first, &err) < 0) {
		fuzz_error(err);
		return;
	}
	int rv = copy(buf_span(&first), &second, &err);
	assert(rv == 0);
	assert(span_eq(buf_span(&second), buf_str(&first)));
}

/* After a failure it stays failed, after the end it stays at the end. */
static void check_events(struct span in)
{
	CLEANUP(json_reader_freep) struct json_reader *r = json_reader_new(in);
	struct error *err = NULL;
	struct json_event ev;
	int rv;

	while ((rv = json_next(r, &ev, &err)) == 0 && ev.type != JSON_END) {
		if (ev.text)
			assert(strlen(ev.text) == ev.len);
	}
	if (rv < 0) {
		fuzz_error(TAKE_PTR(err));
		assert(json_next(r, &ev, &err) < 0);
		fuzz_error(err);
		return;
	}
	rv = json_next(r, &ev, &err);
	assert(rv == 0 && ev.type == JSON_END);
}

static int read_member(struct json_reader *r, const char *key, struct error **err)
{
	CLEANUP(free_charp) char *text = NULL;
	CLEANUP(strv_freep) char **list = NULL;
	struct json_event ev;
	uint64_t number;
	bool truth;

	if (str_starts(key, "s"))
		return json_read_str(r, &text, err);
	if (str_starts(key, "n"))
		return json_read_u64(r, &number, err);
	if (str_starts(key, "b"))
		return json_read_bool(r, &truth, err);
	if (str_starts(key, "l"))
		return json_read_strv(r, &list, err);
	if (json_next(r, &ev, err) < 0)
		return -1;
	return json_skip(r, &ev, err);
}

static int read_members(struct json_reader *r, struct error **err)
{
	struct json_event ev;

	if (json_expect(r, JSON_OBJECT, &ev, err) < 0)
		return -1;
	for (;;) {
		CLEANUP(free_charp) char *key = NULL;

		if (json_next(r, &ev, err) < 0)
			return -1;
		if (ev.type == JSON_OBJECT_END)
			return json_expect(r, JSON_END, &ev, err);
		key = strdup(ev.text);
		if (read_member(r, key, err) < 0)
			return -1;
	}
}

static void check_members(struct span in)
{
	CLEANUP(json_reader_freep) struct json_reader *r = json_reader_new(in);
	struct error *err = NULL;

	if (read_members(r, &err) < 0)
		fuzz_error(err);
}

/* Checks that a string that was written can be read, and that it is unchanged if it is valid UTF-8. */
static void check_string(struct span in)
{
	CLEANUP(free_charp) char *text = fuzz_text(in);
	CLEANUP(free_charp) char *again = NULL;
	CLEANUP(buf_done) struct buf out = BUF_INIT(COPY_MAX_BYTES);
	struct json_writer w = JSON_WRITER(&out);
	struct error *err = NULL;

	json_str(&w, text);
	CLEANUP(json_reader_freep) struct json_reader *r = json_reader_new(buf_span(&out));
	int rv = json_read_str(r, &again, &err);
	assert(rv == 0);
	assert(!str_is_utf8(text, strlen(text)) || str_eq(text, again));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static void (*const checks[])(struct span in) = {
		check_copy, check_events, check_members, check_string};
	struct span in = {data, size};

	checks[fuzz_byte(&in) % ARRAY_SIZE(checks)](in);
	return 0;
}
