#include "contract/device_contract.h"

#include <check.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "base/random.h"
#include "base/str.h"
#include "os/blockdev.h"
#include "unit/unit.h"

#define TIMEOUT_S    240
#define NODE_WAIT_MS 5000
#define MANY         8
#define N_THREADS    4
#define N_ROUNDS     3

/* A check knows only its own process, so what the suite runs on is known to all of it. */
static const struct device_contract *target;
static struct device_manager *manager;

static struct device_list *list(void)
{
	struct device_list *l = NULL;
	struct error *err = NULL;

	ASSERT_OK(device_list_read(manager, &l, &err));
	ck_assert_uint_ge(l->n_pools, 1);
	return l;
}

static int try_create(
	const char *id, const char *pool, uint64_t size_bytes, struct device **ret, struct error **err)
{
	char identity[UUID_TEXT_LEN + 1];
	struct device_spec spec = {id, pool, identity, size_bytes, false};

	uuid_generate_text(identity);
	if (device_create(manager, &spec, ret, err) < 0)
		return -1;
	ck_assert_str_eq((*ret)->identity, identity);
	return 0;
}

static struct device *create(const char *id, const char *pool, uint64_t size_bytes)
{
	struct device *d = NULL;
	struct error *err = NULL;

	ASSERT_OK(try_create(id, pool, size_bytes, &d, &err));
	return d;
}

static void destroy(const struct device *d)
{
	struct error *err = NULL;

	ASSERT_OK(device_destroy(manager, d, /* exclusive_fd= */ -1, &err));
}

static void assert_create_fails(const char *id, const char *pool, uint64_t size_bytes, enum err_code code)
{
	CLEANUP(error_freep) struct error *err = NULL;
	struct device *d = NULL;

	ck_assert_int_eq(try_create(id, pool, size_bytes, &d, &err), -1);
	ck_assert_msg(err->code == code, "%s: %s", err_code_name(err->code), err->msg);
	ck_assert_ptr_null(d);
}

static void assert_destroy_refused(const struct device *d)
{
	struct error *err = NULL;

	ASSERT_FAILS(device_destroy(manager, d, /* exclusive_fd= */ -1, &err), ERR_PRECONDITION, d->id);
}

static void assert_same_device(const struct device *a, const struct device *b)
{
	ck_assert_str_eq(a->id, b->id);
	ck_assert_str_eq(a->pool, b->pool);
	ck_assert_str_eq(a->identity, b->identity);
	ck_assert(str_eq(a->path, b->path));
	ck_assert_uint_eq(a->size_bytes, b->size_bytes);
}

/* What is listed is exactly the devices in @expected, active. */
static void assert_listed(struct device *const *expected, size_t n)
{
	CLEANUP(device_list_freep) struct device_list *l = list();

	ck_assert_uint_eq(l->n_devices, n);
	for (size_t i = 0; i < n; i++) {
		const struct device *d = device_list_find(l, expected[i]->id);
		ck_assert_ptr_nonnull(d);
		assert_same_device(d, expected[i]);
		ck_assert(d->active);
	}
	for (size_t i = 1; i < l->n_devices; i++)
		ck_assert_int_lt(strcmp(l->devices[i - 1].id, l->devices[i].id), 0);
}

/* As they were before the check. */
static struct device_list *initial;
static struct device_pool *pools;
static size_t n_pools;

/* What a check that failed has left would fail all others. */
static void destroy_all(void)
{
	CLEANUP(device_list_freep) struct device_list *l = list();

	for (size_t i = 0; i < l->n_devices; i++)
		destroy(&l->devices[i]);
}

static void open_empty(void)
{
	manager = target->open();
	destroy_all();
	initial = list();
	ck_assert_uint_eq(initial->n_devices, 0);
	pools = initial->pools;
	n_pools = initial->n_pools;
}

static void close_empty(void)
{
	destroy_all();
	device_close(manager);
	device_list_free(initial);
}

static void reopen(void)
{
	device_close(manager);
	manager = target->open();
}

static struct device_pool pool_now(const char *uuid)
{
	CLEANUP(device_list_freep) struct device_list *l = list();
	const struct device_pool *p = device_list_pool(l, uuid);

	ck_assert_ptr_nonnull(p);
	return *p; /* its strings go with the list */
}

START_TEST(empty_pools_are_listed)
{
	for (size_t i = 0; i < n_pools; i++) {
		ck_assert(pools[i].complete);
		ck_assert(*pools[i].uuid && *pools[i].name);
		ck_assert_uint_gt(pools[i].unit_bytes, 0);
		ck_assert_uint_gt(pools[i].max_bytes, 0);
		ck_assert_uint_eq(pools[i].max_bytes % pools[i].unit_bytes, 0);
		ck_assert_uint_le(pools[i].max_bytes, pools[i].free_bytes);
		ck_assert_uint_le(pools[i].free_bytes, pools[i].total_bytes);
	}
}
END_TEST

START_TEST(created_device_is_as_asked_for_and_listed)
{
	CLEANUP(device_freep) struct device *d = create("one", pools[0].uuid, 1);

	ck_assert_str_eq(d->id, "one");
	ck_assert_str_eq(d->pool, pools[0].uuid);
	ck_assert_uint_eq(d->size_bytes, pools[0].unit_bytes);
	ck_assert(d->active);
	ck_assert((d->path != NULL) == target->has_nodes);
	assert_listed(&d, 1);
	ck_assert_uint_eq(pool_now(d->pool).free_bytes, pools[0].free_bytes - d->size_bytes);
}
END_TEST

START_TEST(node_is_there_at_once_and_has_the_size)
{
	CLEANUP(device_freep) struct device *d = create("one", pools[0].uuid, pools[0].unit_bytes + 1);
	CLEANUP(error_freep) struct error *err = NULL;
	struct blockdev_info info;

	ASSERT_OK(blockdev_stat(d->path, &info, &err));
	ck_assert_uint_eq(info.size_bytes, d->size_bytes);
	ck_assert_uint_eq(d->size_bytes, 2 * pools[0].unit_bytes);
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
		assert_create_fails("more", pools[i].uuid, pools[i].max_bytes + 1, ERR_EXHAUSTED);
		assert_create_fails("huge", pools[i].uuid, UINT64_MAX, ERR_EXHAUSTED);

		CLEANUP(device_freep) struct device *d = create("max", pools[i].uuid, pools[i].max_bytes);
		ck_assert_uint_eq(d->size_bytes, pools[i].max_bytes);
		assert_listed(&d, 1);
		ck_assert_uint_eq(pool_now(d->pool).max_bytes, 0);
		assert_create_fails("more", pools[i].uuid, 1, ERR_EXHAUSTED);
		destroy(d);
		ck_assert_uint_eq(pool_now(pools[i].uuid).max_bytes, pools[i].max_bytes);
	}
}
END_TEST

/* Fills a pool with @n devices of equal size and the rest. */
static void fill(struct device **devices, size_t n)
{
	uint64_t size = pools[0].max_bytes / n / pools[0].unit_bytes * pools[0].unit_bytes;
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
	ck_assert_uint_ge(p.max_bytes, devices[0]->size_bytes);
	assert_create_fails("more", pools[0].uuid, p.max_bytes + 1, ERR_EXHAUSTED);
	CLEANUP(device_freep) struct device *d = create("max", pools[0].uuid, p.max_bytes);
	ck_assert_uint_eq(d->size_bytes, p.max_bytes);
	ck_assert_uint_eq(pool_now(pools[0].uuid).free_bytes, p.free_bytes - d->size_bytes);
	for (size_t i = 0; i < MANY; i++)
		device_free(devices[i]);
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
	ck_assert_uint_eq(pool_now(pools[0].uuid).free_bytes, pools[0].free_bytes);
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

START_TEST(open_device_is_not_destroyed)
{
	CLEANUP(device_freep) struct device *d = create("one", pools[0].uuid, 1);
	int fd = open(d->path, O_RDONLY | O_CLOEXEC);

	ck_assert_int_ge(fd, 0);
	assert_destroy_refused(d);
	assert_listed(&d, 1);
	close(fd);
	destroy(d);
	assert_listed(NULL, 0);
}
END_TEST

static int destroy_with_exclusive_fd(const struct device *d, struct error **err)
{
	int fd = -1;

	ck_assert_int_eq(blockdev_open_exclusive(d->path, &fd, err), 0);
	int rc = device_destroy(manager, d, fd, err);
	ck_assert_int_eq(fcntl(fd, F_GETFD), -1);
	return rc;
}

START_TEST(exclusive_descriptor_is_taken_over)
{
	CLEANUP(device_freep) struct device *d = create("one", pools[0].uuid, 1);
	struct device other = *d;
	char identity[UUID_TEXT_LEN + 1];
	struct error *err = NULL;

	uuid_generate_text(identity);
	other.identity = identity;
	ASSERT_FAILS(destroy_with_exclusive_fd(&other, &err), ERR_PRECONDITION, "one");
	assert_listed(&d, 1);
	ASSERT_OK(destroy_with_exclusive_fd(d, &err));
	assert_listed(NULL, 0);
}
END_TEST

static void transfer(const struct device *d, int flags, char *data, size_t n)
{
	CLEANUP(fd_closep) int fd = open(d->path, flags | O_CLOEXEC);

	ck_assert_int_ge(fd, 0);
	off_t at = (off_t)(d->size_bytes - n);
	ck_assert_int_eq(flags & O_WRONLY ? pwrite(fd, data, n, at) : pread(fd, data, n, at), (ssize_t)n);
	ck_assert_int_eq(fsync(fd), 0);
}

START_TEST(devices_and_content_stay_when_opened_again)
{
	CLEANUP(device_freep) struct device *d = create("one", pools[0].uuid, 1);
	char data[512] = "content", back[512] = "";

	if (target->has_nodes)
		transfer(d, O_WRONLY, data, sizeof(data));
	reopen();
	assert_listed(&d, 1);
	if (target->has_nodes)
		transfer(d, O_RDONLY, back, sizeof(back));
	ck_assert(!target->has_nodes || memcmp(data, back, sizeof(data)) == 0);

	struct device other = *d;
	char identity[UUID_TEXT_LEN + 1];
	uuid_generate_text(identity);
	other.identity = identity;
	reopen();
	assert_destroy_refused(&other);
	for (size_t i = 0; i < n_pools; i++)
		assert_create_fails("one", pools[i].uuid, 1, ERR_EXISTS);
}
END_TEST

START_TEST(inactive_devices_are_activated_with_their_content)
{
	CLEANUP(device_freep) struct device *a = create("one", pools[0].uuid, 1);
	CLEANUP(device_freep) struct device *b = create("two", pools[n_pools - 1].uuid, 1);
	CLEANUP(error_freep) struct error *err = NULL;
	char data[512] = "content", back[512] = "";

	transfer(b, O_WRONLY, data, sizeof(data));
	target->deactivate(a);
	target->deactivate(b);
	CLEANUP(device_list_freep) struct device_list *l = list();
	ck_assert_uint_eq(l->n_devices, 2);
	ck_assert(!l->devices[0].active && !l->devices[1].active);
	ASSERT_OK(device_activate(manager, l, &err));

	/* a loop device may have another number now */
	CLEANUP(device_list_freep) struct device_list *after = list();
	ck_assert_uint_eq(after->n_devices, 2);
	ck_assert(after->devices[0].active && after->devices[1].active);
	transfer(&after->devices[1], O_RDONLY, back, sizeof(back));
	ck_assert_mem_eq(data, back, sizeof(data));
	ASSERT_OK(device_activate(manager, l, &err));
}
END_TEST

START_TEST(inactive_device_can_be_destroyed)
{
	CLEANUP(device_freep) struct device *d = create("one", pools[0].uuid, 1);

	target->deactivate(d);
	destroy(d);
	assert_listed(NULL, 0);
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
	ck_assert_uint_eq(
		pool_now(pools[0].uuid).free_bytes, pools[0].free_bytes - N_THREADS * pools[0].unit_bytes);
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
	tcase_add_test(tcase, destroyed_device_is_gone_and_destroying_it_again_succeeds);
	tcase_add_test(tcase, id_can_be_used_again_after_destroying);
	tcase_add_test(tcase, device_of_another_identity_is_not_destroyed);
	tcase_add_test(tcase, callers_in_parallel_do_not_disturb_each_other);
}

static void add_with_nodes(TCase *tcase)
{
	tcase_add_test(tcase, node_is_there_at_once_and_has_the_size);
	tcase_add_test(tcase, open_device_is_not_destroyed);
	tcase_add_test(tcase, exclusive_descriptor_is_taken_over);
}

static void add_with_activation(TCase *tcase)
{
	tcase_add_test(tcase, inactive_devices_are_activated_with_their_content);
	tcase_add_test(tcase, inactive_device_can_be_destroyed);
}

int device_contract_run(const struct device_contract *t)
{
	Suite *suite = suite_create(t->name);
	TCase *tcase = tcase_create(t->name);

	target = t;
	tcase_set_timeout(tcase, TIMEOUT_S);
	tcase_add_checked_fixture(tcase, open_empty, close_empty);
	add_always(tcase);
	if (t->has_nodes)
		add_with_nodes(tcase);
	if (t->has_nodes && t->deactivate)
		add_with_activation(tcase);
	if (t->is_durable)
		tcase_add_test(tcase, devices_and_content_stay_when_opened_again);
	suite_add_tcase(suite, tcase);
	return unit_runner_finish(srunner_create(suite));
}
