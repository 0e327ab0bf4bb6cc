/* SPDX-License-Identifier: Apache-2.0 */
#include "pmem/health/dirty_shutdowns.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"
#include "unit/unit.h"

static char folder[] = "/tmp/pmem-dirty-XXXXXX";
static char name[] = "nmem0", id[] = "8089-a2-1839-00001234", other_id[] = "8089-a2-1839-00005678",
	    none[] = "";
static const char *boot = "one";
static struct dimm modules[2];

int __wrap_boot_id_read(char **ret, struct error **err);

int __wrap_boot_id_read(char **ret, struct error **err)
{
	(void)err;
	*ret = x_strdup(boot);
	return 0;
}

static void set_up(void)
{
	ck_assert_ptr_nonnull(mkdtemp(folder));
	modules[0] = (struct dimm){.name = name, .id = id, .counts = true, .dirty_shutdowns = 5};
	modules[1] = (struct dimm){.name = name, .id = other_id, .counts = true, .dirty_shutdowns = 0};
}

static char *file(void)
{
	return x_asprintf("%s/dirty-shutdowns", folder);
}

static void tear_down(void)
{
	CLEANUP(free_charp) char *path = file();

	unlink(path);
	ck_assert_int_eq(rmdir(folder), 0);
}

static void compare(bool record)
{
	struct dimms d = {modules, ARRAY_SIZE(modules)};
	struct error *err = NULL;

	modules[0].rose_by = modules[1].rose_by = 0;
	ASSERT_OK(dirty_shutdowns_compare(folder, record, &d, &err));
}

START_TEST(count_that_is_seen_first_has_not_risen)
{
	compare(true);
	ck_assert_uint_eq(modules[0].rose_by, 0);
	boot = "two";
	compare(true);
	ck_assert_uint_eq(modules[0].rose_by, 0);
}
END_TEST

START_TEST(count_that_rose_is_reported_until_the_next_boot)
{
	compare(true);
	boot = "two";
	modules[0].dirty_shutdowns = 7;
	/* as often as the driver starts */
	for (unsigned i = 0; i < 3; i++) {
		compare(true);
		ck_assert_uint_eq(modules[0].rose_by, 2);
		ck_assert_uint_eq(modules[1].rose_by, 0);
	}
	boot = "three";
	compare(true);
	ck_assert_uint_eq(modules[0].rose_by, 0);
}
END_TEST

START_TEST(module_that_was_away_is_remembered)
{
	compare(true);
	boot = "two";
	modules[0].counts = false;
	compare(true);
	ck_assert_uint_eq(modules[0].rose_by, 0);
	boot = "three";
	modules[0].counts = true;
	modules[0].dirty_shutdowns = 6;
	compare(true);
	ck_assert_uint_eq(modules[0].rose_by, 1);
}
END_TEST

START_TEST(looking_writes_nothing)
{
	CLEANUP(free_charp) char *path = file();

	compare(false);
	ck_assert_int_ne(access(path, F_OK), 0);
	compare(true);
	boot = "two";
	modules[0].dirty_shutdowns = 6;
	compare(false);
	ck_assert_uint_eq(modules[0].rose_by, 1);
	/* the file still is of the first boot */
	boot = "one";
	modules[0].dirty_shutdowns = 5;
	compare(false);
	ck_assert_uint_eq(modules[0].rose_by, 0);
}
END_TEST

START_TEST(modules_that_do_not_count_or_have_no_id_are_left_out)
{
	CLEANUP(free_charp) char *path = file();

	modules[0].counts = false;
	modules[1].id = none;
	compare(true);
	ck_assert_int_ne(access(path, F_OK), 0);
}
END_TEST

static const char *const damaged[] = {"", "{", "[]", "{\"modules\":[]}",
	"{\"bootID\":\"x\",\"modules\":[{}]}", "{\"bootID\":\"x\",\"modules\":[1]}",
	"{\"bootID\":\"x\",\"modules\":[{\"id\":\"a\",\"now\":-1}]}"};

START_TEST(damaged_file_is_replaced)
{
	CLEANUP(free_charp) char *path = file();
	FILE *f = fopen(path, "we");

	ck_assert_ptr_nonnull(f);
	fputs(damaged[_i], f);
	ck_assert_int_eq(fclose(f), 0);
	compare(true);
	ck_assert_uint_eq(modules[0].rose_by, 0);
	boot = "two";
	modules[0].dirty_shutdowns++;
	compare(true);
	ck_assert_uint_eq(modules[0].rose_by, 1);
}
END_TEST

START_TEST(folder_that_is_not_there_is_a_failure)
{
	struct dimms d = {modules, ARRAY_SIZE(modules)};
	struct error *err = NULL;

	ASSERT_FAILS(
		dirty_shutdowns_compare("/nonexistent", true, &d, &err), ERR_NOT_FOUND, "dirty shutdowns");
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("pmem/dirty_shutdowns");
	TCase *tcase = tcase_create("dirty_shutdowns");

	suite_add_tcase(suite, tcase);
	tcase_add_checked_fixture(tcase, set_up, tear_down);
	tcase_add_test(tcase, count_that_is_seen_first_has_not_risen);
	tcase_add_test(tcase, count_that_rose_is_reported_until_the_next_boot);
	tcase_add_test(tcase, module_that_was_away_is_remembered);
	tcase_add_test(tcase, looking_writes_nothing);
	tcase_add_test(tcase, modules_that_do_not_count_or_have_no_id_are_left_out);
	tcase_add_loop_test(tcase, damaged_file_is_replaced, 0, ARRAY_SIZE(damaged));
	tcase_add_test(tcase, folder_that_is_not_there_is_a_failure);
	return unit_runner_finish(srunner_create(suite));
}
