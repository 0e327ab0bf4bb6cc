/* SPDX-License-Identifier: Apache-2.0 */
#include "pmem/lvm/lvm_metadata_reserve.h"

#include "unit/unit.h"

/* Metadata of 2 MiB, of which LVM needs 4 KiB itself. */
#define USUAL_BYTES   2093056
#define RESERVE_BYTES 65408

static uint64_t more_volumes(uint64_t mda_bytes, uint64_t mda_free_bytes)
{
	const struct lvm_vg vg = {.mda_bytes = mda_bytes, .mda_free_bytes = mda_free_bytes};

	return lvm_metadata_more_volumes(&vg);
}

static uint64_t max_volumes(uint64_t mda_bytes)
{
	const struct lvm_vg vg = {.mda_bytes = mda_bytes};

	return lvm_metadata_max_volumes(&vg);
}

START_TEST(the_reserve_is_left_free)
{
	ck_assert_uint_eq(more_volumes(USUAL_BYTES, 0), 0);
	ck_assert_uint_eq(more_volumes(USUAL_BYTES, RESERVE_BYTES), 0);
	ck_assert_uint_eq(more_volumes(USUAL_BYTES, RESERVE_BYTES + 511), 0);
	ck_assert_uint_eq(more_volumes(USUAL_BYTES, RESERVE_BYTES + 512), 1);
}
END_TEST

START_TEST(the_reserve_is_in_proportion_between_its_limits)
{
	ck_assert_uint_eq(more_volumes(4096, 2048 + 512), 1);
	ck_assert_uint_eq(more_volumes(1 << 20, (32 << 10) + 511), 0);
	ck_assert_uint_eq(more_volumes(1 << 20, (32 << 10) + 512), 1);
	ck_assert_uint_eq(more_volumes(64 << 20, (64 << 10) + 512), 1);
}
END_TEST

/* Two versions of the text, the reserve, and what describes the group itself. */
START_TEST(half_of_the_metadata_describes_volumes)
{
	ck_assert_uint_eq(max_volumes(1 << 20), ((512 << 10) - (32 << 10) - 2048) / 512);
	ck_assert_uint_eq(max_volumes(4096), 1);
	ck_assert_uint_eq(max_volumes(0), 0);
}
END_TEST

UNIT_MAIN("lvm_metadata_reserve", the_reserve_is_left_free, the_reserve_is_in_proportion_between_its_limits,
	half_of_the_metadata_describes_volumes)
