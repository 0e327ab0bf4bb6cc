/* SPDX-License-Identifier: Apache-2.0 */
#include "net/core/workers.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/thread.h"

#define IDLE_NS (60 * NS_PER_S)

struct job {
	void (*work)(void *user);
	void (*done)(void *user);
	void *user;
};

struct worker {
	struct worker *next; /* in workers.idle */
	struct workers *pool;
	pthread_cond_t wake;
	bool assigned;
	struct job job;
};

struct workers {
	pthread_mutex_t lock; /* for all that follows and for the workers */
	pthread_cond_t ended;
	unsigned max;
	unsigned n;
	bool stopping;
	struct worker *idle; /* last in, first out, so that a small load keeps few threads */
};

struct workers *workers_new(unsigned max)
{
	struct workers *w = x_calloc(1, sizeof(*w));

	pthread_mutex_init(&w->lock, NULL);
	pthread_cond_init(&w->ended, NULL);
	w->max = max;
	return w;
}

static void idle_remove(struct workers *pool, const struct worker *me)
{
	struct worker **link = &pool->idle;

	while (*link != me)
		link = &(*link)->next;
	*link = me->next;
}

/* Lock held, except while the job runs. The worker takes the next job before it says that this one is done:
 * otherwise a caller that answers each end with a new job could find all threads busy. */
static void run_job(struct worker *me)
{
	struct workers *pool = me->pool;
	struct job job = me->job;

	pthread_mutex_unlock(&pool->lock);
	job.work(job.user);
	pthread_mutex_lock(&pool->lock);
	me->assigned = false;
	me->next = pool->idle;
	pool->idle = me;
	pthread_mutex_unlock(&pool->lock);
	job.done(job.user);
	pthread_mutex_lock(&pool->lock);
}

/* Lock held. */
static void wait_for_job(struct worker *me)
{
	uint64_t end_ns = clock_ns() + IDLE_NS;
	bool in_time = true;

	while (!me->assigned && !me->pool->stopping && in_time)
		in_time = thread_wait_until(&me->wake, &me->pool->lock, end_ns);
}

static void *worker_main(void *user)
{
	struct worker *me = user;
	struct workers *pool = me->pool;

	pthread_mutex_lock(&pool->lock);
	while (me->assigned) {
		run_job(me);
		wait_for_job(me);
	}
	idle_remove(pool, me);
	pthread_cond_destroy(&me->wake);
	free(me);
	if (--pool->n == 0)
		pthread_cond_signal(&pool->ended);
	pthread_mutex_unlock(&pool->lock);
	return NULL;
}

static struct worker *worker_new(struct workers *pool, struct job job)
{
	struct worker *me = x_calloc(1, sizeof(*me));

	me->pool = pool;
	me->assigned = true;
	me->job = job;
	thread_cond_init(&me->wake);
	return me;
}

/* Lock held. */
static bool worker_start(struct workers *pool, struct job job)
{
	struct worker *me;

	if (pool->n == pool->max)
		return false;
	me = worker_new(pool, job);
	if (thread_start(worker_main, me, /* stack_bytes= */ 0) != 0) {
		pthread_cond_destroy(&me->wake);
		free(me);
		return false;
	}
	pool->n++;
	return true;
}

bool workers_run(struct workers *w, void (*work)(void *user), void (*done)(void *user), void *user)
{
	const struct job job = {work, done, user};
	struct worker *idle;
	bool taken = true;

	pthread_mutex_lock(&w->lock);
	idle = w->idle;
	if (idle) {
		w->idle = idle->next;
		idle->assigned = true;
		idle->job = job;
		pthread_cond_signal(&idle->wake);
	} else {
		taken = worker_start(w, job);
	}
	pthread_mutex_unlock(&w->lock);
	return taken;
}

void workers_usage(struct workers *w, struct workers_usage *ret)
{
	pthread_mutex_lock(&w->lock);
	*ret = (struct workers_usage){.busy = w->n, .max = w->max};
	for (const struct worker *idle = w->idle; idle; idle = idle->next)
		ret->busy--;
	pthread_mutex_unlock(&w->lock);
}

void workers_free(struct workers *w)
{
	if (!w)
		return;
	pthread_mutex_lock(&w->lock);
	w->stopping = true;
	for (struct worker *idle = w->idle; idle; idle = idle->next)
		pthread_cond_signal(&idle->wake);
	while (w->n > 0)
		pthread_cond_wait(&w->ended, &w->lock);
	pthread_mutex_unlock(&w->lock);
	pthread_cond_destroy(&w->ended);
	pthread_mutex_destroy(&w->lock);
	free(w);
}
