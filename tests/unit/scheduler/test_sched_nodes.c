/* SPDX-License-Identifier: Apache-2.0 */
#include "base/mem.h"
#include "base/str.h"
#include "pmem/layout.h"
#include "scheduler/sched_nodes.h"
#include "unit/nodes/reports.h"
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

START_TEST(node_is_found_by_bytes_of_its_name)
{
	sched_nodes_put(nodes, report_new("node-1"));
	ck_assert_ptr_nonnull(get("node-1"));
	ck_assert_ptr_null(get("node-"));
	ck_assert_ptr_null(get("node-11"));
	ck_assert_ptr_nonnull(sched_nodes_get(nodes, (struct span){(const uint8_t *)"node-11", 6}));
}
END_TEST

START_TEST(node_whose_lease_ended_stays_as_stale_until_it_is_back)
{
	sched_nodes_put(nodes, report_new("a"));
	sched_nodes_end(nodes, "a");
	sched_nodes_end(nodes, "unknown");
	ck_assert(get("a")->stale);
	sched_nodes_put(nodes, report_new("a"));
	ck_assert(!get("a")->stale);
}
END_TEST

START_TEST(node_that_stays_stale_is_forgotten)
{
	sched_nodes_put(nodes, report_new("a"));
	sched_nodes_put(nodes, report_new("b"));
	sched_nodes_end(nodes, "b");
	sched_nodes_sweep(nodes);
	ck_assert_ptr_nonnull(get("b"));
	sched_nodes_put(nodes, report_new("b"));
	sched_nodes_end(nodes, "b");
	sched_nodes_sweep(nodes);
	ck_assert_ptr_nonnull(get("b"));
	sched_nodes_sweep(nodes);
	ck_assert_ptr_null(get("b"));
	ck_assert(!get("a")->stale);
}
END_TEST

START_TEST(new_table_makes_the_others_stale_and_forgets_who_was)
{
	sched_nodes_put(nodes, report_new("a"));
	sched_nodes_put(nodes, report_new("b"));
	sched_nodes_put(nodes, report_new("c"));
	sched_nodes_end(nodes, "c");
	sched_nodes_begin_table(nodes);
	sched_nodes_put(nodes, report_new("a"));
	sched_nodes_end_table(nodes);
	ck_assert(!get("a")->stale);
	ck_assert(get("b")->stale);
	ck_assert_ptr_null(get("c"));
}
END_TEST

START_TEST(index_of_a_forgotten_node_is_used_again)
{
	size_t index;

	sched_nodes_put(nodes, report_new("a"));
	sched_nodes_put(nodes, report_new("b"));
	index = get("a")->index;
	sched_nodes_end(nodes, "a");
	sched_nodes_begin_table(nodes);
	sched_nodes_end_table(nodes);
	ck_assert_ptr_null(get("a"));
	sched_nodes_put(nodes, report_new("c"));
	ck_assert_uint_eq(get("c")->index, index);
	ck_assert_ptr_eq(sched_nodes_at(nodes, index), get("c"));
	ck_assert_uint_ne(get("b")->index, index);
}
END_TEST

START_TEST(volume_is_found_on_its_node_only)
{
	struct node_report *a = report_new("a");

	report_add_volume(a, "pvc-1-id", "pvc-1");
	report_add_volume(a, "pvc-2-id", "pvc-2")->phase = PHASE_ERASING;
	sched_nodes_put(nodes, a);
	sched_nodes_put(nodes, report_new("b"));
	ck_assert_ptr_nonnull(sched_node_volume(nodes, get("a"), "pvc-1"));
	ck_assert_ptr_null(sched_node_volume(nodes, get("b"), "pvc-1"));
	ck_assert_ptr_null(sched_node_volume(nodes, get("a"), "pvc-2"));
	ck_assert(sched_nodes_have_volume(nodes, "pvc-1"));
	sched_nodes_put(nodes, report_new("a"));
	ck_assert(!sched_nodes_have_volume(nodes, "pvc-1"));
}
END_TEST

START_TEST(region_without_extents_is_one_piece_of_its_largest_volume)
{
	sched_nodes_put(nodes, report_new("a"));
	ck_assert_uint_eq(get("a")->n_bins, 1);
	ck_assert_uint_eq(get("a")->bins[0].bytes, GIB(4));
	ck_assert_uint_eq(sched_node_raw_bytes(get("a"), 0, GIB(4), false), GIB(4));
	ck_assert_uint_eq(sched_node_raw_bytes(get("a"), 0, GIB(4) + 1, false), UINT64_MAX);
	ck_assert_uint_eq(sched_node_raw_bytes(get("a"), 0, GIB(3), true), GIB(3));
	ck_assert_uint_eq(sched_node_raw_bytes(get("a"), 0, GIB(3) + 1, true), UINT64_MAX);
}
END_TEST

START_TEST(size_is_rounded_to_the_unit_of_the_region)
{
	struct node_report *r = report_new("a");

	r->pools[0].rules.unit_bytes = MIB(4);
	sched_nodes_put(nodes, r);
	ck_assert_uint_eq(sched_node_raw_bytes(get("a"), 0, MIB(4) + 1, false), MIB(8));
	ck_assert_uint_eq(sched_node_raw_bytes(get("a"), 0, 0, false), MIB(4));
}
END_TEST

START_TEST(namespace_takes_its_page_map_or_arena_too)
{
	const struct layout_rules rules = {MIB(16), MIB(2), 4096};
	struct node_report *r = report_new("a");

	free(r->device_mode);
	r->device_mode = x_strdup("direct");
	r->pools[0].rules.unit_bytes = rules.unit_bytes;
	r->pools[0].rules.map_align_bytes = rules.map_align_bytes;
	r->pools[0].rules.btt_start_bytes = rules.btt_start_bytes;
	sched_nodes_put(nodes, r);
	ck_assert_uint_eq(
		sched_node_raw_bytes(get("a"), 0, GIB(1), false), layout_raw_bytes(&rules, false, GIB(1)));
	ck_assert_uint_gt(sched_node_raw_bytes(get("a"), 0, GIB(1), false), GIB(1));
	ck_assert_uint_eq(
		sched_node_raw_bytes(get("a"), 0, GIB(1), true), layout_raw_bytes(&rules, true, GIB(1)));
	ck_assert_uint_ge(get("a")->bins[0].bytes, layout_raw_bytes(&rules, false, GIB(4)));
}
END_TEST

START_TEST(numbers_that_no_region_has_are_no_room)
{
	struct node_report *r = report_new("a");

	free(r->device_mode);
	r->device_mode = x_strdup("direct");
	r->pools[0].rules.unit_bytes = MIB(2);
	r->pools[0].rules.map_align_bytes = 1ULL << 62;
	sched_nodes_put(nodes, r);
	ck_assert_uint_eq(get("a")->n_bins, 0);
	ck_assert_uint_eq(sched_node_raw_bytes(get("a"), 0, GIB(1), false), UINT64_MAX);
	r = report_new("b");
	r->pools[0].capacity.max_volume_bytes = UINT64_MAX;
	sched_nodes_put(nodes, r);
	ck_assert_uint_eq(get("b")->n_bins, 0);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("sched_nodes");
	TCase *tcase = tcase_create("sched_nodes");

	tcase_add_checked_fixture(tcase, set_up, tear_down);
	tcase_add_test(tcase, node_is_found_by_bytes_of_its_name);
	tcase_add_test(tcase, node_whose_lease_ended_stays_as_stale_until_it_is_back);
	tcase_add_test(tcase, node_that_stays_stale_is_forgotten);
	tcase_add_test(tcase, new_table_makes_the_others_stale_and_forgets_who_was);
	tcase_add_test(tcase, index_of_a_forgotten_node_is_used_again);
	tcase_add_test(tcase, volume_is_found_on_its_node_only);
	tcase_add_test(tcase, region_without_extents_is_one_piece_of_its_largest_volume);
	tcase_add_test(tcase, size_is_rounded_to_the_unit_of_the_region);
	tcase_add_test(tcase, namespace_takes_its_page_map_or_arena_too);
	tcase_add_test(tcase, numbers_that_no_region_has_are_no_room);
	suite_add_tcase(suite, tcase);
	return unit_runner_finish(srunner_create(suite));
}
