/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shutdown.h - the orderly end of a server. It begins once, after a signal (loop_on_stop()) or when the
 * server itself decides to end. The loop stops when all parts of the server have ended. If they do not end
 * within the grace period, the process exits with a failure.
 *
 * Threads: the loop's. Nothing waits.
 */
#pragma once

#include "net/core/loop.h"

struct shutdown;

struct shutdown_config {
	struct loop *loop;
	uint64_t grace_ms;
	loop_fn begin;   /* stops accepting work, and announces with shutdown_expect() how many parts have to
			    end */
	loop_fn overdue; /* logs what is still running */
	void *user;      /* argument of both */
};

/** shutdown_new() - catch the signals. Return: 0, or -1 with ERR_INTERNAL. @ret: shutdown_free(), after the
 * loop has stopped. */
int shutdown_new(const struct shutdown_config *config, struct shutdown **ret, struct error **err) MUST_CHECK;

/** shutdown_free() - NULL is allowed. */
void shutdown_free(struct shutdown *s);
DEFINE_CLEANUP(struct shutdown *, shutdown_free);

/** shutdown_begin() - end, as after a signal. Repeats change nothing. */
void shutdown_begin(struct shutdown *s);

/** shutdown_has_begun() - whether the server is ending. */
bool shutdown_has_begun(const struct shutdown *s);

/** shutdown_expect() - @parts more parts will call shutdown_part_ended(). Only from begin() on. */
void shutdown_expect(struct shutdown *s, unsigned parts);

/** shutdown_part_ended() - one of shutdown_expect() has ended; the last one stops the loop. @user: the struct
 * shutdown, so that this can be the callback of anything that drains. */
void shutdown_part_ended(void *user);
