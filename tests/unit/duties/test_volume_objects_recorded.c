/* SPDX-License-Identifier: Apache-2.0 */
/* The time until which the volumes of a node are recorded is not shown before the last record exists,
 * whenever a leader ends. */
#include "base/mem.h"
#include "base/str.h"
#include "unit/duties/volume_objects_rig.h"
#include "unit/kube/fake_kube.h"
#include "unit/nodes/reports.h"

#define OTHER_NAME "pvc-11111111-7b53-4ab1-9d6e-0e9a5f0a3b21"
#define SHOWN      "2025-01-02T03:04:05Z"

static const char *until(const char *node_id)
{
	return volume_objects_recorded_until(rig.duty, node_table_get(rig.desk.table, node_id), SHOWN);
}

/* Lets the node report two volumes of the Go driver. */
static void put_two(const char *node_id)
{
	struct node_report *r = report_new(node_id);
	char id[VOLUME_ID_MAX + 1];

	volume_id_mint_go(RIG_NAME, id);
	report_add_volume(r, id, RIG_NAME);
	volume_id_mint_go(OTHER_NAME, id);
	report_add_volume(r, id, OTHER_NAME);
	rig_put_report(r);
}

START_TEST(volumes_are_recorded_when_the_last_record_shows_its_handle)
{
	fake_informer_sync(rig.objects);
	put_two("n1");
	ck_assert_ptr_null(until("n1"));
	/* for each volume the record is read, written, and its status is written */
	for (unsigned i = 0; i < 6; i++) {
		while (!rig.requests)
			rig_pass_s(1);
		ck_assert_msg(!until("n1"), "after %u requests", i);
		rig_serve();
	}
	rig_serve_all();
	ck_assert_str_eq(until("n1"), RIG_CREATED);
}
END_TEST

/* The first leader has ended after one of two records. The next leader lists that record, and has not made
 * the other one yet. */
START_TEST(a_leader_that_ends_between_records_leaves_no_time)
{
	CLEANUP(pmem_volume_freep) struct pmem_volume *v = rig_record("n1");
	char id[VOLUME_ID_MAX + 1];

	volume_id_mint_go(RIG_NAME, id);
	v->origin = x_strdup(PMEM_VOLUME_REPORTED);
	v->handle = x_strdup(id);
	rig_store(v);
	fake_informer_sync(rig.objects);
	put_two("n1");
	ck_assert_ptr_null(until("n1"));
	while (rig.requests)
		rig_fail(ERR_UNAVAILABLE);
	rig_restart();
	put_two("n1");
	while (!rig.requests)
		rig_pass_s(1);
	ck_assert_ptr_null(until("n1"));
	while (rig.requests)
		rig_fail(ERR_UNAVAILABLE);
	ck_assert_ptr_null(until("n1"));
	rig_live_s(120);
	ck_assert_str_eq(until("n1"), RIG_CREATED);
}
END_TEST

START_TEST(before_the_records_are_listed_nothing_changes)
{
	put_two("n1");
	ck_assert_str_eq(until("n1"), SHOWN);
	fake_informer_sync(rig.objects);
	ck_assert_ptr_null(until("n1"));
	rig_live_s(60);
	ck_assert_str_eq(until("n1"), RIG_CREATED);
}
END_TEST

START_TEST(a_record_that_is_deleted_by_hand_withdraws_the_time)
{
	struct volume_key key = volume_key_of_name(RIG_NAME);

	fake_informer_sync(rig.objects);
	put_two("n1");
	rig_live_s(60);
	ck_assert_str_eq(until("n1"), RIG_CREATED);
	ck_assert_str_eq(key.hex, rig.key);
	rig_lose();
	ck_assert_ptr_null(until("n1"));
	rig_live_s(60);
	ck_assert_str_eq(until("n1"), RIG_CREATED);
}
END_TEST

START_TEST(another_node_that_reports_a_copy_is_not_recorded_before_the_record_names_it)
{
	fake_informer_sync(rig.objects);
	put_two("n1");
	rig_live_s(60);
	rig_put("n2", NULL, PHASE_READY);
	ck_assert_str_eq(until("n2"), RIG_CREATED);
	put_two("n2");
	ck_assert_ptr_null(until("n2"));
	ck_assert_str_eq(until("n1"), RIG_CREATED);
	rig_live_s(60);
	ck_assert_str_eq(until("n2"), RIG_CREATED);
	rig_check("n1 n2");
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("duties/volume_objects_recorded");
	TCase *tcase = tcase_create("volume_objects_recorded");

	suite_add_tcase(suite, tcase);
	tcase_add_checked_fixture(tcase, rig_set_up, rig_tear_down);
	tcase_add_test(tcase, volumes_are_recorded_when_the_last_record_shows_its_handle);
	tcase_add_test(tcase, a_leader_that_ends_between_records_leaves_no_time);
	tcase_add_test(tcase, before_the_records_are_listed_nothing_changes);
	tcase_add_test(tcase, a_record_that_is_deleted_by_hand_withdraws_the_time);
	tcase_add_test(tcase, another_node_that_reports_a_copy_is_not_recorded_before_the_record_names_it);
	return unit_runner_finish(srunner_create(suite));
}
