/* SPDX-License-Identifier: Apache-2.0 */
/* The report to the central controller, and the notification that it has changed. */
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/str.h"
#include "unit/strmap_equal.h"
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

static const struct volume_report *find(const char *id)
{
	for (size_t i = 0; i < report.n_volumes; i++) {
		if (str_eq(report.volumes[i].id, id))
			return &report.volumes[i];
	}
	ck_abort_msg("%s is not in the report", id);
	return NULL;
}

static struct volume_info *create(const char *name, bool made_by_controller)
{
	struct volume_request q = fixture_request(name, SIZE);
	struct volume_info *info = NULL;

	q.made_by_controller = made_by_controller;
	ASSERT_OK(volumes_create(fx.v, &q, &info, &err));
	return info;
}

static void release(void)
{
	volumes_report_done(&report);
}

START_TEST(before_the_first_listing_nothing_can_be_said)
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
		ck_assert_uint_eq(report.pools[i].capacity.available_bytes, REGION_BYTES);
		ck_assert_uint_eq(report.pools[i].capacity.max_volume_bytes, REGION_BYTES);
		ck_assert_uint_le(report.pools[i].capacity.max_sector_volume_bytes, REGION_BYTES);
	}
	ck_assert_uint_eq(report.n_volumes, 0);
	fixture_make("pvc-1", SIZE);
	look();
	ck_assert_uint_eq(report.pools[0].capacity.available_bytes + report.pools[1].capacity.available_bytes,
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
		ck_assert_uint_eq(report.pools[i].capacity.available_bytes, complete ? REGION_BYTES : 0);
	}
}
END_TEST

/* Its devices were not seen when it was incomplete: without them they would count as gone. */
START_TEST(an_incomplete_pool_is_complete_when_its_devices_are_listed)
{
	CLEANUP(volume_info_freep) struct volume_info *there = create("pvc-1", false);
	CLEANUP(device_freep) struct device *d = fixture_device(there->id);

	fx.faults.incomplete_pool = d->pool;
	ASSERT_OK(volumes_refresh(fx.v, &err));
	fx.faults.incomplete_pool = NULL;
	fixture_make("pvc-2", SIZE);
	look();
	ck_assert_int_eq(find(there->id)->phase, PHASE_MISSING);
	ck_assert(report.pools[0].incomplete != report.pools[1].incomplete);
	ASSERT_OK(volumes_refresh(fx.v, &err));
	look();
	ck_assert_int_eq(find(there->id)->phase, PHASE_READY);
	ck_assert(!report.pools[0].incomplete && !report.pools[1].incomplete);
}
END_TEST

START_TEST(a_volume_comes_with_its_name_and_who_asked_for_it_also_after_a_restart)
{
	CLEANUP(volume_info_freep) struct volume_info *central = create("pvc-1", true);
	CLEANUP(volume_info_freep) struct volume_info *local = create("pvc-2", false);

	for (int restarted = 0; restarted < 2; restarted++) {
		look();
		ck_assert_uint_eq(report.n_volumes, 2);
		const struct volume_report *v = find(central->id);
		ck_assert_str_eq(v->name, "pvc-1");
		ck_assert_uint_eq(v->size_bytes, SIZE);
		ck_assert_int_eq(v->phase, PHASE_READY);
		ck_assert(v->made_by_controller && !v->ever_staged);
		ck_assert(!find(local->id)->made_by_controller);
		fixture_restart();
	}
}
END_TEST

static struct volume_info *create_for(const char *name, const char *claim_name)
{
	CLEANUP(strmap_done) struct strmap parameters = {0};
	struct volume_request q = fixture_request(name, SIZE);
	struct volume_info *info = NULL;

	strmap_set(&parameters, "csi.storage.k8s.io/pvc/namespace", "default");
	strmap_set(&parameters, "csi.storage.k8s.io/pvc/name", claim_name);
	strmap_set(&parameters, "csi.storage.k8s.io/pv/name", name);
	q.parameters = &parameters;
	ASSERT_OK(volumes_create(fx.v, &q, &info, &err));
	return info;
}

START_TEST(a_volume_comes_with_its_claim_which_nobody_changes)
{
	CLEANUP(volume_info_freep) struct volume_info *first = create_for("pvc-1", "data");
	CLEANUP(volume_info_freep) struct volume_info *again = create_for("pvc-1", "other");

	ck_assert_str_eq(first->id, again->id);
	ck_assert_str_eq(again->claim, "default/data");
	ck_assert(strmap_equal(&first->context, &again->context));
	ck_assert_uint_eq(first->context.n, 1);
	fixture_restart();
	look();
	ck_assert_str_eq(find(first->id)->claim, "default/data");
}
END_TEST

START_TEST(a_volume_of_which_nobody_has_said_so_gets_its_claim_when_it_is_asked_for_again)
{
	CLEANUP(volume_info_freep) struct volume_info *old = create("pvc-1", false);
	CLEANUP(free_charp) char *file = x_asprintf("%s.json", old->id);

	ck_assert_ptr_null(old->claim);
	CLEANUP(volume_info_freep) struct volume_info *again = create_for("pvc-1", "data");
	ck_assert_str_eq(again->claim, "default/data");
	ck_assert(strmap_equal(&old->context, &again->context));
	CLEANUP(free_charp) char *text = fixture_read(file);
	ck_assert_ptr_nonnull(
		strstr(text, "\"claimNamespace\":\"default\",\"claimName\":\"data\",\"pvName\":\"pvc-1\""));
}
END_TEST

START_TEST(claim_names_in_a_file_are_believed_only_as_names)
{
	fixture_write("v.json", "{\"id\":\"v\",\"size\":1,\"parameters\":{},\"identity\":\"x\","
				"\"claimNamespace\":\"a/b\",\"claimName\":\"data\",\"later\":[1]}\n");
	fixture_restart();
	look();
	ck_assert_ptr_null(find("v")->claim);
}
END_TEST

/* A controller refuses a report that names one twice. */
START_TEST(a_volume_with_a_damaged_second_file_is_named_once)
{
	struct volumes_overview o;
	size_t n = 0;

	fixture_write("twice.json", "{\"id\":\"twice\",\"size\":1,\"parameters\":{},\"identity\":\"x\"}\n");
	fixture_write("twice.creating", "{");
	fixture_write("lost.json", "{");
	fixture_write("lost.erasing", "{");
	fixture_make_device(MINTED_ID("pvc-12"), 0, "", SIZE);
	fixture_make_device("stranger", 0, "", SIZE);
	fixture_restart();
	look();
	ck_assert_uint_eq(report.n_volumes, 2);
	for (size_t i = 0; i < report.n_volumes; i++)
		n += report.volumes[i].phase == PHASE_DAMAGED;
	ck_assert_uint_eq(n, 1);
	volumes_overview(fx.v, &o);
	ck_assert_uint_eq(o.n_damaged, 1);
	ck_assert_uint_eq(o.n_missing, 1);
	ck_assert_uint_eq(o.n_strangers, 1);
	ck_assert_uint_eq(o.n_ready, 0);
}
END_TEST

START_TEST(who_makes_it_is_recorded_not_who_asks_again)
{
	CLEANUP(volume_info_freep) struct volume_info *first = create("pvc-1", false);
	CLEANUP(volume_info_freep) struct volume_info *again = create("pvc-1", true);

	look();
	ck_assert(!find(first->id)->made_by_controller);
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
	ck_assert_str_eq(find("fresh")->name, "");
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
	ck_assert_int_eq(find(gone->id)->phase, PHASE_ERASING);
	ck_assert_int_eq(find("absent")->phase, PHASE_MISSING);
	ck_assert_int_eq(find("damaged")->phase, PHASE_DAMAGED);
	ck_assert(find("damaged")->ever_staged);
}
END_TEST

START_TEST(space_that_is_being_erased_is_that_of_its_pool)
{
	CLEANUP(volume_info_freep) struct volume_info *gone = create("pvc-1", true);
	CLEANUP(device_freep) struct device *d = fixture_device(gone->id);

	look();
	ck_assert_uint_eq(report.pools[0].erasing_bytes + report.pools[1].erasing_bytes, 0);
	fx.faults.destroy = ERR_INTERNAL;
	ASSERT_FAILS(volumes_delete(fx.v, gone->id, &err), ERR_INTERNAL, gone->id);
	look();
	for (size_t i = 0; i < N_POOLS; i++) {
		bool is_its_own = str_eq(fx.pools[i], d->pool);

		ck_assert_uint_eq(report.pools[i].erasing_bytes, is_its_own ? SIZE : 0);
	}
	fx.faults.destroy = 0;
	ASSERT_OK(volumes_delete(fx.v, gone->id, &err));
	look();
	ck_assert_uint_eq(report.pools[0].erasing_bytes + report.pools[1].erasing_bytes, 0);
}
END_TEST

START_TEST(a_volume_of_one_pod_is_reported_as_such)
{
	CLEANUP(volume_info_freep) struct volume_info *info = create("pvc-1", true);

	fixture_write("pod.json", "{\"id\":\"pod\",\"size\":1,\"parameters\":{\"persistencyModel\":"
				  "\"ephemeral\"},\"identity\":\"x\"}\n");
	fixture_restart();
	look();
	ck_assert(find("pod")->is_inline);
	ck_assert(!find(info->id)->is_inline);
}
END_TEST

/* Between two looks without a change nothing need be reported; with one it must be, after the report has it.
 */
START_TEST(a_change_is_reported)
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

static uint64_t command_age_s;

/* Asked before anything is recorded. */
static void report_then_run_a_command(void *self, struct device_activity *ret)
{
	(void)self;
	ck_assert_uint_eq(fixture_n_files(), 0);
	look();
	snprintf(ret->command, sizeof(ret->command), "lvm lvcreate");
	ret->since_ns = clock_ns() - command_age_s * NS_PER_S;
}

/* A controller that starts now, and does not know of the call, would have it made on another node too. */
START_TEST(a_volume_is_reported_before_it_is_recorded)
{
	fx.ops.activity = report_then_run_a_command;
	CLEANUP(volume_info_freep) struct volume_info *info = create("pvc-1", true);

	ck_assert_uint_eq(report.n_volumes, 1);
	ck_assert_str_eq(find(info->id)->name, "pvc-1");
	ck_assert_int_eq(find(info->id)->phase, PHASE_CREATING);
	ck_assert(find(info->id)->made_by_controller && !find(info->id)->ever_staged);
	look();
	ck_assert_uint_eq(report.n_volumes, 1);
	ck_assert_int_eq(find(info->id)->phase, PHASE_READY);
}
END_TEST

START_TEST(a_volume_that_is_not_made_is_taken_back)
{
	struct volume_request q = fixture_request("pvc-1", SIZE);
	struct volume_info *info = NULL;
	unsigned before = fx.n_changes;

	fx.ops.activity = report_then_run_a_command;
	command_age_s = 73;
	ASSERT_FAILS(volumes_create(fx.v, &q, &info, &err), ERR_UNAVAILABLE, "has been running for 73 s");
	ck_assert_uint_eq(report.n_volumes, 1);
	ck_assert_uint_gt(fx.n_changes, before);
	look();
	ck_assert_uint_eq(report.n_volumes, 0);
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {before_the_first_listing_nothing_can_be_said,
		pools_come_with_what_can_be_made_in_them, an_incomplete_pool_offers_nothing,
		an_incomplete_pool_is_complete_when_its_devices_are_listed,
		a_volume_comes_with_its_name_and_who_asked_for_it_also_after_a_restart,
		who_makes_it_is_recorded_not_who_asks_again,
		a_volume_comes_with_its_claim_which_nobody_changes,
		a_volume_of_which_nobody_has_said_so_gets_its_claim_when_it_is_asked_for_again,
		claim_names_in_a_file_are_believed_only_as_names,
		a_volume_with_a_damaged_second_file_is_named_once,
		volumes_of_which_nobody_can_say_that_they_are_empty_count_as_staged, phases_are_told_apart,
		space_that_is_being_erased_is_that_of_its_pool, a_volume_of_one_pod_is_reported_as_such,
		a_change_is_reported, a_volume_is_reported_before_it_is_recorded,
		a_volume_that_is_not_made_is_taken_back};

	fx.done = release;
	return fixture_run("volume/volumes_report", fixture_memory, tests, ARRAY_SIZE(tests));
}
