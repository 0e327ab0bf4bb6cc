/* SPDX-License-Identifier: Apache-2.0 */
#include "nodes/class_capacity.h"

#include "base/str.h"
#include "os/fs.h"
#include "pmem/usage.h"

/* As external-provisioner reads it from the class; without it the node's default holds. */
static const char *fs_type(const struct kube_class *class)
{
	const char *type = kube_pairs_get(&class->parameters, "csi.storage.k8s.io/fstype");

	if (str_empty(type))
		type = kube_pairs_get(&class->parameters, "fstype");
	return str_empty(type) ? "ext4" : type;
}

uint64_t class_least_bytes(const struct kube_class *class, uint64_t size_bytes, bool is_block)
{
	uint64_t min_bytes = is_block ? 0 : fs_min_bytes(fs_type(class));

	return size_bytes > min_bytes ? size_bytes : min_bytes;
}

struct class_capacity class_capacity_on(const struct node *node, const struct kube_class *class)
{
	bool sector = volume_usage_is_file_io(kube_pairs_get(&class->parameters, "usage"));
	struct class_capacity room = {0};

	for (size_t i = 0; i < node->report.n_regions; i++) {
		const struct node_region *r = &node->report.regions[i];
		uint64_t max_bytes = sector ? r->max_sector_volume_bytes : r->max_volume_bytes;

		room.available_bytes += r->available_bytes;
		if (max_bytes > room.maximum_bytes)
			room.maximum_bytes = max_bytes;
	}
	if (class_least_bytes(class, /* size_bytes= */ 0, /* is_block= */ false) > room.maximum_bytes)
		room.maximum_bytes = 0;
	return room;
}

bool class_is_ours(const struct kube_class *class, const char *driver_name)
{
	return class && str_eq(class->provisioner, driver_name);
}
