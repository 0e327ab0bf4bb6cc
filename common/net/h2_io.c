#include "net/h2_io.h"

#include <errno.h>
#include <sys/socket.h>

/* One connection may not hold up the others: what is left is read in the next round of the loop. */
#define READ_BYTES  (32u << 10)
#define READ_ROUNDS 8

/* The least that h2_send() allows is 160 KiB. */
#define OUT_MAX_BYTES (256u << 10)

/* Connections may idle for long: only a small buffer is kept for the next call. */
#define OUT_KEEP_BYTES 4096

enum progress { PROGRESS_MORE, PROGRESS_WAIT, PROGRESS_OVER };

static void watch(struct h2_io *io, unsigned events)
{
	if (io->events == events)
		return;
	io->events = events;
	loop_watch_set(io->watch, events);
}

static void give_up(struct h2_io *io, int os_errno, const char *what)
{
	if (!io->why)
		err_set_errno(&io->why, ERR_UNAVAILABLE, os_errno, "%s", what);
}

static enum progress send_some(struct h2_io *io)
{
	ssize_t n = send(io->fd, io->out.data + io->sent, io->out.len - io->sent, MSG_NOSIGNAL);

	if (n >= 0) {
		io->sent += (size_t)n;
		return PROGRESS_MORE;
	}
	if (errno == EINTR)
		return PROGRESS_MORE;
	if (errno == EAGAIN)
		return PROGRESS_WAIT;
	give_up(io, errno, "send");
	return PROGRESS_OVER;
}

static void forget_sent(struct h2_io *io)
{
	io->sent = 0;
	if (io->out.cap > OUT_KEEP_BYTES)
		buf_done(&io->out);
	else
		buf_reset(&io->out);
}

/* Return: PROGRESS_MORE when all is sent and the connection goes on. */
static enum progress send_all(struct h2_io *io)
{
	enum progress p;

	do {
		if (io->sent == io->out.len) {
			forget_sent(io);
			if (h2_send(io->h2, &io->out, &io->why) < 0)
				return PROGRESS_OVER;
			if (io->out.len == 0)
				return h2_is_done(io->h2) ? PROGRESS_OVER : PROGRESS_MORE;
		}
		p = send_some(io);
	} while (p == PROGRESS_MORE);
	return p;
}

bool h2_io_flush(struct h2_io *io)
{
	enum progress p;

	if (io->connecting)
		return true;
	p = send_all(io);
	watch(io, p == PROGRESS_WAIT ? LOOP_WRITE : LOOP_READ);
	return p != PROGRESS_OVER;
}

/* A read that does not fill the buffer has emptied the socket: that saves the call that would say so. */
static enum progress receive_some(struct h2_io *io)
{
	uint8_t in[READ_BYTES];
	ssize_t n = recv(io->fd, in, sizeof(in), 0);

	if (n > 0) {
		if (h2_recv(io->h2, (struct span){in, (size_t)n}, &io->why) < 0)
			return PROGRESS_OVER;
		return (size_t)n == sizeof(in) ? PROGRESS_MORE : PROGRESS_WAIT;
	}
	if (n == 0) {
		err_set(&io->why, ERR_UNAVAILABLE, "connection closed by the peer");
		return PROGRESS_OVER;
	}
	if (errno == EINTR)
		return PROGRESS_MORE;
	if (errno == EAGAIN)
		return PROGRESS_WAIT;
	give_up(io, errno, "receive");
	return PROGRESS_OVER;
}

/* Return: whether the connection goes on. */
static bool receive_all(struct h2_io *io)
{
	for (int i = 0; i < READ_ROUNDS; i++) {
		enum progress p = receive_some(io);

		if (p == PROGRESS_OVER || !h2_io_flush(io))
			return false;
		if (p == PROGRESS_WAIT || io->events != LOOP_READ)
			break;
	}
	return true;
}

static bool finish_connecting(struct h2_io *io)
{
	socklen_t len = sizeof(int);
	int os_errno = 0;

	if (getsockopt(io->fd, SOL_SOCKET, SO_ERROR, &os_errno, &len) < 0)
		os_errno = errno;
	if (os_errno) {
		give_up(io, os_errno, "connect");
		return false;
	}
	io->connecting = false;
	return h2_io_flush(io);
}

static void on_events(void *user, unsigned events, bool failed)
{
	struct h2_io *io = user;
	bool alive;

	if (io->connecting)
		alive = finish_connecting(io);
	else if (events & LOOP_WRITE)
		alive = h2_io_flush(io);
	else
		alive = receive_all(io);
	/* The loop reports nothing more after a failure. */
	io->on_round(io->user, !alive || failed);
}

int h2_io_start(struct h2_io *io, struct loop *l, int fd, struct h2 *h2, bool connecting,
	void (*on_round)(void *user, bool over), void *user, struct error **err)
{
	CLEANUP(fd_closep) int owned_fd = fd;
	CLEANUP(h2_freep) struct h2 *owned_h2 = h2;

	*io = (struct h2_io){
		.fd = fd,
		.h2 = h2,
		.connecting = connecting,
		.out = BUF_INIT(OUT_MAX_BYTES),
		.events = connecting ? LOOP_WRITE : LOOP_READ,
		.on_round = on_round,
		.user = user,
	};
	if (loop_watch_fd(l, fd, io->events, on_events, io, &io->watch, err) < 0)
		return -1;
	TAKE_FD(owned_fd);
	TAKE_PTR(owned_h2);
	return 0;
}

void h2_io_stop(struct h2_io *io)
{
	loop_watch_close(io->watch);
	close(io->fd);
	h2_free(io->h2);
	buf_done(&io->out);
	error_free(io->why);
}
