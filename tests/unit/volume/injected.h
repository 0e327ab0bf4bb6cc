/* SPDX-License-Identifier: Apache-2.0 */
/*
 * injected.h - the fixture of volumes, in memory and with calls that can fail.
 */
#pragma once

#include "unit/inject/sweep.h"
#include "unit/volume/fixture.h"

/** injected_enter() - before a set-up of the fixture: everything lies on a tmpfs, where flushing costs
 * nothing. */
void injected_enter(void);

/** injected_set_up() - injected_enter(), fixture_folder(), and devices can fail. */
void injected_set_up(void);

/** injected_folder() - of all that the test makes; lives until the next call. */
const char *injected_folder(void);

/** injected_run() - run @n tests between injected_set_up() and fixture_done(). Return: exit status. */
int injected_run(const char *name, void (*setup)(void), const TTest *const *tests, size_t n);

#define INJECTED_MAIN(name, setup, ...)                                                                      \
	int main(void)                                                                                       \
	{                                                                                                    \
		const TTest *const tests[] = {__VA_ARGS__};                                                  \
		return injected_run((name), (setup), tests, ARRAY_SIZE(tests));                              \
	}
