/* SPDX-License-Identifier: Apache-2.0 */
#include "inspect/lost_files.h"

#include <fcntl.h>
#include <linux/fiemap.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/str.h"
#include "unit/inspect/checked.h"
#include "unit/volume/mounts.h"

#define SIZE       MIB(16)
#define FILE_BYTES 65536
#define PATIENT_NS (60 * NS_PER_S)
#define ODD_NAME   "a\nb\\\xff\xc2\x85\xc3\xa4"

static struct error *err;
static struct check_view view;
static struct lost_files lost;

static void set_up(void)
{
	mounts_set_up(SIZE);
	const struct use_request s = mounts_stage_request("ext4");
	ASSERT_OK(volumes_stage(fx.v, &s, &err));
}

static void forget(void)
{
	lost_files_done(&lost);
	check_view_done(&view);
}

static void look(uint64_t max_files)
{
	CLEANUP(free_charp) char *state = fixture_path("state");
	CLEANUP(free_charp) char *fake = fixture_path("fake");
	const struct check_config config = {.devices = &fx.devices, .state_path = state, .fake_path = fake};
	const struct fs_owners_bound bound = {max_files, clock_ns() + PATIENT_NS};

	forget();
	ASSERT_OK(check_view_read(&config, &view, &err));
	lost_files_find(&view, &bound, &lost);
}

/* A durable file in the volume. Return: where its byte 4096 is. */
static uint64_t make_file(const char *name)
{
	CLEANUP(free_charp) char *path = x_asprintf("%s/%s", mt.staging, name);
	CLEANUP(fd_closep) int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	static const char content[FILE_BYTES] = {1};
	union {
		struct fiemap head;
		uint8_t room[sizeof(struct fiemap) + sizeof(struct fiemap_extent)];
	} u = {.head = {.fm_start = 4096, .fm_length = 1, .fm_extent_count = 1}};

	ck_assert_int_eq(write(fd, content, sizeof(content)), sizeof(content));
	ck_assert_int_eq(fsync(fd), 0);
	ck_assert_int_eq(ioctl(fd, FS_IOC_FIEMAP, &u), 0);
	ck_assert_uint_eq(u.head.fm_mapped_extents, 1);
	return u.head.fm_extents[0].fe_physical + 4096 - u.head.fm_extents[0].fe_logical;
}

static char *remedy_of(size_t owner)
{
	return lost_file_remedy(&lost.list[0], &lost.list[0].owners.list[owner]);
}

START_TEST(sound_volumes_have_lost_nothing)
{
	make_file("file");
	look(1000);
	ck_assert_uint_eq(lost.n, 0);
	ck_assert_uint_eq(lost.n_unknown, 0);
	forget();
}
END_TEST

START_TEST(file_is_named_and_what_can_be_done_is_said)
{
	mounts_damage(make_file("file") + 512, 512);
	look(1000);
	ck_assert_uint_eq(lost.n, 1);
	ck_assert_ptr_null(lost.list[0].why_not);
	ck_assert_str_eq(lost.list[0].mount, mt.staging);
	ck_assert_uint_eq(lost.list[0].owners.n, 1);
	CLEANUP(free_charp) char *path = lost_file_path(&lost.list[0].owners.list[0]);
	CLEANUP(free_charp) char *remedy = remedy_of(0);
	ck_assert_str_eq(path, "file");
	/* a whole page, although 512 bytes are lost */
	ck_assert_ptr_nonnull(strstr(remedy, "fallocate -p -o 4096 -l 4096 FILE"));
	ck_assert_ptr_nonnull(strstr(remedy, "loses all"));
	forget();
}
END_TEST

START_TEST(names_are_escaped)
{
	mounts_damage(make_file(ODD_NAME), 512);
	look(1000);
	ck_assert_uint_eq(lost.n, 1);
	ck_assert_uint_eq(lost.list[0].owners.n, 1);
	CLEANUP(free_charp) char *path = lost_file_path(&lost.list[0].owners.list[0]);
	ck_assert_str_eq(path, "a\\012b\\134\\377\\302\\205\xc3\xa4");
	forget();
}
END_TEST

START_TEST(bound_that_was_reached_is_named)
{
	mounts_damage(make_file("file"), 512);
	look(1);
	ck_assert_uint_eq(lost.n, 1);
	ck_assert_uint_eq(lost.list[0].owners.n, 1);
	CLEANUP(free_charp) char *remedy = remedy_of(0);
	ck_assert_int_eq(lost.list[0].owners.list[0].kind, FS_OWNER_UNKNOWN);
	ck_assert_ptr_nonnull(strstr(remedy, "the number of files was reached after 1 files"));
	ck_assert_ptr_nonnull(strstr(remedy, "-maxFiles"));
	forget();
}
END_TEST

START_TEST(superblock_is_metadata)
{
	mounts_damage(1024, 512);
	look(1000);
	ck_assert_uint_eq(lost.n, 1);
	ck_assert_uint_eq(lost.list[0].owners.n, 1);
	CLEANUP(free_charp) char *remedy = remedy_of(0);
	ck_assert_int_eq(lost.list[0].owners.list[0].kind, FS_OWNER_METADATA);
	ck_assert_ptr_nonnull(strstr(remedy, "copy what can be read"));
	forget();
}
END_TEST

START_TEST(file_system_that_is_not_mounted_is_not_looked_at)
{
	mounts_damage(make_file("file"), 512);
	ck_assert_int_eq(umount(mt.staging), 0);
	look(1000);
	ck_assert_uint_eq(lost.n, 1);
	ck_assert_ptr_null(lost.list[0].mount);
	ck_assert_ptr_nonnull(strstr(lost.list[0].why_not, "is mounted here"));
	ck_assert_uint_eq(lost.list[0].owners.n, 0);
	forget();
}
END_TEST

/* As for a pod that mounts something there in the driver's namespace. */
START_TEST(mount_that_is_hidden_is_not_looked_at)
{
	mounts_damage(make_file("file"), 512);
	ck_assert_int_eq(mount("none", mt.staging, "tmpfs", 0, NULL), 0);
	look(1000);
	ck_assert_uint_eq(lost.n, 1);
	ck_assert_ptr_nonnull(strstr(lost.list[0].why_not, "another mount hides"));
	ck_assert_int_eq(umount(mt.staging), 0);
	forget();
}
END_TEST

START_TEST(lists_that_cannot_be_read_are_counted)
{
	fx.faults.media_errors = ERR_INTERNAL;
	look(1000);
	ck_assert_uint_eq(lost.n, 0);
	ck_assert_uint_eq(lost.n_unknown, 1);
	forget();
}
END_TEST

FIXTURE_MAIN("lost_files", set_up, sound_volumes_have_lost_nothing,
	file_is_named_and_what_can_be_done_is_said, names_are_escaped, bound_that_was_reached_is_named,
	superblock_is_metadata, file_system_that_is_not_mounted_is_not_looked_at,
	mount_that_is_hidden_is_not_looked_at, lists_that_cannot_be_read_are_counted)
