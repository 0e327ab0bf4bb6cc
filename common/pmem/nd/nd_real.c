/* SPDX-License-Identifier: Apache-2.0 */
/* nd.h for the kernel of this host: each operation runs under the lock that our other processes take, too. */
#include <errno.h>
#include <unistd.h>

#include "base/mem.h"
#include "os/lock.h"
#include "pmem/nd/nd_init_labels.h"
#include "pmem/nd/nd_kind.h"
#include "pmem/nd/nd_private.h"

#define LOCK_NAME       "nd.lock"
#define LOCK_TIMEOUT_MS 60000

static int real_list(void *self, struct nd_inventory **ret, struct error **err)
{
	CLEANUP(fd_closep) int lock = -1;

	(void)self;
	if (host_lock_run(LOCK_NAME, LOCK_TIMEOUT_MS, &lock, err) < 0)
		return -1;
	return nd_list_read(ret, err);
}

static int real_confirm(void *self, const char *block_path, const char *uuid, struct error **err)
{
	(void)self;
	return nd_confirm_read(block_path, uuid, err);
}

static int real_create(void *self, const struct nd_spec *spec, struct nd_namespace **ret,
	struct nd_inventory **ret_after, struct error **err)
{
	CLEANUP(error_freep) struct error *second = NULL;
	CLEANUP(fd_closep) int lock = -1;

	(void)self;
	if (host_lock_run(LOCK_NAME, LOCK_TIMEOUT_MS, &lock, err) < 0 || nd_make(spec, err) < 0)
		return -1;
	if (nd_check_created(spec, ret, ret_after, err) == 0)
		return 0;
	if (nd_remove(spec->uuid, spec->label, &second) < 0)
		err_wrap(err, "could not be removed again (%s)", second->msg);
	return -1;
}

static int real_destroy(
	void *self, const char *uuid, const char *name, struct nd_inventory **ret_after, struct error **err)
{
	CLEANUP(fd_closep) int lock = -1;

	(void)self;
	if (host_lock_run(LOCK_NAME, LOCK_TIMEOUT_MS, &lock, err) < 0)
		return -1;
	if (nd_remove(uuid, name, err) < 0)
		return -1;
	return nd_check_gone(uuid, ret_after, err);
}

static int real_enable(void *self, const char *uuid, const char *name, struct error **err)
{
	CLEANUP(fd_closep) int lock = -1;

	(void)self;
	if (host_lock_run(LOCK_NAME, LOCK_TIMEOUT_MS, &lock, err) < 0)
		return -1;
	return nd_convert_enable(uuid, name, err);
}

static int real_enable_device(void *self, const char *dev, struct error **err)
{
	CLEANUP(fd_closep) int lock = -1;

	(void)self;
	if (host_lock_run(LOCK_NAME, LOCK_TIMEOUT_MS, &lock, err) < 0)
		return -1;
	return nd_convert_enable_device(dev, err);
}

static int real_convert(void *self, const struct nd_namespace *ns, const struct nd_look *look,
	struct nd_namespace **ret, struct error **err)
{
	CLEANUP(fd_closep) int lock = -1;

	(void)self;
	if (host_lock_run(LOCK_NAME, LOCK_TIMEOUT_MS, &lock, err) < 0)
		return -1;
	return nd_convert_run(ns, look, ret, err);
}

static int real_describe(void *self, const char *region, struct nd_memory *ret, struct error **err)
{
	CLEANUP(fd_closep) int lock = -1;

	(void)self;
	if (host_lock_run(LOCK_NAME, LOCK_TIMEOUT_MS, &lock, err) < 0)
		return -1;
	return nd_kind_read(region, ret, err);
}

static int real_init_labels(
	void *self, const struct nd_region *r, const struct nd_look *look, struct error **err)
{
	CLEANUP(fd_closep) int lock = -1;

	(void)self;
	if (host_lock_run(LOCK_NAME, LOCK_TIMEOUT_MS, &lock, err) < 0)
		return -1;
	return nd_init_labels_run(r, look, err);
}

static int real_settle_labels(void *self, bool *ret_changed, struct error **err)
{
	CLEANUP(fd_closep) int lock = -1;

	(void)self;
	if (host_lock_run(LOCK_NAME, LOCK_TIMEOUT_MS, &lock, err) < 0)
		return -1;
	return nd_init_labels_settle(ret_changed, err);
}

static void real_close(void *self)
{
	(void)self;
}

static const struct nd_ops real_ops = {
	.list = real_list,
	.confirm = real_confirm,
	.create = real_create,
	.destroy = real_destroy,
	.enable = real_enable,
	.enable_device = real_enable_device,
	.convert = real_convert,
	.describe = real_describe,
	.init_labels = real_init_labels,
	.settle_labels = real_settle_labels,
	.close = real_close,
};

int nd_open_real(struct nd **ret, struct error **err)
{
	struct nd *nd;

	if (access(ND_SYSFS_DEVICES, F_OK) < 0)
		return err_set_errno(
			err, ERR_PRECONDITION, errno, ND_SYSFS_DEVICES " (is the libnvdimm module loaded?)");
	nd = x_calloc(1, sizeof(*nd));
	nd->ops = &real_ops;
	*ret = nd;
	return 0;
}
