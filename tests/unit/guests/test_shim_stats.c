/* SPDX-License-Identifier: Apache-2.0 */
/* Statistics as the shim writes them, and as a guest could make it write them. */
#include "guests/shim_stats.h"

#include "unit/unit.h"

START_TEST(bytes_and_inodes_are_read)
{
	struct fs_usage is;
	struct error *err = NULL;

	ASSERT_OK(shim_stats_parse(
		span_of("{\"usage\":[{\"available\":10,\"total\":30,\"used\":20,\"unit\":1},"
			"{\"available\":1,\"total\":3,\"used\":2,\"unit\":2},{\"total\":9,\"unit\":7}],"
			"\"volume_condition\":{\"message\":\"OK\",\"abnormal\":false}}"),
		&is, &err));
	ck_assert_uint_eq(is.available_bytes, 10);
	ck_assert_uint_eq(is.total_bytes, 30);
	ck_assert_uint_eq(is.used_bytes, 20);
	ck_assert_uint_eq(is.available_inodes, 1);
	ck_assert_uint_eq(is.total_inodes, 3);
	ck_assert_uint_eq(is.used_inodes, 2);
	/* Go leaves out what is 0 */
	ASSERT_OK(shim_stats_parse(span_of("{\"usage\":[{\"total\":30,\"unit\":1}]}"), &is, &err));
	ck_assert_uint_eq(is.available_bytes, 0);
}
END_TEST

START_TEST(what_says_nothing_is_refused)
{
	static const char *const texts[] = {"", "[]", "{}", "null", "{\"usage\":{}}", "{\"usage\":[1]}",
		"{\"usage\":[{\"total\":-1,\"unit\":1}]}",
		"{\"usage\":[{\"total\":9223372036854775808,\"unit\":1}]}",
		"{\"usage\":[{\"total\":30,\"unit\":1}]} x", "{\"usage\":[{\"total\":30,\"unit\":2}]}",
		"{\"usage\":[{\"total\":30,\"unit\":1}"};
	struct fs_usage is;
	struct error *err = NULL;

	ASSERT_FAILS(shim_stats_parse(span_of(texts[_i]), &is, &err), ERR_INTERNAL, "statistics of a guest");
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("shim_stats");
	TCase *tcase = tcase_create("shim_stats");

	suite_add_tcase(suite, tcase);
	tcase_add_test(tcase, bytes_and_inodes_are_read);
	tcase_add_loop_test(tcase, what_says_nothing_is_refused, 0, 11);
	return unit_runner_finish(srunner_create(suite));
}
