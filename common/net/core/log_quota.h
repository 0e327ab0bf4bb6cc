/* SPDX-License-Identifier: Apache-2.0 */
/*
 * log_quota.h - how many lines per second a peer can make a program log, so that whoever floods it does not
 * fill the disk. What is not shown is counted, and told when its second is over, or at the end.
 *
 * Threads: the loop's; nothing blocks.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "net/core/loop.h"

struct log_quota_config {
	struct loop *loop;      /* borrowed */
	unsigned max;           /* lines per second */
	const char *missed_msg; /* of the line that tells how many were not shown; static */
	const char *server;     /* for that line, static; NULL: not told */
};

struct log_quota;

/** log_quota_new() - nothing was logged yet. Return: never NULL; log_quota_free(). */
struct log_quota *log_quota_new(const struct log_quota_config *config);

/** log_quota_free() - logs how many lines were not shown. NULL is allowed. */
void log_quota_free(struct log_quota *q);

/** log_quota_take() - ask for one line. @now_ns: of clock_ns(). Return: whether it may be shown. */
bool log_quota_take(struct log_quota *q, uint64_t now_ns);
