/* SPDX-License-Identifier: Apache-2.0 */
/* Many new block volumes at the same time: zeroing them must not occupy all workers. */
#include <pthread.h>
#include <stdatomic.h>

#include "base/mem.h"
#include "base/str.h"
#include "unit/volume/fixture.h"

#define SIZE       MIB(16)
#define N_CALLERS  32
#define N_INSIDE   4
#define N_WAITING  8
#define N_SENT_OFF (N_CALLERS - N_INSIDE - N_WAITING)

struct caller {
	pthread_t thread;
	char *name;
	bool made;
};

static struct caller callers[N_CALLERS];
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static unsigned n_held;
static unsigned n_sent_off;
static bool let_go;

static void hold_block(const struct device *d)
{
	if (!str_starts(d->id, "block"))
		return;
	pthread_mutex_lock(&mutex);
	n_held++;
	ck_assert_uint_le(n_held, N_INSIDE);
	pthread_cond_broadcast(&changed);
	while (!let_go)
		pthread_cond_wait(&changed, &mutex);
	n_held--;
	pthread_mutex_unlock(&mutex);
}

static int create(const char *name, struct error **err)
{
	CLEANUP(volume_info_freep) struct volume_info *info = NULL;
	struct volume_request q = fixture_request(name, SIZE);

	q.fs_type = NULL;
	q.block = true;
	return volumes_create(fx.v, &q, &info, err);
}

static void *call(void *user)
{
	struct caller *me = user;
	struct error *err = NULL;

	me->made = create(me->name, &err) == 0;
	if (me->made)
		return NULL;
	ck_assert_int_eq(err->code, ERR_UNAVAILABLE);
	ck_assert_msg(strstr(err->msg, "zero a new block volume: 4 calls are being served") ||
			      strstr(err->msg, "zero a new block volume: the driver is stopping"),
		"%s", err->msg);
	error_free(err);
	pthread_mutex_lock(&mutex);
	n_sent_off++;
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&mutex);
	return NULL;
}

/* Four are zeroed, and whoever finds eight before him is sent off. */
static void start_crowd(void)
{
	fx.faults.made = hold_block;
	for (unsigned i = 0; i < N_CALLERS; i++) {
		callers[i].name = x_asprintf("block%u", i);
		ck_assert_int_eq(pthread_create(&callers[i].thread, NULL, call, &callers[i]), 0);
	}
	pthread_mutex_lock(&mutex);
	while (n_held < N_INSIDE || n_sent_off < N_SENT_OFF)
		pthread_cond_wait(&changed, &mutex);
	pthread_mutex_unlock(&mutex);
}

static void release(void)
{
	pthread_mutex_lock(&mutex);
	let_go = true;
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&mutex);
}

static void end_crowd(void)
{
	release();
	for (unsigned i = 0; i < N_CALLERS; i++)
		ck_assert_int_eq(pthread_join(callers[i].thread, NULL), 0);
}

static void free_names(void)
{
	for (unsigned i = 0; i < N_CALLERS; i++)
		free(callers[i].name);
}

START_TEST(others_are_served_and_who_was_sent_off_left_nothing)
{
	struct error *err = NULL;

	start_crowd();
	ck_assert_uint_eq(fixture_n_files(), N_INSIDE);
	ck_assert_uint_eq(fixture_n_devices(), N_INSIDE);
	CLEANUP(volume_info_freep) struct volume_info *other = fixture_create("other", SIZE);
	ASSERT_OK(volumes_delete(fx.v, other->id, &err));
	end_crowd();
	for (unsigned i = 0; i < N_CALLERS; i++)
		ASSERT_OK(create(callers[i].name, &err));
	ck_assert_uint_eq(fixture_n_devices(), N_CALLERS);
	free_names();
}
END_TEST

START_TEST(who_waits_is_sent_off_when_the_driver_ends)
{
	unsigned n_made = 0;

	start_crowd();
	volumes_stop(fx.v);
	pthread_mutex_lock(&mutex);
	while (n_sent_off < N_SENT_OFF + N_WAITING)
		pthread_cond_wait(&changed, &mutex);
	pthread_mutex_unlock(&mutex);
	end_crowd();
	for (unsigned i = 0; i < N_CALLERS; i++)
		n_made += callers[i].made;
	ck_assert_uint_eq(n_made, N_INSIDE);
	free_names();
}
END_TEST

FIXTURE_MAIN("volumes_zeroing", fixture_memory, others_are_served_and_who_was_sent_off_left_nothing,
	who_waits_is_sent_off_when_the_driver_ends)
