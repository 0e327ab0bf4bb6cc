/* SPDX-License-Identifier: Apache-2.0 */
#include "regions_and_groups.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "pmem/cxl/cxl_regions.h"
#include "pmem/pool/pool_vg.h"

/* Which namespaces without a name are ours is noted in @regions. */
static int read_groups(struct nd_inventory *regions, struct lvm_report **ret, struct error **err)
{
	CLEANUP(lvm_closep) struct lvm *lvm = lvm_open_exec();
	CLEANUP(strv_freep) char **paths = NULL;

	if (pool_vg_claim(lvm, regions, err) < 0)
		return -1;
	pool_vg_devices(regions, &paths);
	if (!paths)
		return 0;
	lvm_set_devices(lvm, (const char *const *)paths, strv_len(paths));
	return lvm_list(lvm, ret, err);
}

int regions_and_groups_read(const struct options *o, struct regions_and_groups *ret, struct error **err)
{
	CLEANUP(regions_and_groups_done) struct regions_and_groups m = {0};
	CLEANUP(free_charp) char *state_path = options_state_path(o);
	CLEANUP(nd_closep) struct nd *nd = NULL;

	if (str_eq(o->device_manager, "fake"))
		return 0;
	if (cxl_nd_open(state_path, &nd, err) < 0)
		return -1;
	if (nd_list(nd, &m.regions, err) < 0)
		return err_wrap(err, "list namespaces");
	if (read_groups(m.regions, &m.report, err) < 0) {
		if (str_eq(o->device_manager, "lvm"))
			return err_wrap(err, "list volume groups");
		log_warn("volume groups cannot be listed, ignoring", F_ERR(*err));
		error_clear(err);
	}
	*ret = m;
	m = (struct regions_and_groups){0};
	return 0;
}

const char *no_pools_remedy(const struct nd_inventory *regions)
{
	if (regions && regions->n_regions == 0)
		return "no pools, because there is no persistent memory: the kernel shows no region\n";
	return "no pools: pmem-ns-init and pmem-vgm make them; pmem-ns-init advise says of what\n";
}

void regions_and_groups_done(struct regions_and_groups *m)
{
	nd_inventory_free(m->regions);
	lvm_report_free(m->report);
	*m = (struct regions_and_groups){0};
}
