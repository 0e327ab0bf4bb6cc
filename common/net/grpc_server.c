#include "net/grpc_server.h"

#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "base/log.h"
#include "base/mem.h"
#include "net/addr.h"
#include "net/grpc_conn.h"

/* One crowd of new peers may not hold up the connections that exist. */
#define ACCEPT_BATCH 64

#define ACCEPT_RETRY_MS 500

struct grpc_listener {
	struct grpc_listener *next;
	struct grpc_server *server;
	struct addr addr;
	int fd;
	struct loop_watch *watch;
};

static void set_paused(struct grpc_server *s, bool paused)
{
	if (s->paused == paused)
		return;
	s->paused = paused;
	for (struct grpc_listener *l = s->listeners; l; l = l->next)
		loop_watch_set(l->watch, paused ? 0 : LOOP_READ);
}

static void on_retry(void *user)
{
	set_paused(user, false);
}

struct grpc_server *grpc_server_new(const struct grpc_server_config *config)
{
	struct grpc_server *s = x_calloc(1, sizeof(*s));

	s->config = *config;
	s->retry = loop_timer_new(config->loop, on_retry, s);
	return s;
}

static void listener_free(struct grpc_listener *l)
{
	if (!l)
		return;
	loop_watch_close(l->watch);
	if (l->fd >= 0) {
		addr_unlisten(&l->addr);
		close(l->fd);
	}
	addr_done(&l->addr);
	free(l);
}
DEFINE_CLEANUP(struct grpc_listener *, listener_free);

static void close_listeners(struct grpc_server *s)
{
	while (s->listeners) {
		struct grpc_listener *next = s->listeners->next;

		listener_free(s->listeners);
		s->listeners = next;
	}
}

void grpc_server_free(struct grpc_server *s)
{
	if (!s)
		return;
	assert(s->running == 0);
	close_listeners(s);
	while (s->conns)
		grpc_conn_close(s->conns);
	loop_timer_close(s->retry);
	free(s);
}

void grpc_server_check(struct grpc_server *s)
{
	if (!s->draining) {
		set_paused(s, false);
		return;
	}
	if (s->drained || s->conns || s->running > 0)
		return;
	/* Posted: the callback may free the server, which callers of this still use. */
	s->drained = true;
	loop_post(s->config.loop, s->on_drained, s->on_drained_user);
}

/* The file's mode keeps others out already, unless somebody widens it or hands the socket on. */
static bool peer_is_allowed(int fd)
{
	struct ucred peer;
	socklen_t len = sizeof(peer);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) < 0)
		return false;
	if (peer.uid == 0 || peer.uid == geteuid())
		return true;
	log_warn("peer of another user refused", F_U64("uid", peer.uid), F_U64("pid", (uint64_t)peer.pid));
	return false;
}

static void accepted(struct grpc_listener *l, int fd)
{
	CLEANUP(error_freep) struct error *err = NULL;
	const int on = 1;

	if (l->addr.is_unix && !peer_is_allowed(fd)) {
		close(fd);
		return;
	}
	if (!l->addr.is_unix) {
		/* Best effort: both only make a connection that works anyway better. */
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
		setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
	}
	if (grpc_conn_new(l->server, fd, l->addr.is_unix, &err) < 0)
		log_warn("connection dropped", F_ERR(err));
}

/* Return: whether to go on accepting. */
static bool accept_failed(struct grpc_server *s, int os_errno)
{
	CLEANUP(error_freep) struct error *err = NULL;

	if (os_errno == EINTR || os_errno == ECONNABORTED)
		return true;
	if (os_errno == EAGAIN)
		return false;
	/* Such as EMFILE: the listener would stay ready, and the loop would spin. */
	err_set_errno(&err, ERR_EXHAUSTED, os_errno, "accept");
	log_warn("no more connections for a while", F_ERR(err));
	set_paused(s, true);
	loop_timer_set(s->retry, ACCEPT_RETRY_MS, 0);
	return false;
}

static void on_acceptable(void *user, unsigned ready, bool failed)
{
	struct grpc_listener *l = user;
	struct grpc_server *s = l->server;

	(void)ready;
	(void)failed;
	for (int i = 0; i < ACCEPT_BATCH; i++) {
		int fd;

		/* Further peers wait in the backlog until a connection ends. */
		if (s->conns_n >= GRPC_MAX_CONNECTIONS) {
			set_paused(s, true);
			return;
		}
		fd = accept4(l->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
		if (fd >= 0)
			accepted(l, fd);
		else if (!accept_failed(s, errno))
			return;
	}
}

int grpc_server_listen(struct grpc_server *s, const char *endpoint, struct error **err)
{
	CLEANUP(listener_freep) struct grpc_listener *l = x_calloc(1, sizeof(*l));

	l->fd = -1;
	l->server = s;
	if (addr_parse(endpoint, &l->addr, err) < 0)
		return -1;
	if (!addr_is_loopback(&l->addr) && !s->config.allow_remote)
		return err_set(err, ERR_INVALID_ARGUMENT,
			"endpoint \"%s\": TCP without TLS beyond this host has to be allowed explicitly",
			endpoint);
	if (addr_listen(&l->addr, &l->fd, err) < 0)
		return -1;
	if (loop_watch_fd(
		    s->config.loop, l->fd, s->paused ? 0 : LOOP_READ, on_acceptable, l, &l->watch, err) < 0)
		return -1;
	l->next = s->listeners;
	s->listeners = TAKE_PTR(l);
	return 0;
}

void grpc_server_drain(struct grpc_server *s, loop_fn on_drained, void *user)
{
	struct grpc_conn *next;

	assert(!s->draining);
	s->draining = true;
	s->on_drained = on_drained;
	s->on_drained_user = user;
	loop_timer_stop(s->retry);
	close_listeners(s);
	for (struct grpc_conn *c = s->conns; c; c = next) {
		next = c->next;
		grpc_conn_drain(c);
	}
	grpc_server_check(s);
}
