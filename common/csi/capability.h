/*
 * capability.h - volume capabilities: what of them this driver serves.
 *
 * Threads: safe.
 */
#pragma once

#include "csi.pb-c.h"

#include "base/error.h"
#include "volume/volumes.h"

struct capability {
	const char *fs_type; /* "" when not given; borrowed from the request */
	char **mount_flags;  /* strv */
	enum access_mode access_mode;
};

/** capabilities_require() - each of @n capabilities has the fields that the specification requires, whatever
 * they say. Return: 0, or -1 with ERR_INVALID_ARGUMENT that names the field. */
int capabilities_require(Csi__V1__VolumeCapability *const *list, size_t n, struct error **err) MUST_CHECK;

/** capability_read() - check and translate one capability.
 * @c:   may be NULL (missing)
 * @ret: capability_done()
 * Return: 0, or -1 with ERR_INVALID_ARGUMENT (missing, also a required field of it; block; an access mode
 * that spans nodes; volume_mount_group). */
int capability_read(
	const Csi__V1__VolumeCapability *c, struct capability *ret, struct error **err) MUST_CHECK;

/** capability_done() - release what @c owns; safe on a zeroed one. */
void capability_done(struct capability *c);

/** capabilities_check() - all of @n capabilities can be served together by one volume.
 * @ret_fs_type: the file system that they name, "ext4" when none does; borrowed
 * Return: 0, or -1 with ERR_INVALID_ARGUMENT (none given, as capability_read(), different file systems). */
int capabilities_check(Csi__V1__VolumeCapability *const *list, size_t n, const char **ret_fs_type,
	struct error **err) MUST_CHECK;
