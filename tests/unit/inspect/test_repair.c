/* SPDX-License-Identifier: Apache-2.0 */
/* Repairs: what can be repaired safely is repaired, a repetition changes nothing, and nothing else is
 * changed. */
#include "inspect/repair.h"

#include <stdio.h>

#include "base/mem.h"
#include "base/str.h"
#include "unit/inspect/checked.h"

#define SIZE   MIB(16)
#define V      MINTED_ID("v")
#define W      MINTED_ID("w")
#define S      MINTED_ID("s")
#define OTHER  MINTED_ID("other")
#define OURS   "11111111-1111-1111-1111-111111111111"
#define OTHERS "22222222-2222-2222-2222-222222222222"

static struct repair_report report;

static void set_up(void)
{
	fixture_memory();
	fixture_stop();
}

static void reopen(void)
{
	fixture_stop();
	fixture_open();
	repair_report_done(&report);
}

static void repair(const char *id)
{
	struct error *err = NULL;

	reopen();
	ASSERT_OK(volumes_repair(fx.v, id, ADOPTED_AS_FOUND, &report, &err));
}

static void forget(const char *id)
{
	struct error *err = NULL;

	reopen();
	ASSERT_OK(volumes_drop_state(fx.v, id, &report, &err));
}

/* It was done, nothing is left, and to repeat it changes nothing. */
static void repair_all_of(const char *id, size_t n_done)
{
	repair(id);
	ck_assert_msg(!report.left, "%s", report.left ? report.left[0] : "");
	ck_assert_uint_eq(strv_len(report.done), n_done);
	unsigned n_destroys = fx.n_destroys;
	size_t n_files = fixture_n_files();
	repair(id);
	ck_assert_ptr_null(report.done);
	ck_assert_msg(!report.left || strstr(report.left[0], "no volume, device or state file"), "%s",
		report.left ? report.left[0] : "");
	ck_assert_uint_eq(fx.n_destroys, n_destroys);
	ck_assert_uint_eq(fixture_n_files(), n_files);
	checked_look();
}

/* It was refused, for a reason that has @text, and nothing has changed. */
static void refuse(const char *id, const char *text)
{
	size_t n_files = fixture_n_files();
	size_t n_devices = fixture_n_devices();

	repair(id);
	ck_assert_ptr_null(report.done);
	ck_assert_uint_eq(strv_len(report.left), 1);
	ck_assert_msg(strstr(report.left[0], text), "%s", report.left[0]);
	ck_assert_uint_eq(fixture_n_files(), n_files);
	ck_assert_uint_eq(fixture_n_devices(), n_devices);
}

static int rename_state(const char *from_name, const char *to_name)
{
	CLEANUP(free_charp) char *state = fixture_path("state");
	CLEANUP(free_charp) char *from = x_asprintf("%s/%s", state, from_name);
	CLEANUP(free_charp) char *to = x_asprintf("%s/%s", state, to_name);

	return rename(from, to);
}

static void done(void)
{
	repair_report_done(&report);
	checked_done();
}

START_TEST(while_a_driver_has_the_state_folder_nothing_is_repaired)
{
	CLEANUP(free_charp) char *state = fixture_path("state");
	const struct volumes_config config = {
		.node_id = NODE_ID, .state_path = state, .devices = &fx.devices};
	CLEANUP(volumes_freep) struct volumes *second = volumes_new(&config);
	struct error *err = NULL;

	fixture_restart();
	ASSERT_FAILS(volumes_repair(second, V, ADOPTED_AS_FOUND, &report, &err), ERR_UNAVAILABLE, ".lock");
	ASSERT_FAILS(volumes_drop_state(second, V, &report, &err), ERR_UNAVAILABLE, ".lock");
}
END_TEST

START_TEST(an_unfinished_creation_is_undone_with_its_device)
{
	fixture_make_device(V, 0, OURS, SIZE);
	fixture_make_device(OTHER, 0, OTHERS, SIZE);
	checked_write(V, ".creating", OURS, 0, SIZE);
	repair_all_of(V, 1);
	ck_assert_uint_eq(fixture_n_devices(), 1);
	checked_only(CHECK_STRANGER, OTHER);
	done();
}
END_TEST

START_TEST(the_device_of_somebody_else_survives_an_unfinished_creation_of_its_name)
{
	fixture_make_device(V, 0, OTHERS, SIZE);
	checked_write(V, ".creating", OURS, 0, SIZE);
	repair(V);
	ck_assert(report.done && !report.left);
	ck_assert_uint_eq(fixture_n_devices(), 1);
	ck_assert_uint_eq(fixture_n_files(), 0);
	done();
}
END_TEST

START_TEST(an_unfinished_creation_stays_while_its_pool_is_absent)
{
	fixture_make_device(V, 0, OURS, SIZE);
	checked_write(V, ".creating", OURS, 0, SIZE);
	fx.faults.absent_pool = fx.pools[0];
	refuse(V, "absent");
	done();
}
END_TEST

START_TEST(an_unfinished_deletion_is_finished)
{
	fixture_make_device(V, 0, OURS, SIZE);
	checked_write(V, ".erasing", OURS, 0, SIZE);
	repair_all_of(V, 1);
	ck_assert_uint_eq(fixture_n_devices() + fixture_n_files(), 0);
	checked_write(V, ".erasing", OURS, 0, SIZE);
	repair_all_of(V, 1);
	done();
}
END_TEST

START_TEST(a_device_without_state_is_adopted_and_can_be_deleted)
{
	CLEANUP(free_charp) char *text = NULL;
	CLEANUP(volume_record_freep) struct volume_record *r = NULL;
	struct error *err = NULL;

	fixture_make_device(V, 1, OURS, SIZE);
	repair_all_of(V, 1);
	ck_assert_uint_eq(checked_n(), 0);
	text = fixture_read(V ".json");
	ASSERT_OK(state_parse(span_of(text), &r, &err));
	ck_assert_uint_eq(r->size_bytes, SIZE);
	ck_assert_str_eq(r->identity, OURS);
	ck_assert_str_eq(r->pool, fx.pools[1]);
	ck_assert_str_eq(strmap_get(&r->parameters, "deviceMode"), fx.devices.ops->mode);
	fixture_restart();
	ASSERT_OK(volumes_delete(fx.v, V, &err));
	done();
}
END_TEST

/* As any name of a namespace or a logical volume that other software gives. */
START_TEST(a_foreign_device_is_never_adopted)
{
	static const char *const names[] = {
		"database", "v", "data-0123456789abcdef", "0f9a4c1e-5c1b-4c5e-8a57-3d1f6f0d9a11"};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		CLEANUP(free_charp) char *damaged = x_asprintf("%s.json", names[i]);

		fixture_make_device(names[i], 0, OTHERS, MIB(4));
		refuse(names[i], "is foreign");
		ck_assert(!fixture_exists(damaged));
		checked_look();
		ck_assert(checked_find(CHECK_FOREIGN, names[i])->is_note);
		checked_done();
		fixture_write(damaged, "{");
		refuse(names[i], "is foreign");
		ck_assert(fixture_exists(damaged));
	}
	ck_assert_uint_eq(fx.n_destroys, 0);
	done();
}
END_TEST

/* Earlier versions did so. */
START_TEST(the_state_of_a_foreign_device_that_was_adopted_can_be_dropped)
{
	fixture_make_device("database", 0, OTHERS, SIZE);
	fixture_write("database.json",
		"{\"id\":\"database\",\"size\":16777216,\"parameters\":{},\"identity\":\"" OTHERS
		"\",\"adopted\":true}");
	forget("database");
	ck_assert(report.done && !report.left);
	ck_assert_uint_eq(fixture_n_files(), 0);
	ck_assert_uint_eq(fixture_n_devices(), 1);
	done();
}
END_TEST

START_TEST(an_adopted_device_without_identity_is_no_block_volume)
{
	CLEANUP(volume_info_freep) struct volume_info *info = NULL;
	struct error *err = NULL;

	fixture_make_device(V, 1, "", SIZE);
	repair_all_of(V, 1);
	fixture_restart();
	ASSERT_OK(volumes_get(fx.v, V, &info, &err));
	ck_assert(!info->missing);
	ck_assert(!info->may_be_block);
	ASSERT_OK(volumes_delete(fx.v, V, &err));
	done();
}
END_TEST

START_TEST(an_unknown_name_is_reported)
{
	fixture_make_device(OTHER, 0, OTHERS, SIZE);
	refuse(V, "no volume, device or state file");
	ck_assert_uint_eq(fixture_n_files(), 0);
	done();
}
END_TEST

static struct volume_record *record_of(const char *file)
{
	CLEANUP(free_charp) char *text = fixture_read(file);
	struct volume_record *r = NULL;
	struct error *err = NULL;

	ASSERT_OK(state_parse(span_of(text), &r, &err));
	return r;
}

START_TEST(an_adopted_device_is_never_formatted)
{
	CLEANUP(volume_record_freep) struct volume_record *r = NULL;

	fixture_make_device(V, 0, OURS, SIZE);
	repair(V);
	r = record_of(V ".json");
	ck_assert(r->ever_staged && r->adopted && !r->block_clean);
	done();
}
END_TEST

START_TEST(a_block_volume_is_adopted_as_one_at_once_or_later)
{
	CLEANUP(volume_record_freep) struct volume_record *first = NULL;
	CLEANUP(volume_record_freep) struct volume_record *second = NULL;
	struct error *err = NULL;

	fixture_make_device(V, 0, OURS, SIZE);
	reopen();
	ASSERT_OK(volumes_repair(fx.v, V, ADOPTED_BLOCK, &report, &err));
	ck_assert(report.done && !report.left);
	first = record_of(V ".json");
	ck_assert(first->block_clean && first->ever_staged);

	fixture_make_device(W, 0, OTHERS, SIZE);
	repair(W);
	reopen();
	ASSERT_OK(volumes_repair(fx.v, W, ADOPTED_BLOCK, &report, &err));
	ck_assert(report.done && !report.left);
	second = record_of(W ".json");
	ck_assert(second->block_clean && second->ever_staged);
	done();
}
END_TEST

START_TEST(a_volume_that_was_made_for_files_does_not_become_a_block_volume)
{
	struct error *err = NULL;

	checked_write(V, ".json", OURS, 0, SIZE);
	fixture_make_device(V, 0, OURS, SIZE);
	reopen();
	ASSERT_OK(volumes_repair(fx.v, V, ADOPTED_BLOCK, &report, &err));
	ck_assert_ptr_null(report.done);
	ck_assert_ptr_nonnull(strstr(report.left[0], "not created as a block volume"));
	done();
}
END_TEST

START_TEST(a_damaged_file_stays_while_its_device_cannot_be_adopted)
{
	fixture_make_device(V, 0, OURS, SIZE);
	fixture_write(V ".json", "{\"id\":");
	fx.faults.inactive = true;
	fx.faults.activate = ERR_INTERNAL;
	refuse(V, "could not be activated");
	ck_assert(fixture_exists(V ".json") && !fixture_exists(V ".json.damaged"));
	done();
}
END_TEST

START_TEST(a_device_that_cannot_be_activated_is_not_adopted)
{
	fixture_make_device(V, 0, OURS, SIZE);
	fx.faults.inactive = true;
	fx.faults.activate = ERR_INTERNAL;
	refuse(V, "could not be activated");
	done();
}
END_TEST

START_TEST(a_damaged_file_is_set_aside_and_written_anew_for_its_device)
{
	CLEANUP(free_charp) char *kept = NULL;

	fixture_make_device(V, 0, OURS, SIZE);
	fixture_write(V ".json", "{\"id\":");
	repair(V);
	ck_assert_uint_eq(strv_len(report.done), 2);
	kept = fixture_read(V ".json.damaged");
	ck_assert_str_eq(kept, "{\"id\":");
	ck_assert(fixture_exists(V ".json"));
	checked_look();
	ck_assert_uint_eq(checked_n(), 0);
	done();
}
END_TEST

/* It may be half a copy, which is never ready. */
START_TEST(a_damaged_file_of_a_volume_that_was_not_ready_is_kept_unless_it_shows_that_it_is_no_copy)
{
	static const char head[] = "{\"id\":\"" V "\",\"size\":1,\"parameters\":{},\"identity\":\"" OURS "\"";
	CLEANUP(free_charp) char *copy = x_asprintf("%s,\"source\":\"x\",\"pool\":\"p\",", head);
	CLEANUP(free_charp) char *other = x_asprintf("%s,\"pool\":\"p\",", head);

	fixture_make_device(V, 0, OURS, SIZE);
	fixture_write(V ".creating", "");
	refuse(V, "is no copy");
	fixture_write(V ".creating", copy);
	refuse(V, "is no copy");
	ck_assert_int_eq(rename_state(V ".creating", V ".erasing"), 0);
	refuse(V, "is no copy");
	ck_assert_int_eq(rename_state(V ".erasing", V ".creating"), 0);
	fixture_write(V ".creating", other);
	repair_all_of(V, 2);
	ck_assert(fixture_exists(V ".json"));
	done();
}
END_TEST

START_TEST(a_repair_that_was_cut_off_is_repeated)
{
	fixture_make_device(V, 0, OURS, SIZE);
	fixture_write(V ".json.damaged", "{\"id\":");
	repair_all_of(V, 1);
	ck_assert(fixture_exists(V ".json") && fixture_exists(V ".json.damaged"));
	done();
}
END_TEST

START_TEST(a_damaged_file_of_a_snapshot_is_replaced_by_one_of_a_snapshot)
{
	CLEANUP(free_charp) char *text = NULL;

	fixture_make_device(S, 0, OURS, SIZE);
	fixture_write(S ".snapshot", "{\"id\":");
	fixture_write(".s.snapshot.tmp", "{");
	repair(S);
	ck_assert(fixture_exists(S ".snapshot.damaged") && !fixture_exists(S ".json"));
	ck_assert(!fixture_exists(".s.snapshot.tmp"));
	text = fixture_read(S ".snapshot");
	ck_assert_msg(strstr(text, "\"snapshot\":true") && strstr(text, OURS), "%s", text);
}
END_TEST

START_TEST(a_damaged_snapshot_beside_another_phase_is_not_decided)
{
	fixture_make_device(S, 0, OURS, SIZE);
	fixture_write(S ".snapshot", "{\"id\":");
	fixture_write(
		S ".erasing", "{\"id\":\"" S "\",\"size\":1,\"snapshot\":true,\"identity\":\"" OURS "\"}");
	repair(S);
	ck_assert_msg(report.left && strstr(report.left[0], "cannot be determined"), "%s",
		report.left ? report.left[0] : "nothing is left");
	ck_assert(fixture_exists(S ".snapshot"));
}
END_TEST

START_TEST(a_damaged_file_without_a_device_is_only_set_aside)
{
	fixture_write(V ".json", "");
	fixture_write("w w.erasing", "x");
	repair_all_of(V, 1);
	repair_all_of("w w", 1);
	ck_assert(fixture_exists(V ".json.damaged") && fixture_exists("w w.erasing.damaged"));
	ck_assert_uint_eq(checked_n(), 0);
	done();
}
END_TEST

START_TEST(a_damaged_ready_file_beside_another_phase_is_not_decided)
{
	fixture_make_device(V, 0, OURS, SIZE);
	fixture_write(V ".json", "{");
	checked_write(V, ".creating", OURS, 0, SIZE);
	refuse(V, "cannot be determined");
	done();
}
END_TEST

START_TEST(files_that_do_not_count_are_removed)
{
	fixture_make_device(V, 0, OURS, SIZE);
	checked_write(V, ".json", OURS, 0, SIZE);
	checked_write(V, ".creating", OURS, 0, SIZE);
	checked_write(V, ".erasing", OTHERS, 0, SIZE);
	fixture_write(V ".json.tmp", "{");
	fixture_write("." V ".json.tmp", "{");
	repair_all_of(V, 4);
	ck_assert_uint_eq(fixture_n_files(), 1);
	ck_assert_uint_eq(fixture_n_devices(), 1);
	ck_assert_uint_eq(checked_n(), 0);
	done();
}
END_TEST

START_TEST(a_file_whose_own_device_may_exist_is_not_removed)
{
	fixture_make_device(V, 0, OURS, SIZE);
	checked_write(V, ".json", OURS, 0, SIZE);
	checked_write(V, ".erasing", OTHERS, 1, SIZE);
	fx.faults.absent_pool = fx.pools[1];
	refuse(V, "may exist");
	done();
}
END_TEST

START_TEST(a_volume_that_is_provably_gone_is_dropped)
{
	checked_write(V, ".json", OURS, 0, SIZE);
	checked_write(W, ".json", OURS, 1, SIZE);
	repair_all_of(V, 1);
	ck_assert_uint_eq(fixture_n_files(), 1);
	checked_only(CHECK_GONE, W);
	done();
}
END_TEST

START_TEST(a_missing_volume_is_dropped_by_forgetting_alone)
{
	checked_write(V, ".json", OURS, 0, SIZE);
	fx.faults.incomplete_pool = fx.pools[0];
	refuse(V, "-forget");
	forget(V);
	ck_assert(report.done && !report.left);
	ck_assert_uint_eq(fixture_n_files(), 0);
	forget(V);
	ck_assert(!report.done && report.left);
	done();
}
END_TEST

START_TEST(a_volume_whose_device_exists_is_not_forgotten)
{
	fixture_make_device(V, 0, OURS, SIZE);
	checked_write(V, ".json", OURS, 0, SIZE);
	forget(V);
	ck_assert(!report.done && strstr(report.left[0], "delete"));
	ck_assert_uint_eq(fixture_n_files(), 1);
	done();
}
END_TEST

START_TEST(another_identity_is_explained_and_forgetting_leaves_the_device_alone)
{
	fixture_make_device(V, 0, OTHERS, SIZE);
	checked_write(V, ".json", OURS, 0, SIZE);
	refuse(V, "something else");
	forget(V);
	ck_assert_uint_eq(fixture_n_files(), 0);
	ck_assert_uint_eq(fixture_n_devices(), 1);
	ck_assert_uint_eq(fx.n_destroys, 0);
	done();
}
END_TEST

START_TEST(the_devices_size_is_recorded_where_it_is_no_less)
{
	fixture_make_device(V, 0, OURS, SIZE);
	checked_write(V, ".json", OURS, 0, SIZE - 1);
	repair_all_of(V, 1);
	ck_assert_uint_eq(checked_n(), 0);
	checked_write(V, ".json", OURS, 0, SIZE + 1);
	refuse(V, "promised");
	done();
}
END_TEST

START_TEST(an_inactive_device_is_activated)
{
	fixture_make_device(V, 0, OURS, SIZE);
	checked_write(V, ".json", OURS, 0, SIZE);
	fx.faults.inactive = true;
	repair_all_of(V, 1);
	ck_assert_uint_eq(checked_n(), 0);
	done();
}
END_TEST

START_TEST(a_pool_that_was_never_recorded_is)
{
	fixture_make_device(V, 0, OURS, SIZE);
	fixture_write(V ".json", "{\"id\":\"" V "\",\"size\":16777216,\"parameters\":{\"name\":\"n\"}}");
	repair_all_of(V, 1);
	done();
}
END_TEST

START_TEST(who_cannot_list_devices_repairs_nothing)
{
	struct error *err = NULL;

	checked_write(V, ".json", OURS, 0, SIZE);
	fixture_write(V ".creating", "{");
	fx.faults.list = ERR_INTERNAL;
	reopen();
	ASSERT_FAILS(volumes_repair(fx.v, V, ADOPTED_AS_FOUND, &report, &err), ERR_INTERNAL, "list devices");
	ASSERT_FAILS(volumes_drop_state(fx.v, V, &report, &err), ERR_INTERNAL, "list devices");
	ck_assert_uint_eq(fixture_n_files(), 2);
}
END_TEST

FIXTURE_MAIN("repair", set_up, while_a_driver_has_the_state_folder_nothing_is_repaired,
	an_unfinished_creation_is_undone_with_its_device,
	the_device_of_somebody_else_survives_an_unfinished_creation_of_its_name,
	an_unfinished_creation_stays_while_its_pool_is_absent, an_unfinished_deletion_is_finished,
	a_device_without_state_is_adopted_and_can_be_deleted, a_foreign_device_is_never_adopted,
	the_state_of_a_foreign_device_that_was_adopted_can_be_dropped,
	an_adopted_device_without_identity_is_no_block_volume, an_unknown_name_is_reported,
	an_adopted_device_is_never_formatted, a_block_volume_is_adopted_as_one_at_once_or_later,
	a_volume_that_was_made_for_files_does_not_become_a_block_volume,
	a_damaged_file_stays_while_its_device_cannot_be_adopted,
	a_device_that_cannot_be_activated_is_not_adopted,
	a_damaged_file_is_set_aside_and_written_anew_for_its_device,
	a_damaged_file_of_a_volume_that_was_not_ready_is_kept_unless_it_shows_that_it_is_no_copy,
	a_repair_that_was_cut_off_is_repeated, a_damaged_file_of_a_snapshot_is_replaced_by_one_of_a_snapshot,
	a_damaged_snapshot_beside_another_phase_is_not_decided,
	a_damaged_file_without_a_device_is_only_set_aside,
	a_damaged_ready_file_beside_another_phase_is_not_decided, files_that_do_not_count_are_removed,
	a_file_whose_own_device_may_exist_is_not_removed, a_volume_that_is_provably_gone_is_dropped,
	a_missing_volume_is_dropped_by_forgetting_alone, a_volume_whose_device_exists_is_not_forgotten,
	another_identity_is_explained_and_forgetting_leaves_the_device_alone,
	the_devices_size_is_recorded_where_it_is_no_less, an_inactive_device_is_activated,
	a_pool_that_was_never_recorded_is, who_cannot_list_devices_repairs_nothing)
