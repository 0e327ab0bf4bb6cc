/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ControllerExpandVolume: the device of a volume grows, and its record with it.
 *
 * The record says to which size before the first command is run. Device managers change a size in one durable
 * step, so that a crash leaves the old or the new one, and a listing shows which: volumes_settle_growth()
 * takes that over, at the next start, at a retry, or before the volume is used.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/durable_step.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/parse.h"
#include "base/str.h"
#include "os/blockdev.h"
#include "os/fs.h"
#include "pmem/zero_range.h"
#include "volume/attachment/kata.h"
#include "volume/params.h"
#include "volume/volumes_private.h"

/* A volume that is being grown. */
struct expansion {
	struct volumes *v;
	struct volume_record *r;
	const struct expand_request *q;
	struct device *device; /* as it was */
	uint64_t granted_bytes;
	struct concurrency_limit *making;
	struct concurrency_limit *zeroing; /* NULL: its new space need not be zero */
};

static void expansion_done(struct expansion *x)
{
	concurrency_limit_leave(x->making);
	concurrency_limit_leave(x->zeroing);
	device_free(x->device);
}

/* Exclusively if possible, since a file system that is mounted, in whatever mount namespace, holds its device
 * so. @ret_is_mounted: it is, or another program has the device for itself. */
static int open_to_clear(const char *path, int *ret_fd, bool *ret_is_mounted, struct error **err)
{
	CLEANUP(error_freep) struct error *busy = NULL;

	*ret_is_mounted = false;
	if (blockdev_open_exclusive(path, ret_fd, &busy) == 0)
		return 0;
	if (busy->code != ERR_PRECONDITION) {
		*err = TAKE_PTR(busy);
		return -1;
	}
	*ret_is_mounted = true;
	*ret_fd = open(path, O_WRONLY | O_CLOEXEC);
	if (*ret_fd < 0)
		return err_set_errno(
			err, errno == EBUSY ? ERR_PRECONDITION : ERR_INTERNAL, errno, "open %s", path);
	return 0;
}

/* Whether no file system reaches beyond @at. For a mounted xfs this cannot be known, and false is returned:
 * the kernel writes its superblock late (fs.h). */
static bool is_free_from(const char *path, uint64_t at, bool is_mounted)
{
	static const char *const types[] = {"ext4", "xfs"};

	for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
		CLEANUP(error_freep) struct error *ignored = NULL;
		struct fs_super super;

		if (fs_read_super(types[i], path, &super, &ignored) == 0)
			return super.size_bytes <= at && !(is_mounted && str_eq(types[i], "xfs"));
	}
	return true;
}

static int clear_from(struct volumes *v, const struct volume_record *r, const struct device *d, uint64_t at,
	struct error **err)
{
	CLEANUP(fd_closep) int fd = -1;
	bool is_mounted;

	if (open_to_clear(d->path, &fd, &is_mounted, err) < 0 ||
		device_view_confirm_path(v->device_view, r, d, err) < 0)
		return -1;
	return is_free_from(d->path, at, is_mounted) ? zero_range(fd, at, d->size_bytes - at, err) : 0;
}

/*
 * The new end of a device may have signatures of its last owner, such as those of md, which libblkid finds
 * there: the volume could not be staged again. As long as the file system has not grown, nothing of it is
 * there. The volume has its new size whether they can be cleared or not. Where the kernel allows no writes to
 * mounted devices, they stay.
 */
static void clear_end(
	struct volumes *v, const struct volume_record *r, const struct device *d, uint64_t from_bytes)
{
	CLEANUP(error_freep) struct error *err = NULL;
	uint64_t at = d->size_bytes > ZERO_ENDS_BYTES ? d->size_bytes - ZERO_ENDS_BYTES : 0;

	if (at < from_bytes)
		at = from_bytes;
	if (volume_record_is_seen_raw(r) || !d->path || !d->active || at >= d->size_bytes ||
		clear_from(v, r, d, at, &err) == 0)
		return;
	if (err->code == ERR_PRECONDITION)
		log_debug("the new end of a mounted device is not cleared, ignoring", F_STR("volume", r->id),
			F_ERR(err));
	else
		log_warn("the new end of a device is not cleared: if several signatures keep the volume from "
			 "being staged, wipefs --no-act shows them",
			F_STR("volume", r->id), F_STR("device", d->path), F_ERR(err));
}

/* The device has its new size: the record gets it. */
static int finish_growth(struct volumes *v, struct volume_record *r, const struct device *d,
	uint64_t begun_ns, struct error **err)
{
	const struct volume_change change = {.what = "volume expanded",
		.device = d->path,
		.from_bytes = r->size_bytes,
		.begun_ns = begun_ns};

	clear_end(v, r, d, r->size_bytes);
	r->size_bytes = d->size_bytes;
	r->resizing_bytes = 0;
	if (records_save(v->records, r, err) < 0)
		return -1;
	STEP_POINT("grow-done");
	volumes_log_change(v, r, &change);
	volumes_changed(&v->shared);
	return 0;
}

/* A growth that was cut off may have left a device that is not as it is listed: to let it grow to that size
 * finishes it. */
static int finish_device(struct volumes *v, struct device **d, struct error **err)
{
	const struct device_growth growth = {.device = *d, .size_bytes = (*d)->size_bytes};
	struct device *now = NULL;

	if (!(*d)->path || !(*d)->active)
		return 0;
	if (device_grow(v->devices, &growth, &now, err) < 0) {
		err_recode(err, ERR_UNAVAILABLE);
		return -1;
	}
	device_free(*d);
	*d = now;
	return 0;
}

int volumes_settle_growth(struct volumes *v, struct volume_record *r, struct error **err)
{
	CLEANUP(device_freep) struct device *d = NULL;
	uint64_t begun_ns = clock_ns();

	if (r->resizing_bytes == 0)
		return 0;
	volume_lock_set_step(v->locks, r->id, "listing devices");
	if (device_view_relist(v->device_view, err) < 0) {
		err_recode(err, ERR_UNAVAILABLE);
		return err_wrap(err, "volume %s", r->id);
	}
	d = device_view_seen_device(v->device_view, r);
	if (!d)
		return err_set(err, ERR_UNAVAILABLE,
			"volume %s was being expanded, and its device is not seen now", r->id);
	if (finish_device(v, &d, err) < 0)
		return err_wrap(err, "volume %s was being expanded", r->id);
	if (d->size_bytes > r->size_bytes)
		return finish_growth(v, r, d, begun_ns, err);
	r->resizing_bytes = 0;
	if (records_save(v->records, r, err) < 0)
		return -1;
	log_info("the expansion of a volume was not done, so it keeps its size", F_STR("volume", r->id),
		F_U64("size_bytes", r->size_bytes));
	return 0;
}

static int check_request(const struct expand_request *q, struct error **err)
{
	if (q->required_bytes == 0 && q->limit_bytes == 0)
		return err_set(err, ERR_INVALID_ARGUMENT, "neither required_bytes nor limit_bytes is given");
	if (q->limit_bytes > 0 && q->required_bytes > q->limit_bytes)
		return err_set(err, ERR_INVALID_ARGUMENT, "required_bytes is larger than limit_bytes");
	return 0;
}

/* Whether a volume of that kind grows at all, and now. */
static int check_kind(struct volumes *v, const struct volume_record *r, struct error **err)
{
	CLEANUP(params_done) struct volume_params params = {0};

	if (params_parse(PARAMS_STATE, &r->parameters, &params, err) < 0)
		return err_wrap(err, "state of volume %s", r->id);
	if (params.is_inline)
		return err_set(err, ERR_INVALID_ARGUMENT,
			"volume %s is an inline volume, which cannot be expanded", r->id);
	return params.kata_containers ? kata_refuse_published(v, r, err) : 0;
}

static int check_limit(const struct expansion *x, uint64_t size_bytes, struct error **err)
{
	if (x->q->limit_bytes == 0 || size_bytes <= x->q->limit_bytes)
		return 0;
	if (size_bytes == x->r->size_bytes)
		return err_set(err, ERR_RANGE,
			"volume %s has %ju bytes already, which is more than limit_bytes, and it does not shrink",
			x->r->id, (uintmax_t)size_bytes);
	return err_set(err, ERR_RANGE,
		"%ju bytes for volume %s, rounded up to what its pool can allocate, exceed limit_bytes",
		(uintmax_t)x->q->required_bytes, x->r->id);
}

/* The space in the pool of the device, as it was listed last. */
struct pool_view {
	char *name;
	const char *fixed_size;
	bool complete;
	uint64_t granted_bytes; /* UINT64_MAX: it does not fit */
	uint64_t largest_bytes; /* to which the device can grow */
};

static void pool_view_done(struct pool_view *p)
{
	free(p->name);
	*p = (struct pool_view){0};
}

static void view_pool(const struct expansion *x, struct pool_view *ret)
{
	pthread_mutex_lock(&x->v->shared.mutex);
	const struct device_pool *p = device_list_pool(device_view_list(x->v->device_view), x->device->pool);
	*ret = (struct pool_view){.granted_bytes = UINT64_MAX};
	if (p)
		*ret = (struct pool_view){.name = x_strdup(p->name),
			.fixed_size = p->fixed_size,
			.complete = p->complete,
			.granted_bytes = device_fit_growth(p, x->device->size_bytes, x->q->required_bytes),
			.largest_bytes = x->device->size_bytes + p->capacity.max_volume_bytes};
	pthread_mutex_unlock(&x->v->shared.mutex);
}

static int require_fit(struct expansion *x, const struct pool_view *p, struct error **err)
{
	char required[24];
	char largest[24];

	if (p->fixed_size)
		return err_set(err, ERR_INVALID_ARGUMENT, "volume %s cannot be expanded: %s", x->r->id,
			p->fixed_size);
	if (!p->name || !p->complete)
		return err_set(err, ERR_UNAVAILABLE,
			"volume %s cannot be expanded while its pool is absent or incomplete", x->r->id);
	if (p->granted_bytes == UINT64_MAX)
		return err_set(err, ERR_EXHAUSTED,
			"not enough space in pool %s: %s are required for volume %s, which can grow to at most %s "
			"there",
			p->name, format_bytes(x->q->required_bytes, required), x->r->id,
			format_bytes(p->largest_bytes, largest));
	x->granted_bytes = p->granted_bytes;
	return check_limit(x, x->granted_bytes, err);
}

/* That there is no space counts only after a new listing. */
static int choose_size(struct expansion *x, struct error **err)
{
	CLEANUP(pool_view_done) struct pool_view p = {0};

	view_pool(x, &p);
	if (!p.fixed_size && p.granted_bytes == UINT64_MAX) {
		if (device_view_relist(x->v->device_view, err) < 0)
			return -1;
		pool_view_done(&p);
		view_pool(x, &p);
	}
	return require_fit(x, &p, err);
}

/* Lists the devices, so that the space of the growth is not offered to volumes that are created meanwhile. */
static void list_new_space(const struct expansion *x)
{
	CLEANUP(error_freep) struct error *err = NULL;

	volume_lock_set_step(x->v->locks, x->r->id, "listing devices");
	if (device_view_relist(x->v->device_view, &err) < 0)
		log_debug("listing during a growth failed, ignoring", F_STR("volume", x->r->id), F_ERR(err));
}

/* Where the new space was zeroed, list_new_space() has taken it from the pool, and it is not to be subtracted
 * again. */
static void note_grown(const struct expansion *x, const struct device *grown)
{
	CLEANUP(error_freep) struct error *err = NULL;

	if (x->zeroing && device_view_relist(x->v->device_view, &err) == 0)
		return;
	if (err)
		log_debug("listing after a growth failed, ignoring", F_STR("volume", x->r->id), F_ERR(err));
	device_view_apply_growth(x->v->device_view, grown);
}

static int zero_new_space(void *user, const char *path, uint64_t size_bytes, struct error **err)
{
	struct expansion *x = user;
	CLEANUP(fd_closep) int fd = -1;

	/* zeroing has a limit of its own, and what follows takes a moment */
	concurrency_limit_leave(TAKE_PTR(x->making));
	list_new_space(x);
	volume_lock_set_step(x->v->locks, x->r->id, "zeroing its new space");
	if (blockdev_open_exclusive(path, &fd, err) < 0)
		return -1;
	return volumes_zero(x->v, fd, size_bytes, err);
}

/* Before anything is written, so that refused calls leave nothing. */
static int enter_limits(struct expansion *x, struct error **err)
{
	bool zero = volume_record_is_seen_raw(x->r);

	if (zero && volumes_enter_zeroing(x->v, x->r->id, &x->zeroing, err) < 0)
		return err_wrap(err, "zero the new space of a %s volume", x->r->direct ? "direct" : "block");
	volume_lock_set_step(x->v->locks, x->r->id, "waiting until its device can grow");
	return volumes_enter_making(x->v, &x->making, err);
}

static int grow_device(struct expansion *x, struct device **ret, struct error **err)
{
	const struct device_growth growth = {.device = x->device,
		.size_bytes = x->granted_bytes,
		.zero = x->zeroing ? zero_new_space : NULL,
		.user = x};

	x->r->resizing_bytes = x->granted_bytes;
	if (records_save(x->v->records, x->r, err) < 0)
		return -1;
	STEP_POINT("grow-recorded");
	volume_lock_set_step(x->v->locks, x->r->id, "growing its device");
	if (device_grow(x->v->devices, &growth, ret, err) < 0)
		return -1;
	STEP_POINT("grow-device-grown");
	note_grown(x, *ret);
	return 0;
}

/* A failure may come after the change. @failure: of grow_device() */
static int settle_failure(struct expansion *x, struct error **failure, struct error **err)
{
	CLEANUP(error_freep) struct error *later = NULL;

	if (volumes_settle_growth(x->v, x->r, &later) < 0)
		log_debug("the outcome of a failed expansion is not known yet", F_STR("volume", x->r->id),
			F_ERR(later));
	else if (x->r->size_bytes >= x->granted_bytes)
		return 0;
	*err = TAKE_PTR(*failure);
	return err_wrap(err, "expand volume %s", x->r->id);
}

static int expand_locked(struct expansion *x, struct error **err)
{
	CLEANUP(device_freep) struct device *grown = NULL;
	CLEANUP(error_freep) struct error *failure = NULL;
	uint64_t begun_ns = clock_ns();

	if (check_kind(x->v, x->r, err) < 0 || volumes_settle_growth(x->v, x->r, err) < 0)
		return -1;
	if (x->q->required_bytes <= x->r->size_bytes)
		return check_limit(x, x->r->size_bytes, err);
	if (device_view_require_content(x->v->device_view, x->r, &x->device, err) < 0)
		return -1;
	if (choose_size(x, err) < 0 || enter_limits(x, err) < 0)
		return -1;
	if (grow_device(x, &grown, &failure) < 0)
		return settle_failure(x, &failure, err);
	return finish_growth(x->v, x->r, grown, begun_ns, err);
}

bool volumes_can_expand(const struct volumes *v)
{
	return !v->devices->ops->fixed_size;
}

int volumes_expand(
	struct volumes *v, const struct expand_request *q, struct expand_result *ret, struct error **err)
{
	CLEANUP(volume_record_freep) struct volume_record *r = NULL;
	CLEANUP(volume_unlockp) struct volume_lock *lock = NULL;
	CLEANUP(expansion_done) struct expansion x = {.v = v, .q = q};

	if (volumes_require_ready(v, err) < 0 || check_request(q, err) < 0)
		return -1;
	if (volumes_lock_ready(v, q->handle, /* wait_ms= */ 0, &lock, &r, err) < 0)
		return -1;
	x.r = r;
	if (expand_locked(&x, err) < 0)
		return -1;
	*ret = (struct expand_result){
		.size_bytes = r->size_bytes, .is_block = volume_record_is_block_only(r)};
	return 0;
}

/* Whether the device is larger than the record says, because another program has resized it, or the state
 * file was restored from before a growth. Devices that are smaller are left to `check`. */
static bool is_larger(const struct device *d, const struct volume_record *r)
{
	return d && r->identity && d->active && !d->raw && d->size_bytes > r->size_bytes;
}

static bool needs_reconciling(void *user, const char *id)
{
	struct volumes *v = user;
	CLEANUP(volume_record_freep) struct volume_record *r = records_find(v->records, id);

	if (!r || r->phase != PHASE_READY)
		return false;
	CLEANUP(device_freep) struct device *d = device_view_seen_device(v->device_view, r);
	return r->resizing_bytes > 0 || is_larger(d, r);
}

static int reconcile(struct volumes *v, struct volume_record *r, struct error **err)
{
	CLEANUP(device_freep) struct device *d = NULL;

	if (volumes_settle_growth(v, r, err) < 0)
		return -1;
	d = device_view_seen_device(v->device_view, r);
	if (!is_larger(d, r))
		return 0;
	log_warn(
		"the device of a volume is larger than recorded, so its size is recorded; if another program "
		"has extended it, the added space of a block or direct volume may expose earlier data",
		F_STR("volume", r->id), F_U64("from_bytes", r->size_bytes),
		F_U64("size_bytes", d->size_bytes));
	r->size_bytes = d->size_bytes;
	return records_save(v->records, r, err);
}

static char **ids_to_reconcile(struct volumes *v)
{
	char **ids = NULL;

	pthread_mutex_lock(&v->shared.mutex);
	const struct records_view view = records_view(v->records);
	const struct device_list *seen = device_view_list(v->device_view);
	for (size_t i = 0; i < view.n; i++) {
		const struct volume_record *r = view.list[i];
		const struct device *d;

		if (r->phase == PHASE_READY &&
			(r->resizing_bytes > 0 ||
				(presence_of(seen, r, &d) == DEVICE_PRESENT && is_larger(d, r))))
			strv_add(&ids, r->id);
	}
	pthread_mutex_unlock(&v->shared.mutex);
	return ids;
}

void volumes_reconcile_sizes(struct volumes *v)
{
	CLEANUP(strv_freep) char **ids = ids_to_reconcile(v);

	for (size_t i = 0; ids && ids[i]; i++) {
		CLEANUP(volume_record_freep) struct volume_record *r = NULL;
		CLEANUP(volume_unlockp) struct volume_lock *lock = NULL;
		CLEANUP(error_freep) struct error *err = NULL;

		if (!volume_lock_if(v->locks, ids[i], needs_reconciling, v, &lock))
			continue;
		r = records_find(v->records, ids[i]);
		if (reconcile(v, r, &err) < 0)
			log_warn("the size of a volume could not be recorded, will try again",
				F_STR("volume", ids[i]), F_ERR(err));
	}
}
