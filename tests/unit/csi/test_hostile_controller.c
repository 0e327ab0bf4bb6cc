/* SPDX-License-Identifier: Apache-2.0 */
/* Every mutation of every request of the services Identity and Controller, over in-memory devices. */
#include "registry.pb-c.h"

#include "base/mem.h"
#include "base/str.h"
#include "csi/convert.h"
#include "csi/node_volumes_service.h"
#include "os/file.h"
#include "unit/csi/harness.h"
#include "unit/csi/hostile.h"
#include "unit/unit.h"

#define MIB       (1LL << 20)
#define FILE_MAX  65536
#define LOOK_MAX  (1u << 20)
#define TIMEOUT_S 120

static struct harness h;
static char *victim; /* ID */

static void add_files(struct buf *out)
{
	CLEANUP(free_charp) char *path = x_asprintf("%s/state", h.dir);
	CLEANUP(fd_closep) int dir_fd = -1;
	CLEANUP(strv_freep) char **names = NULL;
	struct error *err = NULL;

	ASSERT_OK(dir_open(path, /* create= */ false, 0, &dir_fd, &err));
	ASSERT_OK(dir_list(dir_fd, &names, &err));
	for (size_t i = 0; names[i]; i++) {
		CLEANUP(buf_done) struct buf text = BUF_INIT(FILE_MAX);

		ASSERT_OK(file_read(dir_fd, names[i], &text, &err));
		buf_addf(out, "%s: %s\n", names[i], buf_str(&text));
	}
}

static char *look(void)
{
	CLEANUP(buf_done) struct buf out = BUF_INIT(LOOK_MAX);
	CLEANUP(device_list_freep) struct device_list *list = NULL;
	struct error *err = NULL;

	add_files(&out);
	ASSERT_OK(device_list_read(h.devices, &list, &err));
	for (size_t i = 0; i < list->n_devices; i++)
		buf_addf(&out, "device %s %llu\n", list->devices[i].id,
			(unsigned long long)list->devices[i].size_bytes);
	for (size_t i = 0; i < list->n_pools; i++)
		buf_addf(&out, "pool %s %llu\n", list->pools[i].name,
			(unsigned long long)list->pools[i].capacity.available_bytes);
	ck_assert(!out.overflowed);
	return x_strdup(buf_str(&out));
}

static char *create(const char *name)
{
	Csi__V1__Volume *v;
	struct error *err = NULL;

	ASSERT_OK(harness_create(&h, name, 8 * MIB, &v, &err));
	return x_strdup(v->volume_id);
}

static void set_up(void)
{
	harness_open(&h, /* start= */ true);
	free(create("another"));
	victim = create("victim");
}

static void tear_down(void)
{
	free(victim);
	harness_close(&h);
}

static void run(struct grpc_service service, struct hostile_rpc rpc)
{
	rpc.service = &service;
	rpc.look = look;
	hostile_run(&rpc);
}

static Csi__V1__VolumeCapability **capabilities(void)
{
	Csi__V1__VolumeCapability **list = arena_alloc(h.arena, sizeof(*list));
	Csi__V1__VolumeCapability *c = harness_capability(
		&h, "ext4", CSI__V1__VOLUME_CAPABILITY__ACCESS_MODE__MODE__SINGLE_NODE_WRITER);

	c->mount->n_mount_flags = 1;
	c->mount->mount_flags = arena_alloc(h.arena, sizeof(*c->mount->mount_flags));
	c->mount->mount_flags[0] = arena_strdup(h.arena, "noatime");
	*list = c;
	return list;
}

static void undo_create(const void *reply)
{
	const Csi__V1__CreateVolumeResponse *r = reply;
	struct error *err = NULL;

	ASSERT_OK(volumes_delete(h.csi.volumes, r->volume->volume_id, &err));
}

START_TEST(create_volume)
{
	Csi__V1__CreateVolumeRequest q;
	csi__v1__create_volume_request__init(&q);
	Csi__V1__CapacityRange range;
	csi__v1__capacity_range__init(&range);
	Csi__V1__CreateVolumeRequest__ParametersEntry parameter;
	csi__v1__create_volume_request__parameters_entry__init(&parameter);
	Csi__V1__CreateVolumeRequest__ParametersEntry *parameters[] = {&parameter};
	Csi__V1__TopologyRequirement accessibility;
	csi__v1__topology_requirement__init(&accessibility);
	Csi__V1__Topology *topology = csi_topology(h.csi.driver_name, h.csi.node_id, h.arena);
	char name[] = "pvc-hostile", key[] = "eraseafter", value[] = "true";

	q.name = name;
	range.required_bytes = 8 * MIB;
	range.limit_bytes = 64 * MIB;
	q.capacity_range = &range;
	q.n_volume_capabilities = 1;
	q.volume_capabilities = capabilities();
	parameter.key = key;
	parameter.value = value;
	q.n_parameters = 1;
	q.parameters = parameters;
	HOSTILE_SECRETS(&q, Csi__V1__CreateVolumeRequest__SecretsEntry,
		csi__v1__create_volume_request__secrets_entry__init);
	accessibility.n_requisite = accessibility.n_preferred = 1;
	accessibility.requisite = accessibility.preferred = &topology;
	q.accessibility_requirements = &accessibility;
	run(csi_controller_service(&h.csi), (struct hostile_rpc){.path = "/csi.v1.Controller/CreateVolume",
						    .valid = &q.base,
						    .bytes = true,
						    .undo = undo_create,
						    .min = 5000});
}
END_TEST

/* The victim comes back with another identity. */
static char *look_without_identities(void)
{
	char *text = look();

	for (char *at = text; (at = strstr(at, "identity"));) {
		char *end = strchr(at, '\n');

		memmove(at, end, strlen(end) + 1);
	}
	return text;
}

static void undo_delete(const void *reply)
{
	(void)reply;
	free(create("victim"));
}

START_TEST(delete_volume)
{
	struct grpc_service service = csi_controller_service(&h.csi);
	Csi__V1__DeleteVolumeRequest q;
	csi__v1__delete_volume_request__init(&q);

	q.volume_id = victim;
	HOSTILE_SECRETS(&q, Csi__V1__DeleteVolumeRequest__SecretsEntry,
		csi__v1__delete_volume_request__secrets_entry__init);
	const struct hostile_rpc rpc = {.service = &service,
		.path = "/csi.v1.Controller/DeleteVolume",
		.valid = &q.base,
		.bytes = true,
		.look = look_without_identities,
		.undo = undo_delete,
		.min = 1000};
	hostile_run(&rpc);
}
END_TEST

static void undo_expand(const void *reply)
{
	struct error *err = NULL;

	ASSERT_OK(volumes_delete(h.csi.volumes, victim, &err));
	undo_delete(reply);
}

START_TEST(expand_volume)
{
	struct grpc_service service = csi_controller_service(&h.csi);
	Csi__V1__ControllerExpandVolumeRequest q;
	csi__v1__controller_expand_volume_request__init(&q);
	Csi__V1__CapacityRange range;
	csi__v1__capacity_range__init(&range);

	q.volume_id = victim;
	range.required_bytes = 16 * MIB;
	range.limit_bytes = 64 * MIB;
	q.capacity_range = &range;
	q.volume_capability = capabilities()[0];
	HOSTILE_SECRETS(&q, Csi__V1__ControllerExpandVolumeRequest__SecretsEntry,
		csi__v1__controller_expand_volume_request__secrets_entry__init);
	const struct hostile_rpc rpc = {.service = &service,
		.path = "/csi.v1.Controller/ControllerExpandVolume",
		.valid = &q.base,
		.bytes = true,
		.look = look_without_identities,
		.undo = undo_expand,
		.min = 1000};
	hostile_run(&rpc);
}
END_TEST

START_TEST(modify_volume)
{
	struct grpc_service service = csi_controller_service(&h.csi);
	Csi__V1__ControllerModifyVolumeRequest q;
	csi__v1__controller_modify_volume_request__init(&q);
	Csi__V1__ControllerModifyVolumeRequest__MutableParametersEntry entry;
	csi__v1__controller_modify_volume_request__mutable_parameters_entry__init(&entry);
	Csi__V1__ControllerModifyVolumeRequest__MutableParametersEntry *entries[] = {&entry};

	q.volume_id = victim;
	entry.key = (char *)(uintptr_t)"eraseBandwidth";
	entry.value = (char *)(uintptr_t)"2Mi";
	q.n_mutable_parameters = 1;
	q.mutable_parameters = entries;
	HOSTILE_SECRETS(&q, Csi__V1__ControllerModifyVolumeRequest__SecretsEntry,
		csi__v1__controller_modify_volume_request__secrets_entry__init);
	const struct hostile_rpc rpc = {.service = &service,
		.path = "/csi.v1.Controller/ControllerModifyVolume",
		.valid = &q.base,
		.bytes = true,
		.look = look_without_identities,
		.undo = undo_expand,
		.min = 300};
	hostile_run(&rpc);
}
END_TEST

START_TEST(delete_if_never_staged)
{
	struct grpc_service service = node_volumes_service(&h.csi);
	Registry__V0__DeleteIfNeverStagedRequest q;
	registry__v0__delete_if_never_staged_request__init(&q);

	q.volume_id = victim;
	const struct hostile_rpc rpc = {.service = &service,
		.path = "/registry.v0.NodeVolumes/DeleteIfNeverStaged",
		.valid = &q.base,
		.bytes = true,
		.look = look_without_identities,
		.undo = undo_delete,
		.min = 200};
	hostile_run(&rpc);
}
END_TEST

START_TEST(validate_volume_capabilities)
{
	Csi__V1__ValidateVolumeCapabilitiesRequest q;
	csi__v1__validate_volume_capabilities_request__init(&q);

	q.volume_id = victim;
	q.n_volume_capabilities = 1;
	q.volume_capabilities = capabilities();
	HOSTILE_SECRETS(&q, Csi__V1__ValidateVolumeCapabilitiesRequest__SecretsEntry,
		csi__v1__validate_volume_capabilities_request__secrets_entry__init);
	run(csi_controller_service(&h.csi),
		(struct hostile_rpc){.path = "/csi.v1.Controller/ValidateVolumeCapabilities",
			.valid = &q.base,
			.bytes = true,
			.min = 4000});
}
END_TEST

START_TEST(list_volumes)
{
	Csi__V1__ListVolumesRequest q;
	csi__v1__list_volumes_request__init(&q);
	char *token = x_asprintf("after/%s", victim);

	q.max_entries = 1;
	q.starting_token = token;
	run(csi_controller_service(&h.csi), (struct hostile_rpc){.path = "/csi.v1.Controller/ListVolumes",
						    .valid = &q.base,
						    .bytes = true,
						    .min = 500});
	free(token);
}
END_TEST

START_TEST(list_volume_health)
{
	Csi__V1__ControllerListVolumeHealthRequest q;
	csi__v1__controller_list_volume_health_request__init(&q);
	char *token = x_asprintf("after/%s", victim);

	q.max_entries = 1;
	q.starting_token = token;
	run(csi_controller_service(&h.csi),
		(struct hostile_rpc){.path = "/csi.v1.Controller/ControllerListVolumeHealth",
			.valid = &q.base,
			.bytes = true,
			.min = 500});
	free(token);
}
END_TEST

START_TEST(get_volume_health)
{
	Csi__V1__ControllerGetVolumeHealthRequest q;
	csi__v1__controller_get_volume_health_request__init(&q);

	q.volume_id = victim;
	run(csi_controller_service(&h.csi),
		(struct hostile_rpc){.path = "/csi.v1.Controller/ControllerGetVolumeHealth",
			.valid = &q.base,
			.bytes = true,
			.min = 300});
}
END_TEST

START_TEST(get_capacity)
{
	Csi__V1__GetCapacityRequest q;
	csi__v1__get_capacity_request__init(&q);

	q.n_volume_capabilities = 1;
	q.volume_capabilities = capabilities();
	q.accessible_topology = csi_topology(h.csi.driver_name, h.csi.node_id, h.arena);
	run(csi_controller_service(&h.csi), (struct hostile_rpc){.path = "/csi.v1.Controller/GetCapacity",
						    .valid = &q.base,
						    .bytes = true,
						    .min = 2500});
}
END_TEST

START_TEST(requests_without_fields)
{
	Csi__V1__GetPluginInfoRequest info;
	csi__v1__get_plugin_info_request__init(&info);
	Csi__V1__GetPluginCapabilitiesRequest plugin;
	csi__v1__get_plugin_capabilities_request__init(&plugin);
	Csi__V1__ProbeRequest probe;
	csi__v1__probe_request__init(&probe);
	Csi__V1__ControllerGetCapabilitiesRequest controller;
	csi__v1__controller_get_capabilities_request__init(&controller);
	const struct hostile_rpc identity[] = {
		{.path = "/csi.v1.Identity/GetPluginInfo", .valid = &info.base},
		{.path = "/csi.v1.Identity/GetPluginCapabilities", .valid = &plugin.base},
		{.path = "/csi.v1.Identity/Probe", .valid = &probe.base}};

	for (size_t i = 0; i < ARRAY_SIZE(identity); i++)
		run(csi_identity_service(&h.csi), identity[i]);
	run(csi_controller_service(&h.csi),
		(struct hostile_rpc){.path = "/csi.v1.Controller/ControllerGetCapabilities",
			.valid = &controller.base,
			.min = 10});
}
END_TEST

int main(void)
{
	static const TTest *const *tests[] = {&create_volume, &delete_volume, &delete_if_never_staged,
		&expand_volume, &modify_volume, &validate_volume_capabilities, &list_volumes,
		&list_volume_health, &get_volume_health, &get_capacity, &requests_without_fields};
	Suite *suite = suite_create("csi/hostile_controller");
	TCase *tcase = tcase_create("hostile_controller");

	tcase_add_checked_fixture(tcase, set_up, tear_down);
	tcase_set_timeout(tcase, TIMEOUT_S);
	for (size_t i = 0; i < ARRAY_SIZE(tests); i++)
		tcase_add_test(tcase, *tests[i]);
	suite_add_tcase(suite, tcase);
	return unit_runner_finish(srunner_create(suite));
}
