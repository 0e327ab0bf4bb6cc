/* SPDX-License-Identifier: Apache-2.0 */
/* csi.v1 Identity and Controller of one node. */
#include "csi.pb-c.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/str.h"
#include "csi/controller_request.h"
#include "csi/convert.h"
#include "csi/reply.h"
#include "sim.h"

/* A CreateVolume or DeleteVolume that ends when the delay is over. */
struct slow_call {
	struct node *node;
	struct grpc_call *call;
	const void *request;
	void *reply;
	struct loop_timer *timer;
	struct error *(*work)(struct slow_call *s);
};

static Csi__V1__Volume *volume_message(const struct node *n, const struct volume *v, struct arena *arena)
{
	Csi__V1__Volume *m = arena_alloc(arena, sizeof(*m));

	csi__v1__volume__init(m);
	m->volume_id = arena_strdup(arena, v->id);
	m->capacity_bytes = (int64_t)v->size_bytes;
	m->accessible_topology = arena_alloc(arena, sizeof(*m->accessible_topology));
	m->accessible_topology[0] = csi_topology(n->sim->options->driver_name, n->id, arena);
	m->n_accessible_topology = 1;
	return m;
}

static struct error *error_of(enum err_code code, const char *text)
{
	struct error *e = NULL;

	if (err_set(&e, code, "%s", text) == 0)
		return NULL;
	return e;
}

/* One line for each: whoever promised the room is wrong. */
static struct error *refuse(struct node *n, const char *name, uint64_t bytes)
{
	n->sim->refused++;
	printf("{\"event\":\"refused\",\"node\":\"%s\",\"name\":\"%s\",\"bytes\":%" PRIu64 "}\n", n->id, name,
		bytes);
	fflush(stdout);
	return error_of(ERR_EXHAUSTED, "not enough space");
}

static struct error *create(struct slow_call *s)
{
	const Csi__V1__CreateVolumeRequest *m = s->request;
	Csi__V1__CreateVolumeResponse *reply = s->reply;
	struct node *n = s->node;
	uint64_t bytes = m->capacity_range && m->capacity_range->required_bytes > 0
				 ? (uint64_t)m->capacity_range->required_bytes
				 : 1;
	CLEANUP(error_freep) struct error *err = NULL;
	struct volume *v = node_find_volume(n, m->name, NULL);
	struct csi_source source;

	if (csi_read_source(m, &source, &err) < 0)
		return TAKE_PTR(err);
	if (!v && source.handle && (source.is_snapshot || !node_find_volume(n, NULL, source.handle)))
		return error_of(ERR_NOT_FOUND, "no such volume to clone");
	if (v && (v->size_bytes < bytes || v->size_bytes - bytes >= UNIT_BYTES))
		return error_of(ERR_EXISTS, "exists with another size");
	if (!v) {
		v = node_add_volume(n, m->name, bytes);
		if (!v)
			return refuse(n, m->name, bytes);
		n->sim->created++;
		registration_touch(n->registration);
	}
	reply->volume = volume_message(n, v, s->call->arena);
	reply->volume->content_source =
		source.handle ? csi_content_source(s->call->arena, source.handle, /* is_snapshot= */ false)
			      : NULL;
	return NULL;
}

static void remove_volume(struct node *n, const char *id)
{
	if (!node_find_volume(n, NULL, id))
		return;
	node_remove_volume(n, id);
	n->sim->deleted++;
	registration_touch(n->registration);
}

static struct error *delete_volume(struct slow_call *s)
{
	const Csi__V1__DeleteVolumeRequest *m = s->request;

	remove_volume(s->node, m->volume_id);
	return NULL;
}

/* Nothing is ever staged on these nodes. */
static struct error *delete_if_never_staged(struct slow_call *s)
{
	const Registry__V0__DeleteIfNeverStagedRequest *m = s->request;

	remove_volume(s->node, m->volume_id);
	return NULL;
}

/* Every second failure loses a reply of what was done. */
static struct error *work_or_fail(struct slow_call *s)
{
	struct sim *sim = s->node->sim;
	uint32_t number = sim->calls++;
	struct error *done;

	if (number % 100 >= sim->options->failure_rate)
		return s->work(s);
	sim->failed++;
	if (number % 2) {
		done = s->work(s);
		error_free(done);
	}
	return error_of(ERR_UNAVAILABLE, "made to fail");
}

static void slow_end(void *user)
{
	struct slow_call *s = user;

	loop_timer_close(s->timer);
	grpc_call_finish(s->call, work_or_fail(s));
	free(s);
}

static void slow_start(struct node *n, struct grpc_call *call, const void *request, void *reply,
	struct error *(*work)(struct slow_call *s))
{
	struct slow_call *s = x_calloc(1, sizeof(*s));

	*s = (struct slow_call){.node = n, .call = call, .request = request, .reply = reply, .work = work};
	if (n->sim->options->delay_ms == 0) {
		slow_end(s);
		return;
	}
	s->timer = loop_timer_new(n->sim->loop, slow_end, s);
	loop_timer_set(s->timer, n->sim->options->delay_ms, 0);
}

static void start_create(void *self, struct grpc_call *call, const void *request, void *reply)
{
	slow_start(self, call, request, reply, create);
}

static void start_delete(void *self, struct grpc_call *call, const void *request, void *reply)
{
	slow_start(self, call, request, reply, delete_volume);
}

static void start_delete_if_never_staged(void *self, struct grpc_call *call, const void *request, void *reply)
{
	slow_start(self, call, request, reply, delete_if_never_staged);
}

static int list_volumes(
	void *self, struct grpc_call *call, const void *request, void *reply, struct error **err)
{
	Csi__V1__ListVolumesResponse *m = reply;
	const struct node *n = self;

	(void)request;
	(void)err;
	m->entries = arena_alloc(call->arena, n->n_volumes * sizeof(*m->entries));
	for (const struct volume *v = n->volumes; v; v = v->next) {
		Csi__V1__ListVolumesResponse__Entry *e = arena_alloc(call->arena, sizeof(*e));

		csi__v1__list_volumes_response__entry__init(e);
		e->volume = volume_message(n, v, call->arena);
		m->entries[m->n_entries++] = e;
	}
	return 0;
}

static int get_capacity(
	void *self, struct grpc_call *call, const void *request, void *reply, struct error **err)
{
	uint64_t free_bytes;
	uint64_t largest_bytes = node_room(self, &free_bytes);

	(void)request;
	(void)err;
	csi_fill_capacity(reply, call->arena, free_bytes, largest_bytes);
	return 0;
}

static int capabilities(
	void *self, struct grpc_call *call, const void *request, void *reply, struct error **err)
{
	(void)self;
	(void)request;
	(void)err;
	csi_fill_controller_capabilities(reply, call->arena, (struct csi_offers){0});
	return 0;
}

static int validate(void *self, struct grpc_call *call, const void *request, void *reply, struct error **err)
{
	const Csi__V1__ValidateVolumeCapabilitiesRequest *m = request;
	Csi__V1__ValidateVolumeCapabilitiesResponse *r = reply;

	if (!node_find_volume(self, NULL, m->volume_id))
		return err_set(err, ERR_NOT_FOUND, "no such volume");
	r->confirmed = csi_confirmed(m, call->arena);
	return 0;
}

static int probe(void *self, struct grpc_call *call, const void *request, void *reply, struct error **err)
{
	(void)self;
	(void)request;
	(void)err;
	csi_fill_ready(reply, call->arena, true);
	return 0;
}

static int plugin_info(
	void *self, struct grpc_call *call, const void *request, void *reply, struct error **err)
{
	const struct node *n = self;

	(void)request;
	(void)err;
	csi_fill_plugin_info(reply, call->arena, n->sim->options->driver_name, PMEM_VERSION);
	return 0;
}

#define METHOD(service, name, prefix)                                                                        \
	.path = "/csi.v1." service "/" name, .request = &csi__v1__##prefix##_request__descriptor,            \
	.reply = &csi__v1__##prefix##_response__descriptor

static const struct grpc_method identity[] = {
	{METHOD("Identity", "Probe", probe), .kind = GRPC_INLINE, .handle = probe},
	{METHOD("Identity", "GetPluginInfo", get_plugin_info), .kind = GRPC_INLINE, .handle = plugin_info},
	{0},
};

static const struct grpc_method controller[] = {
	{METHOD("Controller", "CreateVolume", create_volume), .kind = GRPC_ASYNC, .start = start_create},
	{METHOD("Controller", "DeleteVolume", delete_volume), .kind = GRPC_ASYNC, .start = start_delete},
	{METHOD("Controller", "ListVolumes", list_volumes), .kind = GRPC_INLINE, .handle = list_volumes},
	{METHOD("Controller", "GetCapacity", get_capacity), .kind = GRPC_INLINE, .handle = get_capacity},
	{METHOD("Controller", "ControllerGetCapabilities", controller_get_capabilities), .kind = GRPC_INLINE,
		.handle = capabilities},
	{METHOD("Controller", "ValidateVolumeCapabilities", validate_volume_capabilities),
		.kind = GRPC_INLINE, .handle = validate},
	{0},
};

static const struct grpc_method node_volumes[] = {
	{.path = "/registry.v0.NodeVolumes/DeleteIfNeverStaged",
		.request = &registry__v0__delete_if_never_staged_request__descriptor,
		.reply = &registry__v0__delete_if_never_staged_reply__descriptor,
		.kind = GRPC_ASYNC,
		.start = start_delete_if_never_staged},
	{0},
};

void node_services(struct node *n)
{
	n->services[0] = (struct grpc_service){.methods = identity, .self = n};
	n->services[1] = (struct grpc_service){.methods = controller, .self = n};
	n->services[2] = (struct grpc_service){.methods = node_volumes, .self = n};
}
