/* SPDX-License-Identifier: Apache-2.0 */
#include "base/turn.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/thread.h"

void turn_init(struct turn *t)
{
	*t = (struct turn){0};
	pthread_mutex_init(&t->mutex, NULL);
	thread_cond_init(&t->ended);
}

void turn_done(struct turn *t)
{
	pthread_cond_destroy(&t->ended);
	pthread_mutex_destroy(&t->mutex);
}

/* The caller holds the mutex, which is released while it waits. What has gone on for @wait_ns is taken to
 * hang. */
static bool wait_locked(struct turn *t, uint64_t wait_ns)
{
	uint64_t deadline_ns = clock_ns() + wait_ns;

	while (t->busy) {
		uint64_t hangs_ns = t->since_ns + wait_ns;
		uint64_t until_ns = hangs_ns < deadline_ns ? hangs_ns : deadline_ns;

		if (clock_ns() >= until_ns)
			return false;
		(void)thread_wait_until(&t->ended, &t->mutex, until_ns);
	}
	return true;
}

static int take_locked(struct turn *t, const char *step, uint64_t wait_ns, struct error **err)
{
	if (!wait_locked(t, wait_ns))
		return err_set(err, ERR_UNAVAILABLE, "gave up waiting: \"%s\" has been running for %ju s",
			t->current_step, (uintmax_t)((clock_ns() - t->since_ns) / NS_PER_S));
	t->busy = true;
	t->since_ns = clock_ns();
	snprintf(t->current_step, sizeof(t->current_step), "%s", step);
	return 0;
}

int turn_take(struct turn *t, const char *step, int wait_ms, struct turn **ret, struct error **err)
{
	pthread_mutex_lock(&t->mutex);
	int rc = take_locked(t, step, (uint64_t)wait_ms * NS_PER_MS, err);
	pthread_mutex_unlock(&t->mutex);
	if (rc == 0)
		*ret = t;
	return rc;
}

void turn_end(struct turn *t)
{
	if (!t)
		return;
	pthread_mutex_lock(&t->mutex);
	t->busy = false;
	t->current_step[0] = '\0';
	pthread_cond_signal(&t->ended);
	pthread_mutex_unlock(&t->mutex);
}

uint64_t turn_look(struct turn *t, char ret_step[static TURN_TEXT_MAX])
{
	pthread_mutex_lock(&t->mutex);
	memcpy(ret_step, t->current_step, TURN_TEXT_MAX);
	uint64_t since_ns = t->since_ns;
	pthread_mutex_unlock(&t->mutex);
	return since_ns;
}
