/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Feeds bytes of a client to an HTTP/2 server that answers in all the ways that h2.h has.
 *
 * The first byte: bit 0 message checks of nghttp2 (else our own), bit 1 the rest is frames in short form
 * (frames.h), bit 2 bytes come singly, bits 3 to 5 how it answers, bit 6 all frames come at once, bit 7
 * nothing is taken from it before the end.
 */
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "fuzz/frames.h"
#include "fuzz/fuzz.h"
#include "fuzz/h2_watch.h"

#define STRICT         1
#define SHORT_FORM     2
#define SINGLY         4
#define ANSWER(choice) ((choice) >> 3 & 7)
#define AT_ONCE        64
#define STUCK          128

#define WIRE_MAX_BYTES (4u << 20)
#define LONG_BYTES     (100u << 10) /* more than a window */

static const struct h2_header head[] = {{{(const uint8_t *)":status", 7}, {(const uint8_t *)"200", 3}}};
static const struct h2_header tail[] = {{{(const uint8_t *)"grpc-status", 11}, {(const uint8_t *)"0", 1}}};

static void refuse(struct h2_watch *w, int32_t stream)
{
	h2_respond(w->h2, stream, head, ARRAY_SIZE(head), /* end= */ true);
}

static void begin(struct h2_watch *w, int32_t stream)
{
	h2_respond(w->h2, stream, head, ARRAY_SIZE(head), /* end= */ false);
}

static void echo(struct h2_watch *w, int32_t stream, struct span data)
{
	h2_write(w->h2, stream, data);
}

static void finish(struct h2_watch *w, int32_t stream)
{
	h2_finish(w->h2, stream, tail, ARRAY_SIZE(tail));
}

static void finish_plain(struct h2_watch *w, int32_t stream)
{
	h2_finish(w->h2, stream, NULL, 0);
}

static void answer_long(struct h2_watch *w, int32_t stream)
{
	static const uint8_t body[LONG_BYTES];

	begin(w, stream);
	h2_write(w->h2, stream, (struct span){body, sizeof(body)});
	finish(w, stream);
}

static void give_up(struct h2_watch *w, int32_t stream)
{
	h2_watch_reset(w, stream, H2_REFUSED_STREAM);
}

static void give_up_body(struct h2_watch *w, int32_t stream, struct span data)
{
	(void)data;
	h2_watch_reset(w, stream, H2_CANCEL);
}

/* answered with data that come, and again after that: none of it may do harm */
static void answer_twice(struct h2_watch *w, int32_t stream)
{
	answer_long(w, stream);
	refuse(w, stream);
	echo(w, stream, span_of("late"));
	finish_plain(w, stream);
	h2_watch_reset(w, stream, H2_INTERNAL_ERROR);
}

static const struct h2_watch answers[8] = {
	{.on_headers = begin, .on_data = echo, .on_end = finish},
	{.on_headers = refuse},
	{.on_end = answer_long},
	{.on_headers = give_up},
	{.on_headers = begin, .on_data = give_up_body},
	{.on_headers = answer_twice},
	{.on_headers = answer_long, .on_data = echo, .on_end = give_up},
	{.on_end = finish_plain},
};

static bool feed(struct h2_watch *w, struct span bytes, bool singly)
{
	bool open = true;

	if (!singly)
		return h2_watch_feed(w, bytes);
	while (bytes.n > 0 && open)
		open = h2_watch_feed(w, fuzz_bytes(&bytes, 1));
	return open;
}

static bool feed_frames(struct h2_watch *w, struct span in, uint8_t choice)
{
	CLEANUP(buf_done) struct buf wire = BUF_INIT(WIRE_MAX_BYTES);
	bool open = true;

	frames_preface(&wire);
	while (open && frames_next(&in, &wire)) {
		if (choice & AT_ONCE)
			continue;
		open = feed(w, buf_span(&wire), choice & SINGLY);
		buf_reset(&wire);
	}
	return open && feed(w, buf_span(&wire), choice & SINGLY);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct span in = {data, size};
	uint8_t choice = fuzz_byte(&in);
	struct h2_watch w = answers[ANSWER(choice)];
	bool open;

	w.server = true;
	w.stuck = choice & STUCK;
	w.h2 = h2_server_new(choice & STRICT, &h2_watch_events, &w);
	if (choice & SHORT_FORM)
		open = feed_frames(&w, in, choice);
	else
		open = feed(&w, in, choice & SINGLY);
	w.stuck = false;
	if (open) {
		h2_shutdown(w.h2);
		(void)h2_watch_feed(&w, (struct span){NULL, 0});
	}
	h2_watch_done(&w);
	return 0;
}
