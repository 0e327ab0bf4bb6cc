/*
 * h2_io.h - an HTTP/2 connection (h2.h) behind a non-blocking socket watched by the loop. Private to net/.
 *
 * Reading stops while the peer does not take what we send, which bounds the memory that it can make us use.
 * Threads: the loop's.
 */
#pragma once

#include <stdbool.h>

#include "base/buf.h"
#include "base/error.h"
#include "net/h2.h"
#include "net/loop.h"

struct h2_io {
	struct loop_watch *watch;
	int fd;
	unsigned events; /* what is watched */
	bool connecting;
	struct h2 *h2;
	struct buf out;
	size_t sent;       /* bytes of out that the socket has taken */
	struct error *why; /* why the connection is over; NULL when it ended as HTTP/2 wants it */
	void (*on_round)(void *user, bool over);
	void *user;
};

/**
 * h2_io_start() - begin to read and write.
 * @io:         memory of the caller; h2_io_stop()
 * @fd, @h2:    owned by @io from now on, also when this fails
 * @connecting: the socket is not connected yet (addr_connect())
 * @on_round:   called from the loop after each round of reading and writing; h2_io_stop() is allowed in it,
 * and due when @over
 *
 * Return: 0, or -1 with ERR_INTERNAL; there is nothing to stop then.
 */
int h2_io_start(struct h2_io *io, struct loop *l, int fd, struct h2 *h2, bool connecting,
	void (*on_round)(void *user, bool over), void *user, struct error **err) MUST_CHECK;

/** h2_io_flush() - send what @io->h2 has to send, as far as the socket takes it. Not from callbacks of h2.
 * Return: false when the connection is over: h2_io_stop() is due. */
bool h2_io_flush(struct h2_io *io) MUST_CHECK;

/** h2_io_stop() - close. */
void h2_io_stop(struct h2_io *io);
