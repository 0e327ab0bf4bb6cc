/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "base/mem.h"
#include "nodes/node_table.h"
#include "unit/nodes/reports.h"
#include "unit/unit.h"

static void free_hits(struct node_hit **hits)
{
	free(*hits);
}

static void free_nodes(const struct node ***nodes)
{
	free(*nodes);
}

static unsigned told;
static bool told_live;

static void on_change(void *user, const struct node *node)
{
	(void)user;
	told++;
	told_live = node->live;
}

static void put(struct node_table *t, const char *id)
{
	node_table_put(t, report_new(id), 0);
}

static size_t count_name(const struct node_table *t, const char *name)
{
	CLEANUP(free_hits) struct node_hit *hits = NULL;

	return node_table_find_name(t, name, &hits);
}

START_TEST(nodes_are_sorted_and_found_by_id_and_hash)
{
	CLEANUP(node_table_freep) struct node_table *t = node_table_new();
	const struct node *const *nodes;
	CLEANUP(free_nodes) const struct node **hit = NULL;

	put(t, "c");
	put(t, "a");
	put(t, "b");
	put(t, "a");
	ck_assert_uint_eq(node_table_nodes(t, &nodes), 3);
	ck_assert_str_eq(nodes[0]->report.node_id, "a");
	ck_assert_str_eq(nodes[2]->report.node_id, "c");
	ck_assert_ptr_eq(node_table_get(t, "b"), nodes[1]);
	ck_assert_ptr_null(node_table_get(t, "d"));
	/* printf b | sha224sum */
	ck_assert_str_eq(nodes[1]->hash, "c681e18b");
	ck_assert_uint_eq(node_table_find_hash(t, "c681e18b", &hit), 1);
	ck_assert_ptr_eq(hit[0], nodes[1]);
}
END_TEST

START_TEST(a_lease_ends_in_time_and_the_node_is_still_known)
{
	CLEANUP(node_table_freep) struct node_table *t = node_table_new();

	node_table_put(t, report_new("a"), 5 * NS_PER_S);
	node_table_expire(t, 94 * NS_PER_S);
	ck_assert(node_table_get(t, "a")->live);
	node_table_put(t, report_new("a"), 94 * NS_PER_S);
	node_table_expire(t, 95 * NS_PER_S);
	ck_assert(node_table_get(t, "a")->live);
	node_table_expire(t, 184 * NS_PER_S);
	ck_assert(!node_table_get(t, "a")->live);
}
END_TEST

START_TEST(a_lease_without_a_time_has_no_end)
{
	CLEANUP(node_table_freep) struct node_table *t = node_table_new();
	struct node_report *r = report_new("go");

	r->lease_ms = 0;
	node_table_put(t, r, 0);
	node_table_expire(t, DEADLINE_NONE - 1);
	ck_assert(node_table_get(t, "go")->live);
	node_table_end(t, "go");
	ck_assert(!node_table_get(t, "go")->live);
}
END_TEST

START_TEST(volumes_are_found_on_all_nodes_by_id_and_name)
{
	CLEANUP(node_table_freep) struct node_table *t = node_table_new();
	CLEANUP(free_hits) struct node_hit *hits = NULL;
	struct node_report *a = report_new("a");
	struct node_report *b = report_new("b");

	report_add_volume(a, "cache", "n");
	report_add_volume(a, "other", "m");
	report_add_volume(a, "nameless", "");
	report_add_volume(b, "cache", "n");
	node_table_put(t, b, 0);
	node_table_put(t, a, 0);
	node_table_end(t, "b");
	ck_assert_uint_eq(node_table_find_volume(t, "cache", &hits), 2);
	ck_assert_str_eq(hits[0].node->report.node_id, "a");
	ck_assert_str_eq(hits[1].node->report.node_id, "b");
	ck_assert_str_eq(hits[1].volume->name, "n");
	ck_assert_uint_eq(count_name(t, "n"), 2);
	ck_assert_uint_eq(count_name(t, "m"), 1);
	ck_assert_uint_eq(count_name(t, ""), 0);
	put(t, "a");
	ck_assert_uint_eq(count_name(t, "n"), 1);
}
END_TEST

START_TEST(a_report_without_news_changes_nothing_but_the_lease)
{
	CLEANUP(node_table_freep) struct node_table *t = node_table_new();

	put(t, "a");
	node_table_watch(t, on_change, NULL);
	node_table_put(t, report_new("a"), 7);
	ck_assert_uint_eq(told, 0);
	ck_assert_uint_eq(node_table_generation(t), 1);
	ck_assert_uint_eq(node_table_get(t, "a")->registered_ns, 7);
	node_table_end(t, "a");
	node_table_end(t, "a");
	ck_assert_uint_eq(told, 1);
	ck_assert(!told_live);
	put(t, "a");
	ck_assert_uint_eq(told, 2);
	ck_assert(told_live);
	node_table_unwatch(t, on_change, NULL);
	node_table_end(t, "a");
	ck_assert_uint_eq(told, 2);
}
END_TEST

START_TEST(each_part_of_a_report_is_news)
{
	for (int part = 0; part < 9; part++) {
		CLEANUP(node_table_freep) struct node_table *t = node_table_new();
		struct node_report *r = report_new("a");

		report_add_volume(r, "v", "n");
		node_table_put(t, r, 0);
		r = report_new("a");
		struct volume_report *v = report_add_volume(r, "v", part == 0 ? "m" : "n");
		v->size_bytes += part == 1;
		v->phase = part == 2 ? PHASE_ERASING : PHASE_READY;
		v->ever_staged = part == 3;
		v->made_by_controller = part == 4;
		r->pools[0].capacity.available_bytes -= part == 5;
		r->pools[0].capacity.max_sector_volume_bytes -= part == 6;
		r->bound = part == 7;
		r->endpoint[6] = part == 8 ? '9' : r->endpoint[6];
		node_table_put(t, r, 0);
		ck_assert_msg(node_table_generation(t) == 2, "part %d", part);
	}
}
END_TEST

START_TEST(changes_come_in_their_order)
{
	CLEANUP(node_table_freep) struct node_table *t = node_table_new();
	CLEANUP(free_nodes) const struct node **all = NULL;
	CLEANUP(free_nodes) const struct node **some = NULL;
	CLEANUP(free_nodes) const struct node **none = NULL;

	put(t, "a");
	put(t, "b");
	put(t, "c");
	node_table_end(t, "a");
	ck_assert_uint_eq(node_table_changes(t, 0, &all), 3);
	ck_assert_str_eq(all[0]->report.node_id, "b");
	ck_assert_str_eq(all[2]->report.node_id, "a");
	ck_assert_uint_eq(node_table_changes(t, 3, &some), 1);
	ck_assert_uint_eq(some[0]->generation, 4);
	ck_assert_uint_eq(node_table_changes(t, 4, &none), 0);
	ck_assert_ptr_null(none);
}
END_TEST

START_TEST(a_forgotten_node_is_gone_and_generations_begin_anew)
{
	CLEANUP(node_table_freep) struct node_table *t = node_table_new();
	CLEANUP(free_charp) char *before = NULL;
	struct node_report *r = report_new("b");
	const struct node *const *nodes;

	report_add_volume(r, "v", "n");
	node_table_put(t, r, 0);
	put(t, "a");
	put(t, "c");
	before = x_strdup(node_table_instance(t));
	node_table_watch(t, on_change, NULL);
	node_table_forget(t, "b");
	node_table_forget(t, "b");
	ck_assert_uint_eq(told, 1);
	ck_assert(!told_live);
	ck_assert_uint_eq(node_table_nodes(t, &nodes), 2);
	ck_assert_str_eq(nodes[1]->report.node_id, "c");
	ck_assert_uint_eq(count_name(t, "n"), 0);
	ck_assert_str_ne(before, node_table_instance(t));
}
END_TEST

UNIT_MAIN("node table", nodes_are_sorted_and_found_by_id_and_hash,
	a_lease_ends_in_time_and_the_node_is_still_known, a_lease_without_a_time_has_no_end,
	volumes_are_found_on_all_nodes_by_id_and_name, a_report_without_news_changes_nothing_but_the_lease,
	each_part_of_a_report_is_news, changes_come_in_their_order,
	a_forgotten_node_is_gone_and_generations_begin_anew)
