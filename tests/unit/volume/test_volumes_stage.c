/* NodeStage and NodeUnstage: never a file system over something, the same answer to the same call. */
#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"
#include "os/blockdev.h"
#include "os/fs.h"
#include "os/spawn.h"
#include "unit/volume/mounts.h"

#define SIZE         MIB(16)
#define XFS_SIZE     MIB(300)
#define MKFS_TIME_MS 60000

static void set_up(void)
{
	mounts_set_up(XFS_SIZE);
}

static int stage(const char *fs_type, struct error **err)
{
	const struct stage_request q = mounts_stage_request(fs_type);

	return volumes_stage(fx.v, &q, err);
}

static int stage_with(const char *fs_type, char *flag, struct error **err)
{
	char *flags[] = {flag, NULL};
	struct stage_request q = mounts_stage_request(fs_type);

	q.mount_flags = flags;
	return volumes_stage(fx.v, &q, err);
}

static int unstage(struct error **err)
{
	return volumes_unstage(fx.v, mt.volume->id, mt.staging, err);
}

static void assert_mounted(const char *fs_type)
{
	ck_assert_uint_eq(mounts_count(mt.staging), 1);
	ck_assert_str_eq(mounts_top(mt.staging)->fstype, fs_type);
	ck_assert(mount_entry_has(mounts_top(mt.staging), "rw"));
}

static void assert_unmounted(void)
{
	ck_assert_uint_eq(mounts_count(mt.staging), 0);
}

START_TEST(empty_volume_gets_the_file_system_and_is_mounted)
{
	static const char *const types[] = {"ext4", "xfs"};
	struct error *err = NULL;

	ASSERT_OK(stage(types[_i], &err));
	assert_mounted(types[_i]);
	ck_assert_int_eq(mounts_write(mt.staging), 0);
	CLEANUP(volume_record_freep) struct volume_record *r = mounts_record();
	ck_assert(r->staged_ever && !r->formatting);
	ck_assert_str_eq(r->staging_path, mt.staging);
	ASSERT_OK(unstage(&err));
	assert_unmounted();
	CLEANUP(volume_record_freep) struct volume_record *after = mounts_record();
	ck_assert(after->staged_ever);
	ck_assert_ptr_null(after->staging_path);
}
END_TEST

START_TEST(no_type_is_that_of_the_creation_and_others_are_refused)
{
	struct error *err = NULL;

	ASSERT_FAILS(stage("btrfs", &err), ERR_INVALID_ARGUMENT, "btrfs");
	ASSERT_FAILS(stage("ext3", &err), ERR_INVALID_ARGUMENT, "ext3");
	assert_unmounted();
	ASSERT_OK(stage("", &err));
	assert_mounted("ext4");
}
END_TEST

START_TEST(staging_and_unstaging_again_change_nothing)
{
	struct error *err = NULL;

	ASSERT_OK(unstage(&err));
	ASSERT_OK(stage("ext4", &err));
	ck_assert_int_eq(mounts_write(mt.staging), 0);
	ASSERT_OK(stage("ext4", &err));
	assert_mounted("ext4");
	fixture_restart();
	ASSERT_OK(stage("ext4", &err));
	assert_mounted("ext4");
	ASSERT_OK(unstage(&err));
	ASSERT_OK(unstage(&err));
	assert_unmounted();
	ASSERT_OK(stage("ext4", &err));
	ck_assert(mounts_has_file(mt.staging));
}
END_TEST

START_TEST(other_way_of_staging_is_refused_while_staged)
{
	struct error *err = NULL;

	ASSERT_OK(stage("ext4", &err));
	ASSERT_FAILS(stage("xfs", &err), ERR_EXISTS, "staged as ext4");
	ASSERT_FAILS(stage_with("ext4", (char[]){"noatime"}, &err), ERR_EXISTS, "noatime");
	ASSERT_FAILS(stage_with("ext4", (char[]){"ro"}, &err), ERR_EXISTS, "ro");
	assert_mounted("ext4");
}
END_TEST

/* Every flag that is allowed, where this kernel takes it; kubelet repeats the call after each restart. */
START_TEST(volume_staged_with_a_flag_is_staged_with_it_again)
{
	static const char *const flags[] = {"ro", "rw", "nosuid", "suid", "nodev", "dev", "noexec", "exec",
		"noatime", "atime", "relatime", "norelatime", "strictatime", "nodiratime", "diratime", "sync",
		"async", "dirsync", "lazytime", "nolazytime", "defaults", "discard", "nodiscard",
		"errors=remount-ro", "errors=continue", "acl", "user_xattr", "journal_checksum", "delalloc",
		"nodelalloc", "inode64", "largeio", "nolargeio", "noquota", "attr2", "ikeep", "noikeep",
		"dax=inode", "dax=never"};
	const char *fs_type = _i ? "xfs" : "ext4";
	struct error *err = NULL;
	size_t n = 0;

	ASSERT_OK(stage(fs_type, &err));
	ASSERT_OK(unstage(&err));
	for (size_t i = 0; i < ARRAY_SIZE(flags); i++) {
		char flag[32];

		snprintf(flag, sizeof(flag), "%s", flags[i]);
		if (stage_with(fs_type, flag, &err) < 0) {
			ck_assert_msg(err->code == ERR_INVALID_ARGUMENT, "%s: %s", flag, err->msg);
			error_clear(&err);
			continue;
		}
		ck_assert_msg(stage_with(fs_type, flag, &err) == 0, "%s: %s", flag, err ? err->msg : "");
		ASSERT_OK(unstage(&err));
		n++;
	}
	ck_assert_uint_ge(n, 24);
}
END_TEST

START_TEST(flags_that_are_not_allowed_are_refused)
{
	struct error *err = NULL;

	ASSERT_FAILS(
		stage_with("ext4", (char[]){"data=writeback"}, &err), ERR_INVALID_ARGUMENT, "\"data=...\"");
	ASSERT_FAILS(stage_with("ext4", (char[]){"ro,bind"}, &err), ERR_INVALID_ARGUMENT, "ro,bind");
	assert_unmounted();
}
END_TEST

START_TEST(fresh_xfs_staged_read_only_is_made_and_mounted)
{
	struct error *err = NULL;

	ASSERT_OK(stage_with("xfs", (char[]){"ro"}, &err));
	ASSERT_OK(unstage(&err));
	ASSERT_OK(stage("xfs", &err));
	assert_mounted("xfs");
}
END_TEST

static void assert_content(const char *type)
{
	CLEANUP(free_charp) char *found = NULL;
	struct error *err = NULL;

	ASSERT_OK(fs_probe(mt.device->path, &found, &err));
	ck_assert_str_eq(found, type);
}

/* Its super block may be all that was lost. */
START_TEST(volume_that_lost_its_file_system_is_not_formatted_again)
{
	char zeros[4096] = "";
	struct error *err = NULL;

	ASSERT_OK(stage("ext4", &err));
	ASSERT_OK(unstage(&err));
	int fd = open(mt.device->path, O_WRONLY | O_CLOEXEC);
	ck_assert_int_eq(pwrite(fd, zeros, sizeof(zeros), 0), sizeof(zeros));
	ck_assert_int_eq(fsync(fd), 0);
	close(fd);
	ASSERT_FAILS(stage("ext4", &err), ERR_PRECONDITION, "not formatted again");
	ASSERT_FAILS(stage("xfs", &err), ERR_PRECONDITION, "not formatted again");
	assert_content("");
}
END_TEST

/* As one of the Go driver's whose content is a database's own. */
START_TEST(data_in_no_known_form_is_not_formatted)
{
	struct error *err = NULL;

	int fd = open(mt.device->path, O_WRONLY | O_CLOEXEC);
	ck_assert_int_eq(pwrite(fd, "x", 1, 4095), 1);
	ck_assert_int_eq(fsync(fd), 0);
	close(fd);
	ASSERT_FAILS(stage("ext4", &err), ERR_PRECONDITION, "holds data");
	assert_content("");
}
END_TEST

START_TEST(what_took_the_place_of_the_device_is_neither_formatted_nor_mounted)
{
	bool zero;
	struct error *err = NULL;

	fx.faults.moved_path = "/dev/pmem9";
	ASSERT_FAILS(stage("ext4", &err), ERR_UNAVAILABLE, "not /dev/");
	assert_unmounted();
	ASSERT_OK(blockdev_starts_zero(mt.device->path, 4096, &zero, &err));
	ck_assert(zero);
	fx.faults.moved_path = NULL;
	ASSERT_OK(volumes_refresh(fx.v, &err));
	ASSERT_OK(stage("ext4", &err));
}
END_TEST

START_TEST(volume_has_one_staging_path_at_a_time)
{
	struct stage_request q = mounts_stage_request("ext4");
	struct error *err = NULL;

	ASSERT_OK(stage("ext4", &err));
	ck_assert_int_eq(mkdir(mt.other, 0755), 0);
	q.staging_path = mt.other;
	ASSERT_FAILS(volumes_stage(fx.v, &q, &err), ERR_PRECONDITION, mt.staging);
	ck_assert_uint_eq(mounts_count(mt.other), 0);
	/* what is recorded only keeps nobody away */
	ck_assert_int_eq(umount(mt.staging), 0);
	ASSERT_OK(volumes_stage(fx.v, &q, &err));
	CLEANUP(volume_record_freep) struct volume_record *r = mounts_record();
	ck_assert_str_eq(r->staging_path, mt.other);
	ASSERT_OK(volumes_unstage(fx.v, mt.volume->id, mt.other, &err));
}
END_TEST

START_TEST(modes_that_span_nodes_are_for_cache_volumes)
{
	struct stage_request q = mounts_stage_request("ext4");
	struct error *err = NULL;

	q.access_mode = ACCESS_MULTI_NODE_WRITER;
	ASSERT_FAILS(volumes_stage(fx.v, &q, &err), ERR_INVALID_ARGUMENT, "cache");
	q.access_mode = ACCESS_MULTI_NODE_READER;
	ASSERT_FAILS(volumes_stage(fx.v, &q, &err), ERR_INVALID_ARGUMENT, "cache");
	assert_unmounted();
}
END_TEST

START_TEST(other_content_is_never_formatted)
{
	const char *const mkswap[] = {"mkswap", "--", mt.device->path, NULL};
	struct error *err = NULL;

	ASSERT_OK(spawn_check(mkswap, NULL, MKFS_TIME_MS, &err));
	ASSERT_FAILS(stage("ext4", &err), ERR_EXISTS, "swap");
	ASSERT_OK(fs_make("xfs", mt.device->path, MKFS_TIME_MS, &err));
	ASSERT_FAILS(stage("ext4", &err), ERR_EXISTS, "xfs");
	assert_unmounted();
	assert_content("xfs");
	CLEANUP(volume_record_freep) struct volume_record *r = mounts_record();
	ck_assert(!r->formatting && !r->staged_ever);
}
END_TEST

/* With a record as a power cut during mkfs leaves it. */
START_TEST(interrupted_mkfs_is_done_again)
{
	CLEANUP(free_charp) char *file = x_asprintf("%s.json", mt.volume->id);
	CLEANUP(free_charp) char *text = fixture_read(file);
	struct error *err = NULL;

	ASSERT_OK(fs_make("xfs", mt.device->path, MKFS_TIME_MS, &err));
	text[strlen(text) - 2] = '\0';
	CLEANUP(free_charp) char *marked = x_asprintf("%s,\"formatting\":true}\n", text);
	fixture_write(file, marked);
	fixture_restart();
	ASSERT_OK(stage("ext4", &err));
	assert_mounted("ext4");
	ck_assert_int_eq(mounts_write(mt.staging), 0);
	CLEANUP(volume_record_freep) struct volume_record *r = mounts_record();
	ck_assert(!r->formatting);
	ASSERT_OK(unstage(&err));
	ASSERT_OK(stage("ext4", &err));
	ck_assert(mounts_has_file(mt.staging));
}
END_TEST

START_TEST(something_else_at_the_staging_path_is_left_alone)
{
	struct error *err = NULL;

	ck_assert_int_eq(mount("other", mt.staging, "tmpfs", 0, NULL), 0);
	ASSERT_FAILS(stage("ext4", &err), ERR_EXISTS, "something else");
	ASSERT_FAILS(unstage(&err), ERR_PRECONDITION, "something else");
	ck_assert_uint_eq(mounts_count(mt.staging), 1);
	ck_assert_str_eq(mounts_top(mt.staging)->fstype, "tmpfs");
}
END_TEST

START_TEST(stacked_mounts_of_the_volume_are_all_unstaged)
{
	struct error *err = NULL;

	ASSERT_OK(stage("ext4", &err));
	ck_assert_int_eq(mount(mt.staging, mt.staging, NULL, MS_BIND, NULL), 0);
	ck_assert_int_eq(mount(mt.staging, mt.staging, NULL, MS_BIND, NULL), 0);
	ck_assert_uint_eq(mounts_count(mt.staging), 3);
	ASSERT_OK(unstage(&err));
	assert_unmounted();
}
END_TEST

START_TEST(staging_path_that_is_hidden_by_another_mount_is_told)
{
	CLEANUP(free_charp) char *kubelet = fixture_path("kubelet");
	struct error *err = NULL;

	ASSERT_OK(stage("ext4", &err));
	ck_assert_int_eq(mount("none", kubelet, "tmpfs", 0, NULL), 0);
	ASSERT_FAILS(unstage(&err), ERR_PRECONDITION, "hidden");
	ck_assert_int_eq(umount2(kubelet, 0), 0);
	ASSERT_OK(unstage(&err));
	assert_unmounted();
}
END_TEST

START_TEST(busy_staging_path_stays_staged)
{
	struct error *err = NULL;

	ASSERT_OK(stage("ext4", &err));
	int fd = open(mt.staging, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	ASSERT_FAILS(unstage(&err), ERR_PRECONDITION, "busy");
	assert_mounted("ext4");
	CLEANUP(volume_record_freep) struct volume_record *r = mounts_record();
	ck_assert_str_eq(r->staging_path, mt.staging);
	close(fd);
	ASSERT_OK(unstage(&err));
}
END_TEST

START_TEST(staged_volume_is_not_deleted)
{
	struct error *err = NULL;

	ASSERT_OK(stage("ext4", &err));
	ck_assert_int_eq(mounts_write(mt.staging), 0);
	ASSERT_FAILS(volumes_delete(fx.v, mt.volume->id, &err), ERR_PRECONDITION, mt.staging);
	ck_assert(mounts_has_file(mt.staging));
	ASSERT_OK(unstage(&err));
	ASSERT_OK(volumes_delete(fx.v, mt.volume->id, &err));
	ck_assert_uint_eq(fixture_n_devices(), 0);
}
END_TEST

START_TEST(unknown_volumes_are_not_found)
{
	struct stage_request q = mounts_stage_request("ext4");
	struct error *err = NULL;

	q.handle = "unknown";
	ASSERT_FAILS(volumes_stage(fx.v, &q, &err), ERR_NOT_FOUND, "unknown");
	ASSERT_FAILS(volumes_unstage(fx.v, "unknown", mt.staging, &err), ERR_NOT_FOUND, "unknown");
}
END_TEST

START_TEST(paths_outside_of_the_roots_or_through_links_are_refused)
{
	CLEANUP(free_charp) char *link = fixture_path("kubelet/link");
	CLEANUP(free_charp) char *missing = fixture_path("kubelet/missing");
	const char *const paths[] = {"/mnt", "relative", "", "/", link};
	struct stage_request q = mounts_stage_request("ext4");
	struct error *err = NULL;

	ck_assert_int_eq(symlink(mt.staging, link), 0);
	for (size_t i = 0; i < ARRAY_SIZE(paths); i++) {
		q.staging_path = paths[i];
		ASSERT_FAILS(volumes_stage(fx.v, &q, &err), ERR_INVALID_ARGUMENT, "path");
	}
	q.staging_path = missing;
	ASSERT_FAILS(volumes_stage(fx.v, &q, &err), ERR_NOT_FOUND, "missing");
	assert_unmounted();
}
END_TEST

START_TEST(context_is_checked)
{
	CLEANUP(strmap_done) struct strmap context = {0};
	struct stage_request q = mounts_stage_request("ext4");
	struct error *err = NULL;

	strmap_copy(&context, &mt.volume->context);
	strmap_set(&context, "storage.kubernetes.io/csiProvisionerIdentity", "x");
	q.context = &context;
	ASSERT_OK(volumes_stage(fx.v, &q, &err));
	strmap_set(&context, "foo", "bar");
	ASSERT_FAILS(volumes_stage(fx.v, &q, &err), ERR_INVALID_ARGUMENT, "foo");
}
END_TEST

START_TEST(missing_volume_is_unavailable_but_can_be_unstaged)
{
	struct error *err = NULL;

	ASSERT_OK(stage("ext4", &err));
	fx.faults.absent_pool = mt.device->pool;
	ASSERT_OK(volumes_refresh(fx.v, &err));
	ASSERT_FAILS(stage("ext4", &err), ERR_UNAVAILABLE, "missing");
	ASSERT_FAILS(volumes_delete(fx.v, mt.volume->id, &err), ERR_UNAVAILABLE, "missing");
	ASSERT_OK(unstage(&err));
	assert_unmounted();
	fx.faults.absent_pool = NULL;
	fx.faults.incomplete_pool = mt.device->pool;
	ASSERT_FAILS(stage("ext4", &err), ERR_UNAVAILABLE, "missing");
	fx.faults = (struct faults){.list = ERR_INTERNAL};
	ASSERT_FAILS(stage("ext4", &err), ERR_UNAVAILABLE, "list");
	fx.faults = (struct faults){0};
	ASSERT_OK(stage("ext4", &err));
}
END_TEST

START_TEST(volume_for_kata_is_refused)
{
	fixture_make_device("kata", 0, "", SIZE);
	struct stage_request q = mounts_stage_request("ext4");
	struct error *err = NULL;

	fixture_write("kata.json",
		"{\"id\":\"kata\",\"size\":16777216,\"parameters\":{\"kataContainers\":\"true\"}}\n");
	fixture_restart();
	q.handle = "kata";
	ASSERT_FAILS(volumes_stage(fx.v, &q, &err), ERR_PRECONDITION, "Kata");
}
END_TEST

/* Loop devices have no dax: it must be left out unless it was asked for. */
START_TEST(dax_is_not_asked_of_a_device_without_it)
{
	struct error *err = NULL;

	ASSERT_OK(stage("ext4", &err));
	ck_assert(!mount_entry_has(mounts_top(mt.staging), "dax"));
	ASSERT_OK(unstage(&err));
	ASSERT_FAILS(stage_with("ext4", (char[]){"dax"}, &err), ERR_INVALID_ARGUMENT, "dax");
	assert_unmounted();
}
END_TEST

int main(void)
{
	static const int n_types = 2;
	TCase *tcase = fixture_case("volumes_stage", set_up);

	if (!tcase)
		return SKIP_STATUS;
	tcase_add_loop_test(tcase, empty_volume_gets_the_file_system_and_is_mounted, 0, n_types);
	tcase_add_loop_test(tcase, volume_staged_with_a_flag_is_staged_with_it_again, 0, n_types);
	tcase_add_test(tcase, no_type_is_that_of_the_creation_and_others_are_refused);
	tcase_add_test(tcase, staging_and_unstaging_again_change_nothing);
	tcase_add_test(tcase, other_way_of_staging_is_refused_while_staged);
	tcase_add_test(tcase, flags_that_are_not_allowed_are_refused);
	tcase_add_test(tcase, fresh_xfs_staged_read_only_is_made_and_mounted);
	tcase_add_test(tcase, data_in_no_known_form_is_not_formatted);
	tcase_add_test(tcase, what_took_the_place_of_the_device_is_neither_formatted_nor_mounted);
	tcase_add_test(tcase, volume_has_one_staging_path_at_a_time);
	tcase_add_test(tcase, modes_that_span_nodes_are_for_cache_volumes);
	tcase_add_test(tcase, other_content_is_never_formatted);
	tcase_add_test(tcase, volume_that_lost_its_file_system_is_not_formatted_again);
	tcase_add_test(tcase, interrupted_mkfs_is_done_again);
	tcase_add_test(tcase, something_else_at_the_staging_path_is_left_alone);
	tcase_add_test(tcase, stacked_mounts_of_the_volume_are_all_unstaged);
	tcase_add_test(tcase, staging_path_that_is_hidden_by_another_mount_is_told);
	tcase_add_test(tcase, busy_staging_path_stays_staged);
	tcase_add_test(tcase, staged_volume_is_not_deleted);
	tcase_add_test(tcase, unknown_volumes_are_not_found);
	tcase_add_test(tcase, paths_outside_of_the_roots_or_through_links_are_refused);
	tcase_add_test(tcase, context_is_checked);
	tcase_add_test(tcase, missing_volume_is_unavailable_but_can_be_unstaged);
	tcase_add_test(tcase, volume_for_kata_is_refused);
	tcase_add_test(tcase, dax_is_not_asked_of_a_device_without_it);
	return fixture_finish();
}
