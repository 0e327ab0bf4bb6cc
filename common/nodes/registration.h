/* SPDX-License-Identifier: Apache-2.0 */
/*
 * registration.h - a node makes itself known to every central controller that a name resolves to, and stays
 * so.
 *
 * The name is resolved again with each heartbeat and after each loss of a connection. Each address has one
 * connection, and over it one registration: said at once, again with each heartbeat, when the connection was
 * lost, and when what there is to say has changed. What fails is tried again for ever, with back-off. Two
 * addresses of one controller do no harm: it gets the same report twice. What it waits for is logged once,
 * and then rarely. The token's file is read again for each call: kubelet replaces it before the token
 * expires. Threads: the loop's; nothing blocks but reading that file.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "registry.pb-c.h"

#include "base/arena.h"
#include "base/error.h"
#include "net/core/handshakes.h"
#include "net/core/loop.h"
#include "net/tls/tls.h"

/* Between heartbeats, up to a fifth less or more; a node counts as alive for so many of them after one. */
#define REGISTRATION_HEARTBEAT_MS     30000
#define REGISTRATION_LEASE_HEARTBEATS 3

/* After SIGTERM, for telling the controllers. */
#define REGISTRATION_STOP_MS 1000

struct registration;

struct registration_config {
	struct loop *loop;
	const char *endpoint;          /* "tcp://host:port", the host a name or an address; copied */
	const char *node_id;           /* copied */
	struct tls_context *tls;       /* referenced; the server must bear "pmem-registry". NULL: plain */
	struct handshakes *handshakes; /* with tls only */
	const char *token_file;        /* proves which node this is, with tls only; copied; NULL: none */
	uint64_t heartbeat_ms;         /* 0: REGISTRATION_HEARTBEAT_MS */
	/* Says all of @request but node_id, instance and lease_seconds; what it points to lives in @arena.
	 * Loop thread; must not wait. */
	void (*fill)(void *user, Registry__V0__RegisterControllerRequest *request, struct arena *arena);
	void *user;
};

/**
 * registration_new() - begin. What cannot be reached is no error, but tried again.
 * @config: copied, but for what it says is borrowed
 *
 * Return: 0, or -1 with ERR_INVALID_ARGUMENT (endpoint). @ret: registration_free().
 */
int registration_new(
	const struct registration_config *config, struct registration **ret, struct error **err) MUST_CHECK;

/** registration_free() - close the connections without unregistering. Not from inside its callbacks, done()
 * excepted. NULL is allowed. */
void registration_free(struct registration *r);
DEFINE_CLEANUP(struct registration *, registration_free);

/** registration_touch() - what there is to say may have changed: it is said at once where it has, and when
 * that comes often, in one with what follows shortly. */
void registration_touch(struct registration *r);

/**
 * registration_stop() - tell the controllers that the node is gone.
 * @done: called once from the loop, when they have answered or REGISTRATION_STOP_MS are over
 */
void registration_stop(struct registration *r, loop_fn done, void *user);

struct registration_peer {
	const char *address;    /* "tcp://IP:PORT" */
	bool registered;        /* and that has not run out */
	uint64_t answered_ns;   /* last success, of clock_ns(); 0: never */
	const char *last_error; /* of what was tried since; NULL: none */
};

/** registration_peers() - each address, until the next round of the loop. @ret: free(); strings are borrowed.
 * Return: how many. */
size_t registration_peers(const struct registration *r, struct registration_peer **ret);
