/* SPDX-License-Identifier: Apache-2.0 */
/* Records that were made of reports which did not say whether they are about a volume or a snapshot. */
#include "base/mem.h"
#include "base/str.h"
#include "unit/duties/volume_objects_rig.h"
#include "unit/kube/fake_kube.h"
#include "unit/nodes/reports.h"

static void put(enum volume_phase phase, bool snapshot)
{
	struct node_report *r = report_new("n1");
	struct volume_report *v = report_add_volume(r, rig.id, RIG_NAME);

	v->phase = phase;
	v->snapshot = snapshot;
	rig_put_report(r);
	rig_live_s(60);
}

static void check_snapshot(bool snapshot)
{
	CLEANUP(pmem_volume_freep) struct pmem_volume *v = rig_read();

	ck_assert_str_eq(v->origin, PMEM_VOLUME_REPORTED);
	ck_assert_str_eq(v->handle, rig.id);
	ck_assert_int_eq(v->snapshot, snapshot);
}

/* Made by a controller that does not know of snapshots, or while the node could not say what it is. */
START_TEST(the_record_of_a_snapshot_that_was_taken_for_a_volume_is_made_again)
{
	fake_informer_sync(rig.objects);
	put(_i ? PHASE_DAMAGED : PHASE_READY, /* snapshot= */ false);
	rig_check_served(1, 1, 0, 1, 0);
	check_snapshot(false);
	put(PHASE_READY, /* snapshot= */ true);
	rig_check_served(1, 1, 0, 1, 1);
	check_snapshot(true);
}
END_TEST

/* It ended before it had shown the handle, by which the volume is found when its record has gone. */
START_TEST(the_record_of_a_snapshot_gets_its_handle_before_it_is_made_again)
{
	CLEANUP(pmem_volume_freep) struct pmem_volume *v = rig_record("n1");

	v->origin = x_strdup(PMEM_VOLUME_REPORTED);
	rig_store(v);
	put(PHASE_READY, /* snapshot= */ true);
	fake_informer_sync(rig.objects);
	rig_live_s(60);
	rig_check_served(1, 1, 0, 2, 1);
	check_snapshot(true);
}
END_TEST

START_TEST(a_damaged_snapshot_and_one_that_is_erased_stay_snapshots)
{
	fake_informer_sync(rig.objects);
	put(PHASE_READY, /* snapshot= */ true);
	rig_check_served(1, 1, 0, 1, 0);
	put(_i ? PHASE_DAMAGED : PHASE_ERASING, /* snapshot= */ false);
	rig_check_served(0, 0, 0, 1, 0);
	check_snapshot(true);
}
END_TEST

/* On one of two nodes the state file is damaged: the record is made once. */
START_TEST(kind_is_that_of_a_node_that_knows_it)
{
	fake_informer_sync(rig.objects);
	for (int i = 0; i < 2; i++) {
		struct node_report *r = report_new(i ? "n2" : "n1");
		struct volume_report *v = report_add_volume(r, rig.id, RIG_NAME);

		v->phase = i ? PHASE_READY : PHASE_DAMAGED;
		v->snapshot = i;
		rig_put_report(r);
	}
	rig_live_s(60);
	check_snapshot(true);
	rig_live_s(60);
	check_snapshot(true);
}
END_TEST

/* It has more than reports say. */
START_TEST(a_record_that_a_call_has_made_is_not_made_again)
{
	rig_given_out("n1");
	fake_informer_sync(rig.objects);
	rig_live_s(60);
	rig_check_served(0, 0, 0, 1, 0);
	put(PHASE_READY, /* snapshot= */ true);
	rig_check_served(0, 0, 0, 1, 0);
}
END_TEST

START_TEST(a_record_that_is_being_deleted_is_left_to_that)
{
	CLEANUP(pmem_volume_freep) struct pmem_volume *v = NULL;

	fake_informer_sync(rig.objects);
	put(PHASE_READY, /* snapshot= */ false);
	v = rig_read();
	v->deleting = true;
	rig_store(v);
	rig_live_s(60);
	rig_check_served(1, 1, 0, 2, 0);
	put(PHASE_READY, /* snapshot= */ true);
	rig_check_served(0, 0, 0, 0, 0);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("duties/volume_objects_kinds");
	TCase *tcase = tcase_create("kinds");

	suite_add_tcase(suite, tcase);
	tcase_add_checked_fixture(tcase, rig_set_up, rig_tear_down);
	tcase_add_loop_test(tcase, the_record_of_a_snapshot_that_was_taken_for_a_volume_is_made_again, 0, 2);
	tcase_add_test(tcase, the_record_of_a_snapshot_gets_its_handle_before_it_is_made_again);
	tcase_add_loop_test(tcase, a_damaged_snapshot_and_one_that_is_erased_stay_snapshots, 0, 2);
	tcase_add_test(tcase, kind_is_that_of_a_node_that_knows_it);
	tcase_add_test(tcase, a_record_that_a_call_has_made_is_not_made_again);
	tcase_add_test(tcase, a_record_that_is_being_deleted_is_left_to_that);
	return unit_runner_finish(srunner_create(suite));
}
