/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which CXL regions namespaces may be made in. The interleave set cookie decides: the kernel makes it of the
 * serial numbers in order, and compares it with the labels.
 */
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "pmem/cxl/cxl_record.h"
#include "pmem/cxl/cxl_regions.h"
#include "pmem/nd/nd_sysfs.h"

#define CXL_PROVIDER "CXL" /* drivers/cxl/pmem.c, cxl_nvdimm_bridge_probe() */

static bool is_recorded(const struct cxl_records *records, const struct nd_region *r)
{
	for (size_t i = 0; i < records->n; i++) {
		CLEANUP(free_charp)
		char *identity = x_asprintf("iset-%016jx", (uintmax_t)cxl_layout_cookie(&records->list[i]));
		if (str_eq(identity, r->identity))
			return true;
	}
	return false;
}

static void refuse(struct nd_region *r, const char *why)
{
	r->refused = why;
	r->available_bytes = 0;
	r->max_extent_bytes = 0;
}

void cxl_guard(const char *state_path, struct nd_inventory *inv)
{
	CLEANUP(cxl_records_done) struct cxl_records records = {0};
	CLEANUP(error_freep) struct error *err = NULL;

	if (cxl_records_read(state_path, &records, &err) < 0)
		log_debug("records of CXL regions cannot be read", F_ERR(err));
	if (!err && records.n == 0 && !records.damaged)
		return;
	for (size_t i = 0; i < inv->n_regions; i++) {
		struct nd_region *r = &inv->regions[i];
		CLEANUP(free_charp) char *provider = nd_attr_hint(r->bus, "provider");
		if (str_eq(provider, CXL_PROVIDER) && !is_recorded(&records, r))
			refuse(r, "the CXL region is not recorded, or has recorded devices in another order "
				  "(doctor says which)");
	}
}

int cxl_nd_open(const char *state_path, struct nd **ret, struct error **err)
{
	if (nd_open_real(ret, err) < 0)
		return -1;
	if (state_path)
		nd_set_guard(*ret, cxl_guard, state_path);
	return 0;
}
