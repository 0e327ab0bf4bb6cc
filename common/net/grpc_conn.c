#include "net/grpc_conn.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"

/* of a method that does not exist, in the log */
#define MAX_LOGGED_PATH 256

static struct grpc_stream *stream_find(const struct grpc_conn *c, int32_t id)
{
	for (struct grpc_stream *st = c->streams; st; st = st->next) {
		if (st->id == id)
			return st;
	}
	return NULL;
}

static void reject(
	struct grpc_conn *c, int32_t id, const struct grpc_head *head, unsigned http, const struct error *e)
{
	size_t n = head->path.n < MAX_LOGGED_PATH ? head->path.n : MAX_LOGGED_PATH;
	CLEANUP(free_charp) char *path = x_strndup((const char *)head->path.p, n);

	grpc_reply_error(c->io.h2, id, http, e);
	grpc_log_end("gRPC call refused", path, c->server->calls++, clock_ns(), e);
}

static void on_headers(void *user, int32_t id, const struct h2_header *headers, size_t n, bool is_trailer)
{
	CLEANUP(error_freep) struct error *err = NULL;
	struct grpc_conn *c = user;
	struct grpc_head head;
	unsigned http;

	(void)is_trailer;
	if (grpc_head_read(c->server->config.services, headers, n, &head, &http, &err) < 0)
		reject(c, id, &head, http, err);
	else
		grpc_stream_new(c, id, &head);
}

/* A call that was answered already has no stream here, while the rest of its request may still arrive. */
static void on_data(void *user, int32_t id, struct span data)
{
	struct grpc_stream *st = stream_find(user, id);

	if (st)
		grpc_stream_feed(st, data);
}

static void on_end(void *user, int32_t id)
{
	struct grpc_stream *st = stream_find(user, id);

	if (st)
		grpc_stream_run(st);
}

static void on_close(void *user, int32_t id, uint32_t code)
{
	struct grpc_stream *st = stream_find(user, id);

	(void)code;
	if (st)
		grpc_stream_abandon(st);
}

static const struct h2_events events = {
	.on_headers = on_headers,
	.on_data = on_data,
	.on_end = on_end,
	.on_close = on_close,
};

static void on_round(void *user, bool over)
{
	if (over)
		grpc_conn_close(user);
}

int grpc_conn_new(struct grpc_server *s, int fd, bool is_unix, struct error **err)
{
	struct grpc_conn *c = x_calloc(1, sizeof(*c));
	struct h2 *h2 = h2_server_new(!is_unix, &events, c);

	if (h2_io_start(&c->io, s->config.loop, fd, h2, false, on_round, c, err) < 0) {
		free(c);
		return -1;
	}
	c->server = s;
	c->next = s->conns;
	if (c->next)
		c->next->prev = c;
	s->conns = c;
	s->conns_n++;
	return 0;
}

void grpc_conn_close(struct grpc_conn *c)
{
	struct grpc_server *s = c->server;

	if (c->io.why)
		log_debug("gRPC connection lost", F_ERR(c->io.why));
	while (c->streams)
		grpc_stream_abandon(c->streams);
	h2_io_stop(&c->io);
	if (c->prev)
		c->prev->next = c->next;
	else
		s->conns = c->next;
	if (c->next)
		c->next->prev = c->prev;
	s->conns_n--;
	free(c);
	grpc_server_check(s);
}

void grpc_conn_flush(struct grpc_conn *c)
{
	if (!h2_io_flush(&c->io))
		grpc_conn_close(c);
}

void grpc_conn_drain(struct grpc_conn *c)
{
	struct grpc_stream *next;

	for (struct grpc_stream *st = c->streams; st; st = next) {
		next = st->next;
		if (st->running)
			continue;
		h2_reset(c->io.h2, st->id, H2_REFUSED_STREAM);
		grpc_stream_abandon(st);
	}
	h2_shutdown(c->io.h2);
	grpc_conn_flush(c);
}
