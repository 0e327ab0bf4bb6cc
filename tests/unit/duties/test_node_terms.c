/* SPDX-License-Identifier: Apache-2.0 */
#include "base/mem.h"
#include "duties/node_terms.h"
#include "kube/objects/objects.h"
#include "unit/unit.h"

#define EITHER "[{\"storage\":\"pmem\"},{\"nv.dax\":\"true\",\"storage\":null}]"

/* Return: whether a node with these labels, the members of a JSON object, fulfils the terms. */
static bool matches(const char *terms, const char *labels)
{
	CLEANUP(node_terms_done) struct node_terms t = {0};
	CLEANUP(free_charp)
	char *json = x_asprintf("{\"metadata\":{\"name\":\"n\",\"labels\":{%s}}}", labels);
	struct kube_node *node = kube_object_decode(&kube_kind_nodes, span_of(json), NULL);
	bool found;

	ck_assert_ptr_nonnull(node);
	ck_assert_int_eq(node_terms_parse(terms, &t, NULL), 0);
	found = node_terms_match(&t, &node->meta);
	kube_object_free(&kube_kind_nodes, node);
	return found;
}

START_TEST(all_labels_of_an_object_are_needed)
{
	ck_assert(matches("{\"a\":\"1\",\"b\":\"\"}", "\"a\":\"1\",\"b\":\"\",\"c\":\"3\""));
	ck_assert(!matches("{\"a\":\"1\",\"b\":\"\"}", "\"a\":\"1\""));
	ck_assert(!matches("{\"a\":\"1\"}", "\"a\":\"2\""));
}
END_TEST

START_TEST(one_object_of_a_list_is_enough)
{
	ck_assert(matches(EITHER, "\"storage\":\"pmem\""));
	ck_assert(matches(EITHER, "\"storage\":\"pmem\",\"nv.dax\":\"true\""));
	ck_assert(matches(EITHER, "\"nv.dax\":\"true\""));
	ck_assert(!matches(EITHER, "\"nv.dax\":\"true\",\"storage\":\"none\""));
	ck_assert(!matches(EITHER, "\"nv.dax\":\"true\",\"storage\":\"\""));
	ck_assert(!matches(EITHER, ""));
}
END_TEST

START_TEST(no_label_selects_no_node)
{
	ck_assert(!matches("{}", "\"a\":\"1\""));
	ck_assert(!matches("[]", "\"a\":\"1\""));
	ck_assert(!matches("[{}]", "\"a\":\"1\""));
	ck_assert(matches("{\"b\":null}", "\"a\":\"1\""));
}
END_TEST

START_TEST(a_term_is_written_as_a_label_selector)
{
	static const struct {
		const char *json, *selector;
	} cases[] = {{"{}", ""}, {"{\"a\":\"1\"}", "a=1"},
		{"{\"a\":\"1\",\"c\":null,\"b\":\"2\"}", "a=1,b=2,!c"}, {"{\"c\":null}", "!c"}};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		CLEANUP(error_freep) struct error *err = NULL;
		CLEANUP(node_terms_done) struct node_terms t = {0};
		CLEANUP(free_charp) char *selector = NULL;

		ck_assert_int_eq(node_terms_parse(cases[i].json, &t, &err), 0);
		selector = node_term_selector(&t.terms[0]);
		ck_assert_str_eq(selector, cases[i].selector);
	}
}
END_TEST

START_TEST(what_is_no_selector_is_refused)
{
	static const char *const wrong[] = {"", "1", "\"a\"", "null", "{\"a\":1}", "{\"a\":{}}", "[1]",
		"[[]]", "[{\"a\":\"1\"}", "{\"a\":\"1\"", "{\"a\":\"1\"} x", "[{\"a\":\"1\"}] {}", "{a:1}"};

	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		CLEANUP(error_freep) struct error *err = NULL;
		struct node_terms t = {0};

		ck_assert_int_eq(node_terms_parse(wrong[i], &t, &err), -1);
		ck_assert_int_eq(err->code, ERR_INVALID_ARGUMENT);
		ck_assert_uint_eq(t.n, 0);
	}
}
END_TEST

UNIT_MAIN("node_terms", all_labels_of_an_object_are_needed, one_object_of_a_list_is_enough,
	no_label_selects_no_node, a_term_is_written_as_a_label_selector, what_is_no_selector_is_refused)
