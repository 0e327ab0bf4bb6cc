/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes without a lease time. */
#include "nodes/registry_private.h"
#include "unit/nodes/registry_rig.h"

#define A "tcp://192.0.2.1:10001"
#define B "tcp://192.0.2.2:10001"

static struct rig rig;

static void answer_one_volume(const char *id)
{
	rig_answer_volumes(&rig, id, "name", "pvc-1", "");
	rig_answer_capacity(&rig, 1 << 30);
}

static void register_go(void)
{
	struct rig_call *call = rig_register(&rig, "go", A, /* is_go= */ true);

	rig_until_called(&rig, 1);
	answer_one_volume("vol-1");
	rig_done(&rig, call, 0, "");
}

static size_t count_named(const char *name)
{
	struct node_hit *hits;
	size_t n = node_table_find_name(rig.table, name, &hits);

	free(hits);
	return n;
}

START_TEST(it_is_known_once_it_has_listed_its_volumes)
{
	struct rig_call *call;
	const struct node_report *r;

	rig_open(&rig);
	call = rig_register(&rig, "go", A, /* is_go= */ true);
	rig_until_called(&rig, 1);
	ck_assert_str_eq(rig.calls[0].token, "");
	rig_answer_volumes(&rig, "vol-1", "name", "pvc-1", "next");
	ck_assert_str_eq(rig.calls[0].token, "next");
	/* as releases before 0.7 have it */
	rig_answer_volumes(&rig, "vol-2", "Name", "pvc-2", "");
	ck_assert(!rig_is_live(&rig, "go"));
	rig_answer_capacity(&rig, 12345);
	rig_done(&rig, call, 0, "");
	r = &node_table_get(rig.table, "go")->report;
	ck_assert(r->has_inventory);
	ck_assert_uint_eq(count_named("pvc-1"), 1);
	ck_assert_uint_eq(count_named("pvc-2"), 1);
	ck_assert(r->volumes[0].ever_staged && !r->volumes[0].made_by_controller);
	ck_assert_uint_eq(r->pools[0].capacity.available_bytes, 12345);
	ck_assert_uint_eq(r->pools[0].capacity.max_volume_bytes, 12345);
	/* registers again after a loss of its connection */
	rig_done(&rig, rig_register(&rig, "go", A, /* is_go= */ true), 0, "");
	ck_assert_uint_eq(count_named("pvc-1"), 1);
	rig_close(&rig);
}
END_TEST

START_TEST(a_node_that_cannot_list_is_not_registered)
{
	struct rig_call *call;

	rig_open(&rig);
	call = rig_register(&rig, "go", A, /* is_go= */ true);
	rig_until_called(&rig, 1);
	rig_answer(&rig, NULL, ERR_UNAVAILABLE);
	rig_done(&rig, call, ERR_UNAVAILABLE, "asked for its volumes");
	ck_assert_ptr_null(node_table_get(rig.table, "go"));
	rig_close(&rig);
}
END_TEST

START_TEST(a_list_without_end_is_refused)
{
	struct rig_call *call;

	rig_open(&rig);
	call = rig_register(&rig, "go", A, /* is_go= */ true);
	rig_until_called(&rig, 1);
	rig_answer_volumes(&rig, "vol-1", "name", "pvc-1", "same");
	rig_answer_volumes(&rig, "vol-2", "name", "pvc-2", "same");
	rig_done(&rig, call, ERR_INVALID_ARGUMENT, "does not end");
	rig_close(&rig);
}
END_TEST

START_TEST(it_is_asked_again_and_again)
{
	rig_open(&rig);
	register_go();
	rig_tick(&rig, 29);
	ck_assert_uint_eq(rig.n_calls, 0);
	rig_tick(&rig, 1);
	rig_tick(&rig, 60);
	ck_assert_uint_eq(rig.n_calls, 1);
	rig_answer_volumes(&rig, "vol-9", "name", "pvc-9", "");
	rig_answer_capacity(&rig, 99);
	ck_assert(rig_is_live(&rig, "go"));
	ck_assert_uint_eq(count_named("pvc-1"), 0);
	ck_assert_uint_eq(count_named("pvc-9"), 1);
	ck_assert_uint_eq(node_table_get(rig.table, "go")->report.pools[0].capacity.available_bytes, 99);
	rig_close(&rig);
}
END_TEST

START_TEST(three_failures_in_turn_end_it)
{
	rig_open(&rig);
	register_go();
	for (int i = 0; i < 5; i++) {
		rig_tick(&rig, 30);
		/* the third one succeeds */
		if (i == 2)
			answer_one_volume("vol-1");
		else
			rig_answer(&rig, NULL, ERR_UNAVAILABLE);
		ck_assert(rig_is_live(&rig, "go"));
	}
	rig_tick(&rig, 30);
	rig_answer(&rig, NULL, ERR_UNAVAILABLE);
	ck_assert(!rig_is_live(&rig, "go"));
	rig_tick(&rig, 30);
	ck_assert_uint_eq(rig.n_calls, 0);
	register_go();
	ck_assert(rig_is_live(&rig, "go"));
	rig_close(&rig);
}
END_TEST

START_TEST(a_driver_of_ours_takes_over_and_is_not_asked)
{
	rig_open(&rig);
	register_go();
	rig_tick(&rig, 30);
	rig_done(&rig, rig_register(&rig, "go", A, /* is_go= */ false), 0, "");
	/* what the Go driver said comes late */
	answer_one_volume("vol-1");
	ck_assert_uint_eq(node_table_get(rig.table, "go")->report.n_volumes, 0);
	rig_tick(&rig, 60);
	ck_assert_uint_eq(rig.n_calls, 0);
	rig_tick(&rig, 30);
	ck_assert(!rig_is_live(&rig, "go"));
	rig_close(&rig);
}
END_TEST

START_TEST(it_moves_as_others_do_and_is_asked_there)
{
	struct rig_call *call;

	rig_open(&rig);
	register_go();
	call = rig_register(&rig, "go", B, /* is_go= */ true);
	rig_until_called(&rig, 1);
	ck_assert_str_eq(rig.calls[0].endpoint, A);
	rig_answer(&rig, NULL, ERR_DEADLINE);
	ck_assert_str_eq(rig.calls[0].endpoint, B);
	answer_one_volume("vol-1");
	rig_done(&rig, call, 0, "");
	rig_tick(&rig, 30);
	ck_assert_uint_eq(rig.n_calls, 1);
	ck_assert_str_eq(rig.calls[0].endpoint, B);
	answer_one_volume("vol-1");
	rig_close(&rig);
}
END_TEST

UNIT_MAIN("registry go", it_is_known_once_it_has_listed_its_volumes,
	a_node_that_cannot_list_is_not_registered, a_list_without_end_is_refused, it_is_asked_again_and_again,
	three_failures_in_turn_end_it, a_driver_of_ours_takes_over_and_is_not_asked,
	it_moves_as_others_do_and_is_asked_there)
