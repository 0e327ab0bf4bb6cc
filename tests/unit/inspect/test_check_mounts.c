/* SPDX-License-Identifier: Apache-2.0 */
/* Compares mounts with records, and finds loop devices that belong to no volume, and media errors, which need
 * a folder of fake devices, too. */
#include <fcntl.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include "base/mem.h"
#include "base/str.h"
#include "inspect/repair.h"
#include "unit/inspect/checked.h"
#include "unit/volume/mounts.h"
#include "volume/id.h"

#define SIZE MIB(16)

static void set_up(void)
{
	struct error *err = NULL;

	mounts_set_up(SIZE);
	const struct use_request stage = mounts_stage_request("ext4");
	const struct use_request publish = mounts_publish_request(mt.target, ACCESS_SINGLE_WRITER);
	ASSERT_OK(volumes_stage(fx.v, &stage, &err));
	ASSERT_OK(volumes_publish(fx.v, &publish, &err));
}

static void repair_as(enum adopted_kind kind, struct repair_report *ret)
{
	struct error *err = NULL;

	repair_report_done(ret);
	fixture_stop();
	fixture_open();
	ASSERT_OK(volumes_repair(fx.v, mt.volume->id, kind, ret, &err));
}

static void repair(struct repair_report *ret)
{
	repair_as(ADOPTED_AS_FOUND, ret);
}

static void make_folder(const char *path)
{
	ck_assert_int_eq(mkdir(path, 0755), 0);
}

START_TEST(recorded_mounts_are_consistent)
{
	checked_look();
	ck_assert_uint_eq(checked_n(), 0);
	checked_done();
}
END_TEST

START_TEST(recorded_paths_that_are_no_mounts_are_stale_and_repaired)
{
	CLEANUP(repair_report_done) struct repair_report r = {0};
	CLEANUP(volume_record_freep) struct volume_record *record = NULL;

	ck_assert_int_eq(umount(mt.target), 0);
	checked_look();
	checked_only(CHECK_STALE_TARGET, mt.volume->id);
	ck_assert_int_eq(umount(mt.staging), 0);
	checked_look();
	ck_assert_uint_eq(checked_n(), 2);
	ck_assert_ptr_nonnull(checked_find(CHECK_STALE_STAGING, mt.volume->id));

	repair(&r);
	ck_assert_uint_eq(strv_len(r.done), 2);
	ck_assert_ptr_null(r.left);
	record = mounts_record();
	ck_assert_ptr_null(record->staging_path);
	ck_assert_uint_eq(strv_len(record->targets), 0);
	ck_assert(record->ever_staged);
	repair(&r);
	ck_assert(!r.done && !r.left);
	checked_look();
	ck_assert_uint_eq(checked_n(), 0);
	checked_done();
}
END_TEST

static void make_folders_of(const char *const *names, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		CLEANUP(free_charp) char *path = fixture_path(names[i]);
		ck_assert_int_eq(mkdir(path, 0755), 0);
	}
}

/* Its target is the only trace of its pod, so that a repair keeps it. */
START_TEST(an_inline_volume_without_its_pod_is_shown_as_left_over)
{
	static const char *const folders[] = {"kubelet/pods", "kubelet/pods/another", "kubelet/pods/lost",
		"kubelet/pods/lost/volumes", "kubelet/pods/lost/volumes/kubernetes.io~csi",
		"kubelet/pods/lost/volumes/kubernetes.io~csi/data"};
	CLEANUP(free_charp)
	char *target = fixture_path("kubelet/pods/lost/volumes/kubernetes.io~csi/data/mount");
	CLEANUP(repair_report_done) struct repair_report r = {0};
	CLEANUP(strmap_done) struct strmap context = {0};
	char handle[] = "csi-0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
	const struct use_request q = {
		.handle = handle, .target_path = target, .fs_type = "", .context = &context};
	char id[VOLUME_ID_MAX + 1];
	struct error *err = NULL;

	make_folders_of(folders, ARRAY_SIZE(folders));
	strmap_set(&context, "csi.storage.k8s.io/ephemeral", "true");
	strmap_set(&context, "size", "16Mi");
	ASSERT_OK(volumes_publish(fx.v, &q, &err));
	volume_id_mint(handle, NODE_ID, id);
	ck_assert_int_eq(umount(target), 0);
	for (int gone = 0; gone < 2; gone++) {
		checked_look();
		checked_only(gone ? CHECK_LEFT_OVER : CHECK_STALE_TARGET, id);
		repair_report_done(&r);
		fixture_stop();
		fixture_open();
		ASSERT_OK(volumes_repair(fx.v, id, ADOPTED_AS_FOUND, &r, &err));
		checked_look();
		checked_only(gone ? CHECK_LEFT_OVER : CHECK_STALE_TARGET, id);
		for (size_t i = ARRAY_SIZE(folders) - 1; !gone && i > 1; i--) {
			CLEANUP(free_charp) char *path = fixture_path(folders[i]);
			(void)!rmdir(target);
			ck_assert_int_eq(rmdir(path), 0);
		}
	}
	checked_done();
}
END_TEST

START_TEST(another_mount_at_a_recorded_path_is_not_the_volume)
{
	ck_assert_int_eq(umount(mt.target), 0);
	ck_assert_int_eq(mount("none", mt.target, "tmpfs", 0, NULL), 0);
	checked_look();
	checked_only(CHECK_STALE_TARGET, mt.volume->id);
	checked_done();
}
END_TEST

START_TEST(mounts_in_force_are_kept_by_a_repair)
{
	CLEANUP(repair_report_done) struct repair_report r = {0};

	repair(&r);
	ck_assert(!r.done && !r.left);
	ck_assert(mounts_has_target(mt.target));
	checked_done();
}
END_TEST

START_TEST(a_mount_that_nobody_records_is_found)
{
	CLEANUP(free_charp) char *by_hand = fixture_path("by-hand");

	make_folder(by_hand);
	ck_assert_int_eq(mount(mt.device->path, by_hand, "ext4", 0, NULL), 0);
	checked_look();
	checked_only(CHECK_UNKNOWN_MOUNT, mt.volume->id);
	ck_assert_ptr_nonnull(strstr(checked_find(CHECK_UNKNOWN_MOUNT, mt.volume->id)->text, by_hand));
	checked_done();
}
END_TEST

START_TEST(a_bound_node_is_a_mount_of_the_device)
{
	CLEANUP(free_charp) char *node = fixture_path("node");
	CLEANUP(fd_closep) int fd = open(node, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(mount(mt.device->path, node, NULL, MS_BIND, NULL), 0);
	checked_look();
	checked_only(CHECK_UNKNOWN_MOUNT, mt.volume->id);
	checked_done();
}
END_TEST

/* Binds the device's node in the folder @below kubelet's of block volumes. */
static void bind_node_as_kubelet(const char *below)
{
	CLEANUP(free_charp) char *relative = x_asprintf("kubernetes.io/csi/volumeDevices/%s/uid", below);
	CLEANUP(free_charp) char *node = fixture_path(relative);

	for (char *end = node + strlen(node) - strlen(relative); (end = strchr(end, '/')) != NULL; end++) {
		CLEANUP(free_charp) char *folder = x_strndup(node, (size_t)(end - node));

		if (access(folder, F_OK) < 0)
			make_folder(folder);
	}
	CLEANUP(fd_closep) int fd = open(node, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(mount(mt.device->path, node, NULL, MS_BIND, NULL), 0);
}

START_TEST(kubelets_bind_of_a_block_device_is_no_stranger)
{
	bind_node_as_kubelet("pvc-1/dev");
	checked_look();
	ck_assert_uint_eq(checked_n(), 0);
	bind_node_as_kubelet("pvc-1/data");
	checked_look();
	checked_only(CHECK_UNKNOWN_MOUNT, mt.volume->id);
	checked_done();
}
END_TEST

START_TEST(kubelets_subpaths_and_a_second_view_of_the_host_are_no_strangers)
{
	CLEANUP(free_charp) char *folder = fixture_path("volume-subpaths");
	CLEANUP(free_charp) char *subpath = x_asprintf("%s/0", folder);
	CLEANUP(free_charp) char *host = fixture_path("host");
	CLEANUP(free_charp) char *kubelet = fixture_path("kubelet");
	CLEANUP(free_charp) char *copy = x_asprintf("%s%s", host, kubelet);
	CLEANUP(free_charp) char *root = strndup(kubelet, (size_t)(strrchr(kubelet, '/') - kubelet));
	CLEANUP(free_charp) char *host_root = x_asprintf("%s%s", host, root);
	CLEANUP(free_charp)
	char *host_tmp = strndup(host_root, (size_t)(strrchr(host_root, '/') - host_root));

	make_folder(folder);
	make_folder(subpath);
	ck_assert_int_eq(mount(mt.staging, subpath, NULL, MS_BIND, NULL), 0);
	make_folder(host);
	make_folder(host_tmp);
	make_folder(host_root);
	make_folder(copy);
	ck_assert_int_eq(mount(kubelet, copy, NULL, MS_BIND | MS_REC, NULL), 0);
	checked_look();
	ck_assert_uint_eq(checked_n(), 0);
	checked_done();
}
END_TEST

START_TEST(a_missing_device_does_not_make_its_mounts_stale)
{
	fx.faults.absent_pool = mt.device->pool;
	checked_look();
	checked_only(CHECK_MISSING, mt.volume->id);
	checked_done();
}
END_TEST

START_TEST(what_is_mounted_is_not_forgotten)
{
	CLEANUP(repair_report_done) struct repair_report r = {0};
	struct error *err = NULL;

	fx.faults.absent_pool = mt.device->pool;
	fixture_stop();
	fixture_open();
	ASSERT_OK(volumes_drop_state(fx.v, mt.volume->id, &r, &err));
	ck_assert(!r.done && strstr(r.left[0], mt.staging));
	ck_assert_uint_eq(fixture_n_files(), 1);
	checked_done();
}
END_TEST

START_TEST(a_mounted_device_without_state_is_reported_and_not_adopted)
{
	CLEANUP(repair_report_done) struct repair_report r = {0};
	CLEANUP(free_charp) char *file = x_asprintf("%s.json", mt.volume->id);
	CLEANUP(free_charp) char *path = x_asprintf("state/%s", file);
	CLEANUP(free_charp) char *full = fixture_path(path);

	ck_assert_int_eq(unlink(full), 0);
	checked_look();
	ck_assert_ptr_nonnull(checked_find(CHECK_STRANGER, mt.volume->id));
	ck_assert_ptr_nonnull(checked_find(CHECK_UNKNOWN_MOUNT, mt.volume->id));
	repair(&r);
	ck_assert(!r.done && strstr(r.left[0], "in use"));
	ck_assert(!fixture_exists(file));
	checked_done();
}
END_TEST

START_TEST(a_device_that_was_in_use_is_adopted_with_its_content)
{
	CLEANUP(repair_report_done) struct repair_report r = {0};
	CLEANUP(volume_record_freep) struct volume_record *record = NULL;
	CLEANUP(free_charp) char *path = x_asprintf("state/%s.json", mt.volume->id);
	CLEANUP(free_charp) char *full = fixture_path(path);
	struct error *err = NULL;

	ck_assert_int_eq(mounts_write(mt.staging), 0);
	ck_assert_int_eq(umount(mt.target), 0);
	ck_assert_int_eq(umount(mt.staging), 0);
	ck_assert_int_eq(unlink(full), 0);
	repair_as(ADOPTED_FILESYSTEM, &r);
	ck_assert_uint_eq(strv_len(r.done), 1);
	ck_assert_ptr_null(r.left);
	record = mounts_record();
	ck_assert_str_eq(record->fs_type, "ext4");
	ck_assert_str_eq(record->identity, mt.device->identity);
	ck_assert_str_eq(record->pool, mt.device->pool);
	ck_assert(record->ever_staged);
	ck_assert(!record->block_clean);

	fixture_restart();
	const struct use_request stage = mounts_stage_request("ext4");
	ASSERT_OK(volumes_stage(fx.v, &stage, &err));
	ck_assert(mounts_has_file(mt.staging));
}
END_TEST

START_TEST(a_loop_of_no_device_is_found)
{
	CLEANUP(free_charp) char *image = fixture_path("fake/left.image");
	CLEANUP(fd_closep) int fd = open(image, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	CLEANUP(free_charp) char *loop = NULL;
	struct error *err = NULL;

	ck_assert_int_eq(ftruncate(fd, (off_t)MIB(1)), 0);
	ASSERT_OK(loop_attach(fd, &loop, &err));
	checked_look();
	checked_only(CHECK_LOOP, loop);
	ASSERT_OK(loop_detach(fd, &err));
	checked_look();
	ck_assert_uint_eq(checked_n(), 0);
	checked_done();
}
END_TEST

START_TEST(a_loop_of_a_kata_volume_that_is_not_mounted_is_found)
{
	CLEANUP(free_charp) char *mounts = fixture_path("state/mount");
	CLEANUP(free_charp) char *folder = fixture_path("state/mount/kata-1");
	CLEANUP(free_charp) char *image = fixture_path("state/mount/kata-1/x.image");
	CLEANUP(free_charp) char *loop = NULL;
	struct error *err = NULL;

	make_folder(mounts);
	make_folder(folder);
	CLEANUP(fd_closep) int fd = open(image, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	ck_assert_int_eq(ftruncate(fd, (off_t)MIB(1)), 0);
	ASSERT_OK(loop_attach(fd, &loop, &err));
	checked_look();
	checked_only(CHECK_LOOP, "kata-1");
	ASSERT_OK(loop_detach(fd, &err));
	checked_done();
}
END_TEST

START_TEST(memory_that_cannot_be_read_is_found_below_volumes)
{
	mounts_damage(4096, 512);
	checked_look();
	checked_only(CHECK_MEDIA_ERROR, mt.volume->id);
	ck_assert_ptr_nonnull(
		strstr(checked_find(CHECK_MEDIA_ERROR, mt.volume->id)->text, "512 bytes at offset 4096"));
	checked_done();
}
END_TEST

FIXTURE_MAIN("check_mounts", set_up, recorded_mounts_are_consistent,
	recorded_paths_that_are_no_mounts_are_stale_and_repaired,
	an_inline_volume_without_its_pod_is_shown_as_left_over,
	another_mount_at_a_recorded_path_is_not_the_volume, mounts_in_force_are_kept_by_a_repair,
	a_mount_that_nobody_records_is_found, a_bound_node_is_a_mount_of_the_device,
	kubelets_bind_of_a_block_device_is_no_stranger,
	kubelets_subpaths_and_a_second_view_of_the_host_are_no_strangers,
	a_missing_device_does_not_make_its_mounts_stale, what_is_mounted_is_not_forgotten,
	a_mounted_device_without_state_is_reported_and_not_adopted,
	a_device_that_was_in_use_is_adopted_with_its_content, a_loop_of_no_device_is_found,
	a_loop_of_a_kata_volume_that_is_not_mounted_is_found,
	memory_that_cannot_be_read_is_found_below_volumes)
