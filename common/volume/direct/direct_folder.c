/* SPDX-License-Identifier: Apache-2.0 */
#include "volume/direct/direct_folder.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base64.h"
#include "base/durable_step.h"
#include "base/json/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "os/file.h"

#define FOLDER_MODE 0700
#define FILE_MODE   0600
/* The volume type of block devices; only runtime-rs reads it. */
#define VOLUME_TYPE "directvol"
/* As file_write_atomic() names it, which a kill may leave. */
#define TEMPORARY      "." DIRECT_MOUNT_INFO ".tmp"
#define SANDBOX_ID_MAX 128

int direct_mount_format(const struct direct_mount *m, struct buf *out, struct error **err)
{
	struct json_writer w = JSON_WRITER(out);

	json_object(&w);
	json_key_str(&w, "volume-type", VOLUME_TYPE);
	json_key_str(&w, "device", m->device);
	json_key_str(&w, "fstype", m->fs_type);
	if (m->fs_group) {
		json_key(&w, "metadata");
		json_object(&w);
		json_key_str(&w, "fsGroup", m->fs_group);
		json_key_known(&w, "fsGroupChangePolicy", m->fs_group_change_policy);
		json_object_end(&w);
	}
	if (strv_len(m->options) > 0) {
		json_key(&w, "options");
		json_array(&w);
		for (size_t i = 0; m->options[i]; i++)
			json_str(&w, m->options[i]);
		json_array_end(&w);
	}
	json_object_end(&w);
	return buf_check(out, DIRECT_MOUNT_INFO, err);
}

int direct_entry_name(const char *target_path, char **ret, struct error **err)
{
	CLEANUP(buf_done) struct buf name = BUF_INIT(NAME_MAX);

	base64_encode_name(span_of(target_path), &name);
	if (name.overflowed)
		return err_set(err, ERR_INVALID_ARGUMENT,
			"target path %s is too long for a direct volume: the name of a file that is made of it has "
			"at most %d bytes, which is enough for %d",
			target_path, NAME_MAX, NAME_MAX / 4 * 3);
	*ret = x_strdup(buf_str(&name));
	return 0;
}

/* Refuses a file or folder that other users could change: they could give a guest any device of the host. */
static int require_own(int fd, const char *name, struct error **err)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return err_set_errno(err, ERR_INTERNAL, errno, "stat %s", name);
	if (st.st_uid == geteuid() && (st.st_mode & 022) == 0)
		return 0;
	return err_set(err, ERR_PRECONDITION,
		"%s belongs to user %u with mode %03o: it must be this program's alone, so that no other user chooses "
		"what a guest gets",
		name, st.st_uid, st.st_mode & 07777);
}

static int refuse_entry(const char *name, struct error **err)
{
	if (errno == ENOENT)
		return err_set(err, ERR_NOT_FOUND, "folder %s does not exist", name);
	if (errno == ELOOP || errno == ENOTDIR)
		return err_set(err, ERR_PRECONDITION,
			"%s is a symbolic link or no folder: nothing is written there", name);
	return err_set_errno(err, ERR_INTERNAL, errno, "open %s", name);
}

static int open_own(int at_fd, const char *name, int *ret_fd, struct error **err)
{
	CLEANUP(fd_closep) int fd = openat(at_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0)
		return refuse_entry(name, err);
	if (require_own(fd, name, err) < 0)
		return -1;
	*ret_fd = TAKE_FD(fd);
	return 0;
}

static int make_folders(const char *dir, struct error **err)
{
	CLEANUP(free_charp) char *path = x_strdup(dir);

	for (char *slash = path; slash;) {
		slash = strchr(slash + 1, '/');
		if (slash)
			*slash = '\0';
		if (STEP("direct-folder", mkdir(path, FOLDER_MODE)) < 0 && errno != EEXIST)
			return err_set_errno(err, errno == EROFS ? ERR_PRECONDITION : ERR_INTERNAL, errno,
				"make folder %s", path);
		if (slash)
			*slash = '/';
	}
	return 0;
}

int direct_folder_open(const char *dir, bool create, int *ret_fd, struct error **err)
{
	if (open_own(AT_FDCWD, dir, ret_fd, err) == 0)
		return 0;
	if (!create || (*err)->code != ERR_NOT_FOUND)
		return -1;
	error_clear(err);
	return make_folders(dir, err) < 0 ? -1 : open_own(AT_FDCWD, dir, ret_fd, err);
}

static int make_entry(int folder_fd, const char *name, bool is_ours, struct error **err)
{
	if (STEP("direct-entry", mkdirat(folder_fd, name, FOLDER_MODE)) == 0 || (errno == EEXIST && is_ours))
		return 0;
	if (errno == EEXIST)
		return err_set(err, ERR_EXISTS,
			"an entry for that path, %s, exists already and is not of this driver: remove it if no guest "
			"uses it (kata-runtime direct-volume remove)",
			name);
	return err_set_errno(
		err, errno == ENOSPC ? ERR_UNAVAILABLE : ERR_INTERNAL, errno, "make entry %s", name);
}

int direct_entry_write(int folder_fd, const char *name, bool is_ours, struct span content, struct error **err)
{
	CLEANUP(fd_closep) int fd = -1;

	if (make_entry(folder_fd, name, is_ours, err) < 0 || open_own(folder_fd, name, &fd, err) < 0)
		return -1;
	if (file_write_atomic(fd, DIRECT_MOUNT_INFO, content, FILE_MODE, err) < 0) {
		if ((*err)->code == ERR_EXHAUSTED)
			err_recode(err, ERR_UNAVAILABLE);
		return err_wrap(err, "entry %s", name);
	}
	if (STEP("direct-entry-durable", fsync(folder_fd)) < 0)
		return err_set_errno(err, ERR_INTERNAL, errno, "flush the folder of entry %s", name);
	return 0;
}

/* @ret_fd: -1 where there is no entry */
static int open_entry(int folder_fd, const char *name, int *ret_fd, struct error **err)
{
	*ret_fd = -1;
	if (open_own(folder_fd, name, ret_fd, err) == 0)
		return 0;
	if ((*err)->code != ERR_NOT_FOUND)
		return -1;
	error_clear(err);
	return 0;
}

int direct_entry_read(int folder_fd, const char *name, struct buf *out, struct error **err)
{
	CLEANUP(fd_closep) int fd = -1;

	if (open_entry(folder_fd, name, &fd, err) < 0)
		return -1;
	if (fd < 0 || file_read(fd, DIRECT_MOUNT_INFO, out, err) == 0)
		return 0;
	if ((*err)->code != ERR_NOT_FOUND)
		return -1;
	error_clear(err);
	return 0;
}

int direct_entry_withdraw(int folder_fd, const char *name, struct error **err)
{
	CLEANUP(fd_closep) int fd = -1;

	if (open_entry(folder_fd, name, &fd, err) < 0)
		return -1;
	if (fd < 0)
		return 0;
	if (file_unlink_durable(fd, TEMPORARY, err) < 0 ||
		file_unlink_durable(fd, DIRECT_MOUNT_INFO, err) < 0)
		return err_wrap(err, "entry %s", name);
	return 0;
}

static bool is_sandbox_id(const char *name)
{
	size_t n = strlen(name);

	if (n == 0 || n > SANDBOX_ID_MAX || !isalnum((unsigned char)name[0]) ||
		str_eq(name, DIRECT_MOUNT_INFO))
		return false;
	for (size_t i = 0; i < n; i++) {
		if (!isalnum((unsigned char)name[i]) && !strchr("_.-", name[i]))
			return false;
	}
	return true;
}

static bool is_sandbox_file(int entry_fd, const char *name)
{
	struct stat st;

	return is_sandbox_id(name) && fstatat(entry_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	       S_ISREG(st.st_mode) && st.st_size == 0;
}

static int list_sandboxes(int entry_fd, char ***ret, struct error **err)
{
	CLEANUP(strv_freep) char **names = NULL;

	if (dir_list(entry_fd, &names, err) < 0)
		return -1;
	for (size_t i = 0; names[i]; i++) {
		if (is_sandbox_file(entry_fd, names[i]) && !strv_contains(*ret, names[i]))
			strv_add(ret, names[i]);
	}
	return 0;
}

int direct_entry_sandboxes(int folder_fd, const char *name, char ***ret, struct error **err)
{
	CLEANUP(fd_closep) int fd = -1;

	if (open_entry(folder_fd, name, &fd, err) < 0)
		return -1;
	return fd >= 0 ? list_sandboxes(fd, ret, err) : 0;
}

static int remove_content(int entry_fd, char **ret_left, struct error **err)
{
	CLEANUP(strv_freep) char **sandboxes = NULL;
	CLEANUP(strv_freep) char **left = NULL;

	if (list_sandboxes(entry_fd, &sandboxes, err) < 0)
		return -1;
	for (size_t i = 0; sandboxes && sandboxes[i]; i++) {
		if (STEP("direct-sandbox", unlinkat(entry_fd, sandboxes[i], 0)) < 0 && errno != ENOENT)
			return err_set_errno(err, ERR_INTERNAL, errno, "remove %s", sandboxes[i]);
	}
	if (dir_list(entry_fd, &left, err) < 0)
		return -1;
	*ret_left = left[0] ? x_strdup(left[0]) : NULL;
	return 0;
}

int direct_entry_remove(int folder_fd, const char *name, char **ret_left, struct error **err)
{
	CLEANUP(fd_closep) int fd = -1;

	*ret_left = NULL;
	if (direct_entry_withdraw(folder_fd, name, err) < 0 || open_entry(folder_fd, name, &fd, err) < 0)
		return -1;
	if (fd < 0)
		return 0;
	if (remove_content(fd, ret_left, err) < 0)
		return err_wrap(err, "entry %s", name);
	if (*ret_left)
		return 0;
	if (STEP("direct-entry-removed", unlinkat(folder_fd, name, AT_REMOVEDIR)) < 0 && errno != ENOENT)
		return err_set_errno(err, ERR_INTERNAL, errno, "remove entry %s", name);
	return 0;
}
