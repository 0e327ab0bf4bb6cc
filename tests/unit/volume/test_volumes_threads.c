/* SPDX-License-Identifier: Apache-2.0 */
/* Callers on several threads at once. The thread sanitizer finds data races between them.
 */
#include <pthread.h>
#include <stdatomic.h>

#include "base/mem.h"
#include "unit/volume/fixture.h"

#define N_WRITERS 4
#define N_ROUNDS  12
#define SIZE      MIB(8)

struct caller {
	pthread_t thread;
	unsigned number;
};

static atomic_uint writing; /* callers that change volumes and have not ended */

static void start(struct caller *callers, unsigned n, void *(*run)(void *user))
{
	for (unsigned i = 0; i < n; i++) {
		callers[i].number = i;
		ck_assert_int_eq(pthread_create(&callers[i].thread, NULL, run, &callers[i]), 0);
	}
}

static void join(struct caller *callers, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		ck_assert_int_eq(pthread_join(callers[i].thread, NULL), 0);
}

static void assert_nothing_left(void)
{
	struct capacity c;

	ck_assert(volumes_capacity(fx.v, /* sync= */ true, &c));
	ck_assert_uint_eq(c.available_bytes, c.total_bytes);
	ck_assert_uint_eq(c.max_volume_bytes, REGION_BYTES);
	ck_assert_uint_eq(fixture_n_devices(), 0);
	ck_assert_uint_eq(fixture_n_files(), 0);
}

static void make_and_delete(const char *name)
{
	CLEANUP(volume_info_freep) struct volume_info *made = fixture_create(name, SIZE);
	CLEANUP(volume_info_freep) struct volume_info *seen = NULL;
	struct error *err = NULL;

	ASSERT_OK(volumes_get(fx.v, made->id, &seen, &err));
	ck_assert_uint_eq(seen->size_bytes, SIZE);
	ck_assert(!seen->missing);
	ASSERT_OK(volumes_delete(fx.v, made->id, &err));
	ASSERT_FAILS(volumes_get(fx.v, made->id, &seen, &err), ERR_NOT_FOUND, made->id);
}

static void *change_own(void *user)
{
	const struct caller *me = user;

	for (unsigned i = 0; i < N_ROUNDS; i++) {
		CLEANUP(free_charp) char *name = x_asprintf("own-%u-%u", me->number, i);
		make_and_delete(name);
	}
	atomic_fetch_sub(&writing, 1);
	return NULL;
}

START_TEST(callers_make_and_delete_volumes_of_their_own)
{
	struct caller writers[N_WRITERS];

	start(writers, N_WRITERS, change_own);
	join(writers, N_WRITERS);
	assert_nothing_left();
}
END_TEST

static void assert_ok_or_aborted(int rc, struct error *err)
{
	ck_assert_msg(rc == 0 || err->code == ERR_ABORTED, "%s", err ? err->msg : "no error");
	error_free(err);
}

static void *change_shared(void *user)
{
	const struct volume_request q = fixture_request("shared", SIZE);

	(void)user;
	for (unsigned i = 0; i < N_ROUNDS; i++) {
		CLEANUP(volume_info_freep) struct volume_info *info = NULL;
		struct error *err = NULL;
		int rc = volumes_create(fx.v, &q, &info, &err);

		assert_ok_or_aborted(rc, err);
		if (!info)
			continue;
		err = NULL;
		rc = volumes_delete(fx.v, info->id, &err);
		assert_ok_or_aborted(rc, err);
	}
	return NULL;
}

START_TEST(callers_of_one_volume_succeed_or_are_turned_away)
{
	CLEANUP(volume_info_freep) struct volume_info *last = NULL;
	struct caller writers[N_WRITERS];
	struct error *err = NULL;

	start(writers, N_WRITERS, change_shared);
	join(writers, N_WRITERS);
	last = fixture_create("shared", SIZE);
	ASSERT_OK(volumes_delete(fx.v, last->id, &err));
	assert_nothing_left();
}
END_TEST

static void assert_list_is_whole(void)
{
	struct volume_info **infos = NULL;
	bool more = true;
	size_t n;

	volumes_list(fx.v, NULL, 0, &infos, &n, &more);
	ck_assert(!more);
	ck_assert_uint_le(n, N_WRITERS + 1);
	for (size_t i = 0; i < n; i++) {
		ck_assert_uint_eq(infos[i]->size_bytes, SIZE);
		ck_assert(i == 0 || strcmp(infos[i - 1]->id, infos[i]->id) < 0);
	}
	for (size_t i = 0; i < n; i++)
		volume_info_free(infos[i]);
	free(infos);
}

/* Every volume takes as much, so whatever moment the device view is of, the sum is that of whole volumes. */
static void assert_capacity_is_whole(void)
{
	struct capacity c;

	ck_assert(volumes_is_ready(fx.v));
	ck_assert(volumes_capacity(fx.v, /* sync= */ true, &c));
	ck_assert_uint_eq(c.total_bytes, N_POOLS * REGION_BYTES);
	ck_assert_uint_eq((c.total_bytes - c.available_bytes) % SIZE, 0);
	ck_assert_uint_le(c.total_bytes - c.available_bytes, (N_WRITERS + 1) * SIZE);
	ck_assert_uint_le(c.max_volume_bytes, c.available_bytes);
}

static void *read_capacities(void *user)
{
	CLEANUP(volume_info_freep) struct volume_info *kept = NULL;
	struct error *err = NULL;

	ASSERT_OK(volumes_get(fx.v, user, &kept, &err));
	while (atomic_load(&writing) > 0) {
		assert_list_is_whole();
		assert_capacity_is_whole();
	}
	return NULL;
}

/* A listing that overlaps changes is repeated, and given up if they do not end. */
static void *refresh(void *user)
{
	(void)user;
	while (atomic_load(&writing) > 0) {
		struct error *err = NULL;
		int rc = volumes_refresh(fx.v, &err);

		ck_assert_msg(rc == 0 || err->code == ERR_UNAVAILABLE, "%s", err ? err->msg : "no error");
		error_free(err);
	}
	return NULL;
}

START_TEST(readers_see_whole_volumes_while_others_change_and_list_them)
{
	CLEANUP(volume_info_freep) struct volume_info *kept = fixture_create("kept", SIZE);
	struct caller writers[N_WRITERS];
	pthread_t reader;
	pthread_t lister;
	struct error *err = NULL;

	atomic_store(&writing, N_WRITERS);
	start(writers, N_WRITERS, change_own);
	ck_assert_int_eq(pthread_create(&reader, NULL, read_capacities, kept->id), 0);
	ck_assert_int_eq(pthread_create(&lister, NULL, refresh, NULL), 0);
	join(writers, N_WRITERS);
	ck_assert_int_eq(pthread_join(reader, NULL), 0);
	ck_assert_int_eq(pthread_join(lister, NULL), 0);
	ASSERT_OK(volumes_delete(fx.v, kept->id, &err));
	assert_nothing_left();
}
END_TEST

static void *look_over(void *user)
{
	(void)user;
	while (atomic_load(&writing) > 0) {
		struct volumes_overview o;

		volumes_overview(fx.v, &o);
		ck_assert_uint_le(o.n_creating + o.n_ready, N_WRITERS);
		ck_assert_uint_eq(o.n_missing, 0);
		ck_assert_uint_eq(o.to_erase_bytes % SIZE, 0);
	}
	return NULL;
}

START_TEST(deleted_volumes_are_erased_behind_callers_and_listings)
{
	struct caller writers[N_WRITERS];
	pthread_t viewer;
	pthread_t lister;

	fx.in_background = true;
	fixture_restart();
	atomic_store(&writing, N_WRITERS);
	start(writers, N_WRITERS, change_own);
	ck_assert_int_eq(pthread_create(&viewer, NULL, look_over, NULL), 0);
	ck_assert_int_eq(pthread_create(&lister, NULL, refresh, NULL), 0);
	join(writers, N_WRITERS);
	ck_assert_int_eq(pthread_join(viewer, NULL), 0);
	ck_assert_int_eq(pthread_join(lister, NULL), 0);
	fixture_await_erased();
	assert_nothing_left();
}
END_TEST

START_TEST(stop_ends_erasures_while_callers_add_more)
{
	struct caller writers[N_WRITERS];

	fx.in_background = true;
	fixture_restart();
	atomic_store(&writing, N_WRITERS);
	start(writers, N_WRITERS, change_own);
	volumes_stop(fx.v);
	join(writers, N_WRITERS);
	fixture_restart();
	fixture_await_erased();
	assert_nothing_left();
}
END_TEST

FIXTURE_MAIN("volumes_threads", fixture_memory, callers_make_and_delete_volumes_of_their_own,
	callers_of_one_volume_succeed_or_are_turned_away,
	readers_see_whole_volumes_while_others_change_and_list_them,
	deleted_volumes_are_erased_behind_callers_and_listings, stop_ends_erasures_while_callers_add_more)
