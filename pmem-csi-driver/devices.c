/* SPDX-License-Identifier: Apache-2.0 */
#include "devices.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "pmem/cxl/cxl_regions.h"
#include "pmem/device/device.h"
#include "pmem/lvm/lvm.h"
#include "pmem/nd/nd.h"
#include "pmem/pool/pool_backup.h"

#define FAKE_REGIONS 2
#define FAKE_UNIT    (4ULL << 20) /* as LVM's extents */

static int open_fake(const struct options *o, enum devices_purpose purpose, struct device_manager **ret,
	struct error **err)
{
	const struct device_fake_config config = {.path = o->fake_path,
		.n_regions = FAKE_REGIONS,
		.region_bytes = purpose == DEVICES_SERVE ? o->fake_region_bytes : 0,
		.unit_bytes = FAKE_UNIT,
		.read_only = purpose == DEVICES_LOOK};

	return device_open_fake(&config, ret, err);
}

/* A tool that looks keeps no copies. */
static struct device_manager *open_lvm(const struct options *o, bool few_commands, struct nd *nd)
{
	CLEANUP(error_freep) struct error *err = NULL;

	if (few_commands)
		return device_open_lvm(nd, lvm_open_exec(), /* saved_folder= */ NULL);
	struct lvm *lvm = lvm_open_shell(o->lvm_idle_ms);
	CLEANUP(free_charp) char *state_path = options_state_path(o);
	CLEANUP(free_charp) char *folder = pool_backup_folder(state_path);
	if (pool_backup_open(state_path, lvm, &err) < 0)
		log_warn("copies of the volume groups' metadata cannot be kept, continuing without them",
			F_STR("folder", folder), F_ERR(err));
	return device_open_lvm(nd, lvm, folder);
}

/* Volumes of the other device mode go on to be served. */
static int open_both(
	const struct options *o, bool few_commands, struct device_manager **ret, struct error **err)
{
	CLEANUP(free_charp) char *state_path = options_state_path(o);
	const char *guarded = str_eq(o->cxl_regions, "off") ? NULL : state_path;
	CLEANUP(nd_closep) struct nd *for_lvm = NULL;
	CLEANUP(nd_closep) struct nd *for_direct = NULL;

	if (cxl_nd_open(guarded, &for_lvm, err) < 0 || cxl_nd_open(guarded, &for_direct, err) < 0)
		return -1;

	struct device_manager *lvm = open_lvm(o, few_commands, TAKE_PTR(for_lvm));
	struct device_manager *direct = device_open_direct(TAKE_PTR(for_direct));
	bool is_direct = str_eq(o->device_manager, "direct");
	*ret = is_direct ? device_open_two_modes(direct, lvm) : device_open_two_modes(lvm, direct);
	return 0;
}

int devices_open(const struct options *o, enum devices_purpose purpose, struct device_manager **ret,
	struct error **err)
{
	int rc = str_eq(o->device_manager, "fake") ? open_fake(o, purpose, ret, err)
						   : open_both(o, purpose != DEVICES_SERVE, ret, err);

	return rc < 0 ? err_wrap(err, "device manager %s", o->device_manager) : 0;
}
