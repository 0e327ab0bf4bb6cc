/* SPDX-License-Identifier: Apache-2.0 */
/* Every difference between state and devices is found, and nothing else is. */
#include "unit/inspect/checked.h"

#include "base/mem.h"

#define SIZE   MIB(16)
#define OURS   "11111111-1111-1111-1111-111111111111"
#define OTHERS "22222222-2222-2222-2222-222222222222"

START_TEST(a_node_with_volumes_is_consistent_and_looking_changes_nothing)
{
	fixture_make("pvc-1", SIZE);
	fixture_make("pvc-2", SIZE);
	size_t n_files = fixture_n_files();
	for (int i = 0; i < 2; i++) {
		checked_look();
		ck_assert_uint_eq(checked_n(), 0);
	}
	ck_assert_uint_eq(fixture_n_files(), n_files);
	ck_assert_uint_eq(fx.n_destroys, 0);
	checked_done();
}
END_TEST

START_TEST(a_device_without_state_is_found)
{
	fixture_make_device(MINTED_ID("alone"), 0, OURS, SIZE);
	checked_look();
	checked_only(CHECK_STRANGER, MINTED_ID("alone"));
	checked_done();
}
END_TEST

START_TEST(a_volume_is_missing_or_gone_as_its_pool_says)
{
	checked_write("v", ".json", OURS, 1, SIZE);
	checked_look();
	checked_only(CHECK_GONE, "v");

	fx.faults.absent_pool = fx.pools[1];
	checked_look();
	checked_only(CHECK_MISSING, "v");
	ck_assert_ptr_nonnull(strstr(checked_find(CHECK_MISSING, "v")->text, "absent"));

	fx.faults = (struct faults){.incomplete_pool = fx.pools[1]};
	checked_look();
	ck_assert_uint_eq(checked_n(), 2);
	ck_assert_ptr_nonnull(strstr(checked_find(CHECK_MISSING, "v")->text, "incomplete"));
	checked_done();
}
END_TEST

START_TEST(a_device_that_bears_another_identity_is_distinguished_from_the_volume)
{
	fixture_make_device("v", 0, OTHERS, SIZE);
	checked_write("v", ".json", OURS, 0, SIZE);
	checked_look();
	checked_only(CHECK_IDENTITY, "v");
	const char *text = checked_find(CHECK_IDENTITY, "v")->text;
	ck_assert(strstr(text, OURS) && strstr(text, OTHERS));
	checked_done();
}
END_TEST

START_TEST(unfinished_creations_and_deletions_are_found)
{
	fixture_make_device("c", 0, OURS, SIZE);
	checked_write("c", ".creating", OURS, 0, SIZE);
	checked_look();
	checked_only(CHECK_CREATING, "c");
	checked_write("e", ".erasing", OTHERS, 0, SIZE);
	checked_look();
	ck_assert_uint_eq(checked_n(), 2);
	ck_assert_ptr_nonnull(strstr(checked_find(CHECK_ERASING, "e")->text, "no device"));
	checked_done();
}
END_TEST

START_TEST(files_that_do_not_count_are_found)
{
	fixture_make_device("v", 0, OURS, SIZE);
	checked_write("v", ".json", OURS, 0, SIZE);
	checked_write("v", ".erasing", OURS, 0, SIZE);
	checked_look();
	checked_only(CHECK_TWO_FILES, "v");
	fixture_write(".w.json.tmp", "{");
	fixture_write("x.json.tmp", "{");
	fixture_write("y.z.json", "{\"id\":");
	fixture_write("misnamed.json", "{\"id\":\"v\",\"size\":1,\"parameters\":{}}");
	checked_look();
	ck_assert_uint_eq(checked_n(), 5);
	ck_assert_ptr_nonnull(checked_find(CHECK_TEMPORARY, "w"));
	ck_assert_ptr_nonnull(checked_find(CHECK_TEMPORARY, "x"));
	ck_assert_ptr_nonnull(checked_find(CHECK_DAMAGED, "y.z"));
	ck_assert_ptr_nonnull(
		strstr(checked_find(CHECK_DAMAGED, "misnamed")->text, "the name of a volume other than"));
	checked_done();
}
END_TEST

START_TEST(a_device_whose_state_file_is_damaged_is_reported_once)
{
	fixture_make_device("v", 0, OURS, SIZE);
	fixture_write("v.json", "{");
	checked_look();
	checked_only(CHECK_DAMAGED, "v");
	checked_done();
}
END_TEST

START_TEST(sizes_are_compared_and_the_go_drivers_smaller_ones_are_a_note)
{
	fixture_make_device("v", 0, OURS, SIZE);
	checked_write("v", ".json", OURS, 0, SIZE - 1);
	checked_look();
	checked_only(CHECK_SIZE, "v");
	checked_write("v", ".json", OURS, 0, SIZE + 1);
	checked_look();
	checked_only(CHECK_SIZE, "v");
	checked_write("v", ".json", NULL, 0, SIZE - 1);
	checked_look();
	ck_assert_uint_eq(checked_n(), 0);
	ck_assert(checked_find(CHECK_SIZE, "v")->is_note);
	checked_write("v", ".json", NULL, 0, SIZE + 1);
	checked_look();
	checked_only(CHECK_SIZE, "v");
	checked_done();
}
END_TEST

START_TEST(an_inactive_device_is_found)
{
	fixture_make("pvc-1", SIZE);
	fx.faults.inactive = true;
	checked_look();
	ck_assert_uint_eq(checked_n(), 1);
	fx.faults.inactive = false;
	checked_look();
	ck_assert_uint_eq(checked_n(), 0);
	checked_done();
}
END_TEST

START_TEST(media_errors_that_cannot_be_found_are_a_note)
{
	CLEANUP(volume_info_freep) struct volume_info *one = fixture_create("pvc-1", SIZE);
	CLEANUP(volume_info_freep) struct volume_info *other = fixture_create("pvc-2", SIZE);

	fx.faults.media_errors = ERR_INTERNAL;
	fx.faults.unlisted = one->id;
	checked_look();
	ck_assert_uint_eq(checked_n(), 0);
	const struct check_finding *note = checked_find(CHECK_MEDIA_UNKNOWN, one->id);
	ck_assert(note && note->is_note && strstr(note->text, "injected"));
	ck_assert_ptr_null(checked_find(CHECK_MEDIA_UNKNOWN, other->id));
	checked_done();
}
END_TEST

static void assert_media_finding(enum volume_phase phase, size_t expected)
{
	static char id[] = "v", ours[] = OURS, pool[] = "p", name[] = "g", dev[] = "/dev/x", path[] = "/s";
	static char mode[] = "lvm";
	static dev_t number;
	struct device d = {
		.id = id, .pool = pool, .identity = ours, .path = dev, .size_bytes = SIZE, .active = true};
	struct device_pool p = {.uuid = pool, .name = name, .complete = true};
	struct device_list l = {.devices = &d, .n_devices = 1, .pools = &p, .n_pools = 1};
	struct media_errors media = {.list = {{4096, 512}}, .n = 1, .bytes = 512};
	struct mount_table mounts = {0};
	struct loop_list loops = {0};
	struct volume_record r = {
		.id = id, .phase = phase, .size_bytes = SIZE, .identity = ours, .pool = pool};
	struct volume_record *records[] = {&r};
	const struct check_view v = {.mode = mode,
		.state_path = path,
		.has_state = true,
		.state = {.records = records, .n_records = 1},
		.devices = &l,
		.numbers = &number,
		.media = &media,
		.mounts = &mounts,
		.loops = &loops};
	CLEANUP(check_findings_done) struct check_findings f = {0};
	size_t n = 0;

	check_compare(&v, &f);
	for (size_t i = 0; i < f.n; i++)
		n += f.list[i].kind == CHECK_MEDIA_ERROR;
	ck_assert_uint_eq(n, expected);
}

/* Media errors of volumes that are being created or erased are not reported: these volumes are overwritten as
 * a whole. */
START_TEST(media_errors_matter_only_in_volumes_that_are_ready)
{
	assert_media_finding(PHASE_READY, 1);
	assert_media_finding(PHASE_CREATING, 0);
	assert_media_finding(PHASE_ERASING, 0);
}
END_TEST

START_TEST(without_a_state_folder_every_device_is_one_without_state)
{
	CLEANUP(free_charp) char *nowhere = fixture_path("nowhere");
	const struct check_config config = {.devices = &fx.devices, .state_path = nowhere};
	CLEANUP(check_view_done) struct check_view v = {0};
	CLEANUP(check_findings_done) struct check_findings f = {0};
	struct error *err = NULL;

	fixture_make_device(MINTED_ID("alone"), 0, OURS, SIZE);
	ASSERT_OK(check_view_read(&config, &v, &err));
	check_compare(&v, &f);
	ck_assert_uint_eq(f.n_mismatches, 2);
	ck_assert_int_eq(f.list[0].kind, CHECK_NO_STATE_FOLDER);
	ck_assert_int_eq(f.list[1].kind, CHECK_STRANGER);
}
END_TEST

START_TEST(who_cannot_list_devices_compares_nothing)
{
	CLEANUP(free_charp) char *state = fixture_path("state");
	const struct check_config config = {.devices = &fx.devices, .state_path = state};
	struct check_view v = {0};
	struct error *err = NULL;

	fx.faults.list = ERR_INTERNAL;
	ASSERT_FAILS(check_view_read(&config, &v, &err), ERR_INTERNAL, "list devices");
	ck_assert_ptr_null(v.state_path);
}
END_TEST

static struct device_list two_of_a_name(bool closed)
{
	static char id[] = "v", ours[] = OURS, others[] = OTHERS, pool[] = "p", name[] = "g",
		    dev[] = "/dev/x";
	static struct device devices[] = {
		{.id = id, .pool = pool, .identity = ours, .path = dev, .size_bytes = SIZE, .active = true},
		{.id = id, .pool = pool, .identity = others, .path = dev, .size_bytes = SIZE, .active = true},
	};
	static struct device_pool pools[1];

	pools[0] = (struct device_pool){.uuid = pool, .name = name, .complete = true, .closed = closed};
	return (struct device_list){.devices = devices, .n_devices = 2, .pools = pools, .n_pools = 1};
}

/* The names of namespaces need not be unique, those of the fake are. */
static void compare(struct device_list *l, const char *mode, struct check_findings *ret)
{
	static char id[] = "v", ours[] = OURS, pool[] = "p", path[] = "/state", manager[] = "lvm";
	static dev_t numbers[2];
	struct mount_table mounts = {0};
	struct loop_list loops = {0};
	struct volume_record r = {
		.id = id, .phase = PHASE_READY, .size_bytes = SIZE, .identity = ours, .pool = pool};
	struct volume_record *records[] = {&r};
	const struct check_view v = {.mode = manager,
		.state_path = path,
		.has_state = true,
		.state = {.records = records, .n_records = 1},
		.devices = l,
		.numbers = numbers,
		.mounts = &mounts,
		.loops = &loops};

	strmap_set(&r.parameters, "deviceMode", mode);
	check_compare(&v, ret);
	strmap_done(&r.parameters);
}

START_TEST(a_second_device_of_the_name_is_found)
{
	struct device_list l = two_of_a_name(false);
	CLEANUP(check_findings_done) struct check_findings f = {0};

	compare(&l, "lvm", &f);
	ck_assert_uint_eq(f.n, 1);
	ck_assert_int_eq(f.list[0].kind, CHECK_SAME_NAME);
	ck_assert_ptr_nonnull(strstr(f.list[0].text, OTHERS));
}
END_TEST

START_TEST(devices_of_the_other_mode_are_a_note_and_a_wrong_mode_is_none)
{
	struct device_list l = two_of_a_name(true);
	CLEANUP(check_findings_done) struct check_findings f = {0};

	l.n_devices = 1;
	compare(&l, "direct", &f);
	ck_assert_uint_eq(f.n, 1);
	ck_assert_int_eq(f.list[0].kind, CHECK_MODE);
	ck_assert(f.list[0].is_note);
	check_findings_done(&f);
	compare(&l, "lvm", &f);
	ck_assert_uint_eq(f.n_mismatches, 1);
	ck_assert_int_eq(f.list[0].kind, CHECK_MODE);
}
END_TEST

START_TEST(devices_without_a_name_of_ours_are_foreign_in_both_modes)
{
	static char minted[] = "vol-0123456789abcdef0123456789abcdef0123456789abcde.01234567";
	struct device_list l = two_of_a_name(true);
	CLEANUP(check_findings_done) struct check_findings f = {0};

	l.n_devices = 1;
	char *own_name = l.devices[0].id;
	static char theirs[] = "theirs";
	static const char *const modes[] = {"direct", "lvm"};
	for (size_t i = 0; i < ARRAY_SIZE(modes); i++) {
		l.devices[0].id = theirs;
		compare(&l, modes[i], &f);
		ck_assert_int_eq(f.list[1].kind, CHECK_FOREIGN);
		ck_assert(f.list[1].is_note);
		ck_assert_ptr_null(strstr(f.list[1].remedy, "-repair"));
		check_findings_done(&f);
	}
	l.devices[0].id = minted;
	compare(&l, "direct", &f);
	ck_assert_int_eq(f.list[1].kind, CHECK_STRANGER);
	ck_assert(!f.list[1].is_note);
	l.devices[0].id = own_name;
}
END_TEST

FIXTURE_MAIN("check", fixture_memory, a_node_with_volumes_is_consistent_and_looking_changes_nothing,
	a_device_without_state_is_found, a_volume_is_missing_or_gone_as_its_pool_says,
	a_device_that_bears_another_identity_is_distinguished_from_the_volume,
	unfinished_creations_and_deletions_are_found, files_that_do_not_count_are_found,
	a_device_whose_state_file_is_damaged_is_reported_once,
	sizes_are_compared_and_the_go_drivers_smaller_ones_are_a_note, an_inactive_device_is_found,
	media_errors_that_cannot_be_found_are_a_note, media_errors_matter_only_in_volumes_that_are_ready,
	without_a_state_folder_every_device_is_one_without_state, who_cannot_list_devices_compares_nothing,
	a_second_device_of_the_name_is_found, devices_of_the_other_mode_are_a_note_and_a_wrong_mode_is_none,
	devices_without_a_name_of_ours_are_foreign_in_both_modes)
