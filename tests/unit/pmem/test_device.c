#include "pmem/device.h"

#include "base/mem.h"
#include "base/str.h"
#include "unit/unit.h"

static struct device_list *new_list(void)
{
	struct device_list *l = x_calloc(1, sizeof(*l));

	l->n_pools = 2;
	l->pools = x_calloc(l->n_pools, sizeof(*l->pools));
	l->pools[0] = (struct device_pool){x_strdup("p"), x_strdup("pool"), 100, 100, 100, 8, true};
	l->pools[1] = (struct device_pool){x_strdup("q"), x_strdup("part"), 100, 50, 0, 8, false};
	return l;
}

static void note(struct device_list *l, const char *id, const char *pool, uint64_t size_bytes, bool exists)
{
	const struct device d = {
		.id = (char *)(uintptr_t)id,
		.pool = (char *)(uintptr_t)pool,
		.identity = (char[]){""},
		.size_bytes = size_bytes,
	};

	device_list_note(l, &d, exists);
}

START_TEST(noted_devices_are_found_in_order)
{
	CLEANUP(device_list_freep) struct device_list *l = new_list();

	note(l, "b", "p", 8, true);
	note(l, "c", "p", 8, true);
	note(l, "a", "q", 8, true);
	ck_assert_uint_eq(l->n_devices, 3);
	ck_assert_str_eq(l->devices[0].id, "a");
	ck_assert_str_eq(l->devices[2].id, "c");
	ck_assert_str_eq(device_list_find(l, "b")->id, "b");
	ck_assert_ptr_null(device_list_find(l, "bb"));
	ck_assert_ptr_null(device_list_find(l, "d"));
	note(l, "b", "p", 8, false);
	ck_assert_ptr_null(device_list_find(l, "b"));
	ck_assert_str_eq(device_list_find(l, "c")->id, "c");
}
END_TEST

START_TEST(noted_size_changes_what_is_free_once)
{
	CLEANUP(device_list_freep) struct device_list *l = new_list();

	note(l, "a", "p", 24, true);
	note(l, "a", "p", 24, true);
	ck_assert_uint_eq(l->pools[0].free_bytes, 76);
	ck_assert_uint_eq(l->pools[0].max_bytes, 72);
	note(l, "a", "p", 24, false);
	note(l, "a", "p", 24, false);
	ck_assert_uint_eq(l->pools[0].free_bytes, 100);
	ck_assert_uint_eq(l->pools[0].max_bytes, 96);
	note(l, "b", "p", 200, true);
	ck_assert_uint_eq(l->pools[0].free_bytes, 0);
}
END_TEST

START_TEST(nothing_can_be_made_in_an_incomplete_pool)
{
	CLEANUP(device_list_freep) struct device_list *l = new_list();

	note(l, "a", "q", 8, true);
	note(l, "a", "q", 8, false);
	ck_assert_uint_eq(device_list_pool(l, "q")->free_bytes, 50);
	ck_assert_uint_eq(device_list_pool(l, "q")->max_bytes, 0);
	ck_assert_ptr_null(device_list_pool(l, "r"));
}
END_TEST

START_TEST(copy_is_independent)
{
	const struct device d = {.id = (char[]){"a"}, .pool = (char[]){"p"}, .size_bytes = 8, .active = true};
	CLEANUP(device_freep) struct device *copy = device_dup(&d);

	ck_assert_str_eq(copy->id, "a");
	ck_assert_ptr_ne(copy->id, d.id);
	ck_assert_ptr_null(copy->path);
	ck_assert(copy->active);
	ck_assert_uint_eq(copy->size_bytes, 8);
}
END_TEST

UNIT_MAIN("device", noted_devices_are_found_in_order, noted_size_changes_what_is_free_once,
	nothing_can_be_made_in_an_incomplete_pool, copy_is_independent)
