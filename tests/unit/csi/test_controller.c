/* SPDX-License-Identifier: Apache-2.0 */
#include "base/mem.h"
#include "csi/controller_request.h"
#include "csi/reply.h"
#include "unit/csi/harness.h"
#include "unit/unit.h"

#define MIB        (1LL << 20)
#define MODE(name) CSI__V1__VOLUME_CAPABILITY__ACCESS_MODE__MODE__##name

static struct error *err;
static struct harness h;

static void open_ready(void)
{
	harness_open(&h, /* start= */ true);
}

static void close_harness(void)
{
	harness_close(&h);
}

/* A request that would succeed, for tests that spoil one thing. */
static Csi__V1__CreateVolumeRequest *good_request(const char *name)
{
	Csi__V1__CreateVolumeRequest *q = arena_alloc(h.arena, sizeof(*q));

	csi__v1__create_volume_request__init(q);
	q->name = arena_strdup(h.arena, name);
	q->capacity_range = arena_alloc(h.arena, sizeof(*q->capacity_range));
	csi__v1__capacity_range__init(q->capacity_range);
	q->capacity_range->required_bytes = 8 * MIB;
	q->n_volume_capabilities = 1;
	q->volume_capabilities = arena_alloc(h.arena, sizeof(*q->volume_capabilities));
	q->volume_capabilities[0] = harness_capability(&h, "ext4", MODE(SINGLE_NODE_WRITER));
	return q;
}

static int create(Csi__V1__CreateVolumeRequest *q)
{
	void *reply;

	return harness_call(&h, "/csi.v1.Controller/CreateVolume", q, &reply, &err);
}

static void add_parameter(Csi__V1__CreateVolumeRequest *q, const char *key, const char *value)
{
	Csi__V1__CreateVolumeRequest__ParametersEntry *e = arena_alloc(h.arena, sizeof(*e));

	csi__v1__create_volume_request__parameters_entry__init(e);
	e->key = arena_strdup(h.arena, key);
	e->value = arena_strdup(h.arena, value);
	q->n_parameters = 1;
	q->parameters = arena_alloc(h.arena, sizeof(*q->parameters));
	q->parameters[0] = e;
}

static Csi__V1__Topology *topology(const char *node)
{
	struct csi other = h.csi;

	other.node_id = node;
	Csi__V1__NodeGetInfoRequest q;
	csi__v1__node_get_info_request__init(&q);
	struct harness as = h;
	void *reply;
	as.csi = other;
	ASSERT_OK(harness_call(&as, "/csi.v1.Node/NodeGetInfo", &q, &reply, &err));
	return ((Csi__V1__NodeGetInfoResponse *)reply)->accessible_topology;
}

START_TEST(a_volume_comes_with_size_context_and_topology)
{
	Csi__V1__Volume *v;

	ASSERT_OK(harness_create(&h, "pvc-1", 5 * MIB, &v, &err));
	ck_assert_int_eq(v->capacity_bytes, 8 * MIB);
	ck_assert_uint_eq(v->n_accessible_topology, 1);
	ck_assert_str_eq(v->accessible_topology[0]->segments[0]->value, NODE_ID);
	bool has_name = false;
	for (size_t i = 0; i < v->n_volume_context; i++) {
		ck_assert_str_ne(v->volume_context[i]->key, "size");
		if (strcmp(v->volume_context[i]->key, "name") == 0)
			has_name = strcmp(v->volume_context[i]->value, "pvc-1") == 0;
	}
	ck_assert(has_name);
}
END_TEST

START_TEST(create_names_what_is_wrong)
{
	Csi__V1__CreateVolumeRequest *q = good_request("");

	ASSERT_FAILS(create(q), ERR_INVALID_ARGUMENT, NODE_ID ": name is missing");
	q = good_request("v");
	q->n_volume_capabilities = 0;
	ASSERT_FAILS(create(q), ERR_INVALID_ARGUMENT, "volume_capabilities is missing");
	q = good_request("v");
	q->volume_capabilities[0]->access_mode = NULL;
	ASSERT_FAILS(create(q), ERR_INVALID_ARGUMENT, "access_mode is missing");
	q = good_request("v");
	q->volume_capabilities[0]->access_type_case = CSI__V1__VOLUME_CAPABILITY__ACCESS_TYPE__NOT_SET;
	ASSERT_FAILS(create(q), ERR_INVALID_ARGUMENT, "access_type is missing");
	q = good_request("v");
	q->volume_capabilities[0] = harness_capability(&h, "ext4", MODE(MULTI_NODE_MULTI_WRITER));
	ASSERT_FAILS(create(q), ERR_INVALID_ARGUMENT, "persistencyModel=cache");
	q = good_request("v");
	q->volume_capabilities[0] = harness_capability(&h, "btrfs", MODE(SINGLE_NODE_WRITER));
	ASSERT_FAILS(create(q), ERR_INVALID_ARGUMENT, "btrfs");
	q = good_request("v");
	q->capacity_range->required_bytes = -1;
	ASSERT_FAILS(create(q), ERR_INVALID_ARGUMENT, "negative");
	q = good_request("v");
	add_parameter(q, "eraseAfter", "true");
	ASSERT_FAILS(create(q), ERR_INVALID_ARGUMENT, "unknown parameter \"eraseAfter\"");
	q = good_request("v");
	add_parameter(q, "eraseafter", "maybe");
	ASSERT_FAILS(create(q), ERR_INVALID_ARGUMENT, "eraseafter");
}
END_TEST

START_TEST(a_block_volume_is_confirmed_as_such_and_others_are_not)
{
	Csi__V1__CreateVolumeRequest *q = good_request("block");
	Csi__V1__ValidateVolumeCapabilitiesRequest v;
	csi__v1__validate_volume_capabilities_request__init(&v);
	Csi__V1__VolumeCapability__BlockVolume block;
	csi__v1__volume_capability__block_volume__init(&block);
	Csi__V1__ValidateVolumeCapabilitiesResponse *answer;
	Csi__V1__CreateVolumeResponse *created;
	void *reply;

	q->volume_capabilities[0]->access_type_case = CSI__V1__VOLUME_CAPABILITY__ACCESS_TYPE_BLOCK;
	q->volume_capabilities[0]->block = &block;
	ASSERT_OK(harness_call(&h, "/csi.v1.Controller/CreateVolume", q, &reply, &err));
	created = reply;
	v.volume_id = created->volume->volume_id;
	v.n_volume_capabilities = 1;
	v.volume_capabilities = q->volume_capabilities;
	ASSERT_OK(harness_call(&h, "/csi.v1.Controller/ValidateVolumeCapabilities", &v, &reply, &err));
	answer = reply;
	ck_assert_ptr_nonnull(answer->confirmed);
	Csi__V1__VolumeCapability *fs[] = {harness_capability(&h, "ext4", MODE(SINGLE_NODE_WRITER))};
	v.volume_capabilities = fs;
	ASSERT_OK(harness_call(&h, "/csi.v1.Controller/ValidateVolumeCapabilities", &v, &reply, &err));
	answer = reply;
	ck_assert_ptr_null(answer->confirmed);
	ck_assert_ptr_nonnull(strstr(answer->message, "block access only"));
	v.volume_capabilities = q->volume_capabilities;
	Csi__V1__Volume *mount;
	ASSERT_OK(harness_create(&h, "mount", 0, &mount, &err));
	v.volume_id = mount->volume_id;
	ASSERT_OK(harness_call(&h, "/csi.v1.Controller/ValidateVolumeCapabilities", &v, &reply, &err));
	answer = reply;
	ck_assert_ptr_null(answer->confirmed);
	ck_assert_ptr_nonnull(strstr(answer->message, "block volume"));
}
END_TEST

START_TEST(a_capability_without_file_system_means_ext4)
{
	Csi__V1__CreateVolumeRequest *q = good_request("v");

	q->volume_capabilities[0] = harness_capability(&h, "", MODE(SINGLE_NODE_WRITER));
	ASSERT_OK(create(q));
	q->volume_capabilities[0] = harness_capability(&h, "xfs", MODE(SINGLE_NODE_WRITER));
	ASSERT_FAILS(create(q), ERR_EXISTS, "other parameters");
}
END_TEST

static int check_create_with(const char *fs_type, char *flag, bool copy)
{
	CLEANUP(capability_set_done) struct capability_set set = {0};
	Csi__V1__CreateVolumeRequest *q = good_request("v");

	q->volume_capabilities[0] = harness_capability(&h, fs_type, MODE(SINGLE_NODE_WRITER));
	q->volume_capabilities[0]->mount->n_mount_flags = 1;
	q->volume_capabilities[0]->mount->mount_flags = &flag;
	if (copy)
		q->volume_content_source = csi_content_source(h.arena, "pm-11111111-source", false);
	return csi_check_create(q, &set, &err);
}

START_TEST(mount_flags_of_a_copy_without_file_system_may_be_those_of_any)
{
	ASSERT_OK(check_create_with("xfs", (char[]){"inode64"}, false));
	ASSERT_OK(check_create_with("", (char[]){"commit=5"}, false));
	ASSERT_FAILS(check_create_with("", (char[]){"inode64"}, false), ERR_INVALID_ARGUMENT,
		"mount flag \"inode64\" is not allowed for ext4");
	ASSERT_OK(check_create_with("", (char[]){"inode64"}, true));
	ASSERT_OK(check_create_with("", (char[]){"commit=5"}, true));
	ASSERT_FAILS(check_create_with("", (char[]){"logdev"}, true), ERR_INVALID_ARGUMENT,
		"mount flag \"logdev\" is not allowed for a file system of this driver");
	ASSERT_FAILS(check_create_with("ext4", (char[]){"inode64"}, true), ERR_INVALID_ARGUMENT,
		"mount flag \"inode64\" is not allowed for ext4");
}
END_TEST

START_TEST(validation_checks_mount_flags_for_the_file_system_of_the_volume)
{
	Csi__V1__ValidateVolumeCapabilitiesRequest q;
	csi__v1__validate_volume_capabilities_request__init(&q);
	Csi__V1__CreateVolumeRequest *create_xfs = good_request("v");
	Csi__V1__VolumeCapability *list[] = {harness_capability(&h, "", MODE(SINGLE_NODE_WRITER))};
	char *flag = (char[]){"inode64"};
	void *reply;

	create_xfs->volume_capabilities[0] = harness_capability(&h, "xfs", MODE(SINGLE_NODE_WRITER));
	ASSERT_OK(harness_call(&h, "/csi.v1.Controller/CreateVolume", create_xfs, &reply, &err));
	q.volume_id = ((Csi__V1__CreateVolumeResponse *)reply)->volume->volume_id;
	q.n_volume_capabilities = 1;
	q.volume_capabilities = list;
	list[0]->mount->n_mount_flags = 1;
	list[0]->mount->mount_flags = &flag;
	ASSERT_OK(harness_call(&h, "/csi.v1.Controller/ValidateVolumeCapabilities", &q, &reply, &err));
	ck_assert_ptr_nonnull(((Csi__V1__ValidateVolumeCapabilitiesResponse *)reply)->confirmed);
	flag = (char[]){"commit=5"};
	ASSERT_OK(harness_call(&h, "/csi.v1.Controller/ValidateVolumeCapabilities", &q, &reply, &err));
	ck_assert_str_eq(((Csi__V1__ValidateVolumeCapabilitiesResponse *)reply)->message,
		"mount flag \"commit=...\" is not allowed for xfs");
}
END_TEST

START_TEST(a_content_source_that_names_nothing_is_refused_rather_than_ignored)
{
	Csi__V1__CreateVolumeRequest *q = good_request("clone");
	Csi__V1__VolumeContentSource source;
	Csi__V1__VolumeContentSource__SnapshotSource snapshot;
	Csi__V1__VolumeContentSource__VolumeSource volume;
	csi__v1__volume_content_source__init(&source);
	csi__v1__volume_content_source__snapshot_source__init(&snapshot);
	csi__v1__volume_content_source__volume_source__init(&volume);

	q->volume_content_source = &source;
	ASSERT_FAILS(create(q), ERR_INVALID_ARGUMENT,
		"volume_content_source names neither a volume nor a snapshot");
	source.type_case = CSI__V1__VOLUME_CONTENT_SOURCE__TYPE_SNAPSHOT;
	source.snapshot = &snapshot;
	ASSERT_FAILS(create(q), ERR_INVALID_ARGUMENT, "snapshot_id is missing");
	source.type_case = CSI__V1__VOLUME_CONTENT_SOURCE__TYPE_VOLUME;
	source.volume = &volume;
	ASSERT_FAILS(create(q), ERR_INVALID_ARGUMENT, "volume_id is missing");
}
END_TEST

START_TEST(the_source_of_a_copy_is_read_from_the_request)
{
	Csi__V1__CreateVolumeRequest *q = good_request("clone");
	struct csi_source source = {.handle = ""};

	ASSERT_OK(csi_read_source(q, &source, &err));
	ck_assert_ptr_null(source.handle);
	for (int is_snapshot = 0; is_snapshot < 2; is_snapshot++) {
		q->volume_content_source = csi_content_source(h.arena, "pm-11111111-source", is_snapshot);
		ASSERT_OK(csi_read_source(q, &source, &err));
		ck_assert_str_eq(source.handle, "pm-11111111-source");
		ck_assert_int_eq(source.is_snapshot, is_snapshot);
	}
}
END_TEST

START_TEST(a_volume_for_another_node_is_exhausted_here)
{
	Csi__V1__CreateVolumeRequest *q = good_request("v");
	Csi__V1__TopologyRequirement r;
	csi__v1__topology_requirement__init(&r);
	Csi__V1__Topology *there = topology("node-2");
	Csi__V1__Topology *both[] = {there, topology(NODE_ID)};

	r.n_requisite = 1;
	r.requisite = &there;
	q->accessibility_requirements = &r;
	ASSERT_FAILS(create(q), ERR_EXHAUSTED, "accessibility_requirements");
	r.n_requisite = 2;
	r.requisite = both;
	ASSERT_OK(create(q));
}
END_TEST

START_TEST(pages_of_the_list_join_without_gap_or_repeat)
{
	Csi__V1__ListVolumesRequest q;
	csi__v1__list_volumes_request__init(&q);
	char last[64] = "";
	size_t seen = 0;
	Csi__V1__Volume *v;
	void *reply;

	for (char c = 'a'; c <= 'e'; c++)
		ASSERT_OK(harness_create(&h, (char[]){c, '\0'}, 4 * MIB, &v, &err));
	q.max_entries = 2;
	do {
		ASSERT_OK(harness_call(&h, "/csi.v1.Controller/ListVolumes", &q, &reply, &err));
		Csi__V1__ListVolumesResponse *r = reply;
		ck_assert_uint_le(r->n_entries, 2);
		for (size_t i = 0; i < r->n_entries; i++) {
			ck_assert_str_gt(r->entries[i]->volume->volume_id, last);
			snprintf(last, sizeof(last), "%s", r->entries[i]->volume->volume_id);
			seen++;
		}
		q.starting_token = r->next_token;
	} while (*q.starting_token);
	ck_assert_uint_eq(seen, 5);
}
END_TEST

START_TEST(a_token_that_is_none_of_ours_aborts)
{
	Csi__V1__ListVolumesRequest q;
	csi__v1__list_volumes_request__init(&q);
	char token[] = "invalid-token";
	void *reply;

	q.starting_token = token;
	ASSERT_FAILS(
		harness_call(&h, "/csi.v1.Controller/ListVolumes", &q, &reply, &err), ERR_ABORTED, token);
	q.starting_token = (char *)(uintptr_t)"";
	q.max_entries = -1;
	ASSERT_FAILS(harness_call(&h, "/csi.v1.Controller/ListVolumes", &q, &reply, &err),
		ERR_INVALID_ARGUMENT, "max_entries");
}
END_TEST

START_TEST(capacity_falls_and_rises_with_volumes)
{
	Csi__V1__GetCapacityRequest q;
	csi__v1__get_capacity_request__init(&q);
	Csi__V1__DeleteVolumeRequest dq;
	csi__v1__delete_volume_request__init(&dq);
	Csi__V1__Volume *v;
	void *reply;

	ASSERT_OK(harness_call(&h, "/csi.v1.Controller/GetCapacity", &q, &reply, &err));
	ck_assert_int_eq(((Csi__V1__GetCapacityResponse *)reply)->available_capacity, 2048 * MIB);
	ck_assert_int_eq(((Csi__V1__GetCapacityResponse *)reply)->maximum_volume_size->value, 1024 * MIB);
	ASSERT_OK(harness_create(&h, "max", 1024 * MIB, &v, &err));
	ASSERT_OK(harness_call(&h, "/csi.v1.Controller/GetCapacity", &q, &reply, &err));
	ck_assert_int_eq(((Csi__V1__GetCapacityResponse *)reply)->available_capacity, 1024 * MIB);
	dq.volume_id = v->volume_id;
	ASSERT_OK(harness_call(&h, "/csi.v1.Controller/DeleteVolume", &dq, &reply, &err));
	ASSERT_OK(harness_call(&h, "/csi.v1.Controller/GetCapacity", &q, &reply, &err));
	ck_assert_int_eq(((Csi__V1__GetCapacityResponse *)reply)->available_capacity, 2048 * MIB);
}
END_TEST

static Csi__V1__Topology *zone(void)
{
	Csi__V1__Topology *t = topology(NODE_ID);

	t->segments[0]->key = arena_strdup(h.arena, "topology.kubernetes.io/zone");
	return t;
}

START_TEST(a_topology_key_of_others_is_refused)
{
	Csi__V1__CreateVolumeRequest *q = good_request("v");
	Csi__V1__TopologyRequirement r;
	csi__v1__topology_requirement__init(&r);
	Csi__V1__GetCapacityRequest capacity;
	csi__v1__get_capacity_request__init(&capacity);
	Csi__V1__Topology *both[] = {topology(NODE_ID), zone()};
	void *reply;

	r.n_requisite = r.n_preferred = 1;
	r.requisite = r.preferred = both;
	q->accessibility_requirements = &r;
	ASSERT_OK(create(q));
	r.n_preferred = 2;
	ASSERT_FAILS(create(q), ERR_INVALID_ARGUMENT, "topology key \"topology.kubernetes.io/zone\"");
	r.n_preferred = 1;
	r.n_requisite = 2;
	ASSERT_FAILS(create(q), ERR_INVALID_ARGUMENT, "with the key \"pmem-csi.example/node\"");
	capacity.accessible_topology = both[1];
	ASSERT_FAILS(harness_call(&h, "/csi.v1.Controller/GetCapacity", &capacity, &reply, &err),
		ERR_INVALID_ARGUMENT, "topology.kubernetes.io/zone");
}
END_TEST

START_TEST(capacity_of_another_topology_is_nothing)
{
	Csi__V1__GetCapacityRequest q;
	csi__v1__get_capacity_request__init(&q);
	void *reply;

	q.accessible_topology = topology("node-2");
	ASSERT_OK(harness_call(&h, "/csi.v1.Controller/GetCapacity", &q, &reply, &err));
	ck_assert_int_eq(((Csi__V1__GetCapacityResponse *)reply)->available_capacity, 0);
}
END_TEST

START_TEST(capacity_for_what_can_never_be_created_is_nothing)
{
	Csi__V1__GetCapacityRequest q;
	csi__v1__get_capacity_request__init(&q);
	Csi__V1__VolumeCapability *list[] = {harness_capability(&h, "xfs", MODE(SINGLE_NODE_WRITER))};
	void *reply;

	q.n_volume_capabilities = 1;
	q.volume_capabilities = list;
	ASSERT_OK(harness_call(&h, "/csi.v1.Controller/GetCapacity", &q, &reply, &err));
	ck_assert_int_eq(((Csi__V1__GetCapacityResponse *)reply)->available_capacity, 2048 * MIB);
	list[0] = harness_capability(&h, "xfs", MODE(MULTI_NODE_MULTI_WRITER));
	ASSERT_OK(harness_call(&h, "/csi.v1.Controller/GetCapacity", &q, &reply, &err));
	ck_assert_int_eq(((Csi__V1__GetCapacityResponse *)reply)->available_capacity, 0);
	ck_assert_int_eq(((Csi__V1__GetCapacityResponse *)reply)->maximum_volume_size->value, 0);
	Csi__V1__GetCapacityRequest__ParametersEntry model;
	csi__v1__get_capacity_request__parameters_entry__init(&model);
	Csi__V1__GetCapacityRequest__ParametersEntry *parameters[] = {&model};
	model.key = (char[]){"persistencyModel"};
	model.value = (char[]){"cache"};
	q.n_parameters = 1;
	q.parameters = parameters;
	ASSERT_OK(harness_call(&h, "/csi.v1.Controller/GetCapacity", &q, &reply, &err));
	ck_assert_int_eq(((Csi__V1__GetCapacityResponse *)reply)->available_capacity, 2048 * MIB);
}
END_TEST

/* external-provisioner, pkg/capacity/capacity.go: an empty mount, access mode UNKNOWN, and the StorageClass'
 * parameters as they are. */
START_TEST(capacity_is_returned_as_external_provisioner_asks_for_it)
{
	Csi__V1__GetCapacityRequest q;
	csi__v1__get_capacity_request__init(&q);
	Csi__V1__VolumeCapability *list[] = {harness_capability(&h, "", MODE(UNKNOWN))};
	Csi__V1__GetCapacityRequest__ParametersEntry fs_type;
	csi__v1__get_capacity_request__parameters_entry__init(&fs_type);
	Csi__V1__GetCapacityRequest__ParametersEntry *parameters[] = {&fs_type};
	void *reply;

	fs_type.key = (char[]){"csi.storage.k8s.io/fstype"};
	fs_type.value = (char[]){"xfs"};
	q.n_volume_capabilities = 1;
	q.volume_capabilities = list;
	q.n_parameters = 1;
	q.parameters = parameters;
	ASSERT_OK(harness_call(&h, "/csi.v1.Controller/GetCapacity", &q, &reply, &err));
	ck_assert_int_eq(((Csi__V1__GetCapacityResponse *)reply)->available_capacity, 2048 * MIB);
}
END_TEST

static const struct device_ops *plain_ops;

/* Lists devices with an overhead, as in direct mode, where namespaces for atomic sectors need some of the
 * space for themselves. */
static int list_with_overhead(void *self, struct device_list **ret, struct error **why)
{
	if (plain_ops->list(self, ret, why) < 0)
		return -1;
	for (size_t i = 0; i < (*ret)->n_pools; i++)
		(*ret)->pools[i].capacity.max_sector_volume_bytes -= 24 * MIB;
	return 0;
}

START_TEST(largest_volume_is_that_of_the_usage)
{
	static const struct {
		const char *usage;
		int64_t max_bytes;
	} cases[] = {{"AppDirect", 1024 * MIB}, {"FileIO", 1000 * MIB}};
	Csi__V1__GetCapacityRequest q;
	csi__v1__get_capacity_request__init(&q);
	Csi__V1__GetCapacityRequest__ParametersEntry usage;
	csi__v1__get_capacity_request__parameters_entry__init(&usage);
	Csi__V1__GetCapacityRequest__ParametersEntry *parameters[] = {&usage};
	void *reply;

	plain_ops = h.devices->ops;
	struct device_ops ops = *plain_ops;
	ops.list = list_with_overhead;
	h.devices->ops = &ops;
	ASSERT_OK(volumes_refresh(h.csi.volumes, &err));
	usage.key = (char[]){"usage"};
	q.n_parameters = 1;
	q.parameters = parameters;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		CLEANUP(free_charp) char *value = x_strdup(cases[i].usage);
		usage.value = value;
		ASSERT_OK(harness_call(&h, "/csi.v1.Controller/GetCapacity", &q, &reply, &err));
		const Csi__V1__GetCapacityResponse *capacity = reply;
		ck_assert_int_eq(capacity->available_capacity, 2048 * MIB);
		ck_assert_int_eq(capacity->maximum_volume_size->value, cases[i].max_bytes);
	}
	h.devices->ops = plain_ops;
}
END_TEST

START_TEST(before_the_first_listing_no_volume_is_said_to_be_absent)
{
	Csi__V1__ListVolumesRequest list;
	csi__v1__list_volumes_request__init(&list);
	Csi__V1__GetCapacityRequest capacity;
	csi__v1__get_capacity_request__init(&capacity);
	Csi__V1__ValidateVolumeCapabilitiesRequest validate;
	csi__v1__validate_volume_capabilities_request__init(&validate);
	Csi__V1__VolumeCapability *capabilities[1];
	char id[] = "pvc-1";
	void *reply;

	close_harness();
	harness_open(&h, /* start= */ false);
	capabilities[0] = harness_capability(&h, "ext4", MODE(SINGLE_NODE_WRITER));
	validate.volume_id = id;
	validate.n_volume_capabilities = 1;
	validate.volume_capabilities = capabilities;
	ASSERT_FAILS(harness_call(&h, "/csi.v1.Controller/ListVolumes", &list, &reply, &err), ERR_UNAVAILABLE,
		"starting");
	ASSERT_FAILS(harness_call(&h, "/csi.v1.Controller/GetCapacity", &capacity, &reply, &err),
		ERR_UNAVAILABLE, "starting");
	ASSERT_FAILS(
		harness_call(&h, "/csi.v1.Controller/ValidateVolumeCapabilities", &validate, &reply, &err),
		ERR_UNAVAILABLE, "starting");
}
END_TEST

START_TEST(validation_confirms_refuses_and_does_not_know)
{
	Csi__V1__ValidateVolumeCapabilitiesRequest q;
	csi__v1__validate_volume_capabilities_request__init(&q);
	const char path[] = "/csi.v1.Controller/ValidateVolumeCapabilities";
	Csi__V1__VolumeCapability *list[] = {harness_capability(&h, "ext4", MODE(SINGLE_NODE_WRITER))};
	Csi__V1__Volume *v;
	void *reply;

	ASSERT_FAILS(harness_call(&h, path, &q, &reply, &err), ERR_INVALID_ARGUMENT, "volume_id");
	ASSERT_OK(harness_create(&h, "v", 4 * MIB, &v, &err));
	q.volume_id = v->volume_id;
	ASSERT_FAILS(harness_call(&h, path, &q, &reply, &err), ERR_INVALID_ARGUMENT, "volume_capabilities");
	q.n_volume_capabilities = 1;
	q.volume_capabilities = list;
	ASSERT_OK(harness_call(&h, path, &q, &reply, &err));
	ck_assert_ptr_nonnull(((Csi__V1__ValidateVolumeCapabilitiesResponse *)reply)->confirmed);
	list[0] = harness_capability(&h, "ext4", MODE(MULTI_NODE_READER_ONLY));
	ASSERT_OK(harness_call(&h, path, &q, &reply, &err));
	ck_assert_ptr_null(((Csi__V1__ValidateVolumeCapabilitiesResponse *)reply)->confirmed);
	ck_assert_str_ne(((Csi__V1__ValidateVolumeCapabilitiesResponse *)reply)->message, "");
	q.volume_id = (char *)(uintptr_t)"unknown";
	ASSERT_FAILS(harness_call(&h, path, &q, &reply, &err), ERR_NOT_FOUND, "unknown");
}
END_TEST

START_TEST(a_capability_without_required_fields_is_an_error_even_where_a_refusal_is_none)
{
	Csi__V1__ValidateVolumeCapabilitiesRequest validate;
	csi__v1__validate_volume_capabilities_request__init(&validate);
	Csi__V1__GetCapacityRequest capacity;
	csi__v1__get_capacity_request__init(&capacity);
	Csi__V1__VolumeCapability *list[] = {harness_capability(&h, "ext4", MODE(UNKNOWN))};
	Csi__V1__Volume *v;
	void *reply;

	ASSERT_OK(harness_create(&h, "v", 4 * MIB, &v, &err));
	validate.volume_id = v->volume_id;
	validate.n_volume_capabilities = capacity.n_volume_capabilities = 1;
	validate.volume_capabilities = capacity.volume_capabilities = list;
	ASSERT_FAILS(
		harness_call(&h, "/csi.v1.Controller/ValidateVolumeCapabilities", &validate, &reply, &err),
		ERR_INVALID_ARGUMENT, "access_mode is missing");
	list[0] = harness_capability(&h, "ext4", MODE(SINGLE_NODE_WRITER));
	list[0]->access_type_case = CSI__V1__VOLUME_CAPABILITY__ACCESS_TYPE__NOT_SET;
	ASSERT_FAILS(harness_call(&h, "/csi.v1.Controller/GetCapacity", &capacity, &reply, &err),
		ERR_INVALID_ARGUMENT, "access_type is missing");
}
END_TEST

static int modify(const char *id, const char *key, const char *value)
{
	Csi__V1__ControllerModifyVolumeRequest q;
	csi__v1__controller_modify_volume_request__init(&q);
	Csi__V1__ControllerModifyVolumeRequest__MutableParametersEntry e;
	csi__v1__controller_modify_volume_request__mutable_parameters_entry__init(&e);
	Csi__V1__ControllerModifyVolumeRequest__MutableParametersEntry *list[] = {&e};
	void *reply;

	e.key = arena_strdup(h.arena, key);
	e.value = arena_strdup(h.arena, value);
	q.volume_id = arena_strdup(h.arena, id);
	q.n_mutable_parameters = *key ? 1 : 0;
	q.mutable_parameters = list;
	return harness_call(&h, "/csi.v1.Controller/ControllerModifyVolume", &q, &reply, &err);
}

static const char *context_of(const Csi__V1__Volume *v, const char *key)
{
	for (size_t i = 0; i < v->n_volume_context; i++) {
		if (strcmp(v->volume_context[i]->key, key) == 0)
			return v->volume_context[i]->value;
	}
	return "";
}

START_TEST(a_volume_is_modified)
{
	Csi__V1__Volume *v;

	ASSERT_OK(harness_create(&h, "v", 4 * MIB, &v, &err));
	ck_assert_str_eq(context_of(v, "usage"), "");
	ASSERT_OK(modify(v->volume_id, "usage", "FileIO"));
	ASSERT_OK(modify(v->volume_id, "usage", "FileIO"));
	ASSERT_OK(modify(v->volume_id, "", ""));
	ASSERT_OK(harness_create(&h, "v", 4 * MIB, &v, &err));
	ck_assert_str_eq(context_of(v, "usage"), "FileIO");
	ASSERT_FAILS(modify(v->volume_id, "usage", "x"), ERR_INVALID_ARGUMENT, "\"usage\": \"x\"");
	ASSERT_FAILS(modify("", "usage", "FileIO"), ERR_INVALID_ARGUMENT, "volume_id is missing");
	ASSERT_FAILS(modify("unknown", "usage", "FileIO"), ERR_NOT_FOUND, "unknown");
	/* the value is wrong whether there is a volume or not */
	ASSERT_FAILS(modify("unknown", "foo", "bar"), ERR_INVALID_ARGUMENT, "\"foo\"");
}
END_TEST

/* Adds a mutable parameter, as external-provisioner does for a VolumeAttributesClass. */
static void add_mutable(Csi__V1__CreateVolumeRequest *q, const char *key, const char *value)
{
	Csi__V1__CreateVolumeRequest__MutableParametersEntry *e = arena_alloc(h.arena, sizeof(*e));

	csi__v1__create_volume_request__mutable_parameters_entry__init(e);
	e->key = arena_strdup(h.arena, key);
	e->value = arena_strdup(h.arena, value);
	q->n_mutable_parameters = 1;
	q->mutable_parameters = arena_alloc(h.arena, sizeof(*q->mutable_parameters));
	q->mutable_parameters[0] = e;
}

START_TEST(mutable_parameters_override_those_of_the_class)
{
	Csi__V1__CreateVolumeRequest *q = good_request("v");
	void *reply;

	add_parameter(q, "usage", "AppDirect");
	add_mutable(q, "usage", "FileIO");
	ASSERT_OK(harness_call(&h, "/csi.v1.Controller/CreateVolume", q, &reply, &err));
	const Csi__V1__CreateVolumeResponse *created = reply;
	ck_assert_str_eq(context_of(created->volume, "usage"), "FileIO");
	q = good_request("w");
	add_mutable(q, "maxPause", "1s");
	ASSERT_FAILS(create(q), ERR_INVALID_ARGUMENT, "\"maxPause\" cannot be changed");
	add_mutable(q, "foo", "bar");
	ASSERT_FAILS(create(q), ERR_INVALID_ARGUMENT, "mutable_parameters: unknown parameter \"foo\"");
}
END_TEST

START_TEST(validation_looks_at_mutable_parameters)
{
	Csi__V1__ValidateVolumeCapabilitiesRequest q;
	csi__v1__validate_volume_capabilities_request__init(&q);
	Csi__V1__ValidateVolumeCapabilitiesRequest__MutableParametersEntry e;
	csi__v1__validate_volume_capabilities_request__mutable_parameters_entry__init(&e);
	Csi__V1__ValidateVolumeCapabilitiesRequest__MutableParametersEntry *entries[] = {&e};
	Csi__V1__VolumeCapability *list[] = {harness_capability(&h, "ext4", MODE(SINGLE_NODE_WRITER))};
	Csi__V1__Volume *v;
	void *reply;

	ASSERT_OK(harness_create(&h, "v", 4 * MIB, &v, &err));
	q.volume_id = v->volume_id;
	q.n_volume_capabilities = 1;
	q.volume_capabilities = list;
	q.n_mutable_parameters = 1;
	q.mutable_parameters = entries;
	e.key = (char *)(uintptr_t)"cacheSize";
	e.value = (char *)(uintptr_t)"2";
	ASSERT_OK(harness_call(&h, "/csi.v1.Controller/ValidateVolumeCapabilities", &q, &reply, &err));
	const Csi__V1__ValidateVolumeCapabilitiesResponse *answer = reply;
	ck_assert_ptr_null(answer->confirmed);
	ck_assert_ptr_nonnull(strstr(answer->message, "cacheSize"));
}
END_TEST

START_TEST(a_group_for_mounts_is_refused_rather_than_ignored)
{
	Csi__V1__CreateVolumeRequest *q = good_request("v");
	char group[] = "1000";

	q->volume_capabilities[0]->mount->volume_mount_group = group;
	ASSERT_FAILS(create(q), ERR_INVALID_ARGUMENT, "volume_mount_group");
}
END_TEST

START_TEST(a_handle_in_no_form_of_ours_is_deleted_already)
{
	Csi__V1__DeleteVolumeRequest q;
	csi__v1__delete_volume_request__init(&q);
	char handle[] = "../../etc/passwd";
	void *reply;

	ASSERT_FAILS(harness_call(&h, "/csi.v1.Controller/DeleteVolume", &q, &reply, &err),
		ERR_INVALID_ARGUMENT, "volume_id");
	q.volume_id = handle;
	ASSERT_OK(harness_call(&h, "/csi.v1.Controller/DeleteVolume", &q, &reply, &err));
}
END_TEST

int main(void)
{
	static const TTest *const *tests[] = {&a_volume_comes_with_size_context_and_topology,
		&create_names_what_is_wrong, &a_block_volume_is_confirmed_as_such_and_others_are_not,
		&capacity_is_returned_as_external_provisioner_asks_for_it,
		&largest_volume_is_that_of_the_usage, &a_capability_without_file_system_means_ext4,
		&mount_flags_of_a_copy_without_file_system_may_be_those_of_any,
		&validation_checks_mount_flags_for_the_file_system_of_the_volume,
		&a_content_source_that_names_nothing_is_refused_rather_than_ignored,
		&the_source_of_a_copy_is_read_from_the_request, &a_volume_for_another_node_is_exhausted_here,
		&pages_of_the_list_join_without_gap_or_repeat, &a_token_that_is_none_of_ours_aborts,
		&capacity_falls_and_rises_with_volumes, &capacity_of_another_topology_is_nothing,
		&a_topology_key_of_others_is_refused, &capacity_for_what_can_never_be_created_is_nothing,
		&before_the_first_listing_no_volume_is_said_to_be_absent,
		&validation_confirms_refuses_and_does_not_know,
		&a_capability_without_required_fields_is_an_error_even_where_a_refusal_is_none,
		&a_group_for_mounts_is_refused_rather_than_ignored,
		&a_handle_in_no_form_of_ours_is_deleted_already, &a_volume_is_modified,
		&mutable_parameters_override_those_of_the_class, &validation_looks_at_mutable_parameters};
	Suite *suite = suite_create("csi/controller");
	TCase *tcase = tcase_create("controller");

	tcase_add_checked_fixture(tcase, open_ready, close_harness);
	for (size_t i = 0; i < ARRAY_SIZE(tests); i++)
		tcase_add_test(tcase, *tests[i]);
	suite_add_tcase(suite, tcase);
	return unit_runner_finish(srunner_create(suite));
}
