/* SPDX-License-Identifier: Apache-2.0 */
/*
 * node_tokens.h - checks whether a call comes from the node that it names, by the ServiceAccount token that
 * kubelet has projected into the pod of the node's driver. The API server checks the token (TokenReview).
 *
 * A verdict is kept by the SHA-256 of the token, never with the token, until the token expires, and for
 * NODE_TOKENS_KEEP_NS at most. Then the API server is asked again. While it does not answer, the verdict
 * stays valid for the node, instance and endpoint that it was last used for, and for no others. A token
 * without a verdict is then accepted from the driver that has the lease of its node, because kubelet may have
 * replaced the token just before; other drivers have to wait. A refusal is kept for NODE_TOKENS_REFUSED_NS.
 * Calls with the same token wait for the same answer; how many tokens are asked about at a time is limited,
 * separately for drivers that have the lease of their node and for others, so that a peer that has only a
 * certificate cannot prevent the renewal of leases. Threads: the loop's; nothing blocks.
 */
#pragma once

#include "base/cleanup.h"
#include "base/error.h"
#include "kube/client.h"

#define NODE_TOKENS_KEEP_NS    (600ULL * 1000000000)
#define NODE_TOKENS_REFUSED_NS (10ULL * 1000000000)
/* Wait after the API server has not answered about a token that was accepted before. */
#define NODE_TOKENS_AGAIN_NS (10ULL * 1000000000)
/* A verdict that was not used for that long is dropped. */
#define NODE_TOKENS_UNUSED_NS (600ULL * 1000000000)
#define NODE_TOKENS_REVIEW_MS 5000
/* Tokens that are checked at a time, of drivers that have a lease, and of others. */
#define NODE_TOKENS_ASKING_MAX 256
/* Verdicts that are kept: two for each of 20,000 nodes. */
#define NODE_TOKENS_MAX 40000

/* The caller, as it describes itself; all strings are borrowed for the time of the call. */
struct node_claim {
	const char *authorization; /* value of that header; NULL: there was none */
	const char *node_id;
	const char *endpoint;
	const char *instance;
	bool has_lease; /* the node has a live lease with this endpoint and instance */
};

enum node_verdict { NODE_GENUINE, NODE_REFUSED, NODE_ASKING };

/** Called exactly once, unless the tokens are freed before. @error: NULL: the node is genuine. Otherwise
 * ERR_UNAUTHENTICATED or ERR_PERMISSION, or ERR_UNAVAILABLE when the API server did not answer. */
typedef void (*node_token_fn)(void *user, const struct error *error);

struct node_tokens;

struct node_tokens_config {
	struct kube_client *client;     /* borrowed; its rate of requests is the limit of reviews */
	const char *audience;           /* the audience of tokens; copied, like the next one */
	const char *user_name;          /* of the nodes' account, "system:serviceaccount:NAMESPACE:NAME" */
	uint64_t (*now_ns)(void *user); /* NULL: clock_ns() */
	uint64_t (*wall_s)(void *user); /* seconds since the epoch; NULL: the system's clock */
	void *user;
};

/** node_tokens_new() - Return: never NULL; node_tokens_free(), before kube_client_free(). */
struct node_tokens *node_tokens_new(const struct node_tokens_config *config);

/** node_tokens_free() - checks in progress end with ERR_CANCELLED before this returns. NULL is allowed. */
void node_tokens_free(struct node_tokens *t);
DEFINE_CLEANUP(struct node_tokens *, node_tokens_free);

/**
 * node_tokens_check() - whether @claim is true.
 * @fn:  called with @user later if and only if this returns NODE_ASKING
 * @err: set if and only if this returns NODE_REFUSED, as @fn would get it
 */
enum node_verdict node_tokens_check(struct node_tokens *t, const struct node_claim *claim, node_token_fn fn,
	void *user, struct error **err) MUST_CHECK;

/** node_tokens_tick() - drop verdicts whose time is over; to be called each second. */
void node_tokens_tick(struct node_tokens *t);
