/* SPDX-License-Identifier: Apache-2.0 */
/* NodeGetVolumeStats: the usage of the file system that is really mounted at a path. */
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/str.h"
#include "unit/volume/mounts.h"

#define SIZE MIB(16)

static void set_up(void)
{
	mounts_set_up(SIZE);
}

static void set_up_block(void)
{
	mounts_set_up_block(SIZE);
}

static void publish(bool block)
{
	struct use_request s = mounts_stage_request("");
	struct use_request p = mounts_publish_request(mt.target, ACCESS_SINGLE_WRITER);
	struct error *err = NULL;

	s.block = p.block = block;
	p.fs_type = "";
	ASSERT_OK(volumes_stage(fx.v, &s, &err));
	ASSERT_OK(volumes_publish(fx.v, &p, &err));
}

static int ask(const char *path, struct volume_stats *ret, struct error **err)
{
	return volumes_stats(fx.v, mt.volume->id, path, ret, err);
}

START_TEST(file_system_has_bytes_and_inodes)
{
	const char *const paths[] = {mt.staging, mt.target};
	struct error *err = NULL;

	publish(/* block= */ false);
	for (size_t i = 0; i < ARRAY_SIZE(paths); i++) {
		struct volume_stats stats;
		struct statvfs s;

		ck_assert_int_eq(statvfs(paths[i], &s), 0);
		ASSERT_OK(ask(paths[i], &stats, &err));
		ck_assert(!stats.block);
		ck_assert_uint_eq(stats.usage.total_bytes, s.f_blocks * s.f_frsize);
		ck_assert_uint_eq(stats.usage.available_bytes, s.f_bavail * s.f_frsize);
		ck_assert_uint_eq(stats.usage.total_inodes, s.f_files);
		ck_assert_uint_eq(stats.usage.used_inodes, s.f_files - s.f_ffree);
	}
}
END_TEST

START_TEST(device_has_its_size)
{
	struct volume_stats stats;
	struct error *err = NULL;

	publish(/* block= */ true);
	ASSERT_OK(ask(mt.target, &stats, &err));
	ck_assert(stats.block);
	ck_assert_uint_eq(stats.usage.total_bytes, SIZE);
	ASSERT_FAILS(ask(mt.staging, &stats, &err), ERR_NOT_FOUND, mt.staging);
}
END_TEST

START_TEST(path_at_which_the_volume_is_not_is_not_found)
{
	const char *const paths[] = {mt.other, "some/path", "/", "/etc/passwd", ""};
	struct volume_stats stats;
	struct error *err = NULL;

	for (size_t i = 0; i < ARRAY_SIZE(paths); i++)
		ASSERT_FAILS(ask(paths[i], &stats, &err), ERR_NOT_FOUND, paths[i]);
	ASSERT_FAILS(ask(mt.staging, &stats, &err), ERR_NOT_FOUND, "neither staged nor published");
	publish(/* block= */ false);
	ck_assert_int_eq(mkdir(mt.other, 0755), 0);
	ck_assert_int_eq(mount("other", mt.other, "tmpfs", 0, NULL), 0);
	ASSERT_FAILS(ask(mt.other, &stats, &err), ERR_NOT_FOUND, "something other");
	ck_assert_int_eq(mount("other", mt.target, "tmpfs", 0, NULL), 0);
	ASSERT_FAILS(ask(mt.target, &stats, &err), ERR_NOT_FOUND, "something other");
}
END_TEST

START_TEST(unknown_and_dying_volumes_are_not_found)
{
	struct volume_stats stats;
	struct error *err = NULL;

	publish(/* block= */ false);
	ASSERT_FAILS(volumes_stats(fx.v, "unknown", mt.target, &stats, &err), ERR_NOT_FOUND, "unknown");
	fixture_stop();
	fixture_open();
	ASSERT_FAILS(ask(mt.target, &stats, &err), ERR_UNAVAILABLE, "starting");
}
END_TEST

START_TEST(missing_volume_still_tells_where_it_was_published)
{
	struct volume_stats stats;
	struct error *err = NULL;

	publish(/* block= */ false);
	fx.faults.absent_pool = mt.device->pool;
	fixture_restart();
	ASSERT_OK(ask(mt.target, &stats, &err));
	ck_assert_uint_gt(stats.usage.total_bytes, 0);
}
END_TEST

int main(void)
{
	TCase *tcase = fixture_case("volumes_stats", set_up);

	if (!tcase)
		return SKIP_STATUS;
	tcase_add_test(tcase, file_system_has_bytes_and_inodes);
	tcase_add_test(tcase, path_at_which_the_volume_is_not_is_not_found);
	tcase_add_test(tcase, unknown_and_dying_volumes_are_not_found);
	tcase_add_test(tcase, missing_volume_still_tells_where_it_was_published);
	tcase = fixture_more_cases("block", set_up_block);
	tcase_add_test(tcase, device_has_its_size);
	return fixture_finish();
}
