/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/list.h"

#include <stdio.h>

#include "watch_rig.h"

struct result {
	struct buf names; /* a line for each object */
	unsigned n_ended;
	enum err_code code; /* 0: complete */
	char text[512];     /* of the error */
	struct kube_list *list;
};

static struct fake_api api;

static void take(void *user, void *object)
{
	const struct thing *t = object;
	struct result *r = user;

	buf_addf(&r->names, "%s\n", t->meta.name);
	kube_object_free(&watch_rig_kind, object);
}

static void ended(void *user, const struct error *error)
{
	struct result *r = user;

	r->n_ended++;
	r->code = error ? error->code : 0;
	if (error)
		snprintf(r->text, sizeof(r->text), "%s", error->msg);
	kube_list_free(TAKE_PTR(r->list));
}

static const struct kube_list_events events = {take, ended};

static bool has_ended(void *user)
{
	const struct result *r = user;

	return r->n_ended > 0;
}

static void list_all(const struct kube_kind *kind,
	void (*serve)(struct fake_api *a, const struct fake_request *r), struct result *ret)
{
	*ret = (struct result){.names = BUF_INIT(4096)};
	fake_api_open(&api, serve, (struct kube_client_config){0});
	ret->list = kube_list_new(api.client, kind, &events, ret);
	fake_until(&api, has_ended, ret);
	ck_assert_uint_eq(ret->n_ended, 1);
}

static void end(struct result *r)
{
	buf_done(&r->names);
	fake_api_close(&api);
}

static void serve_pages(struct fake_api *a, const struct fake_request *r)
{
	(void)a;
	if (strstr(r->path, "continue=two%3D%2F"))
		fake_answer(r, "200", THING_LIST("5", "", THING("c", "3")));
	else
		fake_answer(r, "200", THING_LIST("5", "two=/", THING("a", "1") "," THING("b", "2")));
}

START_TEST(all_pages_are_read_and_nothing_is_watched)
{
	struct kube_kind kind = watch_rig_kind;
	struct result r;

	kind.label_selector = "l=m";
	list_all(&kind, serve_pages, &r);
	ck_assert_uint_eq(r.code, 0);
	ck_assert_str_eq(buf_str(&r.names), "a\nb\nc\n");
	ck_assert_str_eq(buf_str(&api.log),
		"GET /api/v1/things?labelSelector=l%3Dm&limit=200\n"
		"GET /api/v1/things?labelSelector=l%3Dm&limit=200&continue=two%3D%2F\n");
	end(&r);
}
END_TEST

static bool is_not(const void *user, const void *object)
{
	const struct thing *t = object;

	return strcmp(t->meta.name, user) != 0;
}

START_TEST(what_the_kind_does_not_keep_is_left_out)
{
	struct kube_kind kind = watch_rig_kind;
	struct result r;

	kind.keeps = is_not;
	kind.keeps_user = "b";
	list_all(&kind, serve_pages, &r);
	ck_assert_str_eq(buf_str(&r.names), "a\nc\n");
	end(&r);
}
END_TEST

static void refuse(struct fake_api *a, const struct fake_request *r)
{
	(void)a;
	fake_answer(r, "403", "{\"message\":\"things is forbidden\"}");
}

START_TEST(a_refusal_is_not_repeated_and_names_the_kind)
{
	struct result r;

	list_all(&watch_rig_kind, refuse, &r);
	ck_assert_uint_eq(r.code, ERR_PERMISSION);
	ck_assert_ptr_nonnull(strstr(r.text, "kube: list things: 403"));
	ck_assert_uint_eq(api.n, 1);
	end(&r);
}
END_TEST

static void serve_then_forget(struct fake_api *a, const struct fake_request *r)
{
	if (strstr(r->path, "continue="))
		fake_answer(r, "410", "{\"message\":\"too old\"}");
	else
		serve_pages(a, r);
}

START_TEST(a_list_whose_second_page_is_gone_is_not_complete)
{
	struct result r;

	list_all(&watch_rig_kind, serve_then_forget, &r);
	ck_assert_uint_eq(r.code, ERR_RANGE);
	ck_assert_str_eq(buf_str(&r.names), "a\nb\n");
	end(&r);
}
END_TEST

static void serve_nameless(struct fake_api *a, const struct fake_request *r)
{
	(void)a;
	fake_answer(r, "200", THING_LIST("5", "", THING("a", "1") ",{\"metadata\":{}}"));
}

static void serve_no_list(struct fake_api *a, const struct fake_request *r)
{
	(void)a;
	fake_answer(r, "200", "{\"metadata\":{}}");
}

START_TEST(what_cannot_be_read_is_an_error)
{
	struct result r;

	list_all(&watch_rig_kind, serve_nameless, &r);
	ck_assert_uint_eq(r.code, ERR_INVALID_ARGUMENT);
	ck_assert_str_eq(r.text, "kube: list things: the object has no name");
	end(&r);
	list_all(&watch_rig_kind, serve_no_list, &r);
	ck_assert_uint_eq(r.code, ERR_INVALID_ARGUMENT);
	ck_assert_str_eq(r.text, "kube: list things: the list has no resourceVersion");
	end(&r);
}
END_TEST

static void say_nothing(struct fake_api *a, const struct fake_request *r)
{
	(void)a;
	(void)r;
}

START_TEST(a_list_that_is_freed_does_not_end)
{
	struct result r = {.names = BUF_INIT(4096)};

	fake_api_open(&api, say_nothing, (struct kube_client_config){0});
	r.list = kube_list_new(api.client, &watch_rig_kind, &events, &r);
	fake_until_asked(&api, 1);
	kube_list_free(r.list);
	end(&r);
	ck_assert_uint_eq(r.n_ended, 0);
}
END_TEST

UNIT_MAIN("list", all_pages_are_read_and_nothing_is_watched, what_the_kind_does_not_keep_is_left_out,
	a_refusal_is_not_repeated_and_names_the_kind, a_list_whose_second_page_is_gone_is_not_complete,
	what_cannot_be_read_is_an_error, a_list_that_is_freed_does_not_end)
