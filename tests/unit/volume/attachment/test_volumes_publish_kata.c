/* SPDX-License-Identifier: Apache-2.0 */
/* Volumes for Kata Containers: the image, its mount for ordinary pods and for guests, and what takes it away.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/loop.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"
#include "os/loopdev.h"
#include "os/spawn.h"
#include "unit/volume/mounts.h"
#include "volume/attachment/kata_image.h"
#include "volume/attachment/kata_layout.h"

#define SIZE     MIB(64)
#define XFS_SIZE MIB(480)

static struct strmap parameters;
static const char *fs_type;
static bool runs_in_guest;
static enum err_code pods_fail;

static int answer(void *user, const struct strmap *context, bool *ret, struct error **err)
{
	(void)user;
	(void)context;
	*ret = runs_in_guest;
	return pods_fail ? err_set(err, pods_fail, "no controller answers") : 0;
}

static const struct volume_pods pods = {.runs_in_guest = answer};

static void done(void)
{
	strmap_done(&parameters);
	volume_info_free(mt.volume);
	free(mt.staging);
	free(mt.target);
	free(mt.other);
	mt = (struct mounts){0};
}

/* As the state folder of a pod with mountPropagation: Bidirectional. */
static void share_state_folder(void)
{
	CLEANUP(free_charp) char *state = fixture_path("state");
	struct error *err = NULL;

	ck_assert_int_eq(mount(state, state, NULL, MS_BIND, NULL), 0);
	ck_assert_int_eq(mount(NULL, state, NULL, MS_SHARED, NULL), 0);
	ASSERT_OK(volumes_refresh(fx.v, &err));
}

static struct volume_request wanted(const char *name, uint64_t size_bytes)
{
	struct volume_request q = fixture_request(name, size_bytes);

	strmap_set(&parameters, "kataContainers", "true");
	q.parameters = &parameters;
	q.fs_type = fs_type;
	return q;
}

static void set_up_folder(void)
{
	fx.pods = &pods;
	runs_in_guest = false;
	pods_fail = 0;
	fixture_folder();
	fx.done = done;
	mt.staging = fixture_path("kubelet/staging");
	mt.target = fixture_path("kubelet/target");
	mt.other = fixture_path("kubelet/other");
	ck_assert_int_eq(mkdir(mt.staging, 0755), 0);
}

static void stage(void)
{
	struct use_request q = mounts_stage_request(fs_type);
	struct error *err = NULL;

	ASSERT_OK(volumes_stage(fx.v, &q, &err));
}

static void set_up_sized(uint64_t size_bytes)
{
	struct error *err = NULL;

	set_up_folder();
	share_state_folder();
	const struct volume_request q = wanted("pvc-1", size_bytes);
	ASSERT_OK(volumes_create(fx.v, &q, &mt.volume, &err));
	stage();
}

static void set_up(void)
{
	fs_type = "ext4";
	set_up_sized(SIZE);
}

static void set_up_xfs(void)
{
	fs_type = "xfs";
	set_up_sized(XFS_SIZE);
}

static int publish_at(const char *target, bool guest, struct error **err)
{
	struct use_request q = mounts_publish_request(target, ACCESS_SINGLE_WRITER);

	q.fs_type = fs_type;
	runs_in_guest = guest;
	return volumes_publish(fx.v, &q, err);
}

static void publish(bool guest)
{
	struct error *err = NULL;

	ASSERT_OK(publish_at(mt.target, guest, &err));
}

static void unpublish(void)
{
	struct error *err = NULL;

	ASSERT_OK(volumes_unpublish(fx.v, mt.volume->id, mt.target, &err));
}

static void unstage(void)
{
	struct error *err = NULL;

	ASSERT_OK(volumes_unstage(fx.v, mt.volume->id, mt.staging, &err));
}

static char *image_path(void)
{
	return x_asprintf("%s/" KATA_IMAGE_NAME, mt.staging);
}

static struct stat image_stat(void)
{
	CLEANUP(free_charp) char *path = image_path();
	struct stat st;

	ck_assert_int_eq(stat(path, &st), 0);
	return st;
}

static char *host_folder(void)
{
	CLEANUP(free_charp) char *name = x_asprintf("state/mount/%s", mt.volume->id);

	return fixture_path(name);
}

static bool is_loop_readonly(dev_t dev)
{
	CLEANUP(free_charp) char *path = x_asprintf("/dev/loop%u", minor(dev));
	CLEANUP(fd_closep) int fd = open(path, O_RDONLY | O_CLOEXEC);
	int readonly = -1;

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(ioctl(fd, BLKROGET, &readonly), 0);
	return readonly;
}

/* The runtime finds the image so (Kata's virtcontainers, IsDeviceLoop). */
static char *backing_file(dev_t dev)
{
	CLEANUP(free_charp) char *path = x_asprintf("/sys/block/loop%u/loop/backing_file", minor(dev));
	char text[512] = "";
	CLEANUP(fd_closep) int fd = open(path, O_RDONLY | O_CLOEXEC);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_gt(read(fd, text, sizeof(text) - 1), 0);
	return x_strndup(text, strcspn(text, "\n"));
}

static void assert_taken_down(void)
{
	CLEANUP(free_charp) char *folder = host_folder();
	CLEANUP(free_charp) char *path = image_path();
	CLEANUP(fd_closep) int fd = open(path, O_RDONLY | O_CLOEXEC);
	CLEANUP(free_charp) char *loop = NULL;
	struct error *err = NULL;

	ck_assert_uint_eq(mounts_count(mt.target), 0);
	ck_assert_uint_eq(mounts_count(folder), 0);
	ck_assert_int_ne(access(folder, F_OK), 0);
	if (fd < 0)
		return;
	ASSERT_OK(loop_find(fd, &loop, &err));
	ck_assert_ptr_null(loop);
}

START_TEST(such_volumes_need_a_folder_that_the_host_sees)
{
	const struct volume_request q = wanted("pvc-1", SIZE);
	CLEANUP(free_charp) char *why = NULL;
	struct error *err = NULL;

	ck_assert(!volumes_offers_kata(fx.v, &why));
	ck_assert_ptr_nonnull(strstr(why, "Bidirectional"));
	ASSERT_FAILS(volumes_create(fx.v, &q, &mt.volume, &err), ERR_EXHAUSTED, "Bidirectional");
	ck_assert_uint_eq(fixture_n_files(), 0);
	share_state_folder();
	ck_assert(volumes_offers_kata(fx.v, NULL));
	ASSERT_OK(volumes_create(fx.v, &q, &mt.volume, &err));
}
END_TEST

START_TEST(block_volumes_and_file_io_are_refused)
{
	struct volume_request q = wanted("pvc-2", SIZE);
	struct volume_info *info = NULL;
	struct error *err = NULL;

	q.block = true;
	ASSERT_FAILS(volumes_create(fx.v, &q, &info, &err), ERR_INVALID_ARGUMENT, "block");
	q.block = false;
	strmap_set(&parameters, "usage", "FileIO");
	ASSERT_FAILS(volumes_create(fx.v, &q, &info, &err), ERR_INVALID_ARGUMENT, "FileIO");
}
END_TEST

START_TEST(ordinary_pod_writes_and_a_guest_reads_the_same_file)
{
	CLEANUP(free_charp) char *folder = host_folder();
	CLEANUP(free_charp) char *wanted_path = x_asprintf("%s/" KATA_IMAGE_NAME, folder);

	publish(/* guest= */ false);
	publish(/* guest= */ false);
	ck_assert_uint_eq(mounts_count(mt.target), 1);
	ck_assert_int_eq(mounts_write(mt.target), 0);
	ck_assert(!is_loop_readonly(mounts_top(mt.target)->dev));
	unpublish();
	assert_taken_down();
	publish(/* guest= */ true);
	ck_assert(mounts_has_file(mt.target));
	ck_assert_int_ne(mounts_write(mt.target), 0);
	const struct mount_entry *e = mounts_top(mt.target);
	ck_assert(is_loop_readonly(e->dev));
	ck_assert(mount_entry_is_readonly(e));
	ck_assert(mount_entry_has(e, "nodev") && mount_entry_has(e, "nosuid"));
	/* as which ext4 shows "noload" */
	ck_assert(mount_entry_has(e, "norecovery"));
	CLEANUP(free_charp) char *backing = backing_file(e->dev);
	ck_assert_str_eq(backing, wanted_path);
	unpublish();
	unpublish();
	assert_taken_down();
	unstage();
}
END_TEST

START_TEST(smallest_volume_has_room_for_an_image)
{
	static const char *const types[] = {"ext4", "xfs"};
	struct error *err = NULL;

	fs_type = types[_i];
	share_state_folder();
	const struct volume_request q = wanted("pvc-1", 0);
	ASSERT_OK(volumes_create(fx.v, &q, &mt.volume, &err));
	stage();
	publish(/* guest= */ false);
	ck_assert_int_eq(mounts_write(mt.target), 0);
	unpublish();
}
END_TEST

START_TEST(image_is_made_once_and_recorded)
{
	CLEANUP(volume_record_freep) struct volume_record *r = NULL;

	publish(/* guest= */ true);
	struct stat before = image_stat();
	ck_assert_int_eq(before.st_size % (2 << 20), 0);
	ck_assert_int_gt(before.st_size, (off_t)(SIZE / 4));
	ck_assert_int_eq(before.st_blocks * 512 / (1 << 20), before.st_size / (1 << 20));
	r = mounts_record();
	ck_assert_uint_eq(r->image_bytes, (uint64_t)before.st_size);
	unpublish();
	unstage();
	fixture_restart();
	share_state_folder();
	stage();
	publish(/* guest= */ true);
	struct stat after = image_stat();
	ck_assert_uint_eq(after.st_ino, before.st_ino);
	ck_assert_int_eq(after.st_size, before.st_size);
	unpublish();
}
END_TEST

/* The state file may be older than the image. */
START_TEST(image_without_a_record_is_used)
{
	publish(/* guest= */ false);
	ck_assert_int_eq(mounts_write(mt.target), 0);
	unpublish();
	CLEANUP(volume_record_freep) struct volume_record *r = mounts_record();
	CLEANUP(free_charp) char *file = x_asprintf("%s.json", r->id);
	CLEANUP(buf_done) struct buf text = BUF_INIT(STATE_MAX_BYTES);
	struct error *err = NULL;

	r->image_bytes = 0;
	ASSERT_OK(state_format(r, &text, &err));
	fixture_write(file, buf_str(&text));
	fixture_restart();
	share_state_folder();
	publish(/* guest= */ false);
	ck_assert(mounts_has_file(mt.target));
	unpublish();
}
END_TEST

START_TEST(what_is_no_image_any_more_is_refused)
{
	CLEANUP(free_charp) char *path = image_path();
	CLEANUP(free_charp) char *aside = x_asprintf("%s/aside", mt.staging);
	struct error *err = NULL;

	publish(/* guest= */ false);
	unpublish();
	off_t bytes = image_stat().st_size;
	ck_assert_int_eq(rename(path, aside), 0);
	ASSERT_FAILS(publish_at(mt.target, true, &err), ERR_PRECONDITION, "no new one is made");
	ck_assert_int_eq(symlink(aside, path), 0);
	ASSERT_FAILS(publish_at(mt.target, true, &err), ERR_PRECONDITION, "regular file");
	ck_assert_int_eq(unlink(path), 0);
	ck_assert_int_eq(link(aside, path), 0);
	ASSERT_FAILS(publish_at(mt.target, true, &err), ERR_PRECONDITION, "second name");
	ck_assert_int_eq(unlink(aside), 0);
	ck_assert_int_eq(truncate(path, bytes - (2 << 20)), 0);
	ASSERT_FAILS(publish_at(mt.target, true, &err), ERR_PRECONDITION, "had");
	ck_assert_int_eq(truncate(path, bytes - 512), 0);
	ASSERT_FAILS(publish_at(mt.target, true, &err), ERR_PRECONDITION, "size");
	assert_taken_down();
	ck_assert_int_ne(access(mt.target, F_OK), 0);
}
END_TEST

/* Opening a FIFO would wait for its other end. */
START_TEST(what_is_no_file_at_all_is_refused)
{
	CLEANUP(free_charp) char *path = image_path();
	struct error *err = NULL;

	publish(/* guest= */ false);
	unpublish();
	ck_assert_int_eq(unlink(path), 0);
	ck_assert_int_eq(mkfifo(path, 0600), 0);
	ASSERT_FAILS(publish_at(mt.target, true, &err), ERR_PRECONDITION, "regular file");
	ck_assert_int_eq(unlink(path), 0);
	ck_assert_int_eq(mkdir(path, 0700), 0);
	ASSERT_FAILS(publish_at(mt.target, true, &err), ERR_PRECONDITION, "regular file");
	ck_assert_int_eq(rmdir(path), 0);
	ck_assert_int_eq(mknod(path, S_IFBLK | 0600, makedev(7, 0)), 0);
	ASSERT_FAILS(publish_at(mt.target, true, &err), ERR_PRECONDITION, "regular file");
	ck_assert_int_ne(access(mt.target, F_OK), 0);
}
END_TEST

/* Runs @command in the file system of the image, as the root of a guest could. No pod uses the image
 * meanwhile. */
static void as_guest(const char *command)
{
	CLEANUP(free_charp) char *path = image_path();
	CLEANUP(fd_closep) int fd = open(path, O_RDWR | O_CLOEXEC);
	CLEANUP(fd_closep) int loop_fd = -1;
	CLEANUP(free_charp) char *loop = NULL;
	struct error *err = NULL;

	ck_assert_int_ge(fd, 0);
	ASSERT_OK(loop_attach_part(fd, KATA_ALIGN_BYTES, /* readonly= */ false, &loop_fd, &loop, &err));
	const char *const argv[] = {"sh", "-ec", command, "sh", loop, mt.staging, NULL};
	ASSERT_OK(spawn_check(argv, NULL, 60000, &err));
}

/* A superblock that is valid and names another place, and a partition table that does. */
START_TEST(place_of_the_file_system_is_not_read_from_the_image)
{
	CLEANUP(free_charp) char *path = image_path();
	CLEANUP(fd_closep) int fd = -1;
	uint8_t sb[4096];
	static const uint8_t sectors[8] = {0, 0x40, 0, 0, 0, 0x10, 0, 0};
	struct loop_info64 info;

	publish(/* guest= */ false);
	ck_assert_int_eq(mounts_write(mt.target), 0);
	unpublish();
	kata_layout_pfn(2 * KATA_ALIGN_BYTES, KATA_ALIGN_BYTES, sb);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	ck_assert_int_eq(pwrite(fd, sb, sizeof(sb), 4096), sizeof(sb));
	ck_assert_int_eq(pwrite(fd, sectors, sizeof(sectors), 446 + 8), sizeof(sectors));
	publish(/* guest= */ true);
	ck_assert(mounts_has_file(mt.target));
	CLEANUP(free_charp) char *loop = x_asprintf("/dev/loop%u", minor(mounts_top(mt.target)->dev));
	int loop_fd = open(loop, O_RDONLY | O_CLOEXEC);
	ck_assert_int_eq(ioctl(loop_fd, LOOP_GET_STATUS64, &info), 0);
	ck_assert_int_eq(close(loop_fd), 0);
	ck_assert_uint_eq(info.lo_offset, KATA_ALIGN_BYTES);
	ck_assert_uint_eq(info.lo_sizelimit, 0);
	unpublish();
}
END_TEST

/* Errors are not provoked here: where this fails, they would stop the machine. */
START_TEST(file_system_of_a_guest_does_not_stop_the_node)
{
	publish(/* guest= */ false);
	unpublish();
	as_guest("tune2fs -e panic \"$1\" >/dev/null");
	publish(_i);
	ck_assert(mount_entry_has(mounts_top(mt.target), "errors=remount-ro"));
	unpublish();
}
END_TEST

START_TEST(devices_and_rights_of_a_guest_are_not_in_force)
{
	CLEANUP(free_charp) char *node = x_asprintf("%s/node", mt.target);
	CLEANUP(free_charp) char *program = x_asprintf("%s/id", mt.target);
	CLEANUP(buf_done) struct buf out = BUF_INIT(64);
	const char *const argv[] = {program, "-u", NULL};
	struct error *err = NULL;

	publish(/* guest= */ false);
	unpublish();
	as_guest(
		"mkdir \"$2-guest\"; mount \"$1\" \"$2-guest\"; cd \"$2-guest\"; mknod node c 1 3; cp /usr/bin/id id; "
		"chown 12345 id; chmod 4755 id; cd /; umount \"$2-guest\"; rmdir \"$2-guest\"");
	publish(_i);
	ck_assert_int_lt(open(node, O_RDONLY | O_CLOEXEC), 0);
	ck_assert_int_eq(errno, EACCES);
	ASSERT_OK(spawn_check(argv, &out, 10000, &err));
	ck_assert_str_eq(buf_str(&out), "0\n");
	unpublish();
}
END_TEST

/* The root of a guest writes all of it as it likes; offset and size are those of the file. */
START_TEST(head_that_a_guest_has_changed_steers_nothing)
{
	static const uint8_t garbage[8192] = {0xff, 0x01, 0x02};
	CLEANUP(free_charp) char *path = image_path();
	CLEANUP(fd_closep) int fd = -1;

	publish(/* guest= */ false);
	ck_assert_int_eq(mounts_write(mt.target), 0);
	unpublish();
	fd = open(path, O_WRONLY | O_CLOEXEC);
	ck_assert_int_eq(pwrite(fd, garbage, sizeof(garbage), 0), sizeof(garbage));
	publish(/* guest= */ false);
	ck_assert(mounts_has_file(mt.target));
	unpublish();
}
END_TEST

START_TEST(one_pod_at_a_time)
{
	struct error *err = NULL;

	publish(/* guest= */ false);
	ASSERT_FAILS(publish_at(mt.other, false, &err), ERR_PRECONDITION, "one pod at a time");
	ASSERT_FAILS(publish_at(mt.other, true, &err), ERR_PRECONDITION, "one pod at a time");
	ASSERT_FAILS(publish_at(mt.target, true, &err), ERR_EXISTS, "read-only was requested");
	ck_assert_int_ne(access(mt.other, F_OK), 0);
	unpublish();
	ASSERT_OK(publish_at(mt.other, true, &err));
	ASSERT_OK(volumes_unpublish(fx.v, mt.volume->id, mt.other, &err));
	assert_taken_down();
}
END_TEST

/* As the hypervisor of one that outlives its pod. */
START_TEST(image_that_a_guest_still_has_is_not_published_again)
{
	CLEANUP(free_charp) char *folder = host_folder();
	CLEANUP(free_charp) char *path = x_asprintf("%s/" KATA_IMAGE_NAME, folder);
	struct error *err = NULL;

	publish(/* guest= */ true);
	int fd = open(path, O_RDWR | O_CLOEXEC);
	ck_assert_int_ge(fd, 0);
	ASSERT_FAILS(volumes_unpublish(fx.v, mt.volume->id, mt.target, &err), ERR_PRECONDITION, "busy");
	ASSERT_FAILS(publish_at(mt.other, false, &err), ERR_PRECONDITION, "may still be used by a guest");
	ASSERT_FAILS(publish_at(mt.target, true, &err), ERR_PRECONDITION, "may still be used by a guest");
	ck_assert_int_ne(access(mt.other, F_OK), 0);
	ck_assert_int_eq(close(fd), 0);
	ASSERT_OK(publish_at(mt.other, false, &err));
	ASSERT_OK(volumes_unpublish(fx.v, mt.volume->id, mt.target, &err));
	ck_assert_uint_eq(mounts_count(mt.other), 1);
	ASSERT_OK(volumes_unpublish(fx.v, mt.volume->id, mt.other, &err));
	assert_taken_down();
}
END_TEST

/* Source: Linux fs/xfs/libxfs/xfs_fs.h, which is not exported. */
#define XFS_GOINGDOWN         _IOR('X', 125, uint32_t)
#define XFS_GOINGDOWN_NOFLUSH 2u

/* An xfs that has shut down does not even say which file a loop device is over. */
START_TEST(file_system_that_has_failed_keeps_no_pod_and_hides_no_other_volume)
{
	struct volume_request q = fixture_request("pvc-other", SIZE);
	CLEANUP(volume_info_freep) struct volume_info *other = NULL;
	uint32_t how = XFS_GOINGDOWN_NOFLUSH;
	struct error *err = NULL;

	publish(/* guest= */ _i);
	int fd = open(mt.staging, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	ck_assert_int_eq(ioctl(fd, XFS_GOINGDOWN, &how), 0);
	ck_assert_int_eq(close(fd), 0);
	ASSERT_OK(volumes_create(fx.v, &q, &other, &err));
	unpublish();
	assert_taken_down();
	unstage();
}
END_TEST

/* An option of its log would be refused, since the log is not loaded. */
START_TEST(guest_gets_a_volume_with_options_of_its_file_system)
{
	struct use_request q = mounts_publish_request(mt.target, ACCESS_SINGLE_WRITER);
	struct error *err = NULL;

	q.mount_flags = (char *[]){(char[]){"commit=60"}, (char[]){"noatime"}, NULL};
	for (int guest = 0; guest < 2; guest++) {
		runs_in_guest = guest;
		ASSERT_OK(volumes_publish(fx.v, &q, &err));
		ck_assert(mount_entry_has(mounts_top(mt.target), "noatime"));
		unpublish();
	}
}
END_TEST

START_TEST(target_with_content_is_not_covered)
{
	struct error *err = NULL;

	ck_assert_int_eq(mkdir(mt.target, 0755), 0);
	ck_assert_int_eq(mounts_write(mt.target), 0);
	ASSERT_FAILS(publish_at(mt.target, false, &err), ERR_PRECONDITION, "not empty");
	ck_assert(mounts_has_file(mt.target));
	assert_taken_down();
}
END_TEST

START_TEST(guests_get_nothing_read_only)
{
	struct use_request q = mounts_publish_request(mt.target, ACCESS_SINGLE_WRITER);
	struct error *err = NULL;

	q.readonly = true;
	runs_in_guest = true;
	ASSERT_FAILS(volumes_publish(fx.v, &q, &err), ERR_INVALID_ARGUMENT, "read-only");
	runs_in_guest = false;
	ASSERT_OK(volumes_publish(fx.v, &q, &err));
	ck_assert(mount_entry_is_readonly(mounts_top(mt.target)));
	unpublish();
}
END_TEST

START_TEST(without_an_answer_nothing_is_published)
{
	struct error *err = NULL;

	pods_fail = ERR_UNAVAILABLE;
	ASSERT_FAILS(publish_at(mt.target, false, &err), ERR_UNAVAILABLE, "no controller");
	assert_taken_down();
	fx.pods = NULL;
	fixture_restart();
	share_state_folder();
	ASSERT_OK(publish_at(mt.target, false, &err));
	/* where nothing is known of pods, each may be a guest */
	ck_assert(mount_entry_is_readonly(mounts_top(mt.target)));
	unpublish();
}
END_TEST

static uint64_t total_bytes(void)
{
	struct volume_stats stats;
	struct error *err = NULL;

	ASSERT_OK(volumes_stats(fx.v, mt.volume->id, mt.target, &stats, &err));
	return stats.usage.total_bytes;
}

START_TEST(grows_while_no_pod_uses_it)
{
	struct expand_request q = {.handle = mt.volume->id, .required_bytes = 2 * mt.volume->size_bytes};
	struct node_expand_request node = {.handle = mt.volume->id, .path = mt.staging};
	struct expand_result result;
	uint64_t bytes;
	struct error *err = NULL;

	publish(/* guest= */ false);
	ck_assert_int_eq(mounts_write(mt.target), 0);
	uint64_t before = total_bytes();
	ASSERT_FAILS(volumes_expand(fx.v, &q, &result, &err), ERR_PRECONDITION, "no pod uses it");
	unpublish();
	ASSERT_OK(volumes_expand(fx.v, &q, &result, &err));
	if (volumes_node_expand(fx.v, &node, &bytes, &err) < 0) {
		/* ext4 grows for processes with CAP_SYS_RESOURCE only */
		ck_assert_msg(strstr(err->msg, "SYS_RESOURCE"), "%s", err->msg);
		error_clear(&err);
		return;
	}
	publish(/* guest= */ false);
	ck_assert(mounts_has_file(mt.target));
	ck_assert_uint_gt(total_bytes(), before + before / 2);
	unpublish();
}
END_TEST

START_TEST(clone_has_the_image_and_both_are_used_at_a_time)
{
	struct volume_request q = wanted("pvc-2", 0);
	CLEANUP(volume_info_freep) struct volume_info *clone = NULL;
	CLEANUP(free_charp) char *staging = fixture_path("kubelet/staging-2");
	struct error *err = NULL;

	publish(/* guest= */ false);
	ck_assert_int_eq(mounts_write(mt.target), 0);
	q.source = mt.volume->id;
	ASSERT_OK(volumes_create(fx.v, &q, &clone, &err));
	ck_assert_int_eq(mkdir(staging, 0755), 0);
	struct use_request s = mounts_stage_request(fs_type);
	s.handle = clone->id;
	s.staging_path = staging;
	ASSERT_OK(volumes_stage(fx.v, &s, &err));
	struct use_request p = mounts_publish_request(mt.other, ACCESS_SINGLE_WRITER);
	p.handle = clone->id;
	p.staging_path = staging;
	p.fs_type = fs_type;
	ASSERT_OK(volumes_publish(fx.v, &p, &err));
	ck_assert(mounts_has_file(mt.other));
	ASSERT_OK(volumes_unpublish(fx.v, clone->id, mt.other, &err));
	strmap_done(&parameters);
	q.name = "pvc-3";
	ASSERT_FAILS(volumes_create(fx.v, &q, &(struct volume_info *){NULL}, &err), ERR_INVALID_ARGUMENT,
		"kataContainers=true");
	unpublish();
}
END_TEST

/* Also after the driver has ended meanwhile. */
START_TEST(inline_volume_comes_and_goes_with_its_pod)
{
	CLEANUP(strmap_done) struct strmap context = {0};
	struct use_request q = {
		.handle = "csi-inline", .target_path = mt.target, .fs_type = "ext4", .context = &context};
	struct error *err = NULL;

	share_state_folder();
	strmap_set(&context, "csi.storage.k8s.io/ephemeral", "true");
	strmap_set(&context, "size", "64Mi");
	strmap_set(&context, "kataContainers", "true");
	runs_in_guest = _i;
	ASSERT_OK(volumes_publish(fx.v, &q, &err));
	ASSERT_OK(volumes_publish(fx.v, &q, &err));
	ck_assert_uint_eq(mounts_count(mt.target), 1);
	ck_assert_int_eq(mount_entry_is_readonly(mounts_top(mt.target)), _i);
	fixture_restart();
	ASSERT_OK(volumes_publish(fx.v, &q, &err));
	ASSERT_OK(volumes_unpublish(fx.v, q.handle, mt.target, &err));
	fixture_await_erased();
	ck_assert_uint_eq(fixture_n_devices(), 0);
	ck_assert_uint_eq(mounts_count(mt.target), 0);
}
END_TEST

int main(void)
{
	TCase *tcase = fixture_case("kata_offered", set_up_folder);

	if (!tcase)
		return SKIP_STATUS;
	fs_type = "ext4";
	tcase_add_test(tcase, such_volumes_need_a_folder_that_the_host_sees);
	tcase_add_loop_test(tcase, smallest_volume_has_room_for_an_image, 0, 2);
	tcase_add_loop_test(tcase, inline_volume_comes_and_goes_with_its_pod, 0, 2);
	tcase = fixture_more_cases("kata_image", set_up);
	tcase_add_test(tcase, block_volumes_and_file_io_are_refused);
	tcase_add_test(tcase, ordinary_pod_writes_and_a_guest_reads_the_same_file);
	tcase_add_test(tcase, image_is_made_once_and_recorded);
	tcase_add_test(tcase, image_without_a_record_is_used);
	tcase_add_test(tcase, what_is_no_image_any_more_is_refused);
	tcase_add_test(tcase, what_is_no_file_at_all_is_refused);
	tcase_add_test(tcase, head_that_a_guest_has_changed_steers_nothing);
	tcase_add_test(tcase, place_of_the_file_system_is_not_read_from_the_image);
	tcase_add_loop_test(tcase, file_system_of_a_guest_does_not_stop_the_node, 0, 2);
	tcase_add_loop_test(tcase, devices_and_rights_of_a_guest_are_not_in_force, 0, 2);
	tcase_add_test(tcase, one_pod_at_a_time);
	tcase_add_test(tcase, image_that_a_guest_still_has_is_not_published_again);
	tcase_add_test(tcase, guest_gets_a_volume_with_options_of_its_file_system);
	tcase_add_test(tcase, target_with_content_is_not_covered);
	tcase_add_test(tcase, guests_get_nothing_read_only);
	tcase_add_test(tcase, without_an_answer_nothing_is_published);
	tcase_add_test(tcase, grows_while_no_pod_uses_it);
	tcase_add_test(tcase, clone_has_the_image_and_both_are_used_at_a_time);
	tcase = fixture_more_cases("kata_image_xfs", set_up_xfs);
	tcase_add_test(tcase, ordinary_pod_writes_and_a_guest_reads_the_same_file);
	tcase_add_test(tcase, grows_while_no_pod_uses_it);
	tcase_add_loop_test(tcase, file_system_that_has_failed_keeps_no_pod_and_hides_no_other_volume, 0, 2);
	tcase_add_test(tcase, clone_has_the_image_and_both_are_used_at_a_time);
	return fixture_finish();
}
