/* SPDX-License-Identifier: Apache-2.0 */
#include "volume/health/volumes_health.h"
#include "volume/attachment/kata.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "os/blockdev.h"
#include "os/blockdev_mounts.h"
#include "os/fs_usage.h"
#include "pmem/health/dirty_shutdowns.h"
#include "volume/attachment/attachment.h"
#include "volume/health/fs_errors.h"
#include "volume/volumes_private.h"

#define FS_TIMEOUT_MS 1000
/* A file system counts as full if less than this part of its size is available: writes fail before nothing at
 * all is left. */
#define FULL_DIVISOR 1000

/* One look. */
struct look {
	struct volumes *v;
	struct device_list *devices; /* of the volumes, sorted by ID */
	struct health_table found;   /* with an entry for each of them */
	struct mount_table *mounts;
	struct dimms dimms;
	bool dimms_unknown;
};

static int compare_entry(const void *id, const void *entry)
{
	return strcmp(id, ((const struct health_entry *)entry)->id);
}

static const struct volume_health *find(const struct health_table *t, const char *id)
{
	static const struct volume_health unknown;
	const struct health_entry *e =
		t->n ? bsearch(id, t->list, t->n, sizeof(*t->list), compare_entry) : NULL;

	return e ? &e->health : &unknown;
}

/* The caller has the mutex. */
void volumes_copy_health(const struct volumes *v, const char *id, struct volume_health *ret)
{
	health_copy(ret, find(&v->health, id));
}

static void look_done(struct look *l)
{
	device_list_free(l->devices);
	health_table_done(&l->found);
	mount_table_free(l->mounts);
	dimms_done(&l->dimms);
}

static void take_device(struct look *l, struct device *d)
{
	l->devices->devices[l->devices->n_devices++] = *d;
	free(d);
}

static void collect(struct look *l)
{
	CLEANUP(strv_freep) char **ids = volumes_ids_in_phase(l->v, PHASE_READY);
	size_t n = strv_len(ids);

	l->devices = x_calloc(1, sizeof(*l->devices));
	l->devices->devices = x_calloc(n, sizeof(*l->devices->devices));
	l->found.list = x_calloc(n, sizeof(*l->found.list));
	for (size_t i = 0; i < n; i++) {
		CLEANUP(volume_record_freep) struct volume_record *r = records_find(l->v->records, ids[i]);
		struct device *d = r ? device_view_seen_device(l->v->device_view, r) : NULL;

		if (!d)
			continue;
		take_device(l, d);
		l->found.list[l->found.n++].id = x_strdup(ids[i]);
	}
}

/* Keeps the status with @reason of the look before, if there was one, because it could not be checked now. */
static void keep_status(const struct volume_health *before, const char *reason, struct volume_health *h)
{
	const struct health_status *s = health_find(before, reason);

	if (s && !health_find(h, reason))
		health_add(h, s->severity, s->reason, "%s", s->message);
}

static void judge_usage(const struct fs_usage *u, struct volume_health *h)
{
	if (u->refusal == EIO)
		health_add(h, HEALTH_INACCESSIBLE, HEALTH_FS_SHUT_DOWN,
			"its file system refuses access after an error, until it is mounted again");
	else if (u->available_bytes < u->total_bytes / FULL_DIVISOR)
		health_add(h, HEALTH_DEGRADED, HEALTH_FS_FULL, "its file system has no space left");
	else if (u->total_inodes > 0 && u->available_inodes == 0)
		health_add(h, HEALTH_DEGRADED, HEALTH_FS_FULL, "its file system has no inodes left");
}

static void ask_usage(struct look *l, const struct mount_entry *e, const struct volume_health *before,
	struct volume_health *h)
{
	CLEANUP(error_freep) struct error *err = NULL;
	struct fs_usage usage;

	if (volumes_mount_usage(l->v, l->mounts, e, FS_TIMEOUT_MS, &usage, &err) == 0) {
		judge_usage(&usage, h);
		return;
	}
	if (err->code == ERR_DEADLINE) {
		health_add(h, HEALTH_INACCESSIBLE, HEALTH_FS_HANGS, "its file system does not answer");
		return;
	}
	log_debug("usage of a file system cannot be read", F_ERR(err));
	keep_status(before, HEALTH_FS_SHUT_DOWN, h);
	keep_status(before, HEALTH_FS_HANGS, h);
	keep_status(before, HEALTH_FS_FULL, h);
}

/* @seen: what pods see, and may fill; NULL: nothing. For a volume with an image for Kata Containers, that is
 * the file system in the image; the one around it has almost no free space by design. */
static void judge_fs(struct look *l, const struct mount_entry *e, const struct mount_entry *seen,
	const struct volume_health *before, struct volume_health *h)
{
	CLEANUP(error_freep) struct error *err = NULL;
	bool has_errors = false;

	if (fs_has_errors(e, &has_errors, &err) < 0) {
		log_debug("errors of a file system cannot be counted", F_ERR(err));
		keep_status(before, HEALTH_FS_ERROR, h);
	}
	if (has_errors)
		health_add(h, HEALTH_DEGRADED, HEALTH_FS_ERROR,
			"ext4 has found errors in its metadata; e2fsck repairs them while no pod uses the volume");
	if (fs_is_shut_down(e))
		health_add(h, HEALTH_INACCESSIBLE, HEALTH_FS_SHUT_DOWN,
			"its file system was shut down after an error, until it is mounted again");
	else if (fs_turned_readonly(e))
		health_add(h, HEALTH_DEGRADED, HEALTH_FS_READONLY,
			"its file system has become read-only after an error, until it is mounted again");
	if (seen)
		ask_usage(l, seen, before, h);
}

static uint64_t rose_before(const struct dimms *d, const char *id)
{
	for (size_t i = 0; i < d->n; i++) {
		if (str_eq(d->list[i].id, id))
			return d->list[i].rose_by;
	}
	return 0;
}

/* The first look of a driver finds out how the counts have changed since the boot before. */
static void compare_counts(struct look *l)
{
	CLEANUP(error_freep) struct error *err = NULL;
	struct volumes *v = l->v;

	if (v->dirty_compared) {
		for (size_t i = 0; i < l->dimms.n; i++)
			l->dimms.list[i].rose_by = rose_before(&v->dimms, l->dimms.list[i].id);
		return;
	}
	if (dirty_shutdowns_compare(v->state_path, /* record= */ true, &l->dimms, &err) == 0)
		v->dirty_compared = true;
	else if (!volumes_is_ready(v))
		log_warn("whether memory modules have lost power too early is not known, will be tried again",
			F_ERR(err));
	else
		log_debug("counts of dirty shutdowns cannot be compared", F_ERR(err));
}

static void read_dimms(struct look *l)
{
	CLEANUP(error_freep) struct error *err = NULL;

	if (dimms_read(&l->dimms, &err) == 0) {
		compare_counts(l);
		return;
	}
	log_debug("memory modules cannot be listed", F_ERR(err));
	l->dimms_unknown = true;
	dimms_dup(&l->v->dimms, &l->dimms);
}

static bool any_trouble(const struct dimms *d)
{
	for (size_t i = 0; i < d->n; i++) {
		if (d->list[i].problems || d->list[i].rose_by > 0)
			return true;
	}
	return false;
}

static void keep_dimms(const struct volume_health *before, struct volume_health *h)
{
	keep_status(before, HEALTH_DIMM_LOST_DATA, h);
	keep_status(before, HEALTH_DIRTY_SHUTDOWN, h);
	keep_status(before, HEALTH_DIMM_DEGRADED, h);
}

/* On which modules the volume lies is only asked if one of them has trouble. */
static void judge_dimms(
	struct look *l, const struct device *d, const struct volume_health *before, struct volume_health *h)
{
	CLEANUP(error_freep) struct error *err = NULL;

	if (!l->dimms_unknown && !any_trouble(&l->dimms))
		return;
	if (l->dimms_unknown || !d->path) {
		keep_dimms(before, h);
		return;
	}
	bool *below = x_calloc(l->dimms.n, sizeof(*below));
	if (dimms_find_below(&l->dimms, d->path, below, &err) == 0) {
		health_add_dimms(h, &l->dimms, below);
	} else {
		log_debug("the memory modules below a volume are not known", F_ERR(err));
		keep_dimms(before, h);
	}
	free(below);
}

/* Finds the mount of the file system on @d; NULL: none, as far as can be seen. */
static const struct mount_entry *find_mount(const struct look *l, const struct device *d)
{
	CLEANUP(error_freep) struct error *gone = NULL;
	struct blockdev_info info;

	if (!d->path || blockdev_stat(d->path, &info, &gone) < 0)
		return NULL;
	return blockdev_mount_find_kind(l->mounts, info.dev, BLOCKDEV_MOUNT_FS);
}

static const struct mount_entry *find_seen(
	const struct look *l, const char *id, const struct mount_entry *mounted)
{
	CLEANUP(volume_record_freep) struct volume_record *r = records_find(l->v->records, id);
	CLEANUP(error_freep) struct error *ignored = NULL;
	const struct mount_entry *image = NULL;

	if (!r || !kata_has_image(r))
		return mounted;
	/* a guest does not show how full it is */
	if (kata_find_target(l->v, r, l->mounts, &image, &ignored) < 0 || !image ||
		mount_entry_is_readonly(image))
		return NULL;
	return image;
}

/* A file system that is not mounted has the errors on its device that it had, and is as full as it was. */
static void judge_device(struct look *l, size_t i, const struct media_errors *media)
{
	struct volume_health *h = &l->found.list[i].health;
	const struct volume_health *before = find(&l->v->health, l->found.list[i].id);
	const struct mount_entry *e = find_mount(l, &l->devices->devices[i]);

	health_add_media_errors(h, media);
	if (media->unknown)
		keep_status(before, HEALTH_MEDIA_ERROR, h);
	judge_dimms(l, &l->devices->devices[i], before, h);
	if (e) {
		judge_fs(l, e, find_seen(l, l->found.list[i].id, e), before, h);
		return;
	}
	keep_status(before, HEALTH_FS_ERROR, h);
	keep_status(before, HEALTH_FS_FULL, h);
}

static void log_new(const char *id, const struct volume_health *now, const struct volume_health *before)
{
	for (size_t i = 0; i < now->n; i++) {
		const struct health_status *s = &now->list[i];
		const struct health_status *old = health_find(before, s->reason);

		if (!old || !str_eq(old->message, s->message))
			log_warn("something is wrong with a volume", F_STR("volume", id),
				F_STR("severity", health_severity_name(s->severity)),
				F_STR("reason", s->reason), F_STR("message", s->message));
	}
}

static void log_over(const char *id, const struct volume_health *now, const struct volume_health *before)
{
	for (size_t i = 0; i < before->n; i++) {
		if (!health_find(now, before->list[i].reason))
			log_info("what was wrong with a volume is over", F_STR("volume", id),
				F_STR("reason", before->list[i].reason));
	}
}

/* Return: whether anything differs. Volumes that are no longer looked at say nothing. */
static bool log_changes(const struct health_table *now, const struct health_table *before)
{
	bool changed = false;

	for (size_t i = 0; i < now->n; i++) {
		const struct volume_health *old = find(before, now->list[i].id);

		if (health_equal(&now->list[i].health, old))
			continue;
		log_new(now->list[i].id, &now->list[i].health, old);
		log_over(now->list[i].id, &now->list[i].health, old);
		changed = true;
	}
	return changed;
}

/* Nothing but a look changes the table, so that it may be read without the mutex here. */
static void keep(struct look *l)
{
	struct volumes *v = l->v;
	bool changed = log_changes(&l->found, &v->health);

	pthread_mutex_lock(&v->shared.mutex);
	struct health_table before = v->health;
	v->health = l->found;
	l->found = before;
	struct dimms dimms = v->dimms;
	v->dimms = l->dimms;
	l->dimms = dimms;
	pthread_mutex_unlock(&v->shared.mutex);
	if (changed)
		volumes_changed(&v->shared);
}

static int look_at_all(struct volumes *v, struct error **err)
{
	CLEANUP(look_done) struct look l = {.v = v};
	struct media_errors *media = NULL;

	collect(&l);
	if (mount_table_read(&l.mounts, err) < 0)
		return -1;
	read_dimms(&l);
	int rc = device_media_errors(v->devices, l.devices, &media, err);
	for (size_t i = 0; i < l.found.n; i++)
		judge_device(&l, i, &media[i]);
	free(media);
	keep(&l);
	return rc;
}

void volumes_look_at_health_first(struct volumes *v)
{
	CLEANUP(error_freep) struct error *err = NULL;

	if (look_at_all(v, &err) < 0)
		log_warn("the health of volumes could not be examined at the start, will be tried again",
			F_ERR(err));
}

int volumes_look_at_health(struct volumes *v, struct error **err)
{
	return volumes_require_ready(v, err) < 0 ? -1 : look_at_all(v, err);
}

/* The caller has the mutex. */
static void add_known(struct volumes *v, const struct volume_record *r, struct volume_health *h)
{
	enum volume_phase phase = device_view_phase(v->device_view, r);

	health_add_phase(h, phase);
	if (phase == PHASE_READY)
		volumes_copy_health(v, r->id, h);
}

int volumes_health(struct volumes *v, const char *handle, struct volume_health *ret, struct error **err)
{
	CLEANUP(volume_record_freep) struct volume_record *r = records_find(v->records, handle);
	CLEANUP(health_done) struct volume_health h = {0};

	pthread_mutex_lock(&v->shared.mutex);
	bool damaged = strv_contains(records_view(v->records).damaged, r ? r->id : handle);
	if (damaged)
		health_add_phase(&h, PHASE_DAMAGED);
	if (r)
		add_known(v, r, &h);
	pthread_mutex_unlock(&v->shared.mutex);
	if (!damaged && (!r || !volume_record_is_volume(r)))
		return err_set(err, ERR_NOT_FOUND, "volume %s does not exist", handle);
	*ret = h;
	h = (struct volume_health){0};
	return 0;
}

static void count(struct health_count *counts, const struct volume_health *h)
{
	for (size_t i = 0; i < HEALTH_REASONS; i++)
		counts[i].n += health_find(h, counts[i].reason) != NULL;
}

/* Adds the known health of all volumes with which something is wrong, without snapshots, because callers do
 * not know those as volumes. The caller has the mutex. */
static void collect_known(struct volumes *v, struct health_table *t)
{
	const struct records_view view = records_view(v->records);

	for (size_t i = 0; device_view_list(v->device_view) && i < view.n; i++) {
		CLEANUP(health_done) struct volume_health h = {0};

		if (view.list[i]->snapshot)
			continue;
		add_known(v, view.list[i], &h);
		health_table_add(t, view.list[i]->id, &h);
	}
	for (size_t i = 0; view.damaged && view.damaged[i]; i++) {
		CLEANUP(health_done) struct volume_health h = {0};

		/* another file of it counts */
		if (records_has(v->records, view.damaged[i]))
			continue;
		health_add_phase(&h, PHASE_DAMAGED);
		health_table_add(t, view.damaged[i], &h);
	}
}

void volumes_list_unhealthy(struct volumes *v, struct health_table *ret)
{
	struct health_table t = {0};

	pthread_mutex_lock(&v->shared.mutex);
	collect_known(v, &t);
	pthread_mutex_unlock(&v->shared.mutex);
	health_table_sort(&t);
	*ret = t;
}

void volumes_list_dimms(struct volumes *v, struct dimms *ret)
{
	pthread_mutex_lock(&v->shared.mutex);
	dimms_dup(&v->dimms, ret);
	pthread_mutex_unlock(&v->shared.mutex);
}

void volumes_count_health(struct volumes *v, struct health_count ret[static HEALTH_REASONS])
{
	CLEANUP(health_table_done) struct health_table t = {0};

	for (size_t i = 0; i < HEALTH_REASONS; i++)
		ret[i] = (struct health_count){.reason = health_reason_at(i)};
	volumes_list_unhealthy(v, &t);
	for (size_t i = 0; i < t.n; i++)
		count(ret, &t.list[i].health);
}
