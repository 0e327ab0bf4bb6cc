/* SPDX-License-Identifier: Apache-2.0 */
#include "net/http1/http1_answer.h"

#include <http_parser.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/mem.h"
#include "net/limits.h"

struct http1_answer {
	http_parser parser;
	struct buf body;
	size_t head_bytes; /* at most: of all that came before the header section was complete */
	bool has_head;
	bool is_complete;
};

static int on_head(http_parser *parser)
{
	struct http1_answer *a = parser->data;

	/* 100 and its like come before the answer */
	a->has_head = parser->status_code >= 200;
	return 0;
}

static int on_body(http_parser *parser, const char *at, size_t n)
{
	struct http1_answer *a = parser->data;

	buf_add(&a->body, at, n);
	return a->body.overflowed;
}

static int on_end(http_parser *parser)
{
	struct http1_answer *a = parser->data;

	a->is_complete = a->has_head;
	if (a->is_complete)
		http_parser_pause(parser, 1);
	return 0;
}

struct http1_answer *http1_answer_new(size_t max_body_bytes)
{
	struct http1_answer *a = x_calloc(1, sizeof(*a));

	http_parser_init(&a->parser, HTTP_RESPONSE);
	a->parser.data = a;
	a->body = BUF_INIT(max_body_bytes);
	return a;
}

void http1_answer_free(struct http1_answer *a)
{
	if (!a)
		return;
	buf_done(&a->body);
	free(a);
}

int http1_answer_receive(struct http1_answer *a, struct span bytes, struct error **err)
{
	static const http_parser_settings settings = {
		.on_headers_complete = on_head, .on_body = on_body, .on_message_complete = on_end};

	if (a->is_complete)
		return 0;
	if (!a->has_head)
		a->head_bytes += bytes.n;
	(void)http_parser_execute(&a->parser, &settings, (const char *)bytes.p, bytes.n);
	if (a->body.overflowed)
		return buf_check(&a->body, "the body of an answer", err);
	if (a->is_complete)
		return 0;
	if (HTTP_PARSER_ERRNO(&a->parser) != HPE_OK)
		return err_set(err, ERR_INTERNAL, "no answer of HTTP/1.1: %s",
			http_errno_description(HTTP_PARSER_ERRNO(&a->parser)));
	if (bytes.n == 0)
		return err_set(err, ERR_INTERNAL, "the connection was closed before the answer was complete");
	if (!a->has_head && a->head_bytes > LIMIT_HEADER_BYTES)
		return err_set(err, ERR_EXHAUSTED, "the header section of an answer has more than %d bytes",
			LIMIT_HEADER_BYTES);
	return 0;
}

bool http1_answer_is_complete(const struct http1_answer *a)
{
	return a->is_complete;
}

unsigned http1_answer_status(const struct http1_answer *a)
{
	return a->parser.status_code;
}

struct span http1_answer_body(const struct http1_answer *a)
{
	return buf_span(&a->body);
}
