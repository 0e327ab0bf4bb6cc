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

/* The number of the latest report, which is the same for all controllers. */
struct report_number {
	char hash[SHA224_HEX_LEN + 1]; /* hash of that report; "": there was none */
	uint64_t number;
};

struct registration_peer_config {
	const struct registration_config *registration; /* borrowed */
	const char *instance;                           /* of this run of the driver; borrowed */
	struct report_number *number;                   /* shared by all peers; borrowed */
	/* the address does not answer: the name may resolve to another one by now */
	void (*unreachable)(void *user);
	void (*left)(void *user); /* peer_leave() has ended */
	void *user;
};

struct peer {
	struct peer *next; /* this and the next one are registration.c's */
	bool found;
	struct registration_peer_config config;
	char *address;
	struct grpc_client *client; /* NULL: created for the next call */
	struct grpc_client_call *call;
	struct loop_timer *retry;
	struct backoff backoff;
	struct wait_log waiting;
	struct error *failure; /* of the last try */
	uint64_t answered_ns;
	char said[SHA224_HEX_LEN + 1];     /* hash of the report that is being sent */
	char accepted[SHA224_HEX_LEN + 1]; /* hash of the report that the controller has; "": not known */
	bool retrying;                     /* the timer is set */
	bool again;                        /* something has changed since the call was made */
	bool leaving;
};

/** peer_new() - nothing is sent yet. Return: never NULL; peer_free(). */
struct peer *peer_new(const struct registration_peer_config *config, const char *address);

/** peer_free() - close the connection. Not from the callback of one of its replies. */
void peer_free(struct peer *p);

/** peer_say() - send the registration. Does nothing while a retry waits, which will send it. */
void peer_say(struct peer *p);

/** peer_touch() - peer_say() if the report differs from the last one that the controller accepted. */
void peer_touch(struct peer *p);

/** peer_is_registered() - whether the controller has our report, over the connection that is open. */
bool peer_is_registered(const struct peer *p);

/** peer_ask_pod() - DescribePod, to a peer that peer_is_registered(). @fn: as of grpc_client_call(), with a
 * DescribePodReply. Return: 0, or -1 with an error that says why it cannot be asked; @fn is not called then.
 */
int peer_ask_pod(struct peer *p, const struct registration_pod *pod, uint64_t timeout_ms, grpc_reply_fn fn,
	void *user, struct error **err) MUST_CHECK;

/** peer_leave() - unregister. Return: whether a call was made; then left() follows, from the loop. */
bool peer_leave(struct peer *p);
