/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wait_log.h - when to log what a program waits for: at once, and then rarely, so that nothing waits in
 * silence and nothing fills the log. Threads: one owner at a time; nothing blocks.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define WAIT_LOG_SAME_MS  600000 /* between lines that say the same */
#define WAIT_LOG_OTHER_MS 60000  /* between lines that give another reason */

struct wait_log {
	char *why; /* as it was logged last; NULL: nothing is waited for */
	uint64_t since_ns;
	uint64_t logged_ns;
};

/** wait_log_due() - whether it is to be logged that one still waits, because of @why. @now_ns: of clock_ns().
 */
bool wait_log_due(struct wait_log *w, const char *why, uint64_t now_ns);

/** wait_log_over() - nothing is waited for any more. Return: whether anything was. */
bool wait_log_over(struct wait_log *w);
