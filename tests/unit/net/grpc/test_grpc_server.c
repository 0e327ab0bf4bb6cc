/* SPDX-License-Identifier: Apache-2.0 */
/* Requests of one connection: checks, messages, deadlines. Connections and drain: test_grpc_server_life.c. */
#include "grpc_fixture.h"

#include "base/mem.h"

static struct fixture f;
static struct raw r;

static void open_both(unsigned workers)
{
	fixture_open(&f, workers);
	raw_open(&r, &f);
}

static void close_both(void)
{
	raw_done(&r);
	fixture_close(&f);
}

static void assert_has(const char *log, const char *text)
{
	ck_assert_msg(strstr(log, text), "\"%s\" lacks \"%s\"", log, text);
}

static const char *call(struct raw_head head)
{
	buf_reset(&r.side.log);
	buf_reset(&r.side.body);
	return raw_finished(&r, raw_begin(&r, head));
}

/* The answer is the message itself with status 0. */
static void assert_echoed(const char *log)
{
	assert_has(log, "headers");
	assert_has(log, ":status=200 content-type=application/grpc grpc-accept-encoding=identity\n");
	assert_has(log, "grpc-status=0\n");
	ck_assert_uint_eq(r.side.body.len, 8);
	ck_assert_int_eq(memcmp(r.side.body.data, "\0\0\0\0\3\x0a\1a", 8), 0);
}

START_TEST(a_call_is_answered_inline_and_by_a_worker)
{
	open_both(1);
	assert_echoed(call((struct raw_head){0}));
	assert_echoed(call((struct raw_head){.path = ECHO "Work"}));
	close_both();
}
END_TEST

START_TEST(content_types_of_grpc_are_taken)
{
	static const char *const types[] = {"application/grpc+proto", "application/grpc;x=y"};

	open_both(1);
	for (size_t i = 0; i < ARRAY_SIZE(types); i++)
		assert_echoed(call((struct raw_head){.content_type = types[i]}));
	close_both();
}
END_TEST

START_TEST(heads_are_checked_in_the_order_of_grpc_go)
{
	static const struct {
		struct raw_head head;
		const char *answer;
	} cases[] = {
		{{"GET", "/x", "application/json", "1", NULL, "trailers"},
			TRAILERS_ONLY("415", "3") "invalid gRPC request"},
		{{"GET", "/x", "application/grpcx", "1", NULL, "trailers"},
			TRAILERS_ONLY("415", "3") "invalid gRPC request"},
		{{"GET", "/x", NULL, "1", NULL, NULL}, TRAILERS_ONLY("400", "13") "malformed grpc-timeout"},
		{{"GET", "/x", NULL, "1S", NULL, NULL},
			TRAILERS_ONLY("405", "13") "method \"GET\" is not POST"},
		{{"POST", "/x", NULL, "1S", NULL, NULL}, TRAILERS_ONLY("200", "12") "unknown method /x"},
		{{"POST", ECHO "Echo2", NULL, "1S", NULL, NULL}, TRAILERS_ONLY("200", "12") "unknown method"},
	};

	open_both(1);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const char *log = call(cases[i].head);

		assert_has(log, cases[i].answer);
		ck_assert_ptr_null(strstr(log, "trailers"));
	}
	assert_echoed(call((struct raw_head){0}));
	close_both();
}
END_TEST

START_TEST(clients_of_other_protocols_get_text_when_their_request_has_ended)
{
	const struct raw_head head = {.method = "GET", .path = "/", .content_type = "text/html"};
	int32_t stream;

	open_both(1);
	stream = raw_request(&r, head);
	raw_write(&r, stream, "no message", 10);
	/* The answer to the second request shows that the first one has none yet. */
	assert_echoed(raw_finished(&r, raw_begin(&r, (struct raw_head){0})));
	buf_reset(&r.side.log);
	buf_reset(&r.side.body);
	raw_finish(&r, stream);
	assert_has(raw_finished(&r, stream),
		":status=415 content-type=text/plain; charset=utf-8 grpc-status=3 grpc-message=invalid");
	ck_assert_str_eq(buf_str(&r.side.body), "invalid gRPC request content-type \"text/html\"\n");
	close_both();
}
END_TEST

START_TEST(a_reply_to_head_has_no_body)
{
	open_both(1);
	assert_has(call((struct raw_head){.method = "HEAD", .path = "/", .content_type = "text/html"}),
		TRAILERS_ONLY("415", "3"));
	ck_assert_uint_eq(r.side.body.len, 0);
	close_both();
}
END_TEST

START_TEST(an_error_is_one_header_block_with_an_encoded_message)
{
	const char *log;

	open_both(1);
	log = raw_call_info(&r, ECHO "Fail", "5", "no\nsuch \xe2\x82\xac");
	assert_has(log, TRAILERS_ONLY("200", "5") "no such %E2%82%AC\n");
	ck_assert_ptr_null(strstr(log, "trailers"));
	close_both();
}
END_TEST

START_TEST(a_long_error_message_is_cut_at_a_character)
{
	CLEANUP(buf_done) struct buf message = BUF_INIT(8192);
	CLEANUP(buf_done) struct buf answer = BUF_INIT(16384);

	/* One byte makes the limit of 2048 fall into a character. */
	buf_adds(&message, "x");
	buf_adds(&answer, "grpc-message=x");
	for (int i = 0; i < 2000; i++) {
		buf_adds(&message, "\xc3\xa4");
		if (i < 1023)
			buf_adds(&answer, "%C3%A4");
	}
	buf_addc(&answer, '\n');
	open_both(1);
	assert_has(raw_call_info(&r, ECHO "Fail", "5", buf_str(&message)), buf_str(&answer));
	close_both();
}
END_TEST

START_TEST(a_message_may_come_in_single_bytes)
{
	static const uint8_t bytes[] = {0, 0, 0, 0, 3, 0x0a, 1, 'a'};
	int32_t stream;

	open_both(1);
	stream = raw_request(&r, (struct raw_head){0});
	for (size_t i = 0; i < sizeof(bytes); i++)
		raw_write(&r, stream, &bytes[i], 1);
	raw_finish(&r, stream);
	assert_echoed(raw_finished(&r, stream));
	close_both();
}
END_TEST

START_TEST(an_empty_message_is_a_message)
{
	open_both(1);
	assert_has(raw_call(&r, (struct raw_head){0}, "", 0), "grpc-status=0\n");
	ck_assert_uint_eq(r.side.body.len, 5);
	close_both();
}
END_TEST

/* Sends a request with the malformed body @bytes, and asserts that the server answers with @answer. */
static void assert_body_fails(struct raw_head head, const char *bytes, size_t n, const char *answer)
{
	int32_t stream = raw_request(&r, head);

	buf_reset(&r.side.log);
	raw_write(&r, stream, bytes, n);
	raw_finish(&r, stream);
	assert_has(raw_finished(&r, stream), answer);
}

START_TEST(bodies_that_are_not_one_message_are_refused)
{
	static const struct raw_head plain = {0};
	static const struct raw_head gzip = {.encoding = "gzip"};
	static const struct raw_head identity = {.encoding = "identity"};

	open_both(1);
	assert_body_fails(plain, "", 0, TRAILERS_ONLY("200", "13") "the request ended");
	assert_body_fails(plain, "\0\0\0\0", 4, TRAILERS_ONLY("200", "13") "the request ended");
	assert_body_fails(plain, "\0\0\0\0\3\x0a\1", 7, TRAILERS_ONLY("200", "13") "the request ended");
	assert_body_fails(plain, "\0\0\0\0\0\0\0\0\0\0", 10, TRAILERS_ONLY("200", "13") "more than one");
	assert_body_fails(gzip, "\1\0\0\0\3xyz", 8, TRAILERS_ONLY("200", "12") "compressed");
	assert_body_fails(plain, "\1\0\0\0\3xyz", 8, TRAILERS_ONLY("200", "13") "compressed");
	assert_body_fails(identity, "\1\0\0\0\3xyz", 8, TRAILERS_ONLY("200", "13") "compressed");
	assert_body_fails(plain, "\0\0\0\0\2\x0a\7", 7, TRAILERS_ONLY("200", "13") "malformed");
	assert_body_fails(plain, "\0\0\x40\0\1", 5, TRAILERS_ONLY("200", "8") "gRPC message of 4194305");
	assert_echoed(call((struct raw_head){0}));
	close_both();
}
END_TEST

START_TEST(a_message_that_unpacks_to_too_much_is_refused)
{
	const size_t n = 2u << 20;
	CLEANUP(free_charp) char *entries = x_malloc(n);

	open_both(1);
	for (size_t i = 0; i < n; i += 2)
		memcpy(entries + i, "\x1a\0", 2); /* an empty entry of the map */
	assert_has(raw_call(&r, (struct raw_head){0}, entries, n), TRAILERS_ONLY("200", "8"));
	assert_echoed(call((struct raw_head){0}));
	close_both();
}
END_TEST

START_TEST(a_reply_beyond_the_limit_is_resource_exhausted)
{
	open_both(1);
	assert_has(raw_call_info(&r, ECHO "Grow", "4194304", ""), TRAILERS_ONLY("200", "8"));
	assert_has(raw_call_info(&r, ECHO "Grow", "4000000", ""), "grpc-status=0\n");
	ck_assert_uint_gt(r.side.body.len, 4000000);
	close_both();
}
END_TEST

START_TEST(a_call_whose_deadline_has_passed_does_not_run)
{
	open_both(1);
	assert_has(call((struct raw_head){.path = ECHO "Work", .timeout = "0n"}), TRAILERS_ONLY("200", "4"));
	assert_has(call((struct raw_head){.timeout = "1n"}), TRAILERS_ONLY("200", "4"));
	ck_assert_uint_eq(atomic_load(&f.echo.worked), 0);
	close_both();
}
END_TEST

START_TEST(a_running_call_is_answered_at_its_deadline_and_its_result_dropped)
{
	open_both(1);
	/* long enough for the call to begin on a busy machine */
	assert_has(call((struct raw_head){.path = ECHO "Wait", .timeout = "500m"}),
		TRAILERS_ONLY("200", "4") "no answer before the deadline; the operation continues");
	fixture_until_waiting(&f, 1);
	ck_assert_uint_eq(r.side.body.len, 0);
	echo_release(&f.echo);
	fixture_until_worked(&f, 1);
	/* its thread has counted the call, and is idle a moment later */
	const char *log = call((struct raw_head){.path = ECHO "Work", .timeout = "99999999H"});
	while (strstr(log, "all worker threads are busy"))
		log = call((struct raw_head){.path = ECHO "Work", .timeout = "99999999H"});
	assert_echoed(log);
	close_both();
}
END_TEST

START_TEST(a_call_in_time_is_answered_once)
{
	open_both(1);
	echo_release(&f.echo);
	assert_echoed(call((struct raw_head){.path = ECHO "Wait", .timeout = "60S"}));
	close_both();
}
END_TEST

START_TEST(a_reset_call_goes_on_and_its_result_is_dropped)
{
	int32_t stream;

	open_both(1);
	stream = raw_begin(&r, (struct raw_head){.path = ECHO "Wait", .timeout = "60S"});
	fixture_until_waiting(&f, 1);
	raw_reset(&r, stream);
	raw_until(&r, "close 1 8\n");
	assert_echoed(call((struct raw_head){0}));
	ck_assert_uint_eq(atomic_load(&f.echo.waiting), 1);
	echo_release(&f.echo);
	fixture_until_worked(&f, 1);
	assert_echoed(call((struct raw_head){0}));
	close_both();
}
END_TEST

START_TEST(a_reset_call_that_does_not_run_yet_is_forgotten)
{
	int32_t stream;

	open_both(1);
	stream = raw_request(&r, (struct raw_head){.path = ECHO "Work"});
	raw_write(&r, stream, "\0\0\0\0\3", 5);
	raw_reset(&r, stream);
	assert_echoed(call((struct raw_head){0}));
	ck_assert_uint_eq(atomic_load(&f.echo.worked), 0);
	close_both();
}
END_TEST

START_TEST(busy_workers_are_unavailable_and_inline_calls_go_on)
{
	int32_t stream;

	open_both(1);
	stream = raw_begin(&r, (struct raw_head){.path = ECHO "Wait"});
	fixture_until_waiting(&f, 1);
	assert_has(call((struct raw_head){.path = ECHO "Work"}),
		TRAILERS_ONLY("200", "14") "all worker threads are busy");
	assert_echoed(call((struct raw_head){0}));
	echo_release(&f.echo);
	raw_finished(&r, stream);
	assert_echoed(call((struct raw_head){.path = ECHO "Work"}));
	close_both();
}
END_TEST

START_TEST(service_with_workers_of_its_own_has_them_for_itself)
{
	struct workers *own = workers_new(1);
	int32_t stream;

	open_both(1);
	stream = raw_begin(&r, (struct raw_head){.path = ECHO "Wait"});
	fixture_until_waiting(&f, 1);
	f.services[0].workers = own;
	assert_echoed(call((struct raw_head){.path = ECHO "Work"}));
	echo_release(&f.echo);
	raw_finished(&r, stream);
	close_both();
	workers_free(own);
}
END_TEST

/* A call of Wait with a name of @n bytes, which the server holds until it is answered. */
static int32_t hold(size_t n)
{
	const uint8_t head[] = {
		0x0a, (n & 0x7f) | 0x80, (n >> 7 & 0x7f) | 0x80, (n >> 14 & 0x7f) | 0x80, (uint8_t)(n >> 21)};
	CLEANUP(free_charp) char *message = x_malloc(sizeof(head) + n);
	int32_t stream = raw_request(&r, (struct raw_head){.path = ECHO "Wait"});

	memcpy(message, head, sizeof(head));
	memset(message + sizeof(head), 'a', n);
	raw_message(&r, stream, message, sizeof(head) + n);
	raw_finish(&r, stream);
	return stream;
}

/* RESOURCE_EXHAUSTED would say that there is no room for volumes here, also after one has been made. */
START_TEST(calls_beyond_the_bytes_of_a_connection_are_unavailable)
{
	static const char answer[] = TRAILERS_ONLY("200", "14") "the server holds too many bytes";
	int32_t first, second, third;

	open_both(3);
	first = hold(3u << 20);
	fixture_until_waiting(&f, 1);
	second = hold(3u << 19);
	fixture_until_waiting(&f, 2);
	assert_has(raw_call_info(&r, ECHO "Grow", "4000000", ""), answer);
	buf_reset(&r.side.log);
	third = hold(3u << 20);
	assert_has(raw_finished(&r, third), answer);
	echo_release(&f.echo);
	echo_release(&f.echo);
	raw_finished(&r, first);
	raw_finished(&r, second);
	assert_echoed(call((struct raw_head){0}));
	close_both();
}
END_TEST

START_TEST(each_failed_call_is_logged_once_with_its_level)
{
	CLEANUP(file_closep) FILE *log = tmpfile();
	char text[4096];
	size_t n;
	int old = dup(STDERR_FILENO);

	open_both(1);
	ck_assert_int_ge(dup2(fileno(log), STDERR_FILENO), 0);
	call((struct raw_head){0});
	raw_call_info(&r, ECHO "Fail", "5", "one");
	raw_call_info(&r, ECHO "Fail", "13", "two");
	ck_assert_int_ge(dup2(old, STDERR_FILENO), 0);
	close(old);
	rewind(log);
	n = fread(text, 1, sizeof(text) - 1, log);
	text[n] = 0;
	char *second = strchr(text, '\n');
	ck_assert_ptr_nonnull(second);
	*second++ = 0;
	ck_assert_int_eq(text[0], 'I');
	assert_has(text, "method=/pmem.test.Echo/Fail");
	assert_has(text, "NOT_FOUND");
	assert_has(text, "one");
	assert_has(text, "duration_ms=");
	ck_assert_int_eq(second[0], 'W');
	assert_has(second, "INTERNAL");
	assert_has(second, "two");
	ck_assert_ptr_eq(strchr(second, '\n'), second + strlen(second) - 1);
	close_both();
}
END_TEST

TMPDIR_MAIN("grpc_server", a_call_is_answered_inline_and_by_a_worker, content_types_of_grpc_are_taken,
	heads_are_checked_in_the_order_of_grpc_go,
	clients_of_other_protocols_get_text_when_their_request_has_ended, a_reply_to_head_has_no_body,
	an_error_is_one_header_block_with_an_encoded_message, a_long_error_message_is_cut_at_a_character,
	a_message_may_come_in_single_bytes, an_empty_message_is_a_message,
	bodies_that_are_not_one_message_are_refused, a_message_that_unpacks_to_too_much_is_refused,
	a_reply_beyond_the_limit_is_resource_exhausted, a_call_whose_deadline_has_passed_does_not_run,
	a_running_call_is_answered_at_its_deadline_and_its_result_dropped, a_call_in_time_is_answered_once,
	a_reset_call_goes_on_and_its_result_is_dropped, a_reset_call_that_does_not_run_yet_is_forgotten,
	busy_workers_are_unavailable_and_inline_calls_go_on,
	service_with_workers_of_its_own_has_them_for_itself,
	calls_beyond_the_bytes_of_a_connection_are_unavailable,
	each_failed_call_is_logged_once_with_its_level)
