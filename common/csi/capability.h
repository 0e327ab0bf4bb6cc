/* SPDX-License-Identifier: Apache-2.0 */
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
	bool block;
	const char *fs_type; /* "" when not given, or for block; borrowed from the request */
	char **mount_flags;  /* strv */
	enum access_mode access_mode;
};

/** capabilities_require() - each of @n capabilities has the fields that the specification requires, whatever
 * they say. @any_mode: as capabilities_check(). Return: 0, or -1 with ERR_INVALID_ARGUMENT that names the
 * field. */
int capabilities_require(
	Csi__V1__VolumeCapability *const *list, size_t n, bool any_mode, struct error **err) MUST_CHECK;

/** capability_read() - check and translate one capability.
 * @c:   may be NULL (missing)
 * @ret: capability_done()
 * Return: 0, or -1 with ERR_INVALID_ARGUMENT (missing, also a required field of it; an unknown access mode;
 * volume_mount_group). */
int capability_read(
	const Csi__V1__VolumeCapability *c, struct capability *ret, struct error **err) MUST_CHECK;

/** capability_done() - release what @c owns; safe on a zeroed one. */
void capability_done(struct capability *c);

/* What one volume has to be, for all capabilities of a request. */
struct capability_set {
	bool block;
	const char *fs_type;       /* what they name, "ext4" when none does; NULL for block only; borrowed */
	const char *asked_fs_type; /* the same, but NULL when none names one */
	bool spans_nodes;          /* the access mode of one does */
};

/** capabilities_check() - all of @n capabilities can be served together by one volume.
 * @any_mode: no access mode, or UNKNOWN, is any one: external-provisioner asks GetCapacity so
 * (pkg/capacity/capacity.go, syncCapacity())
 * Return: 0, or -1 with ERR_INVALID_ARGUMENT (none given, as capability_read(), different file systems). */
int capabilities_check(Csi__V1__VolumeCapability *const *list, size_t n, bool any_mode,
	struct capability_set *ret, struct error **err) MUST_CHECK;
