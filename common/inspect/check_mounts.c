/* SPDX-License-Identifier: Apache-2.0 */
/* Mounts and loop devices against what the state says of them. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "inspect/check_private.h"
#include "os/mount_shown.h"

/* kubelet's own binds, made and removed without a call to us: of a folder in a volume
 * (kubernetes pkg/volume/util/subpath/subpath_linux.go), and of a block device, at <BLOCK_DIR><PV>/dev/<pod>
 * (pkg/volume/csi/csi_block.go, GetGlobalMapPath()). */
#define SUBPATH_DIR "/volume-subpaths/"
#define BLOCK_DIR   "/kubernetes.io/csi/volumeDevices/"

#define KATA_DIR "mount" /* in the state folder, the Go driver's */

bool check_mount_shows(const struct check_view *v, const struct mount_entry *e, size_t at)
{
	return v->numbers[at] != 0 && mount_shown(e, v->numbers[at]) != MOUNT_SHOWN_NOT;
}

bool check_is_stale(
	const struct check_view *v, const struct volume_record *r, const char *path, const struct device *d)
{
	/* a Kata volume is a loop device where it is published */
	bool any_device = !d || str_eq(strmap_get(&r->parameters, "kataContainers"), "true");

	for (size_t i = 0; i < v->mounts->n; i++) {
		const struct mount_entry *e = &v->mounts->entries[i];

		if (!str_eq(e->target, path))
			continue;
		if (any_device || check_mount_shows(v, e, (size_t)(d - v->devices->devices)))
			return false;
	}
	return true;
}

bool check_staging_is_stale(const struct check_view *v, const struct volume_record *r, const struct device *d)
{
	return r->staging_path && !r->staged_block && check_is_stale(v, r, r->staging_path, d);
}

/* A copy of a recorded mount, where the host's tree is shown a second time. */
static bool is_copy_of(const char *target, const char *recorded)
{
	return recorded && str_ends(target, recorded);
}

static bool is_bind_of_kubelet(const char *target)
{
	const char *block = strstr(target, BLOCK_DIR);
	const char *pv_end = block ? strchr(block + strlen(BLOCK_DIR), '/') : NULL;

	return strstr(target, SUBPATH_DIR) || (pv_end && str_starts(pv_end, "/dev/"));
}

static bool is_recorded(const struct volume_record *r, const char *target)
{
	if (is_copy_of(target, r->staging_path))
		return true;
	for (size_t i = 0; r->targets && r->targets[i]; i++) {
		if (is_copy_of(target, r->targets[i]))
			return true;
	}
	return is_bind_of_kubelet(target);
}

static void check_unknown(const struct check_view *v, const struct volume_record *r, const struct device *d,
	struct check_findings *f)
{
	for (size_t i = 0; i < v->mounts->n; i++) {
		const struct mount_entry *e = &v->mounts->entries[i];

		if (!check_mount_shows(v, e, (size_t)(d - v->devices->devices)) || is_recorded(r, e->target))
			continue;
		check_add(f, CHECK_UNKNOWN_MOUNT, r->id,
			x_asprintf("%s is mounted at %s, which is not recorded", d->path, e->target),
			x_strdup("none is needed to unstage or unpublish it; a mount made by hand keeps the "
				 "volume in use until it is unmounted"));
		/* the Go driver recorded no mounts */
		if (!r->identity)
			check_note(f);
	}
}

void check_mounts_of(const struct check_view *v, const struct volume_record *r, const struct device *d,
	struct check_findings *f)
{
	if (check_staging_is_stale(v, r, d))
		check_add(f, CHECK_STALE_STAGING, r->id,
			x_asprintf("recorded as staged at %s, where it is not mounted", r->staging_path),
			x_asprintf("check -repair %s drops the record; to stage it again needs none", r->id));
	for (size_t i = 0; r->targets && r->targets[i]; i++) {
		if (!check_is_stale(v, r, r->targets[i], d))
			continue;
		check_add(f, CHECK_STALE_TARGET, r->id,
			x_asprintf("recorded as published at %s, where it is not mounted", r->targets[i]),
			x_asprintf(
				"check -repair %s drops the record; to publish it again needs none", r->id));
	}
	if (d)
		check_unknown(v, r, d, f);
}

void check_mounts_of_stranger(const struct check_view *v, const struct device *d, struct check_findings *f)
{
	for (size_t i = 0; i < v->mounts->n; i++) {
		const struct mount_entry *e = &v->mounts->entries[i];

		if (check_mount_shows(v, e, (size_t)(d - v->devices->devices)))
			check_add(f, CHECK_UNKNOWN_MOUNT, d->id,
				x_asprintf("%s, which has no state, is mounted at %s", d->path, e->target),
				x_strdup("unmount it before check -repair"));
	}
}

/* The volume whose image the Go driver keeps at "<state>/mount/<id>/...". Return: caller frees, or NULL. */
static char *kata_volume(const struct check_view *v, const char *backing)
{
	CLEANUP(free_charp) char *folder = x_asprintf("%s/" KATA_DIR "/", v->state_path);

	if (!str_starts(backing, folder))
		return NULL;
	const char *id = backing + strlen(folder);
	return x_strndup(id, strcspn(id, "/"));
}

static bool is_mounted(const struct check_view *v, const char *source)
{
	for (size_t i = 0; i < v->mounts->n; i++) {
		if (str_eq(v->mounts->entries[i].source, source))
			return true;
	}
	return false;
}

static bool has_device_at(const struct check_view *v, const char *path)
{
	for (size_t i = 0; i < v->devices->n_devices; i++) {
		if (str_eq(v->devices->devices[i].path, path))
			return true;
	}
	return false;
}

static void check_loop(const struct check_view *v, const struct loop_entry *l, struct check_findings *f)
{
	CLEANUP(free_charp) char *kata = kata_volume(v, l->backing);
	CLEANUP(free_charp) char *fake = v->fake_path ? x_asprintf("%s/", v->fake_path) : NULL;

	if (is_mounted(v, l->path))
		return;
	if (kata)
		check_add(f, CHECK_LOOP, kata,
			x_asprintf(
				"%s over %s is left of a Kata volume and not mounted", l->path, l->backing),
			x_asprintf("detach it: losetup -d %s", l->path));
	else if (fake && str_starts(l->backing, fake) && !has_device_at(v, l->path))
		check_add(f, CHECK_LOOP, l->path,
			x_asprintf("%s over %s is left of a fake device", l->path, l->backing),
			x_asprintf("detach it: losetup -d %s", l->path));
}

void check_loops(const struct check_view *v, struct check_findings *f)
{
	for (size_t i = 0; i < v->loops->n; i++)
		check_loop(v, &v->loops->entries[i], f);
}
