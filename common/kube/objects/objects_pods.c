/* SPDX-License-Identifier: Apache-2.0 */
/* Pods. */
#include <stdlib.h>

#include "base/mem.h"
#include "base/str.h"
#include "kube/objects/objects.h"

static const struct kube_field claim_source[] = {
	KUBE_FIELD("claimName", KUBE_TEXT, struct kube_pod_volume, claim),
	KUBE_FIELDS_END,
};

static const struct kube_field template_spec[] = {
	KUBE_FIELD("storageClassName", KUBE_TEXT, struct kube_pod_volume, template_class),
	KUBE_FIELDS_END,
};

static const struct kube_field template_fields[] = {
	KUBE_OBJECT("spec", template_spec),
	KUBE_FIELDS_END,
};

static const struct kube_field ephemeral_source[] = {
	{.name = "volumeClaimTemplate",
		.type = KUBE_MEMBERS,
		.extent = offsetof(struct kube_pod_volume, is_ephemeral),
		.fields = template_fields},
	KUBE_FIELDS_END,
};

static const struct kube_field csi_source[] = {
	KUBE_FIELD("driver", KUBE_TEXT, struct kube_pod_volume, driver),
	KUBE_FIELD("fsType", KUBE_TEXT, struct kube_pod_volume, fs_type),
	KUBE_FIELD("volumeAttributes", KUBE_PAIRS, struct kube_pod_volume, attributes),
	KUBE_FIELDS_END,
};

static const struct kube_field volume_fields[] = {
	KUBE_FIELD("name", KUBE_TEXT, struct kube_pod_volume, name),
	KUBE_OBJECT("persistentVolumeClaim", claim_source),
	KUBE_OBJECT("ephemeral", ephemeral_source),
	KUBE_OBJECT("csi", csi_source),
	KUBE_FIELDS_END,
};

static bool is_ours_to_know(const struct kube_pod_volume *v)
{
	return v->name && (v->claim || v->is_ephemeral || v->driver);
}

static bool take_volume(void *object, void *item)
{
	struct kube_pod_volume *v = item;

	(void)object;
	free(TAKE_PTR(v->template_class));
	return is_ours_to_know(v);
}

struct condition {
	bool is_scheduled;
	bool is_false;
	char *message;
	char *since;
};

static const struct kube_field condition_fields[] = {
	KUBE_FIELD("type", KUBE_SAYS, struct condition, is_scheduled, .says = "PodScheduled"),
	KUBE_FIELD("status", KUBE_SAYS, struct condition, is_false, .says = "False"),
	KUBE_FIELD("message", KUBE_TEXT, struct condition, message),
	KUBE_FIELD("lastTransitionTime", KUBE_TEXT, struct condition, since),
	KUBE_FIELDS_END,
};

/* FNV-1a, but never 0. */
static uint64_t hash_of(const char *text)
{
	uint64_t hash = 0xcbf29ce484222325;

	for (; text && *text; text++)
		hash = (hash ^ (unsigned char)*text) * 0x100000001b3;
	return hash ? hash : 1;
}

static bool take_condition(void *object, void *item)
{
	struct condition *c = item;
	struct kube_pod *p = object;

	if (c->is_scheduled && c->is_false) {
		p->unscheduled = hash_of(c->message);
		free(p->unscheduled_since);
		p->unscheduled_since = TAKE_PTR(c->since);
	}
	return false;
}

static const struct kube_field pod_spec[] = {
	KUBE_FIELD("nodeName", KUBE_TEXT, struct kube_pod, node_name),
	KUBE_FIELD("volumes", KUBE_ARRAY, struct kube_pod, volumes,
		.extent = offsetof(struct kube_pod, n_volumes), .fields = volume_fields,
		.item_size = sizeof(struct kube_pod_volume), .takes = take_volume),
	KUBE_FIELDS_END,
};

static const struct kube_field pod_status[] = {
	KUBE_FIELD("phase", KUBE_SAYS, struct kube_pod, is_running, .says = "Running"),
	{.name = "conditions",
		.type = KUBE_ARRAY,
		.fields = condition_fields,
		.item_size = sizeof(struct condition),
		.takes = take_condition},
	KUBE_FIELDS_END,
};

static const struct kube_field pod_fields[] = {
	KUBE_META(names),
	KUBE_OBJECT("spec", pod_spec),
	KUBE_OBJECT("status", pod_status),
	KUBE_FIELD("", KUBE_TEXT, struct kube_pod, unscheduled_since),
	KUBE_FIELDS_END,
};

static bool has_volumes(const void *user, const void *object)
{
	const struct kube_pod *p = object;

	(void)user;
	return p->n_volumes > 0;
}

const struct kube_kind kube_kind_pods = {
	.path = "/api/v1/pods",
	.what = "pods",
	.field_selector = "status.phase!=Succeeded,status.phase!=Failed",
	.size = sizeof(struct kube_pod),
	.fields = pod_fields,
	.keeps = has_volumes,
};

static const struct kube_field runtime_context[] = {
	KUBE_FIELD("fsGroup", KUBE_TEXT, struct kube_pod_runtime, fs_group),
	KUBE_FIELD("fsGroupChangePolicy", KUBE_TEXT, struct kube_pod_runtime, fs_group_change_policy),
	KUBE_FIELDS_END,
};

static const struct kube_field runtime_spec[] = {
	KUBE_FIELD("nodeName", KUBE_TEXT, struct kube_pod_runtime, node_name),
	KUBE_FIELD("runtimeClassName", KUBE_TEXT, struct kube_pod_runtime, runtime_class),
	KUBE_OBJECT("securityContext", runtime_context),
	KUBE_FIELDS_END,
};

static const struct kube_field runtime_fields[] = {
	KUBE_META(names),
	KUBE_OBJECT("spec", runtime_spec),
	KUBE_FIELDS_END,
};

const struct kube_kind kube_kind_pod_runtimes = {
	.path = "/api/v1/pods",
	.what = "pods",
	.size = sizeof(struct kube_pod_runtime),
	.fields = runtime_fields,
};

static bool take_new_volume(void *object, void *item)
{
	struct kube_new_pod *p = object;

	p->has_volumes = true;
	return is_ours_to_know(item);
}

struct container {
	struct kube_pairs limits;
	struct kube_pairs requests;
	struct kube_container found;
};

static const struct kube_field container_resources[] = {
	KUBE_FIELD("limits", KUBE_PAIRS, struct container, limits,
		.extent = offsetof(struct container, found.has_limits)),
	KUBE_FIELD("requests", KUBE_PAIRS, struct container, requests,
		.extent = offsetof(struct container, found.has_requests)),
	KUBE_FIELDS_END,
};

static const struct kube_field container_fields[] = {
	{.name = "resources",
		.type = KUBE_MEMBERS,
		.extent = offsetof(struct container, found.has_resources),
		.fields = container_resources},
	KUBE_FIELDS_END,
};

static bool take_init_container(void *object, void *item)
{
	const struct container *c = item;
	struct kube_new_pod *p = object;

	p->has_resource |=
		kube_pairs_get(&c->limits, p->resource) && kube_pairs_get(&c->requests, p->resource);
	return false;
}

static bool take_container(void *object, void *item)
{
	const struct container *c = item;
	struct kube_new_pod *p = object;

	if (p->n_containers++ == 0)
		p->first_container = c->found;
	return take_init_container(object, item);
}

static const struct kube_field new_pod_spec[] = {
	KUBE_FIELD("nodeName", KUBE_TEXT, struct kube_new_pod, pod.node_name),
	KUBE_FIELD("volumes", KUBE_ARRAY, struct kube_new_pod, pod.volumes,
		.extent = offsetof(struct kube_new_pod, pod.n_volumes), .fields = volume_fields,
		.item_size = sizeof(struct kube_pod_volume), .takes = take_new_volume),
	KUBE_FIELD("schedulerName", KUBE_TEXT, struct kube_new_pod, scheduler),
	{.name = "containers",
		.type = KUBE_ARRAY,
		.fields = container_fields,
		.item_size = sizeof(struct container),
		.takes = take_container},
	{.name = "initContainers",
		.type = KUBE_ARRAY,
		.fields = container_fields,
		.item_size = sizeof(struct container),
		.takes = take_init_container},
	KUBE_FIELDS_END,
};

static const struct kube_field new_pod_fields[] = {
	KUBE_META(labels),
	KUBE_OBJECT("spec", new_pod_spec),
	KUBE_FIELDS_END,
};

struct kube_new_pod *kube_new_pod_decode(struct span json, const char *resource, struct error **err)
{
	CLEANUP(json_reader_freep) struct json_reader *r = json_reader_new(json);
	struct kube_new_pod *p = x_calloc(1, sizeof(*p));
	struct json_event end;

	p->resource = resource;
	json_reader_be_strict(r);
	if (kube_fields_read(r, new_pod_fields, p, err) == 0 && json_expect(r, JSON_END, &end, err) == 0)
		return p;
	err_wrap(err, "pod");
	kube_new_pod_free(p);
	return NULL;
}

void kube_new_pod_free(struct kube_new_pod *p)
{
	if (!p)
		return;
	kube_fields_done(new_pod_fields, p);
	free(p);
}

char *kube_pod_claim(const struct kube_pod *pod, const struct kube_pod_volume *v)
{
	if (v->claim)
		return x_strdup(v->claim);
	return v->is_ephemeral ? x_asprintf("%s-%s", pod->meta.name, v->name) : NULL;
}
