/* SPDX-License-Identifier: Apache-2.0 */
/* The webhook over HTTP: what the watches do not show is looked up before the answer. */
#include <netinet/in.h>
#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/str.h"
#include "scheduler/absent_names.h"
#include "scheduler/look_budget.h"
#include "unit/kube/kube_json.h"
#include "unit/scheduler/extender_rig.h"

#define CLAIM(name)      "{\"name\":\"v\",\"persistentVolumeClaim\":{\"claimName\":\"" name "\"}}"
#define SPEC(class)      "{\"spec\":{\"storageClassName\":\"" class "\"}}"
#define EPHEMERAL(class) "{\"name\":\"e\",\"ephemeral\":{\"volumeClaimTemplate\":" SPEC(class) "}}"
#define CLAIM_PATH(name) "/api/v1/namespaces/ns/persistentvolumeclaims/" name
#define CLASS_PATH(name) "/apis/storage.k8s.io/v1/storageclasses/" name

static struct extender_rig rig;
static char *heard;

static void set_up(void)
{
	extender_rig_open(&rig);
	extender_rig_serve(&rig);
}

static void tear_down(void)
{
	free(heard);
	extender_rig_close(&rig);
}

static int create_in(const char *namespace, const char *volumes)
{
	CLEANUP(free_charp)
	char *body =
		x_asprintf("{\"kind\":\"AdmissionReview\",\"apiVersion\":\"admission.k8s.io/v1\","
			   "\"request\":{\"uid\":\"u-1\",\"operation\":\"CREATE\",\"namespace\":\"%s\","
			   "\"resource\":{\"group\":\"\",\"version\":\"v1\",\"resource\":\"pods\"},"
			   "\"object\":{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\"metadata\":{},\"spec\":{"
			   "\"volumes\":[%s],\"containers\":[{\"name\":\"c\"}]}}}}",
			namespace, volumes);

	return extender_rig_ask(&rig, "/pod/mutate", body);
}

static int create(const char *volumes)
{
	return create_in("ns", volumes);
}

static void hear(int fd)
{
	free(heard);
	heard = extender_rig_hear(&rig, fd);
}

static void is_allowed(int fd, bool marked)
{
	hear(fd);
	ck_assert_msg(
		str_starts(heard, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"), "%s", heard);
	ck_assert_ptr_nonnull(strstr(heard, "\"uid\":\"u-1\""));
	ck_assert_ptr_nonnull(strstr(heard, "\"allowed\":true"));
	ck_assert_msg((strstr(heard, "\"patch\":") != NULL) == marked, "%s", heard);
	ck_assert_uint_eq(fake_kube_count(rig.client), 0);
}

/* The only open look-up is for @path, and ends with @status and @json (taken). */
static void answer(const char *path, unsigned status, char *json)
{
	ck_assert_uint_eq(fake_kube_count(rig.client), 1);
	ck_assert_str_eq(fake_kube_next(rig.client)->method, "GET");
	ck_assert_str_eq(fake_kube_next(rig.client)->path, path);
	fake_kube_answer(rig.client, status, json);
	free(json);
}

static char *claim_of(const char *class_name)
{
	return kube_json_claim("a", class_name, NULL, NULL);
}

START_TEST(before_the_watches_have_shown_all_the_failure_policy_decides)
{
	hear(create(CLAIM("a")));
	ck_assert_msg(str_starts(heard, "HTTP/1.1 503 "), "%s", heard);
	ck_assert_uint_eq(fake_kube_count(rig.client), 0);
	extender_rig_sync(&rig);
	int fd = create(CLAIM("a"));

	answer(CLAIM_PATH("a"), 200, claim_of("late"));
	is_allowed(fd, true);
}
END_TEST

START_TEST(what_the_watches_show_is_not_looked_up)
{
	extender_rig_sync(&rig);
	extender_rig_put(&rig, "persistentvolumeclaims", claim_of("late"));
	is_allowed(create(CLAIM("a")), true);
	extender_rig_put(&rig, "persistentvolumeclaims", claim_of(""));
	is_allowed(create(CLAIM("a")), false);
}
END_TEST

START_TEST(a_claim_and_then_its_class_are_looked_up_once)
{
	extender_rig_sync(&rig);
	int fd = create(CLAIM("a") "," CLAIM("a"));

	answer(CLAIM_PATH("a"), 200, claim_of("new"));
	answer(CLASS_PATH("new"), 200, kube_json_class("new", RIG_DRIVER, "{}"));
	is_allowed(fd, true);
	fd = create(EPHEMERAL("new"));
	answer(CLASS_PATH("new"), 200, kube_json_class("new", "other", "{}"));
	is_allowed(fd, false);
	fd = create(EPHEMERAL("now"));
	answer(CLASS_PATH("now"), 200,
		x_strdup("{\"metadata\":{\"name\":\"now\"},\"provisioner\":\"" RIG_DRIVER
			 "\",\"volumeBindingMode\":\"Immediate\"}"));
	is_allowed(fd, false);
}
END_TEST

START_TEST(a_pod_whose_objects_are_not_found_is_allowed_as_it_is)
{
	extender_rig_sync(&rig);
	int fd = create(CLAIM("a"));

	answer(CLAIM_PATH("a"), 404, NULL);
	is_allowed(fd, false);
	fd = create(CLAIM("b"));
	answer(CLAIM_PATH("b"), 200, claim_of("new"));
	answer(CLASS_PATH("new"), 404, NULL);
	is_allowed(fd, false);
}
END_TEST

/* A watch that shows it counts at once. */
START_TEST(what_was_not_found_is_not_looked_up_again_for_a_second)
{
	extender_rig_sync(&rig);
	int fd = create(CLAIM("a") "," EPHEMERAL("new"));

	ck_assert_uint_eq(fake_kube_count(rig.client), 2);
	fake_kube_answer(rig.client, 404, NULL);
	fake_kube_answer(rig.client, 404, NULL);
	is_allowed(fd, false);
	is_allowed(create(CLAIM("a") "," EPHEMERAL("new")), false);
	fd = create_in("other", CLAIM("a"));
	answer("/api/v1/namespaces/other/persistentvolumeclaims/a", 404, NULL);
	is_allowed(fd, false);
	extender_rig_put(&rig, "persistentvolumeclaims", claim_of("late"));
	is_allowed(create(CLAIM("a")), true);
	usleep(1100000);
	fd = create(EPHEMERAL("new"));
	answer(CLASS_PATH("new"), 200, kube_json_class("new", RIG_DRIVER, "{}"));
	is_allowed(fd, true);
}
END_TEST

/* The names come from the network: they must not fill the memory. */
START_TEST(of_many_names_that_were_not_found_the_oldest_are_forgotten)
{
	struct absent_names a = {.next = 0};
	char name[16];

	for (unsigned i = 0; i <= ABSENT_NAMES_MAX; i++) {
		snprintf(name, sizeof(name), "n%u", i);
		absent_names_add(&a, name, 1);
	}
	ck_assert(!absent_names_has(&a, "n0", 1));
	ck_assert(absent_names_has(&a, "n1", 1));
	ck_assert(absent_names_has(&a, name, ABSENT_NAMES_NS));
	ck_assert(!absent_names_has(&a, name, ABSENT_NAMES_NS + 1));
	absent_names_done(&a);
}
END_TEST

static void is_unavailable(int fd)
{
	hear(fd);
	ck_assert_msg(str_starts(heard, "HTTP/1.1 503 "), "%s", heard);
	ck_assert_uint_eq(fake_kube_count(rig.client), 0);
}

/* 0: there was no answer at all */
START_TEST(a_look_up_that_fails_is_left_to_the_failure_policy)
{
	static const unsigned statuses[] = {403, 429, 500, 503, 0};

	extender_rig_sync(&rig);
	for (size_t i = 0; i < ARRAY_SIZE(statuses); i++) {
		int fd = create(CLAIM("a"));

		answer(CLAIM_PATH("a"), statuses[i], NULL);
		is_unavailable(fd);
		fd = create(CLAIM("a"));
		answer(CLAIM_PATH("a"), 200, claim_of("new"));
		answer(CLASS_PATH("new"), statuses[i], NULL);
		is_unavailable(fd);
	}
	int fd = create(CLAIM("a"));

	answer(CLAIM_PATH("a"), 200, x_strdup("[]"));
	is_unavailable(fd);
}
END_TEST

START_TEST(a_look_up_that_fails_does_not_matter_where_another_claim_decides)
{
	extender_rig_sync(&rig);
	int fd = create(CLAIM("x") "," CLAIM("a"));

	ck_assert_uint_eq(fake_kube_count(rig.client), 2);
	fake_kube_answer(rig.client, 500, NULL);
	extender_rig_round(&rig);
	answer(CLAIM_PATH("a"), 200, claim_of("late"));
	is_allowed(fd, true);
}
END_TEST

START_TEST(a_claim_that_is_bound_leaves_its_pod_as_it_is)
{
	extender_rig_sync(&rig);
	int fd = create(CLAIM("a"));

	answer(CLAIM_PATH("a"), 200, kube_json_claim("a", "late", "n1", "pv-a"));
	is_allowed(fd, false);
	extender_rig_put(&rig, "persistentvolumeclaims", kube_json_claim("a", "late", "n1", "pv-a"));
	is_allowed(create(CLAIM("a")), false);
	extender_rig_put(&rig, "persistentvolumeclaims", kube_json_claim("a", "late", "n1", NULL));
	is_allowed(create(CLAIM("a")), true);
}
END_TEST

START_TEST(one_claim_that_is_found_is_enough)
{
	extender_rig_sync(&rig);
	int fd = create(CLAIM("x") "," CLAIM("a"));

	ck_assert_uint_eq(fake_kube_count(rig.client), 2);
	fake_kube_answer(rig.client, 404, NULL);
	extender_rig_round(&rig);
	answer(CLAIM_PATH("a"), 200, claim_of("late"));
	is_allowed(fd, true);
}
END_TEST

/* The first one found must not stand for the others. */
START_TEST(what_is_found_is_told_apart_by_name)
{
	extender_rig_sync(&rig);
	extender_rig_put(&rig, "storageclasses", kube_json_class("theirs", "other", "{}"));
	int fd = create(CLAIM("x") "," CLAIM("a"));
	CLEANUP(free_charp) char *theirs = kube_json_claim("x", "theirs", NULL, NULL);

	ck_assert_uint_eq(fake_kube_count(rig.client), 2);
	fake_kube_answer(rig.client, 200, theirs);
	answer(CLAIM_PATH("a"), 200, claim_of("late"));
	is_allowed(fd, true);
	fd = create(EPHEMERAL("one") "," EPHEMERAL("two"));
	CLEANUP(free_charp) char *one = kube_json_class("one", "other", "{}");

	ck_assert_uint_eq(fake_kube_count(rig.client), 2);
	fake_kube_answer(rig.client, 200, one);
	answer(CLASS_PATH("two"), 200, kube_json_class("two", RIG_DRIVER, "{}"));
	is_allowed(fd, true);
}
END_TEST

START_TEST(odd_names_are_not_looked_up)
{
	extender_rig_sync(&rig);
	is_allowed(create(CLAIM("../x") "," CLAIM("..") "," CLAIM("A") "," CLAIM("a/b") "," CLAIM(
			   "a?b") "," CLAIM("a#b") "," CLAIM("a%2fb") "," CLAIM("a b") "," CLAIM("-a")),
		false);
	is_allowed(create(EPHEMERAL("../x")), false);
	is_allowed(create(EPHEMERAL("A")), false);
	is_allowed(create_in("../ns", CLAIM("a")), false);
	is_allowed(create_in("NS", CLAIM("a")), false);
	int fd = create(CLAIM("a") "," CLAIM("../x"));

	answer(CLAIM_PATH("a"), 200, claim_of("../new"));
	is_allowed(fd, false);
}
END_TEST

static int create_many(int n, const char *last)
{
	CLEANUP(buf_done) struct buf volumes = BUF_INIT(1u << 16);

	for (int i = 0; i < n; i++)
		buf_addf(&volumes, CLAIM("c%d") ",", i);
	buf_adds(&volumes, last);
	return create(buf_str(&volumes));
}

START_TEST(the_last_of_many_claims_counts)
{
	extender_rig_sync(&rig);
	int fd = create_many(7, CLAIM("a"));

	ck_assert_uint_eq(fake_kube_count(rig.client), 8);
	for (int i = 0; i < 7; i++)
		fake_kube_answer(rig.client, 404, NULL);
	extender_rig_round(&rig);
	answer(CLAIM_PATH("a"), 200, claim_of("late"));
	is_allowed(fd, true);
}
END_TEST

/* A claim that is not looked up, because the pod has too many, does not count as absent. */
START_TEST(a_pod_with_too_many_unknown_claims_is_left_to_the_failure_policy)
{
	extender_rig_sync(&rig);
	int fd = create_many(8, CLAIM("a"));

	ck_assert_uint_eq(fake_kube_count(rig.client), 8);
	while (fake_kube_next(rig.client))
		fake_kube_answer(rig.client, 404, NULL);
	is_unavailable(fd);
	ck_assert_ptr_nonnull(strstr(heard, "more than 8 claims"));
	is_allowed(create_many(8, "{\"name\":\"i\",\"csi\":{\"driver\":\"" RIG_DRIVER "\"}}"), true);
}
END_TEST

#define POD_ADDRESS   0x7f000002
#define CLAIMS_OF_ONE 8
#define FLOOD         64

/* Reviews with names that are not there, one after the other as fast as they are answered. Return: how many
 * look-ups they cost. */
static size_t flood(unsigned n_namespaces)
{
	size_t n_looks = 0;

	for (unsigned i = 0; i < FLOOD; i++) {
		CLEANUP(buf_done) struct buf volumes = BUF_INIT(1u << 16);
		CLEANUP(free_charp) char *namespace = x_asprintf("bogus-%u", i % n_namespaces);

		for (unsigned j = 0; j < CLAIMS_OF_ONE; j++)
			buf_addf(&volumes, "%s" CLAIM("x%u-%u"), j > 0 ? "," : "", i, j);
		int fd = create_in(namespace, buf_str(&volumes));

		while (fake_kube_next(rig.client)) {
			n_looks++;
			fake_kube_answer(rig.client, 404, NULL);
		}
		hear(fd);
	}
	return n_looks;
}

static void is_served(void)
{
	int fd = create(CLAIM("a"));

	answer(CLAIM_PATH("a"), 200, claim_of("late"));
	is_allowed(fd, true);
}

/* How long the flood takes depends on the machine. */
static size_t at_most(unsigned burst, unsigned per_second, uint64_t since_ns)
{
	return burst + (size_t)((clock_ns() - since_ns) * per_second / NS_PER_S) + 1;
}

START_TEST(bogus_reviews_of_a_pod_leave_look_ups_for_others)
{
	uint64_t since_ns = clock_ns();

	extender_rig_sync(&rig);
	rig.from = POD_ADDRESS;
	size_t n = flood(FLOOD);
	ck_assert_uint_ge(n, RIG_BURST);
	ck_assert_uint_le(n, at_most(RIG_BURST, RIG_QPS / 2, since_ns));
	ck_assert_msg(str_starts(heard, "HTTP/1.1 503 "), "%s", heard);
	ck_assert_ptr_nonnull(strstr(heard, "found nothing"));
	rig.from = INADDR_LOOPBACK;
	is_served();
}
END_TEST

/* The API server has one address for all. */
START_TEST(bogus_reviews_of_a_namespace_leave_look_ups_for_others)
{
	uint64_t since_ns = clock_ns();

	extender_rig_sync(&rig);
	size_t n = flood(1);
	ck_assert_uint_ge(n, RIG_BURST / 2);
	ck_assert_uint_le(n, at_most(RIG_BURST / 2, (RIG_QPS + 3) / 4, since_ns));
	is_served();
	is_allowed(create_in("bogus-0", "{\"name\":\"i\",\"csi\":{\"driver\":\"" RIG_DRIVER "\"}}"), true);
}
END_TEST

/* Two namespaces use up what their address has, and a third one adds nothing. Each alone would have half of
 * the burst. */
START_TEST(namespaces_of_an_address_share_its_look_ups)
{
	uint64_t since_ns = clock_ns();

	extender_rig_sync(&rig);
	size_t n = flood(3);
	ck_assert_uint_ge(n, RIG_BURST);
	ck_assert_uint_le(n, at_most(RIG_BURST, RIG_QPS / 2, since_ns));
	rig.from = POD_ADDRESS;
	is_served();
}
END_TEST

START_TEST(look_ups_that_find_something_cost_no_share)
{
	extender_rig_sync(&rig);
	for (int i = 0; i < 2 * RIG_BURST; i++)
		is_served();
}
END_TEST

/* The names come from the network: they must not fill the memory. */
START_TEST(of_many_parties_the_oldest_is_forgotten)
{
	struct look_budget b = {.per_second = 1, .burst = 1};
	char name[16];

	ck_assert(look_budget_take(&b, "first", 1));
	ck_assert(!look_budget_take(&b, "first", 1));
	for (unsigned i = 0; i < LOOK_BUDGET_PARTIES; i++) {
		snprintf(name, sizeof(name), "n%u", i);
		ck_assert(look_budget_take(&b, name, 2));
	}
	look_budget_give_back(&b, "first");
	ck_assert(!look_budget_take(&b, name, 2));
	look_budget_give_back(&b, name);
	ck_assert(look_budget_take(&b, name, 2));
	ck_assert(look_budget_take(&b, "first", 3));
	look_budget_done(&b);
}
END_TEST

START_TEST(for_who_has_gone_nothing_more_is_looked_up)
{
	extender_rig_sync(&rig);
	int fd = create(CLAIM("a"));

	close(fd);
	while (!http_call_gone(rig.call))
		extender_rig_round(&rig);
	answer(CLAIM_PATH("a"), 200, claim_of("new"));
	ck_assert_uint_eq(fake_kube_count(rig.client), 0);
	extender_rig_put(&rig, "persistentvolumeclaims", claim_of("late"));
	is_allowed(create(CLAIM("a")), true);
}
END_TEST

START_TEST(what_is_no_review_is_refused_at_once)
{
	extender_rig_sync(&rig);
	hear(extender_rig_ask(&rig, "/pod/mutate", "{"));
	ck_assert_msg(str_starts(heard, "HTTP/1.1 400 "), "%s", heard);
}
END_TEST

START_TEST(drain_waits_for_look_ups)
{
	extender_rig_sync(&rig);
	int fd = create(CLAIM("a"));

	extender_rig_drain(&rig);
	extender_rig_round(&rig);
	ck_assert(!rig.drained);
	answer(CLAIM_PATH("a"), 200, claim_of("late"));
	is_allowed(fd, true);
	while (!rig.drained)
		extender_rig_round(&rig);
}
END_TEST

/* The server and the service of the rig are freed in the same order as by the program. */
START_TEST(the_end_does_not_wait_for_look_ups)
{
	extender_rig_sync(&rig);
	int first = create(CLAIM("a") "," CLAIM("b"));
	int second = create(CLAIM("a"));

	ck_assert_uint_eq(fake_kube_count(rig.client), 3);
	http_server_free(TAKE_PTR(rig.http));
	webhook_service_free(TAKE_PTR(rig.webhook));
	ck_assert_uint_eq(fake_kube_count(rig.client), 0);
	close(first);
	close(second);
}
END_TEST

/* Requests that still wait are answered. */
START_TEST(a_hook_that_ends_first_says_so)
{
	extender_rig_sync(&rig);
	int fd = create(CLAIM("a"));

	webhook_service_free(TAKE_PTR(rig.webhook));
	hear(fd);
	ck_assert_msg(str_starts(heard, "HTTP/1.1 503 "), "%s", heard);
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {before_the_watches_have_shown_all_the_failure_policy_decides,
		what_the_watches_show_is_not_looked_up, a_claim_and_then_its_class_are_looked_up_once,
		a_pod_whose_objects_are_not_found_is_allowed_as_it_is,
		a_look_up_that_fails_is_left_to_the_failure_policy,
		a_look_up_that_fails_does_not_matter_where_another_claim_decides,
		a_claim_that_is_bound_leaves_its_pod_as_it_is, one_claim_that_is_found_is_enough,
		what_is_found_is_told_apart_by_name, odd_names_are_not_looked_up,
		the_last_of_many_claims_counts, what_was_not_found_is_not_looked_up_again_for_a_second,
		of_many_names_that_were_not_found_the_oldest_are_forgotten,
		a_pod_with_too_many_unknown_claims_is_left_to_the_failure_policy,
		bogus_reviews_of_a_pod_leave_look_ups_for_others,
		bogus_reviews_of_a_namespace_leave_look_ups_for_others,
		namespaces_of_an_address_share_its_look_ups, look_ups_that_find_something_cost_no_share,
		of_many_parties_the_oldest_is_forgotten, for_who_has_gone_nothing_more_is_looked_up,
		what_is_no_review_is_refused_at_once, drain_waits_for_look_ups,
		the_end_does_not_wait_for_look_ups, a_hook_that_ends_first_says_so};
	Suite *suite = suite_create("sched webhook_service");
	TCase *tcase = tcase_create("sched webhook_service");

	suite_add_tcase(suite, tcase);
	tcase_add_checked_fixture(tcase, set_up, tear_down);
	for (size_t i = 0; i < ARRAY_SIZE(tests); i++)
		tcase_add_test(tcase, tests[i]);
	return unit_runner_finish(srunner_create(suite));
}
