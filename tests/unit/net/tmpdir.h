/*
 * tmpdir.h - a folder of its own for each test, removed afterwards; short enough for paths of sockets.
 */
#pragma once

#include <ftw.h>
#include <stdio.h>

#include "unit/unit.h"

static char tmpdir[] = "/tmp/pmem-test-XXXXXX";

/** tmpdir_enter() - fixture. */
static inline void tmpdir_enter(void)
{
	ck_assert_ptr_nonnull(mkdtemp(tmpdir));
}

static inline int tmpdir_visit(const char *path, const struct stat *st, int type, struct FTW *at)
{
	(void)st;
	(void)type;
	(void)at;
	return remove(path);
}

static inline void tmpdir_leave(void)
{
	ck_assert_int_eq(nftw(tmpdir, tmpdir_visit, 16, FTW_DEPTH | FTW_PHYS), 0);
}

/** tmpdir_run() - run @n tests as the suite @name, each in a folder. Return: exit status of the test program.
 */
static inline int tmpdir_run(const char *name, const TTest *const *tests, size_t n)
{
	Suite *suite = suite_create(name);
	TCase *tcase = tcase_create(name);

	suite_add_tcase(suite, tcase);
	tcase_add_checked_fixture(tcase, tmpdir_enter, tmpdir_leave);
	tcase_set_timeout(tcase, 60);
	for (size_t i = 0; i < n; i++)
		tcase_add_test(tcase, tests[i]);
	return unit_runner_finish(srunner_create(suite));
}

/** TMPDIR_MAIN() - as UNIT_MAIN(), for tests that each need a folder. */
#define TMPDIR_MAIN(name, ...)                                                                               \
	int main(void)                                                                                       \
	{                                                                                                    \
		const TTest *const tests[] = {__VA_ARGS__};                                                  \
		return tmpdir_run((name), tests, ARRAY_SIZE(tests));                                         \
	}
