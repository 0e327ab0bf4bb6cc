/* SPDX-License-Identifier: Apache-2.0 */
/* The harness itself: it must find one seeded defect of each kind. */
#include <errno.h>
#include <linux/loop.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/buf.h"
#include "os/file.h"
#include "os/loopdev.h"
#include "os/spawn.h"
#include "unit/inject/sweep.h"
#include "unit/os/scratch.h"

#define CONTENT "content of some length"

static int dir_fd;
static int kept_fd = -1;

static void enter(void)
{
	scratch_enter();
	dir_fd = open(SCRATCH, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	ck_assert_int_ge(dir_fd, 0);
}

static const char *wrong_content(void)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(KIB(4));
	CLEANUP(error_freep) struct error *err = NULL;

	RIGHT_IF(file_read(dir_fd, "file", &b, &err) == 0);
	RIGHT_IF(strcmp(buf_str(&b), CONTENT) == 0);
	return NULL;
}

static void remove_file(void)
{
	unlinkat(dir_fd, "file", 0);
}

static void expect(int (*call)(struct error **), const char *complaint)
{
	const struct sweep s = {.name = "seeded",
		.folder = SCRATCH,
		.call = call,
		.wrong_at_end = wrong_content,
		.undo = remove_file};
	CLEANUP(free_charp) char *wrong = sweep_find(&s);

	ck_assert_msg(wrong && strstr(wrong, complaint), "\"%s\" instead of \"%s\"", wrong, complaint);
}

static int write_rightly(struct error **err)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(KIB(4));

	buf_adds(&b, CONTENT);
	if (buf_check(&b, "the content", err) < 0)
		return -1;
	return file_write_atomic(dir_fd, "file", buf_span(&b), 0600, err);
}

START_TEST(a_call_without_defects_passes_at_every_point)
{
	const struct sweep s = {.name = "a right call",
		.folder = SCRATCH,
		.min_points = 8,
		.call = write_rightly,
		.wrong_at_end = wrong_content,
		.undo = remove_file};

	sweep_run(&s);
}
END_TEST

START_TEST(an_empty_sweep_is_noticed)
{
	const struct sweep s = {
		.name = "few", .min_points = 1000, .call = write_rightly, .undo = remove_file};
	CLEANUP(free_charp) char *wrong = sweep_find(&s);

	ck_assert_ptr_nonnull(strstr(wrong, "expected at least 1000"));
}
END_TEST

static int leak_descriptor(struct error **err)
{
	int fd = openat(dir_fd, "file", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	if (fd < 0)
		return err_set_errno(err, ERR_INTERNAL, errno, "open");
	if (fsync(fd) < 0)
		return err_set_errno(err, ERR_INTERNAL, errno, "flush");
	close(fd);
	return write_rightly(err);
}

static int leak_descriptor_of_success(struct error **err)
{
	if (fsync(dir_fd) < 0)
		kept_fd = dup(dir_fd);
	return write_rightly(err);
}

START_TEST(a_leaked_descriptor_is_found)
{
	expect(leak_descriptor, "fsync: Input/output error): held after the failure, too much: descriptor");
}
END_TEST

START_TEST(a_descriptor_that_a_success_leaks_is_found)
{
	expect(leak_descriptor_of_success,
		"fsync: Input/output error): held at the end, too much: descriptor");
	close(kept_fd);
}
END_TEST

static int leak_mount(struct error **err)
{
	if (mkdirat(dir_fd, "m", 0700) < 0 && errno != EEXIST)
		return err_set_errno(err, ERR_INTERNAL, errno, "make a folder");
	if (mount("none", SCRATCH "/m", "tmpfs", 0, NULL) < 0)
		return err_set_errno(err, ERR_INTERNAL, errno, "mount");
	if (write_rightly(err) < 0)
		return -1;
	umount2(SCRATCH "/m", MNT_DETACH);
	return 0;
}

START_TEST(a_leaked_mount_is_found)
{
	expect(leak_mount, "held after the failure, too much: mount");
}
END_TEST

static int leak_loop(struct error **err)
{
	CLEANUP(fd_closep) int fd = openat(dir_fd, "image", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	CLEANUP(free_charp) char *path = NULL;

	if (fd < 0)
		return err_set_errno(err, ERR_INTERNAL, errno, "open");
	if (ftruncate(fd, MIB(1)) < 0)
		return err_set_errno(err, ERR_INTERNAL, errno, "extend");
	if (loop_attach(fd, &path, err) < 0)
		return -1;
	if (write_rightly(err) < 0)
		return -1;
	return loop_detach(fd, err);
}

START_TEST(a_leaked_loop_device_is_found)
{
	CLEANUP(error_freep) struct error *err = NULL;

	expect(leak_loop, "held after the failure, too much: loop device over " SCRATCH "/image");

	CLEANUP(fd_closep) int fd = openat(dir_fd, "image", O_RDWR | O_CLOEXEC);
	ASSERT_OK(loop_detach(fd, &err));
}
END_TEST

static int leak_temporary(struct error **err)
{
	CLEANUP(fd_closep) int fd = openat(dir_fd, "x.tmp", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	if (fd < 0)
		return err_set_errno(err, ERR_INTERNAL, errno, "open");
	if (write_rightly(err) < 0)
		return -1;
	unlinkat(dir_fd, "x.tmp", 0);
	return 0;
}

START_TEST(a_leaked_temporary_file_is_found)
{
	expect(leak_temporary, "held after the failure, too much: temporary file " SCRATCH "/x.tmp");
}
END_TEST

static int leak_child(struct error **err)
{
	static const char *const argv[] = {"sleep", "100", NULL};
	struct child c = CHILD_INIT;

	if (child_start(argv, NULL, &c, err) < 0)
		return -1;
	kill(c.pid, SIGKILL);
	waitid(P_PID, (id_t)c.pid, &(siginfo_t){0}, WEXITED | WNOWAIT);
	if (write_rightly(err) < 0) {
		c.pid = -1;
		child_stop(&c, 0);
		return -1;
	}
	child_stop(&c, 0);
	return 0;
}

START_TEST(a_child_left_behind_is_found)
{
	expect(leak_child, "held after the failure, too much: a child");
}
END_TEST

static int write_unchecked(struct error **err)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(KIB(4));

	buf_adds(&b, CONTENT);
	return file_write_atomic(dir_fd, "file", buf_span(&b), 0600, err);
}

START_TEST(content_that_was_cut_off_is_found)
{
	expect(write_unchecked, "buf_adds: refused): not so: strcmp(");
}
END_TEST

static int write_once(struct error **err)
{
	CLEANUP(fd_closep) int fd = openat(dir_fd, "file", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	if (fd < 0)
		return err_set_errno(err, ERR_INTERNAL, errno, "open");
	if (fsync(fd) < 0)
		return err_set_errno(err, ERR_INTERNAL, errno, "flush");
	return fd_write_all(fd, span_of(CONTENT), err);
}

START_TEST(a_call_that_cannot_be_repeated_is_found)
{
	expect(write_once, "again: open: File exists");
}
END_TEST

static int give_up(struct error **err)
{
	CLEANUP(fd_closep) int fd = openat(dir_fd, "file", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	if (fd < 0)
		return err_set_errno(err, ERR_INTERNAL, errno, "open");
	if (write(fd, CONTENT, strlen(CONTENT)) < 0)
		return err_set_errno(err, ERR_INTERNAL, errno, "write");
	return 0;
}

START_TEST(a_call_that_does_not_go_on_is_found)
{
	expect(give_up, "write: Interrupted system call): did not go on");
}
END_TEST

static int swallow(struct error **err)
{
	(void)err;
	CLEANUP(error_freep) struct error *lost = NULL;
	(void)!write_rightly(&lost);
	return 0;
}

static int say_nothing(struct error **err)
{
	CLEANUP(error_freep) struct error *lost = NULL;

	if (write_rightly(&lost) < 0)
		return err_set(err, ERR_INTERNAL, "something failed");
	return 0;
}

static int blame_caller(struct error **err)
{
	if (write_rightly(err) == 0)
		return 0;
	return err_recode(err, ERR_INVALID_ARGUMENT);
}

START_TEST(an_error_that_misleads_is_found)
{
	expect(swallow, "not so: file_read(");
	expect(say_nothing, "cause not named: something failed");
	expect(blame_caller, "code INVALID_ARGUMENT");
}
END_TEST

int main(void)
{
	const char *why = scratch_unavailable();
	Suite *suite = suite_create("inject");
	TCase *tcase = tcase_create("inject");

	if (why) {
		fprintf(stderr, "SKIP inject: %s\n", why);
		return SCRATCH_SKIP_STATUS;
	}
	suite_add_tcase(suite, tcase);
	tcase_add_checked_fixture(tcase, enter, NULL);
	tcase_set_timeout(tcase, 100);
	tcase_add_test(tcase, a_call_without_defects_passes_at_every_point);
	tcase_add_test(tcase, an_empty_sweep_is_noticed);
	tcase_add_test(tcase, a_leaked_descriptor_is_found);
	tcase_add_test(tcase, a_descriptor_that_a_success_leaks_is_found);
	tcase_add_test(tcase, a_leaked_mount_is_found);
	tcase_add_test(tcase, a_leaked_loop_device_is_found);
	tcase_add_test(tcase, a_leaked_temporary_file_is_found);
	tcase_add_test(tcase, a_child_left_behind_is_found);
	tcase_add_test(tcase, content_that_was_cut_off_is_found);
	tcase_add_test(tcase, a_call_that_cannot_be_repeated_is_found);
	tcase_add_test(tcase, a_call_that_does_not_go_on_is_found);
	tcase_add_test(tcase, an_error_that_misleads_is_found);
	return unit_runner_finish(srunner_create(suite));
}
