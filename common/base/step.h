/*
 * step.h - named points between durable actions, where a test stops the process to cut the power or kill it.
 *
 * Compiled in only with PMEM_STEPS (the dev and asan presets); shipped programs contain nothing of it. A
 * process whose environment has PMEM_STOP_AT=<name> stops itself (SIGSTOP) when it comes to that point.
 * Threads: safe.
 */
#pragma once

#ifdef PMEM_STEPS

/** step_point() - stop here if the environment says so. @name: the point */
void step_point(const char *name);

#define STEP_POINT(name) step_point(name)
#else
#define STEP_POINT(name)                                                                                     \
	do {                                                                                                 \
	} while (0)
#endif
