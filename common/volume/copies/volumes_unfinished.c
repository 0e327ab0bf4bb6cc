/* SPDX-License-Identifier: Apache-2.0 */
/* Settles volumes whose records say that their creation was not finished. Such a record may be older than the
 * device. */
#include <stdlib.h>

#include "base/mem.h"
#include "base/str.h"
#include "os/copy/fs_uuid.h"
#include "os/fs.h"
#include "volume/copies/copy_completion.h"
#include "volume/volumes_private.h"

int volumes_recognise(const struct volume_record *r, const char *device, char **ret_found, struct error **err)
{
	return fs_recognise(device, r->fs_uuid, ret_found, err);
}

/* Finds the device of @r and activates it, because an inactive device may hold anything. @ret: NULL: there is
 * none, or it is another volume's */
static int find_active(
	struct volumes *v, const struct volume_record *r, struct device **ret, struct error **err)
{
	CLEANUP(device_freep) struct device *d = NULL;
	enum presence presence;

	if (device_view_find_device(v->device_view, r, &d, &presence, err) < 0)
		return -1;
	if (presence == DEVICE_MISSING)
		return err_set(err, ERR_UNAVAILABLE, "its pool is absent or incomplete");
	if (d && !d->active) {
		device_free(TAKE_PTR(d));
		if (device_view_require_device(v->device_view, r, &d, err) < 0)
			return -1;
	}
	*ret = TAKE_PTR(d);
	return 0;
}

int volumes_find_content(
	struct volumes *v, const struct volume_record *r, char **ret_found, struct error **err)
{
	CLEANUP(device_freep) struct device *d = NULL;

	if (find_active(v, r, &d, err) < 0)
		return -1;
	if (d && d->path)
		return volumes_recognise(r, d->path, ret_found, err);
	*ret_found = x_strdup("");
	return 0;
}

/* Completes the change of the UUID of a copy: a power cut can leave the new UUID in the superblock and
 * another one in the log, and then the kernel does not mount the copy. Volumes that are given to guests are
 * left out: the host does not mount them. */
static int finish_uuid(
	struct volumes *v, const struct volume_record *r, const struct device *d, struct error **err)
{
	CLEANUP(free_charp) char *found = NULL;

	if (!r->fs_uuid || r->direct)
		return 0;
	if (volumes_recognise(r, d->path, &found, err) < 0 ||
		fs_finish_uuid(found, d->path, r->fs_uuid, v->mkfs_timeout_ms, err) < 0)
		return err_wrap(err, "the UUID of the copy was not set completely");
	return 0;
}

int volumes_copy_completion(
	struct volumes *v, const struct volume_record *r, enum copy_completion *ret, struct error **err)
{
	CLEANUP(volume_record_freep) struct volume_record *source = records_find(v->records, r->source);
	CLEANUP(device_freep) struct device *d = NULL;

	*ret = COPY_UNFINISHED;
	if (find_active(v, r, &d, err) < 0)
		return -1;
	/* one without a mode holds nothing yet, and devices in memory hold nothing at all */
	if (!d || !d->path || d->raw || !r->identity)
		return 0;
	if (copy_completion_look(r, source ? source->fs_uuid : NULL, d->path, ret, err) < 0)
		return -1;
	return *ret == COPY_FINISHED ? finish_uuid(v, r, d, err) : 0;
}

/* Makes a finished copy ready. Its device decides about size and file system, since both may have changed
 * after the record was written. */
static int make_ready(struct volumes *v, struct volume_record *r, struct error **err)
{
	CLEANUP(device_freep) struct device *d = NULL;
	CLEANUP(free_charp) char *found = NULL;

	if (find_active(v, r, &d, err) < 0)
		return -1;
	if (d && d->path && r->fs_uuid && volumes_recognise(r, d->path, &found, err) < 0)
		return -1;
	if (d)
		r->size_bytes = d->size_bytes;
	r->ever_staged = r->ever_staged || !found || *found;
	if (found && fs_known(found) && !r->snapshot) {
		free(r->fs_type);
		r->fs_type = TAKE_PTR(found);
	}
	r->block_clean = r->block_clean || r->direct;
	if (records_save(v->records, r, err) < 0)
		return -1;
	return records_advance(v->records, r, PHASE_READY, err);
}

static int settle_copy(struct volumes *v, struct volume_record *r, struct error **err)
{
	enum copy_completion completion;

	if ((r->group ? volumes_group_completion(v, r->group, &completion, err)
		      : volumes_copy_completion(v, r, &completion, err)) < 0)
		return -1;
	switch (completion) {
	case COPY_UNFINISHED:
		return volumes_roll_back(v, r, err);
	case COPY_FINISHED:
		return make_ready(v, r, err);
	case COPY_UNKNOWN:
		break;
	}
	return err_set(err, ERR_PRECONDITION,
		"its state file says that it is an unfinished copy of %s, and its device does not show whether it "
		"was finished and written to since; the file may come from an old backup; it is kept until it is "
		"deleted",
		r->source);
}

int volumes_settle_creation(struct volumes *v, struct volume_record *r, struct error **err)
{
	CLEANUP(free_charp) char *found = NULL;

	if (r->source)
		return settle_copy(v, r, err);
	if (volumes_find_content(v, r, &found, err) < 0)
		return -1;
	/* no other volume gets a file system before it is ready */
	if (*found)
		return err_set(err, ERR_PRECONDITION,
			"its device holds %s, although its state file says that its creation was never "
			"finished; the file may come from an old backup; pmem-csi-driver check -repair %s "
			"keeps the content",
			found, r->id);
	return volumes_roll_back(v, r, err);
}
