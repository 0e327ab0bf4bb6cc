/* SPDX-License-Identifier: Apache-2.0 */
/* Publishing and unpublishing, with the n-th call below them failing. */
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/str.h"
#include "unit/inject/ops.h"
#include "unit/volume/injected.h"
#include "unit/volume/mounts.h"

#define SIZE MIB(8)

static void set_up(void)
{
	struct error *err = NULL;

	injected_enter();
	mounts_set_up(SIZE);
	ops_wrap_devices(&fx.devices);

	const struct use_request q = mounts_stage_request("ext4");
	ASSERT_OK(volumes_stage(fx.v, &q, &err));
}

static int publish(struct error **err)
{
	struct use_request q = mounts_publish_request(mt.target, ACCESS_SINGLE_NODE_SINGLE_WRITER);

	q.readonly = true;
	return volumes_publish(fx.v, &q, err);
}

static int unpublish(struct error **err)
{
	return volumes_unpublish(fx.v, mt.volume->id, mt.target, err);
}

static const char *not_published(void)
{
	RIGHT_IF(mounts_count(mt.target) == 1);
	RIGHT_IF(mount_entry_has(mounts_top(mt.target), "ro"));
	RIGHT_IF(mounts_has_target(mt.target));
	return NULL;
}

/* A target that nothing is mounted on may be recorded for ever, but is none. */
static const char *half_published(void)
{
	RIGHT_IF(mounts_count(mt.target) == 0);
	RIGHT_IF(access(mt.target, F_OK) < 0);
	return NULL;
}

static void must_publish(void)
{
	struct error *err = NULL;

	ASSERT_OK(publish(&err));
}

static void must_unpublish(void)
{
	struct error *err = NULL;

	ASSERT_OK(unpublish(&err));
}

START_TEST(a_volume_is_published_or_nothing_is_left)
{
	const struct sweep s = {.name = "volumes_publish",
		.folder = injected_folder(),
		.min_points = 100,
		.once = true, /* what is mounted cannot be unmounted then, either */
		.call = publish,
		.wrong_after_failure = half_published,
		.wrong_at_end = not_published,
		.undo = must_unpublish};
	const struct sweep again = {.name = "volumes_publish, published",
		.folder = injected_folder(),
		.min_points = 20,
		.prepare = must_publish,
		.call = publish,
		.wrong_at_end = not_published,
		.undo = must_unpublish};

	sweep_run(&s);
	sweep_run(&again);
}
END_TEST

static int unpublish_unknown(struct error **err)
{
	return volumes_unpublish(fx.v, "unknown", mt.other, err);
}

static void make_other(void)
{
	ck_assert_int_eq(mkdir(mt.other, 0755), 0);
}

static const char *other_left(void)
{
	RIGHT_IF(access(mt.other, F_OK) < 0);
	return NULL;
}

START_TEST(a_volume_is_unpublished_in_the_end)
{
	const struct sweep s = {.name = "volumes_unpublish",
		.folder = injected_folder(),
		.min_points = 50,
		.prepare = must_publish,
		.once = true, /* a record that cannot be written is no failure, and leaves its temporary */
		.call = unpublish,
		.wrong_at_end = half_published};
	const struct sweep unknown = {.name = "volumes_unpublish, unknown",
		.folder = injected_folder(),
		.min_points = 20,
		.prepare = make_other,
		.call = unpublish_unknown,
		.wrong_at_end = other_left};

	sweep_run(&s);
	sweep_run(&unknown);
}
END_TEST

INJECTED_MAIN("inject_publish", set_up, a_volume_is_published_or_nothing_is_left,
	a_volume_is_unpublished_in_the_end)
