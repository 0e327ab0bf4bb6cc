/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tmpdir.h - a folder of its own for each test, removed afterwards; short enough for paths of sockets.
 */
#pragma once

#include "unit/unit.h"

/** the folder, while a test runs */
extern char tmpdir[];

/** tmpdir_run() - run @n tests as the suite @name, each in a folder. Return: exit status of the test program.
 */
int tmpdir_run(const char *name, const TTest *const *tests, size_t n);

/** TMPDIR_MAIN() - as UNIT_MAIN(), for tests that each need a folder. */
#define TMPDIR_MAIN(name, ...)                                                                               \
	int main(void)                                                                                       \
	{                                                                                                    \
		const TTest *const tests[] = {__VA_ARGS__};                                                  \
		return tmpdir_run((name), tests, ARRAY_SIZE(tests));                                         \
	}
