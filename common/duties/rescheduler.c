/* SPDX-License-Identifier: Apache-2.0 */
#include "duties/rescheduler.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/json/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "duties/reschedule_rules.h"
#include "kube/objects/objects.h"
#include "nodes/class_capacity.h"

#define LOOK_NS       (30 * NS_PER_S)
#define TIMEOUT_MS    10000
#define BODY_MAX      4096
#define MAX_LOOKS     8  /* at once */
#define MAX_MOVES     16 /* at once */
#define SELECTED_NODE "volume.kubernetes.io/selected-node"
#define METADATA_ONLY "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"

/* Somebody looks at a node. */
struct look {
	struct rescheduler *owner;
	struct reschedule_node *node;
	struct kube_request *request;
	struct look *next;
};

/* A claim's annotation is being removed. */
struct move {
	struct rescheduler *owner;
	char *uid;
	char *claim; /* namespace/name */
	char *node;
	struct kube_request *request;
	struct move *next;
};

struct rescheduler {
	struct rescheduler_config config;
	struct reschedule_rules rules;
	struct look *looks;
	struct move *moves;
	unsigned n_looks;
	unsigned n_moves;
	uint64_t now_ns; /* of the last tick */
};

static void look_end(struct look *look)
{
	struct look **at = &look->owner->looks;

	while (*at != look)
		at = &(*at)->next;
	*at = look->next;
	look->owner->n_looks--;
	look->node->looking = false;
	kube_request_cancel(look->request);
	free(look);
}

static void move_end(struct move *move)
{
	struct move **at = &move->owner->moves;

	while (*at != move)
		at = &(*at)->next;
	*at = move->next;
	move->owner->n_moves--;
	kube_request_cancel(move->request);
	free(move->uid);
	free(move->claim);
	free(move->node);
	free(move);
}

/* What could not be found out is looked at again with the next round; nothing is moved meanwhile. */
static void look_failed(struct look *look, const struct error *error)
{
	log_debug("cannot find out whether a node has the driver", F_STR("node", look->node->name),
		F_ERR(error));
	look->node->looked_ns = 0;
	look->node->absent = false;
	look_end(look);
}

static void looked(struct look *look, bool absent)
{
	reschedule_looked(look->node, absent, look->owner->now_ns);
	look_end(look);
}

static bool has_labels(const struct kube_node *node, const struct strmap *selector)
{
	for (size_t i = 0; i < selector->n; i++) {
		if (!str_eq(kube_meta_label(&node->meta, selector->entries[i].key),
			    selector->entries[i].value))
			return false;
	}
	return selector->n > 0;
}

static void got_node(void *user, unsigned status, struct span body, const struct error *error)
{
	CLEANUP(error_freep) struct error *err = NULL;
	struct look *look = user;
	struct kube_node *node;
	bool absent;

	(void)status;
	look->request = NULL;
	if (error && error->code == ERR_NOT_FOUND) {
		looked(look, /* absent= */ true);
		return;
	}
	if (error) {
		look_failed(look, error);
		return;
	}
	node = kube_node_decode(body, &err);
	if (!node) {
		look_failed(look, err);
		return;
	}
	absent = !has_labels(node, look->owner->config.node_selector);
	kube_kind_nodes.free(node);
	looked(look, absent);
}

static void ask(
	struct look *look, const char *resource, const char *path, const char *accept, kube_reply_fn fn)
{
	CLEANUP(free_charp) char *what = x_asprintf("%s %s", resource, look->node->name);
	CLEANUP(free_charp) char *full = x_asprintf("%s/%s", path, look->node->name);
	const struct kube_call call = {.verb = "get",
		.what = what,
		.method = "GET",
		.path = full,
		.accept = accept,
		.timeout_ms = TIMEOUT_MS};

	look->request = kube_client_call(look->owner->config.client, &call, fn, look);
}

static void got_csi_node(void *user, unsigned status, struct span body, const struct error *error)
{
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(json_reader_freep) struct json_reader *r = json_reader_new(body);
	struct look *look = user;
	struct kube_csi_node *node = NULL;
	bool there;

	(void)status;
	look->request = NULL;
	if (error && error->code != ERR_NOT_FOUND) {
		look_failed(look, error);
		return;
	}
	if (!error)
		node = kube_kind_csi_nodes.decode(r, &err);
	if (!error && !node) {
		look_failed(look, err);
		return;
	}
	there = node && strv_contains(node->drivers, look->owner->config.driver_name);
	if (node)
		kube_kind_csi_nodes.free(node);
	if (there)
		looked(look, /* absent= */ false);
	else
		ask(look, "nodes", "/api/v1/nodes", METADATA_ONLY, got_node);
}

static void look_at(struct rescheduler *r, struct reschedule_node *node)
{
	struct look *look = x_calloc(1, sizeof(*look));

	*look = (struct look){.owner = r, .node = node, .next = r->looks};
	r->looks = look;
	r->n_looks++;
	node->looking = true;
	ask(look, "csinodes", "/apis/storage.k8s.io/v1/csinodes", /* accept= */ NULL, got_csi_node);
}

static void moved(void *user, unsigned status, struct span body, const struct error *error)
{
	struct move *move = user;

	(void)status;
	(void)body;
	move->request = NULL;
	/* A claim that has changed or gone meanwhile is looked at again. */
	if (error && error->code != ERR_ABORTED && error->code != ERR_NOT_FOUND)
		log_warn("a claim cannot be returned to the scheduler", F_STR("claim", move->claim),
			F_STR("node", move->node), F_ERR(error));
	else if (!error)
		log_info("a claim was returned to the scheduler: its node has no driver",
			F_STR("claim", move->claim), F_STR("node", move->node));
	move_end(move);
}

static bool is_moving(const struct rescheduler *r, const char *uid)
{
	for (const struct move *m = r->moves; m; m = m->next) {
		if (str_eq(m->uid, uid))
			return true;
	}
	return false;
}

static void move_claim(struct rescheduler *r, const struct kube_claim *claim)
{
	CLEANUP(buf_done) struct buf body = BUF_INIT(BODY_MAX);
	CLEANUP(free_charp) char *path = NULL;
	CLEANUP(free_charp) char *what = NULL;
	struct json_writer w = JSON_WRITER(&body);
	struct move *move;

	if (r->n_moves >= MAX_MOVES || is_moving(r, claim->meta.uid))
		return;
	move = x_calloc(1, sizeof(*move));
	*move = (struct move){.owner = r,
		.uid = x_strdup(claim->meta.uid),
		.claim = kube_meta_key(&claim->meta),
		.node = x_strdup(claim->selected_node),
		.next = r->moves};
	r->moves = move;
	r->n_moves++;
	json_object(&w);
	json_key(&w, "metadata");
	json_object(&w);
	json_key_str(&w, "resourceVersion", claim->meta.resource_version);
	json_key(&w, "annotations");
	json_object(&w);
	json_key_str(&w, SELECTED_NODE, NULL);
	json_object_end(&w);
	json_object_end(&w);
	json_object_end(&w);
	path = x_asprintf(
		"/api/v1/namespaces/%s/persistentvolumeclaims/%s", claim->meta.namespace, claim->meta.name);
	what = x_asprintf("persistentvolumeclaims %s", move->claim);
	const struct kube_call call = {.verb = "patch",
		.what = what,
		.method = "PATCH",
		.path = path,
		.content_type = "application/merge-patch+json",
		.body = buf_span(&body),
		.timeout_ms = TIMEOUT_MS};
	move->request = kube_client_call(r->config.client, &call, moved, move);
}

static bool is_registered(const struct rescheduler *r, const char *node_name)
{
	const struct node *node = node_table_get(r->config.nodes, node_name);

	return node && node->live;
}

static void visit_claim(void *user, const void *object)
{
	const struct kube_claim *claim = object;
	struct rescheduler *r = user;

	if (str_empty(claim->selected_node) || !str_empty(claim->volume_name) || claim->meta.deleting ||
		str_empty(claim->storage_class))
		return;
	if (!class_is_ours(informer_get(r->config.classes, claim->storage_class), r->config.driver_name))
		return;
	if (!kube_is_name(claim->selected_node) || is_registered(r, claim->selected_node))
		return;
	if (reschedule_see(&r->rules, claim->selected_node, claim->meta.uid, r->now_ns))
		move_claim(r, claim);
}

void rescheduler_tick(struct rescheduler *r, uint64_t now_ns)
{
	r->now_ns = now_ns;
	if (!informer_is_synced(r->config.claims) || !informer_is_synced(r->config.classes))
		return;
	reschedule_begin(&r->rules);
	informer_each(r->config.claims, visit_claim, r);
	reschedule_end(&r->rules);
	for (size_t i = 0; i < r->rules.n_nodes && r->n_looks < MAX_LOOKS; i++) {
		struct reschedule_node *node = r->rules.nodes[i];

		if (!node->looking && (node->looked_ns == 0 || now_ns - node->looked_ns >= LOOK_NS))
			look_at(r, node);
	}
}

struct rescheduler *rescheduler_new(const struct rescheduler_config *config)
{
	struct rescheduler *r = x_calloc(1, sizeof(*r));

	r->config = *config;
	return r;
}

void rescheduler_free(struct rescheduler *r)
{
	if (!r)
		return;
	while (r->looks)
		look_end(r->looks);
	while (r->moves)
		move_end(r->moves);
	reschedule_rules_done(&r->rules);
	free(r);
}
