/* SPDX-License-Identifier: Apache-2.0 */
#include "os/copy/fs_detached.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mount.h>
#include <time.h>

#include "base/clock.h"
#include "base/durable_step.h"
#include "base/str.h"
#include "os/blockdev.h"

/* A child that another thread starts has copies of our descriptors until it runs its program. */
#define BUSY_WAIT_MS 1000
#define BUSY_POLL_MS 5

static int fail(const char *fstype, const char *device, struct error **err)
{
	enum err_code code = errno == EBUSY || errno == ENOSYS ? ERR_UNAVAILABLE : ERR_INTERNAL;

	return err_set_errno(err, code, errno, "mount %s as %s without a path; the kernel's log may say more",
		device, fstype);
}

enum access {
	FOR_WRITING,
	FOR_READING,
	WITHOUT_REPLAY, /* for reading, and nothing is written to the device either */
};

static int configure(int context_fd, const char *fstype, const char *device, enum access access)
{
	const char *no_replay = str_eq(fstype, "xfs") ? "norecovery" : "noload";

	if (fsconfig(context_fd, FSCONFIG_SET_STRING, "source", device, 0) < 0)
		return -1;
	if (access != FOR_WRITING && fsconfig(context_fd, FSCONFIG_SET_FLAG, "ro", NULL, 0) < 0)
		return -1;
	if (access == WITHOUT_REPLAY && fsconfig(context_fd, FSCONFIG_SET_FLAG, no_replay, NULL, 0) < 0)
		return -1;
	if (str_eq(fstype, "xfs") && fsconfig(context_fd, FSCONFIG_SET_FLAG, "nouuid", NULL, 0) < 0)
		return -1;
	/* its superblock, to which a guest may have written, can say that an error stops the kernel */
	if (str_eq(fstype, "ext4") &&
		fsconfig(context_fd, FSCONFIG_SET_STRING, "errors", "remount-ro", 0) < 0)
		return -1;
	return STEP("mount-detached", fsconfig(context_fd, FSCONFIG_CMD_CREATE, NULL, NULL, 0));
}

static int mount_it(
	const char *fstype, const char *device, enum access access, int *ret_dir_fd, struct error **err)
{
	const unsigned attributes =
		MOUNT_ATTR_NODEV | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC | MOUNT_ATTR_NOATIME;
	CLEANUP(fd_closep) int context_fd = fsopen(fstype, FSOPEN_CLOEXEC);
	CLEANUP(fd_closep) int mount_fd = -1;

	if (context_fd < 0 || configure(context_fd, fstype, device, access) < 0)
		return fail(fstype, device, err);
	mount_fd = fsmount(context_fd, FSMOUNT_CLOEXEC, attributes);
	if (mount_fd < 0)
		return fail(fstype, device, err);

	/* the mount stays as long as a file in it is open, also when its own descriptor, which can do
	 * nothing but find files, is closed (fs/namespace.c, dissolve_on_fput()) */
	int dir_fd = openat(mount_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir_fd < 0)
		return err_set_errno(
			err, ERR_INTERNAL, errno, "open the root of the %s on %s", fstype, device);
	*ret_dir_fd = dir_fd;
	return 0;
}

/* The kernel would share the superblock of a file system that is mounted already with the same access
 * (fs/super.c, get_tree_bdev()), and a writer there would go on. */
static int mount_unless_held(
	const char *fstype, const char *device, enum access access, int *ret_dir_fd, struct error **err)
{
	if (blockdev_refuse_held(device, 0, err) < 0)
		return -1;
	return mount_it(fstype, device, access, ret_dir_fd, err);
}

static int open_with(
	const char *fstype, const char *device, enum access access, int *ret_dir_fd, struct error **err)
{
	uint64_t deadline_ns = clock_ns() + BUSY_WAIT_MS * NS_PER_MS;

	while (mount_unless_held(fstype, device, access, ret_dir_fd, err) < 0) {
		if ((*err)->os_errno != EBUSY || clock_ns() >= deadline_ns)
			return -1;
		error_clear(err);
		nanosleep(&(struct timespec){.tv_nsec = BUSY_POLL_MS * (long)NS_PER_MS}, NULL);
	}
	return 0;
}

int fs_open_detached(
	const char *fstype, const char *device, bool readonly, int *ret_dir_fd, struct error **err)
{
	return open_with(fstype, device, readonly ? FOR_READING : FOR_WRITING, ret_dir_fd, err);
}

int fs_open_unchanged(const char *fstype, const char *device, int *ret_dir_fd, struct error **err)
{
	return open_with(fstype, device, WITHOUT_REPLAY, ret_dir_fd, err);
}

int fs_open_further(const char *fstype, const char *device, int *ret_dir_fd, struct error **err)
{
	/* the kernel shares a file system that is read-only with further mounts for reading only (fs/super.c,
	 * get_tree_bdev()) */
	if (mount_it(fstype, device, FOR_WRITING, ret_dir_fd, err) == 0)
		return 0;
	if ((*err)->os_errno != EBUSY)
		return -1;
	error_clear(err);
	return mount_it(fstype, device, FOR_READING, ret_dir_fd, err);
}

int fs_close_detached(int dir_fd, const char *device, struct error **err)
{
	fd_closep(&dir_fd);
	if (blockdev_refuse_held(device, BUSY_WAIT_MS, err) < 0)
		return err_wrap(err, "wait for the end of a mount");
	return 0;
}
