/* SPDX-License-Identifier: Apache-2.0 */
/*
 * class_capacity.h - the capacity of a StorageClass on a node. Pure. Threads: none.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "kube/objects/objects.h"
#include "nodes/node_table.h"
#include "pmem/capacity.h"

/** class_capacity_of() - what @class can use of the capacity @all of a node, which is that for its
 * class_needs_sync(). max_volume_bytes is that of the
 * usage of @class; it is 0 if the file system of @class needs more. */
struct capacity class_capacity_of(const struct capacity *all, const struct kube_class *class);

/** class_needs_sync() - whether volumes of @class need memory on which the kernel accepts MAP_SYNC. */
bool class_needs_sync(const struct kube_class *class);

/** class_capacity_on() - the same of the last report of @node, whether it is live or not; nothing for volumes
 * that it does not make. */
struct capacity class_capacity_on(const struct node *node, const struct kube_class *class);

/** class_is_for_kata() - whether volumes of @class are for Kata Containers. */
bool class_is_for_kata(const struct kube_class *class);

/** class_is_cache() - whether volumes of @class are cache volumes, which have copies on several nodes. */
bool class_is_cache(const struct kube_class *class);

/** class_is_ours() - whether @driver_name provisions volumes of @class; NULL is not ours. */
bool class_is_ours(const struct kube_class *class, const char *driver_name);

/** class_least_bytes() - what a request of @size_bytes takes at least: file systems have a smallest size.
 * @is_block: the claim wants none */
uint64_t class_least_bytes(const struct kube_class *class, uint64_t size_bytes, bool is_block);
