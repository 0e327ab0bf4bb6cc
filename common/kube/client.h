/* SPDX-License-Identifier: Apache-2.0 */
/*
 * client.h - requests to the Kubernetes API server, over one HTTP/2 connection, which is replaced when the
 * server does not answer on it any more (h2_channel.h).
 *
 * At most qps requests per second are begun on the long run, burst at once; others wait in order, their
 * time-out running. A watch counts when it begins. What the server refuses with 429 or 503 and a Retry-After
 * is tried again after that time, if it ends before the request's time-out; with 401 the token file is read
 * at once, and the request tried once more; otherwise the file is read at most once a minute. Everything else
 * is tried once: what to do about a failure is the caller's business.
 *
 * Errors name verb and object, and what the server said, so that a missing RBAC rule is obvious:
 * "kube: patch persistentvolumeclaims default/x: 403 ...". Codes: 400 and 422 INVALID_ARGUMENT, 401
 * UNAUTHENTICATED, 403 PERMISSION, 404 NOT_FOUND, 409 ABORTED (EXISTS for "create"), 410 RANGE, 429, 5xx and
 * connection UNAVAILABLE, time-out DEADLINE. Threads: the loop's. Nothing waits but for the token file.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/span.h"
#include "kube/config.h"
#include "net/core/handshakes.h"
#include "net/core/loop.h"

struct kube_client;
struct kube_request;

/* For metrics. All strings are borrowed for the time of the call. */
struct kube_observer {
	/* a request has ended: @code is the HTTP status, 0 when there was none; of a watch: its beginning */
	void (*ended)(void *user, const char *verb, const char *resource, unsigned code, uint64_t took_ns);
	void *user;
};

struct kube_client_config {
	struct loop *loop;
	struct handshakes *handshakes;
	const struct kube_config *kube; /* borrowed until kube_client_free() */
	unsigned qps;                   /* 0: no limit */
	unsigned burst;
	const char *user_agent;        /* NULL: that of the project */
	struct kube_observer observer; /* .ended NULL: none */
	uint64_t backoff_ms;           /* between connections that fail; 0: BACKOFF_FIRST_MS */
	uint64_t ping_ms;              /* as of h2_channel_config; 0: 30 s, as client-go */
	uint64_t ping_timeout_ms;
};

struct kube_call {
	const char *verb;         /* "get", "list", "watch", "create", "update", "patch", "delete" */
	const char *what;         /* "persistentvolumeclaims default/x"; its first word is the resource */
	const char *method;       /* "GET" */
	const char *path;         /* "/api/v1/namespaces/default/persistentvolumeclaims/x", with query */
	const char *accept;       /* NULL: application/json */
	const char *content_type; /* NULL: application/json, with a body only */
	struct span body;         /* copied */
	uint64_t timeout_ms;      /* 0: none */
	/* bytes of the body of a reply of 200 as they come, which are then not kept for @fn. Return: false to
	 * give the request up, which ends with ERR_CANCELLED. It may not free the client. NULL: keep them */
	bool (*on_data)(void *user, struct span data);
	/* a reply of 2xx begins: of a watch, long before anything comes. It may not cancel the request, nor
	 * free the client. NULL: not needed */
	void (*on_begin)(void *user);
};

/** Called exactly once, never before kube_client_call() returned, and not after kube_request_cancel().
 * @status: of HTTP, 0 when there was none; @body: of a success, empty with on_data; @error: NULL if and only
 * if the status is 2xx and the body complete. Borrowed for the time of the call. It may do everything,
 * kube_client_free() included. */
typedef void (*kube_reply_fn)(void *user, unsigned status, struct span body, const struct error *error);

/** kube_client_new() - a client; nothing is connected yet. Blocks on files. Return: 0, or -1 with
 * ERR_INVALID_ARGUMENT (certificates). @ret: kube_client_free(). */
int kube_client_new(
	const struct kube_client_config *config, struct kube_client **ret, struct error **err) MUST_CHECK;

/** kube_client_sibling() - another client of the same server, with a connection of its own and without a
 * limit on requests per second, for what must not wait behind other requests. @ping_ms, @ping_timeout_ms: as
 * of kube_client_config. Return: never NULL; kube_client_free(), before the config of @c ends. */
struct kube_client *kube_client_sibling(
	const struct kube_client *c, uint64_t ping_ms, uint64_t ping_timeout_ms);

/** kube_client_free() - close; requests in flight end with ERR_CANCELLED before this returns, except when
 * called from a kube_reply_fn: then right after it. NULL is allowed. */
void kube_client_free(struct kube_client *c);
DEFINE_CLEANUP(struct kube_client *, kube_client_free);

/** kube_client_loop() - the loop that @c was made for. */
struct loop *kube_client_loop(const struct kube_client *c);

/** kube_client_backoff_ms() - first wait for those who try again, as of h2_channel_config. */
uint64_t kube_client_backoff_ms(const struct kube_client *c);

/** kube_client_namespace() - that of its kube_config: our own. Borrowed. */
const char *kube_client_namespace(const struct kube_client *c);

/** kube_client_call() - start a request. @call: copied as far as needed. Return: never NULL; valid until @fn
 * is called or kube_request_cancel(). */
struct kube_request *kube_client_call(
	struct kube_client *c, const struct kube_call *call, kube_reply_fn fn, void *user);

/** kube_request_cancel() - give @r up; its function is not called any more. NULL is allowed. */
void kube_request_cancel(struct kube_request *r);
