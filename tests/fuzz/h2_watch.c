/* SPDX-License-Identifier: Apache-2.0 */
#include "fuzz/h2_watch.h"

#include <stdlib.h>

#include "base/mem.h"
#include "fuzz/fuzz.h"
#include "net/limits.h"

#define OUT_MAX_BYTES (256u << 10)

struct h2_watched {
	struct h2_watched *next;
	int32_t id;
	bool have_headers;
	bool have_trailers;
	bool ended;
	bool reset;
};

static struct h2_watched **find(struct h2_watch *w, int32_t id)
{
	struct h2_watched **link = &w->streams;

	while (*link && (*link)->id != id)
		link = &(*link)->next;
	return link;
}

/* The stream of an event: it is open, and may say something. */
static struct h2_watched *expect(struct h2_watch *w, int32_t id)
{
	struct h2_watched *s = *find(w, id);

	assert(s && !s->ended && !s->reset);
	return s;
}

void h2_watch_opened(struct h2_watch *w, int32_t id)
{
	struct h2_watched *s = x_calloc(1, sizeof(*s));

	assert(!*find(w, id));
	s->id = id;
	s->next = w->streams;
	w->streams = s;
	w->open++;
}

static void on_headers(void *user, int32_t id, const struct h2_header *headers, size_t n, bool is_trailer)
{
	struct h2_watch *w = user;
	struct h2_watched *s;
	size_t bytes = 0;

	if (w->server)
		h2_watch_opened(w, id);
	s = expect(w, id);
	assert(is_trailer == s->have_headers && !s->have_trailers);
	s->have_trailers = is_trailer;
	s->have_headers = true;
	for (size_t i = 0; i < n; i++)
		bytes += headers[i].name.n + headers[i].value.n;
	assert(bytes <= LIMIT_HEADER_BYTES);
	if (w->on_headers)
		w->on_headers(w, id);
}

static void on_data(void *user, int32_t id, struct span data)
{
	struct h2_watch *w = user;
	const struct h2_watched *s = expect(w, id);

	assert(s->have_headers && !s->have_trailers);
	if (w->on_data)
		w->on_data(w, id, data);
}

static void on_end(void *user, int32_t id)
{
	struct h2_watch *w = user;
	struct h2_watched *s = expect(w, id);

	assert(s->have_headers);
	s->ended = true;
	if (w->on_end)
		w->on_end(w, id);
}

static void on_close(void *user, int32_t id, uint32_t code)
{
	struct h2_watch *w = user;
	struct h2_watched **link = find(w, id);
	struct h2_watched *s = *link;

	(void)code;
	assert(s);
	*link = s->next;
	free(s);
	w->open--;
	assert(h2_streams(w->h2) == w->open);
}

static void on_goaway(void *user, int32_t last_stream, uint32_t code)
{
	(void)user;
	(void)code;
	assert(last_stream >= 0);
}

const struct h2_events h2_watch_events = {on_headers, on_data, on_end, on_close, on_goaway};

void h2_watch_reset(struct h2_watch *w, int32_t id, enum h2_code code)
{
	struct h2_watched *s = *find(w, id);

	if (s)
		s->reset = true;
	h2_reset(w->h2, id, code);
}

/* Return: false when the connection is beyond use */
static bool drain(struct h2_watch *w)
{
	CLEANUP(buf_done) struct buf out = BUF_INIT(OUT_MAX_BYTES);
	struct error *err = NULL;

	do {
		buf_reset(&out);
		if (h2_send(w->h2, &out, &err) < 0) {
			assert(err->code == ERR_UNAVAILABLE);
			error_free(err);
			return false;
		}
	} while (out.len > 0);
	return true;
}

bool h2_watch_feed(struct h2_watch *w, struct span bytes)
{
	struct error *err = NULL;
	bool usable = true;

	if (h2_recv(w->h2, bytes, &err) < 0) {
		fuzz_error(err);
		usable = false;
	}
	if (!w->stuck)
		usable = drain(w) && usable;
	assert(h2_streams(w->h2) == w->open);
	assert(w->stuck || w->open > 0 || h2_is_done(w->h2) || h2_buffered(w->h2) == 0);
	assert(w->open <= LIMIT_STREAMS);
	return usable && !h2_is_done(w->h2);
}

void h2_watch_done(struct h2_watch *w)
{
	h2_free(w->h2);
	while (w->streams) {
		struct h2_watched *next = w->streams->next;

		free(w->streams);
		w->streams = next;
	}
}
