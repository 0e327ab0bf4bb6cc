/* SPDX-License-Identifier: Apache-2.0 */
#include "os/unix_socket.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/mem.h"

/* Servers hold it for as long as it takes to bind; any other program may hold it for ever. */
#define LOCK_WAIT_MS 2000
#define LOCK_TRY_MS  10

static char *folder_of(const char *path)
{
	size_t n = (size_t)(strrchr(path, '/') - path);

	return n > 0 ? x_strndup(path, n) : x_strdup("/");
}

static int lock_soon(int fd, const char *folder, struct error **err)
{
	for (unsigned tries = 0; tries < LOCK_WAIT_MS / LOCK_TRY_MS; tries++) {
		if (flock(fd, LOCK_EX | LOCK_NB) == 0)
			return 0;
		if (errno != EWOULDBLOCK)
			return err_set_errno(err, ERR_INTERNAL, errno, "lock folder \"%s\"", folder);
		usleep(LOCK_TRY_MS * 1000);
	}
	return err_set(err, ERR_UNAVAILABLE, "another program has had the folder \"%s\" locked for %d s",
		folder, LOCK_WAIT_MS / 1000);
}

int unix_socket_lock_folder(const char *path, int *ret_fd, struct error **err)
{
	CLEANUP(free_charp) char *folder = folder_of(path);
	CLEANUP(fd_closep) int fd = -1;

	if (mkdir(folder, 0700) < 0 && errno != EEXIST)
		return err_set_errno(err, ERR_INTERNAL, errno, "make folder \"%s\"", folder);
	fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return err_set_errno(err, ERR_INTERNAL, errno, "open folder \"%s\"", folder);
	if (lock_soon(fd, folder, err) < 0)
		return -1;
	*ret_fd = TAKE_FD(fd);
	return 0;
}

/* A full backlog (EAGAIN) is a live server too; so is one to which we have no permission to connect. */
int unix_socket_refuse_live(const char *path, struct error **err)
{
	struct sockaddr_un sa = {.sun_family = AF_UNIX};
	CLEANUP(fd_closep) int fd = -1;
	struct stat st;

	if (lstat(path, &st) < 0)
		return errno == ENOENT ? 0 : err_set_errno(err, ERR_INTERNAL, errno, "stat \"%s\"", path);
	if (!S_ISSOCK(st.st_mode))
		return err_set(err, ERR_PRECONDITION, "\"%s\" exists and is not a socket", path);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return err_set_errno(err, ERR_INTERNAL, errno, "socket");
	memcpy(sa.sun_path, path, strlen(path) + 1);
	if (connect(fd, (const struct sockaddr *)&sa, sizeof(sa)) < 0 &&
		(errno == ECONNREFUSED || errno == ENOENT))
		return 0;
	return err_set(err, ERR_UNAVAILABLE,
		"\"%s\" is in use by another server, which has to be stopped first", path);
}

static bool has_folder(const char *path)
{
	CLEANUP(free_charp) char *folder = folder_of(path);

	return access(folder, F_OK) == 0;
}

int unix_socket_remove_stale(const char *path, bool *ret_removed, struct error **err)
{
	CLEANUP(fd_closep) int folder_fd = -1;

	if (path[0] != '/' || strlen(path) >= sizeof((struct sockaddr_un){0}.sun_path))
		return err_set(
			err, ERR_INVALID_ARGUMENT, "\"%s\" is not a valid absolute path for a socket", path);
	*ret_removed = false;
	if (!has_folder(path))
		return 0;
	if (unix_socket_lock_folder(path, &folder_fd, err) < 0)
		return -1;
	if (unix_socket_refuse_live(path, err) < 0)
		return -1;
	if (unlink(path) < 0) {
		if (errno == ENOENT)
			return 0;
		return err_set_errno(err, ERR_INTERNAL, errno, "remove stale \"%s\"", path);
	}
	*ret_removed = true;
	return 0;
}
