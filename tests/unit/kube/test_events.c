/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/events.h"

#include "base/clock.h"
#include "base/mem.h"
#include "fake_api.h"

static struct fake_api api;
static struct kube_events *events;
static char *body;
static const char *patch_status;

static const struct kube_reference claim = {
	.api_version = "v1", .kind = "PersistentVolumeClaim", .namespace = "ns", .name = "c", .uid = "u"};

static void serve(struct fake_api *a, const struct fake_request *r)
{
	(void)a;
	free(body);
	body = x_strdup(r->body);
	fake_answer(r, *r->method == 'P' && r->method[1] == 'A' ? patch_status : "201", "{}");
}

static void begin(void)
{
	patch_status = "200";
	fake_api_open(&api, serve, (struct kube_client_config){0});
	events = kube_events_new(api.client, "pmem-csi", "pod-1");
}

static void finish(void)
{
	kube_events_free(events);
	free(body);
	fake_api_close(&api);
}

static void post(const char *reason, uint64_t now_s)
{
	kube_event_post(events, &claim, "Warning", reason, "too big", now_s * NS_PER_S);
}

static void settle(unsigned n)
{
	fake_until_asked(&api, n);
	h2_peer_rounds(&api.peer);
	ck_assert_uint_eq(api.n, n);
}

START_TEST(an_event_tells_of_object_reason_and_teller)
{
	begin();
	post("DoesNotFit", 100);
	settle(1);
	ck_assert_str_eq(buf_str(&api.log), "POST /api/v1/namespaces/ns/events\n");
	ck_assert_ptr_nonnull(strstr(body,
		"\"involvedObject\":{\"apiVersion\":\"v1\",\"kind\":\"PersistentVolumeClaim\","
		"\"namespace\":\"ns\",\"name\":\"c\",\"uid\":\"u\"},\"source\":{\"component\":\"pmem-csi\"},"
		"\"reportingComponent\":\"pmem-csi\",\"reportingInstance\":\"pod-1\",\"type\":\"Warning\","
		"\"reason\":\"DoesNotFit\","));
	ck_assert_ptr_nonnull(strstr(body, "\"message\":\"too big\""));
	ck_assert_ptr_nonnull(strstr(body, "\"count\":1"));
	finish();
}
END_TEST

START_TEST(the_same_reason_is_counted_and_told_once_a_minute)
{
	begin();
	post("DoesNotFit", 100);
	settle(1);
	post("DoesNotFit", 101);
	post("DoesNotFit", 159);
	settle(1);
	post("DoesNotFit", 160);
	settle(2);
	ck_assert_ptr_nonnull(strstr(buf_str(&api.log), "PATCH /api/v1/namespaces/ns/events/c."));
	ck_assert_ptr_nonnull(strstr(body, "\"count\":4"));
	finish();
}
END_TEST

START_TEST(another_reason_is_told_at_once)
{
	begin();
	post("DoesNotFit", 100);
	post("Other", 100);
	settle(2);
	finish();
}
END_TEST

START_TEST(an_event_that_is_gone_is_made_anew)
{
	begin();
	patch_status = "404";
	post("DoesNotFit", 100);
	settle(1);
	post("DoesNotFit", 200);
	settle(3);
	ck_assert_ptr_nonnull(strstr(body, "\"count\":1"));
	finish();
}
END_TEST

START_TEST(a_long_message_is_cut_between_characters)
{
	CLEANUP(free_charp) char *message = x_malloc(2048);

	memset(message, 'x', 2047);
	message[2047] = '\0';
	memcpy(message + 1023, "\xc3\xa4", 2);
	begin();
	kube_event_post(events, &claim, "Normal", "Long", message, NS_PER_S);
	settle(1);
	message[1023] = '\0';
	ck_assert_ptr_nonnull(strstr(body, message));
	ck_assert_ptr_null(strstr(body, "\xc3"));
	ck_assert_ptr_null(strstr(body, "\\ufffd"));
	finish();
}
END_TEST

START_TEST(many_objects_are_not_remembered_for_ever)
{
	struct kube_reference other = claim;
	char name[16];

	begin();
	post("DoesNotFit", 100);
	other.name = name;
	for (unsigned i = 0; i < 1100; i++) {
		snprintf(name, sizeof(name), "c%u", i);
		kube_event_post(events, &other, "Warning", "DoesNotFit", "x", 100 * NS_PER_S);
	}
	post("DoesNotFit", 101);
	h2_peer_rounds(&api.peer);
	ck_assert_ptr_null(strstr(buf_str(&api.log), "PATCH"));
	finish();
}
END_TEST

TMPDIR_MAIN("kube/events", an_event_tells_of_object_reason_and_teller,
	the_same_reason_is_counted_and_told_once_a_minute, another_reason_is_told_at_once,
	an_event_that_is_gone_is_made_anew, a_long_message_is_cut_between_characters,
	many_objects_are_not_remembered_for_ever)
