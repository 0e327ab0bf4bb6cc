/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of tokens: to which node they belong, how long a result is valid, and what happens while the API
 * server does not respond. */
#include "nodes/node_tokens.h"

#include "base/clock.h"
#include "base/mem.h"
#include "base/str.h"
#include "net/core/loop.h"
#include "unit/kube/fake_kube.h"
#include "unit/unit.h"

#define AUDIENCE "pmem/registry"
#define ACCOUNT  "system:serviceaccount:ns:node"
#define EXPIRES  "Bearer h.eyJleHAiOjEwNjB9.s" /* {"exp":1060} */

static struct loop *loop;
static struct kube_client *client;
static struct node_tokens *tokens;
static uint64_t now;
static uint64_t wall;

/* The verdict of a check. */
struct outcome {
	unsigned n;
	enum err_code code; /* 0: genuine */
	char msg[256];
};

static uint64_t now_ns(void *user)
{
	(void)user;
	return now;
}

static uint64_t wall_s(void *user)
{
	(void)user;
	return wall;
}

static void set_up(void)
{
	struct error *err = NULL;

	ASSERT_OK(loop_new(&loop, &err));
	now = NS_PER_S;
	wall = 1000;
	client = fake_kube_new(loop);
	tokens = node_tokens_new(&(struct node_tokens_config){.client = client,
		.audience = AUDIENCE,
		.user_name = ACCOUNT,
		.now_ns = now_ns,
		.wall_s = wall_s});
}

static void tear_down(void)
{
	node_tokens_free(TAKE_PTR(tokens));
	kube_client_free(client);
	loop_free(loop);
}

static void on_checked(void *user, const struct error *error)
{
	struct outcome *o = user;

	o->n++;
	o->code = error ? error->code : 0;
	snprintf(o->msg, sizeof(o->msg), "%s", error ? error->msg : "");
}

static struct node_claim claim_of(const char *authorization)
{
	return (struct node_claim){
		.authorization = authorization, .node_id = "n1", .endpoint = "tcp://1", .instance = "i1"};
}

/* Checks a claim as the registry does: a verdict that is known at once and one that comes later are noted in
 * the same way. */
static void check_claim(const struct node_claim *claim, struct outcome *o)
{
	CLEANUP(error_freep) struct error *err = NULL;

	*o = (struct outcome){0};
	if (node_tokens_check(tokens, claim, on_checked, o, &err) != NODE_ASKING)
		on_checked(o, err);
}

static void check(const char *authorization, struct outcome *o)
{
	const struct node_claim claim = claim_of(authorization);

	check_claim(&claim, o);
}

static void answer_as(const char *audience, const char *user, const char *extra)
{
	CLEANUP(free_charp)
	char *json = x_asprintf("{\"status\":{\"authenticated\":true,\"audiences\":[\"%s\"],\"user\":{"
				"\"username\":\"%s\",\"extra\":{%s}}}}",
		audience, user, extra);

	fake_kube_answer(client, 201, json);
}

static void answer_node(const char *node)
{
	CLEANUP(free_charp)
	char *extra = x_asprintf("\"authentication.kubernetes.io/node-name\":[\"%s\"]", node);

	answer_as(AUDIENCE, ACCOUNT, extra);
}

static void assert_genuine(const struct outcome *o)
{
	ck_assert_uint_eq(o->n, 1);
	ck_assert_msg(o->code == 0, "%s", o->msg);
}

static void assert_refused(const struct outcome *o, enum err_code code, const char *text)
{
	ck_assert_uint_eq(o->n, 1);
	ck_assert_msg(o->code == code, "%d: %s", o->code, o->msg);
	ck_assert_msg(strstr(o->msg, text) != NULL, "\"%s\" lacks \"%s\"", o->msg, text);
}

/* Checked with success, and the API server was asked. */
static void prove(const char *authorization)
{
	struct outcome o;

	check(authorization, &o);
	ck_assert_uint_eq(fake_kube_count(client), 1);
	ck_assert_uint_eq(o.n, 0);
	answer_node("n1");
	assert_genuine(&o);
}

START_TEST(the_api_server_is_asked_once)
{
	const struct fake_request *r;
	struct outcome first;
	struct outcome second;

	check("Bearer a.b.c", &first);
	check("Bearer a.b.c", &second);
	ck_assert_uint_eq(fake_kube_count(client), 1);
	r = fake_kube_next(client);
	ck_assert_str_eq(r->method, "POST");
	ck_assert_str_eq(r->path, "/apis/authentication.k8s.io/v1/tokenreviews");
	ck_assert_ptr_nonnull(strstr(r->body, "\"token\":\"a.b.c\",\"audiences\":[\"" AUDIENCE "\"]"));
	answer_node("n1");
	assert_genuine(&first);
	assert_genuine(&second);
	check("Bearer a.b.c", &first);
	assert_genuine(&first);
	ck_assert_uint_eq(fake_kube_count(client), 0);
}
END_TEST

START_TEST(a_stolen_token_is_that_of_another_node)
{
	struct node_claim thief = claim_of("Bearer a.b.c");
	struct outcome o;

	thief.node_id = "n2";
	check_claim(&thief, &o);
	answer_node("n1");
	assert_refused(&o, ERR_PERMISSION, "belongs to node \"n1\", not to \"n2\"");
	/* the verdict is kept, and it is the same for another caller */
	check_claim(&thief, &o);
	assert_refused(&o, ERR_PERMISSION, "belongs to node \"n1\", not to \"n2\"");
	check("Bearer a.b.c", &o);
	assert_genuine(&o);
}
END_TEST

START_TEST(what_the_api_server_says_is_checked)
{
	static const struct {
		const char *audience, *user, *extra;
		enum err_code code;
		const char *text;
	} cases[] = {
		{"kubernetes", ACCOUNT, "", ERR_UNAUTHENTICATED, "not for the audience"},
		{AUDIENCE, "system:serviceaccount:ns:other", "", ERR_PERMISSION, "-nodeAccount"},
		{AUDIENCE, "system:serviceaccount:other:node", "", ERR_PERMISSION, "-nodeAccount"},
		{AUDIENCE, ACCOUNT, "", ERR_PERMISSION, "Kubernetes 1.30"},
		{AUDIENCE, ACCOUNT, "\"authentication.kubernetes.io/node-name\":[\"n1\",\"n2\"]",
			ERR_PERMISSION, "Kubernetes 1.30"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		CLEANUP(free_charp) char *token = x_asprintf("Bearer a.b.%zu", i);
		struct outcome o;

		check(token, &o);
		answer_as(cases[i].audience, cases[i].user, cases[i].extra);
		assert_refused(&o, cases[i].code, cases[i].text);
	}
}
END_TEST

START_TEST(a_refusal_is_not_asked_about_again_at_once)
{
	struct outcome o;

	check("Bearer a.b.c", &o);
	fake_kube_answer(client, 201, "{\"status\":{\"error\":\"token has expired\"}}");
	assert_refused(&o, ERR_UNAUTHENTICATED, "token has expired");
	check("Bearer a.b.c", &o);
	assert_refused(&o, ERR_UNAUTHENTICATED, "token has expired");
	now += NODE_TOKENS_REFUSED_NS;
	prove("Bearer a.b.c");
}
END_TEST

START_TEST(what_is_no_token_is_not_asked_about)
{
	static const char *const headers[] = {NULL, "", "Basic a.b.c", "Bearer ", "Bearer abc",
		"Bearer a.\001.b", "Bearer a.\377.b", "Bearer a.b c"};
	char *longish = x_malloc(5002);
	struct outcome o;

	for (size_t i = 0; i < ARRAY_SIZE(headers); i++) {
		check(headers[i], &o);
		assert_refused(&o, ERR_UNAUTHENTICATED, "token");
	}
	memset(longish, '.', 5001);
	longish[5001] = '\0';
	memcpy(longish, "Bearer ", 7);
	check(longish, &o);
	assert_refused(&o, ERR_UNAUTHENTICATED, "4096 bytes");
	free(longish);
	ck_assert_uint_eq(fake_kube_count(client), 0);
}
END_TEST

START_TEST(a_verdict_counts_for_ten_minutes)
{
	struct outcome o;

	prove("Bearer a.b.c");
	now += NODE_TOKENS_KEEP_NS - 1;
	check("Bearer a.b.c", &o);
	assert_genuine(&o);
	now++;
	node_tokens_tick(tokens);
	prove("Bearer a.b.c");
}
END_TEST

START_TEST(a_verdict_ends_with_its_token)
{
	struct outcome o;

	prove(EXPIRES);
	now += 59 * NS_PER_S;
	check(EXPIRES, &o);
	assert_genuine(&o);
	now += NS_PER_S;
	check(EXPIRES, &o);
	fake_kube_answer(client, 201, "{\"status\":{\"error\":\"token has expired\"}}");
	assert_refused(&o, ERR_UNAUTHENTICATED, "expired");
}
END_TEST

START_TEST(a_clock_that_is_ahead_means_more_questions_only)
{
	wall = 5000;
	prove(EXPIRES);
	prove(EXPIRES);
}
END_TEST

START_TEST(a_lease_goes_on_while_the_api_server_is_silent)
{
	static const unsigned failures[] = {0, 403, 429, 500, 503};
	struct outcome o;

	prove("Bearer a.b.c");
	for (size_t i = 0; i < ARRAY_SIZE(failures); i++) {
		now += NODE_TOKENS_KEEP_NS;
		check("Bearer a.b.c", &o);
		fake_kube_answer(client, failures[i], NULL);
		assert_genuine(&o);
		/* and nothing waits for it for a while */
		check("Bearer a.b.c", &o);
		assert_genuine(&o);
		ck_assert_uint_eq(fake_kube_count(client), 0);
	}
	now += NODE_TOKENS_AGAIN_NS;
	prove("Bearer a.b.c");
}
END_TEST

START_TEST(the_silence_helps_no_other_instance_address_or_node)
{
	struct node_claim others[] = {claim_of("Bearer a.b.c"), claim_of("Bearer a.b.c"),
		claim_of("Bearer a.b.c"), claim_of("Bearer x.y.z")};
	struct outcome o;

	others[0].instance = "i2";
	others[1].endpoint = "tcp://2";
	others[2].node_id = "n2";
	others[0].has_lease = true; /* a verdict on the token comes first */
	prove("Bearer a.b.c");
	now += NODE_TOKENS_KEEP_NS;
	for (size_t i = 0; i < ARRAY_SIZE(others); i++) {
		now += NODE_TOKENS_AGAIN_NS;
		check_claim(&others[i], &o);
		fake_kube_answer(client, 503, NULL);
		assert_refused(&o, ERR_UNAVAILABLE, "cannot be checked");
		check_claim(&others[i], &o);
		assert_refused(&o, ERR_UNAVAILABLE, "cannot be checked");
	}
	ck_assert_uint_eq(fake_kube_count(client), 0);
}
END_TEST

START_TEST(a_token_that_was_replaced_just_before_the_silence_keeps_the_lease)
{
	struct node_claim renewed = claim_of("Bearer new.er.token");
	struct outcome o;

	renewed.has_lease = true;
	prove("Bearer a.b.c");
	check_claim(&renewed, &o);
	fake_kube_answer(client, 503, NULL);
	assert_genuine(&o);
	check_claim(&renewed, &o);
	assert_genuine(&o);
	ck_assert_uint_eq(fake_kube_count(client), 0);
	now += NODE_TOKENS_AGAIN_NS;
	check_claim(&renewed, &o);
	answer_node("n1");
	assert_genuine(&o);
}
END_TEST

START_TEST(a_token_that_was_refused_before_the_silence_keeps_no_lease)
{
	struct node_claim renewed = claim_of("Bearer new.er.token");
	struct outcome o;

	renewed.has_lease = true;
	check_claim(&renewed, &o);
	fake_kube_answer(client, 201, "{\"status\":{\"error\":\"token has expired\"}}");
	assert_refused(&o, ERR_UNAUTHENTICATED, "expired");
	now += NODE_TOKENS_REFUSED_NS;
	check_claim(&renewed, &o);
	fake_kube_answer(client, 503, NULL);
	assert_refused(&o, ERR_UNAVAILABLE, "cannot be checked");
}
END_TEST

START_TEST(an_answer_that_is_none_is_silence)
{
	struct outcome o;

	check("Bearer a.b.c", &o);
	fake_kube_answer(client, 201, "[1]");
	assert_refused(&o, ERR_UNAVAILABLE, "cannot be checked");
}
END_TEST

START_TEST(a_crowd_of_strangers_does_not_keep_leases_from_being_renewed)
{
	static struct outcome crowd[NODE_TOKENS_ASKING_MAX];
	struct node_claim renewed = claim_of("Bearer new.er.token");
	struct outcome o;

	for (size_t i = 0; i < ARRAY_SIZE(crowd); i++) {
		CLEANUP(free_charp) char *token = x_asprintf("Bearer a.b.%zu", i);

		check(token, &crowd[i]);
	}
	ck_assert_uint_eq(fake_kube_count(client), NODE_TOKENS_ASKING_MAX);
	check("Bearer one.more.stranger", &o);
	assert_refused(&o, ERR_UNAVAILABLE, "too many");
	renewed.has_lease = true;
	check_claim(&renewed, &o);
	ck_assert_uint_eq(fake_kube_count(client), NODE_TOKENS_ASKING_MAX + 1);
	while (fake_kube_count(client) > 0)
		answer_node("n1");
	assert_genuine(&o);
	check("Bearer one.more.stranger", &o);
	answer_node("n1");
	assert_genuine(&o);
}
END_TEST

START_TEST(verdicts_that_nobody_uses_are_forgotten)
{
	struct outcome o;

	prove("Bearer a.b.c");
	check("Bearer d.e.f", &o);
	fake_kube_answer(client, 503, NULL);
	now += NODE_TOKENS_UNUSED_NS;
	node_tokens_tick(tokens);
	/* a lease would have gone on */
	check("Bearer a.b.c", &o);
	fake_kube_answer(client, 503, NULL);
	assert_refused(&o, ERR_UNAVAILABLE, "cannot be checked");
}
END_TEST

START_TEST(the_end_is_told_to_those_who_wait)
{
	struct outcome o;

	check("Bearer a.b.c", &o);
	node_tokens_free(TAKE_PTR(tokens));
	assert_refused(&o, ERR_CANCELLED, "");
	ck_assert_uint_eq(fake_kube_count(client), 0);
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {the_api_server_is_asked_once, a_stolen_token_is_that_of_another_node,
		what_the_api_server_says_is_checked, a_refusal_is_not_asked_about_again_at_once,
		what_is_no_token_is_not_asked_about, a_verdict_counts_for_ten_minutes,
		a_verdict_ends_with_its_token, a_clock_that_is_ahead_means_more_questions_only,
		a_lease_goes_on_while_the_api_server_is_silent,
		the_silence_helps_no_other_instance_address_or_node,
		a_token_that_was_replaced_just_before_the_silence_keeps_the_lease,
		a_token_that_was_refused_before_the_silence_keeps_no_lease, an_answer_that_is_none_is_silence,
		a_crowd_of_strangers_does_not_keep_leases_from_being_renewed,
		verdicts_that_nobody_uses_are_forgotten, the_end_is_told_to_those_who_wait};
	Suite *suite = suite_create("node tokens");
	TCase *tcase = tcase_create("node tokens");

	suite_add_tcase(suite, tcase);
	tcase_add_checked_fixture(tcase, set_up, tear_down);
	for (size_t i = 0; i < ARRAY_SIZE(tests); i++)
		tcase_add_test(tcase, tests[i]);
	return unit_runner_finish(srunner_create(suite));
}
