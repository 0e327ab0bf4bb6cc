/* SPDX-License-Identifier: Apache-2.0 */
#include "base/mem.h"
#include "base/str.h"
#include "scheduler/pod_needs.h"
#include "unit/unit.h"

START_TEST(needs_own_all_that_they_point_to)
{
	struct pod_needs needs = {.v = x_calloc(1, sizeof(*needs.v)), .n = 1};
	struct pod_home home = {.why = x_strdup("of its source")};

	needs.v[0] = (struct pod_need){.name = x_strdup("pvc-1"),
		.what = x_strdup("claim default/data"),
		.source = x_strdup("default/source")};
	strv_add(&needs.v[0].nodes, "node-1");
	strv_add(&home.nodes, "node-1");
	pod_needs_add_home(&needs, &home);
	ck_assert_uint_eq(needs.n_homes, 1);
	pod_needs_done(&needs);
	ck_assert_ptr_null(needs.v);
	ck_assert_ptr_null(needs.homes);
	pod_needs_done(&needs);
}
END_TEST

START_TEST(a_pod_is_away_from_home_unless_each_volume_has_the_node)
{
	struct pod_needs needs = {0};

	ck_assert_ptr_null(pod_needs_away(&needs, span_of("n1")));
	for (size_t i = 0; i < 2; i++) {
		struct pod_home home = {0};

		strv_add(&home.nodes, "n1");
		strv_add(&home.nodes, i == 0 ? "n2" : "n3");
		pod_needs_add_home(&needs, &home);
	}
	ck_assert_ptr_null(pod_needs_away(&needs, span_of("n1")));
	ck_assert_ptr_eq(pod_needs_away(&needs, span_of("n2")), &needs.homes[1]);
	ck_assert_ptr_eq(pod_needs_away(&needs, span_of("n3")), &needs.homes[0]);
	pod_needs_done(&needs);
}
END_TEST

UNIT_MAIN("scheduler/pod_needs", needs_own_all_that_they_point_to,
	a_pod_is_away_from_home_unless_each_volume_has_the_node)
