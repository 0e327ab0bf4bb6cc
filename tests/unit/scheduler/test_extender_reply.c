/* SPDX-License-Identifier: Apache-2.0 */
#include "base/json/json.h"
#include "scheduler/extender_reply.h"
#include "unit/unit.h"

#define NAMES        "{\"Pod\":{},\"Nodes\":null,\"NodeNames\":[\"a\",\"b\",\"\\u0063\",\"d\"]}"
#define OBJECT(name) "{\"metadata\":{\"name\":\"" name "\"} }"
#define OBJECTS                                                                                              \
	"{\"Pod\":{},\"Nodes\":{\"items\":[" OBJECT("a") "," OBJECT("b") "," OBJECT("c") "," OBJECT(         \
		"d") "]},\"NodeNames\":null}"

static void explain(void *user, size_t i, struct buf *out)
{
	(void)user;
	buf_addf(out, "\"%zu\" is full", i);
}

static void check_filter(const char *request, const bool *passes, const char *reply)
{
	const struct extender_verdicts verdicts = {.passes = passes, .explain = explain};
	CLEANUP(extender_request_done) struct extender_request args = {0};
	CLEANUP(buf_done) struct buf out = BUF_INIT(10000);
	CLEANUP(error_freep) struct error *err = NULL;

	ASSERT_OK(extender_request_read(span_of(request), &args, &err));
	extender_reply_filter(&args, &verdicts, &out);
	ck_assert_str_eq(buf_str(&out), reply);
}

static const bool mixed[] = {false, true, false, true};
static const bool none[] = {false, false, false, false};
static const bool all[] = {true, true, true, true};

START_TEST(names_are_answered_with_names)
{
	check_filter(NAMES, mixed,
		"{\"Nodes\":null,\"NodeNames\":[\"b\",\"d\"],\"FailedNodes\":{},"
		"\"FailedAndUnresolvableNodes\":{\"a\":\"\\\"0\\\" is full\",\"\\u0063\":\"\\\"2\\\" is "
		"full\"},\"Error\":\"\"}");
	check_filter(NAMES, all,
		"{\"Nodes\":null,\"NodeNames\":[\"a\",\"b\",\"\\u0063\",\"d\"],\"FailedNodes\":{},"
		"\"FailedAndUnresolvableNodes\":{},\"Error\":\"\"}");
}
END_TEST

START_TEST(objects_are_answered_with_the_same_objects)
{
	check_filter(OBJECTS, mixed,
		"{\"Nodes\":{\"metadata\":{},\"items\":[" OBJECT("b") "," OBJECT(
			"d") "]},\"NodeNames\":null,\"FailedNodes\":{},"
			     "\"FailedAndUnresolvableNodes\":{\"a\":\"\\\"0\\\" is full\",\"c\":\"\\\"2\\\" "
			     "is full\"},\"Error\":\"\"}");
}
END_TEST

START_TEST(an_answer_without_a_node_has_the_form_of_the_request)
{
	static const char failed[] =
		"\"FailedAndUnresolvableNodes\":{\"a\":\"\\\"0\\\" is full\",\"b\":\"\\\"1\\\" is full\","
		"\"c\":\"\\\"2\\\" is full\",\"d\":\"\\\"3\\\" is full\"}";
	CLEANUP(buf_done) struct buf reply = BUF_INIT(10000);

	buf_addf(&reply,
		"{\"Nodes\":{\"metadata\":{},\"items\":[]},\"NodeNames\":null,\"FailedNodes\":{},%s,"
		"\"Error\":\"\"}",
		failed);
	check_filter(OBJECTS, none, buf_str(&reply));
}
END_TEST

START_TEST(an_error_is_told_in_both_forms)
{
	CLEANUP(buf_done) struct buf out = BUF_INIT(10000);

	extender_reply_error("no \"Pod\"", &out);
	ck_assert_str_eq(buf_str(&out),
		"{\"Nodes\":null,\"NodeNames\":null,\"FailedNodes\":{},\"FailedAndUnresolvableNodes\":{},"
		"\"Error\":\"no \\\"Pod\\\"\"}");
}
END_TEST

START_TEST(scores_are_told_by_host)
{
	static const int scores[] = {0, 10, 3, 7};
	CLEANUP(extender_request_done) struct extender_request args = {0};
	CLEANUP(buf_done) struct buf out = BUF_INIT(10000);
	CLEANUP(error_freep) struct error *err = NULL;

	ASSERT_OK(extender_request_read(span_of(OBJECTS), &args, &err));
	extender_reply_scores(&args, scores, &out);
	ck_assert_str_eq(buf_str(&out),
		"[{\"Host\":\"a\",\"Score\":0},{\"Host\":\"b\",\"Score\":10},{\"Host\":\"c\",\"Score\":3},"
		"{\"Host\":\"d\",\"Score\":7}]");
}
END_TEST

START_TEST(an_answer_that_does_not_fit_is_marked)
{
	const struct extender_verdicts verdicts = {.passes = all, .explain = explain};
	CLEANUP(extender_request_done) struct extender_request args = {0};
	CLEANUP(buf_done) struct buf out = BUF_INIT(40);
	CLEANUP(error_freep) struct error *err = NULL;

	ASSERT_OK(extender_request_read(span_of(OBJECTS), &args, &err));
	extender_reply_filter(&args, &verdicts, &out);
	ck_assert_int_eq(buf_check(&out, "reply", &err), -1);
}
END_TEST

UNIT_MAIN("scheduler/extender_reply", names_are_answered_with_names,
	objects_are_answered_with_the_same_objects, an_answer_without_a_node_has_the_form_of_the_request,
	an_error_is_told_in_both_forms, scores_are_told_by_host, an_answer_that_does_not_fit_is_marked)
