/* SPDX-License-Identifier: Apache-2.0 */
/* NodeUnpublish and NodeUnstage while something is broken: what is mounted is unmounted, and nothing else is
 * changed.
 */
#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"
#include "unit/volume/mounts.h"

#define SIZE       MIB(16)
#define INLINE     "csi-0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define DISK_BYTES "65536"

static void attach(void)
{
	const struct use_request q = mounts_stage_request("ext4");
	const struct use_request p = mounts_publish_request(mt.target, ACCESS_SINGLE_WRITER);
	struct error *err = NULL;

	ASSERT_OK(volumes_stage(fx.v, &q, &err));
	ASSERT_OK(volumes_publish(fx.v, &p, &err));
}

static void set_up(void)
{
	mounts_set_up(SIZE);
	attach();
}

/* The volume's state lies on a disk of its own, which can be filled. */
static void set_up_disk(void)
{
	struct error *err = NULL;

	mounts_set_up(SIZE);
	CLEANUP(free_charp) char *state = fixture_path("state");
	CLEANUP(free_charp) char *file = x_asprintf("%s.json", mt.volume->id);
	CLEANUP(free_charp) char *text = fixture_read(file);
	fixture_stop();
	ck_assert_int_eq(mount("disk", state, "tmpfs", 0, "size=" DISK_BYTES), 0);
	fixture_write(file, text);
	fixture_open();
	ASSERT_OK(volumes_start(fx.v, &err));
	attach();
}

static void fill_disk(void)
{
	CLEANUP(free_charp) char *path = fixture_path("state/filler");
	CLEANUP(fd_closep) int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	static const char block[4096] = "x";

	while (write(fd, block, sizeof(block)) > 0)
		;
}

static void empty_disk(void)
{
	CLEANUP(free_charp) char *path = fixture_path("state/filler");

	ck_assert_int_eq(unlink(path), 0);
}

static char *state_file(void)
{
	return x_asprintf("%s.json", mt.volume->id);
}

static void assert_taken_down(void)
{
	struct error *err = NULL;

	ASSERT_OK(volumes_unpublish(fx.v, mt.volume->id, mt.target, &err));
	ck_assert_uint_eq(mounts_count(mt.target), 0);
	ck_assert_int_ne(access(mt.target, F_OK), 0);
	ASSERT_OK(volumes_unstage(fx.v, mt.volume->id, mt.staging, &err));
	ck_assert_uint_eq(mounts_count(mt.staging), 0);
	/* and again */
	ASSERT_OK(volumes_unpublish(fx.v, mt.volume->id, mt.target, &err));
	ASSERT_OK(volumes_unstage(fx.v, mt.volume->id, mt.staging, &err));
}

START_TEST(volume_with_a_damaged_state_file_is_taken_down)
{
	CLEANUP(free_charp) char *file = state_file();

	fixture_stop();
	fixture_write(file, "{\"id\":");
	fixture_restart();
	assert_taken_down();
	CLEANUP(free_charp) char *text = fixture_read(file);
	ck_assert_str_eq(text, "{\"id\":");
	ck_assert_uint_eq(fixture_n_devices(), 1);
}
END_TEST

START_TEST(volume_without_a_state_file_is_taken_down)
{
	CLEANUP(free_charp) char *file = state_file();
	CLEANUP(free_charp) char *path = x_asprintf("state/%s", file);
	CLEANUP(free_charp) char *full = fixture_path(path);

	fixture_stop();
	ck_assert_int_eq(unlink(full), 0);
	fixture_restart();
	assert_taken_down();
	ck_assert_uint_eq(fixture_n_devices(), 1);
}
END_TEST

START_TEST(damaged_state_and_an_absent_device_leave_the_mount_to_be_judged)
{
	CLEANUP(free_charp) char *file = state_file();

	fixture_stop();
	fixture_write(file, "");
	fx.faults.absent_pool = mt.device->pool;
	fixture_restart();
	assert_taken_down();
}
END_TEST

START_TEST(driver_that_has_not_started_takes_down)
{
	fixture_stop();
	fixture_open();
	assert_taken_down();
}
END_TEST

START_TEST(driver_whose_devices_cannot_be_listed_takes_down)
{
	struct error *err = NULL;

	fixture_stop();
	fx.faults.list = ERR_INTERNAL;
	fixture_open();
	ASSERT_FAILS(volumes_start(fx.v, &err), ERR_INTERNAL, "list");
	assert_taken_down();
}
END_TEST

START_TEST(mount_of_another_volume_is_left_alone)
{
	CLEANUP(volume_info_freep) struct volume_info *damaged = fixture_create("pvc-2", SIZE);
	CLEANUP(free_charp) char *file = x_asprintf("%s.json", damaged->id);
	struct error *err = NULL;

	fixture_stop();
	fixture_write(file, "");
	fixture_restart();
	ASSERT_FAILS(
		volumes_unpublish(fx.v, damaged->id, mt.target, &err), ERR_PRECONDITION, "something other");
	ASSERT_FAILS(
		volumes_unstage(fx.v, damaged->id, mt.staging, &err), ERR_PRECONDITION, "something other");
	ck_assert_int_eq(mkdir(mt.other, 0755), 0);
	ck_assert_int_eq(mount("other", mt.other, "tmpfs", 0, NULL), 0);
	ASSERT_FAILS(
		volumes_unpublish(fx.v, damaged->id, mt.other, &err), ERR_PRECONDITION, "something other");
	ck_assert_uint_eq(mounts_count(mt.target), 1);
	ck_assert_uint_eq(mounts_count(mt.staging), 1);
	ck_assert_uint_eq(mounts_count(mt.other), 1);
	/* before the start, too, as far as it is known */
	fixture_stop();
	fixture_open();
	ASSERT_FAILS(
		volumes_unpublish(fx.v, damaged->id, mt.other, &err), ERR_PRECONDITION, "something other");
}
END_TEST

/* Whether it is one, and is to be deleted, is not known yet. */
START_TEST(inline_volume_is_unmounted_before_the_start_and_deleted_later)
{
	CLEANUP(strmap_done) struct strmap context = {0};
	const struct use_request q = {
		.handle = INLINE, .target_path = mt.other, .fs_type = "", .context = &context};
	struct error *err = NULL;

	strmap_set(&context, "csi.storage.k8s.io/ephemeral", "true");
	strmap_set(&context, "size", "16Mi");
	ASSERT_OK(volumes_publish(fx.v, &q, &err));
	fixture_stop();
	fixture_open();
	ASSERT_FAILS(volumes_unpublish(fx.v, INLINE, mt.other, &err), ERR_UNAVAILABLE, "started");
	ck_assert_uint_eq(mounts_count(mt.other), 0);
	ASSERT_OK(volumes_start(fx.v, &err));
	ASSERT_OK(volumes_unpublish(fx.v, INLINE, mt.other, &err));
	fixture_await_erased();
	ck_assert_uint_eq(fixture_n_devices(), 1);
}
END_TEST

START_TEST(full_state_disk_keeps_nothing_mounted)
{
	const struct use_request q = mounts_stage_request("ext4");
	struct error *err = NULL;

	fill_disk();
	assert_taken_down();
	CLEANUP(volume_record_freep) struct volume_record *before = mounts_record();
	ck_assert_str_eq(before->staging_path, mt.staging);
	ck_assert(mounts_has_target(mt.target));
	/* the next change makes all of it durable */
	empty_disk();
	ASSERT_OK(volumes_stage(fx.v, &q, &err));
	ck_assert(!mounts_has_target(mt.target));
	ASSERT_OK(volumes_unstage(fx.v, mt.volume->id, mt.staging, &err));
	CLEANUP(volume_record_freep) struct volume_record *after = mounts_record();
	ck_assert_ptr_null(after->staging_path);
}
END_TEST

/* The driver cannot take its lock there, and never gets ready. */
START_TEST(read_only_state_disk_keeps_nothing_mounted)
{
	CLEANUP(free_charp) char *state = fixture_path("state");
	struct error *err = NULL;

	fixture_stop();
	ck_assert_int_eq(mount(NULL, state, NULL, MS_REMOUNT | MS_RDONLY, NULL), 0);
	fixture_open();
	ASSERT_FAILS(volumes_start(fx.v, &err), ERR_UNAVAILABLE, "Read-only");
	assert_taken_down();
}
END_TEST

START_TEST(state_folder_that_was_removed_keeps_nothing_mounted)
{
	CLEANUP(free_charp) char *state = fixture_path("state");
	CLEANUP(free_charp) char *file = state_file();
	CLEANUP(free_charp) char *path = x_asprintf("%s/%s", state, file);
	CLEANUP(free_charp) char *lock = x_asprintf("%s/.lock", state);

	ck_assert_int_eq(unlink(path), 0);
	ck_assert_int_eq(unlink(lock), 0);
	ck_assert_int_eq(rmdir(state), 0);
	assert_taken_down();
}
END_TEST

START_TEST(target_that_holds_something_is_not_published)
{
	CLEANUP(free_charp) char *data = x_asprintf("%s/data", mt.other);
	const struct use_request p = mounts_publish_request(mt.other, ACCESS_SINGLE_WRITER);
	struct error *err = NULL;

	ck_assert_int_eq(mkdir(mt.other, 0755), 0);
	ck_assert_int_eq(mounts_write(mt.other), 0);
	ASSERT_FAILS(volumes_publish(fx.v, &p, &err), ERR_PRECONDITION, "contains \"data\"");
	ck_assert_uint_eq(mounts_count(mt.other), 0);
	ck_assert(!mounts_has_target(mt.other));
	ASSERT_OK(volumes_unpublish(fx.v, mt.volume->id, mt.other, &err));
	ck_assert_int_eq(access(data, F_OK), 0);
	ck_assert_int_eq(unlink(data), 0);
	ASSERT_OK(volumes_publish(fx.v, &p, &err));
}
END_TEST

/* As an earlier version left it: covered by the mount, found when that is gone. */
START_TEST(content_below_a_target_does_not_block_unpublish)
{
	CLEANUP(free_charp) char *data = x_asprintf("%s/data", mt.target);
	struct error *err = NULL;

	ck_assert_int_eq(umount(mt.target), 0);
	ck_assert_int_eq(mounts_write(mt.target), 0);
	ck_assert_int_eq(mount(mt.staging, mt.target, NULL, MS_BIND, NULL), 0);
	ASSERT_OK(volumes_unpublish(fx.v, mt.volume->id, mt.target, &err));
	ck_assert_uint_eq(mounts_count(mt.target), 0);
	ck_assert_int_eq(access(data, F_OK), 0);
	ck_assert(!mounts_has_target(mt.target));
}
END_TEST

int main(void)
{
	TCase *tcase = fixture_case("volumes_undo", set_up);

	if (!tcase)
		return SKIP_STATUS;
	tcase_add_test(tcase, volume_with_a_damaged_state_file_is_taken_down);
	tcase_add_test(tcase, volume_without_a_state_file_is_taken_down);
	tcase_add_test(tcase, damaged_state_and_an_absent_device_leave_the_mount_to_be_judged);
	tcase_add_test(tcase, driver_that_has_not_started_takes_down);
	tcase_add_test(tcase, driver_whose_devices_cannot_be_listed_takes_down);
	tcase_add_test(tcase, mount_of_another_volume_is_left_alone);
	tcase_add_test(tcase, inline_volume_is_unmounted_before_the_start_and_deleted_later);
	tcase_add_test(tcase, state_folder_that_was_removed_keeps_nothing_mounted);
	tcase_add_test(tcase, target_that_holds_something_is_not_published);
	tcase_add_test(tcase, content_below_a_target_does_not_block_unpublish);
	tcase = fixture_more_cases("volumes_undo, disk", set_up_disk);
	tcase_add_test(tcase, full_state_disk_keeps_nothing_mounted);
	tcase_add_test(tcase, read_only_state_disk_keeps_nothing_mounted);
	return fixture_finish();
}
