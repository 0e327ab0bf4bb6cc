/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of the nodes that CreateVolume asks, of their order, and of the results of their answers. */
#include <stdio.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/str.h"
#include "controller/placement.h"
#include "unit/controller/desk.h"

#define NODES(...) ((const char *const[]){__VA_ARGS__, NULL})

static struct desk d;
static struct desk_ask a;

static void begin(bool early)
{
	desk_open(&d, early, /* forget_gone= */ false);
	desk_ask_init(&a, "pvc-1");
}

static void end(void)
{
	desk_ask_done(&a);
	desk_close(&d);
}

/* The caller asks once more. */
static void again(void)
{
	desk_ask_done(&a);
	desk_ask_init(&a, "pvc-1");
}

static const char *reported(size_t i)
{
	ck_assert_uint_lt(i, a.created.volume->n_accessible_topology);
	return a.created.volume->accessible_topology[i]->segments[0]->value;
}

START_TEST(preferred_nodes_come_first_and_the_next_one_when_there_is_no_room)
{
	begin(/* early= */ false);
	desk_add_node(&d, "n1", 4);
	desk_add_node(&d, "n2", 4);
	desk_add_node(&d, "n3", 4);
	desk_ask_nodes(&a, NODES("n1", "n2", "n3"), NODES("n3", "n2"));
	desk_create(&d, &a);
	desk_failed(desk_last(&d, "n3"), ERR_EXHAUSTED, "full");
	desk_failed(desk_last(&d, "n2"), ERR_RANGE, "rounded");
	desk_made(desk_last(&d, "n1"));
	DESK_OK(&a);
	ck_assert_uint_eq(a.created.volume->n_accessible_topology, 1);
	ck_assert_str_eq(reported(0), "n1");
	ck_assert_int_eq(a.created.volume->capacity_bytes, DESK_GIB);
	end();
}
END_TEST

START_TEST(each_node_is_asked_once_and_its_reason_told)
{
	begin(/* early= */ false);
	for (char i = '1'; i <= '5'; i++)
		desk_add_node(&d, (char[]){'n', i, '\0'}, 4);
	desk_ask_nodes(&a, NODES("n1", "n2", "n3", "n4", "n5", "n6"), NODES("n1", "n1", "n2"));
	desk_create(&d, &a);
	for (char i = '1'; i <= '5'; i++)
		desk_failed(desk_last(&d, (char[]){'n', i, '\0'}), ERR_EXHAUSTED, "full");
	DESK_FAILED(&a, ERR_EXHAUSTED, "no node can take the volume");
	ck_assert_str_eq(a.error->msg, "no node can take the volume; n1: full; n2: full; n3: full; "
				       "2 more nodes refused it; 1 node not connected");
	end();
}
END_TEST

START_TEST(out_of_range_everywhere_is_out_of_range)
{
	begin(/* early= */ false);
	desk_add_node(&d, "n1", 4);
	desk_create(&d, &a);
	desk_failed(desk_last(&d, "n1"), ERR_RANGE, "rounded");
	DESK_FAILED(&a, ERR_RANGE, "rounded");
	end();
}
END_TEST

START_TEST(without_a_wish_the_node_that_can_take_most_is_asked)
{
	begin(/* early= */ false);
	desk_add_node(&d, "n1", 2);
	desk_add_node(&d, "n2", 8);
	desk_add_node(&d, "n3", 4);
	desk_create(&d, &a);
	desk_failed(desk_last(&d, "n2"), ERR_EXHAUSTED, "full");
	desk_made(desk_last(&d, "n3"));
	DESK_OK(&a);
	end();
}
END_TEST

START_TEST(few_nodes_without_room_by_their_own_account_are_asked)
{
	begin(/* early= */ false);
	for (unsigned i = 0; i < 20; i++) {
		char id[8];

		snprintf(id, sizeof(id), "n%02u", i);
		desk_add_node(&d, id, 0);
	}
	desk_create(&d, &a);
	while (!a.finished)
		desk_failed(&d.calls[d.n_calls - 1], ERR_EXHAUSTED, "full");
	ck_assert_uint_eq(d.n_calls, PLACEMENT_DOUBTFUL_MAX);
	DESK_FAILED(&a, ERR_EXHAUSTED, "12 nodes with too little reported capacity");
	end();
}
END_TEST

/* The request has the topology that external-provisioner makes of allowedTopologies for a class with
 * volumeBindingMode Immediate. */
START_TEST(a_topology_key_of_others_is_refused)
{
	Csi__V1__TopologyRequirement *t;

	begin(/* early= */ false);
	desk_add_node(&d, "n1", 4);
	desk_ask_nodes(&a, NODES("n1", "n1"), NODES("n1", "n1"));
	t = a.create.accessibility_requirements;
	t->requisite[1]->segments[0]->key = arena_strdup(a.arena, "topology.kubernetes.io/zone");
	desk_create(&d, &a);
	DESK_FAILED(&a, ERR_INVALID_ARGUMENT,
		"topology key \"topology.kubernetes.io/zone\" is not this driver's");
	ck_assert_uint_eq(d.n_calls, 0);
	desk_check_nodes(&d, "pvc-1", NULL);
	end();
}
END_TEST

START_TEST(an_unknown_outcome_binds_the_name_to_the_node)
{
	begin(/* early= */ false);
	desk_add_node(&d, "n1", 4);
	desk_add_node(&d, "n2", 4);
	desk_ask_nodes(&a, NODES("n1", "n2"), NULL);
	desk_create(&d, &a);
	desk_failed(desk_last(&d, "n1"), ERR_UNAVAILABLE, "connection lost");
	DESK_FAILED(&a, ERR_UNAVAILABLE, "node n1: connection lost");
	again();
	desk_ask_nodes(&a, NODES("n1", "n2"), NODES("n2"));
	desk_create(&d, &a);
	desk_failed(desk_last(&d, "n1"), ERR_EXHAUSTED, "full");
	desk_made(desk_last(&d, "n2"));
	DESK_OK(&a);
	end();
}
END_TEST

START_TEST(codes_that_would_release_the_node_are_not_passed_on)
{
	static const struct {
		enum err_code from;
		enum err_code to;
	} codes[] = {
		{ERR_CANCELLED, ERR_UNAVAILABLE},
		{ERR_UNKNOWN, ERR_UNAVAILABLE},
		{ERR_INTERNAL, ERR_UNAVAILABLE},
		{ERR_UNIMPLEMENTED, ERR_UNAVAILABLE},
		{ERR_PERMISSION, ERR_UNAVAILABLE},
		{ERR_ABORTED, ERR_ABORTED},
		{ERR_DEADLINE, ERR_DEADLINE},
		{ERR_INVALID_ARGUMENT, ERR_INVALID_ARGUMENT},
		{ERR_EXISTS, ERR_EXISTS},
		{ERR_PRECONDITION, ERR_PRECONDITION},
	};

	begin(/* early= */ false);
	desk_add_node(&d, "n1", 4);
	for (size_t i = 0; i < ARRAY_SIZE(codes); i++) {
		again();
		desk_create(&d, &a);
		desk_failed(desk_last(&d, "n1"), codes[i].from, "text of the node");
		DESK_FAILED(&a, codes[i].to, "text of the node");
		ck_assert_str_eq(d.calls[i].node_id, "n1");
	}
	end();
}
END_TEST

START_TEST(a_node_that_has_the_volume_comes_before_the_preferred_ones)
{
	begin(/* early= */ false);
	desk_add_node(&d, "n1", 4);
	struct node_report *r = report_new("n2");
	report_add_volume(r, "pvc-1-x", "pvc-1");
	node_table_put(d.table, r, d.now_ns);
	desk_ask_nodes(&a, NODES("n1", "n2"), NODES("n1"));
	desk_create(&d, &a);
	desk_made(desk_last(&d, "n2"));
	DESK_OK(&a);
	end();
}
END_TEST

START_TEST(a_volume_that_is_being_erased_binds_nothing)
{
	begin(/* early= */ false);
	desk_add_node(&d, "n1", 4);
	struct node_report *r = report_new("n2");
	report_add_volume(r, "pvc-1-x", "pvc-1")->phase = PHASE_ERASING;
	node_table_put(d.table, r, d.now_ns);
	desk_ask_nodes(&a, NODES("n1", "n2"), NODES("n1"));
	desk_create(&d, &a);
	desk_made(desk_last(&d, "n1"));
	DESK_OK(&a);
	end();
}
END_TEST

START_TEST(an_answer_that_nobody_waits_for_is_found_by_the_next_call)
{
	begin(/* early= */ false);
	desk_add_node(&d, "n1", 4);
	desk_add_node(&d, "n2", 8);
	desk_ask_nodes(&a, NODES("n1", "n2"), NULL);
	desk_create(&d, &a);
	a.gone = true;
	desk_made(desk_last(&d, "n1"));
	again();
	desk_ask_nodes(&a, NODES("n2", "n1"), NULL);
	desk_create(&d, &a);
	desk_made(desk_last(&d, "n1"));
	DESK_OK(&a);
	end();
}
END_TEST

START_TEST(nobody_else_is_asked_for_who_has_gone_or_has_no_time)
{
	begin(/* early= */ false);
	desk_add_node(&d, "n1", 4);
	desk_add_node(&d, "n2", 4);
	desk_ask_nodes(&a, NODES("n1", "n2"), NULL);
	desk_create(&d, &a);
	a.gone = true;
	desk_failed(desk_last(&d, "n1"), ERR_EXHAUSTED, "full");
	DESK_FAILED(&a, ERR_DEADLINE, "the deadline does not allow asking another node");
	again();
	desk_ask_nodes(&a, NODES("n1", "n2"), NULL);
	a.deadline_ns = d.now_ns + 5 * NS_PER_S;
	desk_create(&d, &a);
	d.now_ns += 6 * NS_PER_S;
	desk_failed(desk_last(&d, "n1"), ERR_EXHAUSTED, "full");
	DESK_FAILED(&a, ERR_DEADLINE, "the deadline does not allow asking another node");
	end();
}
END_TEST

START_TEST(a_node_gets_less_time_than_the_caller_has_and_only_what_it_needs)
{
	begin(/* early= */ false);
	desk_add_node(&d, "n1", 4);
	desk_ask_nodes(&a, NODES("n1"), NODES("n1"));
	a.deadline_ns = d.now_ns + 10 * NS_PER_S;
	desk_create(&d, &a);
	ck_assert_uint_eq(desk_last(&d, "n1")->timeout_ms, 9000);
	ck_assert_ptr_null(d.calls[0].create_request->accessibility_requirements);
	ck_assert_str_eq(d.calls[0].create_request->name, "pvc-1");
	ck_assert_uint_eq(d.calls[0].create_request->n_volume_capabilities, 1);
	desk_made(&d.calls[0]);
	DESK_OK(&a);
	end();
}
END_TEST

START_TEST(a_second_call_for_the_name_is_aborted)
{
	struct desk_ask b;

	begin(/* early= */ false);
	desk_add_node(&d, "n1", 4);
	desk_create(&d, &a);
	desk_ask_init(&b, "pvc-1");
	desk_create(&d, &b);
	DESK_FAILED(&b, ERR_ABORTED, "another call for volume \"pvc-1\"");
	desk_made(desk_last(&d, "n1"));
	DESK_OK(&a);
	desk_ask_done(&b);
	desk_ask_init(&b, "pvc-1");
	desk_create(&d, &b);
	desk_made(desk_last(&d, "n1"));
	DESK_OK(&b);
	desk_ask_done(&b);
	end();
}
END_TEST

START_TEST(requests_that_can_never_succeed_reach_no_node)
{
	begin(/* early= */ false);
	desk_add_node(&d, "n1", 4);
	a.create.n_volume_capabilities = 0;
	desk_create(&d, &a);
	DESK_FAILED(&a, ERR_INVALID_ARGUMENT, "volume_capabilities is missing");
	again();
	desk_ask_parameter(&a, "eraseAfter", "true");
	desk_create(&d, &a);
	DESK_FAILED(&a, ERR_INVALID_ARGUMENT, "unknown parameter");
	again();
	a.create.capacity_range->limit_bytes = -1;
	desk_create(&d, &a);
	DESK_FAILED(&a, ERR_INVALID_ARGUMENT, "negative");
	ck_assert_uint_eq(d.n_calls, 0);
	end();
}
END_TEST

UNIT_MAIN("controller/create", preferred_nodes_come_first_and_the_next_one_when_there_is_no_room,
	each_node_is_asked_once_and_its_reason_told, out_of_range_everywhere_is_out_of_range,
	without_a_wish_the_node_that_can_take_most_is_asked,
	few_nodes_without_room_by_their_own_account_are_asked, a_topology_key_of_others_is_refused,
	an_unknown_outcome_binds_the_name_to_the_node, codes_that_would_release_the_node_are_not_passed_on,
	a_node_that_has_the_volume_comes_before_the_preferred_ones,
	a_volume_that_is_being_erased_binds_nothing,
	an_answer_that_nobody_waits_for_is_found_by_the_next_call,
	nobody_else_is_asked_for_who_has_gone_or_has_no_time,
	a_node_gets_less_time_than_the_caller_has_and_only_what_it_needs,
	a_second_call_for_the_name_is_aborted, requests_that_can_never_succeed_reach_no_node)
