/* SPDX-License-Identifier: Apache-2.0 */
#include "pacing/erase_limit.h"

#include "base/clock.h"

#define PIECE_MIN    (64ULL << 10)
#define PIECE_MAX    (64ULL << 20)
#define PIECES_PER_S 8

uint64_t erase_limit_reserve(struct erase_limit *l, uint64_t now_ns, uint64_t bytes)
{
	uint64_t begin_ns = l->next_ns > now_ns ? l->next_ns : now_ns;

	l->next_ns = begin_ns + (l->bytes_per_s > 0 ? bytes * NS_PER_S / l->bytes_per_s : 0);
	return begin_ns;
}

uint64_t erase_limit_piece(const struct erase_limit *l, uint64_t left_bytes)
{
	uint64_t piece = l->bytes_per_s > 0 ? l->bytes_per_s / PIECES_PER_S : PIECE_MAX;

	piece -= piece % PIECE_MIN;
	if (piece < PIECE_MIN)
		piece = PIECE_MIN;
	if (piece > PIECE_MAX)
		piece = PIECE_MAX;
	return left_bytes < piece ? left_bytes : piece;
}
