/* SPDX-License-Identifier: Apache-2.0 */
/* libcxl on a folder in the place of /sys, in which something is missing. */
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"
#include "pmem/cxl/cxl.h"
#include "unit/os/scratch.h"
#include "unit/pmem/nd/nd_sys.h"

#define DEVICES "/sys/bus/cxl/devices"
#define MEM0    DEVICES "/mem0"

static void set_up(void)
{
	nd_sys_bus();
	ck_assert_int_eq(mount("dev", "/dev", "tmpfs", 0, NULL), 0);
	nd_sys_folder("/dev/cxl");
	nd_sys_file("/dev/cxl", "mem0", "");
	nd_sys_folder(MEM0 "/pmem");
	nd_sys_folder(MEM0 "/ram");
	nd_sys_file(MEM0 "/pmem", "size", "0x10000000");
	nd_sys_file(MEM0 "/ram", "size", "0x0");
	nd_sys_files(MEM0, "serial", "0x1001", "payload_max", "512", "label_storage_size", "131072",
		"numa_node", "0", "firmware_version", "1", NULL);
	nd_sys_file(DEVICES, "memory", "not a device");
}

/* Return: the names of what cannot be read, "" if all can be; caller frees. */
static char *read_devices(size_t n_devices)
{
	CLEANUP(cxl_topology_done) struct cxl_topology t = {0};
	struct error *err = NULL;

	ck_assert_ptr_nonnull(cxl_real());
	ASSERT_OK(cxl_read(cxl_real(), &t, &err));
	ck_assert_uint_eq(t.n_devices, n_devices);
	ck_assert(!t.unreadable || !t.unreadable[1]);
	if (n_devices > 0)
		ck_assert_uint_eq(t.devices[0].serial, 0x1001);
	return x_strdup(t.unreadable ? t.unreadable[0] : "");
}

START_TEST(device_of_which_something_is_missing_is_named)
{
	static const char *const needed[] = {"/dev/cxl/mem0", MEM0 "/serial", MEM0 "/pmem/size"};

	set_up();
	CLEANUP(free_charp) char *none = read_devices(1);
	ck_assert_str_eq(none, "");
	for (size_t i = 0; i < ARRAY_SIZE(needed); i++) {
		CLEANUP(free_charp) char *aside = x_asprintf("%s.aside", needed[i]);
		ck_assert_int_eq(rename(needed[i], aside), 0);
		CLEANUP(free_charp) char *found = read_devices(0);
		ck_assert_str_eq(found, "mem0");
		ck_assert_int_eq(rename(aside, needed[i]), 0);
	}
}
END_TEST

SCRATCH_MAIN("cxl_read", device_of_which_something_is_missing_is_named)
