/* SPDX-License-Identifier: Apache-2.0 */
#include "duties/driverless_claim_rules.h"

#include <stdlib.h>

#include "base/mem.h"
#include "base/str.h"

static void node_free(struct driverless_node *node)
{
	for (size_t i = 0; i < node->n_claims; i++)
		free(node->claims[i].uid);
	free(node->claims);
	free(node->name);
	free(node);
}

void driverless_claim_rules_done(struct driverless_claim_rules *r)
{
	for (size_t i = 0; i < r->n_nodes; i++)
		node_free(r->nodes[i]);
	free(r->nodes);
	*r = (struct driverless_claim_rules){0};
}

void driverless_claim_rules_begin(struct driverless_claim_rules *r)
{
	for (size_t i = 0; i < r->n_nodes; i++) {
		for (size_t c = 0; c < r->nodes[i]->n_claims; c++)
			r->nodes[i]->claims[c].seen = false;
	}
}

static struct driverless_node *node_find(const struct driverless_claim_rules *r, const char *name)
{
	for (size_t i = 0; i < r->n_nodes; i++) {
		if (str_eq(r->nodes[i]->name, name))
			return r->nodes[i];
	}
	return NULL;
}

static struct driverless_node *node_get(struct driverless_claim_rules *r, const char *name)
{
	struct driverless_node *node = node_find(r, name);

	if (node)
		return node;
	r->nodes = x_realloc(r->nodes, r->n_nodes + 1, sizeof(struct driverless_node *));
	r->nodes[r->n_nodes] = x_calloc(1, sizeof(struct driverless_node));
	r->nodes[r->n_nodes]->name = x_strdup(name);
	return r->nodes[r->n_nodes++];
}

static struct driverless_claim *claim_get(struct driverless_node *node, const char *uid, uint64_t now_ns)
{
	for (size_t i = 0; i < node->n_claims; i++) {
		if (str_eq(node->claims[i].uid, uid))
			return &node->claims[i];
	}
	node->claims = x_realloc(node->claims, node->n_claims + 1, sizeof(*node->claims));
	node->claims[node->n_claims] = (struct driverless_claim){.uid = x_strdup(uid), .since_ns = now_ns};
	return &node->claims[node->n_claims++];
}

bool driverless_claim_rules_see(
	struct driverless_claim_rules *r, const char *node_name, const char *uid, uint64_t now_ns)
{
	struct driverless_node *node = node_get(r, node_name);
	struct driverless_claim *claim = claim_get(node, uid, now_ns);

	claim->seen = true;
	/* The node must have been examined after the time was over: an earlier look does not show that its
	 * driver is still absent. */
	return node->absent && node->looked_ns >= claim->since_ns + DRIVERLESS_AFTER_NS;
}

void driverless_claim_rules_end(struct driverless_claim_rules *r)
{
	for (size_t i = r->n_nodes; i > 0; i--) {
		struct driverless_node *node = r->nodes[i - 1];

		for (size_t c = node->n_claims; c > 0; c--) {
			if (node->claims[c - 1].seen)
				continue;
			free(node->claims[c - 1].uid);
			node->claims[c - 1] = node->claims[--node->n_claims];
		}
		if (node->n_claims > 0)
			continue;
		node_free(node);
		r->nodes[i - 1] = r->nodes[--r->n_nodes];
	}
}

bool driverless_claim_rules_has_node(const struct driverless_claim_rules *r, const char *node_name)
{
	return node_find(r, node_name) != NULL;
}

void driverless_claim_rules_looked(
	struct driverless_claim_rules *r, const char *node_name, bool absent, uint64_t now_ns)
{
	struct driverless_node *node = node_find(r, node_name);

	if (!node)
		return;
	node->looked_ns = now_ns;
	node->absent = absent;
	for (size_t i = 0; i < node->n_claims && !absent; i++)
		node->claims[i].since_ns = now_ns;
}

void driverless_claim_rules_moved(
	struct driverless_claim_rules *r, const char *node_name, const char *uid, uint64_t now_ns)
{
	struct driverless_node *node = node_find(r, node_name);

	for (size_t i = 0; node && i < node->n_claims; i++) {
		if (str_eq(node->claims[i].uid, uid))
			node->claims[i].since_ns = now_ns;
	}
}

void driverless_claim_rules_look_failed(struct driverless_claim_rules *r, const char *node_name)
{
	struct driverless_node *node = node_find(r, node_name);

	if (node)
		node->absent = false;
}
