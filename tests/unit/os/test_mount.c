/* SPDX-License-Identifier: Apache-2.0 */
#include "os/mount.h"

#include <pthread.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include "os/blockdev_mounts.h"
#include "os/fs.h"
#include "os/kmsg.h"
#include "unit/os/scratch.h"

#define TARGET   SCRATCH "/target"
#define OWN_NODE SCRATCH "/node"

static unsigned n_lstats;

int __real_lstat(const char *path, struct stat *ret);
int __wrap_lstat(const char *path, struct stat *ret);

int __wrap_lstat(const char *path, struct stat *ret)
{
	n_lstats++;
	return __real_lstat(path, ret);
}

#define OPTIONS(...) ((const char *const[]){__VA_ARGS__, NULL})

static int make_dir(const char *path)
{
	ck_assert_int_eq(mkdir(path, 0755), 0);
	int fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	ck_assert_int_ge(fd, 0);
	return fd;
}

static struct scratch_disk make_ext4_disk(void)
{
	CLEANUP(error_freep) struct error *err = NULL;
	struct scratch_disk disk = scratch_disk("disk", MIB(16));

	ASSERT_OK(fs_make("ext4", disk.path, NULL, 60000, &err));
	return disk;
}

static struct mount_table *read_table(void)
{
	CLEANUP(error_freep) struct error *err = NULL;
	struct mount_table *t = NULL;

	ASSERT_OK(mount_table_read(&t, &err));
	return t;
}

static void assert_not_mounted(const char *target)
{
	CLEANUP(mount_table_freep) struct mount_table *t = read_table();

	ck_assert_ptr_null(mount_table_at(t, target));
}

START_TEST(a_device_is_mounted_with_what_was_asked_for)
{
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(scratch_disk_done) struct scratch_disk disk = make_ext4_disk();
	CLEANUP(fd_closep) int target = make_dir(TARGET);
	struct stat st;

	ASSERT_OK(
		mount_device(disk.path, target, "ext4", OPTIONS("noatime", "nosuid", "data=journal"), &err));
	ck_assert_int_eq(fstat(disk.fd, &st), 0);

	CLEANUP(mount_table_freep) struct mount_table *t = read_table();
	const struct mount_entry *e = mount_table_at(t, TARGET);
	ck_assert_ptr_nonnull(e);
	ck_assert_uint_eq(e->dev, st.st_rdev);
	ck_assert_int_eq(blockdev_mount_kind(e, st.st_rdev), BLOCKDEV_MOUNT_FS);
	ck_assert_ptr_eq(blockdev_mount_find(t, st.st_rdev), e);
	ck_assert_ptr_null(blockdev_mount_find_kind(t, st.st_rdev, BLOCKDEV_MOUNT_NODE));
	ck_assert_str_eq(e->fstype, "ext4");
	ck_assert_str_eq(e->source, disk.path);
	ck_assert_str_eq(e->options, "rw,nosuid,noatime");
	ck_assert(mount_entry_has(e, "data=journal"));
	ck_assert(!mount_entry_has(e, "ro"));
}
END_TEST

START_TEST(no_options_mean_none)
{
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(scratch_disk_done) struct scratch_disk disk = make_ext4_disk();
	CLEANUP(fd_closep) int target = make_dir(TARGET);

	ASSERT_OK(mount_device(disk.path, target, "ext4", NULL, &err));
	CLEANUP(mount_table_freep) struct mount_table *t = read_table();
	ck_assert_str_eq(mount_table_at(t, TARGET)->options, "rw,relatime");
}
END_TEST

START_TEST(options_that_the_kernel_refuses_are_named)
{
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(scratch_disk_done) struct scratch_disk disk = make_ext4_disk();
	CLEANUP(fd_closep) int target = make_dir(TARGET);

	ASSERT_FAILS(mount_device(disk.path, target, "ext4", OPTIONS("noatime", "bogus=1"), &err),
		ERR_INVALID_ARGUMENT, "noatime,bogus=1");
	/* of several it is named */
	ASSERT_FAILS(mount_device(disk.path, target, "ext4", OPTIONS("noatime", "bogus=1"), &err),
		ERR_INVALID_ARGUMENT,
		"the kernel does not take \"bogus=1\" for ext4 (ext4: Unknown parameter 'bogus')");
	/* the kernel finds it after the options, and says so in its log only, without the device */
	CLEANUP(fd_closep) int kmsg_fd = kmsg_mark();
	ASSERT_FAILS(mount_device(disk.path, target, "ext4", OPTIONS("prjquota"), &err), ERR_INVALID_ARGUMENT,
		kmsg_fd < 0 ? "prjquota" : "Project quota feature not enabled");
	/* A loop device has no DAX. */
	ASSERT_FAILS(
		mount_device(disk.path, target, "ext4", OPTIONS("dax"), &err), ERR_INVALID_ARGUMENT, "dax");
	ASSERT_FAILS(
		mount_device(SCRATCH "/none", target, "ext4", NULL, &err), ERR_INTERNAL, SCRATCH "/none");
	assert_not_mounted(TARGET);
}
END_TEST

START_TEST(options_that_would_make_another_operation_are_refused)
{
	static const char *const bad[] = {"remount", "bind", "rbind", "move", "private", "rshared", "user",
		"noauto", "x-systemd.automount", "_netdev", "loop", "ro,remount", "noatime,nosuid", ""};
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(scratch_disk_done) struct scratch_disk disk = make_ext4_disk();
	CLEANUP(fd_closep) int target = make_dir(TARGET);

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		ASSERT_FAILS(mount_device(disk.path, target, "ext4", OPTIONS(bad[i]), &err),
			ERR_INVALID_ARGUMENT, bad[i]);
	assert_not_mounted(TARGET);
}
END_TEST

START_TEST(a_device_held_exclusively_is_busy)
{
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(scratch_disk_done) struct scratch_disk disk = make_ext4_disk();
	CLEANUP(fd_closep) int target = make_dir(TARGET);
	CLEANUP(fd_closep) int holder = open(disk.path, O_RDWR | O_EXCL | O_CLOEXEC);

	ck_assert_int_ge(holder, 0);
	ASSERT_FAILS(mount_device(disk.path, target, "ext4", NULL, &err), ERR_UNAVAILABLE, disk.path);
}
END_TEST

START_TEST(the_target_is_the_directory_that_was_opened_whatever_its_path_became)
{
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(scratch_disk_done) struct scratch_disk disk = make_ext4_disk();
	CLEANUP(fd_closep) int target = make_dir(TARGET);

	close(make_dir(SCRATCH "/victim"));
	ck_assert_int_eq(rename(TARGET, SCRATCH "/moved"), 0);
	ck_assert_int_eq(symlink("victim", TARGET), 0);
	ASSERT_OK(mount_device(disk.path, target, "ext4", NULL, &err));
	CLEANUP(mount_table_freep) struct mount_table *t = read_table();
	ck_assert_ptr_nonnull(mount_table_at(t, SCRATCH "/moved"));
	ck_assert_ptr_null(mount_table_at(t, SCRATCH "/victim"));
}
END_TEST

START_TEST(a_bind_shows_the_source_with_its_own_flags)
{
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(fd_closep) int source = make_dir(SCRATCH "/source");
	CLEANUP(fd_closep) int target = make_dir(TARGET);

	close(scratch_file("source/file", 1));
	ASSERT_OK(mount_bind(source, target, OPTIONS("ro", "nosuid", "noatime"), &err));
	ck_assert_int_eq(access(TARGET "/file", F_OK), 0);
	ck_assert_int_lt(open(TARGET "/new", O_CREAT | O_WRONLY | O_CLOEXEC, 0600), 0);
	close(scratch_file("source/new", 1));

	CLEANUP(mount_table_freep) struct mount_table *t = read_table();
	const struct mount_entry *e = mount_table_at(t, TARGET);
	ck_assert_str_eq(e->options, "ro,nosuid,noatime");
	ck_assert_str_eq(e->root, "/source");
	ck_assert(!mount_entry_has(mount_table_at(t, SCRATCH), "nosuid"));
}
END_TEST

START_TEST(a_later_bind_flag_overrides_an_earlier_one)
{
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(fd_closep) int source = make_dir(SCRATCH "/source");
	CLEANUP(fd_closep) int target = make_dir(TARGET);

	ASSERT_OK(mount_bind(
		source, target, OPTIONS("ro", "noatime", "nosuid", "rw", "strictatime", "suid"), &err));
	CLEANUP(mount_table_freep) struct mount_table *t = read_table();
	ck_assert_str_eq(mount_table_at(t, TARGET)->options, "rw");
}
END_TEST

START_TEST(a_device_node_is_bound_over_a_file)
{
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(scratch_disk_done) struct scratch_disk disk = scratch_disk("disk", MIB(1));
	CLEANUP(fd_closep) int source = open(disk.path, O_PATH | O_CLOEXEC);
	struct stat st, node;

	close(scratch_file("target", 0));
	CLEANUP(fd_closep) int target = open(TARGET, O_PATH | O_CLOEXEC);
	ASSERT_OK(mount_bind(source, target, NULL, &err));
	ck_assert_int_eq(stat(TARGET, &st), 0);
	ck_assert_int_eq(stat(disk.path, &node), 0);
	ck_assert(S_ISBLK(st.st_mode));
	ck_assert_uint_eq(st.st_rdev, node.st_rdev);

	CLEANUP(mount_table_freep) struct mount_table *t = read_table();
	const struct mount_entry *e = mount_table_at(t, TARGET);
	ck_assert_str_eq(e->root, disk.path + strlen("/dev"));
	ck_assert_str_eq(e->fstype, "devtmpfs");
	ck_assert_int_eq(blockdev_mount_kind(e, st.st_rdev), BLOCKDEV_MOUNT_NODE);
	ck_assert_int_eq(blockdev_mount_kind(e, st.st_rdev + 1), BLOCKDEV_MOUNT_NONE);
	ck_assert_ptr_eq(blockdev_mount_find(t, st.st_rdev), e);
	ck_assert_ptr_eq(blockdev_mount_find_kind(t, st.st_rdev, BLOCKDEV_MOUNT_NODE), e);
	n_lstats = 0;
	ck_assert_ptr_null(blockdev_mount_find_kind(t, st.st_rdev, BLOCKDEV_MOUNT_FS));
	ck_assert_uint_eq(n_lstats, 0);
	ck_assert_int_eq(blockdev_mount_kind(NULL, st.st_rdev), BLOCKDEV_MOUNT_NONE);
}
END_TEST

START_TEST(a_bound_node_is_seen_when_it_is_hidden_or_not_in_devtmpfs)
{
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(scratch_disk_done) struct scratch_disk disk = scratch_disk("disk", MIB(1));
	CLEANUP(fd_closep) int source = open(disk.path, O_PATH | O_CLOEXEC);
	struct stat st;

	ck_assert_int_eq(fstat(disk.fd, &st), 0);
	ck_assert_int_eq(mknod(OWN_NODE, S_IFBLK | 0600, st.st_rdev), 0);
	CLEANUP(fd_closep) int own = open(OWN_NODE, O_PATH | O_CLOEXEC);
	close(scratch_file("target", 0));
	CLEANUP(fd_closep) int target = open(TARGET, O_PATH | O_CLOEXEC);
	ASSERT_OK(mount_bind(own, target, NULL, &err));
	CLEANUP(mount_table_freep) struct mount_table *t = read_table();
	ck_assert_str_eq(mount_table_at(t, TARGET)->fstype, "tmpfs");
	ck_assert_int_eq(blockdev_mount_kind(mount_table_at(t, TARGET), st.st_rdev), BLOCKDEV_MOUNT_NODE);
	ck_assert_int_eq(umount2(TARGET, 0), 0);

	CLEANUP(fd_closep) int again = open(TARGET, O_PATH | O_CLOEXEC);
	ASSERT_OK(mount_bind(source, again, NULL, &err));
	ck_assert_int_eq(mount("/dev/null", TARGET, NULL, MS_BIND, NULL), 0);
	CLEANUP(mount_table_freep) struct mount_table *hidden = read_table();
	const struct mount_entry *e = blockdev_mount_find_kind(hidden, st.st_rdev, BLOCKDEV_MOUNT_NODE);
	ck_assert_ptr_nonnull(e);
	ck_assert_str_eq(e->target, TARGET);
	ck_assert_ptr_ne(e, mount_table_at(hidden, TARGET));
}
END_TEST

START_TEST(a_bind_that_cannot_be_made_leaves_nothing)
{
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(fd_closep) int source = make_dir(SCRATCH "/source");
	CLEANUP(fd_closep) int target = make_dir(TARGET);

	close(scratch_file("file", 0));
	CLEANUP(fd_closep) int file = open(SCRATCH "/file", O_PATH | O_CLOEXEC);
	ASSERT_FAILS(mount_bind(source, target, OPTIONS("ro", "dax"), &err), ERR_INVALID_ARGUMENT, "dax");
	ASSERT_FAILS(mount_bind(source, target, OPTIONS("bind"), &err), ERR_INVALID_ARGUMENT, "bind");
	ASSERT_FAILS(mount_bind(file, target, NULL, &err), ERR_INTERNAL, "bind");
	assert_not_mounted(TARGET);
}
END_TEST

START_TEST(empty_mount_takes_nothing_and_names_its_source)
{
	CLEANUP(fd_closep) int target_fd = make_dir(TARGET);
	struct error *err = NULL;

	ASSERT_OK(mount_empty("ours-1", target_fd, &err));
	CLEANUP(mount_table_freep) struct mount_table *t = read_table();
	const struct mount_entry *e = mount_table_at(t, TARGET);
	ck_assert_ptr_nonnull(e);
	ck_assert_str_eq(e->source, "ours-1");
	ck_assert(mount_entry_is_readonly(e));
	ck_assert_int_ne(mkdir(TARGET "/x", 0755), 0);
	ASSERT_OK(mount_remove(TARGET, &err));
}
END_TEST

START_TEST(removal_takes_the_top_mount_and_is_idempotent)
{
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(fd_closep) int one = make_dir(SCRATCH "/one");
	CLEANUP(fd_closep) int target = make_dir(TARGET);

	ASSERT_OK(mount_bind(one, target, NULL, &err));
	ck_assert_int_eq(mount("top", TARGET, "tmpfs", 0, NULL), 0);
	ASSERT_OK(mount_remove(TARGET, &err));
	CLEANUP(mount_table_freep) struct mount_table *t = read_table();
	ck_assert_str_eq(mount_table_at(t, TARGET)->root, "/one");
	ASSERT_OK(mount_remove(TARGET, &err));
	assert_not_mounted(TARGET);
	ASSERT_OK(mount_remove(TARGET, &err));
	ASSERT_OK(mount_remove(SCRATCH "/none", &err));
	ASSERT_OK(mount_remove(SCRATCH "/none/deeper", &err));
}
END_TEST

START_TEST(a_busy_mount_stays)
{
	CLEANUP(error_freep) struct error *err = NULL;

	close(make_dir(TARGET));
	ck_assert_int_eq(mount("top", TARGET, "tmpfs", 0, NULL), 0);
	int user = open(TARGET, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	ASSERT_FAILS(mount_remove(TARGET, &err), ERR_PRECONDITION, TARGET);
	close(user);
	ASSERT_OK(mount_remove(TARGET, &err));
}
END_TEST

static void *close_soon(void *fd)
{
	const struct timespec soon = {.tv_nsec = 100000000};

	nanosleep(&soon, NULL);
	close(*(int *)fd);
	return NULL;
}

/* The mount is busy as it is while a child process that another thread has forked has not executed its
 * program yet. */
START_TEST(a_mount_that_is_busy_for_a_moment_is_removed)
{
	CLEANUP(error_freep) struct error *err = NULL;
	pthread_t thread;

	close(make_dir(SCRATCH "/dir"));
	ck_assert_int_eq(mount("top", SCRATCH "/dir", "tmpfs", 0, NULL), 0);
	int fd = open(SCRATCH "/dir", O_PATH | O_CLOEXEC);
	ck_assert_int_eq(pthread_create(&thread, NULL, close_soon, &fd), 0);
	ASSERT_OK(mount_remove(SCRATCH "/dir", &err));
	pthread_join(thread, NULL);
}
END_TEST

START_TEST(removal_follows_no_symlink)
{
	CLEANUP(error_freep) struct error *err = NULL;

	close(make_dir(SCRATCH "/dir"));
	close(make_dir(SCRATCH "/dir/victim"));
	ck_assert_int_eq(mount("top", SCRATCH "/dir/victim", "tmpfs", 0, NULL), 0);
	ck_assert_int_eq(symlink("dir", SCRATCH "/folder"), 0);
	ck_assert_int_eq(symlink("dir/victim", SCRATCH "/last"), 0);
	ASSERT_FAILS(mount_remove(SCRATCH "/folder/victim", &err), ERR_INTERNAL, "folder");
	ASSERT_OK(mount_remove(SCRATCH "/last", &err)); /* a symlink is no mount point */
	CLEANUP(mount_table_freep) struct mount_table *t = read_table();
	ck_assert_ptr_nonnull(mount_table_at(t, SCRATCH "/dir/victim"));
}
END_TEST

START_TEST(the_kernel_says_which_options_it_knows)
{
	static const char *const known[][2] = {{"xfs", "inode64"}, {"xfs", "logbufs=8"}, {"xfs", "noatime"},
		{"ext4", "commit=60"},
		/* not to be asked of: the mount itself will say it */
		{"no-such-fs", "whatever"}};
	/* the first two are gone since Linux 4.19 */
	static const char *const refused[][3] = {{"xfs", "nobarrier", "xfs: Unknown parameter 'nobarrier'"},
		{"xfs", "ihashsize=7", "xfs: Unknown parameter 'ihashsize'"},
		{"xfs", "a,b", "malformed mount option \"a,b\""}};

	for (size_t i = 0; i < ARRAY_SIZE(known); i++)
		ck_assert_ptr_null(mount_option_refusal(known[i][0], known[i][1]));
	for (size_t i = 0; i < ARRAY_SIZE(refused); i++) {
		CLEANUP(free_charp) char *why = mount_option_refusal(refused[i][0], refused[i][1]);

		ck_assert_pstr_eq(why, refused[i][2]);
	}
}
END_TEST

/* Two mounts have one path, and the descriptor of the hidden one is still its own. */
START_TEST(a_descriptor_tells_its_mount)
{
	CLEANUP(error_freep) struct error *err = NULL;
	const struct mount_entry *e;

	CLEANUP(fd_closep) int below = make_dir(SCRATCH "/dir");
	ck_assert_int_eq(mount("one", SCRATCH "/dir", "tmpfs", 0, NULL), 0);
	CLEANUP(fd_closep) int hidden = open(SCRATCH "/dir", O_PATH | O_CLOEXEC);
	ck_assert_int_eq(mount("two", SCRATCH "/dir", "tmpfs", 0, NULL), 0);
	CLEANUP(fd_closep) int top = open(SCRATCH "/dir", O_PATH | O_CLOEXEC);
	CLEANUP(mount_table_freep) struct mount_table *t = read_table();
	ASSERT_OK(mount_table_of(t, top, &e, &err));
	ck_assert_str_eq(e->source, "two");
	ASSERT_OK(mount_table_of(t, hidden, &e, &err));
	ck_assert_str_eq(e->source, "one");
	ASSERT_OK(mount_table_of(t, below, &e, &err));
	ck_assert_str_ne(e->target, SCRATCH "/dir");
	ASSERT_FAILS(mount_table_of(t, -1, &e, &err), ERR_NOT_FOUND, "find the mount");
}
END_TEST

SCRATCH_MAIN("os/mount", a_device_is_mounted_with_what_was_asked_for, no_options_mean_none,
	options_that_the_kernel_refuses_are_named, options_that_would_make_another_operation_are_refused,
	a_device_held_exclusively_is_busy,
	the_target_is_the_directory_that_was_opened_whatever_its_path_became,
	a_bind_shows_the_source_with_its_own_flags, a_later_bind_flag_overrides_an_earlier_one,
	a_device_node_is_bound_over_a_file, a_bound_node_is_seen_when_it_is_hidden_or_not_in_devtmpfs,
	a_bind_that_cannot_be_made_leaves_nothing, empty_mount_takes_nothing_and_names_its_source,
	removal_takes_the_top_mount_and_is_idempotent, a_busy_mount_stays, removal_follows_no_symlink,
	the_kernel_says_which_options_it_knows, a_descriptor_tells_its_mount,
	a_mount_that_is_busy_for_a_moment_is_removed)
