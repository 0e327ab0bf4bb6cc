/* What devices exist: listing, what is remembered of it, and the start-up that compares it with the state. */
#include <stdlib.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "os/blockdev.h"
#include "volume/volumes_private.h"

#define NODE_WAIT_MS 5000
#define RELIST_TRIES 8

/* What was seen when. */
struct moment {
	uint64_t changes;
	uint64_t listings;
};

static struct moment now(struct volumes *v)
{
	pthread_mutex_lock(&v->mutex);
	struct moment m = {v->changes, v->listings};
	pthread_mutex_unlock(&v->mutex);
	return m;
}

/* Uses @list if no device was created or destroyed since then; one that was not read anew (@is_new) also only
 * if none was used since: that may be the newer one. */
static bool use_list(struct volumes *v, struct device_list **list, struct moment since, bool is_new)
{
	CLEANUP(device_list_freep) struct device_list *old = NULL;

	pthread_mutex_lock(&v->mutex);
	bool current = v->changes == since.changes && (is_new || v->listings == since.listings);
	if (current) {
		old = v->seen;
		v->seen = TAKE_PTR(*list);
		v->listings++;
		v->in_doubt = v->in_doubt && !is_new;
	}
	pthread_mutex_unlock(&v->mutex);
	return current;
}

static int relist_locked(struct volumes *v, struct error **err)
{
	for (unsigned tries = 0; tries < RELIST_TRIES; tries++) {
		CLEANUP(device_list_freep) struct device_list *list = NULL;
		struct moment since = now(v);

		if (device_list_read(v->devices, &list, err) < 0)
			return err_wrap(err, "list devices");
		if (use_list(v, &list, since, /* is_new= */ true))
			return 0;
	}
	return err_set(err, ERR_UNAVAILABLE, "devices change faster than they can be listed");
}

int volumes_relist(struct volumes *v, struct error **err)
{
	pthread_mutex_lock(&v->relist_mutex);
	int rc = relist_locked(v, err);
	pthread_mutex_unlock(&v->relist_mutex);
	return rc;
}

/* What is computed is not exact where devices take more than their size; there the manager has looked.
 * Return: whether that is known. */
static bool use_latest(struct volumes *v)
{
	for (unsigned tries = 0; tries < RELIST_TRIES; tries++) {
		struct moment since = now(v);
		CLEANUP(device_list_freep) struct device_list *list = device_latest(v->devices);

		if (!list)
			return false;
		if (use_list(v, &list, since, /* is_new= */ false))
			return true;
	}
	return false;
}

static void show_change(struct volumes *v, const struct device *d, bool exists)
{
	CLEANUP(error_freep) struct error *err = NULL;

	if (use_latest(v))
		return;
	if (v->devices->ops->latest && volumes_relist(v, &err) == 0)
		return;
	pthread_mutex_lock(&v->mutex);
	device_list_note(v->seen, d, exists);
	pthread_mutex_unlock(&v->mutex);
	if (err)
		log_debug("listing after a change failed, ignoring", F_ERR(err));
}

void volumes_note(struct volumes *v, const struct device *d, bool exists)
{
	pthread_mutex_lock(&v->mutex);
	v->changes++;
	pthread_mutex_unlock(&v->mutex);
	show_change(v, d, exists);
}

/* What is seen now says nothing for sure any more. */
static void doubt(struct volumes *v)
{
	pthread_mutex_lock(&v->mutex);
	v->in_doubt = true;
	v->changes++;
	pthread_mutex_unlock(&v->mutex);
}

int volumes_destroy_device(struct volumes *v, const struct device *d, int exclusive_fd, struct error **err)
{
	volumes_say(v, d->id, "removing its device");
	if (device_destroy(v->devices, d, exclusive_fd, err) == 0) {
		volumes_note(v, d, /* exists= */ false);
		return 0;
	}
	doubt(v);
	return -1;
}

static bool is_in_doubt(struct volumes *v)
{
	pthread_mutex_lock(&v->mutex);
	bool in_doubt = v->in_doubt;
	pthread_mutex_unlock(&v->mutex);
	return in_doubt;
}

/* @ret_device: a copy if present, else NULL */
static enum presence look_up(struct volumes *v, const struct volume_record *r, struct device **ret_device)
{
	const struct device *d = NULL;

	pthread_mutex_lock(&v->mutex);
	enum presence presence = presence_of(v->seen, r, &d);
	*ret_device = presence == DEVICE_PRESENT ? device_dup(d) : NULL;
	pthread_mutex_unlock(&v->mutex);
	return presence;
}

struct device *volumes_seen_device(struct volumes *v, const struct volume_record *r)
{
	struct device *d;

	look_up(v, r, &d);
	return d;
}

int volumes_find_device(struct volumes *v, const struct volume_record *r, struct device **ret_device,
	enum presence *ret, struct error **err)
{
	CLEANUP(device_freep) struct device *d = NULL;
	enum presence presence = look_up(v, r, &d);

	if (presence != DEVICE_PRESENT || is_in_doubt(v)) {
		volumes_say(v, r->id, "listing devices");
		if (volumes_relist(v, err) < 0) {
			(*err)->code = ERR_UNAVAILABLE;
			return err_wrap(err, "volume %s", r->id);
		}
		device_free(TAKE_PTR(d));
		presence = look_up(v, r, &d);
	}
	*ret_device = TAKE_PTR(d);
	*ret = presence;
	return 0;
}

int volumes_confirm_path(
	struct volumes *v, const struct volume_record *r, const struct device *d, struct error **err)
{
	if (device_confirm(v->devices, d, err) == 0)
		return 0;
	doubt(v);
	(*err)->code = ERR_UNAVAILABLE;
	return err_wrap(err, "volume %s", r->id);
}

static bool has_record(struct volumes *v, const struct device_list *list, const struct device *d)
{
	CLEANUP(volume_record_freep) struct volume_record *r = volumes_record(v, d->id);
	const struct device *own;

	return r && presence_of(list, r, &own) == DEVICE_PRESENT && own == d;
}

/* Nothing but we activates our devices where no udev rule does. Others of the same form are left as they are:
 * names of namespaces are anybody's. */
static int activate_own(struct volumes *v, const struct device_list *list, struct error **err)
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
	bool all = activate_own(v, list, &activation) == 0;
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

int volumes_require_device(
	struct volumes *v, const struct volume_record *r, struct device **ret, struct error **err)
{
	CLEANUP(device_freep) struct device *d = NULL;
	enum presence presence;

	if (volumes_find_device(v, r, &d, &presence, err) < 0)
		return -1;
	if (!d)
		return refuse_absent(r, presence, err);
	if (!d->active)
		volumes_say(v, r->id, "activating its device");
	if (!d->active && make_active(v, r, &d, err) < 0)
		return err_wrap(err, "volume %s", r->id);
	if (d->path && dm_refuse_suspended(d->path, err) < 0)
		return err_wrap(err, "volume %s", r->id);
	if (d->path && blockdev_wait(d->path, NODE_WAIT_MS, err) < 0) {
		(*err)->code = ERR_UNAVAILABLE;
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

static bool lacks_pool(void *user, const char *id)
{
	CLEANUP(volume_record_freep) struct volume_record *r = volumes_record(user, id);

	return r && !r->pool;
}

static bool is_half_made(void *user, const char *id)
{
	CLEANUP(volume_record_freep) struct volume_record *r = volumes_record(user, id);

	return r && r->phase == PHASE_CREATING;
}

/* Files of the Go driver name no pool; the first sight of their device adds it. */
static void adopt_pools(struct volumes *v)
{
	CLEANUP(strv_freep) char **ids = NULL;

	pthread_mutex_lock(&v->mutex);
	for (size_t i = 0; i < v->n_records; i++) {
		if (!v->records[i]->pool)
			strv_add(&ids, v->records[i]->id);
	}
	pthread_mutex_unlock(&v->mutex);
	for (size_t i = 0; ids && ids[i]; i++) {
		CLEANUP(volume_record_freep) struct volume_record *r = NULL;
		CLEANUP(volume_unlockp) struct volume_lock *lock = NULL;
		CLEANUP(device_freep) struct device *d = NULL;
		CLEANUP(error_freep) struct error *err = NULL;

		if (!volume_lock_if(v->locks, ids[i], lacks_pool, v, &lock))
			continue;
		r = volumes_record(v, ids[i]);
		d = volumes_seen_device(v, r);
		if (!d)
			continue;
		r->pool = d->pool;
		d->pool = NULL;
		if (volumes_save(v, r, &err) < 0)
			log_warn("volume's pool could not be recorded, ignoring", F_STR("volume", r->id),
				F_ERR(err));
	}
}

static void keep_damaged(struct volumes *v, const struct state_content *content)
{
	pthread_mutex_lock(&v->mutex);
	strv_free(v->damaged);
	v->damaged = NULL;
	for (size_t i = 0; i < content->n_problems; i++) {
		if (content->problems[i].id)
			strv_add(&v->damaged, content->problems[i].id);
	}
	pthread_mutex_unlock(&v->mutex);
}

static int load_state(struct volumes *v, struct error **err)
{
	CLEANUP(state_content_done) struct state_content content = {0};

	if (state_load(v->state, &content, err) < 0)
		return -1;
	for (size_t i = 0; i < content.n_problems; i++)
		log_warn("state file is not used", F_STR("file", content.problems[i].file),
			F_STR("reason", content.problems[i].reason));
	for (size_t i = 0; i < content.n_records; i++)
		volumes_keep(v, content.records[i]);
	keep_damaged(v, &content);
	return 0;
}

static char **ids_in_phase(struct volumes *v, enum volume_phase phase)
{
	char **ids = NULL;

	pthread_mutex_lock(&v->mutex);
	for (size_t i = 0; i < v->n_records; i++) {
		if (v->records[i]->phase == phase)
			strv_add(&ids, v->records[i]->id);
	}
	pthread_mutex_unlock(&v->mutex);
	return ids;
}

static void roll_back_half_made(struct volumes *v)
{
	CLEANUP(strv_freep) char **ids = ids_in_phase(v, PHASE_CREATING);

	for (size_t i = 0; ids && ids[i]; i++) {
		CLEANUP(volume_unlockp) struct volume_lock *lock = NULL;
		CLEANUP(volume_record_freep) struct volume_record *r = NULL;
		CLEANUP(error_freep) struct error *err = NULL;

		if (!volume_lock_if(v->locks, ids[i], is_half_made, v, &lock))
			continue;
		r = volumes_record(v, ids[i]);
		if (volumes_roll_back(v, r, &err) < 0)
			log_warn("half-made volume stays, will be tried again", F_STR("volume", ids[i]),
				F_ERR(err));
		else
			log_info("half-made volume was cleared away", F_STR("volume", ids[i]));
	}
}

static void go_on_erasing(struct volumes *v)
{
	CLEANUP(strv_freep) char **ids = ids_in_phase(v, PHASE_ERASING);

	for (size_t i = 0; ids && ids[i]; i++) {
		CLEANUP(error_freep) struct error *err = NULL;

		if (eraser_add(v->eraser, ids[i], /* claim= */ NULL, &err) < 0)
			log_warn("deleted volume could not be erased, will be tried again",
				F_STR("volume", ids[i]), F_ERR(err));
	}
}

/* Ends what a crash left half done. */
static void settle_unfinished(struct volumes *v)
{
	roll_back_half_made(v);
	go_on_erasing(v);
}

static void report_strangers(struct volumes *v)
{
	CLEANUP(strv_freep) char **strangers = NULL;

	pthread_mutex_lock(&v->mutex);
	for (size_t i = 0; i < v->seen->n_devices; i++) {
		size_t known = 0;

		while (known < v->n_records && !str_eq(v->records[known]->id, v->seen->devices[i].id))
			known++;
		if (known == v->n_records)
			strv_add(&strangers, v->seen->devices[i].id);
	}
	pthread_mutex_unlock(&v->mutex);
	for (size_t i = 0; strangers && strangers[i]; i++)
		log_warn("device without state is left alone", F_STR("device", strangers[i]));
}

static bool all_active(const struct device_list *l)
{
	for (size_t i = 0; i < l->n_devices; i++) {
		if (!l->devices[i].active)
			return false;
	}
	return true;
}

/* One device that cannot be activated must not keep all others away. */
static int list_activated(struct volumes *v, struct device_list **ret, struct error **err)
{
	CLEANUP(device_list_freep) struct device_list *list = NULL;
	CLEANUP(error_freep) struct error *ignored = NULL;

	if (device_list_read(v->devices, &list, err) < 0)
		return err_wrap(err, "list devices");
	if (all_active(list)) {
		*ret = TAKE_PTR(list);
		return 0;
	}
	if (activate_own(v, list, &ignored) < 0)
		log_warn(
			"not all devices are active, will be tried again when they are used", F_ERR(ignored));
	if (device_list_read(v->devices, ret, err) < 0)
		return err_wrap(err, "list devices");
	return 0;
}

static int take_over(struct volumes *v, bool activate, struct error **err)
{
	CLEANUP(device_list_freep) struct device_list *list = NULL;

	if (!v->state && state_open(v->state_path, &v->state, err) < 0)
		return -1;
	if (load_state(v, err) < 0)
		return -1;
	if (activate && list_activated(v, &list, err) < 0)
		return -1;
	if (!activate && device_list_read(v->devices, &list, err) < 0)
		return err_wrap(err, "list devices");
	pthread_mutex_lock(&v->mutex);
	device_list_free(v->seen);
	v->seen = TAKE_PTR(list);
	v->loaded = true;
	pthread_mutex_unlock(&v->mutex);
	return 0;
}

int volumes_load(struct volumes *v, struct error **err)
{
	return take_over(v, /* activate= */ false, err);
}

int volumes_start(struct volumes *v, struct error **err)
{
	if (take_over(v, /* activate= */ true, err) < 0)
		return -1;
	report_strangers(v);
	adopt_pools(v);
	settle_unfinished(v);
	return 0;
}

int volumes_refresh(struct volumes *v, struct error **err)
{
	if (volumes_require_ready(v, err) < 0)
		return -1;
	if (volumes_relist(v, err) < 0)
		return -1;
	adopt_pools(v);
	settle_unfinished(v);
	return 0;
}
