/* SPDX-License-Identifier: Apache-2.0 */
/* Mounting, with the n-th system call below it failing. */
#include <sys/stat.h>

#include "base/mem.h"
#include "base/str.h"
#include "os/fs.h"
#include "os/mount.h"
#include "os/mount_table.h"
#include "unit/inject/sweep.h"
#include "unit/os/scratch.h"

#define TARGET     SCRATCH "/target"
#define SOURCE     SCRATCH "/source"
#define TIMEOUT_MS 60000

static struct scratch_disk disk = {.fd = -1};
static struct mount_table *table;
static int target_fd = -1;
static int source_fd = -1;

static int make_folder(const char *path)
{
	ck_assert_int_eq(mkdir(path, 0755), 0);
	int fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	ck_assert_int_ge(fd, 0);
	return fd;
}

static const struct mount_entry *mounted_once(void)
{
	CLEANUP(error_freep) struct error *err = NULL;
	size_t n = 0;

	mount_table_free(TAKE_PTR(table));
	ASSERT_OK(mount_table_read(&table, &err));
	for (size_t i = 0; i < table->n; i++)
		n += str_eq(table->entries[i].target, TARGET);
	return n == 1 ? mount_table_at(table, TARGET) : NULL;
}

static int mount_disk(struct error **err)
{
	static const char *const options[] = {"noatime", "nosuid", "errors=remount-ro", NULL};

	return mount_device(disk.path, target_fd, "ext4", options, err);
}

static const char *disk_not_mounted(void)
{
	const struct mount_entry *e = mounted_once();

	RIGHT_IF(e);
	RIGHT_IF(mount_entry_has(e, "noatime") && mount_entry_has(e, "nosuid"));
	RIGHT_IF(mount_entry_has(e, "errors=remount-ro"));
	return NULL;
}

static void unmount(void)
{
	mount_table_free(TAKE_PTR(table));
	ck_assert_int_eq(umount2(TARGET, 0), 0);
}

START_TEST(a_device_is_mounted_as_asked_or_not)
{
	const struct sweep s = {.name = "mount_device",
		.min_points = 5,
		.call = mount_disk,
		.wrong_at_end = disk_not_mounted,
		.undo = unmount};
	CLEANUP(error_freep) struct error *err = NULL;

	disk = scratch_disk("disk", MIB(16));
	target_fd = make_folder(TARGET);
	ASSERT_OK(fs_make("ext4", disk.path, NULL, TIMEOUT_MS, &err));
	sweep_run(&s);
	scratch_disk_done(&disk);
}
END_TEST

static int bind(struct error **err)
{
	static const char *const flags[] = {"ro", "noexec", NULL};

	return mount_bind(source_fd, target_fd, flags, err);
}

static const char *not_bound(void)
{
	const struct mount_entry *e = mounted_once();

	RIGHT_IF(e);
	RIGHT_IF(mount_entry_has(e, "ro") && mount_entry_has(e, "noexec"));
	return NULL;
}

START_TEST(a_folder_is_bound_as_asked_or_not)
{
	const struct sweep s = {.name = "mount_bind",
		.min_points = 3,
		.call = bind,
		.wrong_at_end = not_bound,
		.undo = unmount};

	source_fd = make_folder(SOURCE);
	target_fd = make_folder(TARGET);
	sweep_run(&s);
}
END_TEST

static void must_bind(void)
{
	CLEANUP(error_freep) struct error *err = NULL;

	ASSERT_OK(bind(&err));
}

static int remove_mount(struct error **err)
{
	return mount_remove(TARGET, err);
}

static const char *still_mounted(void)
{
	RIGHT_IF(!mounted_once());
	mount_table_free(TAKE_PTR(table));
	return NULL;
}

START_TEST(a_mount_is_removed_in_the_end)
{
	const struct sweep mounted = {.name = "mount_remove",
		.min_points = 2,
		.prepare = must_bind,
		.call = remove_mount,
		.wrong_at_end = still_mounted};
	const struct sweep none = {.name = "mount_remove, none",
		.min_points = 3,
		.call = remove_mount,
		.wrong_at_end = still_mounted};

	source_fd = make_folder(SOURCE);
	target_fd = make_folder(TARGET);
	sweep_run(&mounted);
	sweep_run(&none);
}
END_TEST

static int read_table(struct error **err)
{
	return mount_table_read(&table, err);
}

static const char *table_cut_off(void)
{
	RIGHT_IF(mount_table_at(table, TARGET));
	RIGHT_IF(mount_table_at(table, SCRATCH));
	RIGHT_IF(mount_table_at(table, "/proc"));
	return NULL;
}

static void free_table(void)
{
	mount_table_free(TAKE_PTR(table));
}

START_TEST(the_mount_table_is_read_whole_or_not_at_all)
{
	const struct sweep s = {.name = "mount_table_read",
		.min_points = 6,
		.call = read_table,
		.wrong_at_end = table_cut_off,
		.undo = free_table};

	source_fd = make_folder(SOURCE);
	target_fd = make_folder(TARGET);
	must_bind();
	sweep_run(&s);
}
END_TEST

SCRATCH_MAIN("inject_mount", a_device_is_mounted_as_asked_or_not, a_folder_is_bound_as_asked_or_not,
	a_mount_is_removed_in_the_end, the_mount_table_is_read_whole_or_not_at_all)
