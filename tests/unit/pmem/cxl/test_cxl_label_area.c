/* SPDX-License-Identifier: Apache-2.0 */
/* Only label areas in which no namespace can be hidden count as empty. */
#include "pmem/cxl/cxl_label_area.h"

#include "unit/unit.h"

#define INDEX_BYTES 256

static uint8_t area[4096];

/* Both indices, with 30 slots of which the first @used are in use. */
static void put_indices(unsigned used)
{
	memset(area, 0, sizeof(area));
	for (size_t i = 0; i < 2; i++) {
		uint8_t *index = area + i * INDEX_BYTES;
		memcpy(index, "NAMESPACE_INDEX", 16);
		index[33] = 1; /* 256 bytes */
		index[56] = 30;
		for (unsigned slot = used; slot < 30; slot++)
			index[72 + slot / 8] |= (uint8_t)(1U << slot % 8);
	}
}

static bool is_empty(void)
{
	return cxl_label_area_is_empty((struct span){area, sizeof(area)});
}

START_TEST(blank_area_is_empty)
{
	memset(area, 0, sizeof(area));
	ck_assert(is_empty());
	memset(area, 0xff, sizeof(area));
	ck_assert(is_empty());
	area[sizeof(area) - 1] = 0;
	ck_assert(!is_empty());
}
END_TEST

START_TEST(initialised_area_without_labels_is_empty)
{
	put_indices(0);
	ck_assert(is_empty());
	memset(area + INDEX_BYTES, 0, INDEX_BYTES);
	ck_assert(is_empty());
}
END_TEST

START_TEST(area_with_a_label_is_not)
{
	put_indices(1);
	ck_assert(!is_empty());
	put_indices(0);
	area[INDEX_BYTES + 72] &= 0xfe; /* only the second index knows it */
	ck_assert(!is_empty());
}
END_TEST

START_TEST(index_that_makes_no_sense_is_taken_for_content)
{
	put_indices(0);
	area[33] = 0xff; /* larger than the area */
	ck_assert(!is_empty());
	put_indices(0);
	area[57] = 0xff; /* more slots than the index has bits */
	ck_assert(!is_empty());
	put_indices(0);
	area[0] = 'X';
	ck_assert(!is_empty());
	put_indices(0);
	area[INDEX_BYTES] = 'X';
	ck_assert(!is_empty());
	put_indices(0);
	area[33] = 0; /* smaller than an index */
	ck_assert(!is_empty());
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("pmem/cxl_label_area");
	TCase *tcase = tcase_create("cxl_label_area");

	suite_add_tcase(suite, tcase);
	tcase_add_test(tcase, blank_area_is_empty);
	tcase_add_test(tcase, initialised_area_without_labels_is_empty);
	tcase_add_test(tcase, area_with_a_label_is_not);
	tcase_add_test(tcase, index_that_makes_no_sense_is_taken_for_content);
	return unit_runner_finish(srunner_create(suite));
}
