/* SPDX-License-Identifier: Apache-2.0 */
/* Memory without a driver, in trees of folders in the place of /sys. */
#include "pmem/pool/hidden_memory.h"

#include "base/mem.h"
#include "base/str.h"
#include "unit/os/scratch.h"
#include "unit/pmem/nd/nd_sys.h"
#include "unit/unit.h"

#define SYS SCRATCH "/sys"

/* Return: the only piece of memory that is found, "NAME COMMAND", or "" if nothing is found; caller frees. */
static char *found(void)
{
	CLEANUP(hidden_memories_done) struct hidden_memories m = {0};

	hidden_memories_find(SCRATCH, &m);
	ck_assert_uint_le(m.n, 1);
	if (m.n == 0)
		return x_strdup("");
	ck_assert(str_starts(m.list[0].state, "is not used: the kernel module "));
	return x_asprintf("%s %s", m.list[0].name, m.list[0].command);
}

static void assert_found(const char *wanted)
{
	CLEANUP(free_charp) char *text = found();

	ck_assert_str_eq(text, wanted);
}

START_TEST(nfit_without_a_bus_needs_its_module)
{
	assert_found("");
	nd_sys_folder(SYS "/bus/acpi/devices/ACPI0012:00");
	assert_found("");
	nd_sys_folder(SYS "/firmware/acpi/tables");
	nd_sys_file(SYS "/firmware/acpi/tables", "NFIT", "table");
	assert_found("NFIT modprobe nfit");
	nd_sys_folder(SYS "/module/nfit");
	assert_found("NFIT dmesg");
	nd_sys_folder(SYS "/bus/nd/devices/ndbus0");
	nd_sys_file(SYS "/bus/nd/devices/ndbus0", "provider", "e820");
	assert_found("NFIT dmesg");
	nd_sys_file(SYS "/bus/nd/devices/ndbus0", "provider", "ACPI.NFIT");
	assert_found("");
}
END_TEST

START_TEST(devices_that_no_driver_has_taken_are_named)
{
	static const struct {
		const char *device; /* below /sys/bus */
		const char *attribute;
		const char *value;
		const char *text;
	} cases[] = {{"platform/devices/e820_pmem", NULL, NULL, "e820_pmem modprobe nd_e820"},
		{"virtio/devices/virtio1", "device", "0x001b", "virtio1 modprobe virtio_pmem"},
		{"virtio/devices/virtio2", "device", "0x0002", ""},
		{"pci/devices/0000:0d:00.0", "class", "0x050210", "0000:0d:00.0 modprobe cxl_pci"},
		{"pci/devices/0000:0e:00.0", "class", "0x020000", ""}};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		CLEANUP(free_charp) char *folder = x_asprintf(SYS "/bus/%s", cases[i].device);
		CLEANUP(free_charp) char *driver = x_asprintf("%s/driver", folder);

		nd_sys_folder(folder);
		if (cases[i].attribute)
			nd_sys_file(folder, cases[i].attribute, cases[i].value);
		assert_found(cases[i].text);
		nd_sys_folder(driver);
		assert_found("");
	}
}
END_TEST

START_TEST(modules_without_which_devices_stay_incomplete_are_named)
{
	static const struct {
		const char *device; /* below /sys/bus */
		const char *taken;
		const char *text;
	} cases[] = {{"nd/devices/region0", "nd/drivers/nd_pmem", "region0 modprobe nd_pmem"},
		{"acpi/devices/ACPI0017:00", "cxl/devices/root0", "ACPI0017:00 modprobe cxl_acpi"},
		{"cxl/devices/mem0", "cxl/drivers/cxl_mem", "mem0 modprobe cxl_mem"}};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		CLEANUP(free_charp) char *folder = x_asprintf(SYS "/bus/%s", cases[i].device);
		CLEANUP(free_charp) char *taken = x_asprintf(SYS "/bus/%s", cases[i].taken);

		nd_sys_folder(folder);
		assert_found(cases[i].text);
		nd_sys_folder(taken);
		assert_found("");
	}
}
END_TEST

SCRATCH_MAIN("hidden_memory", nfit_without_a_bus_needs_its_module, devices_that_no_driver_has_taken_are_named,
	modules_without_which_devices_stay_incomplete_are_named)
