/* SPDX-License-Identifier: Apache-2.0 */
/* Strings of packed messages, written by hand byte for byte. */
#include "csi.pb-c.h"

#include "net/grpc/grpc_protobuf.h"
#include "unit/unit.h"

static struct error *err;

static int check(const ProtobufCMessageDescriptor *type, const void *p, size_t n)
{
	return grpc_protobuf_check_text(type, (struct span){p, n}, &err);
}

#define CHECK(type, literal) check(&csi__v1__##type##__descriptor, literal, sizeof(literal) - 1)

START_TEST(text_of_any_depth_passes)
{
	ASSERT_OK(CHECK(create_volume_request, ""));
	ASSERT_OK(CHECK(create_volume_request, "\x0a\x00"));
	/* name, capability with mount and fs_type, parameter */
	ASSERT_OK(CHECK(create_volume_request, "\x0a\x02\xc3\xbc\x1a\x08\x12\x06\x0a\x04"
					       "ext4\x22\x06\x0a\x01k\x12\x01v"));
	/* unknown fields of every wire type, the longest of them not text */
	ASSERT_OK(CHECK(delete_volume_request, "\x78\x01\x7a\x02\xff\x00\x79"
					       "12345678\x7d"
					       "1234"));
	/* a known string in another wire type is not text; unpacking judges it */
	ASSERT_OK(CHECK(delete_volume_request, "\x08\x01"));
}
END_TEST

START_TEST(a_nul_is_refused_by_the_name_of_its_field)
{
	ASSERT_FAILS(CHECK(delete_volume_request, "\x0a\x03v\x00w"), ERR_INVALID_ARGUMENT,
		"volume_id contains U+0000");
	ASSERT_FAILS(CHECK(delete_volume_request, "\x0a\x01\x00"), ERR_INVALID_ARGUMENT, "volume_id");
	/* replaced by a later value, and refused all the same */
	ASSERT_FAILS(
		CHECK(delete_volume_request, "\x0a\x01\x00\x0a\x01v"), ERR_INVALID_ARGUMENT, "volume_id");
	ASSERT_FAILS(CHECK(create_volume_request, "\x1a\x05\x12\x03\x0a\x01\x00"), ERR_INVALID_ARGUMENT,
		"volume_capabilities.mount.fs_type contains U+0000");
	ASSERT_FAILS(CHECK(create_volume_request, "\x22\x03\x12\x01\x00"), ERR_INVALID_ARGUMENT,
		"parameters.value");
}
END_TEST

START_TEST(what_is_not_utf8_is_refused_by_the_name_of_its_field)
{
	ASSERT_FAILS(CHECK(delete_volume_request, "\x0a\x02v\xff"), ERR_INVALID_ARGUMENT,
		"volume_id is not UTF-8");
	/* the character goes on behind the end of the field */
	ASSERT_FAILS(CHECK(delete_volume_request, "\x0a\x01\xc3\x80\x01"), ERR_INVALID_ARGUMENT, "volume_id");
	/* topology entries three levels down */
	ASSERT_FAILS(CHECK(create_volume_request, "\x3a\x08\x12\x06\x0a\x04\x0a\x02\xc0\x80"),
		ERR_INVALID_ARGUMENT, "accessibility_requirements.preferred.segments.key is not UTF-8");
}
END_TEST

START_TEST(what_is_no_message_is_malformed)
{
	ASSERT_FAILS(CHECK(delete_volume_request, "\x0a"), ERR_INTERNAL, "malformed");
	ASSERT_FAILS(CHECK(delete_volume_request, "\x0a\x02v"), ERR_INTERNAL, "malformed");
	ASSERT_FAILS(CHECK(delete_volume_request, "\x80"), ERR_INTERNAL, "malformed");
	ASSERT_FAILS(CHECK(delete_volume_request, "\x02\x00"), ERR_INTERNAL, "malformed");
	ASSERT_FAILS(CHECK(delete_volume_request, "\x0b\x0c"), ERR_INTERNAL, "malformed");
	ASSERT_FAILS(CHECK(delete_volume_request, "\x79"
						  "1234567"),
		ERR_INTERNAL, "malformed");
	ASSERT_FAILS(CHECK(delete_volume_request, "\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"),
		ERR_INTERNAL, "malformed");
	ASSERT_FAILS(CHECK(delete_volume_request, "\x78\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01"),
		ERR_INTERNAL, "malformed");
}
END_TEST

UNIT_MAIN("net/grpc/grpc_message", text_of_any_depth_passes, a_nul_is_refused_by_the_name_of_its_field,
	what_is_not_utf8_is_refused_by_the_name_of_its_field, what_is_no_message_is_malformed)
