/* SPDX-License-Identifier: Apache-2.0 */
/*
 * webhook_service.h - serves the admission webhook (webhook_review.h) with what the watches know. What they
 * do not know yet is looked up once in the API server before the answer: a claim is often made right before
 * its pod. Only what the API server says is not there (404) counts as absent. When a look-up on which the
 * answer depends fails in another way, when more is unknown than is looked up for one pod, and before the
 * watches have shown all that there is, the answer is 503: the failure policy of the webhook's configuration
 * decides, and the API server's metrics and log show it. Threads: the loop's; nothing blocks. Source:
 * apiserver pkg/admission/plugin/webhook/mutating/dispatcher.go.
 */
#pragma once

#include "base/cleanup.h"
#include "kube/client.h"
#include "net/http1/http_server.h"
#include "scheduler/cluster_view.h"
#include "scheduler/webhook_review.h"

/* For one look-up. A request waits for two in a row at most, of claims and then of their classes; API servers
 * wait 10 s for a webhook, or what its configuration says. */
#define WEBHOOK_LOOKUP_MS 2000

struct webhook_service_config {
	struct cluster_view *cluster;
	struct kube_client *client;
	struct webhook_rules rules;
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
