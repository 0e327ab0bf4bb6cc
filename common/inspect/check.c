/* SPDX-License-Identifier: Apache-2.0 */
#include "inspect/check.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/parse.h"
#include "base/str.h"
#include "os/blockdev.h"
#include "os/blockdev_mounts.h"
#include "volume/attachment/inline_leftovers.h"
#include "volume/health/health.h"
#include "volume/id.h"
#include "volume/presence.h"

/* --- what exists */

static int read_state(const char *path, struct check_view *v, struct error **err)
{
	CLEANUP(state_closep) struct state_store *store = NULL;

	if (state_open_read(path, &store, err) < 0) {
		if ((*err)->code != ERR_NOT_FOUND)
			return -1;
		error_clear(err);
		return 0;
	}
	v->has_state = true;
	if (state_holder(store, &v->holder, err) < 0)
		return -1;
	if (region_durabilities_read(path, &v->durabilities, err) < 0)
		return -1;
	return state_load(store, &v->state, err);
}

/* A device without a node, or with a node that is no block device, has no number. */
static void read_node(struct check_view *v, size_t at)
{
	CLEANUP(error_freep) struct error *ignored = NULL;
	const char *path = v->devices->devices[at].path;
	struct blockdev_info info;

	if (!path || blockdev_stat(path, &info, &ignored) < 0)
		return;
	v->numbers[at] = info.dev;
}

static void read_media(struct device_manager *devices, struct check_view *v)
{
	CLEANUP(error_freep) struct error *failure = NULL;

	if (device_media_errors(devices, v->devices, &v->media, &failure) < 0)
		v->media_failure = x_strdup(failure->msg);
}

static int read_all(const struct check_config *config, struct check_view *v, struct error **err)
{
	if (read_state(config->state_path, v, err) < 0)
		return -1;
	if (device_list_read(config->devices, &v->devices, err) < 0)
		return err_wrap(err, "list devices");
	v->numbers = x_calloc(v->devices->n_devices, sizeof(*v->numbers));
	for (size_t i = 0; i < v->devices->n_devices; i++)
		read_node(v, i);
	read_media(config->devices, v);
	if (mount_table_read(&v->mounts, err) < 0)
		return -1;
	for (size_t i = 0; i < v->state.n_records; i++) {
		if (inline_is_left_over(v->state.records[i], v->mounts))
			strv_add(&v->left_over, v->state.records[i]->id);
	}
	return loop_list_read(&v->loops, err);
}

int check_view_read(const struct check_config *config, struct check_view *ret, struct error **err)
{
	struct check_view v = {.mode = x_strdup(config->devices->ops->mode),
		.state_path = x_strdup(config->state_path),
		.fake_path = x_strdup(config->fake_path)};

	if (read_all(config, &v, err) < 0) {
		check_view_done(&v);
		return -1;
	}
	*ret = v;
	return 0;
}

void check_view_done(struct check_view *v)
{
	free(v->numbers);
	free(v->media);
	free(v->media_failure);
	device_list_free(v->devices);
	state_content_done(&v->state);
	region_durabilities_done(&v->durabilities);
	mount_table_free(v->mounts);
	loop_list_free(v->loops);
	strv_free(v->left_over);
	free(v->mode);
	free(v->state_path);
	free(v->fake_path);
	*v = (struct check_view){0};
}

/* --- findings */

static const char *const kind_names[] = {
	[CHECK_NO_STATE_FOLDER] = "no-state-folder",
	[CHECK_DAMAGED] = "damaged",
	[CHECK_TWO_FILES] = "two-files",
	[CHECK_TEMPORARY] = "leftover-temporary",
	[CHECK_CREATING] = "unfinished-creation",
	[CHECK_ERASING] = "unfinished-deletion",
	[CHECK_MISSING] = "device-missing",
	[CHECK_GONE] = "device-gone",
	[CHECK_IDENTITY] = "identity-mismatch",
	[CHECK_SAME_NAME] = "same-name-device",
	[CHECK_SIZE] = "size-differs",
	[CHECK_MODE] = "device-mode",
	[CHECK_INACTIVE] = "inactive-device",
	[CHECK_RAW] = "raw-namespace",
	[CHECK_MEDIA_ERROR] = "media-error",
	[CHECK_MEDIA_UNKNOWN] = "media-errors-unknown",
	[CHECK_NO_POOL_RECORD] = "pool-not-recorded",
	[CHECK_STRANGER] = "device-without-state",
	[CHECK_FOREIGN] = "foreign-device",
	[CHECK_POOL_INCOMPLETE] = "incomplete-pool",
	[CHECK_STALE_STAGING] = "stale-staging",
	[CHECK_STALE_TARGET] = "stale-target",
	[CHECK_LEFT_OVER] = "left-over",
	[CHECK_UNKNOWN_MOUNT] = "unknown-mount",
	[CHECK_LOOP] = "leftover-loop",
};

const char *check_kind_name(enum check_kind kind)
{
	return kind_names[kind];
}

static void add(struct check_findings *f, enum check_kind kind, const char *id, char *text, char *remedy)
{
	f->list = x_realloc(f->list, f->n + 1, sizeof(*f->list));
	f->list[f->n] =
		(struct check_finding){.kind = kind, .id = x_strdup(id), .text = text, .remedy = remedy};
	f->n_mismatches++;
	f->n++;
}

static void make_note(struct check_findings *f)
{
	f->list[f->n - 1].is_note = true;
	f->n_mismatches--;
}

void check_findings_done(struct check_findings *f)
{
	for (size_t i = 0; i < f->n; i++) {
		free(f->list[i].id);
		free(f->list[i].text);
		free(f->list[i].remedy);
	}
	free(f->list);
	*f = (struct check_findings){0};
}

const struct volume_record *check_record(const struct check_view *v, const char *id)
{
	for (size_t i = 0; i < v->state.n_records; i++) {
		if (str_eq(v->state.records[i]->id, id))
			return v->state.records[i];
	}
	return NULL;
}

/* --- mounts and loop devices */

/* kubelet's own binds, made and removed without a call to us: of a folder in a volume
 * (kubernetes pkg/volume/util/subpath/subpath_linux.go), and of a block device, at <BLOCK_DIR><PV>/dev/<pod>
 * (pkg/volume/csi/csi_block.go, GetGlobalMapPath()). */
#define SUBPATH_DIR "/volume-subpaths/"
#define BLOCK_DIR   "/kubernetes.io/csi/volumeDevices/"

#define KATA_DIR "mount" /* in the state folder, the Go driver's */

static bool mount_shows(const struct check_view *v, const struct mount_entry *e, size_t at)
{
	return v->numbers[at] != 0 && blockdev_mount_kind(e, v->numbers[at]) != BLOCKDEV_MOUNT_NONE;
}

bool check_is_stale(
	const struct check_view *v, const struct volume_record *r, const char *path, const struct device *d)
{
	/* a Kata volume is a loop device where it is published, and a direct one is an empty file system */
	bool any_device = !d || r->direct || str_eq(strmap_get(&r->parameters, "kataContainers"), "true");

	for (size_t i = 0; i < v->mounts->n; i++) {
		const struct mount_entry *e = &v->mounts->entries[i];

		if (!str_eq(e->target, path))
			continue;
		if (any_device || mount_shows(v, e, (size_t)(d - v->devices->devices)))
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

		if (!mount_shows(v, e, (size_t)(d - v->devices->devices)) || is_recorded(r, e->target))
			continue;
		add(f, CHECK_UNKNOWN_MOUNT, r->id,
			x_asprintf("%s is mounted at %s, which is not recorded", d->path, e->target),
			x_strdup("nothing to do if it is going to be unstaged or unpublished; a mount "
				 "created by hand keeps the volume in use until it is unmounted"));
		/* the Go driver recorded no mounts */
		if (!r->identity)
			make_note(f);
	}
}

/* By its target an inline volume is known to be of a pod that is gone. */
static void add_stale_target(const struct check_view *v, const struct volume_record *r, const char *target,
	struct check_findings *f)
{
	if (strv_contains(v->left_over, r->id))
		add(f, CHECK_LEFT_OVER, r->id,
			x_asprintf(
				"it is an inline volume, and its pod, which had it at %s, has no folder any more",
				target),
			x_strdup("a driver that runs on the node deletes it after ten minutes"));
	else if (volume_record_is_inline(r))
		add(f, CHECK_STALE_TARGET, r->id,
			x_asprintf("recorded as published at %s, where it is not mounted", target),
			x_strdup(
				"kubelet publishes it again, or unpublishes it; it is deleted when its pod has "
				"no folder any more"));
	else
		add(f, CHECK_STALE_TARGET, r->id,
			x_asprintf("recorded as published at %s, where it is not mounted", target),
			x_asprintf(
				"check -repair %s drops the record; publishing it again works without that",
				r->id));
}

static void check_mounts_of(const struct check_view *v, const struct volume_record *r, const struct device *d,
	struct check_findings *f)
{
	if (check_staging_is_stale(v, r, d))
		add(f, CHECK_STALE_STAGING, r->id,
			x_asprintf("recorded as staged at %s, where it is not mounted", r->staging_path),
			x_asprintf("check -repair %s drops the record; staging it again works without that",
				r->id));
	for (size_t i = 0; r->targets && r->targets[i]; i++) {
		if (check_is_stale(v, r, r->targets[i], d))
			add_stale_target(v, r, r->targets[i], f);
	}
	if (d)
		check_unknown(v, r, d, f);
}

static void check_mounts_of_stranger(
	const struct check_view *v, const struct device *d, struct check_findings *f)
{
	for (size_t i = 0; i < v->mounts->n; i++) {
		const struct mount_entry *e = &v->mounts->entries[i];

		if (mount_shows(v, e, (size_t)(d - v->devices->devices)))
			add(f, CHECK_UNKNOWN_MOUNT, d->id,
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
		add(f, CHECK_LOOP, kata,
			x_asprintf("%s over %s is left over from a Kata volume and not mounted", l->path,
				l->backing),
			x_asprintf("detach it: losetup -d %s", l->path));
	else if (fake && str_starts(l->backing, fake) && !has_device_at(v, l->path))
		add(f, CHECK_LOOP, l->path,
			x_asprintf("%s over %s is left over from a fake device", l->path, l->backing),
			x_asprintf("detach it: losetup -d %s", l->path));
}

static void check_loops(const struct check_view *v, struct check_findings *f)
{
	for (size_t i = 0; i < v->loops->n; i++)
		check_loop(v, &v->loops->entries[i], f);
}

/* --- state files and devices */

/* A temporary is named ".<file>.tmp" by us, "<id>.json.tmp" by the Go driver. Return: caller frees. */
static char *id_of_temporary(const char *file)
{
	const char *id = file[0] == '.' ? file + 1 : file;
	const char *tmp = id + strlen(id) - strlen(".tmp");

	for (const char *dot = tmp - 1; dot > id; dot--) {
		if (*dot == '.')
			return x_strndup(id, (size_t)(dot - id));
	}
	return x_strndup(id, (size_t)(tmp - id));
}

static void check_problem(const struct state_problem *p, struct check_findings *f)
{
	CLEANUP(free_charp) char *id = NULL;

	switch (p->kind) {
	case STATE_DAMAGED:
		add(f, CHECK_DAMAGED, p->id,
			x_asprintf("state file %s cannot be used: %s", p->file, p->reason),
			x_asprintf("check -repair %s sets it aside and writes a new one if its device exists",
				p->id));
		break;
	case STATE_TWIN:
		add(f, CHECK_TWO_FILES, p->record->id,
			x_asprintf("state file %s is not used: the volume has another one", p->file),
			x_asprintf("check -repair %s removes it", p->record->id));
		break;
	case STATE_TEMPORARY:
		id = id_of_temporary(p->file);
		add(f, CHECK_TEMPORARY, id,
			x_asprintf("temporary file %s is left over: %s", p->file, p->reason),
			x_asprintf("check -repair %s removes it", id));
		break;
	}
}

static char *name_pool(const struct check_view *v, const char *uuid)
{
	const struct device_pool *pool = device_list_pool(v->devices, uuid);

	return pool ? x_asprintf("%s (%s)", pool->name, uuid) : x_strdup(uuid);
}

static void check_missing(const struct check_view *v, const struct volume_record *r, struct check_findings *f)
{
	const char *mode = strmap_get(&r->parameters, "deviceMode");
	CLEANUP(free_charp) char *pool = r->pool ? name_pool(v, r->pool) : NULL;
	bool is_there = r->pool && device_list_pool(v->devices, r->pool);
	char *text = NULL;

	if (pool)
		text = x_asprintf("its device is not found, and its pool %s is %s", pool,
			is_there ? "incomplete" : "absent");
	else if (mode && !str_eq(mode, v->mode))
		text = x_asprintf("its device is not found; it was created in device mode %s", mode);
	else
		text = x_strdup("its device is not found, and its pool was never recorded");
	add(f, CHECK_MISSING, r->id, text,
		x_asprintf(
			"bring its pool back; if the pool is lost, check -forget %s drops the state", r->id));
}

static void check_identity(
	const struct volume_record *r, const struct device *other, struct check_findings *f)
{
	add(f, CHECK_IDENTITY, r->id,
		x_asprintf("its pool has a device of that name with identity %s, but %s is recorded",
			*other->identity ? other->identity : "none", r->identity),
		x_asprintf("not repaired: the device belongs to something else, and the volume's own device "
			   "is gone; check -forget %s drops the state and leaves the device alone",
			r->id));
}

static void check_phase(const struct volume_record *r, enum presence presence, struct check_findings *f)
{
	static const char *const device[] = {
		[DEVICE_PRESENT] = "its device exists",
		[DEVICE_MISSING] = "its device is not found, and its pool is absent or incomplete",
		[DEVICE_GONE] = "it has no device",
		[DEVICE_FOREIGN] = "the device of that name has another identity",
	};

	if (r->phase == PHASE_CREATING)
		add(f, CHECK_CREATING, r->id,
			x_asprintf("its creation was not finished: %s", device[presence]),
			x_asprintf("the driver undoes it at its next start, check -repair %s does so at once",
				r->id));
	else
		add(f, CHECK_ERASING, r->id,
			x_asprintf("its deletion was not finished: %s", device[presence]),
			x_asprintf("the driver continues at its next start, check -repair %s does so at once",
				r->id));
}

static void check_size(const struct volume_record *r, const struct device *d, struct check_findings *f)
{
	if (r->size_bytes == d->size_bytes)
		return;
	bool smaller = d->size_bytes < r->size_bytes;
	add(f, CHECK_SIZE, r->id,
		x_asprintf("its recorded size is %ju bytes, but its device has %ju", (uintmax_t)r->size_bytes,
			(uintmax_t)d->size_bytes),
		smaller ? x_strdup("not repaired: the device is smaller than what was promised")
			: x_asprintf("check -repair %s records the device's size", r->id));
	/* before 1.0 the Go driver recorded what was asked for */
	if (!r->identity && !smaller)
		make_note(f);
}

/* A device in a closed pool is of the mode that this device manager does not make. */
static void check_mode(const struct check_view *v, const struct volume_record *r, const struct device *d,
	struct check_findings *f)
{
	const struct device_pool *pool = device_list_pool(v->devices, d->pool);
	const char *mode = strmap_get(&r->parameters, "deviceMode");
	bool is_other = pool && pool->closed;

	if (mode && str_eq(mode, v->mode) == is_other) {
		add(f, CHECK_MODE, r->id,
			x_asprintf("its recorded device mode is %s, but its device is of %s mode", mode,
				is_other ? "the other" : v->mode),
			x_strdup("nothing to do: the device is found in both modes"));
		return;
	}
	if (!is_other)
		return;
	add(f, CHECK_MODE, r->id, x_asprintf("its device is not of device mode %s", v->mode),
		x_strdup("nothing to do: it is served, but no new volumes are created there"));
	make_note(f);
}

static void check_active(const char *id, const struct device *d, struct check_findings *f)
{
	if (d->raw)
		add(f, CHECK_RAW, id,
			x_strdup("its namespace has no mode: it is only partly created or destroyed, or its "
				 "info block is damaged"),
			x_strdup("not repaired: its data cannot be accessed at the expected offset; deleting "
				 "the volume destroys it"));
	if (d->active)
		return;
	add(f, CHECK_INACTIVE, id, x_asprintf("its device in pool %s is not active", d->pool),
		x_asprintf(
			"the driver activates it at its next start, check -repair %s does so at once", id));
}

/* Reports devices that have the same name as the device of @r. */
static void check_same_name(const struct check_view *v, const struct volume_record *r,
	const struct device *own, struct check_findings *f)
{
	for (size_t i = 0; i < v->devices->n_devices; i++) {
		const struct device *d = &v->devices->devices[i];

		if (d == own || !str_eq(d->id, r->id))
			continue;
		add(f, CHECK_SAME_NAME, r->id,
			x_asprintf("another device in pool %s has its name, with identity %s", d->pool,
				*d->identity ? d->identity : "none"),
			x_strdup("not repaired: the device belongs to something else, and is never touched"));
	}
}

static void check_media(const struct check_view *v, const struct volume_record *r, const struct device *d,
	struct check_findings *f)
{
	CLEANUP(health_done) struct volume_health h = {0};
	const struct media_errors *e = v->media ? &v->media[d - v->devices->devices] : NULL;

	if (!e)
		return;
	if (e->unknown) {
		add(f, CHECK_MEDIA_UNKNOWN, r->id,
			x_asprintf("whether its memory can be read is not known: %s", v->media_failure),
			x_strdup("not repaired: the list of the kernel cannot be read"));
		make_note(f);
	}
	health_add_media_errors(&h, e);
	if (h.n == 0)
		return;
	add(f, CHECK_MEDIA_ERROR, r->id, x_strdup(h.list[0].message),
		x_strdup("not repaired: that part of its content is lost; copy what can be read to another "
			 "volume, and delete this one, whose memory is overwritten before it is used again"));
}

static void check_present(const struct check_view *v, const struct volume_record *r, const struct device *d,
	struct check_findings *f)
{
	check_same_name(v, r, d, f);
	if (r->phase == PHASE_READY) {
		check_size(r, d, f);
		check_mode(v, r, d, f);
		check_media(v, r, d, f);
	}
	if (!r->pool) {
		add(f, CHECK_NO_POOL_RECORD, r->id,
			x_strdup("its state does not say in which pool its device is"),
			x_asprintf(
				"the driver records it at its next start, check -repair %s does so at once",
				r->id));
		make_note(f);
	}
	check_active(r->id, d, f);
}

static void check_volume(const struct check_view *v, const struct volume_record *r, struct check_findings *f)
{
	const struct device *d = NULL;
	enum presence presence = presence_of(v->devices, r, &d);

	if (r->phase != PHASE_READY)
		check_phase(r, presence, f);
	else if (presence == DEVICE_MISSING)
		check_missing(v, r, f);
	else if (presence == DEVICE_GONE)
		add(f, CHECK_GONE, r->id, x_strdup("its pool is complete and has no such device"),
			x_asprintf("check -repair %s drops the state", r->id));
	else if (presence == DEVICE_FOREIGN)
		check_identity(r, d, f);
	if (presence == DEVICE_PRESENT)
		check_present(v, r, d, f);
	check_mounts_of(v, r, presence == DEVICE_PRESENT ? d : NULL, f);
}

static bool is_damaged(const struct check_view *v, const char *id)
{
	for (size_t i = 0; i < v->state.n_problems; i++) {
		if (v->state.problems[i].kind == STATE_DAMAGED && str_eq(v->state.problems[i].id, id))
			return true;
	}
	return false;
}

static bool has_state(const struct check_view *v, const struct device *d)
{
	return check_record(v, d->id) || is_damaged(v, d->id);
}

bool check_is_stranger(const struct check_view *v, const struct device *d)
{
	return !has_state(v, d) && volume_id_has_minted_form(d->id);
}

bool check_is_damaged(const struct check_view *v, size_t at)
{
	const struct state_problem *p = &v->state.problems[at];
	const struct volume_record *r = p->kind == STATE_DAMAGED ? check_record(v, p->id) : NULL;

	for (size_t i = 0; i < at; i++) {
		if (v->state.problems[i].kind == STATE_DAMAGED && str_eq(v->state.problems[i].id, p->id))
			return false;
	}
	return p->kind == STATE_DAMAGED && !(r && r->phase == PHASE_READY);
}

char *check_claim(const struct check_view *v, const char *id)
{
	const struct volume_record *r = check_record(v, id);
	char *claim = r ? claim_text(&r->claim) : NULL;

	return claim || !r ? claim : claim_pod(&r->claim);
}

static void check_stranger(const struct check_view *v, const struct device *d, struct check_findings *f)
{
	CLEANUP(free_charp) char *pool = name_pool(v, d->pool);
	char size[24];

	add(f, CHECK_STRANGER, d->id,
		x_asprintf("a device of %s in pool %s has no state", format_bytes(d->size_bytes, size), pool),
		x_asprintf(
			"if it is a volume of this driver, check -repair %s writes a state file for it and "
			"keeps its content; otherwise leave it alone",
			d->id));
	check_mounts_of_stranger(v, d, f);
}

static void check_foreign(const struct check_view *v, const struct device *d, struct check_findings *f)
{
	CLEANUP(free_charp) char *pool = name_pool(v, d->pool);
	char size[24];

	add(f, CHECK_FOREIGN, d->id,
		x_asprintf("a device of %s in pool %s is foreign: its name does not have the form of an ID "
			   "of this driver",
			format_bytes(d->size_bytes, size), pool),
		x_strdup("nothing to do: it is never touched"));
	make_note(f);
}

static void check_unrecorded(const struct check_view *v, const struct device *d, struct check_findings *f)
{
	if (check_is_stranger(v, d))
		check_stranger(v, d, f);
	else if (!has_state(v, d))
		check_foreign(v, d, f);
}

void check_compare(const struct check_view *v, struct check_findings *ret)
{
	struct check_findings f = {0};

	if (!v->has_state)
		add(&f, CHECK_NO_STATE_FOLDER, "",
			x_asprintf("state folder %s does not exist", v->state_path),
			x_strdup("check -statePath; the driver creates the folder when it starts"));
	for (size_t i = 0; i < v->state.n_problems; i++)
		check_problem(&v->state.problems[i], &f);
	for (size_t i = 0; i < v->state.n_records; i++)
		check_volume(v, v->state.records[i], &f);
	for (size_t i = 0; i < v->devices->n_devices; i++)
		check_unrecorded(v, &v->devices->devices[i], &f);
	for (size_t i = 0; i < v->devices->n_pools; i++) {
		const struct device_pool *p = &v->devices->pools[i];

		if (!p->complete)
			add(&f, CHECK_POOL_INCOMPLETE, p->name,
				x_asprintf("parts of pool %s (%s) are missing", p->name, p->uuid),
				x_strdup("make the missing region or device available again"));
	}
	check_loops(v, &f);
	*ret = f;
}
