/* SPDX-License-Identifier: Apache-2.0 */
#include "volume/device_view.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "os/blockdev.h"
#include "os/blockdev_mounts.h"
#include "pmem/bounded_lock.h"
#include "volume/failing_pools.h"

#define NODE_WAIT_MS 5000
#define RELIST_TRIES 8
/* A listing can hang in the kernel. */
#define RELIST_WAIT_MS 20000

struct device_view {
	struct volumes_shared *shared;
	struct records *records;
	struct device_manager *devices;
	struct volume_locks *locks;
	struct bounded_lock
		relisting; /* one listing at a time, so that an older one never replaces a newer one */
	/* guarded by the mutex: */
	struct device_list *seen; /* last listing, kept up to date; NULL before the first */
	uint64_t changes;  /* devices that we created or destroyed: a listing that overlaps one is not used */
	uint64_t listings; /* that were used in `seen`, of pools alone too */
	char **in_doubt;   /* ids whose removal failed, and may have been done, or whose device's path was
			    * another's, until the next new listing: strv */
	struct failing_pools *failing;
};

struct device_view *device_view_new(struct volumes_shared *shared, struct records *records,
	struct device_manager *devices, struct volume_locks *locks)
{
	struct device_view *s = x_calloc(1, sizeof(*s));

	*s = (struct device_view){.shared = shared,
		.records = records,
		.devices = devices,
		.locks = locks,
		.failing = failing_pools_new()};
	bounded_lock_init(&s->relisting);
	return s;
}

void device_view_free(struct device_view *s)
{
	if (!s)
		return;
	device_list_free(s->seen);
	strv_free(s->in_doubt);
	failing_pools_free(s->failing);
	bounded_lock_done(&s->relisting);
	free(s);
}

const struct device_list *device_view_list(const struct device_view *s)
{
	return s->seen;
}

struct failing_pools *device_view_failing_pools(const struct device_view *s)
{
	return s->failing;
}

/* Counters of changes and listings, by which a caller finds out whether there was one after a moment. */
struct moment {
	uint64_t changes;
	uint64_t listings;
};

static struct moment now(struct device_view *s)
{
	pthread_mutex_lock(&s->shared->mutex);
	struct moment m = {s->changes, s->listings};
	pthread_mutex_unlock(&s->shared->mutex);
	return m;
}

/* Uses @list if no device was created or destroyed since then. */
static bool use_list(struct device_view *s, struct device_list **list, struct moment since)
{
	CLEANUP(device_list_freep) struct device_list *old = NULL;

	pthread_mutex_lock(&s->shared->mutex);
	bool current = s->changes == since.changes;
	if (current) {
		old = s->seen;
		s->seen = TAKE_PTR(*list);
		s->listings++;
		strv_free(TAKE_PTR(s->in_doubt));
	}
	pthread_mutex_unlock(&s->shared->mutex);
	if (current)
		volumes_changed(s->shared);
	return current;
}

int device_view_relist(struct device_view *s, struct error **err)
{
	CLEANUP(bounded_lock_releasep) struct bounded_lock *lock = NULL;

	if (bounded_lock_take(&s->relisting, "list devices", RELIST_WAIT_MS, &lock, err) < 0)
		return -1;
	for (unsigned tries = 0; tries < RELIST_TRIES; tries++) {
		CLEANUP(device_list_freep) struct device_list *list = NULL;
		struct moment since = now(s);

		if (device_list_read(s->devices, &list, err) < 0)
			return err_wrap(err, "list devices");
		if (use_list(s, &list, since))
			return 0;
	}
	return err_set(err, ERR_UNAVAILABLE, "devices change faster than they can be listed");
}

/* A pool that was incomplete when its devices were listed stays so until they are listed again: those that
 * were not seen then would else count as gone. */
static void use_figures(struct device_list *seen, const struct device_list *pools)
{
	for (size_t i = 0; i < seen->n_pools; i++) {
		struct device_pool *p = &seen->pools[i];
		const struct device_pool *latest = device_list_pool(pools, p->uuid);
		struct device_pool was = *p;

		if (!latest || !p->complete)
			continue;
		*p = *latest;
		p->uuid = was.uuid;
		p->name = was.name;
		p->region = was.region;
	}
}

/* Uses @pools if no device was created or destroyed since then, and nothing else was used, which may be
 * newer. */
static bool use_pools(struct device_view *s, const struct device_list *pools, struct moment since,
	const struct device *d, bool exists)
{
	pthread_mutex_lock(&s->shared->mutex);
	bool current = s->changes == since.changes && s->listings == since.listings;
	if (current) {
		device_list_note(s->seen, d, exists);
		use_figures(s->seen, pools);
		s->listings++;
	}
	pthread_mutex_unlock(&s->shared->mutex);
	return current;
}

/* Notes the change, and takes the capacities of the pools as the device manager saw them last, which includes
 * the change: computed capacities are not exact if devices take more than their size. Return: false: the
 * manager does not know them. */
static bool note_with_pools(struct device_view *s, const struct device *d, bool exists)
{
	for (unsigned tries = 0; tries < RELIST_TRIES; tries++) {
		struct moment since = now(s);
		CLEANUP(device_list_freep) struct device_list *pools = device_latest_pools(s->devices);

		if (!pools)
			return false;
		if (use_pools(s, pools, since, d, exists))
			return true;
	}
	return false;
}

void device_view_apply_change(struct device_view *s, const struct device *d, bool exists)
{
	CLEANUP(error_freep) struct error *err = NULL;

	pthread_mutex_lock(&s->shared->mutex);
	s->changes++;
	pthread_mutex_unlock(&s->shared->mutex);
	if (!note_with_pools(s, d, exists)) {
		if (s->devices->ops->latest_pools && device_view_relist(s, &err) == 0)
			return;
		pthread_mutex_lock(&s->shared->mutex);
		device_list_note(s->seen, d, exists);
		pthread_mutex_unlock(&s->shared->mutex);
	}
	volumes_changed(s->shared);
	if (err)
		log_debug("listing after a change failed, ignoring", F_ERR(err));
}

/* The device as it was listed; borrowed. The caller has the mutex. */
static const struct device *find_listed(const struct device_view *s, const struct device *d)
{
	const struct device *end = s->seen->devices + s->seen->n_devices;

	for (const struct device *l = device_list_find(s->seen, d->id); l && l < end && str_eq(l->id, d->id);
		l++) {
		if (str_eq(l->identity, d->identity) && str_eq(l->pool, d->pool))
			return l;
	}
	return NULL;
}

void device_view_apply_growth(struct device_view *s, const struct device *d)
{
	pthread_mutex_lock(&s->shared->mutex);
	const struct device *listed = find_listed(s, d);
	CLEANUP(device_freep) struct device *was = listed ? device_dup(listed) : NULL;
	if (was)
		device_list_note(s->seen, was, /* exists= */ false);
	device_list_note(s->seen, d, /* exists= */ true);
	pthread_mutex_unlock(&s->shared->mutex);
	device_view_apply_change(s, d, /* exists= */ true);
}

/* Marks the last listing as uncertain for the device of @id alone. Other devices must not wait for a new
 * listing, which may hang for the same reason. */
static void doubt(struct device_view *s, const char *id)
{
	pthread_mutex_lock(&s->shared->mutex);
	if (!strv_contains(s->in_doubt, id))
		strv_add(&s->in_doubt, id);
	s->changes++;
	pthread_mutex_unlock(&s->shared->mutex);
}

int device_view_destroy_device(
	struct device_view *s, const struct device *d, int exclusive_fd, struct error **err)
{
	volume_lock_set_step(s->locks, d->id, "removing its device");
	if (device_destroy(s->devices, d, exclusive_fd, err) == 0) {
		device_view_apply_change(s, d, /* exists= */ false);
		return 0;
	}
	doubt(s, d->id);
	return -1;
}

bool device_view_is_missing(const struct device_view *s, const struct volume_record *r)
{
	const struct device *ignored;

	return !s->seen || presence_of(s->seen, r, &ignored) != DEVICE_PRESENT;
}

enum volume_phase device_view_phase(const struct device_view *s, const struct volume_record *r)
{
	return r->phase == PHASE_READY && device_view_is_missing(s, r) ? PHASE_MISSING : r->phase;
}

/* @ret_device: a copy if present, else NULL; @ret_sure: present, and not in doubt */
static enum presence look_up(
	struct device_view *s, const struct volume_record *r, struct device **ret_device, bool *ret_sure)
{
	const struct device *d = NULL;

	pthread_mutex_lock(&s->shared->mutex);
	enum presence presence = s->seen ? presence_of(s->seen, r, &d) : DEVICE_MISSING;
	*ret_device = presence == DEVICE_PRESENT ? device_dup(d) : NULL;
	*ret_sure = presence == DEVICE_PRESENT && !strv_contains(s->in_doubt, r->id);
	pthread_mutex_unlock(&s->shared->mutex);
	return presence;
}

struct device *device_view_seen_device(struct device_view *s, const struct volume_record *r)
{
	struct device *d;
	bool ignored;

	(void)look_up(s, r, &d, &ignored);
	return d;
}

struct device *device_view_seen_as(struct device_view *s, const char *id)
{
	pthread_mutex_lock(&s->shared->mutex);
	const struct device *d = s->seen ? device_list_find(s->seen, id) : NULL;
	bool is_only = d && (d + 1 == s->seen->devices + s->seen->n_devices || !str_eq(d[1].id, id));
	struct device *copy = is_only ? device_dup(d) : NULL;
	pthread_mutex_unlock(&s->shared->mutex);
	return copy;
}

static int look_again(struct device_view *s, const struct volume_record *r, struct device **d,
	enum presence *presence, struct error **err)
{
	bool ignored;

	volume_lock_set_step(s->locks, r->id, "listing devices");
	if (device_view_relist(s, err) < 0) {
		err_recode(err, ERR_UNAVAILABLE);
		return err_wrap(err, "volume %s", r->id);
	}
	device_free(TAKE_PTR(*d));
	*presence = look_up(s, r, d, &ignored);
	return 0;
}

int device_view_find_device(struct device_view *s, const struct volume_record *r, struct device **ret_device,
	enum presence *ret, struct error **err)
{
	CLEANUP(device_freep) struct device *d = NULL;
	bool sure;
	enum presence presence = look_up(s, r, &d, &sure);

	if (!sure && look_again(s, r, &d, &presence, err) < 0)
		return -1;
	*ret_device = TAKE_PTR(d);
	*ret = presence;
	return 0;
}

int device_view_confirm_path(
	struct device_view *s, const struct volume_record *r, const struct device *d, struct error **err)
{
	if (device_confirm(s->devices, d, err) == 0)
		return 0;
	doubt(s, r->id);
	err_recode(err, ERR_UNAVAILABLE);
	return err_wrap(err, "volume %s", r->id);
}

/* Nothing but we activates devices where no udev rule does it. Others of the same form are left as they are:
 * any program can choose names of namespaces. */
static int activate_own(struct device_view *s, const struct device_list *list, struct error **err)
{
	struct device_list own = {
		.devices = x_calloc(list->n_devices, sizeof(*own.devices)),
		.pools = list->pools,
		.n_pools = list->n_pools,
	};

	for (size_t i = 0; i < list->n_devices; i++) {
		const struct device *d = &list->devices[i], *present;
		CLEANUP(volume_record_freep) struct volume_record *r = records_find(s->records, d->id);

		if (r && presence_of(list, r, &present) == DEVICE_PRESENT && present == d)
			own.devices[own.n_devices++] = *d;
	}
	int rc = device_activate(s->devices, &own, err);
	free(own.devices);
	return rc;
}

static bool all_active(const struct device_list *l)
{
	for (size_t i = 0; i < l->n_devices; i++) {
		if (!l->devices[i].active)
			return false;
	}
	return true;
}

int device_view_begin(struct device_view *s, bool activate, struct error **err)
{
	CLEANUP(device_list_freep) struct device_list *list = NULL;
	CLEANUP(error_freep) struct error *ignored = NULL;

	if (device_list_read(s->devices, &list, err) < 0)
		return err_wrap(err, "list devices");
	if (activate && !all_active(list)) {
		/* one device that cannot be activated must not keep all others away */
		if (activate_own(s, list, &ignored) < 0)
			log_warn("not all devices are active, will be tried again when they are used",
				F_ERR(ignored));
		device_list_free(TAKE_PTR(list));
		if (device_list_read(s->devices, &list, err) < 0)
			return err_wrap(err, "list devices");
	}
	pthread_mutex_lock(&s->shared->mutex);
	device_list_free(s->seen);
	s->seen = TAKE_PTR(list);
	pthread_mutex_unlock(&s->shared->mutex);
	volumes_changed(s->shared);
	return 0;
}

static int make_active(
	struct device_view *s, const struct volume_record *r, struct device **device, struct error **err)
{
	CLEANUP(device_list_freep) struct device_list *list = NULL;
	CLEANUP(error_freep) struct error *activation = NULL;

	if (device_list_read(s->devices, &list, err) < 0)
		return -1;
	bool all = activate_own(s, list, &activation) == 0;
	if (device_view_relist(s, err) < 0)
		return -1;
	device_free(TAKE_PTR(*device));
	*device = device_view_seen_device(s, r);
	if (!*device)
		return err_set(err, ERR_UNAVAILABLE, "its device has disappeared since it was listed");
	if (!(*device)->active)
		return err_set(err, ERR_UNAVAILABLE, "its device could not be activated (%s)",
			all ? "no reason given" : activation->msg);
	return 0;
}

static int refuse_absent(const struct volume_record *r, enum presence presence, struct error **err)
{
	if (presence == DEVICE_FOREIGN)
		return err_set(err, ERR_PRECONDITION,
			"the device of volume %s does not have the recorded identity; see "
			"pmem-csi-driver check -repair %s",
			r->id, r->id);
	return err_set(err, ERR_UNAVAILABLE, "volume %s is missing: %s", r->id,
		presence == DEVICE_GONE
			? "its pool has no such device"
			: "its pool is absent or incomplete, or several devices have its name");
}

/* It was deactivated, renamed or removed since it was seen. To wait for a node is for devices that we
 * make. */
static bool has_vanished(const struct device *d)
{
	struct stat st;

	return d->active && d->path && stat(d->path, &st) < 0 && errno == ENOENT;
}

int device_view_require_device(
	struct device_view *s, const struct volume_record *r, struct device **ret, struct error **err)
{
	CLEANUP(device_freep) struct device *d = NULL;
	enum presence presence;

	if (device_view_find_device(s, r, &d, &presence, err) < 0)
		return -1;
	if (d && has_vanished(d) && look_again(s, r, &d, &presence, err) < 0)
		return -1;
	if (!d)
		return refuse_absent(r, presence, err);
	if (!d->active)
		volume_lock_set_step(s->locks, r->id, "activating its device");
	if (!d->active && make_active(s, r, &d, err) < 0)
		return err_wrap(err, "volume %s", r->id);
	if (d->path && dm_refuse_suspended(d->path, err) < 0)
		return err_wrap(err, "volume %s", r->id);
	if (d->path && blockdev_wait(d->path, NODE_WAIT_MS, err) < 0) {
		err_recode(err, ERR_UNAVAILABLE);
		return err_wrap(err, "volume %s", r->id);
	}
	*ret = TAKE_PTR(d);
	return 0;
}

int device_view_require_content(
	struct device_view *s, const struct volume_record *r, struct device **ret, struct error **err)
{
	CLEANUP(device_freep) struct device *d = NULL;

	if (device_view_require_device(s, r, &d, err) < 0)
		return -1;
	if (d->raw)
		return err_set(err, ERR_PRECONDITION,
			"volume %s: its namespace is now in raw mode, so its data cannot be accessed at the "
			"expected offset; delete the volume and restore its data from a backup",
			r->id);
	*ret = TAKE_PTR(d);
	return 0;
}

static int refuse_in_use(const struct volume_record *r, const struct device *d, struct error **err)
{
	CLEANUP(mount_table_freep) struct mount_table *table = NULL;
	struct blockdev_info info;

	if (blockdev_stat(d->path, &info, err) < 0)
		return err_wrap(err, "volume %s", r->id);
	if (mount_table_read(&table, err) < 0)
		return -1;
	const struct mount_entry *use = blockdev_mount_find(table, info.dev);
	if (use)
		return err_set(
			err, ERR_PRECONDITION, "volume %s is in use: mounted at %s", r->id, use->target);
	if (dm_wait_unused(d->path, err) < 0 || dm_refuse_shared(info.dev, err) < 0)
		return err_wrap(err, "volume %s", r->id);
	return 0;
}

int device_view_claim_device(struct device_view *s, const struct volume_record *r, const struct device *d,
	int *ret_fd, struct error **err)
{
	CLEANUP(fd_closep) int fd = -1;

	if (refuse_in_use(r, d, err) < 0)
		return -1;
	if (blockdev_open_exclusive(d->path, &fd, err) < 0)
		return err_wrap(
			err, "volume %s%s", r->id, (*err)->code == ERR_PRECONDITION ? " is in use" : "");
	if (device_view_confirm_path(s, r, d, err) < 0)
		return -1;
	*ret_fd = TAKE_FD(fd);
	return 0;
}
