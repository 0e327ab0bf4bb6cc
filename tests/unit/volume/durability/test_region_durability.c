/* SPDX-License-Identifier: Apache-2.0 */
#include "volume/durability/region_durability.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/str.h"
#include "os/file.h"
#include "unit/unit.h"
#include "volume/durability/map_sync.h"

#define PATIENCE_MS 60000

static char folder[] = "/tmp/pmem-durability-XXXXXX";
static int dir_fd = -1;
static struct region_durabilities known;
static struct error *err;

static void set_up(void)
{
	ck_assert_ptr_nonnull(mkdtemp(folder));
	dir_fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	ck_assert_int_ge(dir_fd, 0);
}

static void tear_down(void)
{
	region_durabilities_done(&known);
	unlinkat(dir_fd, "durability", 0);
	close(dir_fd);
	ck_assert_int_eq(rmdir(folder), 0);
}

static void write_file(const char *text)
{
	ASSERT_OK(file_write_atomic(dir_fd, "durability", span_of(text), 0600, &err));
}

static void read_again(void)
{
	region_durabilities_done(&known);
	ASSERT_OK(region_durabilities_read(folder, &known, &err));
}

START_TEST(nothing_is_known_without_a_file_or_a_folder)
{
	read_again();
	ck_assert_uint_eq(known.n, 0);
	ck_assert_int_eq(region_durabilities_of(&known, "iset-1"), DURABILITY_UNKNOWN);
	ck_assert_int_eq(region_durabilities_of(&known, NULL), DURABILITY_UNKNOWN);
	ASSERT_OK(region_durabilities_read("/nonexistent", &known, &err));
}
END_TEST

START_TEST(what_was_found_out_is_known_after_the_next_start)
{
	ck_assert(region_durabilities_note(&known, "iset-1", DURABILITY_SYNCHRONOUS));
	ck_assert(region_durabilities_note(&known, "virtio-pmem/region0", DURABILITY_FSYNC));
	ck_assert(region_durabilities_begin(&known, "tried/region1"));
	ASSERT_OK(region_durabilities_write(folder, &known, &err));
	read_again();
	ck_assert_uint_eq(known.n, 2);
	ck_assert_int_eq(region_durabilities_of(&known, "iset-1"), DURABILITY_SYNCHRONOUS);
	ck_assert_int_eq(region_durabilities_of(&known, "virtio-pmem/region0"), DURABILITY_FSYNC);
	ck_assert(!region_durabilities_note(&known, "iset-1", DURABILITY_SYNCHRONOUS));
	ck_assert(region_durabilities_note(&known, "iset-1", DURABILITY_FSYNC));
}
END_TEST

START_TEST(a_region_is_tried_once_unless_it_is_to_be_tried_again)
{
	ck_assert(region_durabilities_begin(&known, "a"));
	ck_assert(!region_durabilities_begin(&known, "a"));
	region_durabilities_retry(&known, "a");
	ck_assert(region_durabilities_begin(&known, "a"));
	ck_assert(region_durabilities_begin(&known, "b"));
}
END_TEST

START_TEST(a_damaged_file_counts_as_none_and_a_later_word_as_unknown)
{
	static const char *const damaged[] = {
		"", "{", "[]", "{\"a\":1}", "{\"a\":\"fsync\"} x", "{\"a\":\"fsync\",}"};

	for (size_t i = 0; i < ARRAY_SIZE(damaged); i++) {
		write_file(damaged[i]);
		read_again();
		ck_assert_int_eq(region_durabilities_of(&known, "a"), DURABILITY_UNKNOWN);
	}
	write_file("{\"a\":\"fsync\",\"b\":\"later\"}");
	read_again();
	ck_assert_int_eq(region_durabilities_of(&known, "a"), DURABILITY_FSYNC);
	ck_assert_int_eq(region_durabilities_of(&known, "b"), DURABILITY_UNKNOWN);
}
END_TEST

START_TEST(regions_that_were_known_longest_give_way)
{
	for (unsigned i = 0; i < 1100; i++) {
		CLEANUP(free_charp) char *region = x_asprintf("r%u", i);

		region_durabilities_note(&known, region, DURABILITY_FSYNC);
	}
	ck_assert_uint_eq(known.n, 1024);
	ck_assert_int_eq(region_durabilities_of(&known, "r0"), DURABILITY_UNKNOWN);
	ck_assert_int_eq(region_durabilities_of(&known, "r1099"), DURABILITY_FSYNC);
}
END_TEST

/* Files without DAX say nothing about the memory, and nothing stays in the folder. */
START_TEST(a_file_system_without_dax_says_nothing)
{
	enum durability durability = DURABILITY_UNKNOWN;
	CLEANUP(strv_freep) char **names = NULL;

	ASSERT_OK(map_sync_try(dir_fd, PATIENCE_MS, &durability, &err));
	ck_assert_int_eq(durability, DURABILITY_UNKNOWN);
	ASSERT_OK(dir_list(dir_fd, &names, &err));
	ck_assert_ptr_null(names[0]);
}
END_TEST

START_TEST(where_no_file_can_be_made_that_is_said)
{
	enum durability durability = DURABILITY_UNKNOWN;
	CLEANUP(fd_closep) int fd = open("/proc/self", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	ASSERT_FAILS(
		map_sync_try(fd, PATIENCE_MS, &durability, &err), ERR_INTERNAL, "make a file without a name");
	ck_assert_int_eq(durability, DURABILITY_UNKNOWN);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("volume/durability/region_durability");
	TCase *tcase = tcase_create("all");

	tcase_add_checked_fixture(tcase, set_up, tear_down);
	tcase_add_test(tcase, nothing_is_known_without_a_file_or_a_folder);
	tcase_add_test(tcase, what_was_found_out_is_known_after_the_next_start);
	tcase_add_test(tcase, a_region_is_tried_once_unless_it_is_to_be_tried_again);
	tcase_add_test(tcase, a_damaged_file_counts_as_none_and_a_later_word_as_unknown);
	tcase_add_test(tcase, regions_that_were_known_longest_give_way);
	tcase_add_test(tcase, a_file_system_without_dax_says_nothing);
	tcase_add_test(tcase, where_no_file_can_be_made_that_is_said);
	suite_add_tcase(suite, tcase);
	return unit_runner_finish(srunner_create(suite));
}
