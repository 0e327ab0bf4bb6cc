/* SPDX-License-Identifier: Apache-2.0 */
#include "pmem/nd/nd_init_labels.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/durable_step.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/span.h"
#include "base/str.h"
#include "os/file.h"
#include "pmem/nd/label_area.h"
#include "pmem/nd/nd_kind.h"
#include "pmem/nd/nd_library.h"
#include "pmem/nd/nd_private.h"

/* host_lock_run(), which the caller has called, makes the folder and checks it. */
#define RUN_DIR     "/run/pmem-csi"
#define NOTE_PREFIX "init-labels-"

static int note_begin(const char *region, struct error **err)
{
	CLEANUP(free_charp) char *name = x_asprintf(NOTE_PREFIX "%s", region);
	CLEANUP(fd_closep) int dir = -1;

	if (dir_open(RUN_DIR, /* create= */ false, 0, &dir, err) < 0)
		return -1;
	return file_write_atomic(dir, name, span_of(region), 0600, err);
}

static int note_end(const char *region, struct error **err)
{
	CLEANUP(free_charp) char *name = x_asprintf(NOTE_PREFIX "%s", region);
	CLEANUP(fd_closep) int dir = -1;

	if (dir_open(RUN_DIR, /* create= */ false, 0, &dir, err) < 0)
		return -1;
	return file_unlink_durable(dir, name, err);
}

static struct ndctl_region *find_region(struct ndctl_ctx *ctx, const char *name)
{
	struct ndctl_bus *bus;
	struct ndctl_region *region;

	ndctl_bus_foreach(ctx, bus)
	{
		ndctl_region_foreach(bus, region)
		{
			if (str_eq(ndctl_region_get_devname(region), name))
				return region;
		}
	}
	return NULL;
}

/* The name is one of a region, since it becomes part of a path. */
static bool is_region_name(const char *name)
{
	const char *digits = name + strlen("region");

	return str_starts(name, "region") && *digits && digits[strspn(digits, "0123456789")] == '\0';
}

/* The kernel reads labels when it enables a module, and takes a region whose modules are enabled. */
static int enable_all(const char *name, struct error **err)
{
	CLEANUP(nd_library_closep) struct ndctl_ctx *ctx = NULL;
	struct ndctl_dimm *module;
	int rc;

	if (nd_library_open(&ctx, err) < 0)
		return -1;
	struct ndctl_region *region = find_region(ctx, name);
	if (!region)
		return 0;
	ndctl_dimm_foreach_in_region(region, module)
	{
		if (ndctl_dimm_is_enabled(module))
			continue;
		if ((rc = STEP("labels-module-on", ndctl_dimm_enable(module))) < 0)
			return err_set_errno(
				err, ERR_INTERNAL, -rc, "enable %s", ndctl_dimm_get_devname(module));
	}
	if (ndctl_region_is_enabled(region))
		return 0;
	if ((rc = STEP("labels-region-on", ndctl_region_enable(region))) < 0)
		return err_set_errno(err, ERR_INTERNAL, -rc, "enable %s", name);
	return 0;
}

/* A namespace that cannot be enabled does not stop the others, and stays in the listing. */
static int enable_namespaces(const char *name, struct error **err)
{
	CLEANUP(nd_inventory_freep) struct nd_inventory *inv = NULL;

	if (nd_list_read(&inv, err) < 0)
		return -1;
	for (size_t i = 0; i < inv->n_regions; i++) {
		const struct nd_region *r = &inv->regions[i];
		for (size_t k = 0; str_eq(r->name, name) && k < r->n_namespaces; k++) {
			CLEANUP(error_freep) struct error *why = NULL;
			if (!r->namespaces[k].active &&
				nd_convert_enable_device(r->namespaces[k].dev, &why) < 0)
				log_warn("namespace not enabled again", F_ERR(why));
		}
	}
	return 0;
}

static int bring_back(const char *region, struct error **err)
{
	if (enable_all(region, err) < 0 || enable_namespaces(region, err) < 0)
		return -1;
	return note_end(region, err);
}

/* A region is disabled only if its label areas are blank, and its namespaces are raw. */
static int check_region(const struct nd_region *r, struct error **err)
{
	CLEANUP(nd_memory_done) struct nd_memory m = {0};

	if (nd_kind_read(r->name, &m, err) < 0)
		return -1;
	if (m.kind != ND_MEMORY_BLANK)
		return err_set(err, ERR_PRECONDITION, "%s",
			m.problem ? m.problem : "its modules have no blank label areas");
	if (!r->enabled || r->readonly)
		return err_set(err, ERR_PRECONDITION, "%s is disabled, or read-only", r->name);
	for (size_t i = 0; i < r->n_namespaces; i++)
		if (!r->namespaces[i].bare || r->namespaces[i].mode != ND_RAW)
			return err_set(err, ERR_PRECONDITION, "%s is not raw", r->namespaces[i].dev);
	return nd_check_writable(r->name, err);
}

static int disable_namespace(const struct nd_namespace *ns, const struct nd_look *look, struct error **err)
{
	CLEANUP(fd_closep) int held = -1;

	return nd_hold(ns, look, &held, err) < 0 ? -1 : nd_disable_held(ns, err);
}

static int disable_all(const struct nd_region *r, struct ndctl_region *region, const struct nd_look *look,
	struct error **err)
{
	for (size_t i = 0; i < r->n_namespaces; i++)
		if (disable_namespace(&r->namespaces[i], look, err) < 0)
			return -1;
	int rc = STEP("labels-region-off", ndctl_region_disable_preserve(region));
	return rc < 0 ? err_set_errno(err, ERR_INTERNAL, -rc, "disable %s", r->name) : 0;
}

/* The version that ndctl writes by default, which each kernel with labels reads. */
static int write_index(struct ndctl_dimm *module, struct error **err)
{
	struct ndctl_cmd *index = ndctl_dimm_read_label_index(module);

	if (!index)
		return err_set(err, ERR_INTERNAL, "read the index of its labels");
	int rc = STEP("labels-write", ndctl_dimm_init_labels(module, NDCTL_NS_VERSION_1_1));
	ndctl_cmd_unref(index);
	return rc < 0 ? err_set_errno(err, ERR_INTERNAL, -rc, "write the index of its labels") : 0;
}

/* All of the area is read: nothing keeps other programs from writing it while the region is enabled. The
 * kernel keeps a copy of it while the module is enabled. */
static int init_module(struct ndctl_dimm *module, struct error **err)
{
	enum label_area area;

	if (label_area_read(ndctl_dimm_get_devname(module), /* whole= */ true, &area, err) < 0)
		return -1;
	if (area != LABEL_AREA_BLANK && area != LABEL_AREA_EMPTY)
		return err_set(err, ERR_PRECONDITION, "its label area is no longer blank");
	if (write_index(module, err) < 0)
		return -1;
	if (!ndctl_dimm_is_enabled(module))
		return 0;
	int rc = STEP("labels-module-off", ndctl_dimm_disable(module));
	return rc < 0 ? err_set_errno(err, ERR_INTERNAL, -rc, "disable it") : 0;
}

static int init_modules(struct ndctl_region *region, struct error **err)
{
	struct ndctl_dimm *module;

	ndctl_dimm_foreach_in_region(region, module)
	{
		if (init_module(module, err) < 0)
			return err_wrap(err, "%s", ndctl_dimm_get_devname(module));
	}
	return 0;
}

static int disable_and_init(const struct nd_region *r, const struct nd_look *look, struct error **err)
{
	CLEANUP(nd_library_closep) struct ndctl_ctx *ctx = NULL;

	if (nd_library_open(&ctx, err) < 0)
		return -1;
	struct ndctl_region *region = find_region(ctx, r->name);
	if (!region)
		return err_set(err, ERR_NOT_FOUND, "%s does not exist", r->name);
	if (disable_all(r, region, look, err) < 0)
		return -1;
	return init_modules(region, err);
}

static int check_labelled(const char *name, struct error **err)
{
	CLEANUP(nd_region_freep) struct nd_region *r = NULL;

	if (nd_region_read(name, &r, err) < 0)
		return -1;
	if (!r->enabled || !r->has_labels)
		return err_set(err, ERR_INTERNAL, "the kernel does not use the new labels");
	return 0;
}

int nd_init_labels_run(const struct nd_region *wanted, const struct nd_look *look, struct error **err)
{
	CLEANUP(nd_inventory_freep) struct nd_inventory *inv = NULL;
	CLEANUP(error_freep) struct error *second = NULL;
	const struct nd_region *r = NULL;

	if (nd_list_read(&inv, err) < 0)
		return -1;
	for (size_t i = 0; i < inv->n_regions && !r; i++)
		if (str_eq(inv->regions[i].name, wanted->name) &&
			str_eq(inv->regions[i].identity, wanted->identity))
			r = &inv->regions[i];
	if (!r)
		return err_set(err, ERR_PRECONDITION, "%s has changed in the meantime", wanted->name);
	if (check_region(r, err) < 0 || note_begin(r->name, err) < 0)
		return -1;
	int rc = disable_and_init(r, look, err);
	if (bring_back(r->name, &second) < 0)
		return rc < 0 ? err_wrap(err, "and it could not be enabled again (%s)", second->msg)
			      : (*err = TAKE_PTR(second), -1);
	return rc < 0 ? -1 : check_labelled(r->name, err);
}

int nd_init_labels_settle(bool *ret_changed, struct error **err)
{
	CLEANUP(strv_freep) char **names = NULL;
	CLEANUP(fd_closep) int dir = -1;

	*ret_changed = false;
	if (dir_open(RUN_DIR, /* create= */ false, 0, &dir, err) < 0 || dir_list(dir, &names, err) < 0)
		return -1;
	for (char **name = names; *name; name++) {
		if (!str_starts(*name, NOTE_PREFIX) || !is_region_name(*name + strlen(NOTE_PREFIX)))
			continue;
		*ret_changed = true;
		if (bring_back(*name + strlen(NOTE_PREFIX), err) < 0)
			return err_wrap(err,
				"enable again what an interrupted initialisation of labels has disabled");
	}
	return 0;
}
