/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Logical volumes that grow.
 *
 * lvextend knows a volume by its name only, and cannot select it by its tag under LVM's own lock. So before
 * and after the command the device that is active under the name must have the UUIDs of group and volume with
 * which the tag was listed: these never change, and the kernel knows them. It must also lie on our memory,
 * since a copy of the group on another disk has the same UUIDs.
 */
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "os/blockdev.h"
#include "pmem/device/device_lvm_private.h"
#include "pmem/lvm/lvm_growth.h"

/* Finds the volume in the last listing, which may lack volumes that were created since. */
static const struct lvm_lv *volume_of(const struct device_lvm *m, const struct device *d)
{
	for (size_t i = 0; m->report && i < m->report->n_lvs; i++) {
		const struct lvm_lv *lv = &m->report->lvs[i];

		if (str_eq(lv->name, d->id) && str_eq(lv->vg_uuid, d->pool) &&
			(!*d->identity || strv_contains(lv->tags, d->identity)))
			return lv;
	}
	return NULL;
}

static void add_without_hyphens(struct buf *out, const char *text)
{
	for (; *text; text++) {
		if (*text != '-')
			buf_addc(out, *text);
	}
}

/* The volume that is listed is the one whose device is there, on memory of ours: a copy of its group on
 * another disk has the same UUIDs. */
static int require_same(struct device_lvm *m, const struct device *d, struct error **err)
{
	CLEANUP(buf_done) struct buf uuid = BUF_INIT(256);
	const struct lvm_lv *lv = volume_of(m, d);

	if (!lv)
		return err_set(err, ERR_UNAVAILABLE, "LVM does not list it with its tag");
	buf_adds(&uuid, "LVM-");
	add_without_hyphens(&uuid, lv->vg_uuid);
	add_without_hyphens(&uuid, lv->uuid);
	if (buf_check(&uuid, "UUIDs of a volume", err) < 0)
		return -1;
	if (dm_require_uuid(lv->path, buf_str(&uuid), err) < 0)
		return -1;
	return device_lvm_confirm(m, d, err);
}

/* @ret: the device as it was seen last; borrowed until the next listing. A device that is not listed yet, or
 * with another identity, may be known after a new listing. */
static int find_to_grow(
	struct device_lvm *m, const struct device *wanted, const struct device **ret, struct error **err)
{
	const struct device *d = m->seen ? device_lvm_find(m, wanted->pool, wanted->id) : NULL;

	if (!d || !str_eq(d->identity, wanted->identity) || !volume_of(m, d)) {
		if (device_lvm_refresh(m, err) < 0)
			return -1;
		d = device_lvm_find(m, wanted->pool, wanted->id);
	}
	if (!d)
		return err_set(err, ERR_UNAVAILABLE, "it is not in its volume group");
	if (!str_eq(d->identity, wanted->identity)) {
		(void)device_lvm_refuse_other(wanted, err);
		return -1;
	}
	const struct device_pool *pool = device_list_pool(m->seen, d->pool);
	if (!pool->complete)
		return err_set(err, ERR_UNAVAILABLE, "volume group %s %s", pool->name, pool->obstacle);
	*ret = d;
	return require_same(m, d, err);
}

/* Whether the kernel's device is as LVM lists the volume. @d: active */
static bool is_as_listed(const struct device *d, struct error **err)
{
	struct blockdev_info info;

	if (dm_refuse_suspended(d->path, err) < 0 || blockdev_stat(d->path, &info, err) < 0)
		return false;
	if (info.size_bytes == d->size_bytes)
		return true;
	err_set(err, ERR_UNAVAILABLE,
		"its device has %ju bytes, and LVM lists it with %ju: run \"lvm lvchange --refresh\" for it",
		(uintmax_t)info.size_bytes, (uintmax_t)d->size_bytes);
	return false;
}

/* An lvextend that was ended in the middle leaves a device that is suspended or has its old size. The kept
 * listing may be old, so that a difference counts only after a fresh one. @d: active or not */
static int require_as_listed(
	struct device_lvm *m, const struct device *wanted, const struct device **d, struct error **err)
{
	CLEANUP(error_freep) struct error *old = NULL;
	CLEANUP(error_freep) struct error *difference = NULL;

	if (!(*d)->active || is_as_listed(*d, &old))
		return 0;
	if (device_lvm_refresh(m, err) < 0 || find_to_grow(m, wanted, d, err) < 0)
		return -1;
	if (!(*d)->active || is_as_listed(*d, &difference))
		return 0;
	log_warn("the device of a volume is not as LVM lists it, so it is refreshed",
		F_STR("device", (*d)->path), F_ERR(difference));
	if (lvm_refresh(m->lvm, device_lvm_group(m, (*d)->pool), (*d)->id, err) < 0)
		return -1;
	if (is_as_listed(*d, err))
		return 0;
	err_recode(err, ERR_UNAVAILABLE);
	return -1;
}

/* @d: has the wanted size already */
static int finish_grown(struct device_lvm *m, const struct device_growth *g, const struct device *d,
	struct device **ret, struct error **err)
{
	if (require_as_listed(m, g->device, &d, err) < 0)
		return -1;
	*ret = device_dup(d);
	return 0;
}

static bool has_room(const struct device_lvm *m, const struct device *d, uint64_t size_bytes)
{
	const struct device_pool *pool = device_list_pool(m->seen, d->pool);

	uint64_t more_bytes = size_bytes - d->size_bytes;

	/* A limit of volumes does not keep one from growing. */
	if (pool->used_up && str_eq(pool->used_up, DEVICE_NO_VOLUME))
		return more_bytes <= pool->capacity.available_bytes;
	return !pool->used_up && more_bytes <= pool->capacity.max_volume_bytes;
}

static int refuse_full(
	const struct device_lvm *m, const struct device *d, uint64_t size_bytes, struct error **err)
{
	const struct device_pool *pool = device_list_pool(m->seen, d->pool);

	if (pool->used_up && !str_eq(pool->used_up, DEVICE_NO_VOLUME))
		return err_set(
			err, ERR_EXHAUSTED, "no free %s of volume group %s", pool->used_up, pool->name);
	err_set(err, ERR_EXHAUSTED, "%ju bytes more do not fit in volume group %s",
		(uintmax_t)(size_bytes - d->size_bytes), pool->name);
	return device_lvm_name_bad_space(m, d->pool, err);
}

/* The kept listing may be old: that there is no room counts only after a fresh one. */
static int require_room(struct device_lvm *m, const struct device *wanted, uint64_t size_bytes,
	const struct device **d, struct error **err)
{
	if ((*d)->size_bytes >= size_bytes ||
		(has_room(m, *d, size_bytes) && device_lvm_is_space_kept(m, (*d)->pool)))
		return 0;
	if (device_lvm_refresh(m, err) < 0 || find_to_grow(m, wanted, d, err) < 0)
		return -1;
	if ((*d)->size_bytes >= size_bytes || has_room(m, *d, size_bytes))
		return 0;
	return refuse_full(m, *d, size_bytes, err);
}

/* Finds out from a new listing whether LVM has grown the device. The answer of LVM does not decide that,
 * because its process may have ended between the change and the answer. */
static int check_grown(struct device_lvm *m, const struct device_growth *g, struct device **ret,
	struct error **failure, struct error **err)
{
	const struct device *d = NULL;

	if (device_lvm_refresh(m, err) < 0 || find_to_grow(m, g->device, &d, err) < 0)
		return -1;
	if (d->size_bytes >= g->size_bytes)
		return finish_grown(m, g, d, ret, err);
	/* also what has the old size may be suspended */
	if (require_as_listed(m, g->device, &d, err) < 0)
		return -1;
	if (!*failure)
		return err_set(err, ERR_INTERNAL,
			"lvextend did not report a failure, but LVM lists the volume with %ju bytes instead of %ju: "
			"see whether another program has reduced it; the growth can be tried again",
			(uintmax_t)d->size_bytes, (uintmax_t)g->size_bytes);
	if ((*failure)->code == ERR_INTERNAL && !has_room(m, d, g->size_bytes))
		return refuse_full(m, d, g->size_bytes, err);
	*err = TAKE_PTR(*failure);
	return -1;
}

/* Notes the new size without a new listing if the device node has the expected size: a listing would take as
 * long as the command itself. */
static int note_grown(
	struct device_lvm *m, const struct device_growth *g, struct device **ret, struct error **err)
{
	CLEANUP(device_freep)
	struct device *old = device_dup(device_lvm_find(m, g->device->pool, g->device->id));
	CLEANUP(error_freep) struct error *none = NULL;
	struct blockdev_info info;

	if (require_same(m, old, err) < 0)
		return -1;
	if (!old->active || blockdev_stat(old->path, &info, &none) < 0 || info.size_bytes != g->size_bytes)
		return check_grown(m, g, ret, &(struct error *){NULL}, err);
	struct device *d = device_dup(old);
	d->size_bytes = info.size_bytes;
	device_list_note(m->seen, old, /* exists= */ false);
	device_list_note(m->seen, d, /* exists= */ true);
	*ret = d;
	return 0;
}

/* Grows the device in one step, without zeroing the new part. */
static int extend_at_once(
	struct device_lvm *m, const struct device_growth *g, struct device **ret, struct error **err)
{
	CLEANUP(error_freep) struct error *failure = NULL;
	const struct device *d = NULL;

	if (find_to_grow(m, g->device, &d, err) < 0 || require_room(m, g->device, g->size_bytes, &d, err) < 0)
		return -1;
	if (d->size_bytes >= g->size_bytes)
		return finish_grown(m, g, d, ret, err);
	if (lvm_extend(m->lvm, device_lvm_group(m, d->pool), d->id, g->size_bytes, &failure) < 0)
		return check_grown(m, g, ret, &failure, err);
	return note_grown(m, g, ret, err);
}

static void note_spare(struct device_lvm *m, const char *name)
{
	pthread_mutex_lock(&m->mutex);
	strv_add(&m->spares, name);
	pthread_mutex_unlock(&m->mutex);
}

static void forget_spare(struct device_lvm *m, const char *name)
{
	char **rest = NULL;

	pthread_mutex_lock(&m->mutex);
	for (char **spare = m->spares; spare && *spare; spare++) {
		if (!str_eq(*spare, name))
			strv_add(&rest, *spare);
	}
	strv_free(m->spares);
	m->spares = rest;
	pthread_mutex_unlock(&m->mutex);
}

static bool is_used(struct device_lvm *m, const char *spare)
{
	pthread_mutex_lock(&m->mutex);
	bool is = strv_contains(m->spares, spare);
	pthread_mutex_unlock(&m->mutex);
	return is;
}

/* The state of the group decides the code, not LVM's messages: another program may have taken the space. */
static int explain_no_spare(struct device_lvm *m, const struct device_growth *g, struct error **err)
{
	CLEANUP(error_freep) struct error *ignored = NULL;
	const struct device *d = NULL;

	if ((*err)->code != ERR_INTERNAL || device_lvm_refresh(m, &ignored) < 0 ||
		find_to_grow(m, g->device, &d, &ignored) < 0 || d->size_bytes >= g->size_bytes ||
		has_room(m, d, g->size_bytes))
		return -1;
	error_clear(err);
	return refuse_full(m, d, g->size_bytes, err);
}

/* @ret: the device, if it is already that large; NULL: @spare was made */
static int make_spare(struct device_lvm *m, const struct device_growth *g, struct lvm_spare *spare,
	struct device **ret, struct error **err)
{
	CLEANUP(bounded_lock_releasep) struct bounded_lock *lock = NULL;
	const struct device *d = NULL;

	if (bounded_lock_take(&m->lock, "grow a device", DEVICE_LVM_WAIT_MS, &lock, err) < 0)
		return -1;
	if (find_to_grow(m, g->device, &d, err) < 0 || require_room(m, g->device, g->size_bytes, &d, err) < 0)
		return -1;
	if (d->size_bytes >= g->size_bytes)
		return finish_grown(m, g, d, ret, err);
	const struct lvm_vg *vg = device_lvm_group(m, d->pool);
	if (lvm_spare_make(m->lvm, vg, d->id, g->size_bytes - d->size_bytes, spare, err) < 0)
		return explain_no_spare(m, g, err);
	note_spare(m, spare->name);
	/* the group has less space now, for all that is created meanwhile */
	return device_lvm_refresh(m, err);
}

static bool is_listed(const struct device_lvm *m, const char *pool, const char *spare)
{
	for (size_t i = 0; i < m->report->n_lvs; i++) {
		const struct lvm_lv *lv = &m->report->lvs[i];

		if (str_eq(lv->name, spare) && str_eq(lv->vg_uuid, pool) && lvm_is_spare(lv))
			return true;
	}
	return false;
}

/* Under one lock, so that nothing of ours takes the extents in between. */
static int swap_spare(struct device_lvm *m, const struct device_growth *g, const struct lvm_spare *spare,
	struct device **ret, struct error **err)
{
	CLEANUP(error_freep) struct error *failure = NULL;
	const struct device *d = NULL;

	if (device_lvm_refresh(m, err) < 0 || find_to_grow(m, g->device, &d, err) < 0)
		return -1;
	if (!is_listed(m, d->pool, spare->name) || d->size_bytes + spare->size_bytes != g->size_bytes)
		return err_set(err, ERR_UNAVAILABLE,
			"its volume group was changed by another program while its new space was zeroed");
	const struct lvm_vg *vg = device_lvm_group(m, d->pool);
	if (dm_wait_unused(spare->path, err) < 0 || lvm_spare_remove(m->lvm, vg, spare->name, err) < 0)
		return -1;
	if (lvm_extend_onto(m->lvm, vg, d->id, spare, &failure) < 0)
		return check_grown(m, g, ret, &failure, err);
	return check_grown(m, g, ret, &(struct error *){NULL}, err);
}

/* So that nothing stays of a growth that has failed; if that fails, too, the next start removes it. */
static void drop_spare(struct device_lvm *m, const char *pool, const char *name)
{
	CLEANUP(error_freep) struct error *err = NULL;

	if (device_lvm_refresh(m, &err) == 0 && is_listed(m, pool, name) &&
		lvm_spare_remove(m->lvm, device_lvm_group(m, pool), name, &err) == 0)
		(void)!device_lvm_refresh(m, &err);
	if (err)
		log_warn("what a failed growth left in a volume group could not be removed yet",
			F_STR("name", name), F_ERR(err));
}

static int extend_zeroed(
	struct device_lvm *m, const struct device_growth *g, struct device **ret, struct error **err)
{
	CLEANUP(lvm_spare_done) struct lvm_spare spare = {0};
	CLEANUP(bounded_lock_releasep) struct bounded_lock *lock = NULL;
	CLEANUP(error_freep) struct error *ignored = NULL;
	struct device *d = NULL;

	int rc = make_spare(m, g, &spare, &d, err);
	if (d) {
		*ret = d;
		return 0;
	}
	if (rc == 0)
		rc = blockdev_wait(spare.path, DEVICE_LVM_WAIT_MS, err);
	if (rc == 0)
		rc = g->zero(g->user, spare.path, spare.size_bytes, err);
	if (!spare.name)
		return rc;
	bool locked = bounded_lock_take(&m->lock, "grow a device", DEVICE_LVM_WAIT_MS, &lock,
			      rc == 0 ? err : &ignored) == 0;
	forget_spare(m, spare.name);
	if (!locked)
		return -1;
	if (rc == 0)
		rc = swap_spare(m, g, &spare, ret, err);
	if (rc < 0)
		drop_spare(m, g->device->pool, spare.name);
	return rc;
}

int device_lvm_grow(void *self, const struct device_growth *g, struct device **ret, struct error **err)
{
	struct device_lvm *m = self;
	CLEANUP(bounded_lock_releasep) struct bounded_lock *lock = NULL;

	if (g->zero) {
		if (extend_zeroed(m, g, ret, err) < 0)
			return err_wrap(err, "grow device %s", g->device->id);
		return 0;
	}
	if (bounded_lock_take(&m->lock, "grow a device", DEVICE_LVM_WAIT_MS, &lock, err) < 0 ||
		extend_at_once(m, g, ret, err) < 0)
		return err_wrap(err, "grow device %s", g->device->id);
	return 0;
}

/* Return: the first spare of the last listing that no growth of this process uses, or NULL. */
static const struct lvm_lv *next_leftover(struct device_lvm *m)
{
	for (size_t i = 0; m->report && i < m->report->n_lvs; i++) {
		const struct lvm_lv *lv = &m->report->lvs[i];
		const struct lvm_vg *vg = device_lvm_group(m, lv->vg_uuid);

		if (lvm_is_spare(lv) && !is_used(m, lv->name) && vg && !lvm_vg_is_withheld(vg) &&
			vg->missing_pvs == 0)
			return lv;
	}
	return NULL;
}

int device_lvm_remove_leftovers(void *self, bool *ret_changed, struct error **err)
{
	struct device_lvm *m = self;
	CLEANUP(bounded_lock_releasep) struct bounded_lock *lock = NULL;
	const struct lvm_lv *lv;

	if (bounded_lock_take(&m->lock, "remove leftovers", DEVICE_LVM_WAIT_MS, &lock, err) < 0)
		return -1;
	while ((lv = next_leftover(m))) {
		CLEANUP(free_charp) char *name = x_strdup(lv->name);
		CLEANUP(free_charp) char *pool = x_strdup(lv->vg_uuid);

		if (dm_wait_unused(lv->path, err) < 0 ||
			lvm_spare_remove(m->lvm, device_lvm_group(m, pool), name, err) < 0 ||
			device_lvm_refresh(m, err) < 0)
			return -1;
		if (is_listed(m, pool, name))
			return err_set(
				err, ERR_INTERNAL, "logical volume %s still exists after its removal", name);
		log_info("what an unfinished growth left was removed", F_STR("name", name));
		*ret_changed = true;
	}
	return 0;
}
