#include <errno.h>
#include <ndctl/libndctl.h>
#include <uuid/uuid.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/step.h"
#include "base/str.h"
#include "os/lock.h"
#include "pmem/nd_private.h"

#define LOCK_NAME       "nd.lock"
#define LOCK_TIMEOUT_MS 60000

__attribute__((format(printf, 6, 0))) static void log_library(struct ndctl_ctx *ctx, int priority,
	const char *file, int line, const char *function, const char *format, va_list ap)
{
	(void)ctx;
	(void)priority;
	(void)file;
	(void)line;
	if (!log_enabled(LOG_DEBUG))
		return;
	CLEANUP(free_charp) char *text = x_vasprintf(format, ap);
	log_debug("libndctl", F_STR("function", function), F_STR("message", text));
}

int nd_context_new(struct ndctl_ctx **ret, struct error **err)
{
	struct ndctl_ctx *ctx = NULL;
	int rc = ndctl_new(&ctx);

	if (rc < 0)
		return err_set_errno(err, ERR_INTERNAL, -rc, "open libndctl");
	ndctl_set_log_fn(ctx, log_library);
	*ret = ctx;
	return 0;
}

void nd_context_free(struct ndctl_ctx *ctx)
{
	ndctl_unref(ctx);
}

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
	if (nd_remove(spec->uuid, spec->name, &second) < 0)
		err_wrap(err, "not taken back (%s)", second->msg);
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

/* What is put before a namespace already, but did not start, is started itself. */
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

static int real_enable(void *self, const char *uuid, const char *name, struct error **err)
{
	CLEANUP(nd_context_freep) struct ndctl_ctx *ctx = NULL;
	struct ndctl_namespace *ndns = NULL;
	CLEANUP(fd_closep) int lock = -1;
	int rc = 0;

	(void)self;
	if (host_lock_run(LOCK_NAME, LOCK_TIMEOUT_MS, &lock, err) < 0)
		return -1;
	if (nd_context_new(&ctx, err) < 0)
		return -1;
	if (find_own(ctx, uuid, name, &ndns, err) < 0)
		return -1;
	if (!ndns)
		return err_set(err, ERR_NOT_FOUND, "there is none");
	if (!ndctl_namespace_is_active(ndns) && (rc = start(ndns)) < 0)
		return nd_refused(err, rc, "enable");
	return nd_check_enabled(uuid, err);
}

static int real_wake(void *self, const char *dev, struct error **err)
{
	CLEANUP(fd_closep) int lock = -1;

	(void)self;
	if (host_lock_run(LOCK_NAME, LOCK_TIMEOUT_MS, &lock, err) < 0)
		return -1;
	return nd_convert_wake(dev, err);
}

static int real_convert(
	void *self, const struct nd_namespace *ns, struct nd_namespace **ret, struct error **err)
{
	CLEANUP(fd_closep) int lock = -1;

	(void)self;
	if (host_lock_run(LOCK_NAME, LOCK_TIMEOUT_MS, &lock, err) < 0)
		return -1;
	return nd_convert_run(ns, ret, err);
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
	.wake = real_wake,
	.convert = real_convert,
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
