/* SPDX-License-Identifier: Apache-2.0 */
#include "net/core/conn.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/mem.h"
#include "net/core/addr.h"
#include "net/core/slow_reader.h"
#include "net/limits.h"

/* Limits for one connection per round of the loop: one connection must not delay the others, so the rest is
 * read in the next round. */
#define READ_BYTES  (32u << 10)
#define READ_ROUNDS 8
#define SEND_ROUNDS 2

/* Plain bytes of one TLS record */
#define PLAIN_BYTES (16u << 10)

/* Records add less than an eighth to what a protocol gives. */
#define CIPHER_BYTES (LIMIT_OUT_BYTES + LIMIT_OUT_BYTES / 8)

/* Connections may idle for long: only a small buffer is kept for the next call. */
#define OUT_KEEP_BYTES 4096

/* Both flights of a handshake, with chains of certificates */
#define SHAKE_BYTES (64u << 10)

enum progress { PROGRESS_MORE, PROGRESS_WAIT, PROGRESS_OVER };
enum phase { PHASE_CONNECTING, PHASE_SHAKING, PHASE_OPEN };

/* Outlives the connection while a thread works on it. */
struct shake {
	struct handshake job;
	struct conn *conn; /* NULL: has gone */
	bool running;
};

struct conn {
	struct conn_config config;
	int fd;
	enum phase phase;
	struct loop_watch *watch;
	unsigned events; /* what is watched */
	struct shake *shake;
	struct tls *tls;           /* after the handshake */
	struct buf out;            /* for the socket */
	size_t sent;               /* bytes of out that it has taken */
	uint64_t stalled_since_ns; /* slow_reader.h, by LIMIT_STALLED_BYTES_PER_S */
	uint64_t behind_since_ns;  /* by LIMIT_BEHIND_BYTES_PER_S */
	bool heard;
	bool lingering; /* all is said, the peer's end is waited for */
	bool shake_failed;
	struct error *why; /* why the connection is over; NULL when it ended as its protocol wants it */
};

static void watch(struct conn *c, unsigned events)
{
	if (c->events == events)
		return;
	c->events = events;
	loop_watch_set(c->watch, events);
}

static void give_up(struct conn *c, int os_errno, const char *what)
{
	if (!c->why)
		err_set_errno(&c->why, ERR_UNAVAILABLE, os_errno, "%s", what);
}

static void hear_the_rest(struct conn *c);

static void took(struct conn *c, size_t n)
{
	uint64_t now_ns;

	c->sent += n;
	if (!c->behind_since_ns)
		return;
	now_ns = clock_ns();
	slow_reader_progress(&c->stalled_since_ns, n, LIMIT_STALLED_BYTES_PER_S, now_ns);
	slow_reader_progress(&c->behind_since_ns, n, LIMIT_BEHIND_BYTES_PER_S, now_ns);
}

static void took_nothing(struct conn *c)
{
	uint64_t now_ns = clock_ns();

	slow_reader_begin(&c->stalled_since_ns, now_ns);
	slow_reader_begin(&c->behind_since_ns, now_ns);
}

static enum progress send_some(struct conn *c)
{
	ssize_t n = send(c->fd, c->out.data + c->sent, c->out.len - c->sent, MSG_NOSIGNAL);
	int os_errno;

	if (n >= 0) {
		took(c, (size_t)n);
		return PROGRESS_MORE;
	}
	if (errno == EINTR)
		return PROGRESS_MORE;
	if (errno == EAGAIN) {
		took_nothing(c);
		return PROGRESS_WAIT;
	}
	os_errno = errno;
	hear_the_rest(c);
	give_up(c, os_errno, "send");
	return PROGRESS_OVER;
}

/* Return: PROGRESS_MORE when all of out is sent. */
static enum progress send_out(struct conn *c)
{
	enum progress p = PROGRESS_MORE;

	while (p == PROGRESS_MORE && c->sent < c->out.len)
		p = send_some(c);
	if (p != PROGRESS_MORE)
		return p;
	c->sent = 0;
	c->stalled_since_ns = c->behind_since_ns = 0;
	if (c->out.cap > OUT_KEEP_BYTES)
		buf_done(&c->out);
	else
		buf_reset(&c->out);
	return PROGRESS_MORE;
}

static int fill_out_tls(struct conn *c)
{
	struct buf plain = BUF_INIT(LIMIT_OUT_BYTES);
	int rv = c->config.protocol->send(c->config.self, &plain, &c->why);

	if (rv == 0 && plain.len > 0)
		rv = tls_write(c->tls, buf_span(&plain), &c->out, &c->why);
	buf_done(&plain);
	return rv;
}

static int fill_out(struct conn *c)
{
	if (c->tls)
		return fill_out_tls(c);
	return c->config.protocol->send(c->config.self, &c->out, &c->why);
}

/* The peer learns that it has got everything; it does not matter whether it reads this. */
static void say_goodbye(struct conn *c)
{
	if (c->tls)
		tls_close(c->tls, &c->out);
	if (c->out.len > c->sent)
		send(c->fd, c->out.data + c->sent, c->out.len - c->sent, MSG_NOSIGNAL);
	buf_reset(&c->out);
	c->sent = 0;
}

/* The protocol is done. Return: PROGRESS_MORE when the peer may still send for a while. */
static enum progress finish(struct conn *c)
{
	const struct conn_protocol *protocol = c->config.protocol;

	if (!c->lingering)
		say_goodbye(c);
	addr_keep_unsent(c->fd);
	if (!protocol->lingers || !protocol->lingers(c->config.self))
		return PROGRESS_OVER;
	if (!c->lingering)
		shutdown(c->fd, SHUT_WR);
	c->lingering = true;
	return PROGRESS_MORE;
}

/* Return: PROGRESS_MORE when all is sent and the connection goes on. PROGRESS_WAIT: the loop calls when the
 * socket takes more, which may be at once: requests that wait in one connection do not hold up the others. */
static enum progress send_all(struct conn *c)
{
	for (int round = 0;; round++) {
		enum progress p = send_out(c);

		if (p != PROGRESS_MORE)
			return p;
		if (round == SEND_ROUNDS) {
			/* The socket may have taken all so far, and take nothing more. */
			took_nothing(c);
			return PROGRESS_WAIT;
		}
		if (fill_out(c) < 0)
			return PROGRESS_OVER;
		if (c->out.len > 0)
			continue;
		if (!c->config.protocol->is_done(c->config.self))
			return PROGRESS_MORE;
		return finish(c);
	}
}

bool conn_flush(struct conn *c)
{
	enum progress p;

	if (c->phase != PHASE_OPEN)
		return true;
	p = send_all(c);
	watch(c, p == PROGRESS_WAIT ? LOOP_WRITE : LOOP_READ);
	return p != PROGRESS_OVER;
}

/* Return: PROGRESS_MORE when all of @bytes was taken. */
static enum progress take_tls(struct conn *c, struct span bytes)
{
	uint8_t plain[PLAIN_BYTES];
	bool closed = false;
	size_t n;

	do {
		if (tls_read(c->tls, &bytes, plain, sizeof(plain), &n, &closed, &c->why) < 0)
			return PROGRESS_OVER;
		if (n > 0 &&
			c->config.protocol->receive(c->config.self, (struct span){plain, n}, &c->why) < 0)
			return PROGRESS_OVER;
	} while (n > 0);
	if (!closed)
		return PROGRESS_MORE;
	err_set(&c->why, ERR_UNAVAILABLE, "connection closed by the peer");
	return PROGRESS_OVER;
}

static enum progress take(struct conn *c, struct span bytes)
{
	c->heard = true;
	if (c->lingering)
		return PROGRESS_MORE;
	if (c->tls)
		return take_tls(c, bytes);
	return c->config.protocol->receive(c->config.self, bytes, &c->why) < 0 ? PROGRESS_OVER
									       : PROGRESS_MORE;
}

/* Return: PROGRESS_MORE with *@ret_n bytes, or why there are none. */
static enum progress read_some(struct conn *c, uint8_t *in, size_t room, size_t *ret_n)
{
	ssize_t n;

	do {
		n = recv(c->fd, in, room, 0);
	} while (n < 0 && errno == EINTR);
	if (n > 0) {
		*ret_n = (size_t)n;
		return PROGRESS_MORE;
	}
	if (n < 0 && errno == EAGAIN)
		return PROGRESS_WAIT;
	if (n < 0)
		give_up(c, errno, "receive");
	else if (!c->why && !c->lingering)
		err_set(&c->why, ERR_UNAVAILABLE, "connection closed by the peer");
	return PROGRESS_OVER;
}

/* A peer that has hung up may have said why, and what it did not look at. */
static void hear_the_rest(struct conn *c)
{
	uint8_t in[READ_BYTES];
	size_t n;

	for (int i = 0; i < READ_ROUNDS && c->phase == PHASE_OPEN; i++) {
		if (read_some(c, in, sizeof(in), &n) != PROGRESS_MORE ||
			take(c, (struct span){in, n}) != PROGRESS_MORE)
			break;
	}
}

/* A read that does not fill the buffer has emptied the socket, so no further call is needed. */
static enum progress receive_some(struct conn *c)
{
	uint8_t in[READ_BYTES];
	size_t n;
	enum progress p = read_some(c, in, sizeof(in), &n);

	if (p != PROGRESS_MORE)
		return p;
	p = take(c, (struct span){in, n});
	return p == PROGRESS_MORE && n < sizeof(in) ? PROGRESS_WAIT : p;
}

/* Return: whether the connection goes on. */
static bool receive_all(struct conn *c)
{
	for (int i = 0; i < READ_ROUNDS; i++) {
		enum progress p = receive_some(c);

		if (p == PROGRESS_OVER || !conn_flush(c))
			return false;
		if (p == PROGRESS_WAIT || c->events != LOOP_READ)
			break;
	}
	return true;
}

static void shake_free(struct shake *s)
{
	if (!s)
		return;
	tls_free(s->job.tls);
	buf_done(&s->job.in);
	buf_done(&s->job.out);
	error_free(s->job.error);
	free(s);
}

static void step(struct conn *c)
{
	watch(c, 0);
	c->shake->running = true;
	handshakes_step(c->config.handshakes, &c->shake->job);
}

/* The peer may have sent its first bytes along with the last of the handshake. */
static bool finish_shaking(struct conn *c)
{
	struct shake *s = TAKE_PTR(c->shake);
	struct span rest = buf_span(&s->job.in);
	bool alive = true;

	c->tls = TAKE_PTR(s->job.tls);
	c->phase = PHASE_OPEN;
	if (rest.n > 0)
		alive = take_tls(c, rest) == PROGRESS_MORE;
	shake_free(s);
	return alive && conn_flush(c);
}

/* Return: whether the connection goes on. */
static bool go_on_shaking(struct conn *c)
{
	enum progress p = send_out(c);

	if (c->shake_failed || p == PROGRESS_OVER)
		return false;
	if (p == PROGRESS_WAIT)
		watch(c, LOOP_WRITE);
	else if (c->shake->job.complete)
		return finish_shaking(c);
	else
		watch(c, LOOP_READ);
	return true;
}

static void on_stepped(void *user)
{
	struct shake *s = user;
	struct conn *c = s->conn;

	s->running = false;
	if (!c) {
		shake_free(s);
		return;
	}
	buf_add(&c->out, s->job.out.data, s->job.out.len);
	buf_reset(&s->job.out);
	if (s->job.error) {
		c->shake_failed = true;
		if (!c->why)
			c->why = TAKE_PTR(s->job.error);
	}
	c->config.on_round(c->config.user, !go_on_shaking(c));
}

static struct shake *shake_new(struct conn *c)
{
	struct shake *s = x_calloc(1, sizeof(*s));

	s->conn = c;
	s->job = (struct handshake){
		.tls = c->config.tls,
		.in = BUF_INIT(SHAKE_BYTES),
		.out = BUF_INIT(SHAKE_BYTES),
		.done = on_stepped,
		.user = s,
	};
	return s;
}

static bool shake_readable(struct conn *c)
{
	uint8_t in[PLAIN_BYTES];
	size_t n;
	enum progress p = read_some(c, in, sizeof(in), &n);

	if (p != PROGRESS_MORE)
		return p == PROGRESS_WAIT;
	/* A peer that gave up while its first bytes waited gets no answer, because computing it would be
	 * useless.
	 */
	if (!c->heard && !c->config.connecting && addr_has_hung_up(c->fd)) {
		err_set(&c->why, ERR_UNAVAILABLE, "connection closed by the peer");
		return false;
	}
	c->heard = true;
	buf_add(&c->shake->job.in, in, n);
	if (buf_check(&c->shake->job.in, "TLS handshake of the peer", &c->why) < 0)
		return false;
	step(c);
	return true;
}

/* Return: whether the connection goes on. */
static bool connected(struct conn *c)
{
	if (!c->config.tls) {
		c->phase = PHASE_OPEN;
		return conn_flush(c);
	}
	c->phase = PHASE_SHAKING;
	step(c);
	return true;
}

static bool finish_connecting(struct conn *c)
{
	socklen_t len = sizeof(int);
	int os_errno = 0;

	if (getsockopt(c->fd, SOL_SOCKET, SO_ERROR, &os_errno, &len) < 0)
		os_errno = errno;
	if (os_errno) {
		give_up(c, os_errno, "connect");
		return false;
	}
	return connected(c);
}

static void on_events(void *user, unsigned events, bool failed)
{
	struct conn *c = user;
	bool alive;

	if (c->phase == PHASE_CONNECTING)
		alive = finish_connecting(c);
	else if (c->phase == PHASE_SHAKING)
		alive = events & LOOP_WRITE ? go_on_shaking(c) : shake_readable(c);
	else if (events & LOOP_WRITE)
		alive = conn_flush(c);
	else
		alive = receive_all(c);
	/* The loop reports nothing more after a failure. */
	c->config.on_round(c->config.user, !alive || failed);
}

int conn_new(const struct conn_config *config, int fd, struct conn **ret, struct error **err)
{
	struct conn *c = x_calloc(1, sizeof(*c));

	c->config = *config;
	c->fd = fd;
	c->events = config->connecting ? LOOP_WRITE : LOOP_READ;
	c->phase = config->connecting ? PHASE_CONNECTING : config->tls ? PHASE_SHAKING : PHASE_OPEN;
	c->out = BUF_INIT(config->tls ? CIPHER_BYTES : LIMIT_OUT_BYTES);
	if (config->tls)
		c->shake = shake_new(c);
	if (loop_watch_fd(config->loop, fd, c->events, on_events, c, &c->watch, err) < 0) {
		conn_free(c);
		return -1;
	}
	*ret = c;
	return 0;
}

void conn_free(struct conn *c)
{
	if (!c)
		return;
	loop_watch_close(c->watch);
	close(c->fd);
	/* A step that waits for a thread would compute a signature that is not used. */
	if (c->shake && c->shake->running && !handshakes_cancel(&c->shake->job))
		c->shake->conn = NULL;
	else
		shake_free(c->shake);
	tls_free(c->tls);
	buf_done(&c->out);
	error_free(c->why);
	free(c);
}

bool conn_is_open(const struct conn *c)
{
	return c->phase == PHASE_OPEN;
}

bool conn_is_computing(const struct conn *c)
{
	return c->shake && c->shake->running;
}

bool conn_has_heard(const struct conn *c)
{
	return c->heard;
}

bool conn_waits_unheard(const struct conn *c)
{
	return !c->heard && addr_has_unread(c->fd);
}

bool conn_has_unsent(const struct conn *c)
{
	return addr_has_unsent(c->fd);
}

const struct error *conn_why(const struct conn *c)
{
	return c->why;
}

bool conn_failed_handshake(const struct conn *c)
{
	return c->shake_failed;
}

uint64_t conn_stalled_since_ns(const struct conn *c)
{
	return c->stalled_since_ns;
}

uint64_t conn_behind_since_ns(const struct conn *c)
{
	return c->behind_since_ns;
}

const struct tls *conn_tls(const struct conn *c)
{
	return c->tls;
}

void conn_peer(const struct conn *c, struct buf *out)
{
	addr_peer(c->fd, out);
}
