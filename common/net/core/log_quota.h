/* SPDX-License-Identifier: Apache-2.0 */
/*
 * log_quota.h - limits how many lines per second peers can make a program log, so that a flood of requests
 * does not fill the disk. Lines beyond the limit are counted, and their number is logged when the second is
 * over, or at the end.
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
	const char *missed_msg; /* the message of the line that says how many were left out; static */
	const char *server;     /* for that line, static; NULL: left out */
};

struct log_quota;

/** log_quota_new() - create a quota of which nothing is used yet. Return: never NULL; log_quota_free(). */
struct log_quota *log_quota_new(const struct log_quota_config *config);

/** log_quota_free() - log how many lines were left out, and release the quota. NULL is allowed. */
void log_quota_free(struct log_quota *q);

/** log_quota_take() - use one line of the quota. @now_ns: of clock_ns(). Return: whether the line may be
 * logged. */
bool log_quota_take(struct log_quota *q, uint64_t now_ns);
