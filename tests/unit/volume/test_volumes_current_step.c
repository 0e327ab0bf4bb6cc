/* SPDX-License-Identifier: Apache-2.0 */
/* Errors and reports name the present step of operations that take long. */
#include "base/clock.h"
#include "base/mem.h"
#include "base/str.h"
#include "unit/volume/fixture.h"

static char *while_made;
static char *by_id;
static char *of_all;
static char *of_another;
static uint64_t command_age_s;

static void ask(void)
{
	while_made = volumes_current_step(fx.v, "slow");
	of_all = volumes_current_step(fx.v, NULL);
	of_another = volumes_current_step(fx.v, "other");
}

static void ask_by_id(const struct device *d)
{
	by_id = volumes_current_step(fx.v, d->id);
}

START_TEST(a_volume_is_made_for_some_time)
{
	fx.faults.in_create = ask;
	fx.faults.made = ask_by_id;
	CLEANUP(volume_info_freep) struct volume_info *info = fixture_create("slow", MIB(16));
	CLEANUP(free_charp) char *wanted = x_asprintf("volume %s: creating its device for ", info->id);

	ck_assert_msg(str_starts(while_made, wanted), "%s", while_made);
	ck_assert_msg(str_starts(of_all, wanted), "%s", of_all);
	ck_assert_msg(str_starts(by_id, wanted), "%s", by_id);
	ck_assert_ptr_null(of_another);
	ck_assert_ptr_null(volumes_current_step(fx.v, "slow"));
	ck_assert_ptr_null(volumes_current_step(fx.v, info->id));
	free(while_made);
	free(of_all);
	free(by_id);
}
END_TEST

static void run_a_command(void *self, struct device_activity *ret)
{
	(void)self;
	snprintf(ret->command, sizeof(ret->command), "lvm lvcreate");
	ret->since_ns = clock_ns() - command_age_s * NS_PER_S;
}

/* Else each attempt would hold a thread and leave a record, until no call is served any more. */
START_TEST(nothing_new_is_made_while_something_hangs)
{
	CLEANUP(volume_info_freep) struct volume_info *info = NULL;
	const struct volume_request q = fixture_request("new", MIB(16));
	struct capacity c;
	struct error *err = NULL;

	fx.ops.activity = run_a_command;
	command_age_s = 73;
	fx.n_creates = 0;
	ASSERT_FAILS(volumes_create(fx.v, &q, &info, &err), ERR_UNAVAILABLE,
		"until \"lvm lvcreate\" has finished, which has been running for 73 s");
	ck_assert_uint_eq(fx.n_creates, 0);
	ck_assert_uint_eq(fixture_n_files(), 0);
	ck_assert(volumes_capacity(fx.v, /* sync= */ true, &c));
	command_age_s = 0;
	ASSERT_OK(volumes_create(fx.v, &q, &info, &err));
}
END_TEST

START_TEST(the_command_that_runs_is_named)
{
	fx.ops.activity = run_a_command;
	fx.faults.in_create = ask;
	fixture_make("slow", MIB(16));
	ck_assert_msg(strstr(while_made, " s; lvm lvcreate for "), "%s", while_made);
	ck_assert_msg(str_starts(of_another, "lvm lvcreate for "), "%s", of_another);
	free(while_made);
	free(of_all);
	free(of_another);
}
END_TEST

FIXTURE_MAIN("volumes_current_step", fixture_memory, a_volume_is_made_for_some_time,
	nothing_new_is_made_while_something_hangs, the_command_that_runs_is_named)
