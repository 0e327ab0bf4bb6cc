/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "base/clock.h"
#include "base/mem.h"
#include "duties/lost_nodes.h"
#include "unit/controller/desk.h"
#include "unit/kube/fake_kube.h"

#define HOUR_S   3600
#define LOOK_S   300 /* how often a node is looked for that is lost after an hour */
#define EXPECT_S 30

static struct desk d;
static struct kube_client *client;
static struct lost_nodes *lost;
static unsigned n_changes;
static char last[32];

static void changed(void *user, const char *node_id)
{
	(void)user;
	n_changes++;
	snprintf(last, sizeof(last), "%s", node_id);
}

static void begin_duty(uint64_t after_s)
{
	const struct lost_nodes_config config = {.client = client,
		.controller = d.controller,
		.lost_after_ns = after_s * NS_PER_S,
		.changed = changed};

	lost = lost_nodes_new(&config);
}

/* The Node object of n1 is gone, and its driver has not registered for a lease time. */
static void set_up(void)
{
	desk_open(&d, /* early= */ false, /* forget_gone= */ false);
	client = fake_kube_new(/* loop= */ NULL);
	d.missing = "n1";
	begin_duty(HOUR_S);
}

static void tear_down(void)
{
	lost_nodes_free(lost);
	kube_client_free(client);
	desk_close(&d);
}

static void answer(unsigned status)
{
	ck_assert_uint_eq(fake_kube_count(client), 1);
	ck_assert_str_eq(fake_kube_next(client)->method, "GET");
	ck_assert_str_eq(fake_kube_next(client)->path, "/api/v1/nodes/n1");
	fake_kube_answer(client, status, status == 200 ? "{\"metadata\":{\"name\":\"n1\"}}" : "");
}

/* Time goes on, and n1 is in records; all requests get @status. */
static void pass_s(unsigned seconds, unsigned status)
{
	for (unsigned i = 1; i <= seconds; i++) {
		d.now_ns += NS_PER_S;
		if (i % EXPECT_S == 0)
			lost_nodes_expect(lost, "n1");
		lost_nodes_tick(lost);
		if (fake_kube_count(client) > 0)
			answer(status);
	}
}

static void check(enum node_fate fate)
{
	ck_assert_int_eq(lost_nodes_judge(lost, "n1"), fate);
}

static void begin_absence(void)
{
	lost_nodes_expect(lost, "n1");
	answer(404);
	check(FATE_UNKNOWN);
}

START_TEST(a_node_that_is_gone_for_the_time_is_lost)
{
	begin_absence();
	pass_s(HOUR_S - 1, 404);
	check(FATE_UNKNOWN);
	ck_assert_uint_eq(n_changes, 0);
	pass_s(LOOK_S, 404);
	check(FATE_LOST);
	ck_assert_uint_eq(n_changes, 1);
	ck_assert_str_eq(last, "n1");
	ck_assert_int_eq(lost_nodes_judge(lost, "n2"), FATE_UNKNOWN);
	pass_s(10 * HOUR_S, 404);
	check(FATE_LOST);
	ck_assert_uint_eq(n_changes, 1);
}
END_TEST

START_TEST(the_time_is_that_of_the_flag)
{
	lost_nodes_free(lost);
	begin_duty(20);
	begin_absence();
	pass_s(18, 404);
	check(FATE_UNKNOWN);
	pass_s(4, 404);
	check(FATE_LOST);
}
END_TEST

START_TEST(the_api_server_has_the_last_word)
{
	static const unsigned failures[] = {0, 401, 403, 429, 500, 503};

	begin_absence();
	pass_s(HOUR_S / 2, 404);
	pass_s(HOUR_S, failures[_i]);
	check(FATE_UNKNOWN);
	pass_s(LOOK_S, 404);
	check(FATE_LOST);
	pass_s(HOUR_S, failures[_i]);
	check(FATE_LOST);
}
END_TEST

/* Its driver has not set the label, by which the watch finds it. */
START_TEST(a_node_object_that_is_found_begins_the_time_again)
{
	begin_absence();
	pass_s(HOUR_S - LOOK_S, 404);
	pass_s(LOOK_S, 200);
	check(FATE_PRESENT);
	ck_assert_uint_eq(n_changes, 1);
	pass_s(LOOK_S, 404);
	check(FATE_UNKNOWN);
	pass_s(HOUR_S - LOOK_S, 404);
	check(FATE_UNKNOWN);
	pass_s(2 * LOOK_S, 404);
	check(FATE_LOST);
	pass_s(LOOK_S, 200);
	check(FATE_PRESENT);
}
END_TEST

/* The end of the lease comes before the next tick. */
START_TEST(a_registration_begins_the_time_again)
{
	begin_absence();
	pass_s(HOUR_S - LOOK_S, 404);
	desk_add_node(&d, "n1", 4);
	node_table_end(d.table, "n1");
	pass_s((unsigned)(DESK_LEASE_NS / NS_PER_S) + EXPECT_S + HOUR_S - LOOK_S, 404);
	check(FATE_UNKNOWN);
	pass_s(3 * LOOK_S, 404);
	check(FATE_LOST);
	desk_add_node(&d, "n1", 4);
	check(FATE_UNKNOWN);
	lost_nodes_expect(lost, "n1");
	ck_assert_uint_eq(fake_kube_count(client), 0);
}
END_TEST

START_TEST(a_node_that_the_watch_shows_is_not_looked_for)
{
	begin_absence();
	pass_s(HOUR_S + LOOK_S, 404);
	check(FATE_LOST);
	d.missing = NULL;
	pass_s(1, 404);
	check(FATE_UNKNOWN);
	pass_s(HOUR_S, 404);
	check(FATE_UNKNOWN);
	lost_nodes_expect(lost, "n1");
	ck_assert_uint_eq(fake_kube_count(client), 0);
}
END_TEST

/* Nodes register within a lease time after the start. */
START_TEST(a_controller_that_has_just_started_concludes_nothing)
{
	d.controller->started_ns = d.now_ns;
	lost_nodes_expect(lost, "n1");
	ck_assert_uint_eq(fake_kube_count(client), 0);
	d.controller->started_ns = 0;
	d.cluster_ready = false;
	lost_nodes_expect(lost, "n1");
	ck_assert_uint_eq(fake_kube_count(client), 0);
}
END_TEST

START_TEST(another_leader_begins_the_time_again)
{
	begin_absence();
	pass_s(HOUR_S - LOOK_S, 404);
	lost_nodes_free(lost);
	begin_duty(HOUR_S);
	begin_absence();
	pass_s(2 * LOOK_S, 404);
	check(FATE_UNKNOWN);
}
END_TEST

START_TEST(a_node_of_no_record_is_forgotten)
{
	begin_absence();
	for (unsigned i = 0; i <= LOST_NODES_EXPECT_NS / NS_PER_S; i++) {
		d.now_ns += NS_PER_S;
		lost_nodes_tick(lost);
		if (fake_kube_count(client) > 0)
			answer(404);
	}
	d.now_ns += 2 * HOUR_S * NS_PER_S;
	lost_nodes_tick(lost);
	ck_assert_uint_eq(fake_kube_count(client), 0);
	check(FATE_UNKNOWN);
}
END_TEST

START_TEST(an_id_that_is_no_name_of_a_node_is_never_lost)
{
	d.missing = "A/b";
	lost_nodes_expect(lost, "A/b");
	ck_assert_uint_eq(fake_kube_count(client), 0);
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {a_node_that_is_gone_for_the_time_is_lost, the_time_is_that_of_the_flag,
		a_node_object_that_is_found_begins_the_time_again, a_registration_begins_the_time_again,
		a_node_that_the_watch_shows_is_not_looked_for,
		a_controller_that_has_just_started_concludes_nothing, another_leader_begins_the_time_again,
		a_node_of_no_record_is_forgotten, an_id_that_is_no_name_of_a_node_is_never_lost};
	Suite *suite = suite_create("duties/lost_nodes");
	TCase *tcase = tcase_create("lost_nodes");

	suite_add_tcase(suite, tcase);
	tcase_add_checked_fixture(tcase, set_up, tear_down);
	for (size_t i = 0; i < ARRAY_SIZE(tests); i++)
		tcase_add_test(tcase, tests[i]);
	tcase_add_loop_test(tcase, the_api_server_has_the_last_word, 0, 6);
	return unit_runner_finish(srunner_create(suite));
}
