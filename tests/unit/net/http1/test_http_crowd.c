/* SPDX-License-Identifier: Apache-2.0 */
/* The effect of many or slow peers on an HTTP server. clock_gettime() is wrapped, and tests advance the
 * clock. */
#include <stdio.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>

#include "base/clock.h"
#include "http_crowd.h"
#include "net/limits.h"
#include "unit/unit.h"

#define IDLE   10000
#define BATCH  50
#define FEW    10 /* to be read before they count as silent, however slow the machine */
#define LORIS  16
#define OTHERS 3

/* Peers of a port for probes, and how long a probe may then take: kubelet waits for a second unless a
 * manifest says otherwise. */
#define CROWD    1500
#define PROBE_MS 1000

#define GET     "GET / HTTP/1.1\r\nHost: a\r\n\r\n"
#define GET_BIG "GET /big HTTP/1.1\r\nHost: a\r\n\r\n"

/* More than the sockets of both sides take, if the peer's does not grow. */
#define BIG_BYTES     (8u << 20)
#define RECEIVE_BYTES (64 << 10)

int __real_clock_gettime(clockid_t id, struct timespec *ts);
int __wrap_clock_gettime(clockid_t id, struct timespec *ts);

static time_t later_s;
static struct timespec stopped_at; /* 0: the clock goes on */
static uint64_t late_ns;           /* by how much the clock advances when it is read */
static uint64_t lateness_ns;       /* the sum of these */

int __wrap_clock_gettime(clockid_t id, struct timespec *ts)
{
	int rv = __real_clock_gettime(id, ts);

	if (stopped_at.tv_sec)
		*ts = stopped_at;
	lateness_ns += late_ns;
	uint64_t now_ns = (uint64_t)ts->tv_nsec + lateness_ns;
	ts->tv_sec += later_s + (time_t)(now_ns / NS_PER_S);
	ts->tv_nsec = (long)(now_ns % NS_PER_S);
	return rv;
}

static void hello(void *self, const struct http1_request *request, struct http_reply *reply)
{
	(void)self;
	(void)request;
	buf_adds(&reply->body, "hello\n");
}

static void big(void *self, const struct http1_request *request, struct http_reply *reply)
{
	(void)self;
	(void)request;
	memset(buf_reserve(&reply->body, BIG_BYTES), 'x', BIG_BYTES);
	buf_commit(&reply->body, BIG_BYTES);
}

static const struct http_route routes[] = {{.path = "/", .methods = "GET, POST", .handle = hello},
	{.path = "/big", .methods = "GET", .handle = big}, {0}};

static unsigned open_files(void)
{
	CLEANUP(dir_closep) DIR *dir = opendir("/proc/self/fd");
	unsigned n = 0;

	ck_assert_ptr_nonnull(dir);
	while (readdir(dir))
		n++;
	return n;
}

static void ask(struct crowd *c, int fd)
{
	crowd_say(c, fd, GET);
	crowd_hear(c, fd, "hello\n");
}

static void close_all(const int *fds, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		close(fds[i]);
}

START_TEST(ten_thousand_silent_peers_keep_no_other_peer_out)
{
	const struct http_server_config limits = {.max_connections = LIMIT_CONNECTIONS};
	static int fds[IDLE];
	struct crowd c;

	crowd_open(&c, routes, &limits);
	int old = crowd_dial(&c);
	ask(&c, old);
	unsigned before = open_files();
	for (unsigned i = 0; i < IDLE; i++) {
		fds[i] = crowd_dial(&c);
		if (i % BATCH == 0)
			crowd_run(&c);
	}
	ck_assert_uint_le(open_files(), before + IDLE + LIMIT_NEWCOMERS);
	ask(&c, old);
	int new = crowd_dial(&c);
	ask(&c, new);
	ck_assert_uint_le(open_files(), before + IDLE + LIMIT_NEWCOMERS + 2);
	close_all(fds, IDLE);
	close(old);
	close(new);
	crowd_close(&c);
}
END_TEST

START_TEST(of_ten_thousand_idle_connections_the_newest_stay)
{
	const struct http_server_config limits = {.max_connections = LIMIT_CONNECTIONS};
	static int fds[IDLE];
	struct crowd c;

	crowd_open(&c, routes, &limits);
	unsigned before = open_files();
	for (unsigned i = 0; i < IDLE; i += FEW) {
		later_s += i % 1000 == 0; /* those before may go */
		for (unsigned k = i; k < i + FEW; k++) {
			fds[k] = crowd_dial(&c);
			crowd_say(&c, fds[k], GET);
		}
		for (unsigned k = i; k < i + FEW; k++)
			crowd_hear(&c, fds[k], "hello\n");
	}
	ck_assert_uint_le(open_files(), before + IDLE + LIMIT_CONNECTIONS);
	ck_assert(crowd_is_closed(fds[0]));
	ck_assert(crowd_is_closed(fds[IDLE - LIMIT_CONNECTIONS - 1]));
	ask(&c, fds[IDLE - LIMIT_CONNECTIONS]);
	ask(&c, fds[IDLE - 1]);
	close_all(fds, IDLE);
	crowd_close(&c);
}
END_TEST

static void run_until_closed(struct crowd *c, int fd)
{
	while (!crowd_is_closed(fd))
		crowd_run(c);
}

/* A request that gets one byte of a header field or of its body now and then is ended at its time limit. */
START_TEST(slow_requests_are_ended_and_others_served_meanwhile)
{
	const struct http_server_config limits = {.max_body_bytes = 1000};
	struct crowd c;
	int fds[LORIS];

	crowd_open(&c, routes, &limits);
	for (unsigned i = 0; i < LORIS; i++) {
		fds[i] = crowd_dial(&c);
		if (i % 4 < 2)
			ask(&c, fds[i]);
		crowd_say(&c, fds[i],
			i % 2 ? "GET / HTTP/1.1\r\nX-a: b"
			      : "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 500\r\n\r\nb");
	}
	int other = crowd_dial(&c);
	ask(&c, other);
	for (unsigned s = 0; s < LIMIT_HTTP1_REQUEST_MS / 1000; s += 2) {
		for (unsigned i = 0; i < LORIS; i++) {
			crowd_say(&c, fds[i], "b");
			crowd_run(&c);
			ck_assert(!crowd_is_closed(fds[i]));
		}
		later_s += s < LIMIT_HTTP1_REQUEST_MS / 1000 - 2 ? 1 : 10;
	}
	for (unsigned i = 0; i < LORIS; i++)
		run_until_closed(&c, fds[i]);
	ask(&c, other);
	close_all(fds, LORIS);
	close(other);
	crowd_close(&c);
}
END_TEST

/* Slow ones that take all places do not keep others out until their time is over. */
START_TEST(slow_requests_make_room)
{
	const struct http_server_config limits = {.max_connections = LORIS, .max_body_bytes = 1000};
	struct crowd c;
	int fds[LORIS];

	crowd_open(&c, routes, &limits);
	for (unsigned i = 0; i < LORIS; i++) {
		fds[i] = crowd_dial(&c);
		ask(&c, fds[i]);
		crowd_say(&c, fds[i], "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 500\r\n\r\nb");
	}
	int other = crowd_dial(&c);
	ask(&c, other);
	ck_assert(crowd_is_closed(fds[0]));
	close_all(fds, LORIS);
	close(other);
	crowd_close(&c);
}
END_TEST

/* More time passes between accept() and the first read than a silent peer has: the machine is busy, and the
 * bytes of the peers have arrived long before. */
START_TEST(a_late_server_reads_before_it_takes_a_peer_for_silent)
{
	const struct http_server_config limits = {.max_connections = FEW};
	struct crowd c;
	int fds[FEW + OTHERS];

	crowd_open(&c, routes, &limits);
	for (unsigned i = 0; i < FEW + OTHERS; i++) {
		fds[i] = crowd_dial(&c);
		crowd_say(&c, fds[i], GET);
	}
	late_ns = LIMIT_SILENT_MS * NS_PER_MS / 2;
	for (unsigned i = 0; i < FEW + OTHERS; i++)
		crowd_hear(&c, fds[i], "hello\n");
	late_ns = 0;
	close_all(fds, FEW + OTHERS);
	crowd_close(&c);
}
END_TEST

/* A peer that was answered just now may be sending its next request on the same connection. */
START_TEST(who_was_answered_just_now_stays_and_others_wait)
{
	const struct http_server_config limits = {.max_connections = FEW};
	struct crowd c;
	int fds[FEW];
	int others[OTHERS];

	__real_clock_gettime(CLOCK_MONOTONIC, &stopped_at);
	crowd_open(&c, routes, &limits);
	for (unsigned i = 0; i < FEW; i++) {
		fds[i] = crowd_dial(&c);
		ask(&c, fds[i]);
	}
	for (unsigned i = 0; i < OTHERS; i++) {
		others[i] = crowd_dial(&c);
		crowd_say(&c, others[i], GET);
	}
	for (unsigned i = 0; i < FEW; i++)
		ask(&c, fds[i]);
	close(fds[FEW - 1]);
	crowd_hear(&c, others[0], "hello\n");
	for (unsigned i = 0; i < OTHERS; i++)
		ck_assert(!crowd_is_closed(others[i]));
	later_s += LIMIT_REUSE_MS / 1000;
	ask(&c, fds[0]);
	for (unsigned i = 1; i < OTHERS; i++)
		crowd_hear(&c, others[i], "hello\n");
	ck_assert(!crowd_is_closed(fds[0]));
	ck_assert(crowd_is_closed(fds[1]));
	close_all(fds, FEW - 1);
	close_all(others, OTHERS);
	crowd_close(&c);
}
END_TEST

static int stall(struct crowd *c)
{
	const int bytes = RECEIVE_BYTES;
	int fd = crowd_dial(c);

	ck_assert_int_eq(setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof(bytes)), 0);
	crowd_say(c, fd, GET_BIG);
	return fd;
}

static void stall_all(struct crowd *c, int *fds)
{
	for (unsigned i = 0; i < FEW; i++)
		fds[i] = stall(c);
}

static void take_a_byte(struct crowd *c, int fd)
{
	char byte;

	crowd_run(c);
	while (recv(fd, &byte, 1, 0) != 1)
		crowd_run(c);
}

/* A byte now and then does not help those that take no more. */
START_TEST(who_does_not_read_makes_room_but_not_who_reads)
{
	const struct http_server_config limits = {.max_connections = FEW};
	struct crowd c;
	int fds[FEW];

	/* however long it takes on a slow machine */
	__real_clock_gettime(CLOCK_MONOTONIC, &stopped_at);
	crowd_open(&c, routes, &limits);
	stall_all(&c, fds);
	ck_assert(!crowd_is_closed(fds[0]));
	int other = crowd_dial(&c);
	crowd_say(&c, other, GET);
	for (unsigned s = 0; s < 2; s++) {
		for (unsigned i = 1; i < FEW; i++)
			take_a_byte(&c, fds[i]);
		ck_assert(!crowd_is_closed(fds[0])); /* which takes all */
		later_s++;
	}
	crowd_hear(&c, other, "hello\n");
	ck_assert(!crowd_is_closed(fds[0]));
	ck_assert(crowd_is_closed(fds[1]));
	close_all(fds, FEW);
	close(other);
	crowd_close(&c);
}
END_TEST

/* The connection makes room before it counts as one whose peer does not read. */
START_TEST(a_peer_that_asks_on_before_it_has_its_replies_makes_room_soon)
{
	const struct http_server_config limits = {.max_connections = FEW};
	struct crowd c;
	int fds[FEW];

	__real_clock_gettime(CLOCK_MONOTONIC, &stopped_at);
	stopped_at.tv_sec++;
	stopped_at.tv_nsec = 0;
	crowd_open(&c, routes, &limits);
	stall_all(&c, fds);
	for (unsigned i = 0; i < FEW; i++)
		crowd_say(&c, fds[i], GET);
	int other = crowd_dial(&c);
	crowd_say(&c, other, GET);
	for (unsigned i = 0; i < BATCH; i++)
		crowd_run(&c);
	ck_assert(!crowd_is_closed(fds[0]));
	stopped_at.tv_nsec = LIMIT_QUEUED_MS * NS_PER_MS;
	crowd_hear(&c, other, "hello\n");
	ck_assert(crowd_is_closed(fds[0]));
	ck_assert(!crowd_is_closed(fds[1]));
	close_all(fds, FEW);
	close(other);
	crowd_close(&c);
}
END_TEST

/* No other peer waits for the place, but what is held for the peer costs memory. */
START_TEST(who_takes_a_byte_now_and_then_is_dropped_in_the_end)
{
	const struct http_server_config limits = {0};
	struct crowd c;

	crowd_open(&c, routes, &limits);
	unsigned before = open_files();
	int fd = stall(&c);
	for (unsigned s = 0; s < LIMIT_STALLED_MS / 1000; s += 10) {
		take_a_byte(&c, fd);
		ck_assert_uint_eq(open_files(), before + 2);
		later_s += 10;
	}
	later_s += 10;
	while (open_files() > before + 1)
		crowd_run(&c);
	close(fd);
	crowd_close(&c);
}
END_TEST

/* Enough to take all places of the port, and what of them waits, many times over; all have begun a request.
 */
START_TEST(a_crowd_on_the_port_for_probes_keeps_no_probe_out)
{
	const struct http_server_config limits = {.for_probes = true, .max_connections = 1};
	static int fds[CROWD];
	struct crowd c;

	crowd_open(&c, routes, &limits);
	unsigned before = open_files();
	for (unsigned i = 0; i < CROWD; i++) {
		fds[i] = crowd_dial(&c);
		crowd_say(&c, fds[i], "GET / HTTP/1.1\r\nX-a: b");
	}
	int probe = crowd_dial(&c);
	unsigned rounds = c.rounds;
	clock_t used = clock();
	ask(&c, probe);
	/* Other programs of a busy machine do not count: what is waited for, and the processor's time. */
	used = (clock() - used) * 1000 / CLOCKS_PER_SEC;
	ck_assert_int_lt(used + (c.rounds - rounds) * CROWD_ROUND_MS, PROBE_MS);
	ck_assert_uint_le(open_files(), before + CROWD + 1 + LIMIT_PROBE_CONNECTIONS);
	close_all(fds, CROWD);
	close(probe);
	crowd_close(&c);
}
END_TEST

START_TEST(the_port_for_probes_answers_once_per_connection)
{
	const struct http_server_config limits = {.for_probes = true};
	struct crowd c;

	crowd_open(&c, routes, &limits);
	int probe = crowd_dial(&c);
	crowd_say(&c, probe, GET);
	ck_assert_ptr_nonnull(strstr(crowd_hear(&c, probe, "hello\n"), "Connection: close\r\n"));
	run_until_closed(&c, probe);
	close(probe);
	crowd_close(&c);
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {ten_thousand_silent_peers_keep_no_other_peer_out,
		of_ten_thousand_idle_connections_the_newest_stay,
		a_late_server_reads_before_it_takes_a_peer_for_silent,
		who_was_answered_just_now_stays_and_others_wait,
		slow_requests_are_ended_and_others_served_meanwhile, slow_requests_make_room,
		a_crowd_on_the_port_for_probes_keeps_no_probe_out,
		the_port_for_probes_answers_once_per_connection,
		who_does_not_read_makes_room_but_not_who_reads,
		a_peer_that_asks_on_before_it_has_its_replies_makes_room_soon,
		who_takes_a_byte_now_and_then_is_dropped_in_the_end};
	struct rlimit files;

	/* both ends of each connection are here */
	if (getrlimit(RLIMIT_NOFILE, &files) < 0)
		return EXIT_FAILURE;
	files.rlim_cur = files.rlim_max;
	if (files.rlim_max < IDLE + 2 * LIMIT_CONNECTIONS || setrlimit(RLIMIT_NOFILE, &files) < 0) {
		printf("SKIP: a process may open %llu files only\n", (unsigned long long)files.rlim_max);
		return 77;
	}
	/* thousands of connections, maybe on a busy machine */
	setenv("CK_DEFAULT_TIMEOUT", "60", /* overwrite= */ 0);
	return unit_run("http_crowd", tests, ARRAY_SIZE(tests));
}
