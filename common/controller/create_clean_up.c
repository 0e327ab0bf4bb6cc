/* SPDX-License-Identifier: Apache-2.0 */
/* Copies that were begun on nodes of which another one was chosen in the end. */
#include <stdlib.h>

#include "base/mem.h"
#include "base/str.h"
#include "controller/create_private.h"
#include "volume/id.h"

/* Outlives the call whose volume it is about. */
struct clean_up {
	struct controller *controller;
	struct volume_key key;
	size_t n_left; /* calls, and the loop that makes them */
};

struct clean_up_call {
	struct clean_up *all;
	char *node_id;
};

static void release(struct clean_up *u)
{
	if (--u->n_left > 0)
		return;
	attempts_unlock(u->controller->attempts, &u->key);
	free(u);
}

/* A copy that could not be deleted now is found again by leftovers.h. */
static void on_deleted(void *user, const ProtobufCMessage *reply, const struct error *error)
{
	struct clean_up_call *call = user;

	(void)reply;
	if (!error)
		attempts_end(call->all->controller->attempts, &call->all->key, call->node_id);
	release(call->all);
	free(call->node_id);
	free(call);
}

static bool is_made_on(const struct create *op, const char *node_id)
{
	for (size_t i = 0; i < op->n_made; i++) {
		if (str_eq(op->made_on[i], node_id))
			return true;
	}
	return false;
}

/* The ID of the copy on @node. Return: false: what bears the name there is not ours to delete. */
static bool find_copy(const struct create *op, const struct node *node, char id[static VOLUME_ID_MAX + 1])
{
	const struct volume_report *v;
	size_t at = 0;

	volume_id_mint(op->request->name, op->is_cache ? NULL : node->report.node_id, id);
	while ((v = node_next_volume(node, &at)) != NULL) {
		if (str_eq(v->name, op->request->name) || str_eq(v->id, id))
			return v->made_by_controller && !v->ever_staged && str_eq(v->id, id);
	}
	return true;
}

static void delete_on(struct clean_up *u, const struct node *node, const char *id)
{
	struct clean_up_call *call = x_malloc(sizeof(*call));

	*call = (struct clean_up_call){.all = u, .node_id = x_strdup(node->report.node_id)};
	u->n_left++;
	controller_delete_copy(u->controller, node, id, on_deleted, call);
}

void create_clean_up(struct create *op)
{
	struct controller *c = op->controller;
	CLEANUP(strv_freep) char **begun = NULL;
	struct clean_up *u = x_malloc(sizeof(*u));

	*u = (struct clean_up){.controller = c, .key = op->key, .n_left = 1};
	for (char *const *at = attempts_nodes(c->attempts, &op->key); at && *at; at++)
		strv_add(&begun, *at);
	for (size_t i = 0; begun && begun[i]; i++) {
		const struct node *node = controller_live_node(c, begun[i]);
		char id[VOLUME_ID_MAX + 1];

		if (!is_made_on(op, begun[i]) && node && find_copy(op, node, id))
			delete_on(u, node, id);
	}
	release(u);
}
