/* SPDX-License-Identifier: Apache-2.0 */
/* Files, paths and locks, with the n-th system call below them failing. */
#include <sys/stat.h>

#include "base/mem.h"
#include "base/str.h"
#include "os/file.h"
#include "os/lock.h"
#include "os/paths.h"
#include "unit/inject/sweep.h"
#include "unit/os/scratch.h"

#define OLD "what was there before"
#define NEW "what is there now"

static int dir_fd = -1;
static int result_fd = -1;
static char **names;

static void open_dir(void)
{
	dir_fd = open(SCRATCH, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	ck_assert_int_ge(dir_fd, 0);
}

static void put(const char *name, const char *content)
{
	CLEANUP(fd_closep) int fd = openat(dir_fd, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(write(fd, content, strlen(content)), (ssize_t)strlen(content));
}

static bool holds(const char *name, const char *content)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(KIB(4));
	CLEANUP(error_freep) struct error *err = NULL;

	return file_read(dir_fd, name, &b, &err) == 0 && str_eq(buf_str(&b), content);
}

static bool exists(const char *name)
{
	struct stat st;

	return fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

static mode_t mode_of(const char *name)
{
	struct stat st;

	return fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 ? st.st_mode & 07777 : 0;
}

static void close_result(void)
{
	fd_closep(&result_fd);
	result_fd = -1;
}

static void put_old(void)
{
	put("file", OLD);
}

static int write_file(struct error **err)
{
	return file_write_atomic(dir_fd, "file", span_of(NEW), 0640, err);
}

static const char *neither_old_nor_new(void)
{
	RIGHT_IF(holds("file", OLD) || holds("file", NEW));
	return NULL;
}

static const char *not_written(void)
{
	RIGHT_IF(holds("file", NEW));
	RIGHT_IF(mode_of("file") == 0640);
	return NULL;
}

static void remove_file(void)
{
	unlinkat(dir_fd, "file", 0);
}

START_TEST(a_file_is_written_whole_or_not_at_all)
{
	const struct sweep s = {.name = "file_write_atomic",
		.folder = SCRATCH,
		.min_points = 7,
		.prepare = put_old,
		.call = write_file,
		.wrong_after_failure = neither_old_nor_new,
		.wrong_at_end = not_written,
		.undo = remove_file};

	open_dir();
	sweep_run(&s);
}
END_TEST

static int write_file_unflushed(struct error **err)
{
	return file_write_whole(dir_fd, "file", span_of(NEW), 0640, err);
}

START_TEST(a_file_without_flushed_folder_is_written_whole_or_not_at_all)
{
	const struct sweep s = {.name = "file_write_whole",
		.folder = SCRATCH,
		.min_points = 6,
		.prepare = put_old,
		.call = write_file_unflushed,
		.wrong_after_failure = neither_old_nor_new,
		.wrong_at_end = not_written,
		.undo = remove_file};

	open_dir();
	sweep_run(&s);
}
END_TEST

static int read_file(struct error **err)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(KIB(4));

	if (file_read(dir_fd, "file", &b, err) < 0)
		return -1;
	ck_assert_str_eq(buf_str(&b), OLD);
	return 0;
}

START_TEST(a_file_is_read_whole_or_not_at_all)
{
	const struct sweep s = {.name = "file_read", .folder = SCRATCH, .min_points = 4, .call = read_file};

	open_dir();
	put_old();
	sweep_run(&s);
}
END_TEST

static int rename_file(struct error **err)
{
	return exists("new") ? 0 : file_rename_durable(dir_fd, "file", "new", err);
}

static const char *not_renamed(void)
{
	RIGHT_IF(holds("new", OLD));
	RIGHT_IF(!exists("file"));
	return NULL;
}

static const char *neither_here_nor_there(void)
{
	RIGHT_IF(holds("new", OLD) != holds("file", OLD));
	return NULL;
}

static void remove_new(void)
{
	unlinkat(dir_fd, "new", 0);
}

START_TEST(a_file_is_renamed_or_not)
{
	const struct sweep s = {.name = "file_rename_durable",
		.folder = SCRATCH,
		.min_points = 2,
		.prepare = put_old,
		.call = rename_file,
		.wrong_after_failure = neither_here_nor_there,
		.wrong_at_end = not_renamed,
		.undo = remove_new};

	open_dir();
	sweep_run(&s);
}
END_TEST

static int unlink_file(struct error **err)
{
	return file_unlink_durable(dir_fd, "file", err);
}

static const char *not_removed(void)
{
	RIGHT_IF(!exists("file"));
	return NULL;
}

START_TEST(a_file_is_removed_in_the_end)
{
	const struct sweep s = {.name = "file_unlink_durable",
		.folder = SCRATCH,
		.min_points = 2,
		.prepare = put_old,
		.call = unlink_file,
		.wrong_at_end = not_removed};

	open_dir();
	sweep_run(&s);
}
END_TEST

static int make_dir(struct error **err)
{
	return dir_open(SCRATCH "/dir", /* create= */ true, 0750, &result_fd, err);
}

static const char *wrong_dir(void)
{
	RIGHT_IF(fcntl(result_fd, F_GETFD) == FD_CLOEXEC);
	RIGHT_IF(mode_of("dir") == 0750);
	return NULL;
}

/* A folder that a failed call leaves would be taken for durable by the next call, although it was not
 * synced. */
static const char *partial_dir(void)
{
	RIGHT_IF(!exists("dir"));
	return NULL;
}

static void remove_dir(void)
{
	close_result();
	unlinkat(dir_fd, "dir", AT_REMOVEDIR);
}

START_TEST(a_directory_is_made_with_its_mode_or_not_at_all)
{
	const struct sweep s = {.name = "dir_open",
		.folder = SCRATCH,
		.min_points = 6,
		.once = true,
		.call = make_dir,
		.wrong_after_failure = partial_dir,
		.wrong_at_end = wrong_dir,
		.undo = remove_dir};

	open_dir();
	umask(077);
	sweep_run(&s);
}
END_TEST

static int list_dir(struct error **err)
{
	return dir_list(dir_fd, &names, err);
}

static const char *wrong_names(void)
{
	RIGHT_IF(strv_len(names) == 2);
	RIGHT_IF(str_eq(names[0], "file") && str_eq(names[1], "other"));
	return NULL;
}

static void free_names(void)
{
	strv_free(TAKE_PTR(names));
}

START_TEST(a_directory_is_listed_whole_or_not_at_all)
{
	const struct sweep s = {.name = "dir_list",
		.folder = SCRATCH,
		.min_points = 7,
		.call = list_dir,
		.wrong_at_end = wrong_names,
		.undo = free_names};

	open_dir();
	put_old();
	put("other", NEW);
	sweep_run(&s);
}
END_TEST

static int take_lock(struct error **err)
{
	return host_lock(dir_fd, "lock", /* timeout_ms= */ 0, &result_fd, err);
}

static const char *not_locked(void)
{
	CLEANUP(error_freep) struct error *err = NULL;
	int second = -1;

	RIGHT_IF(host_lock(dir_fd, "lock", 0, &second, &err) < 0);
	RIGHT_IF(err->code == ERR_UNAVAILABLE && strstr(err->msg, "held by"));
	return NULL;
}

START_TEST(a_lock_that_was_not_taken_keeps_no_other_peer_out)
{
	const struct sweep s = {.name = "host_lock",
		.folder = SCRATCH,
		.min_points = 2,
		.call = take_lock,
		.wrong_at_end = not_locked,
		.undo = close_result};

	open_dir();
	sweep_run(&s);
}
END_TEST

static struct path_roots *roots;
static char *root_dirs[] = {(char[]){SCRATCH}, NULL};

static int make_roots(struct error **err)
{
	return path_roots_new(root_dirs, &roots, err);
}

static int make_default_roots(struct error **err)
{
	return path_roots_new(NULL, &roots, err);
}

static void free_roots(void)
{
	path_roots_free(TAKE_PTR(roots));
}

/* The link beneath the default root is only followed where that was resolved. */
static const char *default_root_unresolved(void)
{
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(fd_closep) int fd = -1;

	RIGHT_IF(path_open(roots, "/var/lib/kubelet/file", PATH_FILE, &fd, &err) == 0);
	return NULL;
}

START_TEST(roots_are_resolved_all_or_none)
{
	const unsigned invalid = 1U << ERR_INVALID_ARGUMENT; /* of the command line */
	const struct sweep given = {.name = "path_roots_new",
		.folder = SCRATCH,
		.min_points = 2,
		.codes = invalid,
		.call = make_roots,
		.undo = free_roots};
	const struct sweep defaults = {.name = "path_roots_new, default",
		.folder = SCRATCH,
		.min_points = 5,
		.codes = invalid,
		.call = make_default_roots,
		.wrong_at_end = default_root_unresolved,
		.undo = free_roots};

	open_dir();
	sweep_run(&given);
	ck_assert_int_eq(mkdir(SCRATCH "/elsewhere", 0700), 0);
	put("elsewhere/file", OLD);
	ck_assert_int_eq(mount("lib", "/var/lib", "tmpfs", 0, NULL), 0);
	ck_assert_int_eq(symlink(SCRATCH "/elsewhere", "/var/lib/kubelet"), 0);
	sweep_run(&defaults);
}
END_TEST

static void open_roots(void)
{
	CLEANUP(error_freep) struct error *err = NULL;

	open_dir();
	ASSERT_OK(make_roots(&err));
	ck_assert_int_eq(mkdir(SCRATCH "/parent", 0755), 0);
}

static int open_path(struct error **err)
{
	return path_open(roots, SCRATCH "/parent", PATH_DIR, &result_fd, err);
}

static int make_path_dir(struct error **err)
{
	bool created;

	return path_make(roots, SCRATCH "/parent/new", PATH_DIR, &result_fd, &created, err);
}

static int make_path_file(struct error **err)
{
	return path_make(roots, SCRATCH "/parent/new", PATH_FILE, &result_fd, NULL, err);
}

static int remove_path(struct error **err)
{
	return path_remove(roots, SCRATCH "/parent/new", err);
}

static const char *not_opened(void)
{
	RIGHT_IF(fcntl(result_fd, F_GETFD) == FD_CLOEXEC);
	return NULL;
}

static const char *partial_path(void)
{
	RIGHT_IF(!exists("parent/new"));
	return NULL;
}

static const char *not_made(void)
{
	RIGHT_IF(fcntl(result_fd, F_GETFD) == FD_CLOEXEC);
	RIGHT_IF(exists("parent/new"));
	return NULL;
}

static void unmake_path(void)
{
	CLEANUP(error_freep) struct error *err = NULL;

	close_result();
	ASSERT_OK(remove_path(&err));
}

static void put_path_dir(void)
{
	ck_assert_int_eq(mkdir(SCRATCH "/parent/new", 0755), 0);
}

START_TEST(a_path_is_opened_or_made_or_not)
{
	const struct sweep open = {.name = "path_open",
		.min_points = 2,
		.call = open_path,
		.wrong_at_end = not_opened,
		.undo = close_result};
	const struct sweep dir = {.name = "path_make, directory",
		.folder = SCRATCH,
		.min_points = 5,
		.call = make_path_dir,
		.wrong_after_failure = partial_path,
		.wrong_at_end = not_made,
		.undo = unmake_path};
	const struct sweep file = {.name = "path_make, file",
		.folder = SCRATCH,
		.min_points = 5,
		.call = make_path_file,
		.wrong_after_failure = partial_path,
		.wrong_at_end = not_made,
		.undo = unmake_path};

	open_roots();
	sweep_run(&open);
	sweep_run(&dir);
	sweep_run(&file);
}
END_TEST

START_TEST(a_path_is_removed_in_the_end)
{
	const struct sweep s = {.name = "path_remove",
		.folder = SCRATCH,
		.min_points = 4,
		.prepare = put_path_dir,
		.call = remove_path,
		.wrong_at_end = partial_path};

	open_roots();
	sweep_run(&s);
}
END_TEST

SCRATCH_MAIN("inject_file", a_file_is_written_whole_or_not_at_all,
	a_file_without_flushed_folder_is_written_whole_or_not_at_all, a_file_is_read_whole_or_not_at_all,
	a_file_is_renamed_or_not, a_file_is_removed_in_the_end,
	a_directory_is_made_with_its_mode_or_not_at_all, a_directory_is_listed_whole_or_not_at_all,
	a_lock_that_was_not_taken_keeps_no_other_peer_out, roots_are_resolved_all_or_none,
	a_path_is_opened_or_made_or_not, a_path_is_removed_in_the_end)
