/* SPDX-License-Identifier: Apache-2.0 */
/* What devices exist: listing, and what is remembered of it. */
#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "os/blockdev.h"
#include "volume/volumes_private.h"

#define NODE_WAIT_MS 5000
#define RELIST_TRIES 8
/* A listing can hang in the kernel. */
#define RELIST_WAIT_MS 20000

/* What was seen when. */
struct moment {
	uint64_t changes;
	uint64_t listings;
};

static struct moment now(struct volumes *v)
{
	pthread_mutex_lock(&v->shared.mutex);
	struct moment m = {v->changes, v->listings};
	pthread_mutex_unlock(&v->shared.mutex);
	return m;
}

/* Uses @list if no device was created or destroyed since then. */
static bool use_list(struct volumes *v, struct device_list **list, struct moment since)
{
	CLEANUP(device_list_freep) struct device_list *old = NULL;

	pthread_mutex_lock(&v->shared.mutex);
	bool current = v->changes == since.changes;
	if (current) {
		old = v->seen;
		v->seen = TAKE_PTR(*list);
		v->listings++;
		strv_free(TAKE_PTR(v->in_doubt));
	}
	pthread_mutex_unlock(&v->shared.mutex);
	if (current)
		volumes_changed(&v->shared);
	return current;
}

static int relist_in_turn(struct volumes *v, struct error **err)
{
	for (unsigned tries = 0; tries < RELIST_TRIES; tries++) {
		CLEANUP(device_list_freep) struct device_list *list = NULL;
		struct moment since = now(v);

		if (device_list_read(v->devices, &list, err) < 0)
			return err_wrap(err, "list devices");
		if (use_list(v, &list, since))
			return 0;
	}
	return err_set(err, ERR_UNAVAILABLE, "devices change faster than they can be listed");
}

int volumes_relist(struct volumes *v, struct error **err)
{
	CLEANUP(turn_endp) struct turn *turn = NULL;

	if (turn_take(&v->relisting, "list devices", RELIST_WAIT_MS, &turn, err) < 0)
		return -1;
	return relist_in_turn(v, err);
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
	}
}

/* Uses @pools if no device was created or destroyed since then, and nothing else was used, which may be
 * newer. */
static bool use_pools(struct volumes *v, const struct device_list *pools, struct moment since,
	const struct device *d, bool exists)
{
	pthread_mutex_lock(&v->shared.mutex);
	bool current = v->changes == since.changes && v->listings == since.listings;
	if (current) {
		device_list_note(v->seen, d, exists);
		use_figures(v->seen, pools);
		v->listings++;
	}
	pthread_mutex_unlock(&v->shared.mutex);
	return current;
}

/* What is computed of pools is not exact where devices take more than their size; there the manager has
 * looked. Return: whether that is known. */
static bool note_with_pools(struct volumes *v, const struct device *d, bool exists)
{
	for (unsigned tries = 0; tries < RELIST_TRIES; tries++) {
		struct moment since = now(v);
		CLEANUP(device_list_freep) struct device_list *pools = device_latest_pools(v->devices);

		if (!pools)
			return false;
		if (use_pools(v, pools, since, d, exists))
			return true;
	}
	return false;
}

static void note_alone(struct volumes *v, const struct device *d, bool exists)
{
	pthread_mutex_lock(&v->shared.mutex);
	device_list_note(v->seen, d, exists);
	pthread_mutex_unlock(&v->shared.mutex);
}

static void show_change(struct volumes *v, const struct device *d, bool exists)
{
	CLEANUP(error_freep) struct error *err = NULL;

	if (!note_with_pools(v, d, exists)) {
		if (v->devices->ops->latest_pools && volumes_relist(v, &err) == 0)
			return;
		note_alone(v, d, exists);
	}
	volumes_changed(&v->shared);
	if (err)
		log_debug("listing after a change failed, ignoring", F_ERR(err));
}

void volumes_note(struct volumes *v, const struct device *d, bool exists)
{
	pthread_mutex_lock(&v->shared.mutex);
	v->changes++;
	pthread_mutex_unlock(&v->shared.mutex);
	show_change(v, d, exists);
}

/* What is seen now of the device of @id says nothing for sure any more. Of others it does: they are not to
 * wait for a listing, which may hang for the same reason. */
static void doubt(struct volumes *v, const char *id)
{
	pthread_mutex_lock(&v->shared.mutex);
	if (!strv_contains(v->in_doubt, id))
		strv_add(&v->in_doubt, id);
	v->changes++;
	pthread_mutex_unlock(&v->shared.mutex);
}

int volumes_destroy_device(struct volumes *v, const struct device *d, int exclusive_fd, struct error **err)
{
	volumes_set_step(v, d->id, "removing its device");
	if (device_destroy(v->devices, d, exclusive_fd, err) == 0) {
		volumes_note(v, d, /* exists= */ false);
		return 0;
	}
	doubt(v, d->id);
	return -1;
}

static bool is_in_doubt(struct volumes *v, const char *id)
{
	pthread_mutex_lock(&v->shared.mutex);
	bool in_doubt = strv_contains(v->in_doubt, id);
	pthread_mutex_unlock(&v->shared.mutex);
	return in_doubt;
}

/* @ret_device: a copy if present, else NULL */
static enum presence look_up(struct volumes *v, const struct volume_record *r, struct device **ret_device)
{
	const struct device *d = NULL;

	pthread_mutex_lock(&v->shared.mutex);
	enum presence presence = presence_of(v->seen, r, &d);
	*ret_device = presence == DEVICE_PRESENT ? device_dup(d) : NULL;
	pthread_mutex_unlock(&v->shared.mutex);
	return presence;
}

struct device *volumes_seen_device(struct volumes *v, const struct volume_record *r)
{
	const struct device *d;

	pthread_mutex_lock(&v->shared.mutex);
	bool present = v->seen && presence_of(v->seen, r, &d) == DEVICE_PRESENT;
	struct device *copy = present ? device_dup(d) : NULL;
	pthread_mutex_unlock(&v->shared.mutex);
	return copy;
}

struct device *volumes_seen_stranger(struct volumes *v, const char *id)
{
	pthread_mutex_lock(&v->shared.mutex);
	const struct device *d = v->seen ? device_list_find(v->seen, id) : NULL;
	bool is_only = d && (d + 1 == v->seen->devices + v->seen->n_devices || !str_eq(d[1].id, id));
	struct device *copy = is_only ? device_dup(d) : NULL;
	pthread_mutex_unlock(&v->shared.mutex);
	return copy;
}

static int look_again(struct volumes *v, const struct volume_record *r, struct device **d,
	enum presence *presence, struct error **err)
{
	volumes_set_step(v, r->id, "listing devices");
	if (volumes_relist(v, err) < 0) {
		err_recode(err, ERR_UNAVAILABLE);
		return err_wrap(err, "volume %s", r->id);
	}
	device_free(TAKE_PTR(*d));
	*presence = look_up(v, r, d);
	return 0;
}

int volumes_find_device(struct volumes *v, const struct volume_record *r, struct device **ret_device,
	enum presence *ret, struct error **err)
{
	CLEANUP(device_freep) struct device *d = NULL;
	enum presence presence = look_up(v, r, &d);

	if ((presence != DEVICE_PRESENT || is_in_doubt(v, r->id)) && look_again(v, r, &d, &presence, err) < 0)
		return -1;
	*ret_device = TAKE_PTR(d);
	*ret = presence;
	return 0;
}

int volumes_confirm_path(
	struct volumes *v, const struct volume_record *r, const struct device *d, struct error **err)
{
	if (device_confirm(v->devices, d, err) == 0)
		return 0;
	doubt(v, r->id);
	err_recode(err, ERR_UNAVAILABLE);
	return err_wrap(err, "volume %s", r->id);
}

static bool has_record(struct volumes *v, const struct device_list *list, const struct device *d)
{
	CLEANUP(volume_record_freep) struct volume_record *r = records_find(v->records, d->id);
	const struct device *own;

	return r && presence_of(list, r, &own) == DEVICE_PRESENT && own == d;
}

int volumes_activate_own(struct volumes *v, const struct device_list *list, struct error **err)
{
	struct device_list own = {
		.devices = x_calloc(list->n_devices, sizeof(*own.devices)),
		.pools = list->pools,
		.n_pools = list->n_pools,
	};

	for (size_t i = 0; i < list->n_devices; i++)
		if (has_record(v, list, &list->devices[i]))
			own.devices[own.n_devices++] = list->devices[i];
	int rc = device_activate(v->devices, &own, err);
	free(own.devices);
	return rc;
}

static int make_active(
	struct volumes *v, const struct volume_record *r, struct device **device, struct error **err)
{
	CLEANUP(device_list_freep) struct device_list *list = NULL;
	CLEANUP(error_freep) struct error *activation = NULL;

	if (device_list_read(v->devices, &list, err) < 0)
		return -1;
	bool all = volumes_activate_own(v, list, &activation) == 0;
	if (volumes_relist(v, err) < 0)
		return -1;
	device_free(TAKE_PTR(*device));
	if (look_up(v, r, device) != DEVICE_PRESENT)
		return err_set(err, ERR_UNAVAILABLE, "its device is gone since it was listed");
	if (!(*device)->active)
		return err_set(err, ERR_UNAVAILABLE, "its device could not be activated (%s)",
			all ? "no reason given" : activation->msg);
	return 0;
}

static int refuse_absent(const struct volume_record *r, enum presence presence, struct error **err)
{
	if (presence == DEVICE_FOREIGN)
		return err_set(err, ERR_PRECONDITION,
			"the device of volume %s does not bear the identity that was recorded; see "
			"pmem-csi-driver check -repair %s",
			r->id, r->id);
	return err_set(err, ERR_UNAVAILABLE, "volume %s is missing: %s", r->id,
		presence == DEVICE_GONE
			? "its pool has no such device"
			: "its pool is absent or incomplete, or several devices bear its name");
}

/* Somebody deactivated, renamed or removed it since it was seen. To wait for a node is for devices that we
 * make. */
static bool has_vanished(const struct device *d)
{
	struct stat st;

	return d->active && d->path && stat(d->path, &st) < 0 && errno == ENOENT;
}

int volumes_require_device(
	struct volumes *v, const struct volume_record *r, struct device **ret, struct error **err)
{
	CLEANUP(device_freep) struct device *d = NULL;
	enum presence presence;

	if (volumes_find_device(v, r, &d, &presence, err) < 0)
		return -1;
	if (d && has_vanished(d) && look_again(v, r, &d, &presence, err) < 0)
		return -1;
	if (!d)
		return refuse_absent(r, presence, err);
	if (!d->active)
		volumes_set_step(v, r->id, "activating its device");
	if (!d->active && make_active(v, r, &d, err) < 0)
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

int volumes_require_content(
	struct volumes *v, const struct volume_record *r, struct device **ret, struct error **err)
{
	CLEANUP(device_freep) struct device *d = NULL;

	if (volumes_require_device(v, r, &d, err) < 0)
		return -1;
	if (d->raw)
		return err_set(err, ERR_PRECONDITION,
			"volume %s: its namespace has lost its mode, so that its content is not where it was",
			r->id);
	*ret = TAKE_PTR(d);
	return 0;
}
