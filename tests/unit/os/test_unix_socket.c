/* SPDX-License-Identifier: Apache-2.0 */
/* Sockets that a server left behind are removed, and nothing else is. */
#include <fcntl.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "base/mem.h"
#include "base/str.h"
#include "os/unix_socket.h"
#include "unit/unit.h"

static char dir[32];
static char *path;
static struct error *err;

static void make_folder(void)
{
	snprintf(dir, sizeof(dir), "/tmp/pmem-socket-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(dir));
	path = x_asprintf("%s/s", dir);
}

static void remove_folder(void)
{
	unlink(path);
	ck_assert_int_eq(rmdir(dir), 0);
	free(path);
}

/* Return: the caller closes. */
static int make_socket(int type, bool listens)
{
	struct sockaddr_un sa = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, type | SOCK_CLOEXEC, 0);

	snprintf(sa.sun_path, sizeof(sa.sun_path), "%s", path);
	ck_assert_int_eq(bind(fd, (const struct sockaddr *)&sa, sizeof(sa)), 0);
	if (listens)
		ck_assert_int_eq(listen(fd, 1), 0);
	return fd;
}

static bool exists(void)
{
	struct stat st;

	return lstat(path, &st) == 0;
}

START_TEST(a_socket_that_nobody_listens_on_is_removed)
{
	bool removed = false;

	make_folder();
	close(make_socket(SOCK_STREAM, /* listens= */ true));
	ck_assert(exists());
	ASSERT_OK(unix_socket_remove_stale(path, &removed, &err));
	ck_assert(removed && !exists());
	ASSERT_OK(unix_socket_remove_stale(path, &removed, &err));
	ck_assert(!removed);
	remove_folder();
}
END_TEST

START_TEST(a_live_socket_stays)
{
	bool removed = false;

	make_folder();
	for (int kind = 0; kind < 2; kind++) {
		int fd = make_socket(kind ? SOCK_DGRAM : SOCK_STREAM, kind == 0);

		ASSERT_FAILS(unix_socket_remove_stale(path, &removed, &err), ERR_UNAVAILABLE, path);
		ck_assert(exists());
		unlink(path);
		close(fd);
	}
	remove_folder();
}
END_TEST

START_TEST(what_is_no_socket_stays)
{
	CLEANUP(free_charp) char *other = NULL;
	bool removed = false;

	make_folder();
	ck_assert_int_eq(mkdir(path, 0700), 0);
	ASSERT_FAILS(unix_socket_remove_stale(path, &removed, &err), ERR_PRECONDITION, path);
	ck_assert_int_eq(rmdir(path), 0);
	/* also a link to a stale socket: it is not ours to follow */
	close(make_socket(SOCK_STREAM, /* listens= */ false));
	other = x_asprintf("%s/link", dir);
	ck_assert_int_eq(symlink(path, other), 0);
	ASSERT_FAILS(unix_socket_remove_stale(other, &removed, &err), ERR_PRECONDITION, other);
	ck_assert(exists());
	ck_assert_int_eq(unlink(other), 0);
	remove_folder();
}
END_TEST

START_TEST(a_folder_that_is_missing_stays_missing)
{
	CLEANUP(free_charp) char *deep = NULL;
	bool removed = true;

	make_folder();
	deep = x_asprintf("%s/none/s", dir);
	ASSERT_OK(unix_socket_remove_stale(deep, &removed, &err));
	ck_assert(!removed);
	remove_folder();
}
END_TEST

START_TEST(a_folder_that_another_program_has_locked_is_not_waited_for_without_end)
{
	CLEANUP(fd_closep) int locked = -1;
	int fd = -1;

	make_folder();
	locked = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	ck_assert_int_eq(flock(locked, LOCK_EX), 0);
	ASSERT_FAILS(unix_socket_lock_folder(path, &fd, &err), ERR_UNAVAILABLE, dir);
	ck_assert_int_eq(flock(locked, LOCK_UN), 0);
	ASSERT_OK(unix_socket_lock_folder(path, &fd, &err));
	close(fd);
	remove_folder();
}
END_TEST

START_TEST(a_path_that_no_socket_has_is_refused)
{
	CLEANUP(free_charp) char *long_path = x_asprintf("/%0200d", 0);
	bool removed = false;

	ASSERT_FAILS(unix_socket_remove_stale("s", &removed, &err), ERR_INVALID_ARGUMENT, "absolute");
	ASSERT_FAILS(unix_socket_remove_stale(long_path, &removed, &err), ERR_INVALID_ARGUMENT, "absolute");
}
END_TEST

UNIT_MAIN("os/unix_socket", a_socket_that_nobody_listens_on_is_removed, a_live_socket_stays,
	what_is_no_socket_stays, a_folder_that_is_missing_stays_missing, a_path_that_no_socket_has_is_refused,
	a_folder_that_another_program_has_locked_is_not_waited_for_without_end)
