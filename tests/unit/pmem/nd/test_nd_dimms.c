/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of reading the attributes of memory modules from sysfs. Emulated machines set only few of them. */
#include "pmem/nd/nd_dimms.h"

#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "base/mem.h"
#include "base/str.h"
#include "unit/os/scratch.h"
#include "unit/pmem/nd/nd_sys.h"

#define DEVICE SCRATCH "/pmem0"

static struct dimms read_all(void)
{
	CLEANUP(error_freep) struct error *err = NULL;
	struct dimms d = {0};

	ASSERT_OK(dimms_read(&d, &err));
	return d;
}

/* With the attributes of drivers/acpi/nfit/core.c. */
static void make_nfit(const char *name, const char *id, const char *flags, const char *count)
{
	CLEANUP(free_charp) char *folder = x_asprintf(ND_SYS_BUS "/%s/nfit", name);

	nd_sys_folder(folder);
	nd_sys_files(folder, "id", id, "flags", flags, NULL);
	if (count)
		nd_sys_file(folder, "dirty_shutdown", count);
}

START_TEST(without_a_bus_there_are_none)
{
	CLEANUP(dimms_done) struct dimms d = {0};

	ck_assert_int_eq(mount("sys", "/sys", "tmpfs", 0, NULL), 0);
	d = read_all();
	ck_assert_uint_eq(d.n, 0);
}
END_TEST

START_TEST(module_that_says_nothing_has_no_problem)
{
	CLEANUP(dimms_done) struct dimms d = {0};

	nd_sys_enter();
	d = read_all();
	ck_assert_uint_eq(d.n, 1);
	ck_assert_str_eq(d.list[0].name, "nmem0");
	ck_assert_str_eq(d.list[0].id, "");
	ck_assert_uint_eq(d.list[0].problems, 0);
	ck_assert(!d.list[0].counts);
	ck_assert_uint_eq(strv_len(d.list[0].regions), 1);
	ck_assert_str_eq(d.list[0].regions[0], "region0");
}
END_TEST

struct flags {
	const char *text;
	unsigned problems;
};

/* Texts of flags, as flags_show() of the kernel prints them. */
static const struct flags all_flags[] = {
	{"", 0},
	{"smart_notify ", 0}, /* events are enabled, not seen */
	{"save_fail ", DIMM_SAVE_FAILED},
	{"restore_fail ", DIMM_RESTORE_FAILED},
	{"flush_fail ", DIMM_FLUSH_FAILED},
	{"not_armed ", DIMM_NOT_ARMED},
	{"smart_event ", DIMM_HEALTH_EVENT},
	{"map_fail ", DIMM_MAP_FAILED},
	{"save_fail restore_fail flush_fail not_armed smart_event map_fail smart_notify ",
		DIMM_LOSSES | DIMM_NOT_ARMED | DIMM_HEALTH_EVENT | DIMM_MAP_FAILED},
};

START_TEST(flags_of_the_kernel_are_understood)
{
	const struct flags *f = &all_flags[_i];
	CLEANUP(dimms_done) struct dimms d = {0};

	nd_sys_enter();
	make_nfit("nmem0", "8089-a2-1839-00001234", f->text, NULL);
	d = read_all();
	ck_assert_uint_eq(d.list[0].problems, f->problems);
	ck_assert_str_eq(d.list[0].id, "8089-a2-1839-00001234");
	ck_assert(!d.list[0].counts);
}
END_TEST

START_TEST(problems_have_the_names_of_the_kernel)
{
	CLEANUP(free_charp) char *two = dimm_problems_text(DIMM_SAVE_FAILED | DIMM_MAP_FAILED);
	CLEANUP(free_charp) char *none = dimm_problems_text(0);

	ck_assert_str_eq(two, "save_fail, map_fail");
	ck_assert_str_eq(none, "");
	ck_assert_str_eq(dimm_problem_name(3), "not_armed");
}
END_TEST

START_TEST(dirty_shutdowns_are_read_also_of_cxl)
{
	CLEANUP(dimms_done) struct dimms d = {0};

	nd_sys_enter();
	make_nfit("nmem0", "8089-a2-1839-00001234", "", "7");
	nd_sys_device(ND_SYS_BUS, "nmem1");
	nd_sys_folder(ND_SYS_BUS "/nmem1/cxl");
	nd_sys_files(ND_SYS_BUS "/nmem1/cxl", "id", "0x1234", "dirty_shutdown", "0", NULL);
	nd_sys_files(ND_SYS_REGION, "mappings", "2", "mapping1", "nmem1,0,2147483648,1", NULL);
	d = read_all();
	ck_assert_uint_eq(d.n, 2);
	for (size_t i = 0; i < d.n; i++) {
		bool first = str_eq(d.list[i].name, "nmem0");

		ck_assert(d.list[i].counts);
		ck_assert_uint_eq(d.list[i].dirty_shutdowns, first ? 7 : 0);
		ck_assert_str_eq(d.list[i].id, first ? "8089-a2-1839-00001234" : "0x1234");
		ck_assert(strv_contains(d.list[i].regions, "region0"));
	}
}
END_TEST

/* Makes a device with the number of @path in @folder of sysfs. */
static void show_at(const char *path, const char *folder)
{
	CLEANUP(free_charp) char *name = NULL;
	struct stat st;

	ck_assert_int_eq(stat(path, &st), 0);
	name = x_asprintf("%u:%u", major(st.st_rdev), minor(st.st_rdev));
	nd_sys_link("/sys/dev/block", name, folder);
}

START_TEST(device_of_a_region_lies_on_its_modules)
{
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(dimms_done) struct dimms d = {0};
	bool below[2];

	nd_sys_enter();
	nd_sys_device(ND_SYS_BUS, "nmem1");
	nd_sys_folder("/sys/dev/block");
	/* a number that no driver of block devices has (Documentation/admin-guide/devices.txt) */
	ck_assert_int_eq(mknod(DEVICE, S_IFBLK | 0600, makedev(250, 77)), 0);
	show_at(DEVICE, "../../devices/ndbus0/region0/namespace0.0/block/pmem0");
	d = read_all();
	ck_assert_uint_eq(d.n, 2);
	ASSERT_OK(dimms_find_below(&d, DEVICE, below, &err));
	for (size_t i = 0; i < d.n; i++)
		ck_assert_int_eq(below[i], str_eq(d.list[i].name, "nmem0"));
	show_at(DEVICE, "../../devices/virtual/block/regions/loop0");
	ASSERT_OK(dimms_find_below(&d, DEVICE, below, &err));
	ck_assert(!below[0] && !below[1]);
	ASSERT_OK(dimms_find_below(&d, SCRATCH "/none", below, &err));
	ck_assert(!below[0] && !below[1]);
}
END_TEST

START_TEST(copy_says_the_same)
{
	CLEANUP(dimms_done) struct dimms d = {0};
	CLEANUP(dimms_done) struct dimms copy = {0};

	nd_sys_enter();
	make_nfit("nmem0", "id", "save_fail ", "3");
	d = read_all();
	dimms_dup(&d, &copy);
	ck_assert_uint_eq(copy.n, 1);
	ck_assert_str_eq(copy.list[0].name, "nmem0");
	ck_assert_str_eq(copy.list[0].id, "id");
	ck_assert_uint_eq(copy.list[0].problems, DIMM_SAVE_FAILED);
	ck_assert_uint_eq(copy.list[0].dirty_shutdowns, 3);
	ck_assert(strv_eq(copy.list[0].regions, d.list[0].regions));
}
END_TEST

int main(void)
{
	const char *why = scratch_unavailable();
	Suite *suite = suite_create("pmem/nd_dimms");
	TCase *tcase = tcase_create("nd_dimms");

	if (why) {
		fprintf(stderr, "SKIP pmem/nd_dimms: %s\n", why);
		return SCRATCH_SKIP_STATUS;
	}
	suite_add_tcase(suite, tcase);
	tcase_add_checked_fixture(tcase, scratch_enter, NULL);
	tcase_add_test(tcase, without_a_bus_there_are_none);
	tcase_add_test(tcase, module_that_says_nothing_has_no_problem);
	tcase_add_loop_test(tcase, flags_of_the_kernel_are_understood, 0, ARRAY_SIZE(all_flags));
	tcase_add_test(tcase, problems_have_the_names_of_the_kernel);
	tcase_add_test(tcase, dirty_shutdowns_are_read_also_of_cxl);
	tcase_add_test(tcase, device_of_a_region_lies_on_its_modules);
	tcase_add_test(tcase, copy_says_the_same);
	return unit_runner_finish(srunner_create(suite));
}
