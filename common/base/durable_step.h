/* SPDX-License-Identifier: Apache-2.0 */
/*
 * durable_step.h - named points at durable actions, at which tests stop or kill the process, or cut the
 * power.
 *
 * Every call that changes what outlives the process is made through STEP(), which scripts/checks/steps sees
 * to. Compiled in only with PMEM_STEPS (not in the release preset): without, STEP() is the call and nothing
 * else. With it there is a point before the call, NAME.before, and one after it, NAME.after. The environment
 * says what happens there:
 *
 *   PMEM_STEP_TRACE=FILE       a line "NUMBER POINT HIT" is appended for each point that is reached: how many
 *                              points have been, and how often this one
 *   PMEM_STOP_AT=POINT[:HIT]   the process stops itself (SIGSTOP) when it comes to the point (for the HITth
 *                              time; default 1)
 *   PMEM_KILL_AT=POINT[:HIT]   it kills itself there (SIGKILL); also
 *   PMEM_KILL_AT=NUMBER        at the point of that number
 *
 * Threads: safe; the points of all are counted together. Blocks: never, but for the trace.
 */
#pragma once

#ifdef PMEM_STEPS

/** step_reached() - do what the environment says for a point; errno is kept. @point: a constant */
void step_reached(const char *point);

#define STEP_POINT(point) step_reached(point)

#define STEP(name, call)                                                                                     \
	__extension__({                                                                                      \
		step_reached(name ".before");                                                                \
		__typeof__(call) step_result_ = (call);                                                      \
		step_reached(name ".after");                                                                 \
		step_result_;                                                                                \
	})
#else
#define STEP_POINT(point)                                                                                    \
	do {                                                                                                 \
	} while (0)
#define STEP(name, call) (call)
#endif
