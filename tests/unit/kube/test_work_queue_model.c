/* SPDX-License-Identifier: Apache-2.0 */
/* The work queue in random steps: no key is worked on twice at once, without need, or too early, and none is
 * lost. */
#include <stdlib.h>

#include "base/clock.h"
#include "kube/work_queue.h"
#include "unit/unit.h"

#define N_KEYS      8
#define MAX_RUNNING 3
#define N_SEEDS     300
#define N_STEPS     400
#define LONG_NS     (60 * NS_PER_S) /* longer than every back-off and interval */

struct model_key {
	bool wanted; /* added, or failed, since its work began */
	bool running;
	bool began;
	uint64_t began_ns;
};

static struct {
	struct work_queue *queue;
	struct model_key keys[N_KEYS];
	unsigned n_running;
	uint64_t interval_ns;
	uint64_t now_ns;
	unsigned seed;
	bool calm; /* nothing fails or is added any more */
} m;

static unsigned below(unsigned n)
{
	return (unsigned)rand_r(&m.seed) % n;
}

static void add(unsigned k)
{
	work_queue_add(m.queue, (char[]){(char)('a' + k), '\0'});
	m.keys[k].wanted = true;
}

static void end(unsigned k)
{
	bool fails = !m.calm && below(3) == 0;

	ck_assert(m.keys[k].running);
	m.keys[k].running = false;
	m.keys[k].wanted |= fails;
	m.n_running--;
	work_queue_end(m.queue, (char[]){(char)('a' + k), '\0'}, fails ? WORK_FAILED : WORK_DONE);
}

static void end_any(void)
{
	unsigned first = below(N_KEYS);

	for (unsigned i = 0; i < N_KEYS; i++) {
		if (m.keys[(first + i) % N_KEYS].running) {
			end((first + i) % N_KEYS);
			return;
		}
	}
}

static void work(void *user, const char *key)
{
	unsigned k = (unsigned)(key[0] - 'a');
	struct model_key *x = &m.keys[k];

	(void)user;
	ck_assert_uint_lt(k, N_KEYS);
	ck_assert_msg(!x->running, "%s is worked on twice at once, seed %u", key, m.seed);
	ck_assert_msg(x->wanted, "%s is worked on without need", key);
	ck_assert_uint_lt(m.n_running, MAX_RUNNING);
	ck_assert_msg(!x->began || m.now_ns >= x->began_ns + m.interval_ns, "%s is worked on too early", key);
	*x = (struct model_key){.running = true, .began = true, .began_ns = m.now_ns};
	m.n_running++;
	if (below(4) == 0)
		end(k);
	if (!m.calm && below(4) == 0)
		add(below(N_KEYS));
	if (below(8) == 0)
		end_any();
}

static uint64_t get_now(void *user)
{
	(void)user;
	return m.now_ns;
}

static void clear(void)
{
	work_queue_clear(m.queue);
	for (unsigned k = 0; k < N_KEYS; k++)
		m.keys[k] = (struct model_key){0};
	m.n_running = 0;
}

static void assert_pending(void)
{
	size_t n = 0;

	for (unsigned k = 0; k < N_KEYS; k++)
		n += m.keys[k].wanted || m.keys[k].running;
	ck_assert_uint_eq(work_queue_pending(m.queue), n);
}

static void step(void)
{
	unsigned what = below(100);

	if (what < 35)
		add(below(N_KEYS));
	else if (what < 60)
		end_any();
	else if (what < 85)
		work_queue_run(m.queue);
	else if (what < 99)
		m.now_ns += below(3000) * NS_PER_MS;
	else
		clear();
	assert_pending();
}

/* When no more keys are added, all keys that were added are worked on. */
static void calm_down(void)
{
	m.calm = true;
	for (unsigned i = 0; i < 4 * N_KEYS; i++) {
		m.now_ns += LONG_NS;
		work_queue_run(m.queue);
		end_any();
	}
	for (unsigned k = 0; k < N_KEYS; k++)
		ck_assert_msg(!m.keys[k].wanted, "%c is lost", 'a' + k);
	ck_assert_uint_eq(work_queue_pending(m.queue), 0);
}

START_TEST(every_key_has_its_turn_and_never_two_at_once)
{
	for (unsigned seed = 1; seed <= N_SEEDS; seed++) {
		memset(&m, 0, sizeof(m));
		m.seed = seed;
		m.now_ns = LONG_NS;
		m.interval_ns = seed % 2 * 5 * NS_PER_S;
		const struct work_queue_config config = {.work = work,
			.max_running = MAX_RUNNING,
			.interval_ns = m.interval_ns,
			.now_ns = get_now};
		m.queue = work_queue_new(&config);
		for (unsigned i = 0; i < N_STEPS; i++)
			step();
		calm_down();
		work_queue_free(m.queue);
	}
}
END_TEST

UNIT_MAIN("kube/work_queue_model", every_key_has_its_turn_and_never_two_at_once)
