/* SPDX-License-Identifier: Apache-2.0 */
#include "controller/recorded_volumes.h"

#include "base/mem.h"
#include "base/str.h"
#include "unit/nodes/reports.h"
#include "unit/unit.h"
#include "volume/id.h"

#define CREATED "2026-01-02T03:04:05Z"
#define SHOWN   "2025-01-02T03:04:05Z"
#define LATER   "2026-01-02T03:04:06Z"

static struct recorded_volumes recorded;
static struct node_table *nodes;
static struct pmem_volume *record; /* NULL: find() returns no record */
static char go_id[VOLUME_ID_MAX + 1];

static const struct pmem_volume *find(void *user, const char *handle)
{
	ck_assert_ptr_eq(user, &recorded);
	ck_assert_str_eq(handle, go_id);
	return record;
}

static const char *until(void)
{
	return recorded_volumes_until(&recorded, node_table_get(nodes, "n1"), SHOWN, find, &recorded);
}

static struct pmem_volume *new_record(const char *handle, const char *node_id, const char *created)
{
	struct pmem_volume *v = x_calloc(1, sizeof(*v));

	v->meta.created = x_strdup(created);
	v->origin = x_strdup(PMEM_VOLUME_REPORTED);
	v->handle = x_strdup(handle);
	strv_add(&v->nodes, node_id);
	return v;
}

static void set_up(void)
{
	recorded = (struct recorded_volumes){0};
	nodes = node_table_new();
	volume_id_mint_go("pvc-1", go_id);
	record = new_record(go_id, "n1", CREATED);
}

static void tear_down(void)
{
	node_table_free(nodes);
	pmem_volume_free(record);
}

static struct volume_report *put(struct node_report *r)
{
	struct volume_report *v = report_add_volume(r, go_id, "pvc-1");

	node_table_put(nodes, r, 1);
	return v;
}

START_TEST(volumes_are_recorded_until_the_newest_record_was_made)
{
	put(report_new("n1"));
	ck_assert_str_eq(until(), SHOWN);
	recorded_volumes_note(&recorded, record);
	ck_assert_str_eq(until(), CREATED);
	CLEANUP(pmem_volume_freep) struct pmem_volume *other = new_record("made-elsewhere", "n2", LATER);
	recorded_volumes_note(&recorded, other);
	recorded_volumes_note(&recorded, record);
	ck_assert_str_eq(until(), LATER);
}
END_TEST

START_TEST(records_that_say_where_a_volume_is_make_no_difference)
{
	CLEANUP(pmem_volume_freep) struct pmem_volume *v = new_record(go_id, "n1", LATER);
	char id[VOLUME_ID_MAX + 1];

	put(report_new("n1"));
	recorded_volumes_note(&recorded, record);
	free(TAKE_PTR(v->origin));
	recorded_volumes_note(&recorded, v);
	v->origin = x_strdup(PMEM_VOLUME_REPORTED);
	volume_id_mint("pvc-2", "n1", id);
	free(v->handle);
	v->handle = x_strdup(id);
	recorded_volumes_note(&recorded, v);
	free(TAKE_PTR(v->handle));
	recorded_volumes_note(&recorded, v);
	v->handle = x_strdup(go_id);
	free(v->meta.created);
	v->meta.created = x_strdup("later");
	recorded_volumes_note(&recorded, v);
	ck_assert_str_eq(until(), CREATED);
}
END_TEST

START_TEST(a_volume_without_a_record_that_names_the_node_is_not_recorded)
{
	put(report_new("n1"));
	recorded_volumes_note(&recorded, record);
	strv_free(TAKE_PTR(record->nodes));
	strv_add(&record->nodes, "n2");
	ck_assert_ptr_null(until());
	strv_add(&record->nodes, "n1");
	ck_assert_str_eq(until(), CREATED);
	free(record->handle);
	record->handle = x_strdup("with-the-same-key");
	ck_assert_ptr_null(until());
	pmem_volume_free(TAKE_PTR(record));
	ck_assert_ptr_null(until());
}
END_TEST

START_TEST(a_report_that_may_lack_volumes_does_not_count)
{
	struct node_report *r = report_new("n1");

	recorded_volumes_note(&recorded, record);
	if (_i)
		r->pools[0].incomplete = true;
	else
		r->has_inventory = false;
	node_table_put(nodes, r, 1);
	ck_assert_ptr_null(until());
	node_table_put(nodes, report_new("n1"), 2);
	ck_assert_str_eq(until(), CREATED);
}
END_TEST

START_TEST(a_node_that_is_away_keeps_its_time_and_loses_it)
{
	put(report_new("n1"));
	recorded_volumes_note(&recorded, record);
	node_table_end(nodes, "n1");
	ck_assert_str_eq(until(), SHOWN);
	pmem_volume_free(TAKE_PTR(record));
	ck_assert_ptr_null(until());
}
END_TEST

START_TEST(what_has_no_record_of_its_own_needs_none)
{
	struct node_report *r = report_new("n1");
	char id[VOLUME_ID_MAX + 1];

	recorded_volumes_note(&recorded, record);
	volume_id_mint("pvc-2", "n1", id);
	report_add_volume(r, id, "pvc-2");
	report_add_volume(r, "inline", "")->is_inline = true;
	report_add_volume(r, "erased", "")->phase = PHASE_ERASING;
	node_table_put(nodes, r, 1);
	ck_assert_str_eq(until(), CREATED);
}
END_TEST

/* Other code does not see a volume any more after a reply has said that it was deleted, before a report shows
 * that. */
START_TEST(the_report_counts_and_not_what_replies_have_shown)
{
	put(report_new("n1"));
	node_table_note_deleted(nodes, "n1", go_id, 1);
	pmem_volume_free(TAKE_PTR(record));
	ck_assert_ptr_null(until());
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("controller/recorded_volumes");
	TCase *tcase = tcase_create("recorded_volumes");

	suite_add_tcase(suite, tcase);
	tcase_add_checked_fixture(tcase, set_up, tear_down);
	tcase_add_test(tcase, volumes_are_recorded_until_the_newest_record_was_made);
	tcase_add_test(tcase, records_that_say_where_a_volume_is_make_no_difference);
	tcase_add_test(tcase, a_volume_without_a_record_that_names_the_node_is_not_recorded);
	tcase_add_loop_test(tcase, a_report_that_may_lack_volumes_does_not_count, 0, 2);
	tcase_add_test(tcase, a_node_that_is_away_keeps_its_time_and_loses_it);
	tcase_add_test(tcase, what_has_no_record_of_its_own_needs_none);
	tcase_add_test(tcase, the_report_counts_and_not_what_replies_have_shown);
	return unit_runner_finish(srunner_create(suite));
}
