/* SPDX-License-Identifier: Apache-2.0 */
/* Volumes that were given out and that no node has any more. */
#include "base/clock.h"
#include "unit/duties/volume_objects_rig.h"
#include "unit/kube/fake_kube.h"

#define SETTLED_S ((unsigned)(VOLUME_OBJECTS_SETTLED_NS / NS_PER_S))
#define LOOK_S    30

static void begin_with_missed_volume(void)
{
	CLEANUP(pmem_volume_freep) struct pmem_volume *v = NULL;

	rig_put("n1", rig.id, PHASE_READY);
	rig_given_out("n1");
	fake_informer_sync(rig.objects);
	rig_live_s(LOOK_S + 1);
	rig_put("n1", NULL, 0);
	rig_live_s(LOOK_S + 1);
	v = rig_read();
	ck_assert_str_eq(v->phase, "Missing");
	rig_live_s(SETTLED_S - 2 * LOOK_S);
	ck_assert_uint_eq(rig.n_looks, 0);
}

START_TEST(the_record_of_a_volume_that_neither_a_node_nor_a_claim_knows_is_released)
{
	rig.claim.has_volume = false;
	begin_with_missed_volume();
	rig_live_s(4 * LOOK_S);
	ck_assert_uint_eq(rig.n_looks, 1);
	rig_check(NULL);
}
END_TEST

START_TEST(the_record_of_a_volume_that_is_missed_stays)
{
	const struct claim_state states[] = {
		{.has_volume = true}, {.has_claim = true}, {.is_referenced = true}};

	rig.claim = states[_i];
	begin_with_missed_volume();
	rig_live_s(4 * LOOK_S);
	ck_assert_uint_eq(rig.n_looks, 1);
	rig_check("n1");
	rig_live_s(1800);
	ck_assert_uint_eq(rig.n_looks, 1);
	rig.claim = (struct claim_state){0};
	rig_live_s(3600);
	rig_check(NULL);
}
END_TEST

START_TEST(a_claim_that_cannot_be_looked_for_is_looked_for_again)
{
	rig.looks_fail = true;
	begin_with_missed_volume();
	rig_live_s(4 * LOOK_S);
	ck_assert_uint_gt(rig.n_looks, 1);
	rig_check("n1");
	rig.looks_fail = rig.claim.has_volume = false;
	rig_live_s(4 * LOOK_S);
	rig_check(NULL);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("duties/volume_objects_missed");
	TCase *tcase = tcase_create("missed");

	suite_add_tcase(suite, tcase);
	tcase_add_checked_fixture(tcase, rig_set_up, rig_tear_down);
	tcase_add_test(tcase, the_record_of_a_volume_that_neither_a_node_nor_a_claim_knows_is_released);
	tcase_add_test(tcase, a_claim_that_cannot_be_looked_for_is_looked_for_again);
	tcase_add_loop_test(tcase, the_record_of_a_volume_that_is_missed_stays, 0, 3);
	return unit_runner_finish(srunner_create(suite));
}
