/* SPDX-License-Identifier: Apache-2.0 */
/* The generated descriptors against the tables in tests/data/proto: both ways, so that a missing and an
 * additional field, value or method fail alike. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "csi.pb-c.h"
#include "describe.h"
#include "inspect.pb-c.h"
#include "lines.h"
#include "pluginregistration.pb-c.h"
#include "registry.pb-c.h"

static const ProtobufCServiceDescriptor *const csi_services[] = {
	&csi__v1__identity__descriptor,
	&csi__v1__controller__descriptor,
	&csi__v1__group_controller__descriptor,
	&csi__v1__snapshot_metadata__descriptor,
	&csi__v1__node__descriptor,
};

static const ProtobufCServiceDescriptor *const registry_services[] = {
	&registry__v0__registry__descriptor, &registry__v0__node_volumes__descriptor};

static const ProtobufCServiceDescriptor *const registration_services[] = {
	&pluginregistration__registration__descriptor,
};

static const ProtobufCServiceDescriptor *const inspect_services[] = {&inspect__v0__inspect__descriptor};

static void check_services(
	const ProtobufCServiceDescriptor *const *services, size_t count, const char *table_path)
{
	struct lines wanted = {0}, found = {0};

	lines_add_table(&wanted, table_path);
	describe_services(&found, services, count);
	ck_assert_uint_gt(found.count, 0);
	lines_sort(&wanted);
	lines_sort(&found);
	ck_assert_uint_eq(lines_compare(&wanted, &found, stderr), 0);
	lines_clear(&wanted);
	lines_clear(&found);
}

START_TEST(csi_is_what_the_table_says)
{
	check_services(csi_services, ARRAY_SIZE(csi_services), TEST_DATA "/proto/csi.txt");
}
END_TEST

START_TEST(the_registry_is_what_the_table_says)
{
	check_services(registry_services, ARRAY_SIZE(registry_services), TEST_DATA "/proto/registry.txt");
}
END_TEST

START_TEST(inspection_is_what_the_table_says)
{
	check_services(inspect_services, ARRAY_SIZE(inspect_services), TEST_DATA "/proto/inspect.txt");
}
END_TEST

START_TEST(plugin_registration_is_what_the_table_says)
{
	check_services(registration_services, ARRAY_SIZE(registration_services),
		TEST_DATA "/proto/pluginregistration.txt");
}
END_TEST

/* How the comparison itself answers, since the tests above can only show that it found nothing. */
static size_t differences_after(void (*change)(struct lines *found), char **ret_report)
{
	struct lines wanted = {0}, found = {0};
	size_t size, differences;
	FILE *report = open_memstream(ret_report, &size);

	ck_assert_ptr_nonnull(report);
	lines_add_table(&wanted, TEST_DATA "/proto/csi.txt");
	describe_services(&found, csi_services, ARRAY_SIZE(csi_services));
	lines_sort(&wanted);
	lines_sort(&found);
	change(&found);
	lines_sort(&found);
	differences = lines_compare(&wanted, &found, report);
	ck_assert_int_eq(fclose(report), 0);
	lines_clear(&wanted);
	lines_clear(&found);
	return differences;
}

static void drop_last(struct lines *found)
{
	free(found->items[--found->count]);
}

static void add_field(struct lines *found)
{
	lines_add(found, "csi.v1 message Volume: 6 extra string");
}

static void repeat_line(struct lines *found)
{
	lines_add(found, "csi.v1 message Volume: 2 volume_id string");
}

static void renumber_field(struct lines *found)
{
	drop_last(found);
	lines_add(found, "google.protobuf message Timestamp: 9 seconds int64");
}

START_TEST(a_missing_field_is_a_difference)
{
	CLEANUP(free_charp) char *report = NULL;

	ck_assert_uint_eq(differences_after(drop_last, &report), 1);
	ck_assert_str_eq(report, "only in the table: google.protobuf message Timestamp: 2 nanos int32\n");
}
END_TEST

START_TEST(an_additional_field_is_a_difference)
{
	CLEANUP(free_charp) char *report = NULL;

	ck_assert_uint_eq(differences_after(add_field, &report), 1);
	ck_assert_str_eq(report, "not in the table: csi.v1 message Volume: 6 extra string\n");
}
END_TEST

START_TEST(a_repeated_field_is_a_difference)
{
	CLEANUP(free_charp) char *report = NULL;

	ck_assert_uint_eq(differences_after(repeat_line, &report), 1);
	ck_assert_str_eq(report, "not in the table: csi.v1 message Volume: 2 volume_id string\n");
}
END_TEST

START_TEST(a_changed_number_is_two_differences)
{
	CLEANUP(free_charp) char *report = NULL;

	ck_assert_uint_eq(differences_after(renumber_field, &report), 2);
}
END_TEST

/* The tables say only that a field is one of several: each message of ours has at most one such choice, and
 * protobuf-c keeps its case in one place. */
START_TEST(alternatives_share_one_case)
{
	static const ProtobufCMessageDescriptor *const messages[] = {
		&csi__v1__plugin_capability__descriptor,
		&csi__v1__volume_content_source__descriptor,
		&csi__v1__volume_capability__descriptor,
	};

	for (size_t i = 0; i < ARRAY_SIZE(messages); i++) {
		const ProtobufCFieldDescriptor *fields = messages[i]->fields;

		ck_assert_uint_eq(fields[0].flags, PROTOBUF_C_FIELD_FLAG_ONEOF);
		ck_assert_uint_eq(fields[1].flags, PROTOBUF_C_FIELD_FLAG_ONEOF);
		ck_assert_uint_eq(fields[0].quantifier_offset, fields[1].quantifier_offset);
	}
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("proto fields");
	TCase *tcase = tcase_create("all");
	SRunner *runner;
	int failed;

	tcase_add_test(tcase, csi_is_what_the_table_says);
	tcase_add_test(tcase, the_registry_is_what_the_table_says);
	tcase_add_test(tcase, inspection_is_what_the_table_says);
	tcase_add_test(tcase, plugin_registration_is_what_the_table_says);
	tcase_add_test(tcase, a_missing_field_is_a_difference);
	tcase_add_test(tcase, an_additional_field_is_a_difference);
	tcase_add_test(tcase, a_repeated_field_is_a_difference);
	tcase_add_test(tcase, a_changed_number_is_two_differences);
	tcase_add_test(tcase, alternatives_share_one_case);
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
