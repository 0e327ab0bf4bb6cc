/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/object_call.h"

#include "base/mem.h"
#include "fake_api.h"

static const struct kube_kind things = {.path = "/apis/g.example/v1/things", .what = "things"};
static struct fake_api api;

/* The version of Accept is what makes a reply one of metadata only. */
static void serve(struct fake_api *a, const struct fake_request *r)
{
	(void)a;
	fake_answer(r, "200", strstr(r->accept, "PartialObjectMetadata;") ? "metadata" : r->body);
}

static void serve_type(struct fake_api *a, const struct fake_request *r)
{
	(void)a;
	fake_answer(r, "200", r->content_type);
}

static void is_asked_of(void (*server)(struct fake_api *a, const struct fake_request *r),
	const struct kube_object_call *call, const char *line, const char *answer)
{
	struct fake_reply reply = {0};

	fake_api_open(&api, server, (struct kube_client_config){0});
	kube_object_call(api.client, call, fake_note, &reply);
	fake_reply_wait(&api, &reply);
	ck_assert_str_eq(buf_str(&api.log), line);
	ck_assert_str_eq(reply.text, answer);
	fake_reply_done(&reply);
	fake_api_close(&api);
}

static void is_asked(const struct kube_object_call *call, const char *line, const char *answer)
{
	is_asked_of(serve, call, line, answer);
}

START_TEST(each_verb_asks_object_or_collection)
{
	struct kube_object_call call = {.kind = &things, .name = "x", .body = span_of("{}")};

	call.verb = KUBE_CREATE;
	is_asked(&call, "POST /apis/g.example/v1/things\n", "{}");
	call.namespace = "ns";
	is_asked(&call, "POST /apis/g.example/v1/namespaces/ns/things\n", "{}");
	call.verb = KUBE_UPDATE;
	is_asked(&call, "PUT /apis/g.example/v1/namespaces/ns/things/x\n", "{}");
	call.verb = KUBE_PATCH;
	is_asked(&call, "PATCH /apis/g.example/v1/namespaces/ns/things/x\n", "{}");
	call.verb = KUBE_STRATEGIC_PATCH;
	is_asked(&call, "PATCH /apis/g.example/v1/namespaces/ns/things/x\n", "{}");
	call.body = (struct span){0};
	call.verb = KUBE_DELETE;
	is_asked(&call, "DELETE /apis/g.example/v1/namespaces/ns/things/x\n", "");
	call.verb = KUBE_GET;
	call.metadata_only = true;
	is_asked(&call, "GET /apis/g.example/v1/namespaces/ns/things/x\n", "metadata");
}
END_TEST

START_TEST(a_subresource_and_a_field_manager_are_named)
{
	struct kube_object_call call = {
		.verb = KUBE_GET, .kind = &things, .name = "x", .subresource = "status"};

	is_asked(&call, "GET /apis/g.example/v1/things/x/status\n", "");
	call.verb = KUBE_APPLY;
	call.body = span_of("{}");
	call.field_manager = "m";
	is_asked(&call, "PATCH /apis/g.example/v1/things/x/status?force=true&fieldManager=m\n", "{}");
	call.subresource = NULL;
	call.namespace = "ns";
	is_asked(&call, "PATCH /apis/g.example/v1/namespaces/ns/things/x?force=true&fieldManager=m\n", "{}");
}
END_TEST

/* The API server distinguishes kinds of patches by it. Source: apimachinery pkg/types/patch.go */
START_TEST(each_patch_has_its_content_type)
{
	static const struct {
		enum kube_verb verb;
		const char *query;
		const char *type;
	} cases[] = {{KUBE_PATCH, "", "application/merge-patch+json"},
		{KUBE_STRATEGIC_PATCH, "", "application/strategic-merge-patch+json"},
		{KUBE_APPLY, "?force=true&fieldManager=m", "application/apply-patch+yaml"}};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		CLEANUP(free_charp)
		char *line = x_asprintf("PATCH /apis/g.example/v1/things/x%s\n", cases[i].query);
		const struct kube_object_call call = {.verb = cases[i].verb,
			.kind = &things,
			.name = "x",
			.field_manager = "m",
			.body = span_of("{}")};

		is_asked_of(serve_type, &call, line, cases[i].type);
	}
}
END_TEST

/* Names may have been chosen by other users, and may have any length. */
START_TEST(no_name_leads_to_another_object)
{
	CLEANUP(free_charp) char *name = x_calloc(1, 5001);
	CLEANUP(free_charp) char *line = NULL;
	struct kube_object_call call = {
		.verb = KUBE_GET, .kind = &things, .namespace = "a/b", .name = "c?d=%2e/#"};

	is_asked(&call, "GET /apis/g.example/v1/namespaces/a%2Fb/things/c%3Fd%3D%252e%2F%23\n", "");
	memset(name, 'x', 5000);
	call.namespace = NULL;
	call.name = name;
	line = x_asprintf("GET /apis/g.example/v1/things/%s\n", name);
	is_asked(&call, line, "");
}
END_TEST

START_TEST(no_field_manager_or_subresource_changes_the_request)
{
	CLEANUP(free_charp) char *long_text = x_calloc(1, 401);
	CLEANUP(free_charp) char *escaped = x_calloc(1, 1201);
	CLEANUP(free_charp) char *line = NULL;
	struct kube_object_call call = {.verb = KUBE_APPLY,
		.kind = &things,
		.name = "x",
		.subresource = "a/b?",
		.field_manager = "m&force=false#"};

	is_asked(&call,
		"PATCH /apis/g.example/v1/things/x/a%2Fb%3F?force=true&fieldManager=m%26force%3Dfalse%23\n",
		"");
	for (size_t i = 0; i < 400; i++) {
		long_text[i] = '/';
		memcpy(&escaped[3 * i], "%2F", 3);
	}
	call.namespace = call.name = call.subresource = call.field_manager = long_text;
	line = x_asprintf("PATCH /apis/g.example/v1/namespaces/%s/things/%s/%s?force=true&fieldManager=%s\n",
		escaped, escaped, escaped, escaped);
	is_asked(&call, line, "");
}
END_TEST

UNIT_MAIN("kube object_call", each_verb_asks_object_or_collection,
	a_subresource_and_a_field_manager_are_named, each_patch_has_its_content_type,
	no_name_leads_to_another_object, no_field_manager_or_subresource_changes_the_request)
