/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pmem_nodes.h - objects of the controllers for tests of the scheduler extender.
 */
#pragma once

#include "resources/pmem_node.h"
#include "resources/pmem_volume.h"

/** pmem_node_new() - the object of a node that is ready and has one region, called "region0", of 16 GiB,
 * where volumes of up to 4 GiB, or of 3 GiB with usage=FileIO, can be made. Return: pmem_node_free(). */
struct pmem_node *pmem_node_new(const char *name);

/** pmem_node_set_region() - region number @i, which is added where it is the next one, has one free extent of
 * @gib GiB. Return: borrowed until the next one. */
struct pmem_region *pmem_node_set_region(struct pmem_node *n, size_t i, uint64_t gib);

/** pmem_node_set_ready() - the status of the condition Ready. */
void pmem_node_set_ready(struct pmem_node *n, const char *status);

/** pmem_node_json() - @n as the API server has it. Return: caller frees. */
char *pmem_node_json(const struct pmem_node *n);

/** pmem_volume_json() - the record of the volume @name with a copy of 4 GiB in @phase on @node, which its
 * report with the number @report shows. Return: caller frees. */
char *pmem_volume_json(const char *name, const char *node, const char *phase, uint64_t report);
