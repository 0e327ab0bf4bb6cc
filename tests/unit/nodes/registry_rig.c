/* SPDX-License-Identifier: Apache-2.0 */
#include "unit/nodes/registry_rig.h"

#include "base/clock.h"
#include "base/mem.h"
#include "base/str.h"

#define SERVICE "/registry.v0.Registry/"

static void call_node(void *self, const struct node *node, const char *path, const ProtobufCMessage *request,
	const ProtobufCMessageDescriptor *reply_type, uint64_t timeout_ms, grpc_reply_fn fn, void *user)
{
	struct rig *rig = self;
	bool lists = str_ends(path, "ListVolumes");

	(void)reply_type;
	(void)timeout_ms;
	ck_assert_uint_lt(rig->n_calls, ARRAY_SIZE(rig->calls));
	rig->calls[rig->n_calls++] = (struct rig_node_call){
		.node_id = x_strdup(node->report.node_id),
		.endpoint = x_strdup(node->report.endpoint),
		.path = x_strdup(path),
		.token = lists ? x_strdup(((const Csi__V1__ListVolumesRequest *)(const void *)request)
						  ->starting_token)
			       : NULL,
		.fn = fn,
		.user = user,
	};
}

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
		.table = rig->table,
		.caller = {call_node, rig},
		.proof = tls->proof,
		.tokens = tls->tokens,
		.now_ns = now,
		.user = rig});
	rig->services[0] = registry_service(rig->registry);
	rig->server = grpc_server_new(&(struct grpc_server_config){.loop = rig->loop,
		.workers = rig->workers,
		.services = rig->services,
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
	ck_assert_uint_eq(rig->n_calls, 0);
	registry_stop(rig->registry);
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
	if (reply && reply->descriptor == &registry__v0__watch_nodes_reply__descriptor) {
		size_t n = protobuf_c_message_get_packed_size(reply);
		uint8_t *bytes = x_malloc(n);

		protobuf_c_message_pack(reply, bytes);
		call->watched = registry__v0__watch_nodes_reply__unpack(NULL, n, bytes);
		free(bytes);
	}
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

static struct rig_call *send_head(
	struct rig *rig, const char *node_id, const char *endpoint, const char *instance, bool is_go)
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
	if (!is_go) {
		m.lease_seconds = 90;
		m.inventory = &inventory;
	}
	return rig_send(rig, &m);
}

struct rig_call *rig_register(struct rig *rig, const char *node_id, const char *endpoint, bool is_go)
{
	return send_head(rig, node_id, endpoint, "", is_go);
}

struct rig_call *rig_register_run(
	struct rig *rig, const char *node_id, const char *endpoint, const char *instance)
{
	return send_head(rig, node_id, endpoint, instance, /* is_go= */ false);
}

struct rig_call *rig_unregister_run(
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

struct rig_call *rig_unregister(struct rig *rig, const char *node_id)
{
	return rig_unregister_run(rig, node_id, "", "");
}

struct rig_call *rig_watch(struct rig *rig, const Registry__V0__WatchNodesReply *since, uint32_t timeout_ms)
{
	Registry__V0__WatchNodesRequest m;
	registry__v0__watch_nodes_request__init(&m);

	if (since) {
		m.instance = since->instance;
		m.generation = since->generation;
	}
	m.timeout_ms = timeout_ms;
	return start(rig, SERVICE "WatchNodes", &m.base, &registry__v0__watch_nodes_reply__descriptor);
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
	if (call->watched)
		registry__v0__watch_nodes_reply__free_unpacked(call->watched, NULL);
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

void rig_until_called(struct rig *rig, size_t n)
{
	while (rig->n_calls < n)
		round_of(rig);
	ck_assert_uint_eq(rig->n_calls, n);
}

void rig_rounds(struct rig *rig)
{
	for (int i = 0; i < 20; i++)
		round_of(rig);
}

void rig_answer(struct rig *rig, const ProtobufCMessage *reply, enum err_code code)
{
	CLEANUP(error_freep) struct error *err = NULL;
	struct rig_node_call call;

	ck_assert_uint_gt(rig->n_calls, 0);
	call = rig->calls[0];
	memmove(&rig->calls[0], &rig->calls[1], --rig->n_calls * sizeof(call));
	if (!reply)
		err_set(&err, code, "made up by the test");
	call.fn(call.user, reply, err);
	free(call.node_id);
	free(call.endpoint);
	free(call.path);
	free(call.token);
}

void rig_answer_volumes(
	struct rig *rig, const char *id, const char *key, const char *name, const char *next_token)
{
	Csi__V1__ListVolumesResponse m;
	csi__v1__list_volumes_response__init(&m);
	Csi__V1__ListVolumesResponse__Entry entry;
	csi__v1__list_volumes_response__entry__init(&entry);
	Csi__V1__Volume volume;
	csi__v1__volume__init(&volume);
	Csi__V1__Volume__VolumeContextEntry context;
	csi__v1__volume__volume_context_entry__init(&context);
	CLEANUP(free_charp) char *id_copy = x_strdup(id);
	CLEANUP(free_charp) char *key_copy = x_strdup(key);
	CLEANUP(free_charp) char *name_copy = x_strdup(name);
	CLEANUP(free_charp) char *token = x_strdup(next_token);

	context.key = key_copy;
	context.value = name_copy;
	volume.volume_id = id_copy;
	volume.capacity_bytes = 4096;
	volume.n_volume_context = 1;
	volume.volume_context = (Csi__V1__Volume__VolumeContextEntry *[]){&context};
	entry.volume = &volume;
	m.n_entries = 1;
	m.entries = (Csi__V1__ListVolumesResponse__Entry *[]){&entry};
	m.next_token = token;
	ck_assert_str_eq(rig->calls[0].path, "/csi.v1.Controller/ListVolumes");
	rig_answer(rig, &m.base, ERR_UNKNOWN);
}

void rig_answer_capacity(struct rig *rig, int64_t bytes)
{
	Csi__V1__GetCapacityResponse m;
	csi__v1__get_capacity_response__init(&m);

	m.available_capacity = bytes;
	ck_assert_str_eq(rig->calls[0].path, "/csi.v1.Controller/GetCapacity");
	rig_answer(rig, &m.base, ERR_UNKNOWN);
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
