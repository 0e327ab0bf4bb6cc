/* SPDX-License-Identifier: Apache-2.0 */
/* Volumes that are filled with the content of others, and pauses of writers meanwhile. */
#include <stdio.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/str.h"
#include "unit/duties/volume_objects_rig.h"
#include "unit/kube/fake_kube.h"
#include "unit/kube/kube_json.h"

#define LOOK_S 30
#define GIB    (1ULL << 30)

static void put_filling(uint64_t done_bytes, uint64_t total_bytes)
{
	struct node_report *r = report_new("n1");
	struct volume_report *v = report_add_volume(r, rig.id, RIG_NAME);

	v->phase = PHASE_CREATING;
	v->filling = (struct volume_filling){done_bytes, total_bytes};
	rig_put_report(r);
}

static void check_filling(uint64_t done_bytes, uint64_t total_bytes)
{
	CLEANUP(pmem_volume_freep) struct pmem_volume *v = rig_read();

	ck_assert_uint_eq(v->n_copies, 1);
	ck_assert_uint_eq(v->copies[0].done_bytes, done_bytes);
	ck_assert_uint_eq(v->copies[0].total_bytes, total_bytes);
}

/* A record that a call has just written, and a node that has begun. */
static void begin_filling(void)
{
	CLEANUP(pmem_volume_freep) struct pmem_volume *v = rig_record("n1");

	fake_informer_sync(rig.objects);
	put_filling(0, 0);
	rig_store(v);
}

static void show_progress(void)
{
	rig_live_s(LOOK_S + 1);
	rig_check_served(0, 0, 0, 1, 0);
	check_filling(0, 0);
	put_filling(GIB, 4 * GIB);
	rig_live_s(LOOK_S + 1);
	rig_check_served(0, 0, 0, 1, 0);
	check_filling(GIB, 4 * GIB);
}

START_TEST(progress_is_shown_until_the_volume_is_ready)
{
	begin_filling();
	show_progress();
	rig_put("n1", rig.id, PHASE_READY);
	rig_live_s(LOOK_S + 1);
	check_filling(0, 0);
}
END_TEST

/* As many reports as a node could send in a hurry. */
START_TEST(progress_is_written_every_ten_seconds_at_most)
{
	begin_filling();
	show_progress();
	for (unsigned i = 1; i <= 300; i++) {
		put_filling(GIB + i, 4 * GIB);
		rig_pass_s(1);
		rig_serve_all();
	}
	ck_assert_uint_ge(rig.n_writes[RECORD_STATUS], 10);
	ck_assert_uint_le(rig.n_writes[RECORD_STATUS], 31);
}
END_TEST

/* It waits for the copy. */
START_TEST(progress_is_shown_while_a_call_works_on_the_record)
{
	struct volume_key key = volume_key_of_name(RIG_NAME);

	begin_filling();
	ck_assert(key_lock(rig.desk.controller->locks, &key));
	rig_live_s(LOOK_S + 1);
	rig_check_served(0, 0, 0, 0, 0);
	put_filling(GIB, 4 * GIB);
	rig_live_s(LOOK_S + 1);
	rig_check_served(0, 0, 0, 1, 0);
	check_filling(GIB, 4 * GIB);
	rig_live_s(300);
	rig_check_served(0, 0, 0, 0, 0);
	/* nothing else is written */
	rig_put("n1", rig.id, PHASE_READY);
	rig_put("n2", rig.id, PHASE_READY);
	rig_live_s(300);
	rig_check_served(0, 0, 0, 0, 0);
	key_unlock(rig.desk.controller->locks, &key);
}
END_TEST

static void put_claim(const char *name, const char *volume)
{
	CLEANUP(free_charp) char *json = kube_json_claim(name, "fast", NULL, volume);

	fake_informer_put(rig.claims, json);
}

static void put_pause(const char *node_id, uint64_t ms, uint64_t ended_ms)
{
	static uint64_t number;
	struct node_report *r = report_new(node_id);

	r->number = ++number;
	report_add_volume(r, rig.id, RIG_NAME)->pause = (struct volume_pause){ms, ended_ms};
	rig_put_report(r);
}

/* A volume that was given out, on n1, whose object shows it. */
static void begin_with_volume(void)
{
	put_claim("other", "pvc-other");
	put_claim("data", RIG_NAME);
	rig_put("n1", rig.id, PHASE_READY);
	rig_given_out("n1");
	fake_informer_sync(rig.objects);
	rig_live_s(LOOK_S + 1);
}

START_TEST(each_pause_gives_one_event)
{
	begin_with_volume();
	put_pause("n1", 123, 1000);
	ck_assert_uint_eq(rig.n_told, 1);
	ck_assert_uint_eq(rig.n_informed, 1);
	ck_assert_ptr_nonnull(strstr(rig.reported, "ns/data WritersPaused: the writers of volume "));
	ck_assert_ptr_nonnull(strstr(rig.reported, rig.id));
	ck_assert_ptr_nonnull(strstr(rig.reported, " on node n1 stood still for 123 ms"));
	/* neither heartbeats, nor the node's silence, nor a report of something else repeats it */
	rig_live_s(300);
	put_pause("n1", 123, 1000);
	node_table_end(rig.desk.table, "n1");
	rig_put("n1", rig.id, PHASE_READY);
	rig_live_s(30);
	ck_assert_uint_eq(rig.n_informed, 1);
	put_pause("n1", 123, 2000);
	ck_assert_uint_eq(rig.n_informed, 2);
	rig_live_s(30);
	put_pause("n1", 9, 3000);
	ck_assert_uint_eq(rig.n_informed, 3);
	ck_assert_ptr_nonnull(strstr(rig.reported, " for 9 ms"));
}
END_TEST

START_TEST(pauses_before_the_controller_began_give_none)
{
	begin_with_volume();
	put_pause("n1", 123, 1000);
	ck_assert_uint_eq(rig.n_informed, 1);
	rig_restart();
	put_pause("n1", 123, 1000);
	rig_live_s(300);
	ck_assert_uint_eq(rig.n_informed, 1);
	put_pause("n1", 124, 2000);
	ck_assert_uint_eq(rig.n_informed, 2);
}
END_TEST

/* It has posted the Event. */
START_TEST(next_leader_repeats_no_pause)
{
	begin_with_volume();
	put_pause("n1", 123, 1000);
	rig_begin();
	rig_show();
	fake_informer_sync(rig.objects);
	rig_live_s(300);
	ck_assert_uint_eq(rig.n_informed, 1);
	put_pause("n1", 124, 2000);
	ck_assert_uint_eq(rig.n_informed, 2);
}
END_TEST

START_TEST(node_that_the_record_does_not_name_is_not_believed)
{
	begin_with_volume();
	rig.lagging = true;
	put_pause("n2", 1, 1000);
	put_pause("n2", 2, 2000);
	ck_assert_uint_eq(rig.n_told, 0);
	put_pause("n1", 3, 1000);
	ck_assert_uint_eq(rig.n_told, 1);
}
END_TEST

START_TEST(events_of_one_report_are_limited)
{
	enum { MANY = 100 };

	begin_with_volume();
	for (unsigned round = 0; round < 2; round++) {
		struct node_report *r = report_new("n1");

		for (unsigned i = 0; i < MANY; i++) {
			char id[VOLUME_ID_MAX + 1];

			/* handles of one volume, and thus of one record */
			snprintf(id, sizeof(id), "%.*s%08x", (int)strlen(rig.id) - 8, rig.id, i);
			report_add_volume(r, id, RIG_NAME)->pause = (struct volume_pause){1, 1000 + round};
		}
		rig_put_report(r);
	}
	ck_assert_uint_eq(rig.n_informed, VOLUME_EVENTS_PAUSES_MAX);
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {progress_is_shown_until_the_volume_is_ready,
		progress_is_written_every_ten_seconds_at_most,
		progress_is_shown_while_a_call_works_on_the_record, each_pause_gives_one_event,
		pauses_before_the_controller_began_give_none, next_leader_repeats_no_pause,
		node_that_the_record_does_not_name_is_not_believed, events_of_one_report_are_limited};
	Suite *suite = suite_create("duties/volume_objects_copies");
	TCase *tcase = tcase_create("copies");

	suite_add_tcase(suite, tcase);
	tcase_add_checked_fixture(tcase, rig_set_up, rig_tear_down);
	for (size_t i = 0; i < ARRAY_SIZE(tests); i++)
		tcase_add_test(tcase, tests[i]);
	return unit_runner_finish(srunner_create(suite));
}
