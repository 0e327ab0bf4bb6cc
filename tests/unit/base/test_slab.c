/* SPDX-License-Identifier: Apache-2.0 */
#include "base/slab.h"

#include <malloc.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/mem.h"
#include "unit/unit.h"

#define MANY 5000

static size_t held(void)
{
	struct mallinfo2 m = mallinfo2();

	return m.uordblks + m.hblkhd;
}

static bool are_all(const unsigned char *bytes, size_t value, size_t n)
{
	while (n > 0 && bytes[n - 1] == value)
		n--;
	return n == 0;
}

START_TEST(blocks_of_all_sizes_are_zeroed_aligned_and_apart)
{
	CLEANUP(slabs_freep) struct slabs *s = slabs_new();
	unsigned char *blocks[MANY];
	bool ok = true;

	for (int turn = 0; turn < 2; turn++) {
		for (size_t i = 0; i < MANY; i++) {
			size_t n = i % 1200;

			blocks[i] = slabs_alloc(s, n);
			ok &= (uintptr_t)blocks[i] % sizeof(uint64_t) == 0 && are_all(blocks[i], 0, n);
			memset(blocks[i], (int)(i % 251), n);
		}
		for (size_t i = 0; i < MANY; i++) {
			ok &= are_all(blocks[i], i % 251, i % 1200);
			slabs_release(s, blocks[i]);
		}
	}
	slabs_release(s, NULL);
	ck_assert(ok);
}
END_TEST

/* Blocks are released in another order than that in which they were allocated. */
START_TEST(released_blocks_are_used_again_and_given_back)
{
	CLEANUP(slabs_freep) struct slabs *s = slabs_new();
	void *blocks[MANY];
	size_t before = held();
	size_t most = 0;

	for (int turn = 0; turn < 10; turn++) {
		for (size_t i = 0; i < MANY; i++)
			blocks[i] = slabs_alloc(s, 100);
		most = most > 0 ? most : held() - before;
		ck_assert_uint_eq(held() - before, most);
		for (size_t i = 0; i < MANY; i++)
			slabs_release(s, blocks[i * 7 % MANY]);
		ck_assert_uint_lt(held() - before, 3 * MEM_LARGE_BYTES);
	}
	ck_assert_uint_lt(most / MANY, 140);
}
END_TEST

UNIT_MAIN("base/slab", blocks_of_all_sizes_are_zeroed_aligned_and_apart,
	released_blocks_are_used_again_and_given_back)
