/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/mem.h"
#include "csi.pb-c.h"
#include "load.h"

#define DIR_MODE 0750

struct capability {
	Csi__V1__VolumeCapability message;
	Csi__V1__VolumeCapability *list[1];
	Csi__V1__VolumeCapability__MountVolume mount;
	Csi__V1__VolumeCapability__AccessMode mode;
};

static void fill_capability(const struct options *o, struct capability *cap)
{
	csi__v1__volume_capability__init(&cap->message);
	csi__v1__volume_capability__mount_volume__init(&cap->mount);
	csi__v1__volume_capability__access_mode__init(&cap->mode);
	cap->mode.mode = CSI__V1__VOLUME_CAPABILITY__ACCESS_MODE__MODE__SINGLE_NODE_WRITER;
	cap->mount.fs_type = (char *)(uintptr_t)o->fs_type;
	cap->message.access_mode = &cap->mode;
	cap->message.access_type_case = CSI__V1__VOLUME_CAPABILITY__ACCESS_TYPE_MOUNT;
	cap->message.mount = &cap->mount;
	cap->list[0] = &cap->message;
}

static char *staging_path(const struct options *o, const struct worker *w)
{
	return x_asprintf("%s/staging-%s-%u", o->kubelet, o->name, w->number);
}

static char *target_path(const struct options *o, const struct worker *w)
{
	return x_asprintf("%s/target-%s-%u", o->kubelet, o->name, w->number);
}

static int make_folder(const char *path, struct error **err)
{
	if (mkdir(path, DIR_MODE) < 0 && errno != EEXIST)
		return err_set_errno(err, ERR_INTERNAL, errno, "mkdir %s", path);
	return 0;
}

static int create(const struct options *o, struct worker *w, reply_fn fn, struct error **err)
{
	Csi__V1__CreateVolumeRequest q;
	Csi__V1__CapacityRange range;
	CLEANUP(free_charp) char *name = x_asprintf("%s-%u", o->name, w->number);
	struct capability cap;

	csi__v1__create_volume_request__init(&q);
	csi__v1__capacity_range__init(&range);
	(void)err;
	fill_capability(o, &cap);
	range.required_bytes = (int64_t)o->size_bytes;
	q.name = name;
	q.capacity_range = &range;
	q.n_volume_capabilities = 1;
	q.volume_capabilities = cap.list;
	grpc_client_call(w->grpc, "/csi.v1.Controller/CreateVolume", &q.base,
		&csi__v1__create_volume_response__descriptor, o->timeout_ms, fn, w);
	return 0;
}

static int stage(const struct options *o, struct worker *w, reply_fn fn, struct error **err)
{
	Csi__V1__NodeStageVolumeRequest q;
	CLEANUP(free_charp) char *staging = staging_path(o, w);
	struct capability cap;

	csi__v1__node_stage_volume_request__init(&q);
	if (make_folder(staging, err) < 0)
		return -1;
	fill_capability(o, &cap);
	q.volume_id = w->id;
	q.staging_target_path = staging;
	q.volume_capability = &cap.message;
	grpc_client_call(w->grpc, "/csi.v1.Node/NodeStageVolume", &q.base,
		&csi__v1__node_stage_volume_response__descriptor, o->timeout_ms, fn, w);
	return 0;
}

static int publish(const struct options *o, struct worker *w, reply_fn fn, struct error **err)
{
	Csi__V1__NodePublishVolumeRequest q;
	CLEANUP(free_charp) char *staging = staging_path(o, w);
	CLEANUP(free_charp) char *target = target_path(o, w);
	struct capability cap;

	csi__v1__node_publish_volume_request__init(&q);
	(void)err;
	fill_capability(o, &cap);
	q.volume_id = w->id;
	q.staging_target_path = staging;
	q.target_path = target;
	q.volume_capability = &cap.message;
	grpc_client_call(w->grpc, "/csi.v1.Node/NodePublishVolume", &q.base,
		&csi__v1__node_publish_volume_response__descriptor, o->timeout_ms, fn, w);
	return 0;
}

static int unpublish(const struct options *o, struct worker *w, reply_fn fn, struct error **err)
{
	Csi__V1__NodeUnpublishVolumeRequest q;
	CLEANUP(free_charp) char *target = target_path(o, w);

	csi__v1__node_unpublish_volume_request__init(&q);
	(void)err;
	q.volume_id = w->id;
	q.target_path = target;
	grpc_client_call(w->grpc, "/csi.v1.Node/NodeUnpublishVolume", &q.base,
		&csi__v1__node_unpublish_volume_response__descriptor, o->timeout_ms, fn, w);
	return 0;
}

static int unstage(const struct options *o, struct worker *w, reply_fn fn, struct error **err)
{
	Csi__V1__NodeUnstageVolumeRequest q;
	CLEANUP(free_charp) char *staging = staging_path(o, w);

	csi__v1__node_unstage_volume_request__init(&q);
	(void)err;
	q.volume_id = w->id;
	q.staging_target_path = staging;
	grpc_client_call(w->grpc, "/csi.v1.Node/NodeUnstageVolume", &q.base,
		&csi__v1__node_unstage_volume_response__descriptor, o->timeout_ms, fn, w);
	return 0;
}

static int delete_volume(const struct options *o, struct worker *w, reply_fn fn, struct error **err)
{
	Csi__V1__DeleteVolumeRequest q;

	csi__v1__delete_volume_request__init(&q);
	(void)err;
	q.volume_id = w->id;
	grpc_client_call(w->grpc, "/csi.v1.Controller/DeleteVolume", &q.base,
		&csi__v1__delete_volume_response__descriptor, o->timeout_ms, fn, w);
	return 0;
}

struct step {
	const char *name;
	int (*call)(const struct options *o, struct worker *w, reply_fn fn, struct error **err);
};

static const struct step short_life[] = {{"create", create}, {"delete", delete_volume}};
static const struct step whole_life[] = {{"create", create}, {"stage", stage}, {"publish", publish},
	{"unpublish", unpublish}, {"unstage", unstage}, {"delete", delete_volume}};

static const struct step *life_of(const struct options *o)
{
	return o->kubelet ? whole_life : short_life;
}

unsigned load_n_steps(const struct options *o)
{
	if (o->kubelet)
		return ARRAY_SIZE(whole_life);
	return o->keep ? 1 : ARRAY_SIZE(short_life);
}

const char *load_step_name(const struct options *o, unsigned step)
{
	return life_of(o)[step].name;
}

int load_call(const struct options *o, struct worker *w, reply_fn fn, struct error **err)
{
	return life_of(o)[w->step].call(o, w, fn, err);
}

void load_take_id(struct worker *w, const ProtobufCMessage *reply)
{
	const Csi__V1__CreateVolumeResponse *created = (const Csi__V1__CreateVolumeResponse *)reply;

	free(w->id);
	w->id = x_strdup(created->volume ? created->volume->volume_id : "");
}

void load_call_capacity(struct grpc_client *grpc, uint64_t timeout_ms, reply_fn fn, void *user)
{
	Csi__V1__GetCapacityRequest q;

	csi__v1__get_capacity_request__init(&q);
	grpc_client_call(grpc, "/csi.v1.Controller/GetCapacity", &q.base,
		&csi__v1__get_capacity_response__descriptor, timeout_ms, fn, user);
}

int64_t load_available(const ProtobufCMessage *reply)
{
	return ((const Csi__V1__GetCapacityResponse *)reply)->available_capacity;
}
