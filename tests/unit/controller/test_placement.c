/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "base/mem.h"
#include "controller/placement.h"
#include "unit/nodes/reports.h"
#include "unit/unit.h"

#define GIB (1ULL << 30)

static const char *next(struct candidate *list, size_t n)
{
	struct candidate *c = placement_next(list, n);

	if (!c)
		return NULL;
	c->claim = PLACEMENT_ASKED;
	return c->node_id;
}

START_TEST(what_a_node_has_or_may_have_counts_before_all_else)
{
	struct candidate list[] = {
		{.node_id = "full", .claim = PLACEMENT_DOUBTFUL, .turn = 0},
		{.node_id = "room", .claim = PLACEMENT_ROOM, .turn = 1},
		{.node_id = "begun", .claim = PLACEMENT_BEGUN, .turn = 2},
		{.node_id = "has", .claim = PLACEMENT_HAS, .turn = 3},
		{.node_id = "used", .claim = PLACEMENT_IN_USE, .turn = 4},
	};
	static const char *const order[] = {"used", "has", "begun", "room", "full"};

	for (size_t i = 0; i < ARRAY_SIZE(order); i++)
		ck_assert_str_eq(next(list, ARRAY_SIZE(list)), order[i]);
	ck_assert_ptr_null(next(list, ARRAY_SIZE(list)));
}
END_TEST

START_TEST(the_emptiest_comes_first_and_equal_ones_take_turns)
{
	struct candidate list[] = {
		{.node_id = "b", .claim = PLACEMENT_ROOM, .max_volume_bytes = 2, .turn = 9},
		{.node_id = "c", .claim = PLACEMENT_ROOM, .max_volume_bytes = 1, .turn = 1},
		{.node_id = "a", .claim = PLACEMENT_ROOM, .max_volume_bytes = 2, .turn = 3},
	};

	ck_assert_str_eq(next(list, ARRAY_SIZE(list)), "a");
	ck_assert_str_eq(next(list, ARRAY_SIZE(list)), "b");
	ck_assert_str_eq(next(list, ARRAY_SIZE(list)), "c");
}
END_TEST

START_TEST(what_was_made_since_the_report_is_not_room)
{
	struct node_table *t = node_table_new();
	const struct volume_report made = {.id = (char[]){"v"}, .name = (char[]){"n"}, .size_bytes = 3 * GIB};

	node_table_put(t, report_new("n1"), NS_PER_S);
	const struct node *node = node_table_get(t, "n1");
	ck_assert_uint_eq(placement_max_volume_bytes(node, /* sector= */ false, /* sync= */ false), 4 * GIB);
	ck_assert_uint_eq(placement_max_volume_bytes(node, /* sector= */ true, /* sync= */ false), 3 * GIB);
	node_table_note_created(t, "n1", &made, NS_PER_S);
	ck_assert_uint_eq(placement_max_volume_bytes(node, /* sector= */ false, /* sync= */ false), GIB);
	ck_assert_uint_eq(placement_max_volume_bytes(node, /* sector= */ true, /* sync= */ false), 0);
	node_table_free(t);
}
END_TEST

START_TEST(only_the_growth_of_a_reported_volume_is_not_room)
{
	struct node_table *t = node_table_new();
	struct node_report *r = report_new("n1");

	report_add_volume(r, "v", "n")->size_bytes = 2 * GIB;
	node_table_put(t, r, NS_PER_S);
	const struct node *node = node_table_get(t, "n1");
	node_table_note_grown(t, "n1", "v", 3 * GIB, NS_PER_S);
	ck_assert_uint_eq(placement_max_volume_bytes(node, /* sector= */ false, /* sync= */ false), 3 * GIB);
	/* a report that shows a part of the growth */
	r = report_new("n1");
	report_add_volume(r, "v", "n")->size_bytes = 2 * GIB + GIB / 2;
	node_table_put(t, r, 2 * NS_PER_S);
	ck_assert_uint_eq(
		placement_max_volume_bytes(node, /* sector= */ false, /* sync= */ false), 3 * GIB + GIB / 2);
	node_table_free(t);
}
END_TEST

START_TEST(volumes_spread_over_equal_nodes)
{
	struct node_table *t = node_table_new();
	unsigned taken[8] = {0};

	for (char i = 0; i < 8; i++)
		node_table_put(t, report_new((char[]){'n', (char)('0' + i), '\0'}), 1);
	for (unsigned v = 0; v < 4000; v++) {
		const struct node *const *nodes;
		size_t n = node_table_nodes(t, &nodes);
		size_t best = 0;
		CLEANUP(free_charp) char *key = x_asprintf("%047x", v * 2654435761u);
		uint64_t seed = placement_seed(key);

		for (size_t i = 1; i < n; i++) {
			if (placement_turn(seed, nodes[i]) < placement_turn(seed, nodes[best]))
				best = i;
		}
		taken[best]++;
	}
	for (size_t i = 0; i < ARRAY_SIZE(taken); i++)
		ck_assert_msg(taken[i] > 300 && taken[i] < 800, "node %zu got %u", i, taken[i]);
	node_table_free(t);
}
END_TEST

UNIT_MAIN("controller/placement", what_a_node_has_or_may_have_counts_before_all_else,
	the_emptiest_comes_first_and_equal_ones_take_turns, what_was_made_since_the_report_is_not_room,
	only_the_growth_of_a_reported_volume_is_not_room, volumes_spread_over_equal_nodes)
