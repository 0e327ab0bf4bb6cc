/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests of what a peer that has sent GOAWAY may still do, over TCP.
 *
 * clock_gettime() is wrapped: a test lets time pass.
 */
#include <errno.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "net/core/addr.h"
#include "net/limits.h"

#include "grpc_fixture.h"
#include "unit/net/http2/h2_frames.h"

int __real_clock_gettime(clockid_t id, struct timespec *ts);
int __wrap_clock_gettime(clockid_t id, struct timespec *ts);

static struct fixture f;
static _Atomic(int64_t) later_s;

int __wrap_clock_gettime(clockid_t id, struct timespec *ts)
{
	int rv = __real_clock_gettime(id, ts);

	/* check has a clock of its own around each test */
	if (id == CLOCK_MONOTONIC)
		ts->tv_sec += atomic_load(&later_s);
	return rv;
}

static int dial(void)
{
	CLEANUP(error_freep) struct error *err = NULL;
	struct addr a;
	int fd = -1;

	ASSERT_OK(addr_parse(f.endpoint, &a, &err));
	ASSERT_OK(addr_connect(&a, &fd, &err));
	addr_done(&a);
	return fd;
}

struct ear {
	int fd;
	struct buf in;
	int os_errno; /* of what ended it; 0: its peer did */
};

static bool has_heard_the_end(void *user)
{
	struct ear *e = user;
	uint8_t bytes[512];
	ssize_t n = recv(e->fd, bytes, sizeof(bytes), MSG_DONTWAIT);

	if (n > 0)
		buf_add(&e->in, bytes, (size_t)n);
	e->os_errno = n < 0 ? errno : 0;
	return n == 0 || (n < 0 && e->os_errno != EAGAIN && e->os_errno != ENOTCONN);
}

/* A connection on which a request was made, and whose end was announced on both sides. */
static int part(void)
{
	static const uint8_t no_error[8] = {0};
	CLEANUP(buf_done) struct buf out = BUF_INIT(1024);
	CLEANUP(buf_done) struct buf text = BUF_INIT(4096);
	struct ear ear = {.fd = dial(), .in = BUF_INIT(4096)};

	frames_preface(&out);
	frames_post(&out, 1, ":method: POST\n:scheme: http\n:path: " ECHO "Echo\n:authority: here\n");
	frames_add(&out, FRAME_GOAWAY, 0, 0, (struct span){no_error, sizeof(no_error)});
	fixture_rounds(&f);
	ck_assert_int_eq(send(ear.fd, out.data, out.len, MSG_NOSIGNAL), (ssize_t)out.len);
	fixture_until(&f, has_heard_the_end, &ear);
	ck_assert_int_eq(ear.os_errno, 0);
	frames_text(buf_span(&ear.in), &text);
	ck_assert_ptr_nonnull(strstr(buf_str(&text), "HEADERS 1"));
	buf_done(&ear.in);
	return ear.fd;
}

static void send_ping(int fd)
{
	static const uint8_t opaque[8] = {1, 2, 3, 4, 5, 6, 7, 8};
	CLEANUP(buf_done) struct buf out = BUF_INIT(64);
	struct ear ear = {.fd = fd, .in = BUF_INIT(64)};

	frames_add(&out, FRAME_PING, 0, 0, (struct span){opaque, sizeof(opaque)});
	ck_assert_int_eq(send(fd, out.data, out.len, MSG_NOSIGNAL), (ssize_t)out.len);
	fixture_rounds(&f);
	ck_assert(has_heard_the_end(&ear));
	ck_assert_int_eq(ear.os_errno, 0);
	ck_assert_uint_eq(ear.in.len, 0);
	buf_done(&ear.in);
}

struct population {
	unsigned wanted;
};

static bool is_population(void *user)
{
	const struct population *p = user;
	struct grpc_server_count count;

	grpc_server_count(f.server, &count);
	return count.connections == p->wanted;
}

START_TEST(a_peer_may_send_after_its_goaway)
{
	int fd;

	fixture_open_tcp(&f, 1);
	fd = part();
	send_ping(fd);
	send_ping(fd);
	close(fd);
	fixture_until(&f, is_population, &(struct population){0});
	fixture_close(&f);
}
END_TEST

START_TEST(who_never_hangs_up_after_its_goaway_is_hung_up_on)
{
	struct population one = {1};
	int fd;

	fixture_open_tcp(&f, 1);
	fd = part();
	ck_assert(is_population(&one));
	atomic_store(&later_s, LIMIT_LINGER_MS / 1000 + 1);
	fixture_until(&f, is_population, &(struct population){0});
	close(fd);
	fixture_close(&f);
}
END_TEST

START_TEST(a_drain_does_not_wait_for_who_has_said_goaway)
{
	int fd;

	fixture_open_tcp(&f, 1);
	fd = part();
	fixture_drain(&f);
	fixture_free_server(&f);
	close(fd);
	fixture_close(&f);
}
END_TEST

START_TEST(on_a_unix_socket_the_connection_ends_with_the_goaway)
{
	int fd;

	fixture_open(&f, 1);
	fd = part();
	fixture_until(&f, is_population, &(struct population){0});
	close(fd);
	fixture_close(&f);
}
END_TEST

TMPDIR_MAIN("grpc_server_linger", a_peer_may_send_after_its_goaway,
	who_never_hangs_up_after_its_goaway_is_hung_up_on, a_drain_does_not_wait_for_who_has_said_goaway,
	on_a_unix_socket_the_connection_ends_with_the_goaway)
