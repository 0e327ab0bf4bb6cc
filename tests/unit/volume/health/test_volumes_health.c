/* SPDX-License-Identifier: Apache-2.0 */
/* The health of volumes over damaged memory and in failed file systems. */
#include "volume/health/volumes_health.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/str.h"
#include "os/fs_usage.h"
#include "unit/volume/mounts.h"
#include "volume/volumes_private.h"

#define SIZE     MIB(16)
#define XFS_SIZE MIB(320)
/* fs/xfs/libxfs/xfs_fs.h */
#define GOINGDOWN            _IOR('X', 125, uint32_t)
#define GOINGDOWN_NOLOGFLUSH 2

static struct error *err;

static void set_up(void)
{
	mounts_set_up(SIZE);
}

static void set_up_xfs(void)
{
	mounts_set_up(XFS_SIZE);
}

static void stage(const char *fs_type)
{
	struct use_request s = mounts_stage_request(fs_type);

	ASSERT_OK(volumes_stage(fx.v, &s, &err));
}

static void repair(void)
{
	CLEANUP(free_charp) char *path = fixture_path("fake/badblocks");

	ck_assert_int_eq(unlink(path), 0);
}

/* As errors=remount-ro does: the superblock, and not the mount. */
static void make_super_readonly(void)
{
	CLEANUP(fd_closep) int fs = fspick(AT_FDCWD, mt.staging, FSPICK_CLOEXEC);

	ck_assert_int_ge(fs, 0);
	ck_assert_int_eq(fsconfig(fs, FSCONFIG_SET_FLAG, "ro", NULL, 0), 0);
	ck_assert_int_eq(fsconfig(fs, FSCONFIG_CMD_RECONFIGURE, NULL, NULL, 0), 0);
}

/* After another look. Return: health_done(). */
static struct volume_health look_at(const char *handle)
{
	struct volume_health h = {0};

	ASSERT_OK(volumes_look_at_health(fx.v, &err));
	ASSERT_OK(volumes_health(fx.v, handle, &h, &err));
	return h;
}

static void assert_sound(const char *handle)
{
	CLEANUP(health_done) struct volume_health h = look_at(handle);
	CLEANUP(free_charp) char *text = health_text(&h);

	ck_assert_msg(h.n == 0, "%s", text);
}

static void assert_only(const char *reason, enum health_severity severity, const char *part)
{
	CLEANUP(health_done) struct volume_health h = look_at(mt.volume->id);
	CLEANUP(free_charp) char *text = health_text(&h);
	const struct health_status *s = health_find(&h, reason);

	ck_assert_msg(h.n == 1 && s && s->severity == severity && strstr(s->message, part), "%s", text);
}

START_TEST(volumes_are_sound_whether_mounted_or_not)
{
	assert_sound(mt.volume->id);
	stage("ext4");
	assert_sound(mt.volume->id);
	ASSERT_FAILS(
		volumes_health(fx.v, "unknown", &(struct volume_health){0}, &err), ERR_NOT_FOUND, "unknown");
}
END_TEST

START_TEST(media_error_is_shown_with_its_offset_and_reported_once)
{
	CLEANUP(volume_info_freep) struct volume_info *other = fixture_create("pvc-2", SIZE);
	unsigned before = fx.n_changes;

	assert_sound(mt.volume->id);
	ck_assert_uint_eq(fx.n_changes, before);
	mounts_damage(MIB(1), 1024);
	assert_only(HEALTH_MEDIA_ERROR, HEALTH_DATA_LOSS, "1024 bytes at offset 1048576 of the device");
	ck_assert_uint_eq(fx.n_changes, before + 1);
	assert_sound(other->id);
	ck_assert_uint_eq(fx.n_changes, before + 1);
	mounts_damage(MIB(2), 512);
	assert_only(
		HEALTH_MEDIA_ERROR, HEALTH_DATA_LOSS, "1048576 of the device, and further ones, 1536 bytes");
	repair();
	assert_sound(mt.volume->id);
	ck_assert_uint_eq(fx.n_changes, before + 3);
}
END_TEST

static struct volume_health reported(const char *id)
{
	CLEANUP(volumes_report_done) struct volumes_report r = {0};
	struct volume_health h = {0};

	ck_assert(volumes_report(fx.v, &r));
	for (size_t i = 0; i < r.n_volumes; i++) {
		if (str_eq(r.volumes[i].id, id))
			health_copy(&h, &r.volumes[i].health);
	}
	return h;
}

START_TEST(report_has_what_was_found)
{
	CLEANUP(health_done) struct volume_health none = reported(mt.volume->id);

	ck_assert_uint_eq(none.n, 0);
	mounts_damage(0, 512);
	ASSERT_OK(volumes_look_at_health(fx.v, &err));
	CLEANUP(health_done) struct volume_health found = reported(mt.volume->id);
	ck_assert_ptr_nonnull(health_find(&found, HEALTH_MEDIA_ERROR));
}
END_TEST

static void assert_not_ready(void)
{
	struct volumes_report r;

	ck_assert(!volumes_is_ready(fx.v));
	ck_assert(!volumes_report(fx.v, &r));
	fx.faults.in_media_errors = NULL;
}

START_TEST(first_report_after_a_start_has_what_is_wrong)
{
	mounts_damage(0, 512);
	fixture_stop();
	fixture_open();
	fx.faults.in_media_errors = assert_not_ready;
	unsigned before = fx.n_changes;
	ASSERT_OK(volumes_start(fx.v, &err));
	ck_assert_ptr_null(fx.faults.in_media_errors);
	ck_assert_uint_gt(fx.n_changes, before);
	CLEANUP(health_done) struct volume_health found = reported(mt.volume->id);
	ck_assert_ptr_nonnull(health_find(&found, HEALTH_MEDIA_ERROR));
}
END_TEST

START_TEST(failing_look_keeps_no_driver_from_starting)
{
	fx.faults.media_errors = ERR_INTERNAL;
	fixture_restart();
	ck_assert(volumes_is_ready(fx.v));
}
END_TEST

START_TEST(list_that_cannot_be_read_affects_only_its_volumes)
{
	CLEANUP(volume_info_freep) struct volume_info *other = fixture_create("pvc-2", SIZE);
	CLEANUP(health_done) struct volume_health h = {0};
	CLEANUP(health_done) struct volume_health sound = {0};

	stage("ext4");
	mounts_damage(0, REGION_BYTES);
	ASSERT_OK(volumes_look_at_health(fx.v, &err));
	fx.faults.media_errors = ERR_INTERNAL;
	fx.faults.unlisted = mt.volume->id;
	repair();
	make_super_readonly();
	ASSERT_FAILS(volumes_look_at_health(fx.v, &err), ERR_INTERNAL, "find media errors");
	ASSERT_OK(volumes_health(fx.v, mt.volume->id, &h, &err));
	ck_assert_uint_eq(h.n, 2);
	ck_assert(health_find(&h, HEALTH_MEDIA_ERROR) && health_find(&h, HEALTH_FS_READONLY));
	ASSERT_OK(volumes_health(fx.v, other->id, &sound, &err));
	ck_assert_uint_eq(sound.n, 0);
}
END_TEST

static size_t count(const char *reason)
{
	struct health_count counts[HEALTH_REASONS];

	volumes_count_health(fx.v, counts);
	for (size_t i = 0; i < HEALTH_REASONS; i++) {
		if (str_eq(counts[i].reason, reason))
			return counts[i].n;
	}
	ck_abort_msg("%s is not counted", reason);
}

/* The state of the memory module that the replaced functions report; the volume of the fixture lies on it. */
static struct {
	unsigned problems;
	uint64_t dirty_shutdowns;
	bool fails, place_fails;
	unsigned n_places; /* how often a place was asked for */
} module;

int __wrap_dimms_read(struct dimms *ret, struct error **ret_err);
int __wrap_dimms_find_below(const struct dimms *d, const char *path, bool *ret_below, struct error **ret_err);

int __wrap_dimms_read(struct dimms *ret, struct error **ret_err)
{
	if (module.fails)
		return err_set(ret_err, ERR_INTERNAL, "no sysfs");
	*ret = (struct dimms){.list = x_calloc(1, sizeof(*ret->list)), .n = 1};
	ret->list[0] = (struct dimm){.name = x_strdup("nmem0"),
		.id = x_strdup("8089"),
		.problems = module.problems,
		.counts = module.dirty_shutdowns > 0,
		.dirty_shutdowns = module.dirty_shutdowns};
	return 0;
}

int __wrap_dimms_find_below(const struct dimms *d, const char *path, bool *ret_below, struct error **ret_err)
{
	module.n_places++;
	if (module.place_fails)
		return err_set(ret_err, ERR_INTERNAL, "no table");
	ck_assert_uint_eq(d->n, 1);
	ret_below[0] = str_eq(path, mt.device->path);
	return 0;
}

START_TEST(trouble_of_a_module_is_that_of_its_volumes)
{
	CLEANUP(volume_info_freep) struct volume_info *other = fixture_create("pvc-2", SIZE);
	CLEANUP(dimms_done) struct dimms d = {0};

	assert_sound(mt.volume->id);
	ck_assert_uint_eq(module.n_places, 0);
	module.problems = DIMM_FLUSH_FAILED;
	assert_only(HEALTH_DIMM_LOST_DATA, HEALTH_DATA_LOSS, "nmem0 (8089): flush_fail");
	assert_sound(other->id);
	ck_assert_uint_eq(count(HEALTH_DIMM_LOST_DATA), 1);
	volumes_list_dimms(fx.v, &d);
	ck_assert_uint_eq(d.n, 1);
	ck_assert_uint_eq(d.list[0].problems, DIMM_FLUSH_FAILED);
	module.problems = DIMM_NOT_ARMED;
	assert_only(HEALTH_DIMM_DEGRADED, HEALTH_DEGRADED, "not_armed");
	module.problems = 0;
	assert_sound(mt.volume->id);
}
END_TEST

START_TEST(trouble_of_modules_that_cannot_be_asked_is_not_over)
{
	module.problems = DIMM_SAVE_FAILED;
	assert_only(HEALTH_DIMM_LOST_DATA, HEALTH_DATA_LOSS, "save_fail");
	module.fails = true;
	assert_only(HEALTH_DIMM_LOST_DATA, HEALTH_DATA_LOSS, "save_fail");
	module.fails = false;
	module.place_fails = true;
	assert_only(HEALTH_DIMM_LOST_DATA, HEALTH_DATA_LOSS, "save_fail");
	module.place_fails = false;
	module.problems = 0;
	assert_sound(mt.volume->id);
}
END_TEST

/* The driver starts in a boot in which the count is @n; in the one before, it was 1. */
static void let_boot(uint64_t n)
{
	CLEANUP(free_charp) char *path = fixture_path("state/dirty-shutdowns");

	fixture_stop();
	FILE *f = fopen(path, "we");
	ck_assert_ptr_nonnull(f);
	fprintf(f, "{\"bootID\":\"another\",\"modules\":[{\"id\":\"8089\",\"before\":1,\"now\":1}]}");
	ck_assert_int_eq(fclose(f), 0);
	module.dirty_shutdowns = n;
	fixture_open();
	ASSERT_OK(volumes_start(fx.v, &err));
}

START_TEST(dirty_shutdown_is_reported_for_the_boot)
{
	let_boot(2);
	for (unsigned i = 0; i < 3; i++)
		assert_only(HEALTH_DIRTY_SHUTDOWN, HEALTH_DATA_LOSS, "nmem0 (8089)");
	fixture_restart();
	assert_only(HEALTH_DIRTY_SHUTDOWN, HEALTH_DATA_LOSS, "nmem0 (8089)");
	let_boot(1);
	assert_sound(mt.volume->id);
}
END_TEST

START_TEST(missing_and_damaged_volumes_need_no_look)
{
	CLEANUP(health_done) struct volume_health missing = {0};
	CLEANUP(health_done) struct volume_health damaged = {0};

	fx.faults.absent_pool = mt.device->pool;
	fixture_stop();
	fixture_write("damaged.json", "{");
	fixture_open();
	ASSERT_FAILS(volumes_look_at_health(fx.v, &err), ERR_UNAVAILABLE, "starting");
	ASSERT_OK(volumes_start(fx.v, &err));
	ASSERT_OK(volumes_health(fx.v, mt.volume->id, &missing, &err));
	ck_assert_uint_eq(missing.n, 1);
	ck_assert_int_eq(health_find(&missing, HEALTH_DEVICE_MISSING)->severity, HEALTH_INACCESSIBLE);
	ASSERT_OK(volumes_health(fx.v, "damaged", &damaged, &err));
	ck_assert_int_eq(health_find(&damaged, HEALTH_STATE_DAMAGED)->severity, HEALTH_DEGRADED);
	ck_assert_uint_eq(count(HEALTH_DEVICE_MISSING), 1);
	ck_assert_uint_eq(count(HEALTH_STATE_DAMAGED), 1);
	ck_assert_uint_eq(count(HEALTH_MEDIA_ERROR), 0);
}
END_TEST

START_TEST(deleted_volume_has_no_health)
{
	struct volume_health h;

	mounts_damage(0, 512);
	ASSERT_OK(volumes_look_at_health(fx.v, &err));
	ck_assert_uint_eq(count(HEALTH_MEDIA_ERROR), 1);
	repair();
	ASSERT_OK(volumes_delete(fx.v, mt.volume->id, &err));
	fixture_await_erased();
	ck_assert_uint_eq(count(HEALTH_MEDIA_ERROR), 0);
	ASSERT_FAILS(volumes_health(fx.v, mt.volume->id, &h, &err), ERR_NOT_FOUND, "does not exist");
}
END_TEST

static void fill(const char *path)
{
	CLEANUP(fd_closep) int fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	static const char chunk[4096];

	ck_assert_int_ge(fd, 0);
	while (write(fd, chunk, sizeof(chunk)) > 0)
		continue;
}

static void unstage(void)
{
	ASSERT_OK(volumes_unstage(fx.v, mt.volume->id, mt.staging, &err));
}

START_TEST(full_file_system_is_shown_until_there_is_space)
{
	CLEANUP(free_charp) char *file = x_asprintf("%s/file", mt.staging);

	stage("ext4");
	fill(file);
	assert_only(HEALTH_FS_FULL, HEALTH_DEGRADED, "no space");
	unstage();
	assert_only(HEALTH_FS_FULL, HEALTH_DEGRADED, "no space");
	stage("ext4");
	ck_assert_int_eq(unlink(file), 0);
	assert_sound(mt.volume->id);
}
END_TEST

/* All file systems but that of the test's folder hang while it is locked. */
static pthread_mutex_t hang = PTHREAD_MUTEX_INITIALIZER;

int __real_fstatvfs(int fd, struct statvfs *ret);
int __wrap_fstatvfs(int fd, struct statvfs *ret);

int __wrap_fstatvfs(int fd, struct statvfs *ret)
{
	CLEANUP(free_charp) char *folder = fixture_path("");
	struct stat own;
	struct stat st;

	ck_assert_int_eq(stat(folder, &own), 0);
	if (fstat(fd, &st) < 0 || st.st_dev != own.st_dev) {
		pthread_mutex_lock(&hang);
		pthread_mutex_unlock(&hang);
	}
	return __real_fstatvfs(fd, ret);
}

START_TEST(file_system_that_hangs_is_shown_until_it_answers)
{
	stage("ext4");
	pthread_mutex_lock(&hang);
	assert_only(HEALTH_FS_HANGS, HEALTH_INACCESSIBLE, "does not answer");
	/* the helper of the first look still waits */
	assert_only(HEALTH_FS_HANGS, HEALTH_INACCESSIBLE, "does not answer");
	pthread_mutex_unlock(&hang);
	assert_sound(mt.volume->id);
}
END_TEST

START_TEST(file_system_that_hangs_delays_the_start_for_a_moment)
{
	stage("ext4");
	fixture_stop();
	fixture_open();
	pthread_mutex_lock(&hang);
	uint64_t begun_ns = clock_ns();
	ASSERT_OK(volumes_start(fx.v, &err));
	ck_assert_uint_lt(clock_ns() - begun_ns, 5 * NS_PER_S);
	ck_assert_uint_eq(count(HEALTH_FS_HANGS), 1);
	pthread_mutex_unlock(&hang);
}
END_TEST

/* By other file systems, each of which keeps one. */
static void use_up_helpers(void)
{
	for (size_t i = 0;; i++) {
		CLEANUP(free_charp) char *folder = x_asprintf("kubelet/hanging-%zu", i);
		CLEANUP(free_charp) char *path = fixture_path(folder);
		CLEANUP(fd_closep) int fd = -1;
		struct fs_usage usage;
		struct stat st;

		ck_assert_int_eq(mkdir(path, 0755), 0);
		ck_assert_int_eq(mount("tmpfs", path, "tmpfs", 0, NULL), 0);
		fd = open(path, O_PATH | O_CLOEXEC);
		ck_assert_int_eq(fstat(fd, &st), 0);
		ck_assert_int_eq(fs_usage_read(fx.v->usage_helpers, fd, st.st_dev, 1, &usage, &err), -1);
		enum err_code code = err->code;
		error_clear(&err);
		if (code == ERR_UNAVAILABLE)
			return;
		ck_assert_int_eq(code, ERR_DEADLINE);
	}
}

START_TEST(what_was_known_stays_while_no_helper_can_ask)
{
	CLEANUP(free_charp) char *file = x_asprintf("%s/file", mt.staging);

	stage("ext4");
	fill(file);
	assert_only(HEALTH_FS_FULL, HEALTH_DEGRADED, "no space");
	ck_assert_int_eq(unlink(file), 0);
	pthread_mutex_lock(&hang);
	use_up_helpers();
	assert_only(HEALTH_FS_FULL, HEALTH_DEGRADED, "no space");
	pthread_mutex_unlock(&hang);
}
END_TEST

START_TEST(file_system_without_inodes_is_full)
{
	stage("ext4");
	for (unsigned i = 0;; i++) {
		CLEANUP(free_charp) char *path = x_asprintf("%s/%u", mt.staging, i);
		CLEANUP(fd_closep) int fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);

		if (fd < 0)
			break;
	}
	assert_only(HEALTH_FS_FULL, HEALTH_DEGRADED, "no inodes");
}
END_TEST

START_TEST(file_system_that_turned_readonly_is_shown)
{
	stage("ext4");
	make_super_readonly();
	assert_only(HEALTH_FS_READONLY, HEALTH_DEGRADED, "read-only");
}
END_TEST

/* The kernel counts an error in the superblock by a work item (flush_stashed_error_work() of
 * fs/ext4/super.c). */
static void wait_for_error_count(void)
{
	const char *name = strrchr(mt.device->path, '/') + 1;
	CLEANUP(free_charp) char *path = x_asprintf("/sys/fs/ext4/%s/errors_count", name);
	char first = '0';

	for (unsigned i = 0; i < 1000 && first == '0'; i++) {
		CLEANUP(fd_closep) int fd = open(path, O_RDONLY | O_CLOEXEC);

		ck_assert_int_eq(read(fd, &first, 1), 1);
		if (first == '0')
			usleep(10000);
	}
	ck_assert_int_ne(first, '0');
}

static void assert_error_and_readonly(void)
{
	CLEANUP(health_done) struct volume_health h = look_at(mt.volume->id);
	CLEANUP(free_charp) char *text = health_text(&h);

	ck_assert_msg(h.n == 2 && health_find(&h, HEALTH_FS_ERROR) && health_find(&h, HEALTH_FS_READONLY),
		"%s", text);
}

/* The mount has errors=remount-ro. */
START_TEST(errors_that_ext4_counted_are_shown)
{
	CLEANUP(free_charp)
	char *path = x_asprintf("/sys/fs/ext4/%s/trigger_fs_error", strrchr(mt.device->path, '/') + 1);

	stage("ext4");
	CLEANUP(fd_closep) int fd = open(path, O_WRONLY | O_CLOEXEC);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(write(fd, "test", 4), 4);
	wait_for_error_count();
	assert_error_and_readonly();
	ck_assert_uint_eq(count(HEALTH_FS_ERROR), 1);
	unstage();
	assert_only(HEALTH_FS_ERROR, HEALTH_DEGRADED, "e2fsck");
}
END_TEST

START_TEST(xfs_that_shut_itself_down_is_inaccessible)
{
	struct volume_stats stats;

	stage("xfs");
	assert_sound(mt.volume->id);
	CLEANUP(fd_closep) int fd = open(mt.staging, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	ck_assert_int_eq(ioctl(fd, GOINGDOWN, &(uint32_t){GOINGDOWN_NOLOGFLUSH}), 0);
	assert_only(HEALTH_FS_SHUT_DOWN, HEALTH_INACCESSIBLE, "refuses access");
	/* its numbers are those from before */
	ASSERT_OK(volumes_stats(fx.v, mt.volume->id, mt.staging, &stats, &err));
	ck_assert_uint_gt(stats.usage.total_bytes, 0);
}
END_TEST

int main(void)
{
	TCase *tcase = fixture_case("volumes_health", set_up);

	if (!tcase)
		return SKIP_STATUS;
	tcase_add_test(tcase, volumes_are_sound_whether_mounted_or_not);
	tcase_add_test(tcase, media_error_is_shown_with_its_offset_and_reported_once);
	tcase_add_test(tcase, report_has_what_was_found);
	tcase_add_test(tcase, first_report_after_a_start_has_what_is_wrong);
	tcase_add_test(tcase, failing_look_keeps_no_driver_from_starting);
	tcase_add_test(tcase, file_system_that_hangs_delays_the_start_for_a_moment);
	tcase_add_test(tcase, list_that_cannot_be_read_affects_only_its_volumes);
	tcase_add_test(tcase, trouble_of_a_module_is_that_of_its_volumes);
	tcase_add_test(tcase, trouble_of_modules_that_cannot_be_asked_is_not_over);
	tcase_add_test(tcase, dirty_shutdown_is_reported_for_the_boot);
	tcase_add_test(tcase, missing_and_damaged_volumes_need_no_look);
	tcase_add_test(tcase, deleted_volume_has_no_health);
	tcase_add_test(tcase, full_file_system_is_shown_until_there_is_space);
	tcase_add_test(tcase, file_system_that_hangs_is_shown_until_it_answers);
	tcase_add_test(tcase, what_was_known_stays_while_no_helper_can_ask);
	tcase_add_test(tcase, file_system_without_inodes_is_full);
	tcase_add_test(tcase, file_system_that_turned_readonly_is_shown);
	tcase_add_test(tcase, errors_that_ext4_counted_are_shown);
	tcase = fixture_more_cases("xfs", set_up_xfs);
	tcase_add_test(tcase, xfs_that_shut_itself_down_is_inaccessible);
	return fixture_finish();
}
