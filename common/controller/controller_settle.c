/* SPDX-License-Identifier: Apache-2.0 */
/* After CreateVolume was answered: copies that other nodes began are deleted, and nodes without a copy are
 * removed from the record. */
#include <stdlib.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "controller/controller_private.h"

/* The work on the record that is left when the call is answered; it outlives the call. */
struct settlement {
	struct controller *controller;
	struct volume_key key;
	struct pmem_volume *record;
	bool record_differs;
	size_t n_left; /* calls, and the loop that makes them */
};

struct settlement_call {
	struct settlement *all;
	char *node_id;
};

/* A record that cannot be written names more nodes than necessary; the leader removes them
 * (volume_objects.h). */
static void on_settled(void *user, struct pmem_volume *record, const struct error *error)
{
	struct settlement *s = user;

	if (error)
		log_debug("the record of a volume was not written", F_STR("record", s->record->meta.name),
			F_ERR(error));
	pmem_volume_free(record);
	pmem_volume_free(s->record);
	key_unlock(s->controller->locks, &s->key);
	free(s);
}

static void release(struct settlement *s)
{
	bool is_over;

	if (--s->n_left > 0)
		return;
	if (!s->record_differs) {
		on_settled(s, NULL, NULL);
		return;
	}
	is_over = strv_len(s->record->nodes) == 0 && !s->record->handle;
	controller_write_record(
		s->controller, is_over ? RECORD_RELEASE : RECORD_SPEC, s->record, on_settled, s);
}

static void on_deleted(void *user, const ProtobufCMessage *reply, const struct error *error)
{
	struct settlement_call *call = user;

	(void)reply;
	if (!error && pmem_volume_drop_node(call->all->record, call->node_id))
		call->all->record_differs = true;
	release(call->all);
	free(call->node_id);
	free(call);
}

static void delete_on(struct settlement *s, const struct node *node, const char *id)
{
	struct settlement_call *call = x_malloc(sizeof(*call));

	*call = (struct settlement_call){.all = s, .node_id = x_strdup(node->report.node_id)};
	s->n_left++;
	controller_delete_copy(s->controller, node, id, on_deleted, call);
}

static bool is_made_on(const struct settlement_of *of, const char *node_id)
{
	for (size_t i = 0; i < of->n_made; i++) {
		if (str_eq(of->made_on[i], node_id))
			return true;
	}
	return false;
}

/* Whether this controller asked @node for a copy that it is to lose again, and it can check that the copy was
 * never staged. Nodes of which that is not so stay in the record. */
static bool is_deletable(const struct settlement *s, const struct settlement_of *of, const struct node *node)
{
	const char *node_id = node->report.node_id;

	return !is_made_on(of, node_id) && node->report.serves_node_volumes && !s->record->origin &&
	       !pmem_volume_is_lost(s->record, node_id);
}

/* Deletes the copies that other nodes have begun to make for the same call, on the nodes that are live. */
static void delete_others(const struct settlement_of *of, struct settlement *s)
{
	CLEANUP(strv_freep) char **nodes = NULL;

	for (size_t i = 0; i < strv_len(s->record->nodes); i++)
		strv_add(&nodes, s->record->nodes[i]);
	for (size_t i = 0; nodes && nodes[i]; i++) {
		const struct node *node = controller_live_node(s->controller, nodes[i]);
		char id[VOLUME_ID_MAX + 1];

		if (node && is_deletable(s, of, node) &&
			controller_find_copy(node, of->name, of->is_cache, id))
			delete_on(s, node, id);
	}
}

void controller_settle(struct controller *c, const struct settlement_of *of, struct pmem_volume *record)
{
	struct settlement *s;

	if (!record) {
		key_unlock(c->locks, &of->key);
		return;
	}
	s = x_malloc(sizeof(*s));
	*s = (struct settlement){.controller = c,
		.key = of->key,
		.record = record,
		.record_differs = of->record_differs,
		.n_left = 1};
	if (of->n_made > 0)
		delete_others(of, s);
	release(s);
}
