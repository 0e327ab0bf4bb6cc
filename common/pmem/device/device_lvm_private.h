/* SPDX-License-Identifier: Apache-2.0 */
/*
 * device_lvm_private.h - what the files of the LVM device manager share.
 *
 * Threads: the functions are called with the manager's lock held, except where a comment says otherwise.
 */
#pragma once

#include <pthread.h>
#include <stdbool.h>

#include "pmem/bounded_lock.h"
#include "pmem/device/device.h"
#include "pmem/lvm/lvm.h"
#include "pmem/nd/nd.h"

/* An operation that takes longer may hang in the kernel, where it cannot be ended, and each caller that waits
 * holds a thread (nd.h). */
#define DEVICE_LVM_WAIT_MS 20000

struct device_lvm {
	struct bounded_lock lock; /* around commands and for what follows */
	struct nd *nd;
	struct lvm *lvm;
	struct lvm_report *report; /* of the last listing; NULL before the first */
	struct nd_inventory *inv;  /* of the same listing */
	struct device_list *seen;  /* the same, with what we have changed since */
	char *saved_folder;        /* pool_backup.h; NULL: no copies of metadata are kept */
	bool saving_fails;         /* and that was logged */
	pthread_mutex_t mutex;     /* for what follows; held for moments */
	char **paths;              /* block devices below our groups, as listed last: strv */
	char **spares;             /* names of those that growths of this process use: strv */
};

/** device_lvm_refresh() - list groups and devices again. Return: 0, or -1 as nd_list() and lvm_list(). */
int device_lvm_refresh(struct device_lvm *m, struct error **err) MUST_CHECK;

/** device_lvm_group() - get the volume group with @uuid as it was listed last, or NULL. */
const struct lvm_vg *device_lvm_group(const struct device_lvm *m, const char *uuid);

/** device_lvm_limit_space() - find the free space of the groups of @report, a new listing, that has no media
 * errors, and log where that has changed. Reads a file for each device; a file that cannot be read says
 * nothing. */
void device_lvm_limit_space(const struct device_lvm *m, struct lvm_report *report);

/** device_lvm_is_space_kept() - whether the free space of @pool (uuid) can be used as it was listed last: no
 * media error limits it, then or now. Reads a file for each of its devices. */
bool device_lvm_is_space_kept(const struct device_lvm *m, const char *pool);

/** device_lvm_name_bad_space() - add to @err how much free space of @pool (uuid) is not used because of media
 * errors, if there is such. Return: -1. */
int device_lvm_name_bad_space(const struct device_lvm *m, const char *pool, struct error **err);

/** device_lvm_find() - get the device called @id in @pool (uuid) as it was seen last, borrowed, or NULL. */
const struct device *device_lvm_find(const struct device_lvm *m, const char *pool, const char *id);

/** device_lvm_refuse_other() - fail because the device called as @wanted has another identity. Return: -1. */
int device_lvm_refuse_other(const struct device *wanted, struct error **err);

/** device_lvm_confirm() - device_ops.confirm. With the lock or without it. */
int device_lvm_confirm(void *self, const struct device *d, struct error **err) MUST_CHECK;

/** device_lvm_grow() - device_ops.grow. Without the lock. */
int device_lvm_grow(
	void *self, const struct device_growth *growth, struct device **ret, struct error **err) MUST_CHECK;

/** device_lvm_remove_leftovers() - device_ops.remove_leftovers. Without the lock. */
int device_lvm_remove_leftovers(void *self, bool *ret_changed, struct error **err) MUST_CHECK;

/** device_lvm_media_errors() - device_ops.media_errors. Without the lock. */
int device_lvm_media_errors(
	void *self, const struct device_list *list, struct media_errors *ret, struct error **err) MUST_CHECK;
