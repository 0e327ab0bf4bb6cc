/* SPDX-License-Identifier: Apache-2.0 */
#include "os/loopdev.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/loop.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "base/clock.h"
#include "base/durable_step.h"
#include "base/mem.h"
#include "base/parse.h"
#include "base/str.h"
#include "os/file.h"

#define ATTACH_TRIES         16
#define BACKING_MAX_BYTES    8192
#define PARTITIONS_MAX_BYTES (4U << 20)
#define LOOP_NODE_MODE       0660 /* as devtmpfs */
#define DETACH_WAIT_MS       2000
#define DETACH_POLL_MS       10

/* Others detach theirs at any time. */
static bool is_gone(int os_errno)
{
	return os_errno == ENOENT || os_errno == ENXIO || os_errno == ENODEV;
}

enum loop_state {
	LOOP_FREE,
	LOOP_ATTACHED,
	LOOP_FAILING /* it is over a file whose file system answers nothing any more */
};

/* @ret: path of the file under the loop device; NULL: it has none, or was detached. Caller frees. */
static int read_backing(const char *name, char **ret, struct error **err)
{
	CLEANUP(free_charp) char *file = x_asprintf("/sys/block/%s/loop/backing_file", name);
	CLEANUP(buf_done) struct buf text = BUF_INIT(BACKING_MAX_BYTES);

	*ret = NULL;
	if (file_read(AT_FDCWD, file, &text, err) < 0) {
		if (!is_gone((*err)->os_errno))
			return -1;
		error_clear(err);
		return 0;
	}
	*ret = x_strndup(buf_str(&text), strcspn(buf_str(&text), "\n"));
	return 0;
}

/* Whether the file under the loop device cannot be looked at either, where it was when the device was
 * attached.
 */
static bool has_lost_file(const char *name)
{
	CLEANUP(error_freep) struct error *ignored = NULL;
	CLEANUP(free_charp) char *backing = NULL;
	struct stat st;

	return read_backing(name, &backing, &ignored) == 0 && backing && stat(backing, &st) < 0;
}

/* @ret_info: of one that is attached */
static int read_status(
	const char *name, struct loop_info64 *ret_info, enum loop_state *ret, struct error **err)
{
	CLEANUP(free_charp) char *path = x_asprintf("/dev/%s", name);
	CLEANUP(fd_closep) int fd = open(path, O_RDONLY | O_CLOEXEC);

	*ret = LOOP_ATTACHED;
	if (fd >= 0 && ioctl(fd, LOOP_GET_STATUS64, ret_info) == 0)
		return 0;

	int why = errno;
	*ret = fd >= 0 && why == EIO && has_lost_file(name) ? LOOP_FAILING : LOOP_FREE;
	if (*ret == LOOP_FREE && !is_gone(why))
		return err_set_errno(err, ERR_INTERNAL, why, "status of %s", path);
	return 0;
}

/* lo_device and lo_inode are what stat(2) says of the backing file (drivers/block/loop.c, loop_get_status()).
 */
static bool is_over(const struct loop_info64 *info, const struct stat *file)
{
	return info->lo_device == file->st_dev && info->lo_inode == file->st_ino;
}

/* Adds the loop device that a line of /proc/partitions is about, if it is about one: "7  0  1024 loop0". */
static void add_loop(const char *line, size_t length, char ***names)
{
	CLEANUP(free_charp) char *text = x_strndup(line, length);
	const char *name = strrchr(text, ' ');
	size_t prefix = strlen("loop");

	if (!name || !str_starts(++name, "loop"))
		return;
	/* "loop0p1" is a partition */
	if (name[prefix] && !name[prefix + strspn(name + prefix, "0123456789")])
		strv_add(names, name);
}

/*
 * *ret: the loop devices that may be over a file, ends with NULL. The kernel leaves out devices without a
 * capacity (block/genhd.c, show_partition()): loop devices stay after their use, and each would have to be
 * examined.
 */
static int list_names(char ***ret, struct error **err)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT(PARTITIONS_MAX_BYTES);
	CLEANUP(strv_freep) char **names = x_calloc(1, sizeof(*names));

	if (file_read(AT_FDCWD, "/proc/partitions", &text, err) < 0)
		return -1;
	for (const char *line = buf_str(&text); *line;) {
		size_t length = strcspn(line, "\n");
		add_loop(line, length, &names);
		line += length + (line[length] == '\n');
	}
	*ret = TAKE_PTR(names);
	return 0;
}

/* A device that could not be looked at may be the one: then nothing is known. One over a file system that
 * fails is not: that of the file has just answered. */
static int find(int file_fd, char **ret_path, struct loop_info64 *ret_info, struct error **err)
{
	CLEANUP(strv_freep) char **names = NULL;
	struct stat file;
	bool over = false;

	if (fstat(file_fd, &file) < 0)
		return err_set_errno(err, ERR_INTERNAL, errno, "stat the file of a loop device");
	if (list_names(&names, err) < 0)
		return -1;
	*ret_path = NULL;
	for (char **name = names; *name && !over; name++) {
		enum loop_state state;
		if (read_status(*name, ret_info, &state, err) < 0)
			return -1;
		over = state == LOOP_ATTACHED && is_over(ret_info, &file);
		if (over)
			*ret_path = x_asprintf("/dev/%s", *name);
	}
	return 0;
}

int loop_find(int file_fd, char **ret_path, struct error **err)
{
	struct loop_info64 info;

	return find(file_fd, ret_path, &info, err);
}

int loop_find_each(const struct stat *files, size_t n, char **ret_paths, struct error **err)
{
	CLEANUP(strv_freep) char **names = NULL;

	if (list_names(&names, err) < 0)
		return -1;
	for (char **name = names; *name; name++) {
		struct loop_info64 info;
		enum loop_state state;
		if (read_status(*name, &info, &state, err) < 0)
			return -1;
		for (size_t i = 0; state == LOOP_ATTACHED && i < n; i++) {
			if (!ret_paths[i] && is_over(&info, &files[i]))
				ret_paths[i] = x_asprintf("/dev/%s", *name);
		}
	}
	return 0;
}

static int is_in(const char *name, const struct loop_place *place, bool *ret, struct error **err)
{
	CLEANUP(free_charp) char *backing = NULL;
	struct loop_info64 info;
	enum loop_state state;

	*ret = false;
	if (read_status(name, &info, &state, err) < 0)
		return -1;
	if (state == LOOP_FREE || (state == LOOP_ATTACHED && info.lo_offset != place->offset_bytes))
		return 0;
	if (state == LOOP_ATTACHED && place->fs_dev != 0) {
		*ret = info.lo_device == place->fs_dev;
		return 0;
	}
	if (read_backing(name, &backing, err) < 0)
		return -1;
	*ret = str_eq(backing, place->path);
	return 0;
}

int loop_find_in(const struct loop_place *place, char ***ret_paths, struct error **err)
{
	CLEANUP(strv_freep) char **names = NULL;
	CLEANUP(strv_freep) char **found = NULL;

	*ret_paths = NULL;
	if (list_names(&names, err) < 0)
		return -1;
	for (char **name = names; *name; name++) {
		CLEANUP(free_charp) char *path = x_asprintf("/dev/%s", *name);
		bool in;
		if (is_in(*name, place, &in, err) < 0)
			return -1;
		if (in)
			strv_add(&found, path);
	}
	*ret_paths = TAKE_PTR(found);
	return 0;
}

/* "7:3" of sysfs. Return: false if that is not known. */
static bool read_number(int loop, dev_t *ret)
{
	CLEANUP(error_freep) struct error *ignored = NULL;
	CLEANUP(free_charp) char *file = x_asprintf("/sys/block/loop%d/dev", loop);
	CLEANUP(buf_done) struct buf text = BUF_INIT(BACKING_MAX_BYTES);

	if (file_read(AT_FDCWD, file, &text, &ignored) < 0)
		return false;

	const char *s = buf_str(&text);
	size_t n = strcspn(s, ":");
	const char *rest = s[n] ? s + n + 1 : "";
	uint32_t major = parse_u32_or((struct span){(const uint8_t *)s, n}, 0);
	uint32_t minor = parse_u32_or((struct span){(const uint8_t *)rest, strcspn(rest, "\n")}, UINT32_MAX);
	*ret = makedev(major, minor);
	return major != 0 && minor != UINT32_MAX;
}

/*
 * A new loop device appears in devtmpfs. If /dev is not a devtmpfs, as on a node that runs in a container, it
 * has only the nodes from when it was made.
 */
static int open_new(int loop, const char *path)
{
	int fd = open(path, O_RDWR | O_CLOEXEC);
	dev_t number;

	if (fd >= 0 || errno != ENOENT)
		return fd;
	if (!read_number(loop, &number) ||
		(mknod(path, S_IFBLK | LOOP_NODE_MODE, number) < 0 && errno != EEXIST)) {
		errno = ENOENT;
		return -1;
	}
	return open(path, O_RDWR | O_CLOEXEC);
}

/* Return: 0, or the errno; EBUSY means that another process took that loop in between. */
static int try_attach(int control_fd, const struct loop_config *config, int *ret_fd, char **ret_path)
{
	int number = ioctl(control_fd, LOOP_CTL_GET_FREE);

	if (number < 0)
		return errno;

	CLEANUP(free_charp) char *path = x_asprintf("/dev/loop%d", number);
	CLEANUP(fd_closep) int fd = open_new(number, path);
	if (fd < 0 || STEP("loop-attach", ioctl(fd, LOOP_CONFIGURE, config)) < 0)
		return errno;
	*ret_fd = TAKE_FD(fd);
	*ret_path = TAKE_PTR(path);
	return 0;
}

static int attach_new(const struct loop_config *config, int *ret_fd, char **ret_path, struct error **err)
{
	CLEANUP(fd_closep) int control_fd = open("/dev/loop-control", O_RDWR | O_CLOEXEC);
	int why = EBUSY;

	if (control_fd < 0)
		return err_set_errno(err, ERR_UNAVAILABLE, errno, "open /dev/loop-control");
	for (int i = 0; i < ATTACH_TRIES && why == EBUSY; i++)
		why = try_attach(control_fd, config, ret_fd, ret_path);
	if (why != 0)
		return err_set_errno(err, ERR_UNAVAILABLE, why, "attach a loop device");
	return 0;
}

int loop_attach(int file_fd, char **ret_path, struct error **err)
{
	const struct loop_config config = {.fd = (uint32_t)file_fd};
	CLEANUP(free_charp) char *path = NULL;
	CLEANUP(fd_closep) int fd = -1;
	struct loop_info64 info;

	if (find(file_fd, &path, &info, err) < 0)
		return -1;
	if (!path)
		return attach_new(&config, &fd, ret_path, err);

	/* It would vanish under its new user as soon as the last old one closes it. */
	if (info.lo_flags & LO_FLAGS_AUTOCLEAR)
		return err_set(err, ERR_UNAVAILABLE, "%s is still being detached", path);
	*ret_path = TAKE_PTR(path);
	return 0;
}

int loop_attach_part(
	int file_fd, uint64_t offset_bytes, bool readonly, int *ret_fd, char **ret_path, struct error **err)
{
	const struct loop_config config = {.fd = (uint32_t)file_fd,
		.info = {.lo_offset = offset_bytes,
			.lo_flags = LO_FLAGS_AUTOCLEAR | (readonly ? LO_FLAGS_READ_ONLY : 0)}};

	return attach_new(&config, ret_fd, ret_path, err);
}

static int clear(const char *path, struct error **err)
{
	CLEANUP(fd_closep) int fd = open(path, O_RDONLY | O_EXCL | O_CLOEXEC);

	if (fd < 0)
		return err_set_errno(
			err, errno == EBUSY ? ERR_PRECONDITION : ERR_INTERNAL, errno, "open %s", path);
	if (STEP("loop-detach", ioctl(fd, LOOP_CLR_FD, 0)) < 0 && errno != ENXIO)
		return err_set_errno(err, ERR_INTERNAL, errno, "detach %s", path);
	return 0;
}

/* Lists those of the devices to be detached that are still attached. */
typedef int (*find_left_fn)(const void *where, char ***ret_paths, struct error **err);

/* LOOP_CLR_FD succeeds also when others have it open: then the last close detaches. */
static int await_detached(find_left_fn find_left, const void *where, struct error **err)
{
	uint64_t deadline_ns = clock_ns() + DETACH_WAIT_MS * NS_PER_MS;

	for (;;) {
		CLEANUP(strv_freep) char **left = NULL;
		if (find_left(where, &left, err) < 0)
			return -1;
		if (!left)
			return 0;
		if (clock_left_ms(deadline_ns, DETACH_POLL_MS) == 0)
			return err_set(err, ERR_PRECONDITION, "%s is open elsewhere", left[0]);
		nanosleep(&(struct timespec){.tv_nsec = DETACH_POLL_MS * (long)NS_PER_MS}, NULL);
	}
}

static int detach_all(find_left_fn find_all, const void *where, struct error **err)
{
	CLEANUP(strv_freep) char **paths = NULL;

	if (find_all(where, &paths, err) < 0)
		return -1;
	if (!paths)
		return 0;
	for (char **path = paths; *path; path++) {
		if (clear(*path, err) < 0)
			return -1;
	}
	return await_detached(find_all, where, err);
}

/* @where: descriptor of the file */
static int find_over(const void *where, char ***ret_paths, struct error **err)
{
	CLEANUP(free_charp) char *path = NULL;

	*ret_paths = NULL;
	if (loop_find(*(const int *)where, &path, err) < 0)
		return -1;
	if (path)
		strv_add(ret_paths, path);
	return 0;
}

static int find_in(const void *where, char ***ret_paths, struct error **err)
{
	return loop_find_in(where, ret_paths, err);
}

int loop_detach(int file_fd, struct error **err)
{
	return detach_all(find_over, &file_fd, err);
}

int loop_detach_in(const struct loop_place *place, struct error **err)
{
	return detach_all(find_in, place, err);
}

int loop_update_size(int file_fd, struct error **err)
{
	CLEANUP(free_charp) char *path = NULL;

	if (loop_find(file_fd, &path, err) < 0)
		return -1;
	if (!path)
		return 0;
	CLEANUP(fd_closep) int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || STEP("loop-resize", ioctl(fd, LOOP_SET_CAPACITY, 0)) < 0)
		return err_set_errno(err, ERR_INTERNAL, errno, "resize %s", path);
	return 0;
}

static int list_one(const char *name, struct loop_list *l, struct error **err)
{
	char *backing;

	if (read_backing(name, &backing, err) < 0)
		return -1;
	if (!backing)
		return 0;
	l->entries = x_realloc(l->entries, l->n + 1, sizeof(*l->entries));
	l->entries[l->n++] = (struct loop_entry){.path = x_asprintf("/dev/%s", name), .backing = backing};
	return 0;
}

int loop_list_read(struct loop_list **ret, struct error **err)
{
	CLEANUP(loop_list_freep) struct loop_list *l = x_calloc(1, sizeof(*l));
	CLEANUP(strv_freep) char **names = NULL;

	if (list_names(&names, err) < 0)
		return -1;
	for (char **name = names; *name; name++) {
		if (list_one(*name, l, err) < 0)
			return -1;
	}
	*ret = TAKE_PTR(l);
	return 0;
}

void loop_list_free(struct loop_list *l)
{
	if (!l)
		return;
	for (size_t i = 0; i < l->n; i++) {
		free(l->entries[i].path);
		free(l->entries[i].backing);
	}
	free(l->entries);
	free(l);
}
