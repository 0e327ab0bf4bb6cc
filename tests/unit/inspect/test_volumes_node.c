/* SPDX-License-Identifier: Apache-2.0 */
/* Volumes published as block devices: a file at the target is the device's node. */
#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"
#include "os/fs.h"
#include "unit/inspect/checked.h"
#include "unit/volume/mounts.h"

#define SIZE MIB(16)

static void set_up(void)
{
	mounts_set_up_block(SIZE);
}

static struct use_request request(const char *target)
{
	struct use_request q = mounts_publish_request(target, ACCESS_SINGLE_WRITER);

	q.block = true;
	q.fs_type = "";
	return q;
}

static int publish(const char *target, bool readonly, struct error **err)
{
	struct use_request q = request(target);

	q.readonly = readonly;
	return volumes_publish(fx.v, &q, err);
}

static int publish_as(const char *target, enum access_mode mode, struct error **err)
{
	struct use_request q = request(target);

	q.access_mode = mode;
	return volumes_publish(fx.v, &q, err);
}

static int unpublish(const char *target, struct error **err)
{
	return volumes_unpublish(fx.v, mt.volume->id, target, err);
}

static int stage(bool block, struct error **err)
{
	struct use_request q = mounts_stage_request("");

	q.block = block;
	return volumes_stage(fx.v, &q, err);
}

static int unstage(struct error **err)
{
	return volumes_unstage(fx.v, mt.volume->id, mt.staging, err);
}

static bool is_node(const char *path)
{
	struct stat device;
	struct stat st;

	ck_assert_int_eq(stat(mt.device->path, &device), 0);
	return stat(path, &st) == 0 && S_ISBLK(st.st_mode) && st.st_rdev == device.st_rdev;
}

START_TEST(target_is_the_device_and_goes_again)
{
	struct error *err = NULL;

	ASSERT_OK(stage(true, &err));
	ck_assert_uint_eq(mounts_count(mt.staging), 0);
	ASSERT_OK(publish(mt.target, false, &err));
	checked_look();
	ck_assert_uint_eq(checked_n(), 0);
	checked_done();
	ck_assert(is_node(mt.target));
	ck_assert(mounts_has_target(mt.target));
	int fd = open(mt.target, O_RDWR | O_CLOEXEC);
	ck_assert_int_eq(pwrite(fd, "x", 1, 0), 1);
	close(fd);
	ASSERT_OK(unpublish(mt.target, &err));
	ck_assert_int_ne(access(mt.target, F_OK), 0);
	ck_assert(!mounts_has_target(mt.target));
	ASSERT_OK(unstage(&err));
	ASSERT_OK(volumes_delete(fx.v, mt.volume->id, &err));
}
END_TEST

START_TEST(file_under_the_node_has_the_mode_of_a_file)
{
	struct error *err = NULL;
	struct stat st;

	ASSERT_OK(stage(true, &err));
	ASSERT_OK(publish(mt.target, false, &err));
	ck_assert_int_eq(umount(mt.target), 0);
	ck_assert_int_eq(stat(mt.target, &st), 0);
	ck_assert(S_ISREG(st.st_mode));
	ck_assert_int_eq(st.st_mode & 0777, 0644);
	ck_assert_int_eq(st.st_size, 0);
}
END_TEST

START_TEST(calls_can_be_repeated_also_after_a_restart)
{
	struct error *err = NULL;

	for (int i = 0; i < 3; i++) {
		ASSERT_OK(stage(true, &err));
		ASSERT_OK(publish(mt.target, false, &err));
		ASSERT_OK(publish_as(mt.target, ACCESS_SINGLE_NODE_SINGLE_WRITER, &err));
		ck_assert_uint_eq(mounts_count(mt.target), 1);
		fixture_restart();
	}
	for (int i = 0; i < 3; i++) {
		ASSERT_OK(unpublish(mt.target, &err));
		ASSERT_OK(unstage(&err));
		fixture_restart();
	}
	ck_assert_uint_eq(mounts_count(mt.target), 0);
}
END_TEST

START_TEST(what_a_crash_left_is_used_or_removed)
{
	struct error *err = NULL;

	ASSERT_OK(stage(true, &err));
	ASSERT_OK(publish(mt.target, false, &err));
	ck_assert_int_eq(umount(mt.target), 0);
	fixture_restart();
	ASSERT_OK(publish(mt.target, false, &err));
	ck_assert(is_node(mt.target));
	ck_assert_int_eq(umount(mt.target), 0);
	ASSERT_OK(unpublish(mt.target, &err));
	ck_assert_int_ne(access(mt.target, F_OK), 0);
}
END_TEST

START_TEST(read_only_is_compared_both_ways)
{
	struct error *err = NULL;

	ASSERT_OK(stage(true, &err));
	ASSERT_OK(publish(mt.target, true, &err));
	ck_assert(mount_entry_has(mounts_top(mt.target), "ro"));
	ASSERT_OK(publish(mt.target, true, &err));
	ASSERT_OK(publish_as(mt.target, ACCESS_SINGLE_NODE_READER, &err));
	ASSERT_FAILS(publish(mt.target, false, &err), ERR_EXISTS, "read-only");
	ASSERT_OK(unpublish(mt.target, &err));
	ASSERT_OK(publish(mt.target, false, &err));
	ASSERT_FAILS(publish(mt.target, true, &err), ERR_EXISTS, "read-write");
}
END_TEST

START_TEST(single_writer_has_one_target_and_others_have_more)
{
	struct error *err = NULL;

	ASSERT_OK(stage(true, &err));
	ASSERT_OK(publish_as(mt.target, ACCESS_SINGLE_WRITER, &err));
	ASSERT_FAILS(
		publish_as(mt.other, ACCESS_SINGLE_NODE_SINGLE_WRITER, &err), ERR_PRECONDITION, mt.target);
	ASSERT_OK(publish_as(mt.other, ACCESS_SINGLE_WRITER, &err));
	ASSERT_OK(unpublish(mt.other, &err));
	ASSERT_OK(publish_as(mt.other, ACCESS_SINGLE_NODE_MULTI_WRITER, &err));
	ASSERT_OK(unpublish(mt.target, &err));
	ck_assert(is_node(mt.other));
	ASSERT_FAILS(publish_as(mt.target, ACCESS_MULTI_NODE_WRITER, &err), ERR_INVALID_ARGUMENT, "cache");
}
END_TEST

START_TEST(published_device_is_neither_deleted_nor_mounted)
{
	struct error *err = NULL;

	ASSERT_OK(stage(true, &err));
	ASSERT_OK(publish(mt.target, false, &err));
	ASSERT_FAILS(volumes_delete(fx.v, mt.volume->id, &err), ERR_PRECONDITION, "in use");
	ASSERT_FAILS(stage(false, &err), ERR_PRECONDITION, mt.target);
	ck_assert(is_node(mt.target));
}
END_TEST

/* The record becomes that of a volume which was created for block access and with a file system. */
static void record_as_both(bool formatting)
{
	CLEANUP(volume_record_freep) struct volume_record *r = mounts_record();
	CLEANUP(free_charp) char *file = x_asprintf("%s.json", r->id);
	CLEANUP(buf_done) struct buf text = BUF_INIT(65536);
	struct error *err = NULL;

	r->fs_type = x_strdup("ext4");
	r->formatting = formatting;
	ASSERT_OK(state_format(r, &text, &err));
	fixture_stop();
	fixture_write(file, buf_str(&text));
	fixture_restart();
}

/* A device that a pod has used as a block volume has data without a file system, which must not be formatted
 * over. */
START_TEST(device_that_was_used_is_not_formatted)
{
	struct error *err = NULL;

	record_as_both(/* formatting= */ false);
	ASSERT_OK(stage(true, &err));
	ASSERT_OK(unstage(&err));
	ASSERT_FAILS(stage(false, &err), ERR_PRECONDITION, "not formatted");
	ASSERT_OK(fs_make("ext4", mt.device->path, NULL, 60000, &err));
	ASSERT_OK(stage(false, &err));
	ASSERT_FAILS(stage(true, &err), ERR_PRECONDITION, mt.staging);
	ASSERT_FAILS(publish(mt.target, false, &err), ERR_PRECONDITION, mt.staging);
	ASSERT_OK(unstage(&err));
	ASSERT_OK(stage(true, &err));
	ASSERT_OK(publish(mt.target, false, &err));
}
END_TEST

START_TEST(failed_mkfs_before_is_no_licence_to_format)
{
	struct error *err = NULL;

	record_as_both(/* formatting= */ true);
	ASSERT_OK(stage(true, &err));
	ASSERT_OK(publish(mt.target, false, &err));
	ASSERT_OK(unpublish(mt.target, &err));
	ASSERT_FAILS(stage(false, &err), ERR_PRECONDITION, "not formatted");
}
END_TEST

START_TEST(what_took_the_place_of_the_device_is_not_published)
{
	struct error *err = NULL;

	fx.faults.moved_path = "/dev/pmem9";
	ASSERT_FAILS(publish(mt.target, false, &err), ERR_UNAVAILABLE, "no longer /dev/");
	ck_assert_uint_eq(mounts_count(mt.target), 0);
}
END_TEST

START_TEST(something_else_at_the_target_is_left_alone)
{
	struct use_request mount_request = mounts_publish_request(mt.target, ACCESS_SINGLE_WRITER);
	struct error *err = NULL;

	ASSERT_OK(stage(true, &err));
	ck_assert_int_eq(mknod(mt.target, S_IFREG | 0644, 0), 0);
	ck_assert_int_eq(mount("/dev/null", mt.target, NULL, MS_BIND, NULL), 0);
	ASSERT_FAILS(publish(mt.target, false, &err), ERR_EXISTS, "something other");
	ASSERT_FAILS(unpublish(mt.target, &err), ERR_PRECONDITION, "something other");
	ck_assert_uint_eq(mounts_count(mt.target), 1);
	ck_assert_int_eq(umount(mt.target), 0);
	ASSERT_OK(publish(mt.target, false, &err));
	ASSERT_FAILS(volumes_publish(fx.v, &mount_request, &err), ERR_PRECONDITION, "not staged");
	ck_assert_int_eq(mkdir(mt.other, 0755), 0);
	ASSERT_FAILS(publish(mt.other, false, &err), ERR_INVALID_ARGUMENT, "not a file");
	ck_assert(!mounts_has_target(mt.other));
}
END_TEST

START_TEST(device_must_be_staged_as_one)
{
	struct use_request second = mounts_stage_request("");
	struct error *err = NULL;

	ASSERT_FAILS(publish(mt.target, false, &err), ERR_PRECONDITION, "not staged");
	ASSERT_OK(stage(true, &err));
	ASSERT_OK(publish(mt.target, false, &err));
	second.block = true;
	second.staging_path = mt.other;
	ck_assert_int_eq(mkdir(mt.other, 0755), 0);
	ASSERT_FAILS(volumes_stage(fx.v, &second, &err), ERR_PRECONDITION, mt.staging);
	ASSERT_OK(unstage(&err));
	ASSERT_OK(publish(mt.target, false, &err));
	ASSERT_OK(unpublish(mt.target, &err));
	ASSERT_FAILS(publish(mt.target, false, &err), ERR_PRECONDITION, "not staged");
	ck_assert_int_ne(access(mt.target, F_OK), 0);
	ASSERT_OK(volumes_stage(fx.v, &second, &err));
}
END_TEST

START_TEST(volume_that_was_made_for_file_systems_is_refused)
{
	struct error *err = NULL;

	volume_info_free(TAKE_PTR(mt.volume));
	mt.volume = fixture_create("pvc-2", SIZE);
	ASSERT_FAILS(stage(true, &err), ERR_PRECONDITION, "block volume");
	ASSERT_FAILS(publish(mt.target, false, &err), ERR_PRECONDITION, "block volume");
	ck_assert_int_ne(access(mt.target, F_OK), 0);
}
END_TEST

/* As when a namespace comes up without its page map: file systems and data would be looked for in other
 * places. */
START_TEST(device_that_lost_its_mode_is_not_served)
{
	struct error *err = NULL;

	fx.faults.raw = true;
	ASSERT_OK(volumes_refresh(fx.v, &err));
	ASSERT_FAILS(stage(/* block= */ true, &err), ERR_PRECONDITION, "is now in raw mode");
	ASSERT_FAILS(publish(mt.target, false, &err), ERR_PRECONDITION, "is now in raw mode");
	fx.faults.raw = false;
	ASSERT_OK(volumes_refresh(fx.v, &err));
	ASSERT_OK(stage(/* block= */ true, &err));
}
END_TEST

/* It recorded no staging, and kubelet does not stage again what is staged. */
START_TEST(volume_of_the_go_driver_is_served_as_it_is)
{
	struct use_request q = request(mt.target);
	struct error *err = NULL;

	fixture_make_device("go", 0, "", SIZE);
	fixture_write(
		"go.json", "{\"id\":\"go\",\"size\":16777216,\"parameters\":{\"deviceMode\":\"fake\"}}\n");
	fixture_restart();
	q.handle = "go";
	ASSERT_OK(volumes_publish(fx.v, &q, &err));
	ASSERT_OK(volumes_unpublish(fx.v, "go", mt.target, &err));
}
END_TEST

FIXTURE_MAIN("volumes_node", set_up, target_is_the_device_and_goes_again,
	file_under_the_node_has_the_mode_of_a_file, calls_can_be_repeated_also_after_a_restart,
	what_a_crash_left_is_used_or_removed, read_only_is_compared_both_ways,
	single_writer_has_one_target_and_others_have_more, published_device_is_neither_deleted_nor_mounted,
	device_that_was_used_is_not_formatted, failed_mkfs_before_is_no_licence_to_format,
	what_took_the_place_of_the_device_is_not_published, something_else_at_the_target_is_left_alone,
	device_must_be_staged_as_one, volume_that_was_made_for_file_systems_is_refused,
	volume_of_the_go_driver_is_served_as_it_is, device_that_lost_its_mode_is_not_served)
