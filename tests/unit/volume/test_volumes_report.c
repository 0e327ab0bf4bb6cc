/* SPDX-License-Identifier: Apache-2.0 */
/* What the central controller is told, and that it is known when there is something new to tell. */
#include "base/str.h"
#include "unit/volume/fixture.h"
#include "volume/report.h"

#define SIZE MIB(16)

static struct volumes_report report;
static struct error *err;

static void look(void)
{
	volumes_report_done(&report);
	ck_assert(volumes_report(fx.v, &report));
}

static const struct report_volume *find(const char *id)
{
	for (size_t i = 0; i < report.n_volumes; i++) {
		if (str_eq(report.volumes[i].id, id))
			return &report.volumes[i];
	}
	ck_abort_msg("%s is not in the report", id);
	return NULL;
}

static struct volume_info *create(const char *name, bool by_controller)
{
	struct volume_request q = fixture_request(name, SIZE);
	struct volume_info *info = NULL;

	q.by_controller = by_controller;
	ASSERT_OK(volumes_create(fx.v, &q, &info, &err));
	return info;
}

static void release(void)
{
	volumes_report_done(&report);
}

START_TEST(before_the_first_snapshot_nothing_can_be_said)
{
	fixture_stop();
	fixture_open();
	ck_assert(!volumes_report(fx.v, &report));
}
END_TEST

START_TEST(pools_come_with_what_can_be_made_in_them)
{
	look();
	ck_assert_uint_eq(report.n_pools, N_POOLS);
	for (size_t i = 0; i < N_POOLS; i++) {
		ck_assert(!str_empty(report.pools[i].name));
		ck_assert_uint_eq(report.pools[i].capacity.total_bytes, REGION_BYTES);
		ck_assert_uint_eq(report.pools[i].capacity.free_bytes, REGION_BYTES);
		ck_assert_uint_eq(report.pools[i].capacity.max_volume_bytes, REGION_BYTES);
		ck_assert_uint_le(report.pools[i].capacity.max_sector_volume_bytes, REGION_BYTES);
	}
	ck_assert_uint_eq(report.n_volumes, 0);
	fixture_make("pvc-1", SIZE);
	look();
	ck_assert_uint_eq(report.pools[0].capacity.free_bytes + report.pools[1].capacity.free_bytes,
		2 * REGION_BYTES - SIZE);
}
END_TEST

START_TEST(an_incomplete_pool_offers_nothing)
{
	fx.faults.incomplete_pool = fx.pools[1];
	ASSERT_OK(volumes_refresh(fx.v, &err));
	look();
	ck_assert_uint_eq(report.n_pools, N_POOLS);
	for (size_t i = 0; i < N_POOLS; i++) {
		bool complete = report.pools[i].capacity.max_volume_bytes > 0;

		ck_assert_uint_eq(report.pools[i].capacity.total_bytes, REGION_BYTES);
		ck_assert_uint_eq(report.pools[i].capacity.free_bytes, complete ? REGION_BYTES : 0);
	}
}
END_TEST

START_TEST(a_volume_comes_with_its_name_and_who_asked_for_it_also_after_a_restart)
{
	CLEANUP(volume_info_freep) struct volume_info *central = create("pvc-1", true);
	CLEANUP(volume_info_freep) struct volume_info *local = create("pvc-2", false);

	for (int restarted = 0; restarted < 2; restarted++) {
		look();
		ck_assert_uint_eq(report.n_volumes, 2);
		const struct report_volume *v = find(central->id);
		ck_assert_str_eq(v->name, "pvc-1");
		ck_assert_uint_eq(v->size_bytes, SIZE);
		ck_assert_int_eq(v->phase, REPORT_READY);
		ck_assert(v->by_controller && !v->ever_staged);
		ck_assert(!find(local->id)->by_controller);
		fixture_restart();
	}
}
END_TEST

START_TEST(who_makes_it_is_recorded_not_who_asks_again)
{
	CLEANUP(volume_info_freep) struct volume_info *first = create("pvc-1", false);
	CLEANUP(volume_info_freep) struct volume_info *again = create("pvc-1", true);

	look();
	ck_assert(!find(first->id)->by_controller);
	ck_assert_str_eq(first->id, again->id);
}
END_TEST

START_TEST(volumes_of_which_nobody_can_say_that_they_are_empty_count_as_staged)
{
	fixture_write("go.json", "{\"id\":\"go\",\"size\":16777216,\"parameters\":{\"name\":\"n\"}}\n");
	fixture_write("adopted.json",
		"{\"id\":\"adopted\",\"size\":1,\"parameters\":{},\"identity\":\"x\",\"adopted\":true}\n");
	fixture_write("fresh.json", "{\"id\":\"fresh\",\"size\":1,\"parameters\":{},\"identity\":\"x\"}\n");
	fixture_write("used.json",
		"{\"id\":\"used\",\"size\":1,\"parameters\":{},\"identity\":\"x\",\"stagedEver\":true}\n");
	fixture_restart();
	look();
	ck_assert(find("go")->ever_staged);
	ck_assert(find("adopted")->ever_staged);
	ck_assert(find("used")->ever_staged);
	ck_assert(!find("fresh")->ever_staged);
	ck_assert_ptr_null(find("fresh")->name);
}
END_TEST

START_TEST(phases_are_told_apart)
{
	CLEANUP(volume_info_freep) struct volume_info *gone = create("pvc-1", true);

	fixture_write("absent.json", "{\"id\":\"absent\",\"size\":1,\"parameters\":{}}\n");
	fixture_write("damaged.json", "{");
	fx.faults.destroy = ERR_INTERNAL;
	ASSERT_FAILS(volumes_delete(fx.v, gone->id, &err), ERR_INTERNAL, gone->id);
	fixture_restart();
	look();
	ck_assert_int_eq(find(gone->id)->phase, REPORT_ERASING);
	ck_assert_int_eq(find("absent")->phase, REPORT_MISSING);
	ck_assert_int_eq(find("damaged")->phase, REPORT_DAMAGED);
	ck_assert(find("damaged")->ever_staged);
}
END_TEST

/* Between two looks without a change nothing need be told; with one it must be, after the report has it. */
START_TEST(a_change_is_told)
{
	unsigned before = fx.n_changes;
	CLEANUP(volume_info_freep) struct volume_info *info = create("pvc-1", true);

	ck_assert_uint_gt(fx.n_changes, before);
	before = fx.n_changes;
	ASSERT_OK(volumes_delete(fx.v, info->id, &err));
	ck_assert_uint_gt(fx.n_changes, before);
	before = fx.n_changes;
	fx.faults.incomplete_pool = fx.pools[0];
	ASSERT_OK(volumes_refresh(fx.v, &err));
	ck_assert_uint_gt(fx.n_changes, before);
	before = fx.n_changes;
	fixture_restart();
	ck_assert_uint_gt(fx.n_changes, before);
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {before_the_first_snapshot_nothing_can_be_said,
		pools_come_with_what_can_be_made_in_them, an_incomplete_pool_offers_nothing,
		a_volume_comes_with_its_name_and_who_asked_for_it_also_after_a_restart,
		who_makes_it_is_recorded_not_who_asks_again,
		volumes_of_which_nobody_can_say_that_they_are_empty_count_as_staged, phases_are_told_apart,
		a_change_is_told};

	fx.done = release;
	return fixture_run("volume/volumes_report", fixture_memory, tests, ARRAY_SIZE(tests));
}
