/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "nodes/node_table.h"
#include "unit/nodes/reports.h"
#include "unit/unit.h"

static unsigned reported;

static void on_change(void *user, const struct node *node)
{
	(void)user;
	(void)node;
	reported++;
}

static bool has(const struct node_table *t, const char *id)
{
	struct node_hit *hits;
	size_t n = node_table_find_volume(t, id, &hits);

	free(hits);
	return n > 0;
}

static size_t count_volumes(const struct node *node)
{
	size_t at = 0;
	size_t n = 0;

	while (node_next_volume(node, &at))
		n++;
	return n;
}

static void put_with(struct node_table *t, const char *id, enum volume_phase phase, uint64_t now_ns)
{
	struct node_report *r = report_new("a");

	if (id)
		report_add_volume(r, id, "n")->phase = phase;
	node_table_put(t, r, now_ns);
}

static void note_created(struct node_table *t, const char *id, uint64_t now_ns)
{
	char name[] = "n";
	char *copy = strdup(id);
	const struct volume_report v = {.id = copy, .name = name, .phase = PHASE_READY};

	node_table_note_created(t, "a", &v, now_ns);
	free(copy);
}

START_TEST(a_volume_that_was_made_is_there_until_a_report_shows_it)
{
	CLEANUP(node_table_freep) struct node_table *t = node_table_new();

	put_with(t, NULL, PHASE_READY, 0);
	node_table_watch(t, on_change, NULL);
	note_created(t, "v", 0);
	ck_assert(has(t, "v"));
	ck_assert_uint_eq(reported, 1);
	ck_assert_uint_eq(node_table_get(t, "a")->report.n_volumes, 0);
	/* made before the volume was */
	put_with(t, NULL, PHASE_READY, 1);
	ck_assert(has(t, "v"));
	put_with(t, "v", PHASE_READY, 2);
	ck_assert_uint_eq(node_table_get(t, "a")->n_notes, 0);
	ck_assert(has(t, "v"));
	put_with(t, NULL, PHASE_READY, 3);
	ck_assert(!has(t, "v"));
}
END_TEST

START_TEST(a_report_that_came_before_the_reply_is_enough)
{
	CLEANUP(node_table_freep) struct node_table *t = node_table_new();
	struct node_hit *hits;

	put_with(t, NULL, PHASE_READY, 0);
	put_with(t, "v", PHASE_READY, 5);
	note_created(t, "v", 6);
	ck_assert_uint_eq(node_table_find_volume(t, "v", &hits), 1);
	ck_assert(!node_hit_is_noted(&hits[0]));
	ck_assert_uint_eq(hits[0].volume->seen_ns, 5);
	free(hits);
}
END_TEST

START_TEST(a_report_that_was_made_during_the_call_is_not)
{
	CLEANUP(node_table_freep) struct node_table *t = node_table_new();

	put_with(t, "v", PHASE_CREATING, 0);
	note_created(t, "v", 1);
	ck_assert_uint_eq(node_table_get(t, "a")->n_notes, 1);
	put_with(t, "v", PHASE_CREATING, 2);
	ck_assert_uint_eq(node_table_get(t, "a")->n_notes, 1);
	put_with(t, "v", PHASE_READY, 3);
	ck_assert_uint_eq(node_table_get(t, "a")->n_notes, 0);
	/* the former volume of that name */
	put_with(t, "v", PHASE_ERASING, 3);
	note_created(t, "v", 3);
	put_with(t, "v", PHASE_ERASING, 3);
	ck_assert_uint_eq(node_table_get(t, "a")->n_notes, 1);
	put_with(t, "v", PHASE_READY, 3);
	/* deleted and made again, both after the report was */
	node_table_note_deleted(t, "a", "v", 4);
	note_created(t, "v", 5);
	put_with(t, NULL, PHASE_READY, 6);
	ck_assert(has(t, "v"));
}
END_TEST

START_TEST(a_note_has_its_own_copy_of_the_health)
{
	CLEANUP(node_table_freep) struct node_table *t = node_table_new();
	struct node_report *r = report_new("a");

	health_add(&report_add_volume(r, "v", "n")->health, HEALTH_DEGRADED, "Reason", "text");
	node_table_put(t, r, 0);
	node_table_note_grown(t, "a", "v", UINT64_MAX, 0);
	put_with(t, NULL, PHASE_READY, 1);
	struct node_hit *hits;
	ck_assert_uint_eq(node_table_find_volume(t, "v", &hits), 1);
	ck_assert(node_hit_is_noted(&hits[0]));
	ck_assert_str_eq(hits[0].volume->health.list[0].message, "text");
	free(hits);
}
END_TEST

START_TEST(a_volume_that_was_deleted_is_gone_until_a_report_says_so)
{
	CLEANUP(node_table_freep) struct node_table *t = node_table_new();

	put_with(t, "v", PHASE_READY, 0);
	node_table_note_deleted(t, "a", "v", 0);
	ck_assert(!has(t, "v"));
	ck_assert_uint_eq(count_volumes(node_table_get(t, "a")), 0);
	put_with(t, "v", PHASE_READY, 1);
	ck_assert(!has(t, "v"));
	put_with(t, "v", PHASE_ERASING, 2);
	ck_assert_uint_eq(node_table_get(t, "a")->n_notes, 0);
	ck_assert(has(t, "v"));
}
END_TEST

START_TEST(a_note_is_not_believed_for_ever)
{
	CLEANUP(node_table_freep) struct node_table *t = node_table_new();

	put_with(t, "old", PHASE_READY, 0);
	note_created(t, "new", 0);
	node_table_note_deleted(t, "a", "old", 1);
	node_table_expire(t, NODE_NOTE_NS - 1);
	ck_assert(has(t, "new"));
	node_table_expire(t, NODE_NOTE_NS);
	ck_assert(!has(t, "new"));
	ck_assert(!has(t, "old"));
	node_table_expire(t, NODE_NOTE_NS + 1);
	ck_assert(has(t, "old"));
}
END_TEST

START_TEST(the_last_note_of_a_volume_counts)
{
	CLEANUP(node_table_freep) struct node_table *t = node_table_new();

	put_with(t, NULL, PHASE_READY, 0);
	note_created(t, "v", 0);
	node_table_note_deleted(t, "a", "v", 0);
	ck_assert(!has(t, "v"));
	note_created(t, "v", 0);
	ck_assert(has(t, "v"));
	ck_assert_uint_eq(count_volumes(node_table_get(t, "a")), 1);
	ck_assert_uint_eq(node_table_get(t, "a")->n_notes, 1);
}
END_TEST

START_TEST(a_report_without_inventory_settles_no_note)
{
	CLEANUP(node_table_freep) struct node_table *t = node_table_new();
	struct node_report *r = report_new("a");

	put_with(t, "v", PHASE_READY, 0);
	node_table_note_deleted(t, "a", "v", 0);
	r->has_inventory = false;
	node_table_put(t, r, 1);
	put_with(t, "v", PHASE_READY, 2);
	ck_assert(!has(t, "v"));
}
END_TEST

static uint64_t size_of(const struct node_table *t, const char *id)
{
	struct node_hit *hits;
	uint64_t size_bytes;

	ck_assert_uint_eq(node_table_find_volume(t, id, &hits), 1);
	size_bytes = hits[0].volume->size_bytes;
	free(hits);
	return size_bytes;
}

static void put_size(struct node_table *t, uint64_t size_bytes, uint64_t now_ns)
{
	struct node_report *r = report_new("a");
	struct volume_report *v = report_add_volume(r, "v", "n");

	v->size_bytes = size_bytes;
	v->ever_staged = true;
	node_table_put(t, r, now_ns);
}

START_TEST(a_volume_that_has_grown_is_so_large_until_a_report_shows_it)
{
	CLEANUP(node_table_freep) struct node_table *t = node_table_new();
	struct node_hit *hits;

	put_size(t, 4, 0);
	node_table_note_grown(t, "a", "v", 8, 0);
	ck_assert_uint_eq(size_of(t, "v"), 8);
	node_table_find_name(t, "n", &hits);
	ck_assert(hits[0].volume->ever_staged && node_hit_is_noted(&hits[0]));
	free(hits);
	/* made before the volume had grown */
	put_size(t, 4, 1);
	ck_assert_uint_eq(size_of(t, "v"), 8);
	/* another note replaces the first one */
	node_table_note_grown(t, "a", "v", 9, 1);
	ck_assert_uint_eq(node_table_get(t, "a")->n_notes, 1);
	put_size(t, 9, 2);
	ck_assert_uint_eq(node_table_get(t, "a")->n_notes, 0);
	ck_assert_uint_eq(size_of(t, "v"), 9);
	put_size(t, 4, 3);
	ck_assert_uint_eq(size_of(t, "v"), 4);
}
END_TEST

START_TEST(there_is_nothing_to_note_of_an_unknown_volume_or_one_that_is_so_large)
{
	CLEANUP(node_table_freep) struct node_table *t = node_table_new();

	put_size(t, 4, 0);
	node_table_note_grown(t, "b", "v", 8, 0);
	node_table_note_grown(t, "a", "w", 8, 0);
	node_table_note_grown(t, "a", "v", 4, 0);
	ck_assert_uint_eq(node_table_get(t, "a")->n_notes, 0);
	node_table_note_deleted(t, "a", "v", 0);
	node_table_note_grown(t, "a", "v", 8, 0);
	ck_assert(!has(t, "v"));
}
END_TEST

UNIT_MAIN("node notes", a_volume_that_was_made_is_there_until_a_report_shows_it,
	a_report_that_came_before_the_reply_is_enough, a_report_that_was_made_during_the_call_is_not,
	a_volume_that_was_deleted_is_gone_until_a_report_says_so, a_note_is_not_believed_for_ever,
	the_last_note_of_a_volume_counts, a_note_has_its_own_copy_of_the_health,
	a_report_without_inventory_settles_no_note,
	a_volume_that_has_grown_is_so_large_until_a_report_shows_it,
	there_is_nothing_to_note_of_an_unknown_volume_or_one_that_is_so_large)
