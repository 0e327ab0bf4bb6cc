/* SPDX-License-Identifier: Apache-2.0 */
/* Labels of PmemVolumes. */
#include "base/clock.h"
#include "base/mem.h"
#include "base/str.h"
#include "unit/duties/volume_objects_rig.h"
#include "unit/kube/fake_kube.h"

#define LOOK_S 30

static void assert_label(const char *label)
{
	ck_assert_ptr_nonnull(rig.store->labels);
	ck_assert_msg(strstr(rig.store->labels, label), "%s", rig.store->labels);
}

/* As all are that earlier versions have made. */
START_TEST(an_object_without_labels_gets_them_by_one_write)
{
	rig.keeps_labels = true;
	rig_put("n1", rig.id, PHASE_READY);
	rig_given_out("n1");
	fake_informer_sync(rig.objects);
	rig_live_s(LOOK_S + 1);
	rig_check_served(0, 0, 1, 1, 0);
	assert_label("\"pmem-csi.intel.com/pv\":\"" RIG_NAME "\"");
	assert_label("\"pmem-csi.intel.com/node\":\"n1\"");
	rig_live_s(600);
	rig_check_served(0, 0, 0, 0, 0);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("duties/volume_objects_labels");
	TCase *tcase = tcase_create("labels");

	suite_add_tcase(suite, tcase);
	tcase_add_checked_fixture(tcase, rig_set_up, rig_tear_down);
	tcase_add_test(tcase, an_object_without_labels_gets_them_by_one_write);
	return unit_runner_finish(srunner_create(suite));
}
