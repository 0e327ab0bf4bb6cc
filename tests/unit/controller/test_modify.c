/* SPDX-License-Identifier: Apache-2.0 */
/* ControllerModifyVolume: which nodes are asked, what they are asked, and what their answers mean. How nodes
 * are found is tested in test_expand.c, too. */
#include "base/clock.h"
#include "base/mem.h"
#include "base/str.h"
#include "unit/controller/desk.h"
#include "volume/id.h"

#define NAME "pvc-1"

static struct desk d;
static struct desk_ask a;
static char id[VOLUME_ID_MAX + 1]; /* on n1 */

static struct node_report *put(const char *node_id, const char *volume_id)
{
	struct node_report *r = report_new(node_id);

	if (volume_id)
		report_add_volume(r, volume_id, NAME)->ever_staged = true;
	node_table_put(d.table, r, d.now_ns);
	return r;
}

static void set_up(void)
{
	struct pmem_volume *v;

	desk_open(&d, /* early= */ false, /* forget_gone= */ false);
	desk_ask_init(&a, NAME);
	volume_id_mint(NAME, "n1", id);
	put("n1", id);
	put("n2", NULL);
	v = pmem_volume_new(volume_key_of_name(NAME).hex, DESK_DRIVER);
	v->volume_name = x_strdup(NAME);
	v->handle = x_strdup(id);
	v->size_bytes = v->capacity_bytes = DESK_GIB;
	pmem_volume_add_node(v, "n1");
	desk_put_record(&d, RECORD_CREATE, v);
}

static void tear_down(void)
{
	desk_ask_done(&a);
	desk_close(&d);
}

static void again(void)
{
	desk_ask_done(&a);
	desk_ask_init(&a, NAME);
}

static void modify(void)
{
	desk_modify(&d, &a, id, "usage", "FileIO");
}

START_TEST(the_node_of_the_volume_is_asked)
{
	const struct desk_call *c;
	unsigned n_writes = d.n_writes;

	a.modify.n_secrets = 1;
	a.modify.secrets = (Csi__V1__ControllerModifyVolumeRequest__SecretsEntry *[]){NULL};
	a.deadline_ns = d.now_ns + 5 * NS_PER_S;
	modify();
	ck_assert_uint_eq(d.n_calls, 1);
	c = desk_last(&d, "n1");
	ck_assert_str_eq(c->modify_request->volume_id, id);
	ck_assert_uint_eq(c->modify_request->n_mutable_parameters, 1);
	ck_assert_str_eq(c->modify_request->mutable_parameters[0]->key, "usage");
	ck_assert_str_eq(c->modify_request->mutable_parameters[0]->value, "FileIO");
	ck_assert_uint_eq(c->modify_request->n_secrets, 0);
	ck_assert_uint_eq(c->timeout_ms, 4500);
	ck_assert(!a.finished);
	desk_modified(desk_last(&d, "n1"));
	DESK_OK(&a);
	/* it shows what was asked for at the creation */
	ck_assert_uint_eq(d.n_writes, n_writes);
}
END_TEST

static const struct {
	enum err_code from;
	enum err_code to;
	const char *text;
} answers[] = {
	/* with which external-resizer calls the class infeasible */
	{ERR_INVALID_ARGUMENT, ERR_INVALID_ARGUMENT, "node n1: why"},
	/* after which users may name another class */
	{ERR_NOT_FOUND, ERR_NOT_FOUND, "node n1: why"},
	{ERR_UNIMPLEMENTED, ERR_UNIMPLEMENTED, "node n1: why"},
	{ERR_INTERNAL, ERR_INTERNAL, "node n1: why"},
	/* after which it asks for the same one again */
	{ERR_ABORTED, ERR_ABORTED, "node n1: why"},
	{ERR_DEADLINE, ERR_DEADLINE, "node n1: why"},
	{ERR_UNAVAILABLE, ERR_UNAVAILABLE, "node n1: why"},
	{ERR_CANCELLED, ERR_UNAVAILABLE, "node n1: CANCELLED: why"},
	{ERR_UNKNOWN, ERR_UNAVAILABLE, "node n1: UNKNOWN: why"},
};

START_TEST(a_refusal_has_the_code_that_external_resizer_understands)
{
	modify();
	desk_failed(desk_last(&d, "n1"), answers[_i].from, "why");
	DESK_FAILED(&a, answers[_i].to, answers[_i].text);
	again();
	modify();
	desk_modified(desk_last(&d, "n1"));
	DESK_OK(&a);
}
END_TEST

START_TEST(bad_parameters_are_refused_without_a_node)
{
	desk_modify(&d, &a, id, "foo", "bar");
	DESK_FAILED(&a, ERR_INVALID_ARGUMENT, "unknown parameter \"foo\" (\"bar\")");
	again();
	desk_modify(&d, &a, id, "persistencyModel", "cache");
	DESK_FAILED(&a, ERR_INVALID_ARGUMENT, "\"persistencyModel\" cannot be changed");
	again();
	desk_modify(&d, &a, "", "usage", "FileIO");
	DESK_FAILED(&a, ERR_INVALID_ARGUMENT, "volume_id is missing");
	ck_assert_uint_eq(d.n_calls, 0);
}
END_TEST

START_TEST(an_older_driver_is_to_be_updated)
{
	struct node_report *r = report_new("n1");

	report_add_volume(r, id, NAME);
	r->serves_modification = false;
	node_table_put(d.table, r, d.now_ns);
	modify();
	DESK_FAILED(&a, ERR_UNIMPLEMENTED, "on node n1 cannot modify volumes: update the driver there");
	ck_assert_uint_eq(d.n_calls, 0);
}
END_TEST

START_TEST(a_record_that_cannot_be_read_is_waited_for)
{
	d.fail_read = 1;
	d.fail_code = ERR_DEADLINE;
	modify();
	DESK_FAILED(&a, ERR_UNAVAILABLE, "record of volume");
	again();
	modify();
	desk_modified(desk_last(&d, "n1"));
	DESK_OK(&a);
}
END_TEST

/* A cache volume with copies on both nodes. */
static void begin_with_cache_volume(void)
{
	struct pmem_volume *v = desk_record(&d, NAME);
	char text[VOLUME_ID_MAX + 1];

	volume_id_mint(NAME, NULL, text);
	free(v->handle);
	v->handle = x_strdup(text);
	desk_put_record(&d, RECORD_STATUS, v);
	v = desk_record(&d, NAME);
	pmem_volume_add_node(v, "n2");
	desk_put_record(&d, RECORD_SPEC, v);
	put("n1", text);
	put("n2", text);
	desk_modify(&d, &a, text, "eraseafter", "false");
	ck_assert_uint_eq(d.n_calls, 2);
}

START_TEST(all_copies_are_modified)
{
	begin_with_cache_volume();
	desk_modified(&d.calls[1]);
	ck_assert(!a.finished);
	desk_modified(&d.calls[0]);
	DESK_OK(&a);
	desk_check_nodes(&d, NAME, "n1 n2");
}
END_TEST

START_TEST(of_several_failures_an_open_one_decides)
{
	begin_with_cache_volume();
	desk_failed(&d.calls[_i], ERR_INVALID_ARGUMENT, "no");
	ck_assert(!a.finished);
	desk_failed(&d.calls[1 - _i], ERR_UNAVAILABLE, "not now");
	DESK_FAILED(&a, ERR_UNAVAILABLE, "not now");
}
END_TEST

static void check_unknown(const char *handle, enum err_code code, const char *text)
{
	again();
	desk_modify(&d, &a, handle, "eraseafter", "false");
	DESK_FAILED(&a, code, text);
	ck_assert_uint_eq(d.n_calls, 0);
}

START_TEST(volumes_without_a_record)
{
	struct node_report *r = report_new("n2");

	report_add_volume(r, "inline", "")->is_inline = true;
	report_add_volume(r, "made-elsewhere", "");
	node_table_put(d.table, r, d.now_ns);
	check_unknown("absent", ERR_NOT_FOUND, "volume absent does not exist");
	check_unknown("inline", ERR_INVALID_ARGUMENT, "is an inline volume, which cannot be modified");
	check_unknown("made-elsewhere", ERR_UNAVAILABLE, "has no PmemVolume yet");
}
END_TEST

START_TEST(a_snapshot_is_no_volume)
{
	struct pmem_volume *v = desk_record(&d, NAME);

	v->snapshot = true;
	desk_put_record(&d, RECORD_SPEC, v);
	modify();
	DESK_FAILED(&a, ERR_NOT_FOUND, "it is a snapshot");
}
END_TEST

START_TEST(a_deleted_volume_is_not_modified)
{
	struct pmem_volume *v = desk_record(&d, NAME);

	v->deleting = true;
	desk_put_record(&d, RECORD_SPEC, v);
	modify();
	DESK_FAILED(&a, ERR_ABORTED, "is being deleted");
	ck_assert_uint_eq(d.n_calls, 0);
}
END_TEST

START_TEST(calls_for_one_volume_exclude_each_other)
{
	struct desk_ask b;

	desk_ask_init(&b, NAME);
	modify();
	desk_modify(&d, &b, id, "usage", "AppDirect");
	DESK_FAILED(&b, ERR_ABORTED, "another call for volume ");
	desk_ask_done(&b);
	desk_modified(desk_last(&d, "n1"));
	DESK_OK(&a);
	/* the lock is released, also after a failure */
	again();
	desk_delete(&d, &a, id);
	desk_deleted(desk_last(&d, "n1"));
	DESK_OK(&a);
}
END_TEST

/* Nodes get what the two classes come to, so that drivers of earlier releases understand it. */
START_TEST(a_class_at_creation_is_merged_into_the_parameters)
{
	Csi__V1__CreateVolumeRequest__MutableParametersEntry e;
	csi__v1__create_volume_request__mutable_parameters_entry__init(&e);

	tear_down();
	desk_open(&d, /* early= */ false, /* forget_gone= */ false);
	desk_ask_init(&a, NAME);
	desk_add_node(&d, "n1", 4);
	desk_ask_parameter(&a, "usage", "AppDirect");
	e.key = (char *)(uintptr_t)"usage";
	e.value = (char *)(uintptr_t)"FileIO";
	a.create.n_mutable_parameters = 1;
	a.create.mutable_parameters = (Csi__V1__CreateVolumeRequest__MutableParametersEntry *[]){&e};
	desk_create(&d, &a);
	const Csi__V1__CreateVolumeRequest *asked = desk_last(&d, "n1")->create_request;
	ck_assert_uint_eq(asked->n_mutable_parameters, 0);
	ck_assert_uint_eq(asked->n_parameters, 1);
	ck_assert_str_eq(asked->parameters[0]->value, "FileIO");
	CLEANUP(pmem_volume_freep) struct pmem_volume *v = desk_record(&d, NAME);
	ck_assert_str_eq(v->parameters[1], "FileIO");
	desk_made(desk_last(&d, "n1"));
	DESK_OK(&a);
	again();
	e.key = (char *)(uintptr_t)"cacheSize";
	a.create.n_mutable_parameters = 1;
	a.create.mutable_parameters = (Csi__V1__CreateVolumeRequest__MutableParametersEntry *[]){&e};
	desk_create(&d, &a);
	DESK_FAILED(
		&a, ERR_INVALID_ARGUMENT, "mutable_parameters: parameter \"cacheSize\" cannot be changed");
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {the_node_of_the_volume_is_asked,
		bad_parameters_are_refused_without_a_node, an_older_driver_is_to_be_updated,
		a_record_that_cannot_be_read_is_waited_for, all_copies_are_modified, volumes_without_a_record,
		a_snapshot_is_no_volume, a_deleted_volume_is_not_modified,
		calls_for_one_volume_exclude_each_other, a_class_at_creation_is_merged_into_the_parameters};
	Suite *suite = suite_create("controller/modify");
	TCase *tcase = tcase_create("modify");

	suite_add_tcase(suite, tcase);
	tcase_add_checked_fixture(tcase, set_up, tear_down);
	for (size_t i = 0; i < ARRAY_SIZE(tests); i++)
		tcase_add_test(tcase, tests[i]);
	tcase_add_loop_test(
		tcase, a_refusal_has_the_code_that_external_resizer_understands, 0, (int)ARRAY_SIZE(answers));
	tcase_add_loop_test(tcase, of_several_failures_an_open_one_decides, 0, 2);
	return unit_runner_finish(srunner_create(suite));
}
