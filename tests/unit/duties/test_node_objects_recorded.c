/* SPDX-License-Identifier: Apache-2.0 */
/* PmemNode objects say until when the volumes of their node are recorded: which time they show, and when it
 * is written. */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/str.h"
#include "unit/duties/node_objects_rig.h"
#include "unit/kube/fake_kube.h"
#include "unit/unit.h"

#define FIRST  "2026-01-02T03:04:05Z"
#define SECOND "2026-01-02T03:04:06Z"
#define CROWD  300

static void check(const char *until)
{
	const struct rig_object *s = rig_find("n1.pmem");

	if (until) {
		CLEANUP(free_charp) char *text = x_asprintf("\"volumesRecordedUntil\":\"%s\"", until);
		rig_status_has("n1.pmem", text);
	} else {
		ck_assert_ptr_null(strstr(s->status, "volumesRecordedUntil"));
	}
}

/* n1 has reported, and its volumes have records. */
static void publish_recorded(void)
{
	rig.recorded_until = FIRST;
	rig_publish();
	check(FIRST);
}

START_TEST(that_volumes_are_recorded_is_written_with_the_next_look)
{
	rig_publish();
	check(NULL);
	rig.recorded_until = FIRST;
	rig_let_pass_s(61);
	rig_assert_written(0, 1, 0);
	check(FIRST);
	rig_let_pass_s(300);
	rig_assert_written(0, 0, 0);
}
END_TEST

START_TEST(that_they_are_not_is_written_with_the_report_that_shows_it)
{
	publish_recorded();
	rig.recorded_until = NULL;
	rig_put("n1", 2);
	rig_assert_written(0, 1, 0);
	check(NULL);
}
END_TEST

START_TEST(that_they_are_not_any_more_is_written_without_a_report)
{
	publish_recorded();
	rig.recorded_until = NULL;
	rig_let_pass_s(61);
	rig_assert_written(0, 1, 0);
	check(NULL);
}
END_TEST

/* The next leader has no complete list of records yet, or the node is down. */
START_TEST(the_next_leader_keeps_what_it_cannot_judge)
{
	publish_recorded();
	rig.keeps_recorded = true;
	rig_change_leader();
	rig_show_all();
	fake_informer_sync(rig.objects);
	rig_let_pass_s(200);
	rig_assert_written(0, 1, 0);
	rig_condition_is("Ready", "Unknown", "NotRegistered");
	check(FIRST);
	rig_put("n1", 2);
	rig_assert_written(0, 1, 0);
	check(FIRST);
}
END_TEST

/* A node that the cluster has lost may be replaced by another machine with the same name. */
START_TEST(a_node_that_the_cluster_has_lost_has_no_time)
{
	publish_recorded();
	node_table_end(rig.nodes, "n1");
	rig_let_pass_s(11);
	check(FIRST);
	rig.node_exists = false;
	rig_let_pass_s(61);
	check(NULL);
	rig.node_exists = true;
	rig.keeps_recorded = true;
	rig_let_pass_s(61);
	check(NULL);
}
END_TEST

START_TEST(a_node_that_a_new_leader_does_not_find_has_no_time)
{
	publish_recorded();
	rig_change_leader();
	rig.node_exists = false;
	rig_show_all();
	fake_informer_sync(rig.objects);
	rig_let_pass_s(200);
	check(NULL);
}
END_TEST

static unsigned count(const char *until)
{
	unsigned n = 0;

	for (const struct rig_object *s = rig.store; s; s = s->next)
		n += s->status && strstr(s->status, until);
	return n;
}

/* A node that reports volumes again and again makes records that are newer each time. */
START_TEST(another_time_alone_is_written_for_a_few_objects_at_a_time)
{
	char name[16];

	rig.recorded_until = FIRST;
	fake_informer_sync(rig.objects);
	for (unsigned i = 0; i < CROWD; i++) {
		snprintf(name, sizeof(name), "n%u", i);
		rig_put(name, 1);
	}
	rig_let_pass_s(120);
	ck_assert_uint_eq(count(FIRST), CROWD);
	rig.recorded_until = SECOND;
	rig_begin_count();
	rig_let_pass_s(60);
	ck_assert_uint_gt(count(SECOND), 0);
	ck_assert_uint_lt(count(SECOND), CROWD);
	rig_let_pass_s(120);
	ck_assert_uint_eq(count(SECOND), CROWD);
	rig_assert_written(0, CROWD, 0);
	/* the new time is written at once with a change that is written anyway */
	rig_let_pass_s(11);
	rig.recorded_until = FIRST;
	rig_put("n1", 2);
	rig_serve_all();
	check(FIRST);
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {that_volumes_are_recorded_is_written_with_the_next_look,
		that_they_are_not_is_written_with_the_report_that_shows_it,
		that_they_are_not_any_more_is_written_without_a_report,
		the_next_leader_keeps_what_it_cannot_judge, a_node_that_the_cluster_has_lost_has_no_time,
		a_node_that_a_new_leader_does_not_find_has_no_time,
		another_time_alone_is_written_for_a_few_objects_at_a_time};
	Suite *suite = suite_create("duties/node_objects_recorded");
	TCase *tcase = tcase_create("node_objects_recorded");

	suite_add_tcase(suite, tcase);
	tcase_add_checked_fixture(tcase, rig_set_up, rig_tear_down);
	for (size_t i = 0; i < ARRAY_SIZE(tests); i++)
		tcase_add_test(tcase, tests[i]);
	return unit_runner_finish(srunner_create(suite));
}
