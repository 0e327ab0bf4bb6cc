/* SPDX-License-Identifier: Apache-2.0 */
#include "nodes/pod_reader.h"

#include <stdlib.h>
#include <sys/queue.h>

#include "base/mem.h"
#include "base/parse.h"
#include "base/str.h"
#include "kube/object_call.h"

struct pod_question {
	LIST_ENTRY(pod_question) all;
	struct pod_reader *reader;
	struct kube_request *request;
	char *node_id;
	char *pod; /* "namespace/name", for messages */
	char *uid;
	pod_read_fn fn;
	void *user;
};

struct pod_reader {
	struct kube_client *client;
	const struct cluster_nodes *cluster;
	LIST_HEAD(, pod_question) questions;
	unsigned n_questions;
};

static void question_end(
	struct pod_question *q, const struct kube_pod_runtime *pod, const struct error *error)
{
	LIST_REMOVE(q, all);
	q->reader->n_questions--;
	kube_request_cancel(q->request);
	q->fn(q->user, pod, error);
	free(q->node_id);
	free(q->pod);
	free(q->uid);
	free(q);
}

/* A node that may not ask learns no more than that. */
static int check_pod(const struct pod_question *q, const struct kube_pod_runtime *pod, struct error **err)
{
	if (str_empty(pod->node_name) || !cluster_nodes_is(q->reader->cluster, pod->node_name, q->node_id)) {
		if (!cluster_nodes_ready(q->reader->cluster))
			return err_set(err, ERR_UNAVAILABLE,
				"the nodes of the cluster are not known yet; try again later");
		return err_set(err, ERR_PERMISSION, "pod %s does not run on node \"%s\"", q->pod, q->node_id);
	}
	if (!str_eq(pod->meta.uid, q->uid))
		return err_set(err, ERR_NOT_FOUND,
			"pod %s with the UID %s does not exist: %s is its successor", q->pod, q->uid,
			pod->meta.uid);
	return 0;
}

/* A missing permission is the controller's, not the node's. */
static struct kube_pod_runtime *read_pod(
	const struct pod_question *q, struct span body, const struct error *error, struct error **err)
{
	struct kube_pod_runtime *pod;

	if (error) {
		(void)err_set(err, error->code == ERR_NOT_FOUND ? ERR_NOT_FOUND : ERR_UNAVAILABLE, "%s",
			error->msg);
		return NULL;
	}
	pod = kube_object_decode(&kube_kind_pod_runtimes, body, err);
	if (!pod) {
		(void)err_recode(err, ERR_UNAVAILABLE);
		return NULL;
	}
	if (check_pod(q, pod, err) == 0)
		return pod;
	kube_object_free(&kube_kind_pod_runtimes, pod);
	return NULL;
}

static void on_read(void *user, unsigned status, struct span body, const struct error *error)
{
	CLEANUP(error_freep) struct error *err = NULL;
	struct pod_question *q = user;
	struct kube_pod_runtime *pod;

	(void)status;
	q->request = NULL;
	pod = read_pod(q, body, error, &err);
	question_end(q, pod, err);
	kube_object_free(&kube_kind_pod_runtimes, pod);
}

struct pod_reader *pod_reader_new(struct kube_client *client, const struct cluster_nodes *cluster)
{
	struct pod_reader *r = x_calloc(1, sizeof(*r));

	r->client = client;
	r->cluster = cluster;
	LIST_INIT(&r->questions);
	return r;
}

void pod_reader_free(struct pod_reader *r)
{
	CLEANUP(error_freep) struct error *err = NULL;
	struct pod_question *next;

	if (!r)
		return;
	(void)err_set(&err, ERR_UNAVAILABLE, "the controller ends; another replica can be asked");
	for (struct pod_question *q = LIST_FIRST(&r->questions); q; q = next) {
		next = LIST_NEXT(q, all);
		question_end(q, /* pod= */ NULL, err);
	}
	free(r);
}

static unsigned count_of_node(const struct pod_reader *r, const char *node_id)
{
	const struct pod_question *q;
	unsigned n = 0;

	LIST_FOREACH(q, &r->questions, all)
	{
		n += str_eq(q->node_id, node_id);
	}
	return n;
}

static int check_limits(const struct pod_reader *r, const char *node_id, struct error **err)
{
	if (r->n_questions >= PODS_ASKING_MAX)
		return err_set(err, ERR_UNAVAILABLE,
			"%d pods are being asked about, which is the limit; try again later",
			PODS_ASKING_MAX);
	if (count_of_node(r, node_id) >= PODS_ASKING_NODE_MAX)
		return err_set(err, ERR_UNAVAILABLE,
			"node \"%s\" asks about %d pods already, which is the limit of a node; try again later",
			node_id, PODS_ASKING_NODE_MAX);
	return 0;
}

void pod_reader_ask(struct pod_reader *r, const struct pod_query *query, pod_read_fn fn, void *user)
{
	CLEANUP(error_freep) struct error *err = NULL;
	const struct kube_object_call call = {.verb = KUBE_GET,
		.kind = &kube_kind_pod_runtimes,
		.namespace = query->namespace,
		.name = query->name,
		.timeout_ms = POD_READ_MS};

	if (check_limits(r, query->node_id, &err) < 0) {
		fn(user, /* pod= */ NULL, err);
		return;
	}
	struct pod_question *q = x_calloc(1, sizeof(*q));
	q->reader = r;
	q->node_id = x_strdup(query->node_id);
	q->pod = x_asprintf("%s/%s", query->namespace, query->name);
	q->uid = x_strdup(query->uid);
	q->fn = fn;
	q->user = user;
	r->n_questions++;
	LIST_INSERT_HEAD(&r->questions, q, all);
	q->request = kube_object_call(r->client, &call, on_read, q);
}

int pod_reader_fill(const struct kube_pod_runtime *pod, Registry__V0__DescribePodReply *reply,
	struct arena *arena, struct error **err)
{
	const char *policy = pod->fs_group_change_policy;

	if (pod->fs_group && parse_u32(pod->fs_group, &reply->fs_group, err) < 0) {
		(void)err_wrap(err, "fsGroup of the pod");
		return err_recode(err, ERR_UNAVAILABLE);
	}
	reply->has_fs_group = pod->fs_group != NULL;
	reply->runtime_class = arena_strdup(arena, pod->runtime_class ? pod->runtime_class : "");
	reply->fs_group_change_policy = arena_strdup(arena, policy ? policy : "");
	return 0;
}
