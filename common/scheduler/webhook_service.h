/* SPDX-License-Identifier: Apache-2.0 */
/*
 * webhook_service.h - serves the admission webhook (webhook_review.h) from the objects of the watches. Claims
 * and classes that they have not shown yet are looked up once in the API server before the reply: a claim is
 * often created right before its pod. Any peer of the port could make the webhook ask for ever, and
 * the requests of a client are limited, so there are at most 8 look-ups for one pod, and what was not found
 * is not asked for again for a second. Look-ups that find nothing are charged to the address of the peer and
 * to the namespace (look_budget.h), so that neither can use up the requests of the others. Only objects for
 * which the API server returns 404 count as absent. When a look-up on which the answer depends fails in
 * another way, when more objects are unknown than are looked up for one pod, or than its share allows, and
 * before the watches have shown all objects, the answer is 503: the failure policy of the webhook's
 * configuration decides, and the API server's metrics and log show it. Threads: the loop's; nothing blocks.
 * Source: apiserver pkg/admission/plugin/webhook/mutating/dispatcher.go.
 */
#pragma once

#include "base/cleanup.h"
#include "kube/client.h"
#include "net/http1/http_server.h"
#include "scheduler/cluster_view.h"
#include "scheduler/webhook_review.h"

/* For one look-up. A request waits for at most two in a row, of claims and then of their classes; API
 * servers wait for a webhook for 10 s, or as its configuration says. */
#define WEBHOOK_LOOKUP_MS 2000

struct webhook_service_config {
	struct cluster_view *cluster;
	struct kube_client *client;
	struct webhook_rules rules;
	unsigned qps; /* of the client, of which a share is left to others; 0: no limit */
	unsigned burst;
};

struct webhook_service;

/** webhook_service_new() - @config: copied, what it points to is borrowed. Return: never NULL;
 * webhook_service_free().
 */
struct webhook_service *webhook_service_new(const struct webhook_service_config *config);

/** webhook_service_free() - before the client, and after the HTTP server was freed. NULL is allowed. */
void webhook_service_free(struct webhook_service *h);
DEFINE_CLEANUP(struct webhook_service *, webhook_service_free);

/** webhook_service_handle() - route for POST (http_server.h); @self: the service. */
void webhook_service_handle(void *self, struct http_call *call);
