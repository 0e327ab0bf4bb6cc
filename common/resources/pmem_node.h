/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pmem_node.h - PmemNode, the custom resource that shows a node's persistent memory and driver.
 *
 * The object is called <node ID>.<driver name>. Its spec names both; its status is what the node reported
 * last, with the conditions Ready and DevicesHealthy. The schema is in manifests/crds. Threads: one owner at
 * a time.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "kube/object.h"
#include "resources/condition_list.h"

#define PMEM_API_GROUP   "pmem-csi.intel.com"
#define PMEM_API_VERSION PMEM_API_GROUP "/v1alpha1"

/* How many names an object has at most. */
#define PMEM_NODE_NEW_VOLUMES_MAX 256

/* How many regions an object shows, so that no node makes an object that is too large: machines have one for
 * each processor, or one for each module if these are not interleaved, of which a processor has eight at
 * most. */
#define PMEM_NODE_REGIONS_MAX 16

/* Label with the driver's name, by which one driver's objects are selected. */
#define PMEM_LABEL_DRIVER PMEM_API_GROUP "/driver"

struct pmem_region {
	char *name;
	uint64_t total_bytes;   /* of the region; 0: not known */
	uint64_t managed_bytes; /* of the pool in it */
	uint64_t available_bytes;
	uint64_t max_volume_bytes;
	uint64_t max_sector_volume_bytes; /* of usage=FileIO */
	uint64_t erasing_bytes;
	uint64_t n_free_extents;
	char **free_extents; /* strv of their sizes in bytes, the largest first; NULL: not known */
	/* How sizes are rounded, as struct layout_rules has it; all 0: not known. */
	uint64_t unit_bytes;
	uint64_t map_align_bytes;
	uint64_t btt_start_bytes;
	bool complete;    /* no device of it is missing */
	char *durability; /* "synchronous": the kernel accepts MAP_SYNC; "fsync": it refuses it; any other
			   * text or NULL: not known */
};

struct pmem_node {
	struct kube_meta meta; /* with labels */
	char *node;            /* its ID; NULL: the spec has been damaged by hand */
	char *driver;
	char *device_mode;
	char *driver_version;
	char *boot_id;
	char *last_contact; /* when the report came, RFC 3339; NULL: not known */
	uint64_t report;    /* its number */
	uint64_t n_volumes; /* without those that are being erased */
	uint64_t n_inline;
	uint64_t inline_bytes;
	uint64_t n_erasing;
	uint64_t n_missing;
	uint64_t n_damaged;
	/* Time until which volumes are recorded: each volume of the report whose ID names no node has a
	 * record that names the node, among the records that were created until then. NULL: a volume has no
	 * such record, or that is not known. */
	char *recorded_until;
	char **new_volumes; /* strv: names of volumes that were made lately, and that count in the regions */
	struct pmem_region *regions;
	size_t n_regions;
	uint64_t n_others; /* further regions, of which only the sums are known */
	uint64_t others_managed_bytes;
	uint64_t others_available_bytes;
	struct pmem_conditions conditions;
};

/* pmemnodes. An informer narrows .label_selector to its driver. */
extern const struct kube_kind kube_kind_pmem_nodes;

/** pmem_node_object_name() - the name of the object for @node_id of the driver @driver_name. A node ID that
 * cannot be part of an object's name is replaced by a hash. Return: caller frees. */
char *pmem_node_object_name(const char *node_id, const char *driver_name);

/** pmem_node_add_region() - append a region called @name (copied). Return: it, valid until the next one. */
struct pmem_region *pmem_node_add_region(struct pmem_node *n, const char *name);

/** pmem_node_equal() - whether both show the same. The time of the last contact and those of conditions do
 * not count, since they follow from the rest; neither do the names of new volumes, which become old, and the
 * time until which volumes are recorded, which does not depend on the node alone. */
bool pmem_node_equal(const struct pmem_node *a, const struct pmem_node *b);

/**
 * pmem_node_write_spec() - what server-side apply gets for the object itself.
 * pmem_node_write_status() - what it gets for the subresource status.
 * @n:   meta.name, node and driver are set
 * @out: JSON is appended
 */
void pmem_node_write_spec(const struct pmem_node *n, struct buf *out);
void pmem_node_write_status(const struct pmem_node *n, struct buf *out);

/** pmem_node_dup() - a copy of @n without its conditions, labels and version. Return: pmem_node_free(). */
struct pmem_node *pmem_node_dup(const struct pmem_node *n);

/** pmem_node_free() - destroy @n; NULL is allowed. */
void pmem_node_free(struct pmem_node *n);
DEFINE_CLEANUP(struct pmem_node *, pmem_node_free);
