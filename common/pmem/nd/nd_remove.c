/* SPDX-License-Identifier: Apache-2.0 */
/* Removes a namespace: its info block is zeroed, so that a later namespace at the same offset does not get
 * the mode of this one. Source: the sequence of ndctl's namespace destruction. */
#include "base/durable_step.h"
#include "base/mem.h"
#include "base/str.h"
#include "os/blockdev.h"
#include "pmem/nd/btt_spare_blocks.h"
#include "pmem/nd/nd_private.h"

/* BTT keeps its info block at 0 or 4 KiB, pfn and dax at 4 KiB (drivers/nvdimm/btt_devs.c,
 * drivers/nvdimm/pfn_devs.c) */
#define INFO_BLOCK_BYTES 8192

static int check_own(const struct nd_namespace *ns, const char *name, struct error **err)
{
	if (!str_eq(ns->name, name))
		return err_set(err, ERR_PRECONDITION, "%s is named \"%s\"", ns->dev, ns->name);
	if (ns->mode == ND_DEVDAX)
		return err_set(err, ERR_PRECONDITION, "%s has become a devdax namespace", ns->dev);
	return nd_check_writable(ns->dev, err);
}

/* Once it is disabled, other programs, which do not take our lock, may use it, and the kernel may give its
 * name to another one. */
static int check_still(const struct nd_namespace *ns, struct error **err)
{
	CLEANUP(free_charp) char *uuid = NULL;

	if (nd_attr(ns->dev, "uuid", &uuid, err) < 0)
		return -1;
	return str_eq(uuid, ns->uuid) ? 0
				      : err_set(err, ERR_PRECONDITION,
						"%s has become another namespace in the meantime", ns->dev);
}

int nd_hold(const struct nd_namespace *ns, const struct nd_look *look, int *ret_fd, struct error **err)
{
	CLEANUP(fd_closep) int fd = -1;

	if (ns->block_path && nd_open_block_device(ns->block_path, &fd, err) < 0)
		return -1;
	if (nd_look_at(look, ns, err) < 0)
		return -1;
	*ret_fd = TAKE_FD(fd);
	return 0;
}

int nd_disable_held(const struct nd_namespace *ns, struct error **err)
{
	CLEANUP(free_charp) char *holder = NULL;

	if (nd_attr(ns->dev, "holder", &holder, err) < 0)
		return -1;
	if (ns->active && STEP("nd-disable", nd_unbind(str_empty(holder) ? ns->dev : holder, err)) < 0)
		return -1;
	if (str_empty(holder))
		return 0;
	return STEP("nd-detach", nd_attr_write(holder, "namespace", "", err));
}

/* Opened exclusively, so that no other user has the block device open while it is removed. */
int nd_disable(const struct nd_namespace *ns, struct error **err)
{
	CLEANUP(fd_closep) int held = -1;

	return nd_hold(ns, /* look= */ NULL, &held, err) < 0 ? -1 : nd_disable_held(ns, err);
}

/* A table's spare blocks first: without its info block they could not be found after a crash. Where no table
 * was, nothing is read: a damaged medium that cannot be read can still be zeroed. */
static int zero_info_block(const struct nd_namespace *ns, bool has_table, struct error **err)
{
	CLEANUP(free_charp) char *path = NULL;
	CLEANUP(fd_closep) int fd = -1;
	uint64_t bytes = 0;

	if (STEP("nd-raw-enable", nd_bind(ns->dev, err)) < 0)
		return err_wrap(err, "enable it in raw mode");
	if (nd_block_device(ns->dev, &path, &bytes, err) < 0)
		return -1;
	if (!path)
		return err_set(err, ERR_INTERNAL, "it has no block device as raw");
	if (nd_open_block_device(path, &fd, err) < 0 || check_still(ns, err) < 0)
		return -1;
	if (has_table && btt_erase_spare(fd, ns->raw_bytes, err) < 0)
		return -1;
	return blockdev_zero(fd, 0, INFO_BLOCK_BYTES, err);
}

static int forget_content(const struct nd_namespace *ns, bool has_table, struct error **err)
{
	CLEANUP(error_freep) struct error *second = NULL;

	if (check_still(ns, err) < 0 ||
		STEP("nd-mode-raw", nd_attr_write(ns->dev, "holder_class", "", err)) < 0 ||
		STEP("nd-raw", nd_attr_write(ns->dev, "force_raw", "1", err)) < 0)
		return -1;
	int rc = zero_info_block(ns, has_table, err);
	if (STEP("nd-raw-end", nd_attr_write(ns->dev, "force_raw", "0", &second)) < 0)
		error_clear(&second);
	if (nd_is_bound(ns->dev) && STEP("nd-raw-disable", nd_unbind(ns->dev, &second)) < 0 && rc == 0) {
		*err = TAKE_PTR(second);
		return -1;
	}
	return rc < 0 ? err_wrap(err, "zero the info block") : 0;
}

int nd_remove(const char *uuid, const char *name, struct error **err)
{
	CLEANUP(nd_namespace_freep) struct nd_namespace *ns = NULL;
	CLEANUP(free_charp) char *class = NULL;

	if (nd_read_one(uuid, /* dev= */ NULL, &ns, err) < 0)
		return -1;
	if (!ns)
		return 0;
	if (check_own(ns, name, err) < 0 || nd_load_driver(err) < 0)
		return -1;
	if (nd_attr(ns->dev, "holder_class", &class, err) < 0 || nd_disable(ns, err) < 0)
		return -1;
	/* one that says raw may have been stopped here before */
	if (forget_content(ns, !str_eq(class, "pfn"), err) < 0 || check_still(ns, err) < 0)
		return -1;
	return STEP("nd-delete", nd_attr_write(ns->dev, "size", "0", err));
}
