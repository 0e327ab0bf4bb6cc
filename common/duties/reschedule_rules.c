/* SPDX-License-Identifier: Apache-2.0 */
#include "duties/reschedule_rules.h"

#include <stdlib.h>

#include "base/mem.h"
#include "base/str.h"

static void node_free(struct reschedule_node *node)
{
	for (size_t i = 0; i < node->n_claims; i++)
		free(node->claims[i].uid);
	free(node->claims);
	free(node->name);
	free(node);
}

void reschedule_rules_done(struct reschedule_rules *r)
{
	for (size_t i = 0; i < r->n_nodes; i++)
		node_free(r->nodes[i]);
	free(r->nodes);
	*r = (struct reschedule_rules){0};
}

void reschedule_begin(struct reschedule_rules *r)
{
	for (size_t i = 0; i < r->n_nodes; i++) {
		for (size_t c = 0; c < r->nodes[i]->n_claims; c++)
			r->nodes[i]->claims[c].seen = false;
	}
}

static struct reschedule_node *node_get(struct reschedule_rules *r, const char *name)
{
	for (size_t i = 0; i < r->n_nodes; i++) {
		if (str_eq(r->nodes[i]->name, name))
			return r->nodes[i];
	}
	r->nodes = x_realloc(r->nodes, r->n_nodes + 1, sizeof(struct reschedule_node *));
	r->nodes[r->n_nodes] = x_calloc(1, sizeof(struct reschedule_node));
	r->nodes[r->n_nodes]->name = x_strdup(name);
	return r->nodes[r->n_nodes++];
}

static struct reschedule_claim *claim_get(struct reschedule_node *node, const char *uid, uint64_t now_ns)
{
	for (size_t i = 0; i < node->n_claims; i++) {
		if (str_eq(node->claims[i].uid, uid))
			return &node->claims[i];
	}
	node->claims = x_realloc(node->claims, node->n_claims + 1, sizeof(*node->claims));
	node->claims[node->n_claims] = (struct reschedule_claim){.uid = x_strdup(uid), .since_ns = now_ns};
	return &node->claims[node->n_claims++];
}

bool reschedule_see(struct reschedule_rules *r, const char *node_name, const char *uid, uint64_t now_ns)
{
	struct reschedule_node *node = node_get(r, node_name);
	struct reschedule_claim *claim = claim_get(node, uid, now_ns);

	claim->seen = true;
	/* What was seen before the time was over says nothing about its end. */
	return node->absent && node->looked_ns >= claim->since_ns + RESCHEDULE_AFTER_NS;
}

void reschedule_end(struct reschedule_rules *r)
{
	for (size_t i = r->n_nodes; i > 0; i--) {
		struct reschedule_node *node = r->nodes[i - 1];

		for (size_t c = node->n_claims; c > 0; c--) {
			if (node->claims[c - 1].seen)
				continue;
			free(node->claims[c - 1].uid);
			node->claims[c - 1] = node->claims[--node->n_claims];
		}
		if (node->n_claims > 0 || node->looking)
			continue;
		node_free(node);
		r->nodes[i - 1] = r->nodes[--r->n_nodes];
	}
}

void reschedule_looked(struct reschedule_node *node, bool absent, uint64_t now_ns)
{
	node->looked_ns = now_ns;
	node->absent = absent;
	for (size_t i = 0; i < node->n_claims && !absent; i++)
		node->claims[i].since_ns = now_ns;
}
