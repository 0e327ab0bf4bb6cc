/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>

#include "base/mem.h"
#include "os/file.h"
#include "scheduler/extender_request.h"
#include "unit/unit.h"

#define POD "\"Pod\":{\"metadata\":{\"name\":\"p\"}}"

static int read_text(const char *text, struct extender_request *ret, struct error **err)
{
	return extender_request_read(span_of(text), ret, err);
}

/* "name=raw " of each node */
static void describe(const struct extender_request *args, struct buf *out)
{
	for (size_t i = 0; i < args->n; i++) {
		buf_add(out, args->nodes[i].name.p, args->nodes[i].name.n);
		buf_addc(out, '=');
		buf_add(out, args->nodes[i].raw.p, args->nodes[i].raw.n);
		buf_addc(out, ' ');
	}
}

static void check_nodes(const char *text, bool has_objects, const char *nodes)
{
	CLEANUP(extender_request_done) struct extender_request args = {0};
	CLEANUP(buf_done) struct buf out = BUF_INIT(10000);
	CLEANUP(error_freep) struct error *err = NULL;

	ASSERT_OK(read_text(text, &args, &err));
	ck_assert(args.has_objects == has_objects);
	describe(&args, &out);
	ck_assert_str_eq(buf_str(&out), nodes);
}

static void check_refused(const char *text, const char *why)
{
	CLEANUP(extender_request_done) struct extender_request args = {0};
	CLEANUP(error_freep) struct error *err = NULL;

	ASSERT_FAILS(read_text(text, &args, &err), ERR_INVALID_ARGUMENT, why);
}

START_TEST(names_are_taken_in_their_order)
{
	check_nodes("{" POD ",\"Nodes\":null,\"NodeNames\":[\"b\",\"a\"]}", false, "b=\"b\" a=\"a\" ");
	check_nodes("{" POD ",\"NodeNames\":[\"b\"],\"Nodes\":null}", false, "b=\"b\" ");
	check_nodes("{" POD ",\"NodeNames\":[]}", false, "");
}
END_TEST

START_TEST(objects_are_taken_as_they_are_written)
{
	check_nodes("{" POD ",\"NodeNames\":null,\"Nodes\":{\"metadata\":{},\"items\":"
		    "[ {\"metadata\":{\"name\":\"a\"} , \"spec\":{} } "
		    ",{\"spec\":[1],\"metadata\":{\"uid\":\"u\",\"name\":"
		    "\"b\"}}]}}",
		true,
		"a={\"metadata\":{\"name\":\"a\"} , \"spec\":{} } "
		"b={\"spec\":[1],\"metadata\":{\"uid\":\"u\",\"name\":\"b\"}} ");
	check_nodes("{" POD ",\"Nodes\":{}}", true, "");
	check_nodes("{" POD ",\"Nodes\":{\"items\":null}}", true, "");
}
END_TEST

START_TEST(the_pod_is_handed_out_as_text)
{
	CLEANUP(extender_request_done) struct extender_request args = {0};
	CLEANUP(error_freep) struct error *err = NULL;

	ASSERT_OK(read_text("{ \"NodeNames\":[], \"Pod\" : {\"a\": [1] } }", &args, &err));
	ck_assert(span_eq(args.pod, "{\"a\": [1] }"));
}
END_TEST

START_TEST(names_with_escapes_are_decoded)
{
	CLEANUP(extender_request_done) struct extender_request args = {0};
	CLEANUP(error_freep) struct error *err = NULL;

	ASSERT_OK(read_text("{" POD ",\"NodeNames\":[\"n\\u006fde\",\"b\"]}", &args, &err));
	ck_assert(span_eq(args.nodes[0].name, "node"));
	ck_assert(span_eq(args.nodes[0].quoted, "\"n\\u006fde\""));
	ck_assert(span_eq(args.nodes[1].name, "b"));
	check_refused("{" POD ",\"NodeNames\":[\"\\u0000\"]}", "");
}
END_TEST

START_TEST(of_a_key_that_is_there_twice_the_last_one_counts)
{
	CLEANUP(extender_request_done) struct extender_request args = {0};
	CLEANUP(error_freep) struct error *err = NULL;

	ASSERT_OK(read_text("{\"Pod\":{\"a\":1},\"Pod\":{\"a\":2},\"NodeNames\":[]}", &args, &err));
	ck_assert(span_eq(args.pod, "{\"a\":2}"));
	check_nodes("{" POD ",\"NodeNames\":[\"a\",\"b\"],\"NodeNames\":[\"c\"]}", false, "c=\"c\" ");
	check_nodes("{" POD
		    ",\"Nodes\":{\"items\":[{\"metadata\":{\"name\":\"a\"}}]},\"Nodes\":{\"items\":[]}}",
		true, "");
	check_nodes("{" POD ",\"Nodes\":{\"items\":[{\"metadata\":{\"name\":\"a\",\"name\":\"b\"}}]}}", true,
		"b={\"metadata\":{\"name\":\"a\",\"name\":\"b\"}} ");
	check_nodes("{" POD ",\"NodeNames\":[\"a\"],\"NodeNames\":null,\"Nodes\":{}}", true, "");
	check_refused("{" POD ",\"Pod\":null,\"NodeNames\":[]}", "no Pod");
}
END_TEST

START_TEST(keys_match_without_regard_to_case)
{
	check_nodes("{\"pod\":{},\"nodenames\":[\"a\"]}", false, "a=\"a\" ");
	check_nodes("{\"POD\":{},\"NODES\":{\"Items\":[{\"Metadata\":{\"Name\":\"a\"}}]}}", true,
		"a={\"Metadata\":{\"Name\":\"a\"}} ");
}
END_TEST

START_TEST(what_is_not_asked_for_is_passed_over)
{
	check_nodes("{\"x\":[{\"Pod\":1}]," POD ",\"NodeNames\":[\"a\"],\"y\":\"z\"}", false, "a=\"a\" ");
}
END_TEST

START_TEST(a_request_without_its_parts_is_refused)
{
	check_refused("{\"NodeNames\":[]}", "no Pod");
	check_refused("{\"Pod\":null,\"NodeNames\":[]}", "no Pod");
	check_refused("{" POD "}", "neither Nodes nor NodeNames");
	check_refused("{" POD ",\"Nodes\":null,\"NodeNames\":null}", "neither Nodes nor NodeNames");
	check_refused("{" POD ",\"Nodes\":{},\"NodeNames\":[]}", "both Nodes and NodeNames");
	check_refused("{" POD ",\"NodeNames\":[],\"Nodes\":{}}", "both Nodes and NodeNames");
}
END_TEST

START_TEST(other_types_are_refused)
{
	static const char *const values[] = {"1", "true", "\"s\"", "-", "nul"};

	for (size_t i = 0; i < ARRAY_SIZE(values); i++) {
		static const char *const forms[] = {"{\"NodeNames\":[],\"Pod\":%s}",
			"{" POD ",\"NodeNames\":%s}", "{" POD ",\"Nodes\":%s}",
			"{" POD ",\"Nodes\":{\"items\":%s}}", "{" POD ",\"Nodes\":{\"items\":[%s]}}",
			"{" POD ",\"Nodes\":{\"items\":[{\"metadata\":%s}]}}", "%s"};

		for (size_t f = 0; f < ARRAY_SIZE(forms); f++) {
			const char *hole = strstr(forms[f], "%s");
			CLEANUP(free_charp)
			char *text = x_asprintf(
				"%.*s%s%s", (int)(hole - forms[f]), forms[f], values[i], hole + strlen("%s"));

			check_refused(text, "");
		}
	}
	check_refused("{" POD ",\"NodeNames\":{}}", "array");
	check_refused("{" POD ",\"Nodes\":[]}", "object");
	check_refused("{" POD ",\"NodeNames\":[1]}", "not a string");
	check_refused("{" POD ",\"NodeNames\":[null]}", "not a string");
	check_refused("{" POD ",\"Nodes\":{\"items\":[null]}}", "object");
	check_refused("{" POD ",\"Nodes\":{\"items\":[{\"metadata\":{\"name\":{}}}]}}", "not a string");
}
END_TEST

START_TEST(nodes_without_a_usable_name_are_refused)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(10000);

	check_refused("{" POD ",\"NodeNames\":[\"\"]}", "no name");
	check_refused("{" POD ",\"Nodes\":{\"items\":[{}]}}", "no name");
	check_refused("{" POD ",\"Nodes\":{\"items\":[{\"metadata\":{}}]}}", "no name");
	buf_adds(&b, "{" POD ",\"NodeNames\":[\"");
	for (int i = 0; i < 254; i++)
		buf_addc(&b, 'n');
	buf_adds(&b, "\"]}");
	check_refused(buf_str(&b), "too long");
}
END_TEST

START_TEST(no_beginning_of_a_request_is_taken)
{
	static const char text[] =
		"{" POD ",\"Nodes\":{\"items\":[{\"metadata\":{\"name\":\"n\\u006f\"}}]},\"NodeNames\":null}";

	check_nodes(text, true, "no={\"metadata\":{\"name\":\"n\\u006f\"}} ");
	for (size_t n = 0; n < sizeof(text) - 1; n++) {
		CLEANUP(free_charp) char *begin = x_strndup(text, n);

		check_refused(begin, "");
	}
}
END_TEST

START_TEST(deep_requests_are_refused)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(1 << 20);

	buf_adds(&b, "{\"Pod\":");
	for (int i = 0; i < 100000; i++)
		buf_addc(&b, '[');
	check_refused(buf_str(&b), "levels");
}
END_TEST

static void add_names(struct buf *b, size_t n)
{
	buf_adds(b, "[\"a\"");
	for (size_t i = 1; i < n; i++)
		buf_adds(b, ",\"a\"");
	buf_adds(b, "]");
}

START_TEST(the_number_of_nodes_is_limited)
{
	CLEANUP(extender_request_done) struct extender_request args = {0};
	CLEANUP(buf_done) struct buf b = BUF_INIT(1 << 20);
	CLEANUP(error_freep) struct error *err = NULL;

	buf_adds(&b, "{" POD ",\"NodeNames\":");
	add_names(&b, EXTENDER_REQUEST_MAX_NODES);
	buf_adds(&b, "}");
	ASSERT_OK(read_text(buf_str(&b), &args, &err));
	ck_assert_uint_eq(args.n, EXTENDER_REQUEST_MAX_NODES);
	buf_reset(&b);
	buf_adds(&b, "{" POD ",\"NodeNames\":");
	add_names(&b, EXTENDER_REQUEST_MAX_NODES + 1);
	buf_adds(&b, "}");
	check_refused(buf_str(&b), "more than 131072 nodes");
}
END_TEST

/* Work that is thrown away counts. */
START_TEST(nodes_of_keys_that_are_there_again_count)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(1 << 20);

	buf_adds(&b, "{" POD ",\"NodeNames\":");
	add_names(&b, EXTENDER_REQUEST_MAX_NODES);
	buf_adds(&b, ",\"NodeNames\":");
	add_names(&b, 1);
	buf_adds(&b, "}");
	check_refused(buf_str(&b), "more than 131072 nodes");
}
END_TEST

static void check_capture(const char *name, bool has_objects)
{
	CLEANUP(free_charp) char *path = x_asprintf(TEST_DATA "/kube-scheduler/%s", name);
	CLEANUP(extender_request_done) struct extender_request args = {0};
	CLEANUP(buf_done) struct buf text = BUF_INIT(1 << 20);
	CLEANUP(error_freep) struct error *err = NULL;

	ASSERT_OK(file_read(AT_FDCWD, path, &text, &err));
	ASSERT_OK(extender_request_read(buf_span(&text), &args, &err));
	ck_assert_uint_gt(args.pod.n, 1000);
	ck_assert(args.has_objects == has_objects);
	ck_assert_uint_eq(args.n, 2);
	ck_assert(span_eq(args.nodes[0].name, "fake1"));
	ck_assert(span_eq(args.nodes[1].name, "fake2"));
	ck_assert(!has_objects || args.nodes[1].raw.n > 1000);
}

START_TEST(what_kube_scheduler_sends_is_taken)
{
	check_capture("names.json", false);
	check_capture("nodes.json", true);
}
END_TEST

static void check_preemption(const char *body, const char *name, const char *victims)
{
	CLEANUP(extender_request_done) struct extender_request args = {0};
	CLEANUP(error_freep) struct error *err = NULL;

	ASSERT_OK(extender_request_read_preemption(span_of(body), &args, &err));
	ck_assert(span_eq(args.pod, "{}"));
	ck_assert_uint_eq(args.n, name ? 1 : 0);
	if (!name)
		return;
	ck_assert(span_eq(args.nodes[0].name, name));
	ck_assert_msg(
		span_eq(args.nodes[0].raw, victims), "%.*s", (int)args.nodes[0].raw.n, args.nodes[0].raw.p);
}

static void refuse_preemption(const char *body, const char *why)
{
	CLEANUP(extender_request_done) struct extender_request args = {0};
	CLEANUP(error_freep) struct error *err = NULL;

	ck_assert_int_eq(extender_request_read_preemption(span_of(body), &args, &err), -1);
	ck_assert_int_eq(err->code, ERR_INVALID_ARGUMENT);
	ck_assert_msg(strstr(err->msg, why) != NULL, "%s", err->msg);
}

#define META(victims)  "{\"Pod\":{},\"NodeNameToVictims\":null,\"NodeNameToMetaVictims\":{" victims "}}"
#define WHOLE(victims) "{\"Pod\":{},\"NodeNameToVictims\":{" victims "},\"NodeNameToMetaVictims\":null}"

START_TEST(victims_are_taken_in_the_form_of_the_answer)
{
	check_preemption(
		META("\"n\\u0031\":{\"Pods\":[{\"UID\":\"u1\"},{\"UID\":\"u2\"}],\"NumPDBViolations\":3}"),
		"n1", "{\"Pods\":[{\"UID\":\"u1\"},{\"UID\":\"u2\"}],\"NumPDBViolations\":3}");
	check_preemption(
		WHOLE("\"n1\":{\"NumPDBViolations\":1,\"Pods\":[{\"spec\":{},\"metadata\":{\"name\":\"x\","
		      "\"uid\":\"u1\"}}]}"),
		"n1", "{\"Pods\":[{\"UID\":\"u1\"}],\"NumPDBViolations\":1}");
	check_preemption(META("\"n1\":{\"Pods\":[{\"UID\":\"u1\"}]}"), "n1",
		"{\"Pods\":[{\"UID\":\"u1\"}],\"NumPDBViolations\":0}");
}
END_TEST

/* kube-scheduler takes a node without victims in an answer for an error of the whole attempt. */
START_TEST(a_node_without_victims_is_left_out)
{
	check_preemption(META(""), NULL, NULL);
	check_preemption(META("\"n1\":null"), NULL, NULL);
	check_preemption(META("\"n1\":{\"Pods\":null,\"NumPDBViolations\":0}"), NULL, NULL);
	check_preemption(META("\"n1\":{\"Pods\":[]},\"n2\":{\"Pods\":[{\"UID\":\"u\"}]}"), "n2",
		"{\"Pods\":[{\"UID\":\"u\"}],\"NumPDBViolations\":0}");
}
END_TEST

START_TEST(odd_preemptions_are_refused)
{
	refuse_preemption("{\"NodeNameToMetaVictims\":{}}", "no Pod");
	refuse_preemption("{\"Pod\":{}}", "neither NodeNameToVictims");
	refuse_preemption("{\"Pod\":{},\"NodeNameToVictims\":{},\"NodeNameToMetaVictims\":{}}", "both");
	refuse_preemption(META("\"n1\":{\"Pods\":[{}]}"), "no UID");
	refuse_preemption(META("\"n1\":{\"Pods\":[{\"UID\":\"\"}]}"), "no UID");
	refuse_preemption(META("\"n1\":{\"Pods\":[{\"UID\":7}]}"), "no UID");
	refuse_preemption(WHOLE("\"n1\":{\"Pods\":[{\"UID\":\"u\"}]}"), "no UID");
	refuse_preemption(META("\"\":{\"Pods\":[{\"UID\":\"u\"}]}"), "no name");
	refuse_preemption(
		META("\"n1\":{\"Pods\":[{\"UID\":\"u\"}],\"NumPDBViolations\":\"1\"}"), "not a number");
	refuse_preemption("{\"Pod\":{},\"NodeNameToMetaVictims\":[]}", "");
}
END_TEST

UNIT_MAIN("scheduler/extender_request", names_are_taken_in_their_order, objects_are_taken_as_they_are_written,
	the_pod_is_handed_out_as_text, names_with_escapes_are_decoded,
	of_a_key_that_is_there_twice_the_last_one_counts, keys_match_without_regard_to_case,
	what_is_not_asked_for_is_passed_over, a_request_without_its_parts_is_refused, other_types_are_refused,
	nodes_without_a_usable_name_are_refused, no_beginning_of_a_request_is_taken,
	deep_requests_are_refused, the_number_of_nodes_is_limited, nodes_of_keys_that_are_there_again_count,
	what_kube_scheduler_sends_is_taken, victims_are_taken_in_the_form_of_the_answer,
	a_node_without_victims_is_left_out, odd_preemptions_are_refused)
