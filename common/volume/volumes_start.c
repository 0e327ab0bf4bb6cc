/* SPDX-License-Identifier: Apache-2.0 */
/* From the state folder and a listing of devices to the first device view, and what is done about what a
 * crash left half done. */
#include "base/clock.h"
#include "base/log.h"
#include "base/str.h"
#include "volume/attachment/attachment.h"
#include "volume/direct/volumes_direct.h"
#include "volume/durability/volumes_durability.h"
#include "volume/id.h"
#include "volume/volumes_private.h"

static bool lacks_pool(void *user, const char *id)
{
	CLEANUP(volume_record_freep) struct volume_record *r = records_find(user, id);

	return r && !r->pool;
}

static bool is_creating(void *user, const char *id)
{
	CLEANUP(volume_record_freep) struct volume_record *r = records_find(user, id);

	return r && r->phase == PHASE_CREATING;
}

/* Files of the Go driver name no pool; the first sight of their device adds it. */
static void adopt_pools(struct volumes *v)
{
	CLEANUP(strv_freep) char **ids = NULL;

	pthread_mutex_lock(&v->shared.mutex);
	const struct records_view view = records_view(v->records);
	for (size_t i = 0; i < view.n; i++) {
		if (!view.list[i]->pool)
			strv_add(&ids, view.list[i]->id);
	}
	pthread_mutex_unlock(&v->shared.mutex);
	for (size_t i = 0; ids && ids[i]; i++) {
		CLEANUP(volume_record_freep) struct volume_record *r = NULL;
		CLEANUP(volume_unlockp) struct volume_lock *lock = NULL;
		CLEANUP(device_freep) struct device *d = NULL;
		CLEANUP(error_freep) struct error *err = NULL;

		if (!volume_lock_if(v->locks, ids[i], lacks_pool, v->records, &lock))
			continue;
		r = records_find(v->records, ids[i]);
		d = device_view_seen_device(v->device_view, r);
		if (!d)
			continue;
		r->pool = d->pool;
		d->pool = NULL;
		if (records_save(v->records, r, &err) < 0)
			log_warn("volume's pool could not be recorded, ignoring", F_STR("volume", r->id),
				F_ERR(err));
	}
}

char **volumes_ids_in_phase(struct volumes *v, enum volume_phase phase)
{
	char **ids = NULL;

	pthread_mutex_lock(&v->shared.mutex);
	const struct records_view view = records_view(v->records);
	for (size_t i = 0; i < view.n; i++) {
		if (view.list[i]->phase == phase)
			strv_add(&ids, view.list[i]->id);
	}
	pthread_mutex_unlock(&v->shared.mutex);
	return ids;
}

static void settle_creations(struct volumes *v)
{
	CLEANUP(strv_freep) char **ids = volumes_ids_in_phase(v, PHASE_CREATING);

	for (size_t i = 0; ids && ids[i]; i++) {
		CLEANUP(volume_unlockp) struct volume_lock *lock = NULL;
		CLEANUP(volume_record_freep) struct volume_record *r = NULL;
		CLEANUP(error_freep) struct error *err = NULL;

		if (!volume_lock_if(v->locks, ids[i], is_creating, v->records, &lock))
			continue;
		r = records_find(v->records, ids[i]);
		if (volumes_settle_creation(v, r, &err) < 0)
			log_warn("partly created volume could not be removed, will try again",
				F_STR("volume", ids[i]), F_ERR(err));
		else if (r->phase == PHASE_READY)
			log_info("copy that was finished is ready", F_STR("volume", ids[i]));
		else
			log_info("partly created volume was removed", F_STR("volume", ids[i]));
	}
}

static void go_on_erasing(struct volumes *v)
{
	CLEANUP(strv_freep) char **ids = volumes_ids_in_phase(v, PHASE_ERASING);

	for (size_t i = 0; ids && ids[i]; i++) {
		CLEANUP(error_freep) struct error *err = NULL;

		if (erase_queue_add(v->erase_queue, ids[i], /* claim= */ NULL, &err) < 0)
			log_warn("deleted volume could not be erased, will be tried again",
				F_STR("volume", ids[i]), F_ERR(err));
	}
}

/* Before the sizes: what it frees, pools have more of. */
static void remove_leftovers(struct volumes *v)
{
	CLEANUP(error_freep) struct error *err = NULL;
	bool changed;
	int rc = device_remove_leftovers(v->devices, &changed, &err);

	if (changed && rc == 0)
		rc = device_view_relist(v->device_view, &err);
	if (rc < 0)
		log_warn("what an unfinished expansion left in a pool could not be removed, will try again",
			F_ERR(err));
}

/* Ends what a crash left half done. */
static void settle_unfinished(struct volumes *v)
{
	volumes_thaw_marked(v);
	volumes_settle_direct(v);
	remove_leftovers(v);
	volumes_reconcile_sizes(v);
	settle_creations(v);
	go_on_erasing(v);
}

static void report_unrecorded(struct volumes *v)
{
	CLEANUP(strv_freep) char **ids = NULL;

	pthread_mutex_lock(&v->shared.mutex);
	const struct device_list *seen = device_view_list(v->device_view);
	for (size_t i = 0; i < seen->n_devices; i++) {
		if (!records_has(v->records, seen->devices[i].id))
			strv_add(&ids, seen->devices[i].id);
	}
	pthread_mutex_unlock(&v->shared.mutex);
	for (size_t i = 0; ids && ids[i]; i++) {
		if (volume_id_has_minted_form(ids[i]))
			log_warn("device without state is left alone", F_STR("device", ids[i]));
		else
			log_info("foreign device is left alone", F_STR("device", ids[i]));
	}
}

/* Not before a look at health: a report without it would say that all volumes are sound. */
static void become_ready(struct volumes *v)
{
	pthread_mutex_lock(&v->shared.mutex);
	v->ready = true;
	pthread_mutex_unlock(&v->shared.mutex);
	volumes_changed(&v->shared);
}

int volumes_load(struct volumes *v, bool for_repair, struct error **err)
{
	if (records_open(v->records, v->state_path, err) < 0)
		return -1;
	if (records_load(v->records, for_repair, err) < 0)
		return -1;
	volumes_load_durability(v);
	if (!for_repair)
		volumes_thaw_staged(v);
	if (device_view_begin(v->device_view, /* activate= */ !for_repair, err) < 0)
		return -1;
	volumes_look_at_propagation(v);
	if (!for_repair)
		volumes_look_at_health_first(v);
	become_ready(v);
	return 0;
}

/* Logged when it changes. */
static void note_space(struct volumes *v)
{
	CLEANUP(error_freep) struct error *full = NULL;

	if (records_check_space(v->records, &full) < 0)
		log_debug("no volume can be recorded", F_ERR(full));
}

int volumes_start(struct volumes *v, struct error **err)
{
	if (volumes_load(v, /* for_repair= */ false, err) < 0)
		return -1;
	report_unrecorded(v);
	note_space(v);
	adopt_pools(v);
	settle_unfinished(v);
	volumes_try_durability_of_mounted(v);
	return 0;
}

int volumes_refresh(struct volumes *v, struct error **err)
{
	if (volumes_require_ready(v, err) < 0)
		return -1;
	note_space(v);
	volumes_look_at_propagation(v);
	if (device_view_relist(v->device_view, err) < 0)
		return -1;
	device_back_up(v->devices);
	adopt_pools(v);
	settle_unfinished(v);
	volumes_delete_leftovers(v, clock_ns());
	return 0;
}
