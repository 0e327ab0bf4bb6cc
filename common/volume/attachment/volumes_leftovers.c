/* SPDX-License-Identifier: Apache-2.0 */
/* Deletes inline volumes whose pods are gone without NodeUnpublishVolume. */
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "os/mount_table.h"
#include "volume/attachment/attachment.h"
#include "volume/attachment/inline_leftovers.h"
#include "volume/attachment/kata.h"
#include "volume/volumes_private.h"

static char **inline_ids(struct volumes *v)
{
	char **ids = NULL;

	pthread_mutex_lock(&v->shared.mutex);
	const struct records_view view = records_view(v->records);
	for (size_t i = 0; i < view.n; i++) {
		if (view.list[i]->phase == PHASE_READY && volume_record_is_inline(view.list[i]))
			strv_add(&ids, view.list[i]->id);
	}
	pthread_mutex_unlock(&v->shared.mutex);
	return ids;
}

/* Deletes an inline volume whose pod is gone. That fails while its device is in use, as unpublishing does. */
static int delete_leftover(struct volumes *v, const char *id, struct error **err)
{
	CLEANUP(volume_unlockp) struct volume_lock *lock = NULL;
	CLEANUP(volume_record_freep) struct volume_record *r = NULL;
	CLEANUP(mount_table_freep) struct mount_table *mounts = NULL;

	if (volume_lock(v->locks, id, /* wait_ms= */ 0, &lock, err) < 0 || mount_table_read(&mounts, err) < 0)
		return -1;
	/* it may have been published meanwhile */
	r = records_find(v->records, id);
	if (!r || !inline_is_left_over(r, mounts))
		return 0;
	log_info("inline volume is deleted: its pod has had no folder for ten minutes", F_STR("volume", id),
		F_STR("target", r->targets[0]));
	if (kata_may_have_image(r) && kata_clean(v, id, r, err) < 0)
		return -1;
	return volumes_delete_record(v, &lock, r, err);
}

void volumes_delete_leftovers(struct volumes *v, uint64_t now_ns)
{
	CLEANUP(strv_freep) char **ids = inline_ids(v);
	CLEANUP(mount_table_freep) struct mount_table *mounts = NULL;
	CLEANUP(error_freep) struct error *err = NULL;

	if (!ids)
		return;
	if (mount_table_read(&mounts, &err) < 0) {
		log_warn("inline volumes of pods that are gone are not looked for", F_ERR(err));
		return;
	}
	for (size_t i = 0; ids[i]; i++) {
		CLEANUP(volume_record_freep) struct volume_record *r = records_find(v->records, ids[i]);
		CLEANUP(error_freep) struct error *why = NULL;

		if (!inline_leftovers_look(
			    &v->leftovers, ids[i], r && inline_is_left_over(r, mounts), now_ns))
			continue;
		if (delete_leftover(v, ids[i], &why) < 0)
			log_warn("inline volume of a pod that is gone could not be deleted, will try again",
				F_STR("volume", ids[i]), F_ERR(why));
		/* the next attempt is as far away as the first one was */
		(void)!inline_leftovers_look(&v->leftovers, ids[i], /* is_left_over= */ false, now_ns);
	}
}
