/* SPDX-License-Identifier: Apache-2.0 */
#include "pmem/bounded_lock.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/thread.h"

void bounded_lock_init(struct bounded_lock *l)
{
	*l = (struct bounded_lock){0};
	pthread_mutex_init(&l->mutex, NULL);
	thread_cond_init(&l->ended);
}

void bounded_lock_done(struct bounded_lock *l)
{
	pthread_cond_destroy(&l->ended);
	pthread_mutex_destroy(&l->mutex);
}

/* The caller holds the mutex, which is released while it waits. An operation that has held the lock for
 * @wait_ns is taken to hang. */
static bool wait_locked(struct bounded_lock *l, uint64_t wait_ns)
{
	uint64_t deadline_ns = clock_ns() + wait_ns;

	while (l->busy) {
		uint64_t hangs_ns = l->since_ns + wait_ns;
		uint64_t until_ns = hangs_ns < deadline_ns ? hangs_ns : deadline_ns;

		if (clock_ns() >= until_ns)
			return false;
		(void)thread_wait_until(&l->ended, &l->mutex, until_ns);
	}
	return true;
}

static int take_locked(struct bounded_lock *l, const char *step, uint64_t wait_ns, struct error **err)
{
	if (!wait_locked(l, wait_ns))
		return err_set(err, ERR_UNAVAILABLE, "gave up waiting: \"%s\" has been running for %ju s",
			l->current_step, (uintmax_t)((clock_ns() - l->since_ns) / NS_PER_S));
	l->busy = true;
	l->since_ns = clock_ns();
	snprintf(l->current_step, sizeof(l->current_step), "%s", step);
	return 0;
}

int bounded_lock_take(
	struct bounded_lock *l, const char *step, int wait_ms, struct bounded_lock **ret, struct error **err)
{
	pthread_mutex_lock(&l->mutex);
	int rc = take_locked(l, step, (uint64_t)wait_ms * NS_PER_MS, err);
	pthread_mutex_unlock(&l->mutex);
	if (rc == 0)
		*ret = l;
	return rc;
}

void bounded_lock_release(struct bounded_lock *l)
{
	if (!l)
		return;
	pthread_mutex_lock(&l->mutex);
	l->busy = false;
	l->current_step[0] = '\0';
	pthread_cond_signal(&l->ended);
	pthread_mutex_unlock(&l->mutex);
}

uint64_t bounded_lock_current_step(struct bounded_lock *l, char ret_step[static BOUNDED_LOCK_STEP_MAX])
{
	pthread_mutex_lock(&l->mutex);
	memcpy(ret_step, l->current_step, BOUNDED_LOCK_STEP_MAX);
	uint64_t since_ns = l->since_ns;
	pthread_mutex_unlock(&l->mutex);
	return since_ns;
}
