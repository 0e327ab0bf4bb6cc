/* SPDX-License-Identifier: Apache-2.0 */
/*
 * defects.c - defects of the driver, one of which PMEM_DEFECT chooses, by replaced calls (--wrap, for each
 * __wrap_ here). Each breaks one of the invariants that the torture checks; defects.py says which.
 */
#include <fcntl.h>
#include <linux/fs.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"
#include "os/copy/data_copy.h"
#include "os/file.h"
#include "os/mount.h"
#include "os/paths.h"
#include "pmem/device/device.h"
#include "volume/attachment/attachment.h"
#include "volume/attachment/kata_image.h"
#include "volume/direct/direct_folder.h"
#include "volume/direct/volumes_direct.h"
#include "volume/state.h"
#include "volume/volumes_private.h"

static bool is_on(const char *defect)
{
	return str_eq(getenv("PMEM_DEFECT"), defect);
}

/* What was begun is forgotten, and its device stays. */
int __real_device_destroy(struct device_manager *m, const struct device *d, int fd, struct error **err);
int __wrap_device_destroy(struct device_manager *m, const struct device *d, int fd, struct error **err);
int __wrap_device_destroy(struct device_manager *m, const struct device *d, int fd, struct error **err)
{
	if (!is_on("no-roll-back"))
		return __real_device_destroy(m, d, fd, err);
	if (fd >= 0)
		close(fd);
	return 0;
}

/* Devices without a record are removed. */
int __real_device_list_read(struct device_manager *m, struct device_list **ret, struct error **err);
int __wrap_device_list_read(struct device_manager *m, struct device_list **ret, struct error **err);
int __wrap_device_list_read(struct device_manager *m, struct device_list **ret, struct error **err)
{
	int rc = __real_device_list_read(m, ret, err);

	for (size_t i = 0; rc == 0 && is_on("clears-strangers") && i < (*ret)->n_devices; i++) {
		const struct device *d = &(*ret)->devices[i];
		if (str_starts(d->id, "stranger"))
			return __real_device_destroy(m, d, -1, err);
	}
	return rc;
}

/* A state file whose device was not listed yet goes. */
int __real_state_load(struct state_store *s, struct state_content *ret, struct error **err);
int __wrap_state_load(struct state_store *s, struct state_content *ret, struct error **err);
int __wrap_state_load(struct state_store *s, struct state_content *ret, struct error **err)
{
	int rc = __real_state_load(s, ret, err);

	if (rc < 0 || !is_on("drops-state") || ret->n_records == 0)
		return rc;
	rc = state_remove(s, ret->records[0], err);
	volume_record_free(ret->records[0]);
	ret->n_records--;
	memmove(ret->records, ret->records + 1, ret->n_records * sizeof(struct volume_record *));
	return rc;
}

/* The record comes after the device, has a size that the device does not have yet, or half of what was
 * modified. */
int __real_state_put(struct state_store *s, const struct volume_record *r, struct error **err);
int __wrap_state_put(struct state_store *s, const struct volume_record *r, struct error **err);
int __wrap_state_put(struct state_store *s, const struct volume_record *r, struct error **err)
{
	CLEANUP(volume_record_freep) struct volume_record *wrong = volume_record_dup(r);

	if (is_on("late-record") && r->phase == PHASE_CREATING)
		return 0;
	if (is_on("early-size") && r->resizing_bytes > 0) {
		wrong->size_bytes = r->resizing_bytes;
		wrong->resizing_bytes = 0;
	}
	if (is_on("forgets-half") && r->modified)
		wrong->copy_bytes_per_s = 0;
	return __real_state_put(s, wrong, err);
}

int __real_state_advance(
	struct state_store *s, struct volume_record *r, enum volume_phase to, struct error **err);
int __wrap_state_advance(
	struct state_store *s, struct volume_record *r, enum volume_phase to, struct error **err);
int __wrap_state_advance(
	struct state_store *s, struct volume_record *r, enum volume_phase to, struct error **err)
{
	if (!is_on("late-record") || to != PHASE_READY)
		return __real_state_advance(s, r, to, err);
	r->phase = to;
	return __real_state_put(s, r, err);
}

/* What lies between two volumes counts as free. */
bool __real_volumes_capacity(struct volumes *v, bool sync, struct capacity *ret);
bool __wrap_volumes_capacity(struct volumes *v, bool sync, struct capacity *ret);
bool __wrap_volumes_capacity(struct volumes *v, bool sync, struct capacity *ret)
{
	bool known = __real_volumes_capacity(v, sync, ret);

	if (known && is_on("counts-gaps"))
		ret->available_bytes += 4096;
	return known;
}

/* What a copy does not fill stays as it was. */
int __real_data_copy_zero_gaps(
	const struct data_copy *c, const struct fs_extents *x, uint64_t size_bytes, struct error **err);
int __wrap_data_copy_zero_gaps(
	const struct data_copy *c, const struct fs_extents *x, uint64_t size_bytes, struct error **err);
int __wrap_data_copy_zero_gaps(
	const struct data_copy *c, const struct fs_extents *x, uint64_t size_bytes, struct error **err)
{
	return is_on("keeps-gaps") ? 0 : __real_data_copy_zero_gaps(c, x, size_bytes, err);
}

/* What a block volume gains is not zeroed. */
int __real_volumes_zero(struct volumes *v, int fd, uint64_t size_bytes, struct error **err);
int __wrap_volumes_zero(struct volumes *v, int fd, uint64_t size_bytes, struct error **err);
int __wrap_volumes_zero(struct volumes *v, int fd, uint64_t size_bytes, struct error **err)
{
	return is_on("keeps-gained") ? 0 : __real_volumes_zero(v, fd, size_bytes, err);
}

/* A group that is not finished is rolled back, although one of its snapshots is ready. */
int __real_volumes_group_completion(
	struct volumes *v, const char *id, enum copy_completion *ret, struct error **err);
int __wrap_volumes_group_completion(
	struct volumes *v, const char *id, enum copy_completion *ret, struct error **err);
int __wrap_volumes_group_completion(
	struct volumes *v, const char *id, enum copy_completion *ret, struct error **err)
{
	if (!is_on("splits-group"))
		return __real_volumes_group_completion(v, id, ret, err);
	*ret = COPY_UNFINISHED;
	return 0;
}

/* What unpublishing leaves behind. */
int __real_path_remove(const struct path_roots *r, const char *path, struct error **err);
int __wrap_path_remove(const struct path_roots *r, const char *path, struct error **err);
int __wrap_path_remove(const struct path_roots *r, const char *path, struct error **err)
{
	return is_on("keeps-target") ? 0 : __real_path_remove(r, path, err);
}

/* An image is made again, over what its guest has written; but not that of a copy, where it breaks "moment".
 */
int __real_volumes_publish_kata(struct volumes *v, struct volume_record *r,
	const struct attachment_request *q, bool guest, struct error **err);
int __wrap_volumes_publish_kata(struct volumes *v, struct volume_record *r,
	const struct attachment_request *q, bool guest, struct error **err);
int __wrap_volumes_publish_kata(struct volumes *v, struct volume_record *r,
	const struct attachment_request *q, bool guest, struct error **err)
{
	CLEANUP(free_charp) char *path = x_asprintf("%s/" KATA_IMAGE_NAME, q->canonical_staging_path);

	if (is_on("makes-image-again") && !strstr(path, "-clone/") && unlink(path) == 0)
		r->image_bytes = 0;
	return __real_volumes_publish_kata(v, r, q, guest, err);
}

/* The folder of an image stays mounted, for as long as the driver is one that will be killed. */
static bool keeps_folder(const char *path)
{
	return is_on("keeps-image") && getenv("PMEM_KILL_AT") && strstr(path, "/state/mount/");
}

int __real_mount_remove(const char *path, struct error **err);
int __wrap_mount_remove(const char *path, struct error **err);
int __wrap_mount_remove(const char *path, struct error **err)
{
	return keeps_folder(path) ? 0 : __real_mount_remove(path, err);
}

int __real_rmdir(const char *path);
int __wrap_rmdir(const char *path);
int __wrap_rmdir(const char *path)
{
	return keeps_folder(path) ? 0 : __real_rmdir(path);
}

/* A device that a guest has is used. */
int __real_volumes_refuse_guest(
	struct volumes *v, const struct volume_record *r, const struct device *d, struct error **err);
int __wrap_volumes_refuse_guest(
	struct volumes *v, const struct volume_record *r, const struct device *d, struct error **err);
int __wrap_volumes_refuse_guest(
	struct volumes *v, const struct volume_record *r, const struct device *d, struct error **err)
{
	return is_on("ignores-guest") ? 0 : __real_volumes_refuse_guest(v, r, d, err);
}

/* The entry of a direct volume stays, or those of others go with it. */
int __real_direct_entry_remove(int folder_fd, const char *name, char **ret_left, struct error **err);
int __wrap_direct_entry_remove(int folder_fd, const char *name, char **ret_left, struct error **err);
int __wrap_direct_entry_remove(int folder_fd, const char *name, char **ret_left, struct error **err)
{
	CLEANUP(strv_freep) char **names = NULL;

	*ret_left = NULL;
	if (is_on("keeps-entry"))
		return 0;
	if (is_on("clears-entries") && dir_list(folder_fd, &names, err) < 0)
		return -1;
	for (size_t i = 0; i < strv_len(names); i++) {
		if (__real_direct_entry_remove(folder_fd, names[i], ret_left, err) < 0)
			return -1;
		free(TAKE_PTR(*ret_left));
	}
	return __real_direct_entry_remove(folder_fd, name, ret_left, err);
}

/* Nothing is erased, neither by holes nor by zeros. */
int __real_fallocate(int fd, int mode, off_t offset, off_t length);
int __wrap_fallocate(int fd, int mode, off_t offset, off_t length);
int __wrap_fallocate(int fd, int mode, off_t offset, off_t length)
{
	return is_on("no-erase") ? 0 : __real_fallocate(fd, mode, offset, length);
}

/* Nothing stops writers. */
static bool is_freeze(unsigned long request)
{
	return request == FIFREEZE || request == FITHAW;
}

int __real_ioctl(int fd, unsigned long request, void *argument);
int __wrap_ioctl(int fd, unsigned long request, ...);
int __wrap_ioctl(int fd, unsigned long request, ...)
{
	va_list arguments;

	va_start(arguments, request);
	void *argument = va_arg(arguments, void *);
	va_end(arguments);
	if ((is_on("no-erase") && request == BLKZEROOUT) || (is_on("no-freeze") && is_freeze(request)))
		return 0;
	return __real_ioctl(fd, request, argument);
}
