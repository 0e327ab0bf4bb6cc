/* SPDX-License-Identifier: Apache-2.0 */
/* Staging and unstaging, with the n-th call below them failing. */
#include <fcntl.h>
#include <sys/mount.h>
#include <unistd.h>

#include "base/str.h"
#include "os/mount.h"
#include "unit/inject/ops.h"
#include "unit/volume/injected.h"
#include "unit/volume/mounts.h"

#define SIZE MIB(8)

static void set_up(void)
{
	injected_enter();
	mounts_set_up(SIZE);
	ops_wrap_devices(&fx.devices);
}

static int stage(struct error **err)
{
	char *flags[] = {(char[]){"noatime"}, NULL};
	struct use_request q = mounts_stage_request("ext4");

	q.mount_flags = flags;
	return volumes_stage(fx.v, &q, err);
}

static int unstage(struct error **err)
{
	return volumes_unstage(fx.v, mt.volume->id, mt.staging, err);
}

static const char *not_staged(void)
{
	CLEANUP(volume_record_freep) struct volume_record *r = mounts_record();

	RIGHT_IF(mounts_count(mt.staging) == 1);
	RIGHT_IF(mount_entry_has(mounts_top(mt.staging), "noatime"));
	RIGHT_IF(r->ever_staged && r->fs_uuid && str_eq(r->staging_path, mt.staging));
	return NULL;
}

static const char *not_unstaged(void)
{
	CLEANUP(volume_record_freep) struct volume_record *r = mounts_record();

	RIGHT_IF(mounts_count(mt.staging) == 0);
	RIGHT_IF(mounts_count(mt.staging) == 0);
	/* what could not be recorded is kept in memory */
	RIGHT_IF(r->ever_staged && (!r->staging_path || str_eq(r->staging_path, mt.staging)));
	return NULL;
}

/* A new empty volume of the same name. */
static void replace(void)
{
	struct error *err = NULL;

	ASSERT_OK(volumes_delete(fx.v, mt.volume->id, &err));
	volume_info_free(TAKE_PTR(mt.volume));
	device_free(TAKE_PTR(mt.device));
	mt.volume = fixture_create("pvc-1", SIZE);
	mt.device = fixture_device(mt.volume->id);
}

static void unstage_and_replace(void)
{
	struct error *err = NULL;

	ASSERT_OK(unstage(&err));
	replace();
}

START_TEST(an_empty_volume_is_formatted_and_staged)
{
	const struct sweep s = {.name = "volumes_stage, empty",
		.folder = injected_folder(),
		.min_points = 150,
		.brief = true,
		.once = true, /* what is mounted cannot be unmounted then, either */
		.call = stage,
		.wrong_at_end = not_staged,
		.undo = unstage_and_replace};

	sweep_run(&s);
}
END_TEST

static void must_stage(void)
{
	struct error *err = NULL;

	ASSERT_OK(stage(&err));
}

static void must_unstage(void)
{
	struct error *err = NULL;

	ASSERT_OK(unstage(&err));
}

static void write_data(void)
{
	must_stage();
	ck_assert_int_eq(mounts_write(mt.staging), 0);
	must_unstage();
}

static const char *not_staged_with_data(void)
{
	RIGHT_IF(mounts_has_file(mt.staging));
	return not_staged();
}

START_TEST(a_volume_with_data_is_staged_and_keeps_them)
{
	const struct sweep s = {.name = "volumes_stage, with data",
		.folder = injected_folder(),
		.min_points = 100,
		.once = true,
		.call = stage,
		.wrong_at_end = not_staged_with_data,
		.undo = must_unstage};
	const struct sweep again = {.name = "volumes_stage, staged",
		.folder = injected_folder(),
		.min_points = 20,
		.prepare = must_stage,
		.call = stage,
		.wrong_at_end = not_staged_with_data,
		.undo = must_unstage};

	write_data();
	sweep_run(&s);
	sweep_run(&again);
}
END_TEST

static void stage_twice(void)
{
	must_stage();
	ck_assert_int_eq(mount(mt.staging, mt.staging, NULL, MS_BIND, NULL), 0);
}

/* As it is found after a change from the Go driver, which records no path. */
static void stage_unrecorded(void)
{
	ck_assert_int_eq(mount(mt.device->path, mt.staging, "ext4", 0, NULL), 0);
}

START_TEST(a_volume_is_unstaged_in_the_end)
{
	const struct sweep s = {.name = "volumes_unstage",
		.folder = injected_folder(),
		.min_points = 50,
		.prepare = must_stage,
		.once = true, /* a record that cannot be written is no failure, and leaves its temporary */
		.call = unstage,
		.wrong_at_end = not_unstaged};
	const struct sweep stacked = {.name = "volumes_unstage, stacked",
		.folder = injected_folder(),
		.min_points = 150,
		.brief = true,
		.prepare = stage_twice,
		.once = true, /* a record that cannot be written is no failure, and leaves its temporary */
		.call = unstage,
		.wrong_at_end = not_unstaged};

	const struct sweep unrecorded = {.name = "volumes_unstage, unrecorded",
		.folder = injected_folder(),
		.min_points = 40,
		.brief = true,
		.prepare = stage_unrecorded,
		.once = true, /* a record that cannot be written is no failure, and leaves its temporary */
		.call = unstage,
		.wrong_at_end = not_unstaged};

	must_stage();
	must_unstage();
	sweep_run(&s);
	sweep_run(&stacked);
	sweep_run(&unrecorded);
}
END_TEST

INJECTED_MAIN("inject_stage", set_up, an_empty_volume_is_formatted_and_staged,
	a_volume_with_data_is_staged_and_keeps_them, a_volume_is_unstaged_in_the_end)
