/* SPDX-License-Identifier: Apache-2.0 */
/* From the state folder and a listing of devices to the first snapshot, and what is done about what a crash
 * left half done. */
#include <stdlib.h>

#include "base/log.h"
#include "base/str.h"
#include "volume/volumes_private.h"

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
		const char *id = content->problems[i].id;

		if (id && !strv_contains(v->damaged, id))
			strv_add(&v->damaged, id);
	}
	pthread_mutex_unlock(&v->mutex);
}

/* A file that says "half made" or "deleted" licenses the destruction of the device; a damaged file of the
 * same volume may have said the opposite. */
static bool is_undecided(const struct state_content *content, const struct volume_record *r)
{
	for (size_t i = 0; r->phase != PHASE_READY && i < content->n_problems; i++) {
		if (str_eq(content->problems[i].id, r->id))
			return true;
	}
	return false;
}

/* @for_repair: what is undecided is loaded, too, and not acted upon. */
static int load_state(struct volumes *v, bool for_repair, struct error **err)
{
	CLEANUP(state_content_done) struct state_content content = {0};

	if (state_load(v->state, &content, err) < 0)
		return -1;
	for (size_t i = 0; i < content.n_problems; i++)
		log_warn("state file is not used", F_STR("file", content.problems[i].file),
			F_STR("reason", content.problems[i].reason));
	for (size_t i = 0; i < content.n_records; i++) {
		const struct volume_record *r = content.records[i];

		if (for_repair || !is_undecided(&content, r))
			volumes_keep(v, r);
		else
			log_warn("volume is left as it is: one of its state files says that it is half made "
				 "or deleted, and another one is damaged; see pmem-csi-driver check -repair",
				F_STR("volume", r->id));
	}
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
		if (volumes_undo_leftover(v, r, &err) < 0)
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
		if (!volumes_is_recorded(v, v->seen->devices[i].id))
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
	if (volumes_activate_own(v, list, &ignored) < 0)
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
	if (load_state(v, /* for_repair= */ !activate, err) < 0)
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
	volumes_tell(v);
	return 0;
}

int volumes_load(struct volumes *v, struct error **err)
{
	return take_over(v, /* activate= */ false, err);
}

/* Logged when it changes. */
static void note_room(struct volumes *v)
{
	CLEANUP(error_freep) struct error *full = NULL;

	if (volumes_check_room(v, &full) < 0)
		log_debug("no volume can be recorded", F_ERR(full));
}

int volumes_start(struct volumes *v, struct error **err)
{
	if (take_over(v, /* activate= */ true, err) < 0)
		return -1;
	report_strangers(v);
	note_room(v);
	adopt_pools(v);
	settle_unfinished(v);
	return 0;
}

int volumes_refresh(struct volumes *v, struct error **err)
{
	if (volumes_require_ready(v, err) < 0)
		return -1;
	note_room(v);
	if (volumes_relist(v, err) < 0)
		return -1;
	device_back_up(v->devices);
	adopt_pools(v);
	settle_unfinished(v);
	return 0;
}
