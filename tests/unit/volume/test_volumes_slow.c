/* SPDX-License-Identifier: Apache-2.0 */
/* Devices and state folders that are slow or fail, and calls that are repeated meanwhile. */
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/parse.h"
#include "os/blockdev.h"
#include "os/file.h"
#include "os/fs.h"
#include "unit/volume/mounts.h"

#define SIZE         MIB(16)
#define MKFS_TIME_MS 60000
#define SHORT_MS     5000 /* long enough for a script to begin */
#define MKFS         "/usr/sbin/mkfs.ext4"

static void set_up(void)
{
	mounts_set_up(MIB(300));
}

static int stage(struct error **err)
{
	const struct use_request q = mounts_stage_request("ext4");

	return volumes_stage(fx.v, &q, err);
}

static void assert_staged(void)
{
	struct error *err = NULL;

	ASSERT_OK(stage(&err));
	ck_assert_uint_eq(mounts_count(mt.staging), 1);
	ck_assert_str_eq(mounts_top(mt.staging)->fstype, "ext4");
}

/* A mkfs that outlives its driver holds the device. */
START_TEST(device_that_is_held_is_not_formatted)
{
	CLEANUP(free_charp) char *content = NULL;
	struct error *err = NULL;
	int fd = -1;

	ASSERT_OK(blockdev_open_exclusive(mt.device->path, &fd, &err));
	ASSERT_FAILS(stage(&err), ERR_UNAVAILABLE, "another program holds the device");
	ASSERT_OK(fs_probe(mt.device->path, &content, &err));
	ck_assert_str_eq(content, "");
	close(fd);
	assert_staged();
}
END_TEST

START_TEST(failed_mkfs_is_done_again_whatever_it_left)
{
	struct error *err = NULL;

	ck_assert_int_eq(mount("/bin/false", MKFS, NULL, MS_BIND, NULL), 0);
	ASSERT_FAILS(stage(&err), ERR_INTERNAL, "mkfs.ext4 ended with status 1");
	ck_assert_int_eq(umount(MKFS), 0);
	CLEANUP(volume_record_freep) struct volume_record *r = mounts_record();
	ck_assert(r->fs_uuid && !r->ever_staged);
	/* as far as it came */
	ASSERT_OK(fs_make(
		"ext4", mt.device->path, &(struct fs_layout){.uuid = r->fs_uuid}, MKFS_TIME_MS, &err));
	assert_staged();
}
END_TEST

/* Puts a mkfs in the place of the real one that holds the device and does not end. */
static void hang_mkfs(const char *reaction)
{
	CLEANUP(free_charp) char *path = fixture_path("mkfs");
	CLEANUP(free_charp)
	char *text = x_asprintf("#!/bin/sh\n"
				"%s\n"
				"for last; do :; done\n"
				"exec 9<>\"$last\"\n"
				"echo $$ >%s.pid\n"
				"exec sleep 1000\n",
		reaction, path);
	CLEANUP(fd_closep) int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0700);

	ck_assert_int_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	ck_assert_int_eq(mount(path, MKFS, NULL, MS_BIND, NULL), 0);
}

static pid_t hanging_mkfs(void)
{
	CLEANUP(free_charp) char *path = fixture_path("mkfs.pid");
	CLEANUP(buf_done) struct buf text = BUF_INIT(32);
	struct error *err = NULL;
	uint32_t pid = 0;

	ASSERT_OK(file_read(AT_FDCWD, path, &text, &err));
	CLEANUP(free_charp) char *number = x_strndup(buf_str(&text), strcspn(buf_str(&text), "\n"));
	ASSERT_OK(parse_u32(number, &pid, &err));
	return (pid_t)pid;
}

START_TEST(mkfs_that_hangs_ends_with_its_time_and_leaves_nothing)
{
	static const char *const reactions[] = {"", "trap '' TERM"};
	struct error *err = NULL;

	fixture_stop();
	fx.mkfs_timeout_ms = SHORT_MS;
	fixture_open();
	ASSERT_OK(volumes_start(fx.v, &err));
	hang_mkfs(reactions[_i]);
	ASSERT_FAILS(stage(&err), ERR_DEADLINE, "mkfs.ext4");
	ck_assert_int_eq(kill(hanging_mkfs(), 0), -1);
	ck_assert_uint_eq(mounts_count(mt.staging), 0);
	ck_assert_int_eq(umount(MKFS), 0);
	fx.mkfs_timeout_ms = 0;
	fixture_restart();
	assert_staged();
}
END_TEST

/* Puts the state folder on a file system of @size with what it holds. */
static void move_state(const char *size)
{
	CLEANUP(free_charp) char *state = fixture_path("state");
	CLEANUP(free_charp) char *options = x_asprintf("size=%s", size);
	CLEANUP(free_charp) char *name = x_asprintf("%s.json", mt.volume->id);
	CLEANUP(free_charp) char *text = fixture_read(name);
	struct error *err = NULL;

	fixture_stop();
	ck_assert_int_eq(mount("none", state, "tmpfs", 0, options), 0);
	fixture_write(name, text);
	fixture_open();
	ASSERT_OK(volumes_start(fx.v, &err));
}

static void fill_state(void)
{
	CLEANUP(free_charp) char *path = fixture_path("state/filler");
	CLEANUP(fd_closep) int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	char page[4096] = {0};

	ck_assert_int_ge(fd, 0);
	while (write(fd, page, sizeof(page)) > 0)
		;
}

static void empty_state(void)
{
	CLEANUP(free_charp) char *path = fixture_path("state/filler");

	ck_assert_int_eq(unlink(path), 0);
}

static uint64_t offered(void)
{
	struct capacity c;

	ck_assert(volumes_capacity(fx.v, /* sync= */ true, &c));
	return c.available_bytes;
}

/* A new volume may be made on another node; one that is here cannot be used there. */
START_TEST(full_state_folder_sends_new_volumes_away_and_changes_nothing)
{
	const struct volume_request q = fixture_request("new", SIZE);
	struct volume_info *info = NULL;
	struct error *err = NULL;

	move_state("32k");
	fill_state();
	ASSERT_FAILS(volumes_create(fx.v, &q, &info, &err), ERR_EXHAUSTED, "is full");
	ck_assert_uint_eq(offered(), 0);
	ASSERT_FAILS(stage(&err), ERR_UNAVAILABLE, "No space left on device");
	ck_assert_uint_eq(fixture_n_devices(), 1);
	ck_assert_uint_eq(fixture_n_files(), 2); /* one is the filler */
	ck_assert_uint_eq(mounts_count(mt.staging), 0);
	fixture_restart();
	ck_assert_uint_eq(offered(), 0);
	empty_state();
	ASSERT_OK(volumes_refresh(fx.v, &err));
	ck_assert_uint_gt(offered(), 0);
	fixture_make("new", SIZE);
	assert_staged();
}
END_TEST

START_TEST(state_folder_without_inodes_sends_new_volumes_away)
{
	const struct volume_request q = fixture_request("new", SIZE);
	struct volume_info *info = NULL;
	struct error *err = NULL;

	move_state("64k,nr_inodes=4");
	fixture_write("filler", "1");
	ASSERT_FAILS(volumes_create(fx.v, &q, &info, &err), ERR_EXHAUSTED, "no free inodes");
	ck_assert_uint_eq(offered(), 0);
	ck_assert_uint_eq(fixture_n_devices(), 1);
}
END_TEST

START_TEST(volume_is_deleted_while_the_state_folder_is_full)
{
	struct error *err = NULL;

	move_state("32k");
	fill_state();
	ASSERT_OK(volumes_delete(fx.v, mt.volume->id, &err));
	while (fixture_n_devices() > 0 || fixture_n_files() > 1)
		sched_yield();
}
END_TEST

/* As a state disk that the kernel has made read-only after an error. */
START_TEST(read_only_state_folder_is_reported)
{
	CLEANUP(free_charp) char *state = fixture_path("state");
	struct error *err = NULL;

	fixture_stop();
	ck_assert_int_eq(mount("none", state, "tmpfs", MS_RDONLY, NULL), 0);
	fixture_open();
	ASSERT_FAILS(volumes_start(fx.v, &err), ERR_UNAVAILABLE, "Read-only file system");
	ASSERT_FAILS(stage(&err), ERR_UNAVAILABLE, "starting");
	ck_assert_int_eq(umount(state), 0);
	ASSERT_OK(volumes_start(fx.v, &err));
	assert_staged();
}
END_TEST

int main(void)
{
	static const int n_reactions = 2;
	TCase *tcase = fixture_case("volumes_slow", set_up);

	if (!tcase)
		return SKIP_STATUS;
	tcase_add_test(tcase, device_that_is_held_is_not_formatted);
	tcase_add_test(tcase, failed_mkfs_is_done_again_whatever_it_left);
	tcase_add_loop_test(tcase, mkfs_that_hangs_ends_with_its_time_and_leaves_nothing, 0, n_reactions);
	tcase_add_test(tcase, full_state_folder_sends_new_volumes_away_and_changes_nothing);
	tcase_add_test(tcase, state_folder_without_inodes_sends_new_volumes_away);
	tcase_add_test(tcase, volume_is_deleted_while_the_state_folder_is_full);
	tcase_add_test(tcase, read_only_state_folder_is_reported);
	return fixture_finish();
}
