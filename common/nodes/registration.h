/* SPDX-License-Identifier: Apache-2.0 */
/*
 * registration.h - registers a node with every central controller that a name resolves to, and keeps it
 * registered.
 *
 * The name is resolved again with each heartbeat and after each loss of a connection. Each address has one
 * connection and one registration, which is sent at once, with each heartbeat, after a loss of the
 * connection, and when the report has changed. Failures are retried for ever, with back-off. If two addresses
 * belong to one controller, it gets the same report twice. Waiting is logged once, and then rarely. The
 * token's file is read again for each call: kubelet replaces it before the token expires. Threads: the
 * loop's; nothing blocks but reading that file.
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

/* Time between heartbeats, randomly changed by up to a fifth. A node counts as live for the time of that many
 * heartbeats after each of them. */
#define REGISTRATION_HEARTBEAT_MS     30000
#define REGISTRATION_LEASE_HEARTBEATS 3

/* The longest time that unregistering may take after SIGTERM. */
#define REGISTRATION_STOP_MS 1000

struct registration;

struct registration_config {
	struct loop *loop;
	const char *endpoint;    /* "tcp://host:port", the host a name or an address; copied */
	const char *node_id;     /* copied */
	struct tls_context *tls; /* referenced; the server's certificate must have the name "pmem-registry".
				    NULL: plain */
	struct handshakes *handshakes; /* with tls only */
	const char *token_file;        /* proves which node this is, with tls only; copied; NULL: none */
	uint64_t heartbeat_ms;         /* 0: REGISTRATION_HEARTBEAT_MS */
	/* Fills in @request except for node_id, instance and lease_seconds; what it points to lives in
	 * @arena. Loop thread; must not wait. */
	void (*fill)(void *user, Registry__V0__RegisterControllerRequest *request, struct arena *arena);
	void *user;
};

/**
 * registration_new() - begin to register. If a controller cannot be reached, that is retried and no error.
 * @config: copied, except for what is marked as borrowed or referenced
 *
 * Return: 0, or -1 with ERR_INVALID_ARGUMENT (endpoint). @ret: registration_free().
 */
int registration_new(
	const struct registration_config *config, struct registration **ret, struct error **err) MUST_CHECK;

/** registration_free() - close the connections without unregistering. Not from its callbacks, except done().
 * NULL is allowed. */
void registration_free(struct registration *r);
DEFINE_CLEANUP(struct registration *, registration_free);

/** registration_touch() - check whether the report has changed. A changed report is sent at once, but changes
 * that follow each other quickly are sent together. */
void registration_touch(struct registration *r);

/**
 * registration_stop() - unregister the node from the controllers.
 * @done: called once from the loop, when they have answered or REGISTRATION_STOP_MS are over
 */
void registration_stop(struct registration *r, loop_fn done, void *user);

/* Milliseconds that one controller may take for its answer: longer than it waits for the API server
 * (pod_reader.h). */
#define REGISTRATION_POD_MS 2500

/* All borrowed for the time of the call. */
struct registration_pod {
	const char *namespace;
	const char *name;
	const char *uid;
};

/** Called exactly once. @reply: NULL if and only if @error is set: ERR_NOT_FOUND (there is no such pod),
 * ERR_UNAVAILABLE (no controller has answered, with their reasons). Both are borrowed for the time of the
 * call, which must not free the registration. */
typedef void (*registration_pod_fn)(
	void *user, const Registry__V0__DescribePodReply *reply, const struct error *error);

/**
 * registration_ask_pod() - ask the controllers with which the node is registered about @pod, one after the
 * other until one of them answers.
 * @deadline_ns: by clock_ns()
 * @fn:          called with @user, perhaps before this returns
 */
void registration_ask_pod(struct registration *r, const struct registration_pod *pod, uint64_t deadline_ns,
	registration_pod_fn fn, void *user);

struct registration_peer {
	const char *address;    /* "tcp://IP:PORT" */
	bool registered;        /* and its lease has not ended */
	uint64_t answered_ns;   /* time of the last success, by clock_ns(); 0: never */
	const char *last_error; /* of the last attempt since then; NULL: none */
};

/** registration_peers() - list the addresses; valid until the next round of the loop. @ret: free(); strings
 * are borrowed.
 * Return: how many. */
size_t registration_peers(const struct registration *r, struct registration_peer **ret);
