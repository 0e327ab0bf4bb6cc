/* SPDX-License-Identifier: Apache-2.0 */
/* The controller service as the central controller has it. */
#include "base/str.h"
#include "unit/csi/harness.h"
#include "unit/unit.h"
#include "volume/report.h"

static struct error *err;
static struct harness h;

static int create(const char *name)
{
	Csi__V1__Volume *volume;

	return harness_create(&h, name, 8 << 20, &volume, &err);
}

static bool recorded_by_controller(const char *name)
{
	struct volumes_report report;
	bool made_by_controller = false;

	ck_assert(volumes_report(h.csi.volumes, &report));
	for (size_t i = 0; i < report.n_volumes; i++)
		made_by_controller |=
			str_eq(report.volumes[i].name, name) && report.volumes[i].made_by_controller;
	volumes_report_done(&report);
	return made_by_controller;
}

START_TEST(who_asks_for_a_volume_is_recorded)
{
	harness_open(&h, /* start= */ true);
	ASSERT_OK(create("local"));
	h.csi.made_by_controller = true;
	ASSERT_OK(create("remote"));
	/* a lost reply is asked for again, and that one is not the one that made it */
	ASSERT_OK(create("local"));
	ck_assert(recorded_by_controller("remote"));
	ck_assert(!recorded_by_controller("local"));
	harness_close(&h);
}
END_TEST

UNIT_MAIN("csi/controller_remote", who_asks_for_a_volume_is_recorded)
