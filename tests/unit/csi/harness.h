/* SPDX-License-Identifier: Apache-2.0 */
/*
 * harness.h - the services of a node over an in-memory fake device manager, called method by method as the
 * server does.
 */
#pragma once

#include "csi.pb-c.h"

#include "csi/csi.h"
#include "pmem/device/device.h"

#define NODE_ID     "node-1"
#define DRIVER_NAME "pmem-csi.example"

struct harness {
	char dir[32];
	struct device_manager *devices;
	struct path_roots *roots;
	struct csi csi;
	struct arena *arena;
};

/** harness_open() - two regions of 1 GiB; @start: ready at once. */
void harness_open(struct harness *h, bool start);

/** harness_close() - release everything and remove the folder. */
void harness_close(struct harness *h);

/**
 * harness_call() - call the method with @path.
 * @ret_reply: lives in the harness' arena
 * Return: 0, or -1 with the error of the handler.
 */
int harness_call(struct harness *h, const char *path, const void *request, void **ret_reply,
	struct error **err) MUST_CHECK;

/** harness_capability() - a mount capability in the arena. */
Csi__V1__VolumeCapability *harness_capability(
	struct harness *h, const char *fs_type, Csi__V1__VolumeCapability__AccessMode__Mode mode);

/** harness_create() - CreateVolume of ext4 with @required_bytes. Return: as harness_call(). */
int harness_create(struct harness *h, const char *name, int64_t required_bytes, Csi__V1__Volume **ret,
	struct error **err) MUST_CHECK;
