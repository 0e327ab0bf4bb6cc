/* SPDX-License-Identifier: Apache-2.0 */
#include "unit/controller/desk.h"

#include <stdio.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/str.h"
#include "csi/convert.h"
#include "csi/reply.h"
#include "volume/id.h"

static void call(void *self, const struct node *node, const char *path, const ProtobufCMessage *request,
	const ProtobufCMessageDescriptor *reply_type, uint64_t timeout_ms, grpc_reply_fn fn, void *user)
{
	struct desk *d = self;
	struct desk_call *c = &d->calls[d->n_calls++];
	size_t n = protobuf_c_message_get_packed_size(request);
	uint8_t *packed = x_malloc(n);

	(void)reply_type;
	ck_assert_uint_le(d->n_calls, DESK_CALLS);
	ck_assert(node->live);
	*c = (struct desk_call){.timeout_ms = timeout_ms, .fn = fn, .user = user};
	snprintf(c->node_id, sizeof(c->node_id), "%s", node->report.node_id);
	protobuf_c_message_pack(request, packed);
	c->create = str_ends(path, "/CreateVolume");
	c->if_never_staged = str_ends(path, "/DeleteIfNeverStaged");
	if (c->create)
		c->create_request = csi__v1__create_volume_request__unpack(NULL, n, packed);
	else if (str_ends(path, "/CreateSnapshot"))
		c->create_snapshot_request = csi__v1__create_snapshot_request__unpack(NULL, n, packed);
	else if (str_ends(path, "/CreateVolumeGroupSnapshot"))
		c->create_group_request =
			csi__v1__create_volume_group_snapshot_request__unpack(NULL, n, packed);
	else if (str_ends(path, "/GetVolumeGroupSnapshot"))
		c->get_group_request = csi__v1__get_volume_group_snapshot_request__unpack(NULL, n, packed);
	else if (str_ends(path, "/DeleteSnapshot"))
		c->delete_snapshot_request = csi__v1__delete_snapshot_request__unpack(NULL, n, packed);
	else if (str_ends(path, "/DeleteVolume") || str_ends(path, "/DeleteIfNeverStaged"))
		/* the handle is field 1 of both requests */
		c->delete_request = csi__v1__delete_volume_request__unpack(NULL, n, packed);
	else if (str_ends(path, "/ControllerModifyVolume"))
		c->modify_request = csi__v1__controller_modify_volume_request__unpack(NULL, n, packed);
	else if (str_ends(path, "/ControllerExpandVolume"))
		c->expand_request = csi__v1__controller_expand_volume_request__unpack(NULL, n, packed);
	else
		c->validate_request = csi__v1__validate_volume_capabilities_request__unpack(NULL, n, packed);
	free(packed);
}

static uint64_t now_ns(void *user)
{
	const struct desk *d = user;

	return d->now_ns;
}

static bool cluster_ready(void *self)
{
	const struct desk *d = self;

	return d->cluster_ready;
}

static size_t cluster_list(void *self, const char *const **ret)
{
	struct desk *d = self;

	*ret = d->cluster_ids;
	return d->n_cluster;
}

static bool cluster_has(void *self, const char *node_id)
{
	const struct desk *d = self;

	return !str_eq(d->missing, node_id);
}

static bool cluster_out_of_service(void *self, const char *node_id)
{
	const struct desk *d = self;

	return str_eq(d->out_of_service, node_id);
}

static void read_record(void *self, const char *key, volume_record_fn fn, void *user)
{
	CLEANUP(error_freep) struct error *error = NULL;
	struct desk *d = self;
	struct volume_records r = memory_records_interface(d->memory);

	if (++d->n_reads == d->fail_read && err_set(&error, ERR_DEADLINE, "the desk is closed") < 0)
		fn(user, NULL, error);
	else
		r.read(r.self, key, fn, user);
}

static void ignore(void *user, struct pmem_volume *record, const struct error *error)
{
	(void)user;
	(void)error;
	pmem_volume_free(record);
}

static void write_record(void *self, enum volume_record_write what, const struct pmem_volume *record,
	volume_record_fn fn, void *user)
{
	CLEANUP(error_freep) struct error *error = NULL;
	struct desk *d = self;
	struct volume_records r = memory_records_interface(d->memory);

	d->n_writes++;
	d->now_ns += d->write_takes_ns;
	if (d->n_writes != d->fail_write && !(d->fail_all && d->n_writes > d->fail_write)) {
		r.write(r.self, what, record, fn, user);
		return;
	}
	if (d->fail_after)
		r.write(r.self, what, record, ignore, NULL);
	if (err_set(&error, d->fail_code, "the desk is closed") < 0)
		fn(user, NULL, error);
}

static void read_node(void *self, const char *node_id, shown_node_fn fn, void *user)
{
	struct pmem_node *node = NULL;
	struct desk *d = self;

	d->n_node_reads++;
	if (d->on_node_read)
		d->on_node_read(d);
	for (size_t i = 0; i < DESK_SHOWN && !node; i++) {
		if (!str_eq(d->shown[i].node_id, node_id))
			continue;
		node = x_calloc(1, sizeof(*node));
		node->node = x_strdup(node_id);
		node->recorded_until = x_strdup(d->shown[i].until);
	}
	fn(user, node);
}

static void keep(void *user, struct pmem_volume *record, const struct error *error)
{
	struct pmem_volume **ret = user;

	ck_assert_ptr_null(error);
	*ret = record;
}

struct pmem_volume *desk_record(struct desk *d, const char *name)
{
	struct volume_key key = volume_key_of_name(name);
	struct pmem_volume *record = NULL;

	read_record(d, key.hex, keep, &record);
	return record;
}

static void expect_written(void *user, struct pmem_volume *record, const struct error *error)
{
	(void)user;
	ck_assert_ptr_null(error);
	pmem_volume_free(record);
}

void desk_put_record(struct desk *d, enum volume_record_write what, struct pmem_volume *record)
{
	struct volume_records r = memory_records_interface(d->memory);

	r.write(r.self, what, record, expect_written, NULL);
	pmem_volume_free(record);
}

void desk_check_nodes(struct desk *d, const char *name, const char *nodes)
{
	CLEANUP(pmem_volume_freep) struct pmem_volume *record = desk_record(d, name);
	char found[256] = "";

	if (!nodes) {
		ck_assert_ptr_null(record);
		return;
	}
	ck_assert_ptr_nonnull(record);
	for (size_t i = 0; i < strv_len(record->nodes); i++)
		snprintf(found + strlen(found), sizeof(found) - strlen(found), "%s%s", i > 0 ? " " : "",
			record->nodes[i]);
	ck_assert_str_eq(found, nodes);
}

void desk_open(struct desk *d, bool early, bool forget_gone)
{
	*d = (struct desk){.now_ns = NS_PER_S, .table = node_table_new(), .cluster_ready = true};
	d->cluster =
		(struct cluster_nodes){cluster_ready, cluster_list, cluster_has, cluster_out_of_service, d};
	d->caller = (struct node_caller){.call = call, .self = d};
	d->memory = memory_records_new(DESK_DRIVER);
	d->records = (struct volume_records){
		.read = read_record, .write = write_record, .read_node = read_node, .self = d};
	const struct controller_config config = {.driver_name = DESK_DRIVER,
		.records = d->records,
		.version = "1.2.3",
		.nodes = d->table,
		.caller = &d->caller,
		.cluster = &d->cluster,
		.start_window_ms = DESK_LEASE_NS / NS_PER_MS,
		.forget_gone_nodes = forget_gone,
		.now_ns = now_ns,
		.user = d};
	d->controller = controller_new(&config);
	if (!early)
		d->now_ns += DESK_LEASE_NS;
}

static void free_requests(struct desk_call *c)
{
	csi__v1__create_volume_request__free_unpacked(c->create_request, NULL);
	csi__v1__create_snapshot_request__free_unpacked(c->create_snapshot_request, NULL);
	csi__v1__create_volume_group_snapshot_request__free_unpacked(c->create_group_request, NULL);
	csi__v1__get_volume_group_snapshot_request__free_unpacked(c->get_group_request, NULL);
	csi__v1__delete_volume_request__free_unpacked(c->delete_request, NULL);
	csi__v1__delete_snapshot_request__free_unpacked(c->delete_snapshot_request, NULL);
	csi__v1__validate_volume_capabilities_request__free_unpacked(c->validate_request, NULL);
	csi__v1__controller_expand_volume_request__free_unpacked(c->expand_request, NULL);
	csi__v1__controller_modify_volume_request__free_unpacked(c->modify_request, NULL);
}

void desk_close(struct desk *d)
{
	for (size_t i = 0; i < d->n_calls; i++) {
		ck_assert_msg(d->calls[i].answered, "call %zu to %s is open", i, d->calls[i].node_id);
		free_requests(&d->calls[i]);
	}
	controller_free(d->controller);
	memory_records_free(d->memory);
	node_table_free(d->table);
}

void desk_add_node(struct desk *d, const char *node_id, uint64_t max_gib)
{
	struct node_report *r = report_new(node_id);

	r->pools[0].capacity.max_volume_bytes = max_gib * DESK_GIB;
	node_table_put(d->table, r, d->now_ns);
}

static void finish(void *user, struct error *error)
{
	struct desk_ask *a = user;

	ck_assert(!a->finished);
	a->finished = true;
	a->error = error;
}

static bool is_wanted(void *user)
{
	const struct desk_ask *a = user;

	return !a->gone;
}

struct waiter desk_waiter(struct desk_ask *a)
{
	return (struct waiter){.arena = a->arena,
		.deadline_ns = a->deadline_ns,
		.finish = finish,
		.is_wanted = is_wanted,
		.user = a};
}

static Csi__V1__VolumeCapability *make_capability(struct arena *arena)
{
	Csi__V1__VolumeCapability *c = arena_alloc(arena, sizeof(*c));

	csi__v1__volume_capability__init(c);
	c->access_mode = arena_alloc(arena, sizeof(*c->access_mode));
	csi__v1__volume_capability__access_mode__init(c->access_mode);
	c->access_mode->mode = CSI__V1__VOLUME_CAPABILITY__ACCESS_MODE__MODE__SINGLE_NODE_WRITER;
	c->access_type_case = CSI__V1__VOLUME_CAPABILITY__ACCESS_TYPE_MOUNT;
	c->mount = arena_alloc(arena, sizeof(*c->mount));
	csi__v1__volume_capability__mount_volume__init(c->mount);
	return c;
}

void desk_ask_init(struct desk_ask *a, const char *name)
{
	*a = (struct desk_ask){.arena = arena_new(1 << 20), .deadline_ns = DEADLINE_NONE};
	csi__v1__create_volume_request__init(&a->create);
	csi__v1__create_volume_response__init(&a->created);
	csi__v1__delete_volume_request__init(&a->delete);
	csi__v1__controller_expand_volume_request__init(&a->expand);
	csi__v1__controller_expand_volume_response__init(&a->expanded);
	csi__v1__controller_modify_volume_request__init(&a->modify);
	csi__v1__capacity_range__init(&a->range);
	a->create.name = arena_strdup(a->arena, name);
	a->create.capacity_range = arena_alloc(a->arena, sizeof(*a->create.capacity_range));
	csi__v1__capacity_range__init(a->create.capacity_range);
	a->create.capacity_range->required_bytes = DESK_GIB;
	a->create.n_volume_capabilities = 1;
	a->create.volume_capabilities = arena_alloc(a->arena, sizeof(*a->create.volume_capabilities));
	a->create.volume_capabilities[0] = make_capability(a->arena);
	a->create.parameters = arena_alloc(a->arena, 4 * sizeof(*a->create.parameters));
}

void desk_ask_done(struct desk_ask *a)
{
	error_free(a->error);
	arena_free(a->arena);
}

static Csi__V1__Topology **make_topologies(struct arena *arena, const char *const *ids, size_t *ret_n)
{
	Csi__V1__Topology **list = arena_alloc(arena, 8 * sizeof(*list));

	for (*ret_n = 0; ids && ids[*ret_n]; ++*ret_n)
		list[*ret_n] = csi_topology(DESK_DRIVER, ids[*ret_n], arena);
	return list;
}

void desk_ask_nodes(struct desk_ask *a, const char *const *requisite, const char *const *preferred)
{
	Csi__V1__TopologyRequirement *t = arena_alloc(a->arena, sizeof(*t));

	csi__v1__topology_requirement__init(t);
	t->requisite = make_topologies(a->arena, requisite, &t->n_requisite);
	t->preferred = make_topologies(a->arena, preferred, &t->n_preferred);
	a->create.accessibility_requirements = t;
}

void desk_ask_parameter(struct desk_ask *a, const char *key, const char *value)
{
	Csi__V1__CreateVolumeRequest__ParametersEntry *e = arena_alloc(a->arena, sizeof(*e));

	csi__v1__create_volume_request__parameters_entry__init(e);
	e->key = arena_strdup(a->arena, key);
	e->value = arena_strdup(a->arena, value);
	a->create.parameters[a->create.n_parameters++] = e;
}

void desk_ask_source(struct desk_ask *a, const char *handle)
{
	a->create.volume_content_source = csi_content_source(a->arena, handle, /* is_snapshot= */ false);
}

void desk_ask_restored(struct desk_ask *a, const char *handle)
{
	a->create.volume_content_source = csi_content_source(a->arena, handle, /* is_snapshot= */ true);
}

void desk_create(struct desk *d, struct desk_ask *a)
{
	const struct waiter waiter = desk_waiter(a);

	controller_create_for_claim(d->controller, &waiter, &a->create, &a->created);
}

void desk_delete(struct desk *d, struct desk_ask *a, const char *handle)
{
	const struct waiter waiter = desk_waiter(a);

	a->delete.volume_id = arena_strdup(a->arena, handle);
	controller_delete(d->controller, &waiter, &a->delete);
}

void desk_expand(struct desk *d, struct desk_ask *a, const char *handle, uint64_t required_bytes)
{
	const struct waiter waiter = desk_waiter(a);

	a->range.required_bytes = (int64_t)required_bytes;
	a->expand.volume_id = arena_strdup(a->arena, handle);
	a->expand.capacity_range = &a->range;
	controller_expand(d->controller, &waiter, &a->expand, &a->expanded);
}

void desk_modify(struct desk *d, struct desk_ask *a, const char *handle, const char *key, const char *value)
{
	const struct waiter waiter = desk_waiter(a);
	Csi__V1__ControllerModifyVolumeRequest__MutableParametersEntry *e = arena_alloc(a->arena, sizeof(*e));

	csi__v1__controller_modify_volume_request__mutable_parameters_entry__init(e);
	e->key = arena_strdup(a->arena, key);
	e->value = arena_strdup(a->arena, value);
	a->modify.volume_id = arena_strdup(a->arena, handle);
	a->modify.n_mutable_parameters = 1;
	a->modify.mutable_parameters = arena_alloc(a->arena, sizeof(*a->modify.mutable_parameters));
	a->modify.mutable_parameters[0] = e;
	controller_modify(d->controller, &waiter, &a->modify);
}

void desk_create_snapshot(struct desk *d, struct desk_ask *a, const char *name, const char *source)
{
	const struct waiter waiter = desk_waiter(a);

	csi__v1__create_snapshot_response__init(&a->snapshot_created);
	csi__v1__create_snapshot_request__init(&a->create_snapshot);
	a->create_snapshot.name = arena_strdup(a->arena, name);
	a->create_snapshot.source_volume_id = arena_strdup(a->arena, source);
	controller_create_snapshot(
		d->controller, &waiter, &a->create_snapshot, &a->snapshot_created, /* joint= */ NULL, 0);
}

void desk_delete_snapshot(struct desk *d, struct desk_ask *a, const char *handle)
{
	const struct waiter waiter = desk_waiter(a);

	csi__v1__delete_snapshot_request__init(&a->delete_snapshot);
	a->delete_snapshot.snapshot_id = arena_strdup(a->arena, handle);
	controller_delete_snapshot(d->controller, &waiter, &a->delete_snapshot);
}

struct desk_call *desk_last(struct desk *d, const char *node_id)
{
	struct desk_call *c = &d->calls[d->n_calls - 1];

	ck_assert_uint_gt(d->n_calls, 0);
	ck_assert_msg(!c->answered && str_eq(c->node_id, node_id), "the last call is to %s%s, not to %s",
		c->node_id, c->answered ? ", and answered" : "", node_id);
	return c;
}

void desk_made(struct desk_call *c)
{
	Csi__V1__CreateVolumeResponse reply;
	Csi__V1__Volume volume;
	char id[VOLUME_ID_MAX + 1];

	csi__v1__create_volume_response__init(&reply);
	csi__v1__volume__init(&volume);
	volume_id_mint(c->create_request->name, c->create_request->n_parameters > 1 ? NULL : c->node_id, id);
	volume.volume_id = id;
	volume.capacity_bytes = c->create_request->capacity_range->required_bytes;
	volume.content_source = c->create_request->volume_content_source;
	reply.volume = &volume;
	c->answered = true;
	c->fn(c->user, &reply.base, NULL);
}

void desk_taken(struct desk_call *c, const char *source, int64_t taken_s)
{
	Csi__V1__CreateSnapshotResponse reply;
	Csi__V1__Snapshot snapshot;
	Google__Protobuf__Timestamp taken;
	char id[VOLUME_ID_MAX + 1];

	csi__v1__create_snapshot_response__init(&reply);
	csi__v1__snapshot__init(&snapshot);
	google__protobuf__timestamp__init(&taken);
	volume_id_mint(c->create_snapshot_request->name, c->node_id, id);
	snapshot.snapshot_id = id;
	snapshot.source_volume_id = (char *)(uintptr_t)source;
	snapshot.size_bytes = (int64_t)DESK_GIB;
	snapshot.creation_time = &taken;
	snapshot.ready_to_use = true;
	taken.seconds = taken_s;
	reply.snapshot = &snapshot;
	c->answered = true;
	c->fn(c->user, &reply.base, NULL);
}

void desk_grown(struct desk_call *c, uint64_t size_bytes, bool is_mount)
{
	Csi__V1__ControllerExpandVolumeResponse reply;

	csi__v1__controller_expand_volume_response__init(&reply);
	reply.capacity_bytes = (int64_t)size_bytes;
	reply.node_expansion_required = is_mount;
	c->answered = true;
	c->fn(c->user, &reply.base, NULL);
}

void desk_modified(struct desk_call *c)
{
	Csi__V1__ControllerModifyVolumeResponse reply;

	csi__v1__controller_modify_volume_response__init(&reply);
	c->answered = true;
	c->fn(c->user, &reply.base, NULL);
}

void desk_deleted(struct desk_call *c)
{
	Csi__V1__DeleteVolumeResponse reply;

	csi__v1__delete_volume_response__init(&reply);
	c->answered = true;
	c->fn(c->user, &reply.base, NULL);
}

void desk_failed(struct desk_call *c, enum err_code code, const char *text)
{
	struct error *error = NULL;

	c->answered = true;
	if (err_set(&error, code, "%s", text) < 0)
		c->fn(c->user, NULL, error);
	error_free(error);
}
