/* SPDX-License-Identifier: Apache-2.0 */
/*
 * http_crowd.h - an HTTP server and many clients of it in one thread: the clients act between rounds of the
 * loop.
 */
#pragma once

#include "base/buf.h"
#include "net/http1/http_server.h"

#define CROWD_ROUND_MS 1

struct crowd {
	struct loop *loop;
	struct loop_timer *tick;
	struct http_server *server;
	struct buf heard; /* by crowd_hear() */
	unsigned rounds;  /* of crowd_run() */
};

/** crowd_open() - serve @routes on loopback; see struct http_server_config for the limits. */
void crowd_open(struct crowd *c, const struct http_route *routes, const struct http_server_config *limits);
void crowd_close(struct crowd *c);

/** crowd_run() - let the server work for CROWD_ROUND_MS. */
void crowd_run(struct crowd *c);

/** crowd_dial() - a socket that does not block, connecting. */
int crowd_dial(const struct crowd *c);

/** crowd_say() - send @text, running the server until the socket has taken it. */
void crowd_say(struct crowd *c, int fd, const char *text);

/** crowd_hear() - run the server until what came from it ends in @end. Return: what came. */
const char *crowd_hear(struct crowd *c, int fd, const char *end);

/** crowd_is_closed() - whether the server has ended @fd; what comes before is thrown away. */
bool crowd_is_closed(int fd);
