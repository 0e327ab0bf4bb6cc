/* SPDX-License-Identifier: Apache-2.0 */
/* The judgement of a label area by its bytes. */
#include "pmem/nd/label_area.h"

#include <string.h>

#include "unit/unit.h"

#define AREA_BYTES   (128U << 10)
#define LABEL_OFFSET 512 /* behind two index blocks of 256 bytes, as for 128 KiB */

static uint8_t area[AREA_BYTES];

static void fill(uint8_t value)
{
	memset(area, value, sizeof(area));
}

/* An index block as ndctl init-labels writes it, as far as it is looked at. */
static void write_index(uint64_t label_offset)
{
	memcpy(area, LABEL_INDEX_SIGNATURE, sizeof(LABEL_INDEX_SIGNATURE));
	for (unsigned i = 0; i < 8; i++)
		area[48 + i] = (uint8_t)(label_offset >> 8 * i);
	memset(area + 72, 0xff, 128);
}

START_TEST(each_byte_counts)
{
	static const size_t places[] = {0, 100, LABEL_OFFSET, AREA_BYTES / 2, AREA_BYTES - 1};

	for (unsigned value = 0; value <= 0xff; value += 0xff) {
		fill((uint8_t)value);
		ck_assert_int_eq(label_area_judge(area, sizeof(area), sizeof(area)), LABEL_AREA_BLANK);
		for (size_t i = 0; i < sizeof(places) / sizeof(*places); i++) {
			area[places[i]] ^= 1;
			ck_assert_int_eq(label_area_judge(area, sizeof(area), sizeof(area)), LABEL_AREA_USED);
			area[places[i]] ^= 1;
		}
	}
	ck_assert_int_eq(label_area_judge(area, 0, 0), LABEL_AREA_NONE);
}
END_TEST

START_TEST(index_without_labels_is_empty)
{
	for (unsigned value = 0; value <= 0xff; value += 0xff) {
		fill((uint8_t)value);
		write_index(LABEL_OFFSET);
		ck_assert_int_eq(label_area_judge(area, sizeof(area), sizeof(area)), LABEL_AREA_EMPTY);
		area[LABEL_OFFSET] ^= 1;
		ck_assert_int_eq(label_area_judge(area, sizeof(area), sizeof(area)), LABEL_AREA_USED);
		area[LABEL_OFFSET] ^= 1;
		area[AREA_BYTES - 1] ^= 1;
		ck_assert_int_eq(label_area_judge(area, sizeof(area), sizeof(area)), LABEL_AREA_USED);
	}
}
END_TEST

/* The offset in an index block may not hide labels. */
START_TEST(offset_of_labels_is_not_trusted)
{
	static const uint64_t offsets[] = {
		0, 1, 256, 64U << 10, AREA_BYTES - 1, AREA_BYTES, UINT64_MAX, 1ULL << 32};

	for (size_t i = 0; i < sizeof(offsets) / sizeof(*offsets); i++) {
		fill(0);
		write_index(offsets[i]);
		ck_assert_int_eq(label_area_judge(area, sizeof(area), sizeof(area)), LABEL_AREA_USED);
	}
}
END_TEST

/* A glance at the beginning sees the index and the first labels, and by them whether the offset is right. */
START_TEST(beginning_of_an_area_is_judged_by_its_size)
{
	fill(0);
	ck_assert_int_eq(label_area_judge(area, 4096, sizeof(area)), LABEL_AREA_BLANK);
	write_index(LABEL_OFFSET);
	ck_assert_int_eq(label_area_judge(area, 4096, sizeof(area)), LABEL_AREA_EMPTY);
	area[LABEL_OFFSET] = 1;
	ck_assert_int_eq(label_area_judge(area, 4096, sizeof(area)), LABEL_AREA_USED);
	area[LABEL_OFFSET] = 0;
	write_index(2048);
	ck_assert_int_eq(label_area_judge(area, 4096, sizeof(area)), LABEL_AREA_USED);
	ck_assert_int_eq(label_area_judge(area, 4096, 2U << 20), LABEL_AREA_EMPTY);
}
END_TEST

START_TEST(small_areas_are_judged_within_bounds)
{
	fill(0);
	write_index(LABEL_OFFSET);
	for (size_t n = 1; n <= LABEL_OFFSET; n++)
		ck_assert_int_eq(label_area_judge(area, n, n), LABEL_AREA_USED);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("pmem/label_area");
	TCase *tcase = tcase_create("label_area");

	suite_add_tcase(suite, tcase);
	tcase_add_test(tcase, each_byte_counts);
	tcase_add_test(tcase, index_without_labels_is_empty);
	tcase_add_test(tcase, offset_of_labels_is_not_trusted);
	tcase_add_test(tcase, beginning_of_an_area_is_judged_by_its_size);
	tcase_add_test(tcase, small_areas_are_judged_within_bounds);
	return unit_runner_finish(srunner_create(suite));
}
