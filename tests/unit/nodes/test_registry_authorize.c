/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of which peers may register which node. */
#include <stdlib.h>

#include "base/mem.h"
#include "nodes/registry_private.h"
#include "unit/nodes/reports.h"
#include "unit/unit.h"

#define NAMES(...) ((const char *const[]){__VA_ARGS__, NULL})

static struct loop *loop;
static struct node_table *table;
static struct registry *registry;

static void set_up(enum registry_proof proof)
{
	struct error *err = NULL;

	ASSERT_OK(loop_new(&loop, &err));
	table = node_table_new();
	registry = registry_new(&(struct registry_config){.loop = loop, .table = table, .proof = proof});
}

static void tear_down(void)
{
	registry_free(registry);
	node_table_free(table);
	loop_free(loop);
}

static struct node_report *report_at(const char *node_id, const char *endpoint)
{
	struct node_report *r = report_new(node_id);

	free(r->endpoint);
	r->endpoint = x_strdup(endpoint);
	return r;
}

static int check(
	const char *const *names, const char *node_id, enum registry_standing *ret, struct error **err)
{
	const struct grpc_call call = {.peer_names = names};

	return registry_check_node(registry, &call, node_id, ret, err);
}

START_TEST(names_decide_who_registers_whom)
{
	static const struct {
		const char *names[3];
		bool allowed;
		enum registry_standing standing;
	} cases[] = {
		{{"pmem-node-controller"}, true, REGISTRY_IS_ANY},
		{{"node-a"}, true, REGISTRY_IS_NODE},
		{{"pmem-node-controller", "node-a"}, true, REGISTRY_IS_NODE},
		{{"node-b", "node-a"}, true, REGISTRY_IS_NODE},
		{{"node-b"}, false, REGISTRY_IS_ANY},
		{{"pmem-node-controller", "node-b"}, false, REGISTRY_IS_ANY},
		{{"node-"}, false, REGISTRY_IS_ANY},
		{{"pmem-registry"}, false, REGISTRY_IS_ANY},
		{{"pmem-scheduler"}, false, REGISTRY_IS_ANY},
		{{NULL}, false, REGISTRY_IS_ANY},
	};

	set_up(REGISTRY_PROOF_ROLE);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct error *err = NULL;
		enum registry_standing standing;

		if (!cases[i].allowed) {
			ASSERT_FAILS(
				check(cases[i].names, "a", &standing, &err), ERR_PERMISSION, "certificate");
			continue;
		}
		ASSERT_OK(check(cases[i].names, "a", &standing, &err));
		ck_assert_int_eq(standing, cases[i].standing);
	}
	tear_down();
}
END_TEST

START_TEST(without_tls_there_are_no_names)
{
	struct error *err = NULL;
	enum registry_standing standing;

	set_up(REGISTRY_PROOF_ROLE);
	ASSERT_OK(check(NULL, "a", &standing, &err));
	ck_assert_int_eq(standing, REGISTRY_IS_ANY);
	tear_down();
}
END_TEST

START_TEST(a_bound_lease_needs_its_own_certificate)
{
	struct node_report *r = report_new("a");
	struct error *err = NULL;
	enum registry_standing standing;

	set_up(REGISTRY_PROOF_ROLE);
	r->bound = true;
	node_table_put(table, r, 0);
	ASSERT_FAILS(check(NAMES("pmem-node-controller"), "a", &standing, &err), ERR_PERMISSION, "take over");
	ASSERT_OK(check(NAMES("node-a"), "a", &standing, &err));
	/* certificates were rolled back */
	node_table_end(table, "a");
	ASSERT_OK(check(NAMES("pmem-node-controller"), "a", &standing, &err));
	tear_down();
}
END_TEST

START_TEST(the_certificate_of_any_node_alone_speaks_for_nobody)
{
	enum registry_standing standing;
	struct error *err = NULL;

	set_up(REGISTRY_PROOF_CERTIFICATE);
	ASSERT_FAILS(check(NAMES("pmem-node-controller"), "a", &standing, &err), ERR_PERMISSION,
		"needs one for \"node-a\"");
	ASSERT_OK(check(NAMES("node-a"), "a", &standing, &err));
	ck_assert_int_eq(standing, REGISTRY_IS_NODE);
	tear_down();
	set_up(REGISTRY_PROOF_TOKEN);
	ASSERT_OK(check(NAMES("pmem-node-controller"), "a", &standing, &err));
	ck_assert_int_eq(standing, REGISTRY_NEEDS_TOKEN);
	ASSERT_OK(check(NAMES("node-a"), "a", &standing, &err));
	ck_assert_int_eq(standing, REGISTRY_IS_NODE);
	ASSERT_FAILS(check(NAMES("pmem-scheduler"), "a", &standing, &err), ERR_PERMISSION, "certificate");
	tear_down();
}
END_TEST

START_TEST(a_live_lease_stays_with_its_endpoint)
{
	static const struct {
		const char *known; /* endpoint of the node's lease; NULL: it has none */
		bool ended;
		const char *other; /* endpoint of another node; NULL: only one node */
		bool other_ended;
		bool is_there; /* the registration comes from its endpoint */
		bool allowed;
	} cases[] = {
		{.allowed = true},
		{.known = "tcp://192.0.2.1:1", .allowed = true},
		{.known = "tcp://192.0.2.9:1"},
		{.known = "tcp://192.0.2.9:1", .is_there = true},
		{.known = "tcp://192.0.2.9:1", .ended = true, .allowed = true},
		{.known = "tcp://192.0.2.9:1", .other = "tcp://192.0.2.9:1", .is_there = true},
		{.other = "tcp://192.0.2.1:1"},
		{.other = "tcp://192.0.2.1:1", .other_ended = true, .allowed = true},
		{.other = "tcp://192.0.2.1:1", .is_there = true, .allowed = true},
		{.other = "tcp://192.0.2.9:1", .allowed = true},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		CLEANUP(error_freep) struct error *err = NULL;
		CLEANUP(node_report_freep) struct node_report *r = report_at("a", "tcp://192.0.2.1:1");

		set_up(REGISTRY_PROOF_TOKEN);
		if (cases[i].known)
			node_table_put(table, report_at("a", cases[i].known), 0);
		if (cases[i].other)
			node_table_put(table, report_at("b", cases[i].other), 0);
		if (cases[i].ended)
			node_table_end(table, "a");
		if (cases[i].other_ended)
			node_table_end(table, "b");
		r->is_at_endpoint = cases[i].is_there;
		int rv = registry_check_lease(registry, r, &err);
		ck_assert_msg((rv == 0) == cases[i].allowed, "case %zu", i);
		ck_assert_int_eq(err ? (int)err->code : 0, cases[i].allowed ? 0 : (int)ERR_ABORTED);
		tear_down();
	}
}
END_TEST

UNIT_MAIN("registry peer", names_decide_who_registers_whom, without_tls_there_are_no_names,
	a_bound_lease_needs_its_own_certificate, the_certificate_of_any_node_alone_speaks_for_nobody,
	a_live_lease_stays_with_its_endpoint)
