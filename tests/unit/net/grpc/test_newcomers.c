/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which peers wait and which are closed when a crowd comes, while handshakes are being computed.
 *
 * tls_handshake() and clock_gettime() are wrapped: a test holds up the one, and sets the other, which stands
 * still otherwise.
 */
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <unistd.h>

#include "csi.pb-c.h"

#include "net/grpc/grpc_client.h"
#include "net/grpc/grpc_server.h"
#include "net/limits.h"
#include "unit/net/tls/certs.h"

#define ROUND_MS   2
#define ROUNDS     150 /* longer than a pause of the acceptor */
#define MAX_PEERS  (LIMIT_NEWCOMERS + 8)
#define BUSY       (LIMIT_HANDSHAKE_THREADS + LIMIT_HANDSHAKES_WAITING)
#define HALF_HELLO "\x16\x03\x01\x00\x80\x01\x00"
#define HALF_HTTP2 "PRI * HTTP/2.0\r\n"

int __real_tls_handshake(struct tls *t, struct buf *in, struct buf *out, bool *ret_done, struct error **err);
int __wrap_tls_handshake(struct tls *t, struct buf *in, struct buf *out, bool *ret_done, struct error **err);
int __real_clock_gettime(clockid_t id, struct timespec *ts);
int __wrap_clock_gettime(clockid_t id, struct timespec *ts);

static struct {
	pthread_mutex_t lock;
	pthread_cond_t opened;
	bool closed;
	unsigned steps;
} gate = {.lock = PTHREAD_MUTEX_INITIALIZER, .opened = PTHREAD_COND_INITIALIZER};

static struct timespec begin;
static _Atomic(int64_t) later_s;

static struct loop *loop;
static struct workers *workers;
static struct handshakes *handshakes;
static struct grpc_server *server;
static uint16_t tls_port, plain_port;
static int peers[MAX_PEERS];
static unsigned n_peers;

int __wrap_tls_handshake(struct tls *t, struct buf *in, struct buf *out, bool *ret_done, struct error **err)
{
	pthread_mutex_lock(&gate.lock);
	gate.steps++;
	while (gate.closed)
		pthread_cond_wait(&gate.opened, &gate.lock);
	pthread_mutex_unlock(&gate.lock);
	return __real_tls_handshake(t, in, out, ret_done, err);
}

int __wrap_clock_gettime(clockid_t id, struct timespec *ts)
{
	/* check's own clock, around each test, goes on */
	if (id != CLOCK_MONOTONIC || begin.tv_sec == 0)
		return __real_clock_gettime(id, ts);
	*ts = begin;
	ts->tv_sec += atomic_load(&later_s);
	return 0;
}

static void set_gate(bool closed)
{
	pthread_mutex_lock(&gate.lock);
	gate.closed = closed;
	pthread_cond_broadcast(&gate.opened);
	pthread_mutex_unlock(&gate.lock);
}

static void open_all(void)
{
	static const struct grpc_service none[] = {{0}};
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(tls_context_unrefp)
	struct tls_context *tls = certs_context(&(struct certs_choice){
		.role = TLS_SERVER, .ca = "own", .leaf = "own/pmem-registry", .alpn = "h2"});

	__real_clock_gettime(CLOCK_MONOTONIC, &begin);
	ASSERT_OK(loop_new(&loop, &err));
	workers = workers_new(1);
	handshakes = handshakes_new(loop);
	server = grpc_server_new(&(struct grpc_server_config){.loop = loop,
		.workers = workers,
		.handshakes = handshakes,
		.services = none,
		.allow_plain_tcp = true});
	ASSERT_OK(grpc_server_listen(server, "tcp://127.0.0.1:0", tls, &err));
	tls_port = grpc_server_port(server);
	ASSERT_OK(grpc_server_listen(server, "tcp://127.0.0.1:0", NULL, &err));
	plain_port = grpc_server_port(server);
}

struct until {
	bool (*done)(const void *user);
	const void *user;
};

static void on_round(void *user)
{
	const struct until *u = user;

	if (u->done(u->user))
		loop_stop(loop);
}

static void until(bool (*done)(const void *user), const void *user)
{
	struct until u = {done, user};
	struct loop_timer *tick = loop_timer_new(loop, on_round, &u);

	loop_timer_set(tick, 0, ROUND_MS);
	loop_run(loop);
	loop_timer_close(tick);
}

static bool is_zero(const void *user)
{
	unsigned *left = *(unsigned *const *)user;

	return (*left)-- == 0;
}

/* Runs the loop for a while in which nothing should happen. */
static void rounds(void)
{
	unsigned left = ROUNDS;
	unsigned *at = &left;

	until(is_zero, &at);
}

static unsigned connections(void)
{
	struct grpc_server_count count;

	grpc_server_count(server, &count);
	return count.connections;
}

static bool has_connections(const void *user)
{
	return connections() == *(const unsigned *)user;
}

static void until_connections(unsigned n)
{
	until(has_connections, &n);
}

static bool is_busy(const void *user)
{
	(void)user;
	return handshakes_waiting(handshakes) == LIMIT_HANDSHAKES_WAITING;
}

static void on_drained(void *user)
{
	bool *drained = user;

	*drained = true;
}

static bool is_set(const void *user)
{
	return *(const bool *)user;
}

static void close_all(void)
{
	bool drained = false;

	set_gate(false);
	for (unsigned i = 0; i < n_peers; i++)
		close(peers[i]);
	grpc_server_drain(server, on_drained, &drained);
	until(is_set, &drained);
	grpc_server_free(server);
	handshakes_free(handshakes);
	workers_free(workers);
	loop_free(loop);
	begin = (struct timespec){0};
}

/* One more peer, that says @text. Return: its number. */
static unsigned join(uint16_t port, const char *text, size_t n)
{
	struct sockaddr_in sa = {
		.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	ck_assert_uint_lt(n_peers, MAX_PEERS);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(connect(fd, (struct sockaddr *)&sa, sizeof(sa)), 0);
	ck_assert_int_eq(send(fd, text, n, MSG_NOSIGNAL), (ssize_t)n);
	peers[n_peers] = fd;
	return n_peers++;
}

static unsigned join_tls(void)
{
	return join(tls_port, HALF_HELLO, sizeof(HALF_HELLO) - 1);
}

static unsigned join_plain(void)
{
	return join(plain_port, HALF_HTTP2, sizeof(HALF_HTTP2) - 1);
}

static bool is_dropped(unsigned peer)
{
	char some[4096];
	ssize_t n;

	while ((n = recv(peers[peer], some, sizeof(some), MSG_DONTWAIT)) > 0)
		;
	return n == 0 || errno == ECONNRESET;
}

/* Begins as many handshakes as may wait. */
static void keep_busy(void)
{
	set_gate(true);
	for (unsigned i = 0; i < BUSY; i++)
		join_tls();
	until(is_busy, NULL);
	ck_assert_uint_eq(connections(), BUSY);
}

START_TEST(a_crowd_waits_in_the_backlog)
{
	open_all();
	keep_busy();
	join_tls();
	rounds();
	ck_assert_uint_eq(connections(), BUSY);
	/* handshakes are no matter of other listeners */
	join_plain();
	until_connections(BUSY + 1);
	/* none of them is complete: they are refused, so that there is room */
	set_gate(false);
	for (unsigned i = 0; i < BUSY; i++)
		shutdown(peers[i], SHUT_WR);
	until_connections(2);
	ck_assert(!is_dropped(BUSY));
	close_all();
}
END_TEST

START_TEST(nothing_is_computed_for_who_has_hung_up)
{
	open_all();
	close(peers[join_tls()]);
	n_peers = 0;
	join_plain();
	until_connections(1);
	ck_assert_uint_eq(gate.steps, 0);
	close_all();
}
END_TEST

START_TEST(who_is_computed_for_has_more_time_than_who_says_half_of_something)
{
	open_all();
	keep_busy();
	while (n_peers < LIMIT_NEWCOMERS)
		join_plain();
	until_connections(LIMIT_NEWCOMERS);
	atomic_store(&later_s, 2);
	join_plain();
	rounds();
	ck_assert(is_dropped(BUSY));
	for (unsigned i = 0; i < BUSY; i++)
		ck_assert(!is_dropped(i));
	close_all();
}
END_TEST

START_TEST(who_is_computed_for_goes_in_the_end)
{
	open_all();
	keep_busy();
	while (n_peers < LIMIT_NEWCOMERS)
		join_plain();
	until_connections(LIMIT_NEWCOMERS);
	atomic_store(&later_s, 1 + LIMIT_CROWD_MS / 1000);
	join_plain();
	rounds();
	ck_assert(is_dropped(0));
	close_all();
}
END_TEST

static bool called;

static void on_reply(void *user, const ProtobufCMessage *reply, const struct error *error)
{
	(void)user;
	(void)reply;
	ck_assert_int_eq(error->code, ERR_UNIMPLEMENTED);
	called = true;
}

/* Lets one peer complete its handshake and make a valid request. */
static void get_on(void)
{
	CLEANUP(tls_context_unrefp)
	struct tls_context *tls = certs_context(&(struct certs_choice){
		.role = TLS_CLIENT, .ca = "own", .leaf = "own/pmem-node-controller", .alpn = "h2"});
	CLEANUP(error_freep) struct error *err = NULL;
	char endpoint[64];
	struct grpc_client *client;
	Csi__V1__ProbeRequest empty;

	snprintf(endpoint, sizeof(endpoint), "tcp://127.0.0.1:%u", tls_port);
	ASSERT_OK(grpc_client_new(&(struct h2_channel_config){.loop = loop,
					  .endpoint = endpoint,
					  .tls = tls,
					  .tls_name = "pmem-registry",
					  .handshakes = handshakes},
		&client, &err));
	csi__v1__probe_request__init(&empty);
	grpc_client_call(
		client, "/a/b", &empty.base, &csi__v1__probe_response__descriptor, 0, on_reply, NULL);
	until(is_set, &called);
	grpc_client_free(client);
}

START_TEST(in_a_crowd_that_gets_on_all_have_more_time)
{
	open_all();
	while (n_peers < LIMIT_NEWCOMERS - 1)
		join_plain();
	until_connections(LIMIT_NEWCOMERS - 1);
	atomic_store(&later_s, 2);
	get_on();
	until_connections(LIMIT_NEWCOMERS - 1);
	join_plain();
	until_connections(LIMIT_NEWCOMERS);
	join_plain();
	rounds();
	ck_assert(!is_dropped(0));
	/* no handshake has made progress for a while */
	atomic_store(&later_s, 4);
	rounds();
	ck_assert(is_dropped(0));
	close_all();
}
END_TEST

CERTS_MAIN("net/newcomers", a_crowd_waits_in_the_backlog, nothing_is_computed_for_who_has_hung_up,
	who_is_computed_for_has_more_time_than_who_says_half_of_something,
	who_is_computed_for_goes_in_the_end, in_a_crowd_that_gets_on_all_have_more_time)
