/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/token_review.h"

#include "base/mem.h"
#include "base/str.h"
#include "unit/unit.h"

/* The answer of kube-apiserver 1.34 for a token that kubelet has projected into a pod. */
#define REPLY                                                                                                \
	"{\"kind\":\"TokenReview\",\"apiVersion\":\"authentication.k8s.io/v1\",\"metadata\":{"               \
	"\"creationTimestamp\":null,\"managedFields\":[]},\"spec\":{\"token\":\"x\",\"audiences\":[\"r\"]}," \
	"\"status\":{\"authenticated\":true,\"user\":{\"username\":\"system:serviceaccount:ns:node\","       \
	"\"uid\":\"u\",\"groups\":[\"system:serviceaccounts\"],\"extra\":{"                                  \
	"\"authentication.kubernetes.io/credential-id\":[\"JTI=1\"],"                                        \
	"\"authentication.kubernetes.io/node-name\":[\"n1\"],"                                               \
	"\"authentication.kubernetes.io/node-uid\":[\"2\"]}},\"audiences\":[\"r\"]}}"

START_TEST(the_request_names_token_and_audience)
{
	CLEANUP(buf_done) struct buf out = BUF_INIT(1000);

	token_review_write("a.\"b.c", "driver/registry", &out);
	ck_assert_str_eq(buf_str(&out),
		"{\"apiVersion\":\"authentication.k8s.io/v1\",\"kind\":\"TokenReview\",\"spec\":{"
		"\"token\":\"a.\\\"b.c\",\"audiences\":[\"driver/registry\"]}}");
}
END_TEST

START_TEST(a_reply_tells_account_node_and_audiences)
{
	CLEANUP(token_review_done) struct token_review t = {0};
	struct error *err = NULL;

	ASSERT_OK(token_review_read(span_of(REPLY), &t, &err));
	ck_assert(t.authenticated);
	ck_assert_str_eq(t.user_name, "system:serviceaccount:ns:node");
	ck_assert_str_eq(t.node_name, "n1");
	ck_assert(strv_contains(t.audiences, "r"));
	ck_assert_ptr_null(t.error);
}
END_TEST

START_TEST(what_a_reply_does_not_say_is_absent)
{
	CLEANUP(token_review_done) struct token_review t = {0};
	struct error *err = NULL;

	ASSERT_OK(token_review_read(
		span_of("{\"status\":{\"user\":{\"extra\":{\"authentication.kubernetes.io/node-name\":[]}},"
			"\"error\":\"expired\"}}"),
		&t, &err));
	ck_assert(!t.authenticated);
	ck_assert_ptr_null(t.node_name);
	ck_assert_str_eq(t.error, "expired");
	token_review_done(&t);
	/* a token of two nodes is one of neither */
	ASSERT_OK(token_review_read(
		span_of("{\"status\":{\"user\":{\"extra\":{\"authentication.kubernetes.io/node-name\":[\"a\","
			"\"b\"]}}}}"),
		&t, &err));
	ck_assert_ptr_null(t.node_name);
	token_review_done(&t);
	ASSERT_FAILS(
		token_review_read(span_of("{\"status\":{\"user\":{\"username\":\"a\\u0000\"}}}"), &t, &err),
		ERR_INVALID_ARGUMENT, "status: user: username: ");
	token_review_done(&t);
	ASSERT_FAILS(token_review_read(span_of("[]"), &t, &err), ERR_INVALID_ARGUMENT, "expected");
	ASSERT_FAILS(
		token_review_read(span_of("{\"status\":{\"auth"), &t, &err), ERR_INVALID_ARGUMENT, "JSON");
}
END_TEST

START_TEST(a_token_tells_when_it_expires)
{
	/* {"aud":["r"],"exp":1700000000,"sub":"ÿÿÿ?"}, so that both characters of base64url are needed */
	ck_assert_uint_eq(token_expiry("h.eyJhdWQiOlsiciJdLCJleHAiOjE3MDAwMDAwMDAsInN1YiI6IsO_w7_Dvz8ifQ.s"),
		1700000000);
	ck_assert_uint_eq(token_expiry("h.e30.s"), 0);
	ck_assert_uint_eq(token_expiry("h.eyJleHAiOi0xfQ.s"), 0);
	ck_assert_uint_eq(token_expiry("h.e30"), 0);
	ck_assert_uint_eq(token_expiry("h.%%.s"), 0);
	ck_assert_uint_eq(token_expiry(".."), 0);
	ck_assert_uint_eq(token_expiry(""), 0);
}
END_TEST

UNIT_MAIN("kube token review", the_request_names_token_and_audience, a_reply_tells_account_node_and_audiences,
	what_a_reply_does_not_say_is_absent, a_token_tells_when_it_expires)
