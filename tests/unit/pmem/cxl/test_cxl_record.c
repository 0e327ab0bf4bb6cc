/* SPDX-License-Identifier: Apache-2.0 */
/* Records of CXL regions: written and read, damaged, hostile. */
#include "pmem/cxl/cxl_record.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"
#include "os/spawn.h"
#include "unit/pmem/cxl/cxl_model.h"
#include "unit/unit.h"

static const struct cxl_layout layout = MODEL_LAYOUT(UUID_A, SERIAL1, SERIAL2);

static char scratch[] = "/tmp/pmem-test-cxl-XXXXXX";
static char *state_path;

static void set_up(void)
{
	ck_assert_ptr_nonnull(mkdtemp(scratch));
	state_path = x_asprintf("%s/state", scratch);
}

static void clean_up(void)
{
	const char *const argv[] = {"rm", "-r", scratch, NULL};
	struct error *err = NULL;

	ASSERT_OK(spawn_check(argv, NULL, 60000, &err));
	free(state_path);
}

static struct cxl_records read_all(void)
{
	struct cxl_records r = {0};
	struct error *err = NULL;

	ASSERT_OK(cxl_records_read(state_path, &r, &err));
	return r;
}

static void write_one(const struct cxl_layout *l)
{
	struct error *err = NULL;

	ASSERT_OK(cxl_record_write(state_path, l, &err));
}

/* @uuid: of the file's name */
static void put_text(const char *uuid, const char *text)
{
	CLEANUP(free_charp) char *path = cxl_record_path(state_path, uuid);

	write_one(&layout);
	FILE *f = fopen(path, "we");
	ck_assert_ptr_nonnull(f);
	fputs(text, f);
	fclose(f);
}

START_TEST(without_the_folder_there_are_none)
{
	CLEANUP(cxl_records_done) struct cxl_records r = read_all();

	ck_assert_uint_eq(r.n, 0);
	ck_assert_ptr_null(r.damaged);
}
END_TEST

START_TEST(record_is_read_as_it_was_written)
{
	write_one(&layout);
	CLEANUP(cxl_records_done) struct cxl_records r = read_all();

	ck_assert_uint_eq(r.n, 1);
	ck_assert_int_eq(memcmp(&r.list[0], &layout, sizeof(layout)), 0);
	ck_assert_ptr_null(r.damaged);
}
END_TEST

START_TEST(largest_values_are_kept)
{
	struct cxl_layout l = MODEL_LAYOUT(UUID_A, UINT64_MAX, 1);

	l.ways = CXL_WAYS_MAX;
	l.size_bytes = UINT64_MAX - CXL_WAYS_MAX + 1;
	for (unsigned i = 2; i < l.ways; i++)
		l.places[i] = (struct cxl_place){UINT64_MAX - i, UINT64_MAX};
	l.window.ways = CXL_WAYS_MAX;
	for (unsigned i = 0; i < l.window.ways; i++)
		l.window.bridges[i] = UINT64_MAX;
	write_one(&l);
	CLEANUP(cxl_records_done) struct cxl_records r = read_all();
	ck_assert_uint_eq(r.n, 1);
	ck_assert_int_eq(memcmp(&r.list[0], &l, sizeof(l)), 0);
}
END_TEST

START_TEST(records_come_in_the_order_of_their_parts)
{
	struct cxl_layout later = MODEL_LAYOUT(UUID_B, SERIAL1, SERIAL2);

	later.places[0].start_bytes = later.places[1].start_bytes = 0;
	struct cxl_layout first = layout;
	first.places[0].start_bytes = first.places[1].start_bytes = PART;
	write_one(&first);
	write_one(&later);
	CLEANUP(cxl_records_done) struct cxl_records r = read_all();
	ck_assert_uint_eq(r.n, 2);
	ck_assert_str_eq(r.list[0].uuid, UUID_B);
}
END_TEST

START_TEST(record_is_removed)
{
	struct error *err = NULL;

	write_one(&layout);
	ASSERT_OK(cxl_record_remove(state_path, UUID_A, &err));
	ASSERT_OK(cxl_record_remove(state_path, UUID_A, &err));
	CLEANUP(cxl_records_done) struct cxl_records r = read_all();
	ck_assert_uint_eq(r.n, 0);
}
END_TEST

#define HEAD    "{\"uuid\":\"" UUID_A "\",\"sizeBytes\":1024,\"granularityBytes\":256,"
#define WINDOW  "\"window\":{\"startBytes\":1,\"sizeBytes\":2,\"granularityBytes\":256,\"bridges\":[\"12\"]}}"
#define TEN     "\"1\",\"1\",\"1\",\"1\",\"1\",\"1\",\"1\",\"1\",\"1\",\"1\""
#define DEVICES "\"devices\":[{\"serial\":1,\"startBytes\":0}],"

struct bad {
	const char *text;
	const char *why;
};

static const struct bad bad_records[] = {
	{"", "cxl"},
	{"[]", "cxl"},
	{HEAD DEVICES, "cxl"},
	{HEAD WINDOW, "number of devices"},
	{HEAD "\"devices\":[]," WINDOW, "number of devices"},
	{HEAD "\"devices\":{}," WINDOW, "cxl"},
	{HEAD "\"devices\":[7]," WINDOW, "no list of 1 to 16"},
	{HEAD DEVICES DEVICES WINDOW, "twice"},
	{HEAD "\"devices\":[{\"serial\":0}]," WINDOW, "serial number 0"},
	{HEAD "\"devices\":[{\"serial\":5},{\"serial\":5}]," WINDOW,
		"two devices have the serial number 0x5"},
	{HEAD "\"devices\":[{\"serial\":-1}]," WINDOW, "cxl"},
	{HEAD "\"devices\":[{\"serial\":18446744073709551616}]," WINDOW, "cxl"},
	{HEAD "\"devices\":[{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{}]," WINDOW,
		"no list of 1 to 16"},
	{HEAD DEVICES "\"window\":{\"bridges\":[" TEN "," TEN "]}}", "no list of 1 to 16 host bridges"},
	{HEAD DEVICES "\"window\":{\"bridges\":[\"x\"]}}", "x"},
	{HEAD DEVICES "\"window\":{}}", "host bridges"},
	{"{\"uuid\":\"../../../../../etc/passwd\"}", "no UUID"},
	{"{\"uuid\":\"00000000-0000-0000-0000-000000000000\"}", "no UUID"},
	{"{\"uuid\":\"" UUID_B "\",\"sizeBytes\":1024,\"granularityBytes\":256," DEVICES WINDOW,
		"record of region"},
	{"{\"uuid\":\"" UUID_A "\",\"sizeBytes\":0,\"granularityBytes\":256," DEVICES WINDOW, "0 bytes"},
	{"{\"uuid\":\"" UUID_A
	 "\",\"sizeBytes\":3,\"granularityBytes\":256,\"devices\":[{\"serial\":1},{\"serial\":2}]," WINDOW,
		"3 bytes cannot be divided"},
	{"{\"uuid\":\"" UUID_A "\",\"sizeBytes\":1024,\"granularityBytes\":4294967296," DEVICES WINDOW,
		"granularity"},
};

START_TEST(damaged_record_is_named_and_the_others_are_read)
{
	struct cxl_layout other = MODEL_LAYOUT(UUID_B, SERIAL1, SERIAL2);

	put_text(UUID_A, bad_records[_i].text);
	write_one(&other);
	CLEANUP(cxl_records_done) struct cxl_records r = read_all();
	ck_assert_uint_eq(r.n, 1);
	ck_assert_str_eq(r.list[0].uuid, UUID_B);
	ck_assert_uint_eq(strv_len(r.damaged), 1);
	ck_assert_ptr_nonnull(strstr(r.damaged[0], UUID_A ".json"));
	ck_assert_msg(strstr(r.damaged[0], bad_records[_i].why) != NULL, "%s", r.damaged[0]);
}
END_TEST

START_TEST(record_that_is_too_long_is_not_read)
{
	CLEANUP(free_charp) char *text = x_calloc(1, 100001);

	memset(text, ' ', 100000);
	put_text(UUID_A, text);
	CLEANUP(cxl_records_done) struct cxl_records r = read_all();
	ck_assert_uint_eq(r.n, 0);
	ck_assert_uint_eq(strv_len(r.damaged), 1);
}
END_TEST

START_TEST(unknown_members_are_skipped)
{
	put_text(UUID_A, HEAD "\"new\":{\"a\":[1,{}]}," DEVICES WINDOW);
	CLEANUP(cxl_records_done) struct cxl_records r = read_all();
	ck_assert_uint_eq(r.n, 1);
	ck_assert_uint_eq(r.list[0].window.bridges[0], 12);
}
END_TEST

START_TEST(number_of_records_is_limited)
{
	struct cxl_layout l = layout;

	for (unsigned i = 0; i < 70; i++) {
		l.uuid[0] = (char)('0' + i / 10);
		l.uuid[1] = (char)('0' + i % 10);
		write_one(&l);
	}
	CLEANUP(cxl_records_done) struct cxl_records r = read_all();
	ck_assert_uint_eq(r.n, 64);
	ck_assert_uint_eq(strv_len(r.damaged), 6);
}
END_TEST

/* nd_fletcher64() by hand: low is 0, 0, 5, 5 and high 0, 0, 5, 10 after the words of {0, 5}. */
START_TEST(cookie_is_that_of_the_kernel)
{
	struct cxl_layout l = MODEL_LAYOUT(UUID_A, 5, 0);

	l.ways = 1;
	ck_assert_uint_eq(cxl_layout_cookie(&l), 10ULL << 32 | 5);
	l.places[0].serial = 0;
	ck_assert_uint_eq(cxl_layout_cookie(&l), 0);
}
END_TEST

START_TEST(order_changes_the_cookie)
{
	struct cxl_layout swapped = MODEL_LAYOUT(UUID_A, SERIAL2, SERIAL1);

	ck_assert_uint_ne(cxl_layout_cookie(&layout), cxl_layout_cookie(&swapped));
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("pmem/cxl_record");
	TCase *tcase = tcase_create("cxl_record");

	suite_add_tcase(suite, tcase);
	tcase_add_checked_fixture(tcase, set_up, clean_up);
	tcase_add_test(tcase, without_the_folder_there_are_none);
	tcase_add_test(tcase, record_is_read_as_it_was_written);
	tcase_add_test(tcase, largest_values_are_kept);
	tcase_add_test(tcase, records_come_in_the_order_of_their_parts);
	tcase_add_test(tcase, record_is_removed);
	tcase_add_loop_test(
		tcase, damaged_record_is_named_and_the_others_are_read, 0, ARRAY_SIZE(bad_records));
	tcase_add_test(tcase, record_that_is_too_long_is_not_read);
	tcase_add_test(tcase, unknown_members_are_skipped);
	tcase_add_test(tcase, number_of_records_is_limited);
	tcase_add_test(tcase, cookie_is_that_of_the_kernel);
	tcase_add_test(tcase, order_changes_the_cookie);
	return unit_runner_finish(srunner_create(suite));
}
