/* SPDX-License-Identifier: Apache-2.0 */
/*
 * registration_peer.h - the registration of a node at one address of the controller. Private to
 * registration.h.
 *
 * One connection, which is opened again after each loss, and one call at a time. Threads: the loop's.
 */
#pragma once

#include "base/hash.h"
#include "net/grpc/grpc_client.h"
#include "nodes/registration.h"
#include "pacing/backoff.h"
#include "pacing/wait_log.h"

struct registration_peer_config {
	const struct registration_config *registration; /* borrowed */
	const char *instance;                           /* of this run of the driver; borrowed */
	/* the address does not answer: maybe the name has another one by now */
	void (*unreachable)(void *user);
	void (*left)(void *user); /* peer_leave() has ended */
	void *user;
};

struct peer {
	struct peer *next; /* this and the next one are registration.c's */
	bool found;
	struct registration_peer_config config;
	char *address;
	struct grpc_client *client; /* NULL: to be made for the next call */
	struct grpc_client_call *call;
	struct loop_timer *retry;
	struct backoff backoff;
	struct wait_log waiting;
	struct error *failure; /* of what was tried last */
	uint64_t answered_ns;
	char said[SHA224_HEX_LEN + 1];     /* hash of what is on the way */
	char accepted[SHA224_HEX_LEN + 1]; /* hash of what the controller has; "": nothing that is sure */
	bool retrying;                     /* the timer is set */
	bool again;                        /* something has changed since the call was made */
	bool leaving;
};

/** peer_new() - nothing is said yet. Return: never NULL; peer_free(). */
struct peer *peer_new(const struct registration_peer_config *config, const char *address);

/** peer_free() - close the connection. Not from inside a reply of its own. */
void peer_free(struct peer *p);

/** peer_say() - register, or say it again. While it waits to try again, nothing: that will say it. */
void peer_say(struct peer *p);

/** peer_touch() - peer_say() if there is something that the controller was not told. */
void peer_touch(struct peer *p);

/** peer_leave() - unregister. Return: whether there is anything to tell; left() follows then, from the loop.
 */
bool peer_leave(struct peer *p);
