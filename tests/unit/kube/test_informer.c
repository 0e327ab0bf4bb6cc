/* SPDX-License-Identifier: Apache-2.0 */
/* Lists and watches without failures. Failures: test_informer_loss.c. */
#include "base/str.h"
#include "watch_rig.h"

static struct watch_rig w;
static struct fake_request watching; /* the last request for a watch; its strings are not valid */
static unsigned n_watches;

static bool is_watch(const struct fake_request *r)
{
	return strstr(r->path, "watch=true") != NULL;
}

static void begin_watch(const struct fake_request *r)
{
	watching = *r;
	n_watches++;
	fake_begin(r);
}

static void serve_pages(struct fake_api *a, const struct fake_request *r)
{
	(void)a;
	if (is_watch(r))
		begin_watch(r);
	else if (strstr(r->path, "continue=two%3D%2F"))
		fake_answer(r, "200", THING_LIST("7", "", THING("c", "3")));
	else
		fake_answer(r, "200", THING_LIST("5", "two=/", THING("a", "1") "," THING("b", "2")));
}

START_TEST(pages_are_read_and_a_watch_follows_from_their_version)
{
	watch_rig_open(&w, NULL, serve_pages);
	watch_rig_until(&w, "synced");
	fake_until_asked(&w.api, 3);
	ck_assert_str_eq(buf_str(&w.reported), "+a 1\n+b 2\n+c 3\nsynced\n");
	ck_assert_ptr_nonnull(strstr(buf_str(&w.api.log), "GET /api/v1/things?limit=200\n"));
	ck_assert_ptr_nonnull(strstr(buf_str(&w.api.log),
		"GET /api/v1/things?watch=true&allowWatchBookmarks=true&timeoutSeconds="));
	ck_assert_ptr_nonnull(strstr(buf_str(&w.api.log), "&resourceVersion=5\n"));
	ck_assert_ptr_nonnull(informer_get(w.informer, "b"));
	ck_assert_ptr_null(informer_get(w.informer, "d"));
	watch_rig_close(&w);
}
END_TEST

START_TEST(changes_are_told_as_they_come)
{
	watch_rig_open(&w, NULL, serve_pages);
	fake_until_asked(&w.api, 3);
	watch_rig_send(&watching, THING_EVENT("ADDED", "d", "8") THING_EVENT("MODIFIED", "a", "9"));
	watch_rig_send(&watching, "{\"type\":\"DELETED\",\"object\":");
	watch_rig_until(&w, "*a 9");
	watch_rig_send(&watching, THING("b", "10") "}\n");
	watch_rig_until(&w, "-b");
	ck_assert_str_eq(buf_str(&w.reported), "+a 1\n+b 2\n+c 3\nsynced\n+d 8\n*a 9\n-b\n");
	ck_assert_ptr_null(informer_get(w.informer, "b"));
	watch_rig_close(&w);
}
END_TEST

START_TEST(an_object_with_a_nul_does_not_hide_others)
{
	watch_rig_open(&w, NULL, serve_pages);
	fake_until_asked(&w.api, 3);
	watch_rig_send(&watching,
		"{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"name\":\"d\",\"resourceVersion\":\"8\","
		"\"annotations\":{\"a\":\"\\u0000\"},\"labels\":{\"\\udc00\":\"b\"}}}}\n" THING_EVENT(
			"ADDED", "e", "9"));
	watch_rig_until(&w, "+e 9");
	ck_assert_str_eq(buf_str(&w.reported), "+a 1\n+b 2\n+c 3\nsynced\n+d 8\n+e 9\n");
	watch_rig_close(&w);
}
END_TEST

static bool keeps(const void *user, const void *object)
{
	const struct thing *t = object;

	return !str_eq(t->meta.resource_version, user);
}

START_TEST(what_the_kind_does_not_keep_is_told_of_once_if_it_was_kept_before)
{
	struct kube_kind kind = watch_rig_kind;

	kind.keeps = keeps;
	kind.keeps_user = "9";
	kind.label_selector = "l=m";
	kind.field_selector = "a!=b,c=d";
	watch_rig_open(&w, &kind, serve_pages);
	fake_until_asked(&w.api, 3);
	watch_rig_send(&watching, THING_EVENT("ADDED", "x", "9") THING_EVENT("MODIFIED", "a", "9")
					  THING_EVENT("MODIFIED", "a", "9") THING_EVENT("DELETED", "a", "10")
						  THING_EVENT("ADDED", "d", "11"));
	watch_rig_until(&w, "+d 11");
	ck_assert_str_eq(buf_str(&w.reported), "+a 1\n+b 2\n+c 3\nsynced\n*a 9\n+d 11\n");
	ck_assert_ptr_null(informer_get(w.informer, "a"));
	ck_assert_ptr_null(informer_get(w.informer, "x"));
	ck_assert_ptr_nonnull(strstr(buf_str(&w.api.log),
		"GET /api/v1/things?labelSelector=l%3Dm&fieldSelector=a%21%3Db%2Cc%3Dd&limit=200\n"));
	watch_rig_close(&w);
}
END_TEST

START_TEST(the_same_version_is_no_change_and_unknown_events_none_either)
{
	watch_rig_open(&w, NULL, serve_pages);
	fake_until_asked(&w.api, 3);
	watch_rig_send(&watching, THING_EVENT("MODIFIED", "a", "1") THING_EVENT("DELETED", "z", "9")
					  THING_EVENT("FUTURE", "y", "9") THING_EVENT("ADDED", "d", "10"));
	watch_rig_until(&w, "+d 10");
	ck_assert_str_eq(buf_str(&w.reported), "+a 1\n+b 2\n+c 3\nsynced\n+d 10\n");
	watch_rig_close(&w);
}
END_TEST

START_TEST(a_watch_is_resumed_from_the_last_version_that_was_seen)
{
	watch_rig_open(&w, NULL, serve_pages);
	fake_until_asked(&w.api, 3);
	fake_say(&watching, THING_EVENT("ADDED", "d", "8"));
	fake_say(&watching, "{\"object\":{\"kind\":\"Thing\",\"metadata\":{\"resourceVersion\":\"99\"}},"
			    "\"type\":\"BOOKMARK\"}\n");
	fake_end(&watching);
	h2_peer_flush((struct h2_peer_conn *)watching.side);
	fake_until_asked(&w.api, 4);
	ck_assert(str_ends(buf_str(&w.api.log), "&resourceVersion=99\n"));
	ck_assert_str_eq(buf_str(&w.reported), "+a 1\n+b 2\n+c 3\nsynced\n+d 8\n");
	watch_rig_close(&w);
}
END_TEST

static void serve_metadata(struct fake_api *a, const struct fake_request *r)
{
	(void)a;
	buf_addf(&w.reported, "%s %s\n", is_watch(r) ? "watch" : "list", r->accept);
	if (is_watch(r))
		begin_watch(r);
	else
		fake_answer(r, "200", THING_LIST("5", "", ""));
}

START_TEST(metadata_and_selectors_are_asked_for)
{
	struct kube_kind kind = watch_rig_kind;

	kind.metadata_only = true;
	kind.label_selector = "a=b,c in (d)";
	watch_rig_open(&w, &kind, serve_metadata);
	fake_until_asked(&w.api, 2);
	ck_assert_str_eq(buf_str(&w.reported),
		"list application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json\n"
		"synced\nwatch "
		"application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json\n");
	ck_assert_ptr_nonnull(
		strstr(buf_str(&w.api.log), "things?labelSelector=a%3Db%2Cc%20in%20%28d%29&limit=200\n"));
	watch_rig_close(&w);
}
END_TEST

static unsigned n_counted;

static void count(void *user, const void *object)
{
	(void)user;
	(void)object;
	n_counted++;
}

START_TEST(all_objects_can_be_looked_at)
{
	watch_rig_open(&w, NULL, serve_pages);
	ck_assert(!informer_is_synced(w.informer));
	watch_rig_until(&w, "synced");
	ck_assert(informer_is_synced(w.informer));
	informer_each(w.informer, count, NULL);
	ck_assert_uint_eq(n_counted, 3);
	watch_rig_close(&w);
}
END_TEST

TMPDIR_MAIN("kube/informer", pages_are_read_and_a_watch_follows_from_their_version,
	changes_are_told_as_they_come, an_object_with_a_nul_does_not_hide_others,
	what_the_kind_does_not_keep_is_told_of_once_if_it_was_kept_before,
	the_same_version_is_no_change_and_unknown_events_none_either,
	a_watch_is_resumed_from_the_last_version_that_was_seen, metadata_and_selectors_are_asked_for,
	all_objects_can_be_looked_at)
