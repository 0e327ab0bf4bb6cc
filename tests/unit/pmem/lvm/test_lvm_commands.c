/* SPDX-License-Identifier: Apache-2.0 */
/* The commands for LVM, the same in a shell and as a process: filter, arguments, listings. */
#include "base/mem.h"
#include "pmem/lvm/lvm_config.h"
#include "unit/pmem/lvm/lvm_fake.h"
#include "unit/unit.h"

#define ARGV(...)   ((const char *const[]){__VA_ARGS__, NULL})
#define PMEM0_ROW   "{\"pv_name\":\"/dev/pmem0\",\"pv_size\":\"1\",\"vg_name\":\"v\",\"vg_uuid\":\"u\"}"
#define REPORT(row) "{\"report\":[{\"pv\":[" row "]}]}"

static void assert_filter(char *const *paths, const char *filter)
{
	CLEANUP(free_charp) char *config = lvm_config_text(paths, /* backup_dir= */ NULL);
	CLEANUP(free_charp) char *expected = x_asprintf("\tfilter=[%s]\n", filter);

	ck_assert_msg(strstr(config, expected), "%s\nlacks %s", config, expected);
}

#define PATHS(...) ((char *[]){__VA_ARGS__, NULL})

START_TEST(filter_admits_exact_paths_and_nothing_else)
{
	assert_filter(NULL, "\"r|.*|\"");
	assert_filter(PATHS((char[]){"/dev/pmem0"}, (char[]){"/dev/pmem1.1"}),
		"\"a|^/dev/pmem0$|\",\"a|^/dev/pmem1[.]1$|\",\"r|.*|\"");
	assert_filter(PATHS((char[]){"/dev/a|b"}, (char[]){"/dev/a\"b"}, (char[]){"/dev/.*"},
			      (char[]){"/dev/a\\b"}, (char[]){"/dev/a]b"}, (char[]){"/dev/a b"},
			      (char[]){"/dev/a\nb"}, (char[]){"sda"}, (char[]){""}),
		"\"r|.*|\"");
}
END_TEST

START_TEST(copies_of_metadata_are_kept_where_a_folder_is_set_and_nowhere_else)
{
	CLEANUP(free_charp) char *without = lvm_config_text(NULL, /* backup_dir= */ NULL);
	CLEANUP(free_charp) char *with = lvm_config_text(NULL, "/var/lib/a \"b\\c/lvm");
	CLEANUP(free_charp) char *open = lvm_config_text_open();

	ck_assert_ptr_nonnull(strstr(without, "backup { archive=0 backup=0 }\n"));
	ck_assert_ptr_nonnull(strstr(open, "backup { archive=0 backup=0 }\n"));
	ck_assert_ptr_nonnull(
		strstr(with, "backup { archive=0 backup=1 backup_dir=\"/var/lib/a \\\"b\\\\c/lvm\" }\n"));
}
END_TEST

START_TEST(arguments_that_the_shell_would_change_are_refused)
{
	static const char *const bad[] = {
		"", "a b", "a\tb", "a\nb", "'a", "a'b", "\"a\"", "a\\b", "#a", "a\x01", "\xc3\xa4"};
	CLEANUP(lvm_fake_done) struct lvm_fake fake = LVM_FAKE({"a b&&c={d}:+.,=@/-_", NULL, 0});
	CLEANUP(lvm_closep) struct lvm *l = lvm_open_fake(&fake);
	CLEANUP(free_charp) char *longer = x_calloc(2000, 1);
	const char *many[80] = {0};
	struct error *err = NULL;

	ASSERT_OK(lvm_run(l, ARGV("a", "b&&c={d}:+.,=@/-_"), NULL, &err));
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		ASSERT_FAILS(lvm_run(l, ARGV("a", bad[i]), NULL, &err), ERR_INVALID_ARGUMENT, "argument");
	memset(longer, 'a', 1999);
	ASSERT_FAILS(lvm_run(l, ARGV("a", longer), NULL, &err), ERR_INVALID_ARGUMENT, "argument");
	for (size_t i = 0; i < 63; i++)
		many[i] = "a";
	ASSERT_FAILS(lvm_run(l, many, NULL, &err), ERR_INVALID_ARGUMENT, "63 words");
	ASSERT_FAILS(lvm_run(l, many + 63, NULL, &err), ERR_INVALID_ARGUMENT, "0 words");
}
END_TEST

START_TEST(without_devices_nothing_is_listed_and_nothing_run)
{
	CLEANUP(lvm_fake_done) struct lvm_fake fake = LVM_FAKE();
	CLEANUP(lvm_closep) struct lvm *l = lvm_open_fake(&fake);
	CLEANUP(lvm_report_freep) struct lvm_report *r = NULL;
	struct error *err = NULL;

	ASSERT_OK(lvm_list(l, &r, &err));
	ck_assert_uint_eq(r->n_pvs + r->n_vgs + r->n_lvs, 0);
}
END_TEST

START_TEST(listing_has_a_filter_and_does_not_only_trust_it)
{
	CLEANUP(lvm_fake_done)
	struct lvm_fake fake =
		LVM_FAKE({LVM_FAKE_LIST, REPORT(PMEM0_ROW), 0}, {LVM_FAKE_LIST, REPORT(PMEM0_ROW), 0});
	CLEANUP(lvm_closep) struct lvm *l = lvm_open_fake(&fake);
	CLEANUP(lvm_report_freep) struct lvm_report *r = NULL;
	struct lvm_report *none = NULL;
	struct error *err = NULL;

	lvm_set_devices(l, ARGV("/dev/pmem0", "/dev/pmem1"), 2);
	ASSERT_OK(lvm_list(l, &r, &err));
	ck_assert_uint_eq(r->n_pvs, 1);
	ck_assert_ptr_nonnull(
		strstr(fake.config, "filter=[\"a|^/dev/pmem0$|\",\"a|^/dev/pmem1$|\",\"r|.*|\"]"));
	lvm_set_devices(l, ARGV("/dev/pmem1"), 1);
	ASSERT_FAILS(lvm_list(l, &none, &err), ERR_INTERNAL, "/dev/pmem0");
}
END_TEST

START_TEST(listing_that_cannot_be_read_says_nothing)
{
	CLEANUP(lvm_fake_done)
	struct lvm_fake fake =
		LVM_FAKE({LVM_FAKE_LIST, "{\"report\":", 0}, {LVM_FAKE_LIST, NULL, ERR_DEADLINE});
	CLEANUP(lvm_closep) struct lvm *l = lvm_open_fake(&fake);
	struct lvm_report *none = NULL;
	struct error *err = NULL;

	lvm_set_devices(l, ARGV("/dev/pmem0"), 1);
	ASSERT_FAILS(lvm_list(l, &none, &err), ERR_UNAVAILABLE, "report");
	ASSERT_FAILS(lvm_list(l, &none, &err), ERR_DEADLINE, "pvs");
	ck_assert_ptr_null(none);
}
END_TEST

START_TEST(name_is_looked_for_on_all_devices_but_only_then)
{
	static const char command[] = "vgs --readonly -o vg_name,vg_uuid -S vg_name=v";
	CLEANUP(lvm_fake_done)
	struct lvm_fake fake = LVM_FAKE({command, REPORT("{\"vg_name\":\"v\",\"vg_uuid\":\"u\"}"), 0},
		{command, REPORT(""), 0}, {LVM_FAKE_LIST, REPORT(PMEM0_ROW), 0});
	CLEANUP(lvm_closep) struct lvm *l = lvm_open_fake(&fake);
	CLEANUP(lvm_report_freep) struct lvm_report *r = NULL;
	struct error *err = NULL;
	bool exists = false;

	lvm_set_devices(l, ARGV("/dev/pmem0"), 1);
	ASSERT_OK(lvm_group_exists(l, "v", &exists, &err));
	ck_assert(exists);
	ck_assert_ptr_nonnull(strstr(fake.config, "filter=[\"a|.*|\"]"));
	ASSERT_OK(lvm_group_exists(l, "v", &exists, &err));
	ck_assert(!exists);
	ASSERT_OK(lvm_list(l, &r, &err));
	ck_assert_ptr_nonnull(strstr(fake.config, "\"r|.*|\""));
}
END_TEST

UNIT_MAIN("pmem/lvm_commands", filter_admits_exact_paths_and_nothing_else,
	copies_of_metadata_are_kept_where_a_folder_is_set_and_nowhere_else,
	arguments_that_the_shell_would_change_are_refused, without_devices_nothing_is_listed_and_nothing_run,
	listing_has_a_filter_and_does_not_only_trust_it, listing_that_cannot_be_read_says_nothing,
	name_is_looked_for_on_all_devices_but_only_then)
