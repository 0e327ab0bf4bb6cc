/* SPDX-License-Identifier: Apache-2.0 */
#include "net/http1/http1_answer.h"

#include <stdlib.h>

#include "base/mem.h"
#include "net/http1/http1_reader.h"

/* Each "100 Continue" and the like is a message of its own before the answer. */
#define MAX_INTERIM 16

struct http1_answer {
	struct http1_reader reader;
	struct buf body;
	unsigned status;
	unsigned interim;
	bool is_complete;
};

struct http1_answer *http1_answer_new(size_t max_body_bytes)
{
	struct http1_answer *a = x_calloc(1, sizeof(*a));

	http1_reader_init(&a->reader, HTTP1_ANSWER, max_body_bytes);
	a->body = BUF_INIT(max_body_bytes);
	return a;
}

void http1_answer_free(struct http1_answer *a)
{
	if (!a)
		return;
	http1_reader_reset(&a->reader);
	buf_done(&a->body);
	free(a);
}

/* RFC 9112 section 6.3: 204 and 304 have no body, whatever their fields say. */
static struct http1_refusal end_head(struct http1_answer *a)
{
	if (a->status < 200) {
		http1_reader_reset(&a->reader);
		return ++a->interim > MAX_INTERIM ? HTTP1_BAD("too many of status 1xx before it")
						  : HTTP1_FINE;
	}
	a->is_complete = a->status == 204 || a->status == 304;
	return HTTP1_FINE;
}

static struct http1_refusal take_part(struct http1_answer *a, struct span *in)
{
	struct http1_part part;
	struct http1_refusal refusal = http1_read(&a->reader, in, &part);

	if (refusal.status == 0 && part.event == HTTP1_START_LINE)
		refusal = http1_check_status_line(part.bytes, &a->reader.head, &a->status);
	else if (refusal.status == 0 && part.event == HTTP1_HEAD)
		refusal = end_head(a);
	else if (part.event == HTTP1_DATA)
		buf_add(&a->body, part.bytes.p, part.bytes.n);
	if (a->body.overflowed)
		refusal = (struct http1_refusal){413, "the body is too large"};
	if (refusal.status == 0 && a->reader.place == HTTP1_AT_END)
		a->is_complete = true;
	return refusal;
}

static int refuse(struct http1_refusal refusal, struct error **err)
{
	bool is_large = refusal.status == 413 || refusal.status == 414 || refusal.status == 431;

	return err_set(
		err, is_large ? ERR_EXHAUSTED : ERR_INTERNAL, "no answer of HTTP/1.1: %s", refusal.why);
}

int http1_answer_receive(struct http1_answer *a, struct span bytes, struct error **err)
{
	if (bytes.n == 0 && !a->is_complete) {
		a->is_complete = http1_reader_ends_with_connection(&a->reader);
		if (!a->is_complete)
			return err_set(err, ERR_INTERNAL,
				"the connection was closed before the answer was complete");
	}
	while (bytes.n > 0 && !a->is_complete) {
		struct http1_refusal refusal = take_part(a, &bytes);

		if (refusal.status)
			return refuse(refusal, err);
	}
	return 0;
}

bool http1_answer_is_complete(const struct http1_answer *a)
{
	return a->is_complete;
}

unsigned http1_answer_status(const struct http1_answer *a)
{
	return a->status;
}

struct span http1_answer_body(const struct http1_answer *a)
{
	return buf_span(&a->body);
}
