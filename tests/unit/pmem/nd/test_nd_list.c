/* SPDX-License-Identifier: Apache-2.0 */
/* The listing of namespaces, over a folder in the place of /sys that looks as the kernel's. */
#include <limits.h>

#include "base/mem.h"
#include "pmem/namespace_layout.h"
#include "pmem/nd/nd_private.h"
#include "unit/os/scratch.h"
#include "unit/pmem/nd/nd_sys.h"

static struct nd_inventory *list(void)
{
	struct nd_inventory *inv = NULL;
	struct error *err = NULL;

	ASSERT_OK(nd_list_read(&inv, &err));
	return inv;
}

START_TEST(region_is_read)
{
	nd_sys_enter();
	CLEANUP(nd_inventory_freep) struct nd_inventory *inv = list();
	ck_assert_uint_eq(inv->n_regions, 1);
	const struct nd_region *r = &inv->regions[0];
	ck_assert_str_eq(r->bus, "ndbus0");
	ck_assert_str_eq(r->name, "region0");
	ck_assert_str_eq(r->identity, "iset-002468ac00123456");
	ck_assert_uint_eq(r->size_bytes, 2ULL << 30);
	ck_assert_uint_eq(r->available_bytes, 1811939328);
	ck_assert_uint_eq(r->max_extent_bytes, 1744830464);
	ck_assert_uint_eq(r->align_bytes, 16 << 20);
	ck_assert_uint_eq(r->pfn_align_bytes, 2 << 20);
	ck_assert_uint_eq(r->btt_start_bytes, BTT_START_OLD_BYTES);
	ck_assert_uint_eq(r->free_labels, 16347);
	ck_assert_uint_eq(r->ways, 1);
	ck_assert_int_eq(r->numa_node, 1);
	ck_assert(r->is_pmem && r->enabled && r->has_labels && !r->readonly);
}
END_TEST

/* Attributes may be absent because the kernel is older or the device is of another kind. */
START_TEST(region_without_much_is_read)
{
	nd_sys_bus();
	nd_sys_region("region0", "4");
	ck_assert_int_eq(unlink(ND_SYS_REGION "/driver"), 0);
	ck_assert_int_eq(unlink(ND_SYS_REGION "/max_available_extent"), 0);
	ck_assert_int_eq(unlink(ND_SYS_REGION "/align"), 0);
	nd_sys_files(
		ND_SYS_REGION, "mappings", "0", "numa_node", "-1", "read_only", "1", "pfn_seed", "", NULL);
	CLEANUP(nd_inventory_freep) struct nd_inventory *inv = list();
	const struct nd_region *r = &inv->regions[0];
	ck_assert_str_eq(r->identity, "ACPI.NFIT/region0");
	ck_assert_uint_eq(r->max_extent_bytes, r->available_bytes);
	ck_assert_uint_eq(r->align_bytes, 0);
	ck_assert_uint_eq(r->pfn_align_bytes, 0);
	ck_assert_uint_eq(r->ways, 1);
	ck_assert_uint_eq(r->free_labels, UINT_MAX);
	ck_assert_int_eq(r->numa_node, -1);
	ck_assert(r->is_pmem && !r->enabled && !r->has_labels && r->readonly);
}
END_TEST

START_TEST(regions_are_in_the_order_of_their_numbers)
{
	static const char *const wanted[] = {"region0", "region2", "region10"};

	nd_sys_enter();
	nd_sys_region("region10", "5");
	nd_sys_region("region2", "5");
	CLEANUP(nd_inventory_freep) struct nd_inventory *inv = list();
	ck_assert_uint_eq(inv->n_regions, ARRAY_SIZE(wanted));
	for (size_t i = 0; i < ARRAY_SIZE(wanted); i++)
		ck_assert_str_eq(inv->regions[i].name, wanted[i]);
}
END_TEST

START_TEST(fewest_free_labels_of_all_modules_count)
{
	nd_sys_enter();
	nd_sys_files(ND_SYS_REGION, "mappings", "2", "mapping1", "nmem1,0,2147483648,1", NULL);
	nd_sys_device(ND_SYS_BUS, "nmem1");
	nd_sys_file(ND_SYS_BUS "/nmem1", "available_slots", "5");
	CLEANUP(nd_inventory_freep) struct nd_inventory *inv = list();
	ck_assert_uint_eq(inv->regions[0].ways, 2);
	ck_assert_uint_eq(inv->regions[0].free_labels, 5);
}
END_TEST

struct kind {
	const char *holder; /* active then; "": the namespace itself is */
	const char *shown;  /* mode */
	enum nd_mode mode;
	bool bare;
	const char *path;
};

static const struct kind kinds[] = {
	{"pfn0.0", "memory", ND_FSDAX, false, "/dev/some"},
	{"btt0.0", "safe", ND_SECTOR, false, "/dev/some"},
	{"dax0.0", "dax", ND_DEVDAX, false, NULL},
	{"", "raw", ND_RAW, true, "/dev/some"},
	{"", "memory", ND_FSDAX, true, "/dev/some"},
};

START_TEST(active_namespace_is_what_the_kernel_made_of_it)
{
	const struct kind *k = &kinds[_i];
	CLEANUP(free_charp)
	char *front = x_asprintf(ND_SYS_REGION "/%s", *k->holder ? k->holder : "namespace0.0");

	nd_sys_enter();
	nd_sys_namespace("namespace0.0", "134217728", "");
	nd_sys_files(ND_SYS_REGION "/namespace0.0", "holder", k->holder, "mode", k->shown, NULL);
	if (*k->holder)
		nd_sys_device(ND_SYS_REGION, k->holder);
	nd_sys_bind(front);
	if (k->path)
		nd_sys_block(front, "some", "2048");
	CLEANUP(nd_inventory_freep) struct nd_inventory *inv = list();
	const struct nd_namespace *ns = &inv->regions[0].namespaces[0];
	ck_assert_str_eq(ns->dev, "namespace0.0");
	ck_assert_str_eq(ns->name, ND_SYS_NAME);
	ck_assert_str_eq(ns->uuid, ND_SYS_UUID);
	ck_assert_uint_eq(ns->raw_bytes, 128 << 20);
	ck_assert_uint_eq(ns->offset_bytes, 128 << 20);
	ck_assert_uint_eq(ns->usable_bytes, k->path ? 1 << 20 : 0);
	ck_assert_pstr_eq(ns->block_path, k->path);
	ck_assert_int_eq(ns->mode, k->mode);
	ck_assert(ns->active && ns->bare == k->bare);
}
END_TEST

START_TEST(inactive_namespace_is_what_its_label_says)
{
	static const struct {
		const char *class;
		enum nd_mode mode;
	} labels[] = {{"pfn", ND_FSDAX}, {"btt", ND_SECTOR}, {"dax", ND_DEVDAX}, {"", ND_RAW}};

	nd_sys_enter();
	nd_sys_namespace("namespace0.0", "134217728", "");
	for (size_t i = 0; i < ARRAY_SIZE(labels); i++) {
		nd_sys_file(ND_SYS_REGION "/namespace0.0", "holder_class", labels[i].class);
		CLEANUP(nd_inventory_freep) struct nd_inventory *inv = list();
		const struct nd_namespace *ns = &inv->regions[0].namespaces[0];
		ck_assert_int_eq(ns->mode, labels[i].mode);
		ck_assert(!ns->active && !ns->bare);
		ck_assert_ptr_null(ns->block_path);
	}
}
END_TEST

START_TEST(namespaces_are_listed_with_their_region_and_seeds_left_out)
{
	nd_sys_enter();
	nd_sys_region("region1", "5");
	nd_sys_namespace("namespace0.0", "134217728", "pfn");
	nd_sys_namespace("namespace0.1", "0", "");
	nd_sys_namespace("namespace1.0", "134217728", "pfn");
	CLEANUP(nd_inventory_freep) struct nd_inventory *inv = list();
	for (size_t i = 0; i < 2; i++)
		ck_assert_uint_eq(inv->regions[i].n_namespaces, 1);
	ck_assert_str_eq(inv->regions[0].namespaces[0].dev, "namespace0.0");
	ck_assert_str_eq(inv->regions[1].namespaces[0].dev, "namespace1.0");
}
END_TEST

START_TEST(namespace_without_label_has_neither_name_nor_uuid)
{
	nd_sys_enter();
	nd_sys_file(ND_SYS_REGION, "nstype", "4");
	nd_sys_namespace("namespace0.0", "2147483648", "");
	CLEANUP(nd_inventory_freep) struct nd_inventory *inv = list();
	ck_assert_str_eq(inv->regions[0].namespaces[0].name, "");
	ck_assert_str_eq(inv->regions[0].namespaces[0].uuid, "");
}
END_TEST

/* The kernel goes on to show the size of the region as available. */
START_TEST(namespace_without_label_takes_its_bytes_from_the_region)
{
	nd_sys_enter();
	nd_sys_files(ND_SYS_REGION, "nstype", "4", "available_size", "2147483648", "max_available_extent",
		"2147483648", NULL);
	nd_sys_namespace("namespace0.0", "2147483648", "");
	CLEANUP(nd_inventory_freep) struct nd_inventory *inv = list();
	ck_assert_uint_eq(inv->regions[0].available_bytes, 0);
	ck_assert_uint_eq(inv->regions[0].max_extent_bytes, 0);
}
END_TEST

/* It belongs to another object than its first line says. */
START_TEST(name_of_two_lines_is_kept)
{
	nd_sys_enter();
	nd_sys_namespace("namespace0.0", "134217728", "pfn");
	nd_sys_file(ND_SYS_REGION "/namespace0.0", "alt_name", POOL_NAMESPACE_NAME "\nforeign");
	CLEANUP(nd_inventory_freep) struct nd_inventory *inv = list();
	ck_assert_str_eq(inv->regions[0].namespaces[0].name, POOL_NAMESPACE_NAME "\nforeign");
	ck_assert(!nd_is_own(&inv->regions[0].namespaces[0]));
}
END_TEST

/* Without one of these a volume would look gone, foreign, or as if its content were lost. */
START_TEST(attribute_that_cannot_be_read_fails_the_listing)
{
	static const char *const needed[] = {"size", "holder", "alt_name", "uuid", "holder_class"};
	CLEANUP(free_charp) char *path = x_asprintf(ND_SYS_REGION "/namespace0.0/%s", needed[_i]);
	struct nd_inventory *inv = NULL;
	struct error *err = NULL;

	nd_sys_enter();
	nd_sys_namespace("namespace0.0", "134217728", "pfn");
	ck_assert_int_eq(unlink(path), 0);
	ASSERT_FAILS(nd_list_read(&inv, &err), ERR_UNAVAILABLE, needed[_i]);
	ck_assert_ptr_null(inv);
}
END_TEST

START_TEST(region_that_cannot_be_read_fails_the_listing)
{
	static const char *const needed[] = {"size", "nstype", "mappings"};
	CLEANUP(free_charp) char *path = x_asprintf(ND_SYS_REGION "/%s", needed[_i]);
	struct nd_inventory *inv = NULL;
	struct error *err = NULL;

	nd_sys_enter();
	ck_assert_int_eq(unlink(path), 0);
	ASSERT_FAILS(nd_list_read(&inv, &err), ERR_UNAVAILABLE, needed[_i]);
}
END_TEST

/* A bus that is not known to be settled may not show all of them; a pool must not change its identity. */
START_TEST(bus_that_cannot_be_read_fails_the_listing)
{
	static const char *const needed[] = {ND_SYS_BUS "/wait_probe", ND_SYS_REGION "/set_cookie"};
	struct nd_inventory *inv = NULL;
	struct error *err = NULL;

	nd_sys_enter();
	ck_assert_int_eq(unlink(needed[_i]), 0);
	nd_sys_folder(needed[_i]);
	ASSERT_FAILS(nd_list_read(&inv, &err), ERR_UNAVAILABLE, strrchr(needed[_i], '/') + 1);
}
END_TEST

/* The kernel gives the name of a device that is gone to the next one. */
START_TEST(block_device_is_confirmed_by_the_uuid_behind_it)
{
	static const char *const fronts[] = {"pfn0.0", "namespace0.0"};
	CLEANUP(free_charp) char *front = x_asprintf(ND_SYS_REGION "/%s", fronts[_i]);
	struct error *err = NULL;

	nd_sys_enter();
	nd_sys_namespace("namespace0.0", "134217728", "pfn");
	if (_i == 0) {
		nd_sys_device(ND_SYS_REGION, "pfn0.0");
		nd_sys_file(ND_SYS_REGION "/pfn0.0", "namespace", "namespace0.0");
	}
	nd_sys_folder("/sys/class/block/pmem0");
	nd_sys_link("/sys/class/block/pmem0", "device", front);
	ASSERT_OK(nd_confirm_read("/dev/pmem0", ND_SYS_UUID, &err));
	ASSERT_FAILS(nd_confirm_read("/dev/pmem0", "", &err), ERR_UNAVAILABLE, "/dev/pmem0");
	ASSERT_FAILS(nd_confirm_read("/dev/pmem1", ND_SYS_UUID, &err), ERR_UNAVAILABLE, "/dev/pmem1");
	nd_sys_file(ND_SYS_REGION "/namespace0.0", "uuid", "");
	ASSERT_FAILS(nd_confirm_read("/dev/pmem0", "", &err), ERR_UNAVAILABLE, "/dev/pmem0");
	nd_sys_file(ND_SYS_REGION "/namespace0.0", "uuid", "6f1d2c3b-0000-4000-8000-00000000000a");
	ASSERT_FAILS(nd_confirm_read("/dev/pmem0", ND_SYS_UUID, &err), ERR_UNAVAILABLE, ND_SYS_UUID);
	/* released meanwhile */
	nd_sys_file(ND_SYS_REGION "/namespace0.0", "uuid", ND_SYS_UUID);
	ck_assert_int_eq(unlink("/sys/class/block/pmem0/device"), 0);
	ASSERT_FAILS(nd_confirm_read("/dev/pmem0", ND_SYS_UUID, &err), ERR_UNAVAILABLE, ND_SYS_UUID);
}
END_TEST

int main(void)
{
	const TTest *const once[] = {region_is_read, region_without_much_is_read,
		regions_are_in_the_order_of_their_numbers, fewest_free_labels_of_all_modules_count,
		inactive_namespace_is_what_its_label_says,
		namespaces_are_listed_with_their_region_and_seeds_left_out,
		namespace_without_label_has_neither_name_nor_uuid,
		namespace_without_label_takes_its_bytes_from_the_region, name_of_two_lines_is_kept};
	const char *why = scratch_unavailable();
	Suite *suite = suite_create("pmem/nd/nd_list");
	TCase *tc = tcase_create("sysfs");

	if (why) {
		fprintf(stderr, "SKIP pmem/nd/nd_list: %s\n", why);
		return SCRATCH_SKIP_STATUS;
	}
	suite_add_tcase(suite, tc);
	tcase_add_checked_fixture(tc, scratch_enter, NULL);
	for (size_t i = 0; i < ARRAY_SIZE(once); i++)
		tcase_add_test(tc, once[i]);
	tcase_add_loop_test(tc, active_namespace_is_what_the_kernel_made_of_it, 0, ARRAY_SIZE(kinds));
	tcase_add_loop_test(tc, attribute_that_cannot_be_read_fails_the_listing, 0, 5);
	tcase_add_loop_test(tc, block_device_is_confirmed_by_the_uuid_behind_it, 0, 2);
	tcase_add_loop_test(tc, bus_that_cannot_be_read_fails_the_listing, 0, 2);
	tcase_add_loop_test(tc, region_that_cannot_be_read_fails_the_listing, 0, 3);
	return unit_runner_finish(srunner_create(suite));
}
