/* SPDX-License-Identifier: Apache-2.0 */
#include "base/mem.h"
#include "net/grpc/grpc_message.h"
#include "net/http2/h2.h"
#include "unit/unit.h"

static struct span bytes_of(const void *p, size_t n)
{
	return (struct span){p, n};
}

#define BYTES(literal) bytes_of(literal, sizeof(literal) - 1)

START_TEST(a_message_may_be_split_anywhere)
{
	CLEANUP(error_freep) struct error *err = NULL;
	struct span whole = BYTES("\0\0\0\0\x03"
				  "abc");

	for (size_t first = 0; first <= whole.n; first++) {
		struct grpc_assembler a;

		grpc_assembler_init(&a);
		ASSERT_OK(grpc_assembler_feed(&a, bytes_of(whole.p, first), &err));
		ck_assert(a.complete == (first == whole.n));
		ASSERT_OK(grpc_assembler_feed(&a, bytes_of(whole.p + first, whole.n - first), &err));
		ck_assert(a.complete);
		ck_assert_str_eq(buf_str(&a.message), "abc");
		grpc_assembler_done(&a);
	}
}
END_TEST

START_TEST(a_message_may_come_byte_by_byte)
{
	CLEANUP(error_freep) struct error *err = NULL;
	struct span whole = BYTES("\0\0\0\0\x02xy");
	struct grpc_assembler a;

	grpc_assembler_init(&a);
	for (size_t i = 0; i < whole.n; i++) {
		ck_assert(!a.complete);
		ASSERT_OK(grpc_assembler_feed(&a, bytes_of(whole.p + i, 1), &err));
	}
	ck_assert(a.complete);
	ck_assert_str_eq(buf_str(&a.message), "xy");
	grpc_assembler_done(&a);
}
END_TEST

START_TEST(an_empty_message_is_complete_with_its_prefix)
{
	CLEANUP(error_freep) struct error *err = NULL;
	struct grpc_assembler a;

	grpc_assembler_init(&a);
	ASSERT_OK(grpc_assembler_feed(&a, BYTES("\0\0\0\0"), &err));
	ck_assert(!a.complete);
	ASSERT_OK(grpc_assembler_feed(&a, BYTES("\0"), &err));
	ck_assert(a.complete);
	ck_assert_uint_eq(a.message.len, 0);
	ASSERT_OK(grpc_assembler_feed(&a, BYTES(""), &err));
	ASSERT_FAILS(grpc_assembler_feed(&a, BYTES("\0"), &err), ERR_INTERNAL, "more than one message");
	grpc_assembler_done(&a);
}
END_TEST

START_TEST(a_second_message_is_refused_also_in_the_same_bytes)
{
	CLEANUP(error_freep) struct error *err = NULL;
	struct grpc_assembler a;

	grpc_assembler_init(&a);
	ASSERT_FAILS(grpc_assembler_feed(&a, BYTES("\0\0\0\0\x01z\0\0\0\0\0"), &err), ERR_INTERNAL,
		"more than one message");
	grpc_assembler_done(&a);
}
END_TEST

START_TEST(flags_and_length_are_judged_before_anything_is_stored)
{
	static const struct {
		struct span bytes;
		enum err_code code;
		const char *text;
	} cases[] = {
		{{(const uint8_t *)"\1\0\0\0\1", 5}, ERR_UNIMPLEMENTED, "compressed"},
		{{(const uint8_t *)"\2\0\0\0\1", 5}, ERR_INTERNAL, "flags 0x02"},
		{{(const uint8_t *)"\0\0\x40\0\1", 5}, ERR_EXHAUSTED, "4194305"},
		{{(const uint8_t *)"\0\xff\xff\xff\xff", 5}, ERR_EXHAUSTED, "4294967295"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		CLEANUP(error_freep) struct error *err = NULL;
		struct grpc_assembler a;

		grpc_assembler_init(&a);
		ASSERT_FAILS(grpc_assembler_feed(&a, cases[i].bytes, &err), cases[i].code, cases[i].text);
		ck_assert_ptr_null(a.message.data);
		grpc_assembler_done(&a);
	}
}
END_TEST

START_TEST(a_message_of_exactly_4_mib_is_accepted)
{
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(free_charp) char *payload = x_calloc(1, LIMIT_MESSAGE_BYTES);
	struct grpc_assembler a;
	uint8_t prefix[5];

	grpc_prefix(LIMIT_MESSAGE_BYTES, prefix);
	ck_assert_mem_eq(prefix, "\0\0\x40\0\0", 5);
	grpc_assembler_init(&a);
	ASSERT_OK(grpc_assembler_feed(&a, bytes_of(prefix, 5), &err));
	ASSERT_OK(grpc_assembler_feed(&a, bytes_of(payload, LIMIT_MESSAGE_BYTES), &err));
	ck_assert(a.complete);
	ck_assert_uint_eq(a.message.len, LIMIT_MESSAGE_BYTES);
	grpc_assembler_done(&a);
}
END_TEST

START_TEST(the_prefix_is_big_endian)
{
	uint8_t prefix[5];

	grpc_prefix(0x01020304, prefix);
	ck_assert_mem_eq(prefix, "\0\1\2\3\4", 5);
}
END_TEST

UNIT_MAIN("grpc_message", a_message_may_be_split_anywhere, a_message_may_come_byte_by_byte,
	an_empty_message_is_complete_with_its_prefix, a_second_message_is_refused_also_in_the_same_bytes,
	flags_and_length_are_judged_before_anything_is_stored, a_message_of_exactly_4_mib_is_accepted,
	the_prefix_is_big_endian)
