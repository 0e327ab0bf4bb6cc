/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Feeds bytes of a client to an HTTP/1.1 server.
 *
 * Neither the pieces in which it comes nor the time that an answer takes may change what is asked and
 * answered: each input runs as a whole, in pieces as long as the first byte says, and with late answers.
 */
#include "net/http1/http1.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "fuzz/fuzz.h"
#include "net/limits.h"

#define BODY_MAX_BYTES 1000
#define TEXT_MAX_BYTES (16u << 20)
#define LONG_BYTES     (150u << 10) /* two fill what may wait to be sent */

struct run {
	struct http1 *h;
	size_t buffered_bytes;
	bool late; /* answers come when on_request() has returned */
	bool answer_due;
	bool answer_long; /* the path asks for it */
	unsigned requests;
	struct buf text; /* what was asked */
	struct buf out;  /* what was answered */
};

static void add(struct buf *text, struct span part)
{
	if (part.n > 0)
		buf_add(text, part.p, part.n);
	buf_addc(text, '\n');
}

/* Handed over or copied: that is the same on the wire. */
static void answer_long(struct run *r)
{
	static const uint8_t text[LONG_BYTES];
	CLEANUP(buf_done) struct buf taken = BUF_INIT(LONG_BYTES);

	if (!r->late) {
		http1_reply(r->h, 200, "text/plain", NULL, (struct span){text, sizeof(text)});
		return;
	}
	buf_add(&taken, text, sizeof(text));
	http1_reply_take(r->h, 200, "text/plain", &taken);
}

static void answer(struct run *r)
{
	r->answer_due = false;
	r->requests++;
	if (r->answer_long)
		answer_long(r);
	else if (r->requests % 3 == 0)
		http1_reply(r->h, 405, NULL, "GET, HEAD", (struct span){NULL, 0});
	else
		http1_reply(r->h, 200, "text/plain", NULL, span_of("body"));
}

static void on_request(void *user, const struct http1_request *request)
{
	struct run *r = user;

	assert(!r->answer_due);
	assert(request->method.n > 0 && request->path.n > 0 && request->body.n <= BODY_MAX_BYTES);
	assert(request->path.p[0] == '/' || span_eq(request->path, "*"));
	add(&r->text, request->method);
	add(&r->text, request->path);
	add(&r->text, request->query);
	add(&r->text, request->body);
	r->answer_due = true;
	r->answer_long = span_eq(request->path, "/long");
	if (!r->late)
		answer(r);
}

static void send(struct run *r)
{
	struct error *err = NULL;
	size_t n;

	do {
		CLEANUP(buf_done) struct buf out = BUF_INIT(LIMIT_OUT_BYTES);

		int rv = http1_send(r->h, &out, &err);
		assert(rv == 0 && !out.overflowed);
		n = out.len;
		if (n > 0)
			buf_add(&r->out, out.data, n);
	} while (n > 0);
}

static void run_begin(struct run *r, bool late)
{
	const struct http1_config config = {.max_body_bytes = BODY_MAX_BYTES,
		.buffered_bytes = &r->buffered_bytes,
		.on_request = on_request,
		.user = r};

	*r = (struct run){.late = late, .text = BUF_INIT(TEXT_MAX_BYTES), .out = BUF_INIT(TEXT_MAX_BYTES)};
	r->h = http1_new(&config);
}

static void run_feed(struct run *r, struct span in, size_t piece_bytes)
{
	struct error *err = NULL;

	while (in.n > 0) {
		int rv = http1_receive(r->h, fuzz_bytes(&in, piece_bytes), &err);
		assert(rv == 0);
		/* what waits behind an answer is taken when that was sent */
		for (send(r); r->answer_due; send(r))
			answer(r);
	}
	assert(http1_requests(r->h) == r->requests);
	assert(!http1_has_expired(r->h, clock_ns()));
}

/* the end of the server */
static void run_end(struct run *r)
{
	http1_close(r->h);
	send(r);
	assert(http1_is_done(r->h));
	http1_free(r->h);
	assert(r->buffered_bytes == 0);
}

static bool same(const struct buf *a, const struct buf *b)
{
	return a->len == b->len && memcmp(buf_str(a), buf_str(b), a->len) == 0;
}

static void run_done(struct run *r)
{
	buf_done(&r->text);
	buf_done(&r->out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct span in = {data, size};
	size_t piece_bytes = (size_t)fuzz_byte(&in) + 1;
	struct run whole;
	struct run pieces;
	struct run late;

	run_begin(&whole, /* late= */ false);
	run_begin(&pieces, /* late= */ false);
	run_begin(&late, /* late= */ true);
	run_feed(&whole, in, SIZE_MAX);
	run_feed(&pieces, in, piece_bytes);
	run_feed(&late, in, SIZE_MAX);
	run_end(&whole);
	run_end(&pieces);
	run_end(&late);
	assert(same(&whole.text, &pieces.text) && same(&whole.out, &pieces.out));
	assert(same(&whole.text, &late.text) && same(&whole.out, &late.out));
	run_done(&whole);
	run_done(&pieces);
	run_done(&late);
	return 0;
}
