/* SPDX-License-Identifier: Apache-2.0 */
#include "net/core/acceptor.h"

#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "net/core/addr.h"
#include "net/core/log_quota.h"
#include "net/limits.h"

struct listener;

struct acceptor {
	struct acceptor_config config;
	struct listener *listeners;
	struct accepted *first; /* in the order of their arrival */
	struct accepted *last;
	unsigned n;
	unsigned most; /* of n since it was 0 */
	unsigned newcomers;
	uint64_t got_on_ns;       /* the last handshake was complete */
	bool paused;              /* nothing is accepted */
	struct loop_timer *retry; /* to accept again */
	struct loop_timer *sweep; /* runs while there are connections */
	struct log_quota *refusals;
	bool draining;
	uint64_t draining_since_ns;
	bool emptied;
	loop_fn on_empty;
	void *on_empty_user;
};

/* It has not made a valid request yet. */
static bool accepted_is_new(const struct accepted *c)
{
	return c->requests == 0;
}

static void accepted_close(struct accepted *c);
static void acceptor_log(struct acceptor *a, const struct conn *c, const char *msg, const struct error *e);

/* Longer than any limit on waiting. */
#define FAR_NS (3600 * NS_PER_S)

/* The reason why @c has to be closed, which is the time limit that it has exceeded; NULL: it may stay
 * open. */
static const char *overdue(const struct accepted *c, uint64_t now_ns)
{
	const struct acceptor *a = c->acceptor;
	uint64_t age_ms = (now_ns - c->since_ns) / NS_PER_MS;
	uint64_t stalled_ns = conn_stalled_since_ns(c->conn);

	if (!c->open && age_ms > LIMIT_HANDSHAKE_MS)
		return "TLS handshake takes too long";
	if (c->open && accepted_is_new(c) && age_ms > LIMIT_FIRST_REQUEST_MS)
		return "no valid request within the time limit";
	if (a->draining && (now_ns - a->draining_since_ns) / NS_PER_MS >= LIMIT_DRAIN_MS &&
		!a->config.server->is_running(c))
		return "peer does not let the server end";
	if (stalled_ns && (now_ns - stalled_ns) / NS_PER_MS > LIMIT_STALLED_MS)
		return "peer does not read its replies";
	return NULL;
}

static void end_expired(struct accepted *c)
{
	c->acceptor->config.server->drain(c);
	if (conn_flush(c->conn))
		log_debug("connection closed although replies were still to be sent");
	accepted_close(c);
}

/* End all that have taken too long. @user: the acceptor */
static void acceptor_sweep(void *user)
{
	struct acceptor *a = user;
	uint64_t now_ns = clock_ns();
	struct accepted *next;

	for (struct accepted *c = a->first; c; c = next) {
		const char *reason = overdue(c, now_ns);

		next = c->next;
		if (reason) {
			acceptor_log(a, c->conn, reason, NULL);
			accepted_close(c);
		} else if (a->config.server->has_expired(c, now_ns)) {
			end_expired(c);
		}
	}
}

/* The oldest known connection that would expire if nothing happened on it from now on, or NULL. A peer that
 * has just made a request may be sending the next one, which it could not repeat elsewhere. */
static struct accepted *find_idle(const struct acceptor *a, uint64_t now_ns)
{
	for (struct accepted *c = a->first; c; c = c->next) {
		if (!accepted_is_new(c) && now_ns - c->asked_ns >= LIMIT_REUSE_MS * NS_PER_MS &&
			a->config.server->has_expired(c, now_ns + FAR_NS))
			return c;
	}
	return NULL;
}

/* A peer that is dropped during its handshake, or in a crowd that is served one by one, connects again. */
static uint64_t grace_ms(const struct accepted *c, uint64_t now_ns)
{
	bool gets_on = now_ns - c->acceptor->got_on_ns < LIMIT_NEWCOMER_MS * NS_PER_MS;

	if (c->acceptor->config.is_brief || !conn_has_heard(c->conn))
		return LIMIT_SILENT_MS;
	return gets_on || conn_is_computing(c->conn) ? LIMIT_CROWD_MS : LIMIT_NEWCOMER_MS;
}

/* A newcomer whose first bytes wait is not silent: the server is late, and reads them before it closes the
 * connection. */
static bool has_had_its_time(const struct accepted *c, uint64_t now_ns)
{
	return accepted_is_new(c) && (now_ns - c->since_ns) / NS_PER_MS >= grace_ms(c, now_ns) &&
	       !conn_waits_unheard(c->conn);
}

static bool is_over(uint64_t since_ns, uint64_t limit_ms, uint64_t now_ns)
{
	return since_ns && now_ns - since_ns >= limit_ms * NS_PER_MS;
}

/* Since when the peer does not read its replies, or has further requests before it had the replies to the
 * last ones; 0: neither, or not for long enough. */
static uint64_t greedy_since_ns(const struct accepted *c, uint64_t now_ns)
{
	const struct acceptor_server *server = c->acceptor->config.server;
	uint64_t behind_ns = conn_behind_since_ns(c->conn);
	uint64_t queued_ns = server->queued_since_ns ? server->queued_since_ns(c) : 0;

	if (is_over(behind_ns, LIMIT_BEHIND_MS, now_ns))
		return behind_ns;
	return is_over(queued_ns, LIMIT_QUEUED_MS, now_ns) ? queued_ns : 0;
}

/* Finds the connection whose peer has been greedy for longest; NULL: none. */
static struct accepted *find_greedy(const struct acceptor *a, uint64_t now_ns)
{
	uint64_t oldest_ns = now_ns + 1;
	struct accepted *found = NULL;

	for (struct accepted *c = a->first; c; c = c->next) {
		uint64_t since_ns = greedy_since_ns(c, now_ns);

		if (since_ns == 0 || since_ns >= oldest_ns)
			continue;
		oldest_ns = since_ns;
		found = c;
	}
	return found;
}

/* Finds the connection that is closed for a new one: the oldest newcomer whose time is over; otherwise, if
 * all places are in use, the one whose peer has been greedy for longest, or an idle one; NULL: none. */
static struct accepted *acceptor_find_evictable(const struct acceptor *a)
{
	uint64_t now_ns = clock_ns();
	struct accepted *greedy;

	for (struct accepted *c = a->first; c; c = c->next) {
		if (has_had_its_time(c, now_ns))
			return c;
	}
	if (a->n < a->config.max_connections)
		return NULL;
	greedy = find_greedy(a, now_ns);
	return greedy ? greedy : find_idle(a, now_ns);
}

/* @c makes room. */
static void accepted_evict(struct accepted *c)
{
	const char *why = "too many connections: an idle one is dropped";

	if (accepted_is_new(c))
		why = "too many peers without a request: the oldest is dropped";
	else if (greedy_since_ns(c, clock_ns()))
		why = "too many connections: one that asks for more than it reads is dropped";
	acceptor_log(c->acceptor, c->conn, why, NULL);
	accepted_close(c);
}

#define ACCEPT_BATCH     LIMIT_NEWCOMERS
#define ACCEPT_BATCH_TLS 64

#define ACCEPT_RETRY_MS 100
#define CROWD           64

#define SWEEP_MS 1000

struct listener {
	struct listener *next;
	struct acceptor *acceptor;
	struct addr addr;
	struct tls_context *tls;
	int fd;
	struct loop_watch *watch;
};

static void set_paused(struct acceptor *a, bool paused)
{
	a->paused = paused;
	for (struct listener *l = a->listeners; l; l = l->next)
		loop_watch_set(l->watch, paused ? 0 : LOOP_READ);
}

static void on_retry(void *user)
{
	set_paused(user, false);
}

static void pause_for_now(struct acceptor *a)
{
	set_paused(a, true);
	loop_timer_set(a->retry, ACCEPT_RETRY_MS, 0);
}

/* Log a warning for a peer that is closed, within the quota. @e: why, or NULL */
static void acceptor_log(struct acceptor *a, const struct conn *c, const char *msg, const struct error *e)
{
	struct buf peer = BUF_INIT(128);

	if (!log_quota_take(a->refusals, clock_ns()))
		return;
	conn_peer(c, &peer);
	if (e)
		log_warn(msg, F_STR("server", a->config.name), F_STR("peer", buf_str(&peer)), F_ERR(e));
	else
		log_warn(msg, F_STR("server", a->config.name), F_STR("peer", buf_str(&peer)));
	buf_done(&peer);
}

static void check_empty(struct acceptor *a)
{
	if (!a->draining || a->emptied || a->first)
		return;
	/* Posted: the callback may free the acceptor, which callers of this still use. */
	a->emptied = true;
	loop_post(a->config.loop, a->on_empty, a->on_empty_user);
}

static void unlink_accepted(struct acceptor *a, struct accepted *c)
{
	*(c->prev ? &c->prev->next : &a->first) = c->next;
	*(c->next ? &c->next->prev : &a->last) = c->prev;
	a->n--;
	if (accepted_is_new(c))
		a->newcomers--;
}

/* The memory of a crowd is not kept for the next one. */
static void on_last(struct acceptor *a)
{
	loop_timer_stop(a->sweep);
	if (a->most >= CROWD)
		mem_trim();
	a->most = 0;
}

/* The connection ends here and now; @c is freed. */
static void accepted_close(struct accepted *c)
{
	struct acceptor *a = c->acceptor;

	unlink_accepted(a, c);
	conn_free(TAKE_PTR(c->conn));
	a->config.server->close(c);
	if (!a->first)
		on_last(a);
	if (!a->draining && a->paused)
		set_paused(a, false);
	check_empty(a);
}

static void on_over(struct accepted *c)
{
	const struct error *why = conn_why(c->conn);

	if (conn_failed_handshake(c->conn))
		acceptor_log(c->acceptor, c->conn, "TLS handshake failed", why);
	else if (why && why->code == ERR_EXHAUSTED)
		acceptor_log(c->acceptor, c->conn, "connection dropped", why);
	else if (why && accepted_is_new(c))
		log_debug("connection without a request", F_STR("server", c->acceptor->config.name),
			F_ERR(why));
	accepted_close(c);
}

static void count_requests(struct accepted *c)
{
	uint64_t requests = c->acceptor->config.server->requests(c);

	if (requests == c->requests)
		return;
	if (accepted_is_new(c))
		c->acceptor->newcomers--;
	c->requests = requests;
	c->asked_ns = clock_ns();
}

static void on_round(void *user, bool over)
{
	struct accepted *c = user;

	if (over) {
		on_over(c);
		return;
	}
	if (!c->open && conn_is_open(c->conn)) {
		c->open = true;
		c->since_ns = c->acceptor->got_on_ns = clock_ns();
	}
	count_requests(c);
}

void accepted_flush(struct accepted *c)
{
	if (!conn_flush(c->conn))
		on_over(c);
}

static bool is_full(const struct acceptor *a)
{
	return a->newcomers >= LIMIT_NEWCOMERS || a->n >= a->config.max_connections;
}

static bool peer_is_allowed(struct acceptor *a, int fd)
{
	struct ucred peer;

	if (addr_is_own_user(fd, &peer))
		return true;
	if (peer.pid != 0 && log_quota_take(a->refusals, clock_ns()))
		log_warn("peer of another user refused", F_U64("uid", peer.uid),
			F_U64("pid", (uint64_t)peer.pid));
	return false;
}

static void add_accepted(struct acceptor *a, struct accepted *c)
{
	c->prev = a->last;
	*(a->last ? &a->last->next : &a->first) = c;
	a->last = c;
	if (a->n++ == 0)
		loop_timer_set(a->sweep, SWEEP_MS, SWEEP_MS);
	a->newcomers++;
	if (a->n > a->most)
		a->most = a->n;
}

static int serve(struct listener *l, int fd, struct error **err)
{
	struct acceptor *a = l->acceptor;
	const struct acceptor_server *server = a->config.server;
	struct accepted *c = server->open(a->config.user, l->addr.is_unix);

	c->acceptor = a;
	c->since_ns = clock_ns();
	c->open = l->tls == NULL;
	c->is_unix = l->addr.is_unix;
	addr_peer_host(fd, c->host);
	const struct conn_config config = {
		.loop = a->config.loop,
		.handshakes = a->config.handshakes,
		.tls = l->tls ? tls_new(l->tls, /* peer_name= */ NULL) : NULL,
		.protocol = server->protocol,
		.self = server->protocol_self(c),
		.on_round = on_round,
		.user = c,
	};
	if (conn_new(&config, fd, &c->conn, err) < 0) {
		server->close(c);
		return -1;
	}
	add_accepted(a, c);
	return 0;
}

static void accepted_one(struct listener *l, int fd)
{
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(error_freep) struct error *ignored = NULL;

	if (l->addr.is_unix && !peer_is_allowed(l->acceptor, fd)) {
		close(fd);
		return;
	}
	/* they only make a connection that works anyway better */
	if (!l->addr.is_unix && (addr_set_up_tcp(fd, &ignored) < 0 || addr_bound_sending(fd, &ignored) < 0))
		log_debug("TCP options, ignoring", F_ERR(ignored));
	if (serve(l, fd, &err) < 0 && log_quota_take(l->acceptor->refusals, clock_ns()))
		log_warn("connection dropped", F_STR("server", l->acceptor->config.name), F_ERR(err));
}

/* Return: whether to go on accepting. */
static bool accept_failed(struct acceptor *a, int os_errno)
{
	CLEANUP(error_freep) struct error *err = NULL;

	if (os_errno == EINTR || os_errno == ECONNABORTED)
		return true;
	if (os_errno == EAGAIN)
		return false;
	err_set_errno(&err, ERR_INTERNAL, os_errno, "accept");
	if (log_quota_take(a->refusals, clock_ns()))
		log_warn("cannot accept connections, will try again", F_STR("server", a->config.name),
			F_ERR(err));
	pause_for_now(a);
	return false;
}

/* Other listeners go on. */
static bool hold_back(struct listener *l)
{
	if (!l->tls || handshakes_waiting(l->acceptor->config.handshakes) < LIMIT_HANDSHAKES_WAITING)
		return false;
	loop_watch_set(l->watch, 0);
	loop_timer_set(l->acceptor->retry, ACCEPT_RETRY_MS, 0);
	return true;
}

static void on_acceptable(void *user, unsigned ready, bool failed)
{
	struct listener *l = user;
	struct acceptor *a = l->acceptor;

	(void)ready;
	(void)failed;
	if (hold_back(l))
		return;
	for (unsigned i = 0; i < (l->tls ? ACCEPT_BATCH_TLS : ACCEPT_BATCH); i++) {
		struct accepted *victim = is_full(a) ? acceptor_find_evictable(a) : NULL;
		int fd;

		/* Further peers wait in the backlog. */
		if (is_full(a) && !victim) {
			if (log_quota_take(a->refusals, clock_ns()))
				log_warn("the limit of connections is reached, further peers have to wait",
					F_STR("server", a->config.name));
			pause_for_now(a);
			return;
		}
		fd = accept4(l->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
		if (fd < 0 && !accept_failed(a, errno))
			return;
		if (fd < 0)
			continue;
		if (victim)
			accepted_evict(victim);
		accepted_one(l, fd);
	}
}

static void listener_free(struct listener *l)
{
	if (!l)
		return;
	loop_watch_close(l->watch);
	if (l->fd >= 0) {
		addr_unlisten(&l->addr);
		close(l->fd);
	}
	addr_done(&l->addr);
	tls_context_unref(l->tls);
	free(l);
}
DEFINE_CLEANUP(struct listener *, listener_free);

static void close_listeners(struct acceptor *a)
{
	struct listener *next;

	for (struct listener *l = a->listeners; l; l = next) {
		next = l->next;
		listener_free(l);
	}
	a->listeners = NULL;
}

struct acceptor *acceptor_new(const struct acceptor_config *config)
{
	struct acceptor *a = x_calloc(1, sizeof(*a));
	const struct log_quota_config refusals = {.loop = config->loop,
		.max = LIMIT_LOGGED_REFUSALS,
		.missed_msg = "further peers were refused",
		.server = config->name};

	a->config = *config;
	a->refusals = log_quota_new(&refusals);
	a->retry = loop_timer_new(config->loop, on_retry, a);
	a->sweep = loop_timer_new(config->loop, acceptor_sweep, a);
	return a;
}

void acceptor_free(struct acceptor *a)
{
	if (!a)
		return;
	close_listeners(a);
	a->emptied = true;
	while (a->first)
		accepted_close(a->first);
	loop_timer_close(a->retry);
	loop_timer_close(a->sweep);
	log_quota_free(a->refusals);
	free(a);
}

int acceptor_listen(struct acceptor *a, const char *endpoint, struct tls_context *tls, bool allow_plain_tcp,
	struct error **err)
{
	CLEANUP(listener_freep) struct listener *l = x_calloc(1, sizeof(*l));

	l->fd = -1;
	l->acceptor = a;
	if (addr_parse(endpoint, &l->addr, err) < 0)
		return -1;
	if (!tls && !l->addr.is_unix && !allow_plain_tcp)
		return err_set(err, ERR_INVALID_ARGUMENT,
			"endpoint \"%s\": TCP without TLS serves every user of this host: give -caFile, "
			"-certFile and -keyFile, or -insecure to allow it",
			endpoint);
	l->tls = tls ? tls_context_ref(tls) : NULL;
	if (addr_listen(&l->addr, &l->fd, err) < 0)
		return -1;
	if (loop_watch_fd(
		    a->config.loop, l->fd, a->paused ? 0 : LOOP_READ, on_acceptable, l, &l->watch, err) < 0)
		return -1;
	l->next = a->listeners;
	a->listeners = TAKE_PTR(l);
	return 0;
}

unsigned acceptor_connections(const struct acceptor *a)
{
	return a->n;
}

uint16_t acceptor_port(const struct acceptor *a)
{
	struct sockaddr_in6 sa = {0}; /* the port is at the same place in both families */
	socklen_t len = sizeof(sa);

	if (!a->listeners || getsockname(a->listeners->fd, (struct sockaddr *)&sa, &len) < 0)
		return 0;
	return sa.sin6_family == AF_UNIX ? 0 : ntohs(sa.sin6_port);
}

void acceptor_drain(struct acceptor *a, loop_fn on_empty, void *user)
{
	struct accepted *next;

	assert(!a->draining);
	a->draining = true;
	a->draining_since_ns = clock_ns();
	a->on_empty = on_empty;
	a->on_empty_user = user;
	loop_timer_stop(a->retry);
	close_listeners(a);
	for (struct accepted *c = a->first; c; c = next) {
		next = c->next;
		if (!c->open) {
			accepted_close(c);
			continue;
		}
		a->config.server->drain(c);
		accepted_flush(c);
	}
	check_empty(a);
}
