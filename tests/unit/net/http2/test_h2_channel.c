/* SPDX-License-Identifier: Apache-2.0 */
/* Requests over a connection that stays open. Connections that are lost: test_h2_channel_loss.c. */
#include "h2_ask.h"

#include "base/mem.h"
#include "net/limits.h"

#include "h2_frames.h"

#define FRAMES_ROOM_BYTES (256u << 10)

static struct rig r;

static void stay_silent(struct h2_side *side, enum h2_event event, int32_t stream)
{
	(void)side;
	(void)event;
	(void)stream;
}

static void answer(struct h2_side *side, enum h2_event event, int32_t stream)
{
	if (event == H2_ON_END)
		h2_reply(side->h2, stream, span_of("hello"));
}

static void respond(struct h2_side *side, int32_t stream)
{
	const struct h2_header headers[] = {H2_HEADER(":status", "200")};

	h2_respond(side->h2, stream, headers, 1, false);
}

static void begin_answer(struct h2_side *side, enum h2_event event, int32_t stream)
{
	if (event != H2_ON_END)
		return;
	respond(side, stream);
	h2_write(side->h2, stream, span_of("part"));
}

START_TEST(what_makes_no_channel_is_refused)
{
	CLEANUP(error_freep) struct error *err = NULL;
	struct h2_channel_config config = {.endpoint = "x"};
	struct h2_channel *c = NULL;

	ASSERT_FAILS(h2_channel_new(&config, &c, &err), ERR_INVALID_ARGUMENT, "\"x\"");
	config.endpoint = "unix:///x";
	config.tls = (struct tls_context *)&config;
	ASSERT_FAILS(h2_channel_new(&config, &c, &err), ERR_INVALID_ARGUMENT, "without the server's name");
	ck_assert_ptr_null(c);
	h2_channel_free(c);
}
END_TEST

START_TEST(a_channel_without_requests_connects_nowhere)
{
	rig_open(&r, (struct h2_channel_config){0}, answer);
	h2_peer_rounds(&r.peer);
	ck_assert_uint_eq(r.peer.n_conns, 0);
	rig_close(&r);
}
END_TEST

START_TEST(the_authority_is_the_address_or_localhost)
{
	static const char *const wanted[][2] = {{"unix:///a/b", "localhost"},
		{"tcp://127.0.0.1:80", "127.0.0.1:80"}, {"tcp://[::1]:9", "[::1]:9"}};
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(loop_freep) struct loop *loop = NULL;

	ASSERT_OK(loop_new(&loop, &err));
	for (size_t i = 0; i < ARRAY_SIZE(wanted); i++) {
		const struct h2_channel_config config = {.loop = loop, .endpoint = wanted[i][0]};
		struct h2_channel *c;

		ASSERT_OK(h2_channel_new(&config, &c, &err));
		ck_assert_str_eq(h2_channel_authority(c), wanted[i][1]);
		h2_channel_free(c);
	}
}
END_TEST

START_TEST(a_request_is_notified_of_its_reply_and_its_end)
{
	struct ask a = {0};

	rig_open(&r, (struct h2_channel_config){0}, answer);
	ask(&r, "/path", "body", &a);
	ask_until_noted(&a, "headers :status=200\ndata hello\ntrailers grpc-status=0\n");
	ask_ends(&a, 0, "");
	ck_assert_str_eq(h2_peer_log(&r.peer, 1),
		"headers 1 :method=POST :scheme=http :path=/path :authority=localhost\nend 1\nclose 1 0\n");
	ck_assert_str_eq(buf_str(&h2_peer_conn(&r.peer, 1)->side.body), "body");
	rig_close(&r);
}
END_TEST

START_TEST(a_request_without_a_body_ends_with_its_headers)
{
	rig_open(&r, (struct h2_channel_config){0}, answer);
	ask_answered(&r);
	ask_answered(&r);
	ck_assert_uint_eq(h2_peer_conn(&r.peer, 1)->side.body.len, 0);
	ck_assert_uint_eq(r.peer.n_conns, 1);
	rig_close(&r);
}
END_TEST

static char *large_body(void)
{
	const size_t n = 1000000;
	char *body = x_malloc(n + 1);

	memset(body, 'x', n);
	body[n] = 0;
	return body;
}

START_TEST(a_body_beyond_the_window_arrives_whole)
{
	CLEANUP(free_charp) char *body = large_body();
	struct ask a = {0};

	rig_open(&r, (struct h2_channel_config){0}, answer);
	ask(&r, "/", body, &a);
	ask_ends(&a, 0, "");
	ck_assert_str_eq(buf_str(&h2_peer_conn(&r.peer, 1)->side.body), body);
	rig_close(&r);
}
END_TEST

static void begin_watches(struct h2_side *side, enum h2_event event, int32_t stream)
{
	if (event == H2_ON_END && stream == 1)
		respond(side, stream);
	else
		answer(side, event, stream);
}

static void send_part(const char *text)
{
	struct h2_peer_conn *c = h2_peer_conn(&r.peer, 1);

	h2_write(c->side.h2, 1, span_of(text));
	h2_peer_flush(c);
}

START_TEST(parts_of_a_body_are_delivered_as_they_come_while_other_requests_go_on)
{
	struct ask watch = {0};

	rig_open(&r, (struct h2_channel_config){0}, begin_watches);
	ask(&r, "/watch", "", &watch);
	ask_until_noted(&watch, "headers :status=200\n");
	send_part("one");
	ask_until_noted(&watch, "data one\n");
	ask_answered(&r);
	send_part("two");
	ask_until_noted(&watch, "data one\ndata two\n");
	ask_answered(&r);
	send_part("three");
	ask_until_noted(&watch, "data one\ndata two\ndata three\n");
	h2_finish(h2_peer_conn(&r.peer, 1)->side.h2, 1, NULL, 0);
	h2_peer_flush(h2_peer_conn(&r.peer, 1));
	ask_ends(&watch, 0, "");
	ck_assert_uint_eq(r.peer.n_conns, 1);
	rig_close(&r);
}
END_TEST

START_TEST(requests_beyond_what_the_server_takes_wait_for_their_turn)
{
	static const char *const paths[] = {"/1", "/2", "/3", "/4", "/5"};
	struct ask asks[5] = {0};

	rig_open(&r, (struct h2_channel_config){0}, begin_answer);
	r.peer.max_streams = 1;
	for (size_t i = 0; i < ARRAY_SIZE(asks); i++)
		ask(&r, paths[i], "", &asks[i]);
	for (int32_t i = 0; i < 5; i++) {
		CLEANUP(free_charp) char *next = x_asprintf("headers %d ", 2 * i + 3);
		CLEANUP(free_charp) char *path = x_asprintf(":path=/%d ", i + 1);

		ask_until_noted(&asks[i], "data part\n");
		h2_peer_rounds(&r.peer);
		ck_assert_ptr_nonnull(strstr(h2_peer_log(&r.peer, 1), path));
		ck_assert_ptr_null(strstr(h2_peer_log(&r.peer, 1), next));
		h2_finish(h2_peer_conn(&r.peer, 1)->side.h2, 2 * i + 1, NULL, 0);
		h2_peer_flush(h2_peer_conn(&r.peer, 1));
		ask_ends(&asks[i], 0, "");
	}
	ck_assert_uint_eq(r.peer.n_conns, 1);
	rig_close(&r);
}
END_TEST

START_TEST(requests_beyond_the_limit_of_the_channel_fail)
{
	const size_t n = LIMIT_CHANNEL_REQUESTS;
	struct ask *asks = x_calloc(n + 1, sizeof(*asks));

	rig_open(&r, (struct h2_channel_config){0}, stay_silent);
	for (size_t i = 0; i <= n; i++)
		ask(&r, "/", "", &asks[i]);
	ask_ends(&asks[n], ERR_EXHAUSTED, "too many requests");
	h2_peer_until_logged(&r.peer, 1, "headers 199 ");
	ck_assert_ptr_null(strstr(h2_peer_log(&r.peer, 1), "headers 201 "));
	h2_request_cancel(asks[0].request, ERR_CANCELLED, "to make room");
	ask_ends(&asks[0], ERR_CANCELLED, "to make room");
	ask(&r, "/", "", &asks[0]);
	h2_peer_rounds(&r.peer);
	h2_channel_free(TAKE_PTR(r.channel));
	for (size_t i = 0; i < n; i++)
		ask_ended(&asks[i], ERR_CANCELLED, "closed");
	free(asks);
	rig_close(&r);
}
END_TEST

static void answer_early(struct h2_side *side, enum h2_event event, int32_t stream)
{
	if (event == H2_ON_HEADERS)
		h2_reply(side->h2, stream, span_of("hello"));
}

START_TEST(a_reply_that_comes_before_the_request_is_complete_ends_it)
{
	CLEANUP(free_charp) char *body = large_body();
	struct ask a = {0};

	rig_open(&r, (struct h2_channel_config){0}, answer_early);
	ask(&r, "/", body, &a);
	ask_until_noted(&a, "trailers grpc-status=0\n");
	ask_ends(&a, 0, "");
	ask_answered(&r);
	ck_assert_uint_eq(r.peer.n_conns, 1);
	rig_close(&r);
}
END_TEST

static void send_frame(
	const struct h2_peer_conn *c, enum frame_type type, uint8_t flags, int32_t stream, const char *fields)
{
	CLEANUP(buf_done) struct buf block = BUF_INIT(1024);
	CLEANUP(buf_done) struct buf out = BUF_INIT(1024);

	frames_fields(&block, fields);
	frames_add(&out, type, flags, stream, buf_span(&block));
	ck_assert_int_eq(write(c->fd, out.data, out.len), out.len);
}

/* Appends to @text the frames that the client has sent and that were not read before. */
static void read_frames(const struct h2_peer_conn *c, struct buf *text)
{
	const size_t preface_bytes = 24;
	uint8_t *bytes = x_malloc(FRAMES_ROOM_BYTES);
	ssize_t n = read(c->fd, bytes, FRAMES_ROOM_BYTES);

	ck_assert_int_gt(n, preface_bytes);
	frames_text((struct span){bytes + preface_bytes, (size_t)n - preface_bytes}, text);
	free(bytes);
}

START_TEST(a_server_that_has_answered_and_reads_no_more_gets_a_reset)
{
	CLEANUP(free_charp) char *body = large_body();
	CLEANUP(buf_done) struct buf text = BUF_INIT(FRAMES_ROOM_BYTES);
	struct h2_peer_conn *c;
	struct ask a = {0};

	rig_open(&r, (struct h2_channel_config){0}, NULL);
	r.peer.manner = H2_PEER_IS_SILENT;
	ask(&r, "/", body, &a);
	h2_peer_until_logged(&r.peer, 1, "");
	c = h2_peer_conn(&r.peer, 1);
	send_frame(c, FRAME_SETTINGS, 0, 0, "");
	h2_peer_rounds(&r.peer);
	send_frame(c, FRAME_HEADERS, FLAG_END_HEADERS | FLAG_END_STREAM, 1, ":status: 200\n");
	ask_ends(&a, 0, "");
	h2_peer_rounds(&r.peer);
	read_frames(c, &text);
	ck_assert_ptr_nonnull(strstr(buf_str(&text), "HEADERS 1\nDATA 1 16384\n"));
	ck_assert_ptr_nonnull(strstr(buf_str(&text), "RST_STREAM 1 8\n"));
	rig_close(&r);
}
END_TEST

static void answer_with_large_headers(struct h2_side *side, enum h2_event event, int32_t stream)
{
	char value[LIMIT_HEADER_BYTES];
	const struct h2_header headers[] = {
		H2_HEADER(":status", "200"),
		{span_of("large"), {(const uint8_t *)value, sizeof(value)}},
	};

	memset(value, 'x', sizeof(value));
	if (event == H2_ON_END)
		h2_respond(side->h2, stream, headers, 2, true);
}

START_TEST(reply_headers_beyond_the_limit_end_the_request)
{
	rig_open(&r, (struct h2_channel_config){0}, answer_with_large_headers);
	ask_fails(&r, ERR_EXHAUSTED, "code 11");
	h2_peer_conn(&r.peer, 1)->side.react = answer;
	ask_answered(&r);
	rig_close(&r);
}
END_TEST

static uint32_t reset_code;

static void reset(struct h2_side *side, enum h2_event event, int32_t stream)
{
	if (event == H2_ON_END)
		h2_reset(side->h2, stream, (enum h2_code)reset_code);
}

START_TEST(the_code_of_a_reset_becomes_an_error)
{
	static const struct {
		uint32_t h2;
		enum err_code code;
	} codes[] = {{0, ERR_INTERNAL}, {1, ERR_INTERNAL}, {2, ERR_INTERNAL}, {8, ERR_CANCELLED},
		{11, ERR_EXHAUSTED}, {12, ERR_PERMISSION}, {77, ERR_UNKNOWN}};

	rig_open(&r, (struct h2_channel_config){0}, reset);
	for (size_t i = 0; i < ARRAY_SIZE(codes); i++) {
		CLEANUP(free_charp) char *text = x_asprintf("reset with HTTP/2 code %u", codes[i].h2);

		reset_code = codes[i].h2;
		ask_fails(&r, codes[i].code, text);
	}
	ck_assert_uint_eq(r.peer.n_conns, 1);
	rig_close(&r);
}
END_TEST

START_TEST(an_idle_connection_is_closed_and_the_next_request_opens_another)
{
	rig_open(&r, (struct h2_channel_config){.idle_ms = 1}, answer);
	ask_answered(&r);
	h2_peer_until_gone(&r.peer, 1);
	ask_answered(&r);
	ck_assert_uint_eq(r.peer.n_conns, 2);
	rig_close(&r);
}
END_TEST

START_TEST(a_connection_with_a_stream_is_not_idle)
{
	struct ask watch = {0};

	rig_open(&r, (struct h2_channel_config){.idle_ms = 1}, begin_watches);
	ask(&r, "/watch", "", &watch);
	ask_until_noted(&watch, "headers");
	h2_peer_rounds(&r.peer);
	send_part("still here");
	ask_until_noted(&watch, "data still here\n");
	h2_request_cancel(watch.request, ERR_CANCELLED, "enough");
	ask_ends(&watch, ERR_CANCELLED, "enough");
	h2_peer_until_gone(&r.peer, 1);
	rig_close(&r);
}
END_TEST

TMPDIR_MAIN("net/http2/h2_channel", what_makes_no_channel_is_refused,
	a_channel_without_requests_connects_nowhere, the_authority_is_the_address_or_localhost,
	a_request_is_notified_of_its_reply_and_its_end, a_request_without_a_body_ends_with_its_headers,
	a_body_beyond_the_window_arrives_whole,
	parts_of_a_body_are_delivered_as_they_come_while_other_requests_go_on,
	requests_beyond_what_the_server_takes_wait_for_their_turn,
	requests_beyond_the_limit_of_the_channel_fail,
	a_reply_that_comes_before_the_request_is_complete_ends_it,
	a_server_that_has_answered_and_reads_no_more_gets_a_reset,
	reply_headers_beyond_the_limit_end_the_request, the_code_of_a_reset_becomes_an_error,
	an_idle_connection_is_closed_and_the_next_request_opens_another,
	a_connection_with_a_stream_is_not_idle)
