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

static struct device_manager *open_lvm(const struct options *o, bool few_commands, struct nd *nd)
{
	return device_open_lvm(nd, few_commands ? lvm_open_exec() : lvm_open_shell(o->lvm_idle_ms));
}

/* Volumes of the other device mode go on to be served. */
static int open_both(
	const struct options *o, bool few_commands, struct device_manager **ret, struct error **err)
{
	CLEANUP(nd_closep) struct nd *for_lvm = NULL;
	CLEANUP(nd_closep) struct nd *for_direct = NULL;

	if (nd_open_real(&for_lvm, err) < 0 || nd_open_real(&for_direct, err) < 0)
		return -1;

	struct device_manager *lvm = open_lvm(o, few_commands, TAKE_PTR(for_lvm));
	struct device_manager *direct = device_open_direct(TAKE_PTR(for_direct));
	bool is_direct = str_eq(o->device_manager, "direct");
	*ret = is_direct ? device_open_pair(direct, lvm) : device_open_pair(lvm, direct);
	return 0;
}

int devices_open(const struct options *o, bool few_commands, struct device_manager **ret, struct error **err)
{
	int rc = str_eq(o->device_manager, "fake") ? open_fake(o, ret, err)
						   : open_both(o, few_commands, ret, err);

	return rc < 0 ? err_wrap(err, "device manager %s", o->device_manager) : 0;
}
