/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/mem.h"
#include "base/str.h"
#include "pmem/namespace_layout.h"
#include "resources/pmem_node.h"
#include "unit/duties/node_objects_rig.h"
#include "unit/kube/fake_kube.h"
#include "unit/nodes/reports.h"
#include "unit/unit.h"

#define GIB      (1ULL << 30)
#define HOUR_S   3600
#define PARALLEL 16
#define OLD_TIME "2001-02-03T04:05:06Z"

START_TEST(the_first_report_makes_the_object_and_then_its_status)
{
	fake_informer_sync(rig.objects);
	rig_put("n1", 7);
	ck_assert_uint_eq(fake_kube_count(rig.client), 1);
	ck_assert_str_eq(fake_kube_next(rig.client)->path, RIG_COLLECTION "n1.pmem" RIG_QUERY);
	ck_assert_str_eq(fake_kube_next(rig.client)->body,
		"{\"apiVersion\":\"pmem-csi.intel.com/v1alpha1\",\"kind\":\"PmemNode\","
		"\"metadata\":{\"name\":\"n1.pmem\",\"labels\":{\"pmem-csi.intel.com/driver\":\"pmem\"}},"
		"\"spec\":{\"node\":\"n1\",\"driver\":\"pmem\"}}");
	ck_assert_uint_eq(node_objects_pending(rig.duty), 1);
	rig_serve_one();
	ck_assert_uint_eq(fake_kube_count(rig.client), 1);
	ck_assert_str_eq(fake_kube_next(rig.client)->path, RIG_COLLECTION "n1.pmem/status" RIG_QUERY);
	rig_serve_one();
	rig_let_pass_s(20);
	ck_assert_uint_eq(node_objects_pending(rig.duty), 0);
	rig_assert_written(1, 1, 0);
	rig_status_has("n1.pmem", "\"deviceMode\":\"fake\",\"driverVersion\":\"2.0.0\",\"bootID\":\"boot\",");
	rig_status_has("n1.pmem", "\"report\":7,\"capacity\":\"16Gi\",\"available\":\"8Gi\",");
	rig_status_has("n1.pmem", "\"volumes\":{\"count\":0,\"inline\":0,\"inlineBytes\":\"0\",");
	rig_status_has("n1.pmem",
		"{\"name\":\"region0\",\"managed\":\"16Gi\",\"available\":\"8Gi\","
		"\"largestVolume\":\"4Gi\",\"largestFileIOVolume\":\"3Gi\",\"erasing\":\"0\","
		"\"freeExtents\":0,\"complete\":true}");
	rig_condition_is("Ready", "True", "Registered");
	rig_condition_is("DevicesHealthy", "True", "Complete");
}
END_TEST

START_TEST(volumes_that_were_made_lately_are_named)
{
	struct node_report *r = report_new("n1");

	report_add_volume(r, "old", "pvc-old");
	fake_informer_sync(rig.objects);
	node_table_put(rig.nodes, r, rig.now);
	rig_serve_all();
	rig_show_all();
	ck_assert_ptr_null(strstr(rig_find("n1.pmem")->status, "newVolumes"));
	r = report_new("n1");
	report_add_volume(r, "new", "pvc-new");
	report_add_volume(r, "no-name", "");
	report_add_volume(r, "erased", "pvc-erased")->phase = PHASE_ERASING;
	report_add_volume(r, "old", "pvc-old");
	node_table_put(rig.nodes, r, rig.now);
	rig_let_pass_s(20);
	rig_show_all();
	rig_status_has("n1.pmem", "\"newVolumes\":[\"pvc-new\"]");
	rig_let_pass_s(200);
	rig_put("n1", 9);
	rig_let_pass_s(20);
	ck_assert_ptr_null(strstr(rig_find("n1.pmem")->status, "newVolumes"));
}
END_TEST

static void offered_is(uint64_t gib)
{
	struct capacity c;

	ck_assert(node_objects_capacity(rig.duty, "n1", /* sync= */ false, &c));
	ck_assert_uint_eq(c.available_bytes, gib * GIB);
	ck_assert_uint_eq(c.max_volume_bytes, gib * GIB / 2);
}

START_TEST(an_object_offers_what_it_shows_while_it_is_ready)
{
	offered_is(0);
	rig_put("n1", 7);
	fake_informer_sync(rig.objects);
	offered_is(0);
	rig_serve_all();
	rig_show_all();
	ck_assert_uint_ge(rig.n_shown, 1);
	offered_is(8);
	node_table_end(rig.nodes, "n1");
	rig_let_pass_s(20);
	rig_show_all();
	offered_is(0);
}
END_TEST

/* A volume was made and deleted since: the node has as much as the object shows, and the extender does not
 * know yet that the volume is gone. */
START_TEST(an_object_with_an_earlier_report_offers_nothing)
{
	rig_publish();
	rig_put("n1", 7);
	rig_let_pass_s(20);
	rig_show_all();
	offered_is(8);
	rig_put("n1", 8);
	rig_put("n1", 9);
	offered_is(0);
	rig_let_pass_s(20);
	rig_show_all();
	offered_is(8);
}
END_TEST

START_TEST(objects_that_cannot_be_written_are_no_limit)
{
	struct capacity c;

	fake_informer_sync(rig.objects);
	rig_put("n1", 7);
	fake_kube_answer(rig.client, 403, "{}");
	ck_assert(!node_objects_capacity(rig.duty, "n1", /* sync= */ false, &c));
}
END_TEST

START_TEST(only_objects_of_the_driver_are_watched)
{
	ck_assert_str_eq(fake_informer_kind(rig.objects)->label_selector, "pmem-csi.intel.com/driver=pmem");
	ck_assert_str_eq(
		fake_informer_kind(rig.objects)->path, "/apis/pmem-csi.intel.com/v1alpha1/pmemnodes");
}
END_TEST

START_TEST(nothing_is_written_before_all_objects_are_known)
{
	rig_put("n1", 1);
	rig_wait_s(120);
	ck_assert_uint_eq(fake_kube_count(rig.client), 0);
	fake_informer_sync(rig.objects);
	rig_assert_written(1, 1, 0);
}
END_TEST

START_TEST(what_is_shown_already_is_not_written_again)
{
	rig_publish();
	rig_change_leader();
	rig_put("n1", 1);
	rig_show_all();
	fake_informer_sync(rig.objects);
	rig_let_pass_s(300);
	rig_assert_written(0, 0, 0);
}
END_TEST

START_TEST(volumes_are_counted_and_pools_are_shown)
{
	struct node_report *r = report_new("n1");

	for (int i = 0; i < 7; i++) {
		char id[2] = {(char)('a' + i), '\0'};

		report_add_volume(r, id, "");
	}
	r->volumes[0].is_inline = r->volumes[1].is_inline = true;
	r->volumes[1].size_bytes = 2 * GIB;
	r->volumes[2].is_inline = true;
	r->volumes[2].phase = PHASE_ERASING;
	r->volumes[3].phase = r->volumes[4].phase = PHASE_MISSING;
	r->volumes[5].phase = r->volumes[6].phase = PHASE_DAMAGED;
	r->pools[0].region_bytes = 200 * GIB;
	r->pools[0].durability = DURABILITY_FSYNC;
	r->pools[0].erasing_bytes = 2 * GIB;
	r->pools[0].n_free_extents = 3;
	fake_informer_sync(rig.objects);
	node_table_put(rig.nodes, r, rig.now);
	rig_serve_all();
	rig_status_has("n1.pmem",
		"\"volumes\":{\"count\":6,\"inline\":2,\"inlineBytes\":\"3Gi\",\"erasing\":1,\"missing\":2,"
		"\"damaged\":2}");
	rig_status_has("n1.pmem", "\"total\":\"200Gi\",\"managed\":");
	rig_status_has("n1.pmem", "\"erasing\":\"2Gi\",\"freeExtents\":3,");
	rig_status_has("n1.pmem", "\"complete\":true,\"durability\":\"fsync\"");
	rig_condition_is("DevicesHealthy", "False", "VolumesMissing");
}
END_TEST

/* With names and extents as long as a report can have them. */
START_TEST(more_regions_than_an_object_shows_are_summed_up)
{
	struct node_report *r = report_new("n1");
	char name[256];

	free(r->pools[0].name);
	r->pools = x_realloc(r->pools, 256, sizeof(*r->pools));
	for (unsigned i = 0; i < 256; i++) {
		snprintf(name, sizeof(name), "%u%0240d", i, 0);
		r->pools[i] = (struct pool_report){.name = x_strdup(name),
			.capacity = {NODE_BYTES_MAX, NODE_BYTES_MAX, 1, 1},
			.n_free_extents = LAYOUT_EXTENTS_MAX};
		for (size_t k = 0; k < LAYOUT_EXTENTS_MAX; k++)
			r->pools[i].free_extent_bytes[k] = NODE_BYTES_MAX;
	}
	r->n_pools = 256;
	fake_informer_sync(rig.objects);
	node_table_put(rig.nodes, r, rig.now);
	rig_serve_all();
	rig_status_has("n1.pmem", "\"name\":\"15000");
	rig_status_has(
		"n1.pmem", "\"otherRegions\":{\"count\":240,\"managed\":\"960Pi\",\"available\":\"960Pi\"}");
	rig_status_has("n1.pmem", "\"capacity\":\"1Ei\"");
	ck_assert_ptr_null(strstr(rig_find("n1.pmem")->status, "\"name\":\"16000"));
	ck_assert_uint_lt(strlen(rig_find("n1.pmem")->status), 32768);
}
END_TEST

START_TEST(devices_are_judged_by_what_is_worst)
{
	static const struct {
		bool incomplete, missing, damaged, has_inventory;
		const char *status, *reason;
	} cases[] = {{false, false, false, true, "True", "Complete"},
		{false, false, true, true, "False", "VolumesDamaged"},
		{false, true, true, true, "False", "VolumesMissing"},
		{true, true, true, true, "False", "RegionIncomplete"},
		{true, false, false, false, "Unknown", "NotReported"}};

	fake_informer_sync(rig.objects);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct node_report *r = report_new("n1");

		report_add_volume(r, "a", "")->phase = cases[i].missing ? PHASE_MISSING : PHASE_READY;
		report_add_volume(r, "b", "")->phase = cases[i].damaged ? PHASE_DAMAGED : PHASE_READY;
		r->pools[0].incomplete = cases[i].incomplete;
		r->has_inventory = cases[i].has_inventory;
		node_table_put(rig.nodes, r, rig.now);
		rig_serve_all();
		rig_let_pass_s(11);
		rig_condition_is("Ready", "True", "Registered");
		rig_condition_is("DevicesHealthy", cases[i].status, cases[i].reason);
		rig_status_has("n1.pmem", cases[i].incomplete ? "\"complete\":false" : "\"complete\":true");
	}
}
END_TEST

START_TEST(devices_on_modules_with_trouble_are_not_healthy)
{
	static const struct {
		const char *reason, *shown;
	} cases[] = {{HEALTH_DIMM_LOST_DATA, "DimmsLostData"}, {HEALTH_DIRTY_SHUTDOWN, "DimmsLostData"},
		{HEALTH_DIMM_DEGRADED, "DimmsDegraded"}};

	fake_informer_sync(rig.objects);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct node_report *r = report_new("n1");

		health_add(&report_add_volume(r, "a", "")->health, HEALTH_DEGRADED, cases[i].reason, "dimm");
		node_table_put(rig.nodes, r, rig.now);
		rig_serve_all();
		rig_let_pass_s(11);
		rig_condition_is("DevicesHealthy", "False", cases[i].shown);
	}
}
END_TEST

START_TEST(devices_with_media_errors_are_not_healthy)
{
	struct node_report *r = report_new("n1");

	health_add(&report_add_volume(r, "a", "")->health, HEALTH_DEGRADED, HEALTH_FS_FULL, "full");
	fake_informer_sync(rig.objects);
	node_table_put(rig.nodes, r, rig.now);
	rig_serve_all();
	rig_condition_is("DevicesHealthy", "True", "Complete");
	r = report_new("n1");
	health_add(&report_add_volume(r, "a", "")->health, HEALTH_DATA_LOSS, HEALTH_MEDIA_ERROR, "lost");
	node_table_put(rig.nodes, r, rig.now);
	rig_let_pass_s(11);
	rig_condition_is("DevicesHealthy", "False", "MediaErrors");
}
END_TEST

START_TEST(a_heartbeat_writes_nothing)
{
	rig_publish();
	for (int i = 0; i < 600; i++) {
		rig_put("n1", 1);
		rig_let_pass_s(1);
	}
	rig_assert_written(0, 0, 0);
}
END_TEST

START_TEST(changes_are_written_at_once_but_not_too_often)
{
	rig_publish();
	rig_put("n1", 2);
	rig_assert_written(0, 1, 0);
	rig_wait_s(1);
	rig_put("n1", 3);
	rig_put("n1", 4);
	rig_wait_s(3);
	ck_assert_uint_eq(fake_kube_count(rig.client), 0);
	rig_wait_s(1);
	rig_assert_written(0, 1, 0);
	rig_status_has("n1.pmem", "\"report\":4,");
	rig_let_pass_s(11);
	rig_assert_written(0, 0, 0);
	rig_put("n1", 5);
	rig_assert_written(0, 1, 0);
	rig_status_has("n1.pmem", "\"report\":5,");
}
END_TEST

START_TEST(a_change_while_a_request_runs_is_written_after_it)
{
	rig_publish();
	rig_put("n1", 2);
	rig_put("n1", 3);
	rig_wait_s(20);
	ck_assert_uint_eq(fake_kube_count(rig.client), 1);
	ck_assert_ptr_nonnull(strstr(fake_kube_next(rig.client)->body, "\"report\":2,"));
	rig_serve_one();
	rig_assert_written(0, 2, 0);
	rig_status_has("n1.pmem", "\"report\":3,");
}
END_TEST

START_TEST(the_end_of_a_lease_is_shown)
{
	rig_publish();
	node_table_end(rig.nodes, "n1");
	rig_assert_written(0, 1, 0);
	rig_condition_is("Ready", "Unknown", "LeaseExpired");
	rig_condition_is("DevicesHealthy", "Unknown", "NoContact");
	rig_status_has("n1.pmem", "\"report\":1,\"capacity\":\"16Gi\",");
	rig_let_pass_s(11);
	rig_put("n1", 1);
	rig_assert_written(0, 1, 0);
	rig_condition_is("Ready", "True", "Registered");
}
END_TEST

/* The two conditions of @n as they were set at @ready and @devices; NULL: lately. */
static void assert_since(const char *ready, const char *devices)
{
	const struct pmem_node *n = informer_get(rig.objects, "n1.pmem");
	const char *since[] = {pmem_condition_find(&n->conditions, "Ready")->since,
		pmem_condition_find(&n->conditions, "DevicesHealthy")->since};
	const char *wanted[] = {ready, devices};

	for (int i = 0; i < 2; i++) {
		if (wanted[i])
			ck_assert_str_eq(since[i], wanted[i]);
		else
			ck_assert_str_gt(since[i], "2020");
	}
}

static void age_conditions(void)
{
	struct rig_object *s = rig_find("n1.pmem");
	char *at = s->status;

	while ((at = strstr(at, "\"lastTransitionTime\":\"")) != NULL) {
		at += strlen("\"lastTransitionTime\":\"");
		memcpy(at, OLD_TIME, strlen(OLD_TIME));
	}
	rig_show(s);
	rig_let_pass_s(11);
	rig_assert_written(0, 0, 0);
	assert_since(OLD_TIME, OLD_TIME);
}

START_TEST(the_time_of_a_transition_stays_with_the_status)
{
	struct node_report *r = report_new("n1");

	rig_publish();
	assert_since(NULL, NULL);
	age_conditions();
	rig_put("n1", 2);
	rig_assert_written(0, 1, 0);
	assert_since(OLD_TIME, OLD_TIME);
	rig_let_pass_s(11);
	r->pools[0].incomplete = true;
	node_table_put(rig.nodes, r, rig.now);
	rig_assert_written(0, 1, 0);
	assert_since(OLD_TIME, NULL);
	rig_let_pass_s(11);
	age_conditions();
	node_table_end(rig.nodes, "n1");
	rig_assert_written(0, 1, 0);
	assert_since(NULL, NULL);
}
END_TEST

/* Also where the reason changes: the condition is the same. */
START_TEST(another_reason_is_no_transition)
{
	rig_publish();
	node_table_end(rig.nodes, "n1");
	rig_let_pass_s(11);
	rig_begin_count();
	age_conditions();
	rig_change_leader();
	rig_show_all();
	fake_informer_sync(rig.objects);
	rig_let_pass_s(200);
	rig_assert_written(0, 1, 0);
	rig_condition_is("Ready", "Unknown", "NotRegistered");
	assert_since(OLD_TIME, OLD_TIME);
}
END_TEST

START_TEST(the_last_contact_is_that_of_the_report)
{
	char wanted[5][KUBE_SECONDS_LEN + 1];
	const struct pmem_node *n;
	bool found = false;
	time_t from;

	rig_publish();
	rig_put("n1", 1);
	rig_wait_s(500);
	from = time(NULL);
	node_table_end(rig.nodes, "n1");
	rig_assert_written(0, 1, 0);
	n = informer_get(rig.objects, "n1.pmem");
	for (int i = 0; i < 5; i++) {
		kube_time_format(from - 500 + i, wanted[i]);
		found |= str_eq(n->last_contact, wanted[i]);
	}
	ck_assert_msg(found, "%s is not %s or little later", n->last_contact, wanted[0]);
}
END_TEST

START_TEST(a_node_that_does_not_register_with_a_new_leader_becomes_unknown)
{
	rig_publish();
	rig_change_leader();
	rig_show_all();
	fake_informer_sync(rig.objects);
	rig_let_pass_s(89);
	rig_assert_written(0, 0, 0);
	rig_let_pass_s(61);
	rig_assert_written(0, 1, 0);
	rig_condition_is("Ready", "Unknown", "NotRegistered");
	rig_condition_is("DevicesHealthy", "Unknown", "NoContact");
	rig_status_has("n1.pmem", "\"deviceMode\":\"fake\",\"driverVersion\":\"2.0.0\",\"bootID\":\"boot\",");
	rig_status_has("n1.pmem", "\"report\":1,\"capacity\":\"16Gi\",");
	rig_let_pass_s(300);
	rig_assert_written(0, 0, 0);
	rig_put("n1", 2);
	rig_assert_written(0, 1, 0);
	rig_condition_is("Ready", "True", "Registered");
}
END_TEST

/* Its status could not be written before the leader ended. */
START_TEST(an_unknown_node_without_a_status_gets_one_that_the_schema_allows)
{
	fake_informer_sync(rig.objects);
	rig_put("n1", 1);
	rig_serve_one();
	rig_change_leader();
	rig_show_all();
	fake_informer_sync(rig.objects);
	rig_let_pass_s(200);
	rig_assert_written(1, 1, 0);
	rig_condition_is("Ready", "Unknown", "NotRegistered");
	ck_assert_ptr_null(strstr(rig_find("n1.pmem")->status, "null"));
}
END_TEST

/* Makes the object that an earlier leader has left for a node that was removed from the cluster since.
 * @phase: of the volume that it shows; PHASE_LATER: it shows none */
static void leave_behind_volume(enum volume_phase phase)
{
	struct node_report *r = report_new("n1");

	if (phase != PHASE_LATER)
		report_add_volume(r, "v", "pvc")->phase = phase;
	fake_informer_sync(rig.objects);
	node_table_put(rig.nodes, r, rig.now);
	rig_serve_all();
	rig.node_exists = false;
	rig_change_leader();
	rig_show_all();
	fake_informer_sync(rig.objects);
	rig_let_pass_s(200);
	rig_begin_count();
}

static void leave_behind(void)
{
	leave_behind_volume(/* none */ PHASE_LATER);
}

START_TEST(the_object_of_a_node_that_is_gone_is_deleted_after_an_hour)
{
	leave_behind();
	rig_let_pass_s(HOUR_S - 200 - 1);
	rig_assert_written(0, 0, 0);
	rig_let_pass_s(61);
	rig_assert_written(0, 0, 1);
	ck_assert_ptr_null(rig_find("n1.pmem"));
	rig_let_pass_s(HOUR_S);
	rig_assert_written(0, 0, 0);
	rig_put("n1", 1);
	rig_assert_written(1, 1, 0);
}
END_TEST

START_TEST(an_hour_counts_from_the_last_report)
{
	rig_publish();
	rig_let_pass_s(HOUR_S);
	rig_put("n1", 1);
	node_table_end(rig.nodes, "n1");
	rig.node_exists = false;
	rig_let_pass_s(HOUR_S - 1);
	rig_assert_written(0, 1, 0);
	rig_let_pass_s(61);
	rig_assert_written(0, 0, 1);
	rig_let_pass_s(HOUR_S);
	rig_assert_written(0, 0, 0);
}
END_TEST

START_TEST(a_gone_node_with_volumes_keeps_its_object)
{
	leave_behind_volume(PHASE_READY);
	rig_let_pass_s(2 * HOUR_S);
	rig_assert_written(0, 0, 0);
	rig_condition_is("Ready", "Unknown", "NotRegistered");
}
END_TEST

START_TEST(a_gone_node_keeps_its_object_also_for_what_was_not_erased)
{
	leave_behind_volume(PHASE_ERASING);
	rig_let_pass_s(2 * HOUR_S);
	rig_assert_written(0, 0, 0);
	rig_status_has(
		"n1.pmem", "\"volumes\":{\"count\":0,\"inline\":0,\"inlineBytes\":\"0\",\"erasing\":1,");
}
END_TEST

START_TEST(only_what_the_cluster_is_known_to_have_lost_is_gone)
{
	leave_behind();
	rig.cluster_known = false;
	rig_let_pass_s(2 * HOUR_S);
	rig_assert_written(0, 0, 0);
	rig.cluster_known = rig.node_exists = true;
	rig_let_pass_s(2 * HOUR_S);
	rig_assert_written(0, 0, 0);
	rig.node_exists = false;
	rig_put("n1", 1);
	rig_let_pass_s(2 * HOUR_S);
	rig_assert_written(0, 1, 0);
	ck_assert_ptr_nonnull(rig_find("n1.pmem"));
}
END_TEST

START_TEST(a_deletion_is_repeated_until_it_is_done)
{
	leave_behind();
	rig_wait_s(HOUR_S);
	ck_assert_str_eq(fake_kube_next(rig.client)->method, "DELETE");
	fake_kube_answer(rig.client, 500, NULL);
	ck_assert_uint_eq(fake_kube_count(rig.client), 0);
	rig_wait_s(10);
	ck_assert_uint_eq(fake_kube_count(rig.client), 1);
	fake_kube_answer(rig.client, 404, NULL);
	ck_assert_uint_eq(node_objects_pending(rig.duty), 0);
	fake_informer_remove(rig.objects, "n1.pmem");
	rig_let_pass_s(HOUR_S);
	rig_assert_written(0, 0, 0);
}
END_TEST

START_TEST(what_was_changed_by_hand_is_overwritten)
{
	rig_publish();
	rig_change_by_hand("\"report\":1,", "\"report\":9,");
	rig_assert_written(0, 1, 0);
	rig_status_has("n1.pmem", "\"report\":1,");
	rig_let_pass_s(11);
	rig_change_by_hand("\"status\":\"True\"", "\"status\":\"Fals\"");
	rig_assert_written(0, 1, 0);
	rig_condition_is("Ready", "True", "Registered");
	rig_let_pass_s(11);
	rig_change_by_hand("\"driver\":\"pmem\"}", "\"driver\":\"meep\"}");
	rig_assert_written(0, 0, 1);
	rig_let_pass_s(61);
	rig_assert_written(1, 1, 0);
	ck_assert_ptr_nonnull(strstr(rig_find("n1.pmem")->spec, "{\"node\":\"n1\",\"driver\":\"pmem\"}"));
	rig_let_pass_s(11);
	rig_let_pass_s(300);
	rig_assert_written(0, 0, 0);
}
END_TEST

/* The watch does not show it any more, although it is there. */
START_TEST(an_object_without_our_label_gets_it_again)
{
	rig_publish();
	fake_informer_remove(rig.objects, "n1.pmem");
	rig_let_pass_s(61);
	rig_assert_written(1, 1, 0);
	ck_assert_ptr_nonnull(
		strstr(rig_find("n1.pmem")->spec, "\"labels\":{\"pmem-csi.intel.com/driver\":\"pmem\"}"));
	rig_let_pass_s(300);
	rig_assert_written(0, 0, 0);
}
END_TEST

/* The definition allows one region of a name. */
START_TEST(of_pools_with_one_name_the_first_is_shown)
{
	struct node_report *r = report_new("n1");

	r->pools = x_realloc(r->pools, 2, sizeof(*r->pools));
	r->pools[1] = (struct pool_report){.name = x_strdup(r->pools[0].name), .region_bytes = 7 * GIB};
	r->n_pools = 2;
	r->pools[0].region_bytes = 9 * GIB;
	fake_informer_sync(rig.objects);
	node_table_put(rig.nodes, r, rig.now);
	rig_serve_all();
	rig_status_has("n1.pmem", "\"total\":\"9Gi\"");
	ck_assert_ptr_null(strstr(rig_find("n1.pmem")->status, "\"total\":\"7Gi\""));
}
END_TEST

/* Its name does not say any more which node it is of. */
START_TEST(an_object_with_the_spec_of_another_is_made_again_at_the_next_look)
{
	rig_publish();
	rig_change_by_hand("\"node\":\"n1\"", "\"node\":\"n2\"");
	rig_assert_written(0, 0, 0);
	rig_let_pass_s(61);
	rig_assert_written(0, 0, 1);
	rig_let_pass_s(61);
	rig_assert_written(1, 1, 0);
	ck_assert_ptr_nonnull(strstr(rig_find("n1.pmem")->spec, "\"node\":\"n1\""));
	ck_assert_ptr_null(rig_find("n2.pmem"));
}
END_TEST

START_TEST(an_object_of_no_node_that_has_another_name_is_left_alone)
{
	fake_informer_put(rig.objects, "{\"metadata\":{\"name\":\"mine\"},\"spec\":{\"node\":\"n1\"}}");
	fake_informer_put(rig.objects, "{\"metadata\":{\"name\":\"empty\"}}");
	fake_informer_sync(rig.objects);
	rig.node_exists = false;
	rig_let_pass_s(2 * HOUR_S);
	fake_informer_remove(rig.objects, "mine");
	fake_informer_remove(rig.objects, "empty");
	rig_let_pass_s(11);
	rig_assert_written(0, 0, 0);
}
END_TEST

START_TEST(a_deleted_object_of_a_node_is_made_again)
{
	rig_publish();
	rig_lose();
	rig_assert_written(0, 0, 0);
	rig_let_pass_s(61);
	rig_assert_written(1, 1, 0);
	rig_condition_is("Ready", "True", "Registered");
}
END_TEST

START_TEST(an_object_that_is_deleted_while_its_status_is_written_is_made_again)
{
	rig_publish();
	rig_put("n1", 2);
	ck_assert_uint_eq(fake_kube_count(rig.client), 1);
	rig_lose();
	rig_let_pass_s(70);
	rig_assert_written(1, 2, 0);
	rig_status_has("n1.pmem", "\"report\":2,");
}
END_TEST

START_TEST(failures_are_repeated_after_a_back_off)
{
	static const unsigned statuses[] = {409, 500, 0, 404, 403, 422};

	fake_informer_sync(rig.objects);
	rig_put("n1", 1);
	for (size_t i = 0; i < ARRAY_SIZE(statuses); i++) {
		fake_kube_answer(rig.client, statuses[i], NULL);
		ck_assert_uint_eq(fake_kube_count(rig.client), 0);
		ck_assert_uint_eq(node_objects_pending(rig.duty), 1);
		rig_put("n1", 2 + i);
		ck_assert_uint_eq(fake_kube_count(rig.client), 0);
		rig_wait_s(36);
		ck_assert_uint_eq(fake_kube_count(rig.client), 1);
		ck_assert_str_eq(fake_kube_next(rig.client)->path, RIG_COLLECTION "n1.pmem" RIG_QUERY);
	}
	rig_serve_one();
	for (size_t i = 0; i < ARRAY_SIZE(statuses); i++) {
		ck_assert_str_eq(fake_kube_next(rig.client)->path, RIG_COLLECTION "n1.pmem/status" RIG_QUERY);
		fake_kube_answer(rig.client, statuses[i], NULL);
		ck_assert_uint_eq(fake_kube_count(rig.client), 0);
		rig_wait_s(36);
		ck_assert_uint_eq(fake_kube_count(rig.client), 1);
	}
	rig_let_pass_s(11);
	rig_assert_written(1, 1, 0);
	rig_status_has("n1.pmem", "\"report\":7,");
}
END_TEST

/* The watch does not show the object that was written. So the duty writes it again, at each look at all nodes
 * and not more often. */
START_TEST(a_watch_that_lags_behind_does_no_harm)
{
	fake_informer_sync(rig.objects);
	rig.lagging = true;
	rig_put("n1", 1);
	rig_assert_written(1, 1, 0);
	rig_let_pass_s(50);
	rig_assert_written(0, 0, 0);
	rig_put("n1", 2);
	rig_assert_written(1, 1, 0);
	rig_let_pass_s(120);
	rig_assert_written(2, 2, 0);
	rig.lagging = false;
	rig_show_all();
	rig_let_pass_s(300);
	rig_assert_written(0, 0, 0);
	rig_status_has("n1.pmem", "\"report\":2,");
}
END_TEST

START_TEST(an_older_object_that_the_watch_shows_late_changes_nothing_for_long)
{
	CLEANUP(free_charp) char *old = NULL;
	struct rig_object *s;

	rig_publish();
	s = rig_find("n1.pmem");
	old = x_asprintf("%s,%s", s->spec, s->status);
	rig.lagging = true;
	rig_put("n1", 2);
	rig_assert_written(0, 1, 0);
	fake_informer_put(rig.objects, old);
	rig_let_pass_s(5);
	rig.lagging = false;
	rig_show_all();
	rig_let_pass_s(300);
	ck_assert_uint_le(rig.n_statuses, 1);
	ck_assert_uint_eq(rig.n_specs + rig.n_deletes, 0);
	rig_status_has("n1.pmem", "\"report\":2,");
}
END_TEST

START_TEST(requests_that_run_are_given_up_at_the_end)
{
	rig_publish();
	for (int i = 0; i < 3 * PARALLEL; i++) {
		char id[8];

		snprintf(id, sizeof(id), "n%d", 100 + i);
		rig_put(id, 1);
	}
	rig_put("n1", 2);
	rig_serve_one();
	ck_assert_uint_eq(fake_kube_count(rig.client), PARALLEL);
	node_objects_free(TAKE_PTR(rig.duty));
	ck_assert_uint_eq(fake_kube_count(rig.client), 0);
	rig_put("n1", 3);
	node_table_end(rig.nodes, "n100");
}
END_TEST

START_TEST(a_crowd_is_written_a_few_at_a_time_and_costs_nothing_when_it_idles)
{
	const unsigned n = 5000;
	char id[8];

	fake_informer_sync(rig.objects);
	for (unsigned i = 0; i < n; i++) {
		snprintf(id, sizeof(id), "n%u", 10000 + i);
		rig_put(id, 1);
		ck_assert_uint_le(fake_kube_count(rig.client), PARALLEL);
	}
	ck_assert_uint_eq(node_objects_pending(rig.duty), n);
	while (fake_kube_count(rig.client) > 0) {
		rig_serve_one();
		ck_assert_uint_le(fake_kube_count(rig.client), PARALLEL);
	}
	rig_assert_written(n, n, 0);
	rig_let_pass_s(11);
	ck_assert_uint_eq(node_objects_pending(rig.duty), 0);
	for (int minute = 0; minute < 3; minute++) {
		for (unsigned i = 0; i < n; i++) {
			snprintf(id, sizeof(id), "n%u", 10000 + i);
			rig_put(id, 1);
		}
		rig_let_pass_s(60);
	}
	rig_assert_written(0, 0, 0);
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {the_first_report_makes_the_object_and_then_its_status,
		volumes_that_were_made_lately_are_named, an_object_offers_what_it_shows_while_it_is_ready,
		an_object_with_an_earlier_report_offers_nothing, objects_that_cannot_be_written_are_no_limit,
		only_objects_of_the_driver_are_watched, nothing_is_written_before_all_objects_are_known,
		what_is_shown_already_is_not_written_again, volumes_are_counted_and_pools_are_shown,
		more_regions_than_an_object_shows_are_summed_up, devices_are_judged_by_what_is_worst,
		devices_with_media_errors_are_not_healthy, devices_on_modules_with_trouble_are_not_healthy,
		a_heartbeat_writes_nothing, changes_are_written_at_once_but_not_too_often,
		a_change_while_a_request_runs_is_written_after_it, the_end_of_a_lease_is_shown,
		the_time_of_a_transition_stays_with_the_status, another_reason_is_no_transition,
		the_last_contact_is_that_of_the_report,
		a_node_that_does_not_register_with_a_new_leader_becomes_unknown,
		an_unknown_node_without_a_status_gets_one_that_the_schema_allows,
		the_object_of_a_node_that_is_gone_is_deleted_after_an_hour,
		an_hour_counts_from_the_last_report, a_gone_node_with_volumes_keeps_its_object,
		a_gone_node_keeps_its_object_also_for_what_was_not_erased,
		only_what_the_cluster_is_known_to_have_lost_is_gone, a_deletion_is_repeated_until_it_is_done,
		what_was_changed_by_hand_is_overwritten, an_object_without_our_label_gets_it_again,
		of_pools_with_one_name_the_first_is_shown,
		an_object_with_the_spec_of_another_is_made_again_at_the_next_look,
		an_object_of_no_node_that_has_another_name_is_left_alone,
		a_deleted_object_of_a_node_is_made_again,
		an_object_that_is_deleted_while_its_status_is_written_is_made_again,
		failures_are_repeated_after_a_back_off, a_watch_that_lags_behind_does_no_harm,
		an_older_object_that_the_watch_shows_late_changes_nothing_for_long,
		requests_that_run_are_given_up_at_the_end,
		a_crowd_is_written_a_few_at_a_time_and_costs_nothing_when_it_idles};
	Suite *suite = suite_create("duties/node_objects");
	TCase *tcase = tcase_create("node_objects");

	suite_add_tcase(suite, tcase);
	tcase_add_checked_fixture(tcase, rig_set_up, rig_tear_down);
	for (size_t i = 0; i < ARRAY_SIZE(tests); i++)
		tcase_add_test(tcase, tests[i]);
	return unit_runner_finish(srunner_create(suite));
}
