/* SPDX-License-Identifier: Apache-2.0 */
/* The extender and a real registry: what it learns of the nodes, and when it stops to believe it. */
#include "scheduler/node_watch.h"

#include "base/mem.h"
#include "unit/nodes/registry_rig.h"
#include "unit/nodes/reports.h"
#include "unit/scheduler/fake_nodes.h"

#define NOBODY "tcp://127.0.0.1:1"

static struct rig rig;
static struct sched_nodes *nodes;
static struct sched_node_watch *watch;
static char *found[3]; /* what the name leads to */
static unsigned lookups;

static struct {
	struct loop_timer *timer;
	loop_lookup_fn fn;
	void *user;
} lookup;

struct loop_lookup *__wrap_loop_look_up(
	struct loop *l, const char *host, uint16_t port, loop_lookup_fn fn, void *user);
void __wrap_loop_lookup_cancel(struct loop_lookup *u);

static void on_lookup(void *user)
{
	CLEANUP(error_freep) struct error *err = NULL;

	(void)user;
	loop_timer_close(TAKE_PTR(lookup.timer));
	if (lookups++ == 0 && err_set(&err, ERR_UNAVAILABLE, "the name is not known yet") < 0)
		lookup.fn(lookup.user, NULL, err);
	else
		lookup.fn(lookup.user, found, NULL);
}

struct loop_lookup *__wrap_loop_look_up(
	struct loop *l, const char *host, uint16_t port, loop_lookup_fn fn, void *user)
{
	ck_assert_str_eq(host, "registry.example");
	ck_assert_uint_eq(port, 10000);
	ck_assert_ptr_null(lookup.timer);
	lookup.fn = fn;
	lookup.user = user;
	lookup.timer = loop_timer_new(l, on_lookup, NULL);
	loop_timer_set(lookup.timer, 0, 0);
	return (struct loop_lookup *)&lookup;
}

void __wrap_loop_lookup_cancel(struct loop_lookup *u)
{
	if (u)
		loop_timer_close(TAKE_PTR(lookup.timer));
}

static void put(const char *id)
{
	node_table_put(rig.table, report_new(id), rig.now_ns);
}

static void begin(uint64_t lease_ms)
{
	CLEANUP(error_freep) struct error *err = NULL;
	const struct sched_node_watch_config config = {.loop = rig.loop,
		.endpoint = "tcp://registry.example:10000",
		.nodes = nodes,
		.lease_ms = lease_ms,
		.backoff_ms = 1};

	ASSERT_OK(sched_node_watch_new(&config, &watch, &err));
}

static void set_up(void)
{
	rig_open(&rig);
	nodes = sched_nodes_new();
	found[0] = x_strdup(NOBODY);
	found[1] = x_asprintf("tcp://127.0.0.1:%u", grpc_server_port(rig.server));
}

static void tear_down(void)
{
	sched_node_watch_free(watch);
	rig_close(&rig);
	sched_nodes_free(nodes);
	free(found[0]);
	free(found[1]);
}

/* Until @text was told, from its beginning on. */
static void until(const char *text)
{
	while (strncmp(fake_nodes_told(nodes), text, strlen(text)) != 0) {
		ck_assert_msg(strlen(fake_nodes_told(nodes)) < 4096, "%s", fake_nodes_told(nodes));
		rig_rounds(&rig);
	}
}

/* The first look-up fails, and the first address. */
START_TEST(the_table_is_told_of_by_the_first_address_that_answers)
{
	struct node_report *r = report_new("a");

	report_add_volume(r, "v", "pvc-1");
	node_table_put(rig.table, r, 0);
	put("b");
	put("c");
	node_table_end(rig.table, "c");
	begin(0);
	ck_assert(!sched_node_watch_is_synced(watch));
	ck_assert_uint_eq(sched_node_watch_heard_ns(watch), 0);
	until("begin\nput a 4294967296 pvc-1\nput b 4294967296\nover\n");
	ck_assert(sched_node_watch_is_synced(watch));
	ck_assert_uint_gt(sched_node_watch_heard_ns(watch), 0);
	ck_assert_uint_eq(lookups, 2);
}
END_TEST

START_TEST(changes_are_told_as_they_come)
{
	begin(0);
	until("begin\nover\n");
	put("a");
	until("begin\nover\nput a 4294967296\n");
	node_table_end(rig.table, "a");
	until("begin\nover\nput a 4294967296\nend a\n");
}
END_TEST

/* A forgotten node makes it another table. */
START_TEST(what_another_table_lacks_holds_for_the_lease_time)
{
	put("a");
	put("b");
	begin(3600000);
	until("begin\nput a 4294967296\nput b 4294967296\nover\n");
	node_table_forget(rig.table, "b");
	put("c");
	until("begin\nput a 4294967296\nput b 4294967296\nover\n"
	      "begin\nput a 4294967296\nput c 4294967296\n");
	rig_rounds(&rig);
	ck_assert(strstr(strstr(fake_nodes_told(nodes), "put c"), "over") == NULL);
}
END_TEST

START_TEST(without_a_word_all_is_stale_and_then_told_anew)
{
	put("a");
	begin(20);
	until("begin\nput a 4294967296\nover\nbegin\nover\nbegin\nput a 4294967296\n");
	ck_assert(sched_node_watch_is_synced(watch));
}
END_TEST

START_TEST(a_table_that_needs_several_replies_is_complete_with_the_last)
{
	const char *told;
	unsigned n = 0;

	for (unsigned i = 0; i < 300; i++) {
		CLEANUP(free_charp) char *id = x_asprintf("node-%u", i);
		struct node_report *r = report_new(id);

		for (unsigned k = 0; k < 100; k++) {
			CLEANUP(free_charp)
			char *volume = x_asprintf("01234567890123456789012345678901234567890123456%u", k);

			report_add_volume(r, volume, "");
		}
		node_table_put(rig.table, r, 0);
	}
	begin(0);
	while (!sched_node_watch_is_synced(watch))
		rig_rounds(&rig);
	for (told = fake_nodes_told(nodes); (told = strstr(told, "put ")); told++) {
		ck_assert_ptr_nonnull(strstr(told, "over\n"));
		n++;
	}
	ck_assert_uint_eq(n, 300);
}
END_TEST

START_TEST(an_endpoint_that_is_none_is_refused)
{
	CLEANUP(error_freep) struct error *err = NULL;
	const struct sched_node_watch_config config = {
		.loop = rig.loop, .endpoint = "registry.example", .nodes = nodes};

	ck_assert_int_eq(sched_node_watch_new(&config, &watch, &err), -1);
	ck_assert_int_eq(err->code, ERR_INVALID_ARGUMENT);
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {the_table_is_told_of_by_the_first_address_that_answers,
		changes_are_told_as_they_come, what_another_table_lacks_holds_for_the_lease_time,
		without_a_word_all_is_stale_and_then_told_anew,
		a_table_that_needs_several_replies_is_complete_with_the_last,
		an_endpoint_that_is_none_is_refused};
	Suite *suite = suite_create("sched node watch");
	TCase *tcase = tcase_create("sched node watch");

	suite_add_tcase(suite, tcase);
	tcase_add_checked_fixture(tcase, set_up, tear_down);
	for (size_t i = 0; i < ARRAY_SIZE(tests); i++)
		tcase_add_test(tcase, tests[i]);
	return unit_runner_finish(srunner_create(suite));
}
