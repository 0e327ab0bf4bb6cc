#include "devices.h"

#include "base/str.h"
#include "pmem/device.h"
#include "pmem/lvm.h"
#include "pmem/nd.h"

#define FAKE_REGIONS 2
#define FAKE_UNIT    (4ULL << 20) /* as LVM's extents */

static int open_fake(const struct options *o, struct device_manager **ret, struct error **err)
{
	const struct device_fake_config config = {.path = o->fake_path,
		.n_regions = FAKE_REGIONS,
		.region_bytes = o->fake_region_bytes,
		.unit_bytes = FAKE_UNIT};

	return device_open_fake(&config, ret, err);
}

static int open_lvm(
	const struct options *o, bool few_commands, struct device_manager **ret, struct error **err)
{
	CLEANUP(nd_closep) struct nd *nd = NULL;

	if (nd_open_real(&nd, err) < 0)
		return -1;
	*ret = device_open_lvm(TAKE_PTR(nd), few_commands ? lvm_open_exec() : lvm_open_shell(o->lvm_idle_ms));
	return 0;
}

int devices_open(const struct options *o, bool few_commands, struct device_manager **ret, struct error **err)
{
	int rc = str_eq(o->device_manager, "fake") ? open_fake(o, ret, err)
						   : open_lvm(o, few_commands, ret, err);

	return rc < 0 ? err_wrap(err, "device manager %s", o->device_manager) : 0;
}
