/* SPDX-License-Identifier: Apache-2.0 */
#include "os/blockdev.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/dm-ioctl.h>
#include <linux/fs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/durable_step.h"
#include "base/mem.h"
#include "base/parse.h"
#include "base/str.h"
#include "os/file.h"

#define SECTOR_BYTES        512
#define CHUNK_BYTES         4096
#define ATTRIBUTE_MAX_BYTES 128
#define WAIT_POLL_MS        5
#define HELD_WAIT_MS        500
/* If udev runs, it opens a device for some milliseconds after it was closed by a writer. */
#define UNUSED_WAIT_MS 1000
#define UNUSED_POLL_MS 10
/* All processes are looked at. */
#define FIND_POLL_MS 50
/* One BLKZEROOUT cannot be interrupted on older kernels; this bounds how long a fatal signal waits. */
#define ZERO_STEP_BYTES (256ULL << 20)
#define TABLE_BYTES     (16U << 10)
#define TABLE_MAX_BYTES (4U << 20)

static char *sysfs_path(dev_t dev, const char *attribute)
{
	return x_asprintf("/sys/dev/block/%u:%u%s", major(dev), minor(dev), attribute);
}

/* @ret: value without its newline, caller frees. Return: 0, or -1 with ERR_NOT_FOUND (no such device, or it
 * lacks the attribute), ERR_INTERNAL. */
static int read_attribute(dev_t dev, const char *attribute, char **ret, struct error **err)
{
	CLEANUP(free_charp) char *path = sysfs_path(dev, attribute);
	CLEANUP(buf_done) struct buf b = BUF_INIT(ATTRIBUTE_MAX_BYTES);

	if (file_read(AT_FDCWD, path, &b, err) < 0)
		return -1;
	*ret = x_strndup(buf_str(&b), strcspn(buf_str(&b), "\n"));
	return 0;
}

/* From sysfs, so that the device is not opened: an open would be counted as use (dm_open_count()). */
static int read_size(dev_t dev, uint64_t *ret_bytes, struct error **err)
{
	CLEANUP(free_charp) char *text = NULL;
	uint64_t sectors = 0;

	if (read_attribute(dev, "/size", &text, err) < 0 || parse_u64(text, &sectors, err) < 0)
		return err_wrap(err, "size of block device %u:%u", major(dev), minor(dev));
	*ret_bytes = sectors * SECTOR_BYTES;
	return 0;
}

/* Without this attribute there is no DAX; if it cannot be read, that is unknown. */
static int read_dax(dev_t dev, bool *ret, struct error **err)
{
	CLEANUP(free_charp) char *text = NULL;

	if (read_attribute(dev, "/queue/dax", &text, err) < 0) {
		if ((*err)->code != ERR_NOT_FOUND)
			return err_wrap(err, "DAX of block device %u:%u", major(dev), minor(dev));
		error_clear(err);
	}
	*ret = str_eq(text, "1");
	return 0;
}

int blockdev_stat(const char *path, struct blockdev_info *ret, struct error **err)
{
	struct blockdev_info info = {0};
	struct stat st;

	if (stat(path, &st) < 0)
		return err_set_errno(err, errno == ENOENT ? ERR_NOT_FOUND : ERR_INTERNAL, errno, "%s", path);
	if (!S_ISBLK(st.st_mode))
		return err_set(err, ERR_PRECONDITION, "%s is not a block device", path);
	info.dev = st.st_rdev;
	if (read_size(info.dev, &info.size_bytes, err) < 0)
		return err_wrap(err, "%s", path);
	if (read_dax(info.dev, &info.has_dax, err) < 0)
		return err_wrap(err, "%s", path);
	*ret = info;
	return 0;
}

int blockdev_stat_if_there(const char *path, struct blockdev_info *ret, bool *ret_there, struct error **err)
{
	*ret_there = blockdev_stat(path, ret, err) == 0;
	if (*ret_there)
		return 0;
	if ((*err)->code != ERR_NOT_FOUND && (*err)->code != ERR_PRECONDITION)
		return -1;
	error_clear(err);
	return 0;
}

/* Return: 0, or the errno that says why @path cannot be used yet. */
static int try_open(const char *path)
{
	struct stat st;

	if (stat(path, &st) < 0)
		return errno;
	if (!S_ISBLK(st.st_mode))
		return ENOTBLK;

	CLEANUP(fd_closep) int fd = open(path, O_RDONLY | O_CLOEXEC);
	return fd < 0 ? errno : 0;
}

int blockdev_wait(const char *path, int timeout_ms, struct error **err)
{
	uint64_t deadline_ns = clock_ns() + (uint64_t)timeout_ms * NS_PER_MS;

	for (;;) {
		int why = try_open(path);
		if (why == 0)
			return 0;

		int wait_ms = clock_left_ms(deadline_ns, WAIT_POLL_MS);
		if (wait_ms == 0)
			return err_set_errno(
				err, ERR_DEADLINE, why, "wait %d ms for block device %s", timeout_ms, path);
		nanosleep(&(struct timespec){.tv_nsec = wait_ms * (long)NS_PER_MS}, NULL);
	}
}

static enum err_code open_error_code(int os_errno)
{
	if (os_errno == EBUSY)
		return ERR_PRECONDITION;
	return os_errno == ENOENT ? ERR_NOT_FOUND : ERR_INTERNAL;
}

int blockdev_open_unless_held(const char *path, int flags, int wait_ms)
{
	uint64_t deadline_ns = clock_ns() + (uint64_t)wait_ms * NS_PER_MS;

	for (;;) {
		int fd = open(path, flags | O_EXCL | O_CLOEXEC);

		if (fd >= 0 || errno != EBUSY || clock_ns() >= deadline_ns)
			return fd;
		nanosleep(&(struct timespec){.tv_nsec = WAIT_POLL_MS * (long)NS_PER_MS}, NULL);
	}
}

int blockdev_open_exclusive(const char *path, int *ret_fd, struct error **err)
{
	CLEANUP(fd_closep) int fd = blockdev_open_unless_held(path, O_RDWR, HELD_WAIT_MS);
	struct stat st;

	if (fd < 0)
		return err_set_errno(err, open_error_code(errno), errno, "open %s exclusively", path);
	if (fstat(fd, &st) < 0)
		return err_set_errno(err, ERR_INTERNAL, errno, "stat %s", path);
	if (!S_ISBLK(st.st_mode))
		return err_set(err, ERR_INTERNAL, "%s is not a block device", path);
	*ret_fd = TAKE_FD(fd);
	return 0;
}

int blockdev_refuse_held(const char *path, int wait_ms, struct error **err)
{
	CLEANUP(fd_closep) int fd = blockdev_open_unless_held(path, O_RDONLY, wait_ms);

	if (fd >= 0)
		return 0;
	if (errno != EBUSY)
		return err_set_errno(err, ERR_INTERNAL, errno, "open %s exclusively", path);
	return err_set_errno(err, ERR_UNAVAILABLE, EBUSY, "%s is mounted, or held by another program", path);
}

static bool is_zero(const uint8_t *p, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (p[i] != 0)
			return false;
	}
	return true;
}

int blockdev_starts_zero(const char *path, size_t n_bytes, bool *ret, struct error **err)
{
	CLEANUP(fd_closep) int fd = open(path, O_RDONLY | O_CLOEXEC);
	uint8_t chunk[CHUNK_BYTES];
	bool zero = true;

	if (fd < 0)
		return err_set_errno(err, ERR_INTERNAL, errno, "open %s", path);
	for (size_t at = 0; zero && at < n_bytes;) {
		size_t wanted = n_bytes - at < sizeof(chunk) ? n_bytes - at : sizeof(chunk);
		ssize_t n = pread(fd, chunk, wanted, (off_t)at);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_set_errno(err, ERR_INTERNAL, errno, "read %s", path);
		if (n == 0)
			break;
		zero = is_zero(chunk, (size_t)n);
		at += (size_t)n;
	}
	*ret = zero;
	return 0;
}

/* Fails after a write of zeros has failed because of @why. Zeros are written once more in smaller pieces, up
 * to the first one that fails. */
static int refuse_zeros(int fd, uint64_t offset, uint64_t length, int why, struct error **err)
{
	uint64_t end = offset + length;
	bool is_media = why == EIO || why == ENODATA;

	for (uint64_t at = offset; is_media && at < end; at += CHUNK_BYTES) {
		uint64_t range[2] = {at, end - at < CHUNK_BYTES ? end - at : CHUNK_BYTES};

		if (STEP("zero-block", ioctl(fd, BLKZEROOUT, range)) == 0)
			continue;
		return err_set_errno(
			err, ERR_EXHAUSTED, why, "write zeros at byte %ju of the device", (uintmax_t)at);
	}
	return err_set_errno(
		err, ERR_INTERNAL, why, "write %ju zero bytes at %ju", (uintmax_t)length, (uintmax_t)offset);
}

int blockdev_zero(int fd, uint64_t offset, uint64_t length, struct error **err)
{
	while (length > 0) {
		uint64_t step = length < ZERO_STEP_BYTES ? length : ZERO_STEP_BYTES;
		uint64_t range[2] = {offset, step};
		if (STEP("zero", ioctl(fd, BLKZEROOUT, range)) < 0)
			return refuse_zeros(fd, offset, step, errno, err);
		offset += step;
		length -= step;
	}
	if (STEP("zero-sync", fdatasync(fd)) < 0)
		return err_set_errno(err, ERR_INTERNAL, errno, "flush zeros");
	return 0;
}

int blockdev_path(dev_t dev, char **ret, struct error **err)
{
	CLEANUP(free_charp) char *link = sysfs_path(dev, "");
	char target[PATH_MAX];
	ssize_t n = readlink(link, target, sizeof(target) - 1);

	if (n < 0)
		return err_set_errno(
			err, errno == ENOENT ? ERR_NOT_FOUND : ERR_INTERNAL, errno, "readlink %s", link);
	target[n] = '\0';
	const char *slash = strrchr(target, '/');
	*ret = x_asprintf("/dev/%s", slash ? slash + 1 : target);
	return 0;
}

/* drivers/md/dm-sysfs.c gives each mapped device a folder "dm". */
static int is_mapped(dev_t dev, bool *ret, struct error **err)
{
	CLEANUP(free_charp) char *device = sysfs_path(dev, "");
	CLEANUP(free_charp) char *folder = sysfs_path(dev, "/dm");

	if (access(device, F_OK) < 0)
		return err_set_errno(err, ERR_INTERNAL, errno, "%s", device);
	*ret = access(folder, F_OK) == 0;
	if (!*ret && errno != ENOENT)
		return err_set_errno(err, ERR_INTERNAL, errno, "%s", folder);
	return 0;
}

static int open_control(int *ret_fd, struct error **err)
{
	int fd = open("/dev/" DM_DIR "/" DM_CONTROL_NODE, O_RDWR | O_CLOEXEC);

	if (fd < 0)
		return err_set_errno(err, ERR_INTERNAL, errno, "open /dev/" DM_DIR "/" DM_CONTROL_NODE);
	*ret_fd = fd;
	return 0;
}

/* @ret_mapped: false: not device-mapper's, or gone; then @ret is as it was */
static int read_dm_status(dev_t dev, struct dm_ioctl *ret, bool *ret_mapped, struct error **err)
{
	struct dm_ioctl io = {
		.version = {DM_VERSION_MAJOR, 0, 0},
		.data_size = sizeof(io),
		.data_start = sizeof(io),
		.dev = dev,
	};

	if (is_mapped(dev, ret_mapped, err) < 0)
		return -1;
	if (!*ret_mapped)
		return 0;

	CLEANUP(fd_closep) int fd = -1;
	if (open_control(&fd, err) < 0)
		return -1;
	if (ioctl(fd, DM_DEV_STATUS, &io) == 0) {
		*ret = io;
		return 0;
	}
	if (errno != ENXIO)
		return err_set_errno(
			err, ERR_INTERNAL, errno, "status of mapped device %u:%u", major(dev), minor(dev));
	/* removed since */
	*ret_mapped = false;
	return 0;
}

int dm_wait_unused(const char *path, struct error **err)
{
	uint64_t deadline_ns = clock_ns() + UNUSED_WAIT_MS * NS_PER_MS;

	for (;;) {
		struct dm_ioctl io = {0};
		bool mapped = false;
		struct stat st;

		if (stat(path, &st) < 0)
			return errno == ENOENT ? 0 : err_set_errno(err, ERR_INTERNAL, errno, "%s", path);
		if (read_dm_status(st.st_rdev, &io, &mapped, err) < 0)
			return err_wrap(err, "%s", path);
		if (io.open_count <= 0)
			return 0;
		if (clock_ns() >= deadline_ns)
			return err_set(
				err, ERR_PRECONDITION, "%s is in use: open %d times", path, io.open_count);
		nanosleep(&(struct timespec){.tv_nsec = UNUSED_POLL_MS * (long)NS_PER_MS}, NULL);
	}
}

int dm_require_uuid(const char *path, const char *uuid, struct error **err)
{
	struct dm_ioctl io = {0};
	bool mapped = false;
	struct stat st;

	if (stat(path, &st) < 0)
		return errno == ENOENT ? 0 : err_set_errno(err, ERR_INTERNAL, errno, "%s", path);
	if (read_dm_status(st.st_rdev, &io, &mapped, err) < 0)
		return err_wrap(err, "%s", path);
	if (!mapped || strncmp(io.uuid, uuid, sizeof(io.uuid)) != 0)
		return err_set(err, ERR_PRECONDITION, "%s is another device now", path);
	return 0;
}

int dm_refuse_suspended(const char *path, struct error **err)
{
	struct dm_ioctl io = {0};
	bool mapped = false;
	struct stat st;

	if (stat(path, &st) < 0 || !S_ISBLK(st.st_mode))
		return 0;
	if (read_dm_status(st.st_rdev, &io, &mapped, err) < 0)
		return err_wrap(err, "%s", path);
	if (io.flags & DM_SUSPEND_FLAG)
		return err_set(err, ERR_UNAVAILABLE,
			"%s is suspended in device-mapper: it is being changed, or a change was cut off (lvm lvchange --refresh)",
			path);
	return 0;
}

static int refuse_unmapped(dev_t dev, struct error **err)
{
	return err_set(err, ERR_PRECONDITION, "device %u:%u is not device-mapper's", major(dev), minor(dev));
}

/* @flags: DM_SUSPEND_FLAG with others: suspend; 0: resume */
static int change_suspension(dev_t dev, uint32_t flags, struct error **err)
{
	struct dm_ioctl io = {.version = {DM_VERSION_MAJOR, 0, 0},
		.data_size = sizeof(io),
		.data_start = sizeof(io),
		.flags = flags,
		.dev = dev};
	CLEANUP(fd_closep) int fd = -1;

	if (open_control(&fd, err) < 0)
		return -1;
	if (STEP("dm-suspend", ioctl(fd, DM_DEV_SUSPEND, &io)) < 0)
		return err_set_errno(err, ERR_INTERNAL, errno, "%s mapped device %u:%u",
			flags ? "suspend" : "resume", major(dev), minor(dev));
	return 0;
}

int dm_suspend(dev_t dev, struct error **err)
{
	struct dm_ioctl io = {0};
	bool mapped = false;

	if (read_dm_status(dev, &io, &mapped, err) < 0)
		return -1;
	if (!mapped)
		return refuse_unmapped(dev, err);
	if (io.flags & DM_SUSPEND_FLAG)
		return err_set(err, ERR_ABORTED,
			"the device is suspended by another program, which has to resume it (dmsetup resume does)");
	return change_suspension(dev, DM_SUSPEND_FLAG | DM_SKIP_LOCKFS_FLAG, err);
}

int dm_resume(dev_t dev, bool *ret_was_suspended, struct error **err)
{
	struct dm_ioctl io = {0};
	bool mapped = false;

	if (read_dm_status(dev, &io, &mapped, err) < 0)
		return -1;
	*ret_was_suspended = mapped && io.flags & DM_SUSPEND_FLAG;
	return *ret_was_suspended ? change_suspension(dev, 0, err) : 0;
}

/* Adds the devices below the device of folder @device in sysfs to @names; nothing if there are none. */
static int add_below(const char *device, char ***names, struct error **err)
{
	CLEANUP(free_charp) char *path = x_asprintf("%s/slaves", device);
	CLEANUP(strv_freep) char **below = NULL;
	CLEANUP(fd_closep) int fd = -1;

	if (dir_open(path, /* create= */ false, 0, &fd, err) < 0 || dir_list(fd, &below, err) < 0)
		return -1;
	for (char **name = below; *name; name++) {
		if (!strv_contains(*names, *name))
			strv_add(names, *name);
	}
	return 0;
}

int dm_require_on(const char *path, char *const *bases, struct error **err)
{
	CLEANUP(strv_freep) char **names = NULL;
	CLEANUP(free_charp) char *top = NULL;
	bool mapped = false;
	struct stat st;

	if (stat(path, &st) < 0 || !S_ISBLK(st.st_mode))
		return 0;
	if (is_mapped(st.st_rdev, &mapped, err) < 0)
		return -1;
	if (!mapped)
		return 0;
	top = sysfs_path(st.st_rdev, "");
	if (add_below(top, &names, err) < 0)
		return -1;
	for (size_t i = 0; names && names[i]; i++) {
		CLEANUP(free_charp) char *node = x_asprintf("/dev/%s", names[i]);
		CLEANUP(free_charp) char *folder = x_asprintf("/sys/block/%s", names[i]);

		if (strv_contains(bases, node))
			continue;
		if (!str_starts(names[i], "dm-"))
			return err_set(err, ERR_UNAVAILABLE, "%s lies on %s", path, node);
		if (add_below(folder, &names, err) < 0)
			return -1;
	}
	return 0;
}

/* How many devices lie on that with the folder @folder in sysfs. */
static int count_holders(const char *folder, size_t *ret, struct error **err)
{
	CLEANUP(free_charp) char *path = x_asprintf("%s/holders", folder);
	CLEANUP(fd_closep) int fd = -1;
	CLEANUP(strv_freep) char **holders = NULL;

	if (dir_open(path, /* create= */ false, 0, &fd, err) < 0 || dir_list(fd, &holders, err) < 0)
		return -1;
	*ret = 0;
	while (holders[*ret])
		++*ret;
	return 0;
}

int blockdev_count_users(const char *path, size_t *ret, struct error **err)
{
	struct stat st;

	if (stat(path, &st) < 0)
		return err_set_errno(err, ERR_INTERNAL, errno, "stat %s", path);
	*ret = 0;
	if (!S_ISBLK(st.st_mode))
		return 0;
	CLEANUP(free_charp) char *folder = sysfs_path(st.st_rdev, "");
	return count_holders(folder, ret, err);
}

int dm_refuse_shared(dev_t dev, struct error **err)
{
	CLEANUP(free_charp) char *path = sysfs_path(dev, "/slaves");
	CLEANUP(fd_closep) int fd = -1;
	CLEANUP(strv_freep) char **below = NULL;

	if (dir_open(path, /* create= */ false, 0, &fd, err) < 0) {
		if ((*err)->code != ERR_NOT_FOUND)
			return -1;
		error_clear(err);
		return 0;
	}
	if (dir_list(fd, &below, err) < 0)
		return -1;
	for (size_t i = 0; below[i]; i++) {
		CLEANUP(free_charp) char *folder = x_asprintf("/sys/block/%s", below[i]);
		size_t n_holders = 0;

		if (!str_starts(below[i], "dm-"))
			continue;
		if (count_holders(folder, &n_holders, err) < 0)
			return -1;
		if (n_holders > 1)
			return err_set(err, ERR_PRECONDITION,
				"is in use: it has an LVM snapshot, which would be removed "
				"with it (lvs -o lv_name,origin shows which; remove it first)");
	}
	return 0;
}

static void io_freep(struct dm_ioctl **io)
{
	free(*io);
}

/* @ret: the answer, with the table behind it, free(); NULL: removed since. */
static int ask_table(int fd, dev_t dev, size_t bytes, struct dm_ioctl **ret, struct error **err)
{
	CLEANUP(io_freep) struct dm_ioctl *io = x_calloc(1, bytes);

	*io = (struct dm_ioctl){.version = {DM_VERSION_MAJOR, 0, 0},
		.data_size = (uint32_t)bytes,
		.data_start = sizeof(*io),
		.flags = DM_STATUS_TABLE_FLAG,
		.dev = dev};
	*ret = NULL;
	if (ioctl(fd, DM_TABLE_STATUS, io) == 0)
		*ret = TAKE_PTR(io);
	else if (errno != ENXIO)
		return err_set_errno(
			err, ERR_INTERNAL, errno, "table of mapped device %u:%u", major(dev), minor(dev));
	return 0;
}

static int read_dm_table(dev_t dev, struct dm_ioctl **ret, struct error **err)
{
	CLEANUP(fd_closep) int fd = -1;

	if (open_control(&fd, err) < 0)
		return -1;
	for (size_t bytes = TABLE_BYTES; bytes <= TABLE_MAX_BYTES; bytes *= 4) {
		CLEANUP(io_freep) struct dm_ioctl *io = NULL;

		if (ask_table(fd, dev, bytes, &io, err) < 0)
			return -1;
		if (io && (io->flags & DM_BUFFER_FULL_FLAG))
			continue;
		*ret = TAKE_PTR(io);
		return 0;
	}
	return err_set(err, ERR_EXHAUSTED, "the table of mapped device %u:%u is larger than %u bytes",
		major(dev), minor(dev), TABLE_MAX_BYTES);
}

/* @text: "253:0 2048": the device below, and the sector at which the part begins there */
static int parse_linear(const char *text, struct dm_segment *ret, struct error **err)
{
	size_t major_len = strcspn(text, ":");
	size_t minor_len = text[major_len] ? strcspn(text + major_len + 1, " ") : 0;
	const char *start = text + major_len + minor_len + (minor_len > 0);
	CLEANUP(free_charp) char *major_text = x_strndup(text, major_len);
	CLEANUP(free_charp) char *minor_text = x_strndup(start - minor_len, minor_len);
	uint32_t below_major;
	uint32_t below_minor;
	uint64_t sectors;

	if (*start != ' ')
		return err_set(err, ERR_INTERNAL, "linear target \"%s\" is not of the known form", text);
	if (parse_u32(major_text, &below_major, err) < 0 || parse_u32(minor_text, &below_minor, err) < 0 ||
		parse_u64(start + 1, &sectors, err) < 0)
		return err_wrap(err, "linear target \"%s\"", text);
	ret->dev = makedev(below_major, below_minor);
	ret->start_bytes = sectors * SECTOR_BYTES;
	return 0;
}

/* The kernel writes each target's distance from the start of the data to the next one. */
static int parse_table(
	const struct dm_ioctl *io, struct dm_segment *segments, size_t *ret_n, struct error **err)
{
	const char *data = (const char *)io + io->data_start;
	size_t at = 0;

	for (uint32_t i = 0; i < io->target_count; i++) {
		struct dm_target_spec spec;
		struct dm_segment *s = &segments[*ret_n];

		memcpy(&spec, data + at, sizeof(spec));
		*s = (struct dm_segment){.length_bytes = spec.length * SECTOR_BYTES,
			.offset_bytes = spec.sector_start * SECTOR_BYTES};
		if (strncmp(spec.target_type, "linear", sizeof(spec.target_type)) == 0) {
			if (parse_linear(data + at + sizeof(spec), s, err) < 0)
				return -1;
			++*ret_n;
		}
		at = spec.next;
	}
	return 0;
}

int dm_list_segments(dev_t dev, struct dm_segment **ret, size_t *ret_n, struct error **err)
{
	CLEANUP(io_freep) struct dm_ioctl *io = NULL;
	CLEANUP(free_charp) char *device = sysfs_path(dev, "");
	bool mapped = false;
	size_t n = 0;

	/* removed since the caller has seen its node */
	bool gone = access(device, F_OK) < 0 && errno == ENOENT;
	if (!gone && is_mapped(dev, &mapped, err) < 0)
		return -1;
	if (mapped && read_dm_table(dev, &io, err) < 0)
		return -1;
	struct dm_segment *segments = x_calloc(io ? io->target_count : 0, sizeof(*segments));
	if (io && parse_table(io, segments, &n, err) < 0) {
		free(segments);
		err_recode(err, ERR_INTERNAL);
		return err_wrap(err, "mapped device %u:%u", major(dev), minor(dev));
	}
	*ret = segments;
	*ret_n = n;
	return 0;
}

/* A process may end while it is looked at, and one of another user may not be shown. */
static bool has_open(int proc_fd, const char *pid, dev_t dev)
{
	CLEANUP(free_charp) char *name = x_asprintf("%s/fd", pid);
	CLEANUP(dir_closep) DIR *dir = NULL;
	int fd = openat(proc_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	const struct dirent *entry;
	struct stat st;

	if (fd >= 0)
		dir = fdopendir(fd);
	if (fd >= 0 && !dir)
		close(fd);
	while (dir && (entry = readdir(dir))) {
		if (fstatat(fd, entry->d_name, &st, AT_NO_AUTOMOUNT) == 0 && S_ISBLK(st.st_mode) &&
			st.st_rdev == dev)
			return true;
	}
	return false;
}

static int find_user(int proc_fd, dev_t dev, pid_t *ret_pid, struct error **err)
{
	CLEANUP(strv_freep) char **names = NULL;

	if (dir_list(proc_fd, &names, err) < 0)
		return -1;
	*ret_pid = 0;
	for (size_t i = 0; names[i] && *ret_pid == 0; i++) {
		CLEANUP(error_freep) struct error *ignored = NULL;
		uint64_t pid;

		if (parse_number(names[i], &pid, &ignored) == 0 && (pid_t)pid != getpid() &&
			has_open(proc_fd, names[i], dev))
			*ret_pid = (pid_t)pid;
	}
	return 0;
}

int blockdev_find_user(dev_t dev, pid_t *ret_pid, struct error **err)
{
	CLEANUP(fd_closep) int fd = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	uint64_t deadline_ns = clock_ns() + UNUSED_WAIT_MS * NS_PER_MS;

	if (fd < 0)
		return err_set_errno(err, ERR_INTERNAL, errno, "open /proc");
	for (;;) {
		if (find_user(fd, dev, ret_pid, err) < 0)
			return -1;
		if (*ret_pid == 0 || clock_ns() >= deadline_ns)
			return 0;
		nanosleep(&(struct timespec){.tv_nsec = FIND_POLL_MS * (long)NS_PER_MS}, NULL);
	}
}
