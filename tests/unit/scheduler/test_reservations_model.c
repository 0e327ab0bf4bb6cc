/* SPDX-License-Identifier: Apache-2.0 */
/* Compares the reservations with a model that keeps them in tables and sums them up each time. */
#include <stdlib.h>

#include "base/mem.h"
#include "unit/scheduler/cluster_rig.h"
#include "unit/unit.h"

#define N_NODES   5
#define N_PODS    4
#define PER_POD   2
#define N_VOLUMES (N_PODS * PER_POD)
#define N_RUNS    200
#define N_STEPS   200
#define NOWHERE   -1

static const char *const node_names[N_NODES] = {"a", "b", "c", "d", "e"};

struct model_pod {
	unsigned set; /* of nodes; 0: nothing is reserved, or it is decided */
	int node;
	uint64_t until_ns;
};

struct model {
	struct model_pod pods[N_PODS];
	bool held[N_VOLUMES];     /* by its pod */
	int claim[N_VOLUMES];     /* node that the claim says */
	bool sector[N_VOLUMES];   /* as the claim says */
	uint64_t made[N_VOLUMES]; /* report of its node that shows it; 0: not known */
	uint64_t report[N_NODES];
	uint64_t now_ns;
	unsigned seed;
};

static struct cluster_rig rig;
static struct model m;

static unsigned below(unsigned n)
{
	return (unsigned)rand_r(&m.seed) % n;
}

static const char *volume_name(unsigned v)
{
	static const char *const names[N_VOLUMES] = {"v", "v1", "w", "w1", "x", "x1", "y", "y1"};

	return names[v];
}

static uint64_t gib_of(unsigned v)
{
	return 1 + v % 3;
}

static void forget_held(unsigned v)
{
	if (m.held[v])
		m.made[v] = 0;
	m.held[v] = false;
}

static void forget_claim(unsigned v)
{
	if (m.claim[v] != NOWHERE)
		m.made[v] = 0;
	m.claim[v] = NOWHERE;
}

static int node_of(unsigned v)
{
	return m.held[v] ? m.pods[v / PER_POD].node : m.claim[v];
}

static void forget_pod(unsigned p)
{
	for (unsigned v = p * PER_POD; v < (p + 1) * PER_POD; v++)
		forget_held(v);
	m.pods[p] = (struct model_pod){.node = NOWHERE};
}

static void step_pass(unsigned p)
{
	const struct sched_node *nodes[N_NODES];
	struct pod_needs needs = rig_needs(volume_name(p * PER_POD), PER_POD,
		(uint64_t[]){gib_of(p * PER_POD), gib_of(p * PER_POD + 1)});
	unsigned set = 1 + below((1 << N_NODES) - 1);
	size_t n = 0;

	for (unsigned i = 0; i < N_NODES; i++) {
		if (set >> i & 1)
			nodes[n++] = cluster_rig_get(&rig, node_names[i]);
	}
	reservations_add_pod(rig.reservations, node_names[p], &needs, nodes, n, m.now_ns);
	pod_needs_done(&needs);
	forget_pod(p);
	for (unsigned v = p * PER_POD; v < (p + 1) * PER_POD; v++) {
		if (m.claim[v] != NOWHERE && !(set >> m.claim[v] & 1))
			forget_claim(v);
		m.held[v] = m.claim[v] == NOWHERE;
	}
	m.pods[p] = (struct model_pod){
		n > 1 ? set : 0, n == 1 ? __builtin_ctz(set) : NOWHERE, m.now_ns + RESERVATION_NS};
}

static void step_decide(unsigned v, unsigned node)
{
	unsigned p = v / PER_POD;
	bool sector = below(2) == 0;

	reservations_place(rig.reservations, volume_name(v), node_names[node],
		&(struct sched_item){gib_of(v) * RIG_GIB, sector, false}, RESERVATION_FOR_EVER);
	if (m.held[v]) {
		m.pods[p].set = 0;
		m.pods[p].node = (int)node;
		for (unsigned i = p * PER_POD; i < (p + 1) * PER_POD; i++)
			m.made[i] = m.held[i] ? 0 : m.made[i];
		m.held[v] = false;
	}
	if (m.claim[v] != (int)node || m.sector[v] != sector)
		m.made[v] = 0;
	m.claim[v] = (int)node;
	m.sector[v] = sector;
}

static void end_shown(unsigned v)
{
	int node = node_of(v);

	if (node == NOWHERE || m.made[v] == 0 || m.made[v] > m.report[node])
		return;
	m.made[v] = 0;
	m.held[v] = false;
	m.claim[v] = NOWHERE;
}

static void step_made(unsigned v, unsigned node)
{
	uint64_t report = m.report[node] + below(2);

	reservations_made(rig.reservations, volume_name(v), node_names[node], report);
	if (node_of(v) == (int)node)
		m.made[v] = report;
	end_shown(v);
}

static void step_report(unsigned node)
{
	cluster_rig_node(&rig, node_names[node], 8, 0, ++m.report[node]);
	for (unsigned v = 0; v < N_VOLUMES; v++)
		end_shown(v);
}

static void step_expire(void)
{
	m.now_ns += RESERVATION_NS / 4;
	reservations_expire(rig.reservations, m.now_ns, NULL, NULL);
	for (unsigned p = 0; p < N_PODS; p++) {
		if (m.now_ns >= m.pods[p].until_ns)
			forget_pod(p);
	}
}

static void step(void)
{
	unsigned v = below(N_VOLUMES);

	switch (below(9)) {
	case 0:
	case 1:
	case 2:
		step_pass(below(N_PODS));
		break;
	case 3:
		step_decide(v, below(N_NODES));
		break;
	case 4:
		reservations_withdraw(rig.reservations, volume_name(v));
		forget_claim(v);
		break;
	case 5:
		reservations_drop_pod(rig.reservations, node_names[v / PER_POD]);
		forget_pod(v / PER_POD);
		break;
	case 6:
		step_report(below(N_NODES));
		break;
	case 7:
		step_made(v, below(N_NODES));
		break;
	default:
		step_expire();
	}
}

static void check_node(unsigned node)
{
	const struct sched_node *n = cluster_rig_get(&rig, node_names[node]);
	struct sched_load decided = reservations_load(rig.reservations, n, false);
	struct sched_load all = reservations_load(rig.reservations, n, true);
	struct sched_item items[N_VOLUMES];
	uint64_t expected = 0;
	uint64_t undecided = 0;
	uint64_t sum = 0;

	for (unsigned v = 0; v < N_VOLUMES; v++) {
		const struct model_pod *pod = &m.pods[v / PER_POD];

		if (m.claim[v] == (int)node || (m.held[v] && pod->node == (int)node))
			expected += gib_of(v);
		if (m.held[v] && (pod->set >> node & 1))
			undecided += gib_of(v);
	}
	ck_assert_uint_eq(decided.size_bytes, expected * RIG_GIB);
	ck_assert_uint_eq(all.size_bytes, (expected + undecided) * RIG_GIB);
	ck_assert_uint_eq(all.raw_bytes, all.size_bytes);
	ck_assert_uint_eq(reservations_items(rig.reservations, n, true, items), all.n);
	for (size_t i = 0; i < all.n; i++) {
		sum += items[i].size_bytes;
		ck_assert_uint_le(items[i].size_bytes, all.max_raw_bytes);
	}
	ck_assert_uint_eq(sum, all.size_bytes);
}

START_TEST(reservations_are_those_of_the_model)
{
	m = (struct model){.seed = (unsigned)_i + 1};
	cluster_rig_open(&rig);
	for (unsigned i = 0; i < N_NODES; i++)
		step_report(i);
	for (unsigned v = 0; v < N_VOLUMES; v++)
		m.claim[v] = NOWHERE;
	for (unsigned p = 0; p < N_PODS; p++)
		forget_pod(p);
	for (int i = 0; i < N_STEPS; i++) {
		step();
		for (unsigned node = 0; node < N_NODES; node++)
			check_node(node);
	}
	cluster_rig_close(&rig);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("reservations_model");
	TCase *tcase = tcase_create("reservations_model");

	tcase_add_loop_test(tcase, reservations_are_those_of_the_model, 0, N_RUNS);
	suite_add_tcase(suite, tcase);
	return unit_runner_finish(srunner_create(suite));
}
