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

static unsigned reported;
static bool told_live;

static void on_change(void *user, const struct node *node)
{
	(void)user;
	reported++;
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
	ck_assert_uint_eq(reported, 0);
	ck_assert_uint_eq(node_table_get(t, "a")->registered_ns, 7);
	node_table_end(t, "a");
	node_table_end(t, "a");
	ck_assert_uint_eq(reported, 1);
	ck_assert(!told_live);
	put(t, "a");
	ck_assert_uint_eq(reported, 2);
	ck_assert(told_live);
	node_table_unwatch(t, on_change, NULL);
	node_table_end(t, "a");
	ck_assert_uint_eq(reported, 2);
}
END_TEST

START_TEST(each_part_of_a_report_is_news)
{
	for (int part = 0; part < 24; part++) {
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
		r->number += part == 9;
		r->pools[0].erasing_bytes += part == 10;
		v->is_inline = part == 11;
		r->pools[0].region_bytes += part == 12;
		r->pools[0].durability = part == 20 ? DURABILITY_FSYNC : DURABILITY_UNKNOWN;
		r->knows_durability = part == 21;
		v->dax = part == 22 ? VOLUME_DAX_FSYNC : VOLUME_DAX_UNKNOWN;
		v->lacks_sync = part == 23;
		r->serves_expansion = part != 13;
		r->serves_modification = part != 14;
		r->makes_kata_volumes = part == 15;
		v->filling.done_bytes += part == 16;
		v->filling.total_bytes += part == 17;
		v->pause.ms += part == 18;
		v->pause.ended_ms += part == 19;
		reported = 0;
		node_table_watch(t, on_change, NULL);
		node_table_put(t, r, 0);
		ck_assert_msg(reported == 1, "part %d", part);
	}
}
END_TEST

static void put_seen(struct node_table *t, enum volume_phase phase, uint64_t now_ns, uint64_t seen_ns)
{
	struct node_report *r = report_new("a");

	report_add_volume(r, "v", "n")->phase = phase;
	r->number = now_ns;
	node_table_put(t, r, now_ns);
	ck_assert_uint_eq(node_table_get(t, "a")->report.volumes[0].seen_ns, seen_ns);
}

START_TEST(a_volume_is_new_in_the_report_that_shows_it_as_made)
{
	CLEANUP(node_table_freep) struct node_table *first = node_table_new();
	CLEANUP(node_table_freep) struct node_table *t = node_table_new();
	const struct volume_report made = {.id = (char[]){"v"}, .name = (char[]){"n"}, .phase = PHASE_READY};

	put_seen(first, PHASE_READY, 1, 0);
	put_seen(first, PHASE_MISSING, 2, 0);
	put(t, "a");
	put_seen(t, PHASE_CREATING, 2, 0);
	node_table_note_created(t, "a", &made, 2);
	put_seen(t, PHASE_READY, 3, 3);
	put_seen(t, PHASE_READY, 4, 3);
	put_seen(t, PHASE_MISSING, 5, 3);
}
END_TEST

static unsigned n_new_pauses;

static void count_new_pauses(void *user, const struct node *node)
{
	(void)user;
	for (size_t i = 0; i < node->report.n_volumes; i++)
		n_new_pauses += node->report.volumes[i].pause_is_new;
}

/* @id: of the volume that the node has; NULL: it does not say what it has */
static void pause_is_new(struct node_table *t, const char *id, uint64_t ended_ms, bool is_new)
{
	static uint64_t number;
	struct node_report *r = report_new("a");

	r->number = ++number;
	r->has_inventory = id != NULL;
	if (id)
		report_add_volume(r, id, "n")->pause = (struct volume_pause){5, ended_ms};
	n_new_pauses = 0;
	node_table_put(t, r, number);
	ck_assert_uint_eq(n_new_pauses, is_new);
	/* another change without a report */
	node_table_end(t, "a");
	ck_assert_uint_eq(n_new_pauses, is_new);
}

START_TEST(a_pause_is_new_in_the_first_report_that_has_it)
{
	CLEANUP(node_table_freep) struct node_table *t = node_table_new();

	node_table_watch(t, count_new_pauses, NULL);
	pause_is_new(t, "v", 100, false);
	pause_is_new(t, "v", 100, false);
	pause_is_new(t, "v", 200, true);
	pause_is_new(t, "v", 200, false);
	/* the driver was started again, and its clock set back */
	pause_is_new(t, "v", 0, false);
	pause_is_new(t, "v", 50, true);
	/* a volume that was not known before */
	pause_is_new(t, "w", 300, false);
	pause_is_new(t, NULL, 0, false);
	pause_is_new(t, "w", 400, false);
	node_table_unwatch(t, count_new_pauses, NULL);
}
END_TEST

START_TEST(after_a_report_without_volumes_none_is_new)
{
	CLEANUP(node_table_freep) struct node_table *t = node_table_new();
	struct node_report *r = report_new("a");

	r->has_inventory = false;
	node_table_put(t, r, 1);
	put_seen(t, PHASE_READY, 2, 0);
}
END_TEST

START_TEST(a_forgotten_node_is_gone)
{
	CLEANUP(node_table_freep) struct node_table *t = node_table_new();
	struct node_report *r = report_new("b");
	const struct node *const *nodes;

	report_add_volume(r, "v", "n");
	node_table_put(t, r, 0);
	put(t, "a");
	put(t, "c");
	node_table_watch(t, on_change, NULL);
	node_table_forget(t, "b");
	node_table_forget(t, "b");
	ck_assert_uint_eq(reported, 1);
	ck_assert(!told_live);
	ck_assert_uint_eq(node_table_nodes(t, &nodes), 2);
	ck_assert_str_eq(nodes[1]->report.node_id, "c");
	ck_assert_uint_eq(count_name(t, "n"), 0);
}
END_TEST

UNIT_MAIN("node table", nodes_are_sorted_and_found_by_id_and_hash,
	a_lease_ends_in_time_and_the_node_is_still_known, volumes_are_found_on_all_nodes_by_id_and_name,
	a_report_without_news_changes_nothing_but_the_lease, each_part_of_a_report_is_news,
	a_volume_is_new_in_the_report_that_shows_it_as_made, after_a_report_without_volumes_none_is_new,
	a_pause_is_new_in_the_first_report_that_has_it, a_forgotten_node_is_gone)
