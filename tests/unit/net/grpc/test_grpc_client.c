/* SPDX-License-Identifier: Apache-2.0 */
/* The client against our server, either of which may notice first that a deadline has passed. Servers that
 * break the protocol: test_grpc_client_odd.c. */
#include "grpc_fixture.h"

#include <csi.pb-c.h>

#include "base/mem.h"

typedef Csi__V1__GetPluginInfoResponse Info;

#define INFO_TYPE &csi__v1__get_plugin_info_response__descriptor

static struct fixture f;

/* The result of a call, and what its callback has to do. */
struct end {
	unsigned calls;
	enum err_code code; /* 0: reply */
	char *text;         /* of the error, or name of the reply */
	struct grpc_client *free_client;
	struct grpc_client *again;     /* to call once more from the callback */
	struct grpc_client_call *made; /* the sender of its error is checked */
	bool refused;
};

static struct grpc_client_call *call(struct grpc_client *c, const char *path, const char *name,
	const char *version, uint64_t timeout_ms, struct end *end);

static void on_reply(void *user, const ProtobufCMessage *reply, const struct error *error)
{
	struct end *end = user;

	ck_assert((reply == NULL) == (error != NULL));
	end->calls++;
	end->refused = end->made && grpc_client_call_refused(end->made);
	end->code = error ? error->code : 0;
	free(end->text);
	end->text = x_strdup(error ? error->msg : ((const Info *)reply)->name);
	grpc_client_free(TAKE_PTR(end->free_client));
	if (end->again)
		call(TAKE_PTR(end->again), ECHO "Echo", "again", "", 0, end);
}

static struct grpc_client_call *call(struct grpc_client *c, const char *path, const char *name,
	const char *version, uint64_t timeout_ms, struct end *end)
{
	struct grpc_client_call *made;
	CLEANUP(free_charp) char *own_name = x_strdup(name);
	CLEANUP(free_charp) char *own_version = x_strdup(version);
	Info info;
	unsigned before = end->calls;

	csi__v1__get_plugin_info_response__init(&info);
	info.name = own_name;
	info.vendor_version = own_version;
	made = grpc_client_call(c, path, &info.base, INFO_TYPE, timeout_ms, on_reply, end);
	ck_assert_uint_eq(end->calls, before);
	return made;
}

static bool has_ended(void *user)
{
	struct end *end = user;

	return end->calls > 0;
}

static bool has_ended_twice(void *user)
{
	struct end *end = user;

	return end->calls == 2;
}

static void assert_ends(struct end *end, enum err_code code, const char *text)
{
	fixture_until(&f, has_ended, end);
	ck_assert_uint_eq(end->calls, 1);
	ck_assert_msg(end->code == code, "%d: %s", end->code, end->text);
	ck_assert_msg(strstr(end->text, text), "\"%s\" lacks \"%s\"", end->text, text);
	free(end->text);
	*end = (struct end){0};
}

static struct grpc_client *client_make(const char *endpoint)
{
	CLEANUP(error_freep) struct error *err = NULL;
	struct grpc_client *c;

	ASSERT_OK(
		grpc_client_new(&(struct h2_channel_config){.loop = f.loop, .endpoint = endpoint}, &c, &err));
	return c;
}

static struct grpc_client *open_both(unsigned workers)
{
	fixture_open(&f, workers);
	return client_make(f.endpoint);
}

static void close_both(struct grpc_client *c)
{
	grpc_client_free(c);
	fixture_close(&f);
}

START_TEST(a_malformed_endpoint_is_refused)
{
	CLEANUP(error_freep) struct error *err = NULL;
	struct grpc_client *c = NULL;

	ASSERT_FAILS(grpc_client_new(&(struct h2_channel_config){.endpoint = "x"}, &c, &err),
		ERR_INVALID_ARGUMENT, "\"x\"");
	grpc_client_free(c);
}
END_TEST

START_TEST(a_client_without_calls_can_be_freed)
{
	close_both(open_both(1));
}
END_TEST

START_TEST(a_call_ends_with_its_reply)
{
	struct grpc_client *c = open_both(1);
	struct end end = {0};

	call(c, ECHO "Echo", "hello", "", 0, &end);
	assert_ends(&end, 0, "hello");
	call(c, ECHO "Work", "again", "", 60000, &end);
	assert_ends(&end, 0, "again");
	close_both(c);
}
END_TEST

START_TEST(every_error_arrives_with_its_code_and_text)
{
	static const enum err_code codes[] = {ERR_CANCELLED, ERR_UNKNOWN, ERR_INVALID_ARGUMENT, ERR_DEADLINE,
		ERR_NOT_FOUND, ERR_EXISTS, ERR_PERMISSION, ERR_EXHAUSTED, ERR_PRECONDITION, ERR_ABORTED,
		ERR_RANGE, ERR_UNIMPLEMENTED, ERR_INTERNAL, ERR_UNAVAILABLE, ERR_UNAUTHENTICATED};
	struct grpc_client *c = open_both(1);
	struct end end = {0};

	for (size_t i = 0; i < ARRAY_SIZE(codes); i++) {
		CLEANUP(free_charp) char *number = x_asprintf("%u", (unsigned)codes[i]);

		end.made = call(c, ECHO "Fail", number, "50% no\nsuch \xe2\x82\xac", 0, &end);
		fixture_until(&f, has_ended, &end);
		ck_assert(end.refused);
		assert_ends(&end, codes[i], "50% no such \xe2\x82\xac");
	}
	close_both(c);
}
END_TEST

START_TEST(a_status_without_a_code_of_ours_is_unknown)
{
	struct grpc_client *c = open_both(1);
	struct end end = {0};

	call(c, ECHO "Fail", "15", "data loss", 0, &end);
	assert_ends(&end, ERR_UNKNOWN, "data loss");
	call(c, ECHO "Fail", "77", "seventy-seven", 0, &end);
	assert_ends(&end, ERR_UNKNOWN, "seventy-seven");
	close_both(c);
}
END_TEST

START_TEST(many_calls_share_the_connection)
{
	struct grpc_client *c = open_both(32);
	struct end ends[150] = {0};

	for (size_t i = 0; i < ARRAY_SIZE(ends); i++) {
		CLEANUP(free_charp) char *name = x_asprintf("%zu.", i);

		call(c, ECHO "Echo", name, "", 60000, &ends[i]);
	}
	for (size_t i = 0; i < ARRAY_SIZE(ends); i++) {
		CLEANUP(free_charp) char *name = x_asprintf("%zu.", i);

		assert_ends(&ends[i], 0, name);
	}
	close_both(c);
}
END_TEST

START_TEST(large_messages_pass_both_ways)
{
	const size_t n = 4000000;
	CLEANUP(free_charp) char *name = x_malloc(n + 1);
	struct grpc_client *c = open_both(1);
	struct end end = {0};

	memset(name, 'x', n);
	name[n] = 0;
	call(c, ECHO "Echo", name, "", 60000, &end);
	assert_ends(&end, 0, name);
	close_both(c);
}
END_TEST

START_TEST(a_request_beyond_the_limit_is_not_sent)
{
	const size_t n = 4u << 20;
	CLEANUP(free_charp) char *name = x_malloc(n + 1);
	struct grpc_client *c = open_both(1);
	struct end end = {0};

	memset(name, 'x', n);
	name[n] = 0;
	end.made = call(c, ECHO "Echo", name, "", 0, &end);
	fixture_until(&f, has_ended, &end);
	ck_assert(!end.refused);
	assert_ends(&end, ERR_EXHAUSTED, "larger than 4194304");
	call(c, ECHO "Echo", "small", "", 0, &end);
	assert_ends(&end, 0, "small");
	close_both(c);
}
END_TEST

START_TEST(a_call_ends_at_its_time_limit)
{
	struct grpc_client *c = open_both(1);
	struct end end = {0};

	/* long enough for the call to begin on a busy machine */
	call(c, ECHO "Wait", "", "", 500, &end);
	assert_ends(&end, ERR_DEADLINE, "the");
	call(c, ECHO "Echo", "next", "", 0, &end);
	assert_ends(&end, 0, "next");
	echo_release(&f.echo);
	fixture_until_worked(&f, 1);
	close_both(c);
}
END_TEST

START_TEST(nothing_that_listens_is_unavailable)
{
	struct grpc_client *c = open_both(1);
	struct end end = {0};

	fixture_drain(&f);
	fixture_free_server(&f);
	call(c, ECHO "Echo", "", "", 0, &end);
	assert_ends(&end, ERR_UNAVAILABLE, f.endpoint);
	close_both(c);
}
END_TEST

START_TEST(a_refused_tcp_connection_is_unavailable)
{
	struct grpc_client *c;
	struct end end = {0};

	fixture_open(&f, 1);
	c = client_make("tcp://127.0.0.1:1");
	call(c, ECHO "Echo", "", "", 0, &end);
	assert_ends(&end, ERR_UNAVAILABLE, "connect: Connection refused");
	close_both(c);
}
END_TEST

START_TEST(the_next_call_after_a_loss_connects_again)
{
	struct grpc_client *c = open_both(1);
	struct end end = {0};

	call(c, ECHO "Echo", "first", "", 0, &end);
	assert_ends(&end, 0, "first");
	fixture_drain(&f);
	fixture_free_server(&f);
	fixture_serve(&f);
	call(c, ECHO "Echo", "second", "", 0, &end);
	assert_ends(&end, 0, "second");
	close_both(c);
}
END_TEST

START_TEST(a_draining_server_answers_while_new_calls_go_elsewhere)
{
	struct grpc_client *c = open_both(2);
	struct grpc_server *old;
	struct end wait = {0}, end = {0};

	call(c, ECHO "Wait", "waited", "", 0, &wait);
	fixture_until_waiting(&f, 1);
	fixture_drain(&f);
	old = f.server;
	fixture_serve(&f);
	fixture_rounds(&f);
	call(c, ECHO "Echo", "new", "", 0, &end);
	assert_ends(&end, 0, "new");
	ck_assert(!f.drained);
	echo_release(&f.echo);
	assert_ends(&wait, 0, "waited");
	struct grpc_server *new = f.server;
	f.server = old;
	fixture_free_server(&f);
	f.server = new;
	close_both(c);
}
END_TEST

START_TEST(a_cancelled_call_ends_once)
{
	struct grpc_client *c = open_both(1);
	struct grpc_client_call *made;
	struct end unsent = {0}, sent = {0}, end = {0};

	grpc_client_cancel(call(c, ECHO "Echo", "unsent", "", 60000, &unsent));
	assert_ends(&unsent, ERR_CANCELLED, "cancelled");
	made = call(c, ECHO "Wait", "sent", "", 0, &sent);
	fixture_until_waiting(&f, 1);
	grpc_client_cancel(made);
	grpc_client_cancel(made);
	assert_ends(&sent, ERR_CANCELLED, "cancelled");
	echo_release(&f.echo);
	fixture_until_worked(&f, 1);
	call(c, ECHO "Echo", "next", "", 0, &end);
	assert_ends(&end, 0, "next");
	close_both(c);
}
END_TEST

START_TEST(a_call_that_free_ends_may_call_again_in_vain)
{
	struct grpc_client *c = open_both(1);
	struct end end = {.again = c};

	call(c, ECHO "Wait", "", "", 0, &end);
	fixture_until_waiting(&f, 1);
	grpc_client_free(c);
	ck_assert_uint_eq(end.calls, 2);
	ck_assert_int_eq(end.code, ERR_CANCELLED);
	free(end.text);
	echo_release(&f.echo);
	fixture_until_worked(&f, 1);
	fixture_close(&f);
}
END_TEST

START_TEST(free_cancels_calls_in_flight)
{
	struct grpc_client *c = open_both(1);
	struct end sent = {0}, unsent = {0};

	call(c, ECHO "Wait", "", "", 0, &sent);
	fixture_until_waiting(&f, 1);
	call(c, ECHO "Echo", "", "", 0, &unsent);
	grpc_client_free(c);
	assert_ends(&sent, ERR_CANCELLED, "closed");
	assert_ends(&unsent, ERR_CANCELLED, "closed");
	echo_release(&f.echo);
	fixture_until_worked(&f, 1);
	fixture_close(&f);
}
END_TEST

START_TEST(a_callback_may_free_the_client)
{
	struct grpc_client *c = open_both(1);
	struct end first = {.free_client = c}, second = {0};

	call(c, ECHO "Echo", "first", "", 60000, &first);
	call(c, ECHO "Wait", "", "", 60000, &second);
	assert_ends(&first, 0, "first");
	assert_ends(&second, ERR_CANCELLED, "closed");
	echo_release(&f.echo);
	fixture_close(&f);
}
END_TEST

START_TEST(a_callback_may_make_a_call)
{
	struct grpc_client *c = open_both(1);
	struct end end = {.again = c};

	call(c, ECHO "Echo", "first", "", 0, &end);
	fixture_until(&f, has_ended_twice, &end);
	ck_assert_str_eq(end.text, "again");
	free(end.text);
	close_both(c);
}
END_TEST

START_TEST(a_synchronous_call_returns_a_reply_of_the_callers)
{
	CLEANUP(error_freep) struct error *err = NULL;
	struct grpc_client *c = open_both(1);
	Csi__V1__GetPluginInfoRequest request;
	ProtobufCMessage *reply = NULL;

	csi__v1__get_plugin_info_request__init(&request);
	ASSERT_OK(grpc_client_call_sync(
		c, "/csi.v1.Identity/GetPluginInfo", &request.base, INFO_TYPE, 60000, &reply, &err));
	grpc_client_free(c);
	ck_assert_str_eq(((const Info *)reply)->name, "echo.pmem-csi.test");
	protobuf_c_message_free_unpacked(reply, NULL);
	fixture_close(&f);
}
END_TEST

START_TEST(a_synchronous_call_returns_the_error)
{
	CLEANUP(error_freep) struct error *err = NULL;
	struct grpc_client *c = open_both(1);
	Csi__V1__GetPluginInfoRequest request;
	ProtobufCMessage *reply = NULL;

	csi__v1__get_plugin_info_request__init(&request);
	ASSERT_FAILS(grpc_client_call_sync(c, "/no/Such", &request.base, INFO_TYPE, 0, &reply, &err),
		ERR_UNIMPLEMENTED, "/no/Such");
	ASSERT_FAILS(grpc_client_call_sync(c, ECHO "Wait", &request.base, INFO_TYPE, 20, &reply, &err),
		ERR_DEADLINE, "the");
	ck_assert_ptr_null(reply);
	echo_release(&f.echo);
	close_both(c);
}
END_TEST

TMPDIR_MAIN("grpc_client", a_malformed_endpoint_is_refused, a_client_without_calls_can_be_freed,
	a_call_ends_with_its_reply, every_error_arrives_with_its_code_and_text,
	a_status_without_a_code_of_ours_is_unknown, many_calls_share_the_connection,
	large_messages_pass_both_ways, a_request_beyond_the_limit_is_not_sent, a_call_ends_at_its_time_limit,
	nothing_that_listens_is_unavailable, a_refused_tcp_connection_is_unavailable,
	the_next_call_after_a_loss_connects_again, a_draining_server_answers_while_new_calls_go_elsewhere,
	a_cancelled_call_ends_once, a_call_that_free_ends_may_call_again_in_vain,
	free_cancels_calls_in_flight, a_callback_may_free_the_client, a_callback_may_make_a_call,
	a_synchronous_call_returns_a_reply_of_the_callers, a_synchronous_call_returns_the_error)
