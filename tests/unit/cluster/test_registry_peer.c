/* Who may register which node. */
#include "cluster/registry_private.h"
#include "unit/cluster/reports.h"
#include "unit/unit.h"

#define NAMES(...) ((const char *const[]){__VA_ARGS__, NULL})

static struct loop *loop;
static struct node_table *table;
static struct registry *registry;

static void set_up(void)
{
	struct error *err = NULL;

	ASSERT_OK(loop_new(&loop, &err));
	table = node_table_new();
	registry = registry_new(&(struct registry_config){.loop = loop, .table = table});
}

static void tear_down(void)
{
	registry_free(registry);
	node_table_free(table);
	loop_free(loop);
}

static int check(const char *const *names, const char *node_id, bool *ret_bound, struct error **err)
{
	const struct grpc_call call = {.peer_names = names};

	return registry_check_node(registry, &call, node_id, ret_bound, err);
}

START_TEST(names_decide_who_registers_whom)
{
	static const struct {
		const char *names[3];
		bool allowed;
		bool bound;
	} cases[] = {
		{{"pmem-node-controller"}, true, false},
		{{"node-a"}, true, true},
		{{"pmem-node-controller", "node-a"}, true, true},
		{{"node-b", "node-a"}, true, true},
		{{"node-b"}, false, false},
		{{"pmem-node-controller", "node-b"}, false, false},
		{{"node-"}, false, false},
		{{"pmem-registry"}, false, false},
		{{"pmem-scheduler"}, false, false},
		{{NULL}, false, false},
	};

	set_up();
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct error *err = NULL;
		bool bound;

		if (!cases[i].allowed) {
			ASSERT_FAILS(check(cases[i].names, "a", &bound, &err), ERR_PERMISSION, "certificate");
			continue;
		}
		ASSERT_OK(check(cases[i].names, "a", &bound, &err));
		ck_assert_int_eq(bound, cases[i].bound);
	}
	tear_down();
}
END_TEST

START_TEST(without_tls_there_are_no_names)
{
	struct error *err = NULL;
	bool bound;

	set_up();
	ASSERT_OK(check(NULL, "a", &bound, &err));
	ck_assert(!bound);
	ASSERT_OK(registry_check_scheduler(&(struct grpc_call){0}, &err));
	tear_down();
}
END_TEST

START_TEST(a_bound_lease_needs_its_own_certificate)
{
	struct node_report *r = report_new("a");
	struct error *err = NULL;
	bool bound;

	set_up();
	r->bound = true;
	node_table_put(table, r, 0);
	ASSERT_FAILS(check(NAMES("pmem-node-controller"), "a", &bound, &err), ERR_PERMISSION, "taken over");
	ASSERT_OK(check(NAMES("node-a"), "a", &bound, &err));
	/* certificates were rolled back */
	node_table_end(table, "a");
	ASSERT_OK(check(NAMES("pmem-node-controller"), "a", &bound, &err));
	tear_down();
}
END_TEST

START_TEST(only_the_scheduler_watches)
{
	struct error *err = NULL;

	set_up();
	ASSERT_OK(registry_check_scheduler(
		&(struct grpc_call){.peer_names = NAMES("x", "pmem-scheduler")}, &err));
	ASSERT_FAILS(registry_check_scheduler(
			     &(struct grpc_call){.peer_names = NAMES("pmem-node-controller")}, &err),
		ERR_PERMISSION, "pmem-scheduler");
	tear_down();
}
END_TEST

UNIT_MAIN("registry peer", names_decide_who_registers_whom, without_tls_there_are_no_names,
	a_bound_lease_needs_its_own_certificate, only_the_scheduler_watches)
