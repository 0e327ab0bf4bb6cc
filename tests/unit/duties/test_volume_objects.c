/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/str.h"
#include "unit/duties/volume_objects_rig.h"
#include "unit/kube/fake_kube.h"
#include "unit/nodes/reports.h"

#define SETTLED_S  ((unsigned)(VOLUME_OBJECTS_SETTLED_NS / NS_PER_S))
#define INTERVAL_S 2
#define LOOK_S     30
#define KEY        "0123456789abcdef0123456789abcdef0123456789abcde"

static void check_phase(const char *phase)
{
	CLEANUP(pmem_volume_freep) struct pmem_volume *v = rig_read();

	ck_assert_ptr_nonnull(v);
	ck_assert_str_eq(v->phase, phase);
}

static void sync_objects(void)
{
	fake_informer_sync(rig.objects);
}

/* A volume that was given out, on n1, whose object shows it. */
static void begin_with_volume(void)
{
	rig_put("n1", rig.id, PHASE_READY);
	rig_given_out("n1");
	sync_objects();
	rig_live_s(LOOK_S + 1);
	rig_check_served(0, 0, 0, 1, 0);
	check_phase("Ready");
}

START_TEST(only_objects_of_the_driver_are_watched)
{
	ck_assert_str_eq(
		fake_informer_kind(rig.objects)->label_selector, "pmem-csi.intel.com/driver=" DESK_DRIVER);
	ck_assert_str_eq(
		fake_informer_kind(rig.objects)->path, "/apis/pmem-csi.intel.com/v1alpha1/pmemvolumes");
}
END_TEST

START_TEST(nothing_is_written_before_all_objects_are_known)
{
	rig_given_out("n1");
	rig_put("n1", rig.id, PHASE_READY);
	rig_pass_s(120);
	ck_assert_uint_eq(rig_count(), 0);
	sync_objects();
	rig_live_s(10);
	rig_check_served(0, 0, 0, 1, 0);
	check_phase("Ready");
}
END_TEST

START_TEST(the_status_follows_the_reports)
{
	begin_with_volume();
	rig_put("n1", rig.id, PHASE_MISSING);
	rig_check_served(0, 0, 0, 1, 0);
	check_phase("Missing");
	rig_pass_s(2 * INTERVAL_S);
	node_table_end(rig.desk.table, "n1");
	rig_check_served(0, 0, 0, 1, 0);
	check_phase("Unreachable");
	rig_pass_s(2 * INTERVAL_S);
	rig_put("n1", rig.id, PHASE_READY);
	rig_check_served(0, 0, 0, 1, 0);
	check_phase("Ready");
}
END_TEST

START_TEST(what_is_shown_already_is_not_written_again)
{
	begin_with_volume();
	rig_live_s(600);
	rig_begin();
	rig_show();
	sync_objects();
	rig_live_s(600);
	rig_check_served(0, 0, 0, 0, 0);
	ck_assert_uint_eq(volume_objects_pending(rig.duty), 0);
}
END_TEST

START_TEST(changes_in_a_row_are_one_write)
{
	begin_with_volume();
	rig_put("n1", rig.id, PHASE_MISSING);
	ck_assert_uint_eq(rig_count(), 1);
	rig_put("n1", rig.id, PHASE_DAMAGED);
	rig_put("n1", rig.id, PHASE_READY);
	ck_assert_uint_eq(rig_count(), 1);
	ck_assert_uint_eq(volume_objects_pending(rig.duty), 1);
	rig_serve();
	check_phase("Missing");
	ck_assert_uint_eq(rig_count(), 0);
	rig_pass_s(INTERVAL_S);
	rig_check_served(0, 0, 0, 2, 0);
	check_phase("Ready");
}
END_TEST

/* Nodes register with a controller within a lease time after its start. */
START_TEST(a_controller_that_has_just_started_waits_for_nodes)
{
	begin_with_volume();
	rig_given_out("n1 n2");
	rig_put("n2", rig.id, PHASE_READY);
	rig_live_s(10);
	rig_check_served(0, 0, 0, 2, 0);
	rig_restart();
	rig_put("n1", rig.id, PHASE_READY);
	rig_live_s(DESK_LEASE_NS / NS_PER_S - 1);
	rig_check_served(0, 0, 0, 0, 0);
	rig_live_s(LOOK_S + 1);
	rig_check_served(0, 0, 0, 1, 0);
	check_phase("Ready");
	rig_put("n2", rig.id, PHASE_READY);
	rig_live_s(10);
	rig_check_served(0, 0, 0, 1, 0);
}
END_TEST

START_TEST(what_registered_nodes_report_is_shown_at_once)
{
	begin_with_volume();
	rig_restart();
	rig_put("n1", rig.id, PHASE_MISSING);
	rig_live_s(5);
	rig_check_served(0, 0, 0, 1, 0);
	check_phase("Missing");
}
END_TEST

/* A call at another replica is about to write the handle, or that a node has confirmed. */
START_TEST(what_a_call_has_just_written_is_left_to_it)
{
	CLEANUP(pmem_volume_freep) struct pmem_volume *v = rig_record("n1");

	sync_objects();
	rig_put("n1", NULL, 0);
	rig_store(v);
	rig_live_s(9);
	rig_check_served(0, 0, 0, 0, 0);
	rig_live_s(LOOK_S);
	rig_check_served(0, 0, 0, 1, 0);
	check_phase("Creating");
	v->deleting = true;
	rig_store(v);
	rig_live_s(9);
	rig_check_served(0, 0, 0, 0, 0);
	rig_live_s(LOOK_S);
	rig_check_served(0, 0, 0, 1, 0);
	check_phase("Deleting");
}
END_TEST

START_TEST(few_requests_run_at_once)
{
	sync_objects();
	for (unsigned i = 0; i < 100; i++) {
		CLEANUP(free_charp) char *name = x_asprintf("pvc-%u", i);
		struct volume_key key = volume_key_of_name(name);
		CLEANUP(pmem_volume_freep) struct pmem_volume *v = pmem_volume_new(key.hex, DESK_DRIVER);

		v->volume_name = x_strdup(name);
		v->handle = x_strdup(name);
		pmem_volume_add_node(v, "n1");
		rig_store(v);
	}
	ck_assert_uint_eq(rig_count(), 8);
	ck_assert_uint_eq(volume_objects_pending(rig.duty), 100);
	while (rig_count() > 0) {
		rig_serve();
		ck_assert_uint_le(rig_count(), 8);
	}
	rig_check_served(0, 0, 0, 100, 0);
}
END_TEST

START_TEST(a_reported_volume_gets_a_record_when_a_read_finds_none)
{
	CLEANUP(pmem_volume_freep) struct pmem_volume *v = NULL;

	rig_put("n1", rig.id, PHASE_READY);
	rig_put("n2", rig.id, PHASE_MISSING);
	rig_put("n3", rig.id, PHASE_ERASING);
	sync_objects();
	ck_assert_uint_eq(rig_count(), 1);
	ck_assert(rig.requests->is_read);
	ck_assert_str_eq(rig.requests->name, rig.name);
	rig_serve();
	ck_assert_uint_eq(rig_count(), 1);
	ck_assert(!rig.requests->is_read);
	ck_assert_int_eq(rig.requests->what, RECORD_CREATE);
	rig_serve();
	v = rig_read();
	ck_assert_str_eq(v->meta.name, rig.name);
	ck_assert_str_eq(v->driver, DESK_DRIVER);
	ck_assert_str_eq(v->volume_name, RIG_NAME);
	ck_assert_str_eq(v->origin, PMEM_VOLUME_REPORTED);
	ck_assert_uint_eq(v->size_bytes, DESK_GIB);
	ck_assert_uint_eq(v->attempts, 0);
	ck_assert(!v->deleting);
	rig_check("n1 n2");
	rig_live_s(60);
	rig_check_served(1, 1, 0, 1, 0);
	check_phase("Missing");
	pmem_volume_free(v);
	v = rig_read();
	ck_assert_str_eq(v->handle, rig.id);
	ck_assert_uint_eq(v->n_copies, 3);
	rig_live_s(2 * SETTLED_S);
	rig_check_served(0, 0, 0, 0, 0);
}
END_TEST

START_TEST(a_volume_that_is_reported_later_gets_a_record_too)
{
	sync_objects();
	rig_put("n1", rig.id, PHASE_READY);
	rig_live_s(5);
	rig_check_served(1, 1, 0, 1, 0);
	rig_check("n1");
}
END_TEST

START_TEST(a_reported_volume_whose_record_is_found_gets_no_other)
{
	rig.lagging = true;
	rig_given_out("n1");
	sync_objects();
	rig_put("n1", rig.id, PHASE_READY);
	rig_live_s(5);
	rig_check_served(1, 0, 0, 0, 0);
	rig.lagging = false;
	rig_show();
	rig_live_s(300);
	rig_check_served(0, 0, 0, 1, 0);
	check_phase("Ready");
}
END_TEST

START_TEST(a_reported_volume_gets_no_record_while_reads_fail)
{
	sync_objects();
	rig_put("n1", rig.id, PHASE_READY);
	for (int i = 0; i < 5; i++) {
		ck_assert_uint_eq(rig_count(), 1);
		ck_assert(rig.requests->is_read);
		rig_fail(ERR_UNAVAILABLE);
		ck_assert_uint_eq(rig_count(), 0);
		ck_assert_uint_eq(volume_objects_pending(rig.duty), 1);
		rig_pass_s(36);
	}
	rig_live_s(60);
	rig_check_served(1, 1, 0, 1, 0);
}
END_TEST

START_TEST(a_record_that_another_replica_makes_first_is_used)
{
	sync_objects();
	rig_put("n1", rig.id, PHASE_READY);
	rig_serve();
	rig_given_out("n1");
	rig_live_s(60);
	rig_check_served(1, 1, 0, 1, 0);
	check_phase("Ready");
}
END_TEST

START_TEST(a_volume_that_is_gone_when_the_read_ends_gets_no_record)
{
	sync_objects();
	rig_put("n1", rig.id, PHASE_READY);
	rig_put("n1", NULL, 0);
	rig_check_served(1, 0, 0, 0, 0);
	rig_check(NULL);
}
END_TEST

START_TEST(a_record_that_was_removed_by_hand_is_made_again)
{
	begin_with_volume();
	rig_lose();
	rig_live_s(10);
	rig_check_served(1, 1, 0, 1, 0);
	rig_check("n1");
	check_phase("Ready");
}
END_TEST

/* Neither reads nor memory are spent on it. */
START_TEST(what_no_node_reports_is_not_looked_up)
{
	begin_with_volume();
	rig_put("n1", NULL, 0);
	rig_live_s(10);
	rig_check_served(0, 0, 0, 1, 0);
	rig_lose();
	rig_live_s(600);
	rig_check_served(0, 0, 0, 0, 0);
	rig_check(NULL);
	rig_put("n1", rig.id, PHASE_READY);
	rig_live_s(10);
	rig_check_served(1, 1, 0, 1, 0);
}
END_TEST

START_TEST(some_volumes_get_no_record)
{
	struct node_report *r = report_new("n1");

	report_add_volume(r, "inline", "")->is_inline = true;
	report_add_volume(r, "erasing", "pvc-2")->phase = PHASE_ERASING;
	report_add_volume(r, "creating", "pvc-3")->phase = PHASE_CREATING;
	rig_put_report(r);
	sync_objects();
	rig_live_s(600);
	rig_check_served(0, 0, 0, 0, 0);
}
END_TEST

/* Only a node that reports the handle does. A volume under another handle belongs to its node alone, whatever
 * name it has. */
START_TEST(a_node_that_reports_a_copy_enters_the_record)
{
	begin_with_volume();
	rig_put("n3", rig.id, PHASE_READY);
	rig_live_s(10);
	rig_check("n1 n3");
	rig_check_served(0, 0, 1, 1, 0);
	rig_put("n2", "under-another-handle", PHASE_CREATING);
	rig_put("n4", rig.id, PHASE_ERASING);
	rig_live_s(10);
	rig_put("n1", rig.id, PHASE_MISSING);
	rig_live_s(10);
	rig_check("n1 n3");
}
END_TEST

START_TEST(a_copy_of_a_deleted_volume_does_not_enter_the_record)
{
	CLEANUP(pmem_volume_freep) struct pmem_volume *v = rig_record("n1");

	rig_put("n1", rig.id, PHASE_READY);
	v->handle = x_strdup(rig.id);
	v->deleting = true;
	rig_store(v);
	sync_objects();
	rig_put("n2", rig.id, PHASE_READY);
	rig_live_s(60);
	rig_check("n1");
	check_phase("Deleting");
}
END_TEST

/* A report that is another one than before. */
static void report_nothing(const char *node_id, uint64_t number)
{
	struct node_report *r = report_new(node_id);

	r->number = number;
	rig_put_report(r);
}

static void check_stays(const char *nodes)
{
	rig_live_s(2 * SETTLED_S);
	rig_check(nodes);
}

/* The node reported before the record was written, and again after it. */
START_TEST(a_node_without_a_copy_leaves_the_record_when_it_is_settled)
{
	begin_with_volume();
	report_nothing("n2", 1);
	rig_given_out("n1 n2");
	rig_pass_s(1);
	report_nothing("n2", 2);
	rig_live_s(SETTLED_S - LOOK_S);
	rig_check("n1 n2");
	rig_live_s(3 * LOOK_S);
	rig_check("n1");
	check_phase("Ready");
}
END_TEST

START_TEST(nodes_that_have_reported_before_leave_the_record_too)
{
	rig_put("n2", NULL, 0);
	begin_with_volume();
	rig_given_out("n1 n2");
	rig_live_s(SETTLED_S - LOOK_S);
	rig_check("n1 n2");
	rig_live_s(3 * LOOK_S);
	rig_check("n1");
	rig_live_s(60);
	/* the second status has the nodes that are left in its text for a column */
	rig_check_served(0, 0, 1, 2, 0);
}
END_TEST

START_TEST(one_node_of_a_volume_that_was_given_out_stays)
{
	rig_put("n1", NULL, 0);
	rig_put("n2", rig.id, PHASE_READY);
	rig_put("n3", NULL, 0);
	rig_given_out("n1 n2 n3");
	sync_objects();
	rig_live_s(SETTLED_S + 2 * LOOK_S);
	rig_check("n2");
	rig_put("n2", NULL, 0);
	check_stays("n2");
	check_phase("Missing");
	rig_put("n1", NULL, 0);
	rig_given_out("n1 n2 n3");
	rig_live_s(SETTLED_S + 2 * LOOK_S);
	check_stays("n1");
}
END_TEST

START_TEST(each_change_of_the_record_begins_the_time_again)
{
	begin_with_volume();
	for (unsigned i = 0; i < 3; i++) {
		rig_given_out("n1 n2");
		rig_pass_s(1);
		report_nothing("n2", i);
		rig_live_s(SETTLED_S - LOOK_S);
		rig_check("n1 n2");
	}
	rig_live_s(3 * LOOK_S);
	rig_check("n1");
}
END_TEST

/* Its reports do not arrive any more. */
START_TEST(a_report_that_is_older_than_the_settled_record_proves_nothing)
{
	rig_put("n2", NULL, 0);
	begin_with_volume();
	rig_pass_s(1);
	rig_given_out("n1 n2");
	rig_live_s(SETTLED_S / 2);
	for (int i = 0; i < 10; i++) {
		rig_pass_s(SETTLED_S / 5);
		rig_serve_all();
	}
	rig_check("n1 n2");
	rig_live_s(2 * LOOK_S);
	rig_check("n1");
}
END_TEST

START_TEST(a_node_that_may_have_a_copy_stays)
{
	struct node_report *r = report_new("n3");

	r->has_inventory = false;
	begin_with_volume();
	rig_given_out("n1 n2 n3 n4 n5");
	rig_put("n4", "under-another-handle", PHASE_CREATING);
	rig_put_report(r);
	rig_put("n5", NULL, 0);
	node_table_end(rig.desk.table, "n5");
	check_stays("n1 n2 n3 n4 n5");
}
END_TEST

/* A node that cannot read the state file of a copy reports it as damaged, with nothing but its ID. */
START_TEST(a_node_that_reports_a_damaged_copy_enters_the_record)
{
	struct node_report *r = report_new("n2");

	begin_with_volume();
	report_add_volume(r, rig.id, "")->phase = PHASE_DAMAGED;
	rig_put_report(r);
	rig_live_s(10);
	rig_check("n1 n2");
	check_phase("Damaged");
	check_stays("n1 n2");
}
END_TEST

START_TEST(a_damaged_volume_without_a_name_gets_a_record_for_good)
{
	CLEANUP(pmem_volume_freep) struct pmem_volume *v = NULL;
	struct node_report *r = report_new("n1");

	report_add_volume(r, rig.id, "")->phase = PHASE_DAMAGED;
	rig_put_report(r);
	sync_objects();
	check_stays("n1");
	rig_check_served(1, 1, 0, 1, 0);
	v = rig_read();
	ck_assert_ptr_null(v->volume_name);
	ck_assert_str_eq(v->handle, rig.id);
	ck_assert_str_eq(v->phase, "Damaged");
}
END_TEST

START_TEST(a_record_that_was_never_given_out_is_released_without_nodes)
{
	CLEANUP(pmem_volume_freep) struct pmem_volume *v = rig_record("n1 n2");

	sync_objects();
	rig_store(v);
	rig_pass_s(1);
	rig_put("n1", NULL, 0);
	rig_put("n2", NULL, 0);
	rig_live_s(SETTLED_S - LOOK_S);
	rig_check("n1 n2");
	rig_live_s(3 * LOOK_S);
	rig_check(NULL);
	rig_live_s(600);
	ck_assert_uint_eq(rig.n_writes[RECORD_RELEASE], 1);
	ck_assert_uint_eq(rig.n_writes[RECORD_CREATE], 0);
}
END_TEST

START_TEST(a_reported_volume_that_has_gone_is_released)
{
	sync_objects();
	rig_put("n1", rig.id, PHASE_READY);
	rig_live_s(10);
	rig_check("n1");
	rig_put("n1", NULL, 0);
	rig_live_s(SETTLED_S + 2 * LOOK_S);
	rig_check(NULL);
}
END_TEST

START_TEST(the_record_of_a_volume_that_was_given_out_is_not_released)
{
	rig_given_out("");
	sync_objects();
	rig_put("n1", NULL, 0);
	check_stays("");
	check_phase("Missing");
}
END_TEST

START_TEST(a_deleted_record_without_copies_is_released)
{
	CLEANUP(pmem_volume_freep) struct pmem_volume *v = rig_record("");

	v->handle = x_strdup(rig.id);
	v->deleting = true;
	rig_put("n1", NULL, 0);
	sync_objects();
	rig_store(v);
	rig_check_served(0, 0, 0, 0, 1);
	rig_live_s(600);
	rig_check_served(0, 0, 0, 0, 0);
}
END_TEST

START_TEST(nodes_of_a_deleted_record_confirm_by_their_reports)
{
	CLEANUP(pmem_volume_freep) struct pmem_volume *v = rig_record("n1 n2");

	v->handle = x_strdup(rig.id);
	v->deleting = true;
	sync_objects();
	rig_store(v);
	rig_pass_s(1);
	rig_put("n1", NULL, 0);
	rig_put("n2", NULL, 0);
	rig_live_s(SETTLED_S + 2 * LOOK_S);
	rig_check(NULL);
}
END_TEST

/* Begins with a record that is being deleted, while n1 still erases its copy. */
static void begin_erasing(void)
{
	CLEANUP(pmem_volume_freep) struct pmem_volume *v = NULL;

	begin_with_volume();
	v = rig_read();
	strv_free(TAKE_PTR(v->nodes));
	v->deleting = true;
	rig_put("n1", rig.id, PHASE_ERASING);
	rig_pass_s(2 * INTERVAL_S);
	rig_serve_all();
	rig_store(v);
	rig_live_s(10);
	rig_check("");
	check_phase("Erasing");
}

START_TEST(a_deleted_record_is_released_when_all_is_erased)
{
	begin_erasing();
	rig_live_s(600);
	rig_check("");
	report_nothing("n1", 2);
	rig_live_s(LOOK_S + 1);
	rig_check(NULL);
	rig_live_s(600);
	ck_assert_uint_eq(rig.n_writes[RECORD_RELEASE], 1);
	ck_assert_uint_eq(rig.n_writes[RECORD_CREATE], 0);
}
END_TEST

/* The reply to DeleteVolume came before the report that shows what is left to be erased. */
START_TEST(a_reply_does_not_hide_what_is_being_erased)
{
	CLEANUP(pmem_volume_freep) struct pmem_volume *v = NULL;

	begin_with_volume();
	node_table_note_deleted(rig.desk.table, "n1", rig.id, rig.desk.now_ns);
	v = rig_read();
	strv_free(TAKE_PTR(v->nodes));
	v->deleting = true;
	rig_store(v);
	rig_live_s(5);
	rig_check("");
	rig_put("n1", rig.id, PHASE_ERASING);
	rig_live_s(600);
	rig_check("");
	check_phase("Erasing");
	report_nothing("n1", 2);
	rig_live_s(LOOK_S + 1);
	rig_check(NULL);
}
END_TEST

START_TEST(a_reply_that_no_report_follows_is_believed_at_last)
{
	CLEANUP(pmem_volume_freep) struct pmem_volume *v = NULL;

	begin_with_volume();
	node_table_note_deleted(rig.desk.table, "n1", rig.id, rig.desk.now_ns);
	v = rig_read();
	strv_free(TAKE_PTR(v->nodes));
	v->deleting = true;
	rig_store(v);
	report_nothing("n1", 2);
	rig_live_s(LOOK_S + 1);
	rig_check(NULL);
}
END_TEST

/* Nothing is known of a node that has not registered with the new leader. */
START_TEST(another_leader_waits_for_the_node_that_erases)
{
	begin_erasing();
	node_table_forget(rig.desk.table, "n1");
	rig_begin();
	rig_show();
	sync_objects();
	rig_live_s(600);
	rig_check("");
	rig_put("n1", rig.id, PHASE_ERASING);
	rig_live_s(600);
	rig_check("");
	node_table_end(rig.desk.table, "n1");
	rig_live_s(600);
	rig_check("");
	report_nothing("n1", 2);
	rig_live_s(LOOK_S + 1);
	rig_check(NULL);
}
END_TEST

START_TEST(a_node_that_is_gone_erases_nothing)
{
	begin_erasing();
	rig.desk.missing = "n1";
	node_table_end(rig.desk.table, "n1");
	rig_pass_s(600);
	rig_serve_all();
	node_table_forget(rig.desk.table, "n1");
	rig_pass_s(LOOK_S + 1);
	rig_serve_all();
	rig_check(NULL);
}
END_TEST

START_TEST(a_record_that_a_call_works_on_is_left_alone_until_it_ends)
{
	struct volume_key key = volume_key_of_name(RIG_NAME);

	begin_with_volume();
	ck_assert(key_lock(rig.desk.controller->locks, &key));
	rig_put("n1", rig.id, PHASE_MISSING);
	rig_put("n2", rig.id, PHASE_READY);
	rig_live_s(300);
	rig_check_served(0, 0, 0, 0, 0);
	key_unlock(rig.desk.controller->locks, &key);
	rig_pass_s(2 * INTERVAL_S);
	rig_check_served(0, 0, 1, 1, 0);
	rig_check("n1 n2");
	check_phase("Missing");
}
END_TEST

START_TEST(no_record_is_made_of_a_volume_that_a_call_works_on)
{
	struct volume_key key = volume_key_of_name(RIG_NAME);

	sync_objects();
	rig_put("n1", rig.id, PHASE_READY);
	ck_assert(rig.requests->is_read);
	ck_assert(key_lock(rig.desk.controller->locks, &key));
	rig_live_s(60);
	rig_check_served(1, 0, 0, 0, 0);
	key_unlock(rig.desk.controller->locks, &key);
	rig_live_s(10);
	rig_check_served(1, 1, 0, 1, 0);
}
END_TEST

/* Another replica has written in between, or deleted the record: the watch shows it. */
START_TEST(a_conflict_is_no_failure)
{
	static const enum err_code codes[] = {ERR_ABORTED, ERR_NOT_FOUND, ERR_EXISTS};

	begin_with_volume();
	for (size_t i = 0; i < ARRAY_SIZE(codes); i++) {
		rig_put("n1", rig.id, i % 2 == 0 ? PHASE_MISSING : PHASE_DAMAGED);
		ck_assert_uint_eq(rig_count(), 1);
		rig_fail(codes[i]);
		ck_assert_uint_eq(volume_objects_pending(rig.duty), 0);
		rig_pass_s(60);
		ck_assert_uint_eq(rig_count(), 0);
	}
	rig_given_out("n1");
	rig_check_served(0, 0, 0, 1, 0);
	check_phase("Missing");
}
END_TEST

START_TEST(other_failures_are_repeated_after_a_back_off)
{
	static const enum err_code codes[] = {
		ERR_UNAVAILABLE, ERR_DEADLINE, ERR_PERMISSION, ERR_INVALID_ARGUMENT, ERR_CANCELLED};

	begin_with_volume();
	rig_put("n1", rig.id, PHASE_MISSING);
	for (size_t i = 0; i < ARRAY_SIZE(codes); i++) {
		ck_assert_uint_eq(rig_count(), 1);
		rig_fail(codes[i]);
		ck_assert_uint_eq(rig_count(), 0);
		ck_assert_uint_eq(volume_objects_pending(rig.duty), 1);
		rig_pass_s(36);
	}
	rig_check_served(0, 0, 0, 1, 0);
	check_phase("Missing");
}
END_TEST

START_TEST(failures_are_logged_once)
{
	char text[4096];
	FILE *log_file = tmpfile();
	int old_stderr = dup(STDERR_FILENO);
	size_t n;

	begin_with_volume();
	ck_assert_int_ge(dup2(fileno(log_file), STDERR_FILENO), 0);
	rig_put("n1", rig.id, PHASE_MISSING);
	for (int i = 0; i < 3; i++) {
		rig_fail(ERR_UNAVAILABLE);
		rig_pass_s(36);
	}
	rig_serve_all();
	rig_live_s(60);
	dup2(old_stderr, STDERR_FILENO);
	close(old_stderr);
	rewind(log_file);
	n = fread(text, 1, sizeof(text) - 1, log_file);
	text[n] = '\0';
	fclose(log_file);
	ck_assert_ptr_nonnull(strstr(text, "PmemVolume objects cannot be written, trying again"));
	ck_assert_ptr_nonnull(strstr(text, "PmemVolume objects can be written again"));
	ck_assert_ptr_eq(strchr(strchr(text, '\n') + 1, '\n'), text + n - 1);
}
END_TEST

/* A read, a write after it and a plain write. */
START_TEST(requests_that_run_end_after_the_duty)
{
	begin_with_volume();
	rig_put("n1", rig.id, PHASE_MISSING);
	rig_put("n2", "a", PHASE_READY);
	rig_put("n3", "b", PHASE_READY);
	ck_assert_uint_eq(rig_count(), 3);
	rig.lagging = true;
	volume_objects_free(TAKE_PTR(rig.duty));
	rig_put("n1", rig.id, PHASE_READY);
	ck_assert_uint_eq(rig_count(), 3);
	rig_serve();
	rig_serve();
	rig_fail(ERR_CANCELLED);
	ck_assert_uint_eq(rig_count(), 0);
}
END_TEST

START_TEST(names_that_are_no_keys_are_ignored)
{
	static const char *const names[] = {"x", KEY, KEY "0." DESK_DRIVER};

	sync_objects();
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		CLEANUP(free_charp)
		char *json = x_asprintf(
			"{\"metadata\":{\"name\":\"%s\"},\"spec\":{\"nodes\":[\"n1\"]}}", names[i]);

		fake_informer_put(rig.objects, json);
		rig_put("n1", NULL, 0);
		fake_informer_remove(rig.objects, names[i]);
	}
	rig_live_s(60);
	rig_check_served(0, 0, 0, 0, 0);
}
END_TEST

/* Its name is that of another driver's record, which has our label. */
START_TEST(a_record_under_the_name_of_another_driver_is_left_alone)
{
	CLEANUP(free_charp)
	char *json =
		x_asprintf("{\"metadata\":{\"name\":\"%s.other\"},\"spec\":{\"nodes\":[\"n1\"]}}", rig.key);

	sync_objects();
	fake_informer_put(rig.objects, json);
	rig_put("n1", NULL, 0);
	rig_live_s(2 * SETTLED_S);
	rig_check_served(0, 0, 0, 0, 0);
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {only_objects_of_the_driver_are_watched,
		nothing_is_written_before_all_objects_are_known, the_status_follows_the_reports,
		what_is_shown_already_is_not_written_again, changes_in_a_row_are_one_write,
		a_controller_that_has_just_started_waits_for_nodes,
		what_registered_nodes_report_is_shown_at_once, what_a_call_has_just_written_is_left_to_it,
		few_requests_run_at_once, a_reported_volume_gets_a_record_when_a_read_finds_none,
		a_volume_that_is_reported_later_gets_a_record_too,
		a_reported_volume_whose_record_is_found_gets_no_other,
		a_reported_volume_gets_no_record_while_reads_fail,
		a_record_that_another_replica_makes_first_is_used,
		a_volume_that_is_gone_when_the_read_ends_gets_no_record,
		a_record_that_was_removed_by_hand_is_made_again, what_no_node_reports_is_not_looked_up,
		some_volumes_get_no_record, a_node_that_reports_a_copy_enters_the_record,
		a_copy_of_a_deleted_volume_does_not_enter_the_record,
		a_node_without_a_copy_leaves_the_record_when_it_is_settled,
		nodes_that_have_reported_before_leave_the_record_too,
		one_node_of_a_volume_that_was_given_out_stays,
		each_change_of_the_record_begins_the_time_again,
		a_report_that_is_older_than_the_settled_record_proves_nothing,
		a_node_that_may_have_a_copy_stays, a_node_that_reports_a_damaged_copy_enters_the_record,
		a_damaged_volume_without_a_name_gets_a_record_for_good,
		a_record_that_was_never_given_out_is_released_without_nodes,
		a_reported_volume_that_has_gone_is_released,
		the_record_of_a_volume_that_was_given_out_is_not_released,
		a_deleted_record_without_copies_is_released,
		nodes_of_a_deleted_record_confirm_by_their_reports,
		a_deleted_record_is_released_when_all_is_erased, a_reply_does_not_hide_what_is_being_erased,
		a_reply_that_no_report_follows_is_believed_at_last,
		another_leader_waits_for_the_node_that_erases, a_node_that_is_gone_erases_nothing,
		a_record_that_a_call_works_on_is_left_alone_until_it_ends,
		no_record_is_made_of_a_volume_that_a_call_works_on, a_conflict_is_no_failure,
		other_failures_are_repeated_after_a_back_off, failures_are_logged_once,
		requests_that_run_end_after_the_duty, names_that_are_no_keys_are_ignored,
		a_record_under_the_name_of_another_driver_is_left_alone};
	Suite *suite = suite_create("duties/volume_objects");
	TCase *tcase = tcase_create("volume_objects");

	suite_add_tcase(suite, tcase);
	tcase_add_checked_fixture(tcase, rig_set_up, rig_tear_down);
	for (size_t i = 0; i < ARRAY_SIZE(tests); i++)
		tcase_add_test(tcase, tests[i]);
	return unit_runner_finish(srunner_create(suite));
}
