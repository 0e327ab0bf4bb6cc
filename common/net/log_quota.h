/*
 * log_quota.h - how many lines per second a peer can make a program log, so that whoever floods it does not
 * fill the disk. What is not shown is counted.
 *
 * Threads: one owner at a time; nothing blocks.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Zeroed is unused. */
struct log_quota {
	uint64_t since_ns; /* of the current second */
	uint64_t n;        /* lines in it, shown or not */
};

/**
 * log_quota_take() - ask for one line.
 * @max:        lines per second
 * @now_ns:     of clock_ns()
 * @ret_missed: lines that were not shown and are told of with this one; mostly 0
 *
 * Return: whether the line may be shown.
 */
bool log_quota_take(struct log_quota *q, unsigned max, uint64_t now_ns, uint64_t *ret_missed);
