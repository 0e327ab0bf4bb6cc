/* SPDX-License-Identifier: Apache-2.0 */
/* CSIStorageCapacities. */
#include <stdlib.h>

#include "base/mem.h"
#include "base/str.h"
#include "kube/objects/objects.h"
#include "kube/objects/objects_private.h"

static int read_topology(void *user, const char *key, struct json_reader *r, struct error **err)
{
	struct kube_capacity *c = user;
	struct json_event ev;

	if (str_eq(key, "matchLabels"))
		return kube_pairs_read(r, &c->topology, err);
	if (!str_eq(key, "matchExpressions"))
		return json_skip_value(r, err);
	if (json_next(r, &ev, err) < 0)
		return -1;
	c->has_expressions = ev.type != JSON_NULL;
	return json_skip(r, &ev, err);
}

static int read_capacity(void *user, const char *key, struct json_reader *r, struct error **err)
{
	struct kube_capacity *c = user;

	if (str_eq(key, "storageClassName"))
		return kube_read_text(r, &c->storage_class, err);
	if (str_eq(key, "capacity"))
		return kube_read_quantity(r, &c->capacity_bytes, &c->has_capacity, err);
	if (str_eq(key, "maximumVolumeSize"))
		return kube_read_quantity(r, &c->maximum_bytes, &c->has_maximum, err);
	if (str_eq(key, "nodeTopology"))
		return kube_read_object(r, read_topology, c, err);
	return json_skip_value(r, err);
}

static void free_capacity(void *object)
{
	struct kube_capacity *c = object;

	kube_meta_done(&c->meta);
	free(c->storage_class);
	free(c->topology.block);
	free(c);
}

static void *decode_capacity(struct json_reader *r, struct error **err)
{
	struct kube_capacity *c = x_calloc(1, sizeof(*c));

	if (kube_object_read(r, &c->meta, KUBE_KEEP_LABELS, read_capacity, c, err) == 0)
		return c;
	free_capacity(c);
	return NULL;
}

const struct kube_kind kube_kind_capacities = {
	.path = "/apis/storage.k8s.io/v1/csistoragecapacities",
	.what = "csistoragecapacities",
	.decode = decode_capacity,
	.free = free_capacity,
};
