/* SPDX-License-Identifier: Apache-2.0 */
#include "base/mem.h"
#include "base/str.h"
#include "cluster/sched/need.h"
#include "unit/unit.h"

START_TEST(needs_own_all_that_they_point_to)
{
	struct sched_needs needs = {.v = x_calloc(1, sizeof(*needs.v)),
		.n = 1,
		.homes = x_calloc(1, sizeof(*needs.homes)),
		.n_homes = 1};

	needs.v[0] = (struct sched_need){.name = x_strdup("pvc-1"), .what = x_strdup("claim default/data")};
	strv_add(&needs.homes[0], "node-1");
	sched_needs_done(&needs);
	ck_assert_ptr_null(needs.v);
	ck_assert_ptr_null(needs.homes);
	sched_needs_done(&needs);
}
END_TEST

UNIT_MAIN("sched_need", needs_own_all_that_they_point_to)
