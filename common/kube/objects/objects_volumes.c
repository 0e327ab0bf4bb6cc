/* SPDX-License-Identifier: Apache-2.0 */
/* PersistentVolumes and PersistentVolumeClaims. */
#include <stdlib.h>

#include "base/mem.h"
#include "base/names.h"
#include "base/str.h"
#include "kube/json_members.h"
#include "kube/objects/objects.h"

static const struct kube_field volume_csi[] = {
	KUBE_FIELD("driver", KUBE_TEXT, struct kube_volume, driver),
	KUBE_FIELD("volumeHandle", KUBE_TEXT, struct kube_volume, handle),
	KUBE_FIELDS_END,
};

static const struct kube_field claim_reference[] = {
	KUBE_FIELD("namespace", KUBE_TEXT, struct kube_volume, claim_namespace),
	KUBE_FIELD("name", KUBE_TEXT, struct kube_volume, claim_name),
	KUBE_FIELD("uid", KUBE_TEXT, struct kube_volume, claim_uid),
	KUBE_FIELDS_END,
};

struct expression {
	char *key;
	bool is_in;
	char **values;
};

static const struct kube_field expression_fields[] = {
	KUBE_FIELD("key", KUBE_TEXT, struct expression, key),
	KUBE_FIELD("operator", KUBE_SAYS, struct expression, is_in, .says = "In"),
	KUBE_FIELD("values", KUBE_TEXTS, struct expression, values),
	KUBE_FIELDS_END,
};

/* A term of the node affinity. */
struct term {
	char **pairs; /* strv: key, value, key ... of operator In */
};

static bool take_expression(void *object, void *item)
{
	const struct expression *e = item;
	struct term *t = object;

	for (char **value = e->is_in && e->key ? e->values : NULL; value && *value; value++) {
		kube_add_text(&t->pairs, e->key);
		kube_add_text(&t->pairs, *value);
	}
	return false;
}

static const struct kube_field term_fields[] = {
	{.name = "matchExpressions",
		.type = KUBE_ARRAY,
		.fields = expression_fields,
		.item_size = sizeof(struct expression),
		.takes = take_expression},
	KUBE_FIELD("", KUBE_TEXTS, struct term, pairs),
	KUBE_FIELDS_END,
};

/* The driver is known when the whole object is. A pair without key ends each term. */
static bool take_term(void *object, void *item)
{
	const struct term *t = item;
	struct kube_volume *v = object;

	for (char **text = t->pairs; text && *text; text += 2) {
		kube_add_text(&v->node_values, text[1]);
		kube_add_text(&v->affinity, text[0]);
		kube_add_text(&v->affinity, text[1]);
	}
	kube_add_text(&v->affinity, "");
	kube_add_text(&v->affinity, "");
	return false;
}

static const struct kube_field required_fields[] = {
	{.name = "nodeSelectorTerms",
		.type = KUBE_ARRAY,
		.fields = term_fields,
		.item_size = sizeof(struct term),
		.takes = take_term},
	KUBE_FIELDS_END,
};

static const struct kube_field affinity_fields[] = {
	KUBE_OBJECT("required", required_fields),
	KUBE_FIELDS_END,
};

static const struct kube_field volume_capacity[] = {
	KUBE_FIELD("storage", KUBE_QUANTITY, struct kube_volume, size_bytes),
	KUBE_FIELDS_END,
};

static const struct kube_field volume_spec[] = {
	KUBE_OBJECT("csi", volume_csi),
	KUBE_OBJECT("claimRef", claim_reference),
	KUBE_OBJECT("nodeAffinity", affinity_fields),
	KUBE_FIELD("storageClassName", KUBE_TEXT, struct kube_volume, storage_class),
	KUBE_OBJECT("capacity", volume_capacity),
	KUBE_FIELDS_END,
};

static const struct kube_field volume_status[] = {
	KUBE_FIELD("phase", KUBE_TEXT, struct kube_volume, phase),
	KUBE_FIELDS_END,
};

static const struct kube_field volume_fields[] = {
	KUBE_META(annotations),
	KUBE_OBJECT("spec", volume_spec),
	KUBE_OBJECT("status", volume_status),
	KUBE_FIELD("", KUBE_TEXTS, struct kube_volume, node_values),
	KUBE_FIELD("", KUBE_TEXTS, struct kube_volume, node_ids),
	KUBE_FIELD("", KUBE_TEXTS, struct kube_volume, affinity),
	KUBE_FIELDS_END,
};

/* Only kube-scheduler knows which nodes a term allows that does not name them by the driver's key. The nodes
 * are not known, either, if terms were cut off because there are too many. */
static void derive_volume(void *object)
{
	struct kube_volume *v = object;
	CLEANUP(strv_freep) char **affinity = TAKE_PTR(v->affinity);
	CLEANUP(free_charp) char *key = name_topology_key(v->driver ? v->driver : "");
	bool is_named = false; /* by the present term */

	_Static_assert(KUBE_MAX_TEXTS % 2 == 0, "pairs are not cut apart");
	if (strv_len(affinity) == KUBE_MAX_TEXTS)
		return;
	for (char **pair = affinity; pair && *pair; pair += 2) {
		bool is_end = str_empty(pair[0]);

		if (is_end && !is_named) {
			strv_free(TAKE_PTR(v->node_ids));
			return;
		}
		is_named = !is_end && (is_named || str_eq(pair[0], key));
		if (str_eq(pair[0], key))
			kube_add_text(&v->node_ids, pair[1]);
	}
}

const struct kube_kind kube_kind_volumes = {
	.path = "/api/v1/persistentvolumes",
	.what = "persistentvolumes",
	.size = sizeof(struct kube_volume),
	.fields = volume_fields,
	.derive = derive_volume,
};

static const struct kube_field claim_requests[] = {
	KUBE_FIELD("storage", KUBE_QUANTITY, struct kube_claim, request_bytes),
	KUBE_FIELDS_END,
};

static const struct kube_field claim_resources[] = {
	KUBE_OBJECT("requests", claim_requests),
	KUBE_FIELDS_END,
};

/* The API server makes both sources the same, unless the one of dataSourceRef is in another namespace
 * (Kubernetes pkg/api/persistentvolumeclaim, NormalizeDataSources()). */
static const struct kube_field claim_source[] = {
	KUBE_FIELD("apiGroup", KUBE_TEXT, struct kube_claim, source_group),
	KUBE_FIELD("kind", KUBE_TEXT, struct kube_claim, source_kind),
	KUBE_FIELD("namespace", KUBE_TEXT, struct kube_claim, source_namespace),
	KUBE_FIELD("name", KUBE_TEXT, struct kube_claim, source_name),
	KUBE_FIELDS_END,
};

static const struct kube_field claim_spec[] = {
	KUBE_FIELD("storageClassName", KUBE_TEXT, struct kube_claim, storage_class),
	KUBE_FIELD("volumeName", KUBE_TEXT, struct kube_claim, volume_name),
	KUBE_OBJECT("resources", claim_resources),
	KUBE_FIELD("volumeMode", KUBE_SAYS, struct kube_claim, is_block, .says = "Block"),
	KUBE_OBJECT("dataSource", claim_source),
	KUBE_OBJECT("dataSourceRef", claim_source),
	KUBE_FIELDS_END,
};

static const struct kube_field claim_status[] = {
	KUBE_FIELD("phase", KUBE_TEXT, struct kube_claim, phase),
	KUBE_FIELDS_END,
};

static const struct kube_field claim_fields[] = {
	KUBE_META(annotations_and_owner),
	KUBE_OBJECT("spec", claim_spec),
	KUBE_OBJECT("status", claim_status),
	KUBE_FIELD("", KUBE_TEXT, struct kube_claim, provisioner),
	KUBE_FIELD("", KUBE_TEXT, struct kube_claim, selected_node),
	KUBE_FIELD("", KUBE_TEXT, struct kube_claim, release_after),
	KUBE_FIELD("", KUBE_TEXT, struct kube_claim, source_claim),
	KUBE_FIELD("", KUBE_TEXT, struct kube_claim, source_snapshot),
	KUBE_FIELDS_END,
};

/* A data source of any other kind makes no difference to the driver. */
static void derive_source(struct kube_claim *c)
{
	CLEANUP(free_charp) char *kind = TAKE_PTR(c->source_kind);
	CLEANUP(free_charp) char *group = TAKE_PTR(c->source_group);
	CLEANUP(free_charp) char *namespace = TAKE_PTR(c->source_namespace);
	CLEANUP(free_charp) char *name = TAKE_PTR(c->source_name);
	bool is_claim = str_eq(kind, "PersistentVolumeClaim") && str_empty(group);
	bool is_snapshot = str_eq(kind, "VolumeSnapshot") && str_eq(group, "snapshot.storage.k8s.io");

	if ((!is_claim && !is_snapshot) || str_empty(name) || !c->meta.namespace)
		return;
	char *text = x_asprintf("%s/%s", str_empty(namespace) ? c->meta.namespace : namespace, name);
	if (is_claim)
		c->source_claim = text;
	else
		c->source_snapshot = text;
}

/* Annotations may hold anything, so that only these are kept. */
static void derive_claim(void *object)
{
	struct kube_claim *c = object;
	const char *provisioner = kube_meta_annotation(&c->meta, "volume.kubernetes.io/storage-provisioner");

	if (!provisioner)
		provisioner = kube_meta_annotation(&c->meta, "volume.beta.kubernetes.io/storage-provisioner");
	if (!c->storage_class)
		c->storage_class =
			x_strdup(kube_meta_annotation(&c->meta, "volume.beta.kubernetes.io/storage-class"));
	c->provisioner = x_strdup(provisioner);
	c->selected_node = x_strdup(kube_meta_annotation(&c->meta, "volume.kubernetes.io/selected-node"));
	c->release_after = x_strdup(kube_meta_annotation(&c->meta, "pmem-csi.intel.com/release-after"));
	c->skips_hostmount = str_eq(kube_meta_annotation(&c->meta, "skip-hostmount"), "true");
	free(TAKE_PTR(c->meta.annotations.block));
	derive_source(c);
}

const struct kube_kind kube_kind_claims = {
	.path = "/api/v1/persistentvolumeclaims",
	.what = "persistentvolumeclaims",
	.size = sizeof(struct kube_claim),
	.fields = claim_fields,
	.derive = derive_claim,
};

char *kube_claim_volume_name(const struct kube_claim *claim)
{
	return x_asprintf("pvc-%s", claim->meta.uid);
}
