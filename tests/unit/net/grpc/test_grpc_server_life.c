/* SPDX-License-Identifier: Apache-2.0 */
/* Listening, peers, connections that go away, drain. */
#include "grpc_fixture.h"

#include <errno.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "base/mem.h"
#include "net/core/addr.h"

static struct fixture f;

static void assert_has(const char *log, const char *text)
{
	ck_assert_msg(strstr(log, text), "\"%s\" lacks \"%s\"", log, text);
}

static void assert_served(void)
{
	struct raw r;

	raw_open(&r, &f);
	assert_has(raw_finished(&r, raw_begin(&r, (struct raw_head){0})), "grpc-status=0\n");
	raw_done(&r);
}

START_TEST(endpoints_that_must_not_be_served_are_refused)
{
	static const char *const plain[] = {
		"tcp://0.0.0.0:0", "tcp://127.0.0.1:0", "tcp://localhost:0", "tcp://[::1]:0"};
	CLEANUP(error_freep) struct error *err = NULL;

	fixture_open(&f, 1);
	ASSERT_FAILS(grpc_server_listen(f.server, "x", NULL, &err), ERR_INVALID_ARGUMENT, "\"x\"");
	for (size_t i = 0; i < ARRAY_SIZE(plain); i++)
		ASSERT_FAILS(grpc_server_listen(f.server, plain[i], NULL, &err), ERR_INVALID_ARGUMENT,
			"-insecure");
	ASSERT_FAILS(grpc_server_listen(f.server, f.endpoint, NULL, &err), ERR_UNAVAILABLE, "in use");
	assert_served();
	fixture_close(&f);
}
END_TEST

START_TEST(a_server_that_never_listened_can_be_freed)
{
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(loop_freep) struct loop *l = NULL;

	ASSERT_OK(loop_new(&l, &err));
	grpc_server_free(grpc_server_new(&(struct grpc_server_config){.loop = l}));
	grpc_server_free(NULL);
}
END_TEST

START_TEST(a_peer_of_another_user_is_refused)
{
	struct raw r;

	if (geteuid() != 0) {
		fprintf(stderr, "SKIP: only root can become another user\n");
		return;
	}
	fixture_open(&f, 1);
	ck_assert_int_eq(chmod(tmpdir, 0755), 0);
	ck_assert_int_eq(chmod(f.path, 0666), 0);
	/* The socket remembers the user that connected. */
	ck_assert_int_eq(seteuid(65534), 0);
	raw_open(&r, &f);
	ck_assert_int_eq(seteuid(0), 0);
	raw_until_over(&r);
	ck_assert_str_eq(buf_str(&r.side.log), "");
	raw_done(&r);
	assert_served();
	fixture_close(&f);
}
END_TEST

START_TEST(a_connection_that_breaks_the_protocol_is_closed)
{
	struct raw r;

	fixture_open(&f, 1);
	raw_open(&r, &f);
	ck_assert_int_gt(send(r.fd, "GET / HTTP/1.1\r\n\r\n", 18, 0), 0);
	raw_until_over(&r);
	raw_done(&r);
	assert_served();
	fixture_close(&f);
}
END_TEST

START_TEST(a_client_that_hangs_up_leaves_its_call_running)
{
	struct raw r;

	fixture_open(&f, 1);
	raw_open(&r, &f);
	raw_begin(&r, (struct raw_head){.path = ECHO "Wait"});
	fixture_until_waiting(&f, 1);
	raw_done(&r);
	assert_served();
	echo_release(&f.echo);
	fixture_until_worked(&f, 1);
	assert_served();
	fixture_close(&f);
}
END_TEST

START_TEST(a_call_is_observed_once_when_its_handling_has_ended)
{
	struct raw r;

	fixture_open(&f, 1);
	raw_open(&r, &f);
	raw_finished(&r, raw_begin(&r, (struct raw_head){0}));
	raw_finished(&r, raw_begin(&r, (struct raw_head){.path = ECHO "Unknown"}));
	raw_finished(&r, raw_begin(&r, (struct raw_head){.timeout = "0S"}));
	ck_assert_str_eq(buf_str(&f.ended), ECHO "Echo 0\n" ECHO "Echo 4\n");
	/* answered at its deadline, and still running */
	raw_finished(&r, raw_begin(&r, (struct raw_head){.path = ECHO "Wait", .timeout = "200m"}));
	ck_assert_str_eq(buf_str(&f.ended), ECHO "Echo 0\n" ECHO "Echo 4\n");
	echo_release(&f.echo);
	fixture_until_ended(&f, ECHO "Echo 4\n" ECHO "Wait 0\n");
	/* its client has gone */
	raw_begin(&r, (struct raw_head){.path = ECHO "Wait"});
	fixture_until_waiting(&f, 1);
	raw_done(&r);
	echo_release(&f.echo);
	fixture_until_ended(&f, ECHO "Wait 0\n" ECHO "Wait 0\n");
	fixture_close(&f);
}
END_TEST

START_TEST(connections_come_and_go)
{
	fixture_open(&f, 1);
	for (int i = 0; i < 300; i++)
		assert_served();
	fixture_close(&f);
}
END_TEST

START_TEST(the_server_accepts_again_after_it_had_no_descriptor_left)
{
	struct rlimit old, none;
	struct raw r;

	fixture_open(&f, 1);
	raw_open(&r, &f);
	ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &old), 0);
	none = old;
	none.rlim_cur = (rlim_t)r.fd + 1;
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &none), 0);
	raw_request(&r, (struct raw_head){0});
	/* The request is on its way when accept() fails for the first time. */
	fixture_rounds(&f);
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &old), 0);
	assert_served();
	raw_done(&r);
	fixture_close(&f);
}
END_TEST

static const unsigned most = 1024;

START_TEST(peers_beyond_the_limit_wait_for_a_place)
{
	const struct rlimit many = {4096, 4096};
	struct raw *all = x_calloc(most + 1, sizeof(*all));
	int32_t stream = 0;

	if (setrlimit(RLIMIT_NOFILE, &many) < 0) {
		fprintf(stderr, "SKIP: no 4096 descriptors: %s\n", strerror(errno));
		free(all);
		return;
	}
	fixture_open(&f, 1);
	for (unsigned i = 0; i <= most; i++) {
		raw_open(&all[i], &f);
		stream = raw_begin(&all[i], (struct raw_head){0});
		if (i < most)
			assert_has(raw_finished(&all[i], stream), "grpc-status=0\n");
	}
	fixture_rounds(&f);
	ck_assert_str_eq(buf_str(&all[most].side.log), "");
	raw_done(&all[0]);
	assert_has(raw_finished(&all[most], stream), "grpc-status=0\n");
	for (unsigned i = 1; i <= most; i++)
		raw_done(&all[i]);
	free(all);
	fixture_close(&f);
}
END_TEST

START_TEST(drain_closes_idle_connections_at_once)
{
	struct raw r;

	fixture_open(&f, 1);
	raw_open(&r, &f);
	raw_finished(&r, raw_begin(&r, (struct raw_head){0}));
	fixture_drain(&f);
	ck_assert_msg(!f.drained, "called before grpc_server_drain() returned");
	fixture_free_server(&f);
	raw_until_over(&r);
	assert_has(buf_str(&r.side.log), "goaway 1 0\n");
	raw_done(&r);
	fixture_close(&f);
}
END_TEST

START_TEST(drain_lets_running_calls_finish)
{
	struct raw r;
	int32_t stream;

	fixture_open(&f, 1);
	raw_open(&r, &f);
	stream = raw_begin(&r, (struct raw_head){.path = ECHO "Wait"});
	fixture_until_waiting(&f, 1);
	fixture_drain(&f);
	ck_assert_int_eq(access(f.path, F_OK), -1);
	raw_until(&r, "goaway 1 0\n");
	ck_assert(!f.drained);
	echo_release(&f.echo);
	assert_has(raw_finished(&r, stream), "grpc-status=0\n");
	fixture_free_server(&f);
	raw_done(&r);
	fixture_close(&f);
}
END_TEST

START_TEST(drain_refuses_calls_that_do_not_run_yet)
{
	struct raw r;
	int32_t stream;

	fixture_open(&f, 1);
	raw_open(&r, &f);
	stream = raw_begin(&r, (struct raw_head){0});
	raw_finished(&r, stream);
	stream = raw_request(&r, (struct raw_head){0});
	raw_write(&r, stream, "\0\0", 2);
	raw_finished(&r, raw_begin(&r, (struct raw_head){0}));
	fixture_drain(&f);
	assert_has(raw_finished(&r, stream), "close 3 7\n");
	fixture_free_server(&f);
	raw_done(&r);
	fixture_close(&f);
}
END_TEST

START_TEST(drain_waits_for_calls_whose_client_has_gone)
{
	struct raw r;

	fixture_open(&f, 1);
	raw_open(&r, &f);
	raw_begin(&r, (struct raw_head){.path = ECHO "Wait"});
	fixture_until_waiting(&f, 1);
	raw_done(&r);
	assert_served();
	fixture_drain(&f);
	fixture_rounds(&f);
	ck_assert(!f.drained);
	echo_release(&f.echo);
	fixture_free_server(&f);
	fixture_close(&f);
}
END_TEST

START_TEST(a_socket_that_is_not_ours_any_more_survives_the_drain)
{
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(fd_closep) int fd = -1;
	struct addr a;

	fixture_open(&f, 1);
	ck_assert_int_eq(unlink(f.path), 0);
	ASSERT_OK(addr_parse(f.endpoint, &a, &err));
	ASSERT_OK(addr_listen(&a, &fd, &err));
	fixture_drain(&f);
	ck_assert_int_eq(access(f.path, F_OK), 0);
	fixture_free_server(&f);
	addr_done(&a);
	fixture_close(&f);
}
END_TEST

START_TEST(a_server_can_follow_one_that_has_drained)
{
	fixture_open(&f, 1);
	assert_served();
	fixture_drain(&f);
	fixture_free_server(&f);
	fixture_serve(&f);
	assert_served();
	fixture_close(&f);
}
END_TEST

TMPDIR_MAIN("grpc_server_life", endpoints_that_must_not_be_served_are_refused,
	a_server_that_never_listened_can_be_freed, a_peer_of_another_user_is_refused,
	a_connection_that_breaks_the_protocol_is_closed, a_client_that_hangs_up_leaves_its_call_running,
	a_call_is_observed_once_when_its_handling_has_ended, connections_come_and_go,
	the_server_accepts_again_after_it_had_no_descriptor_left, peers_beyond_the_limit_wait_for_a_place,
	drain_closes_idle_connections_at_once, drain_lets_running_calls_finish,
	drain_refuses_calls_that_do_not_run_yet, drain_waits_for_calls_whose_client_has_gone,
	a_socket_that_is_not_ours_any_more_survives_the_drain, a_server_can_follow_one_that_has_drained)
