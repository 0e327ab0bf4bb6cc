/* SPDX-License-Identifier: Apache-2.0 */
#include "net/http2/h2_stream.h"

#include <assert.h>
#include <nghttp2/nghttp2.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

/* The arguments of the calls below cannot be wrong, so that the only failure is lack of memory. */
void h2_must_have_memory(int rv)
{
	if (rv == NGHTTP2_ERR_NOMEM)
		abort();
}

struct h2_stream *h2_stream_find(const struct h2 *h, int32_t id)
{
	for (struct h2_stream *s = h->streams; s; s = s->next) {
		if (s->id == id)
			return s;
	}
	return NULL;
}

struct h2_stream *h2_stream_find_live(const struct h2 *h, int32_t id)
{
	struct h2_stream *s = h2_stream_find(h, id);

	return s && !s->dead ? s : NULL;
}

struct h2_stream *h2_stream_add(struct h2 *h, int32_t id)
{
	struct h2_stream *s = x_calloc(1, sizeof(*s));

	s->id = id;
	s->body = BUF_INIT(LIMIT_CONN_BUFFERED_BYTES);
	s->next = h->streams;
	h->streams = s;
	return s;
}

void h2_stream_head_sent(struct h2 *h, struct h2_stream *s)
{
	h->queued_bytes -= s->head_bytes;
	s->head_bytes = 0;
}

void h2_stream_unlink(struct h2 *h, struct h2_stream *s)
{
	struct h2_stream **link = &h->streams;

	while (*link != s)
		link = &(*link)->next;
	*link = s->next;
	h2_stream_head_sent(h, s);
	h->queued_bytes -= s->body.len - s->body_sent;
}

void h2_stream_free(struct h2_stream *s)
{
	buf_done(&s->body);
	free(s->trailers);
	free(s);
}

void h2_stream_announce(struct h2 *h, struct h2_stream *s)
{
	s->announced = true;
	h->announced++;
}

void h2_stream_reset(struct h2 *h, struct h2_stream *s, enum h2_code code)
{
	s->dead = true;
	s->code = code;
	h2_must_have_memory(nghttp2_submit_rst_stream(h->session, NGHTTP2_FLAG_NONE, s->id, code));
}

static nghttp2_nv *nv_new(const struct h2_header *headers, size_t n)
{
	nghttp2_nv *nv = x_calloc(n, sizeof(*nv));

	for (size_t i = 0; i < n; i++) {
		/* nghttp2 copies both; its type lacks the const */
		nv[i].name = (uint8_t *)(uintptr_t)headers[i].name.p;
		nv[i].namelen = headers[i].name.n;
		nv[i].value = (uint8_t *)(uintptr_t)headers[i].value.p;
		nv[i].valuelen = headers[i].value.n;
	}
	return nv;
}

static int end_body(nghttp2_session *session, const struct h2_stream *s, uint32_t *flags)
{
	nghttp2_nv *nv;
	int rv;

	*flags |= NGHTTP2_DATA_FLAG_EOF;
	if (!s->trailers)
		return 0;
	/* Submitted any earlier, trailers overtake a body that waits for flow control (nghttp2 issue 269). */
	*flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
	nv = nv_new(s->trailers, s->n_trailers);
	rv = nghttp2_submit_trailer(session, s->id, nv, s->n_trailers);
	free(nv);
	h2_must_have_memory(rv);
	return rv == 0 ? 0 : NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
}

static ssize_t read_body(nghttp2_session *session, int32_t id, uint8_t *out, size_t room, uint32_t *flags,
	nghttp2_data_source *source, void *user)
{
	struct h2 *h = user;
	struct h2_stream *s = h2_stream_find(h, id);
	size_t n;

	(void)source;
	assert(s); /* until on_stream_close() */
	n = s->body.len - s->body_sent;
	if (n == 0 && !s->finished) {
		s->deferred = true;
		return NGHTTP2_ERR_DEFERRED;
	}
	if (n > room)
		n = room;
	if (n > 0)
		memcpy(out, s->body.data + s->body_sent, n);
	s->body_sent += n;
	h->queued_bytes -= n;
	if (s->body_sent == s->body.len && s->finished) {
		int rv = end_body(session, s, flags);

		if (rv != 0)
			return rv;
	}
	return (ssize_t)n;
}

int h2_request(struct h2 *h, const struct h2_header *headers, size_t n, bool end, int32_t *ret_stream,
	struct error **err)
{
	const nghttp2_data_provider body = {.read_callback = read_body};
	struct h2_stream *s;
	nghttp2_nv *nv;
	int32_t id;

	if (h->failed || !nghttp2_session_check_request_allowed(h->session))
		return err_set(err, ERR_UNAVAILABLE, "HTTP/2 connection takes no more streams");
	nv = nv_new(headers, n);
	id = nghttp2_submit_request(h->session, NULL, nv, n, end ? NULL : &body, NULL);
	free(nv);
	h2_must_have_memory(id);
	if (id < 0)
		return err_set(err, ERR_UNAVAILABLE, "HTTP/2: %s", nghttp2_strerror(id));
	s = h2_stream_add(h, id);
	s->finished = end;
	h2_stream_announce(h, s);
	*ret_stream = id;
	return 0;
}

void h2_respond(struct h2 *h, int32_t stream, const struct h2_header *headers, size_t n, bool end)
{
	const nghttp2_data_provider body = {.read_callback = read_body};
	struct h2_stream *s = h2_stream_find_live(h, stream);
	nghttp2_nv *nv;
	int rv;

	if (!s || s->responded)
		return;
	s->responded = true;
	for (size_t i = 0; i < n; i++)
		s->head_bytes += headers[i].name.n + headers[i].value.n;
	h->queued_bytes += s->head_bytes;
	s->finished = s->finished || end;
	nv = nv_new(headers, n);
	rv = nghttp2_submit_response(h->session, stream, nv, n, end ? NULL : &body);
	free(nv);
	h2_must_have_memory(rv);
}

static void wake_body(struct h2 *h, struct h2_stream *s)
{
	if (!s->deferred)
		return;
	s->deferred = false;
	h2_must_have_memory(nghttp2_session_resume_data(h->session, s->id));
}

void h2_write(struct h2 *h, int32_t stream, struct span data)
{
	struct h2_stream *s = h2_stream_find_live(h, stream);

	if (!s || s->finished || data.n == 0)
		return;
	buf_consume(&s->body, s->body_sent);
	s->body_sent = 0;
	buf_add(&s->body, data.p, data.n);
	if (s->body.overflowed) {
		h2_stream_reset(h, s, H2_INTERNAL_ERROR);
		return;
	}
	h->queued_bytes += data.n;
	wake_body(h, s);
}

static struct span copy_to(uint8_t **place, struct span s)
{
	struct span copy = {*place, s.n};

	if (s.n > 0)
		memcpy(*place, s.p, s.n);
	*place += s.n;
	return copy;
}

/* Return: false when they are beyond LIMIT_HEADER_BYTES. */
static bool set_trailers(struct h2_stream *s, const struct h2_header *trailers, size_t n)
{
	size_t bytes = 0;
	uint8_t *place;

	for (size_t i = 0; i < n; i++)
		bytes += trailers[i].name.n + trailers[i].value.n;
	if (bytes + n * H2_FIELD_OVERHEAD > LIMIT_HEADER_BYTES)
		return false;
	s->trailers = x_malloc(n * sizeof(*trailers) + bytes);
	s->n_trailers = n;
	place = (uint8_t *)(s->trailers + n);
	for (size_t i = 0; i < n; i++) {
		s->trailers[i].name = copy_to(&place, trailers[i].name);
		s->trailers[i].value = copy_to(&place, trailers[i].value);
	}
	return true;
}

void h2_finish(struct h2 *h, int32_t stream, const struct h2_header *trailers, size_t n)
{
	struct h2_stream *s = h2_stream_find_live(h, stream);

	if (!s || s->finished)
		return;
	s->finished = true;
	if (n > 0 && !set_trailers(s, trailers, n))
		h2_stream_reset(h, s, H2_INTERNAL_ERROR);
	else
		wake_body(h, s);
}

void h2_reset(struct h2 *h, int32_t stream, enum h2_code code)
{
	struct h2_stream *s = h2_stream_find_live(h, stream);

	if (s)
		h2_stream_reset(h, s, code);
}
