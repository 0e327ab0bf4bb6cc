/* SPDX-License-Identifier: Apache-2.0 */
#include "os/paths.h"

#include <sys/stat.h>

#include "base/str.h"
#include "unit/os/scratch.h"

#define ROOT    SCRATCH "/kubelet"
#define OUTSIDE SCRATCH "/outside"

/* A root with a folder and a file in it, and a folder that nothing may reach. */
static struct path_roots *make_roots(const char *dir)
{
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(strv_freep) char **dirs = NULL;
	struct path_roots *r = NULL;

	ck_assert_int_eq(mkdir(ROOT, 0755), 0);
	ck_assert_int_eq(mkdir(ROOT "/pods", 0755), 0);
	ck_assert_int_eq(mkdir(OUTSIDE, 0755), 0);
	close(scratch_file("kubelet/file", 1));
	close(scratch_file("outside/secret", 1));
	ck_assert_int_eq(symlink("kubelet", SCRATCH "/link"), 0);
	if (dir)
		strv_add(&dirs, dir);
	ASSERT_OK(path_roots_new(dirs, &r, &err));
	return r;
}

static void assert_same(int fd, const char *path)
{
	struct stat a, b;

	ck_assert_int_eq(fstat(fd, &a), 0);
	ck_assert_int_eq(stat(path, &b), 0);
	ck_assert_uint_eq(a.st_ino, b.st_ino);
	ck_assert_uint_eq(a.st_dev, b.st_dev);
}

START_TEST(objects_beneath_a_root_are_opened)
{
	static const struct {
		const char *path;
		enum path_kind kind;
	} cases[] = {
		{ROOT "/pods", PATH_DIR},
		{"//mnt///kubelet//pods//", PATH_DIR},
		{ROOT "/file", PATH_FILE},
	};
	CLEANUP(path_roots_freep) struct path_roots *r = make_roots(ROOT "/");

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		CLEANUP(error_freep) struct error *err = NULL;
		CLEANUP(fd_closep) int fd = -1;
		ASSERT_OK(path_open(r, cases[i].path, cases[i].kind, &fd, &err));
		assert_same(fd, cases[i].path);
		ck_assert_int_eq(fcntl(fd, F_GETFL) & O_PATH, O_PATH);
	}
}
END_TEST

#define ITSELF "is itself a root folder"

START_TEST(a_root_itself_is_refused)
{
	static const char *const paths[] = {ROOT, ROOT "/", "//mnt//kubelet//"};
	CLEANUP(path_roots_freep) struct path_roots *r = make_roots(ROOT);
	CLEANUP(error_freep) struct error *err = NULL;
	int fd = -1;

	for (size_t i = 0; i < ARRAY_SIZE(paths); i++) {
		ASSERT_FAILS(path_open(r, paths[i], PATH_DIR, &fd, &err), ERR_INVALID_ARGUMENT, ITSELF);
		ASSERT_FAILS(path_make(r, paths[i], PATH_DIR, &fd, NULL, &err), ERR_INVALID_ARGUMENT, ITSELF);
		ASSERT_FAILS(path_remove(r, paths[i], &err), ERR_INVALID_ARGUMENT, ITSELF);
	}
}
END_TEST

START_TEST(names_that_no_file_can_have_are_refused)
{
	CLEANUP(path_roots_freep) struct path_roots *r = make_roots(ROOT);
	CLEANUP(error_freep) struct error *err = NULL;
	char path[sizeof(ROOT) + NAME_MAX + 2];
	int fd = -1;

	snprintf(path, sizeof(path), ROOT "/%0*d", NAME_MAX + 1, 0);
	ASSERT_FAILS(path_open(r, path, PATH_FILE, &fd, &err), ERR_INVALID_ARGUMENT, "too long");
	ASSERT_FAILS(path_make(r, path, PATH_DIR, &fd, NULL, &err), ERR_INVALID_ARGUMENT, "too long");
	ASSERT_FAILS(path_remove(r, path, &err), ERR_INVALID_ARGUMENT, "too long");
}
END_TEST

START_TEST(paths_out_of_the_roots_are_refused)
{
	static const struct {
		const char *path;
		const char *text;
	} cases[] = {
		{OUTSIDE, "outside"},
		{SCRATCH, "outside"},
		{"/", "outside"},
		{ROOT "-not", "outside"},
		{ROOT "/../outside/secret", "\"..\""},
		{ROOT "/pods/..", "\"..\""},
		{ROOT "/./pods", "\".\""},
		{"kubelet/pods", "not absolute"},
		{"", "not absolute"},
	};
	CLEANUP(path_roots_freep) struct path_roots *r = make_roots(ROOT);
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(free_charp) char *canonical = NULL;
	int fd = -1;

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		ASSERT_FAILS(path_open(r, cases[i].path, PATH_FILE, &fd, &err), ERR_INVALID_ARGUMENT,
			cases[i].text);
		ASSERT_FAILS(path_make(r, cases[i].path, PATH_DIR, &fd, NULL, &err), ERR_INVALID_ARGUMENT,
			cases[i].text);
		ASSERT_FAILS(path_remove(r, cases[i].path, &err), ERR_INVALID_ARGUMENT, cases[i].text);
		ASSERT_FAILS(path_canonical(r, cases[i].path, &canonical, &err), ERR_INVALID_ARGUMENT,
			cases[i].text);
	}
	ck_assert_int_eq(access(OUTSIDE "/secret", F_OK), 0);
}
END_TEST

START_TEST(overlong_paths_are_refused)
{
	CLEANUP(path_roots_freep) struct path_roots *r = make_roots(ROOT);
	CLEANUP(error_freep) struct error *err = NULL;
	char path[5000] = ROOT "/";
	int fd = -1;

	memset(path + strlen(path), 'a', 300);
	ASSERT_FAILS(path_open(r, path, PATH_FILE, &fd, &err), ERR_INVALID_ARGUMENT, "too long");
	for (size_t i = strlen(path); i < sizeof(path) - 1; i++)
		path[i] = i % 100 ? 'a' : '/';
	ASSERT_FAILS(path_open(r, path, PATH_FILE, &fd, &err), ERR_INVALID_ARGUMENT, "longer than");
}
END_TEST

START_TEST(symlinks_are_refused_wherever_they_stand)
{
	static const char *const links[][2] = {
		{OUTSIDE, ROOT "/abs"},
		{"../outside", ROOT "/rel"},
		{"pods", ROOT "/within"},
		{"file", ROOT "/tofile"},
		{"nowhere", ROOT "/dangling"},
		{"/proc/self/root/mnt/outside", ROOT "/magic"},
	};
	CLEANUP(path_roots_freep) struct path_roots *r = make_roots(ROOT);
	CLEANUP(error_freep) struct error *err = NULL;
	int fd = -1;

	for (size_t i = 0; i < ARRAY_SIZE(links); i++) {
		char beneath[64];
		ck_assert_int_eq(symlink(links[i][0], links[i][1]), 0);
		snprintf(beneath, sizeof(beneath), "%s/secret", links[i][1]);
		ASSERT_FAILS(
			path_open(r, links[i][1], PATH_FILE, &fd, &err), ERR_INVALID_ARGUMENT, links[i][1]);
		ASSERT_FAILS(
			path_open(r, links[i][1], PATH_DIR, &fd, &err), ERR_INVALID_ARGUMENT, links[i][1]);
		ASSERT_FAILS(path_open(r, beneath, PATH_FILE, &fd, &err), ERR_INVALID_ARGUMENT, beneath);
		ASSERT_FAILS(path_make(r, links[i][1], PATH_DIR, &fd, NULL, &err), ERR_INVALID_ARGUMENT,
			links[i][1]);
		ASSERT_FAILS(path_make(r, links[i][1], PATH_FILE, &fd, NULL, &err), ERR_INVALID_ARGUMENT,
			links[i][1]);
		ASSERT_FAILS(
			path_make(r, beneath, PATH_FILE, &fd, NULL, &err), ERR_INVALID_ARGUMENT, beneath);
		ASSERT_FAILS(path_remove(r, beneath, &err), ERR_INVALID_ARGUMENT, beneath);
	}
	ck_assert_int_eq(access(OUTSIDE "/secret", F_OK), 0);
	ck_assert_int_lt(access(ROOT "/nowhere", F_OK), 0);
}
END_TEST

START_TEST(removing_spares_all_but_what_is_made_and_empty)
{
	static const char *const spared[] = {ROOT "/trap", ROOT "/fifo", ROOT "/full"};
	CLEANUP(path_roots_freep) struct path_roots *r = make_roots(ROOT);
	CLEANUP(error_freep) struct error *err = NULL;
	struct stat st;

	ck_assert_int_eq(symlink("../outside/secret", ROOT "/trap"), 0);
	ck_assert_int_eq(mkfifo(ROOT "/fifo", 0600), 0);
	close(scratch_file("kubelet/full", 1));
	for (size_t i = 0; i < ARRAY_SIZE(spared); i++) {
		ASSERT_FAILS(path_remove(r, spared[i], &err), ERR_PRECONDITION, spared[i]);
		ck_assert_int_eq(lstat(spared[i], &st), 0);
	}
	ck_assert_int_eq(access(OUTSIDE "/secret", F_OK), 0);
}
END_TEST

START_TEST(a_descriptor_outlives_the_swap_of_its_path)
{
	CLEANUP(path_roots_freep) struct path_roots *r = make_roots(ROOT);
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(fd_closep) int fd = -1;

	ASSERT_OK(path_open(r, ROOT "/pods", PATH_DIR, &fd, &err));
	ck_assert_int_eq(rename(ROOT "/pods", ROOT "/moved"), 0);
	ck_assert_int_eq(symlink(OUTSIDE, ROOT "/pods"), 0);
	assert_same(fd, ROOT "/moved");
}
END_TEST

START_TEST(a_root_given_through_a_symlink_works_by_both_names)
{
	CLEANUP(path_roots_freep) struct path_roots *r = make_roots(SCRATCH "/link");
	static const char *const paths[] = {SCRATCH "/link/pods", ROOT "/pods/", SCRATCH "/link//pods"};

	for (size_t i = 0; i < ARRAY_SIZE(paths); i++) {
		CLEANUP(error_freep) struct error *err = NULL;
		CLEANUP(fd_closep) int fd = -1;
		CLEANUP(free_charp) char *canonical = NULL;
		ASSERT_OK(path_open(r, paths[i], PATH_DIR, &fd, &err));
		assert_same(fd, ROOT "/pods");
		ASSERT_OK(path_canonical(r, paths[i], &canonical, &err));
		ck_assert_str_eq(canonical, ROOT "/pods");
	}
}
END_TEST

START_TEST(a_root_is_resolved_once)
{
	CLEANUP(path_roots_freep) struct path_roots *r = make_roots(SCRATCH "/link");
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(fd_closep) int fd = -1;
	int secret = -1;

	ck_assert_int_eq(unlink(SCRATCH "/link"), 0);
	ck_assert_int_eq(symlink("outside", SCRATCH "/link"), 0);
	ASSERT_FAILS(path_open(r, SCRATCH "/link/secret", PATH_FILE, &secret, &err), ERR_NOT_FOUND, "secret");
	ASSERT_OK(path_open(r, SCRATCH "/link/pods", PATH_DIR, &fd, &err));
}
END_TEST

START_TEST(without_roots_every_absolute_path_is_accepted)
{
	CLEANUP(path_roots_freep) struct path_roots *r = make_roots(NULL);
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(fd_closep) int fd = -1;
	CLEANUP(free_charp) char *top = NULL;
	CLEANUP(free_charp) char *canonical = NULL;
	int link = -1;

	ASSERT_OK(path_open(r, OUTSIDE "/secret", PATH_FILE, &fd, &err));
	ASSERT_FAILS(path_open(r, "/", PATH_DIR, &link, &err), ERR_INVALID_ARGUMENT, ITSELF);
	ASSERT_OK(path_canonical(r, "/", &top, &err));
	ck_assert_str_eq(top, "/");
	ASSERT_OK(path_canonical(r, "//mnt//x/", &canonical, &err));
	ck_assert_str_eq(canonical, "/mnt/x");
	ASSERT_FAILS(
		path_open(r, SCRATCH "/link/file", PATH_FILE, &link, &err), ERR_INVALID_ARGUMENT, "link");
}
END_TEST

START_TEST(roots_that_are_no_absolute_directories_are_named)
{
	static const char *const bad[] = {"kubelet", SCRATCH "/none", SCRATCH "/plain", SCRATCH "/../mnt"};
	CLEANUP(error_freep) struct error *err = NULL;

	ck_assert_int_eq(chdir(SCRATCH), 0);
	ck_assert_int_eq(mkdir(SCRATCH "/kubelet", 0755), 0);
	close(scratch_file("plain", 0));
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		CLEANUP(strv_freep) char **dirs = NULL;
		struct path_roots *r = NULL;
		strv_add(&dirs, bad[i]);
		ASSERT_FAILS(path_roots_new(dirs, &r, &err), ERR_INVALID_ARGUMENT, i == 3 ? ".." : bad[i]);
	}
}
END_TEST

START_TEST(missing_objects_and_wrong_kinds_are_distinguished)
{
	CLEANUP(path_roots_freep) struct path_roots *r = make_roots(ROOT);
	CLEANUP(error_freep) struct error *err = NULL;
	int fd = -1;

	ck_assert_int_eq(mkfifo(ROOT "/fifo", 0600), 0);
	ASSERT_FAILS(path_open(r, ROOT "/none", PATH_FILE, &fd, &err), ERR_NOT_FOUND, ROOT "/none");
	ASSERT_FAILS(
		path_open(r, ROOT "/none/deeper", PATH_DIR, &fd, &err), ERR_NOT_FOUND, ROOT "/none/deeper");
	ASSERT_FAILS(path_open(r, ROOT "/file", PATH_DIR, &fd, &err), ERR_INVALID_ARGUMENT, ROOT "/file");
	ASSERT_FAILS(
		path_open(r, ROOT "/file/x", PATH_FILE, &fd, &err), ERR_INVALID_ARGUMENT, ROOT "/file/x");
	ASSERT_FAILS(path_open(r, ROOT "/pods", PATH_FILE, &fd, &err), ERR_INVALID_ARGUMENT, ROOT "/pods");
	ASSERT_FAILS(path_open(r, ROOT "/fifo", PATH_FILE, &fd, &err), ERR_INVALID_ARGUMENT, ROOT "/fifo");
	ck_assert_int_eq(fd, -1);
}
END_TEST

START_TEST(making_is_idempotent_but_keeps_the_kind)
{
	CLEANUP(path_roots_freep) struct path_roots *r = make_roots(ROOT);
	CLEANUP(error_freep) struct error *err = NULL;
	int none = -1;
	struct stat st;

	umask(022);
	for (int round = 0; round < 2; round++) {
		CLEANUP(fd_closep) int dir = -1;
		CLEANUP(fd_closep) int file = -1;
		bool created = round;
		ASSERT_OK(path_make(r, ROOT "/pods/dir/", PATH_DIR, &dir, &created, &err));
		ck_assert_int_eq(created, round == 0);
		ASSERT_OK(path_make(r, ROOT "/pods/dir/file", PATH_FILE, &file, &created, &err));
		ck_assert_int_eq(created, round == 0);
		assert_same(dir, ROOT "/pods/dir");
		assert_same(file, ROOT "/pods/dir/file");
	}
	ck_assert_int_eq(stat(ROOT "/pods/dir", &st), 0);
	ck_assert_uint_eq(st.st_mode, S_IFDIR | 0755);
	ck_assert_int_eq(stat(ROOT "/pods/dir/file", &st), 0);
	ck_assert_uint_eq(st.st_mode, S_IFREG | 0644);
	ASSERT_FAILS(
		path_make(r, ROOT "/pods", PATH_FILE, &none, NULL, &err), ERR_INVALID_ARGUMENT, "not a file");
	ASSERT_FAILS(
		path_make(r, ROOT "/file", PATH_DIR, &none, NULL, &err), ERR_INVALID_ARGUMENT, ROOT "/file");
	ASSERT_FAILS(
		path_make(r, ROOT "/no/dir", PATH_DIR, &none, NULL, &err), ERR_NOT_FOUND, ROOT "/no/dir");
	ASSERT_FAILS(path_make(r, ROOT, PATH_DIR, &none, NULL, &err), ERR_INVALID_ARGUMENT, "itself");
}
END_TEST

START_TEST(removing_is_idempotent_and_stops_at_content_and_mounts)
{
	CLEANUP(path_roots_freep) struct path_roots *r = make_roots(ROOT);
	CLEANUP(error_freep) struct error *err = NULL;

	ck_assert_int_eq(mkdir(ROOT "/pods/sub", 0755), 0);
	ASSERT_FAILS(path_remove(r, ROOT "/pods", &err), ERR_PRECONDITION, ROOT "/pods");
	ck_assert_int_eq(mount("x", ROOT "/pods/sub", "tmpfs", 0, NULL), 0);
	ASSERT_FAILS(path_remove(r, ROOT "/pods/sub", &err), ERR_PRECONDITION, ROOT "/pods/sub");
	ck_assert_int_eq(umount(ROOT "/pods/sub"), 0);
	ASSERT_OK(path_remove(r, ROOT "/pods/sub", &err));
	ASSERT_OK(path_remove(r, ROOT "/pods/sub", &err));
	ASSERT_OK(path_remove(r, ROOT "/pods/sub/deeper", &err));
	ASSERT_OK(path_remove(r, ROOT "/pods", &err));
	close(scratch_file("kubelet/empty", 0));
	ASSERT_OK(path_remove(r, ROOT "/empty", &err));
	ck_assert_int_lt(access(ROOT "/empty", F_OK), 0);
	ASSERT_FAILS(path_remove(r, ROOT, &err), ERR_INVALID_ARGUMENT, "itself");
}
END_TEST

SCRATCH_MAIN("os/paths", objects_beneath_a_root_are_opened, a_root_itself_is_refused,
	names_that_no_file_can_have_are_refused, paths_out_of_the_roots_are_refused,
	overlong_paths_are_refused, symlinks_are_refused_wherever_they_stand,
	removing_spares_all_but_what_is_made_and_empty, a_descriptor_outlives_the_swap_of_its_path,
	a_root_given_through_a_symlink_works_by_both_names, a_root_is_resolved_once,
	without_roots_every_absolute_path_is_accepted, roots_that_are_no_absolute_directories_are_named,
	missing_objects_and_wrong_kinds_are_distinguished, making_is_idempotent_but_keeps_the_kind,
	removing_is_idempotent_and_stops_at_content_and_mounts)
