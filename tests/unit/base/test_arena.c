/* SPDX-License-Identifier: Apache-2.0 */
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "unit/unit.h"

START_TEST(pieces_of_all_sizes_are_aligned_and_apart)
{
	CLEANUP(arena_freep) struct arena *a = arena_new(SIZE_MAX);
	uint8_t *pieces[300];

	for (size_t i = 0; i < ARRAY_SIZE(pieces); i++) {
		size_t n = i * 17;

		pieces[i] = arena_try_alloc(a, n);
		ck_assert_ptr_nonnull(pieces[i]);
		ck_assert_uint_eq((uintptr_t)pieces[i] % _Alignof(max_align_t), 0);
		memset(pieces[i], (int)(i & 0xff), n);
	}
	for (size_t i = 0; i < ARRAY_SIZE(pieces); i++) {
		uint8_t expected[17 * ARRAY_SIZE(pieces)];

		memset(expected, (int)(i & 0xff), sizeof(expected));
		ck_assert_mem_eq(pieces[i], expected, i * 17);
	}
}
END_TEST

START_TEST(the_limit_is_reached_exactly)
{
	CLEANUP(arena_freep) struct arena *a = arena_new(10000);

	ck_assert_ptr_nonnull(arena_try_alloc(a, 1));
	ck_assert_ptr_null(arena_try_alloc(a, 10000));
	ck_assert_ptr_nonnull(arena_try_alloc(a, 9998));
	ck_assert_ptr_nonnull(arena_try_alloc(a, 1));
	ck_assert_ptr_null(arena_try_alloc(a, 1));
}
END_TEST

START_TEST(empty_pieces_count_too)
{
	CLEANUP(arena_freep) struct arena *a = arena_new(2);

	void *first = arena_try_alloc(a, 0);
	void *second = arena_try_alloc(a, 0);
	ck_assert_ptr_nonnull(first);
	ck_assert_ptr_nonnull(second);
	ck_assert_ptr_ne(first, second);
	ck_assert_ptr_null(arena_try_alloc(a, 0));
}
END_TEST

START_TEST(absurd_sizes_are_refused)
{
	CLEANUP(arena_freep) struct arena *a = arena_new(SIZE_MAX);

	ck_assert_ptr_null(arena_try_alloc(a, SIZE_MAX));
	ck_assert_ptr_null(arena_try_alloc(a, (size_t)PTRDIFF_MAX + 1));
}
END_TEST

START_TEST(our_own_pieces_are_zeroed_and_ignore_the_limit)
{
	CLEANUP(arena_freep) struct arena *a = arena_new(4000);

	memset(arena_try_alloc(a, 4000), 0xff, 4000);
	static const uint8_t zeroes[4000];
	ck_assert_mem_eq(arena_alloc(a, 4000), zeroes, 4000);
	ck_assert_str_eq(arena_strdup(a, "text"), "text");
	ck_assert_ptr_null(arena_strdup(a, NULL));
	ck_assert_ptr_null(arena_try_alloc(a, 1));
}
END_TEST

UNIT_MAIN("base/arena", pieces_of_all_sizes_are_aligned_and_apart, the_limit_is_reached_exactly,
	empty_pieces_count_too, absurd_sizes_are_refused, our_own_pieces_are_zeroed_and_ignore_the_limit)
