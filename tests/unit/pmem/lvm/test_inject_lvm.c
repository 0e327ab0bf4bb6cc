/* SPDX-License-Identifier: Apache-2.0 */
/* Devices on LVM and the pools below them, with the n-th command, namespace call or system call failing. */
#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"
#include "os/loopdev.h"
#include "os/spawn.h"
#include "pmem/device/device.h"
#include "pmem/pool/pool_backup.h"
#include "pmem/pool/pool_ns.h"
#include "pmem/pool/pool_vg.h"
#include "unit/inject/held.h"
#include "unit/inject/ops.h"
#include "unit/inject/sweep.h"
#include "unit/pmem/lvm/lvm_area.h"
#include "unit/pmem/lvm/lvm_model.h"
#include "unit/pmem/nd/nd_fake.h"

#define MIB(n)      ((uint64_t)(n) << 20)
#define SKIP_STATUS 77
#define IDENTITY    "6f1d2c3b-0000-4000-8000-00000000000a"
#define GROUP       "ndbus0region0fsdax"
#define PV          "/dev/pmem0"
#define PERCENT     75 /* three quarters */

static struct lvm_model model;
static struct device_manager *manager;
static struct device_list *listed;
static struct nd *nd;
static struct lvm *lvm;
static int image_fd = -1;
static char image[64];
static char state_path[64];
static char *folder;

/* One block device stands for all: its node is what is looked at. The loop device ends with the process. */
static dev_t make_disk(void)
{
	CLEANUP(free_charp) char *path = NULL;
	struct error *err = NULL;
	struct stat st;

	image_fd = open(image, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	ck_assert_int_ge(image_fd, 0);
	ck_assert_int_eq(ftruncate(image_fd, MIB(8)), 0);
	ASSERT_OK(loop_attach(image_fd, &path, &err));
	ck_assert_int_eq(stat(path, &st), 0);
	return st.st_rdev;
}

static void set_up(void)
{
	ck_assert_int_eq(unshare(CLONE_NEWNS), 0);
	ck_assert_int_eq(mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL), 0);
	model = (struct lvm_model){.pv = PV, .disk = make_disk()};
	ck_assert_int_eq(mount("none", "/dev", "tmpfs", 0, NULL), 0);
	ck_assert_int_eq(mkdir("/dev/" GROUP, 0755), 0);
	ck_assert_int_eq(mknod(PV, S_IFBLK | 0600, model.disk), 0);

	const struct nd_fake_region region = {.size_bytes = MIB(1024), .label_slots = 8};
	nd = nd_open_fake(&region, 1);
	lvm = lvm_open_model(&model);
}

static void set_up_manager(void)
{
	set_up();
	nd_fake_add(nd, 0, POOL_NAMESPACE_NAME, ND_FSDAX, 0, MIB(256));
	ops_wrap_nd(nd);
	snprintf(model.group, sizeof(model.group), GROUP);
	manager = device_open_lvm(nd, lvm, /* saved_folder= */ NULL);
}

static void close_manager(void)
{
	device_close(manager);
}

static void close_both(void)
{
	lvm_close(lvm);
	nd_close(nd);
}

static const struct device wanted = {
	.id = (char[]){"vol"}, .pool = (char[]){"uuid-" GROUP}, .identity = (char[]){IDENTITY}};

static int destroy(struct error **err)
{
	return device_destroy(manager, &wanted, /* exclusive_fd= */ -1, err);
}

static const char *not_destroyed(void)
{
	RIGHT_IF(model.n_lvs == 0);
	return NULL;
}

/* Creates the device as a caller does that knows its identity: remains of an earlier attempt are removed
 * first. */
static int create_again(struct error **err)
{
	const struct device_spec spec = {
		.id = wanted.id, .pool = wanted.pool, .identity = wanted.identity, .size_bytes = MIB(8)};
	CLEANUP(device_freep) struct device *d = NULL;

	if (destroy(err) < 0)
		return -1;
	return device_create(manager, &spec, &d, err);
}

static int list(struct error **err)
{
	device_list_free(TAKE_PTR(listed));
	return device_list_read(manager, &listed, err);
}

static const char *not_listed(void)
{
	const struct device *d = device_list_find(listed, "vol");

	RIGHT_IF(listed->n_pools == 1 && listed->n_devices == 1);
	RIGHT_IF(listed->pools[0].capacity.available_bytes ==
		 (LVM_MODEL_EXTENTS - 2) * LVM_MODEL_EXTENT_BYTES);
	RIGHT_IF(d && str_eq(d->identity, IDENTITY) && str_eq(d->pool, "uuid-" GROUP));
	return NULL;
}

static void must_list(void)
{
	struct error *err = NULL;

	ASSERT_OK(list(&err));
}

/* A node that could not be looked at counts as not there, until the next look. */
static const char *not_active(void)
{
	must_list();
	RIGHT_IF(listed->n_devices == 1 && listed->devices[0].active);
	return not_listed();
}

static void must_create(void)
{
	struct error *err = NULL;

	ASSERT_OK(create_again(&err));
}

static void must_destroy(void)
{
	struct error *err = NULL;

	device_list_free(TAKE_PTR(listed));
	ASSERT_OK(destroy(&err));
}

START_TEST(a_device_is_created_or_nothing_is_left)
{
	const struct sweep s = {.name = "device_create, lvm",
		.min_points = 15,
		.call = create_again,
		.wrong_after_failure = not_destroyed,
		.wrong_at_end = not_active,
		.undo = must_destroy};

	sweep_run(&s);
}
END_TEST

START_TEST(a_device_is_destroyed_in_the_end)
{
	const struct sweep s = {.name = "device_destroy, lvm",
		.min_points = 4,
		.prepare = must_create,
		.call = destroy,
		.wrong_at_end = not_destroyed};

	sweep_run(&s);
}
END_TEST

/* Creates a device that is not active and has no device node, as if an unknown program had removed it. */
static void create_and_forget(void)
{
	CLEANUP(free_charp) char *node = NULL;

	must_create();
	node = lvm_model_node(&model, &model.lvs[0]);
	model.lvs[0].active = false;
	ck_assert_int_eq(unlink(node), 0);
}

static int activate(struct error **err)
{
	if (list(err) < 0 || device_activate(manager, listed, err) < 0)
		return -1;
	return list(err);
}

START_TEST(devices_are_listed_and_activated_or_not)
{
	const struct sweep look = {.name = "device_list_read, lvm",
		.min_points = 20,
		.prepare = must_create,
		.call = list,
		.wrong_at_end = not_listed,
		.undo = must_destroy};
	const struct sweep make = {.name = "device_activate, lvm",
		.min_points = 40,
		.prepare = create_and_forget,
		.call = activate,
		.wrong_at_end = not_active,
		.undo = must_destroy};

	sweep_run(&look);
	sweep_run(&make);
}
END_TEST

static size_t own_namespaces;
static uint64_t own_bytes;

static int fill_region(struct error **err)
{
	CLEANUP(nd_inventory_freep) struct nd_inventory *inv = NULL;
	CLEANUP(pool_ns_plan_done) struct pool_ns_plan plan = {0};

	if (nd_list(nd, &inv, err) < 0)
		return -1;
	pool_ns_plan_region(&inv->regions[0], PERCENT, &plan);
	for (size_t i = 0; i < plan.n_sizes; i++) {
		CLEANUP(nd_namespace_freep) struct nd_namespace *ns = NULL;
		if (pool_ns_apply(nd, &plan, i, &ns, err) < 0)
			return -1;
	}
	return 0;
}

static void count_own(bool destroy_them)
{
	CLEANUP(nd_inventory_freep) struct nd_inventory *inv = NULL;
	struct error *err = NULL;

	ASSERT_OK(nd_list(nd, &inv, &err));
	own_namespaces = 0;
	own_bytes = 0;
	for (size_t i = 0; i < inv->regions[0].n_namespaces; i++) {
		const struct nd_namespace *ns = &inv->regions[0].namespaces[i];
		if (!str_eq(ns->name, POOL_NAMESPACE_NAME))
			continue;
		own_namespaces++;
		own_bytes += ns->raw_bytes;
		CLEANUP(nd_inventory_freep) struct nd_inventory *after = NULL;
		if (destroy_them)
			ASSERT_OK(nd_destroy(nd, ns->uuid, ns->name, &after, &err));
	}
}

static const char *not_filled(void)
{
	count_own(/* destroy_them= */ false);
	RIGHT_IF(own_namespaces == 2);
	RIGHT_IF(own_bytes == MIB(1024) / 4 * 3);
	return NULL;
}

static void empty_region(void)
{
	count_own(/* destroy_them= */ true);
}

START_TEST(a_region_is_filled_to_the_budget_and_no_further)
{
	const struct sweep s = {.name = "pool_ns_apply",
		.min_points = 3,
		.call = fill_region,
		.wrong_at_end = not_filled,
		.undo = empty_region};

	/* in the way of one large namespace */
	nd_fake_add(nd, 0, "theirs", ND_FSDAX, MIB(512), MIB(64));
	ops_wrap_nd(nd);
	sweep_run(&s);
}
END_TEST

static int make_group(struct error **err)
{
	CLEANUP(nd_inventory_freep) struct nd_inventory *inv = NULL;
	CLEANUP(lvm_report_freep) struct lvm_report *report = NULL;
	CLEANUP(pool_vg_plan_done) struct pool_vg_plan plan = {0};
	static const char *const paths[] = {PV};

	if (nd_list(nd, &inv, err) < 0)
		return -1;
	lvm_set_devices(lvm, paths, 1);
	if (lvm_list(lvm, &report, err) < 0)
		return -1;
	pool_vg_plan_region(&inv->regions[0], report, &plan);
	return pool_vg_apply(lvm, folder, &plan, err);
}

static const char *no_group(void)
{
	RIGHT_IF(str_eq(model.group, GROUP));
	return NULL;
}

static void remove_group(void)
{
	model.group[0] = '\0';
	model.prepared = false;
}

START_TEST(a_group_is_made_once)
{
	const struct sweep s = {.name = "pool_vg_apply",
		.min_points = 30,
		.call = make_group,
		.wrong_at_end = no_group,
		.undo = remove_group};

	struct error *err = NULL;

	/* as pvcreate leaves it */
	lvm_area_put(PV, LVM_AREA_FIRST, MIB(1), /* used= */ false);
	ASSERT_OK(pool_backup_open(state_path, lvm, &err));
	nd_fake_add(nd, 0, POOL_NAMESPACE_NAME, ND_FSDAX, 0, MIB(256));
	ops_wrap_nd(nd);
	sweep_run(&s);
}
END_TEST

static void remove_state(void)
{
	const char *const argv[] = {"rm", "-rf", state_path, NULL};
	CLEANUP(error_freep) struct error *ignored = NULL;

	(void)!spawn_check(argv, NULL, 10000, &ignored);
	free(folder);
}

int main(void)
{
	Suite *suite = suite_create("inject_lvm");
	TCase *devices = tcase_create("devices");
	TCase *pools = tcase_create("pools");

	if (geteuid() != 0 || access("/dev/loop-control", R_OK | W_OK) < 0) {
		fprintf(stderr, "SKIP inject_lvm: needs root and loop devices\n");
		return SKIP_STATUS;
	}
	snprintf(image, sizeof(image), "/tmp/pmem-inject-lvm-%d.image", (int)getpid());
	snprintf(state_path, sizeof(state_path), "/tmp/pmem-inject-lvm-%d.state", (int)getpid());
	folder = pool_backup_folder(state_path);
	tcase_add_checked_fixture(devices, set_up_manager, close_manager);
	tcase_set_timeout(devices, 300);
	tcase_add_test(devices, a_device_is_created_or_nothing_is_left);
	tcase_add_test(devices, a_device_is_destroyed_in_the_end);
	tcase_add_test(devices, devices_are_listed_and_activated_or_not);
	tcase_add_checked_fixture(pools, set_up, close_both);
	tcase_set_timeout(pools, 300);
	tcase_add_test(pools, a_region_is_filled_to_the_budget_and_no_further);
	tcase_add_test(pools, a_group_is_made_once);
	suite_add_tcase(suite, devices);
	suite_add_tcase(suite, pools);

	int status = unit_runner_finish(srunner_create(suite));
	held_detach(image);
	unlink(image);
	remove_state();
	return status;
}
