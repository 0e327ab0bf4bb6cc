/* SPDX-License-Identifier: Apache-2.0 */
#include "base/mem.h"
#include "base/str.h"
#include "scheduler/pod_needs.h"
#include "unit/unit.h"

START_TEST(needs_own_all_that_they_point_to)
{
	struct pod_needs needs = {.v = x_calloc(1, sizeof(*needs.v)),
		.n = 1,
		.homes = x_calloc(1, sizeof(*needs.homes)),
		.n_homes = 1};

	needs.v[0] = (struct pod_need){.name = x_strdup("pvc-1"), .what = x_strdup("claim default/data")};
	strv_add(&needs.v[0].nodes, "node-1");
	strv_add(&needs.homes[0], "node-1");
	pod_needs_done(&needs);
	ck_assert_ptr_null(needs.v);
	ck_assert_ptr_null(needs.homes);
	pod_needs_done(&needs);
}
END_TEST

UNIT_MAIN("scheduler/pod_needs", needs_own_all_that_they_point_to)
