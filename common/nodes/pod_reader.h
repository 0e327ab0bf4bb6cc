/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pod_reader.h - reads single pods from the API server for the nodes on which they run: nodes have no
 * permissions there.
 *
 * Each question is one GET, so that each replica of the controller can answer it. A node learns about its own
 * pods only: the Node object of the pod has to be that node. How many are asked about at a time is limited.
 * Threads: the loop's; nothing blocks.
 */
#pragma once

#include "registry.pb-c.h"

#include "base/arena.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "kube/client.h"
#include "kube/objects/objects.h"
#include "nodes/cluster_nodes.h"

/* Pods that are asked about at a time: nodes try again, like kubelet. */
#define PODS_ASKING_MAX 256
/* Requests of one node that may wait at a time, so that no node uses up the limit for all. */
#define PODS_ASKING_NODE_MAX 64
/* Time limit of one request, in milliseconds: a node waits for not much longer before it asks another replica
 * (registration.h). */
#define POD_READ_MS 2000

/* All borrowed for the time of the call; namespace and name are valid names. */
struct pod_query {
	const char *node_id; /* which asks */
	const char *namespace;
	const char *name;
	const char *uid;
};

/** Called exactly once. @pod: NULL if and only if @error is set: ERR_NOT_FOUND, ERR_PERMISSION (it does not
 * run on that node), ERR_UNAVAILABLE. Both are borrowed for the time of the call. */
typedef void (*pod_read_fn)(void *user, const struct kube_pod_runtime *pod, const struct error *error);

struct pod_reader;

/** pod_reader_new() - @client, @cluster: borrowed. Return: never NULL; pod_reader_free(), before
 * kube_client_free(). */
struct pod_reader *pod_reader_new(struct kube_client *client, const struct cluster_nodes *cluster);

/** pod_reader_free() - questions that are open end with ERR_UNAVAILABLE before this returns. NULL is allowed.
 */
void pod_reader_free(struct pod_reader *r);
DEFINE_CLEANUP(struct pod_reader *, pod_reader_free);

/** pod_reader_ask() - read the pod of @query. @fn: called with @user, perhaps before this returns */
void pod_reader_ask(struct pod_reader *r, const struct pod_query *query, pod_read_fn fn, void *user);

/** pod_reader_fill() - copy what nodes learn of @pod into @reply, with texts in @arena. Return: 0, or -1 with
 * ERR_UNAVAILABLE (what the API server says is not understood). */
int pod_reader_fill(const struct kube_pod_runtime *pod, Registry__V0__DescribePodReply *reply,
	struct arena *arena, struct error **err) MUST_CHECK;
