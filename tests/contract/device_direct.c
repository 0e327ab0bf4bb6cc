/* SPDX-License-Identifier: Apache-2.0 */
/* The contract of device managers on namespaces: over a fake, and with the argument "kernel" over the regions
 * of the lab machine. */
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/str.h"
#include "contract/device_contract.h"
#include "os/spawn.h"
#include "pmem/nd/nd.h"
#include "unit/pmem/nd/nd_fake.h"
#include "unit/unit.h"

#define SKIPPED    77
#define TIMEOUT_MS 60000
#define MIB(n)     ((uint64_t)(n) << 20)

static struct device_manager *open_fake(void)
{
	static const struct nd_fake_region regions[] = {
		{.size_bytes = MIB(1024), .align_bytes = MIB(16), .label_slots = 64},
		{.size_bytes = MIB(1536),
			.align_bytes = MIB(48),
			.ways = 3,
			.label_slots = 64,
			.new_labels = true},
	};

	return device_open_direct(nd_open_fake(regions, ARRAY_SIZE(regions)));
}

static struct device_manager *open_kernel(void)
{
	struct error *err = NULL;
	struct nd *nd = NULL;

	ASSERT_OK(nd_open_real(&nd, &err));
	return device_open_direct(nd);
}

static char *namespace_of(const struct device *d)
{
	CLEANUP(nd_inventory_freep) struct nd_inventory *inv = NULL;
	CLEANUP(nd_closep) struct nd *nd = NULL;
	struct error *err = NULL;

	ASSERT_OK(nd_open_real(&nd, &err));
	ASSERT_OK(nd_list(nd, &inv, &err));
	for (size_t i = 0; i < inv->n_regions; i++)
		for (size_t k = 0; k < inv->regions[i].n_namespaces; k++)
			if (str_eq(inv->regions[i].namespaces[k].uuid, d->identity))
				return x_strdup(inv->regions[i].namespaces[k].dev);
	ck_abort_msg("%s is not there", d->id);
}

/* Disables the namespace of a device with ndctl, as another program may. */
static void deactivate(const struct device *d)
{
	CLEANUP(free_charp) char *dev = namespace_of(d);
	const char *const argv[] = {"ndctl", "disable-namespace", dev, NULL};
	struct error *err = NULL;

	ASSERT_OK(spawn_check(argv, NULL, TIMEOUT_MS, &err));
}

static int run_on_kernel(void)
{
	const struct device_contract contract = {
		.name = "device_direct",
		.open = open_kernel,
		.deactivate = deactivate,
		.has_nodes = true,
		.is_durable = true,
		.fixed_size = true,
	};

	if (!getenv("PMEM_LAB_MACHINE")) {
		fputs("skipped: destroys namespaces, and PMEM_LAB_MACHINE is not set\n", stderr);
		return SKIPPED;
	}
	return device_contract_run(&contract);
}

int main(int argc, char **argv)
{
	const struct device_contract on_fake = {
		.name = "device_direct_on_fake", .open = open_fake, .fixed_size = true};

	if (argc > 1 && str_eq(argv[1], "kernel"))
		return run_on_kernel();
	return device_contract_run(&on_fake);
}
