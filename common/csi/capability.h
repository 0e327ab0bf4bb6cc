/* SPDX-License-Identifier: Apache-2.0 */
/*
 * capability.h - checks the volume capabilities of requests, and reads those that this driver serves.
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
	char **mount_flags;  /* strv, one flag each (allowed_mount_flags_split()) */
	enum access_mode access_mode;
};

/** capabilities_require() - check that each of @n capabilities has the fields that the specification
 * requires, whatever their values. @any_mode: as capabilities_check(). Return: 0, or -1 with
 * ERR_INVALID_ARGUMENT that names the field. */
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

/* The properties that one volume must have to serve all capabilities of a request. */
struct capability_set {
	bool block;
	const char *fs_type; /* the one that is requested, by default "ext4"; NULL for block only; borrowed */
	const char *asked_fs_type; /* the same, but NULL when none is requested */
	bool spans_nodes;          /* the access mode of a capability does */
	char **mount_flags;        /* of all capabilities, strv */
};

/** capability_set_done() - release what @set owns; safe on a zeroed one. */
void capability_set_done(struct capability_set *set);

/** capabilities_check() - check that one volume can serve all of @n capabilities.
 * @any_mode: a missing access mode, or UNKNOWN, stands for any: external-provisioner calls GetCapacity with
 * it (pkg/capacity/capacity.go, syncCapacity()). @ret: capability_set_done(). Where no file system is
 * requested, a mount flag may be that of any: the caller, who may know of which the volume is, calls
 * capability_set_check_flags(). Return: 0, or -1 with ERR_INVALID_ARGUMENT (none given, as capability_read(),
 * different file systems, flags). */
int capabilities_check(Csi__V1__VolumeCapability *const *list, size_t n, bool any_mode,
	struct capability_set *ret, struct error **err) MUST_CHECK;

/** capability_set_check_flags() - the mount flags of @set are allowed for @fs_type. Return: 0, or -1 with
 * ERR_INVALID_ARGUMENT. */
int capability_set_check_flags(
	const struct capability_set *set, const char *fs_type, struct error **err) MUST_CHECK;
