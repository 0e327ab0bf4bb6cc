/* SPDX-License-Identifier: Apache-2.0 */
/* WatchNodes. */
#include <stdio.h>

#include "base/mem.h"
#include "nodes/registry_private.h"
#include "unit/nodes/registry_rig.h"
#include "unit/nodes/reports.h"
#include "volume/id.h"

#define A "tcp://192.0.2.1:10001"

static struct rig rig;

static void put(const char *id)
{
	node_table_put(rig.table, report_new(id), rig.now_ns);
}

/* Until @generation is the table's; @call is freed. Return: to be freed. */
static struct rig_call *next(struct rig_call *call)
{
	struct rig_call *after = rig_watch(&rig, call->watched, 0);

	ck_assert_int_eq(rig_end(&rig, after), 0);
	rig_call_free(call);
	return after;
}

static struct rig_call *first(void)
{
	struct rig_call *call = rig_watch(&rig, NULL, 60000);

	ck_assert_int_eq(rig_end(&rig, call), 0);
	return call;
}

START_TEST(the_first_call_gets_the_live_nodes)
{
	struct node_report *r;
	struct rig_call *call;

	rig_open(&rig);
	r = report_new("a");
	report_add_volume(r, "v", "n");
	node_table_put(rig.table, r, 0);
	put("b");
	node_table_end(rig.table, "b");
	call = first();
	ck_assert_uint_eq(call->watched->generation, 3);
	ck_assert_uint_eq(call->watched->n_changed, 1);
	ck_assert_uint_eq(call->watched->n_removed_node_ids, 0);
	ck_assert_str_eq(call->watched->changed[0]->node_id, "a");
	ck_assert_str_eq(call->watched->changed[0]->device_mode, "fake");
	ck_assert_uint_eq(call->watched->changed[0]->regions[0]->available_bytes, 8ULL << 30);
	ck_assert_str_eq(call->watched->changed[0]->inventory->volumes[0]->name, "n");
	rig_call_free(call);
	rig_close(&rig);
}
END_TEST

START_TEST(an_empty_table_is_told_of_at_once)
{
	struct rig_call *call;

	rig_open(&rig);
	call = first();
	ck_assert_str_ne(call->watched->instance, "");
	ck_assert_uint_eq(call->watched->n_changed, 0);
	rig_call_free(call);
	rig_close(&rig);
}
END_TEST

START_TEST(a_call_waits_for_a_change)
{
	struct rig_call *before;
	struct rig_call *call;

	rig_open(&rig);
	put("a");
	before = first();
	call = rig_watch(&rig, before->watched, 60000);
	rig_rounds(&rig);
	ck_assert(!call->done);
	put("b");
	node_table_end(rig.table, "a");
	ck_assert_int_eq(rig_end(&rig, call), 0);
	ck_assert_uint_eq(call->watched->n_changed, 1);
	ck_assert_str_eq(call->watched->changed[0]->node_id, "b");
	ck_assert_uint_eq(call->watched->n_removed_node_ids, 1);
	ck_assert_str_eq(call->watched->removed_node_ids[0], "a");
	rig_call_free(before);
	rig_call_free(call);
	rig_close(&rig);
}
END_TEST

START_TEST(without_a_change_the_answer_is_empty_and_in_time)
{
	struct rig_call *before;
	struct rig_call *call;

	rig_open(&rig);
	put("a");
	before = first();
	call = rig_watch(&rig, before->watched, 3600000);
	rig_rounds(&rig);
	rig_tick(&rig, 59);
	rig_rounds(&rig);
	ck_assert(!call->done);
	rig_tick(&rig, 1);
	ck_assert_int_eq(rig_end(&rig, call), 0);
	ck_assert_uint_eq(call->watched->n_changed, 0);
	ck_assert_uint_eq(call->watched->generation, before->watched->generation);
	rig_call_free(before);
	rig_call_free(call);
	rig_close(&rig);
}
END_TEST

START_TEST(a_forgotten_node_starts_a_new_table)
{
	struct rig_call *call;

	rig_open(&rig);
	put("a");
	put("b");
	call = first();
	node_table_forget(rig.table, "b");
	CLEANUP(free_charp) char *old = x_strdup(call->watched->instance);
	call = next(call);
	ck_assert_str_ne(call->watched->instance, old);
	ck_assert_uint_eq(call->watched->n_changed, 1);
	rig_call_free(call);
	rig_close(&rig);
}
END_TEST

START_TEST(a_big_table_comes_in_several_replies)
{
	unsigned replies = 1;
	size_t nodes;
	struct rig_call *call;

	rig_open(&rig);
	for (int i = 0; i < 300; i++) {
		char id[16];
		struct node_report *r;

		snprintf(id, sizeof(id), "node-%d", i);
		r = report_new(id);
		for (int k = 0; k < 100; k++)
			report_add_volume(r, "0123456789012345678901234567890123456789012345678901234567890",
				"01234567890123456789012345678901234567890123");
		node_table_put(rig.table, r, 0);
	}
	call = first();
	nodes = call->watched->n_changed;
	while (call->watched->generation < 300) {
		ck_assert_uint_lt(registry__v0__watch_nodes_reply__get_packed_size(call->watched),
			REGISTRY_WATCH_BYTES + 128);
		call = next(call);
		nodes += call->watched->n_changed;
		replies++;
	}
	ck_assert_uint_eq(nodes, 300);
	ck_assert_uint_gt(replies, 2);
	ck_assert_uint_lt(replies, 6);
	rig_call_free(call);
	rig_close(&rig);
}
END_TEST

/* As large as a registration may make it. */
static void put_largest(const char *id)
{
	struct node_report *r = report_new(id);
	char volume[VOLUME_HANDLE_MAX + 1];
	char name[VOLUME_NAME_MAX + 1];

	for (int i = 0; i < REGISTRY_MAX_VOLUMES; i++) {
		snprintf(volume, sizeof(volume), "%0*d", VOLUME_HANDLE_MAX, i);
		snprintf(name, sizeof(name), "%0*d", VOLUME_NAME_MAX, i);
		struct volume_report *v = report_add_volume(r, volume, name);
		v->size_bytes = UINT64_MAX;
		v->ever_staged = v->made_by_controller = true;
	}
	node_table_put(rig.table, r, 0);
}

START_TEST(a_node_that_is_too_large_for_others_beside_it_comes_alone)
{
	struct rig_call *call;

	rig_open(&rig);
	put("a");
	put_largest("b");
	put_largest("c");
	call = first();
	ck_assert_uint_eq(call->watched->n_changed, 1);
	ck_assert_str_eq(call->watched->changed[0]->node_id, "a");
	ck_assert_uint_eq(call->watched->generation, 1);
	call = next(call);
	ck_assert_uint_eq(call->watched->n_changed, 1);
	ck_assert_str_eq(call->watched->changed[0]->node_id, "b");
	call = next(call);
	ck_assert_uint_eq(call->watched->n_changed, 1);
	ck_assert_str_eq(call->watched->changed[0]->node_id, "c");
	ck_assert_uint_eq(call->watched->generation, 3);
	rig_call_free(call);
	rig_close(&rig);
}
END_TEST

START_TEST(the_number_of_watchers_is_limited)
{
	struct rig_call *calls[REGISTRY_MAX_WATCHERS];
	struct rig_call *before;

	rig_open(&rig);
	before = first();
	for (size_t i = 0; i < ARRAY_SIZE(calls); i++)
		calls[i] = rig_watch(&rig, before->watched, 60000);
	rig_done(&rig, rig_watch(&rig, before->watched, 60000), ERR_UNAVAILABLE, "limit of 16 watches");
	registry_stop(rig.registry);
	for (size_t i = 0; i < ARRAY_SIZE(calls); i++)
		rig_done(&rig, calls[i], 0, "");
	rig_call_free(before);
	rig_close(&rig);
}
END_TEST

UNIT_MAIN("registry watch", the_first_call_gets_the_live_nodes, an_empty_table_is_told_of_at_once,
	a_call_waits_for_a_change, without_a_change_the_answer_is_empty_and_in_time,
	a_forgotten_node_starts_a_new_table, a_big_table_comes_in_several_replies,
	a_node_that_is_too_large_for_others_beside_it_comes_alone, the_number_of_watchers_is_limited)
