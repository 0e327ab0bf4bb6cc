/* SPDX-License-Identifier: Apache-2.0 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/mem.h"
#include "net/tls/tls_context.h"
#include "tls_pair.h"

#define THREADS    4
#define HANDSHAKES 10

struct shared {
	struct tls_context *client;
	struct tls_context *server;
	pthread_barrier_t begin;
	atomic_uint running;
};

/* Check's own functions are for the test's thread. */
static void *shake(void *user)
{
	struct shared *s = user;
	bool ok = true;

	pthread_barrier_wait(&s->begin);
	for (unsigned i = 0; ok && i < HANDSHAKES; i++) {
		CLEANUP(tls_pair_done) struct tls_pair p;
		tls_pair_init(&p, s->client, s->server, "pmem-registry");
		tls_pair_shake(&p);
		ok = p.client.complete && p.server.complete;
	}
	atomic_fetch_sub(&s->running, 1);
	return ok ? s : NULL;
}

static struct tls_context *context(enum tls_role role, const char *leaf)
{
	return certs_context(&(struct certs_choice){.role = role, .ca = "own", .leaf = leaf, .alpn = "h2"});
}

/* A file that is replaced by itself has changed. */
static void replace(const char *name)
{
	CLEANUP(free_charp) char *path = certs_path(name);
	CLEANUP(free_charp) char *copy = x_asprintf("%s.new", path);
	CLEANUP(free_charp) char *content = NULL;
	FILE *from = fopen(path, "re");
	FILE *to = fopen(copy, "we");
	size_t size = 0;

	while (getline(&content, &size, from) >= 0)
		fputs(content, to);
	fclose(from);
	fclose(to);
	ck_assert_int_eq(rename(copy, path), 0);
}

static void run_threads(struct shared *s, bool reload)
{
	uint64_t now_ns = clock_ns();
	pthread_t threads[THREADS];
	void *ok;

	pthread_barrier_init(&s->begin, NULL, THREADS);
	atomic_store(&s->running, THREADS);
	for (unsigned i = 0; i < THREADS; i++)
		ck_assert_int_eq(pthread_create(&threads[i], NULL, shake, s), 0);
	while (reload && atomic_load(&s->running) > 0) {
		replace("own/ca.pem");
		now_ns += 2 * TLS_LOOK_NS;
		tls_creds_unref(tls_context_creds(s->client, now_ns));
		tls_creds_unref(tls_context_creds(s->server, now_ns));
	}
	for (unsigned i = 0; i < THREADS; i++) {
		ck_assert_int_eq(pthread_join(threads[i], &ok), 0);
		ck_assert_ptr_eq(ok, s);
	}
	pthread_barrier_destroy(&s->begin);
}

START_TEST(threads_share_contexts_from_their_first_use)
{
	CLEANUP(tls_context_unrefp)
	struct tls_context *client = context(TLS_CLIENT, "own/pmem-node-controller");
	CLEANUP(tls_context_unrefp) struct tls_context *server = context(TLS_SERVER, "own/pmem-registry");
	struct shared s = {.client = client, .server = server};

	run_threads(&s, false);
}
END_TEST

START_TEST(threads_share_an_rsa_key)
{
	CLEANUP(tls_context_unrefp) struct tls_context *client = context(TLS_CLIENT, "own/rsa");
	CLEANUP(tls_context_unrefp) struct tls_context *server = context(TLS_SERVER, "own/rsa");
	struct shared s = {.client = client, .server = server};

	run_threads(&s, false);
}
END_TEST

START_TEST(handshakes_go_on_while_files_are_loaded)
{
	CLEANUP(tls_context_unrefp)
	struct tls_context *client = context(TLS_CLIENT, "own/pmem-node-controller");
	CLEANUP(tls_context_unrefp) struct tls_context *server = context(TLS_SERVER, "own/pmem-registry");
	struct shared s = {.client = client, .server = server};

	run_threads(&s, true);
}
END_TEST

CERTS_MAIN("tls_threads", threads_share_contexts_from_their_first_use, threads_share_an_rsa_key,
	handshakes_go_on_while_files_are_loaded)
