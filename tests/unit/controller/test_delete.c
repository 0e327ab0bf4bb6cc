/* SPDX-License-Identifier: Apache-2.0 */
/* DeleteVolume: the nodes that have to answer before it is done. */
#include <stdio.h>

#include "base/clock.h"
#include "base/mem.h"
#include "unit/controller/desk.h"
#include "volume/id.h"

static struct desk d;
static struct desk_ask a;
static char id_1[VOLUME_ID_MAX + 1]; /* of pvc-1 on n1 */
static char id_any[VOLUME_ID_MAX + 1];

static void begin(bool early, bool forget_gone)
{
	desk_open(&d, early, forget_gone);
	desk_ask_init(&a, "pvc-1");
	volume_id_mint("pvc-1", "n1", id_1);
	volume_id_mint("pvc-1", NULL, id_any);
}

static void end(void)
{
	desk_ask_done(&a);
	desk_close(&d);
}

static void again(void)
{
	desk_ask_done(&a);
	desk_ask_init(&a, "pvc-1");
}

START_TEST(a_handle_in_no_form_of_ours_is_gone)
{
	begin(/* early= */ true, /* forget_gone= */ false);
	d.cluster_ready = false;
	desk_delete(&d, &a, "../../etc/passwd");
	DESK_OK(&a);
	again();
	desk_delete(&d, &a, "");
	DESK_FAILED(&a, ERR_INVALID_ARGUMENT, "volume_id is missing");
	ck_assert_uint_eq(d.n_calls, 0);
	end();
}
END_TEST

START_TEST(a_handle_in_no_form_of_ours_that_a_node_has_goes_there)
{
	struct node_report *r = report_new("n1");

	begin(/* early= */ false, /* forget_gone= */ false);
	report_add_volume(r, "made-by-hand", "x");
	node_table_put(d.table, r, d.now_ns);
	desk_delete(&d, &a, "made-by-hand");
	desk_deleted(desk_last(&d, "n1"));
	DESK_OK(&a);
	end();
}
END_TEST

START_TEST(the_node_that_the_id_names_is_asked_alone)
{
	begin(/* early= */ false, /* forget_gone= */ false);
	d.cluster_ready = false;
	desk_add_node(&d, "n1", 4);
	desk_add_node(&d, "n2", 4);
	desk_delete(&d, &a, id_1);
	ck_assert_str_eq(desk_last(&d, "n1")->delete_request->volume_id, id_1);
	desk_deleted(desk_last(&d, "n1"));
	DESK_OK(&a);
	ck_assert_uint_eq(d.n_calls, 1);
	end();
}
END_TEST

START_TEST(without_that_node_the_delete_is_not_done)
{
	begin(/* early= */ false, /* forget_gone= */ false);
	desk_add_node(&d, "n2", 4);
	desk_delete(&d, &a, id_1);
	DESK_FAILED(&a, ERR_UNAVAILABLE, "has not registered");
	again();
	d.cluster_ids[d.n_cluster++] = "n1";
	desk_delete(&d, &a, id_1);
	DESK_FAILED(&a, ERR_UNAVAILABLE, "node n1 may have volume");
	again();
	desk_add_node(&d, "n1", 4);
	node_table_end(d.table, "n1");
	d.missing = "n1";
	desk_delete(&d, &a, id_1);
	DESK_FAILED(&a, ERR_UNAVAILABLE, "node n1 may have volume");
	ck_assert_uint_eq(d.n_calls, 0);
	end();
}
END_TEST

START_TEST(a_node_that_is_gone_for_good_counts_as_empty_where_that_is_wanted)
{
	begin(/* early= */ false, /* forget_gone= */ true);
	desk_add_node(&d, "n1", 4);
	node_table_end(d.table, "n1");
	desk_delete(&d, &a, id_1);
	DESK_FAILED(&a, ERR_UNAVAILABLE, "node n1 may have volume");
	again();
	d.missing = "n1";
	desk_delete(&d, &a, id_1);
	DESK_FAILED(&a, ERR_UNAVAILABLE, "node n1 may have volume");
	again();
	d.now_ns += DESK_LEASE_NS;
	desk_delete(&d, &a, id_1);
	DESK_OK(&a);
	again();
	node_table_forget(d.table, "n1");
	desk_delete(&d, &a, id_1);
	DESK_OK(&a);
	again();
	d.cluster_ready = false;
	desk_delete(&d, &a, id_1);
	DESK_FAILED(&a, ERR_UNAVAILABLE, "has not registered");
	end();
}
END_TEST

START_TEST(nodes_that_are_gone_for_good_are_forgotten)
{
	begin(/* early= */ false, /* forget_gone= */ false);
	desk_add_node(&d, "n1", 4);
	desk_add_node(&d, "n2", 4);
	d.missing = "n1";
	controller_tick(d.controller);
	ck_assert_ptr_nonnull(node_table_get(d.table, "n1"));
	node_table_end(d.table, "n1");
	node_table_end(d.table, "n2");
	d.now_ns += DESK_LEASE_NS - 1;
	controller_tick(d.controller);
	ck_assert_ptr_nonnull(node_table_get(d.table, "n1"));
	d.now_ns++;
	controller_tick(d.controller);
	controller_tick(d.controller);
	ck_assert_ptr_null(node_table_get(d.table, "n1"));
	ck_assert_ptr_nonnull(node_table_get(d.table, "n2"));
	end();
}
END_TEST

/* @known: n1 has registered with the controller; otherwise it was started after that. */
static void delete_anywhere(bool known)
{
	begin(/* early= */ !known, /* forget_gone= */ false);
	if (known) {
		desk_add_node(&d, "n1", 4);
		node_table_end(d.table, "n1");
	}
	desk_add_node(&d, "n2", 4);
	d.missing = "n1";
	desk_delete(&d, &a, id_any);
	while (d.n_calls > 0 && !d.calls[d.n_calls - 1].answered)
		desk_deleted(&d.calls[d.n_calls - 1]);
	/* its last report says that it has none */
	if (known)
		DESK_OK(&a);
	else
		DESK_FAILED(&a, ERR_UNAVAILABLE, "may");
	again();
	d.now_ns += DESK_LEASE_NS;
	desk_add_node(&d, "n2", 4);
	desk_delete(&d, &a, id_any);
	desk_deleted(desk_last(&d, "n2"));
	DESK_OK(&a);
	/* the volume that can only be on n1 waits for it, or for -forgetGoneNodes */
	again();
	desk_delete(&d, &a, id_1);
	DESK_FAILED(&a, ERR_UNAVAILABLE, known ? "node n1 may have volume" : "has not registered");
	end();
}

START_TEST(a_node_that_is_gone_does_not_block_the_delete_of_what_may_be_anywhere)
{
	delete_anywhere(/* known= */ true);
}
END_TEST

START_TEST(a_controller_that_has_just_started_comes_to_the_same)
{
	delete_anywhere(/* known= */ false);
}
END_TEST

START_TEST(a_node_that_is_only_away_blocks_the_delete_of_what_may_be_anywhere)
{
	struct node_report *r = report_new("n1");

	begin(/* early= */ false, /* forget_gone= */ false);
	r->has_inventory = false;
	node_table_put(d.table, r, d.now_ns);
	node_table_end(d.table, "n1");
	d.now_ns += 100 * DESK_LEASE_NS;
	controller_tick(d.controller);
	desk_delete(&d, &a, id_any);
	DESK_FAILED(&a, ERR_UNAVAILABLE, "node n1 may have volume");
	/* its last report says that it has none */
	again();
	desk_add_node(&d, "n1", 4);
	node_table_end(d.table, "n1");
	desk_delete(&d, &a, id_any);
	DESK_OK(&a);
	end();
}
END_TEST

/* An administrator has removed the label, or the Node, while the driver keeps running. */
START_TEST(a_live_node_is_asked_even_if_the_cluster_does_not_know_it)
{
	begin(/* early= */ false, /* forget_gone= */ true);
	desk_add_node(&d, "n1", 4);
	d.missing = "n1";
	controller_tick(d.controller);
	desk_delete(&d, &a, id_any);
	ck_assert_str_eq(desk_last(&d, "n1")->delete_request->volume_id, id_any);
	ck_assert(!a.finished);
	desk_deleted(desk_last(&d, "n1"));
	DESK_OK(&a);
	end();
}
END_TEST

START_TEST(nothing_counts_as_gone_in_the_start_window)
{
	begin(/* early= */ true, /* forget_gone= */ true);
	d.missing = "n1";
	desk_delete(&d, &a, id_1);
	DESK_FAILED(&a, ERR_UNAVAILABLE, "has not registered");
	end();
}
END_TEST

START_TEST(an_id_without_a_node_is_gone_when_every_possible_owner_says_so)
{
	begin(/* early= */ false, /* forget_gone= */ false);
	desk_add_node(&d, "n1", 4);
	desk_add_node(&d, "n2", 4);
	d.cluster_ids[d.n_cluster++] = "n2";
	desk_delete(&d, &a, id_any);
	ck_assert_uint_eq(d.n_calls, 2);
	desk_deleted(&d.calls[1]);
	ck_assert(!a.finished);
	desk_deleted(&d.calls[0]);
	DESK_OK(&a);
	again();
	d.cluster_ids[d.n_cluster++] = "n3";
	desk_delete(&d, &a, id_any);
	desk_deleted(&d.calls[2]);
	desk_deleted(&d.calls[3]);
	DESK_FAILED(&a, ERR_UNAVAILABLE, "node n3 may have volume");
	again();
	d.cluster_ready = false;
	desk_delete(&d, &a, id_any);
	DESK_FAILED(&a, ERR_UNAVAILABLE, "may be on any node");
	ck_assert_uint_eq(d.n_calls, 4);
	end();
}
END_TEST

START_TEST(old_ids_of_the_go_driver_are_looked_for_everywhere)
{
	begin(/* early= */ false, /* forget_gone= */ false);
	desk_add_node(&d, "n1", 4);
	desk_delete(&d, &a, "0123456789abcdef0123456789abcdef01234567");
	desk_deleted(desk_last(&d, "n1"));
	DESK_OK(&a);
	again();
	desk_delete(&d, &a, "6ef2b1f4-7b53-11eb-9d6e-0e9a5f0a3b21");
	desk_deleted(desk_last(&d, "n1"));
	DESK_OK(&a);
	end();
}
END_TEST

START_TEST(what_a_node_says_is_handed_through_and_the_worst_of_it)
{
	begin(/* early= */ false, /* forget_gone= */ false);
	desk_add_node(&d, "n1", 4);
	desk_add_node(&d, "n2", 4);
	desk_add_node(&d, "n3", 4);
	desk_delete(&d, &a, id_any);
	desk_failed(&d.calls[0], ERR_UNAVAILABLE, "lost");
	desk_failed(&d.calls[1], ERR_PRECONDITION, "in use");
	desk_failed(&d.calls[2], ERR_ABORTED, "busy");
	DESK_FAILED(&a, ERR_PRECONDITION, "node n2: in use");
	again();
	desk_delete(&d, &a, id_1);
	desk_failed(desk_last(&d, "n1"), ERR_ABORTED, "busy");
	DESK_FAILED(&a, ERR_ABORTED, "node n1: busy");
	again();
	desk_delete(&d, &a, id_1);
	desk_failed(desk_last(&d, "n1"), ERR_INTERNAL, "broken");
	DESK_FAILED(&a, ERR_UNAVAILABLE, "node n1: INTERNAL: broken");
	end();
}
END_TEST

START_TEST(at_most_64_nodes_are_asked_at_a_time)
{
	begin(/* early= */ false, /* forget_gone= */ false);
	for (unsigned i = 0; i < 100; i++) {
		char id[8];

		snprintf(id, sizeof(id), "n%02u", i);
		desk_add_node(&d, id, 4);
	}
	desk_delete(&d, &a, id_any);
	ck_assert_uint_eq(d.n_calls, 64);
	for (size_t i = 0; i < 100; i++)
		desk_deleted(&d.calls[i]);
	DESK_OK(&a);
	ck_assert_uint_eq(d.n_calls, 100);
	end();
}
END_TEST

START_TEST(calls_for_one_volume_exclude_each_other)
{
	struct desk_ask b;

	begin(/* early= */ false, /* forget_gone= */ false);
	desk_add_node(&d, "n1", 4);
	desk_create(&d, &a);
	desk_ask_init(&b, "x");
	desk_delete(&d, &b, id_1);
	DESK_FAILED(&b, ERR_ABORTED, "another call");
	desk_ask_done(&b);
	desk_made(desk_last(&d, "n1"));
	again();
	desk_delete(&d, &a, id_1);
	desk_ask_init(&b, "pvc-1");
	desk_create(&d, &b);
	DESK_FAILED(&b, ERR_ABORTED, "another call");
	desk_ask_done(&b);
	desk_deleted(desk_last(&d, "n1"));
	DESK_OK(&a);
	struct node_hit *hits;
	ck_assert_uint_eq(node_table_find_name(d.table, "pvc-1", &hits), 0);
	end();
}
END_TEST

START_TEST(a_delete_ends_what_was_begun_on_the_node)
{
	begin(/* early= */ false, /* forget_gone= */ false);
	desk_add_node(&d, "n1", 4);
	desk_create(&d, &a);
	desk_failed(desk_last(&d, "n1"), ERR_DEADLINE, "no answer");
	desk_check_nodes(&d, "pvc-1", "n1");
	again();
	desk_delete(&d, &a, id_1);
	desk_deleted(desk_last(&d, "n1"));
	desk_check_nodes(&d, "pvc-1", "");
	end();
}
END_TEST

UNIT_MAIN("controller/delete", a_handle_in_no_form_of_ours_is_gone,
	a_handle_in_no_form_of_ours_that_a_node_has_goes_there, the_node_that_the_id_names_is_asked_alone,
	without_that_node_the_delete_is_not_done,
	a_node_that_is_gone_for_good_counts_as_empty_where_that_is_wanted,
	nodes_that_are_gone_for_good_are_forgotten,
	a_node_that_is_gone_does_not_block_the_delete_of_what_may_be_anywhere,
	a_controller_that_has_just_started_comes_to_the_same,
	a_node_that_is_only_away_blocks_the_delete_of_what_may_be_anywhere,
	a_live_node_is_asked_even_if_the_cluster_does_not_know_it, nothing_counts_as_gone_in_the_start_window,
	an_id_without_a_node_is_gone_when_every_possible_owner_says_so,
	old_ids_of_the_go_driver_are_looked_for_everywhere,
	what_a_node_says_is_handed_through_and_the_worst_of_it, at_most_64_nodes_are_asked_at_a_time,
	calls_for_one_volume_exclude_each_other, a_delete_ends_what_was_begun_on_the_node)
