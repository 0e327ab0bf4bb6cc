/* SPDX-License-Identifier: Apache-2.0 */
/* Snapshots of mounted volumes: what they keep, what is made of them, and what is left after failures. */
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"
#include "unit/volume/content.h"
#include "unit/volume/mounts.h"

#define SIZE MIB(64)
#define OLD  'k'
#define PAST 'p'
#define NOW  'n'

static struct error *err;
static char *staging; /* of what is restored */
static const struct strmap no_context;

static void fill_made(const struct device *d)
{
	content_fill(d, OLD);
}

static void set_up(void)
{
	mounts_set_up(SIZE);
	fx.faults.made = fill_made;
	staging = fixture_path("kubelet/restored");
	ck_assert_int_eq(mkdir(staging, 0755), 0);
}

static void set_up_block(void)
{
	mounts_set_up_block(SIZE);
	fx.faults.made = fill_made;
}

static void stage(void)
{
	const struct use_request s = mounts_stage_request("ext4");

	ASSERT_OK(volumes_stage(fx.v, &s, &err));
}

static void write_letter(char letter)
{
	CLEANUP(free_charp) char *path = x_asprintf("%s/letter", mt.staging);
	CLEANUP(fd_closep) int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	ck_assert_int_eq(pwrite(fd, &letter, 1, 0), 1);
	ck_assert_int_eq(fsync(fd), 0);
}

static char read_letter(const char *folder)
{
	CLEANUP(free_charp) char *path = x_asprintf("%s/letter", folder);
	CLEANUP(fd_closep) int fd = open(path, O_RDONLY | O_CLOEXEC);
	char letter;

	ck_assert_int_eq(pread(fd, &letter, 1, 0), 1);
	return letter;
}

static int try_snapshot(struct snapshot_info **ret)
{
	const struct snapshot_request q = {
		.name = "snap", .source = mt.volume->id, .parameters = &no_context};

	return volumes_create_snapshot(fx.v, &q, ret, &err);
}

static struct snapshot_info *take(void)
{
	struct snapshot_info *i;

	ASSERT_OK(try_snapshot(&i));
	return i;
}

static struct volume_info *restore(const char *snapshot)
{
	struct volume_request q = fixture_request("restored", SIZE);
	struct volume_info *info;

	q.source = snapshot;
	q.source_is_snapshot = true;
	ASSERT_OK(volumes_create(fx.v, &q, &info, &err));
	return info;
}

static bool has_file(const char *id, const char *suffix)
{
	CLEANUP(free_charp) char *name = x_asprintf("%s%s", id, suffix);

	return fixture_exists(name);
}

START_TEST(snapshot_keeps_the_past_of_a_mounted_volume)
{
	CLEANUP(snapshot_info_freep) struct snapshot_info *snap = NULL;
	CLEANUP(volume_info_freep) struct volume_info *made = NULL;

	stage();
	write_letter(PAST);
	snap = take();
	write_letter(NOW);
	ck_assert_str_eq(snap->source, mt.volume->id);
	ck_assert(has_file(snap->id, ".snapshot") && !has_file(snap->id, ".json"));
	made = restore(snap->id);
	ck_assert_str_eq(made->source, snap->id);
	const struct use_request s = {
		.handle = made->id, .staging_path = staging, .fs_type = "ext4", .context = &no_context};
	ASSERT_OK(volumes_stage(fx.v, &s, &err));
	ck_assert_int_eq(read_letter(staging), PAST);
	ck_assert_int_eq(read_letter(mt.staging), NOW);
	CLEANUP(device_freep) struct device *d = fixture_device(snap->id);
	ck_assert_uint_eq(content_count(d, OLD), 0);
}
END_TEST

START_TEST(snapshot_survives_a_restart_and_its_source)
{
	CLEANUP(snapshot_info_freep) struct snapshot_info *snap = NULL;
	CLEANUP(snapshot_info_freep) struct snapshot_info *same = NULL;
	CLEANUP(volume_info_freep) struct volume_info *made = NULL;

	stage();
	write_letter(PAST);
	ASSERT_OK(volumes_unstage(fx.v, mt.volume->id, mt.staging, &err));
	snap = take();
	fixture_restart();
	ASSERT_OK(volumes_delete(fx.v, mt.volume->id, &err));
	ASSERT_OK(volumes_get_snapshot(fx.v, snap->id, &same, &err));
	ck_assert_uint_eq(same->taken_s, snap->taken_s);
	ck_assert(!same->missing);
	made = restore(snap->id);
	ck_assert_uint_eq(made->size_bytes, SIZE);
}
END_TEST

static void refuses(int rc)
{
	ck_assert_int_eq(rc, -1);
	ck_assert_msg(err->code == ERR_NOT_FOUND, "%s: %s", err_code_name(err->code), err->msg);
	error_clear(&err);
}

START_TEST(nothing_uses_a_snapshot)
{
	CLEANUP(snapshot_info_freep) struct snapshot_info *snap = take();
	const struct use_request s = {
		.handle = snap->id, .staging_path = staging, .fs_type = "ext4", .context = &no_context};
	const struct expand_request larger = {.handle = snap->id, .required_bytes = 2 * SIZE};
	struct expand_result ignored;
	struct volume_info *info;

	refuses(volumes_stage(fx.v, &s, &err));
	refuses(volumes_expand(fx.v, &larger, &ignored, &err));
	refuses(volumes_unstage(fx.v, snap->id, staging, &err));
	refuses(volumes_get(fx.v, snap->id, &info, &err));
	ASSERT_OK(volumes_delete(fx.v, snap->id, &err));
	ck_assert(has_file(snap->id, ".snapshot"));
}
END_TEST

START_TEST(a_deleted_snapshot_is_erased)
{
	CLEANUP(snapshot_info_freep) struct snapshot_info *snap = NULL;

	stage();
	write_letter(PAST);
	snap = take();
	ck_assert_uint_eq(fixture_n_devices(), 2);
	ASSERT_OK(volumes_delete_snapshot(fx.v, mt.volume->id, &err));
	ck_assert_uint_eq(fixture_n_devices(), 2);
	ASSERT_OK(volumes_delete_snapshot(fx.v, snap->id, &err));
	fixture_await_erased();
	ck_assert_uint_eq(fixture_n_devices(), 1);
	ck_assert_uint_eq(fixture_n_files(), 1);
	ASSERT_OK(volumes_delete_snapshot(fx.v, snap->id, &err));
}
END_TEST

START_TEST(a_snapshot_that_failed_leaves_nothing)
{
	struct snapshot_info *snap;

	stage();
	fx.faults.create = ERR_INTERNAL;
	ck_assert_int_eq(try_snapshot(&snap), -1);
	error_clear(&err);
	fx.faults.create = 0;
	ck_assert_uint_eq(fixture_n_files(), 1);
	ck_assert_uint_eq(fixture_n_devices(), 1);
}
END_TEST

/* The snapshot holds the same data. */
START_TEST(a_snapshot_is_erased_as_its_volume_would_be)
{
	CLEANUP(strmap_done) struct strmap parameters = {0};
	struct volume_request q = fixture_request("kept", SIZE);
	struct snapshot_request of = {.name = "snap-kept", .parameters = &no_context};
	CLEANUP(volume_info_freep) struct volume_info *info = NULL;
	CLEANUP(snapshot_info_freep) struct snapshot_info *snap = NULL;

	strmap_set(&parameters, "eraseafter", "false");
	q.parameters = &parameters;
	ASSERT_OK(volumes_create(fx.v, &q, &info, &err));
	of.source = info->id;
	ASSERT_OK(volumes_create_snapshot(fx.v, &of, &snap, &err));
	CLEANUP(free_charp) char *file = x_asprintf("%s.snapshot", snap->id);
	CLEANUP(free_charp) char *text = fixture_read(file);
	ck_assert_msg(strstr(text, "\"eraseafter\":\"false\""), "%s", text);
}
END_TEST

/* As a file that an administrator has renamed. */
START_TEST(a_file_with_the_name_of_a_volume_does_not_make_one_of_a_snapshot)
{
	CLEANUP(snapshot_info_freep) struct snapshot_info *snap = take();
	CLEANUP(free_charp) char *file = x_asprintf("%s.snapshot", snap->id);
	CLEANUP(free_charp) char *name = x_asprintf("%s.json", snap->id);
	CLEANUP(free_charp) char *text = fixture_read(file);
	struct volume_info *info;
	struct volumes_overview o;

	fixture_stop();
	fixture_write(name, text);
	CLEANUP(free_charp) char *path = fixture_path("state");
	CLEANUP(free_charp) char *old = x_asprintf("%s/%s", path, file);
	ck_assert_int_eq(unlink(old), 0);
	fixture_open();
	ASSERT_OK(volumes_start(fx.v, &err));
	refuses(volumes_get(fx.v, snap->id, &info, &err));
	volumes_overview(fx.v, &o);
	ck_assert_uint_eq(o.n_damaged, 1);
	ck_assert_uint_eq(fixture_n_devices(), 2);
}
END_TEST

START_TEST(a_block_volume_has_block_snapshots)
{
	CLEANUP(snapshot_info_freep) struct snapshot_info *snap = take();
	struct volume_request q = fixture_request("restored", SIZE);
	struct volume_info *info;

	q.source = snap->id;
	q.source_is_snapshot = true;
	ck_assert_int_eq(volumes_create(fx.v, &q, &info, &err), -1);
	ck_assert_msg(strstr(err->msg, "is for block access"), "%s", err->msg);
	error_clear(&err);
	q.fs_type = NULL;
	q.block = true;
	ASSERT_OK(volumes_create(fx.v, &q, &info, &err));
	ck_assert(info->may_be_block);
	volume_info_free(info);
}
END_TEST

static void exists(int rc, const char *text)
{
	ck_assert_int_eq(rc, -1);
	ck_assert_msg(err->code == ERR_EXISTS && strstr(err->msg, text), "%s: %s", err_code_name(err->code),
		err->msg);
	error_clear(&err);
}

/* The IDs of a volume and of a snapshot that were made for the same name are equal. */
START_TEST(a_retry_names_the_same_kind_of_source)
{
	CLEANUP(snapshot_info_freep) struct snapshot_info *snap = take();
	CLEANUP(volume_info_freep) struct volume_info *made = restore(snap->id);
	CLEANUP(volume_info_freep) struct volume_info *clone = NULL;
	CLEANUP(volume_info_freep) struct volume_info *same = NULL;
	struct volume_request q = fixture_request("restored", SIZE);
	struct volume_info *info;

	fixture_restart();
	same = restore(snap->id);
	ck_assert_str_eq(same->id, made->id);
	q.source = snap->id;
	exists(volumes_create(fx.v, &q, &info, &err), "is a copy of snapshot");
	q.name = "clone";
	q.source = mt.volume->id;
	ASSERT_OK(volumes_create(fx.v, &q, &clone, &err));
	q.source_is_snapshot = true;
	exists(volumes_create(fx.v, &q, &info, &err), "is a copy of volume");
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {snapshot_keeps_the_past_of_a_mounted_volume,
		snapshot_survives_a_restart_and_its_source, nothing_uses_a_snapshot,
		a_deleted_snapshot_is_erased, a_snapshot_that_failed_leaves_nothing,
		a_snapshot_is_erased_as_its_volume_would_be, a_retry_names_the_same_kind_of_source,
		a_file_with_the_name_of_a_volume_does_not_make_one_of_a_snapshot};
	TCase *tcase = fixture_case("snapshots", set_up);
	TCase *block;

	if (!tcase)
		return SKIP_STATUS;
	for (size_t i = 0; i < ARRAY_SIZE(tests); i++)
		tcase_add_test(tcase, tests[i]);
	block = fixture_more_cases("snapshots of block volumes", set_up_block);
	tcase_add_test(block, a_block_volume_has_block_snapshots);
	return fixture_finish();
}
