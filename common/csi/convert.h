/* SPDX-License-Identifier: Apache-2.0 */
/*
 * convert.h - converts maps, topology and volumes between messages and our types. Replies are in the call's
 * arena.
 *
 * Threads: safe.
 */
#pragma once

#include "csi.pb-c.h"

#include "csi/csi.h"

/* Copies a map field (n_NAME, NAME) of message @m into the strmap @out; of duplicate keys the last one
 * counts. */
#define CSI_READ_MAP(m, name, out)                                                                           \
	do {                                                                                                 \
		for (size_t map_i_ = 0; map_i_ < (m)->n_##name; map_i_++)                                    \
			strmap_set((out), (m)->name[map_i_]->key, (m)->name[map_i_]->value);                 \
	} while (0)

/** csi_topology() - make the topology of a node, with one segment: <driver>/node = @node_id (copied). */
Csi__V1__Topology *csi_topology(const char *driver_name, const char *node_id, struct arena *arena);

/** csi_topology_node() - get the node that @t names. Return: borrowed from @t; NULL: @t allows all nodes. */
const char *csi_topology_node(const char *driver_name, const Csi__V1__Topology *t);

/** csi_topology_check() - check that all segments of @t (NULL: none) have the key of @driver_name: nodes have
 * no other one, and external-provisioner passes the allowedTopologies of a StorageClass that binds
 * immediately on unchecked (pkg/controller/topology.go, GenerateAccessibilityRequirements()). Return: 0, or
 * -1 with ERR_INVALID_ARGUMENT. */
int csi_topology_check(const char *driver_name, const Csi__V1__Topology *t, struct error **err) MUST_CHECK;

/** csi_accessibility_check() - csi_topology_check() of all topologies of @t (NULL: none). */
int csi_accessibility_check(
	const char *driver_name, const Csi__V1__TopologyRequirement *t, struct error **err) MUST_CHECK;

/** csi_topology_is_ours() - whether @t allows this node: if it has our segment, the value is this node. */
bool csi_topology_is_ours(const struct csi *csi, const Csi__V1__Topology *t);

#define CSI_CLAIM_KEYS "csi.storage.k8s.io/pvc/namespace", "csi.storage.k8s.io/pvc/name"
#define CSI_POD_KEYS   "csi.storage.k8s.io/pod.namespace", "csi.storage.k8s.io/pod.name"

/** csi_add_claim() - add to the context of @v, which ListVolumes shows, for which claim or pod it was
 * created.
 * @text:          as claim_text() or claim_pod(); NULL: nothing is added
 * @namespace_key: CSI_CLAIM_KEYS or CSI_POD_KEYS are both keys */
void csi_add_claim(Csi__V1__Volume *v, const char *text, const char *namespace_key, const char *name_key,
	struct arena *arena);

/** csi_volume() - make the message for @info. */
Csi__V1__Volume *csi_volume(const struct csi *csi, struct arena *arena, const struct volume_info *info);
