/* SPDX-License-Identifier: Apache-2.0 */
/* Start and refresh, with the n-th call below them failing: what a crash has left behind is cleaned up in the
 * end. */
#include <stdio.h>

#include "base/mem.h"
#include "base/str.h"
#include "unit/inject/ops.h"
#include "unit/volume/injected.h"

#define SIZE MIB(8)

enum { WHOLE, HALF_MADE, DYING, N_VOLUMES };

static const char *const names[] = {[WHOLE] = "whole", [HALF_MADE] = "partly-created", [DYING] = "dying"};
static const char *const suffixes[] = {[WHOLE] = "json", [HALF_MADE] = "creating", [DYING] = "erasing"};

static char *ids[N_VOLUMES];
static char *pool;

static void make(int which)
{
	CLEANUP(strmap_done) struct strmap parameters = {0};
	struct volume_request q = fixture_request(names[which], SIZE);
	CLEANUP(volume_info_freep) struct volume_info *info = NULL;
	struct error *err = NULL;

	strmap_set(&parameters, "eraseafter", "false");
	q.parameters = &parameters;
	ASSERT_OK(volumes_create(fx.v, &q, &info, &err));
	ids[which] = x_strdup(info->id);
}

static void rename_state(const char *id, const char *suffix)
{
	CLEANUP(free_charp) char *from = x_asprintf("%s/state/%s.json", injected_folder(), id);
	CLEANUP(free_charp) char *to = x_asprintf("%s/state/%s.%s", injected_folder(), id, suffix);

	ck_assert_int_eq(rename(from, to), 0);
}

/* As after a crash in the middle of a creation and of a deletion. */
static void crash(void)
{
	CLEANUP(device_freep) struct device *d = NULL;

	for (int i = 0; i < N_VOLUMES; i++)
		make(i);
	d = fixture_device(ids[HALF_MADE]);
	pool = x_strdup(d->pool);
	fixture_stop();
	for (int i = 0; i < N_VOLUMES; i++)
		rename_state(ids[i], suffixes[i]);
	fixture_open();
}

static int start(struct error **err)
{
	return volumes_start(fx.v, err);
}

static bool is_known(const char *id)
{
	CLEANUP(volume_info_freep) struct volume_info *info = NULL;
	CLEANUP(error_freep) struct error *err = NULL;

	return volumes_get(fx.v, id, &info, &err) == 0;
}

static const char *not_settled(void)
{
	RIGHT_IF(fixture_n_devices() == 1 && fixture_n_files() == 1);
	RIGHT_IF(is_known(ids[WHOLE]));
	return NULL;
}

static bool has_file(int which)
{
	CLEANUP(free_charp) char *name = x_asprintf("%s.%s", ids[which], suffixes[which]);

	return fixture_exists(name);
}

/* Calls for a volume whose file could not be read are refused until the next start. */
static const char *not_called_damaged(int which)
{
	CLEANUP(error_freep) struct error *err = NULL;

	RIGHT_IF(volumes_delete(fx.v, ids[which], &err) < 0);
	RIGHT_IF(strstr(err->msg, "damaged"));
	return NULL;
}

/* A volume that could not be cleaned up at the start is cleaned up by the next refresh; a volume whose file
 * could not be read, by the next start. */
static const char *not_settled_later(void)
{
	CLEANUP(error_freep) struct error *err = NULL;
	const char *wrong = NULL;

	RIGHT_IF(volumes_refresh(fx.v, &err) == 0);
	if (!not_settled())
		return NULL;
	for (int i = 0; i < N_VOLUMES && !wrong; i++) {
		if (has_file(i) && !is_known(ids[i]))
			wrong = not_called_damaged(i);
	}
	if (wrong)
		return wrong;
	fixture_restart();
	return not_settled();
}

static void tidy_up(void)
{
	struct error *err = NULL;

	ASSERT_OK(volumes_delete(fx.v, ids[WHOLE], &err));
	for (int i = 0; i < N_VOLUMES; i++)
		free(TAKE_PTR(ids[i]));
	free(TAKE_PTR(pool));
	ck_assert_uint_eq(fixture_n_devices(), 0);
	ck_assert_uint_eq(fixture_n_files(), 0);
}

START_TEST(a_start_settles_what_a_crash_left)
{
	const struct sweep s = {.name = "volumes_start",
		.folder = injected_folder(),
		.min_points = 150,
		.brief = true,
		.keeps = true,
		.prepare = crash,
		.call = start,
		.wrong_at_end = not_settled_later,
		.undo = tidy_up};

	sweep_run(&s);
}
END_TEST

/* The pool of the unfinished volumes comes only after the start. */
static void crash_and_start(void)
{
	struct error *err = NULL;

	crash();
	fx.faults.absent_pool = pool;
	ASSERT_OK(start(&err));
	fx.faults.absent_pool = NULL;
	ck_assert_uint_eq(fixture_n_files(), N_VOLUMES);
}

/* Devices without nodes: what is below them is known from the start. */
static void set_up_memory(void)
{
	fixture_done();
	fixture_memory();
	ops_wrap_devices(&fx.devices);
}

static int refresh(struct error **err)
{
	return volumes_refresh(fx.v, err);
}

START_TEST(a_refresh_settles_what_waited_for_its_pool)
{
	const struct sweep s = {.name = "volumes_refresh",
		.folder = injected_folder(),
		.min_points = 10,
		.prepare = crash_and_start,
		.call = refresh,
		.wrong_at_end = not_settled_later,
		.undo = tidy_up};

	set_up_memory();
	sweep_run(&s);
}
END_TEST

INJECTED_MAIN("inject_start", injected_set_up, a_start_settles_what_a_crash_left,
	a_refresh_settles_what_waited_for_its_pool)
