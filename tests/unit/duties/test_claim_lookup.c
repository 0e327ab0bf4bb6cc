/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "base/mem.h"
#include "base/str.h"
#include "duties/claim_lookup.h"
#include "unit/kube/fake_kube.h"
#include "unit/kube/kube_json.h"
#include "unit/unit.h"

/* The result of one lookup. */
struct answer {
	unsigned n;
	bool has_volume;
	bool has_claim;
	bool is_referenced;
	char handle[32];
	char node[32];
	enum err_code code; /* 0: none */
};

static struct kube_client *client;
static struct claim_reader *reader;

static void set_up(void)
{
	client = fake_kube_new(/* loop= */ NULL);
	reader = claim_reader_new(client, "pmem");
}

static void tear_down(void)
{
	claim_reader_free(reader);
	kube_client_free(client);
}

static void looked(void *user, const struct claim_state *state, const struct error *error)
{
	struct answer *a = user;

	a->n++;
	ck_assert((state == NULL) == (error != NULL));
	if (error) {
		a->code = error->code;
		return;
	}
	a->has_volume = state->has_volume;
	a->has_claim = state->has_claim;
	a->is_referenced = state->is_referenced;
	snprintf(a->handle, sizeof(a->handle), "%s", state->handle ? state->handle : "none");
	snprintf(a->node, sizeof(a->node), "%s", state->n_node_ids == 1 ? state->node_ids[0] : "");
}

static void look(const char *name, struct answer *a)
{
	const struct claim_lookup l = claim_reader_lookup(reader);

	l.look(l.self, name, "handle-1", looked, a);
	ck_assert_uint_eq(a->n, 0);
}

/* The two lists that are requested next, first of claims. @claim, @volume: all that is in them; NULL: nothing
 */
static void answer_lists(const char *claim, const char *volume)
{
	static const char form[] = "{\"metadata\":{\"resourceVersion\":\"5\"},\"items\":[%s]}";
	CLEANUP(free_charp) char *claims = x_asprintf(form, claim ? claim : "");
	CLEANUP(free_charp) char *volumes = x_asprintf(form, volume ? volume : "");

	ck_assert_str_eq(fake_kube_next(client)->path, "/api/v1/persistentvolumeclaims?limit=200");
	fake_kube_answer(client, 200, claims);
	ck_assert_str_eq(fake_kube_next(client)->path, "/api/v1/persistentvolumes?limit=200");
	fake_kube_answer(client, 200, volumes);
}

static void answer_claims(const char *name)
{
	CLEANUP(free_charp) char *json = kube_json_claim(name, "fast", NULL, NULL);

	answer_lists(json, NULL);
}

static void answer_volumes(const char *name, const char *driver, const char *handle)
{
	CLEANUP(free_charp) char *json = kube_json_volume(name, driver, handle, "n1");

	answer_lists(NULL, json);
}

START_TEST(a_volume_is_described_as_the_api_has_it)
{
	CLEANUP(free_charp) char *json = kube_json_volume("pvc-1", "pmem", "handle-1", "n1");
	struct answer a = {0};

	look("pvc-1", &a);
	ck_assert_str_eq(fake_kube_next(client)->path, "/api/v1/persistentvolumes/pvc-1");
	fake_kube_answer(client, 200, json);
	ck_assert_uint_eq(a.n, 1);
	ck_assert(a.has_volume);
	ck_assert_str_eq(a.handle, "handle-1");
	ck_assert_str_eq(a.node, "n1");
}
END_TEST

START_TEST(the_handle_of_another_driver_is_none)
{
	CLEANUP(free_charp) char *json = kube_json_volume("pvc-1", "other", "handle-1", "n1");
	struct answer a = {0};

	look("pvc-1", &a);
	fake_kube_answer(client, 200, json);
	answer_lists(NULL, NULL);
	ck_assert(a.has_volume);
	ck_assert_str_eq(a.handle, "none");
	ck_assert(!a.is_referenced);
}
END_TEST

START_TEST(without_a_volume_the_claims_are_listed)
{
	struct answer there = {0};

	look("pvc-uid-a", &there);
	fake_kube_answer(client, 404, NULL);
	answer_claims("a");
	ck_assert_uint_eq(there.n, 1);
	ck_assert(!there.has_volume);
	ck_assert(there.has_claim);
	ck_assert_uint_eq(fake_kube_count(client), 0);
}
END_TEST

/* The second one has asked after the first lists had begun, and waits for others. */
START_TEST(a_pv_of_another_name_is_found_by_its_handle)
{
	struct answer missing = {0};
	struct answer exchanged = {0};
	CLEANUP(free_charp) char *json = kube_json_volume("pvc-2", "pmem", "another", "n1");

	look("pvc-uid-a", &missing);
	look("pvc-2", &exchanged);
	fake_kube_answer(client, 404, NULL);
	fake_kube_answer(client, 200, json);
	answer_volumes("static-pv", "pmem", "handle-1");
	ck_assert_uint_eq(missing.n, 1);
	ck_assert(missing.is_referenced && !missing.has_volume);
	ck_assert_uint_eq(exchanged.n, 0);
	answer_volumes("static-pv", "pmem", "handle-1");
	ck_assert_uint_eq(exchanged.n, 1);
	ck_assert(exchanged.is_referenced && exchanged.has_volume);
	ck_assert_str_eq(exchanged.handle, "another");
}
END_TEST

START_TEST(pvs_of_other_drivers_and_handles_refer_to_nothing)
{
	CLEANUP(free_charp) char *one = kube_json_volume("one", "other", "handle-1", "n1");
	CLEANUP(free_charp) char *two = kube_json_volume("two", "pmem", "handle-2", "n1");
	CLEANUP(free_charp) char *both = x_asprintf("%s,%s", one, two);
	struct answer a = {0};

	look("pvc-uid-a", &a);
	fake_kube_answer(client, 404, NULL);
	answer_lists(NULL, both);
	ck_assert_uint_eq(a.n, 1);
	ck_assert(!a.is_referenced);
}
END_TEST

START_TEST(a_list_that_has_begun_does_not_count_for_later_lookups)
{
	struct answer first = {0};
	struct answer gone = {0};
	struct answer there = {0};

	look("pvc-uid-first", &first);
	fake_kube_answer(client, 404, NULL);
	look("pvc-uid-gone", &gone);
	look("pvc-uid-there", &there);
	answer_claims("gone");
	ck_assert_uint_eq(first.n, 1);
	ck_assert(!first.has_claim);
	fake_kube_answer(client, 404, NULL);
	ck_assert_uint_eq(gone.n + there.n, 0);
	fake_kube_answer(client, 404, NULL);
	answer_claims("gone");
	ck_assert_uint_eq(gone.n, 1);
	ck_assert(gone.has_claim);
	ck_assert_uint_eq(there.n, 0);
	answer_claims("there");
	ck_assert_uint_eq(there.n, 1);
	ck_assert(there.has_claim);
}
END_TEST

/* Whichever of the lists fails: nothing is concluded from the other one. */
START_TEST(a_list_that_fails_is_reported)
{
	struct answer a = {0};
	struct answer b = {0};

	look("pvc-uid-a", &a);
	fake_kube_answer(client, 404, NULL);
	fake_kube_answer(client, 500, NULL);
	ck_assert_uint_eq(a.n, 1);
	ck_assert(a.code != 0);
	ck_assert_uint_eq(fake_kube_count(client), 0);
	look("pvc-uid-b", &b);
	fake_kube_answer(client, 404, NULL);
	fake_kube_answer(client, 200, "{\"metadata\":{\"resourceVersion\":\"5\"},\"items\":[]}");
	ck_assert_uint_eq(b.n, 0);
	fake_kube_answer(client, 200, "{\"items\":");
	ck_assert_uint_eq(b.n, 1);
	ck_assert_int_eq(b.code, ERR_INVALID_ARGUMENT);
}
END_TEST

START_TEST(a_failure_is_reported_and_nothing_is_concluded)
{
	struct answer a = {0};

	look("pvc-1", &a);
	fake_kube_answer(client, 403, NULL);
	ck_assert_uint_eq(a.n, 1);
	ck_assert_int_eq(a.code, ERR_PERMISSION);
}
END_TEST

START_TEST(a_name_leads_to_no_other_object)
{
	struct answer a = {0};

	look("pvc-1/../../x?y", &a);
	ck_assert_str_eq(fake_kube_next(client)->path, "/api/v1/persistentvolumes/pvc-1%2F..%2F..%2Fx%3Fy");
	fake_kube_answer(client, 500, NULL);
}
END_TEST

START_TEST(lookups_that_wait_when_all_ends_are_answered)
{
	struct answer a = {0};
	struct answer b = {0};

	look("pvc-1", &a);
	look("pvc-2", &b);
	fake_kube_answer(client, 404, NULL);
	claim_reader_free(reader);
	reader = NULL;
	ck_assert_uint_eq(a.n + b.n, 2);
	ck_assert_int_eq(a.code, ERR_CANCELLED);
	ck_assert_int_eq(b.code, ERR_CANCELLED);
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {a_volume_is_described_as_the_api_has_it,
		the_handle_of_another_driver_is_none, without_a_volume_the_claims_are_listed,
		a_pv_of_another_name_is_found_by_its_handle,
		pvs_of_other_drivers_and_handles_refer_to_nothing,
		a_list_that_has_begun_does_not_count_for_later_lookups, a_list_that_fails_is_reported,
		a_failure_is_reported_and_nothing_is_concluded, a_name_leads_to_no_other_object,
		lookups_that_wait_when_all_ends_are_answered};
	Suite *suite = suite_create("claim lookup");
	TCase *tcase = tcase_create("claim lookup");

	suite_add_tcase(suite, tcase);
	tcase_add_checked_fixture(tcase, set_up, tear_down);
	for (size_t i = 0; i < ARRAY_SIZE(tests); i++)
		tcase_add_test(tcase, tests[i]);
	return unit_runner_finish(srunner_create(suite));
}
