/* SPDX-License-Identifier: Apache-2.0 */
/* Copies whose record says that they are being made: those that were cut off are undone, those that were
 * finished are kept, also if the state folder is older than the device. */
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"
#include "inspect/repair.h"
#include "os/copy/data_copy.h"
#include "os/copy/fs_uuid.h"
#include "os/fs.h"
#include "os/spawn.h"
#include "unit/volume/content.h"
#include "unit/volume/mounts.h"
#include "unit/xfs_log.h"
#include "volume/copies/copy_completion.h"
#include "volume/id.h"
#include "volume/volumes_private.h"

#define SIZE         MIB(32)
#define XFS_SIZE     MIB(320)
#define DATA         'd'
#define NEW          'n'
#define OLD          'o'
#define MKFS_TIME_MS 60000
#define GUESTS_UUID  "0f5ff0f6-1c36-4d3b-9a3c-111111111111"

enum place { NOWHERE, DEVICE_MADE, COPIED, ZEROED, HEAD_WRITTEN, COMPLETE };

struct kind {
	bool block;
	bool direct;
	bool snapshot;
};

static const struct kind kinds[] = {
	{0}, {.block = true}, {.direct = true}, {.snapshot = true}, {.block = true, .snapshot = true}};
static const struct kind *kind;

static enum place die_at, back_up_at;
static bool dead;
static unsigned skipped; /* how often that place is passed before */
static struct error *err;
static const char *fs_type = "ext4";
static struct strmap parameters;
static char copy_id[VOLUME_ID_MAX + 1];
static char *copy_staging;
static const struct strmap no_context;
static struct repair_report report;

static void copy_folder(const char *from_name, const char *to_name)
{
	CLEANUP(free_charp) char *from = fixture_path(from_name);
	CLEANUP(free_charp) char *to = fixture_path(to_name);
	const char *const clear[] = {"rm", "-rf", to, NULL};
	const char *const copy[] = {"cp", "-aT", from, to, NULL};

	ASSERT_OK(spawn_check(clear, NULL, MKFS_TIME_MS, &err));
	ASSERT_OK(spawn_check(copy, NULL, MKFS_TIME_MS, &err));
}

/* From there on nothing can be changed any more, as after the death of the process. Return: 0, or -1 as the
 * call that is made there. */
static int pass(enum place place, struct error **ret_err)
{
	if ((place == die_at || place == back_up_at) && skipped > 0) {
		skipped--;
		return 0;
	}
	if (place == back_up_at)
		copy_folder("state", "backup");
	if (place != die_at)
		return 0;
	dead = true;
	fx.faults.destroy = ERR_INTERNAL;
	return err_set(ret_err, ERR_INTERNAL, "killed");
}

int __real_records_advance(
	struct records *t, struct volume_record *r, enum volume_phase to, struct error **ret_err);
int __wrap_records_advance(
	struct records *t, struct volume_record *r, enum volume_phase to, struct error **ret_err);

int __wrap_records_advance(
	struct records *t, struct volume_record *r, enum volume_phase to, struct error **ret_err)
{
	return dead ? err_set(ret_err, ERR_INTERNAL, "dead") : __real_records_advance(t, r, to, ret_err);
}

int __real_copy_completion_mark(const char *device, const char *identity, struct error **ret_err);
int __wrap_copy_completion_mark(const char *device, const char *identity, struct error **ret_err);

int __wrap_copy_completion_mark(const char *device, const char *identity, struct error **ret_err)
{
	return pass(DEVICE_MADE, ret_err) < 0 ? -1 : __real_copy_completion_mark(device, identity, ret_err);
}

int __real_data_copy_zero_gaps(
	const struct data_copy *c, const struct fs_extents *x, uint64_t to_bytes, struct error **ret_err);
int __wrap_data_copy_zero_gaps(
	const struct data_copy *c, const struct fs_extents *x, uint64_t to_bytes, struct error **ret_err);

int __wrap_data_copy_zero_gaps(
	const struct data_copy *c, const struct fs_extents *x, uint64_t to_bytes, struct error **ret_err)
{
	return pass(COPIED, ret_err) < 0 ? -1 : __real_data_copy_zero_gaps(c, x, to_bytes, ret_err);
}

int __real_copy_completion_finish(struct volumes *v, const struct copy_last_step *s, struct error **ret_err);
int __wrap_copy_completion_finish(struct volumes *v, const struct copy_last_step *s, struct error **ret_err);

int __wrap_copy_completion_finish(struct volumes *v, const struct copy_last_step *s, struct error **ret_err)
{
	if (pass(ZEROED, ret_err) < 0 || __real_copy_completion_finish(v, s, ret_err) < 0)
		return -1;
	return pass(COMPLETE, ret_err);
}

int __real_fs_set_uuid(
	const char *fstype, const char *device, const char *uuid, int timeout_ms, struct error **ret_err);
int __wrap_fs_set_uuid(
	const char *fstype, const char *device, const char *uuid, int timeout_ms, struct error **ret_err);

int __wrap_fs_set_uuid(
	const char *fstype, const char *device, const char *uuid, int timeout_ms, struct error **ret_err)
{
	return pass(HEAD_WRITTEN, ret_err) < 0
		       ? -1
		       : __real_fs_set_uuid(fstype, device, uuid, timeout_ms, ret_err);
}

static void done(void)
{
	volume_info_free(mt.volume);
	device_free(mt.device);
	free(mt.staging);
	free(copy_staging);
	strmap_done(&parameters);
	repair_report_done(&report);
}

static void set_up(void)
{
	CLEANUP(free_charp) char *folder = NULL;

	fixture_folder();
	fx.done = done;
	folder = fixture_path("direct/volumes");
	mt.staging = fixture_path("kubelet/staging");
	copy_staging = fixture_path("kubelet/copy");
	ck_assert_int_eq(mkdir(mt.staging, 0755), 0);
	ck_assert_int_eq(mkdir(copy_staging, 0755), 0);
	volume_id_mint("copy", NODE_ID, copy_id);
	fx.direct_volumes_dir = x_strdup(folder);
	fixture_restart();
}

static void stage(const char *id, const char *path)
{
	const struct use_request s = {.handle = id,
		.staging_path = path,
		.block = kind->block,
		.fs_type = kind->block ? "" : fs_type,
		.context = &no_context};

	ASSERT_OK(volumes_stage(fx.v, &s, &err));
}

static struct volume_request request(const char *name)
{
	struct volume_request q = fixture_request(name, str_eq(fs_type, "xfs") ? XFS_SIZE : SIZE);

	q.parameters = &parameters;
	q.block = kind->block;
	q.fs_type = kind->block ? NULL : fs_type;
	return q;
}

static void make_source(const struct kind *k)
{
	kind = k;
	if (k->direct)
		strmap_set(&parameters, "directVolume", "true");
	const struct volume_request q = request("source");
	ASSERT_OK(volumes_create(fx.v, &q, &mt.volume, &err));
	mt.device = fixture_device(mt.volume->id);
	stage(mt.volume->id, mt.staging);
	if (k->block)
		content_fill(mt.device, DATA);
	else if (!k->direct)
		ck_assert_int_eq(mounts_write(mt.staging), 0);
	ASSERT_OK(volumes_unstage(fx.v, mt.volume->id, mt.staging, &err));
}

static void delete_source(void)
{
	ASSERT_OK(volumes_delete(fx.v, mt.volume->id, &err));
	volume_info_free(TAKE_PTR(mt.volume));
	device_free(TAKE_PTR(mt.device));
	strmap_done(&parameters);
}

static int try_copy(void)
{
	CLEANUP(volume_info_freep) struct volume_info *info = NULL;
	CLEANUP(snapshot_info_freep) struct snapshot_info *taken = NULL;
	struct volume_request q = request("copy");
	const struct snapshot_request s = {
		.name = "copy", .source = mt.volume->id, .parameters = &no_context};

	q.source = mt.volume->id;
	return kind->snapshot ? volumes_create_snapshot(fx.v, &s, &taken, &err)
			      : volumes_create(fx.v, &q, &info, &err);
}

/* @rc: of a call that is to succeed, unless its process is killed */
static void assert_made(int rc)
{
	ck_assert_msg(dead || rc == 0, "%s", err ? err->msg : "no error");
	error_clear(&err);
}

static void make_copy(void)
{
	assert_made(try_copy());
}

/* Its process is killed at @place. */
static void cut_off(enum place place, void (*make)(void))
{
	die_at = place;
	make();
	die_at = NOWHERE;
	ck_assert(dead);
	dead = false;
	fx.faults.destroy = 0;
	fixture_stop();
	fixture_open();
}

static void start(void)
{
	ASSERT_OK(volumes_start(fx.v, &err));
}

static void repair(void)
{
	repair_report_done(&report);
	ASSERT_OK(volumes_repair(fx.v, copy_id, ADOPTED_FILESYSTEM, &report, &err));
}

static void repair_and_start(void)
{
	repair();
	ck_assert_msg(!report.left && report.done, "%s", report.left ? report.left[0] : "nothing is done");
	fixture_restart();
}

static void assert_undone(void)
{
	fixture_await_erased();
	ck_assert_uint_eq(fixture_n_files(), 1);
	ck_assert_uint_eq(fixture_n_devices(), 1);
}

static struct volume_record *copy_record(void)
{
	struct volume_record *r = records_find(fx.v->records, copy_id);

	ck_assert_ptr_nonnull(r);
	return r;
}

/* With what the source had when it was copied. */
static void assert_ready(void)
{
	CLEANUP(volume_record_freep) struct volume_record *r = copy_record();
	CLEANUP(device_freep) struct device *d = fixture_device(copy_id);

	ck_assert_int_eq(r->phase, PHASE_READY);
	ck_assert_uint_eq(r->size_bytes, d->size_bytes);
	ck_assert(r->ever_staged || kind->block);
	ck_assert_uint_eq(r->taken_s > 0, kind->snapshot);
	ck_assert(r->block_clean == (kind->block || kind->direct));
	if (kind->block) {
		ck_assert_uint_eq(content_count(d, DATA), SIZE / CONTENT_BLOCK);
	} else if (!kind->direct && !kind->snapshot) {
		stage(copy_id, copy_staging);
		ck_assert(mounts_has_file(copy_staging));
		ASSERT_OK(volumes_unstage(fx.v, copy_id, copy_staging, &err));
	}
	/* a call that comes again is answered with it */
	make_copy();
	ck_assert_uint_eq(fixture_n_devices(), 2);
}

static void delete_copy(void)
{
	ASSERT_OK(kind->snapshot ? volumes_delete_snapshot(fx.v, copy_id, &err)
				 : volumes_delete(fx.v, copy_id, &err));
	assert_undone();
}

static void fill_made(const struct device *d)
{
	content_fill(d, OLD);
}

static void cut_off_everywhere(void (*settle)(void))
{
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		make_source(&kinds[i]);
		for (enum place at = DEVICE_MADE; at <= HEAD_WRITTEN; at++) {
			if (at == HEAD_WRITTEN && kind->block)
				continue;
			fx.faults.made = fill_made;
			cut_off(at, make_copy);
			fx.faults.made = NULL;
			ck_assert_uint_eq(fixture_n_devices(), 2);
			settle();
			assert_undone();
		}
		cut_off(COMPLETE, make_copy);
		settle();
		assert_ready();
		delete_copy();
		delete_source();
	}
}

START_TEST(start_undoes_copies_that_were_cut_off_and_keeps_others)
{
	cut_off_everywhere(start);
}
END_TEST

START_TEST(repair_undoes_copies_that_were_cut_off_and_keeps_others)
{
	cut_off_everywhere(repair_and_start);
}
END_TEST

START_TEST(call_that_comes_again_makes_a_copy_that_was_cut_off)
{
	make_source(&kinds[0]);
	cut_off(ZEROED, make_copy);
	ASSERT_OK(volumes_load(fx.v, /* for_repair= */ false, &err));
	ASSERT_FAILS(try_copy(), ERR_ABORTED, "still being erased");
	fixture_await_erased();
	make_copy();
	assert_ready();
}
END_TEST

/* The state folder is as it was while the copy was at @place. */
static void make_and_restore(enum place place, void (*use)(void))
{
	back_up_at = place;
	make_copy();
	back_up_at = NOWHERE;
	use();
	fixture_stop();
	copy_folder("backup", "state");
	fixture_open();
}

static void nothing(void)
{
}

START_TEST(copies_are_kept_that_were_finished_after_the_backup)
{
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		make_source(&kinds[i]);
		for (enum place at = DEVICE_MADE; at <= HEAD_WRITTEN; at++) {
			if (kind->block && (at == DEVICE_MADE || at == HEAD_WRITTEN))
				continue;
			make_and_restore(at, nothing);
			start();
			assert_ready();
			delete_copy();
		}
		delete_source();
	}
}
END_TEST

static void write_anew(void)
{
	CLEANUP(device_freep) struct device *d = fixture_device(copy_id);

	if (kind->block) {
		content_fill(d, NEW);
		return;
	}
	/* as a guest may */
	ASSERT_OK(fs_make("ext4", d->path, &(struct fs_layout){.uuid = GUESTS_UUID}, MKFS_TIME_MS, &err));
}

static void assert_kept(void)
{
	CLEANUP(device_freep) struct device *d = fixture_device(copy_id);
	struct fs_super super;

	ck_assert_uint_eq(fixture_n_files(), 2);
	ck_assert_uint_eq(fixture_n_devices(), 2);
	if (kind->block) {
		ck_assert_uint_eq(content_count(d, NEW), SIZE / CONTENT_BLOCK);
		return;
	}
	ASSERT_OK(fs_read_super("ext4", d->path, &super, &err));
	ck_assert_str_eq(super.uuid, GUESTS_UUID);
}

static void remove_member(char *text, const char *key)
{
	char *at = strstr(text, key);

	if (!at)
		return;
	const char *end = at + 1 + strcspn(at + 1, ",}");
	memmove(at, end, strlen(end) + 1);
}

/* Earlier versions neither marked devices nor recorded UUIDs beforehand. */
static void make_record_older(void)
{
	CLEANUP(free_charp) char *file = x_asprintf("%s.creating", copy_id);
	CLEANUP(free_charp) char *text = fixture_read(file);

	remove_member(text, ",\"copyShows\":");
	remove_member(text, ",\"copyMarked\":");
	remove_member(text, ",\"fsUUID\":");
	fixture_write(file, text);
}

/* A guest may make another file system, and of copies of earlier versions nothing shows what they are. */
START_TEST(copies_of_which_that_is_not_known_are_kept_and_reported)
{
	for (size_t i = 0; i <= 2; i++) {
		make_source(&kinds[i]);
		make_and_restore(COPIED, write_anew);
		if (!kind->direct)
			make_record_older();
		repair();
		ck_assert(!report.done && report.left);
		ck_assert_msg(strstr(report.left[0], "kept until it is deleted"), "%s", report.left[0]);
		fixture_restart();
		ASSERT_FAILS(try_copy(), ERR_PRECONDITION, "kept until it is deleted");
		assert_kept();
		ASSERT_OK(volumes_delete(fx.v, copy_id, &err));
		ASSERT_OK(volumes_refresh(fx.v, &err));
		assert_undone();
		delete_source();
	}
}
END_TEST

static void damage(const char *suffix)
{
	CLEANUP(free_charp) char *file = x_asprintf("%s.%s", copy_id, suffix);
	CLEANUP(free_charp) char *text = fixture_read(file);

	/* in the list of parameters, which comes before the source */
	text[strlen(text) / 4] = '\0';
	fixture_write(file, text);
}

START_TEST(damaged_file_makes_no_copy_ready)
{
	CLEANUP(free_charp) char *file = x_asprintf("%s.creating", copy_id);

	make_source(&kinds[0]);
	cut_off(COPIED, make_copy);
	damage("creating");
	repair_and_start();
	/* which is kept aside */
	ck_assert_uint_eq(fixture_n_devices(), 1);
	cut_off(HEAD_WRITTEN, make_copy);
	damage("creating");
	repair();
	ck_assert(!report.done && report.left);
	ck_assert_msg(strstr(report.left[0], "is no copy"), "%s", report.left[0]);
	ck_assert(fixture_exists(file));
	ck_assert_uint_eq(fixture_n_devices(), 2);
}
END_TEST

/* A power cut has interrupted xfs_db: the log of the copy still has the UUID of the source. */
START_TEST(copy_with_the_uuid_of_its_source_in_its_log_becomes_one_that_can_be_mounted)
{
	CLEANUP(free_charp) char *log = NULL;

	fs_type = "xfs";
	make_source(&kinds[0]);
	cut_off(COMPLETE, make_copy);
	CLEANUP(device_freep) struct device *d = fixture_device(copy_id);
	CLEANUP(fd_closep) int from = open(mt.device->path, O_RDONLY | O_CLOEXEC);
	CLEANUP(fd_closep) int to = open(d->path, O_WRONLY | O_CLOEXEC);
	const struct fs_extent at = xfs_log_of(from);
	log = x_malloc(at.length_bytes);
	ck_assert_int_eq(pread(from, log, at.length_bytes, (off_t)at.at_bytes), at.length_bytes);
	ck_assert_int_eq(pwrite(to, log, at.length_bytes, (off_t)at.at_bytes), at.length_bytes);
	ck_assert_int_eq(fsync(to), 0);
	fd_closep(&from);
	fd_closep(&to);
	start();
	assert_ready();
}
END_TEST

static void make_group(void)
{
	CLEANUP(volume_info_freep) struct volume_info *other = NULL;
	CLEANUP(group_info_freep) struct group_info *g = NULL;
	struct volume_request q = request("other");

	ASSERT_OK(volumes_create(fx.v, &q, &other, &err));
	char *const sources[] = {mt.volume->id, other->id, NULL};
	const struct group_request r = {.name = "group", .sources = sources, .parameters = &no_context};
	assert_made(volumes_create_group(fx.v, &r, &g, &err));
}

static size_t count_ready(void)
{
	size_t n;
	bool more;
	struct snapshot_info **list;

	volumes_list_snapshots(fx.v, NULL, 10, &list, &n, &more);
	for (size_t i = 0; i < n; i++)
		snapshot_info_free(list[i]);
	free(list);
	return n;
}

/* One of its snapshots is complete on its device, and the other one is not. */
START_TEST(group_is_kept_as_a_whole_or_undone)
{
	for (size_t i = 0; i <= 1; i++) {
		make_source(&kinds[i]);
		cut_off(COMPLETE, make_group);
		start();
		fixture_await_erased();
		ck_assert_uint_eq(count_ready(), 0);
		ck_assert_uint_eq(fixture_n_devices(), 2);
		skipped = 1;
		cut_off(COMPLETE, make_group);
		start();
		ck_assert_uint_eq(count_ready(), 2);
		ck_assert_uint_eq(fixture_n_devices(), 4);
		skipped = 0;
		make_group();
		char id[VOLUME_ID_MAX + 1];
		volume_group_id("group", NODE_ID, id);
		ASSERT_OK(volumes_delete_group(fx.v, id, NULL, &err));
		volume_id_mint("other", NODE_ID, id);
		ASSERT_OK(volumes_delete(fx.v, id, &err));
		delete_source();
	}
}
END_TEST

/* The records of a group are older than its devices. */
START_TEST(group_is_kept_that_was_finished_after_the_backup)
{
	make_source(&kinds[0]);
	back_up_at = COPIED;
	make_group();
	back_up_at = NOWHERE;
	fixture_stop();
	copy_folder("backup", "state");
	fixture_open();
	start();
	ck_assert_uint_eq(count_ready(), 2);
	make_group();
}
END_TEST

FIXTURE_MAIN("copies_unfinished", set_up, start_undoes_copies_that_were_cut_off_and_keeps_others,
	repair_undoes_copies_that_were_cut_off_and_keeps_others,
	call_that_comes_again_makes_a_copy_that_was_cut_off,
	copies_are_kept_that_were_finished_after_the_backup,
	copies_of_which_that_is_not_known_are_kept_and_reported, damaged_file_makes_no_copy_ready,
	copy_with_the_uuid_of_its_source_in_its_log_becomes_one_that_can_be_mounted,
	group_is_kept_as_a_whole_or_undone, group_is_kept_that_was_finished_after_the_backup)
