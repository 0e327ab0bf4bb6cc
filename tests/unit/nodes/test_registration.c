/* SPDX-License-Identifier: Apache-2.0 */
/* A node and the controllers with which it registers: what is sent when, and how failures are retried. */
#include <time.h>

#include "base/mem.h"
#include "nodes/registration.h"
#include "unit/nodes/fake_registry.h"
#include "unit/unit.h"

#define ENDPOINT "tcp://registry.example:10000"
/* beyond the time that a test has: what comes all the same was not brought by a heartbeat */
#define NEVER_MS (24ULL * 3600 * 1000)

static struct registry_side one, two;
static struct registration *registration;
static uint64_t available_bytes;
static struct error *err;
static bool stopped;
static unsigned n_stopped;

static void fill(void *user, Registry__V0__RegisterControllerRequest *q, struct arena *arena)
{
	ck_assert_ptr_eq(user, &registration);
	q->endpoint = arena_strdup(arena, "tcp://node.example:10001");
	q->n_regions = 1;
	q->regions = arena_alloc(arena, sizeof(*q->regions));
	q->regions[0] = arena_alloc(arena, sizeof(*q->regions[0]));
	registry__v0__region_capacity__init(q->regions[0]);
	q->regions[0]->available_bytes = available_bytes;
}

static void begin(uint64_t heartbeat_ms)
{
	const struct registration_config config = {.loop = rig.loop,
		.endpoint = ENDPOINT,
		.node_id = "node-1",
		.heartbeat_ms = heartbeat_ms,
		.fill = fill,
		.user = &registration};

	ASSERT_OK(registration_new(&config, &registration, &err));
}

/* A controller at the only address of the name, and a node that has registered there. */
static void begin_registered(void)
{
	registry_serve(&one, NULL, NULL);
	rig.found[0] = one.endpoint;
	begin(NEVER_MS);
	rig_until_number(&one.registered, 1);
}

static void close_all(void)
{
	registration_free(TAKE_PTR(registration));
	registry_end(&one);
	registry_end(&two);
	registry_forget(&one);
	registry_forget(&two);
	rig_close();
}

static bool is_registered(void *user)
{
	CLEANUP(free_charp) char *list = NULL;
	struct registration_peer *peers;
	size_t n = registration_peers(registration, &peers);
	const char *address = user;
	bool registered = false;

	list = (char *)peers;
	for (size_t i = 0; i < n; i++)
		registered |= peers[i].registered && strcmp(peers[i].address, address) == 0;
	return registered;
}

START_TEST(a_node_says_at_once_what_there_is_to_say)
{
	available_bytes = 5;
	registry_serve(&one, NULL, NULL);
	rig.found[0] = one.endpoint;
	begin(/* heartbeat_ms= */ 0);
	rig_until_number(&one.registered, 1);
	ck_assert_str_eq(one.last->node_id, "node-1");
	ck_assert_str_eq(one.last->endpoint, "tcp://node.example:10001");
	ck_assert_uint_eq(one.last->lease_seconds, 90);
	ck_assert_uint_eq(one.last->regions[0]->available_bytes, 5);
	rig_until(is_registered, one.endpoint);
}
END_TEST

START_TEST(it_says_it_again_with_each_heartbeat_and_looks_the_name_up)
{
	registry_serve(&one, NULL, NULL);
	rig.found[0] = one.endpoint;
	begin(/* heartbeat_ms= */ 20);
	rig_until_number(&one.registered, 4);
	ck_assert_uint_ge(rig.lookups, 3);
	ck_assert_uint_eq(one.last->lease_seconds, 1);
}
END_TEST

START_TEST(only_a_change_is_said_between_heartbeats)
{
	begin_registered();
	rig_until(is_registered, one.endpoint);
	registration_touch(registration);
	rig_rounds();
	ck_assert_uint_eq(one.registered, 1);
	available_bytes = 7;
	registration_touch(registration);
	rig_until_number(&one.registered, 2);
	ck_assert_uint_eq(one.last->regions[0]->available_bytes, 7);
}
END_TEST

START_TEST(changes_during_a_call_come_in_one_after_it)
{
	one.hold = true;
	begin_registered();
	for (available_bytes = 1; available_bytes < 100; available_bytes++) {
		registration_touch(registration);
		rig_until_number(&(unsigned){1}, 1);
	}
	rig_rounds();
	ck_assert_uint_eq(one.registered, 1);
	registry_release(&one);
	rig_until_number(&one.registered, 2);
	ck_assert_uint_eq(one.last->regions[0]->available_bytes, 100);
	rig_rounds();
	ck_assert_uint_eq(one.registered, 2);
}
END_TEST

/* Wait until both have the report that is @more than @first. Return: its number. */
static uint64_t await_number(uint64_t first, uint64_t more)
{
	rig_until_number(&one.registered, one.registered + 3);
	rig_until_number(&two.registered, two.registered + 3);
	if (first > 0)
		ck_assert_uint_eq(one.last->report_number, first + more);
	ck_assert_uint_eq(two.last->report_number, one.last->report_number);
	return one.last->report_number;
}

START_TEST(reports_are_numbered_alike_for_all_controllers_and_heartbeats_are_not)
{
	registry_serve(&one, NULL, NULL);
	registry_serve(&two, NULL, NULL);
	rig.found[0] = one.endpoint;
	rig.found[1] = two.endpoint;
	begin(/* heartbeat_ms= */ 20);
	uint64_t first = await_number(0, 0);
	available_bytes = 7;
	registration_touch(registration);
	await_number(first, 1);
	registration_touch(registration);
	await_number(first, 1);
	available_bytes = 0;
	await_number(first, 2);
}
END_TEST

START_TEST(a_later_run_begins_with_a_larger_number)
{
	uint64_t first;

	begin_registered();
	first = one.last->report_number;
	ck_assert_uint_gt(first, ((uint64_t)time(NULL) - 60) * 1000000);
	registration_free(TAKE_PTR(registration));
	while ((uint64_t)time(NULL) * 1000000 <= first)
		nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
	begin(NEVER_MS);
	rig_until_number(&one.registered, one.registered + 1);
	ck_assert_uint_gt(one.last->report_number, first);
}
END_TEST

START_TEST(a_controller_that_comes_back_is_told_again)
{
	begin_registered();
	rig_until(is_registered, one.endpoint);
	registry_end(&one);
	ck_assert(!is_registered(one.endpoint));
	registry_serve(&one, NULL, NULL);
	rig_until_number(&one.registered, 2);
	rig_until(is_registered, one.endpoint);
}
END_TEST

START_TEST(a_controller_that_comes_back_elsewhere_is_found_before_the_next_heartbeat)
{
	begin_registered();
	registry_end(&one);
	registry_serve(&two, NULL, NULL);
	rig.found[0] = two.endpoint;
	rig_until_number(&two.registered, 1);
}
END_TEST

START_TEST(a_refusal_is_tried_again)
{
	one.refuse = ERR_INVALID_ARGUMENT;
	begin_registered();
	rig_until_number(&one.registered, 2);
	ck_assert(!is_registered(one.endpoint));
	one.refuse = 0;
	rig_until(is_registered, one.endpoint);
}
END_TEST

START_TEST(each_address_is_told_and_one_that_is_gone_no_more)
{
	registry_serve(&one, NULL, NULL);
	registry_serve(&two, NULL, NULL);
	rig.found[0] = one.endpoint;
	rig.found[1] = two.endpoint;
	begin(/* heartbeat_ms= */ 20);
	rig_until_number(&one.registered, 2);
	rig_until_number(&two.registered, 2);
	rig.found[1] = NULL;
	rig_until_number(&rig.lookups, rig.lookups + 2);
	unsigned before = two.registered;
	rig_until_number(&one.registered, one.registered + 5);
	ck_assert_uint_eq(two.registered, before);
	ck_assert_uint_eq(two.unregistered, 0);
	ck_assert(!is_registered(two.endpoint));
}
END_TEST

START_TEST(a_name_that_is_not_known_is_looked_up_again_and_known_addresses_stay)
{
	registry_serve(&one, NULL, NULL);
	begin(NEVER_MS);
	rig_until_number(&rig.lookups, 2);
	rig.found[0] = one.endpoint;
	rig_until_number(&one.registered, 1);
	registration_free(TAKE_PTR(registration));

	begin(/* heartbeat_ms= */ 20);
	rig_until_number(&one.registered, 2);
	rig.found[0] = NULL;
	rig_until_number(&rig.lookups, rig.lookups + 2);
	rig_until_number(&one.registered, one.registered + 3);
}
END_TEST

static void on_stopped(void *user)
{
	ck_assert_ptr_eq(user, &n_stopped);
	n_stopped++;
	stopped = true;
}

START_TEST(the_end_is_told_to_each_controller)
{
	registry_serve(&two, NULL, NULL);
	rig.found[1] = two.endpoint;
	begin_registered();
	rig_until_number(&two.registered, 1);
	registration_stop(registration, on_stopped, &n_stopped);
	ck_assert(!stopped);
	rig_until_set(&stopped);
	ck_assert_uint_eq(one.unregistered, 1);
	ck_assert_uint_eq(two.unregistered, 1);
	registration_touch(registration);
	rig_rounds();
	ck_assert_uint_eq(one.registered, 1);
	ck_assert_uint_eq(n_stopped, 1);
}
END_TEST

START_TEST(the_end_comes_after_a_report_that_is_on_its_way)
{
	one.hold = true;
	begin_registered();
	registration_stop(registration, on_stopped, &n_stopped);
	rig_until_number(&one.unregistered, 1);
	ck_assert(!stopped);
	registry_release(&one);
	rig_until_set(&stopped);
}
END_TEST

START_TEST(the_end_waits_for_nobody_for_long)
{
	begin_registered();
	rig_until(is_registered, one.endpoint);
	one.hold = true;
	registration_stop(registration, on_stopped, &n_stopped);
	rig_until_number(&one.unregistered, 1);
	rig_until_set(&stopped);
	ck_assert_uint_eq(n_stopped, 1);
	registration_free(TAKE_PTR(registration));
	rig_rounds();
	ck_assert_uint_eq(n_stopped, 1);
}
END_TEST

START_TEST(without_a_controller_the_end_is_there_at_once)
{
	begin(/* heartbeat_ms= */ 0);
	registration_stop(registration, on_stopped, &n_stopped);
	rig_until_set(&stopped);
}
END_TEST

START_TEST(an_endpoint_without_host_or_port_is_refused)
{
	static const char *const bad[] = {"registry:10000", "tcp://:10000", "tcp://registry", "unix:///a",
		"tcp://registry:0", "tcp://registry:x"};

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		const struct registration_config config = {.loop = rig.loop, .endpoint = bad[i]};

		ASSERT_FAILS(
			registration_new(&config, &registration, &err), ERR_INVALID_ARGUMENT, bad[i] + 6);
	}
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {a_node_says_at_once_what_there_is_to_say,
		it_says_it_again_with_each_heartbeat_and_looks_the_name_up,
		only_a_change_is_said_between_heartbeats,
		reports_are_numbered_alike_for_all_controllers_and_heartbeats_are_not,
		changes_during_a_call_come_in_one_after_it, a_later_run_begins_with_a_larger_number,
		a_controller_that_comes_back_is_told_again,
		a_controller_that_comes_back_elsewhere_is_found_before_the_next_heartbeat,
		a_refusal_is_tried_again, each_address_is_told_and_one_that_is_gone_no_more,
		a_name_that_is_not_known_is_looked_up_again_and_known_addresses_stay,
		the_end_is_told_to_each_controller, the_end_comes_after_a_report_that_is_on_its_way,
		the_end_waits_for_nobody_for_long, without_a_controller_the_end_is_there_at_once,
		an_endpoint_without_host_or_port_is_refused};
	Suite *suite = suite_create("nodes/registration");
	TCase *tcase = tcase_create("registration");

	tcase_add_checked_fixture(tcase, rig_open, close_all);
	for (size_t i = 0; i < ARRAY_SIZE(tests); i++)
		tcase_add_test(tcase, tests[i]);
	suite_add_tcase(suite, tcase);
	return unit_runner_finish(srunner_create(suite));
}
