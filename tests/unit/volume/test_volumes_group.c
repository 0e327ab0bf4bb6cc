/* SPDX-License-Identifier: Apache-2.0 */
/* Snapshots of several volumes: that they show one moment, and that all of them come to be or none. */
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"
#include "os/copy/fs_freeze.h"
#include "unit/volume/content.h"
#include "unit/volume/mounts.h"
#include "volume/id.h"

#define SIZE MIB(64)

static struct error *err;
static const struct strmap no_context;
static struct volume_info *second; /* the first is mt.volume */
static char *second_staging;
static char *restored; /* folders at which what is restored is staged */
static char *second_restored;

static char *folder(const char *name)
{
	char *path = fixture_path(name);

	ck_assert_int_eq(mkdir(path, 0755), 0);
	return path;
}

static void set_up(void)
{
	mounts_set_up(SIZE);
	second = fixture_create("second", SIZE);
	second_staging = folder("kubelet/second");
	restored = folder("kubelet/restored");
	second_restored = folder("kubelet/second-restored");
}

static void stage(const char *id, const char *path)
{
	const struct use_request s = {
		.handle = id, .staging_path = path, .fs_type = "ext4", .context = &no_context};

	ASSERT_OK(volumes_stage(fx.v, &s, &err));
}

static void stage_both(void)
{
	stage(mt.volume->id, mt.staging);
	stage(second->id, second_staging);
}

static int try_group(const char *name, char *const *sources, struct group_info **ret)
{
	const struct group_request q = {.name = name, .sources = sources, .parameters = &no_context};

	return volumes_create_group(fx.v, &q, ret, &err);
}

static struct group_info *take(void)
{
	char *const sources[] = {mt.volume->id, second->id, NULL};
	struct group_info *g;

	ASSERT_OK(try_group("group", sources, &g));
	return g;
}

static void fails(int rc, enum err_code code, const char *text)
{
	ck_assert_int_eq(rc, -1);
	ck_assert_msg(
		err->code == code && strstr(err->msg, text), "%s: %s", err_code_name(err->code), err->msg);
	error_clear(&err);
}

/* The snapshot of the volume @source in @g. Borrowed. */
static const struct snapshot_info *of(const struct group_info *g, const char *source)
{
	for (size_t i = 0; i < g->n; i++) {
		if (str_eq(g->snapshots[i]->source, source))
			return g->snapshots[i];
	}
	ck_abort_msg("there is no snapshot of %s", source);
}

static int open_counter(const char *folder_path, int flags)
{
	CLEANUP(free_charp) char *path = x_asprintf("%s/counter", folder_path);
	int fd = open(path, flags | O_CLOEXEC, 0600);

	ck_assert_int_ge(fd, 0);
	return fd;
}

static unsigned read_counter(const char *folder_path)
{
	CLEANUP(fd_closep) int fd = open_counter(folder_path, O_RDONLY);
	unsigned value;

	ck_assert_int_eq(pread(fd, &value, sizeof(value), 0), sizeof(value));
	return value;
}

/* As a database that writes its log before its data. */
struct writer {
	int first_fd;
	int second_fd;
	atomic_bool stop;
	atomic_uint value;
};

static void *write_in_order(void *user)
{
	struct writer *w = user;

	while (!w->stop) {
		unsigned value = w->value + 1;

		if (pwrite(w->first_fd, &value, sizeof(value), 0) != sizeof(value) ||
			pwrite(w->second_fd, &value, sizeof(value), 0) != sizeof(value))
			return w;
		w->value = value;
	}
	return NULL;
}

static void restore(const char *name, const char *snapshot, const char *path)
{
	struct volume_request q = fixture_request(name, SIZE);
	CLEANUP(volume_info_freep) struct volume_info *info = NULL;

	q.source = snapshot;
	q.source_is_snapshot = true;
	ASSERT_OK(volumes_create(fx.v, &q, &info, &err));
	stage(info->id, path);
}

START_TEST(a_group_shows_its_volumes_at_one_moment)
{
	CLEANUP(group_info_freep) struct group_info *g = NULL;
	struct writer w = {0};
	pthread_t thread;
	void *failed;

	stage_both();
	w.first_fd = open_counter(mt.staging, O_RDWR | O_CREAT);
	w.second_fd = open_counter(second_staging, O_RDWR | O_CREAT);
	ck_assert_int_eq(pthread_create(&thread, NULL, write_in_order, &w), 0);
	while (w.value < 10)
		usleep(1000);
	g = take();
	unsigned after = w.value;
	while (w.value < after + 10)
		usleep(1000);
	w.stop = true;
	ck_assert_int_eq(pthread_join(thread, &failed), 0);
	ck_assert_ptr_null(failed);
	close(w.first_fd);
	close(w.second_fd);
	ck_assert_uint_eq(g->n, 2);
	ck_assert_uint_eq(g->snapshots[0]->taken_s, g->snapshots[1]->taken_s);
	restore("restored", of(g, mt.volume->id)->id, restored);
	restore("second-restored", of(g, second->id)->id, second_restored);
	unsigned first = read_counter(restored), last = read_counter(second_restored);
	ck_assert_msg(first == last || first == last + 1, "the first counter is %u, and the second %u", first,
		last);
	ck_assert_uint_gt(last, 0);
}
END_TEST

START_TEST(volumes_that_are_not_in_use_are_copied_too)
{
	CLEANUP(group_info_freep) struct group_info *g = NULL;

	stage_both();
	close(open_counter(second_staging, O_RDWR | O_CREAT));
	ASSERT_OK(volumes_unstage(fx.v, second->id, second_staging, &err));
	g = take();
	restore("second-restored", of(g, second->id)->id, second_restored);
	close(open_counter(second_restored, O_RDONLY));
	ck_assert_uint_eq(fixture_n_files(), 5);
}
END_TEST

START_TEST(a_retry_returns_the_same_group)
{
	CLEANUP(group_info_freep) struct group_info *g = take();
	CLEANUP(group_info_freep) struct group_info *again = NULL;
	CLEANUP(group_info_freep) struct group_info *got = NULL;

	fixture_restart();
	again = take();
	ck_assert_str_eq(again->id, g->id);
	ck_assert_uint_eq(again->n, 2);
	ck_assert_str_eq(again->snapshots[0]->id, g->snapshots[0]->id);
	ck_assert_str_eq(again->snapshots[0]->group, g->id);
	ASSERT_OK(volumes_get_group(fx.v, g->id, NULL, &got, &err));
	ck_assert_uint_eq(got->n, 2);
	ck_assert_uint_eq(fixture_n_devices(), 4);
}
END_TEST

START_TEST(a_name_stands_for_one_set_of_volumes)
{
	char *const fewer[] = {second->id, NULL};
	char *const none[] = {NULL};
	char *const twice[] = {second->id, second->id, NULL};
	char *const absent[] = {second->id, (char *)(uintptr_t)"pvc-gone", NULL};
	struct group_info *made;

	group_info_free(take());
	fails(try_group("group", fewer, &made), ERR_EXISTS, "is of other volumes");
	fails(try_group("other", none, &made), ERR_INVALID_ARGUMENT, "1 to 64 volumes");
	fails(try_group("other", twice, &made), ERR_INVALID_ARGUMENT, "is listed twice");
	fails(try_group("other", absent, &made), ERR_NOT_FOUND, "pvc-gone");
	ck_assert_uint_eq(fixture_n_files(), 4);
	ck_assert_uint_eq(fixture_n_devices(), 4);
}
END_TEST

static bool fails_after_first(const struct device_spec *spec)
{
	static unsigned n;

	(void)spec;
	return ++n >= 2;
}

START_TEST(a_failure_leaves_none_of_its_snapshots)
{
	char *const sources[] = {mt.volume->id, second->id, NULL};
	struct group_info *g;

	stage_both();
	fx.faults.create = ERR_INTERNAL;
	fx.faults.creates_if = fails_after_first;
	fails(try_group("group", sources, &g), ERR_INTERNAL, "create group snapshot");
	fx.faults.create = 0;
	ck_assert_uint_eq(fixture_n_files(), 2);
	ck_assert_uint_eq(fixture_n_devices(), 2);
}
END_TEST

static void write_file(const char *folder_path, size_t bytes)
{
	CLEANUP(free_charp) char *path = x_asprintf("%s/large", folder_path);
	CLEANUP(free_charp) char *content = x_calloc(1, bytes);
	CLEANUP(fd_closep) int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	ck_assert_int_eq(write(fd, content, bytes), (ssize_t)bytes);
	ck_assert_int_eq(fsync(fd), 0);
}

static bool pause_ends;

bool __real_fs_freeze_holds(const struct fs_freeze *f);
bool __wrap_fs_freeze_holds(const struct fs_freeze *f);

bool __wrap_fs_freeze_holds(const struct fs_freeze *f)
{
	return !pause_ends && __real_fs_freeze_holds(f);
}

/* The pause ends before all is copied, and what was copied is data of the volumes. */
START_TEST(what_was_copied_is_erased_after_a_failure)
{
	char *const sources[] = {mt.volume->id, second->id, NULL};
	struct group_info *g;

	stage_both();
	write_file(mt.staging, MIB(4));
	write_file(second_staging, MIB(4));
	pause_ends = true;
	fails(try_group("group", sources, &g), ERR_ABORTED, "copy of volume");
	fixture_await_erased();
	ck_assert_uint_eq(fixture_n_files(), 2);
	ck_assert_uint_eq(fixture_n_devices(), 2);
	write_file(mt.staging, MIB(1));
	write_file(second_staging, MIB(1));
}
END_TEST

START_TEST(a_class_has_a_pause)
{
	char *const sources[] = {mt.volume->id, NULL};
	CLEANUP(strmap_done) struct strmap parameters = {0};
	const struct group_request q = {.name = "group", .sources = sources, .parameters = &parameters};
	struct group_info *g;

	strmap_set(&parameters, "maxPause", "never");
	fails(volumes_create_group(fx.v, &q, &g, &err), ERR_INVALID_ARGUMENT, "maxPause");
}
END_TEST

/* @from: suffix of the file of @id, which gets @to. */
static void rename_file(const char *id, const char *from, const char *to)
{
	CLEANUP(free_charp) char *state = fixture_path("state");
	CLEANUP(free_charp) char *old = x_asprintf("%s/%s%s", state, id, from);
	CLEANUP(free_charp) char *new = x_asprintf("%s/%s%s", state, id, to);

	ck_assert_int_eq(rename(old, new), 0);
}

static void start(void)
{
	fixture_open();
	ASSERT_OK(volumes_start(fx.v, &err));
}

START_TEST(a_crash_among_the_last_steps_completes_the_group)
{
	CLEANUP(group_info_freep) struct group_info *g = take();
	CLEANUP(group_info_freep) struct group_info *got = NULL;

	fixture_stop();
	rename_file(g->snapshots[1]->id, ".snapshot", ".creating");
	start();
	ASSERT_OK(volumes_get_group(fx.v, g->id, NULL, &got, &err));
	ck_assert_uint_eq(got->n, 2);
}
END_TEST

/* As after the loss of its state file: only what is left names the group. */
START_TEST(a_group_that_has_lost_a_snapshot_is_not_complete)
{
	CLEANUP(group_info_freep) struct group_info *g = take();
	CLEANUP(group_info_freep) struct group_info *got = NULL;
	char *const listed[] = {g->snapshots[0]->id, g->snapshots[1]->id, NULL};
	CLEANUP(free_charp) char *name = x_asprintf("state/%s.snapshot", listed[1]);
	CLEANUP(free_charp) char *path = fixture_path(name);
	struct group_info *none;

	fixture_stop();
	ck_assert_int_eq(unlink(path), 0);
	start();
	ASSERT_OK(volumes_get_group(fx.v, g->id, NULL, &got, &err));
	ck_assert_uint_eq(got->n, 1);
	ck_assert(!got->complete);
	fails(volumes_get_group(fx.v, g->id, listed, &none, &err), ERR_INVALID_ARGUMENT,
		"of whose 2 snapshots 1 are there");
}
END_TEST

/* A folder with the name of a file that is to be renamed. */
START_TEST(a_retry_completes_a_group_whose_end_could_not_be_recorded)
{
	char *const sources[] = {mt.volume->id, second->id, NULL};
	const char *later = strcmp(mt.volume->id, second->id) > 0 ? mt.volume->id : second->id;
	CLEANUP(group_info_freep) struct group_info *g = take();
	CLEANUP(group_info_freep) struct group_info *half = NULL;
	CLEANUP(group_info_freep) struct group_info *again = NULL;
	CLEANUP(free_charp) char *name = x_asprintf("state/%s.snapshot", of(g, later)->id);
	CLEANUP(free_charp) char *path = fixture_path(name);
	struct group_info *none;

	ASSERT_OK(volumes_delete_group(fx.v, g->id, NULL, &err));
	fixture_await_erased();
	ck_assert_int_eq(mkdir(path, 0755), 0);
	fails(try_group("group", sources, &none), ERR_UNAVAILABLE, "is complete, but not recorded");
	ASSERT_OK(volumes_get_group(fx.v, g->id, NULL, &half, &err));
	ck_assert_uint_eq(half->n, 1);
	ck_assert(!half->complete);
	ck_assert_int_eq(rmdir(path), 0);
	again = take();
	ck_assert_uint_eq(again->n, 2);
	ck_assert(again->complete);
}
END_TEST

/* As after the repair of a state file. */
START_TEST(a_snapshot_with_the_name_of_one_of_the_group_is_in_the_way)
{
	char *const sources[] = {mt.volume->id, second->id, NULL};
	char name[VOLUME_NAME_MAX + 1];
	const struct snapshot_request q = {.name = name, .source = second->id, .parameters = &no_context};
	CLEANUP(snapshot_info_freep) struct snapshot_info *alone = NULL;
	struct group_info *g;

	volume_group_member_name("group", second->id, name);
	ASSERT_OK(volumes_create_snapshot(fx.v, &q, &alone, &err));
	fails(try_group("group", sources, &g), ERR_PRECONDITION, "is in no group");
	ck_assert_uint_eq(fixture_n_files(), 3);
	ck_assert_uint_eq(fixture_n_devices(), 3);
}
END_TEST

START_TEST(a_group_is_deleted_as_a_whole)
{
	CLEANUP(group_info_freep) struct group_info *g = take();
	char *const stranger[] = {second->id, NULL};
	char *const listed[] = {g->snapshots[0]->id, g->snapshots[1]->id, NULL};
	struct group_info *got;

	fails(volumes_delete_group(fx.v, g->id, stranger, &err), ERR_INVALID_ARGUMENT,
		"is no snapshot of the group");
	fails(volumes_get_group(fx.v, g->id, stranger, &got, &err), ERR_INVALID_ARGUMENT, "is not in group");
	ck_assert_uint_eq(fixture_n_devices(), 4);
	ASSERT_OK(volumes_delete_group(fx.v, g->id, listed, &err));
	fixture_await_erased();
	ck_assert_uint_eq(fixture_n_devices(), 2);
	ASSERT_OK(volumes_delete_group(fx.v, g->id, listed, &err));
	fails(volumes_get_group(fx.v, g->id, NULL, &got, &err), ERR_NOT_FOUND, "does not exist");
}
END_TEST

START_TEST(a_group_that_lost_a_snapshot_is_not_made_whole)
{
	char *const sources[] = {mt.volume->id, second->id, NULL};
	CLEANUP(group_info_freep) struct group_info *g = take();
	struct group_info *got;

	ASSERT_OK(volumes_delete_snapshot(fx.v, g->snapshots[0]->id, &err));
	fixture_await_erased();
	fails(try_group("group", sources, &got), ERR_PRECONDITION, "has 1 snapshots left of 2");
	ASSERT_OK(volumes_delete_group(fx.v, g->id, NULL, &err));
	fixture_await_erased();
	group_info_free(g);
	g = take();
	ck_assert_uint_eq(g->n, 2);
}
END_TEST

FIXTURE_MAIN("groups", set_up, a_group_shows_its_volumes_at_one_moment,
	volumes_that_are_not_in_use_are_copied_too, a_retry_returns_the_same_group,
	a_name_stands_for_one_set_of_volumes, a_failure_leaves_none_of_its_snapshots,
	what_was_copied_is_erased_after_a_failure, a_crash_among_the_last_steps_completes_the_group,
	a_group_that_has_lost_a_snapshot_is_not_complete,
	a_retry_completes_a_group_whose_end_could_not_be_recorded, a_class_has_a_pause,
	a_snapshot_with_the_name_of_one_of_the_group_is_in_the_way, a_group_is_deleted_as_a_whole,
	a_group_that_lost_a_snapshot_is_not_made_whole)
