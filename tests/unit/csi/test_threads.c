/* SPDX-License-Identifier: Apache-2.0 */
/* Methods on several threads at once, as the workers of the server call them. */
#include <pthread.h>

#include "base/mem.h"
#include "unit/csi/harness.h"
#include "unit/unit.h"

#define N_CALLERS 4
#define N_ROUNDS  6
#define SIZE      (8LL << 20)

static struct harness h;

static void open_ready(void)
{
	harness_open(&h, /* start= */ true);
}

static void close_harness(void)
{
	harness_close(&h);
}

/* An arena belongs to one call; all else is shared. */
struct caller {
	pthread_t thread;
	unsigned number;
	struct harness harness;
};

static void delete_volume(struct harness *of, char *id)
{
	Csi__V1__DeleteVolumeRequest q;
	struct error *err = NULL;
	void *reply;

	csi__v1__delete_volume_request__init(&q);
	q.volume_id = id;
	ASSERT_OK(harness_call(of, "/csi.v1.Controller/DeleteVolume", &q, &reply, &err));
}

static int64_t free_bytes(struct harness *of)
{
	Csi__V1__GetCapacityRequest q;
	struct error *err = NULL;
	void *reply;

	csi__v1__get_capacity_request__init(&q);
	ASSERT_OK(harness_call(of, "/csi.v1.Controller/GetCapacity", &q, &reply, &err));
	return ((Csi__V1__GetCapacityResponse *)reply)->available_capacity;
}

static void assert_listed(struct harness *of, const char *id)
{
	Csi__V1__ListVolumesRequest q;
	Csi__V1__ListVolumesResponse *list;
	struct error *err = NULL;
	size_t found = 0;
	void *reply;

	csi__v1__list_volumes_request__init(&q);
	ASSERT_OK(harness_call(of, "/csi.v1.Controller/ListVolumes", &q, &reply, &err));
	list = reply;
	for (size_t i = 0; i < list->n_entries; i++)
		found += strcmp(list->entries[i]->volume->volume_id, id) == 0;
	ck_assert_uint_eq(found, 1);
}

static void *call_methods(void *user)
{
	struct caller *me = user;

	for (unsigned i = 0; i < N_ROUNDS; i++) {
		CLEANUP(free_charp) char *name = x_asprintf("pvc-%u-%u", me->number, i);
		Csi__V1__Volume *v;
		struct error *err = NULL;

		ASSERT_OK(harness_create(&me->harness, name, SIZE, &v, &err));
		ck_assert_int_eq(free_bytes(&me->harness) % SIZE, 0);
		assert_listed(&me->harness, v->volume_id);
		delete_volume(&me->harness, v->volume_id);
	}
	return NULL;
}

START_TEST(methods_run_on_several_threads)
{
	struct caller callers[N_CALLERS];
	int64_t before = free_bytes(&h);

	for (unsigned i = 0; i < N_CALLERS; i++) {
		callers[i] = (struct caller){.number = i, .harness = h};
		callers[i].harness.arena = arena_new(1 << 20);
		ck_assert_int_eq(pthread_create(&callers[i].thread, NULL, call_methods, &callers[i]), 0);
	}
	for (unsigned i = 0; i < N_CALLERS; i++) {
		ck_assert_int_eq(pthread_join(callers[i].thread, NULL), 0);
		arena_free(callers[i].harness.arena);
	}
	ck_assert_int_eq(free_bytes(&h), before);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("threads");
	TCase *tcase = tcase_create("threads");

	suite_add_tcase(suite, tcase);
	tcase_add_checked_fixture(tcase, open_ready, close_harness);
	tcase_set_timeout(tcase, 60);
	tcase_add_test(tcase, methods_run_on_several_threads);
	return unit_runner_finish(srunner_create(suite));
}
