/* SPDX-License-Identifier: Apache-2.0 */
/* Failures while objects are listed and watched, after which the copy is complete again. */
#include "base/str.h"
#include "kube/informer_copy.h"
#include "watch_rig.h"

static struct watch_rig w;
static unsigned n_lists;
static unsigned n_watches;
static const char *watch_text; /* what the first watch says before it ends */

static bool is_watch(const struct fake_request *r)
{
	return strstr(r->path, "watch=true") != NULL;
}

/* The first list has a and b; those that follow b (changed) and c. */
static void answer_list(const struct fake_request *r)
{
	if (n_lists++ == 0)
		fake_answer(r, "200", THING_LIST("5", "", THING("a", "1") "," THING("b", "2")));
	else
		fake_answer(r, "200", THING_LIST("50", "", THING("b", "40") "," THING("c", "41")));
}

static void serve_bad_watch(struct fake_api *a, const struct fake_request *r)
{
	(void)a;
	if (!is_watch(r)) {
		answer_list(r);
	} else if (n_watches++ == 0) {
		fake_begin(r);
		fake_say(r, watch_text);
		fake_end(r);
	} else {
		fake_begin(r);
	}
}

static void is_listed_anew_after(const char *text, const char *told_between)
{
	CLEANUP(buf_done) struct buf expected = BUF_INIT(256);

	watch_text = text;
	n_lists = 0;
	n_watches = 0;
	buf_addf(&expected, "+a 1\n+b 2\nsynced\n%s*b 40\n+c 41\n%s-a\n", told_between,
		*told_between ? "-d\n" : "");
	watch_rig_open(&w, NULL, serve_bad_watch);
	watch_rig_until(&w, "-a\n");
	ck_assert_str_eq(buf_str(&w.reported), buf_str(&expected));
	fake_until_asked(&w.api, 4);
	ck_assert(str_ends(buf_str(&w.api.log), "&resourceVersion=50\n"));
	ck_assert(informer_is_synced(w.informer));
	watch_rig_close(&w);
}

START_TEST(what_went_while_the_server_forgot_is_told_as_gone)
{
	is_listed_anew_after("{\"type\":\"ERROR\",\"object\":{\"kind\":\"Status\",\"code\":410,\"message\":"
			     "\"too old\"}}\n",
		"");
}
END_TEST

START_TEST(what_is_not_understood_is_listed_anew)
{
	is_listed_anew_after("{\"type\":\"ADDED\"}\n", "");
	is_listed_anew_after("{\"type\":\"DELETED\",\"object\":[]}\n", "");
	is_listed_anew_after("{\"object\":{}}\n", "");
	is_listed_anew_after("not json\n", "");
	is_listed_anew_after(THING_EVENT("ADDED", "d", "8") "{\"type\":\"ADDED\",\"object\":{\n", "+d 8\n");
}
END_TEST

/* Answers as an API server does that has not seen the requested resourceVersion yet, where several API
 * servers share one address: apiserver pkg/storage/errors.go, NewTooLargeResourceVersionError(). */
static void serve_behind(struct fake_api *a, const struct fake_request *r)
{
	(void)a;
	if (!is_watch(r)) {
		answer_list(r);
	} else if (n_watches++ < 2) {
		fake_answer(r, "504",
			"{\"kind\":\"Status\",\"code\":504,\"reason\":\"Timeout\",\"message\":\"Timeout: Too "
			"large resource version: 5, current: 3\",\"details\":{\"causes\":[{\"reason\":"
			"\"ResourceVersionTooLarge\"}],\"retryAfterSeconds\":1}}");
	} else {
		fake_begin(r);
		fake_say(r, THING_EVENT("ADDED", "d", "8"));
	}
}

START_TEST(a_server_that_lags_behind_is_asked_again_and_nothing_is_forgotten)
{
	n_lists = n_watches = 0;
	watch_rig_open(&w, NULL, serve_behind);
	watch_rig_until(&w, "+d 8\n");
	ck_assert_str_eq(buf_str(&w.reported), "+a 1\n+b 2\nsynced\n+d 8\n");
	ck_assert_uint_eq(n_lists, 1);
	ck_assert(str_ends(buf_str(&w.api.log), "&resourceVersion=5\n"));
	watch_rig_close(&w);
}
END_TEST

static struct informer_copy copy;
static struct buf noted;

static void note_change(void *user, const char *key, const void *old, const void *new)
{
	(void)user;
	buf_addf(&noted, "%c%s\n", !new ? '-' : old ? '*' : '+', key);
}

typedef bool take_fn(struct informer_copy *c, struct span data);

static void say(take_fn *take, const char *text)
{
	ck_assert(take(&copy, span_of(text)));
}

/* Sends a reply whose objects have long names of owners that consist of "<", which the API server escapes
 * with six bytes. @n_mib: size of the reply */
static void say_huge(take_fn *take, const char *names, unsigned n_mib)
{
	static char escapes[(1u << 20) / 6 * 6 + 1];

	for (size_t at = 0; at + 6 < sizeof(escapes); at += 6)
		memcpy(escapes + at, "\\u003c", 6);
	say(take, "{\"metadata\":{");
	say(take, names);
	say(take, ",\"ownerReferences\":[{\"name\":\"");
	for (unsigned i = 0; i < n_mib; i++)
		say(take, escapes);
	say(take, "\"}]}}");
}

#define NAMES(name, uid, version)                                                                            \
	"\"name\":\"" name "\",\"uid\":\"" uid "\",\"resourceVersion\":\"" version "\""

static void say_huge_event(const char *type, const char *names, unsigned n_mib)
{
	say(informer_copy_take_watch, "{\"type\":\"");
	say(informer_copy_take_watch, type);
	say(informer_copy_take_watch, "\",\"object\":");
	say_huge(informer_copy_take_watch, names, n_mib);
	say(informer_copy_take_watch, "}\n");
}

static void list_around_huge_object(unsigned n_mib)
{
	CLEANUP(error_freep) struct error *err = NULL;

	informer_copy_begin_list(&copy);
	say(informer_copy_take_page, "{\"metadata\":{\"resourceVersion\":\"5\"},\"items\":[");
	say_huge(informer_copy_take_page, NAMES("h", "uh", "2"), n_mib);
	say(informer_copy_take_page,
		",{\"metadata\":{" NAMES("a", "ua", "1") "}},{\"metadata\":[]},{\"metadata\":{" NAMES(
			"b", "ub", "1") "}}]}");
	ck_assert_int_eq(informer_copy_end_page(&copy, &err), 0);
}

static void read_around_huge_objects(unsigned n_mib, const char *expected)
{
	static const struct informer_events events = {note_change, NULL};

	noted = BUF_INIT(4096);
	informer_copy_init(&copy, &watch_rig_kind, &events, NULL);
	list_around_huge_object(n_mib);
	say_huge_event("MODIFIED", NAMES("a", "ua", "8"), n_mib);
	say(informer_copy_take_watch, THING_EVENT("ADDED", "d", "9"));
	say_huge_event("DELETED", NAMES("b", "ub", "10"), n_mib);
	ck_assert_str_eq(copy.version, "10");
	say(informer_copy_take_watch, "{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"uid\":[]}}}\n");
	say_huge_event("ADDED", NAMES("a", "another", "11"), n_mib);
	say(informer_copy_take_watch, THING_EVENT("ADDED", "e", "12"));
	ck_assert_str_eq(buf_str(&noted), expected);
	ck_assert(!copy.is_unsure);
}

static void end_copy(void)
{
	informer_copy_done(&copy);
	buf_done(&noted);
}

/* 1.5 MiB in etcd are up to 9 MiB of JSON. */
START_TEST(objects_of_any_size_that_etcd_takes_are_read)
{
	read_around_huge_objects(9, "+h\n+a\n+b\n*a\n+d\n-b\n*a\n+e\n");
	ck_assert_uint_eq(copy.n_skipped, 2);
	end_copy();
}
END_TEST

/* Nothing says that one which was known before is gone, unless another one has its name. */
START_TEST(an_object_that_cannot_be_read_hides_no_other)
{
	read_around_huge_objects(13, "+a\n+b\n+d\n-b\n-a\n+e\n");
	ck_assert_uint_eq(copy.n_skipped, 5);
	end_copy();
}
END_TEST

START_TEST(a_list_does_not_drop_an_object_that_it_has_but_cannot_be_read)
{
	static const struct informer_events events = {note_change, NULL};

	noted = BUF_INIT(4096);
	informer_copy_init(&copy, &watch_rig_kind, &events, NULL);
	list_around_huge_object(1);
	informer_copy_end_request(&copy);
	informer_copy_forget_versions(&copy);
	list_around_huge_object(13);
	ck_assert_str_eq(buf_str(&noted), "+h\n+a\n+b\n");
	end_copy();
}
END_TEST

static void serve_odd(struct fake_api *a, const struct fake_request *r)
{
	(void)a;
	if (!is_watch(r)) {
		fake_answer(r, "200", THING_LIST("5", "", "{\"metadata\":{\"name\":[]}}," THING("a", "1")));
		return;
	}
	fake_begin(r);
	if (n_watches++ == 0)
		fake_say(r, "{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"uid\":[]}}}\n" THING_EVENT(
				    "ADDED", "b", "6"));
}

/* One of the list, and one of the watch. */
START_TEST(objects_that_are_skipped_are_counted)
{
	CLEANUP(buf_done) struct buf metrics = BUF_INIT(1u << 16);

	n_watches = 0;
	watch_rig_open(&w, NULL, serve_odd);
	watch_rig_until(&w, "+b 6\n");
	kube_request_counts_add(w.counts, &metrics);
	ck_assert_msg(strstr(buf_str(&metrics), "\npmem_kube_objects_skipped_total{resource=\"things\"} 2\n"),
		"%s", buf_str(&metrics));
	watch_rig_close(&w);
}
END_TEST

static void serve_error(struct fake_api *a, const struct fake_request *r)
{
	(void)a;
	if (!is_watch(r)) {
		answer_list(r);
		return;
	}
	fake_begin(r);
	if (n_watches++ > 0)
		return;
	fake_say(r,
		"{\"type\":\"ERROR\",\"object\":{\"kind\":\"Status\",\"code\":500,\"message\":\"oops\"}}\n");
	fake_end(r);
}

START_TEST(another_error_of_a_watch_makes_no_list)
{
	watch_rig_open(&w, NULL, serve_error);
	fake_until_asked(&w.api, 3);
	ck_assert(str_ends(buf_str(&w.api.log), "&resourceVersion=5\n"));
	ck_assert_uint_eq(n_lists, 1);
	watch_rig_close(&w);
}
END_TEST

static void serve_cut(struct fake_api *a, const struct fake_request *r)
{
	if (!is_watch(r)) {
		answer_list(r);
		return;
	}
	fake_begin(r);
	if (n_watches++ > 0)
		return;
	fake_say(r, THING_EVENT("ADDED", "d", "8") "{\"type\":\"ADD");
	h2_peer_flush((struct h2_peer_conn *)r->side);
	h2_peer_cut(h2_peer_conn(&a->peer, a->peer.n_conns));
}

START_TEST(a_watch_goes_on_after_the_connection_was_lost)
{
	watch_rig_open(&w, NULL, serve_cut);
	fake_until_asked(&w.api, 3);
	ck_assert(strstr(buf_str(&w.reported), "+d 8")
			  ? str_ends(buf_str(&w.api.log), "&resourceVersion=8\n")
			  : str_ends(buf_str(&w.api.log), "&resourceVersion=5\n"));
	ck_assert_uint_eq(n_lists, 1);
	watch_rig_close(&w);
}
END_TEST

static const char *away_status; /* of the first watch; NULL: no answer */

/* The server goes while the watch is requested, and comes back with what a backup had. */
static void serve_restored(struct fake_api *a, const struct fake_request *r)
{
	if (!is_watch(r)) {
		if (n_lists++ == 0)
			fake_answer(r, "200", THING_LIST("50", "", THING("b", "40") "," THING("c", "41")));
		else
			fake_answer(r, "200", THING_LIST("5", "", THING("a", "1") "," THING("b", "2")));
	} else if (n_watches++ > 0) {
		fake_begin(r);
	} else if (away_status) {
		fake_answer(r, away_status, "");
	} else {
		h2_peer_cut(h2_peer_conn(&a->peer, a->peer.n_conns));
	}
}

static void lists_what_was_restored(const char *status)
{
	away_status = status;
	n_lists = n_watches = 0;
	watch_rig_open(&w, NULL, serve_restored);
	watch_rig_until(&w, "-c\n");
	ck_assert_str_eq(buf_str(&w.reported), "+b 40\n+c 41\nsynced\n+a 1\n*b 2\n-c\n");
	fake_until_asked(&w.api, 4);
	ck_assert(str_ends(buf_str(&w.api.log), "&resourceVersion=5\n"));
	watch_rig_close(&w);
}

START_TEST(what_a_restored_server_has_is_listed_though_its_versions_are_older)
{
	lists_what_was_restored(NULL);
	lists_what_was_restored("500");
	lists_what_was_restored("503");
}
END_TEST

/* @n-th request for a list gets a page that goes on, and the next page fails. */
static const char *page_status;
static const char *page_text;

static void serve_bad_page(struct fake_api *a, const struct fake_request *r)
{
	(void)a;
	if (is_watch(r))
		fake_begin(r);
	else if (strstr(r->path, "continue="))
		fake_answer(r, page_status, page_text);
	else if (n_lists++ == 0)
		fake_answer(r, "200", THING_LIST("5", "t", THING("x", "1") "," THING("b", "40")));
	else
		fake_answer(r, "200", THING_LIST("50", "", THING("b", "40") "," THING("c", "41")));
}

static void begins_anew_after_page(const char *status, const char *text)
{
	page_status = status;
	page_text = text;
	n_lists = 0;
	watch_rig_open(&w, NULL, serve_bad_page);
	watch_rig_until(&w, "synced\n");
	ck_assert_str_eq(buf_str(&w.reported), "+x 1\n+b 40\n+c 41\n-x\nsynced\n");
	watch_rig_close(&w);
}

START_TEST(a_list_that_breaks_off_begins_anew)
{
	begins_anew_after_page("410", "{\"kind\":\"Status\",\"code\":410}");
	begins_anew_after_page("500", "");
	begins_anew_after_page("200", "{\"metadata\":{\"resourceVersion\":\"5\"},\"items\":[");
	begins_anew_after_page(
		"200", "{\"metadata\":{\"resourceVersion\":\"5\"},\"items\":[{\"metadata\":}]}");
	begins_anew_after_page("200", "{\"metadata\":{},\"items\":[]}");
	begins_anew_after_page("200", "");
}
END_TEST

static void serve_refused(struct fake_api *a, const struct fake_request *r)
{
	(void)a;
	if (is_watch(r) && n_watches++ == 0)
		fake_answer(r, "410", "{\"kind\":\"Status\",\"message\":\"gone\"}");
	else if (is_watch(r))
		fake_begin(r);
	else if (n_lists < 3 && a->n < 4)
		fake_answer(r, "403", "{\"kind\":\"Status\",\"message\":\"no\"}");
	else
		answer_list(r);
}

START_TEST(refusals_of_list_and_watch_are_waited_out)
{
	watch_rig_open(&w, NULL, serve_refused);
	watch_rig_until(&w, "-a\n");
	ck_assert_str_eq(buf_str(&w.reported), "+a 1\n+b 2\nsynced\n*b 40\n+c 41\n-a\n");
	watch_rig_close(&w);
}
END_TEST

static void serve_refused_watch(struct fake_api *a, const struct fake_request *r)
{
	(void)a;
	if (!is_watch(r))
		answer_list(r);
	else if (n_watches++ == 0)
		fake_answer(r, "504", ""); /* after which no list is read */
	else
		fake_begin(r);
}

static bool is_failing(void *user)
{
	(void)user;
	return informer_failing_ns(w.informer) != 0;
}

static bool is_accepted(void *user)
{
	return !is_failing(user);
}

/* The second watch is accepted, and never has an event, as for objects that do not change. */
START_TEST(a_watch_that_is_accepted_is_no_failure_though_nothing_comes)
{
	n_lists = 0;
	n_watches = 0;
	watch_rig_open(&w, NULL, serve_refused_watch);
	ck_assert(!is_failing(NULL));
	fake_until(&w.api, is_failing, NULL);
	fake_until(&w.api, is_accepted, NULL);
	ck_assert_uint_eq(n_watches, 2);
	watch_rig_close(&w);
}
END_TEST

#define BAD_LISTS 4

static uint64_t failing_since_ns[BAD_LISTS + 1]; /* as each list began */

/* Lists have two pages, the second of which is bad. */
static void serve_bad_lists(struct fake_api *a, const struct fake_request *r)
{
	(void)a;
	if (is_watch(r)) {
		fake_begin(r);
	} else if (!strstr(r->path, "continue=")) {
		failing_since_ns[n_lists++] = informer_failing_ns(w.informer);
		fake_answer(r, "200", THING_LIST("5", "t", THING("x", "1")));
	} else if (n_lists <= BAD_LISTS) {
		fake_answer(r, page_status, page_text);
	} else {
		fake_answer(r, "200", THING_LIST("5", "", THING("b", "40")));
	}
}

static void fails_while_lists_break_off_with(const char *status, const char *text)
{
	page_status = status;
	page_text = text;
	n_lists = 0;
	watch_rig_open(&w, NULL, serve_bad_lists);
	watch_rig_until(&w, "synced\n");
	ck_assert(!is_failing(NULL));
	ck_assert_uint_eq(failing_since_ns[0], 0);
	ck_assert_uint_gt(failing_since_ns[1], 0);
	for (size_t i = 2; i <= BAD_LISTS; i++)
		ck_assert_uint_eq(failing_since_ns[i], failing_since_ns[1]);
	watch_rig_close(&w);
}

/* A part of a list is no answer, even if the server has accepted the request. */
START_TEST(lists_that_break_off_have_failed_since_the_first_of_them)
{
	fails_while_lists_break_off_with("500", "");
	fails_while_lists_break_off_with("410", "{\"kind\":\"Status\",\"code\":410}");
	fails_while_lists_break_off_with("200", "{\"metadata\":{\"resourceVersion\":\"5\"},\"items\":[");
}
END_TEST

START_TEST(an_informer_can_be_freed_at_any_time)
{
	for (unsigned n = 0; n < 3; n++) {
		n_watches = 1;
		n_lists = 0;
		watch_rig_open(&w, NULL, serve_bad_watch);
		fake_until_asked(&w.api, n);
		watch_rig_close(&w);
	}
}
END_TEST

TMPDIR_MAIN("kube/informer_loss", lists_that_break_off_have_failed_since_the_first_of_them,
	what_went_while_the_server_forgot_is_told_as_gone, what_is_not_understood_is_listed_anew,
	objects_of_any_size_that_etcd_takes_are_read, an_object_that_cannot_be_read_hides_no_other,
	objects_that_are_skipped_are_counted, a_list_does_not_drop_an_object_that_it_has_but_cannot_be_read,
	a_server_that_lags_behind_is_asked_again_and_nothing_is_forgotten,
	another_error_of_a_watch_makes_no_list, a_watch_goes_on_after_the_connection_was_lost,
	what_a_restored_server_has_is_listed_though_its_versions_are_older,
	a_list_that_breaks_off_begins_anew, refusals_of_list_and_watch_are_waited_out,
	a_watch_that_is_accepted_is_no_failure_though_nothing_comes, an_informer_can_be_freed_at_any_time)
