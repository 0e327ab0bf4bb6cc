/* SPDX-License-Identifier: Apache-2.0 */
#include "node_ready_log.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/parse.h"
#include "base/str.h"
#include "metrics_snapshot.h"
#include "pmem/pool/memory_advice.h"
#include "pmem/pool/pool_backup.h"

/* The advice to an administrator whose node has no memory that the driver manages. */
static const char *remedy_for_nothing(const char *mode, const char *regions_path)
{
	CLEANUP(error_freep) struct error *ignored = NULL;
	uint64_t regions_bytes = 0;

	if (str_eq(mode, "fake"))
		return "give larger regions, such as -fakeRegionSize=1Gi";
	if (regions_bytes_read(regions_path, &regions_bytes, &ignored) < 0 || regions_bytes == 0)
		return "there is no persistent memory: the kernel shows no region. "
		       "pmem-csi-driver doctor says what it looks at; a node without persistent memory "
		       "needs no driver";
	if (str_eq(mode, "direct"))
		return "no region can hold namespaces of its own: pmem-ns-init advise says what each region is";
	return "there is no volume group: pmem-ns-init advise says what each region is and what makes it usable; "
	       "then pmem-ns-init and pmem-vgm, or the pod, have to run again";
}

/* Without volume groups, no namespace without a name is ours. */
static int read_advice(
	const char *state_path, struct nd_inventory **ret_inv, struct memory_advices *ret, struct error **err)
{
	CLEANUP(free_charp) char *folder = pool_backup_folder(state_path);
	CLEANUP(hidden_memories_done) struct hidden_memories hidden = {0};
	const struct memory_devices devices = {.hidden = &hidden};
	CLEANUP(nd_closep) struct nd *nd = NULL;

	if (nd_open_real(&nd, err) == 0 ? nd_list(nd, ret_inv, err) < 0 : (*err)->code != ERR_PRECONDITION)
		return -1;
	error_clear(err);
	hidden_memories_find("", &hidden);
	return memory_advise(nd, folder, *ret_inv, &devices, ret, err);
}

/* A line for each piece of memory that is not used. */
static void log_unused_memory(const char *state_path)
{
	CLEANUP(nd_inventory_freep) struct nd_inventory *inv = NULL;
	CLEANUP(memory_advices_done) struct memory_advices all = {0};
	CLEANUP(error_freep) struct error *ignored = NULL;

	if (read_advice(state_path, &inv, &all, &ignored) < 0)
		return;
	for (size_t i = 0; i < all.n; i++) {
		if (all.list[i].action == MEMORY_NOTHING)
			continue;
		CLEANUP(free_charp) char *line = memory_advice_line(&all.list[i]);
		log_warn("memory is not used", F_STR("advice", line));
	}
}

void node_ready_log(struct volumes *v, const char *mode, const char *regions_path, const char *state_path)
{
	struct volumes_overview o;
	struct capacity c = {0};
	char max[24];
	char available[24];

	volumes_overview(v, &o);
	(void)volumes_capacity(v, /* sync= */ false, &c);
	log_info("ready", F_STR("version", PMEM_VERSION),
		F_U64("volumes", o.n_ready + o.n_missing + o.n_damaged),
		F_STR("max", format_bytes(c.max_volume_bytes, max)),
		F_STR("available", format_bytes(c.available_bytes, available)));
	if (c.total_bytes == 0) {
		log_warn("no volume can be created on this node",
			F_STR("remedy", remedy_for_nothing(mode, regions_path)));
		if (!str_eq(mode, "fake"))
			log_unused_memory(state_path);
	}
	if (c.total_bytes > 0 && c.max_volume_bytes == 0 && o.n_ready + o.n_missing + o.n_erasing == 0)
		log_warn("no volume can be created on this node, although the driver knows of no volume that "
			 "uses its space",
			F_STR("remedy",
				"pmem-csi-driver doctor -size 64Mi explains why for each region or group"));
}
