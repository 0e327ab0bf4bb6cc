/* SPDX-License-Identifier: Apache-2.0 */
#include "tmpdir.h"

#include <ftw.h>
#include <stdio.h>

/* also for the slowest of the sanitizers on a busy machine */
#define TIMEOUT_S 60

char tmpdir[] = "/tmp/pmem-test-XXXXXX";

static void enter(void)
{
	ck_assert_ptr_nonnull(mkdtemp(tmpdir));
}

static int visit(const char *path, const struct stat *st, int type, struct FTW *at)
{
	(void)st;
	(void)type;
	(void)at;
	return remove(path);
}

static void leave(void)
{
	ck_assert_int_eq(nftw(tmpdir, visit, 16, FTW_DEPTH | FTW_PHYS), 0);
}

int tmpdir_run(const char *name, const TTest *const *tests, size_t n)
{
	Suite *suite = suite_create(name);
	TCase *tcase = tcase_create(name);

	suite_add_tcase(suite, tcase);
	tcase_add_checked_fixture(tcase, enter, leave);
	tcase_set_timeout(tcase, TIMEOUT_S);
	for (size_t i = 0; i < n; i++)
		tcase_add_test(tcase, tests[i]);
	return unit_runner_finish(srunner_create(suite));
}
