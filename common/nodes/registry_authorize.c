/* SPDX-License-Identifier: Apache-2.0 */
/* Decides as which node a peer may act, by the names in its certificate and by the lease that the node
 * has. */
#include "base/str.h"
#include "nodes/registry_private.h"

#define NODE_NAME   "pmem-node-controller"
#define NODE_PREFIX "node-"

struct peer {
	bool is_node;  /* any node's driver */
	bool is_bound; /* to one node, or several */
	bool is_this;  /* to the node in question */
};

static struct peer look_at(const char *const *names, const char *node_id)
{
	struct peer p = {0};

	for (; *names; names++) {
		p.is_node |= str_eq(*names, NODE_NAME);
		if (!str_starts(*names, NODE_PREFIX))
			continue;
		p.is_bound = true;
		p.is_this |= str_eq(*names + strlen(NODE_PREFIX), node_id);
	}
	return p;
}

/* The certificate of any node's driver: whether it suffices for @node_id, or what else does. */
static int check_role(
	const struct registry *r, const char *node_id, enum registry_standing *ret, struct error **err)
{
	const struct node *known = node_table_get(r->config.table, node_id);

	switch (r->config.proof) {
	case REGISTRY_PROOF_TOKEN:
		*ret = REGISTRY_NEEDS_TOKEN;
		return 0;
	case REGISTRY_PROOF_ROLE:
		/* Otherwise the certificate that all nodes share would be as good as the node's own. */
		if (known && known->live && known->report.bound)
			return err_set(err, ERR_PERMISSION,
				"node \"%s\" has registered with a certificate for \"" NODE_PREFIX
				"%s\": only a driver with such a certificate can take over the lease",
				node_id, node_id);
		*ret = REGISTRY_IS_ANY;
		return 0;
	case REGISTRY_PROOF_CERTIFICATE:
		break;
	}
	return err_set(err, ERR_PERMISSION,
		"the peer's certificate is for \"" NODE_NAME
		"\", which all nodes may share: node \"%s\" needs one for \"" NODE_PREFIX
		"%s\", or the controller needs -nodeAuthentication=token",
		node_id, node_id);
}

int registry_check_node(const struct registry *r, const struct grpc_call *call, const char *node_id,
	enum registry_standing *ret, struct error **err)
{
	struct peer p;

	*ret = REGISTRY_IS_ANY;
	if (!call->peer_names)
		return 0;
	p = look_at(call->peer_names, node_id);
	if (p.is_bound && !p.is_this)
		return err_set(err, ERR_PERMISSION, "the peer's certificate is not for node \"%s\"", node_id);
	if (p.is_bound) {
		*ret = REGISTRY_IS_NODE;
		return 0;
	}
	if (!p.is_node)
		return err_set(err, ERR_PERMISSION,
			"the peer's certificate is for neither \"" NODE_NAME "\" nor \"" NODE_PREFIX "%s\"",
			node_id);
	return check_role(r, node_id, ret, err);
}

bool registry_has_lease(const struct registry *r, const struct node_claim *claim)
{
	const struct node *node = node_table_get(r->config.table, claim->node_id);

	return node && node->live && !str_empty(claim->instance) &&
	       str_eq(node->report.instance, claim->instance) &&
	       str_eq(node->report.endpoint, claim->endpoint);
}
