/* SPDX-License-Identifier: Apache-2.0 */
/*
 * erase_limit.h - the limit on the speed at which deleted volumes are erased: when the next piece may be
 * written, and how large it is.
 *
 * Threads: the caller excludes others.
 */
#pragma once

#include <stdint.h>

struct erase_limit {
	uint64_t bytes_per_s; /* 0: none */
	uint64_t next_ns;     /* when the next piece may begin */
};

/** erase_limit_reserve() - reserve the time for writing @bytes (at most 64 MiB), after everything that was
 * reserved before. Return: when writing may begin, on the clock of @now_ns. Pure except for @l. */
uint64_t erase_limit_reserve(struct erase_limit *l, uint64_t now_ns, uint64_t bytes);

/** erase_limit_piece() - get how many bytes to write at once: few enough to stop soon, and to share the limit
 * evenly with other erasures. Pure. */
uint64_t erase_limit_piece(const struct erase_limit *l, uint64_t left_bytes);
