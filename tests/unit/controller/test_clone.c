/* SPDX-License-Identifier: Apache-2.0 */
/* CreateVolume of clones: only nodes that have the source are asked. */
#include "base/clock.h"
#include "base/mem.h"
#include "base/str.h"
#include "unit/controller/desk.h"
#include "volume/id.h"

#define NAME       "pvc-1"
#define SOURCE     "pvc-0"
#define NODES(...) ((const char *const[]){__VA_ARGS__, NULL})

static struct desk d;
static struct desk_ask a;
static char source[VOLUME_ID_MAX + 1];

static void ask(void)
{
	desk_ask_init(&a, NAME);
	desk_ask_source(&a, source);
}

/* Two nodes; the first one has more room. The source was made for SOURCE on the second. */
static void begin(bool early)
{
	desk_open(&d, early, /* forget_gone= */ false);
	volume_id_mint(SOURCE, "n2", source);
	desk_add_node(&d, "n1", 8);
	desk_add_node(&d, "n2", 4);
	ask();
}

static void end(void)
{
	desk_ask_done(&a);
	desk_close(&d);
}

static void again(void)
{
	desk_ask_done(&a);
	ask();
}

/* @node_id reports the source as well. */
static void report_source(const char *node_id, enum volume_phase phase)
{
	struct node_report *r = report_new(node_id);

	report_add_volume(r, source, SOURCE)->phase = phase;
	node_table_put(d.table, r, d.now_ns);
}

static void begin_with_source(void)
{
	begin(/* early= */ false);
	report_source("n2", PHASE_READY);
}

/* Creates the PmemVolume of the source volume. */
static void record_source(const char *node_id, const char *handle)
{
	struct pmem_volume *v = pmem_volume_new(volume_key_of_name(SOURCE).hex, DESK_DRIVER);

	v->volume_name = x_strdup(SOURCE);
	v->handle = x_strdup(handle);
	pmem_volume_add_node(v, node_id);
	desk_put_record(&d, RECORD_CREATE, v);
}

static void check_recorded_source(const char *handle)
{
	CLEANUP(pmem_volume_freep) struct pmem_volume *v = desk_record(&d, NAME);

	ck_assert_ptr_nonnull(v);
	ck_assert_msg(str_eq(v->source, handle), "the record has the source %s", v->source);
}

START_TEST(a_clone_is_made_where_its_source_is)
{
	const Csi__V1__VolumeContentSource *s;

	begin_with_source();
	desk_ask_nodes(&a, NODES("n1", "n2"), NODES("n1"));
	desk_create(&d, &a);
	check_recorded_source(source);
	s = desk_last(&d, "n2")->create_request->volume_content_source;
	ck_assert_ptr_nonnull(s);
	ck_assert_str_eq(s->volume->volume_id, source);
	desk_made(desk_last(&d, "n2"));
	DESK_OK(&a);
	s = a.created.volume->content_source;
	ck_assert_ptr_nonnull(s);
	ck_assert_int_eq(s->type_case, CSI__V1__VOLUME_CONTENT_SOURCE__TYPE_VOLUME);
	ck_assert_str_eq(s->volume->volume_id, source);
	ck_assert_uint_eq(a.created.volume->n_accessible_topology, 1);
	check_recorded_source(source);
	end();
}
END_TEST

START_TEST(a_request_for_other_nodes_hears_where_the_source_is)
{
	begin_with_source();
	desk_ask_nodes(&a, NODES("n1"), NODES("n1"));
	desk_create(&d, &a);
	DESK_FAILED(&a, ERR_EXHAUSTED, "which can be copied only where it is: on node n2");
	ck_assert_uint_eq(d.n_calls, 0);
	desk_check_nodes(&d, NAME, NULL);
	end();
}
END_TEST

START_TEST(a_full_node_of_the_source_does_not_send_the_clone_elsewhere)
{
	begin_with_source();
	desk_create(&d, &a);
	desk_failed(desk_last(&d, "n2"), ERR_EXHAUSTED, "full");
	DESK_FAILED(&a, ERR_EXHAUSTED, "can take a copy of it; n2: full");
	ck_assert_uint_eq(d.n_calls, 1);
	desk_check_nodes(&d, NAME, NULL);
	end();
}
END_TEST

/* Its report may be old. */
START_TEST(a_node_of_the_source_that_reports_too_little_capacity_is_asked)
{
	struct node_report *r = report_new("n2");

	begin(/* early= */ false);
	report_add_volume(r, source, SOURCE);
	r->pools[0].capacity.max_volume_bytes = 0;
	node_table_put(d.table, r, d.now_ns);
	desk_create(&d, &a);
	desk_made(desk_last(&d, "n2"));
	DESK_OK(&a);
	end();
}
END_TEST

START_TEST(a_clone_goes_to_any_of_the_nodes_that_have_the_source)
{
	begin(/* early= */ false);
	volume_id_mint(SOURCE, /* node_id= */ NULL, source);
	report_source("n2", PHASE_READY);
	report_source("n1", PHASE_READY);
	desk_add_node(&d, "n3", 16);
	again();
	desk_ask_nodes(&a, NODES("n3", "n2", "n1"), NULL);
	desk_create(&d, &a);
	desk_failed(desk_last(&d, "n2"), ERR_EXHAUSTED, "full");
	desk_made(desk_last(&d, "n1"));
	DESK_OK(&a);
	end();
}
END_TEST

START_TEST(a_source_is_missing_only_when_all_nodes_have_said_what_they_have)
{
	struct node_report *r = report_new("n3");

	begin(/* early= */ true);
	d.cluster_ids[d.n_cluster++] = "n9";
	desk_create(&d, &a);
	DESK_FAILED(&a, ERR_UNAVAILABLE, "node n9 has not registered yet");
	d.now_ns += DESK_LEASE_NS;
	r->has_inventory = false;
	node_table_put(d.table, r, d.now_ns);
	again();
	desk_create(&d, &a);
	DESK_FAILED(&a, ERR_UNAVAILABLE, "node n3 has not reported its volumes yet");
	desk_add_node(&d, "n3", 4);
	again();
	desk_ask_nodes(&a, NODES("n1"), NULL);
	desk_create(&d, &a);
	DESK_FAILED(&a, ERR_NOT_FOUND, "which is to be copied, does not exist");
	report_source("n2", PHASE_ERASING);
	again();
	desk_create(&d, &a);
	DESK_FAILED(&a, ERR_NOT_FOUND, "which is to be copied, does not exist");
	ck_assert_uint_eq(d.n_calls, 0);
	desk_check_nodes(&d, NAME, NULL);
	end();
}
END_TEST

START_TEST(a_source_on_a_node_that_cannot_be_asked_is_waited_for)
{
	begin_with_source();
	d.out_of_service = "n2";
	desk_create(&d, &a);
	DESK_FAILED(&a, ERR_UNAVAILABLE, "has the taint node.kubernetes.io/out-of-service");
	d.out_of_service = NULL;
	node_table_end(d.table, "n2");
	again();
	desk_ask_nodes(&a, NODES("n2"), NULL);
	desk_create(&d, &a);
	DESK_FAILED(&a, ERR_UNAVAILABLE, "node n2, which has volume");
	/* the pod can only wait for that node, but must not wait elsewhere */
	again();
	desk_ask_nodes(&a, NODES("n1"), NULL);
	desk_create(&d, &a);
	DESK_FAILED(&a, ERR_EXHAUSTED, "on node n2");
	ck_assert_uint_eq(d.n_calls, 0);
	end();
}
END_TEST

START_TEST(other_nodes_than_that_of_the_source_are_not_waited_for)
{
	begin(/* early= */ true);
	report_source("n2", PHASE_READY);
	desk_ask_nodes(&a, NODES("n9", "n2"), NULL);
	desk_create(&d, &a);
	desk_made(desk_last(&d, "n2"));
	DESK_OK(&a);
	end();
}
END_TEST

/* Its node has not registered with this controller, or has not reported the source yet. */
START_TEST(a_record_says_where_the_source_is)
{
	begin(/* early= */ false);
	record_source("n2", source);
	node_table_forget(d.table, "n2");
	desk_ask_nodes(&a, NODES("n2"), NULL);
	desk_create(&d, &a);
	DESK_FAILED(&a, ERR_UNAVAILABLE, "is not connected");
	desk_add_node(&d, "n2", 4);
	again();
	desk_create(&d, &a);
	desk_failed(desk_last(&d, "n2"), ERR_NOT_FOUND, "no such volume");
	DESK_FAILED(&a, ERR_NOT_FOUND, "node n2: no such volume");
	again();
	desk_create(&d, &a);
	desk_made(desk_last(&d, "n2"));
	DESK_OK(&a);
	end();
}
END_TEST

START_TEST(a_record_counts_for_its_own_handle_and_the_node_that_this_names)
{
	char other[VOLUME_ID_MAX + 1];

	begin(/* early= */ false);
	volume_id_mint(SOURCE, "n1", other);
	if (_i == 0)
		record_source("n2", other);
	else
		record_source("n1", source);
	desk_create(&d, &a);
	DESK_FAILED(&a, ERR_NOT_FOUND, "does not exist");
	end();
}
END_TEST

START_TEST(nothing_is_made_while_the_record_of_the_source_cannot_be_read)
{
	begin_with_source();
	d.fail_read = 2;
	desk_create(&d, &a);
	DESK_FAILED(&a, ERR_UNAVAILABLE, "the desk is closed");
	ck_assert_uint_eq(d.n_calls, 0);
	again();
	desk_create(&d, &a);
	desk_made(desk_last(&d, "n2"));
	DESK_OK(&a);
	end();
}
END_TEST

START_TEST(a_volume_keeps_its_source)
{
	char other[VOLUME_ID_MAX + 1];

	begin_with_source();
	desk_create(&d, &a);
	desk_failed(desk_last(&d, "n2"), ERR_DEADLINE, "late");
	again();
	volume_id_mint("pvc-x", "n2", other);
	desk_ask_source(&a, other);
	desk_create(&d, &a);
	DESK_FAILED(&a, ERR_EXISTS, "volume \"pvc-1\" exists, and is a copy of pvc");
	again();
	a.create.volume_content_source = NULL;
	desk_create(&d, &a);
	DESK_FAILED(&a, ERR_EXISTS, "is a copy of");
	again();
	desk_create(&d, &a);
	desk_failed(desk_last(&d, "n2"), ERR_ABORTED, "being made");
	DESK_FAILED(&a, ERR_ABORTED, "being made");
	check_recorded_source(source);
	again();
	desk_create(&d, &a);
	desk_made(desk_last(&d, "n2"));
	DESK_OK(&a);
	check_recorded_source(source);
	end();
}
END_TEST

START_TEST(a_volume_that_began_empty_does_not_become_a_clone)
{
	begin_with_source();
	a.create.volume_content_source = NULL;
	desk_create(&d, &a);
	desk_made(desk_last(&d, "n1"));
	DESK_OK(&a);
	again();
	desk_create(&d, &a);
	DESK_FAILED(&a, ERR_EXISTS, "volume \"pvc-1\" exists, and is no copy");
	ck_assert_uint_eq(d.n_calls, 1);
	end();
}
END_TEST

/* A record that was made of its report does not know the source. */
START_TEST(the_node_decides_about_a_volume_that_it_has_reported)
{
	struct pmem_volume *v = pmem_volume_new(volume_key_of_name(NAME).hex, DESK_DRIVER);

	begin(/* early= */ false);
	volume_id_mint(SOURCE, "n1", source);
	report_source("n1", PHASE_READY);
	again();
	v->volume_name = x_strdup(NAME);
	v->origin = x_strdup(PMEM_VOLUME_REPORTED);
	pmem_volume_add_node(v, "n1");
	desk_put_record(&d, RECORD_CREATE, v);
	desk_create(&d, &a);
	desk_failed(desk_last(&d, "n1"), ERR_EXISTS, "of another source");
	DESK_FAILED(&a, ERR_EXISTS, "of another source");
	ck_assert_uint_eq(d.n_calls, 1);
	end();
}
END_TEST

START_TEST(a_clone_that_was_begun_is_continued_without_its_source)
{
	begin_with_source();
	desk_create(&d, &a);
	desk_failed(desk_last(&d, "n2"), ERR_DEADLINE, "late");
	/* the source is not there any more */
	desk_add_node(&d, "n2", 4);
	again();
	desk_ask_nodes(&a, NODES("n1", "n2"), NULL);
	desk_create(&d, &a);
	desk_made(desk_last(&d, "n2"));
	DESK_OK(&a);
	/* its record was removed by hand */
	desk_put_record(&d, RECORD_RELEASE, desk_record(&d, NAME));
	again();
	desk_create(&d, &a);
	desk_made(desk_last(&d, "n2"));
	DESK_OK(&a);
	end();
}
END_TEST

START_TEST(what_the_node_of_the_source_refuses_is_refused)
{
	static const enum err_code codes[] = {
		ERR_PRECONDITION, ERR_INVALID_ARGUMENT, ERR_EXISTS, ERR_RANGE, ERR_ABORTED, ERR_NOT_FOUND};

	begin_with_source();
	desk_create(&d, &a);
	desk_failed(desk_last(&d, "n2"), codes[_i], "text of the node");
	DESK_FAILED(&a, codes[_i], "text of the node");
	ck_assert_uint_eq(d.n_calls, 1);
	end();
}
END_TEST

static void answer_without_source(struct desk_call *c, Csi__V1__VolumeContentSource *other)
{
	Csi__V1__CreateVolumeResponse reply;
	Csi__V1__Volume volume;
	char id[VOLUME_ID_MAX + 1];

	csi__v1__create_volume_response__init(&reply);
	csi__v1__volume__init(&volume);
	volume_id_mint(NAME, c->node_id, id);
	volume.volume_id = id;
	volume.content_source = other;
	reply.volume = &volume;
	c->answered = true;
	c->fn(c->user, &reply.base, NULL);
}

START_TEST(an_answer_that_does_not_name_the_source_is_none)
{
	Csi__V1__VolumeContentSource other;
	Csi__V1__VolumeContentSource__VolumeSource volume;
	char id[] = "other";

	begin_with_source();
	csi__v1__volume_content_source__init(&other);
	csi__v1__volume_content_source__volume_source__init(&volume);
	volume.volume_id = _i == 2 ? id : source;
	other.volume = &volume;
	other.type_case = _i == 2 ? CSI__V1__VOLUME_CONTENT_SOURCE__TYPE_VOLUME
				  : CSI__V1__VOLUME_CONTENT_SOURCE__TYPE_SNAPSHOT;
	desk_create(&d, &a);
	answer_without_source(desk_last(&d, "n2"), _i == 0 ? NULL : &other);
	DESK_FAILED(&a, ERR_UNAVAILABLE, "does not say that it is about a copy of");
	desk_check_nodes(&d, NAME, "n2");
	end();
}
END_TEST

START_TEST(a_snapshot_without_id_is_refused_before_anything_is_read)
{
	Csi__V1__VolumeContentSource__SnapshotSource snapshot;

	begin_with_source();
	csi__v1__volume_content_source__snapshot_source__init(&snapshot);
	a.create.volume_content_source->type_case = CSI__V1__VOLUME_CONTENT_SOURCE__TYPE_SNAPSHOT;
	a.create.volume_content_source->snapshot = &snapshot;
	desk_create(&d, &a);
	DESK_FAILED(&a, ERR_INVALID_ARGUMENT, "snapshot_id is missing");
	ck_assert_uint_eq(d.n_reads, 0);
	end();
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {a_clone_is_made_where_its_source_is,
		a_request_for_other_nodes_hears_where_the_source_is,
		a_full_node_of_the_source_does_not_send_the_clone_elsewhere,
		a_node_of_the_source_that_reports_too_little_capacity_is_asked,
		a_clone_goes_to_any_of_the_nodes_that_have_the_source,
		a_source_is_missing_only_when_all_nodes_have_said_what_they_have,
		a_source_on_a_node_that_cannot_be_asked_is_waited_for,
		other_nodes_than_that_of_the_source_are_not_waited_for, a_record_says_where_the_source_is,
		nothing_is_made_while_the_record_of_the_source_cannot_be_read, a_volume_keeps_its_source,
		a_volume_that_began_empty_does_not_become_a_clone,
		the_node_decides_about_a_volume_that_it_has_reported,
		a_clone_that_was_begun_is_continued_without_its_source,
		a_snapshot_without_id_is_refused_before_anything_is_read};
	Suite *suite = suite_create("controller/clone");
	TCase *tcase = tcase_create("clone");

	suite_add_tcase(suite, tcase);
	for (size_t i = 0; i < ARRAY_SIZE(tests); i++)
		tcase_add_test(tcase, tests[i]);
	tcase_add_loop_test(tcase, a_record_counts_for_its_own_handle_and_the_node_that_this_names, 0, 2);
	tcase_add_loop_test(tcase, what_the_node_of_the_source_refuses_is_refused, 0, 6);
	tcase_add_loop_test(tcase, an_answer_that_does_not_name_the_source_is_none, 0, 3);
	return unit_runner_finish(srunner_create(suite));
}
