/* SPDX-License-Identifier: Apache-2.0 */
/* Namespaces as devices, over a fake: what is not in the contract of all device managers. */
#include <string.h>

#include "base/random.h"
#include "base/str.h"
#include "pmem/device/device.h"
#include "pmem/namespace_layout.h"
#include "unit/pmem/nd/nd_fake.h"
#include "unit/unit.h"

#define MIB(n) ((uint64_t)(n) << 20)
#define GIB(n) ((uint64_t)(n) << 30)

#define OWN   "6f1d2c3b-0000-4000-8000-00000000000a"
#define OTHER "6f1d2c3b-0000-4000-8000-00000000000b"

static struct nd *nd; /* the manager's */
static struct device_manager *manager;

static void open_regions(const struct nd_fake_region *regions, size_t n)
{
	nd = nd_open_fake(regions, n);
	manager = device_open_direct(nd);
}

static void open_usual(void)
{
	static const struct nd_fake_region region = {
		.size_bytes = GIB(2), .align_bytes = MIB(16), .label_slots = 16};

	open_regions(&region, 1);
}

static void close_manager(void)
{
	device_close(manager);
}

static struct device_list *list(void)
{
	struct device_list *l = NULL;
	struct error *err = NULL;

	ASSERT_OK(device_list_read(manager, &l, &err));
	return l;
}

static int try_create(
	const char *id, const char *identity, uint64_t size_bytes, struct device **ret, struct error **err)
{
	CLEANUP(device_list_freep) struct device_list *l = list();
	const struct device_spec spec = {id, l->pools[0].uuid, identity, size_bytes, false};

	return device_create(manager, &spec, ret, err);
}

static struct device *create(const char *id, uint64_t size_bytes)
{
	char identity[UUID_TEXT_LEN + 1];
	struct device *d = NULL;
	struct error *err = NULL;

	uuid_generate_text(identity);
	ASSERT_OK(try_create(id, identity, size_bytes, &d, &err));
	return d;
}

/* The namespaces of the first region. */
static struct nd_inventory *namespaces(void)
{
	struct nd_inventory *inv = NULL;
	struct error *err = NULL;

	ASSERT_OK(nd_list(nd, &inv, &err));
	return inv;
}

START_TEST(volume_is_a_namespace_with_its_name_and_identity)
{
	CLEANUP(device_freep) struct device *d = NULL;
	struct error *err = NULL;

	ASSERT_OK(try_create("pvc-1", OWN, MIB(100), &d, &err));
	CLEANUP(nd_inventory_freep) struct nd_inventory *inv = namespaces();
	const struct nd_namespace *ns = &inv->regions[0].namespaces[0];
	ck_assert_uint_eq(inv->regions[0].n_namespaces, 1);
	ck_assert_str_eq(ns->name, "pvc-1");
	ck_assert_str_eq(ns->uuid, OWN);
	ck_assert_int_eq(ns->mode, ND_FSDAX);
	ck_assert_uint_eq(ns->raw_bytes, MIB(112));
	ck_assert_uint_eq(d->size_bytes, MIB(110));
	ck_assert_str_eq(d->path, ns->block_path);
}
END_TEST

static const uint64_t wanted_sizes[] = {
	1, MIB(14), MIB(14) + 1, MIB(16), MIB(100), MIB(500) - 1, GIB(1), GIB(1) + 1};

START_TEST(usable_is_what_was_asked_for_and_a_unit_less_would_not_do)
{
	CLEANUP(device_freep) struct device *d = create("one", wanted_sizes[_i]);
	CLEANUP(nd_inventory_freep) struct nd_inventory *inv = namespaces();
	const struct nd_region *r = &inv->regions[0];

	ck_assert_uint_ge(d->size_bytes, wanted_sizes[_i]);
	ck_assert_uint_lt(nd_usable_bytes(r, ND_FSDAX, r->namespaces[0].raw_bytes - nd_region_unit(r)),
		wanted_sizes[_i]);
}
END_TEST

START_TEST(pool_and_foreign_namespaces_are_invisible)
{
	nd_fake_add(nd, 0, POOL_NAMESPACE_NAME, ND_FSDAX, 0, MIB(256));
	nd_fake_add(nd, 0, "", ND_FSDAX, MIB(256), MIB(64));
	nd_fake_add(nd, 0, "a name", ND_FSDAX, MIB(320), MIB(64));
	nd_fake_add(nd, 0, "dax", ND_DEVDAX, MIB(384), MIB(64));

	CLEANUP(device_list_freep) struct device_list *l = list();
	ck_assert_uint_eq(l->n_devices, 0);
	ck_assert_uint_eq(l->pools[0].capacity.total_bytes, GIB(2));
	ck_assert_uint_eq(l->pools[0].capacity.available_bytes, GIB(2) - MIB(448));
}
END_TEST

START_TEST(pool_namespace_is_never_made_nor_destroyed_as_a_device)
{
	CLEANUP(nd_inventory_freep) struct nd_inventory *before = NULL;
	struct error *err = NULL;
	struct device *d = NULL;

	ASSERT_FAILS(
		try_create(POOL_NAMESPACE_NAME, OWN, 1, &d, &err), ERR_INVALID_ARGUMENT, "not a valid name");
	nd_fake_add(nd, 0, POOL_NAMESPACE_NAME, ND_FSDAX, 0, MIB(256));
	before = namespaces();
	const struct device pool = {.id = (char[]){POOL_NAMESPACE_NAME},
		.identity = before->regions[0].namespaces[0].uuid,
		.pool = before->regions[0].identity};
	ASSERT_FAILS(device_destroy(manager, &pool, -1, &err), ERR_PRECONDITION, "another");
	CLEANUP(nd_inventory_freep) struct nd_inventory *after = namespaces();
	ck_assert_uint_eq(after->regions[0].n_namespaces, 1);
}
END_TEST

START_TEST(both_of_one_name_are_listed_and_only_ours_is_destroyed)
{
	struct error *err = NULL;
	CLEANUP(device_freep) struct device *d = NULL;

	ASSERT_OK(try_create("twin", OWN, MIB(64), &d, &err));
	nd_fake_add(nd, 0, "twin", ND_FSDAX, GIB(1), MIB(64));
	CLEANUP(device_list_freep) struct device_list *both = list();
	ck_assert_uint_eq(both->n_devices, 2);
	ck_assert(str_eq(both->devices[0].identity, OWN) != str_eq(both->devices[1].identity, OWN));

	ASSERT_OK(device_destroy(manager, d, -1, &err));
	CLEANUP(device_list_freep) struct device_list *left = list();
	ck_assert_uint_eq(left->n_devices, 1);
	ck_assert_str_ne(left->devices[0].identity, OWN);
	ASSERT_FAILS(
		device_destroy(manager, d, -1, &err), ERR_PRECONDITION, "another namespace has its name");
	ASSERT_FAILS(try_create("twin", OTHER, 1, &d, &err), ERR_EXISTS, "twin");
}
END_TEST

START_TEST(maximum_is_the_largest_extent_not_the_sum)
{
	static const char *const ids[] = {"a", "b", "c", "d"};
	struct device *devices[ARRAY_SIZE(ids)];
	struct error *err = NULL;

	for (size_t i = 0; i < ARRAY_SIZE(ids); i++)
		devices[i] = create(ids[i], layout_fsdax_usable(MIB(512), 0));
	for (size_t i = 0; i < 3; i += 2)
		ASSERT_OK(device_destroy(manager, devices[i], -1, &err));

	CLEANUP(device_list_freep) struct device_list *l = list();
	ck_assert_uint_eq(l->pools[0].capacity.available_bytes, GIB(1));
	ck_assert_uint_eq(l->pools[0].capacity.max_volume_bytes, layout_fsdax_usable(MIB(512), 0));
	ck_assert_uint_eq(l->pools[0].capacity.max_sector_volume_bytes,
		layout_btt_usable(MIB(512), BTT_START_OLD_BYTES));
	CLEANUP(device_freep)
	struct device *largest = create("largest", l->pools[0].capacity.max_volume_bytes);
	ck_assert_uint_eq(largest->size_bytes, l->pools[0].capacity.max_volume_bytes);
	for (size_t i = 0; i < ARRAY_SIZE(ids); i++)
		device_free(devices[i]);
}
END_TEST

START_TEST(without_a_label_slot_nothing_is_offered)
{
	CLEANUP(device_freep) struct device *d = NULL;
	struct error *err = NULL;

	for (int i = 0; i < 16; i++) {
		char id[] = "volume-a";
		id[7] = (char)(id[7] + i);
		device_free(create(id, 1));
	}
	CLEANUP(device_list_freep) struct device_list *l = list();
	ck_assert_uint_eq(l->pools[0].capacity.max_volume_bytes, 0);
	ck_assert_uint_eq(l->pools[0].capacity.max_sector_volume_bytes, 0);
	ck_assert_uint_eq(l->pools[0].capacity.available_bytes, 0);
	ck_assert(l->pools[0].used_up != NULL);
	ck_assert_uint_eq(device_fit(manager, &l->pools[0], false, 1), UINT64_MAX);
	ASSERT_FAILS(try_create("more", OWN, 1, &d, &err), ERR_EXHAUSTED, "label slot");
}
END_TEST

START_TEST(disabled_region_is_incomplete_and_keeps_its_devices)
{
	CLEANUP(device_freep) struct device *d = create("one", MIB(64));
	CLEANUP(device_freep) struct device *other = NULL;
	struct error *err = NULL;

	nd_fake_enable_region(nd, 0, false);
	CLEANUP(device_list_freep) struct device_list *l = list();
	ck_assert(!l->pools[0].complete);
	ck_assert_uint_eq(l->pools[0].capacity.max_volume_bytes, 0);
	ASSERT_FAILS(device_destroy(manager, d, -1, &err), ERR_UNAVAILABLE, "one");
	ASSERT_FAILS(try_create("two", OWN, 1, &other, &err), ERR_UNAVAILABLE, "disabled");
	nd_fake_enable_region(nd, 0, true);
	CLEANUP(device_list_freep) struct device_list *again = list();
	ck_assert_uint_eq(again->n_devices, 1);
	ASSERT_OK(device_destroy(manager, d, -1, &err));
}
END_TEST

/* The manager has seen the device and not yet that its region went. */
START_TEST(device_of_a_region_that_goes_is_not_gone)
{
	CLEANUP(device_freep) struct device *d = create("one", MIB(64));
	struct error *err = NULL;

	nd_fake_enable_region(nd, 0, false);
	ASSERT_FAILS(device_destroy(manager, d, -1, &err), ERR_UNAVAILABLE, "absent or disabled");
	nd_fake_enable_region(nd, 0, true);
	CLEANUP(device_list_freep) struct device_list *again = list();
	ck_assert_uint_eq(again->n_devices, 1);
}
END_TEST

START_TEST(latest_pools_are_what_a_change_has_shown)
{
	CLEANUP(device_freep) struct device *d = create("one", MIB(110));
	struct error *err = NULL;

	CLEANUP(device_list_freep) struct device_list *made = device_latest_pools(manager);
	ck_assert_uint_eq(made->n_devices, 0);
	ck_assert_uint_eq(made->pools[0].capacity.available_bytes, GIB(2) - MIB(112));
	/* it costs no listing */
	nd_fake_add(nd, 0, "other", ND_FSDAX, GIB(1), MIB(64));
	CLEANUP(device_list_freep) struct device_list *same = device_latest_pools(manager);
	ck_assert_uint_eq(same->pools[0].capacity.available_bytes, made->pools[0].capacity.available_bytes);
	ASSERT_OK(device_destroy(manager, d, -1, &err));
	CLEANUP(device_list_freep) struct device_list *after = device_latest_pools(manager);
	ck_assert_uint_eq(after->pools[0].capacity.available_bytes, GIB(2) - MIB(64));
}
END_TEST

START_TEST(nothing_is_known_after_a_failure)
{
	struct device *d = NULL;
	struct error *err = NULL;

	device_list_free(list());
	nd_fake_fail(nd, ERR_INTERNAL);
	ASSERT_FAILS(try_create("one", OWN, 1, &d, &err), ERR_INTERNAL, "refused");
	ck_assert_ptr_null(device_latest_pools(manager));
	device_list_free(list());
	device_list_free(device_latest_pools(manager));
}
END_TEST

START_TEST(path_is_confirmed_by_the_identity)
{
	CLEANUP(device_freep) struct device *d = create("one", MIB(64));
	struct error *err = NULL;

	ASSERT_OK(device_confirm(manager, d, &err));
	ASSERT_OK(device_destroy(manager, d, -1, &err));
	ASSERT_FAILS(device_confirm(manager, d, &err), ERR_UNAVAILABLE, d->path);
}
END_TEST

START_TEST(device_of_an_absent_region_is_not_gone)
{
	const struct device d = {
		.id = (char[]){"one"}, .identity = (char[]){OWN}, .pool = (char[]){"iset-f"}};
	struct error *err = NULL;

	ASSERT_FAILS(device_destroy(manager, &d, -1, &err), ERR_UNAVAILABLE, "iset-f");
}
END_TEST

START_TEST(only_regions_with_labels_are_pools)
{
	static const struct nd_fake_region regions[] = {
		{.size_bytes = GIB(1), .align_bytes = MIB(16)},
		{.size_bytes = GIB(1), .align_bytes = MIB(16), .label_slots = 8, .not_pmem = true},
		{.size_bytes = GIB(1), .align_bytes = MIB(16), .label_slots = 8, .readonly = true},
		{.size_bytes = GIB(1), .align_bytes = MIB(16), .label_slots = 8},
	};

	device_close(manager);
	open_regions(regions, ARRAY_SIZE(regions));
	CLEANUP(device_list_freep) struct device_list *l = list();
	ck_assert_uint_eq(l->n_pools, 2);
	ck_assert_str_eq(l->pools[0].name, "ndbus0region2");
	ck_assert_uint_eq(l->pools[0].capacity.max_volume_bytes, 0);
	ck_assert_str_eq(l->pools[1].name, "ndbus0region3");
	ck_assert_uint_gt(l->pools[1].capacity.max_volume_bytes, 0);
}
END_TEST

START_TEST(inactive_device_tells_its_size_and_is_activated)
{
	CLEANUP(device_freep) struct device *d = create("one", MIB(64));
	struct error *err = NULL;

	nd_fake_disable(nd, 0, 0);
	CLEANUP(device_list_freep) struct device_list *l = list();
	ck_assert(!l->devices[0].active);
	ck_assert_ptr_null(l->devices[0].path);
	ck_assert_uint_eq(l->devices[0].size_bytes, d->size_bytes);
	ASSERT_OK(device_activate(manager, l, &err));
	CLEANUP(device_list_freep) struct device_list *after = list();
	ck_assert(after->devices[0].active);
	ck_assert_ptr_nonnull(after->devices[0].path);
}
END_TEST

START_TEST(one_that_cannot_be_activated_does_not_keep_others_away)
{
	struct error *err = NULL;

	device_free(create("a", MIB(64)));
	CLEANUP(device_freep) struct device *gone = create("b", MIB(64));
	device_free(create("c", MIB(64)));
	CLEANUP(nd_inventory_freep) struct nd_inventory *inv = namespaces();
	for (size_t i = 0; i < 3; i++)
		nd_fake_disable(nd, 0, inv->regions[0].namespaces[i].offset_bytes);
	CLEANUP(device_list_freep) struct device_list *l = list();
	ASSERT_OK(device_destroy(manager, gone, -1, &err));
	ASSERT_FAILS(device_activate(manager, l, &err), ERR_INTERNAL, "b");
	CLEANUP(device_list_freep) struct device_list *after = list();
	ck_assert_uint_eq(after->n_devices, 2);
	ck_assert(after->devices[0].active && after->devices[1].active);
}
END_TEST

START_TEST(namespace_without_its_mode_is_marked)
{
	nd_fake_add(nd, 0, "half", ND_RAW, 0, MIB(64));
	CLEANUP(device_list_freep) struct device_list *l = list();
	struct error *err = NULL;

	ck_assert_uint_eq(l->n_devices, 1);
	ck_assert(l->devices[0].raw);
	ASSERT_OK(device_destroy(manager, &l->devices[0], -1, &err));
}
END_TEST

START_TEST(failed_creation_leaves_nothing)
{
	CLEANUP(device_freep) struct device *d = NULL;
	struct error *err = NULL;

	nd_fake_fail(nd, ERR_INTERNAL);
	ASSERT_FAILS(try_create("one", OWN, MIB(64), &d, &err), ERR_INTERNAL, "one");
	CLEANUP(device_list_freep) struct device_list *l = list();
	ck_assert_uint_eq(l->n_devices, 0);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("device_direct");
	TCase *tc = tcase_create("device_direct");

	tcase_add_checked_fixture(tc, open_usual, close_manager);
	tcase_add_test(tc, volume_is_a_namespace_with_its_name_and_identity);
	tcase_add_loop_test(
		tc, usable_is_what_was_asked_for_and_a_unit_less_would_not_do, 0, ARRAY_SIZE(wanted_sizes));
	tcase_add_test(tc, pool_and_foreign_namespaces_are_invisible);
	tcase_add_test(tc, pool_namespace_is_never_made_nor_destroyed_as_a_device);
	tcase_add_test(tc, both_of_one_name_are_listed_and_only_ours_is_destroyed);
	tcase_add_test(tc, maximum_is_the_largest_extent_not_the_sum);
	tcase_add_test(tc, without_a_label_slot_nothing_is_offered);
	tcase_add_test(tc, disabled_region_is_incomplete_and_keeps_its_devices);
	tcase_add_test(tc, device_of_an_absent_region_is_not_gone);
	tcase_add_test(tc, device_of_a_region_that_goes_is_not_gone);
	tcase_add_test(tc, latest_pools_are_what_a_change_has_shown);
	tcase_add_test(tc, nothing_is_known_after_a_failure);
	tcase_add_test(tc, path_is_confirmed_by_the_identity);
	tcase_add_test(tc, only_regions_with_labels_are_pools);
	tcase_add_test(tc, inactive_device_tells_its_size_and_is_activated);
	tcase_add_test(tc, one_that_cannot_be_activated_does_not_keep_others_away);
	tcase_add_test(tc, namespace_without_its_mode_is_marked);
	tcase_add_test(tc, failed_creation_leaves_nothing);
	suite_add_tcase(suite, tc);

	return unit_runner_finish(srunner_create(suite));
}
