/* SPDX-License-Identifier: Apache-2.0 */
#include "nodes/class_capacity.h"

#include "base/str.h"
#include "pmem/usage.h"
#include "volume/params.h"
#include "volume/pool_choice.h"

/* The type of the file system, read from the class as external-provisioner does; without it, the node uses
 * its default. */
static const char *fs_type(const struct kube_class *class)
{
	const char *type = kube_pairs_get(&class->parameters, "csi.storage.k8s.io/fstype");

	if (str_empty(type))
		type = kube_pairs_get(&class->parameters, "fstype");
	return str_empty(type) ? "ext4" : type;
}

uint64_t class_least_bytes(const struct kube_class *class, uint64_t size_bytes, bool is_block)
{
	uint64_t min_bytes = is_block ? 0 : pool_min_bytes(fs_type(class), class_is_for_kata(class));

	return size_bytes > min_bytes ? size_bytes : min_bytes;
}

struct capacity class_capacity_of(const struct capacity *all, const struct kube_class *class)
{
	bool sector = volume_usage_is_file_io(kube_pairs_get(&class->parameters, "usage"));
	struct capacity c = *all;

	c.max_volume_bytes = capacity_max_bytes(&c, sector);
	if (class_least_bytes(class, /* size_bytes= */ 0, /* is_block= */ false) > c.max_volume_bytes)
		c.max_volume_bytes = 0;
	return c;
}

bool class_needs_sync(const struct kube_class *class)
{
	return durability_needs_sync(kube_pairs_get(&class->parameters, PARAMS_USAGE),
		kube_pairs_get(&class->parameters, PARAMS_DURABILITY));
}

struct capacity class_capacity_on(const struct node *node, const struct kube_class *class)
{
	struct capacity c = node_capacity(node, class_needs_sync(class));

	const char *kata = kube_pairs_get(&class->parameters, PARAMS_KATA);
	const char *direct = kube_pairs_get(&class->parameters, PARAMS_DIRECT);
	const char *durability = kube_pairs_get(&class->parameters, PARAMS_DURABILITY);

	if (!node_report_makes(&node->report, params_needs(kata, direct, durability)))
		c = (struct capacity){0};
	return class_capacity_of(&c, class);
}

bool class_is_for_kata(const struct kube_class *class)
{
	return params_needs(kube_pairs_get(&class->parameters, PARAMS_KATA), /* direct= */ NULL,
		       /* durability= */ NULL) != 0;
}

bool class_is_ours(const struct kube_class *class, const char *driver_name)
{
	return class && str_eq(class->provisioner, driver_name);
}

bool class_is_cache(const struct kube_class *class)
{
	return str_eq(kube_pairs_get(&class->parameters, PARAMS_MODEL), PARAMS_MODEL_CACHE);
}
