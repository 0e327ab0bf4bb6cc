/* SPDX-License-Identifier: Apache-2.0 */
/*
 * http1_reader.h - one HTTP/1.1 message without I/O: bytes in; its start line, the end of its header section
 * and the bytes of its body out.
 *
 * Every line passes http1_rules.h. Start line and header section have at most LIMIT_HEADER_BYTES, and so have
 * trailers and chunk extensions. The body has the length of Content-Length or is chunked; without either, a
 * request has none, and an answer may have one that ends with the connection. Threads: one at a time. Source:
 * RFC 9112.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/span.h"
#include "net/http1/http1_rules.h"

enum http1_kind { HTTP1_REQUEST, HTTP1_ANSWER };

/* The section of a message to which the next byte belongs. */
enum http1_place {
	HTTP1_AT_START_LINE,
	HTTP1_AT_FIELDS,
	HTTP1_AT_DATA,
	HTTP1_AT_CHUNK_SIZE,
	HTTP1_AT_CHUNK_END,
	HTTP1_AT_TRAILERS,
	HTTP1_AT_END, /* the message is complete */
};

/* Users of the reader may read the members place and head. */
struct http1_reader {
	enum http1_kind kind;
	size_t max_body_bytes;
	enum http1_place place;
	struct http1_head head; /* is_1_0 is set by the user, when the start line has come */
	struct buf line;        /* the last one, of which the end may be missing */
	size_t head_bytes;      /* of start line and fields; then of trailers and chunk extensions */
	size_t body_bytes;      /* as announced so far */
	uint64_t data_left;     /* bytes of the body or chunk that have not come yet */
};

enum http1_event {
	HTTP1_NOTHING,    /* all bytes were taken, or the message is complete */
	HTTP1_START_LINE, /* without CRLF */
	HTTP1_HEAD,       /* the header section has ended: the reader's head is final */
	HTTP1_DATA,       /* some bytes of the body, without what frames chunks */
};

struct http1_part {
	enum http1_event event;
	struct span bytes; /* valid until the next call, and as long as the input */
};

/** http1_reader_init() - before the first byte of a message. @max_body_bytes: longer bodies are refused (413)
 * when their length or the length of a chunk is announced. To be released with http1_reader_reset(). */
void http1_reader_init(struct http1_reader *r, enum http1_kind kind, size_t max_body_bytes);

/** http1_reader_reset() - release what @r holds; the next byte begins another message. */
void http1_reader_reset(struct http1_reader *r);

/** http1_reader_is_fresh() - whether no byte of a message has come; empty lines before it do not count. */
bool http1_reader_is_fresh(const struct http1_reader *r);

/** http1_reader_ends_with_connection() - whether the end of the connection is that of the body. */
bool http1_reader_ends_with_connection(const struct http1_reader *r);

/**
 * http1_read() - read up to the next part.
 * @in:  moved past what was taken, which is nothing behind the end of the message
 * @ret: the part
 *
 * Return: HTTP1_FINE, or why the message is refused; the reader is to be reset then.
 */
struct http1_refusal http1_read(struct http1_reader *r, struct span *in, struct http1_part *ret);
