/* SPDX-License-Identifier: Apache-2.0 */
#include "net/core/handshakes.h"

#include <stdlib.h>

#include "base/mem.h"
#include "net/core/workers.h"
#include "net/limits.h"

struct queue {
	struct handshake *first;
	struct handshake **last;
};

/* All of it is the loop thread's. */
struct handshakes {
	struct loop *loop;
	struct workers *workers;
	struct queue begun; /* handshakes that wait for a further step: they go first, so that the work
			     * done for them is not lost */
	struct queue fresh; /* those that wait for their first step */
	struct handshake *running;
	unsigned n_running;
	unsigned n_waiting;
};

struct handshakes *handshakes_new(struct loop *loop)
{
	struct handshakes *h = x_calloc(1, sizeof(*h));

	h->loop = loop;
	h->workers = workers_new(LIMIT_HANDSHAKE_THREADS);
	h->begun.last = &h->begun.first;
	h->fresh.last = &h->fresh.first;
	return h;
}

static void end_all(struct handshake *job)
{
	struct handshake *next;

	for (; job; job = next) {
		next = job->next;
		job->done(job->user);
	}
}

void handshakes_free(struct handshakes *h)
{
	if (!h)
		return;
	/* Completions that the threads post until they have ended are not run any more. */
	workers_free(h->workers);
	end_all(h->running);
	end_all(h->begun.first);
	end_all(h->fresh.first);
	free(h);
}

static void work(void *user)
{
	struct handshake *job = user;

	/* The error of a failure is kept in the job. */
	if (tls_handshake(job->tls, &job->in, &job->out, &job->complete, &job->error) < 0)
		return;
}

static void on_worked(void *user);

static void post_worked(void *user)
{
	struct handshake *job = user;

	loop_post(job->owner->loop, on_worked, job);
}

static void start(struct handshakes *h, struct handshake *job)
{
	h->n_running++;
	job->next = h->running;
	h->running = job;
	if (workers_run(h->workers, work, post_worked, job))
		return;
	/* There are as many threads as steps may run: the system gives none. */
	err_set(&job->error, ERR_UNAVAILABLE, "TLS handshake: no thread can be started");
	post_worked(job);
}

static struct handshake *queue_take(struct queue *q)
{
	struct handshake *job = q->first;

	if (!job)
		return NULL;
	q->first = job->next;
	if (!q->first)
		q->last = &q->first;
	return job;
}

static void start_next(struct handshakes *h)
{
	struct handshake *job = queue_take(&h->begun);

	if (!job)
		job = queue_take(&h->fresh);
	if (!job)
		return;
	h->n_waiting--;
	start(h, job);
}

static void on_worked(void *user)
{
	struct handshake *job = user;
	struct handshakes *h = job->owner;
	struct handshake **link = &h->running;

	while (*link != job)
		link = &(*link)->next;
	*link = job->next;
	h->n_running--;
	loop_release(h->loop);
	start_next(h);
	job->done(job->user);
}

void handshakes_step(struct handshakes *h, struct handshake *job)
{
	struct queue *q = job->owner ? &h->begun : &h->fresh;

	job->owner = h;
	job->next = NULL;
	loop_hold(h->loop);
	if (h->n_running < LIMIT_HANDSHAKE_THREADS) {
		start(h, job);
		return;
	}
	*q->last = job;
	q->last = &job->next;
	h->n_waiting++;
}

unsigned handshakes_waiting(const struct handshakes *h)
{
	return h->n_waiting;
}

static bool queue_remove(struct queue *q, struct handshake *job)
{
	struct handshake **link = &q->first;

	while (*link && *link != job)
		link = &(*link)->next;
	if (!*link)
		return false;
	*link = job->next;
	if (!*link)
		q->last = link;
	return true;
}

bool handshakes_cancel(struct handshake *job)
{
	struct handshakes *h = job->owner;

	if (!queue_remove(&h->begun, job) && !queue_remove(&h->fresh, job))
		return false;
	h->n_waiting--;
	loop_release(h->loop);
	return true;
}
