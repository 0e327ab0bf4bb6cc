/* SPDX-License-Identifier: Apache-2.0 */
/* Claims that ask for direct volumes by an annotation. */
#include "base/mem.h"
#include "base/str.h"
#include "unit/controller/desk.h"
#include "unit/kube/fake_kube.h"

#define UID "6ef2b1f4-7b53-4ab1-9d6e-0e9a5f0a3b21"

static struct desk d;
static struct desk_ask a;
static struct kube_client *client;

static void set_up(void)
{
	desk_open(&d, /* early= */ false, /* forget_gone= */ true);
	client = fake_kube_new(/* loop= */ NULL);
	d.controller->config.claims = client;
	struct node_report *r = report_new("n1");
	r->makes_direct_volumes = true;
	r->pools[0].capacity.max_volume_bytes = 4 * DESK_GIB;
	node_table_put(d.table, r, d.now_ns);
	desk_ask_init(&a, "pvc-" UID);
}

static void tear_down(void)
{
	desk_ask_done(&a);
	kube_client_free(client);
	desk_close(&d);
}

static void name_claim(const char *name)
{
	desk_ask_parameter(&a, "csi.storage.k8s.io/pvc/namespace", "ns");
	desk_ask_parameter(&a, "csi.storage.k8s.io/pvc/name", name);
}

static void answer(const char *uid, const char *value)
{
	CLEANUP(free_charp)
	char *json = x_asprintf("{\"metadata\":{\"name\":\"data\",\"namespace\":\"ns\",\"uid\":\"%s\","
				"\"annotations\":{\"skip-hostmount\":\"%s\"}},\"spec\":{}}",
		uid, value);

	ck_assert_str_eq(fake_kube_next(client)->path, "/api/v1/namespaces/ns/persistentvolumeclaims/data");
	ck_assert_uint_eq(d.n_calls, 0);
	fake_kube_answer(client, 200, json);
}

/* The node makes it. Return: what it was asked for. */
static const char *direct_of_node(void)
{
	const Csi__V1__CreateVolumeRequest *q = desk_last(&d, "n1")->create_request;
	const char *value = NULL;

	for (size_t i = 0; i < q->n_parameters; i++) {
		if (str_eq(q->parameters[i]->key, "directVolume"))
			value = q->parameters[i]->value;
	}
	desk_made(desk_last(&d, "n1"));
	DESK_OK(&a);
	return value;
}

START_TEST(claim_with_the_annotation_gets_a_direct_volume)
{
	CLEANUP(pmem_volume_freep) struct pmem_volume *record = NULL;

	name_claim("data");
	desk_create(&d, &a);
	answer(UID, "true");
	ck_assert_str_eq(direct_of_node(), "true");
	record = desk_record(&d, "pvc-" UID);
	ck_assert(strv_contains(record->parameters, "directVolume"));
}
END_TEST

/* The annotation has another value, or is that of a later claim of the same name. */
START_TEST(other_claims_get_what_their_class_says)
{
	name_claim("data");
	desk_create(&d, &a);
	answer(_i == 0 ? UID : "another", _i == 0 ? "yes" : "true");
	ck_assert_ptr_null(direct_of_node());
}
END_TEST

/* As with a class for direct volumes. */
START_TEST(node_without_a_folder_for_direct_volumes_is_not_asked)
{
	struct node_report *r = report_new("n1");

	r->pools[0].capacity.max_volume_bytes = 4 * DESK_GIB;
	node_table_put(d.table, r, d.now_ns);
	desk_ask_nodes(&a, (const char *const[]){"n1", NULL}, NULL);
	name_claim("data");
	desk_create(&d, &a);
	answer(UID, "true");
	ck_assert_uint_eq(d.n_calls, 0);
	ck_assert(a.finished && a.error && a.error->code == ERR_EXHAUSTED);
}
END_TEST

START_TEST(claim_that_is_gone_asks_for_nothing)
{
	name_claim("data");
	desk_create(&d, &a);
	fake_kube_answer(client, 404, "");
	ck_assert_ptr_null(direct_of_node());
}
END_TEST

START_TEST(without_an_answer_nothing_is_made)
{
	static const unsigned failures[] = {0, 403, 500};

	name_claim("data");
	desk_create(&d, &a);
	fake_kube_answer(client, failures[_i], "");
	DESK_FAILED(&a, ERR_UNAVAILABLE, "whether claim ns/data asks for a direct volume");
	ck_assert_uint_eq(d.n_calls, 0);
}
END_TEST

/* Because the class decides, no claim is named, the name is not valid, or the flag is off. */
START_TEST(nothing_is_asked_without_need)
{
	if (_i == 0)
		desk_ask_parameter(&a, "directVolume", "false");
	if (_i != 1)
		name_claim(_i == 2 ? "../secrets" : "data");
	if (_i == 3)
		d.controller->config.claims = NULL;
	desk_create(&d, &a);
	ck_assert_uint_eq(fake_kube_count(client), 0);
	ck_assert(str_eq(direct_of_node(), _i == 0 ? "false" : NULL));
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("controller/skip_hostmount");
	TCase *tcase = tcase_create("annotation");

	suite_add_tcase(suite, tcase);
	tcase_add_checked_fixture(tcase, set_up, tear_down);
	tcase_add_test(tcase, claim_with_the_annotation_gets_a_direct_volume);
	tcase_add_loop_test(tcase, other_claims_get_what_their_class_says, 0, 2);
	tcase_add_test(tcase, node_without_a_folder_for_direct_volumes_is_not_asked);
	tcase_add_test(tcase, claim_that_is_gone_asks_for_nothing);
	tcase_add_loop_test(tcase, without_an_answer_nothing_is_made, 0, 3);
	tcase_add_loop_test(tcase, nothing_is_asked_without_need, 0, 4);
	return unit_runner_finish(srunner_create(suite));
}
