/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every CSI handler, one call after the other on one node.
 *
 * A step is a line that says what is called (a method by its name, "refresh" for the listing of devices,
 * "restart"), two bytes of length, and the message. A line that says nothing of that stands for any of them.
 * Afterwards a restart must show the same volumes, and no space may be lost.
 */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/str.h"
#include "fuzz/confine.h"
#include "fuzz/csi_node.h"
#include "fuzz/fuzz.h"
#include "net/grpc/grpc_protobuf.h"
#include "net/limits.h"

#define STEPS_MAX 16

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	confine();
	return 0;
}

static int call(
	const struct grpc_method *m, void *self, struct span message, struct grpc_call *c, struct error **err)
{
	ProtobufCMessage *request;
	struct span packed;

	if (grpc_protobuf_unpack(m->request, message, c->arena, &request, err) < 0)
		return -1;
	ProtobufCMessage *reply = arena_alloc(c->arena, m->reply->sizeof_message);
	protobuf_c_message_init(m->reply, reply);
	if (m->handle(self, c, request, reply, err) < 0)
		return -1;
	return grpc_protobuf_pack(reply, c->arena, &packed, err);
}

static void run_method(const struct grpc_method *m, void *self, struct span message)
{
	CLEANUP(arena_freep) struct arena *arena = arena_new(LIMIT_ARENA_BYTES);
	struct grpc_call c = {.arena = arena, .deadline_ns = DEADLINE_NONE};
	struct error *err = NULL;

	if (call(m, self, message, &c, &err) < 0)
		fuzz_error(err);
}

static void refresh(struct csi_node *n)
{
	struct error *err = NULL;

	if (volumes_refresh(n->csi.volumes, &err) < 0)
		fuzz_error(err);
}

/* The method that @name means. Return: NULL: it means something else. */
static const struct grpc_method *find_method(struct csi_node *n, const char *name, void **ret_self)
{
	const struct grpc_method *m;
	size_t sum = 0;
	size_t i = 0;

	for (; (m = csi_node_method(n, i, ret_self)) != NULL; i++) {
		if (str_eq(strrchr(m->path, '/') + 1, name))
			return m;
	}
	for (const char *c = name; *c; c++)
		sum += (unsigned char)*c;
	return csi_node_method(n, sum % i, ret_self);
}

static void run_step(struct csi_node *n, struct span *in)
{
	CLEANUP(free_charp) char *name = fuzz_line(in);
	size_t length = (size_t)fuzz_byte(in) << 8;
	void *self;

	length |= fuzz_byte(in);
	struct span message = fuzz_bytes(in, length);
	if (str_eq(name, "restart"))
		csi_node_restart(n);
	else if (str_eq(name, "refresh"))
		refresh(n);
	else
		run_method(find_method(n, name, &self), self, message);
}

static void list_snapshots(struct csi_node *n, char ***ids)
{
	struct snapshot_info **list;
	size_t count;
	bool more;

	volumes_list_snapshots(n->csi.volumes, NULL, 0, &list, &count, &more);
	assert(!more);
	for (size_t i = 0; i < count; i++) {
		strv_add(ids, list[i]->id);
		assert(!list[i]->missing);
		snapshot_info_free(list[i]);
	}
	free(list);
}

/* IDs of all volumes and snapshots. Return: strv_free() */
static char **list_ids(struct csi_node *n)
{
	struct volume_info **list;
	char **ids = NULL;
	size_t count;
	bool more;

	volumes_list(n->csi.volumes, NULL, 0, &list, &count, &more);
	assert(!more);
	for (size_t i = 0; i < count; i++) {
		strv_add(&ids, list[i]->id);
		assert(!list[i]->missing);
		volume_info_free(list[i]);
	}
	free(list);
	list_snapshots(n, &ids);
	return ids;
}

static void check_volumes(struct csi_node *n)
{
	CLEANUP(strv_freep) char **before = list_ids(n);
	csi_node_restart(n);
	CLEANUP(strv_freep) char **after = list_ids(n);

	assert(strv_len(before) == strv_len(after));
	for (size_t i = 0; i < strv_len(before); i++)
		assert(str_eq(before[i], after[i]));
}

/* A device for each volume, and none besides. */
static void check_space(struct csi_node *n)
{
	CLEANUP(device_list_freep) struct device_list *list = NULL;
	CLEANUP(strv_freep) char **ids = list_ids(n);
	struct error *err = NULL;
	uint64_t bytes = 0;

	int rv = device_list_read(n->devices, &list, &err);
	assert(rv == 0);
	assert(list->n_devices == strv_len(ids));
	for (size_t i = 0; i < list->n_devices; i++) {
		assert(strv_contains(ids, list->devices[i].id));
		bytes += list->devices[i].size_bytes;
	}
	for (size_t i = 0; i < list->n_pools; i++)
		bytes -= list->pools[i].capacity.total_bytes - list->pools[i].capacity.available_bytes;
	assert(bytes == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct span in = {data, size};
	struct csi_node n;

	csi_node_open(&n);
	for (unsigned i = 0; i < STEPS_MAX && in.n > 0; i++)
		run_step(&n, &in);
	check_volumes(&n);
	check_space(&n);
	csi_node_close(&n);
	return 0;
}
