/* SPDX-License-Identifier: Apache-2.0 */
/* Inline ephemeral volumes: NodePublish creates them, NodeUnpublish deletes them, and nothing is left behind.
 */
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/str.h"
#include "os/mount_table.h"
#include "unit/volume/fixture.h"
#include "volume/id.h"
#include "volume/report.h"
#include "volume/volumes_private.h"

#define HANDLE "csi-0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static struct strmap context;
static char *target;
static char *other;
static struct use_request q;

static void set_up(void)
{
	fixture_folder();
	target = fixture_path("kubelet/target");
	other = fixture_path("kubelet/other");
	strmap_set(&context, "csi.storage.k8s.io/ephemeral", "true");
	strmap_set(&context, "csi.storage.k8s.io/pod.name", "pod-1");
	strmap_set(&context, "size", "16Mi");
	q = (struct use_request){.handle = HANDLE, .target_path = target, .fs_type = "", .context = &context};
}

static int publish(struct error **err)
{
	return volumes_publish(fx.v, &q, err);
}

static int unpublish(struct error **err)
{
	return volumes_unpublish(fx.v, q.handle, q.target_path, err);
}

static bool is_mounted(const char *path, const char *type)
{
	CLEANUP(mount_table_freep) struct mount_table *table = NULL;
	struct error *err = NULL;

	ASSERT_OK(mount_table_read(&table, &err));
	const struct mount_entry *e = mount_table_at(table, path);
	return e && (!type || str_eq(e->fstype, type));
}

static void assert_erased(void)
{
	fixture_await_erased();
	ck_assert_uint_eq(fixture_n_devices(), 0);
	ck_assert_uint_eq(fixture_n_files(), 0);
}

static void assert_nothing_left(void)
{
	ck_assert(!is_mounted(target, NULL));
	ck_assert_int_ne(access(target, F_OK), 0);
	assert_erased();
}

START_TEST(volume_is_made_mounted_and_taken_away)
{
	static const char *const types[] = {"", "ext4", "xfs"};
	static const char *const made[] = {"ext4", "ext4", "xfs"};
	char id[VOLUME_ID_MAX + 1];
	struct error *err = NULL;

	q.fs_type = types[_i];
	for (int i = 0; i < 10; i++)
		ASSERT_OK(publish(&err));
	ck_assert(is_mounted(target, made[_i]));
	ck_assert_uint_eq(fixture_n_devices(), 1);
	volume_id_mint(HANDLE, NODE_ID, id);
	CLEANUP(device_freep) struct device *d = fixture_device(id);
	ck_assert_ptr_nonnull(d);
	ck_assert_uint_ge(d->size_bytes, MIB(16));
	for (int i = 0; i < 3; i++)
		ASSERT_OK(unpublish(&err));
	assert_nothing_left();
}
END_TEST

/* All that is in the context but kubelet's own words is the pod's author's. */
START_TEST(a_pod_names_no_claim_of_somebody_else)
{
	char id[VOLUME_ID_MAX + 1];
	struct error *err = NULL;

	strmap_set(&context, "csi.storage.k8s.io/pod.namespace", "pods");
	strmap_set(&context, "csi.storage.k8s.io/pvc/namespace", "stranger");
	strmap_set(&context, "csi.storage.k8s.io/pvc/name", "secret");
	strmap_set(&context, "csi.storage.k8s.io/pv/name", "pvc-of-stranger");
	volume_id_mint(HANDLE, NODE_ID, id);
	CLEANUP(free_charp) char *file = x_asprintf("%s.json", id);
	for (int i = 0; i < 2; i++) {
		ASSERT_OK(publish(&err));
		CLEANUP(free_charp) char *text = fixture_read(file);
		ck_assert_ptr_nonnull(strstr(text, "\"podNamespace\":\"pods\",\"podName\":\"pod-1\""));
		ck_assert_ptr_null(strstr(text, "stranger"));
		ck_assert_ptr_null(strstr(text, "secret"));
		fixture_restart();
	}
	ASSERT_OK(unpublish(&err));
	assert_nothing_left();
}
END_TEST

START_TEST(kubelet_that_says_nothing_is_understood)
{
	struct error *err = NULL;

	strmap_done(&context);
	strmap_set(&context, "size", "16Mi");
	q.handle = _i ? "inline" : HANDLE;
	for (int i = 0; i < 2; i++)
		ASSERT_OK(publish(&err));
	ck_assert(is_mounted(target, "ext4"));
	fixture_restart();
	ASSERT_OK(publish(&err));
	ASSERT_OK(unpublish(&err));
	assert_nothing_left();
}
END_TEST

START_TEST(what_is_no_inline_volume_is_not_made_into_one)
{
	struct error *err = NULL;

	strmap_set(&context, "csi.storage.k8s.io/ephemeral", "false");
	ASSERT_FAILS(publish(&err), ERR_INVALID_ARGUMENT, "size");
	strmap_done(&context);
	ASSERT_FAILS(publish(&err), ERR_PRECONDITION, "staging_target_path");
	fixture_make("pvc-1", MIB(16));
	CLEANUP(volume_info_freep) struct volume_info *info = fixture_create("pvc-1", MIB(16));
	strmap_set(&context, "csi.storage.k8s.io/ephemeral", "true");
	strmap_set(&context, "size", "16Mi");
	q.handle = "pvc-1";
	ASSERT_FAILS(publish(&err), ERR_EXISTS, "other parameters");
	q.handle = info->id;
	strmap_done(&context);
	ASSERT_OK(unpublish(&err));
	ck_assert_uint_eq(fixture_n_devices(), 1);
}
END_TEST

START_TEST(bad_attributes_are_named_and_nothing_is_made)
{
	static const char *const bad[][2] = {{"size", "lots"}, {"eraseafter", "maybe"}, {"sise", "1"},
		{"kataContainers", "maybe"}, {"usage", "Magic"}};
	struct error *err = NULL;

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		strmap_set(&context, bad[i][0], bad[i][1]);
		ASSERT_FAILS(publish(&err), ERR_INVALID_ARGUMENT, bad[i][0]);
		strmap_done(&context);
		strmap_set(&context, "csi.storage.k8s.io/ephemeral", "true");
		strmap_set(&context, "size", "16Mi");
	}
	q.fs_type = "btrfs";
	ASSERT_FAILS(publish(&err), ERR_INVALID_ARGUMENT, "btrfs");
	q.fs_type = "";
	q.block = true;
	ASSERT_FAILS(publish(&err), ERR_INVALID_ARGUMENT, "block");
	q.block = false;
	q.access_mode = ACCESS_MULTI_NODE_WRITER;
	ASSERT_FAILS(publish(&err), ERR_INVALID_ARGUMENT, "cache");
	q.access_mode = ACCESS_SINGLE_WRITER;
	q.mount_flags = (char *[]){(char[]){"bind"}, NULL};
	ASSERT_FAILS(publish(&err), ERR_INVALID_ARGUMENT, "bind");
	q.mount_flags = NULL;
	strmap_set(&context, "csi.storage.k8s.io/ephemeral", "perhaps");
	ASSERT_FAILS(publish(&err), ERR_INVALID_ARGUMENT, "perhaps");
	strmap_set(&context, "csi.storage.k8s.io/ephemeral", "true");
	strmap_set(&context, "size", "1Pi");
	ASSERT_FAILS(publish(&err), ERR_EXHAUSTED, "not enough space");
	assert_nothing_left();
}
END_TEST

START_TEST(failure_is_undone)
{
	CLEANUP(free_charp) char *orphan = fixture_path("kubelet/none/target");
	struct error *err = NULL;

	/* the parent is missing */
	q.target_path = orphan;
	ASSERT_FAILS(publish(&err), ERR_NOT_FOUND, "none");
	assert_erased();
	q.target_path = target;
	/* a loop device has no DAX */
	q.mount_flags = (char *[]){(char[]){"dax"}, NULL};
	ASSERT_FAILS(publish(&err), ERR_INVALID_ARGUMENT, "dax");
	assert_nothing_left();
	q.mount_flags = NULL;
	ck_assert_int_eq(mkdir(target, 0755), 0);
	ck_assert_int_eq(mount("other", target, "tmpfs", 0, NULL), 0);
	ASSERT_FAILS(publish(&err), ERR_EXISTS, "something other");
	assert_erased();
	ASSERT_FAILS(unpublish(&err), ERR_NOT_FOUND, "mount point");
	ck_assert_int_eq(umount(target), 0);
	ASSERT_OK(unpublish(&err));
	assert_nothing_left();
}
END_TEST

START_TEST(failure_that_cannot_be_undone_is_taken_away_by_unpublish)
{
	struct error *err = NULL;

	fx.faults.create = ERR_INTERNAL;
	fx.faults.after = true;
	fx.faults.destroy = ERR_INTERNAL;
	ASSERT_FAILS(publish(&err), ERR_UNAVAILABLE, "could not be undone");
	ck_assert_uint_eq(fixture_n_files(), 1);
	fx.faults = (struct faults){0};
	ASSERT_OK(unpublish(&err));
	assert_nothing_left();
	ASSERT_OK(publish(&err));
	ASSERT_OK(unpublish(&err));
}
END_TEST

static struct volumes_report report;

static void look(void *self, struct device_activity *ret)
{
	(void)self;
	(void)ret;
	ck_assert_uint_eq(fixture_n_files(), 0);
	volumes_report_done(&report);
	ck_assert(volumes_report(fx.v, &report));
}

START_TEST(volume_is_reported_as_inline_from_its_beginning)
{
	struct error *err = NULL;

	fx.ops.activity = look;
	ASSERT_OK(publish(&err));
	ck_assert_uint_eq(report.n_volumes, 1);
	ck_assert_int_eq(report.volumes[0].phase, PHASE_CREATING);
	ck_assert(report.volumes[0].is_inline);
	volumes_report_done(&report);
	ck_assert(volumes_report(fx.v, &report));
	ck_assert_uint_eq(report.n_volumes, 1);
	ck_assert_int_eq(report.volumes[0].phase, PHASE_READY);
	ck_assert(report.volumes[0].is_inline);
	volumes_report_done(&report);
	ASSERT_OK(unpublish(&err));
	assert_nothing_left();
}
END_TEST

static void take_away_meanwhile(void)
{
	struct error *err = NULL;

	fx.faults.in_list = NULL;
	ASSERT_FAILS(unpublish(&err), ERR_ABORTED, "in progress");
	ASSERT_FAILS(volumes_delete(fx.v, q.handle, &err), ERR_ABORTED, "in progress");
}

/* Nothing of it is recorded while the publish looks for room; whoever believed it gone would let it leak. */
START_TEST(volume_that_is_about_to_be_made_is_not_unknown)
{
	struct error *err = NULL;

	strmap_set(&context, "size", "1Pi");
	fx.faults.in_list = take_away_meanwhile;
	ASSERT_FAILS(publish(&err), ERR_EXHAUSTED, "not enough space");
	ck_assert_ptr_null(fx.faults.in_list);
	ASSERT_OK(unpublish(&err));
	assert_nothing_left();
}
END_TEST

/* Made and never mounted, as a crash leaves it. */
static char *leave_unmounted(void)
{
	const struct volume_request create = {.name = HANDLE,
		.required_bytes = MIB(16),
		.fs_type = "ext4",
		.parameters = &context,
		.inline_target = target};
	CLEANUP(volume_info_freep) struct volume_info *info = NULL;
	struct error *err = NULL;

	ASSERT_OK(volumes_create(fx.v, &create, &info, &err));
	fixture_restart();
	return x_asprintf("%s.json", info->id);
}

START_TEST(volume_that_was_never_mounted_is_found_again_or_taken_away)
{
	CLEANUP(free_charp) char *file = leave_unmounted();
	CLEANUP(free_charp) char *text = fixture_read(file);
	struct error *err = NULL;

	ck_assert_ptr_nonnull(strstr(text, "\"persistencyModel\":\"ephemeral\""));
	ck_assert_ptr_nonnull(strstr(text, target));
	if (_i)
		ASSERT_OK(publish(&err));
	ASSERT_OK(unpublish(&err));
	assert_nothing_left();
}
END_TEST

START_TEST(unpublishing_goes_on_where_it_was_cut_off)
{
	struct error *err = NULL;

	ASSERT_OK(publish(&err));
	ck_assert_int_eq(umount(target), 0);
	if (_i)
		ck_assert_int_eq(rmdir(target), 0);
	fixture_restart();
	ASSERT_OK(unpublish(&err));
	assert_nothing_left();
}
END_TEST

START_TEST(content_stays_over_a_reboot_until_the_pod_ends)
{
	CLEANUP(free_charp) char *data = x_asprintf("%s/data", target);
	struct error *err = NULL;

	ASSERT_OK(publish(&err));
	ck_assert_int_eq(mknod(data, S_IFREG | 0600, 0), 0);
	ck_assert_int_eq(umount(target), 0);
	fixture_restart();
	/* a mount that fails now takes nothing away */
	q.mount_flags = (char *[]){(char[]){"dax"}, NULL};
	ASSERT_FAILS(publish(&err), ERR_UNAVAILABLE, "stays until it is unpublished");
	q.mount_flags = NULL;
	ASSERT_OK(publish(&err));
	ck_assert_int_eq(access(data, F_OK), 0);
	ASSERT_OK(unpublish(&err));
	assert_nothing_left();
}
END_TEST

START_TEST(second_target_and_other_flags_are_refused)
{
	struct error *err = NULL;

	ASSERT_OK(publish(&err));
	q.target_path = other;
	ASSERT_FAILS(publish(&err), ERR_PRECONDITION, target);
	ck_assert_int_ne(access(other, F_OK), 0);
	q.target_path = target;
	q.readonly = true;
	ASSERT_FAILS(publish(&err), ERR_UNAVAILABLE, "read-write, but \"ro\" was requested");
	ck_assert(is_mounted(target, "ext4"));
	ASSERT_OK(unpublish(&err));
	assert_erased();
	ASSERT_OK(publish(&err));
	q.readonly = false;
	ASSERT_FAILS(publish(&err), ERR_UNAVAILABLE, "read-only");
	ASSERT_OK(unpublish(&err));
	assert_nothing_left();
}
END_TEST

static void leave_go_volume(void)
{
	fixture_make_device("go", 0, "", MIB(16));
	fixture_write("go.json",
		"{\"id\":\"go\",\"size\":16777216,\"parameters\":{\"deviceMode\":\"fake\",\"name\":\"" HANDLE
		"\",\"persistencyModel\":\"ephemeral\",\"size\":\"16777216\"}}\n");
	fixture_restart();
}

START_TEST(failure_does_not_undo_an_inline_volume_of_the_go_driver)
{
	struct error *err = NULL;

	leave_go_volume();
	q.mount_flags = (char *[]){(char[]){"dax"}, NULL};
	ASSERT_FAILS(publish(&err), ERR_UNAVAILABLE, "dax");
	q.mount_flags = NULL;
	CLEANUP(device_freep) struct device *d = fixture_device("go");
	ck_assert_ptr_nonnull(d);
	ck_assert(fixture_exists("go.json"));
}
END_TEST

START_TEST(inline_volume_of_the_go_driver_is_taken_away)
{
	struct error *err = NULL;

	leave_go_volume();
	ASSERT_OK(publish(&err));
	ck_assert_uint_eq(fixture_n_devices(), 1);
	ASSERT_OK(unpublish(&err));
	assert_nothing_left();
}
END_TEST

#define LATER  "csi-1123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define LATEST "csi-2123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

/* The fixture makes devices of whole units, of which the last byte takes one more. */
static void restart_with(uint32_t max_volumes, uint64_t max_bytes)
{
	fx.inline_limits = (struct inline_limits){max_volumes, max_bytes};
	fixture_restart();
}

START_TEST(volumes_beyond_the_number_are_refused)
{
	struct error *err = NULL;

	restart_with(2, 0);
	fixture_make("pvc-1", MIB(16));
	ASSERT_OK(publish(&err));
	q.handle = LATER;
	q.target_path = other;
	ASSERT_OK(publish(&err));
	CLEANUP(free_charp) char *third = fixture_path("kubelet/third");
	q.handle = LATEST;
	q.target_path = third;
	for (int i = 0; i < 2; i++) {
		ASSERT_FAILS(publish(&err), ERR_EXHAUSTED,
			"has 2 inline volumes, with those that are still being erased, and -maxInlineVolumes allows 2: delete pods");
		fixture_restart();
	}
	ck_assert_uint_eq(fixture_n_devices(), 3);
	ck_assert_uint_eq(fixture_n_files(), 3);
	/* what exists is no news, and claims are counted by quotas */
	q.handle = LATER;
	q.target_path = other;
	ASSERT_OK(publish(&err));
	fixture_make("pvc-2", MIB(16));
	ASSERT_OK(unpublish(&err));
	q.handle = LATEST;
	q.target_path = third;
	ASSERT_OK(publish(&err));
}
END_TEST

START_TEST(volumes_beyond_the_sum_of_bytes_are_refused)
{
	struct error *err = NULL;

	restart_with(0, MIB(36));
	strmap_set(&context, "size", "16777217");
	ASSERT_OK(publish(&err));
	q.handle = LATER;
	q.target_path = other;
	ASSERT_FAILS(publish(&err), ERR_EXHAUSTED,
		"inline volumes of this node take 20971520 bytes, and with 20971520 more they would exceed "
		"-maxInlineBytes, 37748736");
	ck_assert_uint_eq(fixture_n_files(), 1);
	strmap_set(&context, "size", "16Mi");
	ASSERT_OK(publish(&err));
	ASSERT_OK(publish(&err));
}
END_TEST

START_TEST(volumes_count_until_they_are_erased)
{
	struct error *err = NULL;

	fx.in_background = true;
	fx.faults.destroy = ERR_INTERNAL;
	restart_with(1, 0);
	ASSERT_OK(publish(&err));
	ASSERT_OK(unpublish(&err));
	q.handle = LATER;
	ASSERT_FAILS(publish(&err), ERR_EXHAUSTED, "has 1 inline volumes");
	fx.faults.destroy = 0;
	ASSERT_OK(volumes_refresh(fx.v, &err));
	fixture_await_erased();
	ASSERT_OK(publish(&err));
}
END_TEST

static unsigned n_looks;

/* Looked at after the volume was admitted, and before it is recorded. */
static void publish_another(void *self, struct device_activity *ret)
{
	struct use_request later = q;
	struct error *err = NULL;

	(void)self;
	(void)ret;
	if (n_looks++ > 0)
		return;
	ck_assert_uint_eq(fixture_n_files(), 0);
	later.handle = LATER;
	later.target_path = other;
	ASSERT_FAILS(volumes_publish(fx.v, &later, &err), ERR_EXHAUSTED, "-maxInlineVolumes");
}

START_TEST(a_volume_that_is_being_made_counts)
{
	struct error *err = NULL;

	restart_with(1, 0);
	fx.ops.activity = publish_another;
	ASSERT_OK(publish(&err));
	ck_assert_uint_gt(n_looks, 0);
	ck_assert_uint_eq(fixture_n_files(), 1);
}
END_TEST

#define POD  "kubelet/pods/11111111-2222-3333-4444-555555555555"
#define KEPT (600 * NS_PER_S)

static void make_folders(const char *name)
{
	CLEANUP(free_charp) char *path = fixture_path(name);

	for (char *slash = strchr(path + strlen(path) - strlen(name), '/'); slash;
		slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		(void)!mkdir(path, 0755);
		*slash = '/';
	}
	(void)!mkdir(path, 0755);
}

/* In the layout of kubelet, which runs another pod. */
static void publish_for_pod(void)
{
	struct error *err = NULL;

	make_folders(POD "/volumes/kubernetes.io~csi/data");
	make_folders("kubelet/pods/another");
	free(target);
	target = fixture_path(POD "/volumes/kubernetes.io~csi/data/mount");
	q.target_path = target;
	ASSERT_OK(publish(&err));
}

/* As after a boot, with kubelet's folder on a new disk. */
static void lose_pod(void)
{
	static const char *const folders[] = {POD "/volumes/kubernetes.io~csi/data/mount",
		POD "/volumes/kubernetes.io~csi/data", POD "/volumes/kubernetes.io~csi", POD "/volumes", POD};

	ck_assert_int_eq(umount(target), 0);
	for (size_t i = 0; i < ARRAY_SIZE(folders); i++) {
		CLEANUP(free_charp) char *path = fixture_path(folders[i]);
		ck_assert_int_eq(rmdir(path), 0);
	}
}

START_TEST(volume_whose_pod_is_gone_is_deleted_after_a_while)
{
	publish_for_pod();
	lose_pod();
	volumes_delete_leftovers(fx.v, 1);
	volumes_delete_leftovers(fx.v, KEPT);
	ck_assert_uint_eq(fixture_n_devices(), 1);
	ck_assert_uint_eq(fixture_n_files(), 1);
	volumes_delete_leftovers(fx.v, 1 + KEPT);
	assert_erased();
}
END_TEST

/* Each is looked at twice, with an hour in between. */
static void assert_kept(void)
{
	volumes_delete_leftovers(fx.v, 1);
	volumes_delete_leftovers(fx.v, 1 + 6 * KEPT);
	volumes_delete_leftovers(fx.v, 1 + 12 * KEPT);
	ck_assert_uint_eq(fixture_n_devices(), 1);
	ck_assert_uint_eq(fixture_n_files(), 1);
}

START_TEST(volume_that_may_be_of_a_pod_is_kept)
{
	CLEANUP(free_charp) char *another = fixture_path("kubelet/pods/another");
	CLEANUP(free_charp) char *pods = fixture_path("kubelet/pods");
	CLEANUP(free_charp) char *away = fixture_path("kubelet/away");
	CLEANUP(device_freep) struct device *d = NULL;
	char id[VOLUME_ID_MAX + 1];

	publish_for_pod();
	assert_kept();
	ck_assert_int_eq(umount(target), 0);
	assert_kept();
	ck_assert_int_eq(mount("none", target, "tmpfs", 0, NULL), 0);
	lose_pod();
	/* kubelet's folder is there, but empty, and then not there at all */
	ck_assert_int_eq(rename(another, away), 0);
	assert_kept();
	ck_assert_int_eq(rmdir(pods), 0);
	assert_kept();
	/* something uses its device */
	ck_assert_int_eq(mkdir(pods, 0755), 0);
	ck_assert_int_eq(rename(away, another), 0);
	volume_id_mint(HANDLE, NODE_ID, id);
	d = fixture_device(id);
	ck_assert_int_eq(mount(d->path, another, "ext4", 0, NULL), 0);
	assert_kept();
	ck_assert_int_eq(umount(another), 0);
	volumes_delete_leftovers(fx.v, 20 * KEPT);
	volumes_delete_leftovers(fx.v, 21 * KEPT);
	assert_erased();
}
END_TEST

START_TEST(volume_at_a_path_that_is_not_of_kubelet_is_kept)
{
	struct error *err = NULL;

	ASSERT_OK(publish(&err));
	ck_assert_int_eq(umount(target), 0);
	ck_assert_int_eq(rmdir(target), 0);
	make_folders("kubelet/pods/another");
	assert_kept();
}
END_TEST

int main(void)
{
	TCase *tcase = fixture_case("volumes_inline", set_up);

	if (!tcase)
		return SKIP_STATUS;
	tcase_add_loop_test(tcase, volume_is_made_mounted_and_taken_away, 0, 3);
	tcase_add_loop_test(tcase, kubelet_that_says_nothing_is_understood, 0, 2);
	tcase_add_test(tcase, a_pod_names_no_claim_of_somebody_else);
	tcase_add_test(tcase, volume_is_reported_as_inline_from_its_beginning);
	tcase_add_test(tcase, what_is_no_inline_volume_is_not_made_into_one);
	tcase_add_test(tcase, bad_attributes_are_named_and_nothing_is_made);
	tcase_add_test(tcase, failure_is_undone);
	tcase_add_test(tcase, failure_that_cannot_be_undone_is_taken_away_by_unpublish);
	tcase_add_test(tcase, volume_that_is_about_to_be_made_is_not_unknown);
	tcase_add_loop_test(tcase, volume_that_was_never_mounted_is_found_again_or_taken_away, 0, 2);
	tcase_add_loop_test(tcase, unpublishing_goes_on_where_it_was_cut_off, 0, 2);
	tcase_add_test(tcase, content_stays_over_a_reboot_until_the_pod_ends);
	tcase_add_test(tcase, second_target_and_other_flags_are_refused);
	tcase_add_test(tcase, failure_does_not_undo_an_inline_volume_of_the_go_driver);
	tcase_add_test(tcase, inline_volume_of_the_go_driver_is_taken_away);
	tcase_add_test(tcase, volumes_beyond_the_number_are_refused);
	tcase_add_test(tcase, volumes_beyond_the_sum_of_bytes_are_refused);
	tcase_add_test(tcase, volumes_count_until_they_are_erased);
	tcase_add_test(tcase, a_volume_that_is_being_made_counts);
	tcase_add_test(tcase, volume_whose_pod_is_gone_is_deleted_after_a_while);
	tcase_add_test(tcase, volume_that_may_be_of_a_pod_is_kept);
	tcase_add_test(tcase, volume_at_a_path_that_is_not_of_kubelet_is_kept);
	return fixture_finish();
}
