/* SPDX-License-Identifier: Apache-2.0 */
#include "node_ready_log.h"

#include "base/log.h"
#include "base/parse.h"
#include "base/str.h"
#include "metrics_snapshot.h"

/* What has to be done before there can be volumes, where nothing is managed. */
static const char *remedy_for_nothing(const char *mode, const char *regions_path)
{
	CLEANUP(error_freep) struct error *ignored = NULL;
	uint64_t regions_bytes = 0;

	if (str_eq(mode, "fake"))
		return "give larger regions, such as -fakeRegionSize=1Gi";
	if (regions_bytes_read(regions_path, &regions_bytes, &ignored) < 0 || regions_bytes == 0)
		return "there is no persistent memory: the kernel shows no region. "
		       "pmem-csi-driver doctor says what it looks at; a node without persistent memory "
		       "needs no driver, and memmap= on the kernel's command line gives it some for a trial";
	if (str_eq(mode, "direct"))
		return "no region can hold namespaces of its own: pmem-csi-driver doctor says what the kernel shows";
	return "there is no volume group: pmem-ns-init and pmem-vgm make one per region, "
	       "as do the init containers, or the driver with -pmemPercentage; then start the driver again";
}

void node_ready_log(struct volumes *v, const char *mode, const char *regions_path)
{
	struct volumes_overview o;
	struct capacity c = {0};
	char max[24];
	char available[24];

	volumes_overview(v, &o);
	(void)volumes_capacity(v, &c);
	log_info("ready", F_STR("version", PMEM_VERSION),
		F_U64("volumes", o.n_ready + o.n_missing + o.n_damaged),
		F_STR("max", format_bytes(c.max_volume_bytes, max)),
		F_STR("available", format_bytes(c.available_bytes, available)));
	if (c.total_bytes == 0)
		log_warn("no volume can be created on this node",
			F_STR("remedy", remedy_for_nothing(mode, regions_path)));
	else if (c.max_volume_bytes == 0 && o.n_ready + o.n_missing + o.n_erasing == 0)
		log_warn("no volume can be created on this node, although the driver knows of no volume that "
			 "uses its space",
			F_STR("remedy",
				"pmem-csi-driver doctor -size 64Mi explains why for each region or group"));
}
