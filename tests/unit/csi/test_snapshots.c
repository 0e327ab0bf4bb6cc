/* SPDX-License-Identifier: Apache-2.0 */
/* The calls about snapshots, with volumes in memory. */
#include <string.h>
#include <time.h>

#include "base/mem.h"
#include "base/str.h"
#include "csi/reply.h"
#include "unit/csi/harness.h"
#include "unit/unit.h"

#define MIB 1048576

static struct harness h;
static struct error *err;
static Csi__V1__Volume *volume;

static void set_up(void)
{
	harness_open(&h, /* start= */ true);
	ASSERT_OK(harness_create(&h, "source", 8 * MIB, &volume, &err));
}

static void tear_down(void)
{
	harness_close(&h);
}

/* @ret: where the pointer to the reply goes */
static int call(const char *method, const void *request, void *ret)
{
	CLEANUP(free_charp) char *path = x_asprintf("/csi.v1.Controller/%s", method);
	void *reply = NULL;
	int rc = harness_call(&h, path, request, &reply, &err);

	memcpy(ret, &reply, sizeof(reply));
	return rc;
}

static int take_of(const char *name, const char *source, Csi__V1__Snapshot **ret)
{
	Csi__V1__CreateSnapshotRequest q;
	csi__v1__create_snapshot_request__init(&q);
	Csi__V1__CreateSnapshotResponse *reply;

	q.name = (char *)(uintptr_t)name;
	q.source_volume_id = (char *)(uintptr_t)source;
	if (call("CreateSnapshot", &q, &reply) < 0)
		return -1;
	if (ret)
		*ret = reply->snapshot;
	return 0;
}

static int take(const char *name, Csi__V1__Snapshot **ret)
{
	return take_of(name, volume->volume_id, ret);
}

static Csi__V1__ListSnapshotsResponse *list(const Csi__V1__ListSnapshotsRequest *asked)
{
	Csi__V1__ListSnapshotsRequest q = *asked;
	Csi__V1__ListSnapshotsResponse *reply;

	ASSERT_OK(call("ListSnapshots", &q, &reply));
	return reply;
}

static size_t count_all(void)
{
	Csi__V1__ListSnapshotsRequest q;
	csi__v1__list_snapshots_request__init(&q);

	return list(&q)->n_entries;
}

static int delete_snapshot(const char *id)
{
	Csi__V1__DeleteSnapshotRequest q;
	csi__v1__delete_snapshot_request__init(&q);
	void *reply;

	q.snapshot_id = (char *)(uintptr_t)id;
	return call("DeleteSnapshot", &q, &reply);
}

static int delete_volume(const char *id)
{
	Csi__V1__DeleteVolumeRequest q;
	csi__v1__delete_volume_request__init(&q);
	void *reply;

	q.volume_id = (char *)(uintptr_t)id;
	return call("DeleteVolume", &q, &reply);
}

static int get(const char *id, Csi__V1__Snapshot **ret)
{
	Csi__V1__GetSnapshotRequest q;
	csi__v1__get_snapshot_request__init(&q);
	Csi__V1__GetSnapshotResponse *reply;

	q.snapshot_id = (char *)(uintptr_t)id;
	if (call("GetSnapshot", &q, &reply) < 0)
		return -1;
	*ret = reply->snapshot;
	return 0;
}

START_TEST(a_snapshot_says_what_it_is_of_and_when_it_was_taken)
{
	Csi__V1__Snapshot *s;
	Csi__V1__Snapshot *same;
	int64_t before_s = time(NULL);

	ASSERT_OK(take("snap", &s));
	ck_assert_str_eq(s->source_volume_id, volume->volume_id);
	ck_assert_int_eq(s->size_bytes, 8 * MIB);
	ck_assert(s->ready_to_use);
	ck_assert_int_ge(s->creation_time->seconds, before_s);
	ck_assert_int_le(s->creation_time->seconds, time(NULL));
	ASSERT_OK(take("snap", &same));
	ck_assert_str_eq(same->snapshot_id, s->snapshot_id);
	ck_assert_uint_eq(count_all(), 1);
	ASSERT_OK(get(s->snapshot_id, &same));
	ck_assert_str_eq(same->source_volume_id, volume->volume_id);
}
END_TEST

START_TEST(a_name_stands_for_one_source)
{
	Csi__V1__Volume *other;

	ASSERT_OK(harness_create(&h, "other", 8 * MIB, &other, &err));
	ASSERT_OK(take("snap", NULL));
	ASSERT_FAILS(take_of("snap", other->volume_id, NULL), ERR_EXISTS, "is a copy of");
	ASSERT_FAILS(take("other", NULL), ERR_EXISTS, "a volume has that name");
	ASSERT_FAILS(
		harness_create(&h, "snap", 8 * MIB, &other, &err), ERR_EXISTS, "a snapshot has that name");
}
END_TEST

START_TEST(requests_lack_nothing)
{
	Csi__V1__Snapshot *s;

	ASSERT_FAILS(take("", NULL), ERR_INVALID_ARGUMENT, "name is missing");
	ASSERT_FAILS(take_of("snap", "", NULL), ERR_INVALID_ARGUMENT, "source_volume_id is missing");
	ASSERT_FAILS(take_of("snap", "nothing", NULL), ERR_NOT_FOUND, "volume nothing does not exist");
	ASSERT_FAILS(delete_snapshot(""), ERR_INVALID_ARGUMENT, "snapshot_id is missing");
	ASSERT_FAILS(get("", &s), ERR_INVALID_ARGUMENT, "snapshot_id is missing");
	ASSERT_FAILS(get("nothing", &s), ERR_NOT_FOUND, "snapshot nothing does not exist");
	ASSERT_OK(delete_snapshot("nothing"));
}
END_TEST

static int take_with(const char *key, const char *value)
{
	Csi__V1__CreateSnapshotRequest q;
	csi__v1__create_snapshot_request__init(&q);
	Csi__V1__CreateSnapshotRequest__ParametersEntry e;
	csi__v1__create_snapshot_request__parameters_entry__init(&e);
	Csi__V1__CreateSnapshotRequest__ParametersEntry *list_of_one[] = {&e};
	void *reply;

	e.key = (char *)(uintptr_t)key;
	e.value = (char *)(uintptr_t)value;
	q.name = (char *)(uintptr_t)"snap";
	q.source_volume_id = volume->volume_id;
	q.n_parameters = 1;
	q.parameters = list_of_one;
	return call("CreateSnapshot", &q, &reply);
}

START_TEST(a_class_has_a_pause_and_nothing_else)
{
	ASSERT_FAILS(take_with("usage", "FileIO"), ERR_INVALID_ARGUMENT, "unknown parameter \"usage\"");
	ASSERT_FAILS(take_with("maxPause", "never"), ERR_INVALID_ARGUMENT, "maxPause");
	ASSERT_OK(take_with("maxPause", "2s"));
	ASSERT_OK(take_with("csi.storage.k8s.io/volumesnapshot/name", "any"));
}
END_TEST

/* CSI: what DeleteVolume does not know is deleted already. */
START_TEST(volumes_and_snapshots_do_not_know_each_other)
{
	Csi__V1__ListVolumesRequest q;
	csi__v1__list_volumes_request__init(&q);
	Csi__V1__ListVolumesResponse *reply;
	Csi__V1__Snapshot *s;

	ASSERT_OK(take("snap", &s));
	ASSERT_OK(call("ListVolumes", &q, &reply));
	ck_assert_uint_eq(reply->n_entries, 1);
	ASSERT_OK(delete_volume(s->snapshot_id));
	ck_assert_uint_eq(count_all(), 1);
	ASSERT_OK(delete_snapshot(volume->volume_id));
	ASSERT_OK(call("ListVolumes", &q, &reply));
	ck_assert_uint_eq(reply->n_entries, 1);
	ASSERT_FAILS(take_of("other", s->snapshot_id, NULL), ERR_NOT_FOUND, "does not exist");
	ASSERT_OK(delete_volume(volume->volume_id));
	ck_assert_uint_eq(count_all(), 1);
	ASSERT_OK(delete_snapshot(s->snapshot_id));
	ck_assert_uint_eq(count_all(), 0);
}
END_TEST

START_TEST(lists_are_of_a_source_or_of_one_snapshot)
{
	Csi__V1__ListSnapshotsRequest q;
	csi__v1__list_snapshots_request__init(&q);
	Csi__V1__ListSnapshotsResponse *reply;
	Csi__V1__Volume *other;
	Csi__V1__Snapshot *s;

	ASSERT_OK(harness_create(&h, "other", 8 * MIB, &other, &err));
	ASSERT_OK(take("one", NULL));
	ASSERT_OK(take("two", &s));
	ASSERT_OK(take_of("three", other->volume_id, NULL));
	ck_assert_uint_eq(count_all(), 3);
	q.source_volume_id = other->volume_id;
	ck_assert_uint_eq(list(&q)->n_entries, 1);
	q.source_volume_id = volume->volume_id;
	q.max_entries = 1;
	reply = list(&q);
	ck_assert_uint_eq(reply->n_entries, 1);
	q.starting_token = reply->next_token;
	reply = list(&q);
	ck_assert_uint_eq(reply->n_entries, 1);
	ck_assert_str_eq(reply->next_token, "");
	csi__v1__list_snapshots_request__init(&q);
	q.snapshot_id = s->snapshot_id;
	reply = list(&q);
	ck_assert_uint_eq(reply->n_entries, 1);
	ck_assert_str_eq(reply->entries[0]->snapshot->snapshot_id, s->snapshot_id);
	q.snapshot_id = (char *)(uintptr_t)"nothing";
	ck_assert_uint_eq(list(&q)->n_entries, 0);
}
END_TEST

static int create(
	const char *name, const char *fs_type, Csi__V1__VolumeContentSource *source, Csi__V1__Volume **ret)
{
	Csi__V1__CreateVolumeRequest q;
	csi__v1__create_volume_request__init(&q);
	Csi__V1__VolumeCapability *cap = harness_capability(
		&h, fs_type, CSI__V1__VOLUME_CAPABILITY__ACCESS_MODE__MODE__SINGLE_NODE_WRITER);
	Csi__V1__CreateVolumeResponse *reply;

	q.name = (char *)(uintptr_t)name;
	q.n_volume_capabilities = 1;
	q.volume_capabilities = &cap;
	q.volume_content_source = source;
	if (call("CreateVolume", &q, &reply) < 0)
		return -1;
	*ret = reply->volume;
	return 0;
}

static int restore(const char *name, Csi__V1__VolumeContentSource *source, Csi__V1__Volume **ret)
{
	return create(name, "", source, ret);
}

START_TEST(a_copy_without_a_type_has_that_of_its_source)
{
	Csi__V1__Volume *made;
	Csi__V1__Volume *copy;

	ASSERT_OK(create("xfs", "xfs", /* source= */ NULL, &made));
	Csi__V1__VolumeContentSource *source =
		csi_content_source(h.arena, made->volume_id, /* is_snapshot= */ false);
	ASSERT_OK(create("copy", "", source, &copy));
	ASSERT_OK(create("copy", "xfs", source, &copy));
	ASSERT_FAILS(create("copy", "ext4", source, &copy), ERR_EXISTS, "with other parameters");
	ASSERT_FAILS(create("other", "ext4", source, &copy), ERR_INVALID_ARGUMENT, "cannot have ext4");
}
END_TEST

START_TEST(a_snapshot_is_restored_without_its_source)
{
	Csi__V1__Snapshot *s;
	Csi__V1__Volume *made;

	ASSERT_OK(take("snap", &s));
	ASSERT_OK(delete_volume(volume->volume_id));
	ASSERT_FAILS(restore("wrong", csi_content_source(h.arena, s->snapshot_id, /* is_snapshot= */ false),
			     &made),
		ERR_NOT_FOUND, "does not exist");
	ASSERT_OK(restore(
		"restored", csi_content_source(h.arena, s->snapshot_id, /* is_snapshot= */ true), &made));
	ck_assert_int_eq(made->capacity_bytes, 8 * MIB);
	ck_assert_int_eq(made->content_source->type_case, CSI__V1__VOLUME_CONTENT_SOURCE__TYPE_SNAPSHOT);
	ck_assert_str_eq(made->content_source->snapshot->snapshot_id, s->snapshot_id);
	ASSERT_FAILS(restore("other", csi_content_source(h.arena, made->volume_id, /* is_snapshot= */ true),
			     &made),
		ERR_NOT_FOUND, "snapshot");
}
END_TEST

static int call_group(const char *method, const void *request, void *ret)
{
	CLEANUP(free_charp) char *path = x_asprintf("/csi.v1.GroupController/%s", method);
	void *reply = NULL;
	int rc = harness_call(&h, path, request, &reply, &err);

	memcpy(ret, &reply, sizeof(reply));
	return rc;
}

static int take_group(char **sources, size_t n, Csi__V1__VolumeGroupSnapshot **ret)
{
	Csi__V1__CreateVolumeGroupSnapshotRequest q;
	csi__v1__create_volume_group_snapshot_request__init(&q);
	Csi__V1__CreateVolumeGroupSnapshotResponse *reply;

	q.name = (char *)(uintptr_t)"group";
	q.source_volume_ids = sources;
	q.n_source_volume_ids = n;
	if (call_group("CreateVolumeGroupSnapshot", &q, &reply) < 0)
		return -1;
	*ret = reply->group_snapshot;
	return 0;
}

static int delete_group(const char *id, char **snapshots, size_t n)
{
	Csi__V1__DeleteVolumeGroupSnapshotRequest q;
	csi__v1__delete_volume_group_snapshot_request__init(&q);
	void *reply;

	q.group_snapshot_id = (char *)(uintptr_t)id;
	q.snapshot_ids = snapshots;
	q.n_snapshot_ids = n;
	return call_group("DeleteVolumeGroupSnapshot", &q, &reply);
}

START_TEST(a_group_says_what_belongs_to_it)
{
	Csi__V1__GetVolumeGroupSnapshotRequest q;
	csi__v1__get_volume_group_snapshot_request__init(&q);
	Csi__V1__GetVolumeGroupSnapshotResponse *got;
	Csi__V1__VolumeGroupSnapshot *g;
	Csi__V1__Volume *other;

	ASSERT_OK(harness_create(&h, "other", 8 * MIB, &other, &err));
	char *sources[] = {volume->volume_id, other->volume_id};
	ASSERT_FAILS(take_group(sources, 0, &g), ERR_INVALID_ARGUMENT, "must have 1 to 64");
	ASSERT_OK(take_group(sources, 2, &g));
	ck_assert(g->ready_to_use);
	ck_assert_uint_eq(g->n_snapshots, 2);
	ck_assert_int_eq(g->creation_time->seconds, g->snapshots[1]->creation_time->seconds);
	for (size_t i = 0; i < g->n_snapshots; i++)
		ck_assert_str_eq(g->snapshots[i]->group_snapshot_id, g->group_snapshot_id);
	ck_assert_uint_eq(count_all(), 2);
	q.group_snapshot_id = g->group_snapshot_id;
	ASSERT_OK(call_group("GetVolumeGroupSnapshot", &q, &got));
	ck_assert_uint_eq(got->group_snapshot->n_snapshots, 2);
	q.group_snapshot_id = (char *)(uintptr_t)"";
	ASSERT_FAILS(call_group("GetVolumeGroupSnapshot", &q, &got), ERR_INVALID_ARGUMENT,
		"group_snapshot_id is missing");
}
END_TEST

/* The central controller, which has recorded that, deletes them one by one. */
START_TEST(only_the_controller_deletes_a_snapshot_of_a_group)
{
	Csi__V1__VolumeGroupSnapshot *g;
	char *sources[] = {volume->volume_id};

	ASSERT_OK(take_group(sources, 1, &g));
	ASSERT_FAILS(delete_snapshot(g->snapshots[0]->snapshot_id), ERR_INVALID_ARGUMENT,
		"is deleted together with it only");
	ck_assert_uint_eq(count_all(), 1);
	h.csi.made_by_controller = true;
	ASSERT_OK(delete_snapshot(g->snapshots[0]->snapshot_id));
	ck_assert_uint_eq(count_all(), 0);
	h.csi.made_by_controller = false;
	ASSERT_OK(take_group(sources, 1, &g));
	ASSERT_FAILS(
		delete_group(g->group_snapshot_id, sources, 1), ERR_INVALID_ARGUMENT, "is no snapshot of");
	ASSERT_OK(delete_group(g->group_snapshot_id, NULL, 0));
	ck_assert_uint_eq(count_all(), 0);
	ASSERT_FAILS(delete_group("", NULL, 0), ERR_INVALID_ARGUMENT, "group_snapshot_id is missing");
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {a_snapshot_says_what_it_is_of_and_when_it_was_taken,
		a_name_stands_for_one_source, requests_lack_nothing, a_class_has_a_pause_and_nothing_else,
		volumes_and_snapshots_do_not_know_each_other, lists_are_of_a_source_or_of_one_snapshot,
		a_copy_without_a_type_has_that_of_its_source, a_snapshot_is_restored_without_its_source,
		a_group_says_what_belongs_to_it, only_the_controller_deletes_a_snapshot_of_a_group};
	Suite *suite = suite_create("csi snapshots");
	TCase *tcase = tcase_create("csi snapshots");

	suite_add_tcase(suite, tcase);
	tcase_add_checked_fixture(tcase, set_up, tear_down);
	for (size_t i = 0; i < ARRAY_SIZE(tests); i++)
		tcase_add_test(tcase, tests[i]);
	return unit_runner_finish(srunner_create(suite));
}
