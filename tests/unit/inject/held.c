/* SPDX-License-Identifier: Apache-2.0 */
#include "unit/inject/held.h"

#include <check.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <linux/loop.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/str.h"
#include "os/loopdev.h"

#define TEXT_MAX (1U << 20)
#define WALK_FDS 8

static struct buf *walked; /* nftw() hands nothing on */

static void add_descriptors(struct buf *b)
{
	CLEANUP(dir_closep) DIR *dir = opendir("/proc/self/fd");
	char target[PATH_MAX];

	ck_assert_ptr_nonnull(dir);
	for (const struct dirent *e = readdir(dir); e; e = readdir(dir)) {
		CLEANUP(free_charp) char *own = x_asprintf("%d", dirfd(dir));
		ssize_t n = readlinkat(dirfd(dir), e->d_name, target, sizeof(target));

		if (n >= 0 && !str_eq(e->d_name, own))
			buf_addf(b, "descriptor %s of %.*s\n", e->d_name, (int)n, target);
	}
}

/* Adds the mounts, without the two numbers at the beginning of each line, which differ when the same mount is
 * made again. */
static void add_mounts(struct buf *b)
{
	CLEANUP(file_closep) FILE *f = fopen("/proc/self/mountinfo", "re");
	CLEANUP(free_charp) char *line = NULL;
	size_t size = 0;

	ck_assert_ptr_nonnull(f);
	while (getline(&line, &size, f) > 0) {
		const char *rest = strchr(line, ' ');
		buf_addf(b, "mount %s", strchr(rest + 1, ' ') + 1);
	}
}

/* Tests that run beside this one have files of the same names, on file systems of their own. */
static bool is_on(const char *device, dev_t dev)
{
	CLEANUP(fd_closep) int fd = open(device, O_RDONLY | O_CLOEXEC);
	struct loop_info64 info;

	return fd >= 0 && ioctl(fd, LOOP_GET_STATUS64, &info) == 0 && info.lo_device == dev;
}

static void add_loops(struct buf *b, const char *folder, dev_t dev)
{
	CLEANUP(loop_list_freep) struct loop_list *loops = NULL;
	CLEANUP(error_freep) struct error *err = NULL;

	ck_assert_int_eq(loop_list_read(&loops, &err), 0);
	for (size_t i = 0; i < loops->n; i++) {
		const struct loop_entry *e = &loops->entries[i];
		if (str_starts(e->backing, folder) && is_on(e->path, dev))
			buf_addf(b, "loop device over %s\n", e->backing);
	}
}

/* Called from main(), where no test runs that could fail: check ends a program that asserts there. */
void held_detach(const char *name)
{
	CLEANUP(loop_list_freep) struct loop_list *loops = NULL;
	CLEANUP(error_freep) struct error *err = NULL;

	if (loop_list_read(&loops, &err) < 0) {
		fprintf(stderr, "loop devices stay: %s\n", err->msg);
		return;
	}
	for (size_t i = 0; i < loops->n; i++) {
		const struct loop_entry *e = &loops->entries[i];
		CLEANUP(fd_closep)
		int fd = strstr(e->backing, name) ? open(e->path, O_RDONLY | O_CLOEXEC) : -1;

		if (fd >= 0 && ioctl(fd, LOOP_CLR_FD, 0) < 0)
			perror(e->path);
	}
}

static int add_temporary(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	if (str_ends(path, ".tmp"))
		buf_addf(walked, "temporary file %s\n", path);
	return 0;
}

static void add_children(struct buf *b)
{
	siginfo_t info = {0};

	if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0)
		buf_adds(b, "a child\n");
}

static char *list(const char *folder)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(TEXT_MAX);
	CLEANUP(error_freep) struct error *err = NULL;
	struct stat st;

	add_descriptors(&b);
	add_mounts(&b);
	add_children(&b);
	if (folder) {
		ck_assert_int_eq(stat(folder, &st), 0);
		add_loops(&b, folder, st.st_dev);
		walked = &b;
		nftw(folder, add_temporary, WALK_FDS, FTW_PHYS);
	}
	ck_assert_int_eq(buf_check(&b, "what is held", &err), 0);
	return x_strdup(buf_str(&b));
}

char *held_now(const char *folder)
{
	return list(folder);
}

char *held_own(void)
{
	return list(NULL);
}
