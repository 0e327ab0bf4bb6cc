/* SPDX-License-Identifier: Apache-2.0 */
#include "nodes/node_clients.h"

#include <stddef.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/name_index.h"
#include "base/str.h"
#include "nodes/node_text.h"

#define IDLE_MS 60000
/* Calls to one node at a time: a node that hangs must not keep all callers of the controller waiting. */
#define CALLS_MAX 16

struct node_client {
	struct name_link link; /* by node ID */
	struct node_client *next;
	struct node_clients *owner;
	char *node_id;
	char *endpoint;
	char *tls_name;
	struct grpc_client *client;
	size_t calls;
	bool retired; /* another one has its place: it goes with its last call */
	uint64_t used_ns;
};

struct node_clients {
	struct node_clients_config config;
	struct name_index index; /* of those that are not retired */
	struct node_client *first;
	struct loop_timer *sweep;
	bool freeing;
};

struct node_call {
	struct node_client *client; /* NULL: there is none, and @error says why */
	struct grpc_client_call *made;
	struct error *error;
	grpc_reply_fn fn;
	void *user;
};

static void retire(struct node_client *n)
{
	if (n->retired)
		return;
	n->retired = true;
	name_index_remove(&n->owner->index, &n->link);
}

static void client_free(struct node_client *n)
{
	struct node_client **at = &n->owner->first;

	retire(n);
	while (*at != n)
		at = &(*at)->next;
	*at = n->next;
	grpc_client_free(n->client);
	free(n->node_id);
	free(n->endpoint);
	free(n->tls_name);
	free(n);
}

static void on_sweep(void *user)
{
	struct node_clients *c = user;
	uint64_t now_ns = clock_ns();

	for (struct node_client *n = c->first, *next; n; n = next) {
		next = n->next;
		if (n->calls == 0 && (n->retired || now_ns - n->used_ns > c->config.idle_ms * NS_PER_MS))
			client_free(n);
	}
}

struct node_clients *node_clients_new(const struct node_clients_config *config)
{
	struct node_clients *c = x_calloc(1, sizeof(*c));

	c->config = *config;
	if (c->config.idle_ms == 0)
		c->config.idle_ms = IDLE_MS;
	if (config->tls)
		tls_context_ref(config->tls);
	name_index_init(&c->index);
	c->sweep = loop_timer_new(config->loop, on_sweep, c);
	/* A client without a connection is small, so it need not be freed soon. */
	loop_timer_set(c->sweep, c->config.idle_ms, c->config.idle_ms);
	loop_timer_detach(c->sweep);
	return c;
}

void node_clients_free(struct node_clients *c)
{
	if (!c)
		return;
	c->freeing = true;
	while (c->first) {
		struct node_client *n = c->first;

		/* its calls end, and so use it, before it goes */
		n->calls++;
		grpc_client_free(TAKE_PTR(n->client));
		client_free(n);
	}
	loop_timer_close(c->sweep);
	name_index_done(&c->index);
	tls_context_unref(c->config.tls);
	free(c);
}

static char *tls_name_of(const struct node *node)
{
	return node->report.bound ? x_asprintf("node-%s", node->report.node_id)
				  : x_strdup("pmem-node-controller");
}

static struct node_client *find(const struct node_clients *c, const char *node_id)
{
	struct name_link *l = name_index_first(&c->index, node_id);

	return l ? OWNER_OF(l, struct node_client, link) : NULL;
}

/* Takes @tls_name. */
static struct node_client *add_client(
	struct node_clients *c, const struct node *node, char *tls_name, struct error **err)
{
	const struct h2_channel_config config = {.loop = c->config.loop,
		.endpoint = node->report.endpoint,
		.tls = c->config.tls,
		.tls_name = c->config.tls ? tls_name : NULL,
		.handshakes = c->config.handshakes,
		.idle_ms = c->config.idle_ms};
	struct grpc_client *client;
	struct node_client *n;

	if (grpc_client_new(&config, &client, err) < 0) {
		free(tls_name);
		return NULL;
	}
	grpc_client_set_recipient(client, node->report.node_id);
	n = x_calloc(1, sizeof(*n));
	n->owner = c;
	n->node_id = x_strdup(node->report.node_id);
	n->endpoint = x_strdup(node->report.endpoint);
	n->tls_name = tls_name;
	n->client = client;
	n->next = c->first;
	c->first = n;
	name_index_add(&c->index, &n->link, n->node_id);
	return n;
}

/* Return: NULL with @err set when there can be none. */
static struct node_client *client_for(struct node_clients *c, const struct node *node, struct error **err)
{
	CLEANUP(free_charp) char *tls_name = tls_name_of(node);
	struct node_client *n = find(c, node->report.node_id);

	if (c->freeing) {
		err_set(err, ERR_CANCELLED, "the controller is shutting down");
		return NULL;
	}
	if (n && str_eq(n->endpoint, node->report.endpoint) && str_eq(n->tls_name, tls_name)) {
		if (n->calls < CALLS_MAX)
			return n;
		err_set(err, ERR_UNAVAILABLE, "%d calls to the node have not ended yet", CALLS_MAX);
		return NULL;
	}
	if (n && n->calls > 0)
		retire(n);
	else if (n)
		client_free(n);
	return add_client(c, node, TAKE_PTR(tls_name), err);
}

/* Codes such as RESOURCE_EXHAUSTED mean something about volumes only if the node has sent them; others are of
 * the connection. */
static bool is_of_connection(const struct node_call *call, const struct error *error)
{
	return error->code != ERR_DEADLINE && error->code != ERR_CANCELLED &&
	       error->code != ERR_UNAVAILABLE && !grpc_client_call_refused(call->made);
}

/* The text of a node is cleaned: it becomes a part of messages to callers, and of their Events. */
static struct error *read_error(const struct node_call *call, const struct error *error)
{
	CLEANUP(arena_freep) struct arena *arena = arena_new(0);
	struct error *read = NULL;

	if (is_of_connection(call, error))
		err_set(&read, ERR_UNAVAILABLE, "%s: %s", err_code_name(error->code),
			node_text(error->msg, arena));
	else
		err_set(&read, error->code, "%s", node_text(error->msg, arena));
	return read;
}

static void on_reply(void *user, const ProtobufCMessage *reply, const struct error *error)
{
	struct node_call *call = user;
	struct node_client *n = call->client;
	CLEANUP(error_freep) struct error *read = error ? read_error(call, error) : NULL;

	n->used_ns = clock_ns();
	call->fn(call->user, reply, read);
	if (--n->calls == 0 && n->retired)
		client_free(n);
	free(call);
}

static void on_refused(void *user)
{
	struct node_call *call = user;

	call->fn(call->user, NULL, call->error);
	error_free(call->error);
	free(call);
}

static void call_node(void *self, const struct node *node, const char *path, const ProtobufCMessage *request,
	const ProtobufCMessageDescriptor *reply_type, uint64_t timeout_ms, grpc_reply_fn fn, void *user)
{
	struct node_call *call = x_calloc(1, sizeof(*call));
	struct node_clients *c = self;

	call->fn = fn;
	call->user = user;
	call->client = client_for(c, node, &call->error);
	if (!call->client) {
		loop_post(c->config.loop, on_refused, call);
		return;
	}
	call->client->calls++;
	call->client->used_ns = clock_ns();
	call->made =
		grpc_client_call(call->client->client, path, request, reply_type, timeout_ms, on_reply, call);
}

struct node_caller node_clients_caller(struct node_clients *c)
{
	return (struct node_caller){.call = call_node, .self = c};
}
