/* SPDX-License-Identifier: Apache-2.0 */
/* Mounts and loop devices that the Go driver set up for Kata Containers are taken over, and removed. */
#include <fcntl.h>
#include <linux/loop.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"
#include "os/file.h"
#include "os/fs.h"
#include "os/loopdev.h"
#include "unit/volume/mounts.h"

#define SIZE  MIB(64)
#define IMAGE "kata-containers-pmem-csi-vm.img"
#define ID    "kata"
/* the name of an inline volume */
#define HANDLE "csi-0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static char *folder;
static char *image;
static char *loop;
static struct device *device;

/* It stays attached when nothing uses it, as that of losetup(8). */
static void attach(void)
{
	CLEANUP(fd_closep) int fd = open(image, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	CLEANUP(fd_closep) int loop_fd = -1;
	struct loop_info64 info;
	struct error *err = NULL;

	ck_assert_int_eq(ftruncate(fd, (off_t)MIB(16)), 0);
	ASSERT_OK(loop_attach(fd, &loop, &err));
	loop_fd = open(loop, O_RDWR | O_CLOEXEC);
	ck_assert_int_eq(ioctl(loop_fd, LOOP_GET_STATUS64, &info), 0);
	info.lo_offset = MIB(2);
	ck_assert_int_eq(ioctl(loop_fd, LOOP_SET_STATUS64, &info), 0);
	ASSERT_OK(fs_make("ext4", loop, NULL, 60000, &err));
}

/* As the Go driver leaves it while a pod runs. @handle: of the call that published it; @more: parameters */
static void set_up_as(const char *handle, const char *more)
{
	CLEANUP(free_charp)
	char *state = x_asprintf("{\"id\":\"" ID "\",\"size\":67108864,\"parameters\":{"
				 "\"kataContainers\":\"true\",\"deviceMode\":\"fake\"%s}}\n",
		more);
	struct error *err = NULL;

	mounts_set_up(MIB(16));
	device = fixture_add_device(ID, 0, "", SIZE);
	fixture_write(ID ".json", state);
	fixture_restart();
	ASSERT_OK(fs_make("ext4", device->path, NULL, 60000, &err));
	CLEANUP(free_charp) char *parent = fixture_path("state/mount");
	folder = x_asprintf("%s/%s", parent, handle);
	image = x_asprintf("%s/%s", folder, IMAGE);
	ck_assert_int_eq(mkdir(parent, 0755), 0);
	ck_assert_int_eq(mkdir(folder, 0755), 0);
	ck_assert_int_eq(mount(device->path, folder, "ext4", 0, NULL), 0);
	attach();
	ck_assert_int_eq(mkdir(mt.target, 0755), 0);
	ck_assert_int_eq(mount(loop, mt.target, "ext4", 0, NULL), 0);
}

static void set_up(void)
{
	set_up_as(ID, "");
}

static void set_up_inline(void)
{
	set_up_as(HANDLE, ",\"persistencyModel\":\"ephemeral\",\"name\":\"" HANDLE "\"");
}

/* Others may have attached theirs to the device meanwhile. */
static bool loop_is_attached(void)
{
	CLEANUP(free_charp)
	char *sysfs = x_asprintf("/sys/block/%s/loop/backing_file", strrchr(loop, '/') + 1);
	CLEANUP(buf_done) struct buf text = BUF_INIT(4096);
	CLEANUP(error_freep) struct error *ignored = NULL;

	return file_read(AT_FDCWD, sysfs, &text, &ignored) == 0 && strstr(buf_str(&text), IMAGE);
}

static void assert_clean(void)
{
	ck_assert_uint_eq(mounts_count(mt.target), 0);
	ck_assert_uint_eq(mounts_count(folder), 0);
	ck_assert_int_ne(access(folder, F_OK), 0);
	ck_assert_int_ne(access(mt.target, F_OK), 0);
	ck_assert(!loop_is_attached());
}

START_TEST(unpublishing_takes_down_loop_and_mount)
{
	struct error *err = NULL;

	ASSERT_FAILS(volumes_delete(fx.v, ID, &err), ERR_PRECONDITION, "in use");
	for (int i = 0; i < 2; i++) {
		ASSERT_OK(volumes_unpublish(fx.v, ID, mt.target, &err));
		assert_clean();
	}
	ASSERT_OK(volumes_delete(fx.v, ID, &err));
}
END_TEST

START_TEST(unpublishing_goes_on_where_it_was_cut_off)
{
	CLEANUP(fd_closep) int fd = open(image, O_RDWR | O_CLOEXEC);
	struct error *err = NULL;

	ck_assert_int_eq(umount(mt.target), 0);
	if (_i >= 1)
		ck_assert_int_eq(rmdir(mt.target), 0);
	if (_i >= 2)
		ASSERT_OK(loop_detach(fd, &err));
	fd_closep(&fd);
	fd = -1;
	if (_i >= 3)
		ck_assert_int_eq(umount(folder), 0);
	ASSERT_OK(volumes_unpublish(fx.v, ID, mt.target, &err));
	assert_clean();
}
END_TEST

/* An administrator has moved the image, or unmounted the folder, while a pod uses the volume. */
START_TEST(loop_is_found_by_the_file_system_of_the_volume)
{
	CLEANUP(free_charp) char *moved = x_asprintf("%s/moved", folder);
	struct error *err = NULL;

	if (_i == 0)
		ck_assert_int_eq(rename(image, moved), 0);
	if (_i == 1)
		ck_assert_int_eq(unlink(image), 0);
	if (_i == 2)
		ck_assert_int_eq(umount2(folder, MNT_DETACH), 0);
	if (_i == 3) {
		ck_assert_int_eq(umount2(folder, MNT_DETACH), 0);
		ck_assert_int_eq(rmdir(folder), 0);
	}
	ASSERT_FAILS(volumes_delete(fx.v, ID, &err), ERR_PRECONDITION, "in use");
	ASSERT_OK(volumes_unpublish(fx.v, ID, mt.target, &err));
	assert_clean();
}
END_TEST

/* The file system that covers the folder was not mounted by the driver, which must not unmount it. */
START_TEST(what_covers_the_folder_stays_and_the_pod_ends)
{
	struct error *err = NULL;

	ck_assert_int_eq(mount("tmpfs", folder, "tmpfs", 0, NULL), 0);
	ASSERT_OK(volumes_unpublish(fx.v, ID, mt.target, &err));
	ck_assert_uint_eq(mounts_count(mt.target), 0);
	ck_assert_uint_eq(mounts_count(folder), 2);
	ck_assert(!loop_is_attached());
	ASSERT_FAILS(volumes_delete(fx.v, ID, &err), ERR_PRECONDITION, "in use");
	ck_assert_int_eq(umount(folder), 0);
	ASSERT_OK(volumes_unpublish(fx.v, ID, mt.target, &err));
	assert_clean();
}
END_TEST

/* Its record cannot be read, or not its parameters: the device is known by its name. */
START_TEST(damaged_record_keeps_no_pod)
{
	static const char *const damage[] = {"{", "{\"id\":\"" ID "\",\"size\":67108864,\"parameters\":{"
						  "\"kataContainers\":\"perhaps\",\"deviceMode\":\"fake\"}}"};
	struct error *err = NULL;

	fixture_write(ID ".json", damage[_i]);
	fixture_restart();
	ASSERT_OK(volumes_unpublish(fx.v, ID, mt.target, &err));
	assert_clean();
}
END_TEST

START_TEST(further_target_keeps_loop_and_mount)
{
	struct error *err = NULL;

	ck_assert_int_eq(mkdir(mt.other, 0755), 0);
	ck_assert_int_eq(mount(mt.target, mt.other, NULL, MS_BIND, NULL), 0);
	ASSERT_OK(volumes_unpublish(fx.v, ID, mt.target, &err));
	ck_assert(loop_is_attached());
	ck_assert_uint_eq(mounts_count(folder), 1);
	ck_assert_uint_eq(mounts_count(mt.other), 1);
	ASSERT_OK(volumes_unpublish(fx.v, ID, mt.other, &err));
	assert_clean();
}
END_TEST

START_TEST(numbers_are_those_of_the_image)
{
	struct volume_stats stats;
	struct error *err = NULL;

	ASSERT_OK(volumes_stats(fx.v, ID, mt.target, &stats, &err));
	ck_assert_uint_lt(stats.usage.total_bytes, MIB(16));
	ASSERT_OK(volumes_unpublish(fx.v, ID, mt.target, &err));
}
END_TEST

/* The image is not one: it was made without a head. */
START_TEST(such_a_volume_is_staged_and_its_image_examined)
{
	struct use_request p = mounts_publish_request(mt.other, ACCESS_SINGLE_WRITER);
	struct use_request s = mounts_stage_request("ext4");
	CLEANUP(volume_info_freep) struct volume_info *info = NULL;
	struct error *err = NULL;

	ASSERT_OK(volumes_get(fx.v, ID, &info, &err));
	p.handle = s.handle = ID;
	ASSERT_OK(volumes_stage(fx.v, &s, &err));
	ASSERT_FAILS(volumes_publish(fx.v, &p, &err), ERR_PRECONDITION, "one pod at a time");
	p.target_path = mt.target;
	ASSERT_OK(volumes_publish(fx.v, &p, &err));
	ck_assert_uint_eq(mounts_count(mt.target), 1);
	ASSERT_OK(volumes_unpublish(fx.v, ID, mt.target, &err));
	assert_clean();
	ASSERT_FAILS(volumes_publish(fx.v, &p, &err), ERR_PRECONDITION, "PFN superblock");
	assert_clean();
	p.block = true;
	ASSERT_FAILS(volumes_publish(fx.v, &p, &err), ERR_INVALID_ARGUMENT, "file system");
	ASSERT_OK(volumes_unstage(fx.v, ID, mt.staging, &err));
}
END_TEST

START_TEST(inline_volume_goes_with_its_pod)
{
	CLEANUP(strmap_done) struct strmap context = {0};
	struct use_request q = {
		.handle = HANDLE, .target_path = mt.target, .fs_type = "", .context = &context};
	struct error *err = NULL;

	strmap_set(&context, "csi.storage.k8s.io/ephemeral", "true");
	strmap_set(&context, "size", "64Mi");
	strmap_set(&context, "kataContainers", "true");
	ASSERT_OK(volumes_publish(fx.v, &q, &err));
	ck_assert_uint_eq(mounts_count(mt.target), 1);
	for (int i = 0; i < 2; i++) {
		ASSERT_OK(volumes_unpublish(fx.v, HANDLE, mt.target, &err));
		assert_clean();
	}
	fixture_await_erased();
	ck_assert_uint_eq(fixture_n_devices(), 1);
}
END_TEST

int main(void)
{
	static const int n_cuts = 4;
	TCase *tcase = fixture_case("kata", set_up);

	if (!tcase)
		return SKIP_STATUS;
	tcase_add_test(tcase, unpublishing_takes_down_loop_and_mount);
	tcase_add_loop_test(tcase, unpublishing_goes_on_where_it_was_cut_off, 0, n_cuts);
	tcase_add_loop_test(tcase, loop_is_found_by_the_file_system_of_the_volume, 0, n_cuts);
	tcase_add_test(tcase, what_covers_the_folder_stays_and_the_pod_ends);
	tcase_add_loop_test(tcase, damaged_record_keeps_no_pod, 0, 2);
	tcase_add_test(tcase, further_target_keeps_loop_and_mount);
	tcase_add_test(tcase, numbers_are_those_of_the_image);
	tcase_add_test(tcase, such_a_volume_is_staged_and_its_image_examined);
	tcase = fixture_more_cases("kata_inline", set_up_inline);
	tcase_add_test(tcase, inline_volume_goes_with_its_pod);
	return fixture_finish();
}
