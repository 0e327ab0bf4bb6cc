/* SPDX-License-Identifier: Apache-2.0 */
#include "csi/reply.h"
#include "unit/unit.h"

START_TEST(condition_of_a_volume_says_what_is_wrong)
{
	CLEANUP(arena_freep) struct arena *arena = arena_new(0);
	CLEANUP(health_done) struct volume_health h = {0};
	const Csi__V1__VolumeCondition *c = csi_condition(&h, arena);

	ck_assert(!c->abnormal);
	ck_assert_str_eq(c->message, "no error is known");
	health_add(&h, HEALTH_DEGRADED, "One", "first");
	health_add(&h, HEALTH_DATA_LOSS, "Two", "second");
	c = csi_condition(&h, arena);
	ck_assert(c->abnormal);
	ck_assert_str_eq(c->message, "One: first; Two: second");
}
END_TEST

UNIT_MAIN("csi/reply", condition_of_a_volume_says_what_is_wrong)
