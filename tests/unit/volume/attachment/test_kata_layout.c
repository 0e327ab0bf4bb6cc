/* SPDX-License-Identifier: Apache-2.0 */
/* The head of an image, compared with what others make of the same numbers. */
#include "volume/attachment/kata_layout.h"

#include <string.h>

#include "base/mem.h"
#include "unit/unit.h"

#define CHECKSUM_AT 4088
#define PFN_AT      4096

/* The expected checksums are those of the Go driver's tests, which have them from ndctl. */
START_TEST(checksums_are_those_of_ndctl)
{
	static const struct {
		uint64_t data_bytes;
		uint32_t align_bytes;
		uint8_t checksum[8];
	} cases[] = {{1024, 2048, {0x30, 0x44, 0x54, 0xe3, 0x2b, 0x23, 0xea, 0x6c}},
		{1, 2, {0x33, 0x38, 0x54, 0xe3, 0xf3, 0x0e, 0xbb, 0x6c}},
		{2U << 20, 2U << 20, {0x30, 0x38, 0x94, 0xe3, 0x2b, 0x03, 0x5b, 0x68}}};
	uint8_t sb[4096];

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		kata_layout_pfn(cases[i].data_bytes, cases[i].align_bytes, sb);
		ck_assert_mem_eq(sb + CHECKSUM_AT, cases[i].checksum, sizeof(cases[i].checksum));
	}
}
END_TEST

static uint32_t sectors_of(const uint8_t *head)
{
	uint32_t n;

	memcpy(&n, head + 458, sizeof(n));
	return n;
}

START_TEST(partition_reaches_from_the_file_system_to_the_end)
{
	static const uint8_t begin[] = {0x00, 0x10, 0x00, 0x00};
	uint8_t head[KATA_HEAD_BYTES];

	kata_layout_write(64ULL << 20, head);
	ck_assert_mem_eq(head + 454, begin, sizeof(begin));
	ck_assert_uint_eq(sectors_of(head), (62U << 20) / 512);
	ck_assert_uint_eq(head[450], 0x83);
	ck_assert_uint_eq(head[510], 0x55);
	ck_assert_uint_eq(head[511], 0xaa);
	/* three further ones, which are none */
	for (size_t i = 462; i < 510; i++)
		ck_assert_uint_eq(head[i], 0);
	kata_layout_write(4ULL << 40, head);
	ck_assert_uint_eq(sectors_of(head), UINT32_MAX);
}
END_TEST

START_TEST(image_is_known_by_its_superblock)
{
	uint8_t head[KATA_HEAD_BYTES];

	kata_layout_write(64ULL << 20, head);
	ck_assert(kata_layout_is_image(head));
	head[PFN_AT + 1] ^= 1;
	ck_assert(!kata_layout_is_image(head));
	kata_layout_write(64ULL << 20, head);
	head[PFN_AT + 56] ^= 1;
	ck_assert(!kata_layout_is_image(head));
}
END_TEST

UNIT_MAIN("kata_layout", checksums_are_those_of_ndctl, partition_reaches_from_the_file_system_to_the_end,
	image_is_known_by_its_superblock)
