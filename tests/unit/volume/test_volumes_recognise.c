/* SPDX-License-Identifier: Apache-2.0 */
/* A file whose content looks like the member of a RAID, and which has the last sectors of its volume: all
 * that looks at the volume still finds its file system. */
#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"
#include "os/fs.h"
#include "unit/volume/mounts.h"

#define SIZE   MIB(300)
#define SECTOR 512

static const char *const types[] = {"ext4", "xfs"};
static const struct strmap no_context;
static struct error *err;
static const char *type;

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

	type = fs_type;
	q.fs_type = fs_type;
	ASSERT_OK(volumes_create(fx.v, &q, &mt.volume, &err));
	mt.device = fixture_device(mt.volume->id);
}

static void stage(void)
{
	const struct use_request q = mounts_stage_request(type);

	ASSERT_OK(volumes_stage(fx.v, &q, &err));
}

static void unstage(void)
{
	ASSERT_OK(volumes_unstage(fx.v, mt.volume->id, mt.staging, &err));
}

/* As a file leaves it that has the last block. libblkid finds a member of JMicron's then. */
static void put_signature(const char *id)
{
	CLEANUP(device_freep) struct device *d = fixture_device(id);
	CLEANUP(fd_closep) int fd = open(d->path, O_WRONLY | O_CLOEXEC);
	CLEANUP(free_charp) char *probed = NULL;

	ck_assert_int_eq(pwrite(fd, "JM", 2, (off_t)(d->size_bytes - SECTOR)), 2);
	ck_assert_int_eq(fsync(fd), 0);
	ASSERT_OK(fs_probe(d->path, &probed, &err));
	ck_assert_str_eq(probed, "jmicron_raid_member");
}

static void make_signed(const char *fs_type)
{
	create(fs_type);
	stage();
	unstage();
	put_signature(mt.volume->id);
}

START_TEST(volume_is_staged_and_copied)
{
	struct volume_request q = fixture_request("clone", SIZE);
	struct snapshot_request s = {.name = "snapshot", .parameters = &no_context};
	CLEANUP(snapshot_info_freep) struct snapshot_info *taken = NULL;
	CLEANUP(volume_info_freep) struct volume_info *clone = NULL;

	make_signed(types[_i]);
	q.source = mt.volume->id;
	q.fs_type = type;
	ASSERT_OK(volumes_create(fx.v, &q, &clone, &err));
	stage();
	s.source = mt.volume->id;
	ASSERT_OK(volumes_create_snapshot(fx.v, &s, &taken, &err));
	unstage();
	put_signature(clone->id);
	struct use_request u = mounts_stage_request(type);
	u.handle = clone->id;
	ASSERT_OK(volumes_stage(fx.v, &u, &err));
	ASSERT_OK(volumes_unstage(fx.v, clone->id, mt.staging, &err));
}
END_TEST

/* Adds @member to the state file, which becomes @to. */
static void rewrite_record(const char *to, const char *member)
{
	CLEANUP(free_charp) char *from = x_asprintf("%s.json", mt.volume->id);
	CLEANUP(free_charp) char *text = fixture_read(from);

	text[strlen(text) - 2] = '\0';
	CLEANUP(free_charp) char *more = x_asprintf("%s,%s}\n", text, member);
	CLEANUP(free_charp) char *state = x_asprintf("state/%s", from);
	CLEANUP(free_charp) char *old = fixture_path(state);
	ck_assert_int_eq(unlink(old), 0);
	fixture_write(to, more);
}

START_TEST(frozen_file_system_that_is_not_mounted_is_thawed)
{
	CLEANUP(free_charp) char *file = NULL;

	make_signed(types[_i]);
	stage();
	CLEANUP(fd_closep) int fd = open(mt.staging, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	ck_assert_int_eq(ioctl(fd, FIFREEZE, 0), 0);
	close(TAKE_FD(fd));
	unstage();
	fixture_stop();
	file = x_asprintf("%s.json", mt.volume->id);
	rewrite_record(file, "\"freezing\":true");
	fixture_open();
	ASSERT_OK(volumes_start(fx.v, &err));
	CLEANUP(volume_record_freep) struct volume_record *r = mounts_record();
	ck_assert(!r->freezing);
	stage();
}
END_TEST

/* Its state file is from an old backup: what may hold data stays. */
START_TEST(volume_whose_creation_was_not_finished_keeps_its_data)
{
	CLEANUP(free_charp) char *found = NULL;
	CLEANUP(free_charp) char *file = NULL;

	make_signed(types[_i]);
	fixture_stop();
	file = x_asprintf("%s.creating", mt.volume->id);
	rewrite_record(file, "\"phase\":\"creating\"");
	fixture_open();
	ASSERT_OK(volumes_start(fx.v, &err));
	CLEANUP(device_freep) struct device *d = fixture_device(mt.volume->id);
	ck_assert_ptr_nonnull(d);
	ASSERT_OK(fs_recognise(d->path, NULL, &found, &err));
	ck_assert_str_eq(found, type);
}
END_TEST

int main(void)
{
	TCase *tcase = fixture_case("volumes_recognise", set_up);

	if (!tcase)
		return SKIP_STATUS;
	tcase_add_loop_test(tcase, volume_is_staged_and_copied, 0, 2);
	tcase_add_loop_test(tcase, frozen_file_system_that_is_not_mounted_is_thawed, 0, 2);
	tcase_add_loop_test(tcase, volume_whose_creation_was_not_finished_keeps_its_data, 0, 2);
	return fixture_finish();
}
