/* SPDX-License-Identifier: Apache-2.0 */
/* DeleteVolume is called for a volume that may be on any node, after a start of the controller, while not all
 * nodes have registered. The PmemNodes of the others show whether they can have the volume. */
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "unit/controller/desk.h"
#include "volume/id.h"

#define BEFORE  "2026-01-02T03:04:04Z"
#define CREATED "2026-01-02T03:04:05Z"
#define AFTER   "2026-01-02T03:04:06Z"
#define NAME    "pvc-1"
#define OLD_ID  "0123456789abcdef0123456789abcdef01234567"

static struct desk d;
static struct desk_ask a;
static char id[VOLUME_ID_MAX + 1];

static struct pmem_volume *reported_record(const char *handle)
{
	struct volume_key key = volume_key_of_handle(handle);
	struct pmem_volume *v = pmem_volume_new(key.hex, DESK_DRIVER);

	v->meta.created = x_strdup(CREATED);
	v->origin = x_strdup(PMEM_VOLUME_REPORTED);
	v->handle = x_strdup(handle);
	v->volume_name = x_strdup(NAME);
	pmem_volume_add_node(v, "n1");
	return v;
}

/* n1 has the volume @handle, and reports it. n2 is in the cluster and down. */
static void begin_with(const char *handle, bool early)
{
	struct node_report *r = report_new("n1");

	desk_open(&d, early, /* forget_gone= */ false);
	desk_ask_init(&a, NAME);
	report_add_volume(r, handle, NAME);
	node_table_put(d.table, r, d.now_ns);
	d.cluster_ids[d.n_cluster++] = "n1";
	d.cluster_ids[d.n_cluster++] = "n2";
	d.shown[0].node_id = "n2";
	d.shown[0].until = CREATED;
}

static void begin(void)
{
	volume_id_mint_go(NAME, id);
	begin_with(id, /* early= */ false);
}

static void end(void)
{
	desk_ask_done(&a);
	desk_close(&d);
}

/* Deletes the volume: the node that has it is asked, and the call waits for the other one. */
static void expect_wait(const char *handle)
{
	desk_delete(&d, &a, handle);
	desk_deleted(desk_last(&d, "n1"));
	DESK_FAILED(&a, ERR_UNAVAILABLE, "node n2 may have volume");
}

START_TEST(a_node_that_is_down_and_has_all_its_volumes_recorded_is_not_waited_for)
{
	begin();
	desk_put_record(&d, RECORD_CREATE, reported_record(id));
	d.shown[0].until = _i ? AFTER : CREATED;
	desk_delete(&d, &a, id);
	ck_assert_uint_eq(d.n_calls, 1);
	desk_deleted(desk_last(&d, "n1"));
	DESK_OK(&a);
	ck_assert_uint_eq(d.n_node_reads, 1);
	desk_check_nodes(&d, NAME, "");
	end();
}
END_TEST

START_TEST(so_are_volumes_with_the_oldest_ids)
{
	begin_with(OLD_ID, /* early= */ false);
	desk_put_record(&d, RECORD_CREATE, reported_record(OLD_ID));
	desk_delete(&d, &a, OLD_ID);
	desk_deleted(desk_last(&d, "n1"));
	DESK_OK(&a);
	end();
}
END_TEST

/* The node may have run another driver since, or the record was deleted and made again. */
START_TEST(a_record_that_is_newer_than_what_is_shown_is_waited_for)
{
	begin();
	desk_put_record(&d, RECORD_CREATE, reported_record(id));
	d.shown[0].until = BEFORE;
	expect_wait(id);
	ck_assert_uint_eq(d.n_node_reads, 1);
	end();
}
END_TEST

START_TEST(what_is_no_time_says_nothing)
{
	static const char *const texts[] = {
		NULL, "", "9", "tomorrow", "9999-99-99T99:99:99z", "2026-01-02T03:04:06+00", AFTER "Z"};

	begin();
	desk_put_record(&d, RECORD_CREATE, reported_record(id));
	d.shown[0].until = texts[_i];
	expect_wait(id);
	end();
}
END_TEST

START_TEST(a_record_without_a_time_is_waited_for)
{
	struct pmem_volume *v;

	begin();
	v = reported_record(id);
	free(TAKE_PTR(v->meta.created));
	v->meta.created = _i ? x_strdup("") : NULL;
	desk_put_record(&d, RECORD_CREATE, v);
	expect_wait(id);
	end();
}
END_TEST

START_TEST(a_node_without_an_object_is_waited_for)
{
	begin();
	desk_put_record(&d, RECORD_CREATE, reported_record(id));
	d.shown[0].node_id = "n3";
	expect_wait(id);
	end();
}
END_TEST

/* The record names n2, so that its PmemNode makes no difference. */
START_TEST(a_node_that_the_record_names_is_waited_for_whatever_objects_say)
{
	struct pmem_volume *v;

	begin();
	v = reported_record(id);
	pmem_volume_add_node(v, "n2");
	desk_put_record(&d, RECORD_CREATE, v);
	d.shown[0].until = AFTER;
	d.shown[1].node_id = "n1";
	d.shown[1].until = AFTER;
	expect_wait(id);
	ck_assert_uint_eq(d.n_node_reads, 0);
	end();
}
END_TEST

START_TEST(without_a_record_or_its_handle_all_nodes_are_waited_for)
{
	begin();
	if (_i) {
		struct pmem_volume *v = reported_record(id);

		free(TAKE_PTR(v->handle));
		desk_put_record(&d, RECORD_CREATE, v);
	}
	expect_wait(id);
	ck_assert_uint_eq(d.n_node_reads, 0);
	end();
}
END_TEST

/* The driver of n2 has started, and has not reported its volumes yet. */
START_TEST(a_node_that_has_begun_to_register_is_waited_for)
{
	struct node_report *r = report_new("n2");

	begin();
	r->has_inventory = false;
	node_table_put(d.table, r, d.now_ns);
	node_table_end(d.table, "n2");
	desk_put_record(&d, RECORD_CREATE, reported_record(id));
	expect_wait(id);
	ck_assert_uint_eq(d.n_node_reads, 0);
	end();
}
END_TEST

START_TEST(nothing_is_concluded_in_the_start_window)
{
	volume_id_mint_go(NAME, id);
	begin_with(id, /* early= */ true);
	desk_put_record(&d, RECORD_CREATE, reported_record(id));
	desk_delete(&d, &a, id);
	DESK_FAILED(&a, ERR_UNAVAILABLE, "not all nodes are known yet");
	ck_assert_uint_eq(d.n_calls + d.n_node_reads, 0);
	end();
}
END_TEST

/* Acts as the leader that gets a report of n2 at that moment: it adds n2 to the record before it changes the
 * PmemNode. */
static void add_to_record(struct desk *desk)
{
	struct pmem_volume *v = desk_record(desk, NAME);

	ck_assert(pmem_volume_add_node(v, "n2"));
	desk_put_record(desk, RECORD_SPEC, v);
}

START_TEST(the_record_is_read_after_the_objects)
{
	begin();
	desk_put_record(&d, RECORD_CREATE, reported_record(id));
	d.on_node_read = add_to_record;
	expect_wait(id);
	ck_assert_uint_eq(d.n_node_reads, 1);
	desk_check_nodes(&d, NAME, "n1 n2");
	end();
}
END_TEST

START_TEST(each_node_that_is_down_has_to_say_so)
{
	begin();
	d.cluster_ids[d.n_cluster++] = "n3";
	desk_put_record(&d, RECORD_CREATE, reported_record(id));
	if (_i) {
		d.shown[1].node_id = "n3";
		d.shown[1].until = AFTER;
	}
	desk_delete(&d, &a, id);
	desk_deleted(desk_last(&d, "n1"));
	if (_i)
		DESK_OK(&a);
	else
		DESK_FAILED(&a, ERR_UNAVAILABLE, "node n3 may have volume");
	ck_assert_uint_eq(d.n_node_reads, 2);
	end();
}
END_TEST

START_TEST(a_call_does_not_read_any_number_of_objects)
{
	static char ids[DESK_CLUSTER][8];

	begin();
	desk_put_record(&d, RECORD_CREATE, reported_record(id));
	while (d.n_cluster < 67) {
		snprintf(ids[d.n_cluster], sizeof(ids[0]), "m%zu", d.n_cluster);
		d.cluster_ids[d.n_cluster] = ids[d.n_cluster];
		d.n_cluster++;
	}
	desk_delete(&d, &a, id);
	desk_deleted(desk_last(&d, "n1"));
	DESK_FAILED(&a, ERR_UNAVAILABLE, "may have volume");
	ck_assert_uint_eq(d.n_node_reads, 0);
	end();
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("controller/recorded_nodes");
	TCase *tcase = tcase_create("recorded_nodes");

	suite_add_tcase(suite, tcase);
	tcase_add_loop_test(
		tcase, a_node_that_is_down_and_has_all_its_volumes_recorded_is_not_waited_for, 0, 2);
	tcase_add_test(tcase, so_are_volumes_with_the_oldest_ids);
	tcase_add_test(tcase, a_record_that_is_newer_than_what_is_shown_is_waited_for);
	tcase_add_loop_test(tcase, what_is_no_time_says_nothing, 0, 7);
	tcase_add_loop_test(tcase, a_record_without_a_time_is_waited_for, 0, 2);
	tcase_add_test(tcase, a_node_without_an_object_is_waited_for);
	tcase_add_test(tcase, a_node_that_the_record_names_is_waited_for_whatever_objects_say);
	tcase_add_loop_test(tcase, without_a_record_or_its_handle_all_nodes_are_waited_for, 0, 2);
	tcase_add_test(tcase, a_node_that_has_begun_to_register_is_waited_for);
	tcase_add_test(tcase, nothing_is_concluded_in_the_start_window);
	tcase_add_test(tcase, the_record_is_read_after_the_objects);
	tcase_add_loop_test(tcase, each_node_that_is_down_has_to_say_so, 0, 2);
	tcase_add_test(tcase, a_call_does_not_read_any_number_of_objects);
	return unit_runner_finish(srunner_create(suite));
}
