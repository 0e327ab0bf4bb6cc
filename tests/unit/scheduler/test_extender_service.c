/* SPDX-License-Identifier: Apache-2.0 */
/* Filter and prioritize over HTTP, with what kube-scheduler sends and what it gets. */
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"
#include "unit/kube/kube_json.h"
#include "unit/scheduler/extender_rig.h"

#define CLAIM(name) "{\"name\":\"v-" name "\",\"persistentVolumeClaim\":{\"claimName\":\"" name "\"}}"
#define TAKEN       "its free capacity is reserved for volumes of other pods that are being scheduled"

static struct extender_rig rig;
static char *heard;

static void set_up(void)
{
	extender_rig_open(&rig);
}

static void tear_down(void)
{
	free(heard);
	extender_rig_close(&rig);
}

static void put_claim(const char *name, const char *node, const char *volume)
{
	extender_rig_put(&rig, "persistentvolumeclaims", kube_json_claim(name, "late", node, volume));
}

/* Serves with claims "a" to "d" of 4 GiB each. */
static void serve(void)
{
	put_claim("a", NULL, NULL);
	put_claim("b", NULL, NULL);
	put_claim("c", NULL, NULL);
	put_claim("d", NULL, NULL);
	extender_rig_sync(&rig);
	extender_rig_serve(&rig);
}

/* @volumes, @names: the text between the brackets. Return: caller frees. */
static char *args_of(const char *pod, const char *volumes, const char *names)
{
	return x_asprintf("{\"Pod\":{\"metadata\":{\"name\":\"%s\",\"namespace\":\"ns\",\"uid\":\"uid-%s\"},"
			  "\"spec\":{\"volumes\":[%s]}},\"Nodes\":null,\"NodeNames\":[%s]}",
		pod, pod, volumes, names);
}

static int ask(const char *path, const char *pod, const char *volumes, const char *names)
{
	CLEANUP(free_charp) char *body = args_of(pod, volumes, names);

	return extender_rig_ask(&rig, path, body);
}

/* Return: the body of the reply to @fd, of status 200, borrowed until the next one. */
static const char *hear(int fd)
{
	const char *body;

	free(heard);
	heard = extender_rig_hear(&rig, fd);
	ck_assert_msg(
		str_starts(heard, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"), "%s", heard);
	body = strstr(heard, "\r\n\r\n");
	ck_assert_ptr_nonnull(body);
	return body + strlen("\r\n\r\n");
}

static const char *filter(const char *pod, const char *volumes, const char *names)
{
	return hear(ask("/filter", pod, volumes, names));
}

#define NAMES(passing, failing)                                                                              \
	"{\"Nodes\":null,\"NodeNames\":[" passing                                                            \
	"],\"FailedNodes\":{},\"FailedAndUnresolvableNodes\":{" failing "},\"Error\":\"\"}"
#define ERROR(text)                                                                                          \
	"{\"Nodes\":null,\"NodeNames\":null,\"FailedNodes\":{},\"FailedAndUnresolvableNodes\":{},\"Error\":" \
	"\"" text "\"}"

START_TEST(a_pod_without_our_volumes_passes_whatever_is_known_of_nodes)
{
	extender_rig_sync(&rig);
	extender_rig_serve(&rig);
	ck_assert_str_eq(filter("p", "", "\"n1\",\"n2\""), NAMES("\"n1\",\"n2\"", ""));
	ck_assert_str_eq(hear(ask("/prioritize", "p", "", "\"n1\"")), "[{\"Host\":\"n1\",\"Score\":0}]");
	ck_assert_uint_eq(rig.n_ended, 2);
	ck_assert_uint_eq(rig.n_failed, 0);
}
END_TEST

START_TEST(what_is_not_known_yet_is_an_error)
{
	put_claim("a", NULL, NULL);
	extender_rig_serve(&rig);
	ck_assert_str_eq(
		filter("p", CLAIM("a"), "\"n1\""), ERROR("the cluster's objects are still being read"));
	extender_rig_sync(&rig);
	ck_assert_str_eq(filter("p", CLAIM("a"), "\"n1\""),
		NAMES("", "\"n1\":\"its driver has not registered with the controller\""));
	ck_assert_str_eq(
		hear(ask("/prioritize", "p", CLAIM("a"), "\"n1\"")), "[{\"Host\":\"n1\",\"Score\":0}]");
	ck_assert_uint_eq(rig.n_failed, 1);
}
END_TEST

START_TEST(what_is_no_request_is_an_error)
{
	char name[140] = "";

	serve();
	ck_assert(strstr(hear(extender_rig_ask(&rig, "/filter", "{")), "\"NodeNames\":null"));
	ck_assert_ptr_null(strstr(heard, "\"Error\":\"\""));
	ck_assert_str_eq(hear(extender_rig_ask(&rig, "/prioritize", "{")), "[]");
	memset(name, 'p', sizeof(name) - 1);
	ck_assert_str_eq(filter(name, CLAIM("a"), "\"n1\""), ERROR("the pod's uid is too long"));
	ck_assert_uint_eq(rig.n_failed, 3);
}
END_TEST

START_TEST(nodes_are_given_back_as_they_came)
{
	extender_rig_node(&rig, "n1", 16, 0);
	serve();
	ck_assert_str_eq(
		hear(extender_rig_ask(&rig, "/filter",
			"{\"Pod\":{\"metadata\":{\"name\":\"p\",\"namespace\":\"ns\",\"uid\":\"u\"},"
			"\"spec\":{\"volumes\":[" CLAIM("a") "]}},\"NodeNames\":null,\"Nodes\":{"
							     "\"items\":[{\"metadata\":{\"name\":\"x\"}},{ "
							     "\"metadata\":{\"name\":\"n1\"},"
							     "\"y\":[1]}]}}")),
		"{\"Nodes\":{\"metadata\":{},\"items\":[{ \"metadata\":{\"name\":\"n1\"},\"y\":[1]}]},"
		"\"NodeNames\":null,\"FailedNodes\":{},\"FailedAndUnresolvableNodes\":{\"x\":"
		"\"its driver has not registered with the controller\"},\"Error\":\"\"}");
}
END_TEST

START_TEST(the_volumes_of_a_pod_fit_together_or_not_at_all)
{
	extender_rig_node(&rig, "one", 7, 0);
	extender_rig_node(&rig, "two", 4, 4);
	serve();
	ck_assert_str_eq(filter("p", CLAIM("a") "," CLAIM("b"), "\"one\",\"two\""),
		NAMES("\"two\"",
			"\"one\":\"the pod's new volumes do not fit together: 8Gi needed, 7Gi free in 1 "
			"piece\""));
}
END_TEST

START_TEST(a_node_that_is_too_small_says_what_it_has)
{
	extender_rig_node(&rig, "n1", 2, 3);
	serve();
	ck_assert_str_eq(filter("p", CLAIM("a"), "\"n1\""),
		NAMES("", "\"n1\":\"largest creatable volume 3Gi in region1, 4Gi needed for claim ns/a\""));
}
END_TEST

START_TEST(a_pod_stays_where_its_volumes_are)
{
	extender_rig_node(&rig, "n1", 16, 0);
	put_claim("e", "n2", "pv-e");
	extender_rig_put(&rig, "persistentvolumes", kube_json_volume("pv-e", RIG_DRIVER, "h", "n2"));
	serve();
	ck_assert_str_eq(filter("p", CLAIM("e"), "\"n1\",\"n2\""),
		NAMES("\"n2\"", "\"n1\":\"a volume of the pod exists on other nodes only\""));
}
END_TEST

START_TEST(a_pod_with_a_clone_goes_where_the_source_is)
{
	extender_rig_node(&rig, "n1", 16, 0);
	extender_rig_node(&rig, "n2", 16, 0);
	put_claim("src", "n2", "pvc-uid-src");
	extender_rig_put(&rig, "persistentvolumes", kube_json_volume("pvc-uid-src", RIG_DRIVER, "h", "n2"));
	extender_rig_put(&rig, "persistentvolumeclaims", kube_json_clone("copy", "late", "src"));
	serve();
	ck_assert_str_eq(filter("p", CLAIM("copy"), "\"n1\",\"n2\""),
		NAMES("\"n2\"", "\"n1\":\"claim ns/copy is to be a clone of claim ns/src, which is only on "
				"node n2\""));
	ck_assert_str_eq(filter("q", CLAIM("a"), "\"n1\",\"n2\""), NAMES("\"n1\",\"n2\"", ""));
	/* it has to fit there, too */
	extender_rig_node(&rig, "n2", 3, 0);
	ck_assert_str_eq(filter("p", CLAIM("copy"), "\"n1\",\"n2\""),
		NAMES("",
			"\"n1\":\"claim ns/copy is to be a clone of claim ns/src, which is only on node n2\","
			"\"n2\":\"largest creatable volume 3Gi in region0, 4Gi needed for claim ns/copy\""));
}
END_TEST

START_TEST(a_pod_that_has_its_volumes_needs_no_controller)
{
	put_claim("e", "n2", "pv-e");
	extender_rig_put(&rig, "persistentvolumes", kube_json_volume("pv-e", RIG_DRIVER, "h", "n2"));
	extender_rig_serve(&rig);
	extender_rig_sync(&rig);
	ck_assert_str_eq(filter("p", CLAIM("e"), "\"n1\",\"n2\""),
		NAMES("\"n2\"", "\"n1\":\"a volume of the pod exists on other nodes only\""));
}
END_TEST

/* Each takes at once what the one before it had reserved. */
START_TEST(where_room_is_tight_a_pod_gets_one_node_alone)
{
	extender_rig_node(&rig, "n1", 4, 0);
	extender_rig_node(&rig, "n2", 4, 0);
	serve();
	ck_assert_str_eq(filter("p1", CLAIM("a"), "\"n1\",\"n2\""),
		NAMES("\"n1\"",
			"\"n2\":\"would lack room for further pods, and another node is a better fit\""));
	ck_assert_str_eq(filter("p2", CLAIM("b"), "\"n1\",\"n2\""), NAMES("\"n2\"", "\"n1\":\"" TAKEN "\""));
	ck_assert_str_eq(filter("p3", CLAIM("c"), "\"n1\",\"n2\""),
		NAMES("", "\"n1\":\"" TAKEN "\",\"n2\":\"" TAKEN "\""));
}
END_TEST

START_TEST(a_pod_that_comes_back_from_its_only_node_has_the_choice)
{
	extender_rig_node(&rig, "n1", 4, 0);
	extender_rig_node(&rig, "n2", 4, 0);
	serve();
	for (int i = 0; i < 2; i++) {
		ck_assert_ptr_nonnull(
			strstr(filter("p", CLAIM("a"), "\"n1\",\"n2\""), "\"NodeNames\":[\"n1\"]"));
		ck_assert_str_eq(filter("p", CLAIM("a"), "\"n1\",\"n2\""), NAMES("\"n1\",\"n2\"", ""));
	}
}
END_TEST

START_TEST(a_pod_does_not_stand_in_its_own_way)
{
	extender_rig_node(&rig, "n1", 4, 0);
	serve();
	for (int i = 0; i < 3; i++)
		ck_assert_str_eq(filter("p", CLAIM("a"), "\"n1\""), NAMES("\"n1\"", ""));
	ck_assert_str_eq(filter("q", CLAIM("b"), "\"n1\""), NAMES("", "\"n1\":\"" TAKEN "\""));
}
END_TEST

START_TEST(a_pod_that_is_asked_for_again_holds_nothing_meanwhile)
{
	extender_rig_node(&rig, "n1", 4, 0);
	extender_rig_node(&rig, "n2", 3, 0);
	serve();
	ck_assert_str_eq(filter("p", CLAIM("a"), "\"n1\""), NAMES("\"n1\"", ""));
	ck_assert_ptr_nonnull(strstr(filter("p", CLAIM("a"), "\"n2\""), "\"NodeNames\":[]"));
	ck_assert_str_eq(filter("q", CLAIM("b"), "\"n1\""), NAMES("\"n1\"", ""));
}
END_TEST

/* Pod p1 may go to n1 or n2, p2 to n1: there is room for claim c on n1 if p1 goes to n2. */
static void fill_n1(void)
{
	extender_rig_node(&rig, "n1", 8, 0);
	extender_rig_node(&rig, "n2", 8, 0);
	serve();
	ck_assert_str_eq(filter("p1", CLAIM("a"), "\"n1\",\"n2\""), NAMES("\"n1\",\"n2\"", ""));
	ck_assert_str_eq(filter("p2", CLAIM("b"), "\"n1\""), NAMES("\"n1\"", ""));
	ck_assert_uint_eq(rig.n_ended, 2);
}

static void is_waiting(size_t n)
{
	ck_assert_uint_eq(rig.n_asked, 2 + n);
	ck_assert_uint_eq(rig.n_ended, 2);
}

START_TEST(a_pod_waits_for_a_decision_that_does_not_come)
{
	fill_n1();
	int fd = ask("/filter", "p3", CLAIM("c"), "\"n1\"");

	is_waiting(1);
	ck_assert_str_eq(hear(fd), NAMES("", "\"n1\":\"" TAKEN "\""));
	ck_assert_uint_eq(rig.n_failed, 0);
}
END_TEST

START_TEST(a_pod_that_waits_passes_when_another_goes_elsewhere)
{
	fill_n1();
	int first = ask("/filter", "p3", CLAIM("c"), "\"n1\"");

	is_waiting(1);
	put_claim("a", "n2", NULL);
	/* with the next timers, not when the time is over */
	extender_rig_round(&rig);
	ck_assert_uint_eq(rig.n_ended, 3);
	ck_assert_str_eq(hear(first), NAMES("\"n1\"", ""));
	ck_assert_str_eq(filter("p4", CLAIM("d"), "\"n1\""), NAMES("", "\"n1\":\"" TAKEN "\""));
}
END_TEST

START_TEST(who_waits_longest_passes_first)
{
	int first;
	int second;

	fill_n1();
	for (;;) {
		size_t before = rig.n_ended;

		first = ask("/filter", "p3", CLAIM("c"), "\"n1\"");
		second = ask("/filter", "p4", CLAIM("d"), "\"n1\"");
		if (rig.n_ended == before)
			break;
		/* the machine is so slow that the first one has ended */
		hear(first);
		hear(second);
	}
	put_claim("a", "n2", NULL);
	ck_assert_str_eq(hear(second), NAMES("", "\"n1\":\"" TAKEN "\""));
	ck_assert_str_eq(hear(first), NAMES("\"n1\"", ""));
}
END_TEST

START_TEST(a_caller_that_has_gone_gets_no_reservation)
{
	fill_n1();
	int fd = ask("/filter", "p3", CLAIM("c"), "\"n1\"");

	is_waiting(1);
	close(fd);
	while (rig.n_ended == 2 && !http_call_gone(rig.call))
		extender_rig_round(&rig);
	put_claim("a", "n2", NULL);
	while (rig.n_ended == 2)
		extender_rig_round(&rig);
	ck_assert_str_eq(filter("p4", CLAIM("d"), "\"n1\""), NAMES("\"n1\"", ""));
}
END_TEST

START_TEST(requests_of_one_connection_wait_one_after_the_other)
{
	CLEANUP(free_charp) char *third = args_of("p3", CLAIM("c"), "\"n1\"");
	CLEANUP(free_charp) char *fourth = args_of("p4", CLAIM("d"), "\"n1\"");

	fill_n1();
	int fd = extender_rig_dial(&rig);
	extender_rig_say(fd, "/filter", third, /* last= */ false);
	extender_rig_say(fd, "/filter", fourth, /* last= */ true);
	ck_assert_str_eq(strrchr(hear(fd), '\n') + 1, NAMES("", "\"n1\":\"" TAKEN "\""));
	ck_assert_uint_eq(rig.n_ended, 4);
}
END_TEST

START_TEST(a_node_may_be_removed_while_a_pod_waits_for_it)
{
	fill_n1();
	int fd = ask("/filter", "p3", CLAIM("c"), "\"n1\"");

	is_waiting(1);
	extender_rig_remove_node(&rig, "n1");
	ck_assert_str_eq(hear(fd), NAMES("", "\"n1\":\"its driver has not registered with the controller\""));
}
END_TEST

START_TEST(drain_waits_for_those_who_wait)
{
	fill_n1();
	int fd = ask("/filter", "p3", CLAIM("c"), "\"n1\"");

	is_waiting(1);
	extender_rig_drain(&rig);
	ck_assert_str_eq(hear(fd), NAMES("", "\"n1\":\"" TAKEN "\""));
	while (!rig.drained)
		extender_rig_round(&rig);
}
END_TEST

START_TEST(the_end_does_not_wait)
{
	fill_n1();
	int fd = ask("/filter", "p3", CLAIM("c"), "\"n1\"");

	is_waiting(1);
	http_server_free(TAKE_PTR(rig.http));
	extender_rig_remove_node(&rig, "n1");
	extender_service_free(TAKE_PTR(rig.service));
	ck_assert_uint_eq(rig.n_ended, 3);
	close(fd);
}
END_TEST

START_TEST(pods_on_their_way_are_bounded)
{
	static const char *const claims[EXTENDER_RIG_MAX_PODS] = {CLAIM("a"), CLAIM("b"), CLAIM("c")};

	extender_rig_node(&rig, "one", 99, 0);
	extender_rig_node(&rig, "two", 99, 0);
	serve();
	for (unsigned i = 0; i < EXTENDER_RIG_MAX_PODS; i++) {
		CLEANUP(free_charp) char *pod = x_asprintf("p%u", i);
		ck_assert_str_eq(filter(pod, claims[i], "\"one\",\"two\""), NAMES("\"one\",\"two\"", ""));
	}
	ck_assert_str_eq(filter("one-more", CLAIM("d"), "\"one\""),
		ERROR("the limit of 3 pods that are being scheduled is reached"));
	ck_assert_str_eq(filter("none-of-ours", "", "\"one\""), NAMES("\"one\"", ""));
	/* again: it was among them */
	ck_assert_str_eq(filter("p0", CLAIM("a"), "\"one\",\"two\""), NAMES("\"one\",\"two\"", ""));
}
END_TEST

/* @victims: the text between the braces. */
static int ask_preempt(const char *pod, const char *volumes, const char *form, const char *victims)
{
	CLEANUP(free_charp)
	char *body = x_asprintf("{\"Pod\":{\"metadata\":{\"name\":\"%s\",\"namespace\":\"ns\",\"uid\":"
				"\"uid-%s\"},\"spec\":{\"volumes\":[%s]}},\"%s\":{%s}}",
		pod, pod, volumes, form, victims);

	return extender_rig_ask(&rig, "/preempt", body);
}

static const char *preempt(const char *pod, const char *volumes, const char *victims)
{
	return hear(ask_preempt(pod, volumes, "NodeNameToMetaVictims", victims));
}

#define VICTIM(node, uid) "\"" node "\":{\"Pods\":[{\"UID\":\"" uid "\"}],\"NumPDBViolations\":0}"
#define KEPT(victims)     "{\"NodeNameToMetaVictims\":{" victims "}}"

START_TEST(victims_remain_where_the_volumes_fit)
{
	extender_rig_node(&rig, "n1", 8, 0);
	extender_rig_node(&rig, "n2", 3, 0);
	extender_rig_node(&rig, "n3", 4, 0);
	serve();
	ck_assert_str_eq(preempt("p", CLAIM("a"),
				 VICTIM("n1", "v1") "," VICTIM("n2", "v2") "," VICTIM("n3", "v3") "," VICTIM(
					 "x", "v4")),
		KEPT(VICTIM("n1", "v1") "," VICTIM("n3", "v3")));
	ck_assert_str_eq(preempt("p", CLAIM("a"), VICTIM("n2", "v2")), KEPT(""));
	ck_assert_uint_eq(rig.n_failed, 0);
}
END_TEST

START_TEST(whole_victims_are_answered_with_their_uids)
{
	extender_rig_node(&rig, "n1", 8, 0);
	serve();
	ck_assert_str_eq(
		hear(ask_preempt("p", CLAIM("a"), "NodeNameToVictims",
			"\"n1\":{\"Pods\":[{\"metadata\":{\"name\":\"x\",\"uid\":\"v1\"},\"spec\":{}},"
			"{\"metadata\":{\"uid\":\"v2\"}}],\"NumPDBViolations\":2}")),
		KEPT("\"n1\":{\"Pods\":[{\"UID\":\"v1\"},{\"UID\":\"v2\"}],\"NumPDBViolations\":2}"));
}
END_TEST

START_TEST(nobody_is_evicted_for_room_that_others_were_promised)
{
	extender_rig_node(&rig, "n1", 4, 0);
	serve();
	ck_assert_str_eq(filter("p", CLAIM("a"), "\"n1\""), NAMES("\"n1\"", ""));
	ck_assert_str_eq(preempt("q", CLAIM("b"), VICTIM("n1", "v")), KEPT(""));
}
END_TEST

START_TEST(what_a_pod_was_promised_itself_does_not_stand_in_its_way)
{
	fill_n1();
	ck_assert_str_eq(preempt("p1", CLAIM("a"), VICTIM("n1", "v")), KEPT(VICTIM("n1", "v")));
}
END_TEST

START_TEST(a_pod_without_new_volumes_may_evict)
{
	extender_rig_sync(&rig);
	extender_rig_serve(&rig);
	ck_assert_str_eq(preempt("p", "", VICTIM("n1", "v")), KEPT(VICTIM("n1", "v")));
}
END_TEST

static void is_refused(int fd, const char *status)
{
	free(heard);
	heard = extender_rig_hear(&rig, fd);
	ck_assert_msg(str_starts(heard, status), "%s", heard);
}

/* The reply has no place for an error, and without one nodes that are left out mean: evict no pod there. */
START_TEST(where_it_is_not_known_nobody_is_evicted)
{
	put_claim("a", NULL, NULL);
	extender_rig_serve(&rig);
	is_refused(ask_preempt("p", CLAIM("a"), "NodeNameToMetaVictims", VICTIM("n1", "v")), "HTTP/1.1 503 ");
	extender_rig_sync(&rig);
	is_refused(extender_rig_ask(&rig, "/preempt", "{"), "HTTP/1.1 400 ");
	ck_assert_uint_eq(rig.n_failed, 2);
}
END_TEST

START_TEST(a_close_fit_scores_best)
{
	extender_rig_node(&rig, "n1", 16, 0);
	extender_rig_node(&rig, "n2", 4, 0);
	extender_rig_node(&rig, "n3", 3, 0);
	serve();
	ck_assert_str_eq(hear(ask("/prioritize", "p", CLAIM("a"), "\"n1\",\"n2\",\"n3\",\"x\"")),
		"[{\"Host\":\"n1\",\"Score\":3},{\"Host\":\"n2\",\"Score\":8},{\"Host\":\"n3\",\"Score\":0},"
		"{\"Host\":\"x\",\"Score\":0}]");
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {a_pod_without_our_volumes_passes_whatever_is_known_of_nodes,
		what_is_not_known_yet_is_an_error, what_is_no_request_is_an_error,
		nodes_are_given_back_as_they_came, the_volumes_of_a_pod_fit_together_or_not_at_all,
		a_node_that_is_too_small_says_what_it_has, a_pod_stays_where_its_volumes_are,
		a_pod_with_a_clone_goes_where_the_source_is, a_pod_that_has_its_volumes_needs_no_controller,
		where_room_is_tight_a_pod_gets_one_node_alone,
		a_pod_that_comes_back_from_its_only_node_has_the_choice, a_pod_does_not_stand_in_its_own_way,
		a_pod_that_is_asked_for_again_holds_nothing_meanwhile,
		a_pod_waits_for_a_decision_that_does_not_come,
		a_pod_that_waits_passes_when_another_goes_elsewhere, who_waits_longest_passes_first,
		a_caller_that_has_gone_gets_no_reservation,
		requests_of_one_connection_wait_one_after_the_other,
		a_node_may_be_removed_while_a_pod_waits_for_it, drain_waits_for_those_who_wait,
		the_end_does_not_wait, a_close_fit_scores_best, pods_on_their_way_are_bounded,
		victims_remain_where_the_volumes_fit, whole_victims_are_answered_with_their_uids,
		nobody_is_evicted_for_room_that_others_were_promised,
		what_a_pod_was_promised_itself_does_not_stand_in_its_way, a_pod_without_new_volumes_may_evict,
		where_it_is_not_known_nobody_is_evicted};
	Suite *suite = suite_create("sched extender_service");
	TCase *tcase = tcase_create("sched extender_service");

	suite_add_tcase(suite, tcase);
	tcase_add_checked_fixture(tcase, set_up, tear_down);
	for (size_t i = 0; i < ARRAY_SIZE(tests); i++)
		tcase_add_test(tcase, tests[i]);
	return unit_runner_finish(srunner_create(suite));
}
