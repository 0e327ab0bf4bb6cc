/* SPDX-License-Identifier: Apache-2.0 */
/* NodeStage and NodeUnstage: content is never overwritten by a new file system, and calls can be repeated. */
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

static void set_up_block(void)
{
	mounts_set_up_block(SIZE);
}

static int stage(const char *fs_type, struct error **err)
{
	const struct use_request q = mounts_stage_request(fs_type);

	return volumes_stage(fx.v, &q, err);
}

static int stage_with(const char *fs_type, char *flag, struct error **err)
{
	char *flags[] = {flag, NULL};
	struct use_request q = mounts_stage_request(fs_type);

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
	ck_assert(r->ever_staged && r->fs_uuid);
	ck_assert_str_eq(r->staging_path, mt.staging);
	ASSERT_OK(unstage(&err));
	assert_unmounted();
	CLEANUP(volume_record_freep) struct volume_record *after = mounts_record();
	ck_assert(after->ever_staged);
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
	ASSERT_FAILS(stage("xfs", &err), ERR_EXISTS, "as ext4, but xfs was requested");
	ASSERT_FAILS(
		stage_with("ext4", (char[]){"noatime"}, &err), ERR_EXISTS, "but \"noatime\" was requested");
	ASSERT_FAILS(stage_with("ext4", (char[]){"ro"}, &err), ERR_EXISTS, "but \"ro\" was requested");
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

/* As pods and guests can do with the device. */
static void make_panicking_ext4(void)
{
	const char *const mkfs[] = {"mkfs.ext4", "-q", "-F", "-e", "panic", mt.device->path, NULL};
	struct error *err = NULL;

	ASSERT_OK(spawn_check(mkfs, NULL, MKFS_TIME_MS, &err));
}

START_TEST(an_ext4_does_not_decide_about_the_node_when_it_has_an_error)
{
	struct error *err = NULL;

	ASSERT_OK(stage("ext4", &err));
	ck_assert(mount_entry_has(mounts_top(mt.staging), "errors=remount-ro"));
	ASSERT_OK(unstage(&err));
	make_panicking_ext4();
	ASSERT_OK(stage("ext4", &err));
	ASSERT_OK(stage("ext4", &err));
	ck_assert(mount_entry_has(mounts_top(mt.staging), "errors=remount-ro"));
	ASSERT_OK(unstage(&err));
	ASSERT_OK(stage_with("ext4", (char[]){"errors=continue"}, &err));
	ck_assert(!mount_entry_has(mounts_top(mt.staging), "errors=remount-ro"));
}
END_TEST

START_TEST(volume_for_block_access_is_not_mounted)
{
	const struct use_request publication = mounts_publish_request(mt.target, ACCESS_SINGLE_WRITER);
	struct use_request q = mounts_stage_request("");
	struct error *err = NULL;

	for (int i = 0; i < 2; i++) {
		ASSERT_FAILS(stage(i ? "" : "ext4", &err), ERR_PRECONDITION,
			"created for block access only, so that no file system in it is mounted");
		assert_unmounted();
		ASSERT_FAILS(volumes_publish(fx.v, &publication, &err), ERR_PRECONDITION, "is not staged at");
		make_panicking_ext4();
	}
	q.block = true;
	ASSERT_OK(volumes_stage(fx.v, &q, &err));
}
END_TEST

START_TEST(flags_that_are_not_allowed_are_refused)
{
	struct error *err = NULL;

	ASSERT_FAILS(stage_with("ext4", (char[]){"journal_path=x"}, &err), ERR_INVALID_ARGUMENT,
		"journal_path=...");
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

/* It was deactivated, for example, and has come back elsewhere: waiting for the path would not help. */
START_TEST(devices_are_listed_again_when_a_path_has_vanished)
{
	struct error *err = NULL;

	fx.faults.moved_path = "/dev/nowhere";
	ASSERT_OK(volumes_refresh(fx.v, &err));
	fx.faults.moved_path = NULL;
	ASSERT_OK(stage("ext4", &err));
	assert_mounted("ext4");
	ASSERT_OK(unstage(&err));
}
END_TEST

START_TEST(what_took_the_place_of_the_device_is_neither_formatted_nor_mounted)
{
	bool zero;
	struct error *err = NULL;

	fx.faults.moved_path = "/dev/pmem9";
	ASSERT_FAILS(stage("ext4", &err), ERR_UNAVAILABLE, "no longer /dev/");
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
	struct use_request q = mounts_stage_request("ext4");
	struct error *err = NULL;

	ASSERT_OK(stage("ext4", &err));
	ck_assert_int_eq(mkdir(mt.other, 0755), 0);
	q.staging_path = mt.other;
	ASSERT_FAILS(volumes_stage(fx.v, &q, &err), ERR_PRECONDITION, mt.staging);
	ck_assert_uint_eq(mounts_count(mt.other), 0);
	/* what is only recorded refuses no call */
	ck_assert_int_eq(umount(mt.staging), 0);
	ASSERT_OK(volumes_stage(fx.v, &q, &err));
	CLEANUP(volume_record_freep) struct volume_record *r = mounts_record();
	ck_assert_str_eq(r->staging_path, mt.other);
	ASSERT_OK(volumes_unstage(fx.v, mt.volume->id, mt.other, &err));
}
END_TEST

START_TEST(modes_that_span_nodes_are_for_cache_volumes)
{
	struct use_request q = mounts_stage_request("ext4");
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
	ASSERT_OK(fs_make("xfs", mt.device->path, NULL, MKFS_TIME_MS, &err));
	ASSERT_FAILS(stage("ext4", &err), ERR_EXISTS, "xfs");
	assert_unmounted();
	assert_content("xfs");
	CLEANUP(volume_record_freep) struct volume_record *r = mounts_record();
	ck_assert(!r->fs_uuid && !r->ever_staged);
}
END_TEST

/* Adds @members to the volume's record, as another driver or an earlier one has left it. */
static void add_to_record(const char *members)
{
	CLEANUP(free_charp) char *file = x_asprintf("%s.json", mt.volume->id);
	CLEANUP(free_charp) char *text = fixture_read(file);

	text[strlen(text) - 2] = '\0';
	CLEANUP(free_charp) char *more = x_asprintf("%s,%s}\n", text, members);
	fixture_write(file, more);
	fixture_restart();
}

#define UUID "0d9a3c7e-8f3d-4c43-a1c5-5f6a3e6b7a10"

static void assert_uuid(const char *type, const char *uuid)
{
	struct error *err = NULL;
	struct fs_super super;

	ASSERT_OK(fs_read_super(type, mt.device->path, &super, &err));
	ck_assert_str_eq(super.uuid, uuid);
}

/* As a power cut between mkfs and the record of the staging leaves it. */
START_TEST(mkfs_that_was_not_recorded_as_done_is_done_again)
{
	struct error *err = NULL;

	ASSERT_OK(fs_make("ext4", mt.device->path, &(struct fs_layout){.uuid = UUID}, MKFS_TIME_MS, &err));
	add_to_record("\"fsUUID\":\"" UUID "\"");
	ASSERT_OK(_i ? stage("xfs", &err) : stage("ext4", &err));
	assert_mounted(_i ? "xfs" : "ext4");
	ck_assert_int_eq(mounts_write(mt.staging), 0);
	ASSERT_OK(unstage(&err));
	ASSERT_OK(_i ? stage("xfs", &err) : stage("ext4", &err));
	ck_assert(mounts_has_file(mt.staging));
	ASSERT_OK(unstage(&err));
	assert_uuid(_i ? "xfs" : "ext4", UUID);
}
END_TEST

/* As an earlier version leaves it, which recorded no UUID. */
START_TEST(mark_of_an_earlier_version_lets_the_device_decide)
{
	struct error *err = NULL;

	ASSERT_OK(fs_make("ext4", mt.device->path, NULL, MKFS_TIME_MS, &err));
	add_to_record("\"formatting\":true");
	ASSERT_OK(stage("ext4", &err));
	ck_assert_int_eq(mounts_write(mt.staging), 0);
	ASSERT_OK(unstage(&err));
	CLEANUP(volume_record_freep) struct volume_record *r = mounts_record();
	ck_assert(!r->formatting);
	assert_uuid("ext4", r->fs_uuid);
}
END_TEST

/* The node goes back to the Go driver after mkfs: it mounts what is there, and never rewrites the record. */
START_TEST(what_was_mounted_meanwhile_is_not_formatted_again)
{
	static const char *const marks[] = {"\"fsUUID\":\"" UUID "\"", "\"formatting\":true"};
	const char *type = _i < 2 ? "ext4" : "xfs";
	struct error *err = NULL;

	ASSERT_OK(fs_make(type, mt.device->path, &(struct fs_layout){.uuid = UUID}, MKFS_TIME_MS, &err));
	add_to_record(marks[_i % 2]);
	ck_assert_int_eq(mount(mt.device->path, mt.staging, type, 0, NULL), 0);
	ck_assert_int_eq(mounts_write(mt.staging), 0);
	ck_assert_int_eq(umount(mt.staging), 0);
	ASSERT_OK(stage(type, &err));
	ck_assert(mounts_has_file(mt.staging));
}
END_TEST

/* The other driver may also have formatted what a mkfs of ours did not come to. */
START_TEST(file_system_with_another_uuid_is_used_as_it_is)
{
	struct error *err = NULL;

	ASSERT_OK(fs_make("ext4", mt.device->path, NULL, MKFS_TIME_MS, &err));
	add_to_record("\"fsUUID\":\"" UUID "\"");
	ASSERT_FAILS(stage("xfs", &err), ERR_EXISTS, "holds ext4 already");
	ASSERT_OK(stage("ext4", &err));
	ASSERT_OK(unstage(&err));
	struct fs_super super;
	ASSERT_OK(fs_read_super("ext4", mt.device->path, &super, &err));
	ck_assert_str_ne(super.uuid, UUID);
}
END_TEST

/* mkfs.xfs clears sb_inprogress last; the kernel mounts nothing that bears it. */
START_TEST(xfs_that_was_not_finished_is_made_again)
{
	static const char in_progress = 1;
	struct error *err = NULL;

	ASSERT_OK(fs_make("xfs", mt.device->path, &(struct fs_layout){.uuid = UUID}, MKFS_TIME_MS, &err));
	int fd = open(mt.device->path, O_WRONLY | O_CLOEXEC);
	ck_assert_int_eq(pwrite(fd, &in_progress, 1, 126), 1);
	ck_assert_int_eq(fsync(fd), 0);
	close(fd);
	add_to_record("\"fsUUID\":\"" UUID "\"");
	ASSERT_OK(stage("xfs", &err));
	assert_mounted("xfs");
}
END_TEST

/* The device has what a mkfs leaves that was interrupted before it wrote the superblock. */
START_TEST(remains_of_a_recorded_mkfs_are_formatted_over)
{
	struct error *err = NULL;

	add_to_record("\"fsUUID\":\"" UUID "\"");
	int fd = open(mt.device->path, O_WRONLY | O_CLOEXEC);
	ck_assert_int_eq(pwrite(fd, "x", 1, 0), 1);
	ck_assert_int_eq(fsync(fd), 0);
	close(fd);
	ASSERT_OK(stage("ext4", &err));
	assert_mounted("ext4");
}
END_TEST

static void debugfs(const char *request)
{
	const char *const argv[] = {"debugfs", "-w", "-R", request, mt.device->path, NULL};
	struct error *err = NULL;

	ASSERT_OK(spawn_check(argv, NULL, MKFS_TIME_MS, &err));
}

static uint16_t ext4_state(void)
{
	unsigned char state[2];
	int fd = open(mt.device->path, O_RDONLY | O_CLOEXEC);

	ck_assert_int_eq(pread(fd, state, sizeof(state), 1024 + 0x3a), sizeof(state));
	close(fd);
	return (uint16_t)(state[0] | state[1] << 8);
}

/* The kernel would continue as if nothing had happened (errors=continue). */
START_TEST(file_system_with_its_error_flag_is_checked_before_it_is_mounted)
{
	struct error *err = NULL;

	ASSERT_OK(stage("ext4", &err));
	ck_assert_int_eq(mounts_write(mt.staging), 0);
	ASSERT_OK(unstage(&err));
	debugfs("ssv state 2");
	ck_assert_uint_eq(ext4_state(), 2);
	ASSERT_OK(stage("ext4", &err));
	ck_assert(mounts_has_file(mt.staging));
	ASSERT_OK(unstage(&err));
	ck_assert_uint_eq(ext4_state(), 1);
}
END_TEST

START_TEST(what_cannot_be_mended_without_a_decision_is_refused)
{
	struct error *err = NULL;

	ASSERT_OK(stage("ext4", &err));
	ASSERT_OK(unstage(&err));
	/* the root is no folder any more */
	debugfs("sif <2> mode 0100644");
	debugfs("ssv state 2");
	ASSERT_FAILS(stage("ext4", &err), ERR_PRECONDITION, "e2fsck -f ");
	assert_unmounted();
}
END_TEST

START_TEST(something_else_at_the_staging_path_is_left_alone)
{
	struct error *err = NULL;

	ck_assert_int_eq(mount("other", mt.staging, "tmpfs", 0, NULL), 0);
	ASSERT_FAILS(stage("ext4", &err), ERR_EXISTS, "something other");
	ASSERT_FAILS(unstage(&err), ERR_PRECONDITION, "something other");
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

START_TEST(staging_path_that_is_hidden_by_another_mount_is_reported)
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
	struct use_request q = mounts_stage_request("ext4");
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
	struct use_request q = mounts_stage_request("ext4");
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
	struct use_request q = mounts_stage_request("ext4");
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

/* Loop devices over a block device have no discard; what the kernel drops is no other way of staging. */
START_TEST(flag_that_the_kernel_drops_is_answered_as_before)
{
	struct error *err = NULL;

	ASSERT_OK(stage_with("xfs", (char[]){"dax"}, &err));
	ck_assert(mount_entry_has(mounts_top(mt.staging), "dax=never"));
	ASSERT_OK(stage_with("xfs", (char[]){"dax"}, &err));
	fixture_restart();
	ASSERT_OK(stage_with("xfs", (char[]){"dax"}, &err));
	ASSERT_FAILS(stage_with("xfs", (char[]){"wsync"}, &err), ERR_EXISTS,
		"without \"wsync\", which was requested");
	CLEANUP(volume_record_freep) struct volume_record *r = mounts_record();
	ck_assert_uint_eq(strv_len(r->staged_flags), 1);
	ASSERT_OK(unstage(&err));
	CLEANUP(volume_record_freep) struct volume_record *after = mounts_record();
	ck_assert_ptr_null(after->staged_flags);
}
END_TEST

START_TEST(mount_with_more_than_was_asked_for_is_another_way)
{
	static const char *const flags[] = {
		"ro", "noexec", "nosuid", "nodev", "noatime", "nodiratime", "strictatime"};
	struct error *err = NULL;

	for (size_t i = 0; i < ARRAY_SIZE(flags); i++) {
		char flag[32];

		snprintf(flag, sizeof(flag), "%s", flags[i]);
		ASSERT_OK(stage_with("ext4", flag, &err));
		ASSERT_FAILS(stage("ext4", &err), ERR_EXISTS, "staged");
		ASSERT_OK(unstage(&err));
	}
}
END_TEST

/* A manager of persistent memory, with devices that have no DAX. */
START_TEST(app_direct_without_dax_is_refused_on_persistent_memory)
{
	struct error *err = NULL;
	bool zero;

	fx.ops.mode = "lvm";
	ASSERT_FAILS(stage("ext4", &err), ERR_PRECONDITION, "does not support DAX");
	ASSERT_FAILS(stage_with("xfs", (char[]){"dax"}, &err), ERR_PRECONDITION, "does not support DAX");
	assert_unmounted();
	ASSERT_OK(blockdev_starts_zero(mt.device->path, 4096, &zero, &err));
	ck_assert(zero);
	ASSERT_OK(stage_with("ext4", (char[]){"dax=never"}, &err));
	ASSERT_OK(stage_with("ext4", (char[]){"dax=never"}, &err));
}
END_TEST

static void bind_over_itself(const char *path)
{
	ck_assert_int_eq(mount(path, path, NULL, MS_BIND, NULL), 0);
}

/* As kubelet in a container does with its folder, before the driver is started again. */
START_TEST(staging_mount_that_is_hidden_is_not_staged)
{
	CLEANUP(free_charp) char *kubelet = fixture_path("kubelet");
	struct use_request q = mounts_publish_request(mt.target, ACCESS_SINGLE_WRITER);
	struct error *err = NULL;

	ASSERT_OK(stage("ext4", &err));
	bind_over_itself(kubelet);
	if (_i)
		fixture_restart();
	ASSERT_FAILS(stage("ext4", &err), ERR_PRECONDITION, "hides it");
	ASSERT_FAILS(volumes_publish(fx.v, &q, &err), ERR_PRECONDITION, "hides it");
	ck_assert_uint_eq(mounts_count(mt.target), 0);
	ASSERT_FAILS(unstage(&err), ERR_PRECONDITION, "hidden");
	ck_assert_int_eq(umount2(kubelet, MNT_DETACH), 0);
	fixture_restart();
	ASSERT_OK(stage("ext4", &err));
	ASSERT_OK(volumes_publish(fx.v, &q, &err));
}
END_TEST

/* Mounts beneath the root that was opened then would not be visible to other processes. */
START_TEST(root_that_is_hidden_since_the_start_is_noticed)
{
	CLEANUP(free_charp) char *kubelet = fixture_path("kubelet");
	struct error *err = NULL;

	bind_over_itself(kubelet);
	ASSERT_FAILS(stage("ext4", &err), ERR_PRECONDITION, "restart the driver");
	assert_unmounted();
	fixture_restart();
	ASSERT_OK(stage("ext4", &err));
	assert_mounted("ext4");
	ASSERT_OK(unstage(&err));
}
END_TEST

/* Where a folder of the root disk was published by mistake, its device shows it. */
START_TEST(folder_that_is_not_the_file_system_is_not_published)
{
	struct use_request q = mounts_publish_request(mt.target, ACCESS_SINGLE_WRITER);
	struct error *err = NULL;

	ASSERT_OK(stage("ext4", &err));
	ck_assert_int_eq(mkdir(mt.other, 0755), 0);
	ck_assert_int_eq(mount(mt.other, mt.staging, NULL, MS_BIND, NULL), 0);
	ASSERT_FAILS(volumes_publish(fx.v, &q, &err), ERR_PRECONDITION, "not staged");
	ck_assert_uint_eq(mounts_count(mt.target), 0);
}
END_TEST

static void leave_go_volume(const char *id)
{
	CLEANUP(free_charp) char *file = x_asprintf("%s.json", id);
	CLEANUP(free_charp)
	char *text = x_asprintf("{\"id\":\"%s\",\"size\":%d,\"parameters\":{\"deviceMode\":\"fake\","
				"\"name\":\"of-go\"}}\n",
		id, (int)XFS_SIZE);

	fixture_make_device(id, 0, "", XFS_SIZE);
	fixture_write(file, text);
	fixture_restart();
}

/* It looked neither at access modes nor at mount flags. */
START_TEST(volume_of_the_go_driver_is_staged_as_it_was)
{
	char *const flags[] = {(char[]){"nobarrier"}, (char[]){"noatime"}, (char[]){"commit=60"},
		(char[]){"noinit_itable"}, (char[]){"ihashsize=7"}, NULL};
	char *const dangerous[] = {(char[]){"errors=panic"}, NULL};
	const char *type = _i ? "xfs" : "ext4";
	struct use_request q = mounts_stage_request(type);
	struct use_request p = mounts_publish_request(mt.target, ACCESS_MULTI_NODE_READER);
	struct error *err = NULL;

	leave_go_volume("go");
	q.handle = "go";
	q.access_mode = ACCESS_MULTI_NODE_WRITER;
	q.mount_flags = dangerous;
	ASSERT_FAILS(volumes_stage(fx.v, &q, &err), ERR_INVALID_ARGUMENT, "errors=...");
	q.mount_flags = flags;
	ASSERT_OK(volumes_stage(fx.v, &q, &err));
	ck_assert(mount_entry_has(mounts_top(mt.staging), "noatime"));
	ASSERT_OK(volumes_stage(fx.v, &q, &err));
	p.handle = "go";
	p.fs_type = type;
	p.mount_flags = flags;
	ASSERT_OK(volumes_publish(fx.v, &p, &err));
	ASSERT_OK(volumes_publish(fx.v, &p, &err));
	ck_assert_int_eq(mounts_write(mt.target), 0);
	ASSERT_OK(volumes_unpublish(fx.v, "go", mt.target, &err));
	ASSERT_OK(volumes_unstage(fx.v, "go", mt.staging, &err));
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
	tcase_add_test(tcase, devices_are_listed_again_when_a_path_has_vanished);
	tcase_add_test(tcase, volume_that_lost_its_file_system_is_not_formatted_again);
	tcase_add_loop_test(tcase, mkfs_that_was_not_recorded_as_done_is_done_again, 0, n_types);
	tcase_add_test(tcase, mark_of_an_earlier_version_lets_the_device_decide);
	tcase_add_loop_test(tcase, what_was_mounted_meanwhile_is_not_formatted_again, 0, 2 * n_types);
	tcase_add_test(tcase, file_system_with_another_uuid_is_used_as_it_is);
	tcase_add_test(tcase, xfs_that_was_not_finished_is_made_again);
	tcase_add_test(tcase, remains_of_a_recorded_mkfs_are_formatted_over);
	tcase_add_test(tcase, file_system_with_its_error_flag_is_checked_before_it_is_mounted);
	tcase_add_test(tcase, what_cannot_be_mended_without_a_decision_is_refused);
	tcase_add_test(tcase, something_else_at_the_staging_path_is_left_alone);
	tcase_add_test(tcase, stacked_mounts_of_the_volume_are_all_unstaged);
	tcase_add_test(tcase, staging_path_that_is_hidden_by_another_mount_is_reported);
	tcase_add_test(tcase, busy_staging_path_stays_staged);
	tcase_add_test(tcase, staged_volume_is_not_deleted);
	tcase_add_test(tcase, unknown_volumes_are_not_found);
	tcase_add_test(tcase, paths_outside_of_the_roots_or_through_links_are_refused);
	tcase_add_test(tcase, context_is_checked);
	tcase_add_test(tcase, missing_volume_is_unavailable_but_can_be_unstaged);
	tcase_add_test(tcase, dax_is_not_asked_of_a_device_without_it);
	tcase_add_test(tcase, flag_that_the_kernel_drops_is_answered_as_before);
	tcase_add_test(tcase, mount_with_more_than_was_asked_for_is_another_way);
	tcase_add_test(tcase, app_direct_without_dax_is_refused_on_persistent_memory);
	tcase_add_loop_test(tcase, staging_mount_that_is_hidden_is_not_staged, 0, 2);
	tcase_add_test(tcase, root_that_is_hidden_since_the_start_is_noticed);
	tcase_add_test(tcase, folder_that_is_not_the_file_system_is_not_published);
	tcase_add_loop_test(tcase, volume_of_the_go_driver_is_staged_as_it_was, 0, n_types);
	tcase_add_test(tcase, an_ext4_does_not_decide_about_the_node_when_it_has_an_error);
	tcase = fixture_more_cases("block", set_up_block);
	tcase_add_test(tcase, volume_for_block_access_is_not_mounted);
	return fixture_finish();
}
