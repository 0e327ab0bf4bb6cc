/* SPDX-License-Identifier: Apache-2.0 */
#include "base/buf.h"
#include "unit/unit.h"

START_TEST(an_empty_buffer_is_an_empty_string)
{
	struct buf b = BUF_INIT(10);

	ck_assert_str_eq(buf_str(&b), "");
	ck_assert_uint_eq(buf_span(&b).n, 0);
	buf_add(&b, NULL, 0);
	buf_consume(&b, 0);
	ck_assert_str_eq(buf_str(&b), "");
	buf_done(&b);
	buf_done(NULL);
}
END_TEST

START_TEST(additions_come_one_after_the_other)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(100);

	buf_adds(&b, "ab");
	buf_addc(&b, 'c');
	buf_addf(&b, "%d-%s", 4, "x");
	buf_add(&b, "\0z", 2);
	ck_assert_uint_eq(b.len, 8);
	ck_assert_mem_eq(b.data, "abc4-x\0z", 9);
}
END_TEST

START_TEST(the_limit_is_reached_exactly)
{
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(buf_done) struct buf b = BUF_INIT(3);

	buf_adds(&b, "abc");
	ASSERT_OK(buf_check(&b, "reply", &err));
	ck_assert_str_eq(buf_str(&b), "abc");
	buf_addc(&b, 'd');
	ASSERT_FAILS(buf_check(&b, "reply", &err), ERR_EXHAUSTED, "reply: more than 3 bytes");
	ck_assert_str_eq(buf_str(&b), "abc");
}
END_TEST

START_TEST(nothing_is_added_after_an_overflow_until_the_reset)
{
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(buf_done) struct buf b = BUF_INIT(5);

	buf_adds(&b, "abc");
	buf_adds(&b, "def");
	buf_addc(&b, 'g');
	ck_assert_str_eq(buf_str(&b), "abc");
	ck_assert_ptr_null(buf_reserve(&b, 1));
	buf_reset(&b);
	ck_assert_str_eq(buf_str(&b), "");
	buf_adds(&b, "defgh");
	ASSERT_OK(buf_check(&b, "reply", &err));
	ck_assert_str_eq(buf_str(&b), "defgh");
}
END_TEST

START_TEST(content_that_is_taken_leaves_a_buffer_of_the_same_limit)
{
	struct buf b = BUF_INIT(5);

	buf_adds(&b, "abc");
	CLEANUP(buf_done) struct buf taken = buf_take(&b);
	ck_assert_str_eq(buf_str(&taken), "abc");
	ck_assert_str_eq(buf_str(&b), "");
	buf_adds(&b, "12345");
	ck_assert_str_eq(buf_str(&b), "12345");
	buf_adds(&b, "6");
	ck_assert(b.overflowed);
	buf_done(&b);
}
END_TEST

START_TEST(long_formatted_text_is_whole_or_absent)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(1000);

	buf_addf(&b, "%0255d", 1);
	buf_addf(&b, "%0256d", 2);
	buf_addf(&b, "%0489d", 3);
	ck_assert_uint_eq(b.len, 1000);
	ck_assert(!b.overflowed);
	ck_assert_int_eq(b.data[254], '1');
	ck_assert_int_eq(b.data[510], '2');
	ck_assert_int_eq(b.data[999], '3');
	buf_reset(&b);
	buf_addf(&b, "%01001d", 4);
	ck_assert(b.overflowed);
	ck_assert_uint_eq(b.len, 0);
}
END_TEST

START_TEST(many_small_additions_grow_it)
{
	static char expected[100000];
	CLEANUP(buf_done) struct buf b = BUF_INIT(sizeof(expected));

	for (unsigned i = 0; i < sizeof(expected); i++) {
		expected[i] = (char)('a' + i % 26);
		buf_addc(&b, expected[i]);
	}
	ck_assert(!b.overflowed);
	ck_assert_uint_eq(b.len, sizeof(expected));
	ck_assert_mem_eq(b.data, expected, sizeof(expected));
	ck_assert_uint_le(b.cap, 100001);
}
END_TEST

START_TEST(consume_moves_the_rest_to_the_front)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(10);

	buf_adds(&b, "0123456789");
	buf_consume(&b, 4);
	ck_assert_str_eq(buf_str(&b), "456789");
	buf_adds(&b, "abcd");
	ck_assert_str_eq(buf_str(&b), "456789abcd");
	buf_consume(&b, 10);
	ck_assert_str_eq(buf_str(&b), "");
}
END_TEST

START_TEST(reserve_and_commit_write_in_place)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(6);

	buf_adds(&b, "ab");
	uint8_t *to = buf_reserve(&b, 4);
	ck_assert_ptr_nonnull(to);
	memcpy(to, "cdef", 4);
	buf_commit(&b, 3);
	ck_assert_str_eq(buf_str(&b), "abcde");
	ck_assert_ptr_null(buf_reserve(&b, 2));
	ck_assert(!b.overflowed);
	ck_assert_ptr_null(buf_reserve(&b, SIZE_MAX));
	ck_assert_ptr_nonnull(buf_reserve(&b, 1));
}
END_TEST

START_TEST(a_finished_buffer_is_reusable_under_the_same_limit)
{
	struct buf b = BUF_INIT(2);

	buf_adds(&b, "abc");
	buf_done(&b);
	ck_assert_ptr_null(b.data);
	buf_adds(&b, "ab");
	ck_assert_str_eq(buf_str(&b), "ab");
	buf_addc(&b, 'c');
	ck_assert(b.overflowed);
	buf_done(&b);
}
END_TEST

UNIT_MAIN("base/buf", an_empty_buffer_is_an_empty_string, additions_come_one_after_the_other,
	the_limit_is_reached_exactly, nothing_is_added_after_an_overflow_until_the_reset,
	content_that_is_taken_leaves_a_buffer_of_the_same_limit, long_formatted_text_is_whole_or_absent,
	many_small_additions_grow_it, consume_moves_the_rest_to_the_front, reserve_and_commit_write_in_place,
	a_finished_buffer_is_reusable_under_the_same_limit)
