/* SPDX-License-Identifier: Apache-2.0 */
#include "net/http1/http1_reader.h"

#include <string.h>

#include "net/limits.h"

#define CRLF_BYTES 2

/* Chunk sizes of that many bytes, with CRLF, do not count as header bytes: they come with data. */
#define FREE_CHUNK_LINE_BYTES 18

void http1_reader_init(struct http1_reader *r, enum http1_kind kind, size_t max_body_bytes)
{
	*r = (struct http1_reader){
		.kind = kind, .max_body_bytes = max_body_bytes, .line = BUF_INIT(LIMIT_HEADER_BYTES)};
}

void http1_reader_reset(struct http1_reader *r)
{
	buf_done(&r->line);
	http1_reader_init(r, r->kind, r->max_body_bytes);
}

static uint8_t last_byte(const struct http1_reader *r)
{
	return r->line.len > 0 ? r->line.data[r->line.len - 1] : 0;
}

bool http1_reader_is_fresh(const struct http1_reader *r)
{
	return r->place == HTTP1_AT_START_LINE && (r->line.len == 0 || last_byte(r) == '\n');
}

bool http1_reader_ends_with_connection(const struct http1_reader *r)
{
	return r->place == HTTP1_AT_DATA && r->head.n_content_length + r->head.n_transfer_encoding == 0;
}

/* Counts @n bytes that are announced. Where no length is, the user bounds what it takes. */
static struct http1_refusal expect_data(struct http1_reader *r, uint64_t n)
{
	if (n > r->max_body_bytes - r->body_bytes)
		return (struct http1_refusal){413, "the body is too large"};
	r->body_bytes += (size_t)n;
	r->data_left = n;
	return HTTP1_FINE;
}

static struct http1_refusal end_head(struct http1_reader *r)
{
	struct http1_refusal refusal = http1_check_framing(&r->head);

	if (refusal.status == 0)
		refusal = expect_data(r, r->head.content_length);
	r->head_bytes = 0;
	if (r->head.n_transfer_encoding > 0) {
		r->place = HTTP1_AT_CHUNK_SIZE;
	} else if (r->head.n_content_length == 0 && r->kind == HTTP1_ANSWER) {
		r->place = HTTP1_AT_DATA;
		r->data_left = UINT64_MAX;
	} else {
		r->place = r->data_left > 0 ? HTTP1_AT_DATA : HTTP1_AT_END;
	}
	return refusal;
}

static struct http1_refusal begin_chunk(struct http1_reader *r, struct span line)
{
	uint64_t n = 0;
	struct http1_refusal refusal = http1_check_chunk_size(line, &n);

	if (r->line.len <= FREE_CHUNK_LINE_BYTES)
		r->head_bytes -= r->line.len;
	r->place = n > 0 ? HTTP1_AT_DATA : HTTP1_AT_TRAILERS;
	return refusal.status ? refusal : expect_data(r, n);
}

static struct http1_refusal end_chunk(struct http1_reader *r, struct span line)
{
	r->head_bytes -= r->line.len;
	r->place = HTTP1_AT_CHUNK_SIZE;
	return line.n > 0 ? HTTP1_BAD("chunk longer than announced") : HTTP1_FINE;
}

static struct http1_refusal end_line(struct http1_reader *r, struct http1_part *ret)
{
	struct span line = {r->line.data, r->line.len - CRLF_BYTES};

	switch (r->place) {
	case HTTP1_AT_START_LINE:
		/* RFC 9112 section 2.2: empty lines before a message are ignored. */
		if (line.n == 0)
			return HTTP1_FINE;
		*ret = (struct http1_part){HTTP1_START_LINE, line};
		r->place = HTTP1_AT_FIELDS;
		return HTTP1_FINE;
	case HTTP1_AT_FIELDS:
		if (line.n > 0)
			return http1_check_field(line, &r->head);
		ret->event = HTTP1_HEAD;
		return end_head(r);
	case HTTP1_AT_CHUNK_SIZE:
		return begin_chunk(r, line);
	case HTTP1_AT_CHUNK_END:
		return end_chunk(r, line);
	case HTTP1_AT_TRAILERS:
		if (line.n > 0)
			return http1_check_trailer(line);
		r->place = HTTP1_AT_END;
		return HTTP1_FINE;
	case HTTP1_AT_DATA:
	case HTTP1_AT_END:
		break;
	}
	return HTTP1_BAD("no line is due");
}

/* Takes what belongs to the line that has begun, or begins one. */
static struct http1_refusal take_line(struct http1_reader *r, struct span *in, struct http1_part *ret)
{
	const uint8_t *lf = memchr(in->p, '\n', in->n);
	struct span bytes = {in->p, lf ? (size_t)(lf - in->p) + 1 : in->n};
	size_t room = LIMIT_HEADER_BYTES - r->head_bytes;
	struct http1_refusal refusal;

	if (last_byte(r) == '\n')
		buf_reset(&r->line);
	refusal = http1_check_bytes(last_byte(r), (struct span){bytes.p, bytes.n < room ? bytes.n : room});
	if (refusal.status)
		return refusal;
	if (bytes.n > room)
		return r->place == HTTP1_AT_START_LINE
			       ? (struct http1_refusal){414, "the start line is too long"}
			       : (struct http1_refusal){431, "the header section is too large"};
	*in = (struct span){in->p + bytes.n, in->n - bytes.n};
	r->head_bytes += bytes.n;
	buf_add(&r->line, bytes.p, bytes.n);
	return lf ? end_line(r, ret) : HTTP1_FINE;
}

static void take_data(struct http1_reader *r, struct span *in, struct http1_part *ret)
{
	size_t n = in->n < r->data_left ? in->n : (size_t)r->data_left;

	*ret = (struct http1_part){HTTP1_DATA, {in->p, n}};
	*in = (struct span){in->p + n, in->n - n};
	if (http1_reader_ends_with_connection(r))
		return;
	r->data_left -= n;
	if (r->data_left == 0)
		r->place = r->head.n_transfer_encoding > 0 ? HTTP1_AT_CHUNK_END : HTTP1_AT_END;
}

struct http1_refusal http1_read(struct http1_reader *r, struct span *in, struct http1_part *ret)
{
	struct http1_refusal refusal = HTTP1_FINE;

	*ret = (struct http1_part){.event = HTTP1_NOTHING};
	while (in->n > 0 && ret->event == HTTP1_NOTHING && r->place != HTTP1_AT_END && refusal.status == 0) {
		if (r->place == HTTP1_AT_DATA)
			take_data(r, in, ret);
		else
			refusal = take_line(r, in, ret);
	}
	return refusal;
}
