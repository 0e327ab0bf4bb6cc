/* SPDX-License-Identifier: Apache-2.0 */
/* Pods, and what the cluster knows of CSI drivers. */
#include <stdlib.h>

#include "base/mem.h"
#include "base/str.h"
#include "kube/objects/objects.h"
#include "kube/objects/objects_private.h"

/* The API allows as many as an object of etcd holds; no pod that runs has as many. */
#define MAX_VOLUMES 1024

static int read_claim_source(void *user, const char *key, struct json_reader *r, struct error **err)
{
	if (str_eq(key, "claimName"))
		return kube_read_text(r, user, err);
	return json_skip_value(r, err);
}

static int read_template_spec(void *user, const char *key, struct json_reader *r, struct error **err)
{
	if (str_eq(key, "storageClassName"))
		return kube_read_text(r, user, err);
	return json_skip_value(r, err);
}

static int read_template(void *user, const char *key, struct json_reader *r, struct error **err)
{
	if (str_eq(key, "spec"))
		return kube_read_object(r, read_template_spec, user, err);
	return json_skip_value(r, err);
}

static int read_ephemeral(void *user, const char *key, struct json_reader *r, struct error **err)
{
	struct kube_pod_volume *v = user;

	if (!str_eq(key, "volumeClaimTemplate"))
		return json_skip_value(r, err);
	v->is_ephemeral = true;
	return kube_read_object(r, read_template, &v->template_class, err);
}

static int read_csi(void *user, const char *key, struct json_reader *r, struct error **err)
{
	struct kube_pod_volume *v = user;

	if (str_eq(key, "driver"))
		return kube_read_text(r, &v->driver, err);
	if (str_eq(key, "fsType"))
		return kube_read_text(r, &v->fs_type, err);
	if (str_eq(key, "volumeAttributes"))
		return kube_pairs_read(r, &v->attributes, err);
	return json_skip_value(r, err);
}

static int read_volume_member(void *user, const char *key, struct json_reader *r, struct error **err)
{
	struct kube_pod_volume *v = user;

	if (str_eq(key, "name"))
		return kube_read_text(r, &v->name, err);
	if (str_eq(key, "persistentVolumeClaim"))
		return kube_read_object(r, read_claim_source, &v->claim, err);
	if (str_eq(key, "ephemeral"))
		return kube_read_object(r, read_ephemeral, v, err);
	if (str_eq(key, "csi"))
		return kube_read_object(r, read_csi, v, err);
	return json_skip_value(r, err);
}

static void volume_done(struct kube_pod_volume *v)
{
	free(v->name);
	free(v->claim);
	free(v->template_class);
	free(v->driver);
	free(v->fs_type);
	free(v->attributes.block);
}

/* A pod that is being read, of one of the two kinds. */
struct pod_reading {
	struct kube_pod *pod;
	struct kube_new_pod *new_pod; /* that has @pod; NULL: what only new pods keep is left out */
	const char *resource;         /* of new pods */
};

static int read_volume(void *user, struct json_reader *r, struct error **err)
{
	const struct pod_reading *reading = user;
	struct kube_pod *p = reading->pod;
	struct kube_pod_volume v = {0};
	int rv = kube_read_members(r, read_volume_member, &v, err);

	if (reading->new_pod)
		reading->new_pod->has_volumes = true;
	else
		free(TAKE_PTR(v.template_class));
	if (rv < 0 || !v.name || !(v.claim || v.is_ephemeral || v.driver) || p->n_volumes == MAX_VOLUMES) {
		volume_done(&v);
		return rv;
	}
	p->volumes = x_realloc(p->volumes, p->n_volumes + 1, sizeof(*p->volumes));
	p->volumes[p->n_volumes++] = v;
	return 0;
}

struct container_reading {
	const char *resource;
	struct kube_container container;
	bool is_limited; /* the resource is among the limits */
	bool is_requested;
};

/* As kube_read_object(). @ret_has: whether there is one */
static int read_if_there(
	struct json_reader *r, kube_member_fn *member, void *user, bool *ret_has, struct error **err)
{
	struct json_event ev;

	if (json_next(r, &ev, err) < 0)
		return -1;
	*ret_has = ev.type == JSON_OBJECT;
	return *ret_has ? kube_read_members(r, member, user, err) : json_skip_odd(r, &ev, err);
}

static int read_limit(void *user, const char *key, struct json_reader *r, struct error **err)
{
	struct container_reading *c = user;

	c->is_limited |= str_eq(key, c->resource);
	return json_skip_value(r, err);
}

static int read_request(void *user, const char *key, struct json_reader *r, struct error **err)
{
	struct container_reading *c = user;

	c->is_requested |= str_eq(key, c->resource);
	return json_skip_value(r, err);
}

static int read_resources(void *user, const char *key, struct json_reader *r, struct error **err)
{
	struct container_reading *c = user;

	if (str_eq(key, "limits"))
		return read_if_there(r, read_limit, c, &c->container.has_limits, err);
	if (str_eq(key, "requests"))
		return read_if_there(r, read_request, c, &c->container.has_requests, err);
	return json_skip_value(r, err);
}

static int read_container_member(void *user, const char *key, struct json_reader *r, struct error **err)
{
	struct container_reading *c = user;

	if (str_eq(key, "resources"))
		return read_if_there(r, read_resources, c, &c->container.has_resources, err);
	return json_skip_value(r, err);
}

static int read_any_container(
	const struct pod_reading *p, struct kube_container *ret, struct json_reader *r, struct error **err)
{
	struct container_reading c = {.resource = p->resource};
	int rv = kube_read_members(r, read_container_member, &c, err);

	p->new_pod->has_resource |= c.is_limited && c.is_requested;
	*ret = c.container;
	return rv;
}

static int read_init_container(void *user, struct json_reader *r, struct error **err)
{
	struct kube_container ignored;

	return read_any_container(user, &ignored, r, err);
}

static int read_container(void *user, struct json_reader *r, struct error **err)
{
	const struct pod_reading *p = user;
	struct kube_container c;
	int rv = read_any_container(p, &c, r, err);

	if (p->new_pod->n_containers++ == 0)
		p->new_pod->first_container = c;
	return rv;
}

static int read_new_pod_spec(
	struct pod_reading *p, const char *key, struct json_reader *r, struct error **err)
{
	if (str_eq(key, "schedulerName"))
		return kube_read_text(r, &p->new_pod->scheduler, err);
	if (str_eq(key, "containers"))
		return kube_read_array(r, read_container, p, err);
	if (str_eq(key, "initContainers"))
		return kube_read_array(r, read_init_container, p, err);
	return json_skip_value(r, err);
}

static int read_pod_spec(void *user, const char *key, struct json_reader *r, struct error **err)
{
	struct pod_reading *p = user;

	if (str_eq(key, "nodeName"))
		return kube_read_text(r, &p->pod->node_name, err);
	if (str_eq(key, "volumes"))
		return kube_read_array(r, read_volume, p, err);
	return p->new_pod ? read_new_pod_spec(p, key, r, err) : json_skip_value(r, err);
}

struct condition {
	char *type;
	char *status;
	char *message;
	char *since;
};

static int read_condition_member(void *user, const char *key, struct json_reader *r, struct error **err)
{
	struct condition *c = user;

	if (str_eq(key, "type"))
		return kube_read_text(r, &c->type, err);
	if (str_eq(key, "status"))
		return kube_read_text(r, &c->status, err);
	if (str_eq(key, "message"))
		return kube_read_text(r, &c->message, err);
	if (str_eq(key, "lastTransitionTime"))
		return kube_read_text(r, &c->since, err);
	return json_skip_value(r, err);
}

/* FNV-1a, but never 0. */
static uint64_t hash_of(const char *text)
{
	uint64_t hash = 0xcbf29ce484222325;

	for (; text && *text; text++)
		hash = (hash ^ (unsigned char)*text) * 0x100000001b3;
	return hash ? hash : 1;
}

static int read_condition(void *user, struct json_reader *r, struct error **err)
{
	const struct pod_reading *reading = user;
	struct kube_pod *p = reading->pod;
	struct condition c = {0};
	int rv = kube_read_members(r, read_condition_member, &c, err);

	if (rv == 0 && str_eq(c.type, "PodScheduled") && str_eq(c.status, "False")) {
		p->unscheduled = hash_of(c.message);
		free(p->unscheduled_since);
		p->unscheduled_since = TAKE_PTR(c.since);
	}
	free(c.since);
	free(c.type);
	free(c.status);
	free(c.message);
	return rv;
}

static int read_pod_status(void *user, const char *key, struct json_reader *r, struct error **err)
{
	if (str_eq(key, "conditions"))
		return kube_read_array(r, read_condition, user, err);
	return json_skip_value(r, err);
}

static int read_pod(void *user, const char *key, struct json_reader *r, struct error **err)
{
	if (str_eq(key, "spec"))
		return kube_read_object(r, read_pod_spec, user, err);
	if (str_eq(key, "status"))
		return kube_read_object(r, read_pod_status, user, err);
	return json_skip_value(r, err);
}

static void pod_done(struct kube_pod *p)
{
	for (size_t i = 0; i < p->n_volumes; i++)
		volume_done(&p->volumes[i]);
	free(p->volumes);
	free(p->node_name);
	free(p->unscheduled_since);
	kube_meta_done(&p->meta);
}

static void free_pod(void *object)
{
	pod_done(object);
	free(object);
}

static void *decode_pod(struct json_reader *r, struct error **err)
{
	struct kube_pod *p = x_calloc(1, sizeof(*p));
	struct pod_reading reading = {.pod = p};

	if (kube_object_read(r, &p->meta, KUBE_KEEP_NONE, read_pod, &reading, err) == 0)
		return p;
	free_pod(p);
	return NULL;
}

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
	.decode = decode_pod,
	.free = free_pod,
	.keeps = has_volumes,
};

struct kube_pod *kube_pod_decode(struct span json, struct error **err)
{
	return kube_decode(&kube_kind_pods, json, err);
}

static int read_new_pod(void *user, const char *key, struct json_reader *r, struct error **err)
{
	struct pod_reading *p = user;

	if (str_eq(key, "metadata"))
		return kube_meta_read(r, &p->pod->meta, KUBE_KEEP_LABELS, err);
	return read_pod(p, key, r, err);
}

struct kube_new_pod *kube_new_pod_decode(struct span json, const char *resource, struct error **err)
{
	CLEANUP(json_reader_freep) struct json_reader *r = json_reader_new(json);
	struct kube_new_pod *p = x_calloc(1, sizeof(*p));
	struct pod_reading reading = {&p->pod, p, resource};
	struct json_event end;

	json_reader_be_strict(r);
	if (kube_read_object(r, read_new_pod, &reading, err) == 0 && json_expect(r, JSON_END, &end, err) == 0)
		return p;
	err_wrap(err, "pod");
	kube_new_pod_free(p);
	return NULL;
}

void kube_new_pod_free(struct kube_new_pod *p)
{
	if (!p)
		return;
	pod_done(&p->pod);
	free(p->scheduler);
	free(p);
}

char *kube_pod_claim(const struct kube_pod *pod, const struct kube_pod_volume *v)
{
	if (v->claim)
		return x_strdup(v->claim);
	return v->is_ephemeral ? x_asprintf("%s-%s", pod->meta.name, v->name) : NULL;
}

static int read_driver_spec(void *user, const char *key, struct json_reader *r, struct error **err)
{
	if (str_eq(key, "volumeLifecycleModes"))
		return kube_read_texts(r, user, err);
	return json_skip_value(r, err);
}

static int read_driver(void *user, const char *key, struct json_reader *r, struct error **err)
{
	struct kube_csi_driver *d = user;

	if (str_eq(key, "spec"))
		return kube_read_object(r, read_driver_spec, &d->modes, err);
	return json_skip_value(r, err);
}

static void free_driver(void *object)
{
	struct kube_csi_driver *d = object;

	strv_free(d->modes);
	kube_meta_done(&d->meta);
	free(d);
}

static void *decode_driver(struct json_reader *r, struct error **err)
{
	struct kube_csi_driver *d = x_calloc(1, sizeof(*d));

	if (kube_object_read(r, &d->meta, KUBE_KEEP_NONE, read_driver, d, err) == 0)
		return d;
	free_driver(d);
	return NULL;
}

const struct kube_kind kube_kind_csi_drivers = {
	.path = "/apis/storage.k8s.io/v1/csidrivers",
	.what = "csidrivers",
	.decode = decode_driver,
	.free = free_driver,
};
