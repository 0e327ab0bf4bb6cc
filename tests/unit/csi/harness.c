/* SPDX-License-Identifier: Apache-2.0 */
#include "unit/csi/harness.h"

#include "csi/csi_groups.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/str.h"
#include "os/file.h"
#include "os/paths.h"

#define REGION_BYTES (1ULL << 30)
#define UNIT_BYTES   (4ULL << 20)

void harness_open(struct harness *h, bool start)
{
	struct error *err = NULL;
	const struct device_fake_config fake = {
		.n_regions = 2, .region_bytes = REGION_BYTES, .unit_bytes = UNIT_BYTES};

	/* in memory where that is possible: thousands of volumes are made durable in turn */
	*h = (struct harness){.dir = "/dev/shm/csi-unit-XXXXXX"};
	if (!mkdtemp(h->dir)) {
		*h = (struct harness){.dir = "/tmp/csi-unit-XXXXXX"};
		ck_assert_ptr_nonnull(mkdtemp(h->dir));
	}
	ck_assert_int_eq(device_open_fake(&fake, &h->devices, &err), 0);
	ck_assert_int_eq(path_roots_new(NULL, &h->roots, &err), 0);
	CLEANUP(free_charp) char *state = x_asprintf("%s/state", h->dir);
	const struct volumes_config config = {.node_id = NODE_ID,
		.state_path = state,
		.devices = h->devices,
		.roots = h->roots,
		.erase_in_call = true};
	h->csi = (struct csi){.driver_name = DRIVER_NAME, .version = "1.2.3", .node_id = NODE_ID};
	h->csi.volumes = volumes_new(&config);
	if (start)
		ck_assert_int_eq(volumes_start(h->csi.volumes, &err), 0);
	h->arena = arena_new(1 << 20);
}

static void remove_folder(const char *path)
{
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(fd_closep) int dir_fd = -1;
	CLEANUP(strv_freep) char **names = NULL;

	if (dir_open(path, /* create= */ false, 0, &dir_fd, &err) < 0 || dir_list(dir_fd, &names, &err) < 0)
		return;
	for (size_t i = 0; names[i]; i++)
		unlinkat(dir_fd, names[i], 0);
	rmdir(path);
}

void harness_close(struct harness *h)
{
	CLEANUP(free_charp) char *state = x_asprintf("%s/state", h->dir);

	arena_free(h->arena);
	volumes_free(h->csi.volumes);
	path_roots_free(h->roots);
	device_close(h->devices);
	remove_folder(state);
	remove_folder(h->dir);
}

static const struct grpc_method *find_method(struct grpc_service service, const char *path)
{
	for (const struct grpc_method *m = service.methods; m->path; m++) {
		if (str_eq(m->path, path))
			return m;
	}
	return NULL;
}

int harness_call(
	struct harness *h, const char *path, const void *request, void **ret_reply, struct error **err)
{
	const struct grpc_service services[] = {csi_identity_service(&h->csi),
		csi_controller_service(&h->csi), csi_group_service(&h->csi), csi_node_service(&h->csi)};
	struct grpc_call call = {.arena = h->arena, .deadline_ns = DEADLINE_NONE};

	for (size_t i = 0; i < ARRAY_SIZE(services); i++) {
		const struct grpc_method *m = find_method(services[i], path);

		if (!m)
			continue;
		ck_assert_ptr_eq(((const ProtobufCMessage *)request)->descriptor, m->request);
		ProtobufCMessage *reply = arena_alloc(h->arena, m->reply->sizeof_message);
		protobuf_c_message_init(m->reply, reply);
		if (m->handle(services[i].self, &call, request, reply, err) < 0)
			return -1;
		*ret_reply = reply;
		return 0;
	}
	ck_abort_msg("no method %s", path);
	return -1;
}

Csi__V1__VolumeCapability *harness_capability(
	struct harness *h, const char *fs_type, Csi__V1__VolumeCapability__AccessMode__Mode mode)
{
	Csi__V1__VolumeCapability *c = arena_alloc(h->arena, sizeof(*c));

	csi__v1__volume_capability__init(c);
	c->access_mode = arena_alloc(h->arena, sizeof(*c->access_mode));
	csi__v1__volume_capability__access_mode__init(c->access_mode);
	c->access_mode->mode = mode;
	c->access_type_case = CSI__V1__VOLUME_CAPABILITY__ACCESS_TYPE_MOUNT;
	c->mount = arena_alloc(h->arena, sizeof(*c->mount));
	csi__v1__volume_capability__mount_volume__init(c->mount);
	c->mount->fs_type = arena_strdup(h->arena, fs_type);
	return c;
}

int harness_create(struct harness *h, const char *name, int64_t required_bytes, Csi__V1__Volume **ret,
	struct error **err)
{
	Csi__V1__CreateVolumeRequest q;
	csi__v1__create_volume_request__init(&q);
	Csi__V1__CapacityRange range;
	csi__v1__capacity_range__init(&range);
	Csi__V1__VolumeCapability *list[] = {harness_capability(
		h, "ext4", CSI__V1__VOLUME_CAPABILITY__ACCESS_MODE__MODE__SINGLE_NODE_WRITER)};
	void *reply;

	range.required_bytes = required_bytes;
	q.name = arena_strdup(h->arena, name);
	q.capacity_range = &range;
	q.n_volume_capabilities = 1;
	q.volume_capabilities = list;
	if (harness_call(h, "/csi.v1.Controller/CreateVolume", &q, &reply, err) < 0)
		return -1;
	*ret = ((Csi__V1__CreateVolumeResponse *)reply)->volume;
	return 0;
}
