/* SPDX-License-Identifier: Apache-2.0 */
/* Usage of file systems, also of ones that hang. */
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "os/fs_usage.h"
#include "unit/unit.h"

#define LONG_MS 60000
#define N_SAME  4

/* The file system of the root folder hangs while this is locked; others answer. */
static pthread_mutex_t hang = PTHREAD_MUTEX_INITIALIZER;
static atomic_uint n_asked;

int __real_fstatvfs(int fd, struct statvfs *ret);
int __wrap_fstatvfs(int fd, struct statvfs *ret);

int __wrap_fstatvfs(int fd, struct statvfs *ret)
{
	struct stat st;
	struct stat root;

	n_asked++;
	if (fstat(fd, &st) == 0 && stat("/", &root) == 0 && st.st_dev == root.st_dev) {
		pthread_mutex_lock(&hang);
		pthread_mutex_unlock(&hang);
	}
	return __real_fstatvfs(fd, ret);
}

static struct fs_usage_helpers *helpers;

static int ask(const char *path, int timeout_ms, struct fs_usage *ret, struct error **err)
{
	CLEANUP(fd_closep) int fd = open(path, O_PATH | O_CLOEXEC);
	struct stat st;

	ck_assert_int_eq(fstat(fd, &st), 0);
	return fs_usage_read(helpers, fd, st.st_dev, timeout_ms, ret, err);
}

static void set_up(void)
{
	helpers = fs_usage_helpers_new(1);
}

static void tear_down(void)
{
	fs_usage_helpers_free(helpers);
}

START_TEST(numbers_are_those_of_the_kernel)
{
	struct fs_usage usage;
	struct statvfs s;
	struct error *err = NULL;

	ck_assert_int_eq(statvfs("/proc/self", &s), 0);
	ASSERT_OK(ask("/proc/self", LONG_MS, &usage, &err));
	ck_assert_uint_eq(usage.total_bytes, s.f_blocks * s.f_frsize);
	ASSERT_OK(ask("/", LONG_MS, &usage, &err));
	ck_assert_int_eq(statvfs("/", &s), 0);
	ck_assert_uint_eq(usage.total_bytes, s.f_blocks * s.f_frsize);
	ck_assert_uint_eq(usage.total_inodes, s.f_files);
	ck_assert_uint_ge(usage.total_bytes, usage.used_bytes + usage.available_bytes);
	ck_assert_uint_ge(usage.total_inodes, usage.used_inodes);
}
END_TEST

START_TEST(what_hangs_costs_one_thread_and_holds_nobody_longer_than_told)
{
	struct fs_usage usage;
	struct error *err = NULL;

	pthread_mutex_lock(&hang);
	for (int i = 0; i < N_SAME; i++)
		ASSERT_FAILS(ask("/", 1, &usage, &err), ERR_DEADLINE, "does not answer");
	ck_assert_uint_le(n_asked, 1);
	ASSERT_FAILS(ask("/proc", LONG_MS, &usage, &err), ERR_UNAVAILABLE, "do not answer");
	pthread_mutex_unlock(&hang);
	ASSERT_OK(ask("/", LONG_MS, &usage, &err));
	while (ask("/proc", LONG_MS, &usage, &err) < 0) {
		/* the helper ends a moment after its answer */
		ck_assert_int_eq(err->code, ERR_UNAVAILABLE);
		error_clear(&err);
	}
}
END_TEST

START_TEST(helper_that_comes_back_after_the_end_releases_what_is_left)
{
	struct fs_usage usage;
	struct error *err = NULL;

	pthread_mutex_lock(&hang);
	ASSERT_FAILS(ask("/", 1, &usage, &err), ERR_DEADLINE, "does not answer");
	fs_usage_helpers_free(TAKE_PTR(helpers));
	pthread_mutex_unlock(&hang);
}
END_TEST

static void *ask_in_thread(void *user)
{
	struct fs_usage usage;
	struct error *err = NULL;

	(void)user;
	ASSERT_OK(ask("/", LONG_MS, &usage, &err));
	return NULL;
}

START_TEST(all_who_ask_for_the_same_one_get_the_same_answer)
{
	pthread_t threads[N_SAME];

	pthread_mutex_lock(&hang);
	for (int i = 0; i < N_SAME; i++)
		ck_assert_int_eq(pthread_create(&threads[i], NULL, ask_in_thread, NULL), 0);
	while (n_asked == 0)
		sched_yield();
	pthread_mutex_unlock(&hang);
	for (int i = 0; i < N_SAME; i++)
		ck_assert_int_eq(pthread_join(threads[i], NULL), 0);
}
END_TEST

int main(void)
{
	TCase *tcase = tcase_create("fs_usage");
	Suite *suite = suite_create("os/fs_usage");

	suite_add_tcase(suite, tcase);
	tcase_add_checked_fixture(tcase, set_up, tear_down);
	tcase_add_test(tcase, numbers_are_those_of_the_kernel);
	tcase_add_test(tcase, what_hangs_costs_one_thread_and_holds_nobody_longer_than_told);
	tcase_add_test(tcase, helper_that_comes_back_after_the_end_releases_what_is_left);
	tcase_add_test(tcase, all_who_ask_for_the_same_one_get_the_same_answer);
	return unit_runner_finish(srunner_create(suite));
}
