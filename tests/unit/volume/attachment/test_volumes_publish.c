/* SPDX-License-Identifier: Apache-2.0 */
/* NodePublish and NodeUnpublish: where a volume may be published, and that every call can be repeated. */
#include <errno.h>
#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"
#include "unit/volume/mounts.h"

#define SIZE MIB(16)

static void stage(void)
{
	const struct use_request q = mounts_stage_request("ext4");
	struct error *err = NULL;

	ASSERT_OK(volumes_stage(fx.v, &q, &err));
}

static void set_up(void)
{
	mounts_set_up(SIZE);
	stage();
}

static int publish(const char *path, enum access_mode mode, struct error **err)
{
	const struct use_request q = mounts_publish_request(path, mode);

	return volumes_publish(fx.v, &q, err);
}

static int publish_with(char *flag, bool readonly, struct error **err)
{
	char *flags[] = {flag, NULL};
	struct use_request q = mounts_publish_request(mt.target, ACCESS_SINGLE_WRITER);

	q.mount_flags = flag ? flags : NULL;
	q.readonly = readonly;
	return volumes_publish(fx.v, &q, err);
}

static int unpublish(const char *path, struct error **err)
{
	return volumes_unpublish(fx.v, mt.volume->id, path, err);
}

START_TEST(staged_file_system_is_shown_at_the_target)
{
	struct error *err = NULL;

	ASSERT_OK(publish(mt.target, ACCESS_SINGLE_WRITER, &err));
	ck_assert_uint_eq(mounts_count(mt.target), 1);
	ck_assert(mounts_has_target(mt.target));
	ck_assert_int_eq(mounts_write(mt.target), 0);
	ck_assert(mounts_has_file(mt.staging));
	ASSERT_OK(unpublish(mt.target, &err));
	ck_assert_uint_eq(mounts_count(mt.target), 0);
	ck_assert_int_ne(access(mt.target, F_OK), 0);
	ck_assert(!mounts_has_target(mt.target));
	ck_assert(mounts_has_file(mt.staging));
}
END_TEST

START_TEST(publishing_and_unpublishing_again_change_nothing)
{
	struct error *err = NULL;

	ASSERT_OK(unpublish(mt.target, &err));
	for (int i = 0; i < 2; i++)
		ASSERT_OK(publish(mt.target, ACCESS_SINGLE_NODE_SINGLE_WRITER, &err));
	fixture_restart();
	ASSERT_OK(publish(mt.target, ACCESS_SINGLE_NODE_SINGLE_WRITER, &err));
	ck_assert_uint_eq(mounts_count(mt.target), 1);
	for (int i = 0; i < 2; i++)
		ASSERT_OK(unpublish(mt.target, &err));
	ck_assert_uint_eq(mounts_count(mt.target), 0);
}
END_TEST

START_TEST(volume_must_be_staged_where_the_request_says)
{
	struct use_request q = mounts_publish_request(mt.target, ACCESS_SINGLE_WRITER);
	struct error *err = NULL;

	q.staging_path = "";
	ASSERT_FAILS(volumes_publish(fx.v, &q, &err), ERR_PRECONDITION, "staging_target_path");
	q.staging_path = NULL;
	ASSERT_FAILS(volumes_publish(fx.v, &q, &err), ERR_PRECONDITION, "staging_target_path");
	q.staging_path = mt.other;
	ASSERT_FAILS(volumes_publish(fx.v, &q, &err), ERR_PRECONDITION, "not staged");
	ck_assert_int_eq(mkdir(mt.other, 0755), 0);
	ck_assert_int_eq(mount("other", mt.other, "tmpfs", 0, NULL), 0);
	ASSERT_FAILS(volumes_publish(fx.v, &q, &err), ERR_PRECONDITION, "not staged");
	ck_assert_int_eq(umount(mt.staging), 0);
	q.staging_path = mt.staging;
	ASSERT_FAILS(volumes_publish(fx.v, &q, &err), ERR_PRECONDITION, "not staged");
	ck_assert_int_ne(access(mt.target, F_OK), 0);
	ck_assert(!mounts_has_target(mt.target));
}
END_TEST

START_TEST(read_only_is_read_only_and_compared_both_ways)
{
	struct error *err = NULL;

	ASSERT_OK(publish_with(NULL, true, &err));
	ck_assert_int_eq(mounts_write(mt.target), EROFS);
	ck_assert_int_eq(mounts_write(mt.staging), 0);
	ASSERT_OK(publish_with(NULL, true, &err));
	ASSERT_OK(publish_with((char[]){"ro"}, false, &err));
	ASSERT_OK(publish_with((char[]){"rw"}, true, &err));
	ASSERT_FAILS(publish_with(NULL, false, &err), ERR_EXISTS, "read-only");
	ASSERT_OK(unpublish(mt.target, &err));
	ASSERT_OK(publish_with(NULL, false, &err));
	ASSERT_FAILS(publish_with(NULL, true, &err), ERR_EXISTS, "read-write");
	ck_assert_int_eq(mounts_write(mt.target), 0);
	ck_assert_uint_eq(mounts_count(mt.target), 1);
	ASSERT_OK(unpublish(mt.target, &err));
	ASSERT_OK(publish_with((char[]){"rw"}, true, &err));
	ck_assert_int_eq(mounts_write(mt.target), EROFS);
}
END_TEST

/* As ext4 does after an error. */
START_TEST(file_system_that_became_read_only_is_published_as_before)
{
	struct error *err = NULL;

	ASSERT_OK(publish_with(NULL, false, &err));
	ck_assert_int_eq(mount(NULL, mt.staging, NULL, MS_REMOUNT | MS_RDONLY, NULL), 0);
	ck_assert_int_eq(mount(NULL, mt.staging, NULL, MS_REMOUNT | MS_BIND, NULL), 0);
	ck_assert_int_ne(mounts_write(mt.target), 0);
	ASSERT_OK(publish_with(NULL, false, &err));
	ASSERT_FAILS(publish_with(NULL, true, &err), ERR_EXISTS, "read-write");
	ck_assert_uint_eq(mounts_count(mt.target), 1);
}
END_TEST

START_TEST(volume_published_with_a_flag_is_published_with_it_again)
{
	static const char *const flags[] = {"ro", "rw", "nosuid", "suid", "nodev", "dev", "noexec", "exec",
		"noatime", "atime", "relatime", "norelatime", "strictatime", "nodiratime", "diratime", "sync",
		"lazytime", "dax", "discard", "defaults"};
	struct error *err = NULL;

	for (size_t i = 0; i < ARRAY_SIZE(flags); i++) {
		char flag[32];

		snprintf(flag, sizeof(flag), "%s", flags[i]);
		for (int again = 0; again < 2; again++)
			ck_assert_msg(
				publish_with(flag, false, &err) == 0, "%s: %s", flag, err ? err->msg : "");
		ASSERT_OK(unpublish(mt.target, &err));
	}
	ASSERT_OK(publish_with(NULL, false, &err));
	ASSERT_FAILS(publish_with((char[]){"noexec"}, false, &err), ERR_EXISTS, "noexec");
	ASSERT_FAILS(publish_with((char[]){"bind"}, false, &err), ERR_INVALID_ARGUMENT, "bind");
}
END_TEST

START_TEST(single_writer_has_one_target)
{
	struct error *err = NULL;

	ASSERT_OK(publish(mt.target, ACCESS_SINGLE_NODE_SINGLE_WRITER, &err));
	ASSERT_FAILS(publish(mt.other, ACCESS_SINGLE_NODE_SINGLE_WRITER, &err), ERR_PRECONDITION, mt.target);
	ck_assert_int_ne(access(mt.other, F_OK), 0);
	ck_assert(!mounts_has_target(mt.other));
	ASSERT_OK(unpublish(mt.target, &err));
	ASSERT_OK(publish(mt.other, ACCESS_SINGLE_NODE_SINGLE_WRITER, &err));
}
END_TEST

START_TEST(other_writers_may_have_further_targets)
{
	static const enum access_mode modes[] = {ACCESS_SINGLE_WRITER, ACCESS_SINGLE_NODE_MULTI_WRITER};
	struct error *err = NULL;

	for (size_t i = 0; i < ARRAY_SIZE(modes); i++) {
		ASSERT_OK(publish(mt.target, modes[i], &err));
		ASSERT_OK(publish(mt.other, modes[i], &err));
		ck_assert(mounts_has_target(mt.target) && mounts_has_target(mt.other));
		ASSERT_OK(unpublish(mt.target, &err));
		ck_assert_uint_eq(mounts_count(mt.other), 1);
		ck_assert(!mounts_has_target(mt.target) && mounts_has_target(mt.other));
		ASSERT_OK(unpublish(mt.other, &err));
	}
}
END_TEST

/* As after a reboot: recorded, the folder still there, nothing mounted. */
START_TEST(leftover_target_path_is_no_use)
{
	struct error *err = NULL;

	ASSERT_OK(publish(mt.target, ACCESS_SINGLE_NODE_SINGLE_WRITER, &err));
	ck_assert_int_eq(umount(mt.target), 0);
	ck_assert_int_eq(access(mt.target, F_OK), 0);
	ck_assert(mounts_has_target(mt.target));
	ASSERT_OK(publish(mt.other, ACCESS_SINGLE_NODE_SINGLE_WRITER, &err));
	ck_assert(!mounts_has_target(mt.target));
	ck_assert_int_eq(umount(mt.other), 0);
	ck_assert_int_eq(umount(mt.staging), 0);
	ck_assert(mounts_has_target(mt.other));
	ASSERT_OK(volumes_delete(fx.v, mt.volume->id, &err));
	ck_assert_uint_eq(fixture_n_devices(), 0);
}
END_TEST

START_TEST(target_that_is_mounted_already_is_recorded)
{
	struct error *err = NULL;

	ck_assert_int_eq(mkdir(mt.target, 0755), 0);
	ck_assert_int_eq(mount(mt.staging, mt.target, NULL, MS_BIND, NULL), 0);
	ASSERT_OK(publish(mt.target, ACCESS_SINGLE_WRITER, &err));
	ck_assert_uint_eq(mounts_count(mt.target), 1);
	ck_assert(mounts_has_target(mt.target));
}
END_TEST

START_TEST(volume_is_not_published_as_another_file_system)
{
	struct use_request q = mounts_publish_request(mt.target, ACCESS_SINGLE_WRITER);
	struct error *err = NULL;

	q.fs_type = "xfs";
	ASSERT_FAILS(volumes_publish(fx.v, &q, &err), ERR_PRECONDITION, "staged as ext4");
	ck_assert(!mounts_has_target(mt.target));
	q.fs_type = "";
	ASSERT_OK(volumes_publish(fx.v, &q, &err));
	q.fs_type = "xfs";
	ASSERT_FAILS(volumes_publish(fx.v, &q, &err), ERR_EXISTS, "staged as ext4");
}
END_TEST

START_TEST(leftover_target_of_something_else_is_no_use)
{
	struct error *err = NULL;

	ASSERT_OK(publish(mt.target, ACCESS_SINGLE_NODE_SINGLE_WRITER, &err));
	ck_assert_int_eq(umount(mt.target), 0);
	ck_assert_int_eq(mount("other", mt.target, "tmpfs", 0, NULL), 0);
	ASSERT_OK(publish(mt.other, ACCESS_SINGLE_NODE_SINGLE_WRITER, &err));
	ASSERT_FAILS(unpublish(mt.target, &err), ERR_PRECONDITION, "something other");
	ck_assert_uint_eq(mounts_count(mt.target), 1);
}
END_TEST

START_TEST(published_volume_is_not_deleted)
{
	struct error *err = NULL;

	ASSERT_OK(publish(mt.target, ACCESS_SINGLE_WRITER, &err));
	ck_assert_int_eq(mounts_write(mt.target), 0);
	ASSERT_OK(volumes_unstage(fx.v, mt.volume->id, mt.staging, &err));
	ASSERT_FAILS(volumes_delete(fx.v, mt.volume->id, &err), ERR_PRECONDITION, mt.target);
	ck_assert(mounts_has_file(mt.target));
	ck_assert(mounts_has_target(mt.target));
}
END_TEST

START_TEST(something_else_at_the_target_is_left_alone)
{
	struct error *err = NULL;

	ck_assert_int_eq(mkdir(mt.target, 0755), 0);
	ck_assert_int_eq(mount("other", mt.target, "tmpfs", 0, NULL), 0);
	ASSERT_FAILS(publish(mt.target, ACCESS_SINGLE_WRITER, &err), ERR_EXISTS, "something other");
	ck_assert_uint_eq(mounts_count(mt.target), 1);
	ck_assert(!mounts_has_target(mt.target));
}
END_TEST

START_TEST(staging_path_is_no_target)
{
	struct error *err = NULL;

	ASSERT_FAILS(publish(mt.staging, ACCESS_SINGLE_WRITER, &err), ERR_INVALID_ARGUMENT, "target_path");
	ck_assert(!mounts_has_target(mt.staging));
	ASSERT_FAILS(unpublish(mt.staging, &err), ERR_INVALID_ARGUMENT, "target_path");
	ck_assert_uint_eq(mounts_count(mt.staging), 1);
}
END_TEST

START_TEST(failed_publication_leaves_nothing)
{
	struct error *err = NULL;
	struct stat st;

	ck_assert_int_eq(close(open(mt.target, O_WRONLY | O_CREAT | O_CLOEXEC, 0600)), 0);
	ASSERT_FAILS(publish(mt.target, ACCESS_SINGLE_WRITER, &err), ERR_INVALID_ARGUMENT, "target");
	ck_assert(!mounts_has_target(mt.target));
	ck_assert_int_eq(stat(mt.target, &st), 0);
	ck_assert(S_ISREG(st.st_mode));
}
END_TEST

START_TEST(stacked_mounts_of_the_volume_are_all_unpublished)
{
	struct error *err = NULL;

	ASSERT_OK(publish(mt.target, ACCESS_SINGLE_WRITER, &err));
	ck_assert_int_eq(mount(mt.staging, mt.target, NULL, MS_BIND, NULL), 0);
	ck_assert_int_eq(mount(mt.staging, mt.target, NULL, MS_BIND, NULL), 0);
	ck_assert_uint_eq(mounts_count(mt.target), 3);
	ASSERT_OK(unpublish(mt.target, &err));
	ck_assert_uint_eq(mounts_count(mt.target), 0);
	ck_assert_int_ne(access(mt.target, F_OK), 0);
	ck_assert_uint_eq(mounts_count(mt.staging), 1);
}
END_TEST

START_TEST(busy_target_stays_published)
{
	struct error *err = NULL;

	ASSERT_OK(publish(mt.target, ACCESS_SINGLE_WRITER, &err));
	int fd = open(mt.target, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	ASSERT_FAILS(unpublish(mt.target, &err), ERR_PRECONDITION, "busy");
	ck_assert_uint_eq(mounts_count(mt.target), 1);
	ck_assert(mounts_has_target(mt.target));
	close(fd);
	ASSERT_OK(unpublish(mt.target, &err));
}
END_TEST

START_TEST(unpublishing_goes_on_where_it_was_cut_off)
{
	struct error *err = NULL;

	/* unmounted, the folder is left; then the folder is gone too */
	ASSERT_OK(publish(mt.target, ACCESS_SINGLE_WRITER, &err));
	ck_assert_int_eq(umount(mt.target), 0);
	ASSERT_OK(unpublish(mt.target, &err));
	ck_assert_int_ne(access(mt.target, F_OK), 0);
	ASSERT_OK(publish(mt.target, ACCESS_SINGLE_WRITER, &err));
	ck_assert_int_eq(umount(mt.target), 0);
	ck_assert_int_eq(rmdir(mt.target), 0);
	ASSERT_OK(unpublish(mt.target, &err));
	ck_assert(!mounts_has_target(mt.target));
}
END_TEST

START_TEST(unknown_volume_is_unpublished_unless_something_is_mounted)
{
	struct use_request q = mounts_publish_request(mt.target, ACCESS_SINGLE_WRITER);
	struct error *err = NULL;

	q.handle = "unknown";
	ASSERT_FAILS(volumes_publish(fx.v, &q, &err), ERR_NOT_FOUND, "unknown");
	ASSERT_OK(volumes_unpublish(fx.v, "unknown", mt.target, &err));
	ck_assert_int_eq(mkdir(mt.target, 0755), 0);
	ASSERT_OK(volumes_unpublish(fx.v, "unknown", mt.target, &err));
	ck_assert_int_ne(access(mt.target, F_OK), 0);
	ASSERT_OK(publish(mt.target, ACCESS_SINGLE_WRITER, &err));
	ASSERT_FAILS(volumes_unpublish(fx.v, "unknown", mt.target, &err), ERR_NOT_FOUND, "mount point");
	ck_assert_uint_eq(mounts_count(mt.target), 1);
}
END_TEST

START_TEST(dying_volume_is_like_an_unknown_one)
{
	struct error *err = NULL;

	ASSERT_OK(publish(mt.target, ACCESS_SINGLE_WRITER, &err));
	ck_assert_int_eq(umount(mt.target), 0);
	ck_assert_int_eq(umount(mt.staging), 0);
	fx.faults.destroy = ERR_INTERNAL;
	ASSERT_FAILS(volumes_delete(fx.v, mt.volume->id, &err), ERR_INTERNAL, mt.volume->id);
	ASSERT_FAILS(publish(mt.other, ACCESS_SINGLE_WRITER, &err), ERR_NOT_FOUND, mt.volume->id);
	ASSERT_OK(unpublish(mt.target, &err));
	ck_assert_int_ne(access(mt.target, F_OK), 0);
}
END_TEST

START_TEST(missing_volume_is_unavailable_but_can_be_unpublished)
{
	struct error *err = NULL;

	ASSERT_OK(publish(mt.target, ACCESS_SINGLE_WRITER, &err));
	fx.faults.absent_pool = mt.device->pool;
	ASSERT_OK(volumes_refresh(fx.v, &err));
	ASSERT_FAILS(publish(mt.other, ACCESS_SINGLE_WRITER, &err), ERR_UNAVAILABLE, "missing");
	ASSERT_OK(unpublish(mt.target, &err));
	ck_assert_uint_eq(mounts_count(mt.target), 0);
	fx.faults.list = ERR_INTERNAL;
	ASSERT_FAILS(publish(mt.other, ACCESS_SINGLE_WRITER, &err), ERR_UNAVAILABLE, "list");
	fx.faults = (struct faults){0};
	ASSERT_OK(publish(mt.other, ACCESS_SINGLE_WRITER, &err));
}
END_TEST

START_TEST(paths_outside_of_the_roots_or_through_links_are_refused)
{
	CLEANUP(free_charp) char *link = fixture_path("kubelet/link");
	CLEANUP(free_charp) char *through = fixture_path("kubelet/link/target");
	CLEANUP(free_charp) char *orphan = fixture_path("kubelet/none/target");
	const char *const paths[] = {"/mnt/target", "relative", "", through, link};
	struct error *err = NULL;

	ck_assert_int_eq(symlink("/mnt", link), 0);
	for (size_t i = 0; i < ARRAY_SIZE(paths); i++) {
		ASSERT_FAILS(publish(paths[i], ACCESS_SINGLE_WRITER, &err), ERR_INVALID_ARGUMENT, "path");
		ck_assert(!mounts_has_target(paths[i]));
	}
	ASSERT_FAILS(publish(orphan, ACCESS_SINGLE_WRITER, &err), ERR_NOT_FOUND, "none");
	ck_assert(!mounts_has_target(orphan));
	ASSERT_FAILS(unpublish("/mnt/target", &err), ERR_INVALID_ARGUMENT, "path");
	ASSERT_FAILS(unpublish(through, &err), ERR_INVALID_ARGUMENT, "link");
}
END_TEST

START_TEST(context_is_checked)
{
	CLEANUP(strmap_done) struct strmap context = {0};
	struct use_request q = mounts_publish_request(mt.target, ACCESS_SINGLE_WRITER);
	struct error *err = NULL;

	strmap_copy(&context, &mt.volume->context);
	strmap_set(&context, "csi.storage.k8s.io/pod.name", "x");
	q.context = &context;
	ASSERT_OK(volumes_publish(fx.v, &q, &err));
	strmap_set(&context, "eraseAfter", "true");
	ASSERT_FAILS(volumes_publish(fx.v, &q, &err), ERR_INVALID_ARGUMENT, "eraseAfter");
}
END_TEST

FIXTURE_MAIN("volumes_publish", set_up, staged_file_system_is_shown_at_the_target,
	publishing_and_unpublishing_again_change_nothing, volume_must_be_staged_where_the_request_says,
	read_only_is_read_only_and_compared_both_ways,
	file_system_that_became_read_only_is_published_as_before,
	volume_published_with_a_flag_is_published_with_it_again, single_writer_has_one_target,
	other_writers_may_have_further_targets, leftover_target_path_is_no_use,
	target_that_is_mounted_already_is_recorded, volume_is_not_published_as_another_file_system,
	leftover_target_of_something_else_is_no_use, published_volume_is_not_deleted,
	something_else_at_the_target_is_left_alone, staging_path_is_no_target,
	failed_publication_leaves_nothing, stacked_mounts_of_the_volume_are_all_unpublished,
	busy_target_stays_published, unpublishing_goes_on_where_it_was_cut_off,
	unknown_volume_is_unpublished_unless_something_is_mounted, dying_volume_is_like_an_unknown_one,
	missing_volume_is_unavailable_but_can_be_unpublished,
	paths_outside_of_the_roots_or_through_links_are_refused, context_is_checked)
