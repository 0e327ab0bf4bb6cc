#include <errno.h>
#include <linux/fs.h>
#include <linux/ndctl.h>
#include <ndctl/libndctl.h>
#include <sys/ioctl.h>
#include <sys/statvfs.h>
#include <uuid/uuid.h>

#include "base/mem.h"
#include "base/random.h"
#include "base/step.h"
#include "base/str.h"
#include "os/blockdev.h"
#include "os/lock.h"
#include "pmem/erase.h"
#include "pmem/layout.h"
#include "pmem/nd_list.h"

#define LOCK_NAME            "nd.lock"
#define LOCK_TIMEOUT_MS      60000
#define BLOCK_DEV_TIMEOUT_MS 5000
#define SECTOR_BYTES         512
/* BTT keeps its info block at 0 or 4 KiB, pfn and dax at 4 KiB (drivers/nvdimm/btt_devs.c, pfn_devs.c) */
#define INFO_BLOCK_BYTES 8192

static int real_list(void *self, struct nd_inventory **ret, struct error **err)
{
	CLEANUP(fd_closep) int lock = -1;

	(void)self;
	if (host_lock_run(LOCK_NAME, LOCK_TIMEOUT_MS, &lock, err) < 0)
		return -1;
	return nd_list_read(ret, err);
}

static struct ndctl_region *find_region(struct ndctl_ctx *ctx, const char *bus_name, const char *name)
{
	struct ndctl_bus *bus;
	struct ndctl_region *region;

	ndctl_bus_foreach(ctx, bus)
	{
		if (!str_eq(ndctl_bus_get_devname(bus), bus_name))
			continue;
		ndctl_region_foreach(bus, region)
		{
			if (str_eq(ndctl_region_get_devname(region), name))
				return region;
		}
	}
	return NULL;
}

/* Every setter would fail with EROFS; one clear message instead. */
static int check_sysfs_writable(const char *device, struct error **err)
{
	CLEANUP(free_charp) char *path = x_asprintf(ND_SYSFS_DEVICES "/%s/", device);
	struct statvfs fs;

	if (statvfs(path, &fs) < 0)
		return err_set_errno(err, ERR_INTERNAL, errno, "%s", path);
	if (fs.f_flag & ST_RDONLY)
		return err_set(err, ERR_PRECONDITION,
			"/sys is mounted read-only, but namespaces are made by writing there; the container "
			"must be privileged");
	return 0;
}

static int check_region(struct ndctl_region *region, struct error **err)
{
	const char *name = ndctl_region_get_devname(region);

	if (ndctl_region_get_type(region) != ND_DEVICE_REGION_PMEM ||
		ndctl_region_get_nstype(region) != ND_DEVICE_NAMESPACE_PMEM)
		return err_set(err, ERR_PRECONDITION, "%s has no labels", name);
	if (!ndctl_region_is_enabled(region))
		return err_set(err, ERR_PRECONDITION, "%s is disabled", name);
	if (ndctl_region_get_ro(region) != 0)
		return err_set(err, ERR_PRECONDITION, "%s is read-only", name);
	return check_sysfs_writable(name, err);
}

static int check_size(struct ndctl_region *region, uint64_t size_bytes, struct error **err)
{
	uint64_t unit = layout_alignment(nd_seed_align(ndctl_region_get_devname(region)),
		ndctl_region_get_interleave_ways(region), ndctl_region_get_align(region));
	uint64_t extent = ndctl_region_get_max_available_extent(region);

	if (size_bytes % unit)
		return err_set(err, ERR_INVALID_ARGUMENT, "%ju bytes is not a multiple of %ju",
			(uintmax_t)size_bytes, (uintmax_t)unit);
	if (extent == ULLONG_MAX)
		extent = ndctl_region_get_available_size(region);
	if (size_bytes > extent)
		return err_set(err, ERR_EXHAUSTED, "%ju bytes asked for, the largest free extent has %ju",
			(uintmax_t)size_bytes, (uintmax_t)extent);
	return 0;
}

/* A namespace takes a slot on each module of the interleave set. */
static int check_label_slots(struct ndctl_region *region, struct error **err)
{
	struct ndctl_dimm *dimm;

	ndctl_dimm_foreach_in_region(region, dimm)
	{
		if (ndctl_dimm_get_available_labels(dimm) == 0)
			return err_set(
				err, ERR_EXHAUSTED, "no free label slot on %s", ndctl_dimm_get_devname(dimm));
	}
	return 0;
}

static bool is_idle(struct ndctl_namespace *ndns)
{
	return ndctl_namespace_get_size(ndns) == 0 && !ndctl_namespace_is_active(ndns);
}

/* The kernel keeps one namespace of size 0 ready; a failed creation can leave further ones. */
static struct ndctl_namespace *find_idle(struct ndctl_region *region)
{
	struct ndctl_namespace *ndns = ndctl_region_get_namespace_seed(region);

	if (ndns && is_idle(ndns))
		return ndns;
	ndctl_namespace_foreach(region, ndns)
	{
		if (is_idle(ndns))
			return ndns;
	}
	return NULL;
}

static int refused(struct error **err, int rc, const char *what)
{
	return err_set_errno(err, rc == -ENOSPC ? ERR_EXHAUSTED : ERR_INTERNAL, -rc, "%s", what);
}

static int set_label(struct ndctl_namespace *ndns, const struct nd_spec *spec, struct error **err)
{
	uuid_t uuid;
	int rc = 0;

	if (uuid_parse(spec->uuid, uuid) < 0)
		return err_set(err, ERR_INVALID_ARGUMENT, "\"%s\" is not a UUID", spec->uuid);
	if ((rc = STEP("nd-uuid", ndctl_namespace_set_uuid(ndns, uuid))) < 0)
		return refused(err, rc, "set UUID");
	if ((rc = STEP("nd-name", ndctl_namespace_set_alt_name(ndns, spec->name))) < 0)
		return refused(err, rc, "set name");
	if ((rc = STEP("nd-size", ndctl_namespace_set_size(ndns, spec->size_bytes))) < 0)
		return refused(err, rc, "set size");
	for (int i = 0; i < ndctl_namespace_get_num_sector_sizes(ndns); i++) {
		if (ndctl_namespace_get_supported_sector_size(ndns, i) != SECTOR_BYTES)
			continue;
		if ((rc = STEP("nd-sector", ndctl_namespace_set_sector_size(ndns, SECTOR_BYTES))) < 0)
			return refused(err, rc, "set sector size");
	}
	if ((rc = STEP("nd-mode", ndctl_namespace_set_enforce_mode(ndns, NDCTL_NS_MODE_FSDAX))) < 0)
		return refused(err, rc, "set mode");
	return 0;
}

static int claim(struct ndctl_pfn *pfn, struct ndctl_namespace *ndns, struct error **err)
{
	char text[UUID_TEXT_LEN + 1];
	uint64_t align = nd_seed_align(ndctl_region_get_devname(ndctl_pfn_get_region(pfn)));
	uuid_t uuid;
	int rc = 0;

	uuid_generate_text(text);
	if (uuid_parse(text, uuid) < 0)
		return err_set(err, ERR_INTERNAL, "generate UUID");
	if ((rc = STEP("nd-pfn-uuid", ndctl_pfn_set_uuid(pfn, uuid))) < 0)
		return refused(err, rc, "set UUID of the page map");
	if ((rc = STEP("nd-pfn-place", ndctl_pfn_set_location(pfn, NDCTL_PFN_LOC_PMEM))) < 0)
		return refused(err, rc, "set place of the page map");
	if (align && (rc = STEP("nd-pfn-align", ndctl_pfn_set_align(pfn, align))) < 0)
		return refused(err, rc, "set alignment");
	if ((rc = STEP("nd-pfn-claim", ndctl_pfn_set_namespace(pfn, ndns))) < 0)
		return refused(err, rc, "claim namespace");
	if ((rc = STEP("nd-pfn-enable", ndctl_pfn_enable(pfn))) < 0)
		return refused(err, rc, "enable namespace");
	return 0;
}

/* The first failure is the one to report; whatever cannot be taken back here shows in the next listing. */
static void give_back(struct ndctl_pfn *pfn, struct ndctl_namespace *ndns)
{
	STEP("nd-undo-claim", ndctl_pfn_set_namespace(pfn, NULL));
	STEP("nd-undo-mode", ndctl_namespace_set_enforce_mode(ndns, NDCTL_NS_MODE_RAW));
	STEP("nd-undo-label", ndctl_namespace_delete(ndns));
}

static int make(const struct nd_spec *spec, struct error **err)
{
	CLEANUP(nd_context_freep) struct ndctl_ctx *ctx = NULL;

	if (nd_context_new(&ctx, err) < 0)
		return -1;

	struct ndctl_region *region = find_region(ctx, spec->bus, spec->region);
	if (!region)
		return err_set(err, ERR_NOT_FOUND, "no region %s on %s", spec->region, spec->bus);
	if (check_region(region, err) < 0 || check_size(region, spec->size_bytes, err) < 0 ||
		check_label_slots(region, err) < 0)
		return -1;

	struct ndctl_namespace *ndns = find_idle(region);
	struct ndctl_pfn *pfn = ndctl_region_get_pfn_seed(region);
	if (!ndns || !pfn)
		return err_set(err, ERR_EXHAUSTED, "the kernel offers no idle namespace");
	/* A process that was killed in the middle leaves its claim; it would make every later one fail. */
	if (ndctl_pfn_get_namespace(pfn) && !ndctl_pfn_is_enabled(pfn))
		STEP("nd-free-claim", ndctl_pfn_set_namespace(pfn, NULL));
	if (set_label(ndns, spec, err) < 0 || claim(pfn, ndns, err) < 0) {
		give_back(pfn, ndns);
		return -1;
	}
	return 0;
}

static int read_back(const char *uuid, struct nd_namespace **ret, struct error **err)
{
	CLEANUP(nd_inventory_freep) struct nd_inventory *inv = NULL;

	if (nd_list_read(&inv, err) < 0)
		return -1;
	for (size_t i = 0; i < inv->n_regions; i++) {
		struct nd_region *r = &inv->regions[i];
		for (size_t k = 0; k < r->n_namespaces; k++) {
			if (!str_eq(r->namespaces[k].uuid, uuid))
				continue;
			*ret = x_malloc(sizeof(**ret));
			**ret = r->namespaces[k];
			r->namespaces[k] = (struct nd_namespace){0};
			return 0;
		}
	}
	return err_set(err, ERR_INTERNAL, "the new namespace is not there");
}

static int verify(const struct nd_spec *spec, const struct nd_namespace *ns, struct error **err)
{
	if (!str_eq(ns->name, spec->name) || ns->raw_bytes != spec->size_bytes)
		return err_set(err, ERR_INTERNAL, "%s has name \"%s\" and %ju bytes instead of what was set",
			ns->dev, ns->name, (uintmax_t)ns->raw_bytes);
	if (!ns->active || ns->mode != ND_FSDAX || !ns->block_path)
		return err_set(err, ERR_INTERNAL, "%s did not become an fsdax block device", ns->dev);
	return 0;
}

static int open_block_device(const char *path, int *ret_fd, struct error **err)
{
	if (blockdev_wait(path, BLOCK_DEV_TIMEOUT_MS, err) < 0)
		return -1;
	return blockdev_open_exclusive(path, ret_fd, err);
}

static int wipe(const struct nd_namespace *ns, struct error **err)
{
	CLEANUP(fd_closep) int fd = -1;

	if (open_block_device(ns->block_path, &fd, err) < 0 || erase_head(fd, ns->usable_bytes, err) < 0)
		return err_wrap(err, "wipe old signatures");
	/* Partitions of the old content appeared with the device. */
	if (ioctl(fd, BLKRRPART) < 0 && errno != EINVAL)
		return err_set_errno(err, ERR_INTERNAL, errno, "forget old partitions of %s", ns->block_path);
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

static int disable(struct ndctl_namespace *ndns, struct error **err)
{
	const char *dev = ndctl_namespace_get_devname(ndns);
	int rc = STEP("nd-disable", ndctl_namespace_disable_safe(ndns));

	if (rc == -EBUSY)
		return err_set(err, ERR_PRECONDITION, "%s is in use", dev);
	if (rc < 0)
		return err_set_errno(err, ERR_INTERNAL, -rc, "disable %s", dev);
	/* It does not tell when the disabling itself fails. */
	if (ndctl_namespace_is_active(ndns))
		return err_set(err, ERR_INTERNAL, "%s cannot be disabled", dev);
	return 0;
}

static int zero_info_block(struct ndctl_namespace *ndns, struct error **err)
{
	CLEANUP(free_charp) char *path = NULL;
	CLEANUP(fd_closep) int fd = -1;
	int rc = STEP("nd-raw-enable", ndctl_namespace_enable(ndns));

	if (rc < 0)
		return refused(err, rc, "enable as raw");
	path = x_asprintf("/dev/%s", ndctl_namespace_get_block_device(ndns));
	if (open_block_device(path, &fd, err) < 0)
		return -1;
	return blockdev_zero(fd, 0, INFO_BLOCK_BYTES, err);
}

/* Otherwise a later namespace at the same place is assembled as what this one was. */
static int forget_content(struct ndctl_namespace *ndns, struct error **err)
{
	int rc = STEP("nd-raw", ndctl_namespace_set_raw_mode(ndns, 1));

	if (rc < 0)
		return refused(err, rc, "set raw mode");
	int zeroed = zero_info_block(ndns, err);
	STEP("nd-raw-end", ndctl_namespace_set_raw_mode(ndns, 0));
	rc = STEP("nd-raw-disable", ndctl_namespace_disable_invalidate(ndns));
	if (zeroed < 0)
		return err_wrap(err, "zero the info block");
	if (rc < 0)
		return refused(err, rc, "disable");
	return 0;
}

static int remove_namespace(const char *uuid, const char *name, struct error **err)
{
	CLEANUP(nd_context_freep) struct ndctl_ctx *ctx = NULL;
	int rc = 0;

	if (nd_context_new(&ctx, err) < 0)
		return -1;

	struct ndctl_namespace *ndns = find_namespace(ctx, uuid);
	if (!ndns)
		return 0;
	const char *dev = ndctl_namespace_get_devname(ndns);
	if (!str_eq(ndctl_namespace_get_alt_name(ndns), name))
		return err_set(
			err, ERR_PRECONDITION, "%s is named \"%s\"", dev, ndctl_namespace_get_alt_name(ndns));
	if (check_sysfs_writable(dev, err) < 0 || disable(ndns, err) < 0)
		return -1;
	if ((rc = STEP("nd-mode-raw", ndctl_namespace_set_enforce_mode(ndns, NDCTL_NS_MODE_RAW))) < 0)
		return refused(err, rc, "set raw mode");
	if (forget_content(ndns, err) < 0)
		return -1;
	if ((rc = STEP("nd-delete", ndctl_namespace_delete(ndns))) < 0)
		return refused(err, rc, "delete");
	return 0;
}

static int real_create(void *self, const struct nd_spec *spec, struct nd_namespace **ret, struct error **err)
{
	CLEANUP(nd_namespace_freep) struct nd_namespace *ns = NULL;
	CLEANUP(error_freep) struct error *second = NULL;
	CLEANUP(fd_closep) int lock = -1;

	(void)self;
	if (host_lock_run(LOCK_NAME, LOCK_TIMEOUT_MS, &lock, err) < 0 || make(spec, err) < 0)
		return -1;
	if (read_back(spec->uuid, &ns, err) < 0 || verify(spec, ns, err) < 0 || wipe(ns, err) < 0) {
		if (remove_namespace(spec->uuid, spec->name, &second) < 0)
			err_wrap(err, "not taken back (%s)", second->msg);
		return -1;
	}
	*ret = TAKE_PTR(ns);
	return 0;
}

static int real_destroy(void *self, const char *uuid, const char *name, struct error **err)
{
	CLEANUP(fd_closep) int lock = -1;

	(void)self;
	if (host_lock_run(LOCK_NAME, LOCK_TIMEOUT_MS, &lock, err) < 0)
		return -1;
	return remove_namespace(uuid, name, err);
}

static void real_close(void *self)
{
	(void)self;
}

static const struct nd_ops real_ops = {
	.list = real_list,
	.create = real_create,
	.destroy = real_destroy,
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
