/* SPDX-License-Identifier: Apache-2.0 */
/* The life of a volume, with the n-th call below it failing: creation, deletion, start, refresh. */
#include <fcntl.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"
#include "unit/volume/injected.h"

#define SIZE MIB(8) /* the smallest for ext4 */
#define NAME "pvc-1"

static struct volume_info *made;

/* One whose deletion costs little. */
static int create_for(bool block, struct error **err)
{
	CLEANUP(strmap_done) struct strmap parameters = {0};
	struct volume_request q = fixture_request(NAME, SIZE);

	strmap_set(&parameters, "eraseafter", "false");
	q.parameters = &parameters;
	q.block = block;
	return volumes_create(fx.v, &q, &made, err);
}

static int create(struct error **err)
{
	return create_for(/* block= */ false, err);
}

static int create_block(struct error **err)
{
	return create_for(/* block= */ true, err);
}

static void make(void)
{
	struct error *err = NULL;

	ASSERT_OK(create(&err));
}

/* A pool in which a device could not be made offers nothing for a while. */
static const char *capacity_wrong(size_t n_volumes)
{
	struct capacity capacity;

	RIGHT_IF(volumes_capacity(fx.v, /* sync= */ true, &capacity));
	RIGHT_IF(capacity.available_bytes == N_POOLS * REGION_BYTES - n_volumes * SIZE ||
		 capacity.available_bytes == (N_POOLS - 1) * REGION_BYTES - n_volumes * SIZE ||
		 capacity.available_bytes == (N_POOLS - 2) * REGION_BYTES);
	return NULL;
}

static const char *not_created(void)
{
	CLEANUP(free_charp) char *file = x_asprintf("%s.json", made->id);
	CLEANUP(device_freep) struct device *d = fixture_device(made->id);

	RIGHT_IF(fixture_n_devices() == 1 && fixture_n_files() == 1);
	RIGHT_IF(fixture_exists(file));
	RIGHT_IF(d && d->active && d->path && d->size_bytes == SIZE);
	return capacity_wrong(1);
}

/* Before a restart sees it, and after. */
static const char *not_gone(void)
{
	RIGHT_IF(fixture_n_devices() == 0);
	RIGHT_IF(fixture_n_files() == 0);
	return capacity_wrong(0);
}

static void delete_made(void)
{
	CLEANUP(error_freep) struct error *err = NULL;

	ASSERT_OK(volumes_delete(fx.v, made->id, &err));
	volume_info_free(TAKE_PTR(made));
	ck_assert_ptr_null(not_gone());
}

START_TEST(a_volume_is_created_or_nothing_is_left)
{
	const struct sweep s = {.name = "volumes_create",
		.folder = injected_folder(),
		.min_points = 80,
		.brief = true,
		.call = create_block,
		.wrong_after_failure = not_gone,
		.wrong_at_end = not_created,
		.undo = delete_made};

	sweep_run(&s);
}
END_TEST

/* Creates the volume, after a restart if the last attempt failed: the start rolls back a creation that could
 * not be undone. */
static int create_or_start_anew(struct error **err)
{
	static bool failed;

	if (failed)
		fixture_restart();
	failed = !failed && create(err) < 0;
	return failed ? -1 : 0;
}

/* Or it was complete already, and only that could not be reported. */
static const char *neither_made_nor_rolled_back(void)
{
	if (made)
		return not_created();
	if (fixture_n_devices() == 1)
		make();
	return made ? not_created() : not_gone();
}

static void make_and_delete(void)
{
	if (!made)
		make();
	delete_made();
}

START_TEST(a_start_rolls_back_what_a_failed_creation_left)
{
	const struct sweep s = {.name = "volumes_create and a start",
		.folder = injected_folder(),
		.min_points = 80,
		.brief = true,
		.keeps = true,
		.call = create_or_start_anew,
		.wrong_at_end = neither_made_nor_rolled_back,
		.undo = make_and_delete};

	sweep_run(&s);
}
END_TEST

static int delete(struct error **err)
{
	return volumes_delete(fx.v, made->id, err);
}

static void forget_made(void)
{
	volume_info_free(TAKE_PTR(made));
	fixture_restart();
	ck_assert_ptr_null(not_gone());
}

static void make_whole(void)
{
	const struct volume_request q = fixture_request(NAME, SIZE);
	struct error *err = NULL;

	ASSERT_OK(volumes_create(fx.v, &q, &made, &err));
}

START_TEST(a_volume_is_deleted_in_the_end)
{
	const struct sweep s = {.name = "volumes_delete",
		.folder = injected_folder(),
		.min_points = 80,
		.brief = true,
		.prepare = make_whole,
		.call = delete,
		.wrong_at_end = not_gone,
		.undo = forget_made};

	sweep_run(&s);
}
END_TEST

INJECTED_MAIN("inject_volumes", injected_set_up, a_volume_is_created_or_nothing_is_left,
	a_start_rolls_back_what_a_failed_creation_left, a_volume_is_deleted_in_the_end)
