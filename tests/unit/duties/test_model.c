/* SPDX-License-Identifier: Apache-2.0 */
/* Random histories of a cluster: in the end each volume is on the node that was returned to its caller, and
 * on no other. */
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/parse.h"
#include "unit/duties/world.h"
#include "unit/unit.h"

#define STEPS     10000
#define SEEDS     3
#define HUNT_MAX  12 /* seeds in which a defect must show */
#define HOUR_NS   (3600 * NS_PER_S)
#define CHECK_TOO 20 /* steps */

static struct world_claim *any_claim(struct world *w)
{
	return &w->claims[world_random(w, WORLD_CLAIMS)];
}

static struct world_node *any_node(struct world *w)
{
	return &w->nodes[world_random(w, WORLD_NODES)];
}

/* Adds a volume that a provisioner on the node itself has made, without a call to this controller. */
static void add_foreign(struct world *w)
{
	struct world_node *n = any_node(w);
	char id[64];
	char name[64];

	if (n->n_volumes > 4)
		return;
	snprintf(name, sizeof(name), "pvc-00000000-0000-4000-9000-%012x", ++w->n_names);
	snprintf(id, sizeof(id), "foreign-%u", w->n_names);
	world_node_add(n, id, name, WORLD_UNIT / 16);
	w->n_foreign++;
	world_record_report(w, id, name, n->id);
	world_node_report(n);
}

/* Causes one of the events that leave volumes which only the search for orphans can remove, or volumes that
 * it must not remove. */
static void go_wild(struct world *w)
{
	switch (world_random(w, 11)) {
	case 0:
		world_controller_restart(w);
		break;
	case 1:
		world_provisioner_restart(w);
		break;
	case 2:
		world_claim_retain(any_claim(w));
		break;
	case 3:
		add_foreign(w);
		break;
	case 4:
		world_api_down(w, world_delay_ms(w, 60000));
		break;
	case 5:
		world_node_leave(any_node(w), world_delay_ms(w, 900000));
		break;
	case 6:
		world_kept_use(w);
		break;
	default:
		world_node_cut(any_node(w), world_delay_ms(w, 400000));
		break;
	}
}

static void step(struct world *w)
{
	uint64_t what = world_random(w, 100);

	if (what < 40)
		world_claim_add(w);
	else if (what < 70)
		world_claim_delete(any_claim(w));
	else if (what < 80)
		world_claim_stage(any_claim(w));
	else if (what < 84)
		world_node_cut(any_node(w), world_delay_ms(w, 20000));
	else if (what < 86)
		world_node_restart(any_node(w));
	else if (what < 88 && w->config.wild)
		go_wild(w);
	else if (what < 96)
		world_claim_grow(any_claim(w));
	else if (what < 97)
		world_resizer_restart(w);
	world_run(w, world_delay_ms(w, 2000));
}

/* Retries, then what they gave up, then orphans. */
static void settle(struct world *w)
{
	w->calm = true;
	world_nodes_return(w);
	for (size_t i = 0; i < WORLD_NODES; i++)
		world_node_cut(&w->nodes[i], NS_PER_MS);
	world_run(w, HOUR_NS);
	for (size_t i = 0; i < WORLD_CLAIMS; i++) {
		if (!w->claims[i].has_pv)
			world_claim_delete(&w->claims[i]);
	}
	world_run(w, 2 * HOUR_NS);
}

static unsigned n_ever_kept; /* volumes that were deleted while their nodes were gone */
static unsigned n_grown;
static unsigned n_refused; /* for lack of space */
static unsigned n_cloned;

/* Return: what went wrong, freed by the caller; NULL: nothing. */
static char *play(const struct world_config *config, unsigned *ret_told, unsigned *ret_deleted)
{
	static struct world w;
	char *broken;

	world_open(&w, config);
	for (unsigned i = 0; i < STEPS && !w.broken; i++) {
		step(&w);
		if (i % CHECK_TOO == 0)
			world_check_told(&w);
		world_check_recorded(&w);
		world_check_sizes(&w);
		world_check_kept(&w);
	}
	settle(&w);
	if (!w.broken)
		world_check_all(&w);
	broken = w.broken ? x_asprintf("seed %llu at %llu s: %s", (unsigned long long)config->seed,
				    (unsigned long long)(w.now_ns / NS_PER_S), w.broken)
			  : NULL;
	*ret_told += w.n_told;
	*ret_deleted += w.n_deleted;
	n_ever_kept += w.n_ever_kept;
	n_grown += w.n_grown;
	n_refused += w.n_refused;
	n_cloned += w.n_cloned;
	world_close(&w);
	return broken;
}

static uint64_t seeds(void)
{
	CLEANUP(error_freep) struct error *err = NULL;
	const char *text = getenv("PMEM_MODEL_SEEDS");
	uint64_t n = SEEDS;

	if (text && parse_u64(text, &n, &err) < 0)
		ck_abort_msg("PMEM_MODEL_SEEDS: %s", err->msg);
	return n;
}

static void expect_whole(bool wild, unsigned *ret_told, unsigned *ret_deleted)
{
	for (uint64_t seed = 1, n = seeds(); seed <= n; seed++) {
		const struct world_config config = {.seed = seed, .wild = wild};
		CLEANUP(free_charp) char *broken = play(&config, ret_told, ret_deleted);

		ck_assert_msg(!broken, "%s", broken);
	}
}

START_TEST(without_restarts_nothing_is_left_over_in_the_first_place)
{
	unsigned reported = 0;
	unsigned deleted = 0;

	expect_whole(/* wild= */ false, &reported, &deleted);
	ck_assert_uint_gt(reported, 100);
	ck_assert_uint_eq(deleted, 0);
	ck_assert_uint_gt(n_grown, 100);
	ck_assert_uint_gt(n_refused, 10);
	ck_assert_uint_gt(n_cloned, 50);
}
END_TEST

START_TEST(whatever_happens_all_volumes_are_where_their_callers_were_told)
{
	unsigned reported = 0;
	unsigned deleted = 0;

	expect_whole(/* wild= */ true, &reported, &deleted);
	ck_assert_uint_gt(reported, 100);
	ck_assert_uint_gt(deleted, 0);
	ck_assert_uint_gt(n_ever_kept, 0);
	ck_assert_uint_gt(n_grown, 20);
	ck_assert_uint_gt(n_refused, 10);
	ck_assert_uint_gt(n_cloned, 10);
}
END_TEST

static const struct {
	enum world_defect defect;
	bool wild;
} defects[] = {
	{DEFECT_NEXT_NODE, false},
	{DEFECT_FORGET, false},
	{DEFECT_VERSION, true},
	{DEFECT_UNROUTED, true},
	{DEFECT_STAGED, true},
	{DEFECT_ORIGIN, true},
	{DEFECT_LOOK, true},
	{DEFECT_NO_SEARCH, true},
	{DEFECT_RETAINED, true},
	{DEFECT_SIZE, false},
	{DEFECT_SHORT, false},
	{DEFECT_BLANK, false},
};

START_TEST(each_defect_shows)
{
	unsigned reported = 0;
	unsigned deleted = 0;

	for (uint64_t seed = 1; seed <= HUNT_MAX; seed++) {
		const struct world_config config = {
			.seed = seed, .defect = defects[_i].defect, .wild = defects[_i].wild};
		CLEANUP(free_charp) char *broken = play(&config, &reported, &deleted);

		if (broken) {
			printf("defect %d: %s\n", (int)defects[_i].defect, broken);
			return;
		}
	}
	ck_abort_msg("defect %d was not noticed", (int)defects[_i].defect);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("duties/model");
	TCase *tcase = tcase_create("model");

	suite_add_tcase(suite, tcase);
	tcase_add_test(tcase, without_restarts_nothing_is_left_over_in_the_first_place);
	tcase_add_test(tcase, whatever_happens_all_volumes_are_where_their_callers_were_told);
	tcase_add_loop_test(tcase, each_defect_shows, 0, (int)ARRAY_SIZE(defects));
	return unit_runner_finish(srunner_create(suite));
}
