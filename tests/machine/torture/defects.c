/* SPDX-License-Identifier: Apache-2.0 */
/*
 * defects.c - defects of the driver, one of which PMEM_DEFECT chooses, by replaced calls (--wrap, for each
 * __wrap_ here). Each breaks one of the invariants that the torture checks; defects.py says which.
 */
#include <fcntl.h>
#include <linux/fs.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"
#include "os/paths.h"
#include "pmem/device/device.h"
#include "volume/state.h"
#include "volume/volumes.h"

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

/* The record comes after the device. */
int __real_state_put(struct state_store *s, const struct volume_record *r, struct error **err);
int __wrap_state_put(struct state_store *s, const struct volume_record *r, struct error **err);
int __wrap_state_put(struct state_store *s, const struct volume_record *r, struct error **err)
{
	return is_on("late-record") && r->phase == PHASE_CREATING ? 0 : __real_state_put(s, r, err);
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
bool __real_volumes_capacity(struct volumes *v, struct capacity *ret);
bool __wrap_volumes_capacity(struct volumes *v, struct capacity *ret);
bool __wrap_volumes_capacity(struct volumes *v, struct capacity *ret)
{
	bool known = __real_volumes_capacity(v, ret);

	if (known && is_on("counts-gaps"))
		ret->available_bytes += 4096;
	return known;
}

/* What unpublishing leaves behind. */
int __real_path_remove(const struct path_roots *r, const char *path, struct error **err);
int __wrap_path_remove(const struct path_roots *r, const char *path, struct error **err);
int __wrap_path_remove(const struct path_roots *r, const char *path, struct error **err)
{
	return is_on("keeps-target") ? 0 : __real_path_remove(r, path, err);
}

/* Nothing is erased, neither by holes nor by zeros. */
int __real_fallocate(int fd, int mode, off_t offset, off_t length);
int __wrap_fallocate(int fd, int mode, off_t offset, off_t length);
int __wrap_fallocate(int fd, int mode, off_t offset, off_t length)
{
	return is_on("no-erase") ? 0 : __real_fallocate(fd, mode, offset, length);
}

int __real_ioctl(int fd, unsigned long request, void *argument);
int __wrap_ioctl(int fd, unsigned long request, ...);
int __wrap_ioctl(int fd, unsigned long request, ...)
{
	va_list arguments;

	va_start(arguments, request);
	void *argument = va_arg(arguments, void *);
	va_end(arguments);
	return is_on("no-erase") && request == BLKZEROOUT ? 0 : __real_ioctl(fd, request, argument);
}
