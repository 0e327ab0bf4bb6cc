/* SPDX-License-Identifier: Apache-2.0 */
#include "http1_peer.h"

#include <stdlib.h>

#include "base/mem.h"
#include "base/parse.h"
#include "net/limits.h"
#include "unit/unit.h"

static void add_span(struct buf *out, const char *mark, struct span s)
{
	buf_adds(out, mark);
	buf_add(out, s.p, s.n);
}

static void on_request(void *user, const struct http1_request *r)
{
	CLEANUP(free_charp) char *body = NULL;
	struct http1_peer *p = user;

	if (!p->answers_later && p->reply_bytes > 0) {
		body = x_calloc(p->reply_bytes, 1);
		http1_reply(p->http1, 200, NULL, NULL, (struct span){(uint8_t *)body, p->reply_bytes});
	} else if (!p->answers_later) {
		http1_reply(p->http1, 200, "text/plain", NULL, span_of("hi\n"));
	}
	/* after the reply: the request lives as long as the callback */
	add_span(&p->log, "", r->method);
	add_span(&p->log, " ", r->path);
	if (r->query.n > 0)
		add_span(&p->log, " ?", r->query);
	if (r->body.n > 0)
		add_span(&p->log, " ", r->body);
	buf_adds(&p->log, "\n");
}

void http1_peer_init(struct http1_peer *p, size_t max_body_bytes)
{
	*p = (struct http1_peer){.log = BUF_INIT(SIZE_MAX), .out = BUF_INIT(SIZE_MAX)};
	const struct http1_config config = {.max_body_bytes = max_body_bytes,
		.buffered_bytes = &p->buffered_bytes,
		.on_request = on_request,
		.user = p};
	p->http1 = http1_new(&config);
}

void http1_peer_done(struct http1_peer *p)
{
	http1_free(p->http1);
	ck_assert_uint_eq(p->buffered_bytes, 0);
	buf_done(&p->log);
	buf_done(&p->out);
}

void http1_peer_collect(struct http1_peer *p)
{
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(buf_done) struct buf some = BUF_INIT(LIMIT_OUT_BYTES);

	do {
		buf_reset(&some);
		ASSERT_OK(http1_send(p->http1, &some, &err));
		ck_assert(!some.overflowed);
		buf_add(&p->out, some.data, some.len);
	} while (some.len > 0);
}

void http1_peer_feed(struct http1_peer *p, struct span bytes, size_t chunk)
{
	CLEANUP(error_freep) struct error *err = NULL;

	while (bytes.n > 0) {
		size_t n = bytes.n < chunk ? bytes.n : chunk;

		/* a copy of its own, so that the sanitizer sees reads beyond it */
		CLEANUP(free_charp) char *copy = x_malloc(n);
		memcpy(copy, bytes.p, n);
		ASSERT_OK(http1_receive(p->http1, (struct span){(uint8_t *)copy, n}, &err));
		http1_peer_collect(p);
		bytes = (struct span){bytes.p + n, bytes.n - n};
	}
}

void http1_peer_say(struct http1_peer *p, const char *text)
{
	http1_peer_feed(p, span_of(text), SIZE_MAX);
}

unsigned http1_peer_status(const struct http1_peer *p)
{
	CLEANUP(error_freep) struct error *err = NULL;
	const char *at = buf_str(&p->out);
	const char *last = NULL;
	char digits[4] = "";
	uint32_t status;

	while ((at = strstr(at, "HTTP/1.1 ")) != NULL)
		last = at += strlen("HTTP/1.1 ");
	if (!last)
		return 0;
	memcpy(digits, last, 3);
	ASSERT_OK(parse_u32(digits, &status, &err));
	return status;
}
