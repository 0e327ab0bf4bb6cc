/* The listing of namespaces, over a folder in the place of /sys that looks as the kernel's. */
#include <limits.h>
#include <stdarg.h>
#include <sys/stat.h>

#include "base/mem.h"
#include "pmem/layout.h"
#include "pmem/nd_private.h"
#include "unit/os/scratch.h"

#define DEVICES ND_SYSFS_DEVICES
#define BUS     "/sys/devices/ndbus0"
#define REGION  BUS "/region0"
#define UUID    "bc4ff49d-4fa1-454c-b3d2-7d0c5cbf7637"

static void have_folder(const char *path)
{
	CLEANUP(free_charp) char *parents = x_strdup(path);

	for (char *p = strchr(parents + 1, '/'); p; p = strchr(p + 1, '/')) {
		*p = '\0';
		mkdir(parents, 0755);
		*p = '/';
	}
	ck_assert_msg(mkdir(path, 0755) == 0, "%s", path);
}

static void have_file(const char *folder, const char *name, const char *content)
{
	CLEANUP(free_charp) char *path = x_asprintf("%s/%s", folder, name);
	CLEANUP(file_closep) FILE *f = fopen(path, "w");

	ck_assert_msg(f, "%s", path);
	ck_assert_int_ge(fprintf(f, "%s\n", content), 0);
}

/* Names and contents in turn, ended by NULL. */
static void have_files(const char *folder, ...)
{
	const char *name;
	va_list ap;

	va_start(ap, folder);
	while ((name = va_arg(ap, const char *)))
		have_file(folder, name, va_arg(ap, const char *));
	va_end(ap);
}

static void have_device(const char *parent, const char *name)
{
	CLEANUP(free_charp) char *folder = x_asprintf("%s/%s", parent, name);
	CLEANUP(free_charp) char *link_path = x_asprintf(DEVICES "/%s", name);

	have_folder(folder);
	ck_assert_int_eq(symlink(folder, link_path), 0);
}

static void have_driver(const char *folder)
{
	CLEANUP(free_charp) char *path = x_asprintf("%s/driver", folder);

	ck_assert_int_eq(symlink("/sys", path), 0);
}

static void have_block(const char *folder, const char *name, const char *sectors)
{
	CLEANUP(free_charp) char *path = x_asprintf("%s/block/%s", folder, name);

	have_folder(path);
	have_file(path, "size", sectors);
}

static void have_bus(void)
{
	ck_assert_int_eq(mount("sys", "/sys", "tmpfs", 0, NULL), 0);
	have_folder(DEVICES);
	have_folder("/sys/devices");
	have_device("/sys/devices", "ndbus0");
	have_files(BUS, "provider", "ACPI.NFIT", "wait_probe", "1", NULL);
}

static void have_region(const char *name, const char *nstype)
{
	CLEANUP(free_charp) char *folder = x_asprintf(BUS "/%s", name);

	have_device(BUS, name);
	have_driver(folder);
	have_files(folder, "size", "2147483648", "nstype", nstype, "mappings", "1", "mapping0",
		"nmem0,0,2147483648,0", "available_size", "1811939328", "max_available_extent", "1744830464",
		"align", "0x1000000", "set_cookie", "0x2468ac00123456", "numa_node", "1", "read_only", "0",
		"resource", "0x100000000", "pfn_seed", "pfn0.1", NULL);
}

static void have_seed(void)
{
	have_device(REGION, "pfn0.1");
	have_file(REGION "/pfn0.1", "supported_alignments", "4096 2097152 1073741824 ");
	have_device(BUS, "nmem0");
	have_file(BUS "/nmem0", "available_slots", "16347");
}

/* Inactive, not held. */
static void have_namespace(const char *name, const char *size, const char *class)
{
	CLEANUP(free_charp) char *folder = x_asprintf(REGION "/%s", name);

	have_device(REGION, name);
	have_files(folder, "size", size, "holder", "", "holder_class", class, "mode", "raw", "alt_name",
		"some", "uuid", UUID, "resource", "0x108000000", NULL);
}

static void have_sys(void)
{
	have_bus();
	have_region("region0", "5");
	have_seed();
}

static struct nd_inventory *list(void)
{
	struct nd_inventory *inv = NULL;
	struct error *err = NULL;

	ASSERT_OK(nd_list_read(&inv, &err));
	return inv;
}

START_TEST(region_is_read)
{
	have_sys();
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

/* What an older kernel does not show, or a device of another kind does not have. */
START_TEST(region_without_much_is_read)
{
	have_bus();
	have_region("region0", "4");
	ck_assert_int_eq(unlink(REGION "/driver"), 0);
	ck_assert_int_eq(unlink(REGION "/max_available_extent"), 0);
	ck_assert_int_eq(unlink(REGION "/align"), 0);
	have_files(REGION, "mappings", "0", "numa_node", "-1", "read_only", "1", "pfn_seed", "", NULL);
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

	have_sys();
	have_region("region10", "5");
	have_region("region2", "5");
	CLEANUP(nd_inventory_freep) struct nd_inventory *inv = list();
	ck_assert_uint_eq(inv->n_regions, ARRAY_SIZE(wanted));
	for (size_t i = 0; i < ARRAY_SIZE(wanted); i++)
		ck_assert_str_eq(inv->regions[i].name, wanted[i]);
}
END_TEST

START_TEST(fewest_free_labels_of_all_modules_count)
{
	have_sys();
	have_files(REGION, "mappings", "2", "mapping1", "nmem1,0,2147483648,1", NULL);
	have_device(BUS, "nmem1");
	have_file(BUS "/nmem1", "available_slots", "5");
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
	CLEANUP(free_charp) char *front = x_asprintf(REGION "/%s", *k->holder ? k->holder : "namespace0.0");

	have_sys();
	have_namespace("namespace0.0", "134217728", "");
	have_files(REGION "/namespace0.0", "holder", k->holder, "mode", k->shown, NULL);
	if (*k->holder)
		have_device(REGION, k->holder);
	have_driver(front);
	if (k->path)
		have_block(front, "some", "2048");
	CLEANUP(nd_inventory_freep) struct nd_inventory *inv = list();
	const struct nd_namespace *ns = &inv->regions[0].namespaces[0];
	ck_assert_str_eq(ns->dev, "namespace0.0");
	ck_assert_str_eq(ns->name, "some");
	ck_assert_str_eq(ns->uuid, UUID);
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

	have_sys();
	have_namespace("namespace0.0", "134217728", "");
	for (size_t i = 0; i < ARRAY_SIZE(labels); i++) {
		have_file(REGION "/namespace0.0", "holder_class", labels[i].class);
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
	have_sys();
	have_region("region1", "5");
	have_namespace("namespace0.0", "134217728", "pfn");
	have_namespace("namespace0.1", "0", "");
	have_namespace("namespace1.0", "134217728", "pfn");
	CLEANUP(nd_inventory_freep) struct nd_inventory *inv = list();
	for (size_t i = 0; i < 2; i++)
		ck_assert_uint_eq(inv->regions[i].n_namespaces, 1);
	ck_assert_str_eq(inv->regions[0].namespaces[0].dev, "namespace0.0");
	ck_assert_str_eq(inv->regions[1].namespaces[0].dev, "namespace1.0");
}
END_TEST

START_TEST(namespace_without_label_has_neither_name_nor_uuid)
{
	have_sys();
	have_file(REGION, "nstype", "4");
	have_namespace("namespace0.0", "2147483648", "");
	CLEANUP(nd_inventory_freep) struct nd_inventory *inv = list();
	ck_assert_str_eq(inv->regions[0].namespaces[0].name, "");
	ck_assert_str_eq(inv->regions[0].namespaces[0].uuid, "");
}
END_TEST

/* It belongs to somebody else than its first line says. */
START_TEST(name_of_two_lines_is_kept)
{
	have_sys();
	have_namespace("namespace0.0", "134217728", "pfn");
	have_file(REGION "/namespace0.0", "alt_name", POOL_NAMESPACE_NAME "\nforeign");
	CLEANUP(nd_inventory_freep) struct nd_inventory *inv = list();
	ck_assert_str_eq(inv->regions[0].namespaces[0].name, POOL_NAMESPACE_NAME "\nforeign");
	ck_assert(!nd_is_own(&inv->regions[0].namespaces[0]));
}
END_TEST

/* Without one of these a volume would look gone, foreign, or as if its content were lost. */
START_TEST(attribute_that_cannot_be_read_fails_the_listing)
{
	static const char *const needed[] = {"size", "holder", "alt_name", "uuid", "holder_class"};
	CLEANUP(free_charp) char *path = x_asprintf(REGION "/namespace0.0/%s", needed[_i]);
	struct nd_inventory *inv = NULL;
	struct error *err = NULL;

	have_sys();
	have_namespace("namespace0.0", "134217728", "pfn");
	ck_assert_int_eq(unlink(path), 0);
	ASSERT_FAILS(nd_list_read(&inv, &err), ERR_UNAVAILABLE, needed[_i]);
	ck_assert_ptr_null(inv);
}
END_TEST

START_TEST(region_that_cannot_be_read_fails_the_listing)
{
	static const char *const needed[] = {"size", "nstype", "mappings"};
	CLEANUP(free_charp) char *path = x_asprintf(REGION "/%s", needed[_i]);
	struct nd_inventory *inv = NULL;
	struct error *err = NULL;

	have_sys();
	ck_assert_int_eq(unlink(path), 0);
	ASSERT_FAILS(nd_list_read(&inv, &err), ERR_UNAVAILABLE, needed[_i]);
}
END_TEST

/* A bus that is not known to be settled may not show all of them; a pool must not change its identity. */
START_TEST(bus_that_cannot_be_read_fails_the_listing)
{
	static const char *const needed[] = {BUS "/wait_probe", REGION "/set_cookie"};
	struct nd_inventory *inv = NULL;
	struct error *err = NULL;

	have_sys();
	ck_assert_int_eq(unlink(needed[_i]), 0);
	have_folder(needed[_i]);
	ASSERT_FAILS(nd_list_read(&inv, &err), ERR_UNAVAILABLE, strrchr(needed[_i], '/') + 1);
}
END_TEST

/* The kernel gives the name of a device that is gone to the next one. */
START_TEST(block_device_is_confirmed_by_the_uuid_behind_it)
{
	static const char *const fronts[] = {"pfn0.0", "namespace0.0"};
	CLEANUP(free_charp) char *front = x_asprintf(REGION "/%s", fronts[_i]);
	struct error *err = NULL;

	have_sys();
	have_namespace("namespace0.0", "134217728", "pfn");
	if (_i == 0) {
		have_device(REGION, "pfn0.0");
		have_file(REGION "/pfn0.0", "namespace", "namespace0.0");
	}
	have_folder("/sys/class/block/pmem0");
	ck_assert_int_eq(symlink(front, "/sys/class/block/pmem0/device"), 0);
	ASSERT_OK(nd_confirm_read("/dev/pmem0", UUID, &err));
	ASSERT_FAILS(nd_confirm_read("/dev/pmem0", "", &err), ERR_UNAVAILABLE, "/dev/pmem0");
	ASSERT_FAILS(nd_confirm_read("/dev/pmem1", UUID, &err), ERR_UNAVAILABLE, "/dev/pmem1");
	have_file(REGION "/namespace0.0", "uuid", "");
	ASSERT_FAILS(nd_confirm_read("/dev/pmem0", "", &err), ERR_UNAVAILABLE, "/dev/pmem0");
	have_file(REGION "/namespace0.0", "uuid", "6f1d2c3b-0000-4000-8000-00000000000a");
	ASSERT_FAILS(nd_confirm_read("/dev/pmem0", UUID, &err), ERR_UNAVAILABLE, UUID);
	/* released meanwhile */
	have_file(REGION "/namespace0.0", "uuid", UUID);
	ck_assert_int_eq(unlink("/sys/class/block/pmem0/device"), 0);
	ASSERT_FAILS(nd_confirm_read("/dev/pmem0", UUID, &err), ERR_UNAVAILABLE, UUID);
}
END_TEST

int main(void)
{
	const TTest *const once[] = {region_is_read, region_without_much_is_read,
		regions_are_in_the_order_of_their_numbers, fewest_free_labels_of_all_modules_count,
		inactive_namespace_is_what_its_label_says,
		namespaces_are_listed_with_their_region_and_seeds_left_out,
		namespace_without_label_has_neither_name_nor_uuid, name_of_two_lines_is_kept};
	const char *why = scratch_unavailable();
	Suite *suite = suite_create("pmem/nd_list");
	TCase *tc = tcase_create("sysfs");

	if (why) {
		fprintf(stderr, "SKIP pmem/nd_list: %s\n", why);
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
