/* SPDX-License-Identifier: Apache-2.0 */
#include "volume/erase_queue.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/thread.h"
#include "pacing/erase_limit.h"

#define FIRST_RETRY_MS 1000
#define RETRY_MAX_MS   30000
/* Descriptors that waiting volumes may hold: the others are claimed again when it is their turn. */
#define MAX_CLAIMS 64

struct erasure {
	struct erasure *next;
	struct erase_queue *queue;
	char *id;
	struct erase_claim claim;
	uint64_t due_ns;
	unsigned failures;
	char *reason; /* of the last failure, as it was logged */
	bool running;
	struct erase_limit own; /* of this volume, beside the queue's */
	uint64_t done_bytes;
};

struct erase_queue {
	struct erase_queue_config config;
	pthread_mutex_t mutex;  /* for all that follows */
	pthread_cond_t changed; /* there is something to do, to stop for, or a thread ended */
	struct erasure *first;  /* in the order in which they came */
	struct erasure **last;
	struct erase_limit limit;
	uint64_t erased_bytes;
	unsigned n_threads;
	unsigned n_running;
	unsigned n_claims; /* held by those that wait */
	bool watched;      /* a thread waits for the next retry to be due */
	bool stopping;
};

void erase_claim_done(struct erase_claim *c)
{
	fd_closep(&c->fd);
	volume_unlock(c->lock);
	*c = ERASE_CLAIM_NONE;
}

struct erase_queue *erase_queue_new(const struct erase_queue_config *config)
{
	struct erase_queue *e = x_calloc(1, sizeof(*e));

	e->config = *config;
	if (e->config.retry_ms == 0)
		e->config.retry_ms = FIRST_RETRY_MS;
	e->limit.bytes_per_s = config->bytes_per_s;
	e->last = &e->first;
	pthread_mutex_init(&e->mutex, NULL);
	thread_cond_init(&e->changed);
	return e;
}

void erase_queue_stop(struct erase_queue *e)
{
	pthread_mutex_lock(&e->mutex);
	e->stopping = true;
	pthread_cond_broadcast(&e->changed);
	pthread_mutex_unlock(&e->mutex);
}

bool erase_queue_is_stopping(struct erase_queue *e)
{
	pthread_mutex_lock(&e->mutex);
	bool stopping = e->stopping;
	pthread_mutex_unlock(&e->mutex);
	return stopping;
}

static void erasure_free(struct erasure *job)
{
	erase_claim_done(&job->claim);
	free(job->id);
	free(job->reason);
	free(job);
}

void erase_queue_free(struct erase_queue *e)
{
	if (!e)
		return;
	erase_queue_stop(e);
	pthread_mutex_lock(&e->mutex);
	while (e->n_threads > 0)
		pthread_cond_wait(&e->changed, &e->mutex);
	pthread_mutex_unlock(&e->mutex);
	for (struct erasure *job = e->first, *next; job; job = next) {
		next = job->next;
		erasure_free(job);
	}
	pthread_cond_destroy(&e->changed);
	pthread_mutex_destroy(&e->mutex);
	free(e);
}

/* The mutex is held by the callers of the following functions. */

static struct erasure *find(const struct erase_queue *e, const char *id)
{
	struct erasure *job = e->first;

	while (job && !str_eq(job->id, id))
		job = job->next;
	return job;
}

/* Finds a job for @id that waits and has no claim. A running job may be at the end of erasing a former volume
 * of that ID, and a job that has a claim needs no other. */
static struct erasure *find_unclaimed(const struct erase_queue *e, const char *id)
{
	struct erasure *job = e->first;

	while (job && (!str_eq(job->id, id) || job->running || job->claim.lock || job->claim.fd >= 0))
		job = job->next;
	return job;
}

static struct erasure *append(struct erase_queue *e, const char *id)
{
	struct erasure *job = x_calloc(1, sizeof(*job));

	job->queue = e;
	job->id = x_strdup(id);
	job->claim = ERASE_CLAIM_NONE;
	*e->last = job;
	e->last = &job->next;
	return job;
}

static void unlink_job(struct erase_queue *e, const struct erasure *job)
{
	struct erasure **link = &e->first;

	while (*link != job)
		link = &(*link)->next;
	*link = job->next;
	if (e->last == &job->next)
		e->last = link;
}

static struct erase_claim take_claim(struct erase_queue *e, struct erasure *job)
{
	struct erase_claim claim = job->claim;

	if (claim.lock || claim.fd >= 0)
		e->n_claims--;
	job->claim = ERASE_CLAIM_NONE;
	return claim;
}

static void give_claim(struct erase_queue *e, struct erasure *job, struct erase_claim *claim)
{
	if (e->n_claims == MAX_CLAIMS)
		return;
	job->claim = *claim;
	*claim = ERASE_CLAIM_NONE;
	e->n_claims++;
}

static void postpone(const struct erase_queue *e, struct erasure *job)
{
	uint64_t wait_ms = e->config.retry_ms;

	for (unsigned i = 0; i < job->failures && wait_ms < RETRY_MAX_MS; i++)
		wait_ms *= 2;
	job->failures++;
	job->due_ns = clock_ns() + (wait_ms < RETRY_MAX_MS ? wait_ms : RETRY_MAX_MS) * NS_PER_MS;
}

/* Only when the reason is another one than before: it may last for days. Without the mutex: the log may
 * block. */
static void tell_failure(struct erase_queue *e, struct erasure *job, const struct error *err)
{
	if (e->config.in_call || str_eq(job->reason, err->msg) || erase_queue_is_stopping(e))
		return;
	free(job->reason);
	job->reason = x_strdup(err->msg);
	log_warn("deleted volume could not be erased, will be tried again", F_STR("volume", job->id),
		F_ERR(err));
}

/* The mutex is released while @job runs. */
static int run(struct erase_queue *e, struct erasure *job, struct error **err)
{
	struct erase_claim claim = take_claim(e, job);

	job->running = true;
	e->n_running++;
	pthread_mutex_unlock(&e->mutex);
	int rc = e->config.erase(e->config.user, job->id, &claim, job, err);
	erase_claim_done(&claim);
	if (rc < 0)
		tell_failure(e, job, *err);
	pthread_mutex_lock(&e->mutex);
	e->n_running--;
	job->running = false;
	if (rc < 0) {
		postpone(e, job);
		return -1;
	}
	unlink_job(e, job);
	erasure_free(job);
	return 0;
}

static struct erasure *find_due(const struct erase_queue *e)
{
	uint64_t now_ns = clock_ns();
	struct erasure *job = e->stopping ? NULL : e->first;

	while (job && (job->running || job->due_ns > now_ns))
		job = job->next;
	return job;
}

/* Return: whether there may be something to do now; false: this thread is not needed. */
static bool wait_for_retry(struct erase_queue *e)
{
	uint64_t due_ns = UINT64_MAX;

	for (const struct erasure *job = e->first; job; job = job->next) {
		if (!job->running && job->due_ns < due_ns)
			due_ns = job->due_ns;
	}
	if (e->stopping || e->watched || due_ns == UINT64_MAX)
		return false;
	e->watched = true;
	(void)thread_wait_until(&e->changed, &e->mutex, due_ns);
	e->watched = false;
	return true;
}

static void *thread_main(void *user)
{
	struct erase_queue *e = user;

	pthread_mutex_lock(&e->mutex);
	for (;;) {
		CLEANUP(error_freep) struct error *ignored = NULL; /* it is logged */
		struct erasure *job = find_due(e);

		if (job)
			(void)!run(e, job, &ignored);
		else if (!wait_for_retry(e))
			break;
	}
	e->n_threads--;
	pthread_cond_broadcast(&e->changed);
	pthread_mutex_unlock(&e->mutex);
	return NULL;
}

/* Without a thread it is done when one of the others is free, or when the volume is added again. */
static void start_thread(struct erase_queue *e)
{
	int why = thread_start(thread_main, e, /* stack_bytes= */ 0);

	if (why == 0)
		e->n_threads++;
	else
		log_debug("no thread could be started for erasing", F_U64("errno", (uint64_t)why));
}

static int begin(struct erase_queue *e, struct erasure *job, struct error **err)
{
	if (job->running || e->stopping)
		return 0;
	if (e->config.in_call)
		return run(e, job, err);
	job->due_ns = 0;
	if (e->n_threads < ERASE_QUEUE_THREADS)
		start_thread(e);
	else
		pthread_cond_broadcast(&e->changed);
	return 0;
}

int erase_queue_add(struct erase_queue *e, const char *id, struct erase_claim *claim, struct error **err)
{
	pthread_mutex_lock(&e->mutex);
	/* a volume may be added again, or by a refresh, before its claim is handed on */
	struct erasure *job = claim ? find_unclaimed(e, id) : find(e, id);
	if (!job)
		job = append(e, id);
	if (claim)
		give_claim(e, job, claim);
	int rc = begin(e, job, err);
	pthread_mutex_unlock(&e->mutex);
	/* not under the mutex: locks of volumes have one of their own */
	if (claim)
		erase_claim_done(claim);
	return rc;
}

/* The caller has the mutex, which is released while it waits. */
static void wait_for_turn(struct erase_queue *e, struct erase_limit *limit, uint64_t bytes)
{
	uint64_t begin_ns = e->stopping ? 0 : erase_limit_reserve(limit, clock_ns(), bytes);

	while (!e->stopping && clock_ns() < begin_ns)
		(void)thread_wait_until(&e->changed, &e->mutex, begin_ns);
}

/* The turn in the queue comes second, so that no time of the others is reserved for a volume that waits for
 * its own. */
int erasure_turn(struct erasure *job, uint64_t left_bytes, uint64_t *ret_bytes, struct error **err)
{
	struct erase_queue *e = job->queue;
	uint64_t bytes = erase_limit_piece(&e->limit, erase_limit_piece(&job->own, left_bytes));

	pthread_mutex_lock(&e->mutex);
	wait_for_turn(e, &job->own, bytes);
	wait_for_turn(e, &e->limit, bytes);
	bool stopping = e->stopping;
	pthread_mutex_unlock(&e->mutex);
	if (stopping)
		return err_set(err, ERR_UNAVAILABLE, "the driver is stopping");
	*ret_bytes = bytes;
	return 0;
}

/* Counted by the thread that runs the erasure. */
bool erasure_is_retry(const struct erasure *job)
{
	return job->failures > 0;
}

/* Read by the thread that runs the erasure, too, and by no other. */
void erasure_limit(struct erasure *job, uint64_t bytes_per_s)
{
	job->own.bytes_per_s = bytes_per_s;
}

void erasure_note(struct erasure *job, uint64_t done_bytes, uint64_t written_bytes)
{
	pthread_mutex_lock(&job->queue->mutex);
	job->done_bytes = done_bytes;
	job->queue->erased_bytes += written_bytes;
	pthread_mutex_unlock(&job->queue->mutex);
}

void erase_queue_count(struct erase_queue *e, struct erase_queue_counts *ret)
{
	pthread_mutex_lock(&e->mutex);
	*ret = (struct erase_queue_counts){.n_running = e->n_running, .erased_bytes = e->erased_bytes};
	pthread_mutex_unlock(&e->mutex);
}

uint64_t erase_queue_done_bytes(struct erase_queue *e, const char *id)
{
	pthread_mutex_lock(&e->mutex);
	const struct erasure *job = find(e, id);
	uint64_t done = job ? job->done_bytes : 0;
	pthread_mutex_unlock(&e->mutex);
	return done;
}
