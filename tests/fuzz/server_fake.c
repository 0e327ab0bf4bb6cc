/* SPDX-License-Identifier: Apache-2.0 */
#include "fuzz/server_fake.h"

#include <stdlib.h>

#include "base/mem.h"
#include "fuzz/fuzz.h"
#include "net/limits.h"

struct acceptor {
	struct acceptor_config config;
	struct accepted *first;
	bool draining;
	bool emptied;
	loop_fn on_empty;
	void *on_empty_user;
};

/* made by the server that is tested; one at a time */
static struct acceptor *current;

bool workers_run(struct workers *w, void (*work)(void *user), void (*done)(void *user), void *user)
{
	if (w->n == FAKE_WORKERS_MAX)
		return false;
	w->jobs[w->n].work = work;
	w->jobs[w->n].done = done;
	w->jobs[w->n++].user = user;
	return true;
}

void fake_workers_do(struct workers *w)
{
	for (unsigned i = 0; i < w->n; i++) {
		w->jobs[i].work(w->jobs[i].user);
		w->jobs[i].done(w->jobs[i].user);
	}
	w->n = 0;
}

void conn_peer(const struct conn *c, struct buf *out)
{
	(void)c;
	(void)out;
}

const struct tls *conn_tls(const struct conn *c)
{
	(void)c;
	return NULL;
}

struct acceptor *acceptor_new(const struct acceptor_config *config)
{
	current = x_calloc(1, sizeof(*current));
	current->config = *config;
	return current;
}

void acceptor_free(struct acceptor *a)
{
	assert(a == current && !a->first);
	free(TAKE_PTR(current));
}

int acceptor_listen(struct acceptor *a, const char *endpoint, struct tls_context *tls, bool allow_plain_tcp,
	struct error **err)
{
	(void)a;
	(void)tls;
	(void)allow_plain_tcp;
	return err_set(err, ERR_UNIMPLEMENTED, "%s: nothing listens", endpoint);
}

unsigned acceptor_connections(const struct acceptor *a)
{
	(void)a;
	return 0;
}

uint16_t acceptor_port(const struct acceptor *a)
{
	(void)a;
	return 0;
}

static void check_empty(struct acceptor *a)
{
	if (!a->draining || a->emptied || a->first)
		return;
	a->emptied = true;
	a->on_empty(a->on_empty_user);
}

void fake_close(struct accepted *conn)
{
	struct acceptor *a = conn->acceptor;

	if (conn->prev)
		conn->prev->next = conn->next;
	else
		a->first = conn->next;
	if (conn->next)
		conn->next->prev = conn->prev;
	a->config.server->close(conn);
	check_empty(a);
}

void acceptor_drain(struct acceptor *a, loop_fn on_empty, void *user)
{
	struct accepted *next;

	a->draining = true;
	a->on_empty = on_empty;
	a->on_empty_user = user;
	for (struct accepted *conn = a->first; conn; conn = next) {
		next = conn->next;
		a->config.server->drain(conn);
		accepted_flush(conn);
	}
	check_empty(a);
}

struct accepted *fake_connect(bool is_unix)
{
	struct accepted *conn = current->config.server->open(current->config.user, is_unix);

	conn->acceptor = current;
	conn->is_unix = is_unix;
	conn->open = true;
	conn->next = current->first;
	if (conn->next)
		conn->next->prev = conn;
	current->first = conn;
	/* as a connection does that has something to say at first */
	accepted_flush(conn);
	return conn;
}

bool fake_is_open(const struct accepted *conn)
{
	for (const struct accepted *c = current->first; c; c = c->next) {
		if (c == conn)
			return true;
	}
	return false;
}

void accepted_flush(struct accepted *conn)
{
	const struct acceptor_server *server = conn->acceptor->config.server;
	CLEANUP(error_freep) struct error *err = NULL;
	void *self = server->protocol_self(conn);
	bool over = false;
	size_t n;

	do {
		CLEANUP(buf_done) struct buf out = BUF_INIT(LIMIT_OUT_BYTES);

		over = server->protocol->send(self, &out, &err) < 0;
		n = out.len;
	} while (!over && n > 0);
	if (over || server->protocol->is_done(self))
		fake_close(conn);
}

void fake_receive(struct accepted *conn, struct span bytes)
{
	const struct acceptor_server *server = conn->acceptor->config.server;
	struct error *err = NULL;

	if (server->protocol->receive(server->protocol_self(conn), bytes, &err) < 0)
		fuzz_error(err);
	accepted_flush(conn);
}
