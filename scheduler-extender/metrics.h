/* SPDX-License-Identifier: Apache-2.0 */
/*
 * metrics.h - what the extender tells monitoring and probes. Threads: the loop's; nothing blocks.
 */
#pragma once

#include "kube/client.h"
#include "net/core/cert_watch.h"
#include "net/http1/http_server.h"
#include "scheduler/extender_service.h"
#include "scheduler/webhook_trust.h"

struct metrics;

/** metrics_new() - @driver_name, @certs: borrowed. Return: never NULL; metrics_free(). */
struct metrics *metrics_new(const char *driver_name, struct cert_watch *certs);

/** metrics_free() - after those that it observes. NULL is allowed. */
void metrics_free(struct metrics *m);

/* All borrowed. Of the webhook alone all but .cluster and .trust is NULL. */
struct metrics_parts {
	const struct cluster_view *cluster;
	const struct sched_nodes *nodes;
	const struct sched_node_watch *watch;
	const struct sched_charges *charges;
	const struct webhook_trust *trust; /* NULL: the caBundle is not kept */
};

/** metrics_watch() - show @parts from now on. */
void metrics_watch(struct metrics *m, const struct metrics_parts *parts);

/** metrics_kube_observer(), metrics_service_observer() - count requests; valid as long as @m. */
struct kube_observer metrics_kube_observer(struct metrics *m);
struct extender_service_observer metrics_service_observer(struct metrics *m);

/**
 * metrics_all() - /metrics.
 * metrics_healthz() - /healthz: "ok": the process is there.
 * metrics_readyz() - /readyz and /status: "ok" while all is known that is needed to answer; otherwise 503 and
 * what is missing, or has not answered for too long.
 *
 * Routes (http_server.h) with @self a struct metrics.
 */
void metrics_all(void *self, const struct http1_request *request, struct http_reply *reply);
void metrics_readyz(void *self, const struct http1_request *request, struct http_reply *reply);
void metrics_healthz(void *self, const struct http1_request *request, struct http_reply *reply);
