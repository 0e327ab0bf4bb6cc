/* SPDX-License-Identifier: Apache-2.0 */
/*
 * client.h - requests to the Kubernetes API server, over one HTTP/2 connection, which is replaced when the
 * server does not answer on it any more (h2_channel.h).
 *
 * In the long run, at most qps requests begin per second, and at most burst at once. Further requests wait in
 * order, while their time-outs run. A watch counts as one request, when it begins. A request that the server
 * refuses with 429 or 503 and a Retry-After is repeated after that time, unless the request's time-out comes
 * first. After a 401 the token file is read at once, and the request is repeated once; otherwise the file is
 * read at most once a minute. Other failures are left to the caller.
 *
 * Errors name the verb, the object and the text of the server, so that a missing RBAC rule is obvious:
 * "kube: patch persistentvolumeclaims default/x: 403 ...". Codes: 400 and 422 INVALID_ARGUMENT, 401
 * UNAUTHENTICATED, 403 PERMISSION, 404 NOT_FOUND, 409 ABORTED (EXISTS for "create"), 410 RANGE, 429, 5xx and
 * connection UNAVAILABLE, time-out DEADLINE. Threads: the loop's. Only reading the token file blocks.
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
	/* called when a request has ended, or when a watch has begun: @code is the HTTP status, 0 when there
	 * was none */
	void (*ended)(void *user, const char *verb, const char *resource, unsigned code, uint64_t took_ns);
	/* called when informers have skipped @n objects that they could not read. NULL: not needed */
	void (*skipped)(void *user, const char *resource, uint64_t n);
	void *user;
};

struct kube_client_config {
	struct loop *loop;
	struct handshakes *handshakes;
	const struct kube_config *kube; /* borrowed until kube_client_free() */
	unsigned qps;                   /* 0: no limit */
	unsigned burst;
	const char *user_agent;        /* NULL: the default of the project */
	struct kube_observer observer; /* .ended NULL: none */
	uint64_t reconnect_backoff_ms; /* first back-off between failed connections; 0: BACKOFF_FIRST_MS */
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
	/* called with bytes of the body of a 200 reply when they arrive, which are then not kept for @fn. It
	 * may not free the client. Return: false to cancel the request, which ends with ERR_CANCELLED. NULL:
	 * the body is kept */
	bool (*on_data)(void *user, struct span data);
	/* called when a 2xx reply begins, for a watch long before its first event. It may neither cancel the
	 * request nor free the client. NULL: not needed */
	void (*on_begin)(void *user);
};

/** Called exactly once, never before kube_client_call() returned, and not after kube_request_cancel().
 * @status: the HTTP status, 0 when there was none; @body: in case of success, empty with on_data; @error:
 * NULL if and only if the status is 2xx and the body complete. Borrowed for the time of the call. It may call
 * anything, kube_client_free() included. */
typedef void (*kube_reply_fn)(void *user, unsigned status, struct span body, const struct error *error);

/** kube_client_new() - make a client, which does not connect yet. Blocks on files. Return: 0, or -1 with
 * ERR_INVALID_ARGUMENT (certificates). @ret: kube_client_free(). */
int kube_client_new(
	const struct kube_client_config *config, struct kube_client **ret, struct error **err) MUST_CHECK;

/** kube_client_sibling() - make another client of the same server, with a connection of its own and without a
 * limit on requests per second, for requests that must not wait behind others. @ping_ms, @ping_timeout_ms: as
 * of kube_client_config. Return: never NULL; kube_client_free(), before the config of @c ends. */
struct kube_client *kube_client_sibling(
	const struct kube_client *c, uint64_t ping_ms, uint64_t ping_timeout_ms);

/** kube_client_free() - close the connection and release @c; requests in flight end with ERR_CANCELLED before
 * this returns, except when called from a kube_reply_fn: then right after it. NULL is allowed. */
void kube_client_free(struct kube_client *c);
DEFINE_CLEANUP(struct kube_client *, kube_client_free);

/** kube_client_loop() - get the loop that @c was made for. */
struct loop *kube_client_loop(const struct kube_client *c);

/** kube_client_reconnect_backoff_ms() - get the first back-off between failed connections, with which callers
 * that retry begin, too. */
uint64_t kube_client_reconnect_backoff_ms(const struct kube_client *c);

/** kube_client_namespace() - get the namespace of its kube_config, which is our own. Borrowed. */
const char *kube_client_namespace(const struct kube_client *c);

/** kube_client_note_skipped() - tell the observer that @n objects of @resource could not be read. */
void kube_client_note_skipped(const struct kube_client *c, const char *resource, uint64_t n);

/** kube_client_call() - start a request. @call: copied as far as needed. Return: never NULL; valid until @fn
 * is called or kube_request_cancel(). */
struct kube_request *kube_client_call(
	struct kube_client *c, const struct kube_call *call, kube_reply_fn fn, void *user);

/** kube_request_cancel() - cancel @r; its function is not called any more. NULL is allowed. */
void kube_request_cancel(struct kube_request *r);
