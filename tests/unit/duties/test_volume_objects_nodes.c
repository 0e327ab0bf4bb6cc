/* SPDX-License-Identifier: Apache-2.0 */
/* Volumes of nodes that are out of service, silent, or lost. */
#include "base/clock.h"
#include "base/mem.h"
#include "base/str.h"
#include "unit/duties/volume_objects_rig.h"
#include "unit/kube/fake_kube.h"
#include "unit/kube/kube_json.h"

#define LOOK_S 30

static void check_phase(const char *phase, const char *reason)
{
	CLEANUP(pmem_volume_freep) struct pmem_volume *v = rig_read();
	const struct pmem_condition *c;

	ck_assert_ptr_nonnull(v);
	ck_assert_str_eq(v->phase, phase);
	c = pmem_condition_find(&v->conditions, "Ready");
	ck_assert_ptr_nonnull(c);
	ck_assert_str_eq(c->reason, reason);
}

/* A volume that was given out, on n1, whose object shows it. */
static void begin_with_volume(void)
{
	rig_put("n1", rig.id, PHASE_READY);
	rig_given_out("n1");
	fake_informer_sync(rig.objects);
	rig_live_s(LOOK_S + 1);
	rig_check_served(0, 0, 0, 1, 0);
	check_phase("Ready", "Ready");
}

START_TEST(the_taint_of_a_node_is_shown_at_once)
{
	begin_with_volume();
	rig.desk.out_of_service = "n1";
	volume_objects_node_changed(rig.duty, "n1");
	rig_check_served(0, 0, 0, 1, 0);
	check_phase("Unreachable", "NodeOutOfService");
	rig_live_s(LOOK_S);
	rig_check_served(0, 0, 0, 0, 0);
	rig.desk.out_of_service = NULL;
	volume_objects_node_changed(rig.duty, "n1");
	rig_check_served(0, 0, 0, 1, 0);
	check_phase("Ready", "Ready");
}
END_TEST

START_TEST(the_taint_is_not_shown_before_all_objects_are_known)
{
	rig_put("n1", rig.id, PHASE_READY);
	rig_given_out("n1");
	rig.desk.out_of_service = "n1";
	volume_objects_node_changed(rig.duty, "n1");
	rig_live_s(LOOK_S);
	rig_check_served(0, 0, 0, 0, 0);
	fake_informer_sync(rig.objects);
	rig_live_s(LOOK_S);
	check_phase("Unreachable", "NodeOutOfService");
}
END_TEST

static void put_claim(const char *name, const char *volume)
{
	CLEANUP(free_charp) char *json = kube_json_claim(name, "fast", NULL, volume);

	fake_informer_put(rig.claims, json);
}

static void write_again(void)
{
	rig_live_s(LOOK_S + 1);
}

static void check_claim(const char *claim)
{
	CLEANUP(pmem_volume_freep) struct pmem_volume *v = rig_read();

	ck_assert_ptr_nonnull(v);
	ck_assert_str_eq(v->claim ? v->claim : "", claim);
}

/* As a populator binds the volume of its prime claim to the claim that it has filled it for. */
START_TEST(the_record_shows_the_claim_that_the_volume_is_bound_to)
{
	CLEANUP(pmem_volume_freep) struct pmem_volume *v = NULL;

	put_claim("target", NULL);
	begin_with_volume();
	v = rig_read();
	v->claim = x_strdup("ns/prime-uid-target");
	rig_store(v);
	write_again();
	check_claim("ns/prime-uid-target");
	/* anyone may write the name of a volume into a claim that is not bound to it */
	fake_informer_put(rig.claims, "{\"metadata\":{\"name\":\"thief\",\"namespace\":\"ns\",\"uid\":\"u\","
				      "\"resourceVersion\":\"9\"},\"spec\":{\"volumeName\":\"" RIG_NAME
				      "\"},\"status\":{\"phase\":\"Pending\"}}");
	write_again();
	check_claim("ns/prime-uid-target");
	put_claim("target-2", RIG_NAME);
	write_again();
	check_claim("ns/target-2");
	fake_informer_remove(rig.claims, "ns/target-2");
	write_again();
	check_claim("ns/target-2");
}
END_TEST

/* n1 reports the volume, mounted so */
static void put_dax(enum volume_dax dax, bool lacks_sync)
{
	struct node_report *r = report_new("n1");
	struct volume_report *v = report_add_volume(r, rig.id, RIG_NAME);

	v->phase = PHASE_READY;
	v->dax = dax;
	v->lacks_sync = lacks_sync;
	rig_put_report(r);
	volume_objects_node_changed(rig.duty, "n1");
	write_again();
}

START_TEST(a_claim_gets_an_event_each_time_that_its_volume_is_mounted_without_what_was_promised)
{
	put_claim("data", RIG_NAME);
	begin_with_volume();
	put_dax(VOLUME_DAX_SYNCHRONOUS, false);
	ck_assert_uint_eq(rig.n_told, 0);
	put_dax(VOLUME_DAX_FSYNC, true);
	put_dax(VOLUME_DAX_FSYNC, true);
	ck_assert_uint_eq(rig.n_told, 1);
	ck_assert_ptr_nonnull(strstr(rig.reported, "ns/data MapSyncRefused: the kernel of node n1 refuses"));
	put_dax(VOLUME_DAX_UNKNOWN, false);
	put_dax(VOLUME_DAX_NONE, true);
	ck_assert_uint_eq(rig.n_told, 2);
	ck_assert_ptr_nonnull(strstr(rig.reported, "ns/data MountedWithoutDAX: on node n1, volume "));
}
END_TEST

START_TEST(a_claim_gets_one_event_when_its_volume_becomes_unreachable)
{
	put_claim("other", "pvc-other");
	put_claim("unbound", NULL);
	put_claim("data", RIG_NAME);
	begin_with_volume();
	ck_assert_uint_eq(rig.n_told, 0);
	node_table_end(rig.desk.table, "n1");
	write_again();
	ck_assert_uint_eq(rig.n_told, 1);
	ck_assert_ptr_nonnull(strstr(rig.reported, "ns/data VolumeUnreachable: volume "));
	ck_assert_ptr_nonnull(strstr(rig.reported, rig.id));
	ck_assert_ptr_nonnull(strstr(rig.reported, "on n1 is unreachable: No node that has"));
	/* another reason, and the same node again, are no new event */
	rig.desk.out_of_service = "n1";
	volume_objects_node_changed(rig.duty, "n1");
	write_again();
	check_phase("Unreachable", "NodeOutOfService");
	rig.desk.out_of_service = NULL;
	volume_objects_node_changed(rig.duty, "n1");
	write_again();
	check_phase("Unreachable", "NodeUnreachable");
	rig_live_s(3600);
	ck_assert_uint_eq(rig.n_told, 1);
	rig_put("n1", rig.id, PHASE_READY);
	write_again();
	check_phase("Ready", "Ready");
	ck_assert_uint_eq(rig.n_told, 1);
	node_table_end(rig.desk.table, "n1");
	write_again();
	ck_assert_uint_eq(rig.n_told, 2);
}
END_TEST

START_TEST(the_next_leader_repeats_no_event)
{
	put_claim("data", RIG_NAME);
	begin_with_volume();
	node_table_end(rig.desk.table, "n1");
	write_again();
	ck_assert_uint_eq(rig.n_told, 1);
	rig_restart();
	rig_live_s(3600);
	check_phase("Unreachable", "NodeUnreachable");
	ck_assert_uint_eq(rig.n_told, 1);
}
END_TEST

/* The reply is lost, and the watch shows what was written. */
START_TEST(a_write_with_an_unknown_outcome_gives_its_event)
{
	CLEANUP(pmem_volume_freep) struct pmem_volume *v = NULL;

	put_claim("data", RIG_NAME);
	begin_with_volume();
	node_table_end(rig.desk.table, "n1");
	rig_fail(ERR_UNAVAILABLE);
	ck_assert_uint_eq(rig.n_told, 0);
	v = rig_read();
	free(v->phase);
	v->phase = x_strdup("Unreachable");
	rig_store(v);
	ck_assert_uint_eq(rig.n_told, 1);
}
END_TEST

/* Longer than a node takes to be lost whose driver was stopped and whose Node object was deleted. */
#define LOST_S (RIG_LOST_S + (unsigned)(DESK_LEASE_NS / NS_PER_S) + 400)

static void lose_node(void)
{
	node_table_end(rig.desk.table, "n1");
	rig.desk.missing = "n1";
	rig_live_s(LOST_S);
	check_phase("Lost", "NodeLost");
}

/* DeleteVolume as another replica has answered it. */
static void note_retained(void)
{
	CLEANUP(pmem_volume_freep) struct pmem_volume *v = rig_read();

	v->retained = true;
	rig_store(v);
	rig_live_s(LOOK_S + 1);
}

START_TEST(a_volume_is_lost_with_its_node_and_comes_back_with_it)
{
	put_claim("data", RIG_NAME);
	begin_with_volume();
	node_table_end(rig.desk.table, "n1");
	rig.desk.missing = "n1";
	rig_live_s(RIG_LOST_S);
	check_phase("Unreachable", "NodeUnreachable");
	rig_live_s(LOST_S - RIG_LOST_S);
	check_phase("Lost", "NodeLost");
	rig_check("n1");
	rig.desk.missing = NULL;
	volume_objects_node_changed(rig.duty, "n1");
	write_again();
	check_phase("Unreachable", "NodeUnreachable");
	ck_assert_uint_eq(rig.n_told, 1);
	rig_put("n1", rig.id, PHASE_READY);
	write_again();
	check_phase("Ready", "Ready");
	rig_check("n1");
}
END_TEST

START_TEST(a_node_object_that_only_the_api_server_has_is_enough)
{
	begin_with_volume();
	rig.has_node = true;
	node_table_end(rig.desk.table, "n1");
	rig.desk.missing = "n1";
	rig_live_s(2 * LOST_S);
	check_phase("Unreachable", "NodeUnreachable");
	rig.has_node = false;
	rig_live_s(LOST_S);
	check_phase("Lost", "NodeLost");
	rig.has_node = true;
	rig_live_s(400);
	check_phase("Unreachable", "NodeUnreachable");
}
END_TEST

/* It begins to count again, and takes nothing back. */
START_TEST(the_next_leader_leaves_lost_volumes_lost)
{
	begin_with_volume();
	lose_node();
	rig_restart();
	rig_live_s(LOST_S - 400);
	check_phase("Lost", "NodeLost");
	rig_check("n1");
}
END_TEST

START_TEST(the_record_of_a_deleted_volume_stays_while_its_node_is_lost)
{
	begin_with_volume();
	lose_node();
	note_retained();
	rig.claim.has_volume = false;
	rig_live_s(3 * LOST_S);
	check_phase("Lost", "NodeLost");
	rig_check("n1");
}
END_TEST

/* It was deleted, and nothing refers to it. */
START_TEST(a_deleted_volume_that_returns_is_shown_and_stays)
{
	begin_with_volume();
	lose_node();
	note_retained();
	rig.claim.has_volume = false;
	rig_put("n1", rig.id, PHASE_READY);
	write_again();
	check_phase("Retained", "NodeReturned");
	rig_live_s(2 * RIG_LOST_S);
	check_phase("Retained", "NodeReturned");
	rig_check("n1");
	ck_assert_uint_eq(rig.desk.n_calls, 0);
}
END_TEST

START_TEST(a_deleted_volume_that_gets_a_persistent_volume_is_in_order)
{
	const struct claim_state states[] = {{.is_referenced = true}, {.has_volume = true, .handle = rig.id}};

	begin_with_volume();
	lose_node();
	note_retained();
	rig.claim = (struct claim_state){.has_volume = true, .handle = "another"};
	rig_put("n1", rig.id, PHASE_READY);
	rig_live_s(2000);
	check_phase("Retained", "NodeReturned");
	rig.claim = states[_i];
	rig_live_s(300 + 2 * LOOK_S);
	check_phase("Ready", "Ready");
	rig_check("n1");
	rig_live_s(2000);
	check_phase("Ready", "Ready");
}
END_TEST

/* It goes after DeleteVolume has succeeded. */
START_TEST(the_persistent_volume_that_was_deleted_does_not_count)
{
	begin_with_volume();
	lose_node();
	rig.claim = (struct claim_state){.has_volume = true, .handle = rig.id};
	note_retained();
	rig_live_s(2000);
	check_phase("Lost", "NodeLost");
	rig_put("n1", rig.id, PHASE_READY);
	rig_live_s(300 - LOOK_S);
	rig.claim = (struct claim_state){0};
	rig_live_s(2000);
	check_phase("Retained", "NodeReturned");
}
END_TEST

START_TEST(the_record_goes_when_the_node_returns_without_the_volume)
{
	begin_with_volume();
	lose_node();
	note_retained();
	rig_put("n1", NULL, 0);
	rig_live_s(2 * LOOK_S);
	rig_check("n1");
	rig_live_s((unsigned)(VOLUME_OBJECTS_SETTLED_NS / NS_PER_S) + 2 * LOOK_S);
	rig_check(NULL);
	ck_assert_uint_eq(rig.desk.n_calls, 0);
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {the_taint_of_a_node_is_shown_at_once,
		the_taint_is_not_shown_before_all_objects_are_known,
		the_record_shows_the_claim_that_the_volume_is_bound_to,
		a_claim_gets_an_event_each_time_that_its_volume_is_mounted_without_what_was_promised,
		a_claim_gets_one_event_when_its_volume_becomes_unreachable, the_next_leader_repeats_no_event,
		a_write_with_an_unknown_outcome_gives_its_event,
		a_volume_is_lost_with_its_node_and_comes_back_with_it,
		a_node_object_that_only_the_api_server_has_is_enough,
		the_next_leader_leaves_lost_volumes_lost,
		the_record_of_a_deleted_volume_stays_while_its_node_is_lost,
		a_deleted_volume_that_returns_is_shown_and_stays,
		the_persistent_volume_that_was_deleted_does_not_count,
		the_record_goes_when_the_node_returns_without_the_volume};
	Suite *suite = suite_create("duties/volume_objects_nodes");
	TCase *tcase = tcase_create("nodes");

	suite_add_tcase(suite, tcase);
	tcase_add_checked_fixture(tcase, rig_set_up, rig_tear_down);
	for (size_t i = 0; i < ARRAY_SIZE(tests); i++)
		tcase_add_test(tcase, tests[i]);
	tcase_add_loop_test(tcase, a_deleted_volume_that_gets_a_persistent_volume_is_in_order, 0, 2);
	return unit_runner_finish(srunner_create(suite));
}
