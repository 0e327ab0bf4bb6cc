/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bucket.h - a token bucket: how often something may be done. Threads: one owner at a time.
 */
#pragma once

#include <stdint.h>

struct bucket {
	uint64_t interval_ns; /* between two on the long run; 0: no limit */
	uint64_t burst_ns;    /* as many at once, in intervals */
	uint64_t full_ns;     /* when the bucket is full again */
};

/** bucket_init() - a full one. @per_second: 0 is no limit; @burst: at least 1 is taken. */
void bucket_init(struct bucket *b, unsigned per_second, unsigned burst);

/** bucket_take() - one now. Return: 0, or how long to wait before asking again, in nanoseconds; nothing
 * was taken then. */
uint64_t bucket_take(struct bucket *b, uint64_t now_ns);

/** bucket_give_back() - return a token that was taken for a request that turned out not to count. */
void bucket_give_back(struct bucket *b);

/** bucket_wait() - get what bucket_take() would return, without taking a token. */
uint64_t bucket_wait(const struct bucket *b, uint64_t now_ns);

/** bucket_charge() - take a token for a request that was made already. The bucket may be empty: then callers
 * of bucket_take() wait longer. */
void bucket_charge(struct bucket *b, uint64_t now_ns);
