/* SPDX-License-Identifier: Apache-2.0 */
#include "volume/locks.h"

#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/thread.h"

struct volume_lock {
	struct volume_locks *table;
	char *id;
	const char *what;  /* NULL: not said */
	uint64_t since_ns; /* of what, or of the lock */
	struct volume_lock *next;
};

struct volume_locks {
	pthread_mutex_t mutex;
	pthread_cond_t released;
	struct volume_lock *held;
};

struct volume_locks *volume_locks_new(void)
{
	struct volume_locks *t = x_calloc(1, sizeof(*t));

	pthread_mutex_init(&t->mutex, NULL);
	thread_cond_init(&t->released);
	return t;
}

void volume_locks_free(struct volume_locks *t)
{
	if (!t)
		return;
	pthread_cond_destroy(&t->released);
	pthread_mutex_destroy(&t->mutex);
	free(t);
}

/* The caller has the mutex. */
static struct volume_lock *find(const struct volume_locks *t, const char *id)
{
	for (struct volume_lock *l = t->held; l; l = l->next) {
		if (str_eq(l->id, id))
			return l;
	}
	return NULL;
}

static char *describe(const struct volume_lock *l)
{
	return x_asprintf("%s for %llu s", l->what ? l->what : "at work",
		(unsigned long long)((clock_ns() - l->since_ns) / NS_PER_S));
}

/* The caller has the mutex, which is released. */
static int refuse(struct volume_locks *t, const struct volume_lock *l, struct error **err)
{
	CLEANUP(free_charp) char *id = x_strdup(l->id), *step = describe(l);

	pthread_mutex_unlock(&t->mutex);
	return err_set(err, ERR_ABORTED, "an operation on volume %s is in progress: %s", id, step);
}

/* The caller has the mutex. */
static struct volume_lock *hold(struct volume_locks *t, const char *id)
{
	struct volume_lock *l = x_malloc(sizeof(*l));

	*l = (struct volume_lock){.table = t, .id = x_strdup(id), .since_ns = clock_ns(), .next = t->held};
	t->held = l;
	return l;
}

int volume_lock(
	struct volume_locks *t, const char *id, int wait_ms, struct volume_lock **ret, struct error **err)
{
	uint64_t end_ns = clock_ns() + (uint64_t)wait_ms * NS_PER_MS;

	pthread_mutex_lock(&t->mutex);
	bool late = wait_ms == 0;
	for (const struct volume_lock *l; (l = find(t, id));) {
		if (late)
			return refuse(t, l, err);
		late = !thread_wait_until(&t->released, &t->mutex, end_ns);
	}
	*ret = hold(t, id);
	pthread_mutex_unlock(&t->mutex);
	return 0;
}

bool volume_lock_if(struct volume_locks *t, const char *id, bool (*wanted)(void *user, const char *id),
	void *user, struct volume_lock **ret)
{
	pthread_mutex_lock(&t->mutex);
	bool take = !find(t, id) && wanted(user, id);
	if (take)
		*ret = hold(t, id);
	pthread_mutex_unlock(&t->mutex);
	return take;
}

void volume_lock_set_step(struct volume_locks *t, const char *id, const char *what)
{
	pthread_mutex_lock(&t->mutex);
	struct volume_lock *l = find(t, id);
	if (l) {
		l->what = what;
		l->since_ns = clock_ns();
	}
	pthread_mutex_unlock(&t->mutex);
}

/* The caller has the mutex. */
static const struct volume_lock *oldest(const struct volume_locks *t, size_t *ret_n)
{
	const struct volume_lock *found = NULL;

	*ret_n = 0;
	for (const struct volume_lock *l = t->held; l; l = l->next) {
		if (!found || l->since_ns < found->since_ns)
			found = l;
		++*ret_n;
	}
	return found;
}

char *volume_lock_current_step(struct volume_locks *t, const char *id)
{
	char *text = NULL;
	size_t n = 1;

	pthread_mutex_lock(&t->mutex);
	const struct volume_lock *l = id ? find(t, id) : oldest(t, &n);
	if (l) {
		CLEANUP(free_charp) char *step = describe(l);
		text = n > 1 ? x_asprintf("volume %s: %s (and %zu others)", l->id, step, n - 1)
			     : x_asprintf("volume %s: %s", l->id, step);
	}
	pthread_mutex_unlock(&t->mutex);
	return text;
}

void volume_unlock(struct volume_lock *l)
{
	if (!l)
		return;
	struct volume_locks *t = l->table;

	pthread_mutex_lock(&t->mutex);
	struct volume_lock **link = &t->held;
	while (*link != l)
		link = &(*link)->next;
	*link = l->next;
	pthread_cond_broadcast(&t->released);
	pthread_mutex_unlock(&t->mutex);
	free(l->id);
	free(l);
}
