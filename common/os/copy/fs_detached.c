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

#define CLOSED_WAIT_MS 1000
#define CLOSED_POLL_MS 5

static int fail(const char *fstype, const char *device, struct error **err)
{
	enum err_code code = errno == EBUSY || errno == ENOSYS ? ERR_UNAVAILABLE : ERR_INTERNAL;

	return err_set_errno(err, code, errno, "mount %s as %s without a path; the kernel's log may say more",
		device, fstype);
}

static int configure(int context_fd, const char *fstype, const char *device, bool readonly)
{
	if (fsconfig(context_fd, FSCONFIG_SET_STRING, "source", device, 0) < 0)
		return -1;
	if (readonly && fsconfig(context_fd, FSCONFIG_SET_FLAG, "ro", NULL, 0) < 0)
		return -1;
	if (str_eq(fstype, "xfs") && fsconfig(context_fd, FSCONFIG_SET_FLAG, "nouuid", NULL, 0) < 0)
		return -1;
	return STEP("mount-detached", fsconfig(context_fd, FSCONFIG_CMD_CREATE, NULL, NULL, 0));
}

static int open_mount(
	const char *fstype, const char *device, bool readonly, int *ret_dir_fd, struct error **err)
{
	unsigned attributes = MOUNT_ATTR_NODEV | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC | MOUNT_ATTR_NOATIME |
			      (readonly ? MOUNT_ATTR_RDONLY : 0U);
	CLEANUP(fd_closep) int mount_fd = -1;
	CLEANUP(fd_closep) int context_fd = fsopen(fstype, FSOPEN_CLOEXEC);
	if (context_fd < 0)
		return fail(fstype, device, err);
	if (configure(context_fd, fstype, device, readonly) < 0)
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

int fs_open_detached(
	const char *fstype, const char *device, bool readonly, int *ret_dir_fd, struct error **err)
{
	/* The kernel would share the superblock of a file system that is mounted already with the same
	 * access (fs/super.c, get_tree_bdev()), and a writer there would go on. */
	if (blockdev_refuse_held(device, err) < 0)
		return -1;
	return open_mount(fstype, device, readonly, ret_dir_fd, err);
}

int fs_open_further(const char *fstype, const char *device, int *ret_dir_fd, struct error **err)
{
	return open_mount(fstype, device, /* readonly= */ false, ret_dir_fd, err);
}

int fs_close_detached(int dir_fd, const char *device, struct error **err)
{
	uint64_t deadline_ns = clock_ns() + CLOSED_WAIT_MS * NS_PER_MS;

	fd_closep(&dir_fd);
	while (blockdev_refuse_held(device, err) < 0) {
		if ((*err)->code != ERR_UNAVAILABLE || clock_ns() >= deadline_ns)
			return err_wrap(err, "wait for the end of a mount");
		error_clear(err);
		nanosleep(&(struct timespec){.tv_nsec = CLOSED_POLL_MS * (long)NS_PER_MS}, NULL);
	}
	return 0;
}
