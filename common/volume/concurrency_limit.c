/* SPDX-License-Identifier: Apache-2.0 */
#include "volume/concurrency_limit.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/thread.h"

struct concurrency_limit {
	pthread_mutex_t mutex; /* for all that follows */
	pthread_cond_t changed;
	unsigned max_inside;
	unsigned max_waiting;
	unsigned n_inside;
	unsigned n_waiting;
	bool closed;
};

struct concurrency_limit *concurrency_limit_new(unsigned max_inside, unsigned max_waiting)
{
	struct concurrency_limit *g = x_calloc(1, sizeof(*g));

	pthread_mutex_init(&g->mutex, NULL);
	thread_cond_init(&g->changed);
	g->max_inside = max_inside;
	g->max_waiting = max_waiting;
	return g;
}

void concurrency_limit_free(struct concurrency_limit *g)
{
	if (!g)
		return;
	pthread_cond_destroy(&g->changed);
	pthread_mutex_destroy(&g->mutex);
	free(g);
}

void concurrency_limit_close(struct concurrency_limit *g)
{
	pthread_mutex_lock(&g->mutex);
	g->closed = true;
	pthread_cond_broadcast(&g->changed);
	pthread_mutex_unlock(&g->mutex);
}

/* The caller has the mutex. */
static bool must_wait(const struct concurrency_limit *g)
{
	return !g->closed && g->n_inside == g->max_inside;
}

/* The caller has the mutex, which is let go meanwhile. */
static void wait_for_place(struct concurrency_limit *g, uint64_t deadline_ns)
{
	bool in_time = true;

	g->n_waiting++;
	while (must_wait(g) && in_time)
		in_time = thread_wait_until(&g->changed, &g->mutex, deadline_ns);
	g->n_waiting--;
}

static int enter_locked(struct concurrency_limit *g, int wait_ms, struct error **err)
{
	if (must_wait(g) && wait_ms > 0 && g->n_waiting < g->max_waiting)
		wait_for_place(g, clock_ns() + (uint64_t)wait_ms * NS_PER_MS);
	if (g->closed)
		return err_set(err, ERR_UNAVAILABLE, "the driver is stopping");
	if (must_wait(g))
		return err_set(err, ERR_UNAVAILABLE, "%u calls are being served, and %u are queued",
			g->n_inside, g->n_waiting);
	g->n_inside++;
	return 0;
}

int concurrency_limit_enter(
	struct concurrency_limit *g, int wait_ms, struct concurrency_limit **ret, struct error **err)
{
	pthread_mutex_lock(&g->mutex);
	int rc = enter_locked(g, wait_ms, err);
	pthread_mutex_unlock(&g->mutex);
	if (rc == 0)
		*ret = g;
	return rc;
}

void concurrency_limit_leave(struct concurrency_limit *g)
{
	if (!g)
		return;
	pthread_mutex_lock(&g->mutex);
	g->n_inside--;
	pthread_cond_signal(&g->changed);
	pthread_mutex_unlock(&g->mutex);
}
