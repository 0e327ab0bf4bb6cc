/* SPDX-License-Identifier: Apache-2.0 */
#include "controller/controller.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/str.h"
#include "controller/controller_private.h"

/* For callers that give no deadline; the volume may take longer. */
#define CALL_MAX_MS 300000
/* A call to a node ends before the deadline of the caller, so that there is time for the answer: by a tenth
 * of the remaining time, but at most by this. */
#define MARGIN_MAX_MS 1000

struct controller *controller_new(const struct controller_config *config)
{
	struct controller *c = x_calloc(1, sizeof(*c));

	c->config = *config;
	c->locks = key_locks_new();
	c->waits = inventory_waits_new();
	c->started_ns = controller_now_ns(c);
	return c;
}

void controller_free(struct controller *c)
{
	if (!c)
		return;
	key_locks_free(c->locks);
	inventory_waits_free(c->waits);
	free(c);
}

uint64_t controller_now_ns(const struct controller *c)
{
	return c->config.now_ns ? c->config.now_ns(c->config.user) : clock_ns();
}

bool controller_in_start_window(const struct controller *c)
{
	return controller_now_ns(c) - c->started_ns < c->config.start_window_ms * NS_PER_MS;
}

int controller_require_ready(const struct controller *c, struct error **err)
{
	if (cluster_nodes_ready(c->config.cluster))
		return 0;
	return err_set(err, ERR_UNAVAILABLE,
		"the controller is still starting: the list of nodes has not been read from the Kubernetes "
		"API yet");
}

/* For as long as a controller that has just started would wait for it. */
static bool is_silent(const struct controller *c, const struct node *node)
{
	return !node || (!node->live && controller_now_ns(c) - node->registered_ns >=
						c->config.start_window_ms * NS_PER_MS);
}

bool controller_is_gone(const struct controller *c, const char *node_id)
{
	return !controller_in_start_window(c) && is_silent(c, node_table_get(c->config.nodes, node_id)) &&
	       !cluster_nodes_have(c->config.cluster, node_id);
}

bool controller_is_out_of_service(const struct controller *c, const char *node_id)
{
	return cluster_nodes_out_of_service(c->config.cluster, node_id);
}

void controller_tick(struct controller *c)
{
	const struct node *const *nodes;
	size_t n = node_table_nodes(c->config.nodes, &nodes);

	for (size_t i = 0; i < n; i++) {
		if (nodes[i]->live || !controller_is_gone(c, nodes[i]->report.node_id))
			continue;
		/* which ends what the array is */
		CLEANUP(free_charp) char *node_id = x_strdup(nodes[i]->report.node_id);
		node_table_forget(c->config.nodes, node_id);
		return;
	}
}

enum node_answer controller_classify(const struct error *error)
{
	if (!error)
		return ANSWER_OK;
	switch (error->code) {
	case ERR_EXHAUSTED:
	case ERR_RANGE:
		return ANSWER_NO_ROOM;
	case ERR_INVALID_ARGUMENT:
	case ERR_EXISTS:
	case ERR_PRECONDITION:
		return ANSWER_REFUSED;
	case ERR_CANCELLED:
	case ERR_UNKNOWN:
	case ERR_DEADLINE:
	case ERR_NOT_FOUND:
	case ERR_PERMISSION:
	case ERR_ABORTED:
	case ERR_UNIMPLEMENTED:
	case ERR_INTERNAL:
	case ERR_UNAVAILABLE:
	case ERR_UNAUTHENTICATED:
	default:
		return ANSWER_UNSURE;
	}
}

struct error *controller_pass_on(const char *node_id, const struct error *error)
{
	struct error *passed = NULL;
	bool as_it_is = controller_classify(error) != ANSWER_UNSURE || error->code == ERR_ABORTED ||
			error->code == ERR_DEADLINE || error->code == ERR_UNAVAILABLE;

	if (as_it_is)
		err_set(&passed, error->code, "node %s: %s", node_id, error->msg);
	else
		err_set(&passed, ERR_UNAVAILABLE, "node %s: %s: %s", node_id, err_code_name(error->code),
			error->msg);
	return passed;
}

uint64_t controller_timeout_ms(const struct controller *c, uint64_t deadline_ns)
{
	uint64_t now_ns = controller_now_ns(c);
	uint64_t left_ms = deadline_ns > now_ns ? (deadline_ns - now_ns) / NS_PER_MS : 0;
	uint64_t margin_ms;

	if (left_ms > CALL_MAX_MS)
		left_ms = CALL_MAX_MS;
	margin_ms = left_ms / 10 < MARGIN_MAX_MS ? left_ms / 10 : MARGIN_MAX_MS;
	return left_ms - margin_ms;
}

const struct node *controller_live_node(const struct controller *c, const char *node_id)
{
	return node_table_get_live(c->config.nodes, node_id);
}

void controller_call(struct controller *c, const struct node *node, const char *path,
	const ProtobufCMessage *request, const ProtobufCMessageDescriptor *reply_type, uint64_t timeout_ms,
	grpc_reply_fn fn, void *user)
{
	c->config.caller->call(c->config.caller->self, node, path, request, reply_type, timeout_ms, fn, user);
}

void controller_read_record(
	const struct controller *c, const struct volume_key *key, volume_record_fn fn, void *user)
{
	c->config.records.read(c->config.records.self, key->hex, fn, user);
}

void controller_write_record(const struct controller *c, enum volume_record_write what,
	const struct pmem_volume *record, volume_record_fn fn, void *user)
{
	c->config.records.write(c->config.records.self, what, record, fn, user);
}

struct error *controller_record_failure(const char *volume, const struct error *error)
{
	struct error *failure = NULL;

	err_set(&failure, ERR_UNAVAILABLE, "record of volume \"%s\": %s", volume, error->msg);
	return failure;
}

void controller_take_record(struct pmem_volume **at, struct pmem_volume *record)
{
	pmem_volume_free(*at);
	*at = record;
}

bool controller_drop_nodes(struct pmem_volume *record, char *const *absent)
{
	bool changed = false;

	for (size_t i = 0; i < strv_len(absent); i++)
		changed = pmem_volume_drop_node(record, absent[i]) || changed;
	return changed;
}
