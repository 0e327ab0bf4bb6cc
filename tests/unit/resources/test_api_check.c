/* SPDX-License-Identifier: Apache-2.0 */
#include "resources/api_check.h"

#include "base/clock.h"
#include "base/mem.h"
#include "unit/kube/fake_kube.h"
#include "unit/unit.h"

#define SERVED                                                                                               \
	"{\"kind\":\"APIResourceList\",\"resources\":[{\"name\":\"pmemnodes\"},{\"name\":\"pmemnodes/"       \
	"status\"},{\"name\":\"pmemvolumes\"},{\"name\":\"pmemvolumes/status\"}]}"
#define OF_VERSION                                                                                           \
	" of pmem-csi.intel.com/v1alpha1: apply the definitions with kubectl apply -k manifests/crds"
#define NOT_SERVED "does not serve pmemnodes and pmemvolumes" OF_VERSION

static struct kube_client *client;
static struct api_check *check;
static struct error *err;

static void set_up(void)
{
	client = fake_kube_new(/* loop= */ NULL);
	check = api_check_new(client);
}

static void tear_down(void)
{
	api_check_free(check);
	kube_client_free(client);
}

static void tick_after(uint64_t ms)
{
	api_check_tick(check, clock_ns() + ms * NS_PER_MS);
}

START_TEST(the_list_of_resources_is_asked_for_at_once)
{
	ck_assert_uint_eq(fake_kube_count(client), 1);
	ck_assert_str_eq(fake_kube_next(client)->method, "GET");
	ck_assert_str_eq(fake_kube_next(client)->path, "/apis/pmem-csi.intel.com/v1alpha1");
	ASSERT_FAILS(api_check_require(check, &err), ERR_UNAVAILABLE, "has not been asked");
	tick_after(3600000);
	ck_assert_uint_eq(fake_kube_count(client), 1);
}
END_TEST

START_TEST(what_is_served_is_not_asked_for_again)
{
	fake_kube_answer(client, 200, SERVED);
	ASSERT_OK(api_check_require(check, &err));
	tick_after(3600000);
	ck_assert_uint_eq(fake_kube_count(client), 0);
}
END_TEST

START_TEST(an_absent_group_is_explained_and_asked_for_again_after_a_while)
{
	fake_kube_answer(client, 404, NULL);
	ASSERT_FAILS(api_check_require(check, &err), ERR_UNAVAILABLE, NOT_SERVED);
	tick_after(500);
	ck_assert_uint_eq(fake_kube_count(client), 0);
	tick_after(1500);
	ck_assert_uint_eq(fake_kube_count(client), 1);
	ASSERT_FAILS(api_check_require(check, &err), ERR_UNAVAILABLE, NOT_SERVED);
	fake_kube_answer(client, 200, SERVED);
	ASSERT_OK(api_check_require(check, &err));
}
END_TEST

START_TEST(an_answer_without_the_resources_is_as_none)
{
	static const char *const answers[] = {"{}", "{\"resources\":[]}", "{\"resources\":null}",
		"{\"resources\":[{\"name\":\"pmemnodes/status\"},{\"name\":\"others\"},{}]}", "no JSON", "",
		"{\"resources\":[{\"name\":\"pmemnodes\"}"};

	for (size_t i = 0; i < ARRAY_SIZE(answers); i++) {
		fake_kube_answer(client, 200, answers[i]);
		ASSERT_FAILS(api_check_require(check, &err), ERR_UNAVAILABLE, NOT_SERVED);
		tick_after(3600000);
		ck_assert_uint_eq(fake_kube_count(client), 1);
	}
}
END_TEST

START_TEST(a_missing_definition_is_named)
{
	static const struct {
		const char *answer;
		const char *missing;
	} cases[] = {
		{"{\"resources\":[{\"name\":\"pmemnodes\"},{\"name\":\"pmemnodes/status\"}]}",
			"does not serve pmemvolumes" OF_VERSION},
		{"{\"resources\":[{\"name\":\"pmemvolumes\"},{\"name\":\"pmemvolumes/status\"}]}",
			"does not serve pmemnodes" OF_VERSION},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		fake_kube_answer(client, 200, cases[i].answer);
		ASSERT_FAILS(api_check_require(check, &err), ERR_UNAVAILABLE, cases[i].missing);
		tick_after(3600000);
	}
	fake_kube_answer(client, 200, SERVED);
	ASSERT_OK(api_check_require(check, &err));
}
END_TEST

START_TEST(other_failures_say_that_it_is_not_known)
{
	static const unsigned statuses[] = {0, 401, 500, 503};

	for (size_t i = 0; i < ARRAY_SIZE(statuses); i++) {
		fake_kube_answer(client, statuses[i], NULL);
		ASSERT_FAILS(api_check_require(check, &err), ERR_UNAVAILABLE,
			"cannot determine whether the API server serves pmem-csi.intel.com/v1alpha1: kube: "
			"get: ");
		tick_after(3600000);
	}
}
END_TEST

START_TEST(a_controller_without_permission_to_ask_continues)
{
	fake_kube_answer(client, 403, NULL);
	ASSERT_OK(api_check_require(check, &err));
	tick_after(3600000);
	ck_assert_uint_eq(fake_kube_count(client), 0);
}
END_TEST

START_TEST(the_end_gives_a_request_up)
{
	ck_assert_uint_eq(fake_kube_count(client), 1);
	api_check_free(TAKE_PTR(check));
	ck_assert_uint_eq(fake_kube_count(client), 0);
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {the_list_of_resources_is_asked_for_at_once,
		what_is_served_is_not_asked_for_again,
		an_absent_group_is_explained_and_asked_for_again_after_a_while,
		an_answer_without_the_resources_is_as_none, a_missing_definition_is_named,
		other_failures_say_that_it_is_not_known, a_controller_without_permission_to_ask_continues,
		the_end_gives_a_request_up};
	Suite *suite = suite_create("resources/api_check");
	TCase *tcase = tcase_create("api_check");

	suite_add_tcase(suite, tcase);
	tcase_add_checked_fixture(tcase, set_up, tear_down);
	for (size_t i = 0; i < ARRAY_SIZE(tests); i++)
		tcase_add_test(tcase, tests[i]);
	return unit_runner_finish(srunner_create(suite));
}
