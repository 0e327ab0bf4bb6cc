/* SPDX-License-Identifier: Apache-2.0 */
/* Who may register which node. */
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
	ASSERT_OK(registry_check_scheduler(&(struct grpc_call){0}, &err));
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
	ASSERT_FAILS(
		check(NAMES("pmem-node-controller"), "a", &standing, &err), ERR_PERMISSION, "taken over");
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

START_TEST(only_the_scheduler_watches)
{
	struct error *err = NULL;

	set_up(REGISTRY_PROOF_ROLE);
	ASSERT_OK(registry_check_scheduler(
		&(struct grpc_call){.peer_names = NAMES("x", "pmem-scheduler")}, &err));
	ASSERT_FAILS(registry_check_scheduler(
			     &(struct grpc_call){.peer_names = NAMES("pmem-node-controller")}, &err),
		ERR_PERMISSION, "pmem-scheduler");
	tear_down();
}
END_TEST

UNIT_MAIN("registry peer", names_decide_who_registers_whom, without_tls_there_are_no_names,
	a_bound_lease_needs_its_own_certificate, the_certificate_of_any_node_alone_speaks_for_nobody,
	only_the_scheduler_watches)
