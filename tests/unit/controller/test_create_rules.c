/* SPDX-License-Identifier: Apache-2.0 */
/* CreateVolume while not all is known, after nodes have died, and of cache volumes. */
#include "base/clock.h"
#include "base/mem.h"
#include "base/str.h"
#include "unit/controller/desk.h"
#include "volume/id.h"

#define NODES(...) ((const char *const[]){__VA_ARGS__, NULL})

static struct desk d;
static struct desk_ask a;

static void begin(bool early)
{
	desk_open(&d, early, /* forget_gone= */ true);
	desk_ask_init(&a, "pvc-1");
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

START_TEST(in_the_start_window_a_node_that_has_not_registered_is_waited_for)
{
	begin(/* early= */ true);
	desk_add_node(&d, "n1", 4);
	desk_ask_nodes(&a, NODES("n1", "n2"), NULL);
	desk_create(&d, &a);
	DESK_FAILED(&a, ERR_UNAVAILABLE, "node n2 has not registered yet");
	again();
	d.owners[d.n_owners++] = "n2";
	desk_create(&d, &a);
	DESK_FAILED(&a, ERR_UNAVAILABLE, "node n2 has not registered yet");
	again();
	d.owners_ready = false;
	desk_create(&d, &a);
	DESK_FAILED(&a, ERR_UNAVAILABLE, "which nodes there are");
	again();
	d.now_ns += DESK_LEASE_NS;
	desk_ask_nodes(&a, NODES("n2", "n1"), NULL);
	desk_create(&d, &a);
	desk_made(desk_last(&d, "n1"));
	DESK_OK(&a);
	end();
}
END_TEST

START_TEST(a_live_node_that_has_not_said_what_it_has_is_waited_for)
{
	struct node_report *r = report_new("n2");

	begin(/* early= */ false);
	desk_add_node(&d, "n1", 4);
	r->has_inventory = false;
	node_table_put(d.table, r, d.now_ns);
	desk_create(&d, &a);
	DESK_FAILED(&a, ERR_UNAVAILABLE, "node n2 has not reported its volumes");
	end();
}
END_TEST

START_TEST(a_dead_node_that_has_nothing_lets_the_pod_go_elsewhere)
{
	begin(/* early= */ false);
	desk_ask_nodes(&a, NODES("n1"), NODES("n1"));
	desk_create(&d, &a);
	DESK_FAILED(&a, ERR_EXHAUSTED, "none of the 1 nodes");
	again();
	desk_create(&d, &a);
	DESK_FAILED(&a, ERR_UNAVAILABLE, "no node is connected");
	end();
}
END_TEST

START_TEST(a_dead_node_that_may_have_begun_does_not_until_it_is_gone_for_good)
{
	begin(/* early= */ false);
	desk_add_node(&d, "n1", 4);
	desk_ask_nodes(&a, NODES("n1"), NULL);
	desk_create(&d, &a);
	desk_failed(desk_last(&d, "n1"), ERR_DEADLINE, "no answer");
	node_table_end(d.table, "n1");
	again();
	desk_ask_nodes(&a, NODES("n1"), NULL);
	desk_create(&d, &a);
	DESK_FAILED(&a, ERR_UNAVAILABLE, "node n1 may have the volume");
	d.missing = "n1";
	d.now_ns += DESK_LEASE_NS;
	again();
	desk_ask_nodes(&a, NODES("n1"), NULL);
	desk_create(&d, &a);
	DESK_FAILED(&a, ERR_EXHAUSTED, "none of the 1 nodes");
	end();
}
END_TEST

START_TEST(a_volume_in_use_on_a_dead_node_is_not_made_again)
{
	struct node_report *r = report_new("n2");

	begin(/* early= */ false);
	desk_add_node(&d, "n1", 4);
	report_add_volume(r, "v", "pvc-1")->ever_staged = true;
	node_table_put(d.table, r, d.now_ns);
	node_table_end(d.table, "n2");
	desk_create(&d, &a);
	DESK_FAILED(&a, ERR_UNAVAILABLE, "node n2 has the volume");
	end();
}
END_TEST

START_TEST(what_was_begun_elsewhere_is_deleted_once_the_volume_is_made)
{
	char id[VOLUME_ID_MAX + 1];
	struct desk_ask b;

	begin(/* early= */ false);
	desk_add_node(&d, "n1", 4);
	desk_add_node(&d, "n2", 4);
	desk_ask_nodes(&a, NODES("n1"), NULL);
	desk_create(&d, &a);
	desk_failed(desk_last(&d, "n1"), ERR_DEADLINE, "no answer");
	again();
	desk_ask_nodes(&a, NODES("n2"), NULL);
	desk_create(&d, &a);
	desk_made(desk_last(&d, "n2"));
	DESK_OK(&a);
	volume_id_mint("pvc-1", "n1", id);
	ck_assert_str_eq(desk_last(&d, "n1")->delete_request->volume_id, id);
	desk_ask_init(&b, "pvc-1");
	desk_create(&d, &b);
	DESK_FAILED(&b, ERR_ABORTED, "another call");
	desk_ask_done(&b);
	desk_deleted(desk_last(&d, "n1"));
	ck_assert_uint_eq(attempts_count(d.controller->attempts), 0);
	end();
}
END_TEST

START_TEST(what_bears_the_name_elsewhere_and_was_in_use_is_not_deleted)
{
	struct node_report *r = report_new("n1");
	char id[VOLUME_ID_MAX + 1];

	begin(/* early= */ false);
	desk_add_node(&d, "n1", 4);
	desk_add_node(&d, "n2", 4);
	desk_ask_nodes(&a, NODES("n1"), NULL);
	desk_create(&d, &a);
	desk_failed(desk_last(&d, "n1"), ERR_DEADLINE, "no answer");
	volume_id_mint("pvc-1", "n1", id);
	struct volume_report *v = report_add_volume(r, id, "pvc-1");
	v->made_by_controller = true;
	v->ever_staged = true;
	node_table_put(d.table, r, d.now_ns);
	again();
	desk_ask_nodes(&a, NODES("n2"), NULL);
	desk_create(&d, &a);
	desk_made(desk_last(&d, "n2"));
	DESK_OK(&a);
	ck_assert_uint_eq(d.n_calls, 2);
	end();
}
END_TEST

static void ask_cache(const char *size)
{
	desk_ask_parameter(&a, "persistencyModel", "cache");
	desk_ask_parameter(&a, "cacheSize", size);
}

START_TEST(a_cache_volume_is_made_on_several_nodes_at_once)
{
	begin(/* early= */ false);
	for (char i = '1'; i <= '4'; i++)
		desk_add_node(&d, (char[]){'n', i, '\0'}, 4);
	ask_cache("2");
	desk_ask_nodes(&a, NODES("n1", "n2", "n3", "n4"), NODES("n1"));
	desk_create(&d, &a);
	ck_assert_uint_eq(d.n_calls, 2);
	desk_made(&d.calls[0]);
	desk_failed(&d.calls[1], ERR_EXHAUSTED, "full");
	desk_made(desk_last(&d, "n3"));
	DESK_OK(&a);
	ck_assert_uint_eq(a.created.volume->n_accessible_topology, 2);
	again();
	ask_cache("2");
	desk_ask_nodes(&a, NODES("n4", "n3", "n2", "n1"), NULL);
	desk_create(&d, &a);
	ck_assert_uint_eq(d.n_calls, 5);
	ck_assert_str_eq(d.calls[3].node_id, "n3");
	ck_assert_str_eq(d.calls[4].node_id, "n1");
	desk_made(&d.calls[4]);
	desk_made(&d.calls[3]);
	DESK_OK(&a);
	end();
}
END_TEST

START_TEST(fewer_copies_than_asked_for_are_a_cache_volume_too)
{
	begin(/* early= */ false);
	desk_add_node(&d, "n1", 4);
	desk_add_node(&d, "n2", 4);
	ask_cache("5");
	desk_create(&d, &a);
	ck_assert_uint_eq(d.n_calls, 2);
	desk_failed(&d.calls[0], ERR_EXHAUSTED, "full");
	desk_made(&d.calls[1]);
	DESK_OK(&a);
	ck_assert_uint_eq(a.created.volume->n_accessible_topology, 1);
	end();
}
END_TEST

START_TEST(a_copy_with_an_unknown_outcome_is_asked_for_again)
{
	begin(/* early= */ false);
	desk_add_node(&d, "n1", 4);
	desk_add_node(&d, "n2", 4);
	desk_add_node(&d, "n3", 4);
	ask_cache("2");
	desk_ask_nodes(&a, NODES("n1", "n2", "n3"), NULL);
	desk_create(&d, &a);
	desk_failed(&d.calls[0], ERR_UNAVAILABLE, "lost");
	ck_assert(!a.finished);
	desk_made(&d.calls[1]);
	DESK_FAILED(&a, ERR_UNAVAILABLE, "node n1: lost");
	again();
	ask_cache("2");
	desk_ask_nodes(&a, NODES("n3", "n2", "n1"), NULL);
	desk_create(&d, &a);
	ck_assert_str_eq(d.calls[2].node_id, "n2");
	ck_assert_str_eq(d.calls[3].node_id, "n1");
	desk_made(&d.calls[2]);
	desk_made(&d.calls[3]);
	DESK_OK(&a);
	end();
}
END_TEST

UNIT_MAIN("controller/create_rules", in_the_start_window_a_node_that_has_not_registered_is_waited_for,
	a_live_node_that_has_not_said_what_it_has_is_waited_for,
	a_dead_node_that_has_nothing_lets_the_pod_go_elsewhere,
	a_dead_node_that_may_have_begun_does_not_until_it_is_gone_for_good,
	a_volume_in_use_on_a_dead_node_is_not_made_again,
	what_was_begun_elsewhere_is_deleted_once_the_volume_is_made,
	what_bears_the_name_elsewhere_and_was_in_use_is_not_deleted,
	a_cache_volume_is_made_on_several_nodes_at_once, fewer_copies_than_asked_for_are_a_cache_volume_too,
	a_copy_with_an_unknown_outcome_is_asked_for_again)
