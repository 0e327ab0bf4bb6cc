/* SPDX-License-Identifier: Apache-2.0 */
#include "os/lock.h"

#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/time.h>

#include "base/mem.h"
#include "os/spawn.h"
#include "unit/os/scratch.h"

#define WAIT_MS 60000

static int held_fd = -1;

START_TEST(a_second_holder_is_refused_until_the_first_closes)
{
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(fd_closep) int second = -1;
	int first = -1;
	struct stat st;

	ASSERT_OK(host_lock(AT_FDCWD, SCRATCH "/.lock", 0, &first, &err));
	ck_assert_int_eq(fstat(first, &st), 0);
	ck_assert_uint_eq(st.st_mode & 07777, 0600);
	ASSERT_FAILS(
		host_lock(AT_FDCWD, SCRATCH "/.lock", 0, &second, &err), ERR_UNAVAILABLE, SCRATCH "/.lock");
	ASSERT_FAILS(
		host_lock(AT_FDCWD, SCRATCH "/.lock", 30, &second, &err), ERR_UNAVAILABLE, SCRATCH "/.lock");
	close(first);
	ASSERT_OK(host_lock(AT_FDCWD, SCRATCH "/.lock", 0, &second, &err));
}
END_TEST

START_TEST(the_holder_is_seen_without_a_try)
{
	CLEANUP(error_freep) struct error *err = NULL;
	int fd = -1;
	pid_t holder = 1;

	ASSERT_OK(host_lock_holder(AT_FDCWD, SCRATCH "/.lock", &holder, &err));
	ck_assert_int_eq(holder, 0);
	ASSERT_OK(host_lock(AT_FDCWD, SCRATCH "/.lock", 0, &fd, &err));
	ASSERT_OK(host_lock_holder(AT_FDCWD, SCRATCH "/.lock", &holder, &err));
	ck_assert_int_eq(holder, getpid());
	close(fd);
	ASSERT_OK(host_lock_holder(AT_FDCWD, SCRATCH "/.lock", &holder, &err));
	ck_assert_int_eq(holder, 0);
}
END_TEST

static void release(int signal_number)
{
	(void)signal_number;
	close(held_fd);
}

START_TEST(a_waiter_gets_the_lock_when_it_is_released)
{
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(fd_closep) int second = -1;

	ASSERT_OK(host_lock(AT_FDCWD, SCRATCH "/.lock", 0, &held_fd, &err));
	signal(SIGALRM, release);
	setitimer(ITIMER_REAL, &(struct itimerval){.it_value.tv_usec = 30000}, NULL);
	ASSERT_OK(host_lock(AT_FDCWD, SCRATCH "/.lock", WAIT_MS, &second, &err));
}
END_TEST

START_TEST(the_lock_dies_with_its_process)
{
	static const char *const argv[] = {"flock", SCRATCH "/.lock", "sh", "-c", "echo held; cat", NULL};
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(fd_closep) int fd = -1;
	struct child holder = CHILD_INIT;

	ASSERT_OK(child_start(argv, NULL, &holder, &err));
	struct pollfd p = {.fd = holder.stdout_fd, .events = POLLIN};
	ck_assert_int_eq(poll(&p, 1, WAIT_MS), 1);
	ASSERT_FAILS(host_lock(AT_FDCWD, SCRATCH "/.lock", 0, &fd, &err), ERR_UNAVAILABLE, SCRATCH "/.lock");
	child_stop(&holder, WAIT_MS);
	ASSERT_OK(host_lock(AT_FDCWD, SCRATCH "/.lock", 0, &fd, &err));
}
END_TEST

START_TEST(a_symlink_as_lock_file_is_not_followed)
{
	CLEANUP(error_freep) struct error *err = NULL;
	int fd = -1;

	ck_assert_int_eq(symlink("victim", SCRATCH "/.lock"), 0);
	ASSERT_FAILS(host_lock(AT_FDCWD, SCRATCH "/.lock", 0, &fd, &err), ERR_INTERNAL, SCRATCH "/.lock");
	ck_assert_int_lt(access(SCRATCH "/victim", F_OK), 0);
}
END_TEST

static void enter_empty_run(void)
{
	ck_assert_int_eq(mount("run", "/run", "tmpfs", 0, NULL), 0);
}

START_TEST(programs_share_locks_in_a_folder_that_is_made)
{
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(fd_closep) int first = -1;
	CLEANUP(fd_closep) int second = -1;
	CLEANUP(fd_closep) int other = -1;
	struct stat st;

	enter_empty_run();
	ASSERT_OK(host_lock_run("one.lock", 0, &first, &err));
	ck_assert_int_eq(stat("/run/pmem-csi", &st), 0);
	ck_assert_uint_eq(st.st_mode & 07777, 0700);
	ASSERT_FAILS(host_lock_run("one.lock", 0, &second, &err), ERR_UNAVAILABLE, "/run/pmem-csi/one.lock");
	ASSERT_OK(host_lock_run("other.lock", 0, &other, &err));
}
END_TEST

/* kubelet makes it so for a hostPath of type DirectoryOrCreate. */
START_TEST(a_folder_that_others_can_only_read_is_taken_as_it_is)
{
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(fd_closep) int fd = -1;
	struct stat st;

	enter_empty_run();
	ck_assert_int_eq(mkdir("/run/pmem-csi", 0755), 0);
	ASSERT_OK(host_lock_run("one.lock", 0, &fd, &err));
	ck_assert_int_eq(stat("/run/pmem-csi", &st), 0);
	ck_assert_uint_eq(st.st_mode & 07777, 0755);
}
END_TEST

START_TEST(a_folder_of_another_user_is_refused)
{
	CLEANUP(error_freep) struct error *err = NULL;
	int fd = -1;

	enter_empty_run();
	ck_assert_int_eq(mkdir("/run/pmem-csi", 0755), 0);
	ck_assert_int_eq(chown("/run/pmem-csi", 65534, 65534), 0);
	ASSERT_FAILS(host_lock_run("one.lock", 0, &fd, &err), ERR_UNAVAILABLE, "belongs to user 65534");
	ck_assert_int_lt(access("/run/pmem-csi/one.lock", F_OK), 0);
}
END_TEST

START_TEST(a_folder_in_which_others_can_write_is_refused)
{
	static const mode_t modes[] = {0770, 0777, 01777};

	enter_empty_run();
	ck_assert_int_eq(mkdir("/run/pmem-csi", 0755), 0);
	for (size_t i = 0; i < ARRAY_SIZE(modes); i++) {
		CLEANUP(error_freep) struct error *err = NULL;
		int fd = -1;

		ck_assert_int_eq(chmod("/run/pmem-csi", modes[i]), 0);
		ASSERT_FAILS(host_lock_run("one.lock", 0, &fd, &err), ERR_UNAVAILABLE, "mode");
	}
}
END_TEST

START_TEST(a_symlink_as_folder_is_not_followed)
{
	CLEANUP(error_freep) struct error *err = NULL;
	int fd = -1;

	enter_empty_run();
	ck_assert_int_eq(mkdir("/run/elsewhere", 0700), 0);
	ck_assert_int_eq(symlink("elsewhere", "/run/pmem-csi"), 0);
	ASSERT_FAILS(host_lock_run("one.lock", 0, &fd, &err), ERR_UNAVAILABLE, "without following");
	ck_assert_int_lt(access("/run/elsewhere/one.lock", F_OK), 0);
}
END_TEST

START_TEST(a_root_file_system_that_is_read_only_is_named)
{
	CLEANUP(error_freep) struct error *err = NULL;
	int fd = -1;

	ck_assert_int_eq(mount("run", "/run", "tmpfs", MS_RDONLY, NULL), 0);
	ASSERT_FAILS(host_lock_run("one.lock", 0, &fd, &err), ERR_UNAVAILABLE, "/run/pmem-csi");
}
END_TEST

START_TEST(a_local_user_cannot_hold_the_lock)
{
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(fd_closep) int fd = -1;
	static const char *const argv[] = {"setpriv", "--reuid=65534", "--clear-groups", "flock", "-n",
		"/run/pmem-csi/one.lock", "true", NULL};

	enter_empty_run();
	ck_assert_int_eq(mkdir("/run/pmem-csi", 0755), 0);
	ASSERT_OK(host_lock_run("one.lock", 0, &fd, &err));
	close(TAKE_FD(fd));
	ASSERT_FAILS(spawn_check(argv, /* out= */ NULL, WAIT_MS, &err), ERR_INTERNAL, "one.lock");
}
END_TEST

START_TEST(the_holder_is_named_to_those_that_wait)
{
	static const char *const argv[] = {
		"flock", "/run/pmem-csi/one.lock", "sh", "-c", "echo held; exec cat", NULL};
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(free_charp) char *self = x_asprintf("process %d", getpid());
	CLEANUP(fd_closep) int fd = -1;
	struct child holder = CHILD_INIT;
	int second = -1;

	enter_empty_run();
	ASSERT_OK(host_lock_run("one.lock", 0, &fd, &err));
	ASSERT_FAILS(host_lock_run("one.lock", 0, &second, &err), ERR_UNAVAILABLE, self);
	/* as in another container, whose processes our /proc does not show */
	ck_assert_int_eq(mount("none", "/proc", "tmpfs", 0, NULL), 0);
	ASSERT_FAILS(host_lock_run("one.lock", 0, &second, &err), ERR_UNAVAILABLE, self);
	ck_assert_int_eq(umount("/proc"), 0);
	close(TAKE_FD(fd));

	/* an administrator's, which signs nothing */
	ASSERT_OK(child_start(argv, NULL, &holder, &err));
	struct pollfd p = {.fd = holder.stdout_fd, .events = POLLIN};
	ck_assert_int_eq(poll(&p, 1, WAIT_MS), 1);
	ASSERT_FAILS(host_lock_run("one.lock", 0, &second, &err), ERR_UNAVAILABLE, "flock, process");
	child_stop(&holder, WAIT_MS);
}
END_TEST

SCRATCH_MAIN("os/lock", a_second_holder_is_refused_until_the_first_closes, the_holder_is_seen_without_a_try,
	a_waiter_gets_the_lock_when_it_is_released, the_lock_dies_with_its_process,
	a_symlink_as_lock_file_is_not_followed, programs_share_locks_in_a_folder_that_is_made,
	a_folder_that_others_can_only_read_is_taken_as_it_is, a_folder_of_another_user_is_refused,
	a_folder_in_which_others_can_write_is_refused, a_symlink_as_folder_is_not_followed,
	a_root_file_system_that_is_read_only_is_named, a_local_user_cannot_hold_the_lock,
	the_holder_is_named_to_those_that_wait)
