/* SPDX-License-Identifier: Apache-2.0 */
/* The record of a volume: what is written before a node is asked and before a call is answered, and what a
 * retry makes of it. */
#include "base/clock.h"
#include "base/mem.h"
#include "base/str.h"
#include "unit/controller/desk.h"
#include "volume/id.h"

#define NAME        "pvc-1"
#define NODES(...)  ((const char *const[]){__VA_ARGS__, NULL})
#define CLAIM_SPACE "csi.storage.k8s.io/pvc/namespace"
#define CLAIM_NAME  "csi.storage.k8s.io/pvc/name"

static struct desk d;
static struct desk_ask a;
static char id_1[VOLUME_ID_MAX + 1];
static char id_2[VOLUME_ID_MAX + 1];

/* Two nodes; the first one has more room. */
static void begin(void)
{
	desk_open(&d, /* early= */ false, /* forget_gone= */ false);
	desk_ask_init(&a, NAME);
	desk_add_node(&d, "n1", 8);
	desk_add_node(&d, "n2", 4);
	volume_id_mint(NAME, "n1", id_1);
	volume_id_mint(NAME, "n2", id_2);
}

static void end(void)
{
	desk_ask_done(&a);
	desk_close(&d);
}

static void again(void)
{
	desk_ask_done(&a);
	desk_ask_init(&a, NAME);
}

/* Creates the record as another replica would have: it names @nodes, which may have a copy. @handle: NULL:
 * CreateVolume has not been answered. */
static void put_record(const char *const *nodes, const char *handle)
{
	struct pmem_volume *v = pmem_volume_new(volume_key_of_name(NAME).hex, DESK_DRIVER);

	v->volume_name = x_strdup(NAME);
	for (; *nodes; nodes++)
		pmem_volume_add_node(v, *nodes);
	v->handle = handle ? x_strdup(handle) : NULL;
	desk_put_record(&d, RECORD_CREATE, v);
}

START_TEST(a_node_is_named_before_it_is_asked_and_the_outcome_written_before_the_answer)
{
	struct pmem_volume *v;

	begin();
	desk_ask_parameter(&a, CLAIM_SPACE, "default");
	desk_ask_parameter(&a, CLAIM_NAME, "data");
	desk_ask_nodes(&a, NODES("n1"), NULL);
	desk_create(&d, &a);
	desk_check_nodes(&d, NAME, "n1");
	v = desk_record(&d, NAME);
	ck_assert_str_eq(v->volume_name, NAME);
	ck_assert_uint_eq(v->size_bytes, DESK_GIB);
	ck_assert_uint_eq(v->attempts, 1);
	ck_assert_ptr_null(v->handle);
	ck_assert_uint_eq(strv_len(v->parameters), 4);
	ck_assert_str_eq(v->parameters[3], "data");
	pmem_volume_free(v);
	desk_made(desk_last(&d, "n1"));
	DESK_OK(&a);
	v = desk_record(&d, NAME);
	ck_assert_str_eq(v->handle, a.created.volume->volume_id);
	ck_assert_str_eq(v->phase, "Ready");
	ck_assert_str_eq(v->claim, "default/data");
	ck_assert_uint_eq(v->capacity_bytes, DESK_GIB);
	pmem_volume_free(v);
	end();
}
END_TEST

START_TEST(no_node_is_asked_when_it_cannot_be_recorded)
{
	begin();
	d.fail_write = 1;
	d.fail_code = ERR_DEADLINE;
	desk_create(&d, &a);
	DESK_FAILED(&a, ERR_UNAVAILABLE, "record of volume \"pvc-1\": the desk is closed");
	ck_assert_uint_eq(d.n_calls, 0);
	desk_check_nodes(&d, NAME, NULL);
	end();
}
END_TEST

START_TEST(no_node_is_asked_when_the_record_has_taken_all_the_time)
{
	begin();
	a.deadline_ns = d.now_ns + 5 * NS_PER_S;
	d.write_takes_ns = 6 * NS_PER_S;
	desk_create(&d, &a);
	DESK_FAILED(&a, ERR_DEADLINE, "the deadline does not allow asking another node");
	ck_assert_uint_eq(d.n_calls, 0);
	desk_check_nodes(&d, NAME, "n1");
	end();
}
END_TEST

START_TEST(a_node_that_has_something_of_the_name_stays_recorded)
{
	begin();
	desk_create(&d, &a);
	desk_failed(desk_last(&d, "n1"), ERR_EXISTS, "another size");
	DESK_FAILED(&a, ERR_EXISTS, "another size");
	desk_check_nodes(&d, NAME, "n1");
	end();
}
END_TEST

START_TEST(a_write_whose_answer_got_lost_leads_the_retry_to_the_same_node)
{
	begin();
	desk_ask_nodes(&a, NODES("n2"), NULL);
	d.fail_write = 1;
	d.fail_after = true;
	d.fail_code = ERR_DEADLINE;
	desk_create(&d, &a);
	DESK_FAILED(&a, ERR_UNAVAILABLE, "the desk is closed");
	ck_assert_uint_eq(d.n_calls, 0);
	desk_check_nodes(&d, NAME, "n2");
	again();
	desk_create(&d, &a);
	desk_made(desk_last(&d, "n2"));
	DESK_OK(&a);
	ck_assert_uint_eq(d.n_calls, 1);
	end();
}
END_TEST

START_TEST(what_another_replica_has_recorded_is_found_after_a_conflict)
{
	begin();
	put_record(NODES("n2"), /* handle= */ NULL);
	d.fail_write = 1;
	d.fail_code = ERR_ABORTED;
	desk_create(&d, &a);
	ck_assert_uint_eq(d.n_calls, 1);
	desk_made(desk_last(&d, "n2"));
	DESK_OK(&a);
	desk_check_nodes(&d, NAME, "n2");
	end();
}
END_TEST

START_TEST(conflicts_without_end_are_left_to_the_caller)
{
	begin();
	d.fail_write = 1;
	d.fail_all = true;
	d.fail_code = ERR_ABORTED;
	desk_create(&d, &a);
	DESK_FAILED(&a, ERR_UNAVAILABLE, "the desk is closed");
	ck_assert_uint_eq(d.n_calls, 0);
	ck_assert_uint_eq(d.n_writes, 4);
	end();
}
END_TEST

START_TEST(a_volume_whose_handle_could_not_be_recorded_is_not_reported)
{
	begin();
	d.fail_write = 2;
	d.fail_code = ERR_UNAVAILABLE;
	desk_create(&d, &a);
	desk_made(desk_last(&d, "n1"));
	DESK_FAILED(&a, ERR_UNAVAILABLE, "the desk is closed");
	desk_check_nodes(&d, NAME, "n1");
	again();
	desk_create(&d, &a);
	desk_made(desk_last(&d, "n1"));
	DESK_OK(&a);
	end();
}
END_TEST

START_TEST(an_outcome_that_meets_a_conflict_is_written_over_the_new_version)
{
	struct pmem_volume *v;

	begin();
	desk_create(&d, &a);
	v = desk_record(&d, NAME);
	/* what the leader shows meanwhile */
	v->claim = x_strdup("default/data");
	desk_put_record(&d, RECORD_STATUS, v);
	desk_made(desk_last(&d, "n1"));
	DESK_OK(&a);
	ck_assert_uint_eq(d.n_calls, 1);
	v = desk_record(&d, NAME);
	ck_assert_str_eq(v->handle, id_1);
	ck_assert_str_eq(v->claim, "default/data");
	pmem_volume_free(v);
	end();
}
END_TEST

START_TEST(an_outcome_is_not_written_over_a_record_that_lacks_the_node)
{
	struct pmem_volume *v;

	begin();
	desk_create(&d, &a);
	v = desk_record(&d, NAME);
	v->deleting = _i == 0;
	if (_i == 1)
		pmem_volume_drop_node(v, "n1");
	desk_put_record(&d, _i == 2 ? RECORD_RELEASE : RECORD_SPEC, v);
	desk_made(desk_last(&d, "n1"));
	DESK_FAILED(&a, ERR_UNAVAILABLE,
		_i == 2 ? "record of volume \"pvc-1\""
			: "the PmemVolume of volume \"pvc-1\" was changed meanwhile");
	end();
}
END_TEST

START_TEST(a_repeated_call_changes_the_record_before_the_node_is_asked)
{
	struct pmem_volume *v;

	begin();
	desk_create(&d, &a);
	desk_made(desk_last(&d, "n1"));
	again();
	desk_create(&d, &a);
	v = desk_record(&d, NAME);
	ck_assert_uint_eq(v->attempts, 2);
	pmem_volume_free(v);
	desk_made(desk_last(&d, "n1"));
	DESK_OK(&a);
	/* nothing new: no third write */
	ck_assert_uint_eq(d.n_writes, 3);
	end();
}
END_TEST

START_TEST(without_room_nothing_stays_recorded)
{
	begin();
	desk_create(&d, &a);
	desk_failed(desk_last(&d, "n1"), ERR_EXHAUSTED, "full");
	desk_check_nodes(&d, NAME, "n2");
	desk_failed(desk_last(&d, "n2"), ERR_EXHAUSTED, "full");
	DESK_FAILED(&a, ERR_EXHAUSTED, "n1: full; n2: full");
	desk_check_nodes(&d, NAME, NULL);
	end();
}
END_TEST

START_TEST(a_node_that_refuses_stays_recorded_only_if_it_was_asked_before)
{
	begin();
	desk_create(&d, &a);
	desk_failed(desk_last(&d, "n1"), ERR_INVALID_ARGUMENT, "no");
	DESK_FAILED(&a, ERR_INVALID_ARGUMENT, "no");
	desk_check_nodes(&d, NAME, NULL);
	again();
	desk_create(&d, &a);
	desk_failed(desk_last(&d, "n1"), ERR_DEADLINE, "late");
	again();
	desk_create(&d, &a);
	desk_failed(desk_last(&d, "n1"), ERR_INVALID_ARGUMENT, "no");
	DESK_FAILED(&a, ERR_INVALID_ARGUMENT, "no");
	desk_check_nodes(&d, NAME, "n1");
	end();
}
END_TEST

START_TEST(a_volume_that_is_being_deleted_is_not_made_again)
{
	struct pmem_volume *v;

	begin();
	put_record(NODES("n1"), id_1);
	v = desk_record(&d, NAME);
	v->deleting = true;
	desk_put_record(&d, RECORD_SPEC, v);
	desk_create(&d, &a);
	DESK_FAILED(&a, ERR_ABORTED, "volume \"pvc-1\" is being deleted");
	ck_assert_uint_eq(d.n_calls, 0);
	again();
	/* all nodes have confirmed: what is left is to erase what was there */
	v = desk_record(&d, NAME);
	pmem_volume_drop_node(v, "n1");
	desk_put_record(&d, RECORD_SPEC, v);
	desk_create(&d, &a);
	desk_made(desk_last(&d, "n1"));
	DESK_OK(&a);
	v = desk_record(&d, NAME);
	ck_assert(!v->deleting);
	pmem_volume_free(v);
	end();
}
END_TEST

START_TEST(a_delete_is_recorded_before_a_node_is_asked)
{
	struct pmem_volume *v;

	begin();
	put_record(NODES("n1"), id_1);
	d.fail_write = 1;
	d.fail_code = ERR_DEADLINE;
	desk_delete(&d, &a, id_1);
	DESK_FAILED(&a, ERR_UNAVAILABLE, "the desk is closed");
	ck_assert_uint_eq(d.n_calls, 0);
	again();
	desk_delete(&d, &a, id_1);
	v = desk_record(&d, NAME);
	ck_assert(v->deleting);
	pmem_volume_free(v);
	desk_check_nodes(&d, NAME, "n1");
	desk_deleted(desk_last(&d, "n1"));
	DESK_OK(&a);
	desk_check_nodes(&d, NAME, "");
	end();
}
END_TEST

START_TEST(a_delete_that_meets_a_conflict_reads_again)
{
	begin();
	put_record(NODES("n1"), id_1);
	d.fail_write = 1;
	d.fail_code = ERR_ABORTED;
	desk_delete(&d, &a, id_1);
	desk_deleted(desk_last(&d, "n1"));
	DESK_OK(&a);
	ck_assert_uint_eq(d.n_calls, 1);
	end();
}
END_TEST

START_TEST(a_delete_whose_confirmation_meets_a_conflict_asks_again)
{
	begin();
	put_record(NODES("n1"), id_1);
	d.fail_write = 2;
	d.fail_code = ERR_ABORTED;
	desk_delete(&d, &a, id_1);
	desk_deleted(desk_last(&d, "n1"));
	ck_assert(!a.finished);
	desk_deleted(desk_last(&d, "n1"));
	DESK_OK(&a);
	ck_assert_uint_eq(d.n_calls, 2);
	desk_check_nodes(&d, NAME, "");
	end();
}
END_TEST

START_TEST(a_delete_that_cannot_be_confirmed_is_not_done)
{
	begin();
	put_record(NODES("n1"), id_1);
	d.fail_write = 2;
	d.fail_code = ERR_UNAVAILABLE;
	desk_delete(&d, &a, id_1);
	desk_deleted(desk_last(&d, "n1"));
	DESK_FAILED(&a, ERR_UNAVAILABLE, "the desk is closed");
	desk_check_nodes(&d, NAME, "n1");
	end();
}
END_TEST

START_TEST(each_node_of_the_record_is_asked_for_its_own_copy)
{
	begin();
	put_record(NODES("n1", "n2"), id_1);
	desk_delete(&d, &a, id_1);
	ck_assert_uint_eq(d.n_calls, 2);
	for (size_t i = 0; i < 2; i++) {
		bool first = str_eq(d.calls[i].node_id, "n1");

		ck_assert_str_eq(d.calls[i].delete_request->volume_id, first ? id_1 : id_2);
		ck_assert(!a.finished);
		desk_deleted(&d.calls[i]);
	}
	DESK_OK(&a);
	desk_check_nodes(&d, NAME, "");
	end();
}
END_TEST

START_TEST(a_copy_that_the_handle_does_not_name_and_that_was_in_use_is_kept)
{
	struct node_report *r = report_new("n2");

	begin();
	report_add_volume(r, id_2, NAME)->ever_staged = true;
	node_table_put(d.table, r, d.now_ns);
	put_record(NODES("n1", "n2"), id_1);
	desk_delete(&d, &a, id_1);
	ck_assert_uint_eq(d.n_calls, 1);
	desk_deleted(desk_last(&d, "n1"));
	DESK_OK(&a);
	desk_check_nodes(&d, NAME, "n2");
	end();
}
END_TEST

START_TEST(a_node_that_is_gone_holds_up_the_delete_only_if_the_handle_names_it)
{
	begin();
	put_record(NODES("n1", "gone"), id_1);
	d.missing = "gone";
	desk_delete(&d, &a, id_1);
	desk_deleted(desk_last(&d, "n1"));
	DESK_OK(&a);
	end();
}
END_TEST

/* It names the nodes that have reported, and others may have a copy, too. */
START_TEST(a_record_that_was_made_of_reports_does_not_say_where_all_copies_are)
{
	struct pmem_volume *v = pmem_volume_new(volume_key_of_name(NAME).hex, DESK_DRIVER);
	char id[VOLUME_ID_MAX + 1];

	begin();
	volume_id_mint(NAME, NULL, id);
	v->origin = x_strdup(PMEM_VOLUME_REPORTED);
	v->handle = x_strdup(id);
	pmem_volume_add_node(v, "n1");
	desk_put_record(&d, RECORD_CREATE, v);
	desk_delete(&d, &a, id);
	ck_assert_uint_eq(d.n_calls, 2);
	for (size_t i = 0; i < 2; i++) {
		ck_assert_str_eq(d.calls[i].delete_request->volume_id, id);
		desk_deleted(&d.calls[i]);
	}
	DESK_OK(&a);
	end();
}
END_TEST

START_TEST(a_record_does_not_replace_the_node_that_the_handle_names)
{
	char id[VOLUME_ID_MAX + 1];

	begin();
	volume_id_mint(NAME, "n9", id);
	put_record(NODES("n2"), /* handle= */ NULL);
	desk_delete(&d, &a, id);
	DESK_FAILED(&a, ERR_UNAVAILABLE, "is on a node that has not registered");
	ck_assert_uint_eq(d.n_calls, 0);
	end();
}
END_TEST

START_TEST(the_record_of_another_handle_is_left_alone)
{
	struct pmem_volume *v;

	begin();
	put_record(NODES("n2"), id_2);
	desk_delete(&d, &a, id_1);
	desk_deleted(desk_last(&d, "n1"));
	DESK_OK(&a);
	v = desk_record(&d, NAME);
	ck_assert(!v->deleting);
	pmem_volume_free(v);
	desk_check_nodes(&d, NAME, "n2");
	end();
}
END_TEST

static bool is_removed;

static void on_removed(void *user, const struct error *error)
{
	(void)user;
	ck_assert_ptr_null(error);
	is_removed = true;
}

START_TEST(the_record_goes_with_its_last_copy)
{
	begin();
	put_record(NODES("n1", "n2"), /* handle= */ NULL);
	is_removed = false;
	controller_remove_copy(d.controller, node_table_get(d.table, "n2"), id_2, on_removed, NULL);
	desk_deleted(desk_last(&d, "n2"));
	ck_assert(is_removed);
	desk_check_nodes(&d, NAME, "n1");
	controller_remove_copy(d.controller, node_table_get(d.table, "n1"), id_1, on_removed, NULL);
	desk_deleted(desk_last(&d, "n1"));
	desk_check_nodes(&d, NAME, NULL);
	end();
}
END_TEST

START_TEST(a_node_that_was_asked_again_meanwhile_stays_recorded)
{
	struct pmem_volume *v;

	begin();
	put_record(NODES("n1", "n2"), /* handle= */ NULL);
	is_removed = false;
	controller_remove_copy(d.controller, node_table_get(d.table, "n2"), id_2, on_removed, NULL);
	v = desk_record(&d, NAME);
	v->attempts++;
	desk_put_record(&d, RECORD_SPEC, v);
	desk_deleted(desk_last(&d, "n2"));
	ck_assert(is_removed);
	desk_check_nodes(&d, NAME, "n1 n2");
	end();
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {
		a_node_is_named_before_it_is_asked_and_the_outcome_written_before_the_answer,
		no_node_is_asked_when_it_cannot_be_recorded,
		a_write_whose_answer_got_lost_leads_the_retry_to_the_same_node,
		what_another_replica_has_recorded_is_found_after_a_conflict,
		conflicts_without_end_are_left_to_the_caller,
		a_volume_whose_handle_could_not_be_recorded_is_not_reported,
		a_repeated_call_changes_the_record_before_the_node_is_asked,
		without_room_nothing_stays_recorded,
		a_node_that_refuses_stays_recorded_only_if_it_was_asked_before,
		a_volume_that_is_being_deleted_is_not_made_again, a_delete_is_recorded_before_a_node_is_asked,
		a_delete_that_meets_a_conflict_reads_again, a_delete_that_cannot_be_confirmed_is_not_done,
		each_node_of_the_record_is_asked_for_its_own_copy,
		a_copy_that_the_handle_does_not_name_and_that_was_in_use_is_kept,
		a_node_that_is_gone_holds_up_the_delete_only_if_the_handle_names_it,
		the_record_of_another_handle_is_left_alone, the_record_goes_with_its_last_copy,
		no_node_is_asked_when_the_record_has_taken_all_the_time,
		a_node_that_has_something_of_the_name_stays_recorded,
		a_record_that_was_made_of_reports_does_not_say_where_all_copies_are,
		a_record_does_not_replace_the_node_that_the_handle_names,
		a_node_that_was_asked_again_meanwhile_stays_recorded,
		an_outcome_that_meets_a_conflict_is_written_over_the_new_version,
		a_delete_whose_confirmation_meets_a_conflict_asks_again};
	Suite *suite = suite_create("controller/record");
	TCase *tcase = tcase_create("record");

	suite_add_tcase(suite, tcase);
	for (size_t i = 0; i < ARRAY_SIZE(tests); i++)
		tcase_add_test(tcase, tests[i]);
	tcase_add_loop_test(tcase, an_outcome_is_not_written_over_a_record_that_lacks_the_node, 0, 3);
	return unit_runner_finish(srunner_create(suite));
}
