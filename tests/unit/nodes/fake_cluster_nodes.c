/* SPDX-License-Identifier: Apache-2.0 */
#include "unit/nodes/fake_cluster_nodes.h"

#include "base/str.h"

bool cluster_nodes_ready(const struct cluster_nodes *c)
{
	return !c->ready || c->ready(c->self);
}

const char *cluster_nodes_next(const struct cluster_nodes *c, size_t *at)
{
	const char *const *ids = NULL;
	size_t n = c->list ? c->list(c->self, &ids) : 0;

	return *at < n ? ids[(*at)++] : NULL;
}

bool cluster_nodes_have(const struct cluster_nodes *c, const char *node_id)
{
	return !cluster_nodes_ready(c) || !c->has || c->has(c->self, node_id);
}

bool cluster_nodes_out_of_service(const struct cluster_nodes *c, const char *node_id)
{
	return c->out_of_service && c->out_of_service(c->self, node_id);
}

bool cluster_nodes_is(const struct cluster_nodes *c, const char *node_name, const char *node_id)
{
	return cluster_nodes_ready(c) && str_eq(node_name, node_id);
}
