/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes, CSINodes, StorageClasses. */
#include "kube/objects/objects.h"

#include <stdlib.h>

#include "base/mem.h"
#include "base/str.h"
#include "kube/objects/objects_private.h"

void *kube_decode(const struct kube_kind *kind, struct span json, struct error **err)
{
	CLEANUP(json_reader_freep) struct json_reader *r = json_reader_new(json);
	struct json_event end;
	void *object = kind->decode(r, err);

	if (!object) {
		err_wrap(err, "%s", kind->what);
		return NULL;
	}
	if (json_expect(r, JSON_END, &end, err) < 0) {
		kind->free(object);
		return NULL;
	}
	return object;
}

static void free_node(void *object)
{
	struct kube_node *n = object;

	kube_meta_done(&n->meta);
	free(n);
}

static void *decode_node(struct json_reader *r, struct error **err)
{
	struct kube_node *n = x_calloc(1, sizeof(*n));

	if (kube_object_read(r, &n->meta, KUBE_KEEP_LABELS, NULL, n, err) == 0)
		return n;
	free_node(n);
	return NULL;
}

const struct kube_kind kube_kind_nodes = {
	.path = "/api/v1/nodes",
	.what = "nodes",
	.metadata_only = true,
	.decode = decode_node,
	.free = free_node,
};

struct kube_node *kube_node_decode(struct span json, struct error **err)
{
	return kube_decode(&kube_kind_nodes, json, err);
}

struct csi_driver {
	char *name;
	char *node_id;
};

static int read_driver_member(void *user, const char *key, struct json_reader *r, struct error **err)
{
	struct csi_driver *d = user;

	if (str_eq(key, "name"))
		return kube_read_text(r, &d->name, err);
	if (str_eq(key, "nodeID"))
		return kube_read_text(r, &d->node_id, err);
	return json_skip_value(r, err);
}

static int read_driver(void *user, struct json_reader *r, struct error **err)
{
	struct kube_csi_node *n = user;
	struct csi_driver d = {0};
	int rv = kube_read_members(r, read_driver_member, &d, err);

	if (rv == 0 && d.name) {
		kube_add_text(&n->drivers, d.name);
		kube_add_text(&n->node_ids, d.node_id ? d.node_id : "");
	}
	free(d.name);
	free(d.node_id);
	return rv;
}

static int read_csi_node_spec(void *user, const char *key, struct json_reader *r, struct error **err)
{
	if (str_eq(key, "drivers"))
		return kube_read_array(r, read_driver, user, err);
	return json_skip_value(r, err);
}

static int read_csi_node(void *user, const char *key, struct json_reader *r, struct error **err)
{
	if (str_eq(key, "spec"))
		return kube_read_object(r, read_csi_node_spec, user, err);
	return json_skip_value(r, err);
}

static void free_csi_node(void *object)
{
	struct kube_csi_node *n = object;

	kube_meta_done(&n->meta);
	strv_free(n->drivers);
	strv_free(n->node_ids);
	free(n);
}

static void *decode_csi_node(struct json_reader *r, struct error **err)
{
	struct kube_csi_node *n = x_calloc(1, sizeof(*n));

	if (kube_object_read(r, &n->meta, KUBE_KEEP_NONE, read_csi_node, n, err) == 0)
		return n;
	free_csi_node(n);
	return NULL;
}

const struct kube_kind kube_kind_csi_nodes = {
	.path = "/apis/storage.k8s.io/v1/csinodes",
	.what = "csinodes",
	.decode = decode_csi_node,
	.free = free_csi_node,
};

static int read_class(void *user, const char *key, struct json_reader *r, struct error **err)
{
	struct kube_class *c = user;

	if (str_eq(key, "provisioner"))
		return kube_read_text(r, &c->provisioner, err);
	if (str_eq(key, "parameters"))
		return kube_pairs_read(r, &c->parameters, err);
	if (str_eq(key, "volumeBindingMode")) {
		CLEANUP(free_charp) char *mode = NULL;

		if (kube_read_text(r, &mode, err) < 0)
			return -1;
		c->waits_for_consumer = str_eq(mode, "WaitForFirstConsumer");
		return 0;
	}
	return json_skip_value(r, err);
}

static void free_class(void *object)
{
	struct kube_class *c = object;

	kube_meta_done(&c->meta);
	free(c->provisioner);
	free(c->parameters.block);
	free(c);
}

static bool says_true(const struct kube_class *c, const char *annotation)
{
	return str_eq(kube_meta_annotation(&c->meta, annotation), "true");
}

static void *decode_class(struct json_reader *r, struct error **err)
{
	struct kube_class *c = x_calloc(1, sizeof(*c));

	if (kube_object_read(r, &c->meta, KUBE_KEEP_ANNOTATIONS, read_class, c, err) < 0) {
		free_class(c);
		return NULL;
	}
	c->is_default = says_true(c, "storageclass.kubernetes.io/is-default-class") ||
			says_true(c, "storageclass.beta.kubernetes.io/is-default-class");
	free(TAKE_PTR(c->meta.annotations.block));
	return c;
}

const struct kube_kind kube_kind_classes = {
	.path = "/apis/storage.k8s.io/v1/storageclasses",
	.what = "storageclasses",
	.decode = decode_class,
	.free = free_class,
};

struct kube_class *kube_class_decode(struct span json, struct error **err)
{
	return kube_decode(&kube_kind_classes, json, err);
}
