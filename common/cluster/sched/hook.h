/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hook.h - serves the admission webhook (webhook.h) with what the watches know. What they do not know yet is
 * looked up once in the API server before the answer: a claim is often made right before its pod. Only what
 * the API server says is not there (404) counts as absent. When a look-up on which the answer depends fails
 * in another way, when more is unknown than is looked up for one pod, and before the watches have shown all
 * that there is, the answer is 503: the failure policy of the webhook's configuration decides, and the API
 * server's metrics and log tell of it. Threads: the loop's; nothing blocks. Source: apiserver
 * pkg/admission/plugin/webhook/mutating/dispatcher.go.
 */
#pragma once

#include "base/cleanup.h"
#include "cluster/kube/client.h"
#include "cluster/sched/webhook.h"
#include "cluster/sched/world.h"
#include "net/http_server.h"

/* For one look-up. A request waits for two in a row at most, of claims and then of their classes; API servers
 * wait 10 s for a webhook, or what its configuration says. */
#define SCHED_HOOK_LOOK_MS 2000

struct sched_hook_config {
	struct sched_world *world;
	struct kube_client *client;
	struct sched_webhook_rules rules;
};

struct sched_hook;

/** sched_hook_new() - @config: copied, what it points to is borrowed. Return: never NULL; sched_hook_free().
 */
struct sched_hook *sched_hook_new(const struct sched_hook_config *config);

/** sched_hook_free() - before the client, and after the HTTP server was freed. NULL is allowed. */
void sched_hook_free(struct sched_hook *h);
DEFINE_CLEANUP(struct sched_hook *, sched_hook_free);

/** sched_hook_handle() - route for POST (http_server.h); @self: the hook. */
void sched_hook_handle(void *self, struct http_call *call);
