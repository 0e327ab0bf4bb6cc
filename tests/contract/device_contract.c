/* SPDX-License-Identifier: Apache-2.0 */
#include "contract/device_contract_private.h"

#include <check.h>
#include <pthread.h>
#include <string.h>

#include "base/random.h"
#include "base/str.h"
#include "unit/unit.h"

#define TIMEOUT_S 240
#define MANY      8
#define N_THREADS 4
#define N_ROUNDS  3

START_TEST(empty_pools_are_listed)
{
	for (size_t i = 0; i < n_pools; i++) {
		ck_assert(pools[i].complete);
		ck_assert(*pools[i].uuid && *pools[i].name);
		ck_assert_uint_gt(pools[i].rules.unit_bytes, 0);
		ck_assert_uint_gt(pools[i].capacity.max_volume_bytes, 0);
		ck_assert(!target->is_plain ||
			  pools[i].capacity.max_volume_bytes % pools[i].rules.unit_bytes == 0);
		ck_assert_uint_le(pools[i].capacity.max_volume_bytes, pools[i].capacity.available_bytes);
		ck_assert_uint_le(pools[i].capacity.available_bytes, pools[i].capacity.total_bytes);
		ck_assert_uint_le(pools[i].capacity.total_bytes, pools[i].region_bytes);
	}
}
END_TEST

START_TEST(created_device_is_as_asked_for_and_listed)
{
	CLEANUP(device_freep) struct device *d = create("one", pools[0].uuid, 1);

	ck_assert_str_eq(d->id, "one");
	ck_assert_str_eq(d->pool, pools[0].uuid);
	ck_assert_uint_eq(d->size_bytes, fitting(1));
	ck_assert(d->active && !d->raw);
	ck_assert(d->path || !target->has_nodes);
	assert_listed(&d, 1);
	ck_assert_uint_eq(taken_by(d), pools[0].rules.unit_bytes);
}
END_TEST

START_TEST(every_character_of_an_id_is_allowed)
{
	CLEANUP(device_freep) struct device *a = create("pvc-12.a_b+C", pools[0].uuid, 1);
	CLEANUP(device_freep)
	struct device *b =
		create("012345678901234567890123456789012345678901234567890123456789abc", pools[0].uuid, 1);

	assert_listed((struct device *[]){a, b}, 2);
}
END_TEST

START_TEST(id_in_use_is_refused_in_every_pool)
{
	CLEANUP(device_freep) struct device *d = create("one", pools[0].uuid, 1);

	for (size_t i = 0; i < n_pools; i++)
		assert_create_fails("one", pools[i].uuid, 1, ERR_EXISTS);
	assert_listed(&d, 1);
}
END_TEST

START_TEST(unknown_pool_is_not_found)
{
	assert_create_fails("one", "3bd3cb3e-0000-4000-8000-000000000000", 1, ERR_NOT_FOUND);
	assert_listed(NULL, 0);
}
END_TEST

START_TEST(reported_maximum_can_be_created_to_the_byte)
{
	for (size_t i = 0; i < n_pools; i++) {
		assert_create_fails(
			"more", pools[i].uuid, pools[i].capacity.max_volume_bytes + 1, ERR_EXHAUSTED);
		assert_create_fails("huge", pools[i].uuid, UINT64_MAX, ERR_EXHAUSTED);

		CLEANUP(device_freep)
		struct device *d = create("max", pools[i].uuid, pools[i].capacity.max_volume_bytes);
		ck_assert_uint_eq(d->size_bytes, pools[i].capacity.max_volume_bytes);
		assert_listed(&d, 1);
		ck_assert_uint_eq(pool_now(d->pool).capacity.max_volume_bytes, 0);
		assert_create_fails("more", pools[i].uuid, 1, ERR_EXHAUSTED);
		destroy(d);
		ck_assert_uint_eq(pool_now(pools[i].uuid).capacity.max_volume_bytes,
			pools[i].capacity.max_volume_bytes);
	}
}
END_TEST

/* Fills a pool with @n devices of equal size and the rest. */
static void fill(struct device **devices, size_t n)
{
	uint64_t part =
		pools[0].capacity.available_bytes / n / pools[0].rules.unit_bytes * pools[0].rules.unit_bytes;
	uint64_t size = target->is_plain ? part : part - part / 16;
	char id[] = "part-0";

	for (size_t i = 0; i < n; i++) {
		devices[i] = create(id, pools[0].uuid, size);
		id[5]++;
	}
}

START_TEST(reported_maximum_can_be_created_in_a_fragmented_pool)
{
	struct device *devices[MANY] = {0};

	fill(devices, MANY);
	for (size_t i = 0; i < MANY; i += 2)
		destroy(devices[i]);

	struct device_pool p = pool_now(pools[0].uuid);
	ck_assert_uint_ge(p.capacity.max_volume_bytes, devices[0]->size_bytes);
	assert_create_fails("more", pools[0].uuid, p.capacity.max_volume_bytes + 1, ERR_EXHAUSTED);
	CLEANUP(device_freep) struct device *d = create("max", pools[0].uuid, p.capacity.max_volume_bytes);
	ck_assert_uint_eq(d->size_bytes, p.capacity.max_volume_bytes);
	ck_assert_uint_le(
		pool_now(pools[0].uuid).capacity.available_bytes, p.capacity.available_bytes - d->size_bytes);
	for (size_t i = 0; i < MANY; i++)
		device_free(devices[i]);
}
END_TEST

START_TEST(sector_devices_are_as_large_as_reported)
{
	uint64_t sizes[] = {1, pools[0].rules.unit_bytes, pools[0].capacity.max_sector_volume_bytes};

	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		CLEANUP(device_freep) struct device *d = NULL;
		struct error *err = NULL;
		ASSERT_OK(try_create_of("sector", pools[0].uuid, sizes[i], /* sector= */ true, &d, &err));
		ck_assert_uint_eq(d->size_bytes, device_fit(manager, &pools[0], true, sizes[i]));
		ck_assert_uint_ge(d->size_bytes, sizes[i]);
		assert_listed(&d, 1);
		destroy(d);
		assert_listed(NULL, 0);
	}
}
END_TEST

START_TEST(too_large_sector_device_does_not_fit)
{
	CLEANUP(error_freep) struct error *err = NULL;
	uint64_t size = pools[0].capacity.max_sector_volume_bytes + 1;
	struct device *d = NULL;

	ck_assert_uint_eq(device_fit(manager, &pools[0], true, size), UINT64_MAX);
	ck_assert_int_eq(try_create_of("sector", pools[0].uuid, size, true, &d, &err), -1);
	ck_assert_int_eq(err->code, ERR_EXHAUSTED);
}
END_TEST

START_TEST(destroyed_device_is_gone_and_destroying_it_again_succeeds)
{
	CLEANUP(device_freep) struct device *keep = create("keep", pools[0].uuid, 1);
	CLEANUP(device_freep) struct device *d = create("one", pools[0].uuid, 1);

	destroy(d);
	assert_listed(&keep, 1);
	destroy(d);
	if (target->is_durable) {
		reopen();
		destroy(d);
	}
	destroy(keep);
	ck_assert_uint_eq(
		pool_now(pools[0].uuid).capacity.available_bytes, pools[0].capacity.available_bytes);
}
END_TEST

START_TEST(id_can_be_used_again_after_destroying)
{
	CLEANUP(device_freep) struct device *old = create("one", pools[0].uuid, 1);

	destroy(old);
	CLEANUP(device_freep) struct device *d = create("one", pools[n_pools - 1].uuid, 1);
	assert_listed(&d, 1);
	if (n_pools == 1)
		assert_destroy_refused(old);
}
END_TEST

START_TEST(device_of_another_identity_is_not_destroyed)
{
	CLEANUP(device_freep) struct device *d = create("one", pools[0].uuid, 1);
	struct device other = *d;
	char identity[UUID_TEXT_LEN + 1];

	uuid_generate_text(identity);
	other.identity = identity;
	assert_destroy_refused(&other);
	identity[0] = '\0';
	assert_destroy_refused(&other);
	assert_listed(&d, 1);
}
END_TEST

static void *work(void *user)
{
	char id[] = "thread-0";

	id[7] = *(const char *)user;
	for (int i = 0; i < N_ROUNDS; i++) {
		struct device *d = create(id, pools[0].uuid, 1);
		device_list_free(list());
		device_tick(manager);
		if (i + 1 < N_ROUNDS)
			destroy(d);
		device_free(d);
	}
	return NULL;
}

START_TEST(callers_in_parallel_do_not_disturb_each_other)
{
	pthread_t threads[N_THREADS];

	for (size_t i = 0; i < N_THREADS; i++) {
		static char names[] = "abcdefgh";
		ck_assert_int_eq(pthread_create(&threads[i], NULL, work, &names[i]), 0);
	}
	for (size_t i = 0; i < N_THREADS; i++)
		pthread_join(threads[i], NULL);

	CLEANUP(device_list_freep) struct device_list *l = list();
	ck_assert_uint_eq(l->n_devices, N_THREADS);
	ck_assert_uint_eq(pool_now(pools[0].uuid).capacity.available_bytes,
		pools[0].capacity.available_bytes - N_THREADS * pools[0].rules.unit_bytes);
}
END_TEST

static void add_always(TCase *tcase)
{
	tcase_add_test(tcase, empty_pools_are_listed);
	tcase_add_test(tcase, created_device_is_as_asked_for_and_listed);
	tcase_add_test(tcase, every_character_of_an_id_is_allowed);
	tcase_add_test(tcase, id_in_use_is_refused_in_every_pool);
	tcase_add_test(tcase, unknown_pool_is_not_found);
	tcase_add_test(tcase, reported_maximum_can_be_created_to_the_byte);
	tcase_add_test(tcase, reported_maximum_can_be_created_in_a_fragmented_pool);
	tcase_add_test(tcase, sector_devices_are_as_large_as_reported);
	tcase_add_test(tcase, too_large_sector_device_does_not_fit);
	tcase_add_test(tcase, destroyed_device_is_gone_and_destroying_it_again_succeeds);
	tcase_add_test(tcase, id_can_be_used_again_after_destroying);
	tcase_add_test(tcase, device_of_another_identity_is_not_destroyed);
	tcase_add_test(tcase, callers_in_parallel_do_not_disturb_each_other);
}

int device_contract_run(const struct device_contract *t)
{
	Suite *suite = suite_create(t->name);
	TCase *tcase = tcase_create(t->name);

	target = t;
	tcase_set_timeout(tcase, TIMEOUT_S);
	tcase_add_checked_fixture(tcase, open_empty, close_empty);
	add_always(tcase);
	device_contract_add_growth(tcase);
	device_contract_add_health(tcase);
	if (t->has_nodes)
		device_contract_add_nodes(tcase);
	if (t->is_durable)
		device_contract_add_durable(tcase);
	suite_add_tcase(suite, tcase);
	return unit_runner_finish(srunner_create(suite));
}
