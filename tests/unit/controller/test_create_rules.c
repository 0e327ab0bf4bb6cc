/* SPDX-License-Identifier: Apache-2.0 */
/* CreateVolume while not all is known, after nodes have died, and of cache volumes. */
#include "base/clock.h"
#include "base/mem.h"
#include "base/str.h"
#include "unit/controller/desk.h"
#include "volume/id.h"

#define NODES(...) ((const char *const[]){__VA_ARGS__, NULL})

static struct desk d;
static struct desk_ask a;

static void begin(bool early)
{
	desk_open(&d, early, /* forget_gone= */ true);
	desk_ask_init(&a, "pvc-1");
}

static void end(void)
{
	desk_ask_done(&a);
	desk_close(&d);
}

static void again(void)
{
	desk_ask_done(&a);
	desk_ask_init(&a, "pvc-1");
}

START_TEST(in_the_start_window_a_node_that_has_not_registered_is_waited_for)
{
	begin(/* early= */ true);
	desk_add_node(&d, "n1", 4);
	desk_ask_nodes(&a, NODES("n1", "n2"), NULL);
	desk_create(&d, &a);
	DESK_FAILED(&a, ERR_UNAVAILABLE, "node n2 has not registered yet");
	again();
	d.cluster_ids[d.n_cluster++] = "n2";
	desk_create(&d, &a);
	DESK_FAILED(&a, ERR_UNAVAILABLE, "node n2 has not registered yet");
	again();
	d.cluster_ready = false;
	desk_create(&d, &a);
	DESK_FAILED(&a, ERR_UNAVAILABLE, "list of nodes has not been read");
	again();
	d.cluster_ready = true;
	d.now_ns += DESK_LEASE_NS;
	desk_ask_nodes(&a, NODES("n2", "n1"), NULL);
	desk_create(&d, &a);
	desk_made(desk_last(&d, "n1"));
	DESK_OK(&a);
	end();
}
END_TEST

static void put_silent(const char *node_id)
{
	struct node_report *r = report_new(node_id);

	r->has_inventory = false;
	r->lease_ms = UINT32_MAX;
	node_table_put(d.table, r, d.now_ns);
}

static void check_waits_for_n2(void)
{
	desk_create(&d, &a);
	DESK_FAILED(&a, ERR_UNAVAILABLE, "node n2 has not reported its volumes");
	again();
}

START_TEST(a_live_node_that_has_not_said_what_it_has_is_waited_for)
{
	begin(/* early= */ false);
	desk_add_node(&d, "n1", 4);
	put_silent("n2");
	check_waits_for_n2();
	d.now_ns += INVENTORY_WAIT_NS - 1;
	check_waits_for_n2();
	end();
}
END_TEST

/* The node has more room, so that it would be asked first. */
START_TEST(a_node_that_never_says_what_it_has_is_passed_over_for_the_rest_of_an_hour)
{
	begin(/* early= */ false);
	desk_add_node(&d, "n1", 4);
	put_silent("n2");
	check_waits_for_n2();
	d.now_ns += INVENTORY_WAIT_NS;
	desk_create(&d, &a);
	desk_made(desk_last(&d, "n1"));
	DESK_OK(&a);
	desk_ask_done(&a);
	desk_ask_init(&a, "pvc-2");
	desk_ask_nodes(&a, NODES("n2"), NULL);
	desk_create(&d, &a);
	DESK_FAILED(&a, ERR_EXHAUSTED, "without a report of their volumes: 1");
	desk_ask_done(&a);
	desk_ask_init(&a, "pvc-2");
	desk_create(&d, &a);
	desk_failed(desk_last(&d, "n1"), ERR_EXHAUSTED, "full");
	DESK_FAILED(&a, ERR_EXHAUSTED, "1 node without a report of volumes");
	/* the next hour */
	d.now_ns += INVENTORY_PERIOD_NS - INVENTORY_WAIT_NS;
	desk_ask_done(&a);
	desk_ask_init(&a, "pvc-2");
	check_waits_for_n2();
	end();
}
END_TEST

/* The record is written before a node is asked: the outcome of that call may be unknown for days. */
START_TEST(a_node_that_may_have_the_volume_is_always_waited_for)
{
	begin(/* early= */ false);
	desk_add_node(&d, "n1", 4);
	desk_add_node(&d, "n2", 8);
	desk_create(&d, &a);
	desk_failed(desk_last(&d, "n2"), ERR_DEADLINE, "no answer");
	again();
	put_silent("n2");
	for (int i = 0; i < 3; i++) {
		check_waits_for_n2();
		d.now_ns += INVENTORY_PERIOD_NS / 2;
	}
	ck_assert_uint_eq(d.n_calls, 1);
	desk_add_node(&d, "n2", 8);
	desk_create(&d, &a);
	desk_made(desk_last(&d, "n2"));
	DESK_OK(&a);
	desk_check_nodes(&d, "pvc-1", "n2");
	end();
}
END_TEST

START_TEST(a_node_whose_reply_has_shown_the_volume_is_always_waited_for)
{
	const struct volume_report made = {.id = (char[]){"pvc-1-id"},
		.name = (char[]){"pvc-1"},
		.phase = PHASE_READY,
		.size_bytes = DESK_GIB};

	begin(/* early= */ false);
	desk_add_node(&d, "n1", 4);
	put_silent("n2");
	node_table_note_created(d.table, "n2", &made, d.now_ns);
	check_waits_for_n2();
	d.now_ns += INVENTORY_WAIT_NS;
	check_waits_for_n2();
	end();
}
END_TEST

START_TEST(a_dead_node_that_has_nothing_lets_the_pod_go_elsewhere)
{
	begin(/* early= */ false);
	desk_ask_nodes(&a, NODES("n1"), NODES("n1"));
	desk_create(&d, &a);
	DESK_FAILED(&a, ERR_EXHAUSTED, "none of the 1 requested nodes");
	again();
	desk_create(&d, &a);
	DESK_FAILED(&a, ERR_UNAVAILABLE, "no node is connected");
	end();
}
END_TEST

START_TEST(a_dead_node_that_may_have_begun_does_not_until_it_is_gone_for_good)
{
	begin(/* early= */ false);
	desk_add_node(&d, "n1", 4);
	desk_ask_nodes(&a, NODES("n1"), NULL);
	desk_create(&d, &a);
	desk_failed(desk_last(&d, "n1"), ERR_DEADLINE, "no answer");
	node_table_end(d.table, "n1");
	again();
	desk_ask_nodes(&a, NODES("n1"), NULL);
	desk_create(&d, &a);
	DESK_FAILED(&a, ERR_UNAVAILABLE, "node n1 may have the volume");
	d.missing = "n1";
	d.now_ns += DESK_LEASE_NS;
	again();
	desk_ask_nodes(&a, NODES("n1"), NULL);
	desk_create(&d, &a);
	DESK_FAILED(&a, ERR_EXHAUSTED, "none of the 1 requested nodes");
	end();
}
END_TEST

START_TEST(a_volume_in_use_on_a_dead_node_is_not_made_again)
{
	struct node_report *r = report_new("n2");

	begin(/* early= */ false);
	desk_add_node(&d, "n1", 4);
	report_add_volume(r, "v", "pvc-1")->ever_staged = true;
	node_table_put(d.table, r, d.now_ns);
	node_table_end(d.table, "n2");
	desk_create(&d, &a);
	DESK_FAILED(&a, ERR_UNAVAILABLE, "node n2 has the volume");
	end();
}
END_TEST

/* n2 has pvc-1, which the caller asks for on n1 alone: as after etcd was restored, when the claim waits
 * again.
 */
static void begin_with_n2(bool staged)
{
	struct node_report *r = report_new("n2");
	char id[VOLUME_ID_MAX + 1];

	begin(/* early= */ false);
	desk_add_node(&d, "n1", 4);
	volume_id_mint("pvc-1", "n2", id);
	report_add_volume(r, id, "pvc-1")->ever_staged = staged;
	node_table_put(d.table, r, d.now_ns);
	desk_ask_nodes(&a, NODES("n1"), NULL);
}

START_TEST(a_volume_in_use_on_a_live_node_is_not_made_on_another)
{
	begin_with_n2(/* staged= */ true);
	desk_create(&d, &a);
	DESK_FAILED(
		&a, ERR_EXHAUSTED, "volume \"pvc-1\" was in use on node n2, and is made on no other node");
	ck_assert_uint_eq(d.n_calls, 0);
	again();
	desk_ask_nodes(&a, NODES("n1", "n2"), NODES("n1"));
	desk_create(&d, &a);
	desk_made(desk_last(&d, "n2"));
	DESK_OK(&a);
	end();
}
END_TEST

/* Its driver has just started, and the records were lost. */
START_TEST(a_volume_in_use_on_a_node_without_a_report_is_not_made_on_another)
{
	begin_with_n2(/* staged= */ true);
	put_silent("n2");
	for (int i = 0; i < 2; i++) {
		desk_create(&d, &a);
		ck_assert_ptr_nonnull(a.error);
		again();
		d.now_ns += INVENTORY_WAIT_NS;
	}
	ck_assert_uint_eq(d.n_calls, 0);
	end();
}
END_TEST

START_TEST(a_volume_in_use_on_a_dead_node_is_not_made_on_another)
{
	begin_with_n2(/* staged= */ true);
	node_table_end(d.table, "n2");
	desk_create(&d, &a);
	DESK_FAILED(&a, ERR_UNAVAILABLE, "node n2 has the volume, but is not connected");
	d.missing = "n2";
	d.now_ns += DESK_LEASE_NS;
	desk_add_node(&d, "n1", 4);
	again();
	desk_ask_nodes(&a, NODES("n1"), NULL);
	desk_create(&d, &a);
	desk_made(desk_last(&d, "n1"));
	DESK_OK(&a);
	end();
}
END_TEST

START_TEST(a_volume_that_was_never_in_use_can_be_made_on_another_node)
{
	begin_with_n2(/* staged= */ false);
	desk_create(&d, &a);
	desk_made(desk_last(&d, "n1"));
	DESK_OK(&a);
	end();
}
END_TEST

/* A controller that was started after the node has gone knows of the volume by its record only. */
START_TEST(a_volume_whose_node_has_not_registered_is_not_made_on_another)
{
	struct volume_key key = volume_key_of_name("pvc-1");
	struct pmem_volume *v = pmem_volume_new(key.hex, DESK_DRIVER);

	begin(/* early= */ false);
	desk_add_node(&d, "n1", 4);
	v->volume_name = x_strdup("pvc-1");
	v->origin = x_strdup(PMEM_VOLUME_REPORTED);
	pmem_volume_add_node(v, "n2");
	desk_put_record(&d, RECORD_CREATE, v);
	desk_ask_nodes(&a, NODES("n1"), NULL);
	desk_create(&d, &a);
	DESK_FAILED(&a, ERR_UNAVAILABLE, "node n2 has the volume, but is not connected");
	desk_add_node(&d, "n2", 4);
	again();
	desk_ask_nodes(&a, NODES("n1"), NULL);
	desk_create(&d, &a);
	desk_made(desk_last(&d, "n1"));
	DESK_OK(&a);
	end();
}
END_TEST

/* The volume is requested on n1, which does not answer, so that it may have a copy. */
static void begin_on_n1(void)
{
	desk_ask_nodes(&a, NODES("n1"), NULL);
	desk_create(&d, &a);
	desk_failed(desk_last(&d, "n1"), ERR_DEADLINE, "no answer");
	again();
}

static void make_on_n2(void)
{
	desk_ask_nodes(&a, NODES("n2"), NULL);
	desk_create(&d, &a);
	desk_made(desk_last(&d, "n2"));
	DESK_OK(&a);
}

START_TEST(what_was_begun_elsewhere_is_deleted_once_the_volume_is_made)
{
	char id[VOLUME_ID_MAX + 1];
	struct desk_ask b;

	begin(/* early= */ false);
	desk_add_node(&d, "n1", 4);
	desk_add_node(&d, "n2", 4);
	begin_on_n1();
	make_on_n2();
	volume_id_mint("pvc-1", "n1", id);
	ck_assert_str_eq(desk_last(&d, "n1")->delete_request->volume_id, id);
	ck_assert(desk_last(&d, "n1")->if_never_staged);
	desk_ask_init(&b, "pvc-1");
	desk_create(&d, &b);
	DESK_FAILED(&b, ERR_ABORTED, "another call");
	desk_ask_done(&b);
	desk_deleted(desk_last(&d, "n1"));
	desk_check_nodes(&d, "pvc-1", "n2");
	end();
}
END_TEST

/* It stays in the record, and goes with the volume. */
START_TEST(what_was_begun_by_an_older_driver_is_not_deleted)
{
	struct node_report *r = report_new("n1");

	begin(/* early= */ false);
	r->serves_node_volumes = false;
	node_table_put(d.table, r, d.now_ns);
	desk_add_node(&d, "n2", 4);
	begin_on_n1();
	make_on_n2();
	ck_assert_uint_eq(d.n_calls, 2);
	desk_check_nodes(&d, "pvc-1", "n1 n2");
	end();
}
END_TEST

/* The record was made from a report, as after etcd was restored, so it is not known which call has led to the
 * copy. */
START_TEST(what_only_a_report_has_made_known_is_not_deleted)
{
	struct volume_key key = volume_key_of_name("pvc-1");
	struct pmem_volume *v = pmem_volume_new(key.hex, DESK_DRIVER);

	begin(/* early= */ false);
	desk_add_node(&d, "n1", 4);
	desk_add_node(&d, "n2", 4);
	v->volume_name = x_strdup("pvc-1");
	v->origin = x_strdup(PMEM_VOLUME_REPORTED);
	pmem_volume_add_node(v, "n1");
	desk_put_record(&d, RECORD_CREATE, v);
	make_on_n2();
	ck_assert_uint_eq(d.n_calls, 1);
	desk_check_nodes(&d, "pvc-1", "n1 n2");
	end();
}
END_TEST

START_TEST(what_bears_the_name_elsewhere_and_was_in_use_is_not_deleted)
{
	struct node_report *r = report_new("n1");
	char id[VOLUME_ID_MAX + 1];

	begin(/* early= */ false);
	desk_add_node(&d, "n1", 4);
	desk_add_node(&d, "n2", 4);
	begin_on_n1();
	volume_id_mint("pvc-1", "n1", id);
	struct volume_report *v = report_add_volume(r, id, "pvc-1");
	v->made_by_controller = true;
	v->ever_staged = true;
	desk_ask_nodes(&a, NODES("n2"), NULL);
	desk_create(&d, &a);
	node_table_put(d.table, r, d.now_ns); /* a pod has started there meanwhile */
	desk_made(desk_last(&d, "n2"));
	DESK_OK(&a);
	ck_assert_uint_eq(d.n_calls, 2);
	end();
}
END_TEST

static void ask_cache(const char *size)
{
	desk_ask_parameter(&a, "persistencyModel", "cache");
	desk_ask_parameter(&a, "cacheSize", size);
}

START_TEST(a_cache_volume_is_made_on_several_nodes_at_once)
{
	begin(/* early= */ false);
	for (char i = '1'; i <= '4'; i++)
		desk_add_node(&d, (char[]){'n', i, '\0'}, 4);
	ask_cache("2");
	desk_ask_nodes(&a, NODES("n1", "n2", "n3", "n4"), NODES("n1"));
	desk_create(&d, &a);
	ck_assert_uint_eq(d.n_calls, 2);
	desk_made(&d.calls[0]);
	desk_failed(&d.calls[1], ERR_EXHAUSTED, "full");
	desk_made(desk_last(&d, "n3"));
	DESK_OK(&a);
	ck_assert_uint_eq(a.created.volume->n_accessible_topology, 2);
	again();
	ask_cache("2");
	desk_ask_nodes(&a, NODES("n4", "n3", "n2", "n1"), NULL);
	desk_create(&d, &a);
	ck_assert_uint_eq(d.n_calls, 5);
	ck_assert_str_eq(d.calls[3].node_id, "n3");
	ck_assert_str_eq(d.calls[4].node_id, "n1");
	desk_made(&d.calls[4]);
	desk_made(&d.calls[3]);
	DESK_OK(&a);
	end();
}
END_TEST

/* Each copy is a cache of its own. */
START_TEST(a_cache_volume_in_use_elsewhere_gets_copies_on_further_nodes)
{
	begin_with_n2(/* staged= */ true);
	ask_cache("1");
	desk_create(&d, &a);
	desk_made(desk_last(&d, "n1"));
	DESK_OK(&a);
	end();
}
END_TEST

START_TEST(fewer_copies_than_asked_for_are_a_cache_volume_too)
{
	begin(/* early= */ false);
	desk_add_node(&d, "n1", 4);
	desk_add_node(&d, "n2", 4);
	ask_cache("5");
	desk_create(&d, &a);
	ck_assert_uint_eq(d.n_calls, 2);
	desk_failed(&d.calls[0], ERR_EXHAUSTED, "full");
	desk_made(&d.calls[1]);
	DESK_OK(&a);
	ck_assert_uint_eq(a.created.volume->n_accessible_topology, 1);
	end();
}
END_TEST

START_TEST(a_copy_with_an_unknown_outcome_is_asked_for_again)
{
	begin(/* early= */ false);
	desk_add_node(&d, "n1", 4);
	desk_add_node(&d, "n2", 4);
	desk_add_node(&d, "n3", 4);
	ask_cache("2");
	desk_ask_nodes(&a, NODES("n1", "n2", "n3"), NULL);
	desk_create(&d, &a);
	desk_failed(&d.calls[0], ERR_UNAVAILABLE, "lost");
	ck_assert(!a.finished);
	desk_made(&d.calls[1]);
	DESK_FAILED(&a, ERR_UNAVAILABLE, "node n1: lost");
	again();
	ask_cache("2");
	desk_ask_nodes(&a, NODES("n3", "n2", "n1"), NULL);
	desk_create(&d, &a);
	ck_assert_str_eq(d.calls[2].node_id, "n2");
	ck_assert_str_eq(d.calls[3].node_id, "n1");
	desk_made(&d.calls[2]);
	desk_made(&d.calls[3]);
	DESK_OK(&a);
	end();
}
END_TEST

START_TEST(a_node_out_of_service_gets_no_new_volume_although_it_reports)
{
	begin(/* early= */ false);
	desk_add_node(&d, "n1", 4);
	desk_add_node(&d, "n2", 4);
	d.out_of_service = "n1";
	desk_ask_nodes(&a, NODES("n1"), NULL);
	desk_create(&d, &a);
	DESK_FAILED(&a, ERR_EXHAUSTED,
		"(not connected: 0, with the taint node.kubernetes.io/out-of-service: 1, without");
	again();
	desk_ask_nodes(&a, NODES("n1", "n2"), NULL);
	desk_create(&d, &a);
	desk_failed(desk_last(&d, "n2"), ERR_EXHAUSTED, "full");
	DESK_FAILED(&a, ERR_EXHAUSTED, "1 node out of service");
	again();
	desk_create(&d, &a);
	desk_made(desk_last(&d, "n2"));
	DESK_OK(&a);
	desk_check_nodes(&d, "pvc-1", "n2");
	end();
}
END_TEST

/* A copy on a node with the taint out-of-service is treated as one on a node that is not connected. */
START_TEST(what_a_node_out_of_service_may_have_is_not_given_out)
{
	struct node_report *r = report_new("n1");
	char id[VOLUME_ID_MAX + 1];

	begin(/* early= */ false);
	desk_add_node(&d, "n2", 4);
	volume_id_mint("pvc-1", "n1", id);
	report_add_volume(r, id, "pvc-1")->ever_staged = true;
	node_table_put(d.table, r, d.now_ns);
	d.out_of_service = "n1";
	desk_create(&d, &a);
	DESK_FAILED(&a, ERR_UNAVAILABLE,
		"node n1 has the volume, but has the taint node.kubernetes.io/out-of-service");
	again();
	d.out_of_service = NULL;
	desk_create(&d, &a);
	desk_made(desk_last(&d, "n1"));
	DESK_OK(&a);
	end();
}
END_TEST

START_TEST(what_was_begun_on_a_node_out_of_service_is_waited_for)
{
	begin(/* early= */ false);
	desk_add_node(&d, "n1", 4);
	desk_ask_nodes(&a, NODES("n1"), NULL);
	desk_create(&d, &a);
	desk_failed(desk_last(&d, "n1"), ERR_UNAVAILABLE, "lost");
	again();
	d.out_of_service = "n1";
	desk_ask_nodes(&a, NODES("n1"), NULL);
	desk_create(&d, &a);
	DESK_FAILED(&a, ERR_UNAVAILABLE, "node n1 may have the volume, but has the taint");
	desk_check_nodes(&d, "pvc-1", "n1");
	end();
}
END_TEST

/* A replica that does not know the taints makes nothing. */
START_TEST(nothing_is_made_before_the_nodes_of_the_cluster_are_known)
{
	begin(/* early= */ false);
	d.cluster_ready = false;
	desk_add_node(&d, "n1", 4);
	desk_ask_nodes(&a, NODES("n1"), NULL);
	desk_create(&d, &a);
	DESK_FAILED(&a, ERR_UNAVAILABLE, "the list of nodes has not been read");
	ck_assert_uint_eq(d.n_calls, 0);
	end();
}
END_TEST

static int refuse(void *user, struct error **err)
{
	(void)user;
	return err_set(err, ERR_UNAVAILABLE, "volumes have no record yet");
}

/* Only calls that would create a volume wait until config.may_create permits that. */
START_TEST(nothing_is_made_before_it_may_be)
{
	char id[VOLUME_ID_MAX + 1];

	begin(/* early= */ false);
	d.controller->config.may_create = refuse;
	desk_add_node(&d, "n1", 4);
	desk_ask_nodes(&a, NODES("n1"), NULL);
	desk_create(&d, &a);
	DESK_FAILED(&a, ERR_UNAVAILABLE, "volumes have no record yet");
	ck_assert_uint_eq(d.n_calls, 0);
	desk_check_nodes(&d, "pvc-1", NULL);
	desk_ask_done(&a);
	desk_ask_init(&a, "pvc-1");
	volume_id_mint("pvc-1", "n1", id);
	desk_delete(&d, &a, id);
	ck_assert_uint_eq(d.n_calls, 1);
	desk_deleted(desk_last(&d, "n1"));
	DESK_OK(&a);
	end();
}
END_TEST

static void add_kata_node(const char *node_id)
{
	struct node_report *r = report_new(node_id);

	r->makes_kata_volumes = true;
	node_table_put(d.table, r, d.now_ns);
}

START_TEST(a_volume_for_kata_goes_only_where_such_volumes_are_made)
{
	begin(/* early= */ false);
	desk_add_node(&d, "n1", 8);
	desk_ask_parameter(&a, "kataContainers", "true");
	desk_ask_nodes(&a, NODES("n1"), NULL);
	desk_create(&d, &a);
	ck_assert_uint_eq(d.n_calls, 0);
	DESK_FAILED(&a, ERR_EXHAUSTED, "without volumes for Kata Containers");
	add_kata_node("n2");
	again();
	desk_ask_parameter(&a, "kataContainers", "1");
	desk_create(&d, &a);
	desk_failed(desk_last(&d, "n2"), ERR_RANGE, "full");
	DESK_FAILED(&a, ERR_EXHAUSTED, "n2: full; 1 node without volumes for Kata Containers");
	again();
	desk_ask_parameter(&a, "kataContainers", "false");
	desk_create(&d, &a);
	desk_made(desk_last(&d, "n1"));
	DESK_OK(&a);
	end();
}
END_TEST

START_TEST(a_volume_for_kata_is_found_where_none_is_made_any_more)
{
	begin(/* early= */ false);
	add_kata_node("n1");
	desk_ask_parameter(&a, "kataContainers", "true");
	desk_create(&d, &a);
	desk_failed(desk_last(&d, "n1"), ERR_DEADLINE, "late");
	desk_add_node(&d, "n1", 8);
	again();
	desk_ask_parameter(&a, "kataContainers", "true");
	desk_create(&d, &a);
	desk_made(desk_last(&d, "n1"));
	DESK_OK(&a);
	end();
}
END_TEST

UNIT_MAIN("controller/create_rules", a_volume_for_kata_goes_only_where_such_volumes_are_made,
	a_volume_for_kata_is_found_where_none_is_made_any_more,
	in_the_start_window_a_node_that_has_not_registered_is_waited_for,
	a_live_node_that_has_not_said_what_it_has_is_waited_for,
	a_node_that_never_says_what_it_has_is_passed_over_for_the_rest_of_an_hour,
	a_node_that_may_have_the_volume_is_always_waited_for,
	a_node_whose_reply_has_shown_the_volume_is_always_waited_for,
	a_dead_node_that_has_nothing_lets_the_pod_go_elsewhere,
	a_dead_node_that_may_have_begun_does_not_until_it_is_gone_for_good,
	a_volume_in_use_on_a_dead_node_is_not_made_again,
	a_volume_in_use_on_a_live_node_is_not_made_on_another,
	a_volume_in_use_on_a_node_without_a_report_is_not_made_on_another,
	a_volume_in_use_on_a_dead_node_is_not_made_on_another,
	a_volume_that_was_never_in_use_can_be_made_on_another_node,
	a_volume_whose_node_has_not_registered_is_not_made_on_another,
	a_cache_volume_in_use_elsewhere_gets_copies_on_further_nodes,
	what_was_begun_elsewhere_is_deleted_once_the_volume_is_made,
	what_was_begun_by_an_older_driver_is_not_deleted, what_only_a_report_has_made_known_is_not_deleted,
	what_bears_the_name_elsewhere_and_was_in_use_is_not_deleted,
	a_cache_volume_is_made_on_several_nodes_at_once, fewer_copies_than_asked_for_are_a_cache_volume_too,
	a_copy_with_an_unknown_outcome_is_asked_for_again,
	a_node_out_of_service_gets_no_new_volume_although_it_reports,
	what_a_node_out_of_service_may_have_is_not_given_out,
	what_was_begun_on_a_node_out_of_service_is_waited_for,
	nothing_is_made_before_the_nodes_of_the_cluster_are_known, nothing_is_made_before_it_may_be)
