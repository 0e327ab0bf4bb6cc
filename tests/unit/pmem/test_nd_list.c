/* The listing of namespaces by libndctl, over a folder in the place of /sys. */
#include "pmem/nd_list.h"

#include <sys/stat.h>

#include "base/mem.h"
#include "unit/os/scratch.h"

#define BUS     "/sys/devices/ndbus0"
#define REGION  BUS "/region0"
#define DEVICES ND_SYSFS_DEVICES

static void have_folder(const char *path)
{
	ck_assert_msg(mkdir(path, 0755) == 0, "%s", path);
}

static void have_file(const char *folder, const char *name, const char *content)
{
	CLEANUP(free_charp) char *path = x_asprintf("%s/%s", folder, name);
	CLEANUP(file_closep) FILE *f = fopen(path, "w");

	ck_assert_ptr_nonnull(f);
	ck_assert_int_ge(fprintf(f, "%s\n", content), 0);
}

static void have_namespace(const char *name)
{
	CLEANUP(free_charp) char *folder = x_asprintf(REGION "/%s", name);
	CLEANUP(free_charp) char *link_path = x_asprintf(DEVICES "/%s", name);

	have_folder(folder);
	have_file(folder, "nstype", "4");
	have_file(folder, "size", "1048576");
	have_file(folder, "force_raw", "0");
	have_file(folder, "modalias", "nd:t4");
	have_file(folder, "holder", "");
	ck_assert_int_eq(symlink(folder, link_path), 0);
}

/* What libndctl's add_bus() and add_region() read, and two namespaces. */
static void have_sys(void)
{
	static const char *const folders[] = {"/sys/bus", "/sys/bus/nd", DEVICES, "/sys/class",
		"/sys/class/nd", "/sys/class/nd/ndctl0", "/sys/dev", "/sys/dev/char", "/sys/dev/char/250:0",
		"/sys/devices", BUS, REGION};
	static const char *const attributes[] = {"size", "mappings", "read_only", "modalias"};

	ck_assert_int_eq(mount("sys", "/sys", "tmpfs", 0, NULL), 0);
	for (size_t i = 0; i < ARRAY_SIZE(folders); i++)
		have_folder(folders[i]);
	have_file("/sys/class/nd/ndctl0", "dev", "250:0");
	ck_assert_int_eq(symlink(BUS, "/sys/class/nd/ndctl0/device"), 0);
	ck_assert_int_eq(symlink(BUS, "/sys/dev/char/250:0/device"), 0);
	have_file(BUS, "commands", "");
	have_file(BUS, "provider", "test");
	for (size_t i = 0; i < ARRAY_SIZE(attributes); i++)
		have_file(REGION, attributes[i], "0");
	have_file(REGION, "nstype", "4");
	have_file(REGION, "namespace_seed", "namespace0.1");
	ck_assert_int_eq(symlink(REGION, DEVICES "/region0"), 0);
	have_namespace("namespace0.0");
	have_namespace("namespace0.1");
}

START_TEST(namespaces_are_listed_and_seeds_left_out)
{
	CLEANUP(nd_inventory_freep) struct nd_inventory *inv = NULL;
	CLEANUP(error_freep) struct error *err = NULL;

	have_sys();
	have_file(REGION "/namespace0.1", "size", "0");
	ASSERT_OK(nd_list_read(&inv, &err));
	ck_assert_uint_eq(inv->n_regions, 1);
	ck_assert_uint_eq(inv->regions[0].n_namespaces, 1);
	ck_assert_str_eq(inv->regions[0].namespaces[0].dev, "namespace0.0");
}
END_TEST

/* What is missing in a listing is taken for destroyed. */
START_TEST(namespace_that_libndctl_leaves_out_fails_the_listing)
{
	CLEANUP(error_freep) struct error *err = NULL;
	struct nd_inventory *inv = NULL;

	have_sys();
	ck_assert_int_eq(unlink(REGION "/namespace0.1/size"), 0);
	ASSERT_FAILS(nd_list_read(&inv, &err), ERR_UNAVAILABLE,
		"region0 has 2 namespaces, of which libndctl shows 1");
	ck_assert_ptr_null(inv);
}
END_TEST

/* Without its holder a volume would look raw, as if its content were lost. */
START_TEST(attribute_that_cannot_be_read_fails_the_listing)
{
	CLEANUP(error_freep) struct error *err = NULL;
	struct nd_inventory *inv = NULL;

	have_sys();
	ck_assert_int_eq(unlink(REGION "/namespace0.1/holder"), 0);
	have_folder(REGION "/namespace0.1/holder");
	ASSERT_FAILS(nd_list_read(&inv, &err), ERR_UNAVAILABLE, "holder");
}
END_TEST

SCRATCH_MAIN("pmem/nd_list", namespaces_are_listed_and_seeds_left_out,
	namespace_that_libndctl_leaves_out_fails_the_listing, attribute_that_cannot_be_read_fails_the_listing)
