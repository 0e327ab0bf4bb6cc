/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <yajl/yajl_parse.h>

#include "base/cleanup.h"
#include "base/json/json.h"
#include "base/mem.h"
#include "base/str.h"

#define MAX_DEPTH 64

/*
 * yajl looks again at the whole beginning of a token with every piece, so a long string in small pieces would
 * cost quadratic time: the piece doubles as long as it gives no event. The maximum bounds the queue.
 */
#define PIECE_BYTES     4096
#define PIECE_MAX_BYTES (64 * PIECE_BYTES)

struct queued {
	enum json_type type;
	bool boolean;
	bool is_refused; /* a string or key that may be skipped, but has no text to hand out */
	size_t text_at;  /* offset in json_reader.text, whose place changes while it grows */
	size_t len;
};

struct json_reader {
	struct span input;
	size_t fed; /* bytes of input that yajl has had */
	size_t piece_bytes;
	yajl_handle yajl;

	/* events of the last piece, and the texts that they point to */
	struct queued *queue;
	size_t n_queued;
	size_t queue_cap;
	size_t next;
	struct buf text;

	unsigned depth;
	const char *refusal; /* why a callback stopped yajl */
	bool complete;       /* the outermost value is complete */
	bool ended;          /* all of the input is checked */
	bool is_strict;      /* json_skip_odd() refuses */
	char *failure;       /* reported when the queue is empty, and by every call from then on */
};

static struct queued *enqueue(struct json_reader *r, enum json_type type)
{
	if (r->n_queued == r->queue_cap) {
		r->queue_cap = r->queue_cap ? r->queue_cap * 2 : 64;
		r->queue = x_realloc(r->queue, r->queue_cap, sizeof(*r->queue));
	}
	struct queued *q = &r->queue[r->n_queued++];
	*q = (struct queued){.type = type};
	if (r->depth == 0)
		r->complete = true;
	return q;
}

static int on_null(void *ctx)
{
	enqueue(ctx, JSON_NULL);
	return 1;
}

static int on_boolean(void *ctx, int value)
{
	enqueue(ctx, JSON_BOOL)->boolean = value != 0;
	return 1;
}

static int add_text(struct json_reader *r, enum json_type type, const void *text, size_t n)
{
	struct queued *q = enqueue(r, type);

	q->text_at = r->text.len;
	q->len = n;
	buf_add(&r->text, text, n);
	buf_addc(&r->text, 0);
	if (r->text.overflowed)
		r->refusal = "text that is too long for the document";
	return !r->text.overflowed;
}

static int on_number(void *ctx, const char *text, size_t n)
{
	return add_text(ctx, JSON_NUMBER, text, n);
}

/* yajl accepts overlong forms and the escapes \u0000 and \udc00, so what it decoded is checked here. */
static int check_and_add_text(struct json_reader *r, enum json_type type, const void *text, size_t n)
{
	if (str_is_utf8(text, n))
		return add_text(r, type, text, n);
	enqueue(r, type)->is_refused = true;
	return 1;
}

static int on_string(void *ctx, const unsigned char *text, size_t n)
{
	return check_and_add_text(ctx, JSON_STRING, text, n);
}

static int on_key(void *ctx, const unsigned char *text, size_t n)
{
	return check_and_add_text(ctx, JSON_KEY, text, n);
}

static int open_level(struct json_reader *r, enum json_type type)
{
	if (r->depth == MAX_DEPTH) {
		r->refusal = "more than 64 levels";
		return 0;
	}
	r->depth++;
	enqueue(r, type);
	return 1;
}

static int close_level(struct json_reader *r, enum json_type type)
{
	r->depth--;
	enqueue(r, type);
	return 1;
}

static int on_object(void *ctx)
{
	return open_level(ctx, JSON_OBJECT);
}

static int on_object_end(void *ctx)
{
	return close_level(ctx, JSON_OBJECT_END);
}

static int on_array(void *ctx)
{
	return open_level(ctx, JSON_ARRAY);
}

static int on_array_end(void *ctx)
{
	return close_level(ctx, JSON_ARRAY_END);
}

static const yajl_callbacks callbacks = {
	.yajl_null = on_null,
	.yajl_boolean = on_boolean,
	.yajl_number = on_number,
	.yajl_string = on_string,
	.yajl_start_map = on_object,
	.yajl_map_key = on_key,
	.yajl_end_map = on_object_end,
	.yajl_start_array = on_array,
	.yajl_end_array = on_array_end,
};

/* yajl does not check what malloc() returns. */
static void *alloc_bytes(void *ctx, size_t n)
{
	(void)ctx;
	return x_malloc(n);
}

static void *realloc_bytes(void *ctx, void *p, size_t n)
{
	(void)ctx;
	return x_realloc(p, n, 1);
}

static void free_bytes(void *ctx, void *p)
{
	(void)ctx;
	free(p);
}

struct json_reader *json_reader_new(struct span input)
{
	yajl_alloc_funcs alloc = {.malloc = alloc_bytes, .realloc = realloc_bytes, .free = free_bytes};
	struct json_reader *r = x_calloc(1, sizeof(*r));

	r->input = input;
	r->piece_bytes = PIECE_BYTES;
	/* A text is shorter than its token; the last number may lack a byte behind it for the NUL. */
	r->text = BUF_INIT(input.n + 1);
	r->yajl = yajl_alloc(&callbacks, &alloc, r);
	/* yajl does not report an unterminated string behind the document, so it is configured to ignore the
	 * bytes behind the document, and they are checked here. */
	yajl_config(r->yajl, yajl_allow_trailing_garbage, 1);
	return r;
}

void json_reader_free(struct json_reader *r)
{
	if (!r)
		return;
	yajl_free(r->yajl);
	buf_done(&r->text);
	free(r->queue);
	free(r->failure);
	free(r);
}

static void fail(struct json_reader *r, size_t at, const char *why)
{
	r->failure = x_asprintf("malformed JSON near byte %zu: %.*s", at, (int)strcspn(why, "\n"), why);
}

static void fail_from_yajl(struct json_reader *r, size_t at, yajl_status status)
{
	if (status == yajl_status_client_canceled) {
		fail(r, at, r->refusal);
		return;
	}
	unsigned char *why = yajl_get_error(r->yajl, 0, NULL, 0);

	fail(r, at, (const char *)why);
	yajl_free_error(r->yajl, why);
}

static void check_rest(struct json_reader *r, size_t at)
{
	for (; at < r->input.n; at++) {
		if (!memchr(" \t\r\n", r->input.p[at], 4)) {
			fail(r, at, "bytes after the end of the document");
			return;
		}
	}
	r->ended = true;
}

static void feed_piece(struct json_reader *r)
{
	size_t start = r->fed;
	size_t left = r->input.n - start;
	size_t n = left < r->piece_bytes ? left : r->piece_bytes;

	yajl_status status = yajl_parse(r->yajl, r->input.p + start, n);
	size_t consumed = yajl_get_bytes_consumed(r->yajl);
	r->fed += n;
	if (status != yajl_status_ok)
		fail_from_yajl(r, start + consumed, status);
	else if (r->complete)
		check_rest(r, start + consumed);
	if (r->n_queued > 0)
		r->piece_bytes = PIECE_BYTES;
	else if (r->piece_bytes < PIECE_MAX_BYTES)
		r->piece_bytes *= 2;
}

static void feed(struct json_reader *r)
{
	r->n_queued = 0;
	r->next = 0;
	buf_reset(&r->text);
	if (r->fed < r->input.n) {
		feed_piece(r);
		return;
	}
	yajl_status status = yajl_complete_parse(r->yajl);
	if (status != yajl_status_ok)
		fail_from_yajl(r, r->input.n, status);
	r->ended = true;
}

static int refuse_text(struct error **err)
{
	return err_set(err, ERR_INVALID_ARGUMENT, "malformed JSON: string with a NUL or invalid UTF-8");
}

/* @skips: what has no text to hand out is an event all the same. */
static int next_event(struct json_reader *r, bool skips, struct json_event *ret, struct error **err)
{
	while (r->next == r->n_queued) {
		if (r->failure)
			return err_set(err, ERR_INVALID_ARGUMENT, "%s", r->failure);
		if (r->ended) {
			*ret = (struct json_event){.type = JSON_END};
			return 0;
		}
		feed(r);
	}
	const struct queued *q = &r->queue[r->next];
	if (q->is_refused && !skips)
		return refuse_text(err);
	r->next++;
	*ret = (struct json_event){.type = q->type, .boolean = q->boolean};
	if (!q->is_refused && (q->type == JSON_NUMBER || q->type == JSON_STRING || q->type == JSON_KEY)) {
		ret->text = buf_str(&r->text) + q->text_at;
		ret->len = q->len;
	}
	return 0;
}

int json_next(struct json_reader *r, struct json_event *ret, struct error **err)
{
	return next_event(r, /* skips= */ false, ret, err);
}

int json_next_any(struct json_reader *r, struct json_event *ret, struct error **err)
{
	return next_event(r, /* skips= */ true, ret, err);
}

static const char *type_name(enum json_type type)
{
	switch (type) {
	case JSON_END:
		return "the end";
	case JSON_NULL:
		return "null";
	case JSON_BOOL:
		return "a boolean";
	case JSON_NUMBER:
		return "a number";
	case JSON_STRING:
		return "a string";
	case JSON_KEY:
		return "a key";
	case JSON_OBJECT:
		return "an object";
	case JSON_OBJECT_END:
		return "the end of an object";
	case JSON_ARRAY:
		return "an array";
	case JSON_ARRAY_END:
		return "the end of an array";
	}
	return "nothing known";
}

int json_expect(struct json_reader *r, enum json_type type, struct json_event *ret, struct error **err)
{
	struct json_event event;

	if (json_next(r, &event, err) < 0)
		return -1;
	if (event.type != type)
		return err_set(err, ERR_INVALID_ARGUMENT, "JSON: expected %s, found %s", type_name(type),
			type_name(event.type));
	*ret = event;
	return 0;
}

static bool begins_value(enum json_type type)
{
	return type != JSON_END && type != JSON_KEY && type != JSON_OBJECT_END && type != JSON_ARRAY_END;
}

static void write_event(struct json_writer *w, const struct json_event *event)
{
	switch (event->type) {
	case JSON_END:
		break;
	case JSON_NULL:
		json_raw(w, "null");
		break;
	case JSON_BOOL:
		json_bool(w, event->boolean);
		break;
	case JSON_NUMBER:
		json_raw(w, event->text);
		break;
	case JSON_STRING:
		json_str(w, event->text);
		break;
	case JSON_KEY:
		json_key(w, event->text);
		break;
	case JSON_OBJECT:
		json_object(w);
		break;
	case JSON_OBJECT_END:
		json_object_end(w);
		break;
	case JSON_ARRAY:
		json_array(w);
		break;
	case JSON_ARRAY_END:
		json_array_end(w);
		break;
	}
}

/* Read over one value; @w may be NULL. */
static int walk(
	struct json_reader *r, const struct json_event *first, struct json_writer *w, struct error **err)
{
	struct json_event event = *first;
	unsigned depth = 0;

	if (!begins_value(event.type))
		return err_set(
			err, ERR_INVALID_ARGUMENT, "JSON: expected a value, found %s", type_name(event.type));
	while (true) {
		if (w)
			write_event(w, &event);
		if (event.type == JSON_OBJECT || event.type == JSON_ARRAY)
			depth++;
		else if (event.type == JSON_OBJECT_END || event.type == JSON_ARRAY_END)
			depth--;
		if (depth == 0)
			return 0;
		if (next_event(r, /* skips= */ !w, &event, err) < 0)
			return -1;
	}
}

int json_skip(struct json_reader *r, const struct json_event *first, struct error **err)
{
	return walk(r, first, NULL, err);
}

int json_skip_value(struct json_reader *r, struct error **err)
{
	struct json_event first;

	if (next_event(r, /* skips= */ true, &first, err) < 0)
		return -1;
	return json_skip(r, &first, err);
}

void json_reader_be_strict(struct json_reader *r)
{
	r->is_strict = true;
}

bool json_reader_is_strict(const struct json_reader *r)
{
	return r->is_strict;
}

int json_skip_odd(struct json_reader *r, const struct json_event *first, struct error **err)
{
	if (r->is_strict && first->type == JSON_STRING && !first->text)
		return refuse_text(err);
	if (r->is_strict && first->type != JSON_NULL)
		return err_set(
			err, ERR_INVALID_ARGUMENT, "JSON: %s has the wrong type", type_name(first->type));
	return json_skip(r, first, err);
}

int json_copy(
	struct json_reader *r, const struct json_event *first, struct json_writer *w, struct error **err)
{
	return walk(r, first, w, err);
}
