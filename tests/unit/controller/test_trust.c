/* SPDX-License-Identifier: Apache-2.0 */
/* A node that lies: what it replies and reports changes nothing of volumes on other nodes. */
#include <stdio.h>

#include "base/mem.h"
#include "base/str.h"
#include "unit/controller/desk.h"
#include "volume/id.h"

#define NAME "pvc-1"

static struct desk d;
static struct desk_ask a;
static char evil_id[VOLUME_ID_MAX + 1];   /* of NAME on the node that lies */
static char victim_id[VOLUME_ID_MAX + 1]; /* of NAME on another node */
static char shared_id[VOLUME_ID_MAX + 1]; /* of a cache volume */

static void set_up(void)
{
	desk_open(&d, /* early= */ false, /* forget_gone= */ true);
	desk_ask_init(&a, NAME);
	volume_id_mint(NAME, "evil", evil_id);
	volume_id_mint(NAME, "victim", victim_id);
	volume_id_mint(NAME, NULL, shared_id);
	desk_add_node(&d, "evil", 8);
}

static void tear_down(void)
{
	desk_ask_done(&a);
	desk_close(&d);
}

static void again(void)
{
	desk_ask_done(&a);
	desk_ask_init(&a, NAME);
}

static void reply_volume(struct desk_call *c, const char *id, int64_t bytes, size_t n_context)
{
	CLEANUP(arena_freep) struct arena *arena = arena_new(0);
	Csi__V1__CreateVolumeResponse reply;
	Csi__V1__Volume volume;

	csi__v1__create_volume_response__init(&reply);
	csi__v1__volume__init(&volume);
	volume.volume_id = arena_strdup(arena, id);
	volume.capacity_bytes = bytes;
	volume.volume_context = arena_alloc(arena, n_context * sizeof(*volume.volume_context));
	for (; volume.n_volume_context < n_context; volume.n_volume_context++) {
		Csi__V1__Volume__VolumeContextEntry *e = arena_alloc(arena, sizeof(*e));

		csi__v1__volume__volume_context_entry__init(e);
		e->key = arena_strdup(arena, "key");
		e->value = arena_strdup(arena, "value");
		volume.volume_context[volume.n_volume_context] = e;
	}
	reply.volume = &volume;
	c->answered = true;
	c->fn(c->user, &reply.base, NULL);
}

START_TEST(a_reply_that_cannot_be_true_makes_no_volume)
{
	const struct {
		const char *id;
		int64_t bytes;
		size_t n_context;
		const char *text;
	} cases[] = {
		{victim_id, DESK_GIB, 0, "node evil cannot have"},
		{shared_id, -1, 0, "a size of -1 bytes"},
		{"../../etc/passwd", DESK_GIB, 0, "node evil cannot have"},
		{"", DESK_GIB, 0, "no volume ID"},
		{evil_id, -5, 0, "a size of -5 bytes"},
		{evil_id, INT64_MAX, 0, "a size of 9223372036854775807 bytes"},
		{evil_id, DESK_GIB - 1, 0, "at least 1073741824"},
		{evil_id, DESK_GIB, 50000, "beyond the limits of CSI"},
	};
	const int i = _i;

	ck_assert_uint_eq(ARRAY_SIZE(cases), 8);
	desk_create(&d, &a);
	reply_volume(desk_last(&d, "evil"), cases[i].id, cases[i].bytes, cases[i].n_context);
	DESK_FAILED(&a, ERR_UNAVAILABLE, cases[i].text);
	CLEANUP(pmem_volume_freep) struct pmem_volume *record = desk_record(&d, NAME);
	ck_assert_ptr_null(record->handle);
}
END_TEST

START_TEST(a_true_reply_makes_one)
{
	desk_create(&d, &a);
	reply_volume(desk_last(&d, "evil"), evil_id, DESK_GIB, 3);
	DESK_OK(&a);
	ck_assert_str_eq(a.created.volume->volume_id, evil_id);
	ck_assert_uint_eq(a.created.volume->n_volume_context, 3);
}
END_TEST

START_TEST(a_snapshot_of_another_node_is_not_handed_out)
{
	Csi__V1__CreateSnapshotResponse reply;
	Csi__V1__Snapshot snapshot;
	struct node_report *r = report_new("evil");

	report_add_volume(r, evil_id, NAME);
	node_table_put(d.table, r, d.now_ns);
	csi__v1__create_snapshot_response__init(&reply);
	csi__v1__snapshot__init(&snapshot);
	volume_id_mint("snapshot-1", "victim", victim_id);
	snapshot.snapshot_id = victim_id;
	snapshot.source_volume_id = evil_id;
	snapshot.size_bytes = (int64_t)DESK_GIB;
	reply.snapshot = &snapshot;
	desk_create_snapshot(&d, &a, "snapshot-1", evil_id);
	struct desk_call *c = desk_last(&d, "evil");
	c->answered = true;
	c->fn(c->user, &reply.base, NULL);
	DESK_FAILED(&a, ERR_UNAVAILABLE, "node evil cannot have");
}
END_TEST

static void make_volume_of_victim(void)
{
	desk_add_node(&d, "victim", 8);
	desk_ask_nodes(&a, (const char *const[]){"victim", NULL}, NULL);
	desk_create(&d, &a);
	desk_made(desk_last(&d, "victim"));
	DESK_OK(&a);
	again();
}

/* The node "evil" reports a snapshot of the name that is requested of @source_id. */
static void take_snapshot_that_evil_reports(const char *source_id)
{
	struct node_report *r = report_new("evil");
	char copy_id[VOLUME_ID_MAX + 1];

	volume_id_mint("snapshot-1", "evil", copy_id);
	report_add_volume(r, copy_id, "snapshot-1")->snapshot = true;
	node_table_put(d.table, r, d.now_ns);
	desk_create_snapshot(&d, &a, "snapshot-1", source_id);
	desk_taken(desk_last(&d, "victim"), source_id, 1);
	DESK_OK(&a);
}

START_TEST(a_node_that_reports_a_copy_is_not_asked_for_the_copy_of_a_volume_of_another_node)
{
	make_volume_of_victim();
	take_snapshot_that_evil_reports(victim_id);
}
END_TEST

/* The handle of a cache volume names no node. The record of the volume names those that have it. */
START_TEST(a_node_that_reports_a_copy_is_not_asked_for_the_copy_of_a_cache_volume_of_others)
{
	desk_add_node(&d, "victim", 8);
	desk_ask_parameter(&a, "cacheSize", "1");
	desk_ask_parameter(&a, "persistencyModel", "cache");
	desk_ask_nodes(&a, (const char *const[]){"victim", NULL}, NULL);
	desk_create(&d, &a);
	desk_made(desk_last(&d, "victim"));
	again();
	take_snapshot_that_evil_reports(shared_id);
}
END_TEST

START_TEST(a_volume_that_was_given_out_stays_where_it_is_whoever_reports_its_name)
{
	struct node_report *r = report_new("evil");

	make_volume_of_victim();
	report_add_volume(r, evil_id, NAME)->ever_staged = true;
	node_table_put(d.table, r, d.now_ns);
	desk_create(&d, &a);
	desk_made(desk_last(&d, "victim"));
	DESK_OK(&a);
	ck_assert_str_eq(a.created.volume->volume_id, victim_id);
	/* The volume stays there also while the node that lies is not connected. */
	node_table_end(d.table, "evil");
	again();
	desk_create(&d, &a);
	desk_made(desk_last(&d, "victim"));
	DESK_OK(&a);
}
END_TEST

/* The record has the nodes that the controller asked. */
static void make_cache_volume(void)
{
	struct pmem_volume *v;

	desk_add_node(&d, "victim", 8);
	desk_ask_parameter(&a, "cacheSize", "1");
	desk_ask_parameter(&a, "persistencyModel", "cache");
	desk_ask_nodes(&a, (const char *const[]){"victim", NULL}, NULL);
	desk_create(&d, &a);
	desk_made(desk_last(&d, "victim"));
	DESK_OK(&a);
	v = desk_record(&d, NAME);
	ck_assert_str_eq(v->handle, shared_id);
	pmem_volume_free(v);
}

static void report(const char *node_id, const char *id)
{
	struct node_report *r = report_new(node_id);

	report_add_volume(r, id, NAME);
	node_table_put(d.table, r, d.now_ns);
}

START_TEST(a_copy_that_no_controller_has_asked_for_gets_no_call)
{
	make_cache_volume();
	report("victim", shared_id);
	report("evil", shared_id);
	again();
	desk_expand(&d, &a, shared_id, 2 * DESK_GIB);
	desk_grown(desk_last(&d, "victim"), 2 * DESK_GIB, false);
	DESK_OK(&a);
	desk_check_nodes(&d, NAME, "victim");
}
END_TEST

/* @node_id reports a snapshot with the handle @id. */
static void report_as_snapshot(const char *node_id, const char *id)
{
	struct node_report *r = report_new(node_id);

	report_add_volume(r, id, NAME)->snapshot = true;
	node_table_put(d.table, r, d.now_ns);
}

/* The two newest calls, which go to both nodes, get the answer @answer. */
static void answer_both(void (*answer)(struct desk_call *c))
{
	ck_assert_uint_ge(d.n_calls, 2);
	ck_assert_str_ne(d.calls[d.n_calls - 2].node_id, d.calls[d.n_calls - 1].node_id);
	answer(&d.calls[d.n_calls - 2]);
	answer(&d.calls[d.n_calls - 1]);
	DESK_OK(&a);
}

/* The other node has not registered since the controller has started. */
START_TEST(a_volume_that_a_node_reports_as_a_snapshot_waits_for_its_other_node)
{
	desk_add_node(&d, "victim", 8);
	desk_ask_parameter(&a, "cacheSize", "2");
	desk_ask_parameter(&a, "persistencyModel", "cache");
	desk_create(&d, &a);
	answer_both(desk_made);
	node_table_forget(d.table, "victim");
	report_as_snapshot("evil", shared_id);
	again();
	desk_delete(&d, &a, shared_id);
	desk_deleted(desk_last(&d, "evil"));
	DESK_FAILED(&a, ERR_UNAVAILABLE, "node victim may have volume");
}
END_TEST

/* A volume of the Go driver may have no record. */
START_TEST(a_volume_without_a_record_that_a_node_reports_as_a_snapshot_is_deleted_on_all_nodes)
{
	char go_id[VOLUME_ID_MAX + 1];

	desk_add_node(&d, "victim", 8);
	volume_id_mint_go(NAME, go_id);
	report_as_snapshot("evil", go_id);
	desk_delete(&d, &a, go_id);
	answer_both(desk_deleted);
}
END_TEST

/* A report of a volume whose ID names another node, as of a machine whose Node has got another name. */
static void claim(const char *node_id, const char *id)
{
	struct node_report *r = report_new(node_id);

	r->foreign = x_calloc(2, sizeof(*r->foreign));
	r->foreign[0] = x_strdup(id);
	node_table_put(d.table, r, d.now_ns);
}

START_TEST(a_node_that_was_renamed_deletes_what_it_has_under_its_old_name)
{
	desk_create(&d, &a);
	desk_made(desk_last(&d, "evil"));
	DESK_OK(&a);
	node_table_forget(d.table, "evil");
	d.missing = "evil";
	d.now_ns += 100 * DESK_LEASE_NS;
	claim("renamed", evil_id);
	again();
	desk_delete(&d, &a, evil_id);
	ck_assert_str_eq(desk_last(&d, "renamed")->delete_request->volume_id, evil_id);
	desk_deleted(desk_last(&d, "renamed"));
	DESK_OK(&a);
	desk_check_nodes(&d, NAME, "");
}
END_TEST

/* A controller that has just started does not know yet which nodes will register. */
START_TEST(a_claim_counts_for_nothing_in_the_start_window)
{
	desk_close(&d);
	desk_open(&d, /* early= */ true, /* forget_gone= */ true);
	claim("evil", victim_id);
	desk_delete(&d, &a, victim_id);
	DESK_FAILED(&a, ERR_UNAVAILABLE, "has not registered");
	ck_assert_uint_eq(d.n_calls, 0);
}
END_TEST

START_TEST(a_claim_to_a_volume_of_a_node_that_exists_counts_for_nothing)
{
	claim("evil", victim_id);
	desk_add_node(&d, "victim", 8);
	desk_delete(&d, &a, victim_id);
	ck_assert_uint_eq(d.n_calls, 1);
	desk_deleted(desk_last(&d, "victim"));
	DESK_OK(&a);
	/* the same while it is away */
	node_table_end(d.table, "victim");
	again();
	desk_delete(&d, &a, victim_id);
	DESK_FAILED(&a, ERR_UNAVAILABLE, "node victim may have volume");
	ck_assert_uint_eq(d.n_calls, 1);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("controller/trust");
	TCase *c = tcase_create("all");

	tcase_add_checked_fixture(c, set_up, tear_down);
	tcase_add_loop_test(c, a_reply_that_cannot_be_true_makes_no_volume, 0, 8);
	tcase_add_test(c, a_true_reply_makes_one);
	tcase_add_test(c, a_snapshot_of_another_node_is_not_handed_out);
	tcase_add_test(c, a_node_that_reports_a_copy_is_not_asked_for_the_copy_of_a_volume_of_another_node);
	tcase_add_test(c, a_node_that_reports_a_copy_is_not_asked_for_the_copy_of_a_cache_volume_of_others);
	tcase_add_test(c, a_volume_that_was_given_out_stays_where_it_is_whoever_reports_its_name);
	tcase_add_test(c, a_copy_that_no_controller_has_asked_for_gets_no_call);
	tcase_add_test(c, a_volume_that_a_node_reports_as_a_snapshot_waits_for_its_other_node);
	tcase_add_test(
		c, a_volume_without_a_record_that_a_node_reports_as_a_snapshot_is_deleted_on_all_nodes);
	tcase_add_test(c, a_node_that_was_renamed_deletes_what_it_has_under_its_old_name);
	tcase_add_test(c, a_claim_counts_for_nothing_in_the_start_window);
	tcase_add_test(c, a_claim_to_a_volume_of_a_node_that_exists_counts_for_nothing);
	suite_add_tcase(s, c);
	return unit_runner_finish(srunner_create(s));
}
