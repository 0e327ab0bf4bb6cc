/* SPDX-License-Identifier: Apache-2.0 */
#include "resources/pmem_volume.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/json/json.h"
#include "base/mem.h"
#include "base/parse.h"
#include "base/str.h"

/* Largest number of nodes, and of bytes, in the text that names the nodes for people. */
#define LOCATION_NODES 4
#define LOCATION_MAX   4096
/* apimachinery, pkg/util/validation */
#define LABEL_VALUE_MAX 63

/* clang-format off */
static const struct kube_field spec_fields[] = {
	KUBE_FIELD("driver", KUBE_TEXT, struct pmem_volume, driver),
	KUBE_FIELD("volumeName", KUBE_TEXT, struct pmem_volume, volume_name),
	KUBE_FIELD("origin", KUBE_TEXT, struct pmem_volume, origin),
	KUBE_FIELD("sourceVolume", KUBE_TEXT, struct pmem_volume, source),
	KUBE_FIELD("snapshot", KUBE_FLAG, struct pmem_volume, snapshot),
	KUBE_FIELD("volumeSnapshot", KUBE_TEXT, struct pmem_volume, volume_snapshot),
	KUBE_FIELD("group", KUBE_TEXT, struct pmem_volume, group),
	KUBE_FIELD("", KUBE_TEXTS, struct pmem_volume, parameters),
	KUBE_FIELD("nodes", KUBE_TEXTS, struct pmem_volume, nodes),
	KUBE_FIELD("size", KUBE_QUANTITY, struct pmem_volume, size_bytes),
	KUBE_FIELD("attempts", KUBE_QUANTITY, struct pmem_volume, attempts),
	KUBE_FIELD("deleting", KUBE_FLAG, struct pmem_volume, deleting),
	KUBE_FIELD("retained", KUBE_FLAG, struct pmem_volume, retained),
	KUBE_FIELDS_END,
};

static const struct kube_field filling_fields[] = {
	KUBE_FIELD("done", KUBE_QUANTITY, struct pmem_volume_copy, done_bytes),
	KUBE_FIELD("total", KUBE_QUANTITY, struct pmem_volume_copy, total_bytes),
	KUBE_FIELDS_END,
};

static const struct kube_field copy_fields[] = {
	KUBE_FIELD("node", KUBE_TEXT, struct pmem_volume_copy, node),
	KUBE_FIELD("phase", KUBE_TEXT, struct pmem_volume_copy, phase),
	KUBE_FIELD("size", KUBE_QUANTITY, struct pmem_volume_copy, size_bytes),
	KUBE_FIELD("report", KUBE_QUANTITY, struct pmem_volume_copy, report),
	KUBE_OBJECT("filling", filling_fields),
	KUBE_FIELD("dax", KUBE_TEXT, struct pmem_volume_copy, dax),
	KUBE_FIELD("lacksMapSync", KUBE_FLAG, struct pmem_volume_copy, lacks_sync),
	KUBE_FIELDS_END,
};

static const struct kube_field status_fields[] = {
	KUBE_FIELD("volumeHandle", KUBE_TEXT, struct pmem_volume, handle),
	KUBE_FIELD("phase", KUBE_TEXT, struct pmem_volume, phase),
	KUBE_FIELD("claim", KUBE_TEXT, struct pmem_volume, claim),
	KUBE_FIELD("location", KUBE_TEXT, struct pmem_volume, location),
	KUBE_FIELD("size", KUBE_QUANTITY, struct pmem_volume, capacity_bytes),
	KUBE_FIELD("nodes", KUBE_ARRAY, struct pmem_volume, copies,
		.extent = offsetof(struct pmem_volume, n_copies), .fields = copy_fields,
		.item_size = sizeof(struct pmem_volume_copy)),
	PMEM_CONDITIONS(struct pmem_volume, conditions),
	KUBE_FIELDS_END,
};

static const struct kube_field volume_fields[] = {
	KUBE_META(labels_finalizers_and_time),
	KUBE_OBJECT("spec", spec_fields),
	KUBE_OBJECT("status", status_fields),
	KUBE_FIELDS_END,
};
/* clang-format on */

enum { CLAIM_NAMESPACE, CLAIM, PV, NODE, N_LABELS };

static const char *const label_keys[N_LABELS] = {
	[CLAIM_NAMESPACE] = PMEM_VOLUME_LABEL_CLAIM_NAMESPACE,
	[CLAIM] = PMEM_VOLUME_LABEL_CLAIM,
	[PV] = PMEM_VOLUME_LABEL_PV,
	[NODE] = PMEM_VOLUME_LABEL_NODE,
};

struct labels {
	char *values[N_LABELS]; /* NULL: the object does not have it */
	bool knows_claim;       /* otherwise the labels of the claim stay as they are */
};

static void labels_done(struct labels *l)
{
	for (size_t i = 0; i < N_LABELS; i++)
		free(l->values[i]);
}

/* Source: IsValidLabelValue() in apimachinery, pkg/util/validation. Return: caller frees, or NULL. */
static char *label_value(const char *text, size_t n)
{
	if (n == 0 || n > LABEL_VALUE_MAX || !isalnum((unsigned char)text[0]) ||
		!isalnum((unsigned char)text[n - 1]))
		return NULL;
	for (size_t i = 0; i < n; i++) {
		if (!isalnum((unsigned char)text[i]) && !strchr("-_.", text[i]))
			return NULL;
	}
	return x_strndup(text, n);
}

static const char *parameter(const struct pmem_volume *v, const char *key)
{
	size_t n = strv_len(v->parameters);

	for (size_t i = 0; i + 1 < n; i += 2) {
		if (str_eq(v->parameters[i], key))
			return v->parameters[i + 1];
	}
	return NULL;
}

/* A new record has the claim in its parameters, one that was read in its status. */
static void label_claim(const struct pmem_volume *v, struct labels *l)
{
	const char *slash = v->claim ? strchr(v->claim, '/') : NULL;
	const char *namespace = parameter(v, "csi.storage.k8s.io/pvc/namespace");
	const char *name = parameter(v, "csi.storage.k8s.io/pvc/name");

	l->knows_claim = slash || (namespace && name);
	if (slash) {
		l->values[CLAIM_NAMESPACE] = label_value(v->claim, (size_t)(slash - v->claim));
		l->values[CLAIM] = label_value(slash + 1, strlen(slash + 1));
	} else if (l->knows_claim) {
		l->values[CLAIM_NAMESPACE] = label_value(namespace, strlen(namespace));
		l->values[CLAIM] = label_value(name, strlen(name));
	}
}

/* external-provisioner calls CreateVolume with the name of the PersistentVolume. */
static void find_labels(const struct pmem_volume *v, struct labels *ret)
{
	*ret = (struct labels){0};
	label_claim(v, ret);
	if (v->volume_name && !v->snapshot)
		ret->values[PV] = label_value(v->volume_name, strlen(v->volume_name));
	if (strv_len(v->nodes) == 1)
		ret->values[NODE] = label_value(v->nodes[0], strlen(v->nodes[0]));
}

static bool is_settled(const struct labels *l, size_t i)
{
	return l->knows_claim || (i != CLAIM_NAMESPACE && i != CLAIM);
}

/* Objects do not keep their labels: there are as many as volumes. */
static void compare_labels(void *object)
{
	struct pmem_volume *v = object;
	CLEANUP(labels_done) struct labels wanted;

	find_labels(v, &wanted);
	for (size_t i = 0; i < N_LABELS; i++)
		v->labels_differ |= is_settled(&wanted, i) &&
				    !str_eq(kube_meta_label(&v->meta, label_keys[i]), wanted.values[i]);
	kube_meta_drop_labels(&v->meta);
}

/* @patch: what the object must not have is null, so that it is removed */
static void add_labels(struct json_writer *w, const struct pmem_volume *v, bool patch)
{
	CLEANUP(labels_done) struct labels wanted;

	find_labels(v, &wanted);
	for (size_t i = 0; i < N_LABELS; i++) {
		if (wanted.values[i] || (patch && is_settled(&wanted, i)))
			json_key_str(w, label_keys[i], wanted.values[i]);
	}
}

const struct kube_kind kube_kind_pmem_volumes = {
	.path = "/apis/" PMEM_API_VERSION "/pmemvolumes",
	.what = "pmemvolumes",
	.size = sizeof(struct pmem_volume),
	.fields = volume_fields,
	.derive = compare_labels,
};

char *pmem_volume_object_name(const char *key, const char *driver_name)
{
	return x_asprintf("%s.%s", key, driver_name);
}

void pmem_volume_key(const char *volume_name, char ret[static PMEM_VOLUME_KEY_LEN + 1])
{
	char hex[SHA224_HEX_LEN + 1];

	sha224_hex(volume_name, strlen(volume_name), hex);
	memcpy(ret, hex, PMEM_VOLUME_KEY_LEN);
	ret[PMEM_VOLUME_KEY_LEN] = '\0';
}

char *pmem_volume_object_name_for(const char *volume_name, const char *driver_name)
{
	char key[PMEM_VOLUME_KEY_LEN + 1];

	pmem_volume_key(volume_name, key);
	return pmem_volume_object_name(key, driver_name);
}

struct pmem_volume *pmem_volume_new(const char *key, const char *driver_name)
{
	struct pmem_volume *v = x_calloc(1, sizeof(*v));

	v->meta.name = pmem_volume_object_name(key, driver_name);
	v->driver = x_strdup(driver_name);
	return v;
}

struct pmem_volume *pmem_volume_dup(const struct pmem_volume *v)
{
	struct pmem_volume *copy = x_calloc(1, sizeof(*copy));

	copy->meta.name = x_strdup(v->meta.name);
	copy->meta.uid = x_strdup(v->meta.uid);
	copy->meta.resource_version = x_strdup(v->meta.resource_version);
	copy->meta.created = x_strdup(v->meta.created);
	copy->meta.deleting = v->meta.deleting;
	copy->meta.finalizers = strv_dup(v->meta.finalizers);
	copy->driver = x_strdup(v->driver);
	copy->volume_name = x_strdup(v->volume_name);
	copy->origin = x_strdup(v->origin);
	copy->source = x_strdup(v->source);
	copy->snapshot = v->snapshot;
	copy->volume_snapshot = x_strdup(v->volume_snapshot);
	copy->group = x_strdup(v->group);
	copy->parameters = strv_dup(v->parameters);
	copy->nodes = strv_dup(v->nodes);
	copy->size_bytes = v->size_bytes;
	copy->attempts = v->attempts;
	copy->deleting = v->deleting;
	copy->retained = v->retained;
	copy->handle = x_strdup(v->handle);
	copy->phase = x_strdup(v->phase);
	copy->claim = x_strdup(v->claim);
	copy->location = x_strdup(v->location);
	copy->capacity_bytes = v->capacity_bytes;
	copy->copies = x_calloc(v->n_copies, sizeof(*copy->copies));
	copy->n_copies = v->n_copies;
	for (size_t i = 0; i < v->n_copies; i++) {
		copy->copies[i] = v->copies[i];
		copy->copies[i].node = x_strdup(v->copies[i].node);
		copy->copies[i].phase = x_strdup(v->copies[i].phase);
		copy->copies[i].dax = x_strdup(v->copies[i].dax);
	}
	pmem_conditions_copy(&copy->conditions, &v->conditions);
	return copy;
}

void pmem_volume_free(struct pmem_volume *v)
{
	kube_object_free(&kube_kind_pmem_volumes, v);
}

bool pmem_volume_has_node(const struct pmem_volume *v, const char *node_id)
{
	return v->nodes && strv_contains(v->nodes, node_id);
}

bool pmem_volume_add_node(struct pmem_volume *v, const char *node_id)
{
	if (pmem_volume_has_node(v, node_id))
		return false;
	strv_add(&v->nodes, node_id);
	return true;
}

bool pmem_volume_drop_node(struct pmem_volume *v, const char *node_id)
{
	size_t n = strv_len(v->nodes);

	for (size_t i = 0; i < n; i++) {
		if (!str_eq(v->nodes[i], node_id))
			continue;
		free(v->nodes[i]);
		for (; i < n; i++)
			v->nodes[i] = v->nodes[i + 1];
		return true;
	}
	return false;
}

bool pmem_volume_is_lost(const struct pmem_volume *v, const char *node_id)
{
	for (size_t i = 0; i < v->n_copies; i++) {
		if (str_eq(v->copies[i].node, node_id))
			return str_eq(v->copies[i].phase, PMEM_VOLUME_LOST);
	}
	return false;
}

void pmem_volume_set_location(struct pmem_volume *v)
{
	size_t n = strv_len(v->nodes);
	CLEANUP(buf_done) struct buf text = BUF_INIT(LOCATION_MAX);

	for (size_t i = 0; i < n && i < LOCATION_NODES; i++)
		buf_addf(&text, "%s%s", i > 0 ? "," : "", v->nodes[i]);
	if (n > LOCATION_NODES)
		buf_addf(&text, ",%zu more", n - LOCATION_NODES);
	free(v->location);
	v->location = x_strdup(buf_str(&text));
}

void pmem_volume_add_copy(
	struct pmem_volume *v, const char *node, const char *phase, uint64_t size_bytes, uint64_t report)
{
	if (v->n_copies == KUBE_MAX_ITEMS)
		return;
	v->copies = x_realloc(v->copies, v->n_copies + 1, sizeof(*v->copies));
	v->copies[v->n_copies++] = (struct pmem_volume_copy){
		.node = x_strdup(node), .phase = x_strdup(phase), .size_bytes = size_bytes, .report = report};
}

void pmem_volume_show_filling(
	struct pmem_volume *v, const char *node, uint64_t done_bytes, uint64_t total_bytes)
{
	for (size_t i = 0; i < v->n_copies; i++) {
		if (!str_eq(v->copies[i].node, node))
			continue;
		v->copies[i].done_bytes = done_bytes;
		v->copies[i].total_bytes = total_bytes;
	}
}

void pmem_volume_show_dax(struct pmem_volume *v, const char *node, const char *dax, bool lacks_sync)
{
	for (size_t i = 0; i < v->n_copies; i++) {
		if (!str_eq(v->copies[i].node, node))
			continue;
		free(v->copies[i].dax);
		v->copies[i].dax = x_strdup(dax);
		v->copies[i].lacks_sync = lacks_sync;
	}
}

void pmem_volume_clear_copies(struct pmem_volume *v)
{
	for (size_t i = 0; i < v->n_copies; i++)
		kube_fields_done(copy_fields, &v->copies[i]);
	v->n_copies = 0;
}

static bool copies_equal(const struct pmem_volume *a, const struct pmem_volume *b)
{
	for (size_t i = 0; i < a->n_copies && i < b->n_copies; i++) {
		const struct pmem_volume_copy *x = &a->copies[i];
		const struct pmem_volume_copy *y = &b->copies[i];

		if (!str_eq(x->node, y->node) || !str_eq(x->phase, y->phase) ||
			x->size_bytes != y->size_bytes || x->report != y->report ||
			x->done_bytes != y->done_bytes || x->total_bytes != y->total_bytes ||
			!str_eq(x->dax, y->dax) || x->lacks_sync != y->lacks_sync)
			return false;
	}
	return a->n_copies == b->n_copies;
}

bool pmem_volume_status_equal(const struct pmem_volume *a, const struct pmem_volume *b)
{
	return str_eq(a->handle, b->handle) && str_eq(a->phase, b->phase) && str_eq(a->claim, b->claim) &&
	       str_eq(a->location, b->location) && a->capacity_bytes == b->capacity_bytes &&
	       copies_equal(a, b) && pmem_conditions_equal(&a->conditions, &b->conditions);
}

static void key_nodes(struct json_writer *w, const struct pmem_volume *v)
{
	json_key(w, "nodes");
	json_array(w);
	for (size_t i = 0; i < strv_len(v->nodes); i++)
		json_str(w, v->nodes[i]);
	json_array_end(w);
}

static void key_parameters(struct json_writer *w, const struct pmem_volume *v)
{
	size_t n = strv_len(v->parameters);

	json_key(w, "parameters");
	json_object(w);
	for (size_t i = 0; i + 1 < n; i += 2)
		json_key_str(w, v->parameters[i], v->parameters[i + 1]);
	json_object_end(w);
}

static void add_metadata(struct json_writer *w, const struct pmem_volume *v)
{
	json_key(w, "metadata");
	json_object(w);
	json_key_str(w, "name", v->meta.name);
	json_key(w, "labels");
	json_object(w);
	json_key_str(w, PMEM_LABEL_DRIVER, v->driver);
	add_labels(w, v, /* patch= */ false);
	json_object_end(w);
	json_key(w, "finalizers");
	json_array(w);
	json_str(w, PMEM_VOLUME_FINALIZER);
	json_array_end(w);
	json_object_end(w);
}

void pmem_volume_write_new(const struct pmem_volume *v, struct buf *out)
{
	struct json_writer w = JSON_WRITER(out);

	json_object(&w);
	json_key_str(&w, "apiVersion", PMEM_API_VERSION);
	json_key_str(&w, "kind", "PmemVolume");
	add_metadata(&w, v);
	json_key(&w, "spec");
	json_object(&w);
	json_key_str(&w, "driver", v->driver);
	json_key_known(&w, "volumeName", v->volume_name);
	json_key_known(&w, "origin", v->origin);
	json_key_known(&w, "sourceVolume", v->source);
	if (v->snapshot)
		json_key_bool(&w, "snapshot", true);
	json_key_known(&w, "volumeSnapshot", v->volume_snapshot);
	json_key_known(&w, "group", v->group);
	key_parameters(&w, v);
	json_key_bytes(&w, "size", v->size_bytes);
	key_nodes(&w, v);
	json_key_u64(&w, "attempts", v->attempts);
	json_object_end(&w);
	json_object_end(&w);
}

/* A merge patch replaces the whole list. @ours: whether our finalizer is in it; those of others stay */
static void key_finalizers(struct json_writer *w, const struct pmem_volume *v, bool ours)
{
	json_key(w, "finalizers");
	json_array(w);
	for (size_t i = 0; i < strv_len(v->meta.finalizers); i++) {
		if (!str_eq(v->meta.finalizers[i], PMEM_VOLUME_FINALIZER))
			json_str(w, v->meta.finalizers[i]);
	}
	if (ours)
		json_str(w, PMEM_VOLUME_FINALIZER);
	json_array_end(w);
}

/* It was removed by hand, or by a release that did not come to its end. An object that is being deleted takes
 * no finalizer any more. */
static bool lacks_finalizer(const struct pmem_volume *v)
{
	return !v->meta.deleting &&
	       !(v->meta.finalizers && strv_contains(v->meta.finalizers, PMEM_VOLUME_FINALIZER));
}

/* Opens a patch and its metadata. */
static void begin_patch(struct json_writer *w, const struct pmem_volume *v)
{
	json_object(w);
	json_key(w, "metadata");
	json_object(w);
	json_key_str(w, "resourceVersion", v->meta.resource_version);
}

void pmem_volume_write_spec(const struct pmem_volume *v, struct buf *out)
{
	struct json_writer w = JSON_WRITER(out);

	begin_patch(&w, v);
	json_key(&w, "labels");
	json_object(&w);
	add_labels(&w, v, /* patch= */ true);
	json_object_end(&w);
	if (lacks_finalizer(v))
		key_finalizers(&w, v, /* ours= */ true);
	json_object_end(&w);
	json_key(&w, "spec");
	json_object(&w);
	json_key_bytes(&w, "size", v->size_bytes);
	key_nodes(&w, v);
	json_key_u64(&w, "attempts", v->attempts);
	json_key_bool(&w, "deleting", v->deleting);
	json_key_bool(&w, "retained", v->retained);
	json_object_end(&w);
	json_object_end(&w);
}

static void key_filling(struct json_writer *w, const struct pmem_volume_copy *c)
{
	json_key(w, "filling");
	json_object(w);
	json_key_bytes(w, "done", c->done_bytes);
	json_key_bytes(w, "total", c->total_bytes);
	json_key_u64(w, "percent", (uint64_t)((double)c->done_bytes * 100 / (double)c->total_bytes));
	json_object_end(w);
}

static void add_copy(struct json_writer *w, const struct pmem_volume_copy *c)
{
	json_object(w);
	json_key_str(w, "node", c->node);
	json_key_str(w, "phase", c->phase);
	json_key_bytes(w, "size", c->size_bytes);
	if (c->report > 0)
		json_key_u64(w, "report", c->report);
	if (c->total_bytes > 0)
		key_filling(w, c);
	json_key_known(w, "dax", c->dax);
	if (c->lacks_sync)
		json_key_bool(w, "lacksMapSync", true);
	json_object_end(w);
}

void pmem_volume_write_status(const struct pmem_volume *v, struct buf *out)
{
	struct json_writer w = JSON_WRITER(out);
	char text[24];

	begin_patch(&w, v);
	json_object_end(&w);
	json_key(&w, "status");
	json_object(&w);
	json_key_known(&w, "volumeHandle", v->handle);
	json_key_known(&w, "phase", v->phase);
	json_key_known(&w, "claim", v->claim);
	if (v->capacity_bytes > 0) {
		json_key_str(&w, "capacity", format_bytes_rounded(v->capacity_bytes, text));
		json_key_bytes(&w, "size", v->capacity_bytes);
	}
	json_key_known(&w, "location", v->location);
	json_key(&w, "nodes");
	json_array(&w);
	for (size_t i = 0; i < v->n_copies; i++)
		add_copy(&w, &v->copies[i]);
	json_array_end(&w);
	pmem_conditions_write(&w, &v->conditions);
	json_object_end(&w);
	json_object_end(&w);
}

void pmem_volume_write_release(const struct pmem_volume *v, struct buf *out)
{
	struct json_writer w = JSON_WRITER(out);

	begin_patch(&w, v);
	key_finalizers(&w, v, /* ours= */ false);
	json_object_end(&w);
	json_object_end(&w);
}
