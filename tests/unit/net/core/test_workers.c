/* SPDX-License-Identifier: Apache-2.0 */
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>

#include "net/core/loop.h"
#include "net/core/workers.h"
#include "unit/unit.h"

struct job {
	sem_t begun;
	sem_t may_end;
	sem_t done;
	atomic_uint worked;
	atomic_uint finished;
	pthread_t thread;
	bool signals_blocked;
};

static void job_init(struct job *j)
{
	*j = (struct job){0};
	sem_init(&j->begun, 0, 0);
	sem_init(&j->may_end, 0, 0);
	sem_init(&j->done, 0, 0);
}

static void work_and_wait(void *user)
{
	struct job *j = user;
	sigset_t blocked;

	pthread_sigmask(SIG_SETMASK, NULL, &blocked);
	j->signals_blocked = sigismember(&blocked, SIGTERM) == 1;
	j->thread = pthread_self();
	sem_post(&j->begun);
	sem_wait(&j->may_end);
	atomic_fetch_add(&j->worked, 1);
}

static void done(void *user)
{
	struct job *j = user;

	ck_assert_uint_eq(atomic_load(&j->finished) + 1, atomic_load(&j->worked));
	atomic_fetch_add(&j->finished, 1);
	sem_post(&j->done);
}

START_TEST(a_job_runs_on_another_thread_without_signals)
{
	CLEANUP(workers_freep) struct workers *w = workers_new(1);
	struct job j;

	job_init(&j);
	sem_post(&j.may_end);
	ck_assert(workers_run(w, work_and_wait, done, &j));
	sem_wait(&j.done);
	ck_assert(!pthread_equal(j.thread, pthread_self()));
	ck_assert(j.signals_blocked);
}
END_TEST

static void assert_usage(struct workers *w, unsigned busy)
{
	struct workers_usage usage;

	workers_usage(w, &usage);
	ck_assert_uint_eq(usage.busy, busy);
	ck_assert_uint_eq(usage.max, 2);
}

START_TEST(busy_threads_refuse_and_a_free_one_takes_again)
{
	CLEANUP(workers_freep) struct workers *w = workers_new(2);
	struct job a, b, c;

	job_init(&a);
	job_init(&b);
	job_init(&c);
	ck_assert(workers_run(w, work_and_wait, done, &a));
	ck_assert(workers_run(w, work_and_wait, done, &b));
	sem_wait(&a.begun);
	sem_wait(&b.begun);
	ck_assert(!workers_run(w, work_and_wait, done, &c));
	assert_usage(w, 2);
	sem_post(&b.may_end);
	sem_wait(&b.done);
	assert_usage(w, 1);
	ck_assert(workers_run(w, work_and_wait, done, &c));
	sem_post(&a.may_end);
	sem_post(&c.may_end);
	sem_wait(&a.done);
	sem_wait(&c.done);
	ck_assert_uint_eq(atomic_load(&c.worked), 1);
}
END_TEST

START_TEST(who_starts_a_job_for_each_that_is_done_is_never_refused)
{
	CLEANUP(workers_freep) struct workers *w = workers_new(1);
	struct job j;

	job_init(&j);
	for (unsigned i = 0; i < 20000; i++) {
		sem_post(&j.may_end);
		ck_assert_msg(workers_run(w, work_and_wait, done, &j), "refused job %u", i);
		sem_wait(&j.done);
	}
	ck_assert_uint_eq(atomic_load(&j.finished), 20000);
}
END_TEST

START_TEST(an_idle_thread_is_used_before_a_new_one_is_made)
{
	CLEANUP(workers_freep) struct workers *w = workers_new(8);
	pthread_t first;
	struct job j;

	job_init(&j);
	sem_post(&j.may_end);
	ck_assert(workers_run(w, work_and_wait, done, &j));
	sem_wait(&j.done);
	first = j.thread;
	sem_post(&j.may_end);
	ck_assert(workers_run(w, work_and_wait, done, &j));
	sem_wait(&j.done);
	ck_assert(pthread_equal(first, j.thread));
}
END_TEST

static void *let_end(void *user)
{
	struct job *j = user;

	sem_wait(&j->begun);
	sem_post(&j->may_end);
	return NULL;
}

START_TEST(free_waits_for_running_jobs)
{
	struct workers *w = workers_new(2);
	pthread_t helper;
	struct job j;

	job_init(&j);
	ck_assert(workers_run(w, work_and_wait, done, &j));
	ck_assert_int_eq(pthread_create(&helper, NULL, let_end, &j), 0);
	workers_free(w);
	ck_assert_uint_eq(atomic_load(&j.finished), 1);
	pthread_join(helper, NULL);
}
END_TEST

START_TEST(free_takes_null_and_an_unused_pool)
{
	workers_free(NULL);
	workers_free(workers_new(3));
}
END_TEST

#define N_CALLS 4000

/* Calls as a server has them: begun on the loop, worked on by a thread, ended on the loop again. */
struct calls {
	struct loop *loop;
	struct workers *workers;
	unsigned begun;
	unsigned ended;
	unsigned refused;
};

struct one_call {
	struct calls *all;
	unsigned number;
	unsigned result;
};

static void begin_call(struct one_call *c);

static void double_number(void *user)
{
	struct one_call *c = user;

	c->result = 2 * c->number;
}

static void on_doubled(void *user)
{
	struct one_call *c = user;

	ck_assert_uint_eq(c->result, 2 * c->number);
	c->all->ended++;
	loop_release(c->all->loop);
	begin_call(c);
}

static void post_doubled(void *user)
{
	struct one_call *c = user;

	loop_post(c->all->loop, on_doubled, c);
}

static void begin_call(struct one_call *c)
{
	struct calls *all = c->all;

	if (all->begun == N_CALLS)
		return;
	c->number = all->begun++;
	if (!workers_run(all->workers, double_number, post_doubled, c)) {
		all->refused++;
		return;
	}
	loop_hold(all->loop);
}

START_TEST(calls_go_to_threads_and_come_back_to_the_loop)
{
	CLEANUP(error_freep) struct error *err = NULL;
	struct calls all = {.workers = workers_new(4)};
	struct one_call calls[5];

	ASSERT_OK(loop_new(&all.loop, &err));
	for (size_t i = 0; i < ARRAY_SIZE(calls); i++) {
		calls[i] = (struct one_call){.all = &all};
		begin_call(&calls[i]);
	}
	loop_run(all.loop);
	ck_assert_uint_eq(all.begun, N_CALLS);
	ck_assert_uint_eq(all.ended + all.refused, N_CALLS);
	ck_assert_uint_le(all.refused, 1);
	workers_free(all.workers);
	loop_free(all.loop);
}
END_TEST

UNIT_MAIN("workers", a_job_runs_on_another_thread_without_signals,
	busy_threads_refuse_and_a_free_one_takes_again,
	who_starts_a_job_for_each_that_is_done_is_never_refused,
	an_idle_thread_is_used_before_a_new_one_is_made, free_waits_for_running_jobs,
	free_takes_null_and_an_unused_pool, calls_go_to_threads_and_come_back_to_the_loop)
