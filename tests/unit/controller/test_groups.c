/* SPDX-License-Identifier: Apache-2.0 */
/* Group snapshots: each snapshot is recorded before their node is asked once for all of them. */
#include <string.h>

#include "base/hash.h"
#include "base/mem.h"
#include "base/str.h"
#include "unit/controller/desk.h"
#include "volume/id.h"

#define GROUP    "groupsnapshot-0"
#define TAKEN_S  1000
#define N        2
#define STRANGER "snap-x"

static struct desk d;
static struct desk_ask a;
static char source[N][VOLUME_ID_MAX + 1];
static char name[N][VOLUME_NAME_MAX + 1];
static char snapshot[N][VOLUME_ID_MAX + 1];
static char group[VOLUME_ID_MAX + 1];
static Csi__V1__CreateVolumeGroupSnapshotRequest request;
static Csi__V1__CreateVolumeGroupSnapshotResponse reply;
static char *ids[N + 1];

static struct volume_report *add_snapshot(struct node_report *r, size_t i)
{
	struct volume_report *v = report_add_volume(r, snapshot[i], name[i]);

	v->snapshot = true;
	v->source = x_strdup(source[i]);
	v->group = x_strdup(group);
	v->taken_s = TAKEN_S;
	v->ever_staged = true;
	return v;
}

/* Puts the report of n2 into the table: it has the volumes, and their snapshots if @taken. */
static void report(bool taken)
{
	struct node_report *r = report_new("n2");

	for (size_t i = 0; i < N; i++) {
		report_add_volume(r, source[i], i == 0 ? "pvc-0" : "pvc-1");
		if (taken)
			add_snapshot(r, i);
	}
	node_table_put(d.table, r, d.now_ns);
}

static void set_up(void)
{
	desk_open(&d, /* early= */ false, /* forget_gone= */ false);
	volume_id_mint("pvc-0", "n2", source[0]);
	volume_id_mint("pvc-1", "n2", source[1]);
	volume_group_id(GROUP, "n2", group);
	desk_add_node(&d, "n1", 8);
	desk_add_node(&d, "n2", 4);
	for (size_t i = 0; i < N; i++) {
		volume_group_member_name(GROUP, source[i], name[i]);
		volume_id_mint(name[i], "n2", snapshot[i]);
		ids[i] = source[i];
	}
	report(/* taken= */ false);
	desk_ask_init(&a, GROUP);
}

static void tear_down(void)
{
	desk_ask_done(&a);
	desk_close(&d);
}

static void again(void)
{
	desk_ask_done(&a);
	desk_ask_init(&a, GROUP);
}

static void create(char **sources, size_t n)
{
	const struct waiter waiter = desk_waiter(&a);

	csi__v1__create_volume_group_snapshot_request__init(&request);
	csi__v1__create_volume_group_snapshot_response__init(&reply);
	request.name = (char *)(uintptr_t)GROUP;
	request.source_volume_ids = sources;
	request.n_source_volume_ids = n;
	controller_create_group(d.controller, &waiter, &request, &reply);
}

/* A node's description of the group snapshot, in CSI's messages. */
struct reported_group {
	Csi__V1__VolumeGroupSnapshot of;
	Csi__V1__Snapshot one[N];
	Csi__V1__Snapshot *list[N];
	Google__Protobuf__Timestamp when;
};

/* It has the first @n of the snapshots, which name @of_group. */
static void fill_group(struct reported_group *t, size_t n, const char *of_group)
{
	csi__v1__volume_group_snapshot__init(&t->of);
	google__protobuf__timestamp__init(&t->when);
	t->when.seconds = TAKEN_S;
	for (size_t i = 0; i < n; i++) {
		csi__v1__snapshot__init(&t->one[i]);
		t->one[i].snapshot_id = snapshot[i];
		t->one[i].source_volume_id = source[i];
		t->one[i].size_bytes = (int64_t)DESK_GIB;
		t->one[i].creation_time = &t->when;
		t->one[i].ready_to_use = true;
		t->one[i].group_snapshot_id = (char *)(uintptr_t)of_group;
		t->list[i] = &t->one[i];
	}
	t->of.group_snapshot_id = group;
	t->of.snapshots = t->list;
	t->of.n_snapshots = n;
}

/* The node answers that it has the first @n of the snapshots. */
static void taken(struct desk_call *c, size_t n)
{
	Csi__V1__CreateVolumeGroupSnapshotResponse answer;
	struct reported_group t;

	csi__v1__create_volume_group_snapshot_response__init(&answer);
	fill_group(&t, n, group);
	answer.group_snapshot = &t.of;
	c->answered = true;
	c->fn(c->user, &answer.base, NULL);
}

static void take(void)
{
	create(ids, N);
	taken(desk_last(&d, "n2"), N);
	DESK_OK(&a);
	report(/* taken= */ true);
	again();
}

START_TEST(a_node_is_asked_once_when_all_records_name_it)
{
	create(ids, N);
	for (size_t i = 0; i < N; i++) {
		CLEANUP(pmem_volume_freep) struct pmem_volume *r = desk_record(&d, name[i]);

		ck_assert(r && r->snapshot && !r->handle);
		ck_assert_str_eq(r->source, source[i]);
		ck_assert_str_eq(r->group, group);
		ck_assert(pmem_volume_has_node(r, "n2"));
	}
	ck_assert_uint_eq(d.n_calls, 1);
	ck_assert_uint_eq(desk_last(&d, "n2")->create_group_request->n_source_volume_ids, N);
	taken(desk_last(&d, "n2"), N);
	DESK_OK(&a);
	ck_assert_str_eq(reply.group_snapshot->group_snapshot_id, group);
	ck_assert_uint_eq(reply.group_snapshot->n_snapshots, N);
	ck_assert_int_eq(reply.group_snapshot->creation_time->seconds, TAKEN_S);
	ck_assert(reply.group_snapshot->ready_to_use);
	for (size_t i = 0; i < N; i++) {
		CLEANUP(pmem_volume_freep) struct pmem_volume *r = desk_record(&d, name[i]);

		ck_assert_str_eq(r->handle, snapshot[i]);
		ck_assert_str_eq(reply.group_snapshot->snapshots[i]->snapshot_id, snapshot[i]);
		ck_assert_str_eq(reply.group_snapshot->snapshots[i]->group_snapshot_id, group);
	}
}
END_TEST

/* snapshot-controller: "snapshot-" and the SHA-256 of the UID and the handle. */
START_TEST(records_name_the_volume_snapshots_that_will_be_made)
{
	const struct waiter waiter = desk_waiter(&a);
	Csi__V1__CreateVolumeGroupSnapshotRequest__ParametersEntry e;
	csi__v1__create_volume_group_snapshot_request__parameters_entry__init(&e);
	Csi__V1__CreateVolumeGroupSnapshotRequest__ParametersEntry *parameters[] = {&e};
	CLEANUP(free_charp) char *text = x_asprintf("0%s", source[0]);
	char hex[SHA256_HEX_LEN + 1];

	e.key = (char *)(uintptr_t)"csi.storage.k8s.io/volumegroupsnapshot/namespace";
	e.value = (char *)(uintptr_t)"team";
	csi__v1__create_volume_group_snapshot_request__init(&request);
	csi__v1__create_volume_group_snapshot_response__init(&reply);
	request.name = (char *)(uintptr_t)GROUP;
	request.source_volume_ids = ids;
	request.n_source_volume_ids = N;
	request.parameters = parameters;
	request.n_parameters = 1;
	controller_create_group(d.controller, &waiter, &request, &reply);
	sha256_hex(text, strlen(text), hex);
	CLEANUP(free_charp) char *wanted = x_asprintf("team/snapshot-%s", hex);
	CLEANUP(pmem_volume_freep) struct pmem_volume *r = desk_record(&d, name[0]);
	ck_assert_str_eq(r->volume_snapshot, wanted);
	ck_assert_uint_eq(desk_last(&d, "n2")->create_group_request->n_parameters, 1);
	taken(desk_last(&d, "n2"), N);
	DESK_OK(&a);
}
END_TEST

START_TEST(volumes_on_several_nodes_are_refused_by_name)
{
	struct node_report *r = report_new("n1");
	char other[VOLUME_ID_MAX + 1];
	char *both[] = {source[0], other};

	volume_id_mint("pvc-2", "n1", other);
	report_add_volume(r, other, "pvc-2");
	node_table_put(d.table, r, d.now_ns);
	create(both, 2);
	DESK_FAILED(&a, ERR_PRECONDITION, "is on node n2, and volume");
	ck_assert(strstr(a.error->msg, source[0]) && strstr(a.error->msg, other));
	ck_assert_uint_eq(d.n_calls, 0);
	ck_assert_uint_eq(d.n_writes, 0);
}
END_TEST

START_TEST(requests_are_checked_first)
{
	char *twice[] = {source[0], source[0]};

	create(ids, 0);
	DESK_FAILED(&a, ERR_INVALID_ARGUMENT, "must have 1 to 64");
	again();
	create(twice, 2);
	DESK_FAILED(&a, ERR_INVALID_ARGUMENT, "twice");
	ck_assert_uint_eq(d.n_calls, 0);
}
END_TEST

/* If one of the volumes does not exist, the node is not asked, and the records of the other snapshots are
 * removed. */
START_TEST(a_volume_that_fails_first_leaves_no_record)
{
	char *absent[] = {source[0], (char *)(uintptr_t)"pvc-nothing"};

	create(absent, 2);
	DESK_FAILED(&a, ERR_NOT_FOUND, "pvc-nothing");
	ck_assert_uint_eq(d.n_calls, 0);
	desk_check_nodes(&d, name[0], NULL);
}
END_TEST

START_TEST(a_write_that_fails_ends_the_call)
{
	d.fail_write = 2;
	d.fail_code = ERR_INTERNAL;
	create(ids, N);
	DESK_FAILED(&a, ERR_UNAVAILABLE, "record of volume");
	ck_assert_uint_eq(d.n_calls, 0);
	desk_check_nodes(&d, name[0], NULL);
}
END_TEST

START_TEST(a_node_without_room_leaves_no_record)
{
	create(ids, N);
	desk_failed(desk_last(&d, "n2"), ERR_EXHAUSTED, "no pool has room");
	DESK_FAILED(&a, ERR_EXHAUSTED, "no pool has room");
	for (size_t i = 0; i < N; i++)
		desk_check_nodes(&d, name[i], NULL);
}
END_TEST

START_TEST(an_unknown_outcome_stays_recorded_and_is_retried)
{
	create(ids, N);
	desk_failed(desk_last(&d, "n2"), ERR_UNAVAILABLE, "connection lost");
	DESK_FAILED(&a, ERR_UNAVAILABLE, "connection lost");
	for (size_t i = 0; i < N; i++)
		desk_check_nodes(&d, name[i], "n2");
	again();
	take();
}
END_TEST

START_TEST(an_answer_without_one_of_them_is_not_believed)
{
	create(ids, N);
	taken(desk_last(&d, "n2"), 1);
	DESK_FAILED(&a, ERR_UNAVAILABLE, "no volume ID");
	desk_check_nodes(&d, name[1], "n2");
}
END_TEST

START_TEST(an_earlier_release_is_named)
{
	create(ids, N);
	desk_failed(desk_last(&d, "n2"), ERR_UNIMPLEMENTED, "unknown method");
	DESK_FAILED(&a, ERR_INVALID_ARGUMENT, "update the driver there");
	desk_check_nodes(&d, name[0], NULL);
}
END_TEST

static Csi__V1__GetVolumeGroupSnapshotRequest get_request;
static Csi__V1__GetVolumeGroupSnapshotResponse got;

/* Begins GetVolumeGroupSnapshot with the IDs of the first @n snapshots. */
static void get(size_t n)
{
	static char *listed[N];
	const struct waiter waiter = desk_waiter(&a);

	csi__v1__get_volume_group_snapshot_request__init(&get_request);
	csi__v1__get_volume_group_snapshot_response__init(&got);
	for (size_t i = 0; i < n; i++)
		listed[i] = snapshot[i];
	get_request.group_snapshot_id = group;
	get_request.snapshot_ids = listed;
	get_request.n_snapshot_ids = n;
	controller_get_group(d.controller, &waiter, &get_request, &got);
}

/* Lets the node answer GetVolumeGroupSnapshot with the first @n snapshots of the group, and that the group is
 * complete if @complete. */
static void found(size_t n, const char *of_group, bool complete)
{
	struct desk_call *c = desk_last(&d, "n2");
	Csi__V1__GetVolumeGroupSnapshotResponse answer;
	struct reported_group t;

	csi__v1__get_volume_group_snapshot_response__init(&answer);
	fill_group(&t, n, of_group);
	t.of.ready_to_use = complete;
	answer.group_snapshot = &t.of;
	c->answered = true;
	c->fn(c->user, &answer.base, NULL);
}

START_TEST(the_node_says_what_is_left_of_a_group)
{
	take();
	get(N);
	ck_assert_str_eq(desk_last(&d, "n2")->get_group_request->group_snapshot_id, group);
	ck_assert_uint_eq(desk_last(&d, "n2")->get_group_request->n_snapshot_ids, N);
	found(N, group, /* complete= */ true);
	DESK_OK(&a);
	ck_assert_uint_eq(got.group_snapshot->n_snapshots, N);
	ck_assert_str_eq(got.group_snapshot->group_snapshot_id, group);
	ck_assert_str_eq(got.group_snapshot->snapshots[1]->snapshot_id, snapshot[1]);
	ck_assert_str_eq(got.group_snapshot->snapshots[1]->source_volume_id, source[1]);
	ck_assert_int_eq(got.group_snapshot->creation_time->seconds, TAKEN_S);
	ck_assert(got.group_snapshot->ready_to_use);
	again();
	/* one was lost: those that are there are ready, the group is not */
	get(0);
	found(1, group, /* complete= */ false);
	DESK_OK(&a);
	ck_assert_uint_eq(got.group_snapshot->n_snapshots, 1);
	ck_assert(got.group_snapshot->snapshots[0]->ready_to_use);
	ck_assert(!got.group_snapshot->ready_to_use);
}
END_TEST

START_TEST(a_lost_snapshot_of_a_group_is_named)
{
	take();
	get(N);
	desk_failed(desk_last(&d, "n2"), ERR_INVALID_ARGUMENT, "of whose 2 snapshots 1 are there");
	DESK_FAILED(&a, ERR_INVALID_ARGUMENT, "node n2: of whose 2 snapshots 1 are there");
}
END_TEST

START_TEST(a_group_does_not_exist_if_its_node_says_so)
{
	get(0);
	desk_failed(desk_last(&d, "n2"), ERR_NOT_FOUND, "does not exist");
	DESK_FAILED(&a, ERR_NOT_FOUND, "node n2: does not exist");
	again();
	get(0);
	desk_failed(desk_last(&d, "n2"), ERR_INTERNAL, "broken");
	DESK_FAILED(&a, ERR_UNAVAILABLE, "broken");
}
END_TEST

START_TEST(what_a_node_says_of_another_group_is_not_believed)
{
	take();
	get(0);
	found(0, group, /* complete= */ true);
	DESK_FAILED(&a, ERR_UNAVAILABLE, "is not about group snapshot");
	again();
	get(0);
	found(N, "another", /* complete= */ true);
	DESK_FAILED(&a, ERR_UNAVAILABLE, "is not of group snapshot");
}
END_TEST

/* Whether a snapshot was lost is not known then. */
START_TEST(without_its_node_a_group_is_unavailable)
{
	take();
	d.now_ns += 2 * DESK_LEASE_NS;
	node_table_expire(d.table, d.now_ns);
	get(0);
	DESK_FAILED(&a, ERR_UNAVAILABLE, "node n2, which has group snapshot");
	again();
	volume_group_id(GROUP, "n7", group);
	get(0);
	DESK_FAILED(&a, ERR_UNAVAILABLE, "on a node that has not reported its volumes");
	ck_assert_uint_eq(d.n_calls, 1);
}
END_TEST

START_TEST(a_node_is_not_asked_for_a_group_without_time)
{
	take();
	a.deadline_ns = d.now_ns;
	get(0);
	DESK_FAILED(&a, ERR_DEADLINE, "the deadline does not allow asking node n2");
}
END_TEST

static void delete_group(char **list, size_t n)
{
	const struct waiter waiter = desk_waiter(&a);
	Csi__V1__DeleteVolumeGroupSnapshotRequest q;

	csi__v1__delete_volume_group_snapshot_request__init(&q);
	q.group_snapshot_id = group;
	q.snapshot_ids = list;
	q.n_snapshot_ids = n;
	controller_delete_group(d.controller, &waiter, &q);
}

START_TEST(a_group_is_deleted_with_all_that_is_reported)
{
	take();
	delete_group(NULL, 0);
	ck_assert_uint_eq(d.n_calls, 3);
	ck_assert_str_eq(d.calls[1].delete_snapshot_request->snapshot_id, snapshot[0]);
	desk_deleted(&d.calls[1]);
	ck_assert(!a.finished);
	desk_deleted(&d.calls[2]);
	DESK_OK(&a);
	for (size_t i = 0; i < N; i++)
		desk_check_nodes(&d, name[i], "");
}
END_TEST

/* @origin: ID of the volume that it is of; NULL: not known */
static void report_stranger(const char *origin)
{
	struct node_report *r = report_new("n1");
	struct volume_report *v = report_add_volume(r, STRANGER, STRANGER);

	v->snapshot = true;
	v->source = x_strdup(origin);
	node_table_put(d.table, r, d.now_ns);
}

START_TEST(nothing_is_deleted_if_something_else_is_listed)
{
	char *strangers[] = {(char *)(uintptr_t)STRANGER};

	take();
	report_stranger("pvc-x");
	delete_group(strangers, 1);
	DESK_FAILED(&a, ERR_INVALID_ARGUMENT, "is no snapshot of the group snapshot");
	again();
	strangers[0] = source[0];
	delete_group(strangers, 1);
	DESK_FAILED(&a, ERR_INVALID_ARGUMENT, "is no snapshot of the group snapshot");
	ck_assert_uint_eq(d.n_calls, 1);
}
END_TEST

/* Its state file was damaged and replaced, but the record was not. */
START_TEST(a_record_tells_a_snapshot_of_another_group)
{
	char *strangers[] = {(char *)(uintptr_t)STRANGER};
	struct pmem_volume *record = pmem_volume_new(volume_key_of_handle(STRANGER).hex, DESK_DRIVER);

	record->handle = x_strdup(STRANGER);
	record->snapshot = true;
	pmem_volume_add_node(record, "n1");
	desk_put_record(&d, RECORD_CREATE, record);
	report_stranger(/* origin= */ NULL);
	delete_group(strangers, 1);
	DESK_FAILED(&a, ERR_INVALID_ARGUMENT, "is not in group snapshot");
	ck_assert_uint_eq(d.n_calls, 0);
}
END_TEST

START_TEST(a_snapshot_of_a_group_is_not_deleted_alone)
{
	take();
	desk_delete_snapshot(&d, &a, snapshot[0]);
	DESK_FAILED(&a, ERR_INVALID_ARGUMENT, "is deleted together with it only");
	again();
	/* by the record alone */
	report(/* taken= */ false);
	desk_delete_snapshot(&d, &a, snapshot[1]);
	DESK_FAILED(&a, ERR_INVALID_ARGUMENT, "is deleted together with it only");
	ck_assert_uint_eq(d.n_calls, 1);
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {a_node_is_asked_once_when_all_records_name_it,
		records_name_the_volume_snapshots_that_will_be_made,
		volumes_on_several_nodes_are_refused_by_name, requests_are_checked_first,
		a_volume_that_fails_first_leaves_no_record, a_write_that_fails_ends_the_call,
		a_node_without_room_leaves_no_record, an_unknown_outcome_stays_recorded_and_is_retried,
		an_answer_without_one_of_them_is_not_believed, an_earlier_release_is_named,
		the_node_says_what_is_left_of_a_group, a_lost_snapshot_of_a_group_is_named,
		a_group_does_not_exist_if_its_node_says_so, what_a_node_says_of_another_group_is_not_believed,
		without_its_node_a_group_is_unavailable, a_node_is_not_asked_for_a_group_without_time,
		a_group_is_deleted_with_all_that_is_reported, nothing_is_deleted_if_something_else_is_listed,
		a_record_tells_a_snapshot_of_another_group, a_snapshot_of_a_group_is_not_deleted_alone};
	Suite *suite = suite_create("controller groups");
	TCase *tcase = tcase_create("controller groups");

	suite_add_tcase(suite, tcase);
	tcase_add_checked_fixture(tcase, set_up, tear_down);
	for (size_t i = 0; i < ARRAY_SIZE(tests); i++)
		tcase_add_test(tcase, tests[i]);
	return unit_runner_finish(srunner_create(suite));
}
