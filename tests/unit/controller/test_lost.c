/* SPDX-License-Identifier: Apache-2.0 */
/* Calls for volumes whose nodes are lost, according to their records. */
#include "base/clock.h"
#include "base/mem.h"
#include "unit/controller/desk.h"
#include "volume/id.h"

static struct desk d;
static struct desk_ask a;
static char id_1[VOLUME_ID_MAX + 1]; /* of pvc-1 on n1 */
static char id_any[VOLUME_ID_MAX + 1];

static void begin(void)
{
	desk_open(&d, /* early= */ false, /* forget_gone= */ false);
	desk_ask_init(&a, "pvc-1");
	volume_id_mint("pvc-1", "n1", id_1);
	volume_id_mint("pvc-1", NULL, id_any);
	d.missing = "n1";
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

/* A volume that was given out under @handle, on n1, which is lost, and on @other, which is ready. */
static struct pmem_volume *make_record(const char *handle, const char *other)
{
	struct volume_key key = volume_key_of_name("pvc-1");
	struct pmem_volume *v = pmem_volume_new(key.hex, DESK_DRIVER);

	v->volume_name = x_strdup("pvc-1");
	v->handle = x_strdup(handle);
	v->phase = x_strdup(other ? "Ready" : PMEM_VOLUME_LOST);
	pmem_volume_add_node(v, "n1");
	pmem_volume_add_copy(v, "n1", PMEM_VOLUME_LOST, 0, 0);
	if (other) {
		pmem_volume_add_node(v, other);
		pmem_volume_add_copy(v, other, "Ready", DESK_GIB, 0);
	}
	return v;
}

static void put_record(const char *handle, const char *other)
{
	desk_put_record(&d, RECORD_CREATE, make_record(handle, other));
}

/* @nodes: as of desk_check_nodes() */
static void check_record(const char *nodes, bool deleting, bool retained)
{
	CLEANUP(pmem_volume_freep) struct pmem_volume *v = desk_record(&d, "pvc-1");

	desk_check_nodes(&d, "pvc-1", nodes);
	ck_assert_int_eq(v->deleting, deleting);
	ck_assert_int_eq(v->retained, retained);
}

START_TEST(a_volume_whose_only_node_is_lost_is_deleted_and_its_record_stays)
{
	begin();
	put_record(id_1, NULL);
	desk_delete(&d, &a, id_1);
	DESK_OK(&a);
	check_record("n1", /* deleting= */ false, /* retained= */ true);
	ck_assert_uint_eq(d.n_writes, 1);
	again();
	desk_delete(&d, &a, id_1);
	DESK_OK(&a);
	ck_assert_uint_eq(d.n_writes, 1);
	ck_assert_uint_eq(d.n_calls, 0);
	end();
}
END_TEST

START_TEST(what_the_leader_has_not_concluded_is_waited_for)
{
	struct pmem_volume *v;

	begin();
	v = make_record(id_1, NULL);
	free(v->copies[0].phase);
	v->copies[0].phase = x_strdup("Unreachable");
	desk_put_record(&d, RECORD_CREATE, v);
	desk_delete(&d, &a, id_1);
	DESK_FAILED(&a, ERR_UNAVAILABLE, "node n1 may have volume");
	check_record("n1", /* deleting= */ true, /* retained= */ false);
	end();
}
END_TEST

/* Nothing is pending any more afterwards. */
START_TEST(a_deletion_that_began_before_the_node_was_lost_is_over)
{
	struct pmem_volume *v;

	begin();
	v = make_record(id_1, NULL);
	v->deleting = true;
	desk_put_record(&d, RECORD_CREATE, v);
	desk_delete(&d, &a, id_1);
	DESK_OK(&a);
	check_record("n1", /* deleting= */ false, /* retained= */ true);
	end();
}
END_TEST

START_TEST(a_record_that_cannot_be_written_is_no_success)
{
	begin();
	put_record(id_1, NULL);
	d.fail_write = 1;
	d.fail_code = ERR_UNAVAILABLE;
	desk_delete(&d, &a, id_1);
	DESK_FAILED(&a, ERR_UNAVAILABLE, "record of volume");
	check_record("n1", /* deleting= */ false, /* retained= */ false);
	end();
}
END_TEST

/* It has returned, and the record does not show that yet: it is not asked. */
START_TEST(a_node_that_reports_is_not_asked_while_its_record_says_that_it_is_lost)
{
	struct node_report *r = report_new("n1");
	struct pmem_volume *v;

	begin();
	put_record(id_1, NULL);
	report_add_volume(r, id_1, "pvc-1")->ever_staged = true;
	node_table_put(d.table, r, d.now_ns);
	desk_delete(&d, &a, id_1);
	DESK_FAILED(&a, ERR_UNAVAILABLE, "node n1 has returned after it was lost");
	ck_assert_uint_eq(d.n_calls, 0);
	again();
	v = desk_record(&d, "pvc-1");
	free(v->copies[0].phase);
	v->copies[0].phase = x_strdup("Ready");
	desk_put_record(&d, RECORD_STATUS, v);
	desk_delete(&d, &a, id_1);
	desk_deleted(desk_last(&d, "n1"));
	DESK_OK(&a);
	end();
}
END_TEST

/* The leader has not written it yet: the node may be about to register. */
START_TEST(a_node_whose_node_object_is_back_is_not_lost)
{
	begin();
	put_record(id_1, NULL);
	d.missing = NULL;
	desk_delete(&d, &a, id_1);
	DESK_FAILED(&a, ERR_UNAVAILABLE, "node n1 was lost and may be returning");
	again();
	d.missing = "n1";
	d.cluster_ready = false;
	desk_delete(&d, &a, id_1);
	DESK_FAILED(&a, ERR_UNAVAILABLE, "node n1 was lost and may be returning");
	again();
	d.cluster_ready = true;
	d.controller->started_ns = d.now_ns;
	desk_delete(&d, &a, id_1);
	DESK_FAILED(&a, ERR_UNAVAILABLE, "node n1 was lost and may be returning");
	again();
	d.now_ns += DESK_LEASE_NS;
	desk_delete(&d, &a, id_1);
	DESK_OK(&a);
	ck_assert_uint_eq(d.n_calls, 0);
	end();
}
END_TEST

START_TEST(nodes_that_are_not_lost_are_asked_as_always)
{
	begin();
	put_record(id_any, "n2");
	desk_add_node(&d, "n2", 4);
	desk_delete(&d, &a, id_any);
	check_record("n1 n2", /* deleting= */ true, /* retained= */ false);
	desk_failed(desk_last(&d, "n2"), ERR_PRECONDITION, "in use");
	DESK_FAILED(&a, ERR_PRECONDITION, "node n2: in use");
	check_record("n1 n2", /* deleting= */ true, /* retained= */ false);
	again();
	desk_delete(&d, &a, id_any);
	desk_deleted(desk_last(&d, "n2"));
	DESK_OK(&a);
	check_record("n1", /* deleting= */ false, /* retained= */ true);
	end();
}
END_TEST

/* A call that is made while the node is not lost erases what it has. */
START_TEST(what_has_returned_is_deleted_by_another_call)
{
	struct pmem_volume *v;

	begin();
	v = make_record(id_1, NULL);
	v->retained = true;
	free(v->copies[0].phase);
	v->copies[0].phase = x_strdup("Ready");
	desk_put_record(&d, RECORD_CREATE, v);
	desk_add_node(&d, "n1", 4);
	desk_delete(&d, &a, id_1);
	check_record("n1", /* deleting= */ true, /* retained= */ true);
	ck_assert_str_eq(desk_last(&d, "n1")->delete_request->volume_id, id_1);
	desk_deleted(desk_last(&d, "n1"));
	DESK_OK(&a);
	check_record("", /* deleting= */ true, /* retained= */ true);
	end();
}
END_TEST

START_TEST(a_volume_that_may_return_is_not_made_again)
{
	struct pmem_volume *v;

	begin();
	v = make_record(id_1, NULL);
	v->retained = true;
	desk_put_record(&d, RECORD_CREATE, v);
	desk_add_node(&d, "n1", 4);
	desk_add_node(&d, "n2", 4);
	desk_create(&d, &a);
	DESK_FAILED(&a, ERR_ABORTED, "was deleted while its node was lost");
	ck_assert_uint_eq(d.n_calls, 0);
	again();
	v = desk_record(&d, "pvc-1");
	pmem_volume_drop_node(v, "n1");
	desk_put_record(&d, RECORD_SPEC, v);
	desk_create(&d, &a);
	ck_assert_uint_eq(d.n_calls, 1);
	desk_made(&d.calls[0]);
	DESK_OK(&a);
	end();
}
END_TEST

/* Another replica has answered DeleteVolume while the node was asked. */
START_TEST(a_volume_that_was_deleted_meanwhile_is_not_given_out)
{
	struct pmem_volume *v;

	begin();
	d.missing = NULL;
	desk_add_node(&d, "n1", 4);
	desk_create(&d, &a);
	v = desk_record(&d, "pvc-1");
	v->retained = true;
	desk_put_record(&d, RECORD_SPEC, v);
	desk_made(desk_last(&d, "n1"));
	DESK_FAILED(&a, ERR_UNAVAILABLE, "the volume was deleted, or its nodes are no longer listed");
	end();
}
END_TEST

static void expect_refusal(void *user, const struct error *error)
{
	enum err_code *code = user;

	ck_assert_ptr_nonnull(error);
	*code = error->code;
}

/* controller_remove_copy() is the function by which the search for orphans deletes a copy. */
START_TEST(nothing_but_a_call_deletes_what_was_lost)
{
	struct pmem_volume *v;
	enum err_code code = ERR_UNKNOWN;

	begin();
	v = make_record(id_1, NULL);
	desk_put_record(&d, RECORD_CREATE, v);
	desk_add_node(&d, "n1", 4);
	controller_remove_copy(d.controller, node_table_get(d.table, "n1"), id_1, expect_refusal, &code);
	ck_assert_int_eq(code, ERR_UNAVAILABLE);
	v = desk_record(&d, "pvc-1");
	free(v->copies[0].phase);
	v->copies[0].phase = x_strdup("Ready");
	v->retained = true;
	desk_put_record(&d, RECORD_SPEC, v);
	controller_remove_copy(d.controller, node_table_get(d.table, "n1"), id_1, expect_refusal, &code);
	ck_assert_int_eq(code, ERR_PRECONDITION);
	ck_assert_uint_eq(d.n_calls, 0);
	end();
}
END_TEST

static void expect_success(void *user, const struct error *error)
{
	unsigned *n = user;

	ck_assert_ptr_null(error);
	(*n)++;
}

/* Another node was asked for the volume, too, and no caller got the ID of what it made. */
START_TEST(an_orphan_of_a_volume_that_was_lost_is_deleted)
{
	char id_2[VOLUME_ID_MAX + 1];
	struct pmem_volume *v;
	unsigned n = 0;

	begin();
	v = make_record(id_1, NULL);
	v->retained = true;
	pmem_volume_add_node(v, "n2");
	desk_put_record(&d, RECORD_CREATE, v);
	desk_add_node(&d, "n2", 4);
	volume_id_mint("pvc-1", "n2", id_2);
	controller_remove_copy(d.controller, node_table_get(d.table, "n2"), id_2, expect_success, &n);
	desk_deleted(desk_last(&d, "n2"));
	ck_assert_uint_eq(n, 1);
	check_record("n1", /* deleting= */ false, /* retained= */ true);
	end();
}
END_TEST

UNIT_MAIN("controller/lost", a_volume_whose_only_node_is_lost_is_deleted_and_its_record_stays,
	what_the_leader_has_not_concluded_is_waited_for,
	a_deletion_that_began_before_the_node_was_lost_is_over, a_record_that_cannot_be_written_is_no_success,
	a_node_that_reports_is_not_asked_while_its_record_says_that_it_is_lost,
	a_node_whose_node_object_is_back_is_not_lost, nodes_that_are_not_lost_are_asked_as_always,
	what_has_returned_is_deleted_by_another_call, a_volume_that_may_return_is_not_made_again,
	a_volume_that_was_deleted_meanwhile_is_not_given_out, nothing_but_a_call_deletes_what_was_lost,
	an_orphan_of_a_volume_that_was_lost_is_deleted)
