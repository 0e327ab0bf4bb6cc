/* SPDX-License-Identifier: Apache-2.0 */
#include "base/mem.h"
#include "base/str.h"
#include "pmem/namespace_layout.h"
#include "scheduler/sched_nodes.h"
#include "unit/scheduler/pmem_nodes.h"
#include "unit/unit.h"

#define MIB(n) ((uint64_t)(n) << 20)
#define GIB(n) ((uint64_t)(n) << 30)

static struct sched_nodes *nodes;

static void set_up(void)
{
	nodes = sched_nodes_new();
}

static void tear_down(void)
{
	sched_nodes_free(nodes);
}

static const struct sched_node *get(const char *name)
{
	return sched_nodes_get(nodes, span_of(name));
}

/* Takes @n. */
static void put(struct pmem_node *n)
{
	sched_nodes_put(nodes, n);
	pmem_node_free(n);
}

START_TEST(node_is_found_by_bytes_of_its_name)
{
	put(pmem_node_new("node-1"));
	ck_assert_str_eq(get("node-1")->name, "node-1");
	ck_assert_ptr_null(get("node-"));
	ck_assert_ptr_null(get("node-11"));
	ck_assert_ptr_nonnull(sched_nodes_get(nodes, (struct span){(const uint8_t *)"node-11", 6}));
}
END_TEST

START_TEST(node_that_is_not_ready_is_stale)
{
	static const char *const others[] = {"Unknown", "False"};
	struct pmem_node *n = pmem_node_new("a");

	put(pmem_node_new("a"));
	ck_assert(!get("a")->stale);
	pmem_conditions_done(&n->conditions);
	put(n);
	ck_assert(get("a")->stale);
	for (size_t i = 0; i < ARRAY_SIZE(others); i++) {
		put(pmem_node_new("a"));
		ck_assert(!get("a")->stale);
		n = pmem_node_new("a");
		pmem_node_set_ready(n, others[i]);
		put(n);
		ck_assert(get("a")->stale);
	}
}
END_TEST

START_TEST(index_of_a_node_that_is_removed_is_used_again)
{
	size_t index;

	put(pmem_node_new("a"));
	put(pmem_node_new("b"));
	index = get("a")->index;
	sched_nodes_remove(nodes, "unknown");
	sched_nodes_remove(nodes, "a");
	ck_assert_ptr_null(get("a"));
	ck_assert_ptr_null(sched_nodes_at(nodes, index));
	put(pmem_node_new("c"));
	ck_assert_uint_eq(get("c")->index, index);
	ck_assert_ptr_eq(sched_nodes_at(nodes, index), get("c"));
	ck_assert_uint_ne(get("b")->index, index);
}
END_TEST

START_TEST(extents_are_those_that_are_shown)
{
	struct pmem_node *n = pmem_node_new("a");

	strv_add(&n->regions[0].free_extents, "4294967296");
	strv_add(&n->regions[0].free_extents, "many");
	strv_add(&n->regions[0].free_extents, "1048576");
	pmem_node_set_region(n, 1, 2);
	n->report = 7;
	put(n);
	ck_assert_uint_eq(get("a")->report, 7);
	ck_assert_uint_eq(get("a")->n_extents, 3);
	ck_assert_uint_eq(get("a")->extents[0].bytes, GIB(4));
	ck_assert_uint_eq(get("a")->extents[1].bytes, MIB(1));
	ck_assert_uint_eq(get("a")->extents[2].bytes, GIB(2));
	ck_assert_uint_eq(get("a")->extents[2].pool, 1);
	ck_assert_str_eq(get("a")->pool_names[1], "region1");
}
END_TEST

START_TEST(region_without_extents_is_one_piece_of_its_largest_volume)
{
	put(pmem_node_new("a"));
	ck_assert_uint_eq(get("a")->n_extents, 1);
	ck_assert_uint_eq(get("a")->extents[0].bytes, GIB(4));
	ck_assert_uint_eq(
		sched_node_raw_bytes(get("a"), 0, &(struct sched_item){GIB(4), false, false}), GIB(4));
	ck_assert_uint_eq(sched_node_raw_bytes(get("a"), 0, &(struct sched_item){GIB(4) + 1, false, false}),
		UINT64_MAX);
	ck_assert_uint_eq(
		sched_node_raw_bytes(get("a"), 0, &(struct sched_item){GIB(3), true, false}), GIB(3));
	ck_assert_uint_eq(
		sched_node_raw_bytes(get("a"), 0, &(struct sched_item){GIB(3) + 1, true, false}), UINT64_MAX);
}
END_TEST

START_TEST(size_is_rounded_to_the_unit_of_the_region)
{
	struct pmem_node *n = pmem_node_new("a");

	n->regions[0].unit_bytes = MIB(4);
	put(n);
	ck_assert_uint_eq(
		sched_node_raw_bytes(get("a"), 0, &(struct sched_item){MIB(4) + 1, false, false}), MIB(8));
	ck_assert_uint_eq(sched_node_raw_bytes(get("a"), 0, &(struct sched_item){0, false, false}), MIB(4));
}
END_TEST

START_TEST(namespace_takes_its_page_map_or_arena_too)
{
	const struct layout_rules rules = {MIB(16), MIB(2), 4096};
	struct pmem_node *n = pmem_node_new("a");

	free(n->device_mode);
	n->device_mode = x_strdup("direct");
	n->regions[0].unit_bytes = rules.unit_bytes;
	n->regions[0].map_align_bytes = rules.map_align_bytes;
	n->regions[0].btt_start_bytes = rules.btt_start_bytes;
	put(n);
	ck_assert_uint_eq(sched_node_raw_bytes(get("a"), 0, &(struct sched_item){GIB(1), false, false}),
		layout_raw_bytes(&rules, false, GIB(1)));
	ck_assert_uint_gt(
		sched_node_raw_bytes(get("a"), 0, &(struct sched_item){GIB(1), false, false}), GIB(1));
	ck_assert_uint_eq(sched_node_raw_bytes(get("a"), 0, &(struct sched_item){GIB(1), true, false}),
		layout_raw_bytes(&rules, true, GIB(1)));
	ck_assert_uint_ge(get("a")->extents[0].bytes, layout_raw_bytes(&rules, false, GIB(4)));
}
END_TEST

START_TEST(numbers_that_no_region_has_are_no_room)
{
	struct pmem_node *n = pmem_node_new("a");

	free(n->device_mode);
	n->device_mode = x_strdup("direct");
	n->regions[0].unit_bytes = MIB(2);
	n->regions[0].map_align_bytes = 1ULL << 62;
	put(n);
	ck_assert_uint_eq(get("a")->n_extents, 0);
	ck_assert_uint_eq(
		sched_node_raw_bytes(get("a"), 0, &(struct sched_item){GIB(1), false, false}), UINT64_MAX);
	n = pmem_node_new("b");
	n->regions[0].max_volume_bytes = UINT64_MAX;
	put(n);
	ck_assert_uint_eq(get("b")->n_extents, 0);
}
END_TEST

START_TEST(memory_without_map_sync_takes_what_does_without)
{
	const struct sched_item sync = {GIB(1), false, true}, other = {GIB(1), false, false};
	struct pmem_node *n = pmem_node_new("a");

	n->regions[0].durability = x_strdup("fsync");
	put(n);
	ck_assert_uint_eq(sched_node_raw_bytes(get("a"), 0, &sync), UINT64_MAX);
	ck_assert_uint_eq(sched_node_raw_bytes(get("a"), 0, &other), GIB(1));
	ck_assert(!get("a")->differs_in_sync);
	n = pmem_node_new("a");
	n->regions[0].durability = x_strdup("fsync");
	pmem_node_set_region(n, 1, 8)->durability = x_strdup("synchronous");
	put(n);
	ck_assert_uint_eq(sched_node_raw_bytes(get("a"), 0, &sync), UINT64_MAX);
	ck_assert_uint_eq(sched_node_raw_bytes(get("a"), 1, &sync), GIB(1));
	ck_assert(get("a")->differs_in_sync);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("sched_nodes");
	TCase *tcase = tcase_create("sched_nodes");

	tcase_add_checked_fixture(tcase, set_up, tear_down);
	tcase_add_test(tcase, node_is_found_by_bytes_of_its_name);
	tcase_add_test(tcase, node_that_is_not_ready_is_stale);
	tcase_add_test(tcase, index_of_a_node_that_is_removed_is_used_again);
	tcase_add_test(tcase, extents_are_those_that_are_shown);
	tcase_add_test(tcase, region_without_extents_is_one_piece_of_its_largest_volume);
	tcase_add_test(tcase, size_is_rounded_to_the_unit_of_the_region);
	tcase_add_test(tcase, namespace_takes_its_page_map_or_arena_too);
	tcase_add_test(tcase, numbers_that_no_region_has_are_no_room);
	tcase_add_test(tcase, memory_without_map_sync_takes_what_does_without);
	suite_add_tcase(suite, tcase);
	return unit_runner_finish(srunner_create(suite));
}
