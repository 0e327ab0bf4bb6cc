/* SPDX-License-Identifier: Apache-2.0 */
/* Steps that several checks of the contract use. */
#include "contract/device_contract_private.h"

#include <check.h>
#include <string.h>

#include "base/random.h"
#include "base/str.h"
#include "unit/unit.h"

/* A check knows only its own process, so what the suite runs on is known to all of it. */
const struct device_contract *target;
struct device_manager *manager;

struct device_list *list(void)
{
	struct device_list *l = NULL;
	struct error *err = NULL;

	ASSERT_OK(device_list_read(manager, &l, &err));
	ck_assert_uint_ge(l->n_pools, 1);
	return l;
}

int try_create_of(const char *id, const char *pool, uint64_t size_bytes, bool sector, struct device **ret,
	struct error **err)
{
	char identity[UUID_TEXT_LEN + 1];
	struct device_spec spec = {id, pool, identity, size_bytes, sector};

	uuid_generate_text(identity);
	if (device_create(manager, &spec, ret, err) < 0)
		return -1;
	ck_assert_str_eq((*ret)->identity, identity);
	return 0;
}

int try_create(const char *id, const char *pool, uint64_t size_bytes, struct device **ret, struct error **err)
{
	return try_create_of(id, pool, size_bytes, /* sector= */ false, ret, err);
}

struct device *create(const char *id, const char *pool, uint64_t size_bytes)
{
	struct device *d = NULL;
	struct error *err = NULL;

	ASSERT_OK(try_create(id, pool, size_bytes, &d, &err));
	return d;
}

void destroy(const struct device *d)
{
	struct error *err = NULL;

	ASSERT_OK(device_destroy(manager, d, /* exclusive_fd= */ -1, &err));
}

void assert_create_fails(const char *id, const char *pool, uint64_t size_bytes, enum err_code code)
{
	CLEANUP(error_freep) struct error *err = NULL;
	struct device *d = NULL;

	ck_assert_int_eq(try_create(id, pool, size_bytes, &d, &err), -1);
	ck_assert_msg(err->code == code, "%s: %s", err_code_name(err->code), err->msg);
	ck_assert_ptr_null(d);
}

void assert_destroy_refused(const struct device *d)
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

/* Asserts that the listing has exactly the devices in @expected, that they are active, and that it is
 * sorted. */
void assert_listed(struct device *const *expected, size_t n)
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

/* The listing and the pools as they were before the check. */
static struct device_list *initial;
struct device_pool *pools;
size_t n_pools;

/* Destroys the devices that a failed check has left, which would make all other checks fail. */
static void destroy_all(void)
{
	CLEANUP(device_list_freep) struct device_list *l = list();

	for (size_t i = 0; i < l->n_devices; i++)
		destroy(&l->devices[i]);
}

void open_empty(void)
{
	manager = target->open();
	destroy_all();
	initial = list();
	ck_assert_uint_eq(initial->n_devices, 0);
	pools = initial->pools;
	n_pools = initial->n_pools;
}

void close_empty(void)
{
	destroy_all();
	device_close(manager);
	device_list_free(initial);
}

void reopen(void)
{
	device_close(manager);
	manager = target->open();
}

struct device_pool pool_now(const char *uuid)
{
	CLEANUP(device_list_freep) struct device_list *l = list();
	const struct device_pool *p = device_list_pool(l, uuid);

	ck_assert_ptr_nonnull(p);
	return *p; /* its strings go with the list */
}

/* Returns the size of a device for which @size_bytes are requested in the first pool while that is empty. */
uint64_t fitting(uint64_t size_bytes)
{
	return device_fit(manager, &pools[0], /* sector= */ false, size_bytes);
}

/* Returns the number of bytes that @d has taken from its pool. */
uint64_t taken_by(const struct device *d)
{
	uint64_t bytes = device_list_pool(initial, d->pool)->capacity.available_bytes -
			 pool_now(d->pool).capacity.available_bytes;

	ck_assert_uint_eq(bytes % pools[0].rules.unit_bytes, 0);
	ck_assert_uint_ge(bytes, d->size_bytes);
	ck_assert(!target->is_plain || bytes == d->size_bytes);
	return bytes;
}
