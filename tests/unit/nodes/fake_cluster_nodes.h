/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fake_cluster_nodes.h - the nodes of a cluster as a test says, in place of cluster_nodes.c.
 */
#pragma once

#include "nodes/cluster_nodes.h"

struct cluster_nodes {
	bool (*ready)(void *self); /* NULL: always */
	/* NULL: none. @ret: borrowed until the next call. Return: how many */
	size_t (*list)(void *self, const char *const **ret);
	bool (*has)(void *self, const char *node_id);            /* NULL: all */
	bool (*out_of_service)(void *self, const char *node_id); /* NULL: none */
	void *self;
};
