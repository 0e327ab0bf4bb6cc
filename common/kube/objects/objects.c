/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes, CSINodes, CSIDrivers, StorageClasses, CSIStorageCapacities, MutatingWebhookConfigurations. */
#include "kube/objects/objects.h"

#include <stdlib.h>

#include "base/str.h"
#include "kube/json_members.h"

struct taint {
	char *key;
};

static const struct kube_field taint_fields[] = {
	KUBE_FIELD("key", KUBE_TEXT, struct taint, key),
	KUBE_FIELDS_END,
};

static bool take_taint(void *object, void *item)
{
	const struct taint *t = item;
	struct kube_node *n = object;

	n->out_of_service = n->out_of_service || str_eq(t->key, KUBE_TAINT_OUT_OF_SERVICE);
	return false;
}

static const struct kube_field node_spec[] = {
	{.name = "taints",
		.type = KUBE_ARRAY,
		.fields = taint_fields,
		.item_size = sizeof(struct taint),
		.takes = take_taint},
	KUBE_FIELDS_END,
};

static const struct kube_field node_fields[] = {
	KUBE_META(labels),
	KUBE_OBJECT("spec", node_spec),
	KUBE_FIELDS_END,
};

const struct kube_kind kube_kind_nodes = {
	.path = "/api/v1/nodes",
	.what = "nodes",
	.size = sizeof(struct kube_node),
	.fields = node_fields,
};

struct driver {
	char *name;
};

static const struct kube_field driver_fields[] = {
	KUBE_FIELD("name", KUBE_TEXT, struct driver, name),
	KUBE_FIELDS_END,
};

static bool take_driver(void *object, void *item)
{
	const struct driver *d = item;
	struct kube_csi_node *n = object;

	if (d->name)
		kube_add_text(&n->drivers, d->name);
	return false;
}

static const struct kube_field csi_node_spec[] = {
	{.name = "drivers",
		.type = KUBE_ARRAY,
		.fields = driver_fields,
		.item_size = sizeof(struct driver),
		.takes = take_driver},
	KUBE_FIELDS_END,
};

static const struct kube_field csi_node_fields[] = {
	KUBE_META(names),
	KUBE_OBJECT("spec", csi_node_spec),
	KUBE_FIELD("", KUBE_TEXTS, struct kube_csi_node, drivers),
	KUBE_FIELDS_END,
};

const struct kube_kind kube_kind_csi_nodes = {
	.path = "/apis/storage.k8s.io/v1/csinodes",
	.what = "csinodes",
	.size = sizeof(struct kube_csi_node),
	.fields = csi_node_fields,
};

static const struct kube_field csi_driver_spec[] = {
	KUBE_FIELD("volumeLifecycleModes", KUBE_TEXTS, struct kube_csi_driver, modes),
	KUBE_FIELDS_END,
};

static const struct kube_field csi_driver_fields[] = {
	KUBE_META(names),
	KUBE_OBJECT("spec", csi_driver_spec),
	KUBE_FIELDS_END,
};

const struct kube_kind kube_kind_csi_drivers = {
	.path = "/apis/storage.k8s.io/v1/csidrivers",
	.what = "csidrivers",
	.size = sizeof(struct kube_csi_driver),
	.fields = csi_driver_fields,
};

static const struct kube_field class_fields[] = {
	KUBE_META(annotations),
	KUBE_FIELD("provisioner", KUBE_TEXT, struct kube_class, provisioner),
	KUBE_FIELD("parameters", KUBE_PAIRS, struct kube_class, parameters),
	KUBE_FIELD("volumeBindingMode", KUBE_SAYS, struct kube_class, waits_for_consumer,
		.says = "WaitForFirstConsumer"),
	KUBE_FIELDS_END,
};

static bool says_true(const struct kube_class *c, const char *annotation)
{
	return str_eq(kube_meta_annotation(&c->meta, annotation), "true");
}

static void derive_class(void *object)
{
	struct kube_class *c = object;

	c->is_default = says_true(c, "storageclass.kubernetes.io/is-default-class") ||
			says_true(c, "storageclass.beta.kubernetes.io/is-default-class");
	free(TAKE_PTR(c->meta.annotations.block));
}

const struct kube_kind kube_kind_classes = {
	.path = "/apis/storage.k8s.io/v1/storageclasses",
	.what = "storageclasses",
	.size = sizeof(struct kube_class),
	.fields = class_fields,
	.derive = derive_class,
};

static const struct kube_field capacity_topology[] = {
	KUBE_FIELD("matchLabels", KUBE_PAIRS, struct kube_capacity, topology),
	KUBE_FIELD("matchExpressions", KUBE_NOT_NULL, struct kube_capacity, has_expressions),
	KUBE_FIELDS_END,
};

static const struct kube_field capacity_fields[] = {
	KUBE_META(labels),
	KUBE_FIELD("storageClassName", KUBE_TEXT, struct kube_capacity, storage_class),
	KUBE_FIELD("capacity", KUBE_QUANTITY, struct kube_capacity, capacity_bytes,
		.extent = offsetof(struct kube_capacity, has_capacity)),
	KUBE_FIELD("maximumVolumeSize", KUBE_QUANTITY, struct kube_capacity, maximum_bytes,
		.extent = offsetof(struct kube_capacity, has_maximum)),
	KUBE_OBJECT("nodeTopology", capacity_topology),
	KUBE_FIELDS_END,
};

const struct kube_kind kube_kind_capacities = {
	.path = "/apis/storage.k8s.io/v1/csistoragecapacities",
	.what = "csistoragecapacities",
	.size = sizeof(struct kube_capacity),
	.fields = capacity_fields,
};

static const struct kube_field webhook_service[] = {
	KUBE_FIELD("namespace", KUBE_TEXT, struct kube_webhook, service_namespace),
	KUBE_FIELD("name", KUBE_TEXT, struct kube_webhook, service_name),
	KUBE_FIELDS_END,
};

static const struct kube_field webhook_client[] = {
	KUBE_OBJECT("service", webhook_service),
	KUBE_FIELD("caBundle", KUBE_TEXT, struct kube_webhook, ca_bundle),
	KUBE_FIELDS_END,
};

static const struct kube_field webhook_fields[] = {
	KUBE_FIELD("name", KUBE_TEXT, struct kube_webhook, name),
	KUBE_OBJECT("clientConfig", webhook_client),
	KUBE_FIELDS_END,
};

static bool has_name(void *object, void *item)
{
	const struct kube_webhook *h = item;

	(void)object;
	return h->name != NULL;
}

static const struct kube_field webhooks_fields[] = {
	KUBE_META(annotations),
	KUBE_FIELD("webhooks", KUBE_ARRAY, struct kube_webhooks, webhooks,
		.extent = offsetof(struct kube_webhooks, n), .fields = webhook_fields,
		.item_size = sizeof(struct kube_webhook), .takes = has_name),
	KUBE_FIELDS_END,
};

const struct kube_kind kube_kind_webhooks = {
	.path = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations",
	.what = "mutatingwebhookconfigurations",
	.size = sizeof(struct kube_webhooks),
	.fields = webhooks_fields,
};
