/* SPDX-License-Identifier: Apache-2.0 */
/* Entries of direct volumes, and what others do to their folder. */
#include "volume/direct/direct_folder.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"
#include "os/file.h"
#include "unit/unit.h"

#define TARGET                                                                                               \
	"/var/lib/kubelet/pods/0c5e1d5c-3f24-4a57-9b9e-2a0f3f6d8d11/volumes/kubernetes.io~csi/pvc-1/mount"

#define SKIP_STATUS 77

static char base[] = "/tmp/direct-folder-XXXXXX";
static char *dir;
static char *name;
static int fd = -1;

static void remove_all(int at_fd, const char *what)
{
	CLEANUP(fd_closep) int inner = openat(at_fd, what, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	CLEANUP(strv_freep) char **names = NULL;
	struct error *err = NULL;

	if (inner >= 0) {
		ASSERT_OK(dir_list(inner, &names, &err));
		for (size_t i = 0; names[i]; i++) {
			if (unlinkat(inner, names[i], 0) < 0)
				remove_all(inner, names[i]);
		}
	}
	(void)!unlinkat(at_fd, what, inner >= 0 ? AT_REMOVEDIR : 0);
}

static void set_up(void)
{
	struct error *err = NULL;

	memcpy(base + strlen(base) - 6, "XXXXXX", 6);
	ck_assert_ptr_nonnull(mkdtemp(base));
	dir = x_asprintf("%s/shared/direct-volumes", base);
	ASSERT_OK(direct_folder_open(dir, true, &fd, &err));
	ASSERT_OK(direct_entry_name(TARGET, &name, &err));
}

static void tear_down(void)
{
	fd_closep(&fd);
	free(TAKE_PTR(name));
	free(TAKE_PTR(dir));
	remove_all(AT_FDCWD, base);
}

static char *in_entry(const char *file)
{
	return x_asprintf("%s/%s/%s", dir, name, file);
}

static void make_file(const char *path, const char *text)
{
	CLEANUP(fd_closep) int out = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	ck_assert_int_ge(out, 0);
	ck_assert_int_eq(write(out, text, strlen(text)), (ssize_t)strlen(text));
}

static void make_in_entry(const char *file, const char *text)
{
	CLEANUP(free_charp) char *path = in_entry(file);

	make_file(path, text);
}

static void write_entry(const char *content)
{
	struct error *err = NULL;

	ASSERT_OK(direct_entry_write(fd, name, true, span_of(content), &err));
}

/* The entry is compared with that of Kata's Go code for the same path and values (tests/data/kata/README.md).
 */
START_TEST(content_is_what_the_runtime_itself_writes)
{
	char journal_dev[] = "journal_dev", noload[] = "noload";
	char *options[] = {journal_dev, noload, NULL};
	const struct direct_mount m = {.device = "/dev/sda",
		.fs_type = "ext4",
		.fs_group = "3000",
		.fs_group_change_policy = "OnRootMismatch",
		.options = options};
	CLEANUP(buf_done) struct buf is = BUF_INIT(4096);
	CLEANUP(buf_done) struct buf fixture = BUF_INIT(4096);
	struct error *err = NULL;

	ASSERT_OK(direct_mount_format(&m, &is, &err));
	ASSERT_OK(file_read(AT_FDCWD, TEST_DATA "/kata/mountInfo.json", &fixture, &err));
	ck_assert_str_eq(buf_str(&is), buf_str(&fixture));
}
END_TEST

START_TEST(nothing_is_said_of_what_is_not_known)
{
	const struct direct_mount m = {.device = "/dev/pmem0", .fs_type = "xfs"};
	CLEANUP(buf_done) struct buf is = BUF_INIT(4096);
	struct error *err = NULL;

	ASSERT_OK(direct_mount_format(&m, &is, &err));
	ck_assert_str_eq(
		buf_str(&is), "{\"volume-type\":\"directvol\",\"device\":\"/dev/pmem0\",\"fstype\":\"xfs\"}");
}
END_TEST

/* base64.URLEncoding of Go: with '-', '_' and padding. */
START_TEST(name_is_the_path_in_the_alphabet_for_urls)
{
	CLEANUP(free_charp) char *is = NULL;
	struct error *err = NULL;

	ASSERT_OK(direct_entry_name("/a?>~\xff", &is, &err));
	ck_assert_str_eq(is, "L2E_Pn7_");
	free(TAKE_PTR(is));
	ASSERT_OK(direct_entry_name("/a/b/c", &is, &err));
	ck_assert_str_eq(is, "L2EvYi9j");
	free(TAKE_PTR(is));
	ASSERT_OK(direct_entry_name("/a/b", &is, &err));
	ck_assert_str_eq(is, "L2EvYg==");
}
END_TEST

START_TEST(path_that_is_too_long_is_refused)
{
	char path[192];
	CLEANUP(free_charp) char *is = NULL;
	struct error *err = NULL;

	memset(path, 'x', sizeof(path));
	path[0] = '/';
	path[189] = '\0';
	ASSERT_OK(direct_entry_name(path, &is, &err));
	ck_assert_uint_eq(strlen(is), 252);
	path[189] = 'x';
	path[190] = '\0';
	ASSERT_FAILS(direct_entry_name(path, &is, &err), ERR_INVALID_ARGUMENT, "too long");
}
END_TEST

START_TEST(entry_is_for_its_owner_alone)
{
	CLEANUP(free_charp) char *file = in_entry(DIRECT_MOUNT_INFO);
	CLEANUP(buf_done) struct buf is = BUF_INIT(4096);
	struct error *err = NULL;
	struct stat st;

	write_entry("{}");
	ck_assert_int_eq(stat(file, &st), 0);
	ck_assert_uint_eq(st.st_mode & 07777, 0600);
	ck_assert_int_eq(fstatat(fd, name, &st, 0), 0);
	ck_assert_uint_eq(st.st_mode & 07777, 0700);
	ck_assert_int_eq(fstat(fd, &st), 0);
	ck_assert_uint_eq(st.st_mode & 07777, 0700);
	write_entry("{\"a\":1}");
	ASSERT_OK(direct_entry_read(fd, name, &is, &err));
	ck_assert_str_eq(buf_str(&is), "{\"a\":1}");
}
END_TEST

START_TEST(entry_goes_with_the_sandboxes_in_it)
{
	CLEANUP(strv_freep) char **sandboxes = NULL;
	CLEANUP(free_charp) char *left = NULL;
	struct error *err = NULL;

	write_entry("{}");
	make_in_entry("4f0a", "");
	make_in_entry("77ee", "");
	make_in_entry(".mountInfo.json.tmp", "{");
	ASSERT_OK(direct_entry_withdraw(fd, name, &err));
	ASSERT_OK(direct_entry_sandboxes(fd, name, &sandboxes, &err));
	ck_assert_uint_eq(strv_len(sandboxes), 2);
	ck_assert(strv_contains(sandboxes, "4f0a") && strv_contains(sandboxes, "77ee"));
	for (unsigned i = 0; i < 2; i++) {
		ASSERT_OK(direct_entry_remove(fd, name, &left, &err));
		ck_assert_ptr_null(left);
		ck_assert_int_ne(faccessat(fd, name, F_OK, 0), 0);
	}
}
END_TEST

START_TEST(what_is_no_sandbox_is_neither_read_nor_removed)
{
	CLEANUP(strv_freep) char **sandboxes = NULL;
	CLEANUP(free_charp) char *left = NULL;
	CLEANUP(free_charp) char *link = in_entry("link");
	CLEANUP(free_charp) char *file = in_entry("content");
	struct error *err = NULL;

	write_entry("{}");
	make_in_entry("content", "data");
	make_in_entry(".hidden", "");
	ck_assert_int_eq(symlink("/etc/passwd", link), 0);
	ASSERT_OK(direct_entry_sandboxes(fd, name, &sandboxes, &err));
	ck_assert_uint_eq(strv_len(sandboxes), 0);
	ASSERT_OK(direct_entry_remove(fd, name, &left, &err));
	ck_assert_str_eq(left, ".hidden");
	ck_assert_int_eq(access(file, F_OK), 0);
	ck_assert_int_eq(faccessat(fd, name, F_OK, 0), 0);
}
END_TEST

START_TEST(entry_of_another_program_is_refused)
{
	struct error *err = NULL;

	ck_assert_int_eq(mkdirat(fd, name, 0700), 0);
	ASSERT_FAILS(
		direct_entry_write(fd, name, false, span_of("{}"), &err), ERR_EXISTS, "not of this driver");
	make_in_entry(DIRECT_MOUNT_INFO, "theirs");
	ck_assert_int_eq(fchmodat(fd, name, 0777, 0), 0);
	ASSERT_FAILS(direct_entry_write(fd, name, true, span_of("{}"), &err), ERR_PRECONDITION, "alone");
	ck_assert_int_eq(fchmodat(fd, name, 0700, 0), 0);
	ck_assert_int_eq(fchownat(fd, name, 12345, 0, 0), 0);
	ASSERT_FAILS(direct_entry_write(fd, name, true, span_of("{}"), &err), ERR_PRECONDITION, "user 12345");
	ASSERT_FAILS(direct_entry_remove(fd, name, &(char *){NULL}, &err), ERR_PRECONDITION, "user 12345");
}
END_TEST

/* If links were followed, a user who can replace a folder by one would choose where the driver writes. */
START_TEST(links_in_place_of_folders_are_not_followed)
{
	CLEANUP(free_charp) char *elsewhere = x_asprintf("%s/elsewhere", base);
	CLEANUP(free_charp) char *file = x_asprintf("%s/" DIRECT_MOUNT_INFO, elsewhere);
	CLEANUP(free_charp) char *link = x_asprintf("%s/shared/link", base);
	struct error *err = NULL;
	int other = -1;

	ck_assert_int_eq(mkdir(elsewhere, 0700), 0);
	make_file(file, "theirs");
	ck_assert_int_eq(symlinkat(elsewhere, fd, name), 0);
	ASSERT_FAILS(
		direct_entry_write(fd, name, true, span_of("{}"), &err), ERR_PRECONDITION, "symbolic link");
	ASSERT_FAILS(direct_entry_withdraw(fd, name, &err), ERR_PRECONDITION, "symbolic link");
	ASSERT_FAILS(direct_entry_remove(fd, name, &(char *){NULL}, &err), ERR_PRECONDITION, "symbolic link");
	ck_assert_int_eq(access(file, F_OK), 0);
	ck_assert_int_eq(symlink(dir, link), 0);
	ASSERT_FAILS(direct_folder_open(link, true, &other, &err), ERR_PRECONDITION, "symbolic link");
	ck_assert_int_eq(other, -1);
}
END_TEST

START_TEST(folder_that_others_can_write_to_is_refused)
{
	struct error *err = NULL;
	int other = -1;

	ck_assert_int_eq(chmod(dir, 0777), 0);
	ASSERT_FAILS(direct_folder_open(dir, true, &other, &err), ERR_PRECONDITION, "777");
	ck_assert_int_eq(chmod(dir, 0755), 0);
	ASSERT_OK(direct_folder_open(dir, false, &other, &err));
	close(other);
	ck_assert_int_eq(rmdir(dir), 0);
	ASSERT_FAILS(direct_folder_open(dir, false, &other, &err), ERR_NOT_FOUND, "does not exist");
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("direct_folder");
	TCase *tcase = tcase_create("direct_folder");
	SRunner *runner = srunner_create(suite);

	if (geteuid() != 0) {
		srunner_free(runner);
		return SKIP_STATUS;
	}
	suite_add_tcase(suite, tcase);
	tcase_add_checked_fixture(tcase, set_up, tear_down);
	tcase_add_test(tcase, content_is_what_the_runtime_itself_writes);
	tcase_add_test(tcase, nothing_is_said_of_what_is_not_known);
	tcase_add_test(tcase, name_is_the_path_in_the_alphabet_for_urls);
	tcase_add_test(tcase, path_that_is_too_long_is_refused);
	tcase_add_test(tcase, entry_is_for_its_owner_alone);
	tcase_add_test(tcase, entry_goes_with_the_sandboxes_in_it);
	tcase_add_test(tcase, what_is_no_sandbox_is_neither_read_nor_removed);
	tcase_add_test(tcase, entry_of_another_program_is_refused);
	tcase_add_test(tcase, links_in_place_of_folders_are_not_followed);
	tcase_add_test(tcase, folder_that_others_can_write_to_is_refused);
	return unit_runner_finish(runner);
}
