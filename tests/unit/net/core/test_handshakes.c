/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>

#include "base/mem.h"
#include "net/core/handshakes.h"
#include "net/limits.h"
#include "unit/net/tls/tls_pair.h"

#define PAIRS 20

static const struct certs_choice node = {.ca = "own", .leaf = "own/pmem-node-controller", .alpn = "h2"};
static const struct certs_choice registry = {.ca = "own", .leaf = "own/pmem-registry", .alpn = "h2"};

/* Linked in place of the real one, so that a system without threads can be had. */
static atomic_bool no_threads;

int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*start)(void *), void *user);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*start)(void *), void *user);

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*start)(void *), void *user)
{
	return atomic_load(&no_threads) ? EAGAIN : __real_pthread_create(thread, attr, start, user);
}

struct fixture;

/* One end of a TLS connection; the test itself runs the handshake of the other end. */
struct party {
	struct fixture *fixture;
	struct handshake job;
	struct tls_pair pair;
	unsigned steps;
	unsigned order; /* among those whose first step has ended */
};

struct fixture {
	struct loop *loop;
	struct handshakes *handshakes;
	struct party parties[PAIRS];
	unsigned ended;
	unsigned begun;      /* whose first step has ended, and that are not through */
	unsigned most_begun; /* at a time */
};

/* The server's step has ended: the client answers, until both are through. */
static void on_step(void *user)
{
	struct party *party = user;
	struct fixture *f = party->fixture;
	struct tls_pair *p = &party->pair;

	if (party->steps++ == 0) {
		party->order = f->ended++;
		f->begun++;
	}
	if (f->begun > f->most_begun)
		f->most_begun = f->begun;
	f->begun -= party->job.complete;
	if (party->job.error)
		return;
	buf_add(&p->client.in, party->job.out.data, party->job.out.len);
	buf_reset(&party->job.out);
	tls_end_step(&p->client, &p->server);
	ck_assert_ptr_null(p->client.error);
	buf_add(&party->job.in, p->server.in.data, p->server.in.len);
	buf_reset(&p->server.in);
	if (!party->job.complete)
		handshakes_step(f->handshakes, &party->job);
}

static void party_init(
	struct party *party, struct fixture *f, struct tls_context *client, struct tls_context *server)
{
	tls_pair_init(&party->pair, client, server, "pmem-registry");
	party->fixture = f;
	party->job = (struct handshake){.tls = party->pair.server.tls,
		.in = BUF_INIT(100000),
		.out = BUF_INIT(100000),
		.done = on_step,
		.user = party};
	tls_end_step(&party->pair.client, &party->pair.server);
	buf_add(&party->job.in, party->pair.server.in.data, party->pair.server.in.len);
	buf_reset(&party->pair.server.in);
}

static void fixture_init(struct fixture *f)
{
	CLEANUP(tls_context_unrefp) struct tls_context *client = NULL;
	CLEANUP(tls_context_unrefp) struct tls_context *server = NULL;
	CLEANUP(error_freep) struct error *err = NULL;
	struct certs_choice client_choice = node;
	struct certs_choice server_choice = registry;

	client_choice.role = TLS_CLIENT;
	server_choice.role = TLS_SERVER;
	client = certs_context(&client_choice);
	server = certs_context(&server_choice);
	*f = (struct fixture){0};
	ASSERT_OK(loop_new(&f->loop, &err));
	f->handshakes = handshakes_new(f->loop);
	for (unsigned i = 0; i < PAIRS; i++)
		party_init(&f->parties[i], f, client, server);
}

static void fixture_done(struct fixture *f)
{
	handshakes_free(f->handshakes);
	loop_free(f->loop);
	for (unsigned i = 0; i < PAIRS; i++) {
		tls_pair_done(&f->parties[i].pair);
		buf_done(&f->parties[i].job.in);
		buf_done(&f->parties[i].job.out);
		error_free(f->parties[i].job.error);
	}
}

START_TEST(more_handshakes_than_threads_all_come_to_their_end)
{
	CLEANUP(fixture_done) struct fixture f;

	fixture_init(&f);
	for (unsigned i = 0; i < PAIRS; i++)
		handshakes_step(f.handshakes, &f.parties[i].job);
	loop_run(f.loop);
	for (unsigned i = 0; i < PAIRS; i++) {
		ck_assert(f.parties[i].job.complete);
		ck_assert(f.parties[i].pair.client.complete);
		ck_assert_uint_gt(f.parties[i].steps, 1);
	}
}
END_TEST

START_TEST(what_has_begun_goes_before_what_has_not)
{
	CLEANUP(fixture_done) struct fixture f;

	fixture_init(&f);
	for (unsigned i = 0; i < PAIRS; i++)
		handshakes_step(f.handshakes, &f.parties[i].job);
	loop_run(f.loop);
	ck_assert_uint_eq(f.begun, 0);
	/* where one step ends, another one has been started before it is said */
	ck_assert_uint_le(f.most_begun, 2 * LIMIT_HANDSHAKE_THREADS);
}
END_TEST

START_TEST(those_that_wait_are_counted)
{
	CLEANUP(fixture_done) struct fixture f;

	fixture_init(&f);
	for (unsigned i = 0; i < PAIRS; i++) {
		ck_assert_uint_eq(handshakes_waiting(f.handshakes),
			i < LIMIT_HANDSHAKE_THREADS ? 0 : i - LIMIT_HANDSHAKE_THREADS);
		handshakes_step(f.handshakes, &f.parties[i].job);
	}
	ck_assert(handshakes_cancel(&f.parties[PAIRS - 1].job));
	ck_assert(!handshakes_cancel(&f.parties[0].job));
	ck_assert_uint_eq(handshakes_waiting(f.handshakes), PAIRS - 1 - LIMIT_HANDSHAKE_THREADS);
	loop_run(f.loop);
	ck_assert_uint_eq(handshakes_waiting(f.handshakes), 0);
}
END_TEST

START_TEST(a_step_that_waits_can_be_cancelled)
{
	CLEANUP(fixture_done) struct fixture f;
	struct party *last = &f.parties[PAIRS - 1];
	struct party *before = &f.parties[PAIRS - 2];

	fixture_init(&f);
	for (unsigned i = 0; i < PAIRS; i++)
		handshakes_step(f.handshakes, &f.parties[i].job);
	ck_assert(handshakes_cancel(&last->job));
	ck_assert(handshakes_cancel(&before->job));
	ck_assert(!handshakes_cancel(&f.parties[0].job));
	/* behind those that are gone */
	handshakes_step(f.handshakes, &last->job);
	loop_run(f.loop);
	ck_assert_uint_eq(before->steps, 0);
	ck_assert(last->job.complete);
	ck_assert(f.parties[0].job.complete);
}
END_TEST

START_TEST(a_failure_is_kept_in_the_job)
{
	CLEANUP(fixture_done) struct fixture f;
	struct party *party = &f.parties[0];

	fixture_init(&f);
	buf_reset(&party->job.in);
	buf_adds(&party->job.in, "GET / HTTP/1.1\r\n");
	handshakes_step(f.handshakes, &party->job);
	loop_run(f.loop);
	ck_assert_uint_eq(party->steps, 1);
	ck_assert(!party->job.complete);
	ck_assert_ptr_nonnull(party->job.error);
	ck_assert_int_eq(party->job.error->code, ERR_UNAUTHENTICATED);
}
END_TEST

START_TEST(without_threads_every_job_ends_in_its_turn_with_an_error)
{
	CLEANUP(fixture_done) struct fixture f;

	fixture_init(&f);
	atomic_store(&no_threads, true);
	for (unsigned i = 0; i < PAIRS; i++)
		handshakes_step(f.handshakes, &f.parties[i].job);
	loop_run(f.loop);
	for (unsigned i = 0; i < PAIRS; i++) {
		ck_assert_ptr_nonnull(f.parties[i].job.error);
		ck_assert_int_eq(f.parties[i].job.error->code, ERR_UNAVAILABLE);
		ck_assert_uint_eq(f.parties[i].order, i);
	}
}
END_TEST

static void on_given_up(void *user)
{
	unsigned *n = user;

	(*n)++;
}

START_TEST(jobs_that_are_left_end_with_the_pool)
{
	CLEANUP(fixture_done) struct fixture f;
	unsigned n = 0;

	fixture_init(&f);
	for (unsigned i = 0; i < PAIRS; i++) {
		f.parties[i].job.done = on_given_up;
		f.parties[i].job.user = &n;
		handshakes_step(f.handshakes, &f.parties[i].job);
	}
	handshakes_free(TAKE_PTR(f.handshakes));
	ck_assert_uint_eq(n, PAIRS);
}
END_TEST

START_TEST(free_takes_null_and_an_unused_pool)
{
	CLEANUP(fixture_done) struct fixture f;

	fixture_init(&f);
	handshakes_free(NULL);
}
END_TEST

CERTS_MAIN("handshakes", more_handshakes_than_threads_all_come_to_their_end,
	what_has_begun_goes_before_what_has_not, those_that_wait_are_counted,
	a_step_that_waits_can_be_cancelled, a_failure_is_kept_in_the_job,
	without_threads_every_job_ends_in_its_turn_with_an_error, jobs_that_are_left_end_with_the_pool,
	free_takes_null_and_an_unused_pool)
