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
	struct concurrency_limit *limit = x_calloc(1, sizeof(*limit));

	pthread_mutex_init(&limit->mutex, NULL);
	thread_cond_init(&limit->changed);
	limit->max_inside = max_inside;
	limit->max_waiting = max_waiting;
	return limit;
}

void concurrency_limit_free(struct concurrency_limit *limit)
{
	if (!limit)
		return;
	pthread_cond_destroy(&limit->changed);
	pthread_mutex_destroy(&limit->mutex);
	free(limit);
}

void concurrency_limit_close(struct concurrency_limit *limit)
{
	pthread_mutex_lock(&limit->mutex);
	limit->closed = true;
	pthread_cond_broadcast(&limit->changed);
	pthread_mutex_unlock(&limit->mutex);
}

/* The caller has the mutex. */
static bool must_wait(const struct concurrency_limit *limit)
{
	return !limit->closed && limit->n_inside == limit->max_inside;
}

/* The caller has the mutex, which is released while this waits. */
static void wait_for_place(struct concurrency_limit *limit, uint64_t deadline_ns)
{
	bool in_time = true;

	limit->n_waiting++;
	while (must_wait(limit) && in_time)
		in_time = thread_wait_until(&limit->changed, &limit->mutex, deadline_ns);
	limit->n_waiting--;
}

static int enter_locked(struct concurrency_limit *limit, int wait_ms, struct error **err)
{
	if (must_wait(limit) && wait_ms > 0 && limit->n_waiting < limit->max_waiting)
		wait_for_place(limit, clock_ns() + (uint64_t)wait_ms * NS_PER_MS);
	if (limit->closed)
		return err_set(err, ERR_UNAVAILABLE, "the driver is stopping");
	if (must_wait(limit))
		return err_set(err, ERR_UNAVAILABLE, "%u calls are being served, and %u are queued",
			limit->n_inside, limit->n_waiting);
	limit->n_inside++;
	return 0;
}

int concurrency_limit_enter(
	struct concurrency_limit *limit, int wait_ms, struct concurrency_limit **ret, struct error **err)
{
	pthread_mutex_lock(&limit->mutex);
	int rc = enter_locked(limit, wait_ms, err);
	pthread_mutex_unlock(&limit->mutex);
	if (rc == 0)
		*ret = limit;
	return rc;
}

void concurrency_limit_leave(struct concurrency_limit *limit)
{
	if (!limit)
		return;
	pthread_mutex_lock(&limit->mutex);
	limit->n_inside--;
	pthread_cond_signal(&limit->changed);
	pthread_mutex_unlock(&limit->mutex);
}
