/* SPDX-License-Identifier: Apache-2.0 */
/*
 * extender_service.h - what kube-scheduler asks, answered: filter, prioritize and preempt over HTTP.
 *
 * An answer is computed from memory, at once; a filter request whose pod fits nowhere but for pods that
 * passed and are not decided waits for decisions, SCHED_WAIT_MS at most. Whatever is wrong with a request, or
 * not known yet, is said with HTTP status 200 in the field Error, as kube-scheduler wants it: it tries the
 * pod again later. The reply to a preempt request has no such field: there it is 400 or 503, upon which
 * kube-scheduler evicts nobody. Threads: the loop's; nothing blocks. Source:
 * k8s.io/kube-scheduler/extender/v1.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "net/core/loop.h"
#include "net/http1/http_server.h"
#include "scheduler/cluster_view.h"
#include "scheduler/node_choice.h"
#include "scheduler/node_watch.h"

#define SCHED_WAIT_MS 250

/* Pods that passed and are not bound yet, above which further ones get an Error: whoever can reach the
 * server may make them up, and each is remembered for SCHED_CHARGE_NS. */
#define SCHED_PODS_MAX 8192

/* For metrics. */
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
	const struct sched_node_watch *watch;
	struct sched_charges *charges;
	enum sched_policy policy;
	size_t max_pods;                           /* on their way at a time; 0: SCHED_PODS_MAX */
	struct extender_service_observer observer; /* .ended NULL: none */
};

struct extender_service;

/** extender_service_new() - @config: copied, what it points to is borrowed. Return: never NULL;
 * extender_service_free(). */
struct extender_service *extender_service_new(const struct extender_service_config *config);

/** extender_service_free() - after the HTTP server was drained or freed: nobody waits any more. NULL is
 * allowed.
 */
void extender_service_free(struct extender_service *s);
DEFINE_CLEANUP(struct extender_service *, extender_service_free);

/** extender_service_charges_changed() - there may be more room (charges.h): requests that wait are looked at
 * again, soon.
 */
void extender_service_charges_changed(struct extender_service *s);

/** extender_service_filter(), extender_service_prioritize() - routes for POST (http_server.h); @self: the
 * service.
 */
void extender_service_filter(void *self, struct http_call *call);
void extender_service_prioritize(void *self, struct http_call *call);

/**
 * extender_service_preempt() - likewise: of the nodes from which kube-scheduler would evict pods, those
 * remain on which the volumes of the new pod fit now. An evicted pod leaves its volumes behind, but for
 * ephemeral ones; those are not counted as room either, for they go some time after their pods.
 */
void extender_service_preempt(void *self, struct http_call *call);
