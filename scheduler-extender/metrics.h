/* SPDX-License-Identifier: Apache-2.0 */
/*
 * metrics.h - the extender's metrics and probes. Threads: the loop's; nothing blocks.
 */
#pragma once

#include "kube/client.h"
#include "net/core/cert_expiry.h"
#include "net/http1/http_server.h"
#include "resources/api_check.h"
#include "scheduler/extender_service.h"
#include "scheduler/webhook_ca_bundle.h"

struct metrics;

/** metrics_new() - @driver_name, @certs: borrowed. Return: never NULL; metrics_free(). */
struct metrics *metrics_new(const char *driver_name, struct cert_expiry *certs);

/** metrics_free() - to be called after the parts that it observes are freed. NULL is allowed. */
void metrics_free(struct metrics *m);

/* All borrowed. If only the webhook is served, all but .cluster and .trust are NULL. */
struct metrics_parts {
	const struct cluster_view *cluster;
	const struct sched_nodes *nodes;
	const struct api_check *api_check;
	const struct reservations *reservations;
	const struct webhook_ca_bundle *trust; /* NULL: the caBundle is not kept up to date */
};

/** metrics_watch() - show @parts from now on. */
void metrics_watch(struct metrics *m, const struct metrics_parts *parts);

/** metrics_kube_observer(), metrics_service_observer() - count requests; valid as long as @m. */
struct kube_observer metrics_kube_observer(struct metrics *m);
struct extender_service_observer metrics_service_observer(struct metrics *m);

/**
 * metrics_all() - /metrics. metrics_healthz() - /healthz: "ok" while the process runs. metrics_readyz() -
 * /readyz and /status: "ok" while all data that responses need are known; otherwise 503 and the name of what
 * is missing, or has not been answered for too long.
 *
 * Routes (http_server.h) with @self a struct metrics.
 */
void metrics_all(void *self, const struct http1_request *request, struct http_reply *reply);
void metrics_readyz(void *self, const struct http1_request *request, struct http_reply *reply);
void metrics_healthz(void *self, const struct http1_request *request, struct http_reply *reply);
