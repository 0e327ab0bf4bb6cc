/* SPDX-License-Identifier: Apache-2.0 */
/*
 * extender_service.h - answers kube-scheduler's requests: filter, prioritize and preempt over HTTP.
 *
 * Replies are computed from memory, at once. A filter request whose pod fits nowhere only because of pods
 * that passed and are not decided waits for decisions, SCHED_WAIT_MS at most. An invalid request, and one
 * that cannot be answered yet, gets HTTP status 200 and a text in the field Error, as kube-scheduler expects:
 * it tries the pod again later. The reply to a preempt request has no such field: its status is then 400 or
 * 503, and kube-scheduler evicts no pods. Threads: the loop's; nothing blocks. Source:
 * k8s.io/kube-scheduler/extender/v1.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "net/core/loop.h"
#include "net/http1/http_server.h"
#include "scheduler/cluster_view.h"
#include "scheduler/node_choice.h"

#define SCHED_WAIT_MS 250

/* A function that is called at the end of each request, for metrics. */
struct extender_service_observer {
	/* @verb: "filter", "prioritize" or "preempt"; @failed: with an Error; @took_ns: the time it waited
	 * included */
	void (*ended)(void *user, const char *verb, bool failed, uint64_t took_ns);
	void *user;
};

struct extender_service_config {
	struct loop *loop;
	const struct cluster_view *cluster;
	const struct sched_nodes *nodes;
	struct reservations *reservations;
	enum sched_policy policy;
	size_t max_pods;                           /* as of reservations_check_limit() */
	struct extender_service_observer observer; /* .ended NULL: none */
};

struct extender_service;

/** extender_service_new() - @config: copied, what it points to is borrowed. Return: never NULL;
 * extender_service_free(). */
struct extender_service *extender_service_new(const struct extender_service_config *config);

/** extender_service_free() - to be called after the HTTP server was drained or freed, when no request waits.
 * NULL is allowed. */
void extender_service_free(struct extender_service *s);
DEFINE_CLEANUP(struct extender_service *, extender_service_free);

/** extender_service_reservations_changed() - there may be more room (reservations.h): requests that wait are
 * looked at again, soon.
 */
void extender_service_reservations_changed(struct extender_service *s);

/** extender_service_filter(), extender_service_prioritize() - routes for POST (http_server.h); @self: the
 * service.
 */
void extender_service_filter(void *self, struct http_call *call);
void extender_service_prioritize(void *self, struct http_call *call);

/**
 * extender_service_preempt() - likewise: of the nodes from which kube-scheduler would evict pods, those
 * remain on which the volumes of the new pod fit now. An evicted pod leaves its volumes behind, except for
 * ephemeral ones. Their capacity is not counted as free either, because they are deleted some time after
 * their pods.
 */
void extender_service_preempt(void *self, struct http_call *call);
