/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Operations that need libndctl: namespaces whose mode the kernel reads from the medium are enabled, or
 * reconfigured in place. The label, if there is one, stays, and a page map is written to the medium.
 *
 * Old content is cleared before the page map is made, not only afterwards: a process that is killed in
 * between leaves a blank fsdax namespace, which can be distinguished from one that is in use.
 */
#include <errno.h>
#include <linux/ndctl.h>
#include <unistd.h>
#include <uuid/uuid.h>

#include "base/durable_step.h"
#include "base/mem.h"
#include "base/str.h"
#include "os/blockdev.h"
#include "pmem/namespace_layout.h"
#include "pmem/nd/nd_library.h"
#include "pmem/nd/nd_private.h"

/* The page map takes 64 bytes for each page of 4 KiB, and less than that much more for its header and for
 * alignment (nd_pfn_init() of drivers/nvdimm/pfn_devs.c): the new block device begins after it. */
#define MAP_SHARE        64
#define MAP_EXTRA_BYTES  (16ULL << 20)
#define ZERO_ALIGN_BYTES 4096

static struct ndctl_namespace *find(struct ndctl_ctx *ctx, const char *dev)
{
	struct ndctl_bus *bus;
	struct ndctl_region *region;
	struct ndctl_namespace *ndns;

	ndctl_bus_foreach(ctx, bus)
	{
		ndctl_region_foreach(bus, region)
		{
			ndctl_namespace_foreach(region, ndns)
			{
				if (str_eq(ndctl_namespace_get_devname(ndns), dev))
					return ndns;
			}
		}
	}
	return NULL;
}

static bool has_label(struct ndctl_namespace *ndns)
{
	return ndctl_namespace_get_type(ndns) != ND_DEVICE_NAMESPACE_IO;
}

/* A namespace that a killed process has claimed cannot be enabled (nvdimm_namespace_common_probe()). */
static void release_claim(struct ndctl_namespace *ndns)
{
	struct ndctl_pfn *pfn = ndctl_namespace_get_pfn(ndns);

	if (pfn && !ndctl_pfn_is_enabled(pfn))
		STEP("convert-free-claim", ndctl_pfn_set_namespace(pfn, NULL));
}

int nd_convert_enable_device(const char *dev, struct error **err)
{
	CLEANUP(nd_library_closep) struct ndctl_ctx *ctx = NULL;

	if (nd_library_open(&ctx, err) < 0)
		return -1;

	struct ndctl_namespace *ndns = find(ctx, dev);
	if (!ndns)
		return err_set(err, ERR_NOT_FOUND, "%s does not exist", dev);
	if (nd_check_writable(dev, err) < 0)
		return -1;
	release_claim(ndns);
	int rc = STEP("convert-enable", ndctl_namespace_enable(ndns));
	if (rc < 0)
		return err_set_errno(err, ERR_INTERNAL, -rc, "the kernel refuses to enable it");
	return 0;
}

static struct ndctl_namespace *find_namespace(struct ndctl_ctx *ctx, const char *uuid)
{
	struct ndctl_bus *bus;
	struct ndctl_region *region;
	struct ndctl_namespace *ndns;
	uuid_t wanted;
	uuid_t found;

	if (uuid_parse(uuid, wanted) < 0)
		return NULL;
	ndctl_bus_foreach(ctx, bus)
	{
		ndctl_region_foreach(bus, region)
		{
			ndctl_namespace_foreach(region, ndns)
			{
				ndctl_namespace_get_uuid(ndns, found);
				if (ndctl_namespace_get_size(ndns) > 0 && uuid_compare(wanted, found) == 0)
					return ndns;
			}
		}
	}
	return NULL;
}

/* @ret: the namespace, or NULL when there is none with this UUID. */
static int find_own(struct ndctl_ctx *ctx, const char *uuid, const char *name, struct ndctl_namespace **ret,
	struct error **err)
{
	struct ndctl_namespace *ndns = find_namespace(ctx, uuid);

	if (ndns && !str_eq(ndctl_namespace_get_alt_name(ndns), name))
		return err_set(err, ERR_PRECONDITION, "%s is named \"%s\"", ndctl_namespace_get_devname(ndns),
			ndctl_namespace_get_alt_name(ndns));
	*ret = ndns;
	return ndns ? nd_check_writable(ndctl_namespace_get_devname(ndns), err) : 0;
}

/* A device that has already claimed the namespace, but was not started, is started itself. */
static int start(struct ndctl_namespace *ndns)
{
	struct ndctl_pfn *pfn = ndctl_namespace_get_pfn(ndns);
	struct ndctl_btt *btt = ndctl_namespace_get_btt(ndns);

	if (pfn)
		return STEP("nd-start-pfn", ndctl_pfn_enable(pfn));
	if (btt)
		return STEP("nd-start-btt", ndctl_btt_enable(btt));
	return STEP("nd-start", ndctl_namespace_enable(ndns));
}

int nd_convert_enable(const char *uuid, const char *name, struct error **err)
{
	CLEANUP(nd_library_closep) struct ndctl_ctx *ctx = NULL;
	struct ndctl_namespace *ndns = NULL;
	int rc = 0;

	if (nd_library_open(&ctx, err) < 0 || find_own(ctx, uuid, name, &ndns, err) < 0)
		return -1;
	if (!ndns)
		return err_set(err, ERR_NOT_FOUND, "no such namespace exists");
	if (!ndctl_namespace_is_active(ndns) && (rc = start(ndns)) < 0)
		return err_set_errno(err, rc == -ENOSPC ? ERR_EXHAUSTED : ERR_INTERNAL, -rc, "enable");
	return nd_check_enabled(uuid, err);
}

/* @ret: the namespace @dev as it is now; nd_namespace_free() */
static int read_namespace(const char *dev, struct nd_namespace **ret, struct error **err)
{
	if (nd_read_one(/* uuid= */ NULL, dev, ret, err) < 0)
		return -1;
	return *ret ? 0 : err_set(err, ERR_NOT_FOUND, "%s does not exist", dev);
}

static int check_unchanged(const struct nd_namespace *ns, struct error **err)
{
	CLEANUP(nd_namespace_freep) struct nd_namespace *now = NULL;

	if (read_namespace(ns->dev, &now, err) < 0)
		return -1;
	if (!now->bare || !str_eq(now->uuid, ns->uuid) || now->raw_bytes != ns->raw_bytes ||
		!str_eq(now->block_path, ns->block_path))
		return err_set(
			err, ERR_PRECONDITION, "%s has changed in the meantime, or is not raw", ns->dev);
	return 0;
}

static int clear_content(int held, const struct nd_namespace *ns, struct error **err)
{
	uint64_t start = layout_round_down(ns->usable_bytes / MAP_SHARE, ZERO_ALIGN_BYTES);
	uint64_t rest = ns->usable_bytes - start;

	/* Info blocks of other modes lie in the first MiB, too. */
	if (nd_wipe_held(held, ns, err) < 0)
		return -1;
	return blockdev_zero(held, start, rest < MAP_EXTRA_BYTES ? rest : MAP_EXTRA_BYTES, err);
}

static int set_label(struct ndctl_namespace *ndns, struct error **err)
{
	int rc = 0;

	if (!has_label(ndns))
		return 0;
	/* First, because only this shows that the namespace is ours when the mode is set. */
	if ((rc = STEP("convert-name", ndctl_namespace_set_alt_name(ndns, POOL_NAMESPACE_NAME))) < 0)
		return err_set_errno(err, ERR_INTERNAL, -rc, "set name");
	if ((rc = STEP("convert-mode", ndctl_namespace_set_enforce_mode(ndns, NDCTL_NS_MODE_FSDAX))) < 0)
		return err_set_errno(err, ERR_INTERNAL, -rc, "set mode");
	return 0;
}

/* The first failure is the one to report. */
static void give_back(struct ndctl_namespace *ndns, const char *name)
{
	if (has_label(ndns)) {
		STEP("convert-undo-mode", ndctl_namespace_set_enforce_mode(ndns, NDCTL_NS_MODE_RAW));
		STEP("convert-undo-name", ndctl_namespace_set_alt_name(ndns, name));
	}
	STEP("convert-undo-disable", ndctl_namespace_enable(ndns));
}

/* Takes @held, which is open until the namespace is disabled. */
static int reconfigure(int held, const struct nd_namespace *ns, struct error **err)
{
	CLEANUP(nd_library_closep) struct ndctl_ctx *ctx = NULL;
	CLEANUP(fd_closep) int fd = held;

	if (nd_library_open(&ctx, err) < 0)
		return -1;

	struct ndctl_namespace *ndns = find(ctx, ns->dev);
	if (!ndns)
		return err_set(err, ERR_NOT_FOUND, "%s does not exist", ns->dev);
	if (nd_disable_held(ns, err) < 0)
		return -1;
	close(TAKE_FD(fd));
	if (set_label(ndns, err) < 0 || nd_claim_fsdax(ns->dev, err) < 0) {
		give_back(ndns, ns->name);
		return -1;
	}
	return 0;
}

/* Without a label, set_alt_name() does nothing and reports success. */
static int verify(const struct nd_namespace *before, const struct nd_namespace *ns, struct error **err)
{
	const char *name = *before->uuid ? POOL_NAMESPACE_NAME : "";

	if (!ns->active || ns->bare || ns->mode != ND_FSDAX || !ns->block_path)
		return err_set(err, ERR_INTERNAL, "%s did not become an fsdax block device", ns->dev);
	if (!str_eq(ns->name, name))
		return err_set(err, ERR_INTERNAL, "%s has the name \"%s\" instead of \"%s\"", ns->dev,
			ns->name, name);
	return 0;
}

int nd_convert_run(const struct nd_namespace *ns, const struct nd_look *look, struct nd_namespace **ret,
	struct error **err)
{
	CLEANUP(fd_closep) int held = -1;
	CLEANUP(nd_namespace_freep) struct nd_namespace *now = NULL;

	if (check_unchanged(ns, err) < 0 || nd_check_writable(ns->dev, err) < 0)
		return -1;
	if (nd_hold(ns, look, &held, err) < 0)
		return -1;
	if (clear_content(held, ns, err) < 0)
		return err_wrap(err, "clear the old content");
	if (reconfigure(TAKE_FD(held), ns, err) < 0)
		return -1;
	if (read_namespace(ns->dev, &now, err) < 0 || verify(ns, now, err) < 0 || nd_wipe(now, err) < 0)
		return -1;
	*ret = TAKE_PTR(now);
	return 0;
}
