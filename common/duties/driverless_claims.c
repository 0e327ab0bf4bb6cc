/* SPDX-License-Identifier: Apache-2.0 */
#include "duties/driverless_claims.h"

#include <stdlib.h>
#include <sys/queue.h>

#include "base/clock.h"
#include "base/json/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "duties/driverless_claim_rules.h"
#include "kube/object_call.h"
#include "kube/objects/objects.h"
#include "kube/work_queue.h"
#include "nodes/class_capacity.h"

#define LOOK_NS       (30 * NS_PER_S)
#define TIMEOUT_MS    10000
#define BODY_MAX      4096
#define MAX_LOOKS     8  /* at once */
#define MAX_MOVES     16 /* at once */
#define SELECTED_NODE "volume.kubernetes.io/selected-node"

/* A request about what is called @key in @queue. */
struct call {
	LIST_ENTRY(call) entry; /* in its owner's list */
	struct driverless_claims *owner;
	struct work_queue *queue;
	char *key;
	char *node; /* of a claim: that it is moved away from */
	char *uid;  /* of a claim */
	struct kube_request *request;
};

struct driverless_claims {
	struct driverless_claims_config config;
	struct driverless_claim_rules rules;
	struct work_queue *looks; /* names of nodes */
	struct work_queue *moves; /* "namespace/name" of claims */
	LIST_HEAD(, call) calls;
	uint64_t now_ns; /* of the last tick */
};

static struct call *call_new(struct driverless_claims *d, struct work_queue *queue, const char *key)
{
	struct call *call = x_calloc(1, sizeof(*call));

	*call = (struct call){.owner = d, .queue = queue, .key = x_strdup(key)};
	LIST_INSERT_HEAD(&d->calls, call, entry);
	return call;
}

static void call_free(struct call *call)
{
	kube_request_cancel(call->request);
	LIST_REMOVE(call, entry);
	free(call->key);
	free(call->node);
	free(call->uid);
	free(call);
}

static void call_end(struct call *call, enum work_result result)
{
	work_queue_end(call->queue, call->key, result);
	call_free(call);
}

/* Nothing is moved before the node was looked at again. */
static void look_failed(struct call *look, const struct error *error)
{
	log_debug("cannot find out whether a node has the driver", F_STR("node", look->key), F_ERR(error));
	driverless_claim_rules_look_failed(&look->owner->rules, look->key);
	call_end(look, WORK_FAILED);
}

static void looked(struct call *look, bool absent)
{
	driverless_claim_rules_looked(&look->owner->rules, look->key, absent, look->owner->now_ns);
	call_end(look, WORK_DONE);
}

static void got_node(void *user, unsigned status, struct span body, const struct error *error)
{
	CLEANUP(error_freep) struct error *err = NULL;
	struct call *look = user;
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
	node = kube_object_decode(&kube_kind_nodes, body, &err);
	if (!node) {
		look_failed(look, err);
		return;
	}
	absent = !node_terms_match(look->owner->config.node_selector, &node->meta);
	kube_object_free(&kube_kind_nodes, node);
	looked(look, absent);
}

static void ask(struct call *look, const struct kube_kind *kind, kube_reply_fn fn)
{
	const struct kube_object_call call = {.verb = KUBE_GET,
		.kind = kind,
		.name = look->key,
		.metadata_only = kind == &kube_kind_nodes, /* their labels count */
		.timeout_ms = TIMEOUT_MS};

	look->request = kube_object_call(look->owner->config.client, &call, fn, look);
}

static void got_csi_node(void *user, unsigned status, struct span body, const struct error *error)
{
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(json_reader_freep) struct json_reader *r = json_reader_new(body);
	struct call *look = user;
	struct kube_csi_node *node = NULL;
	bool there;

	(void)status;
	look->request = NULL;
	if (error && error->code != ERR_NOT_FOUND) {
		look_failed(look, error);
		return;
	}
	if (!error)
		node = kube_object_read(&kube_kind_csi_nodes, r, &err);
	if (!error && !node) {
		look_failed(look, err);
		return;
	}
	there = node && strv_contains(node->drivers, look->owner->config.driver_name);
	if (node)
		kube_object_free(&kube_kind_csi_nodes, node);
	if (there)
		looked(look, /* absent= */ false);
	else
		ask(look, &kube_kind_nodes, got_node);
}

static void look_at(void *user, const char *node_name)
{
	struct driverless_claims *d = user;

	if (driverless_claim_rules_has_node(&d->rules, node_name))
		ask(call_new(d, d->looks, node_name), &kube_kind_csi_nodes, got_csi_node);
	else
		work_queue_end(d->looks, node_name, WORK_DONE);
}

static void moved(void *user, unsigned status, struct span body, const struct error *error)
{
	struct call *move = user;
	struct driverless_claims *d = move->owner;

	(void)status;
	(void)body;
	move->request = NULL;
	if (!error) {
		log_info("a claim was returned to the scheduler: its node has no driver",
			F_STR("claim", move->key), F_STR("node", move->node));
		driverless_claim_rules_moved(&d->rules, move->node, move->uid, d->now_ns);
	}
	/* A claim that has changed or gone meanwhile is looked at again. */
	if (!error || error->code == ERR_ABORTED || error->code == ERR_NOT_FOUND) {
		call_end(move, WORK_DONE);
		return;
	}
	/* One line when it begins to fail, not for each claim. */
	if (work_queue_failing(d->moves) == 0)
		log_warn("claims cannot be returned to the scheduler; will try again",
			F_STR("claim", move->key), F_STR("node", move->node), F_ERR(error));
	call_end(move, WORK_FAILED);
}

static void write_move(const struct kube_claim *claim, struct buf *body)
{
	struct json_writer w = JSON_WRITER(body);

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
}

/* It has no volume yet, and the scheduler has chosen a node from which we have heard nothing. */
static bool waits_for_node(const struct driverless_claims *d, const struct kube_claim *claim)
{
	if (str_empty(claim->selected_node) || !str_empty(claim->volume_name) || claim->meta.deleting ||
		str_empty(claim->storage_class))
		return false;
	if (!class_is_ours(informer_get(d->config.classes, claim->storage_class), d->config.driver_name))
		return false;
	return kube_is_name(claim->selected_node) &&
	       !node_table_get_live(d->config.nodes, claim->selected_node);
}

static bool must_move(struct driverless_claims *d, const struct kube_claim *claim)
{
	return waits_for_node(d, claim) &&
	       driverless_claim_rules_see(&d->rules, claim->selected_node, claim->meta.uid, d->now_ns);
}

static void move_claim(void *user, const char *key)
{
	CLEANUP(buf_done) struct buf body = BUF_INIT(BODY_MAX);
	struct driverless_claims *d = user;
	const struct kube_claim *claim = informer_get(d->config.claims, key);
	struct call *move;

	if (!claim || !must_move(d, claim)) {
		work_queue_end(d->moves, key, WORK_DONE);
		return;
	}
	write_move(claim, &body);
	const struct kube_object_call call = {.verb = KUBE_PATCH,
		.kind = &kube_kind_claims,
		.namespace = claim->meta.namespace,
		.name = claim->meta.name,
		.body = buf_span(&body),
		.timeout_ms = TIMEOUT_MS};
	move = call_new(d, d->moves, key);
	move->node = x_strdup(claim->selected_node);
	move->uid = x_strdup(claim->meta.uid);
	move->request = kube_object_call(d->config.client, &call, moved, move);
}

static void visit_claim(void *user, const void *object)
{
	const struct kube_claim *claim = object;
	struct driverless_claims *d = user;

	if (must_move(d, claim)) {
		CLEANUP(free_charp) char *key = kube_meta_key(&claim->meta);
		work_queue_add(d->moves, key);
	}
}

void driverless_claims_tick(struct driverless_claims *d, uint64_t now_ns)
{
	d->now_ns = now_ns;
	if (!informer_is_synced(d->config.claims) || !informer_is_synced(d->config.classes))
		return;
	driverless_claim_rules_begin(&d->rules);
	informer_each(d->config.claims, visit_claim, d);
	driverless_claim_rules_end(&d->rules);
	for (size_t i = 0; i < d->rules.n_nodes; i++)
		work_queue_add(d->looks, d->rules.nodes[i]->name);
	work_queue_run(d->moves);
	work_queue_run(d->looks);
}

static uint64_t last_tick(void *user)
{
	const struct driverless_claims *d = user;

	return d->now_ns;
}

struct driverless_claims *driverless_claims_new(const struct driverless_claims_config *config)
{
	struct driverless_claims *d = x_calloc(1, sizeof(*d));

	d->config = *config;
	d->looks = work_queue_new(&(struct work_queue_config){.work = look_at,
		.user = d,
		.max_running = MAX_LOOKS,
		.interval_ns = LOOK_NS,
		.now_ns = last_tick});
	d->moves = work_queue_new(&(struct work_queue_config){
		.work = move_claim, .user = d, .max_running = MAX_MOVES, .now_ns = last_tick});
	return d;
}

void driverless_claims_free(struct driverless_claims *d)
{
	if (!d)
		return;
	for (struct call *call = LIST_FIRST(&d->calls), *next; call; call = next) {
		next = LIST_NEXT(call, entry);
		call_free(call);
	}
	work_queue_free(d->looks);
	work_queue_free(d->moves);
	driverless_claim_rules_done(&d->rules);
	free(d);
}
