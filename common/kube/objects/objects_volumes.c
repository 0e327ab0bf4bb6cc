/* SPDX-License-Identifier: Apache-2.0 */
/* PersistentVolumes and PersistentVolumeClaims. */
#include <stdlib.h>

#include "base/mem.h"
#include "base/str.h"
#include "kube/objects/objects.h"
#include "kube/objects/objects_private.h"

static int read_csi(void *user, const char *key, struct json_reader *r, struct error **err)
{
	struct kube_volume *v = user;

	if (str_eq(key, "driver"))
		return kube_read_text(r, &v->driver, err);
	if (str_eq(key, "volumeHandle"))
		return kube_read_text(r, &v->handle, err);
	return json_skip_value(r, err);
}

static int read_claim_ref(void *user, const char *key, struct json_reader *r, struct error **err)
{
	struct kube_volume *v = user;

	if (str_eq(key, "namespace"))
		return kube_read_text(r, &v->claim_namespace, err);
	if (str_eq(key, "name"))
		return kube_read_text(r, &v->claim_name, err);
	if (str_eq(key, "uid"))
		return kube_read_text(r, &v->claim_uid, err);
	return json_skip_value(r, err);
}

struct expression {
	char *operator;
	char **values;
};

static int read_expression_member(void *user, const char *key, struct json_reader *r, struct error **err)
{
	struct expression *e = user;

	if (str_eq(key, "operator"))
		return kube_read_text(r, &e->operator, err);
	if (str_eq(key, "values"))
		return kube_read_texts(r, &e->values, err);
	return json_skip_value(r, err);
}

static int read_expression(void *user, struct json_reader *r, struct error **err)
{
	struct kube_volume *v = user;
	struct expression e = {0};
	int rv = kube_read_members(r, read_expression_member, &e, err);

	if (rv == 0 && str_eq(e.operator, "In")) {
		for (char **value = e.values; value && *value; value++)
			kube_add_text(&v->node_values, *value);
	}
	free(e.operator);
	strv_free(e.values);
	return rv;
}

static int read_term_member(void *user, const char *key, struct json_reader *r, struct error **err)
{
	if (str_eq(key, "matchExpressions"))
		return kube_read_array(r, read_expression, user, err);
	return json_skip_value(r, err);
}

static int read_term(void *user, struct json_reader *r, struct error **err)
{
	return kube_read_members(r, read_term_member, user, err);
}

static int read_required(void *user, const char *key, struct json_reader *r, struct error **err)
{
	if (str_eq(key, "nodeSelectorTerms"))
		return kube_read_array(r, read_term, user, err);
	return json_skip_value(r, err);
}

static int read_affinity(void *user, const char *key, struct json_reader *r, struct error **err)
{
	if (str_eq(key, "required"))
		return kube_read_object(r, read_required, user, err);
	return json_skip_value(r, err);
}

static int read_storage(void *user, const char *key, struct json_reader *r, struct error **err)
{
	bool has;

	if (str_eq(key, "storage"))
		return kube_read_quantity(r, user, &has, err);
	return json_skip_value(r, err);
}

static int read_volume_spec(void *user, const char *key, struct json_reader *r, struct error **err)
{
	struct kube_volume *v = user;

	if (str_eq(key, "csi"))
		return kube_read_object(r, read_csi, v, err);
	if (str_eq(key, "claimRef"))
		return kube_read_object(r, read_claim_ref, v, err);
	if (str_eq(key, "nodeAffinity"))
		return kube_read_object(r, read_affinity, v, err);
	if (str_eq(key, "storageClassName"))
		return kube_read_text(r, &v->storage_class, err);
	if (str_eq(key, "capacity"))
		return kube_read_object(r, read_storage, &v->size_bytes, err);
	return json_skip_value(r, err);
}

static int read_phase(void *user, const char *key, struct json_reader *r, struct error **err)
{
	if (str_eq(key, "phase"))
		return kube_read_text(r, user, err);
	return json_skip_value(r, err);
}

static int read_volume(void *user, const char *key, struct json_reader *r, struct error **err)
{
	struct kube_volume *v = user;

	if (str_eq(key, "spec"))
		return kube_read_object(r, read_volume_spec, v, err);
	if (str_eq(key, "status"))
		return kube_read_object(r, read_phase, &v->phase, err);
	return json_skip_value(r, err);
}

static void free_volume(void *object)
{
	struct kube_volume *v = object;

	kube_meta_done(&v->meta);
	free(v->driver);
	free(v->handle);
	free(v->storage_class);
	free(v->claim_namespace);
	free(v->claim_name);
	free(v->claim_uid);
	free(v->phase);
	strv_free(v->node_values);
	free(v);
}

static void *decode_volume(struct json_reader *r, struct error **err)
{
	struct kube_volume *v = x_calloc(1, sizeof(*v));

	if (kube_object_read(r, &v->meta, KUBE_KEEP_ANNOTATIONS, read_volume, v, err) == 0)
		return v;
	free_volume(v);
	return NULL;
}

const struct kube_kind kube_kind_volumes = {
	.path = "/api/v1/persistentvolumes",
	.what = "persistentvolumes",
	.decode = decode_volume,
	.free = free_volume,
};

struct kube_volume *kube_volume_decode(struct span json, struct error **err)
{
	return kube_decode(&kube_kind_volumes, json, err);
}

static int read_resources(void *user, const char *key, struct json_reader *r, struct error **err)
{
	if (str_eq(key, "requests"))
		return kube_read_object(r, read_storage, user, err);
	return json_skip_value(r, err);
}

static int read_claim_spec(void *user, const char *key, struct json_reader *r, struct error **err)
{
	struct kube_claim *c = user;

	if (str_eq(key, "storageClassName"))
		return kube_read_text(r, &c->storage_class, err);
	if (str_eq(key, "volumeName"))
		return kube_read_text(r, &c->volume_name, err);
	if (str_eq(key, "resources"))
		return kube_read_object(r, read_resources, &c->request_bytes, err);
	if (str_eq(key, "volumeMode")) {
		CLEANUP(free_charp) char *mode = NULL;

		if (kube_read_text(r, &mode, err) < 0)
			return -1;
		c->is_block = str_eq(mode, "Block");
		return 0;
	}
	return json_skip_value(r, err);
}

static int read_claim(void *user, const char *key, struct json_reader *r, struct error **err)
{
	struct kube_claim *c = user;

	if (str_eq(key, "spec"))
		return kube_read_object(r, read_claim_spec, c, err);
	if (str_eq(key, "status"))
		return kube_read_object(r, read_phase, &c->phase, err);
	return json_skip_value(r, err);
}

static void free_claim(void *object)
{
	struct kube_claim *c = object;

	kube_meta_done(&c->meta);
	free(c->storage_class);
	free(c->volume_name);
	free(c->selected_node);
	free(c->provisioner);
	free(c->phase);
	free(c);
}

/* Of the annotations, which anybody may fill with anything, only these are kept. */
static void take_annotations(struct kube_claim *c)
{
	const char *provisioner = kube_meta_annotation(&c->meta, "volume.kubernetes.io/storage-provisioner");

	if (!provisioner)
		provisioner = kube_meta_annotation(&c->meta, "volume.beta.kubernetes.io/storage-provisioner");
	if (!c->storage_class)
		c->storage_class =
			x_strdup(kube_meta_annotation(&c->meta, "volume.beta.kubernetes.io/storage-class"));
	c->provisioner = x_strdup(provisioner);
	c->selected_node = x_strdup(kube_meta_annotation(&c->meta, "volume.kubernetes.io/selected-node"));
	free(c->meta.annotations.block);
	c->meta.annotations.block = NULL;
}

static void *decode_claim(struct json_reader *r, struct error **err)
{
	struct kube_claim *c = x_calloc(1, sizeof(*c));

	if (kube_object_read(r, &c->meta, KUBE_KEEP_ANNOTATIONS | KUBE_KEEP_OWNER, read_claim, c, err) < 0) {
		free_claim(c);
		return NULL;
	}
	take_annotations(c);
	return c;
}

const struct kube_kind kube_kind_claims = {
	.path = "/api/v1/persistentvolumeclaims",
	.what = "persistentvolumeclaims",
	.decode = decode_claim,
	.free = free_claim,
};

struct kube_claim *kube_claim_decode(struct span json, struct error **err)
{
	return kube_decode(&kube_kind_claims, json, err);
}
