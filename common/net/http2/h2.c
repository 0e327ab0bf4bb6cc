/* SPDX-License-Identifier: Apache-2.0 */
#include "net/http2/h2.h"

#include <nghttp2/nghttp2.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/mem.h"
#include "net/http2/h2_headers.h"
#include "net/http2/h2_stream.h"

#define SEND_BATCH_BYTES (64u << 10)

/* A frame that waits to be sent, in nghttp2's memory */
#define QUEUED_FRAME_BYTES 256

/* RFC 9113 section 3.4 */
#define PREFACE_BYTES 24

/* of a GOAWAY's stream number */
#define NUMBER_BYTES 4

/* RFC 9113 section 5.1.1: opening a stream closes all lower ones for good. nghttp2 treats skipped numbers as
 * streams that it has closed and dropped, and ignores frames on them. One gap is recorded. */
static int on_begin_frame(nghttp2_session *session, const nghttp2_frame_hd *hd, void *user)
{
	struct h2 *h = user;

	if (hd->type != NGHTTP2_HEADERS || hd->stream_id % 2 == 0)
		return 0;
	if (hd->stream_id > h->newest) {
		if (hd->stream_id > h->newest + 2) {
			h->gap_begin = h->newest + 1;
			h->gap_end = hd->stream_id;
		}
		h->newest = hd->stream_id;
	} else if (hd->stream_id >= h->gap_begin && hd->stream_id < h->gap_end) {
		h2_must_have_memory(nghttp2_session_terminate_session(session, NGHTTP2_PROTOCOL_ERROR));
	}
	return 0;
}

static int on_begin_headers(nghttp2_session *session, const nghttp2_frame *frame, void *user)
{
	struct h2 *h = user;

	(void)session;
	h2_fields_done(&h->fields);
	if (frame->hd.type == NGHTTP2_HEADERS && frame->headers.cat == NGHTTP2_HCAT_REQUEST)
		h2_stream_add(h, frame->hd.stream_id);
	return 0;
}

static int on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name,
	size_t name_len, const uint8_t *value, size_t value_len, uint8_t flags, void *user)
{
	struct h2 *h = user;

	(void)session;
	(void)frame;
	(void)flags;
	h2_fields_add(&h->fields, (struct span){name, name_len}, (struct span){value, value_len});
	return 0;
}

static const char *block_fault(const struct h2 *h, const struct h2_stream *s, bool end)
{
	if (h->fields.too_big)
		return "header block too big";
	if (!h->own_checks)
		return NULL;
	if (!s->have_headers)
		return h2_fields_request_fault(&h->fields);
	return end ? h2_fields_trailer_fault(&h->fields) : "header block within the body";
}

/* RFC 9110 section 15.2: any number of 1xx replies may precede the final one */
static bool is_interim(const struct h2 *h, const struct h2_stream *s)
{
	const struct h2_header *first = h->fields.items;

	return !h->server && !s->have_headers && h->fields.n > 0 && span_eq(first->name, ":status") &&
	       first->value.n > 0 && first->value.p[0] == '1';
}

static void receive_end(const struct h2 *h, const struct h2_stream *s)
{
	if (!s->dead)
		h->events->on_end(h->user, s->id);
}

/* RFC 9113 section 10.5.1; the user never gets to know the stream. */
static void refuse_big_request(struct h2 *h, struct h2_stream *s)
{
	const struct h2_header status = H2_HEADER(":status", "431");

	h2_respond(h, s->id, &status, 1, true);
	s->dead = true;
}

static void receive_headers(struct h2 *h, const nghttp2_frame *frame)
{
	struct h2_stream *s = h2_stream_find_live(h, frame->hd.stream_id);
	bool end = frame->hd.flags & NGHTTP2_FLAG_END_STREAM;
	const char *fault;
	bool trailer;

	if (!s)
		return;
	fault = block_fault(h, s, end);
	if (fault) {
		log_debug("HTTP/2 stream rejected", F_STR("reason", fault));
		if (h->fields.too_big && h->server && !s->have_headers)
			refuse_big_request(h, s);
		else
			h2_stream_reset(h, s, h->fields.too_big ? H2_ENHANCE_YOUR_CALM : H2_PROTOCOL_ERROR);
		return;
	}
	if (is_interim(h, s))
		return;
	trailer = s->have_headers;
	s->have_headers = true;
	if (!s->announced)
		h2_stream_announce(h, s);
	/* no protocol of ours has trailers in requests */
	if (!trailer || !h->server)
		h->events->on_headers(h->user, s->id, h->fields.items, h->fields.n, trailer);
	if (end)
		receive_end(h, s);
}

static int on_frame_recv(nghttp2_session *session, const nghttp2_frame *frame, void *user)
{
	struct h2 *h = user;
	struct h2_stream *s;

	(void)session;
	switch (frame->hd.type) {
	case NGHTTP2_HEADERS:
		receive_headers(h, frame);
		h2_fields_done(&h->fields);
		break;
	case NGHTTP2_DATA:
		s = h2_stream_find_live(h, frame->hd.stream_id);
		if (s && (frame->hd.flags & NGHTTP2_FLAG_END_STREAM))
			receive_end(h, s);
		break;
	case NGHTTP2_SETTINGS:
		h->greeted = true;
		break;
	case NGHTTP2_GOAWAY:
		if (h->events->on_goaway)
			h->events->on_goaway(h->user, frame->goaway.last_stream_id, frame->goaway.error_code);
		break;
	default:
		break;
	}
	return 0;
}

static int on_data_chunk(
	nghttp2_session *session, uint8_t flags, int32_t id, const uint8_t *data, size_t n, void *user)
{
	const struct h2 *h = user;

	(void)session;
	(void)flags;
	if (h2_stream_find_live(h, id))
		h->events->on_data(h->user, id, (struct span){data, n});
	return 0;
}

static int on_stream_close(nghttp2_session *session, int32_t id, uint32_t code, void *user)
{
	struct h2 *h = user;
	struct h2_stream *s = h2_stream_find(h, id);

	(void)session;
	if (!s)
		return 0;
	h2_stream_unlink(h, s);
	if (s->announced) {
		h->announced--;
		h->events->on_close(h->user, id, s->dead ? s->code : code);
	}
	h2_stream_free(s);
	return 0;
}

static int on_frame_send(nghttp2_session *session, const nghttp2_frame *frame, void *user)
{
	struct h2 *h = user;
	int32_t id = frame->hd.stream_id;
	bool body = frame->hd.type == NGHTTP2_HEADERS || frame->hd.type == NGHTTP2_DATA;
	struct h2_stream *s = frame->hd.type == NGHTTP2_HEADERS ? h2_stream_find(h, id) : NULL;

	if (s)
		h2_stream_head_sent(h, s);
	if (frame->hd.type == NGHTTP2_GOAWAY && frame->goaway.error_code != NGHTTP2_NO_ERROR) {
		log_debug("HTTP/2 connection given up", F_U64("code", frame->goaway.error_code));
		h->failed = true;
	}
	/* RFC 9113 section 8.1: answered before the request ended. Without the reset the stream stays open
	 * until the client has sent all of it; submitted any earlier the reset would overtake the answer. */
	if (h->server && body && (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) &&
		nghttp2_session_get_stream_remote_close(session, id) == 0)
		h2_must_have_memory(
			nghttp2_submit_rst_stream(session, NGHTTP2_FLAG_NONE, id, NGHTTP2_NO_ERROR));
	return 0;
}

/* A reply or trailers that cannot be sent would leave the stream open for ever; nghttp2 closes requests
 * itself. */
static int on_frame_not_send(nghttp2_session *session, const nghttp2_frame *frame, int reason, void *user)
{
	struct h2 *h = user;
	struct h2_stream *s;

	(void)session;
	(void)reason;
	if (frame->hd.type != NGHTTP2_HEADERS || frame->headers.cat == NGHTTP2_HCAT_REQUEST)
		return 0;
	s = h2_stream_find_live(h, frame->hd.stream_id);
	if (s)
		h2_stream_reset(h, s, H2_INTERNAL_ERROR);
	return 0;
}

static nghttp2_session_callbacks *callbacks_new(void)
{
	nghttp2_session_callbacks *cb;

	h2_must_have_memory(nghttp2_session_callbacks_new(&cb));
	nghttp2_session_callbacks_set_on_begin_headers_callback(cb, on_begin_headers);
	nghttp2_session_callbacks_set_on_header_callback(cb, on_header);
	nghttp2_session_callbacks_set_on_frame_recv_callback(cb, on_frame_recv);
	nghttp2_session_callbacks_set_on_data_chunk_recv_callback(cb, on_data_chunk);
	nghttp2_session_callbacks_set_on_stream_close_callback(cb, on_stream_close);
	nghttp2_session_callbacks_set_on_frame_send_callback(cb, on_frame_send);
	nghttp2_session_callbacks_set_on_frame_not_send_callback(cb, on_frame_not_send);
	return cb;
}

static struct h2 *h2_new(const struct h2_events *events, void *user)
{
	struct h2 *h = x_calloc(1, sizeof(*h));

	h->events = events;
	h->user = user;
	return h;
}

struct h2 *h2_server_new(bool strict_authority, const struct h2_events *events, void *user)
{
	const nghttp2_settings_entry settings[] = {
		{NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, LIMIT_STREAMS},
		{NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, LIMIT_HEADER_BYTES},
	};
	nghttp2_session_callbacks *cb = callbacks_new();
	struct h2 *h = h2_new(events, user);
	nghttp2_option *option;

	h->server = true;
	h->own_checks = !strict_authority;
	h->scan.skip = PREFACE_BYTES;
	nghttp2_session_callbacks_set_on_begin_frame_callback(cb, on_begin_frame);
	h2_must_have_memory(nghttp2_option_new(&option));
	nghttp2_option_set_no_http_messaging(option, h->own_checks);
	h2_must_have_memory(nghttp2_session_server_new2(&h->session, cb, h, option));
	nghttp2_option_del(option);
	nghttp2_session_callbacks_del(cb);
	h2_must_have_memory(
		nghttp2_submit_settings(h->session, NGHTTP2_FLAG_NONE, settings, ARRAY_SIZE(settings)));
	return h;
}

struct h2 *h2_client_new(const struct h2_events *events, void *user)
{
	const nghttp2_settings_entry settings[] = {
		{NGHTTP2_SETTINGS_ENABLE_PUSH, 0},
		{NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, LIMIT_HEADER_BYTES},
	};
	nghttp2_session_callbacks *cb = callbacks_new();
	struct h2 *h = h2_new(events, user);

	h2_must_have_memory(nghttp2_session_client_new(&h->session, cb, h));
	nghttp2_session_callbacks_del(cb);
	h2_must_have_memory(
		nghttp2_submit_settings(h->session, NGHTTP2_FLAG_NONE, settings, ARRAY_SIZE(settings)));
	return h;
}

void h2_free(struct h2 *h)
{
	struct h2_stream *next;

	if (!h)
		return;
	nghttp2_session_del(h->session);
	h2_fields_done(&h->fields);
	for (struct h2_stream *s = h->streams; s; s = next) {
		next = s->next;
		h2_stream_free(s);
	}
	free(h);
}

static int feed(struct h2 *h, const uint8_t *bytes, size_t n, struct error **err)
{
	ssize_t rv = nghttp2_session_mem_recv(h->session, bytes, n);

	if (rv >= 0)
		return 0;
	h->failed = true;
	return err_set(err, ERR_UNAVAILABLE, "HTTP/2: %s", nghttp2_strerror((int)rv));
}

/* The head of a frame is complete. */
static void scan_payload(struct h2_scan *s)
{
	size_t length = (size_t)s->head[0] << 16 | (size_t)s->head[1] << 8 | s->head[2];

	s->have = 0;
	s->at_number = s->head[3] == NGHTTP2_GOAWAY && length >= NUMBER_BYTES;
	s->skip = s->at_number ? NUMBER_BYTES : length;
	s->after = length - s->skip;
}

/* Return: bytes processed; all of them may belong to other frames. */
static size_t scan_others(struct h2_scan *s, struct span bytes)
{
	size_t n = 0;

	while (n < bytes.n && !s->at_number) {
		size_t left = bytes.n - n;

		if (s->skip > 0) {
			size_t step = s->skip < left ? s->skip : left;

			s->skip -= step;
			n += step;
			continue;
		}
		s->head[s->have++] = bytes.p[n++];
		if (s->have == sizeof(s->head))
			scan_payload(s);
	}
	return n;
}

/* Return: how many of the first bytes belong to the stream number of a GOAWAY, or do not; 1 or more. */
static size_t scan_next(struct h2_scan *s, struct span bytes, bool *ret_is_number)
{
	size_t n;

	*ret_is_number = s->at_number;
	if (!s->at_number)
		return scan_others(s, bytes);
	n = s->skip < bytes.n ? s->skip : bytes.n;
	s->skip -= n;
	if (s->skip == 0) {
		s->at_number = false;
		s->skip = s->after;
	}
	return n;
}

int h2_recv(struct h2 *h, struct span bytes, struct error **err)
{
	static const uint8_t zeros[NUMBER_BYTES];

	if (h->failed)
		return err_set(err, ERR_UNAVAILABLE, "HTTP/2 connection was closed after a protocol error");
	if (!h->server)
		return feed(h, bytes.p, bytes.n, err);
	while (bytes.n > 0) {
		bool is_number;
		size_t n = scan_next(&h->scan, bytes, &is_number);

		if (feed(h, is_number ? zeros : bytes.p, n, err) < 0)
			return -1;
		bytes = (struct span){bytes.p + n, bytes.n - n};
	}
	return 0;
}

int h2_send(struct h2 *h, struct buf *out, struct error **err)
{
	while (!h->failed && out->len < SEND_BATCH_BYTES) {
		const uint8_t *bytes;
		ssize_t n = nghttp2_session_mem_send(h->session, &bytes);

		if (n < 0) {
			h->failed = true;
			return err_set(err, ERR_UNAVAILABLE, "HTTP/2: %s", nghttp2_strerror((int)n));
		}
		if (n == 0)
			break;
		buf_add(out, bytes, (size_t)n);
	}
	return buf_check(out, "HTTP/2 output", err);
}

bool h2_is_done(const struct h2 *h)
{
	return h->failed ||
	       (!nghttp2_session_want_read(h->session) && !nghttp2_session_want_write(h->session));
}

size_t h2_streams(const struct h2 *h)
{
	return h->announced;
}

bool h2_is_greeted(const struct h2 *h)
{
	return h->greeted;
}

size_t h2_room(const struct h2 *h)
{
	uint32_t max =
		nghttp2_session_get_remote_settings(h->session, NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS);

	if (max > LIMIT_STREAMS)
		max = LIMIT_STREAMS;
	return max > h->announced ? max - h->announced : 0;
}

size_t h2_buffered(const struct h2 *h)
{
	return h->queued_bytes + nghttp2_session_get_outbound_queue_size(h->session) * QUEUED_FRAME_BYTES;
}

void h2_ping(struct h2 *h)
{
	if (!h->failed)
		h2_must_have_memory(nghttp2_submit_ping(h->session, NGHTTP2_FLAG_NONE, NULL));
}

void h2_shutdown(struct h2 *h)
{
	if (h->failed)
		return;
	h2_must_have_memory(nghttp2_submit_goaway(h->session, NGHTTP2_FLAG_NONE,
		nghttp2_session_get_last_proc_stream_id(h->session), NGHTTP2_NO_ERROR, NULL, 0));
}

/* grpc/doc/PROTOCOL-HTTP2.md, section "HTTP2 Transport Mapping - Errors"; numbers without a name here are RFC
 * 9113's.
 */
enum err_code h2_code_of_reset(uint32_t h2_code)
{
	switch (h2_code) {
	case H2_NO_ERROR:
	case H2_PROTOCOL_ERROR:
	case H2_INTERNAL_ERROR:
	case 3:  /* FLOW_CONTROL_ERROR */
	case 4:  /* SETTINGS_TIMEOUT */
	case 6:  /* FRAME_SIZE_ERROR */
	case 9:  /* COMPRESSION_ERROR */
	case 10: /* CONNECT_ERROR */
		return ERR_INTERNAL;
	case H2_REFUSED_STREAM:
		return ERR_UNAVAILABLE;
	case H2_CANCEL:
		return ERR_CANCELLED;
	case H2_ENHANCE_YOUR_CALM:
		return ERR_EXHAUSTED;
	case 12: /* INADEQUATE_SECURITY */
		return ERR_PERMISSION;
	default:
		return ERR_UNKNOWN;
	}
}
