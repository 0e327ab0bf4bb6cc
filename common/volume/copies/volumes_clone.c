/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies: a new device is filled with what another volume held at one moment.
 *
 * Persistent memory that is mapped into processes cannot be shared by two volumes until one of them writes,
 * so that all which the file system uses is copied. Its writers are stopped for as long as that takes:
 * copying in advance would not shorten it, since the kernel does not say what stores through mappings have
 * changed.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/durable_step.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "os/blockdev.h"
#include "os/blockdev_mounts.h"
#include "os/copy/data_copy.h"
#include "os/copy/fs_detached.h"
#include "os/copy/fs_extents.h"
#include "os/copy/fs_flush.h"
#include "os/copy/fs_freeze.h"
#include "os/fs.h"
#include "pmem/zero_range.h"
#include "volume/attachment/attachment.h"
#include "volume/attachment/kata.h"
#include "volume/copies/copy_completion.h"
#include "volume/copies/copy_pause.h"
#include "volume/copies/source_parts.h"
#include "volume/direct/volumes_direct.h"
#include "volume/id.h"
#include "volume/params.h"
#include "volume/volumes_private.h"

#define SOURCE_WAIT_MS 2000
/* Flushing in advance shortens the pause, and has that long, or as long as the pause may be, for all. */
#define FLUSH_LEAST_MS 60000
/* A walk over all files that took at most this part of the longest pause need not be measured again. */
#define WALK_PART 8

#define PROGRESS_LOG_NS (10 * NS_PER_S)

#define NOT_WHILE_STILL "volume %s was not copied while its writers stood still"

struct clone_source {
	struct volumes *v;
	struct volume_lock *lock;
	struct volume_record *r;
	struct device *device;
	bool block;
	bool any_fs;              /* the class of the copy names no type of file system */
	struct fs_extent written; /* of the new device; length 0: nothing */
	uint64_t max_pause_ms;
};

void volumes_close_source(struct clone_source *s)
{
	if (!s)
		return;
	device_free(s->device);
	volume_record_free(s->r);
	volume_unlock(s->lock);
	free(s);
}

const char *volumes_source_id(const struct clone_source *s)
{
	return s->r->id;
}

uint64_t volumes_source_bytes(const struct clone_source *s)
{
	return s->device->size_bytes;
}

void volumes_source_layout(const struct clone_source *s, struct volume_record *copy)
{
	copy->direct = s->r->direct;
	if (!copy->fs_type)
		copy->fs_type = x_strdup(s->r->fs_type);
	if (!kata_has_image(s->r))
		return;
	strmap_set(&copy->parameters, PARAMS_KATA, "true");
	copy->image_bytes = s->r->image_bytes;
}

struct fs_extent volumes_source_written(const struct clone_source *s)
{
	return s->written;
}

static int check_kind(const struct volume_record *r, const struct volume_request *q,
	const struct volume_params *params, struct error **err)
{
	CLEANUP(params_done) struct volume_params have = {0};

	if (params_parse(PARAMS_STATE, &r->parameters, &have, err) < 0)
		return err_wrap(err, "state of volume %s", r->id);
	if (have.is_inline || have.is_cache)
		return err_set(err, ERR_INVALID_ARGUMENT, "volume %s is %s volume, which cannot be copied",
			r->id, have.is_inline ? "an inline" : "a cache");
	if (!q->snapshot && have.kata_containers != params->kata_containers)
		return err_set(err, ERR_INVALID_ARGUMENT,
			"%s %s is %sfor Kata Containers, and its clone has to be the same: parameter "
			"kataContainers=%s",
			volume_noun(r->snapshot), r->id, have.kata_containers ? "" : "not ",
			have.kata_containers ? "true" : "false");
	if (!q->snapshot && r->direct != params->direct_volume)
		return err_set(err, ERR_INVALID_ARGUMENT,
			"%s %s is %sa direct volume, and its clone has to be the same, since a guest writes to all of "
			"such a device: parameter " PARAMS_DIRECT "=%s",
			volume_noun(r->snapshot), r->id, r->direct ? "" : "not ",
			r->direct ? "true" : "false");
	if (q->block && (r->fs_type || !volume_record_may_be_block(r)))
		return err_set(err, ERR_INVALID_ARGUMENT,
			"%s %s has a file system, so its clone cannot be a block volume",
			volume_noun(r->snapshot), r->id);
	if (!q->block && volume_record_is_block_only(r))
		return err_set(err, ERR_INVALID_ARGUMENT,
			"%s %s is for block access, so its clone cannot have a file system",
			volume_noun(r->snapshot), r->id);
	const char *fs_type = volumes_wanted_fs(q);
	if (fs_type && r->fs_type && !str_eq(fs_type, r->fs_type))
		return err_set(err, ERR_INVALID_ARGUMENT, "%s %s has %s, so its clone cannot have %s",
			volume_noun(r->snapshot), r->id, r->fs_type, fs_type);
	return 0;
}

/* Without a central controller, external-provisioner asks the node that was selected for the pod, and has the
 * pod scheduled again when that has no room. */
static int refuse_source(struct volumes *v, const struct volume_request *q, struct error **err)
{
	if ((*err)->code != ERR_NOT_FOUND || !volume_id_names_other_node(q->source, v->node_id))
		return err_wrap(err, "source");
	error_clear(err);
	return err_set(err, ERR_EXHAUSTED, "%s %s is on another node, and is copied on its own node only",
		volume_noun(q->source_is_snapshot), q->source);
}

/* Further calls than may wait fail at once with ERR_ABORTED if it is locked, and come again. */
static int lock_source(struct clone_source *s, const struct volume_request *q, struct error **err)
{
	struct volumes *v = s->v;
	struct source_wait w = {.source = q->source};

	pthread_mutex_lock(&v->shared.mutex);
	bool waits = source_waits_enter(&v->source_waits, &w);
	pthread_mutex_unlock(&v->shared.mutex);
	int wait_ms = waits ? SOURCE_WAIT_MS : 0;
	int rc = q->source_is_snapshot ? volumes_lock_snapshot(v, q->source, wait_ms, &s->lock, &s->r, err)
				       : volumes_lock_ready(v, q->source, wait_ms, &s->lock, &s->r, err);
	if (!waits)
		return rc;
	pthread_mutex_lock(&v->shared.mutex);
	source_waits_leave(&v->source_waits, &w);
	pthread_mutex_unlock(&v->shared.mutex);
	return rc;
}

int volumes_open_source(struct volumes *v, const struct volume_request *q, const struct volume_params *params,
	struct clone_source **ret, struct error **err)
{
	CLEANUP(volumes_close_sourcep) struct clone_source *s = x_calloc(1, sizeof(*s));

	*s = (struct clone_source){
		.v = v, .block = q->block, .any_fs = q->any_fs, .max_pause_ms = params->max_pause_ms};
	if (lock_source(s, q, err) < 0)
		return refuse_source(v, q, err);
	if (check_kind(s->r, q, params, err) < 0 || volumes_settle_growth(v, s->r, err) < 0)
		return -1;
	if (device_view_require_content(v->device_view, s->r, &s->device, err) < 0)
		return err_wrap(err, "source %s", s->r->id);
	if (volumes_refuse_guest(v, s->r, s->device, err) < 0)
		return err_wrap(err, "source");
	if (q->limit_bytes > 0 && s->device->size_bytes > q->limit_bytes)
		return err_set(err, ERR_RANGE,
			"volume %s has %ju bytes, so its clone cannot be as small as limit_bytes", s->r->id,
			(uintmax_t)s->device->size_bytes);
	*ret = TAKE_PTR(s);
	return 0;
}

/* A copy that is being made. */
struct copy {
	struct clone_source *source;
	struct volume_record *r;
	const struct device *to;
	const struct copies *all; /* that are made together, this one among them */
	uint64_t begun_ns;
	char *fs_type; /* that is recognised on the source; "": none */
	int from_fd;
	int to_fd;                  /* exclusive */
	int mount_fd;               /* where the source is mounted; -1: nowhere */
	dev_t dev;                  /* of a block volume that is in use, and is suspended; 0: not that */
	struct source_parts *parts; /* likewise */
	struct fs_freeze *freeze;   /* while writers are stopped */
	struct fs_extents extents;
	uint64_t n_files; /* that were flushed before the pause */
	uint64_t walk_ns; /* how long that took the last time */
	uint64_t pause_ns;
	bool is_zeroing;        /* all is copied */
	uint64_t todo_bytes;    /* of what is being copied or zeroed */
	uint64_t done_bytes;    /* of that */
	uint64_t counted_bytes; /* that the node's counter of what is left has of it */
	uint64_t logged_ns;
	struct copy_progress progress;
	uint8_t head[DATA_COPY_HEAD_BYTES]; /* with which the new device begins in the end */
};

/* What is copied as it was at one moment. */
struct copies {
	struct volumes *v;
	struct copy *list;
	size_t n;
	uint64_t max_pause_ms;
	uint64_t taken_s; /* when the sources were as they are copied, seconds since 1970 */
};

/* @left_bytes: of it that are still to be done */
static void count_left(struct copy *c, uint64_t left_bytes)
{
	struct volumes *v = c->all->v;

	pthread_mutex_lock(&v->shared.mutex);
	v->copied.left_bytes += left_bytes - c->counted_bytes;
	pthread_mutex_unlock(&v->shared.mutex);
	c->counted_bytes = left_bytes;
}

/* @done_bytes: of what is copied or zeroed now; what is zeroed is the end of all */
static void report_progress(struct copy *c, uint64_t done_bytes, uint64_t now_ns)
{
	struct volumes *v = c->all->v;
	uint64_t before_bytes = c->is_zeroing ? c->to->size_bytes - c->todo_bytes : 0;

	pthread_mutex_lock(&v->shared.mutex);
	bool changed = copy_reports_advance(&c->progress, before_bytes + done_bytes, now_ns);
	pthread_mutex_unlock(&v->shared.mutex);
	if (changed)
		volumes_changed(&v->shared);
}

/* All that are listed, which stay where they are. */
static void begin_reports(struct copies *all)
{
	struct volumes *v = all->v;

	pthread_mutex_lock(&v->shared.mutex);
	for (size_t i = 0; i < all->n; i++) {
		struct copy *c = &all->list[i];

		copy_reports_begin(&v->copy_reports, &c->progress, c->r->id, c->to->size_bytes, c->begun_ns);
	}
	pthread_mutex_unlock(&v->shared.mutex);
}

static void end_report(struct copy *c)
{
	struct volumes *v = c->all->v;

	pthread_mutex_lock(&v->shared.mutex);
	copy_reports_end(&c->progress);
	pthread_mutex_unlock(&v->shared.mutex);
}

static void copies_done(struct copies *all)
{
	for (size_t i = 0; i < all->n; i++) {
		struct copy *c = &all->list[i];

		count_left(c, 0);
		end_report(c);
		fd_closep(&c->from_fd);
		fd_closep(&c->to_fd);
		fd_closep(&c->mount_fd);
		source_parts_free(c->parts);
		free(c->fs_type);
		fs_extents_done(&c->extents);
	}
	free(all->list);
}

static int open_devices(struct copy *c, struct error **err)
{
	struct device_view *view = c->source->v->device_view;

	if (data_copy_open(c->source->device->path, DATA_COPY_SOURCE, &c->from_fd, err) < 0 ||
		data_copy_open(c->to->path, DATA_COPY_TARGET, &c->to_fd, err) < 0)
		return -1;
	if (device_view_confirm_path(view, c->source->r, c->source->device, err) < 0)
		return -1;
	return device_view_confirm_path(view, c->r, c->to, err);
}

static void begin_progress(struct copy *c, uint64_t todo_bytes)
{
	c->todo_bytes = todo_bytes;
	c->done_bytes = 0;
	c->logged_ns = clock_ns();
	count_left(c, todo_bytes);
}

static void note_progress(struct copy *c, uint64_t done_bytes)
{
	uint64_t now_ns = clock_ns();

	c->done_bytes = done_bytes;
	count_left(c, c->todo_bytes - done_bytes);
	report_progress(c, done_bytes, now_ns);
	if (now_ns - c->logged_ns < PROGRESS_LOG_NS)
		return;
	c->logged_ns = now_ns;
	log_info("volume is being copied", F_STR("volume", c->r->id), F_STR("source", c->source->r->id),
		F_STR("step", c->is_zeroing ? "zeroing" : "copying"), F_U64("done_bytes", done_bytes),
		F_U64("of_bytes", c->todo_bytes), F_U64("percent", done_bytes * 100 / c->todo_bytes));
}

/* A copy is worth nothing when the writers of another one that is made together with it go on. */
static bool goes_on(void *user, uint64_t done_bytes)
{
	struct copy *c = user;

	note_progress(c, done_bytes);
	for (size_t i = 0; i < c->all->n; i++) {
		const struct copy *other = &c->all->list[i];

		if (other->freeze && !fs_freeze_holds(other->freeze))
			return false;
	}
	return volumes_copies_go_on(c->source->v);
}

/* Its own limit, if that is what limits its speed; 0: the node's, or none */
static uint64_t own_limit(const struct clone_source *s)
{
	uint64_t own = s->r->copy_bytes_per_s;
	uint64_t of_node = s->v->copy_bytes_per_s;

	return of_node == 0 || own < of_node ? own : 0;
}

static uint64_t limit_of(const struct clone_source *s)
{
	uint64_t own = own_limit(s);

	return own > 0 ? own : s->v->copy_bytes_per_s;
}

static struct data_copy data_of(struct copy *c)
{
	return (struct data_copy){.from_fd = c->from_fd,
		.parts = c->parts ? c->parts->list : NULL,
		.n_parts = c->parts ? c->parts->n : 0,
		.to_fd = c->to_fd,
		.bytes_per_s = limit_of(c->source),
		.go_on = goes_on,
		.user = c,
		.written = &c->source->written,
		.head = c->head};
}

static void note_speed(const struct clone_source *s, uint64_t bytes, uint64_t ns)
{
	struct volumes *v = s->v;

	pthread_mutex_lock(&v->shared.mutex);
	v->copied.bytes += bytes;
	copy_pace_note(&v->copied.pace, bytes, ns, own_limit(s), clock_ns());
	pthread_mutex_unlock(&v->shared.mutex);
}

static int copy_extents(struct copy *c, const struct fs_extents *x, struct error **err)
{
	const struct data_copy data = data_of(c);
	uint64_t begun_ns = clock_ns();

	begin_progress(c, x->total_bytes);
	int rc = data_copy_extents(&data, x, err);
	/* also of what was cut off: the next call then knows that it would take too long */
	note_speed(c->source, rc == 0 ? x->total_bytes : c->done_bytes, clock_ns() - begun_ns);
	return rc;
}

static int zero_rest(struct copy *c, struct error **err)
{
	const struct data_copy data = data_of(c);

	volume_lock_set_step(c->source->v->locks, c->r->id, "zeroing what the clone does not use");
	c->is_zeroing = true;
	begin_progress(c, c->to->size_bytes - c->extents.total_bytes);
	return data_copy_zero_gaps(&data, &c->extents, c->to->size_bytes, err);
}

/* Nothing else can use it meanwhile, since it is held exclusively. @why: it is not known what its file system
 * uses; NULL: it has none */
static int copy_whole(struct copy *c, const struct error *why, struct error **err)
{
	struct clone_source *s = c->source;
	CLEANUP(fd_closep) int held = -1;

	if (why)
		log_debug("it is not known what a file system uses, so all of the device is copied",
			F_STR("volume", s->r->id), F_ERR(why));
	/* what is open cannot be claimed */
	close(TAKE_FD(c->from_fd));
	if (device_view_claim_device(s->v->device_view, s->r, s->device, &held, err) < 0 ||
		data_copy_open(s->device->path, DATA_COPY_SOURCE, &c->from_fd, err) < 0)
		return -1;
	fs_extents_done(&c->extents);
	fs_extents_whole(s->device->size_bytes, &c->extents);
	return copy_extents(c, &c->extents, err);
}

/* A clone of an empty volume is as empty, although no clean-up may take it for that. */
static bool holds_data(const struct volume_record *r)
{
	return r->ever_staged || r->adopted || volume_record_is_taken_over(r);
}

/* @table: in which no mount shows the device. A recorded target where nothing is mounted any more is no use
 * where writers cannot be stopped, but that of a direct volume never has a mount. */
static bool may_be_published(const struct volume_record *r, const struct mount_table *table)
{
	for (size_t i = 0; r->targets && r->targets[i]; i++) {
		if (r->direct || mount_table_at(table, r->targets[i]))
			return true;
	}
	return false;
}

/* In use, its device is suspended while it is copied: those below it can be read then. */
static int check_block(
	struct copy *c, const struct mount_table *table, const struct blockdev_info *info, struct error **err)
{
	const struct volume_record *r = c->source->r;
	const struct mount_entry *fs = blockdev_mount_find_kind(table, info->dev, BLOCKDEV_MOUNT_FS);
	const struct mount_entry *e = fs ? fs : blockdev_mount_find(table, info->dev);

	if (!e && strv_len(r->targets) == 0)
		return 0;
	/* stores to mappings of files with DAX do not wait for a suspended device */
	if (fs)
		return err_set(err, ERR_PRECONDITION,
			"a file system on block volume %s is mounted at %s, so it cannot be copied now: unmount it",
			r->id, fs->target);
	if (source_parts_open(info->dev, info->size_bytes, &c->parts, err) < 0)
		return -1;
	if (!c->parts && !e && !may_be_published(r, table))
		return 0;
	if (!c->parts)
		return err_set(err, ERR_PRECONDITION,
			"block volume %s is in use by a pod, so it cannot be copied now: the writers of a namespace "
			"cannot be stopped",
			r->id);
	c->dev = info->dev;
	return 0;
}

/* Whether its writers are stopped while it is copied. */
static bool is_in_use(const struct copy *c)
{
	return c->mount_fd >= 0 || c->parts;
}

/* A mount that only reads keeps its file system as it is, and has replayed its log. The log of a snapshot was
 * emptied when it got its UUID. */
static int open_unmounted(const struct copy *c, const char *fs_type, int *ret_dir_fd, struct error **err)
{
	const char *path = c->source->device->path;

	return c->source->r->snapshot
		       ? fs_open_unchanged(fs_type, path, ret_dir_fd, err)
		       : fs_open_detached(fs_type, path, /* readonly= */ true, ret_dir_fd, err);
}

static int copy_unmounted(struct copy *c, struct error **err)
{
	CLEANUP(error_freep) struct error *why = NULL;
	const struct device *from = c->source->device;
	int dir_fd;

	if (open_unmounted(c, c->fs_type, &dir_fd, &why) < 0)
		return copy_whole(c, why, err);
	bool has_map = fs_extents_read(dir_fd, from->size_bytes, &c->extents, &why) == 0;
	int rc = has_map ? copy_extents(c, &c->extents, err) : 0;
	CLEANUP(error_freep) struct error *busy = NULL;
	if (fs_close_detached(dir_fd, from->path, &busy) < 0)
		log_warn("the file system of a volume that was copied is not unmounted yet",
			F_STR("volume", c->source->r->id), F_ERR(busy));
	return has_map ? rc : copy_whole(c, why, err);
}

static uint64_t get_pace(struct volumes *v)
{
	pthread_mutex_lock(&v->shared.mutex);
	uint64_t bytes_per_s = copy_pace_get(&v->copied.pace, clock_ns());
	pthread_mutex_unlock(&v->shared.mutex);
	return bytes_per_s;
}

static void choose_trial(const struct fs_extents *x, struct fs_extents *ret)
{
	for (size_t i = 0; i < x->n && ret->total_bytes < COPY_SMALL_BYTES; i++) {
		const struct fs_extent *e = &x->list[i];
		uint64_t left_bytes = COPY_SMALL_BYTES - ret->total_bytes;
		uint64_t n = e->length_bytes < left_bytes ? e->length_bytes : left_bytes;

		fs_extents_add(ret, e->at_bytes, e->at_bytes + n, FS_EXTENTS_MAX);
	}
}

/* How fast the last clone was, or a part of this one is, which is copied in advance unless a limit of its own
 * says enough; 0: there is too little to find that out. */
static int measure_speed(
	struct copy *c, const struct fs_extents *x, uint64_t *ret_bytes_per_s, struct error **err)
{
	CLEANUP(fs_extents_done) struct fs_extents part = {0};

	*ret_bytes_per_s = get_pace(c->source->v);
	if (*ret_bytes_per_s > 0 || own_limit(c->source) > 0 || x->total_bytes < COPY_PACE_LEAST_BYTES)
		return 0;
	choose_trial(x, &part);
	if (copy_extents(c, &part, err) < 0)
		return -1;
	*ret_bytes_per_s = get_pace(c->source->v);
	return 0;
}

/* Of a block volume it is not known. */
static int read_used(const struct copy *c, struct fs_extents *ret, struct error **err)
{
	if (c->mount_fd >= 0)
		return fs_extents_read(c->mount_fd, c->source->device->size_bytes, ret, err);
	fs_extents_whole(c->source->device->size_bytes, ret);
	return 0;
}

static int walk(struct copy *c, uint64_t end_ns, struct error **err)
{
	uint64_t begun_ns = clock_ns();
	const struct fs_flush_until until = {
		.deadline_ns = end_ns, .go_on = volumes_copies_go_on, .user = c->all->v};

	if (fs_flush_files(c->mount_fd, &until, &c->n_files, err) < 0)
		return -1;
	c->walk_ns = clock_ns() - begun_ns;
	return 0;
}

/* The walk of the pause finds files that were flushed already, as the second one before it does. */
static int measure_walk(struct copy *c, struct error **err)
{
	uint64_t max_ms = c->all->max_pause_ms;

	if (c->mount_fd < 0 || c->walk_ns <= max_ms * NS_PER_MS / WALK_PART ||
		walk(c, clock_ns() + max_ms * NS_PER_MS, err) == 0)
		return 0;
	if ((*err)->code != ERR_DEADLINE)
		return -1;
	error_clear(err);
	return err_set(err, ERR_PRECONDITION,
		"it is in use, and its files cannot all be flushed within maxPause, %ju ms: nothing was stopped; "
		"set a larger maxPause in the class, or copy the volume while no pod uses it",
		(uintmax_t)max_ms);
}

static int estimate(struct copy *c, struct copy_estimate *pause, struct error **err)
{
	CLEANUP(fs_extents_done) struct fs_extents x = {0};
	struct copy_work w = {.id = c->source->r->id, .limit_bytes_per_s = limit_of(c->source)};

	if (measure_walk(c, err) < 0 || read_used(c, &x, err) < 0 ||
		measure_speed(c, &x, &w.bytes_per_s, err) < 0)
		return err_wrap(err, "copy of volume %s", w.id);
	w.files = c->n_files;
	w.walk_ns = c->walk_ns;
	w.bytes = x.total_bytes;
	copy_estimate_add(pause, &w);
	return copy_estimate_check(pause, c->all->max_pause_ms, err);
}

/* Before anything is stopped. The writers of all stand still until the last is copied. */
static int check_pause(struct copies *all, struct error **err)
{
	struct copy_estimate pause = {0};

	for (size_t i = 0; i < all->n; i++) {
		if (is_in_use(&all->list[i]) && estimate(&all->list[i], &pause, err) < 0)
			return -1;
	}
	return 0;
}

/* What a process has written to a block volume is in the page cache of its device, unless it goes past that.
 */
static int flush(struct copy *c, uint64_t end_ns, struct error **err)
{
	if (c->mount_fd >= 0)
		return walk(c, end_ns, err);
	if (STEP("flush-device", fsync(c->from_fd)) < 0)
		return err_set_errno(err, ERR_INTERNAL, errno, "flush %s", c->source->device->path);
	return 0;
}

static int flush_used(const struct copies *all, struct error **err)
{
	uint64_t max_ms = all->max_pause_ms > FLUSH_LEAST_MS ? all->max_pause_ms : FLUSH_LEAST_MS;
	uint64_t end_ns = clock_ns() + max_ms * NS_PER_MS;

	for (size_t i = 0; i < all->n; i++) {
		struct copy *c = &all->list[i];

		if (!is_in_use(c))
			continue;
		volume_lock_set_step(all->v->locks, c->r->id, "flushing the volume that it copies");
		if (flush(c, end_ns, err) < 0)
			return err_wrap(err, "copy of volume %s: nothing was stopped", c->source->r->id);
	}
	return 0;
}

static int pause_one(struct copy *c, struct error **err)
{
	struct volumes *v = c->all->v;
	struct volume_record *r = c->source->r;
	uint64_t max_ms = c->all->max_pause_ms;

	if (c->mount_fd >= 0)
		return volumes_pause_writers(v, r, c->mount_fd, max_ms, &c->freeze, err);
	if (volumes_pause_device(v, r, c->dev, max_ms, &c->freeze, err) < 0)
		return -1;
	/* LVM cannot move it any more */
	return source_parts_confirm(c->parts, c->dev, err);
}

static int pause_all(struct copies *all, struct error **err)
{
	for (size_t i = 0; i < all->n; i++) {
		struct copy *c = &all->list[i];

		if (!is_in_use(c))
			continue;
		volume_lock_set_step(all->v->locks, c->r->id, "copying while writers stand still");
		if (pause_one(c, err) < 0)
			return err_wrap(err, NOT_WHILE_STILL, c->source->r->id);
	}
	return 0;
}

static int copy_paused(struct copies *all, struct error **err)
{
	all->taken_s = (uint64_t)time(NULL);
	for (size_t i = 0; i < all->n; i++) {
		struct copy *c = &all->list[i];

		if (!is_in_use(c))
			continue;
		if (read_used(c, &c->extents, err) < 0 || copy_extents(c, &c->extents, err) < 0)
			return err_wrap(err, "copy of volume %s", c->source->r->id);
	}
	return 0;
}

/* All go on, also after a failure. That a pause did not hold counts before what it caused. */
static int resume_all(struct copies *all, struct error **err)
{
	int rc = 0;

	for (size_t i = 0; i < all->n; i++) {
		struct copy *c = &all->list[i];
		CLEANUP(error_freep) struct error *failure = NULL;

		if (!c->freeze)
			continue;
		if (volumes_resume_writers(
			    all->v, c->source->r, TAKE_PTR(c->freeze), &c->pause_ns, &failure) == 0)
			continue;
		err_wrap(&failure, NOT_WHILE_STILL, c->source->r->id);
		if (rc == 0)
			*err = TAKE_PTR(failure);
		rc = -1;
	}
	return rc;
}

static int copy_used(struct copies *all, struct error **err)
{
	CLEANUP(error_freep) struct error *failure = NULL;

	if (flush_used(all, err) < 0 || check_pause(all, err) < 0)
		return -1;
	int rc = pause_all(all, &failure);
	if (rc == 0)
		rc = copy_paused(all, &failure);
	if (resume_all(all, err) < 0)
		return -1;
	if (rc < 0)
		*err = TAKE_PTR(failure);
	return rc;
}

/* Its lock keeps pods away from it. */
static int copy_unused(struct copy *c, struct error **err)
{
	if (c->source->block)
		return holds_data(c->source->r) ? copy_whole(c, /* why= */ NULL, err) : 0;
	return *c->fs_type ? copy_unmounted(c, err) : 0;
}

static int check_fs(const struct copy *c, struct error **err)
{
	const char *id = c->source->r->id;

	if (!*c->fs_type && holds_data(c->source->r))
		return err_set(err, ERR_PRECONDITION,
			"volume %s was in use before, and no file system is recognised on it now", id);
	if (*c->fs_type && (!fs_known(c->fs_type) || (c->r->fs_type && !str_eq(c->r->fs_type, c->fs_type))))
		return err_set(err, ERR_PRECONDITION,
			"volume %s holds %s, which is not what its clone is to have", id, c->fs_type);
	return 0;
}

/* @info: of the source's device. Opens the mount at which its writers are stopped. */
static int check_mounts(
	struct copy *c, const struct mount_table *table, const struct blockdev_info *info, struct error **err)
{
	if (blockdev_mount_find_kind(table, info->dev, BLOCKDEV_MOUNT_NODE))
		return err_set(err, ERR_PRECONDITION,
			"volume %s is in use as a block volume, so its file system cannot be copied",
			c->source->r->id);
	const struct mount_entry *e =
		volumes_find_whole_mount(table, c->source->r, info->dev, /* writable= */ false);
	/* its files could not all be flushed */
	if (!e && blockdev_mount_find_kind(table, info->dev, BLOCKDEV_MOUNT_FS))
		return err_set(err, ERR_PRECONDITION,
			"only a folder of volume %s is mounted: unmount it before the volume is cloned",
			c->source->r->id);
	if (check_fs(c, err) < 0)
		return -1;
	return e && *c->fs_type ? volumes_open_mounted(e, &c->mount_fd, err) : 0;
}

static int prepare_copy(struct copy *c, struct error **err)
{
	CLEANUP(mount_table_freep) struct mount_table *table = NULL;
	const struct device *from = c->source->device;
	struct blockdev_info info;

	volume_lock_set_step(c->all->v->locks, c->r->id, "copying");
	if (open_devices(c, err) < 0)
		return -1;
	if (blockdev_stat(from->path, &info, err) < 0 || mount_table_read(&table, err) < 0)
		return -1;
	if (info.size_bytes != from->size_bytes)
		return err_set(err, ERR_UNAVAILABLE,
			"volume %s has %ju bytes, and is listed with %ju: try again when devices were listed again",
			c->source->r->id, (uintmax_t)info.size_bytes, (uintmax_t)from->size_bytes);
	if (c->source->block)
		return check_block(c, table, &info, err);
	return check_mounts(c, table, &info, err);
}

/* Those that are in use first: what no pod writes to stays as it is. */
static int copy_contents(struct copies *all, struct error **err)
{
	for (size_t i = 0; i < all->n; i++) {
		if (prepare_copy(&all->list[i], err) < 0)
			return err_wrap(err, "copy of volume %s", all->list[i].source->r->id);
	}
	if (copy_used(all, err) < 0)
		return -1;
	for (size_t i = 0; i < all->n; i++) {
		struct copy *c = &all->list[i];

		if (!is_in_use(c) && copy_unused(c, err) < 0)
			return err_wrap(err, "copy of volume %s", c->source->r->id);
	}
	return 0;
}

static void log_copy(const struct copy *c)
{
	log_info(c->r->snapshot ? "snapshot taken" : "volume cloned", F_STR("volume", c->r->id),
		F_STR("source", c->source->r->id), F_U64("copied_bytes", c->extents.total_bytes),
		F_U64("pause_ms", c->pause_ns / NS_PER_MS),
		F_U64("ms", (clock_ns() - c->begun_ns) / NS_PER_MS));
}

/* What is left to do is about the new device, and may take much longer: pods may use the source again, and
 * its file system can be unmounted. */
static void release_source(struct copy *c)
{
	fd_closep(&c->mount_fd);
	fd_closep(&c->from_fd);
	source_parts_free(TAKE_PTR(c->parts));
	volume_unlock(TAKE_PTR(c->source->lock));
}

static int finish_copy(struct copy *c, struct error **err)
{
	bool has_data = c->extents.n > 0;
	const struct copy_last_step last = {.r = c->r,
		.to = c->to,
		.to_fd = &c->to_fd,
		.head = c->head,
		.fs_type = has_data && !c->source->block ? c->fs_type : NULL};

	if (zero_rest(c, err) < 0)
		return -1;
	log_copy(c);
	c->r->ever_staged = has_data;
	c->r->taken_s = c->r->snapshot ? c->all->taken_s : 0;
	/* where the tools that set a UUID write is theirs to know */
	if (has_data)
		c->source->written = (struct fs_extent){.length_bytes = c->to->size_bytes};
	return copy_completion_finish(c->all->v, &last, err);
}

static int probe_source(struct copy *c, struct error **err)
{
	if (volumes_recognise(c->source->r, c->source->device->path, &c->fs_type, err) < 0)
		return err_wrap(err, "source %s", c->source->r->id);
	/* the Go driver recorded none, and earlier versions kept a type after another one was made */
	const char *type = *c->fs_type ? c->fs_type : VOLUME_DEFAULT_FS;
	bool is_decided = c->r->fs_type && !(c->source->any_fs && *c->fs_type);
	if (!is_decided && !c->r->snapshot && !c->source->block) {
		free(c->r->fs_type);
		c->r->fs_type = x_strdup(type);
	}
	return 0;
}

static int fill(struct copies *all, struct error **err)
{
	for (size_t i = 0; i < all->n; i++) {
		if (probe_source(&all->list[i], err) < 0)
			return -1;
	}
	if (copy_contents(all, err) < 0)
		return -1;
	for (size_t i = 0; i < all->n; i++)
		release_source(&all->list[i]);
	for (size_t i = 0; i < all->n; i++) {
		if (finish_copy(&all->list[i], err) < 0)
			return -1;
	}
	return 0;
}

/* Devices in memory hold nothing. */
static bool is_in_memory(const struct copy_request *q)
{
	return !q->to->path || !q->source->device->path;
}

int volumes_fill_copies(struct volumes *v, const struct copy_request *requests, size_t n, struct error **err)
{
	CLEANUP(copies_done)
	struct copies all = {.v = v,
		.list = x_calloc(n, sizeof(struct copy)),
		.max_pause_ms = requests[0].source->max_pause_ms,
		.taken_s = (uint64_t)time(NULL)};

	for (size_t i = 0; i < n; i++) {
		const struct copy_request *q = &requests[i];

		if (!is_in_memory(q))
			all.list[all.n++] = (struct copy){.source = q->source,
				.r = q->r,
				.to = q->to,
				.all = &all,
				.begun_ns = clock_ns(),
				.from_fd = -1,
				.to_fd = -1,
				.mount_fd = -1};
	}
	begin_reports(&all);
	int rc = all.n > 0 ? fill(&all, err) : 0;
	/* of whatever was stopped then */
	if (rc < 0 && erase_queue_is_stopping(v->erase_queue))
		err_recode(err, ERR_UNAVAILABLE);
	for (size_t i = 0; i < n; i++)
		requests[i].r->taken_s = requests[i].r->snapshot ? all.taken_s : 0;
	return rc;
}
