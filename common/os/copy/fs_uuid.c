/* SPDX-License-Identifier: Apache-2.0 */
#include "os/copy/fs_uuid.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>

#include "base/clock.h"
#include "base/durable_step.h"
#include "base/mem.h"
#include "base/str.h"
#include "os/blockdev.h"
#include "os/copy/fs_detached.h"
#include "os/fs.h"

/* e2fsck(8), "EXIT CODE" */
#define FSCK_CORRECTED   1
#define FSCK_UNCORRECTED 4
#define HELD_WAIT_MS     1000
#define OUTPUT_MAX       1024 /* of a program's output, in a message */

static int refuse_malformed(const char *uuid, struct error **err)
{
	if (strlen(uuid) == FS_UUID_TEXT_LEN && strspn(uuid, "0123456789abcdef-") == FS_UUID_TEXT_LEN)
		return 0;
	return err_set(err, ERR_INVALID_ARGUMENT, "\"%s\" is not a UUID in lower case", uuid);
}

/* @ret_output: one line, caller frees */
static int run(const char *const argv[], const char *device, uint64_t deadline_ns, int *ret_status,
	char **ret_output, struct error **err)
{
	CLEANUP(buf_done) struct buf out = BUF_INIT(OUTPUT_MAX);

	if (fs_run_tool(argv, device, &out, clock_left_ms(deadline_ns, INT32_MAX), ret_status, err) < 0)
		return err_wrap(err, "change the UUID of a copy");
	*ret_output = x_strdup(buf_str(&out));
	str_clean(*ret_output);
	return 0;
}

static int refuse_status(
	const char *program, int status, const char *device, const char *output, struct error **err)
{
	if (status == 0)
		return 0;
	return err_set(
		err, ERR_INTERNAL, "%s ended with status %d on %s: %s", program, status, device, output);
}

static int check_ext4(const char *device, uint64_t deadline_ns, struct error **err)
{
	const char *const argv[] = {"e2fsck", "-f", "-p", "--", device, NULL};
	CLEANUP(free_charp) char *output = NULL;
	int status = 0;

	if (STEP("fsck-copy", run(argv, device, deadline_ns, &status, &output, err)) < 0)
		return -1;
	if (status & FSCK_UNCORRECTED)
		return err_set(err, ERR_PRECONDITION,
			"the copy on %s has errors that need a decision, and the source has them, too (\"%s\"): save "
			"the data of the source if they matter, then run e2fsck -f on its device",
			device, output);
	return refuse_status("e2fsck", status & ~FSCK_CORRECTED, device, output, err);
}

/* With a seed of its own for the checksums of the metadata these stay as they are, and tune2fs neither writes
 * them nor wants a check before that. Return: 1; 0: nothing was changed, and there is another way; or -1. */
static int change_ext4_only(const char *device, const char *uuid, uint64_t deadline_ns, struct error **err)
{
	const char *const argv[] = {"tune2fs", "-O", "metadata_csum_seed", "-U", uuid, "--", device, NULL};
	CLEANUP(free_charp) char *output = NULL;
	struct fs_super super = {0};
	int status = 0;

	if (fs_read_super("ext4", device, &super, err) < 0)
		return -1;
	if (!super.checksummed_and_clean)
		return 0;
	if (STEP("uuid-ext4-only", run(argv, device, deadline_ns, &status, &output, err)) < 0)
		return -1;
	return status == 0;
}

static int change_ext4_checked(const char *device, const char *uuid, uint64_t deadline_ns, struct error **err)
{
	const char *const argv[] = {"tune2fs", "-U", uuid, "--", device, NULL};
	CLEANUP(free_charp) char *output = NULL;
	int status = 0;

	if (check_ext4(device, deadline_ns, err) < 0 ||
		STEP("uuid-ext4", run(argv, device, deadline_ns, &status, &output, err)) < 0)
		return -1;
	return refuse_status("tune2fs", status, device, output, err);
}

static int change_ext4(const char *device, const char *uuid, uint64_t deadline_ns, struct error **err)
{
	if (blockdev_refuse_held(device, HELD_WAIT_MS, err) < 0)
		return -1;
	int changed = change_ext4_only(device, uuid, deadline_ns, err);
	if (changed != 0)
		return changed < 0 ? -1 : 0;
	return change_ext4_checked(device, uuid, deadline_ns, err);
}

static int replay_xfs_log(const char *device, struct error **err)
{
	int dir_fd;

	if (fs_open_detached("xfs", device, /* readonly= */ false, &dir_fd, err) < 0)
		return -1;
	return fs_close_detached(dir_fd, device, err);
}

/* Without capabilities xfs_db cannot do that itself (BLKFLSBUF). */
static int flush_device(const char *device, struct error **err)
{
	CLEANUP(fd_closep) int fd = open(device, O_RDONLY | O_CLOEXEC);

	if (fd < 0 || STEP("uuid-xfs-flush", fsync(fd)) < 0)
		return err_set_errno(err, ERR_INTERNAL, errno, "flush %s", device);
	return 0;
}

/* An xfs_db that was ended has written the new UUID to the log, and not yet to all superblocks: the kernel
 * refuses that (fs/xfs/xfs_log_recover.c, xlog_header_check_mount()). xfs_db does it again, unless the log
 * has changes that are not replayed. */
static bool is_for_xfs_db(const struct error *not_mounted)
{
	return not_mounted->os_errno == EUCLEAN || not_mounted->os_errno == EINVAL;
}

/* xfs_admin(8) is a shell script over this; both exit with 0 when nothing was changed. */
static int change_xfs(const char *device, const char *uuid, uint64_t deadline_ns, struct error **err)
{
	CLEANUP(free_charp) char *command = x_asprintf("uuid %s", uuid);
	const char *const argv[] = {"xfs_db", "-x", "-c", command, "--", device, NULL};
	CLEANUP(free_charp) char *output = NULL;
	CLEANUP(error_freep) struct error *not_mounted = NULL;
	struct fs_super super = {0};
	int status = 0;

	if (replay_xfs_log(device, &not_mounted) < 0 && !is_for_xfs_db(not_mounted)) {
		*err = TAKE_PTR(not_mounted);
		return -1;
	}
	if (STEP("uuid-xfs", run(argv, device, deadline_ns, &status, &output, err)) < 0 ||
		flush_device(device, err) < 0 || fs_read_super("xfs", device, &super, err) < 0)
		return -1;
	if (status != 0 || !str_eq(super.uuid, uuid))
		return err_set(err, ERR_INTERNAL, "xfs_db ended with status %d and UUID %s on %s: %s%s%s",
			status, super.uuid, device, output, not_mounted ? "; " : "",
			not_mounted ? not_mounted->msg : "");
	return not_mounted ? replay_xfs_log(device, err) : 0;
}

int fs_set_uuid(const char *fstype, const char *device, const char *uuid, int timeout_ms, struct error **err)
{
	uint64_t deadline_ns = clock_ns() + (uint64_t)timeout_ms * NS_PER_MS;

	if (refuse_malformed(uuid, err) < 0)
		return -1;
	if (str_eq(fstype, "ext4"))
		return change_ext4(device, uuid, deadline_ns, err);
	if (str_eq(fstype, "xfs"))
		return change_xfs(device, uuid, deadline_ns, err);
	return err_set(err, ERR_INVALID_ARGUMENT, "file system type \"%s\" is neither ext4 nor xfs", fstype);
}

int fs_finish_uuid(
	const char *fstype, const char *device, const char *uuid, int timeout_ms, struct error **err)
{
	CLEANUP(error_freep) struct error *not_mounted = NULL;

	if (!str_eq(fstype, "xfs") || replay_xfs_log(device, &not_mounted) == 0 ||
		!is_for_xfs_db(not_mounted))
		return 0;
	return fs_set_uuid(fstype, device, uuid, timeout_ms, err);
}
