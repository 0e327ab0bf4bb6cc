/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel's answers are made up: loop devices have no DAX. */
#include "volume/durability/volumes_durability.h"

#include <sys/mount.h>
#include <sys/stat.h>

#include "base/mem.h"
#include "base/str.h"
#include "unit/volume/mounts.h"
#include "volume/durability/map_sync.h"

#define SIZE MIB(64)

bool __real_mount_entry_has(const struct mount_entry *e, const char *option);
bool __wrap_mount_entry_has(const struct mount_entry *e, const char *option);
int __wrap_map_sync_try(int dir_fd, int timeout_ms, enum durability *ret, struct error **err);

static struct {
	enum durability answer;
	bool fails;
	unsigned n_tries;
} kernel;

bool __wrap_mount_entry_has(const struct mount_entry *e, const char *option)
{
	return str_eq(option, "dax=always") || __real_mount_entry_has(e, option);
}

int __wrap_map_sync_try(int dir_fd, int timeout_ms, enum durability *ret, struct error **err)
{
	(void)dir_fd;
	(void)timeout_ms;
	kernel.n_tries++;
	if (kernel.fails)
		return err_set(err, ERR_DEADLINE, "no answer");
	*ret = kernel.answer;
	return 0;
}

static void set_up(void)
{
	kernel.fails = false;
	mounts_set_up(SIZE);
}

/* A volume is staged, and its region is unknown as after an update from a driver that tried nothing. */
static void stage_untried(void)
{
	struct use_request q = mounts_stage_request("ext4");
	struct error *err = NULL;

	kernel.fails = true;
	ASSERT_OK(volumes_stage(fx.v, &q, &err));
	kernel.fails = false;
	kernel.answer = DURABILITY_FSYNC;
	kernel.n_tries = 0;
	ck_assert(!fixture_exists("durability"));
}

START_TEST(a_volume_that_stayed_mounted_is_tried_at_the_start)
{
	stage_untried();
	fixture_restart();
	ck_assert_uint_eq(kernel.n_tries, 1);
	CLEANUP(free_charp) char *text = fixture_read("durability");
	ck_assert_ptr_nonnull(strstr(text, mt.device->pool));
	ck_assert_ptr_nonnull(strstr(text, "fsync"));
	/* what is known is not asked again */
	fixture_restart();
	ck_assert_uint_eq(kernel.n_tries, 1);
}
END_TEST

START_TEST(one_volume_of_a_region_is_tried_even_if_the_kernel_does_not_answer)
{
	struct error *err = NULL;

	stage_untried();
	for (size_t i = 0; i < 3; i++) {
		CLEANUP(free_charp) char *name = x_asprintf("more-%zu", i);
		CLEANUP(volume_info_freep) struct volume_info *more = fixture_create(name, SIZE);
		CLEANUP(free_charp) char *path = x_asprintf("%s-%s", mt.staging, name);
		struct use_request q = mounts_stage_request("ext4");

		ck_assert_int_eq(mkdir(path, 0755), 0);
		q.handle = more->id;
		q.staging_path = path;
		kernel.fails = true;
		ASSERT_OK(volumes_stage(fx.v, &q, &err));
	}
	kernel.n_tries = 0;
	fixture_restart();
	ck_assert_uint_le(kernel.n_tries, N_POOLS);
	ck_assert_uint_ge(kernel.n_tries, 1);
	ck_assert(!fixture_exists("durability"));
}
END_TEST

START_TEST(what_is_read_only_or_not_mounted_is_not_tried)
{
	struct error *err = NULL;

	stage_untried();
	ck_assert_int_eq(mount(NULL, mt.staging, NULL, MS_REMOUNT | MS_RDONLY, NULL), 0);
	fixture_restart();
	ck_assert_uint_eq(kernel.n_tries, 0);
	ASSERT_OK(volumes_unstage(fx.v, mt.volume->id, mt.staging, &err));
	fixture_restart();
	ck_assert_uint_eq(kernel.n_tries, 0);
}
END_TEST

FIXTURE_MAIN("volumes_durability", set_up, a_volume_that_stayed_mounted_is_tried_at_the_start,
	one_volume_of_a_region_is_tried_even_if_the_kernel_does_not_answer,
	what_is_read_only_or_not_mounted_is_not_tried)
