/* SPDX-License-Identifier: Apache-2.0 */
/* Snapshots: they are recorded before the node of their volume is asked, and distinguished from volumes. */
#include "base/mem.h"
#include "base/str.h"
#include "unit/controller/desk.h"
#include "volume/id.h"

#define SOURCE   "pvc-0"
#define SNAPSHOT "snapshot-0"
#define TAKEN_S  1000

static struct desk d;
static struct desk_ask a;
static char source[VOLUME_ID_MAX + 1];
static char snapshot[VOLUME_ID_MAX + 1];

/* Puts the report of n2 into the table: it has the volume, and its snapshot if @taken. */
static void report(bool taken)
{
	struct node_report *r = report_new("n2");

	report_add_volume(r, source, SOURCE);
	if (taken) {
		struct volume_report *v = report_add_volume(r, snapshot, SNAPSHOT);

		v->snapshot = true;
		v->source = x_strdup(source);
		v->taken_s = TAKEN_S;
		v->ever_staged = true;
	}
	node_table_put(d.table, r, d.now_ns);
}

static void set_up(void)
{
	desk_open(&d, /* early= */ false, /* forget_gone= */ false);
	volume_id_mint(SOURCE, "n2", source);
	volume_id_mint(SNAPSHOT, "n2", snapshot);
	desk_add_node(&d, "n1", 8);
	desk_add_node(&d, "n2", 4);
	report(/* taken= */ false);
	desk_ask_init(&a, "pvc-1");
}

static void tear_down(void)
{
	desk_ask_done(&a);
	desk_close(&d);
}

static void again(void)
{
	desk_ask_done(&a);
	desk_ask_init(&a, "pvc-1");
}

static void take(void)
{
	desk_create_snapshot(&d, &a, SNAPSHOT, source);
	desk_taken(desk_last(&d, "n2"), source, TAKEN_S);
	DESK_OK(&a);
}

START_TEST(a_snapshot_is_taken_on_the_node_of_its_volume)
{
	const Csi__V1__Snapshot *s;

	desk_create_snapshot(&d, &a, SNAPSHOT, source);
	CLEANUP(pmem_volume_freep) struct pmem_volume *before = desk_record(&d, SNAPSHOT);
	ck_assert(before && before->snapshot && !before->handle);
	ck_assert_str_eq(before->source, source);
	ck_assert_str_eq(desk_last(&d, "n2")->create_snapshot_request->source_volume_id, source);
	desk_taken(desk_last(&d, "n2"), source, TAKEN_S);
	DESK_OK(&a);
	s = a.snapshot_created.snapshot;
	ck_assert_str_eq(s->snapshot_id, snapshot);
	ck_assert_str_eq(s->source_volume_id, source);
	ck_assert_int_eq(s->creation_time->seconds, TAKEN_S);
	ck_assert_int_eq(s->size_bytes, (int64_t)DESK_GIB);
	ck_assert(s->ready_to_use);
	CLEANUP(pmem_volume_freep) struct pmem_volume *after = desk_record(&d, SNAPSHOT);
	ck_assert(after->snapshot && str_eq(after->handle, snapshot));
}
END_TEST

START_TEST(an_answer_about_another_volume_is_not_believed)
{
	desk_create_snapshot(&d, &a, SNAPSHOT, source);
	desk_taken(desk_last(&d, "n2"), "pvc-other", TAKEN_S);
	DESK_FAILED(&a, ERR_UNAVAILABLE, "does not say that it is about a copy of");
}
END_TEST

START_TEST(requests_are_checked_before_a_node_is_asked)
{
	desk_create_snapshot(&d, &a, "", source);
	DESK_FAILED(&a, ERR_INVALID_ARGUMENT, "name is missing");
	again();
	desk_create_snapshot(&d, &a, SNAPSHOT, "");
	DESK_FAILED(&a, ERR_INVALID_ARGUMENT, "source_volume_id is missing");
	again();
	desk_create_snapshot(&d, &a, SNAPSHOT, "pvc-nothing");
	DESK_FAILED(&a, ERR_NOT_FOUND, "volume pvc-nothing, which is to be copied, does not exist");
	ck_assert_uint_eq(d.n_calls, 0);
}
END_TEST

START_TEST(a_name_is_that_of_a_volume_or_of_a_snapshot)
{
	take();
	again();
	desk_ask_done(&a);
	desk_ask_init(&a, SNAPSHOT);
	desk_create(&d, &a);
	DESK_FAILED(&a, ERR_EXISTS, "exists, and is a snapshot");
	again();
	desk_create_snapshot(&d, &a, SNAPSHOT, "pvc-other");
	DESK_FAILED(&a, ERR_EXISTS, "and is a copy of");
}
END_TEST

START_TEST(lists_tell_snapshots_from_volumes)
{
	Csi__V1__ListVolumesRequest q;
	csi__v1__list_volumes_request__init(&q);
	Csi__V1__ListVolumesResponse volumes;
	csi__v1__list_volumes_response__init(&volumes);
	Csi__V1__ListSnapshotsRequest of;
	csi__v1__list_snapshots_request__init(&of);
	Csi__V1__ListSnapshotsResponse snapshots;
	csi__v1__list_snapshots_response__init(&snapshots);
	Csi__V1__GetSnapshotRequest one;
	csi__v1__get_snapshot_request__init(&one);
	Csi__V1__GetSnapshotResponse got;
	csi__v1__get_snapshot_response__init(&got);
	struct error *err = NULL;

	report(/* taken= */ true);
	ASSERT_OK(controller_list(d.controller, a.arena, &q, &volumes, &err));
	ck_assert_uint_eq(volumes.n_entries, 1);
	ck_assert_str_eq(volumes.entries[0]->volume->volume_id, source);
	ASSERT_OK(controller_list_snapshots(d.controller, a.arena, &of, &snapshots, &err));
	ck_assert_uint_eq(snapshots.n_entries, 1);
	ck_assert_str_eq(snapshots.entries[0]->snapshot->snapshot_id, snapshot);
	ck_assert_int_eq(snapshots.entries[0]->snapshot->creation_time->seconds, TAKEN_S);
	of.source_volume_id = (char *)(uintptr_t)"pvc-other";
	csi__v1__list_snapshots_response__init(&snapshots);
	ASSERT_OK(controller_list_snapshots(d.controller, a.arena, &of, &snapshots, &err));
	ck_assert_uint_eq(snapshots.n_entries, 0);
	one.snapshot_id = snapshot;
	ASSERT_OK(controller_get_snapshot(d.controller, a.arena, &one, &got, &err));
	ck_assert_str_eq(got.snapshot->source_volume_id, source);
	one.snapshot_id = source;
	csi__v1__get_snapshot_response__init(&got);
	ASSERT_FAILS(
		controller_get_snapshot(d.controller, a.arena, &one, &got, &err), ERR_NOT_FOUND, "snapshot");
}
END_TEST

START_TEST(a_snapshot_is_deleted_as_a_snapshot_only)
{
	take();
	report(/* taken= */ true);
	again();
	desk_delete(&d, &a, snapshot);
	DESK_OK(&a);
	ck_assert_uint_eq(d.n_calls, 1);
	again();
	desk_delete_snapshot(&d, &a, source);
	DESK_OK(&a);
	ck_assert_uint_eq(d.n_calls, 1);
	again();
	desk_delete_snapshot(&d, &a, snapshot);
	ck_assert_str_eq(desk_last(&d, "n2")->delete_snapshot_request->snapshot_id, snapshot);
	desk_deleted(desk_last(&d, "n2"));
	DESK_OK(&a);
	desk_check_nodes(&d, SNAPSHOT, "");
}
END_TEST

/* It was made of the report of a damaged state file, whose kind the node did not know. */
START_TEST(what_the_node_says_counts_more_than_a_record_of_a_report)
{
	struct pmem_volume *r = pmem_volume_new(volume_key_of_name(SNAPSHOT).hex, DESK_DRIVER);

	r->origin = x_strdup(PMEM_VOLUME_REPORTED);
	r->handle = x_strdup(snapshot);
	pmem_volume_add_node(r, "n2");
	desk_put_record(&d, RECORD_CREATE, r);
	report(/* taken= */ true);
	desk_delete(&d, &a, snapshot);
	DESK_OK(&a);
	ck_assert_uint_eq(d.n_calls, 0);
	again();
	desk_delete_snapshot(&d, &a, snapshot);
	desk_deleted(desk_last(&d, "n2"));
	DESK_OK(&a);
}
END_TEST

START_TEST(a_snapshot_of_a_node_that_has_not_registered_may_exist)
{
	Csi__V1__GetSnapshotRequest q;
	csi__v1__get_snapshot_request__init(&q);
	Csi__V1__GetSnapshotResponse reply;
	csi__v1__get_snapshot_response__init(&reply);
	struct error *err = NULL;
	char id[VOLUME_ID_MAX + 1];

	volume_id_mint(SNAPSHOT, "n9", id);
	q.snapshot_id = id;
	ASSERT_FAILS(controller_get_snapshot(d.controller, a.arena, &q, &reply, &err), ERR_UNAVAILABLE,
		"on a node that has not reported its volumes");
}
END_TEST

START_TEST(a_snapshot_on_a_node_that_is_away_is_not_ready)
{
	Csi__V1__ListSnapshotsRequest q;
	csi__v1__list_snapshots_request__init(&q);
	Csi__V1__ListSnapshotsResponse reply;
	csi__v1__list_snapshots_response__init(&reply);
	struct error *err = NULL;

	report(/* taken= */ true);
	node_table_end(d.table, "n2");
	ASSERT_OK(controller_list_snapshots(d.controller, a.arena, &q, &reply, &err));
	ck_assert_uint_eq(reply.n_entries, 1);
	ck_assert(!reply.entries[0]->snapshot->ready_to_use);
}
END_TEST

/* The controller has restarted, and n9 is down. */
START_TEST(a_list_without_a_node_is_of_other_nodes_only)
{
	Csi__V1__ListSnapshotsRequest q;
	csi__v1__list_snapshots_request__init(&q);
	Csi__V1__ListSnapshotsResponse reply;
	csi__v1__list_snapshots_response__init(&reply);
	char elsewhere[VOLUME_ID_MAX + 1];
	struct error *err = NULL;

	report(/* taken= */ true);
	d.cluster_ids[d.n_cluster++] = "n9";
	volume_id_mint(SNAPSHOT, "n9", elsewhere);
	ASSERT_FAILS(controller_list_snapshots(d.controller, a.arena, &q, &reply, &err), ERR_UNAVAILABLE,
		"node n9 has not registered");
	q.snapshot_id = elsewhere;
	ASSERT_FAILS(controller_list_snapshots(d.controller, a.arena, &q, &reply, &err), ERR_UNAVAILABLE,
		"node n9 has not registered");
	q.snapshot_id = snapshot;
	ASSERT_OK(controller_list_snapshots(d.controller, a.arena, &q, &reply, &err));
	ck_assert_uint_eq(reply.n_entries, 1);
	q.snapshot_id = NULL;
	q.source_volume_id = source;
	csi__v1__list_snapshots_response__init(&reply);
	ASSERT_OK(controller_list_snapshots(d.controller, a.arena, &q, &reply, &err));
	ck_assert_uint_eq(reply.n_entries, 1);
}
END_TEST

START_TEST(a_snapshot_is_restored_where_it_is)
{
	const Csi__V1__VolumeContentSource *s;

	take();
	report(/* taken= */ true);
	again();
	desk_ask_restored(&a, snapshot);
	desk_create(&d, &a);
	s = desk_last(&d, "n2")->create_request->volume_content_source;
	ck_assert_str_eq(s->snapshot->snapshot_id, snapshot);
	desk_made(desk_last(&d, "n2"));
	DESK_OK(&a);
	s = a.created.volume->content_source;
	ck_assert_int_eq(s->type_case, CSI__V1__VOLUME_CONTENT_SOURCE__TYPE_SNAPSHOT);
	ck_assert_str_eq(s->snapshot->snapshot_id, snapshot);
	again();
	desk_ask_done(&a);
	desk_ask_init(&a, "pvc-2");
	desk_ask_nodes(&a, (const char *const[]){"n1", NULL}, NULL);
	desk_ask_restored(&a, snapshot);
	desk_create(&d, &a);
	DESK_FAILED(&a, ERR_EXHAUSTED, "which can be copied only where it is: on node n2");
}
END_TEST

START_TEST(a_snapshot_cannot_grow)
{
	take();
	report(/* taken= */ true);
	again();
	desk_expand(&d, &a, snapshot, 2 * DESK_GIB);
	DESK_FAILED(&a, ERR_NOT_FOUND, "it is a snapshot");
	ck_assert_uint_eq(d.n_calls, 1);
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {a_snapshot_is_taken_on_the_node_of_its_volume,
		an_answer_about_another_volume_is_not_believed, requests_are_checked_before_a_node_is_asked,
		a_name_is_that_of_a_volume_or_of_a_snapshot, lists_tell_snapshots_from_volumes,
		a_snapshot_is_deleted_as_a_snapshot_only,
		what_the_node_says_counts_more_than_a_record_of_a_report,
		a_snapshot_of_a_node_that_has_not_registered_may_exist,
		a_snapshot_on_a_node_that_is_away_is_not_ready, a_list_without_a_node_is_of_other_nodes_only,
		a_snapshot_is_restored_where_it_is, a_snapshot_cannot_grow};
	Suite *suite = suite_create("controller snapshots");
	TCase *tcase = tcase_create("controller snapshots");

	suite_add_tcase(suite, tcase);
	tcase_add_checked_fixture(tcase, set_up, tear_down);
	for (size_t i = 0; i < ARRAY_SIZE(tests); i++)
		tcase_add_test(tcase, tests[i]);
	return unit_runner_finish(srunner_create(suite));
}
