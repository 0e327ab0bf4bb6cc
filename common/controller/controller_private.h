/* SPDX-License-Identifier: Apache-2.0 */
/*
 * controller_private.h - what the parts of controller.h share. See there for threads.
 *
 * The work behind each method knows nothing of gRPC: it ends by a function that it is given.
 */
#pragma once

#include "csi.pb-c.h"

#include "base/arena.h"
#include "base/error.h"
#include "controller/attempts.h"
#include "controller/controller.h"

struct controller {
	struct controller_config config;
	struct attempts *attempts;
	uint64_t started_ns;
};

/* A caller that waits for the end of some work. Whatever it is given lives until @finish is called. */
struct waiter {
	struct arena *arena;
	uint64_t deadline_ns;
	/* Exactly once. @error: taken; NULL: success */
	void (*finish)(void *user, struct error *error);
	bool (*is_wanted)(void *user);
	void *user;
};

/* What a node's answer to CreateVolume or DeleteVolume means. */
enum node_answer {
	ANSWER_OK,
	ANSWER_NO_ROOM, /* it has nothing of the volume, and another node may take it */
	ANSWER_REFUSED, /* it has done nothing, and others would not either */
	ANSWER_UNSURE,  /* it may have the volume, now or soon */
};

/** controller_now_ns() - by the clock of the configuration. */
uint64_t controller_now_ns(const struct controller *c);

/** controller_in_start_window() - nodes that have not registered may be about to. */
bool controller_in_start_window(const struct controller *c);

/** controller_is_gone() - the cluster has no such node any more, and its driver has sent nothing for a
 * lease time: what a controller that has just started finds out, too. */
bool controller_is_gone(const struct controller *c, const char *node_id);

/** controller_classify() - of a node's answer; @error: NULL: success. */
enum node_answer controller_classify(const struct error *error);

/** controller_pass_on() - @error of @node_id as it is told to the caller: what external-provisioner would
 * take for the end of the matter although it is not becomes ERR_UNAVAILABLE. Return: error_free(). */
struct error *controller_pass_on(const char *node_id, const struct error *error);

/** controller_timeout_ms() - for a call to a node on behalf of a caller that waits until @deadline_ns: its
 * answer must come before that. Return: 0: no time is left. */
uint64_t controller_timeout_ms(const struct controller *c, uint64_t deadline_ns);

/** controller_live_node() - @node_id, if it is in the table and live; otherwise NULL. */
const struct node *controller_live_node(const struct controller *c, const char *node_id);

/** controller_call() - node_caller.call() of the configuration. @c must live until it has ended. */
void controller_call(struct controller *c, const struct node *node, const char *path,
	const ProtobufCMessage *request, const ProtobufCMessageDescriptor *reply_type, uint64_t timeout_ms,
	grpc_reply_fn fn, void *user);

/** controller_create() - CreateVolume. controller_delete(), controller_validate(): likewise. */
void controller_create(struct controller *c, const struct waiter *waiter,
	const Csi__V1__CreateVolumeRequest *request, Csi__V1__CreateVolumeResponse *reply);
void controller_delete(
	struct controller *c, const struct waiter *waiter, const Csi__V1__DeleteVolumeRequest *request);
void controller_validate(struct controller *c, const struct waiter *waiter,
	const Csi__V1__ValidateVolumeCapabilitiesRequest *request,
	Csi__V1__ValidateVolumeCapabilitiesResponse *reply);

/** controller_delete_copy() - delete the volume @id on @node alone, whether or not its creation was reported
 * to anybody.
 * @fn: as of controller_call(); a success is noted in the node table. The volume's lock is the caller's. */
void controller_delete_copy(
	struct controller *c, const struct node *node, const char *id, grpc_reply_fn fn, void *user);

/** controller_list() - ListVolumes. Return: 0, or -1 with ERR_INVALID_ARGUMENT, ERR_ABORTED (bad token),
 * ERR_UNAVAILABLE (nodes have not said yet what they have). */
int controller_list(struct controller *c, struct arena *arena, const Csi__V1__ListVolumesRequest *request,
	Csi__V1__ListVolumesResponse *reply, struct error **err) MUST_CHECK;

/** controller_capacity() - GetCapacity. Return: 0, or -1 with ERR_INVALID_ARGUMENT, ERR_UNAVAILABLE. */
int controller_capacity(struct controller *c, struct arena *arena, const Csi__V1__GetCapacityRequest *request,
	Csi__V1__GetCapacityResponse *reply, struct error **err) MUST_CHECK;
