/* SPDX-License-Identifier: Apache-2.0 */
#include "pmem/device/device.h"

#include "base/mem.h"
#include "base/str.h"
#include "unit/unit.h"

static struct device_list *new_list(void)
{
	struct device_list *l = x_calloc(1, sizeof(*l));

	l->n_pools = 2;
	l->pools = x_calloc(l->n_pools, sizeof(*l->pools));
	l->pools[0] = (struct device_pool){
		.uuid = x_strdup("p"),
		.name = x_strdup("pool"),
		.capacity.total_bytes = 100,
		.capacity.available_bytes = 100,
		.capacity.max_volume_bytes = 100,
		.capacity.max_sector_volume_bytes = 100,
		.rules.unit_bytes = 8,
		.complete = true,
	};
	l->pools[1] = (struct device_pool){
		.uuid = x_strdup("q"),
		.name = x_strdup("part"),
		.capacity.total_bytes = 100,
		.capacity.available_bytes = 50,
		.rules.unit_bytes = 8,
	};
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
	ck_assert_uint_eq(l->pools[0].capacity.available_bytes, 76);
	ck_assert_uint_eq(l->pools[0].capacity.max_volume_bytes, 72);
	note(l, "a", "p", 24, false);
	note(l, "a", "p", 24, false);
	ck_assert_uint_eq(l->pools[0].capacity.available_bytes, 100);
	ck_assert_uint_eq(l->pools[0].capacity.max_volume_bytes, 96);
	note(l, "b", "p", 200, true);
	ck_assert_uint_eq(l->pools[0].capacity.available_bytes, 0);
}
END_TEST

START_TEST(nothing_can_be_made_in_an_incomplete_pool)
{
	CLEANUP(device_list_freep) struct device_list *l = new_list();

	note(l, "a", "q", 8, true);
	note(l, "a", "q", 8, false);
	ck_assert_uint_eq(device_list_pool(l, "q")->capacity.available_bytes, 50);
	ck_assert_uint_eq(device_list_pool(l, "q")->capacity.max_volume_bytes, 0);
	ck_assert_ptr_null(device_list_pool(l, "r"));
}
END_TEST

/* Names of namespaces need not be unique. */
START_TEST(of_devices_with_one_name_each_is_noted)
{
	CLEANUP(device_list_freep) struct device_list *l = new_list();
	const struct device first = {.id = (char[]){"a"}, .pool = (char[]){"p"}, .identity = (char[]){"1"}};
	const struct device second = {.id = (char[]){"a"}, .pool = (char[]){"q"}, .identity = (char[]){"2"}};

	device_list_note(l, &first, /* exists= */ true);
	device_list_note(l, &second, /* exists= */ true);
	ck_assert_uint_eq(l->n_devices, 2);
	device_list_note(l, &second, /* exists= */ false);
	ck_assert_str_eq(device_list_find(l, "a")->identity, "1");
}
END_TEST

START_TEST(sizes_fit_in_whole_units_up_to_the_largest)
{
	static const struct device_ops ops = {.fit = device_fit_units};
	const struct device_manager m = {.ops = &ops};
	struct device_pool p = {.capacity.max_volume_bytes = 24,
		.capacity.max_sector_volume_bytes = 16,
		.rules.unit_bytes = 8,
		.complete = true};

	ck_assert_uint_eq(device_fit(&m, &p, /* sector= */ false, 0), 8);
	ck_assert_uint_eq(device_fit(&m, &p, false, 17), 24);
	ck_assert_uint_eq(device_fit(&m, &p, false, 25), UINT64_MAX);
	ck_assert_uint_eq(device_fit(&m, &p, /* sector= */ true, 17), UINT64_MAX);
	p.closed = true;
	ck_assert_uint_eq(device_fit(&m, &p, false, 8), UINT64_MAX);
	p.closed = p.complete = false;
	ck_assert_uint_eq(device_fit(&m, &p, false, 8), UINT64_MAX);
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
	nothing_can_be_made_in_an_incomplete_pool, of_devices_with_one_name_each_is_noted,
	sizes_fit_in_whole_units_up_to_the_largest, copy_is_independent)
