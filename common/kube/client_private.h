/* SPDX-License-Identifier: Apache-2.0 */
/*
 * client_private.h - requests of a client, as client.c (where they wait) and client_request.c (how they are
 * sent and end) see them. Threads: the loop's.
 */
#pragma once

#include <sys/queue.h>

#include "base/buf.h"
#include "kube/client.h"
#include "kube/token.h"
#include "net/http2/h2_channel.h"
#include "pacing/bucket.h"

/* A reply that is kept whole, and what is kept of one that reports a failure. */
#define KUBE_MAX_REPLY_BYTES   (4u << 20)
#define KUBE_MAX_FAILURE_BYTES (64u << 10)

/* A request waits for its turn, is with the server, or waits out a Retry-After. */
enum kube_stage { KUBE_WAITING, KUBE_RUNNING, KUBE_PAUSED };

TAILQ_HEAD(kube_requests, kube_request);

struct kube_request {
	TAILQ_ENTRY(kube_request) entry; /* in the client's list of its stage */
	struct kube_client *client;
	enum kube_stage stage;
	char *verb;
	char *what;
	char *method;
	char *path;
	char *accept;
	char *content_type;
	struct buf body;
	bool (*on_data)(void *user, struct span data);
	void (*on_begin)(void *user);
	kube_reply_fn fn; /* NULL: cancelled */
	void *user;
	uint64_t deadline_ns;
	struct loop_timer *timer; /* deadline; NULL: none */
	struct loop_timer *pause; /* end of a Retry-After */

	/* of the try that runs */
	struct h2_request *h2;
	uint64_t started_ns;
	unsigned status; /* 0: no header block yet */
	uint64_t retry_after_ms;
	bool has_retry_after;
	bool observed;
	struct buf reply;

	unsigned tries;
	bool token_tried; /* after a 401 */
};

struct kube_client {
	struct kube_client_config config;
	char *user_agent;
	struct tls_context *tls;
	struct h2_channel *channel; /* NULL: the server's name was not looked up yet */
	char *endpoint;             /* of the channel */
	struct loop_lookup *lookup; /* runs */
	uint64_t looked_up_ns;
	bool is_named; /* the server has a name, not an address */
	struct kube_token token;
	struct kube_bucket bucket;
	struct loop_timer *pump;
	struct kube_requests waiting; /* in order */
	struct kube_requests running;
	struct kube_requests paused;
	size_t refs; /* of requests, and of its owner: what free() ends may make new ones */
	bool closing;
};

/** kube_client_pump() - begin what may begin. */
void kube_client_pump(struct kube_client *c);

/** kube_client_lost() - the connection gave no answer: the server's name may lead elsewhere now. */
void kube_client_lost(struct kube_client *c);

/** kube_client_unref() - one owner less. */
void kube_client_unref(struct kube_client *c);

/** kube_request_new() - a request that waits, in the client's list. Parameters as of kube_client_call(). */
struct kube_request *kube_request_new(
	struct kube_client *c, const struct kube_call *call, kube_reply_fn fn, void *user);

/** kube_request_start() - send @r, which waits; the channel is there. */
void kube_request_start(struct kube_request *r);

/** kube_request_fail() - end @r, which is not with the server, with an error. */
void kube_request_fail(struct kube_request *r, enum err_code code, const char *msg);
