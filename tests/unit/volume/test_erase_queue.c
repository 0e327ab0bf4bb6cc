/* SPDX-License-Identifier: Apache-2.0 */
/* The queue of volumes to erase: order, how many at once, retries, the limit, and the end. */
#include "volume/erase_queue.h"

#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"
#include "unit/unit.h"

#define MIB(n) ((uint64_t)(n) << 20)
#define N_MANY 10

static struct erase_queue *queue;
static sem_t begun; /* an erasure was begun */
static sem_t going; /* what erasures wait for, if they are to be held */
static atomic_uint n_begun;
static atomic_uint n_at_once;
static atomic_uint most_at_once;
static atomic_uint n_to_fail;

static void set_up(void)
{
	sem_init(&begun, 0, 0);
	sem_init(&going, 0, 0);
}

static void tear_down(void)
{
	erase_queue_free(queue);
}

static void start(struct erase_queue_config config)
{
	queue = erase_queue_new(&config);
}

static void add(const char *id)
{
	struct error *err = NULL;

	ASSERT_OK(erase_queue_add(queue, id, /* claim= */ NULL, &err));
}

static void note_begin(void)
{
	unsigned now = ++n_at_once;
	unsigned most = most_at_once;

	while (now > most && !atomic_compare_exchange_weak(&most_at_once, &most, now))
		;
	n_begun++;
	sem_post(&begun);
}

static int erase_at_once(
	void *user, const char *id, struct erase_claim *claim, struct erasure *e, struct error **err)
{
	(void)user;
	(void)claim;
	(void)e;
	note_begin();
	n_at_once--;
	if (n_to_fail == 0)
		return 0;
	n_to_fail--;
	return err_set(err, ERR_INTERNAL, "%s fails as the test wants it", id);
}

static int erase_when_let_go(
	void *user, const char *id, struct erase_claim *claim, struct erasure *e, struct error **err)
{
	(void)user;
	(void)id;
	(void)claim;
	(void)e;
	(void)err;
	note_begin();
	sem_wait(&going);
	n_at_once--;
	return 0;
}

/* Ends only when it has to stop. */
static int erase_for_ever(
	void *user, const char *id, struct erase_claim *claim, struct erasure *e, struct error **err)
{
	uint64_t bytes;

	(void)user;
	(void)id;
	(void)claim;
	note_begin();
	while (erasure_turn(e, MIB(1024), &bytes, err) == 0)
		erasure_note(e, MIB(64), bytes);
	return -1;
}

static void await(sem_t *s, unsigned n)
{
	while (n-- > 0)
		sem_wait(s);
}

START_TEST(volumes_are_erased_without_being_waited_for)
{
	start((struct erase_queue_config){.erase = erase_when_let_go});
	add("a");
	await(&begun, 1);
	sem_post(&going);
	add("b");
	await(&begun, 1);
	sem_post(&going);
}
END_TEST

START_TEST(at_most_four_are_erased_at_once_and_in_the_end_all)
{
	char id[16];

	start((struct erase_queue_config){.erase = erase_when_let_go});
	for (int i = 0; i < N_MANY; i++) {
		snprintf(id, sizeof(id), "v%d", i);
		add(id);
	}
	await(&begun, ERASE_QUEUE_THREADS);
	ck_assert_uint_eq(n_begun, ERASE_QUEUE_THREADS);
	for (int i = 0; i < N_MANY; i++)
		sem_post(&going);
	await(&begun, N_MANY - ERASE_QUEUE_THREADS);
	ck_assert_uint_eq(most_at_once, ERASE_QUEUE_THREADS);
}
END_TEST

START_TEST(volume_that_waits_or_is_being_erased_is_not_added_twice)
{
	struct erase_queue_counts counts;

	start((struct erase_queue_config){.erase = erase_when_let_go});
	for (int i = 0; i < 3; i++)
		add("a");
	await(&begun, 1);
	add("a");
	add("b");
	await(&begun, 1);
	erase_queue_count(queue, &counts);
	ck_assert_uint_eq(counts.n_running, 2);
	sem_post(&going);
	sem_post(&going);
	erase_queue_free(queue);
	queue = NULL;
	ck_assert_uint_eq(n_begun, 2);
}
END_TEST

START_TEST(what_fails_is_tried_again_until_it_succeeds)
{
	n_to_fail = 5;
	start((struct erase_queue_config){.erase = erase_at_once, .retry_ms = 1});
	add("a");
	await(&begun, 6);
}
END_TEST

START_TEST(what_failed_is_tried_at_once_when_it_is_added_again)
{
	n_to_fail = 1;
	start((struct erase_queue_config){.erase = erase_at_once, .retry_ms = 1000000});
	add("a");
	await(&begun, 1);
	while (n_begun < 2)
		add("a");
}
END_TEST

static size_t count_lines(const char *path, const char *text)
{
	CLEANUP(file_closep) FILE *f = fopen(path, "re");
	char line[512];
	size_t n = 0;

	ck_assert_ptr_nonnull(f);
	while (fgets(line, sizeof(line), f))
		n += strstr(line, text) != NULL;
	return n;
}

START_TEST(failure_is_logged_once_for_each_reason)
{
	char path[] = "/tmp/pmem-eraser-XXXXXX";
	int log = mkstemp(path);

	ck_assert_int_ge(log, 0);
	ck_assert_int_ge(dup2(log, STDERR_FILENO), 0);
	close(log);
	n_to_fail = 5;
	start((struct erase_queue_config){.erase = erase_at_once, .retry_ms = 1});
	add("a");
	await(&begun, 6);
	ck_assert_uint_eq(count_lines(path, "could not be erased"), 1);
	ck_assert_uint_eq(count_lines(path, "a fails as the test wants it"), 1);
	n_to_fail = 2;
	add("b");
	await(&begun, 3);
	ck_assert_uint_eq(count_lines(path, "could not be erased"), 2);
	unlink(path);
}
END_TEST

START_TEST(stopping_ends_what_waits_for_its_turn)
{
	struct erase_queue_counts counts;

	start((struct erase_queue_config){.erase = erase_for_ever, .bytes_per_s = 1});
	add("a");
	add("b");
	await(&begun, 2);
	/* 64 KiB, then nothing for a day: whoever came second has not had its turn */
	do
		erase_queue_count(queue, &counts);
	while (counts.erased_bytes == 0);
	ck_assert_uint_eq(counts.erased_bytes, 64 << 10);
	ck_assert(!erase_queue_is_stopping(queue));
	erase_queue_stop(queue);
	ck_assert(erase_queue_is_stopping(queue));
	add("c");
	erase_queue_free(queue);
	queue = NULL;
	ck_assert_uint_eq(n_begun, 2);
}
END_TEST

static int take_claim(
	void *user, const char *id, struct erase_claim *claim, struct erasure *e, struct error **err)
{
	(void)id;
	(void)e;
	(void)err;
	ck_assert_int_eq(claim->fd, *(const int *)user);
	ck_assert_ptr_nonnull(claim->lock);
	note_begin();
	return 0;
}

static bool is_wanted(void *user, const char *id)
{
	(void)user;
	(void)id;
	return true;
}

static bool is_locked(struct volume_locks *locks, const char *id)
{
	struct volume_lock *lock = NULL;

	if (!volume_lock_if(locks, id, is_wanted, NULL, &lock))
		return true;
	volume_unlock(lock);
	return false;
}

static struct erase_claim claim_of(struct volume_locks *locks, const char *id)
{
	struct erase_claim claim = {.fd = open("/dev/null", O_RDONLY | O_CLOEXEC)};
	struct error *err = NULL;

	ASSERT_OK(volume_lock(locks, id, 0, &claim.lock, &err));
	return claim;
}

/* The volume "slow" has a limit of its own. */
static int erase_with_own_limit(
	void *user, const char *id, struct erase_claim *claim, struct erasure *e, struct error **err)
{
	erasure_limit(e, id[0] == 's' ? 1 : 0);
	return erase_for_ever(user, id, claim, e, err);
}

START_TEST(a_limit_of_its_own_holds_one_volume_up_and_no_other)
{
	struct erase_queue_counts counts;

	start((struct erase_queue_config){.erase = erase_with_own_limit});
	add("slow");
	await(&begun, 1);
	do
		erase_queue_count(queue, &counts);
	while (counts.erased_bytes == 0);
	ck_assert_uint_eq(counts.erased_bytes, 64 << 10);
	add("fast");
	do
		erase_queue_count(queue, &counts);
	while (counts.erased_bytes < MIB(1024));
	/* 64 KiB of one, and whole pieces of the other */
	ck_assert_uint_eq(counts.erased_bytes % MIB(64), 64 << 10);
	erase_queue_stop(queue);
}
END_TEST

/* The queue's is the smaller one: it holds up whatever has a larger limit. */
START_TEST(the_limit_of_the_queue_counts_beside_that_of_a_volume)
{
	struct erase_queue_counts counts;

	start((struct erase_queue_config){.erase = erase_with_own_limit, .bytes_per_s = 1});
	add("fast");
	await(&begun, 1);
	do
		erase_queue_count(queue, &counts);
	while (counts.erased_bytes == 0);
	ck_assert_uint_eq(counts.erased_bytes, 64 << 10);
	erase_queue_stop(queue);
}
END_TEST

START_TEST(claim_is_handed_on_and_let_go_afterwards)
{
	struct volume_locks *locks = volume_locks_new();
	struct erase_claim claim = claim_of(locks, "a");
	struct error *err = NULL;
	int fd = claim.fd;

	start((struct erase_queue_config){.erase = take_claim, .user = &fd});
	ASSERT_OK(erase_queue_add(queue, "a", &claim, &err));
	ck_assert_int_eq(claim.fd, -1);
	ck_assert_ptr_null(claim.lock);
	await(&begun, 1);
	erase_queue_free(queue);
	queue = NULL;
	ck_assert(!is_locked(locks, "a"));
	ck_assert_int_eq(fcntl(fd, F_GETFD), -1);
	volume_locks_free(locks);
}
END_TEST

static int erase_claimed(
	void *user, const char *id, struct erase_claim *claim, struct erasure *e, struct error **err)
{
	note_begin();
	if (!claim->lock)
		return err_set(err, ERR_INTERNAL, "%s fails as the test wants it", id);
	*(bool *)user = erasure_is_retry(e);
	return 0;
}

/* The queue keeps one job per volume, and the claim goes to it: a second job would hold the lock for which
 * the first one waits. */
START_TEST(claim_goes_to_the_job_that_waits_already)
{
	struct volume_locks *locks = volume_locks_new();
	struct erase_claim claim = claim_of(locks, "a");
	struct error *err = NULL;
	bool same_job = false;

	start((struct erase_queue_config){.erase = erase_claimed, .user = &same_job, .in_call = true});
	ASSERT_FAILS(erase_queue_add(queue, "a", NULL, &err), ERR_INTERNAL, "a fails");
	ASSERT_OK(erase_queue_add(queue, "a", &claim, &err));
	ck_assert_uint_eq(n_begun, 2);
	ck_assert(same_job);
	ck_assert(!is_locked(locks, "a"));
	volume_locks_free(locks);
}
END_TEST

START_TEST(claim_of_what_was_not_begun_is_let_go_at_the_end)
{
	struct volume_locks *locks = volume_locks_new();
	struct erase_claim claim = claim_of(locks, "a");
	struct error *err = NULL;
	int fd = claim.fd;

	start((struct erase_queue_config){.erase = take_claim, .user = &fd});
	erase_queue_stop(queue);
	ASSERT_OK(erase_queue_add(queue, "a", &claim, &err));
	ck_assert(is_locked(locks, "a"));
	erase_queue_free(queue);
	queue = NULL;
	ck_assert(!is_locked(locks, "a"));
	ck_assert_int_eq(fcntl(fd, F_GETFD), -1);
	ck_assert_uint_eq(n_begun, 0);
	volume_locks_free(locks);
}
END_TEST

START_TEST(few_of_those_that_wait_hold_anything)
{
	struct volume_locks *locks = volume_locks_new();
	struct error *err = NULL;
	char id[16];
	size_t n_locked = 0;

	start((struct erase_queue_config){.erase = erase_when_let_go});
	erase_queue_stop(queue);
	for (int i = 0; i < 200; i++) {
		snprintf(id, sizeof(id), "v%d", i);
		struct erase_claim claim = claim_of(locks, id);
		ASSERT_OK(erase_queue_add(queue, id, &claim, &err));
		ck_assert_int_eq(claim.fd, -1);
		n_locked += is_locked(locks, id);
	}
	ck_assert_uint_eq(n_locked, 64);
	erase_queue_free(queue);
	queue = NULL;
	volume_locks_free(locks);
}
END_TEST

START_TEST(without_threads_the_caller_erases_and_hears_of_failures)
{
	struct error *err = NULL;

	n_to_fail = 1;
	start((struct erase_queue_config){.erase = erase_at_once, .in_call = true});
	ASSERT_FAILS(erase_queue_add(queue, "a", NULL, &err), ERR_INTERNAL, "a fails");
	ck_assert_uint_eq(n_begun, 1);
	ASSERT_OK(erase_queue_add(queue, "a", NULL, &err));
	ck_assert_uint_eq(n_begun, 2);
	ck_assert_uint_eq(erase_queue_done_bytes(queue, "a"), 0);
}
END_TEST

int main(void)
{
	static const TTest *const *tests[] = {&volumes_are_erased_without_being_waited_for,
		&at_most_four_are_erased_at_once_and_in_the_end_all,
		&volume_that_waits_or_is_being_erased_is_not_added_twice,
		&what_fails_is_tried_again_until_it_succeeds,
		&what_failed_is_tried_at_once_when_it_is_added_again, &failure_is_logged_once_for_each_reason,
		&stopping_ends_what_waits_for_its_turn, &a_limit_of_its_own_holds_one_volume_up_and_no_other,
		&the_limit_of_the_queue_counts_beside_that_of_a_volume,
		&claim_is_handed_on_and_let_go_afterwards, &claim_goes_to_the_job_that_waits_already,
		&claim_of_what_was_not_begun_is_let_go_at_the_end, &few_of_those_that_wait_hold_anything,
		&without_threads_the_caller_erases_and_hears_of_failures};
	Suite *suite = suite_create("erase_queue");
	TCase *tcase = tcase_create("erase_queue");

	suite_add_tcase(suite, tcase);
	tcase_add_checked_fixture(tcase, set_up, tear_down);
	for (size_t i = 0; i < ARRAY_SIZE(tests); i++)
		tcase_add_test(tcase, *tests[i]);
	return unit_runner_finish(srunner_create(suite));
}
