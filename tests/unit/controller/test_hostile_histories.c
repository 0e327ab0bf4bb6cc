/* SPDX-License-Identifier: Apache-2.0 */
/* Random histories of a cluster with one node that lies: no volume of another node is lost or doubled, and
 * the other rules of fuzz/hostile/hostile_cluster.h, which holds the model, are kept. */
#include <stdio.h>

#include "fuzz/hostile/hostile_cluster.h"
#include "unit/unit.h"

#define HISTORIES     60 /* of each seed */
#define SEEDS         8
#define HISTORY_BYTES 480

/* xorshift64*, which is the same everywhere. */
static uint64_t next(uint64_t *state)
{
	*state ^= *state >> 12;
	*state ^= *state << 25;
	*state ^= *state >> 27;
	return *state * 0x2545F4914F6CDD1DULL;
}

/* Half of the bytes are 0, with which the node that lies says what is true. */
static void fill(uint8_t *bytes, size_t n, uint64_t *state)
{
	for (size_t i = 0; i < n; i++) {
		uint64_t r = next(state);

		bytes[i] = (r >> 32) % 2 ? (uint8_t)(r >> 40) : 0;
	}
}

START_TEST(no_history_loses_or_doubles_a_volume)
{
	uint64_t state = 0x9E3779B97F4A7C15ULL * (uint64_t)(_i + 1);

	for (unsigned i = 0; i < HISTORIES; i++) {
		uint8_t history[HISTORY_BYTES];

		fill(history, sizeof(history), &state);
		hostile_cluster_run((struct span){history, sizeof(history)});
	}
}
END_TEST

int main(void)
{
	Suite *s = suite_create("controller/hostile_histories");
	TCase *c = tcase_create("all");

	tcase_add_loop_test(c, no_history_loses_or_doubles_a_volume, 0, SEEDS);
	suite_add_tcase(s, c);
	return unit_runner_finish(srunner_create(s));
}
