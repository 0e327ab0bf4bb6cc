/* SPDX-License-Identifier: Apache-2.0 */
#include "controller/recorded_nodes.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"

struct recorded_nodes {
	char **node_ids; /* strv: nodes whose PmemNode says until when their volumes are recorded */
	char **until;    /* strv: that time of each node */
	size_t n_reading;
	recorded_nodes_fn fn;
	void *user;
};

static void end_one(struct recorded_nodes *r)
{
	if (--r->n_reading == 0)
		r->fn(r->user, r);
}

static void on_node(void *user, struct pmem_node *node)
{
	struct recorded_nodes *r = user;

	if (node && kube_time_valid(node->recorded_until)) {
		strv_add(&r->node_ids, node->node);
		strv_add(&r->until, node->recorded_until);
	}
	pmem_node_free(node);
	end_one(r);
}

void recorded_nodes_read(const struct controller *c, char *const *node_ids, recorded_nodes_fn fn, void *user)
{
	CLEANUP(strv_freep) char **ids = strv_dup(node_ids);
	const struct volume_records *records = &c->config.records;
	struct recorded_nodes *r = x_malloc(sizeof(*r));
	size_t n = strv_len(ids) > RECORDED_NODES_MAX ? 0 : strv_len(ids);

	/* counts this function, too: an answer that comes at once must not end the work before all nodes are
	 * asked */
	*r = (struct recorded_nodes){.n_reading = n + 1, .fn = fn, .user = user};
	for (size_t i = 0; i < n; i++)
		records->read_node(records->self, ids[i], on_node, r);
	end_one(r);
}

void recorded_nodes_free(struct recorded_nodes *r)
{
	if (!r)
		return;
	strv_free(r->node_ids);
	strv_free(r->until);
	free(r);
}

bool recorded_nodes_lack(
	const struct recorded_nodes *r, const struct pmem_volume *record, const char *node_id)
{
	if (!r || !record || !record->origin || !record->handle || volume_id_has_node(record->handle) ||
		pmem_volume_has_node(record, node_id) || !kube_time_valid(record->meta.created))
		return false;
	for (size_t i = 0; i < strv_len(r->node_ids); i++) {
		if (str_eq(r->node_ids[i], node_id))
			return strcmp(record->meta.created, r->until[i]) <= 0;
	}
	return false;
}
