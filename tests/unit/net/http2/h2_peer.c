/* SPDX-License-Identifier: Apache-2.0 */
#include "h2_peer.h"

#include <netinet/in.h>
#include <nghttp2/nghttp2.h>
#include <sys/socket.h>

#include "base/mem.h"
#include "net/http2/h2_stream.h"

static int receive(void *self, struct span bytes, struct error **err)
{
	const struct h2_peer_conn *c = self;

	return h2_recv(c->side.h2, bytes, err);
}

static int send_some(void *self, struct buf *out, struct error **err)
{
	const struct h2_peer_conn *c = self;

	return h2_send(c->side.h2, out, err);
}

static bool is_done(const void *self)
{
	const struct h2_peer_conn *c = self;

	return h2_is_done(c->side.h2);
}

static const struct conn_protocol protocol = {.receive = receive, .send = send_some, .is_done = is_done};

static void on_round(void *user, bool over)
{
	if (over)
		h2_peer_hang_up(user);
}

static void greet(const struct h2_peer *p, const struct h2 *h)
{
	const nghttp2_settings_entry settings[] = {
		{NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, p->max_streams},
	};

	if (p->max_streams > 0)
		nghttp2_submit_settings(h->session, NGHTTP2_FLAG_NONE, settings, 1);
	if (p->manner == H2_PEER_GREETS_ONLY)
		nghttp2_submit_goaway(h->session, NGHTTP2_FLAG_NONE, 0, NGHTTP2_NO_ERROR, NULL, 0);
}

static void serve(struct h2_peer_conn *c)
{
	CLEANUP(error_freep) struct error *err = NULL;
	const struct conn_config config = {
		.loop = c->peer->loop,
		.handshakes = c->peer->handshakes,
		.tls = c->peer->tls ? tls_new(c->peer->tls, NULL) : NULL,
		.protocol = &protocol,
		.self = c,
		.on_round = on_round,
		.user = c,
	};

	c->side.h2 = h2_server_new(true, &h2_events_of_sides, &c->side);
	c->side.react = c->peer->react;
	greet(c->peer, c->side.h2);
	ASSERT_OK(conn_new(&config, c->fd, &c->conn, &err));
	h2_peer_flush(c);
}

static void on_acceptable(void *user, unsigned events, bool failed)
{
	struct h2_peer *p = user;
	struct h2_peer_conn *c = x_calloc(1, sizeof(*c));
	int fd = accept4(p->listen_fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

	(void)events;
	(void)failed;
	ck_assert_int_ge(fd, 0);
	ck_assert_uint_lt(p->n_conns, ARRAY_SIZE(p->conns));
	p->conns[p->n_conns++] = c;
	c->peer = p;
	c->fd = fd;
	h2_side_init(&c->side);
	if (p->manner == H2_PEER_HANGS_UP)
		h2_peer_hang_up(c);
	else if (p->manner != H2_PEER_IS_SILENT)
		serve(c);
}

void h2_peer_listen(struct h2_peer *p)
{
	CLEANUP(error_freep) struct error *err = NULL;

	ASSERT_OK(addr_listen(&p->addr, &p->listen_fd, &err));
	ASSERT_OK(loop_watch_fd(p->loop, p->listen_fd, LOOP_READ, on_acceptable, p, &p->watch, &err));
}

void h2_peer_deafen(struct h2_peer *p)
{
	if (p->listen_fd < 0)
		return;
	loop_watch_close(p->watch);
	addr_unlisten(&p->addr);
	close(p->listen_fd);
	p->listen_fd = -1;
}

static void find_port(struct h2_peer *p)
{
	struct sockaddr_in sa;
	socklen_t len = sizeof(sa);

	ck_assert_int_eq(getsockname(p->listen_fd, (struct sockaddr *)&sa, &len), 0);
	p->addr.port = ntohs(sa.sin_port);
	free(p->endpoint);
	p->endpoint = x_asprintf("tcp://%s:%u", p->addr.host, p->addr.port);
}

void h2_peer_open(struct h2_peer *p, struct loop *loop, const char *endpoint,
	void (*react)(struct h2_side *side, enum h2_event event, int32_t stream))
{
	CLEANUP(error_freep) struct error *err = NULL;

	*p = (struct h2_peer){.loop = loop, .react = react};
	p->endpoint = endpoint ? x_strdup(endpoint) : x_asprintf("unix://%s/peer", tmpdir);
	ASSERT_OK(addr_parse(p->endpoint, &p->addr, &err));
	h2_peer_listen(p);
	if (!p->addr.is_unix)
		find_port(p);
}

void h2_peer_close(struct h2_peer *p)
{
	h2_peer_deafen(p);
	for (unsigned i = 0; i < p->n_conns; i++) {
		struct h2_peer_conn *c = p->conns[i];

		h2_peer_hang_up(c);
		h2_side_done(&c->side);
		free(c);
	}
	addr_done(&p->addr);
	free(p->endpoint);
}

struct h2_peer_conn *h2_peer_conn(struct h2_peer *p, unsigned number)
{
	ck_assert_uint_ge(p->n_conns, number);
	return p->conns[number - 1];
}

const char *h2_peer_log(struct h2_peer *p, unsigned number)
{
	return buf_str(&h2_peer_conn(p, number)->side.log);
}

void h2_peer_flush(struct h2_peer_conn *c)
{
	if (!conn_flush(c->conn))
		h2_peer_hang_up(c);
}

void h2_peer_hang_up(struct h2_peer_conn *c)
{
	if (!c->conn && c->fd >= 0)
		close(c->fd);
	c->fd = -1;
	conn_free(TAKE_PTR(c->conn));
	h2_free(TAKE_PTR(c->side.h2));
}

void h2_peer_cut(struct h2_peer_conn *c)
{
	shutdown(c->fd, SHUT_RDWR);
}

void h2_peer_goaway(struct h2_peer_conn *c, int32_t last_stream, uint32_t code)
{
	nghttp2_submit_goaway(c->side.h2->session, NGHTTP2_FLAG_NONE, last_stream, code, NULL, 0);
}

static void on_tick(void *user)
{
	loop_stop(user);
}

void h2_peer_until(struct h2_peer *p, bool (*done)(void *user), void *user)
{
	struct loop_timer *tick = loop_timer_new(p->loop, on_tick, p->loop);

	loop_timer_set(tick, 1, 1);
	while (!done(user))
		loop_run(p->loop);
	loop_timer_close(tick);
}

struct wanted {
	struct h2_peer *peer;
	unsigned number;
	const char *text;
};

static bool has_logged(void *user)
{
	const struct wanted *w = user;

	return w->peer->n_conns >= w->number && strstr(h2_peer_log(w->peer, w->number), w->text);
}

void h2_peer_until_logged(struct h2_peer *p, unsigned number, const char *text)
{
	h2_peer_until(p, has_logged, &(struct wanted){p, number, text});
}

static bool is_gone(void *user)
{
	const struct wanted *w = user;

	return w->peer->n_conns >= w->number && !h2_peer_conn(w->peer, w->number)->conn;
}

void h2_peer_until_gone(struct h2_peer *p, unsigned number)
{
	h2_peer_until(p, is_gone, &(struct wanted){p, number, NULL});
}

static bool is_zero(void *user)
{
	unsigned *left = user;

	return (*left)-- == 0;
}

void h2_peer_rounds(struct h2_peer *p)
{
	unsigned rounds = 20;

	h2_peer_until(p, is_zero, &rounds);
}
