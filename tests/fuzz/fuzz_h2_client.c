/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Feeds bytes of a server to an HTTP/2 client that has sent some requests.
 *
 * The first byte: bits 0 and 1 number of requests less one, bit 2 their bodies stay open, bit 3 the rest is
 * frames in short form (frames.h), bit 4 bytes come singly, bit 5 replies are given up when they begin, bit 6
 * all frames come at once.
 */
#include <stdlib.h>

#include "base/cleanup.h"
#include "fuzz/frames.h"
#include "fuzz/fuzz.h"
#include "fuzz/h2_watch.h"

#define REQUESTS(choice) ((choice & 3) + 1)
#define OPEN_BODY        4
#define SHORT_FORM       8
#define SINGLY           16
#define GIVE_UP          32
#define AT_ONCE          64

#define WIRE_MAX_BYTES (4u << 20)

static void request(struct h2_watch *w, bool end)
{
	const struct h2_header headers[] = {
		H2_HEADER(":method", "POST"),
		H2_HEADER(":scheme", "http"),
		H2_HEADER(":path", "/csi.v1.Identity/Probe"),
		H2_HEADER(":authority", "localhost"),
	};
	struct error *err = NULL;
	int32_t stream;

	if (h2_request(w->h2, headers, ARRAY_SIZE(headers), end, &stream, &err) < 0) {
		fuzz_error(err);
		return;
	}
	h2_watch_opened(w, stream);
	if (!end)
		h2_write(w->h2, stream, span_of("body"));
}

static void give_up(struct h2_watch *w, int32_t stream)
{
	h2_watch_reset(w, stream, H2_CANCEL);
}

/* a reply that has begun ends the body of the request */
static void finish(struct h2_watch *w, int32_t stream)
{
	h2_finish(w->h2, stream, NULL, 0);
}

static bool feed(struct h2_watch *w, struct span bytes, bool singly)
{
	bool open = true;

	if (!singly)
		return h2_watch_feed(w, bytes);
	while (bytes.n > 0 && open)
		open = h2_watch_feed(w, fuzz_bytes(&bytes, 1));
	return open;
}

static void feed_frames(struct h2_watch *w, struct span in, uint8_t choice)
{
	CLEANUP(buf_done) struct buf wire = BUF_INIT(WIRE_MAX_BYTES);
	bool open = true;

	frames_settings(&wire);
	while (open && frames_next(&in, &wire)) {
		if (choice & AT_ONCE)
			continue;
		open = feed(w, buf_span(&wire), choice & SINGLY);
		buf_reset(&wire);
	}
	if (open)
		(void)feed(w, buf_span(&wire), choice & SINGLY);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct span in = {data, size};
	uint8_t choice = fuzz_byte(&in);
	struct h2_watch w = {.on_headers = choice & GIVE_UP ? give_up : finish};

	w.h2 = h2_client_new(&h2_watch_events, &w);
	for (int i = 0; i < REQUESTS(choice); i++)
		request(&w, !(choice & OPEN_BODY));
	(void)h2_watch_feed(&w, (struct span){NULL, 0});
	if (choice & SHORT_FORM)
		feed_frames(&w, in, choice);
	else
		(void)feed(&w, in, choice & SINGLY);
	h2_watch_done(&w);
	return 0;
}
