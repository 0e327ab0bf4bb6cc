/* SPDX-License-Identifier: Apache-2.0 */
#include "duties/claim_release.h"

#include <stdlib.h>
#include <sys/queue.h>

#include "base/clock.h"
#include "base/json/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/name_index.h"
#include "base/parse.h"
#include "base/str.h"
#include "kube/list.h"
#include "kube/object_call.h"
#include "kube/objects/objects.h"
#include "kube/work_queue.h"
#include "volume/id.h"

#define LOOK_NS     (30 * NS_PER_S)
#define GAP_NS      (3 * LOOK_NS)
#define TIMEOUT_MS  10000
#define BODY_MAX    4096
#define MAX_RUNNING 8

/* A claim with the annotation. */
struct watched_claim {
	struct name_link link; /* by key */
	LIST_ENTRY(watched_claim) all;
	struct claim_release *owner;
	char *key; /* "namespace/name" */
	char *uid;
	char *node_id;     /* of its volume; NULL: not known yet */
	bool is_kept;      /* it is not bound to a volume of ours on one node */
	uint64_t since_ns; /* when its node was first found to be out of service; 0: it is in service */
	uint64_t last_ns;  /* when it was found so last */
	bool posted_invalid;
	bool posted_release;
	bool seen; /* in the tick that runs */
	bool busy;

	/* of the look that runs */
	char *volume_name;
	char *volume_version;
	struct kube_kind pod_kind;
	char *pod_path;
	char *pod_selector;
	struct kube_list *list;
	struct kube_request *request;
	struct kube_pod **pods; /* that are to be deleted */
	size_t n_pods;
};

struct claim_release {
	struct claim_release_config config;
	struct work_queue *queue;
	struct name_index index;
	LIST_HEAD(, watched_claim) claims;
	uint64_t now_ns; /* of the last tick */
};

static void end_look(struct watched_claim *w)
{
	kube_request_cancel(TAKE_PTR(w->request));
	kube_list_free(TAKE_PTR(w->list));
	for (size_t i = 0; i < w->n_pods; i++)
		kube_object_free(&kube_kind_pods, w->pods[i]);
	free(TAKE_PTR(w->pods));
	w->n_pods = 0;
	free(TAKE_PTR(w->volume_name));
	free(TAKE_PTR(w->volume_version));
	free(TAKE_PTR(w->pod_path));
	free(TAKE_PTR(w->pod_selector));
	w->busy = false;
}

static void watched_free(struct watched_claim *w)
{
	end_look(w);
	name_index_remove(&w->owner->index, &w->link);
	LIST_REMOVE(w, all);
	free(w->key);
	free(w->uid);
	free(w->node_id);
	free(w);
}

static struct watched_claim *find(const struct claim_release *r, const char *key)
{
	struct name_link *link = name_index_first(&r->index, key);

	return link ? OWNER_OF(link, struct watched_claim, link) : NULL;
}

static void finish(struct watched_claim *w, enum work_result result)
{
	end_look(w);
	work_queue_end(w->owner->queue, w->key, result);
}

static void give_up(struct watched_claim *w, const char *what, const struct error *error)
{
	bool has_changed = error->code == ERR_ABORTED || error->code == ERR_NOT_FOUND;

	/* One line when it begins to fail, not for each claim. */
	if (!has_changed && work_queue_failing(w->owner->queue) == 0)
		log_warn("a claim cannot be released; will try again", F_STR("claim", w->key),
			F_STR("step", what), F_ERR(error));
	finish(w, has_changed ? WORK_DONE : WORK_FAILED);
}

static const struct kube_claim *claim_of(const struct watched_claim *w)
{
	const struct kube_claim *claim = informer_get(w->owner->config.claims, w->key);

	return claim && str_eq(claim->meta.uid, w->uid) ? claim : NULL;
}

static bool is_wanted(const struct kube_claim *claim)
{
	return claim->release_after && !str_empty(claim->volume_name) && !claim->meta.deleting;
}

static bool is_registered(const struct watched_claim *w)
{
	return w->node_id && node_table_get_live(w->owner->config.nodes, w->node_id);
}

/* The claim, if it may still be released: much may change while requests run. */
static const struct kube_claim *still_wanted(const struct watched_claim *w)
{
	const struct kube_claim *claim = claim_of(w);

	return claim && is_wanted(claim) && !is_registered(w) ? claim : NULL;
}

static void post_event(struct watched_claim *w, const char *reason, const char *message)
{
	const struct claim_release_config *config = &w->owner->config;
	const struct kube_claim *claim = claim_of(w);

	if (claim)
		config->tell(config->user, &claim->meta, reason, message, w->owner->now_ns);
}

static struct kube_request *call(
	struct watched_claim *w, const struct kube_object_call *what, kube_reply_fn fn)
{
	struct kube_object_call with_time = *what;

	with_time.timeout_ms = TIMEOUT_MS;
	return kube_object_call(w->owner->config.client, &with_time, fn, w);
}

static void delete_object(struct watched_claim *w, const struct kube_kind *kind, const struct kube_meta *meta,
	const char *version, kube_reply_fn fn)
{
	CLEANUP(buf_done) struct buf body = BUF_INIT(BODY_MAX);

	kube_write_preconditions(meta, version, &body);
	w->request = call(w,
		&(struct kube_object_call){.verb = KUBE_DELETE,
			.kind = kind,
			.namespace = meta->namespace,
			.name = meta->name,
			.body = buf_span(&body)},
		fn);
}

static void claim_deleted(void *user, unsigned status, struct span body, const struct error *error)
{
	struct watched_claim *w = user;

	(void)status;
	(void)body;
	w->request = NULL;
	if (error) {
		give_up(w, "delete the claim", error);
		return;
	}
	log_info("a claim was released, and its volume is retained", F_STR("claim", w->key),
		F_STR("node", w->node_id), F_STR("volume", w->volume_name));
	finish(w, WORK_DONE);
}

static void delete_next_pod(struct watched_claim *w);

/* A pod that has gone, or that is another one by now, is as good as deleted. */
static void pod_deleted(void *user, unsigned status, struct span body, const struct error *error)
{
	struct watched_claim *w = user;

	(void)status;
	(void)body;
	w->request = NULL;
	if (error && error->code != ERR_NOT_FOUND && error->code != ERR_ABORTED) {
		give_up(w, "delete a pod", error);
		return;
	}
	kube_object_free(&kube_kind_pods, w->pods[--w->n_pods]);
	delete_next_pod(w);
}

static void delete_next_pod(struct watched_claim *w)
{
	const struct kube_claim *claim = still_wanted(w);

	if (!claim)
		finish(w, WORK_DONE);
	else if (w->n_pods > 0)
		delete_object(
			w, &kube_kind_pods, &w->pods[w->n_pods - 1]->meta, /* version= */ NULL, pod_deleted);
	else
		delete_object(
			w, &kube_kind_claims, &claim->meta, claim->meta.resource_version, claim_deleted);
}

static bool uses_claim(const struct watched_claim *w, const struct kube_pod *pod)
{
	const struct kube_claim *claim = claim_of(w);

	for (size_t i = 0; claim && i < pod->n_volumes; i++) {
		CLEANUP(free_charp) char *name = kube_pod_claim(pod, &pod->volumes[i]);

		if (str_eq(name, claim->meta.name))
			return true;
	}
	return false;
}

static void take_pod(void *user, void *object)
{
	struct watched_claim *w = user;
	struct kube_pod *pod = object;

	if (pod->meta.deleting || !uses_claim(w, pod)) {
		kube_object_free(&kube_kind_pods, pod);
		return;
	}
	w->pods = x_realloc(w->pods, w->n_pods + 1, sizeof(*w->pods));
	w->pods[w->n_pods++] = pod;
}

static void pods_listed(void *user, const struct error *error)
{
	struct watched_claim *w = user;

	if (error)
		give_up(w, "list its pods", error);
	else
		delete_next_pod(w);
}

static void list_pods(struct watched_claim *w, const struct kube_claim *claim)
{
	static const struct kube_list_events events = {.take = take_pod, .ended = pods_listed};

	w->pod_path = x_asprintf("/api/v1/namespaces/%s/pods", claim->meta.namespace);
	w->pod_selector = x_asprintf("spec.nodeName=%s,%s", w->node_id, kube_kind_pods.field_selector);
	w->pod_kind = kube_kind_pods;
	w->pod_kind.path = w->pod_path;
	w->pod_kind.field_selector = w->pod_selector;
	w->list = kube_list_new(w->owner->config.client, &w->pod_kind, &events, w);
}

static void post_release(struct watched_claim *w)
{
	CLEANUP(free_charp)
	char *message =
		x_asprintf("node %s is out of service, so this claim and its pods on that node are being "
			   "deleted, as the annotation " CLAIM_RELEASE_ANNOTATION
			   " demands; the volume stays as PersistentVolume %s",
			w->node_id, w->volume_name);

	if (!w->posted_release)
		post_event(w, "ClaimReleased", message);
	w->posted_release = true;
}

static void volume_retained(void *user, unsigned status, struct span body, const struct error *error)
{
	struct watched_claim *w = user;
	const struct kube_claim *claim = still_wanted(w);

	(void)status;
	(void)body;
	w->request = NULL;
	if (error) {
		give_up(w, "set the reclaim policy of its PersistentVolume", error);
	} else if (!claim) {
		finish(w, WORK_DONE);
	} else {
		post_release(w);
		list_pods(w, claim);
	}
}

static void retain_volume(struct watched_claim *w)
{
	CLEANUP(buf_done) struct buf body = BUF_INIT(BODY_MAX);
	struct json_writer j = JSON_WRITER(&body);

	json_object(&j);
	json_key(&j, "metadata");
	json_object(&j);
	json_key_str(&j, "resourceVersion", w->volume_version);
	json_object_end(&j);
	json_key(&j, "spec");
	json_object(&j);
	json_key_str(&j, "persistentVolumeReclaimPolicy", "Retain");
	json_object_end(&j);
	json_object_end(&j);
	w->request = call(w,
		&(struct kube_object_call){.verb = KUBE_PATCH,
			.kind = &kube_kind_volumes,
			.name = w->volume_name,
			.body = buf_span(&body)},
		volume_retained);
}

/* Return: false: there is no such annotation any more, or it is no duration. */
static bool read_duration(struct watched_claim *w, uint64_t *ret_ns)
{
	CLEANUP(error_freep) struct error *err = NULL;
	const struct kube_claim *claim = claim_of(w);
	uint64_t ms;

	if (!claim || !claim->release_after)
		return false;
	if (parse_duration_ms(claim->release_after, &ms, &err) == 0) {
		*ret_ns = ms * NS_PER_MS;
		return true;
	}
	if (!w->posted_invalid) {
		CLEANUP(free_charp)
		char *message = x_asprintf("annotation " CLAIM_RELEASE_ANNOTATION ": %s", err->msg);
		post_event(w, "ReleaseAfterInvalid", message);
	}
	w->posted_invalid = true;
	return false;
}

static void judge_node(struct watched_claim *w, bool out_of_service)
{
	uint64_t now_ns = w->owner->now_ns;
	uint64_t after_ns;

	if (!out_of_service || !read_duration(w, &after_ns)) {
		w->since_ns = 0;
		finish(w, WORK_DONE);
		return;
	}
	/* If the last look was too long ago, the node may have been in service in between, so its time out of
	 * service begins again. */
	if (w->since_ns == 0 || now_ns - w->last_ns > GAP_NS) {
		w->since_ns = now_ns;
		log_info("a claim will be released if its node stays out of service", F_STR("claim", w->key),
			F_STR("node", w->node_id));
	}
	w->last_ns = now_ns;
	if (now_ns - w->since_ns >= after_ns)
		retain_volume(w);
	else
		finish(w, WORK_DONE);
}

/* A node ID need not be the name of the Node: that there is no Node of that name is not enough. */
static void got_node(void *user, unsigned status, struct span body, const struct error *error)
{
	CLEANUP(error_freep) struct error *err = NULL;
	struct watched_claim *w = user;
	struct kube_node *node;
	bool out_of_service;

	(void)status;
	w->request = NULL;
	if (error && error->code == ERR_NOT_FOUND) {
		judge_node(w, !cluster_nodes_have(w->owner->config.cluster, w->node_id));
		return;
	}
	node = error ? NULL : kube_object_decode(&kube_kind_nodes, body, &err);
	if (!node) {
		give_up(w, "read its Node", error ? error : err);
		return;
	}
	out_of_service = node->out_of_service;
	kube_object_free(&kube_kind_nodes, node);
	judge_node(w, out_of_service);
}

/* Return: the node on which the volume of the claim is; NULL: it is not a volume of ours on one node. A
 * PersistentVolume that was made by hand may name its node in another way: the handle decides. */
static const char *node_of(const struct watched_claim *w, const struct kube_volume *v)
{
	if (!str_eq(v->driver, w->owner->config.driver_name) || !str_eq(v->claim_uid, w->uid) ||
		strv_len(v->node_values) != 1 || !kube_is_name(v->node_values[0]))
		return NULL;
	return v->handle && volume_id_names_node(v->handle, v->node_values[0]) ? v->node_values[0] : NULL;
}

static void take_volume(struct watched_claim *w, const struct kube_volume *v)
{
	const char *node_id = node_of(w, v);

	free(w->node_id);
	w->node_id = x_strdup(node_id);
	w->is_kept = !node_id;
	w->volume_name = x_strdup(v->meta.name);
	w->volume_version = x_strdup(v->meta.resource_version);
}

static void got_volume(void *user, unsigned status, struct span body, const struct error *error)
{
	CLEANUP(error_freep) struct error *err = NULL;
	struct watched_claim *w = user;
	struct kube_volume *v = error ? NULL : kube_object_decode(&kube_kind_volumes, body, &err);

	(void)status;
	w->request = NULL;
	if (!v) {
		give_up(w, "read its PersistentVolume", error ? error : err);
		return;
	}
	take_volume(w, v);
	kube_object_free(&kube_kind_volumes, v);
	if (w->is_kept || is_registered(w)) {
		judge_node(w, /* out_of_service= */ false);
		return;
	}
	w->request = call(w,
		&(struct kube_object_call){.verb = KUBE_GET, .kind = &kube_kind_nodes, .name = w->node_id},
		got_node);
}

static void look(void *user, const char *key)
{
	struct claim_release *r = user;
	struct watched_claim *w = find(r, key);
	const struct kube_claim *claim = w ? claim_of(w) : NULL;

	if (!claim || !is_wanted(claim)) {
		work_queue_end(r->queue, key, WORK_DONE);
		return;
	}
	w->busy = true;
	w->request = call(w,
		&(struct kube_object_call){
			.verb = KUBE_GET, .kind = &kube_kind_volumes, .name = claim->volume_name},
		got_volume);
}

static void watch(struct claim_release *r, const char *key, const char *uid)
{
	struct watched_claim *w = x_calloc(1, sizeof(*w));

	w->owner = r;
	w->key = x_strdup(key);
	w->uid = x_strdup(uid);
	LIST_INSERT_HEAD(&r->claims, w, all);
	name_index_add(&r->index, &w->link, w->key);
}

static void see(void *user, const void *object)
{
	const struct kube_claim *claim = object;
	struct claim_release *r = user;
	CLEANUP(free_charp) char *key = NULL;
	struct watched_claim *w;

	if (!is_wanted(claim))
		return;
	key = kube_meta_key(&claim->meta);
	w = find(r, key);
	if (w && !w->busy && !str_eq(w->uid, claim->meta.uid)) {
		watched_free(w);
		w = NULL;
	}
	if (!w)
		watch(r, key, claim->meta.uid);
	w = find(r, key);
	w->seen = true;
	if (is_registered(w))
		w->since_ns = 0;
	else if (!w->is_kept)
		work_queue_add(r->queue, key);
}

void claim_release_tick(struct claim_release *r, uint64_t now_ns)
{
	r->now_ns = now_ns;
	if (!informer_is_synced(r->config.claims))
		return;
	informer_each(r->config.claims, see, r);
	for (struct watched_claim *w = LIST_FIRST(&r->claims), *next; w; w = next) {
		next = LIST_NEXT(w, all);
		if (!w->seen && !w->busy)
			watched_free(w);
		else
			w->seen = false;
	}
	work_queue_run(r->queue);
}

static uint64_t last_tick(void *user)
{
	const struct claim_release *r = user;

	return r->now_ns;
}

struct claim_release *claim_release_new(const struct claim_release_config *config)
{
	struct claim_release *r = x_calloc(1, sizeof(*r));

	r->config = *config;
	name_index_init(&r->index);
	LIST_INIT(&r->claims);
	r->queue = work_queue_new(&(struct work_queue_config){.work = look,
		.user = r,
		.max_running = MAX_RUNNING,
		.interval_ns = LOOK_NS,
		.now_ns = last_tick});
	return r;
}

void claim_release_free(struct claim_release *r)
{
	if (!r)
		return;
	for (struct watched_claim *w = LIST_FIRST(&r->claims), *next; w; w = next) {
		next = LIST_NEXT(w, all);
		watched_free(w);
	}
	name_index_done(&r->index);
	work_queue_free(r->queue);
	free(r);
}
