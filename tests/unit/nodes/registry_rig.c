/* SPDX-License-Identifier: Apache-2.0 */
#include "unit/nodes/registry_rig.h"

#include "base/clock.h"
#include "base/mem.h"

#define SERVICE "/registry.v0.Registry/"

static uint64_t now(void *user)
{
	return ((struct rig *)user)->now_ns;
}

static void stop_waiting(void *user)
{
	struct rig *rig = user;

	rig->waiting = false;
	loop_stop(rig->loop);
}

/* The loop is there. */
static void open_registry(struct rig *rig, const struct rig_tls *tls)
{
	struct error *err = NULL;

	rig->workers = workers_new(0);
	rig->table = node_table_new();
	rig->registry = registry_new(&(struct registry_config){.loop = rig->loop,
		.driver_name = "pmem-csi.example",
		.table = rig->table,
		.proof = tls->proof,
		.tokens = tls->tokens,
		.pods = tls->pods,
		.now_ns = now,
		.user = rig});
	rig->services[0] = registry_service(rig->registry);
	rig->server = grpc_server_new(&(struct grpc_server_config){.loop = rig->loop,
		.workers = rig->workers,
		.services = rig->services,
		.allow_plain_tcp = true,
		.handshakes = tls->handshakes});
	ASSERT_OK(grpc_server_listen(rig->server, "tcp://127.0.0.1:0", tls->server, &err));
	CLEANUP(free_charp) char *endpoint = x_asprintf("tcp://127.0.0.1:%u", grpc_server_port(rig->server));
	ASSERT_OK(grpc_client_new(&(struct h2_channel_config){.loop = rig->loop,
					  .endpoint = endpoint,
					  .tls = tls->client,
					  .tls_name = tls->client ? "pmem-registry" : NULL,
					  .handshakes = tls->handshakes},
		&rig->client, &err));
}

void rig_open(struct rig *rig)
{
	struct error *err = NULL;

	*rig = (struct rig){.now_ns = NS_PER_S};
	ASSERT_OK(loop_new(&rig->loop, &err));
	open_registry(rig, &(struct rig_tls){0});
}

void rig_open_tls(struct rig *rig, struct loop *loop, const struct rig_tls *tls)
{
	*rig = (struct rig){.now_ns = NS_PER_S, .loop = loop, .loop_is_borrowed = true};
	open_registry(rig, tls);
}

static void on_drained(void *user)
{
	struct rig *rig = user;

	rig->drained = true;
	loop_stop(rig->loop);
}

void rig_close(struct rig *rig)
{
	grpc_client_free(rig->client);
	grpc_server_drain(rig->server, on_drained, rig);
	while (!rig->drained)
		loop_run(rig->loop);
	grpc_server_free(rig->server);
	registry_free(rig->registry);
	node_table_free(rig->table);
	workers_free(rig->workers);
	if (!rig->loop_is_borrowed)
		loop_free(rig->loop);
}

static void on_reply(void *user, const ProtobufCMessage *reply, const struct error *error)
{
	struct rig_call *call = user;

	call->done = true;
	call->code = error ? (int)error->code : 0;
	call->msg = x_strdup(error ? error->msg : "");
	(void)reply;
}

static struct rig_call *start(struct rig *rig, const char *path, const ProtobufCMessage *request,
	const ProtobufCMessageDescriptor *reply_type)
{
	struct rig_call *call = x_calloc(1, sizeof(*call));

	grpc_client_call(rig->client, path, request, reply_type, 0, on_reply, call);
	return call;
}

struct rig_call *rig_send(struct rig *rig, const Registry__V0__RegisterControllerRequest *request)
{
	return start(rig, SERVICE "RegisterController", &request->base,
		&registry__v0__register_controller_reply__descriptor);
}

struct rig_call *rig_register(
	struct rig *rig, const char *node_id, const char *endpoint, const char *instance)
{
	Registry__V0__RegisterControllerRequest m;
	registry__v0__register_controller_request__init(&m);
	Registry__V0__Inventory inventory;
	registry__v0__inventory__init(&inventory);
	CLEANUP(free_charp) char *id = x_strdup(node_id);
	CLEANUP(free_charp) char *at = x_strdup(endpoint);
	CLEANUP(free_charp) char *run = x_strdup(instance);

	m.node_id = id;
	m.endpoint = at;
	m.instance = run;
	m.lease_seconds = 90;
	m.inventory = &inventory;
	return rig_send(rig, &m);
}

struct rig_call *rig_unregister(
	struct rig *rig, const char *node_id, const char *endpoint, const char *instance)
{
	Registry__V0__UnregisterControllerRequest m;
	registry__v0__unregister_controller_request__init(&m);
	CLEANUP(free_charp) char *id = x_strdup(node_id);
	CLEANUP(free_charp) char *at = x_strdup(endpoint);
	CLEANUP(free_charp) char *run = x_strdup(instance);

	m.node_id = id;
	m.endpoint = at;
	m.instance = run;
	return start(rig, SERVICE "UnregisterController", &m.base,
		&registry__v0__unregister_controller_reply__descriptor);
}

static void round_of(struct rig *rig)
{
	struct loop_timer *timer = loop_timer_new(rig->loop, stop_waiting, rig);

	loop_timer_set(timer, 1, 0);
	loop_run(rig->loop);
	loop_timer_close(timer);
}

int rig_end(struct rig *rig, struct rig_call *call)
{
	while (!call->done)
		round_of(rig);
	return call->code;
}

void rig_call_free(struct rig_call *call)
{
	ck_assert(call->done);
	free(call->msg);
	free(call);
}

void rig_done(struct rig *rig, struct rig_call *call, int code, const char *text)
{
	rig_end(rig, call);
	ck_assert_msg(call->code == code, "code %d, %s", call->code, call->msg);
	ck_assert_msg(strstr(call->msg, text) != NULL, "\"%s\" lacks \"%s\"", call->msg, text);
	rig_call_free(call);
}

void rig_rounds(struct rig *rig)
{
	for (int i = 0; i < 20; i++)
		round_of(rig);
}

void rig_tick(struct rig *rig, uint64_t seconds)
{
	rig->now_ns += seconds * NS_PER_S;
	registry_tick(rig->registry);
}

bool rig_is_live(const struct rig *rig, const char *node_id)
{
	const struct node *node = node_table_get(rig->table, node_id);

	return node && node->live;
}
