/* SPDX-License-Identifier: Apache-2.0 */
/* A state folder that was restored from a backup, with devices that have changed since. */
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/str.h"
#include "inspect/repair.h"
#include "os/fs.h"
#include "unit/volume/fixture.h"

#define SIZE         MIB(32)
#define MKFS_TIME_MS 60000

/* The backup was made while the volume was being created; the volume has been used since. Return: its ID. */
static char *restore_creation(const char *fs_type)
{
	CLEANUP(volume_info_freep) struct volume_info *info = fixture_create("pvc-1", SIZE);
	CLEANUP(device_freep) struct device *d = fixture_device(info->id);
	CLEANUP(free_charp) char *ready = x_asprintf("%s.json", info->id);
	CLEANUP(free_charp) char *creating = x_asprintf("%s.creating", info->id);
	CLEANUP(free_charp) char *ready_path = x_asprintf("state/%s", ready);
	CLEANUP(free_charp) char *text = fixture_read(ready);
	CLEANUP(free_charp) char *path = fixture_path(ready_path);
	struct error *err = NULL;

	if (fs_type)
		ASSERT_OK(fs_make(fs_type, d->path, /* layout= */ NULL, MKFS_TIME_MS, &err));
	fixture_stop();
	ck_assert_int_eq(remove(path), 0);
	fixture_write(creating, text);
	fixture_open();
	return x_strdup(info->id);
}

START_TEST(volume_with_content_is_not_taken_for_unfinished)
{
	CLEANUP(free_charp) char *id = restore_creation("ext4");
	const struct volume_request q = fixture_request("pvc-1", SIZE);
	CLEANUP(volume_info_freep) struct volume_info *info = NULL;
	struct repair_report report = {0};
	struct error *err = NULL;

	ASSERT_OK(volumes_start(fx.v, &err));
	ck_assert_uint_eq(fixture_n_devices(), 1);
	ck_assert_uint_eq(fixture_n_files(), 1);
	ASSERT_FAILS(volumes_create(fx.v, &q, &info, &err), ERR_PRECONDITION, "check -repair");
	ck_assert_uint_eq(fixture_n_devices(), 1);

	fixture_stop();
	fixture_open();
	ASSERT_OK(volumes_repair(fx.v, id, ADOPTED_AS_FOUND, &report, &err));
	ck_assert_msg(!report.left, "%s", report.left ? report.left[0] : "");
	ck_assert_uint_eq(strv_len(report.done), 1);
	repair_report_done(&report);
	fixture_restart();
	ASSERT_OK(volumes_create(fx.v, &q, &info, &err));
	ck_assert_str_eq(info->id, id);
	ck_assert_uint_eq(fixture_n_devices(), 1);
}
END_TEST

START_TEST(volume_without_content_is_creating)
{
	struct error *err = NULL;

	free(restore_creation(NULL));
	ASSERT_OK(volumes_start(fx.v, &err));
	ck_assert_uint_eq(fixture_n_devices(), 0);
	ck_assert_uint_eq(fixture_n_files(), 0);
}
END_TEST

FIXTURE_MAIN("volumes_restored", fixture_folder, volume_with_content_is_not_taken_for_unfinished,
	volume_without_content_is_creating)
