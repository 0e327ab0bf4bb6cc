/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unit.h - what every unit test needs around check: the main function and assertions about `struct error`.
 *
 * Tests run in a process of their own (check's default), which exits: the leak checker sees each of them.
 */
#pragma once

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/error.h"

/** unit_runner_finish() - run @runner and destroy it. Return: exit status of the test program. */
static inline int unit_runner_finish(SRunner *runner)
{
	srunner_run_all(runner, CK_NORMAL);
	int failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

/** unit_run() - run @n tests as the suite @name. Return: exit status of the test program. */
static inline int unit_run(const char *name, const TTest *const *tests, size_t n)
{
	Suite *suite = suite_create(name);
	TCase *tcase = tcase_create(name);

	suite_add_tcase(suite, tcase);
	for (size_t i = 0; i < n; i++)
		tcase_add_test(tcase, tests[i]);
	return unit_runner_finish(srunner_create(suite));
}

/** UNIT_MAIN() - main function of a test program; after the name come all its tests. */
#define UNIT_MAIN(name, ...)                                                                                 \
	int main(void)                                                                                       \
	{                                                                                                    \
		const TTest *const tests[] = {__VA_ARGS__};                                                  \
		return unit_run((name), tests, ARRAY_SIZE(tests));                                           \
	}

/** ASSERT_OK() - @call, which reports into the local variable err, succeeds. */
#define ASSERT_OK(call)                                                                                      \
	do {                                                                                                 \
		int rc_ = (call);                                                                            \
		ck_assert_msg(rc_ == 0 && !err, "%s: %d, %s", #call, rc_, err ? err->msg : "no error");      \
	} while (0)

/**
 * ASSERT_FAILS() - @call, which reports into the local variable err, fails with @error_code and a message
 * that contains @text. err is cleared.
 */
#define ASSERT_FAILS(call, error_code, text)                                                                 \
	do {                                                                                                 \
		int rc_ = (call);                                                                            \
		ck_assert_msg(rc_ == -1 && err, "%s: %d, did not fail", #call, rc_);                         \
		ck_assert_msg(err->code == (error_code), "%s: code is %s", #call, err_code_name(err->code)); \
		ck_assert_msg(strstr(err->msg, (text)), "%s: \"%s\" lacks \"%s\"", #call, err->msg, (text)); \
		error_clear(&err);                                                                           \
	} while (0)
