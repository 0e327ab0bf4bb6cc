/* SPDX-License-Identifier: Apache-2.0 */
/* The type of a volume's file system: what the record says, where a copy gets it from, how a request for
 * another type ends, and which mount flags it can have. */
#include <endian.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"
#include "os/fs.h"
#include "unit/volume/mounts.h"

#define SIZE         MIB(300)
#define MKFS_TIME_MS 60000

static struct error *err;

static void done(void)
{
	volume_info_free(mt.volume);
	device_free(mt.device);
	free(mt.staging);
	mt = (struct mounts){0};
}

static void set_up(void)
{
	fixture_folder();
	fx.done = done;
	mt.staging = fixture_path("kubelet/staging");
	ck_assert_int_eq(mkdir(mt.staging, 0755), 0);
}

static void create(const char *fs_type)
{
	struct volume_request q = fixture_request("pvc-1", SIZE);

	q.fs_type = fs_type;
	ASSERT_OK(volumes_create(fx.v, &q, &mt.volume, &err));
	mt.device = fixture_device(mt.volume->id);
}

static int stage(const char *id, const char *fs_type)
{
	struct use_request q = mounts_stage_request(fs_type);

	q.handle = id;
	return volumes_stage(fx.v, &q, &err);
}

static void use(const char *id, const char *fs_type)
{
	ASSERT_OK(stage(id, fs_type));
	ck_assert_str_eq(mounts_top(mt.staging)->fstype, *fs_type ? fs_type : "xfs");
	ASSERT_OK(volumes_unstage(fx.v, id, mt.staging, &err));
}

/* As of a class without csi.storage.k8s.io/fstype. */
static struct volume_request copy_request(void)
{
	struct volume_request q = fixture_request("copy", SIZE);

	q.any_fs = true;
	q.source = mt.volume->id;
	return q;
}

static void assert_copy_is_xfs(void)
{
	const struct volume_request q = copy_request();
	CLEANUP(volume_info_freep) struct volume_info *copy = NULL;
	CLEANUP(volume_info_freep) struct volume_info *again = NULL;

	ASSERT_OK(volumes_create(fx.v, &q, &copy, &err));
	ck_assert_str_eq(copy->fs_type, "xfs");
	ASSERT_OK(volumes_create(fx.v, &q, &again, &err));
	use(copy->id, "");
}

START_TEST(copy_without_a_type_has_that_of_its_source)
{
	create("xfs");
	if (_i)
		use(mt.volume->id, "xfs");
	assert_copy_is_xfs();
	struct volume_request q = copy_request();
	CLEANUP(volume_info_freep) struct volume_info *other = NULL;
	q.name = "other";
	q.any_fs = false;
	ASSERT_FAILS(volumes_create(fx.v, &q, &other, &err), ERR_INVALID_ARGUMENT, "cannot have ext4");
}
END_TEST

/* A value that no kernel takes stands for a flag that this one has dropped. */
#define UNKNOWN_FLAG "commit=99999999999"

START_TEST(a_flag_that_the_kernel_does_not_take_is_named_or_left_out_of_a_volume_in_use)
{
	char *flags[] = {(char[]){"noatime"}, (char[]){UNKNOWN_FLAG}, NULL};

	create("ext4");
	struct use_request q = mounts_stage_request("ext4");
	q.mount_flags = flags;
	for (int i = 0; i < 2; i++)
		ASSERT_FAILS(volumes_stage(fx.v, &q, &err), ERR_INVALID_ARGUMENT,
			"mount flag \"" UNKNOWN_FLAG
			"\" is not supported for ext4 by the kernel of this node");
	CLEANUP(volume_record_freep) struct volume_record *r = mounts_record();
	ck_assert(!r->ever_staged && !r->fs_uuid);
	use(mt.volume->id, "ext4");
	for (int i = 0; i < 2; i++)
		ASSERT_OK(volumes_stage(fx.v, &q, &err));
	ck_assert(mount_entry_has(mounts_top(mt.staging), "noatime"));
}
END_TEST

static uint32_t le32_of_device(off_t at)
{
	uint32_t value = 0;
	int fd = open(mt.device->path, O_RDONLY | O_CLOEXEC);

	ck_assert_int_eq(pread(fd, &value, sizeof(value), at), sizeof(value));
	close(fd);
	return le32toh(value);
}

/* fs/ext4/ext4.h: EXT4_FEATURE_RO_COMPAT_QUOTA and EXT4_FEATURE_RO_COMPAT_PROJECT. A kernel without quotas
 * does not mount it. */
START_TEST(an_ext4_that_is_first_staged_with_project_quotas_has_them)
{
	char *flags[] = {(char[]){"prjquota"}, NULL};

	create("ext4");
	struct use_request q = mounts_stage_request("ext4");
	q.mount_flags = flags;
	if (volumes_stage(fx.v, &q, &err) == 0)
		ck_assert(mount_entry_has(mounts_top(mt.staging), "prjquota"));
	else
		ck_assert_msg(strstr(err->msg, "CONFIG_QUOTA"), "%s", err->msg);
	error_clear(&err);
	ck_assert_uint_eq(le32_of_device(1024 + 0x64) & 0x2100, 0x2100);
}
END_TEST

static int create_with(struct volume_request q, const char *name, char *flag)
{
	CLEANUP(volume_info_freep) struct volume_info *made = NULL;
	char *const flags[] = {flag, NULL};

	q.name = name;
	q.mount_flags = flags;
	return volumes_create(fx.v, &q, &made, &err);
}

START_TEST(mount_flags_are_those_of_the_source_and_of_this_kernel)
{
	struct volume_request q = fixture_request("pvc-2", SIZE);

	create("xfs");
	use(mt.volume->id, "xfs");
	ASSERT_FAILS(create_with(copy_request(), "copy-1", (char[]){"commit=5"}), ERR_INVALID_ARGUMENT,
		"mount flag \"commit=...\" is not allowed for xfs");
	ASSERT_OK(create_with(copy_request(), "copy-2", (char[]){"inode64"}));
	q.fs_type = "ext4";
	ASSERT_FAILS(create_with(q, "new-1", (char[]){UNKNOWN_FLAG}), ERR_EXHAUSTED,
		"mount flag \"" UNKNOWN_FLAG "\" is not supported for ext4 by the kernel of this node");
	ASSERT_OK(create_with(q, "new-1", (char[]){"commit=5"}));
}
END_TEST

/* The Go driver recorded no type. */
START_TEST(copy_of_a_volume_without_a_recorded_type_has_that_on_the_device)
{
	CLEANUP(free_charp) char *file = NULL;
	CLEANUP(free_charp) char *text = NULL;

	create("xfs");
	use(mt.volume->id, "xfs");
	fixture_stop();
	file = x_asprintf("%s.json", mt.volume->id);
	text = x_asprintf("{\"id\":\"%s\",\"size\":%ju,\"parameters\":{\"name\":\"pvc-1\"}}", mt.volume->id,
		(uintmax_t)SIZE);
	fixture_write(file, text);
	fixture_open();
	ASSERT_OK(volumes_start(fx.v, &err));
	assert_copy_is_xfs();
}
END_TEST

START_TEST(type_with_which_a_blank_volume_is_staged_is_recorded)
{
	create("ext4");
	use(mt.volume->id, "xfs");
	CLEANUP(volume_record_freep) struct volume_record *r = mounts_record();
	ck_assert_str_eq(r->fs_type, "xfs");
	use(mt.volume->id, "");
	assert_copy_is_xfs();
	ASSERT_FAILS(stage(mt.volume->id, "ext4"), ERR_EXISTS, "holds xfs already");
}
END_TEST

/* Earlier versions left the record as it was. */
START_TEST(record_of_another_type_than_the_one_in_use_is_corrected)
{
	create("ext4");
	ASSERT_OK(fs_make("xfs", mt.device->path, NULL, MKFS_TIME_MS, &err));
	ASSERT_FAILS(stage(mt.volume->id, ""), ERR_EXISTS, "holds xfs already");
	use(mt.volume->id, "xfs");
	assert_copy_is_xfs();
}
END_TEST

int main(void)
{
	TCase *tc = fixture_case("volumes_fs_type", set_up);

	if (!tc)
		return SKIP_STATUS;
	tcase_add_loop_test(tc, copy_without_a_type_has_that_of_its_source, 0, 2);
	tcase_add_test(tc, mount_flags_are_those_of_the_source_and_of_this_kernel);
	tcase_add_test(tc, a_flag_that_the_kernel_does_not_take_is_named_or_left_out_of_a_volume_in_use);
	tcase_add_test(tc, an_ext4_that_is_first_staged_with_project_quotas_has_them);
	tcase_add_test(tc, copy_of_a_volume_without_a_recorded_type_has_that_on_the_device);
	tcase_add_test(tc, type_with_which_a_blank_volume_is_staged_is_recorded);
	tcase_add_test(tc, record_of_another_type_than_the_one_in_use_is_corrected);
	return fixture_finish();
}
