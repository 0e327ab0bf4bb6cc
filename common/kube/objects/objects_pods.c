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
	return kube_skip_value(r, err);
}

static int read_ephemeral(void *user, const char *key, struct json_reader *r, struct error **err)
{
	bool *is_ephemeral = user;

	if (str_eq(key, "volumeClaimTemplate"))
		*is_ephemeral = true;
	return kube_skip_value(r, err);
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
	return kube_skip_value(r, err);
}

static int read_volume_member(void *user, const char *key, struct json_reader *r, struct error **err)
{
	struct kube_pod_volume *v = user;

	if (str_eq(key, "name"))
		return kube_read_text(r, &v->name, err);
	if (str_eq(key, "persistentVolumeClaim"))
		return kube_read_object(r, read_claim_source, &v->claim, err);
	if (str_eq(key, "ephemeral"))
		return kube_read_object(r, read_ephemeral, &v->is_ephemeral, err);
	if (str_eq(key, "csi"))
		return kube_read_object(r, read_csi, v, err);
	return kube_skip_value(r, err);
}

static void volume_done(struct kube_pod_volume *v)
{
	free(v->name);
	free(v->claim);
	free(v->driver);
	free(v->fs_type);
	free(v->attributes.block);
}

static int read_volume(void *user, struct json_reader *r, struct error **err)
{
	struct kube_pod *p = user;
	struct kube_pod_volume v = {0};
	int rv = kube_read_members(r, read_volume_member, &v, err);

	if (rv < 0 || !v.name || !(v.claim || v.is_ephemeral || v.driver) || p->n_volumes == MAX_VOLUMES) {
		volume_done(&v);
		return rv;
	}
	p->volumes = x_realloc(p->volumes, p->n_volumes + 1, sizeof(*p->volumes));
	p->volumes[p->n_volumes++] = v;
	return 0;
}

static int read_pod_spec(void *user, const char *key, struct json_reader *r, struct error **err)
{
	struct kube_pod *p = user;

	if (str_eq(key, "nodeName"))
		return kube_read_text(r, &p->node_name, err);
	if (str_eq(key, "volumes"))
		return kube_read_array(r, read_volume, p, err);
	return kube_skip_value(r, err);
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
	return kube_skip_value(r, err);
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
	struct kube_pod *p = user;
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
	return kube_skip_value(r, err);
}

static int read_pod(void *user, const char *key, struct json_reader *r, struct error **err)
{
	if (str_eq(key, "spec"))
		return kube_read_object(r, read_pod_spec, user, err);
	if (str_eq(key, "status"))
		return kube_read_object(r, read_pod_status, user, err);
	return kube_skip_value(r, err);
}

static void free_pod(void *object)
{
	struct kube_pod *p = object;

	for (size_t i = 0; i < p->n_volumes; i++)
		volume_done(&p->volumes[i]);
	free(p->volumes);
	free(p->node_name);
	free(p->unscheduled_since);
	kube_meta_done(&p->meta);
	free(p);
}

static void *decode_pod(struct json_reader *r, struct error **err)
{
	struct kube_pod *p = x_calloc(1, sizeof(*p));

	if (kube_object_read(r, &p->meta, KUBE_KEEP_NONE, read_pod, p, err) == 0)
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
	return kube_skip_value(r, err);
}

static int read_driver(void *user, const char *key, struct json_reader *r, struct error **err)
{
	struct kube_csi_driver *d = user;

	if (str_eq(key, "spec"))
		return kube_read_object(r, read_driver_spec, &d->modes, err);
	return kube_skip_value(r, err);
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
