/* Who may say what, by the names of the peer's certificate. */
#include "base/str.h"
#include "cluster/registry_private.h"

#define NODE_NAME      "pmem-node-controller"
#define SCHEDULER_NAME "pmem-scheduler"
#define NODE_PREFIX    "node-"

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

int registry_check_node(const struct registry *r, const struct grpc_call *call, const char *node_id,
	bool *ret_bound, struct error **err)
{
	const struct node *known = node_table_get(r->config.table, node_id);
	struct peer p;

	*ret_bound = false;
	if (!call->peer_names)
		return 0;
	p = look_at(call->peer_names, node_id);
	if (p.is_bound && !p.is_this)
		return err_set(err, ERR_PERMISSION, "the certificate of the peer is not that of node \"%s\"",
			node_id);
	if (!p.is_bound && !p.is_node)
		return err_set(err, ERR_PERMISSION,
			"the certificate of the peer bears neither \"" NODE_NAME "\" nor \"" NODE_PREFIX
			"%s\"",
			node_id);
	/* Otherwise the certificate that all nodes share would be as good as the node's own. */
	if (!p.is_bound && known && known->live && known->report.bound)
		return err_set(err, ERR_PERMISSION,
			"node \"%s\" has registered with a certificate for \"" NODE_PREFIX
			"%s\": the lease can only be taken over with one",
			node_id, node_id);
	*ret_bound = p.is_bound;
	return 0;
}

int registry_check_scheduler(const struct grpc_call *call, struct error **err)
{
	const char *const *name = call->peer_names;

	if (!name)
		return 0;
	while (*name && !str_eq(*name, SCHEDULER_NAME))
		name++;
	if (!*name)
		return err_set(err, ERR_PERMISSION,
			"the certificate of the peer does not bear \"" SCHEDULER_NAME "\"");
	return 0;
}
