/* SPDX-License-Identifier: Apache-2.0 */
/* How the client handles servers that break the protocol, and what it sends. The server here has only HTTP/2.
 */
#include <csi.pb-c.h>

#include "net/grpc/grpc_client.h"

#include "unit/net/http2/h2_peer.h"

#define INFO_TYPE &csi__v1__get_plugin_info_response__descriptor

struct odd {
	struct loop *loop;
	struct h2_peer peer;
	struct grpc_client *client;
	struct error *error; /* of the call */
	bool done;
	int32_t asked; /* the last stream whose request the server had, where it stays silent */
};

static struct odd o;

static void odd_open(void (*react)(struct h2_side *side, enum h2_event event, int32_t stream))
{
	CLEANUP(error_freep) struct error *err = NULL;

	ASSERT_OK(loop_new(&o.loop, &err));
	h2_peer_open(&o.peer, o.loop, NULL, react);
	const struct h2_channel_config config = {.loop = o.loop, .endpoint = o.peer.endpoint};
	ASSERT_OK(grpc_client_new(&config, &o.client, &err));
}

static void odd_close(void)
{
	grpc_client_free(o.client);
	h2_peer_close(&o.peer);
	loop_free(o.loop);
	error_free(o.error);
}

static void on_reply(void *user, const ProtobufCMessage *reply, const struct error *error)
{
	(void)user;
	(void)reply;
	ck_assert(!o.done);
	o.done = true;
	if (error)
		err_set(&o.error, error->code, "%s", error->msg);
	loop_stop(o.loop);
}

static void call(uint64_t timeout_ms)
{
	Csi__V1__GetPluginInfoRequest request;

	csi__v1__get_plugin_info_request__init(&request);
	error_clear(&o.error);
	o.done = false;
	grpc_client_call(o.client, "/csi.v1.Identity/GetPluginInfo", &request.base, INFO_TYPE, timeout_ms,
		on_reply, NULL);
	loop_run(o.loop);
	ck_assert(o.done);
}

static void assert_fails(enum err_code code, const char *text)
{
	call(0);
	ck_assert_ptr_nonnull(o.error);
	ck_assert_msg(o.error->code == code, "%s", o.error->msg);
	ck_assert_msg(strstr(o.error->msg, text), "\"%s\" lacks \"%s\"", o.error->msg, text);
}

static void respond(struct h2 *h, int32_t stream, const char *status, const char *grpc_status, bool end)
{
	const struct h2_header headers[] = {
		H2_HEADER(":status", status),
		H2_HEADER("content-type", "application/grpc"),
		H2_HEADER("grpc-status", grpc_status ? grpc_status : ""),
	};

	h2_respond(h, stream, headers, grpc_status ? 3 : 2, end);
}

static void answer(struct h2 *h, int32_t stream, const void *body, size_t n)
{
	const struct h2_header ok[] = {H2_HEADER("grpc-status", "0")};

	respond(h, stream, "200", NULL, false);
	h2_write(h, stream, (struct span){body, n});
	h2_finish(h, stream, ok, 1);
}

static void answer_empty(struct h2_side *side, enum h2_event event, int32_t stream)
{
	if (event == H2_ON_END)
		answer(side->h2, stream, "\0\0\0\0\0", 5);
}

START_TEST(a_request_has_the_headers_that_strict_servers_want)
{
	odd_open(answer_empty);
	call(1000000);
	ck_assert_ptr_null(o.error);
	const char *log = h2_peer_log(&o.peer, 1);
	const char *wanted = "headers 1 :method=POST :scheme=http :path=/csi.v1.Identity/GetPluginInfo "
			     ":authority=localhost te=trailers content-type=application/grpc user-agent=";
	ck_assert_msg(strncmp(log, wanted, strlen(wanted)) == 0, "%s", log);
	ck_assert_msg(strstr(log, " grpc-timeout="), "%s", log);
	ck_assert_msg(strstr(log, "m\n"), "%s", log);
	ck_assert_uint_eq(h2_peer_conn(&o.peer, 1)->side.body.len, 5);
	call(0);
	log = strstr(h2_peer_log(&o.peer, 1), "headers 3");
	ck_assert_ptr_nonnull(log);
	ck_assert_msg(!strstr(log, "grpc-timeout"), "%s", log);
	odd_close();
}
END_TEST

static void answer_503(struct h2_side *side, enum h2_event event, int32_t stream)
{
	if (event == H2_ON_END)
		respond(side->h2, stream, "503", NULL, true);
}

START_TEST(an_http_status_stands_in_for_a_missing_one)
{
	odd_open(answer_503);
	assert_fails(ERR_UNAVAILABLE, "HTTP status 503");
	odd_close();
}
END_TEST

static void answer_nonsense_status(struct h2_side *side, enum h2_event event, int32_t stream)
{
	if (event == H2_ON_END)
		respond(side->h2, stream, "200", "x", true);
}

START_TEST(a_status_that_is_no_number_is_unknown)
{
	odd_open(answer_nonsense_status);
	assert_fails(ERR_UNKNOWN, "GetPluginInfo: status 2 without a message");
	odd_close();
}
END_TEST

static void answer_without_message(struct h2_side *side, enum h2_event event, int32_t stream)
{
	if (event == H2_ON_END)
		respond(side->h2, stream, "200", "0", true);
}

START_TEST(success_without_a_message_is_an_error)
{
	odd_open(answer_without_message);
	assert_fails(ERR_INTERNAL, "without a message");
	odd_close();
}
END_TEST

static void answer_malformed(struct h2_side *side, enum h2_event event, int32_t stream)
{
	if (event == H2_ON_END)
		answer(side->h2, stream, "\0\0\0\0\2\x0a\7", 7);
}

START_TEST(a_malformed_reply_is_an_error)
{
	odd_open(answer_malformed);
	assert_fails(ERR_INTERNAL, "malformed");
	odd_close();
}
END_TEST

static void answer_too_large(struct h2_side *side, enum h2_event event, int32_t stream)
{
	if (event != H2_ON_END)
		return;
	respond(side->h2, stream, "200", NULL, false);
	h2_write(side->h2, stream, (struct span){(const uint8_t *)"\0\0\x40\0\1", 5});
}

START_TEST(a_reply_beyond_the_limit_is_an_error_before_it_has_come)
{
	odd_open(answer_too_large);
	assert_fails(ERR_EXHAUSTED, "4194305");
	h2_peer_conn(&o.peer, 1)->side.react = answer_empty;
	call(0);
	ck_assert_ptr_null(o.error);
	h2_peer_until_logged(&o.peer, 1, "close 1 8\n");
	odd_close();
}
END_TEST

static void refuse(struct h2_side *side, enum h2_event event, int32_t stream)
{
	if (event == H2_ON_HEADERS)
		h2_reset(side->h2, stream, H2_REFUSED_STREAM);
}

START_TEST(a_refused_stream_is_unavailable)
{
	odd_open(refuse);
	assert_fails(ERR_UNAVAILABLE, "code 7");
	odd_close();
}
END_TEST

static void break_off(struct h2_side *side, enum h2_event event, int32_t stream)
{
	(void)stream;
	if (event == H2_ON_END)
		h2_peer_cut((struct h2_peer_conn *)side);
}

START_TEST(a_connection_lost_in_a_call_is_unavailable)
{
	odd_open(break_off);
	assert_fails(ERR_UNAVAILABLE, "closed by the peer");
	o.peer.react = answer_empty;
	call(0);
	ck_assert_ptr_null(o.error);
	odd_close();
}
END_TEST

static void leave(struct h2_side *side, enum h2_event event, int32_t stream)
{
	if (event != H2_ON_END)
		return;
	answer(side->h2, stream, "\0\0\0\0\0", 5);
	h2_shutdown(side->h2);
}

START_TEST(calls_after_goaway_use_a_new_connection)
{
	odd_open(leave);
	for (int i = 0; i < 3; i++) {
		call(0);
		ck_assert_msg(!o.error, "%s", o.error->msg);
	}
	ck_assert_uint_eq(o.peer.n_conns, 3);
	odd_close();
}
END_TEST

static void stay_silent(struct h2_side *side, enum h2_event event, int32_t stream)
{
	(void)side;
	if (event == H2_ON_END)
		o.asked = stream;
}

START_TEST(a_call_that_ends_at_its_time_limit_is_reset)
{
	char reset[32];

	odd_open(stay_silent);
	/* A busy machine may reach the limit before the request is out: nothing is to be reset then. */
	for (uint64_t limit_ms = 20; o.asked == 0; limit_ms *= 2) {
		call(limit_ms);
		ck_assert_int_eq(o.error->code, ERR_DEADLINE);
	}
	snprintf(reset, sizeof(reset), "close %d 8\n", o.asked);
	h2_peer_until_logged(&o.peer, o.peer.n_conns, reset);
	odd_close();
}
END_TEST

TMPDIR_MAIN("grpc_client_odd", a_request_has_the_headers_that_strict_servers_want,
	an_http_status_stands_in_for_a_missing_one, a_status_that_is_no_number_is_unknown,
	success_without_a_message_is_an_error, a_malformed_reply_is_an_error,
	a_reply_beyond_the_limit_is_an_error_before_it_has_come, a_refused_stream_is_unavailable,
	a_connection_lost_in_a_call_is_unavailable, calls_after_goaway_use_a_new_connection,
	a_call_that_ends_at_its_time_limit_is_reset)
