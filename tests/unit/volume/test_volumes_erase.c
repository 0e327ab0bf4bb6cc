/* SPDX-License-Identifier: Apache-2.0 */
/* A deleted volume is erased in the background, after the answer to the call: erasing is held up by limits,
 * stopped, and resumed. */
#include <errno.h>
#include <fcntl.h>
#include <semaphore.h>
#include <sys/mount.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"
#include "os/blockdev.h"
#include "unit/volume/content.h"
#include "unit/volume/fixture.h"

#define SIZE  MIB(16)
#define PIECE (64ULL << 10)

static sem_t held; /* an erasure came to where its device is destroyed */
static sem_t let_go;

static void hold(void)
{
	sem_post(&held);
	sem_wait(&let_go);
}

static void set_up(void)
{
	fixture_folder();
	sem_init(&held, 0, 0);
	sem_init(&let_go, 0, 0);
	fx.in_background = true;
	fixture_restart();
}

static void delete(const char *id)
{
	struct error *err = NULL;

	ASSERT_OK(volumes_delete(fx.v, id, &err));
}

static struct volumes_overview overview(void)
{
	struct volumes_overview o;

	volumes_overview(fx.v, &o);
	return o;
}

static uint64_t free_bytes(void)
{
	struct capacity c;

	ck_assert(volumes_capacity(fx.v, /* sync= */ true, &c));
	return c.available_bytes;
}

static void assert_all_gone(void)
{
	ck_assert_uint_eq(fixture_n_devices(), 0);
	ck_assert_uint_eq(fixture_n_files(), 0);
	ck_assert_uint_eq(free_bytes(), N_POOLS * REGION_BYTES);
}

static bool erasing_file_exists(const char *id)
{
	CLEANUP(free_charp) char *file = x_asprintf("%s.erasing", id);

	return fixture_exists(file);
}

START_TEST(deleted_volume_is_gone_for_callers_while_it_is_erased)
{
	CLEANUP(volume_info_freep) struct volume_info *info = fixture_create("pvc-1", SIZE);
	CLEANUP(volume_info_freep) struct volume_info *found = NULL;
	const struct volume_request q = fixture_request("pvc-1", SIZE);
	struct error *err = NULL;

	fx.faults.in_destroy = hold;
	delete (info->id);
	sem_wait(&held);
	ck_assert(erasing_file_exists(info->id));
	ck_assert_uint_eq(fixture_n_files(), 1);
	ck_assert_uint_eq(fixture_n_devices(), 1);
	ck_assert_uint_eq(free_bytes(), N_POOLS * REGION_BYTES - SIZE);
	ASSERT_FAILS(volumes_get(fx.v, info->id, &found, &err), ERR_NOT_FOUND, info->id);
	ASSERT_FAILS(volumes_create(fx.v, &q, &found, &err), ERR_ABORTED, "still being erased");
	delete (info->id);
	struct volumes_overview o = overview();
	ck_assert(o.n_erasing == 1 && o.erasures_running == 1 && o.n_ready == 0);
	ck_assert_uint_eq(o.to_erase_bytes, 0);
	ck_assert_uint_eq(o.erased_bytes, SIZE);
	sem_post(&let_go);
	fixture_await_erased();
	assert_all_gone();
	fx.faults.in_destroy = NULL;
	ASSERT_OK(volumes_create(fx.v, &q, &found, &err));
	ck_assert_str_eq(found->id, info->id);
}
END_TEST

START_TEST(nobody_can_mount_what_waits_to_be_erased)
{
	CLEANUP(volume_info_freep) struct volume_info *info = fixture_create("pvc-1", SIZE);
	CLEANUP(device_freep) struct device *d = fixture_device(info->id);
	struct error *err = NULL;
	int fd = -1;

	fx.faults.in_destroy = hold;
	delete (info->id);
	ASSERT_FAILS(blockdev_open_exclusive(d->path, &fd, &err), ERR_PRECONDITION, d->path);
	sem_wait(&held);
	ASSERT_FAILS(blockdev_open_exclusive(d->path, &fd, &err), ERR_PRECONDITION, d->path);
	sem_post(&let_go);
	fixture_await_erased();
}
END_TEST

START_TEST(volumes_of_others_are_served_while_as_many_as_can_are_erased)
{
	char *ids[6];
	struct volumes_overview o;

	for (size_t i = 0; i < ARRAY_SIZE(ids); i++) {
		CLEANUP(free_charp) char *name = x_asprintf("pvc-%zu", i);
		CLEANUP(volume_info_freep) struct volume_info *info = fixture_create(name, SIZE);
		ids[i] = x_strdup(info->id);
	}
	fx.faults.in_destroy = hold;
	for (size_t i = 0; i < ARRAY_SIZE(ids); i++)
		delete (ids[i]);
	for (size_t i = 0; i < 4; i++)
		sem_wait(&held);
	o = overview();
	ck_assert_uint_eq(o.n_erasing, ARRAY_SIZE(ids));
	ck_assert_uint_eq(o.erasures_running, 4);
	ck_assert_uint_eq(o.to_erase_bytes, 2 * SIZE);
	fixture_make("other", SIZE);
	ck_assert_uint_eq(overview().n_ready, 1);
	for (size_t i = 0; i < ARRAY_SIZE(ids); i++) {
		sem_post(&let_go);
		free(ids[i]);
	}
	fixture_await_erased();
	ck_assert_uint_eq(fixture_n_files(), 1);
	ck_assert_uint_eq(fixture_n_devices(), 1);
}
END_TEST

/* At one byte per second the first piece is written at once, and the second not before tomorrow. */
static void delete_slowly(const struct volume_info *info)
{
	fx.erase_bytes_per_s = 1;
	fixture_restart();
	delete (info->id);
	while (overview().erased_bytes < PIECE)
		;
}

START_TEST(limit_holds_erasing_up_and_stopping_leaves_the_rest_to_the_next_start)
{
	CLEANUP(volume_info_freep) struct volume_info *info = fixture_create("pvc-1", SIZE);
	CLEANUP(device_freep) struct device *d = fixture_device(info->id);

	content_fill(d, 'x');
	delete_slowly(info);
	ck_assert_uint_eq(overview().to_erase_bytes, SIZE - PIECE);
	volumes_stop(fx.v);
	fixture_stop();
	ck_assert_uint_eq(content_count(d, '\0'), PIECE / CONTENT_BLOCK);
	ck_assert(erasing_file_exists(info->id));

	fx.erase_bytes_per_s = 0;
	fx.faults.in_destroy = hold;
	fixture_open();
	struct error *err = NULL;
	ASSERT_OK(volumes_start(fx.v, &err));
	sem_wait(&held);
	ck_assert_uint_eq(content_count(d, '\0'), SIZE / CONTENT_BLOCK);
	sem_post(&let_go);
	fixture_await_erased();
	assert_all_gone();
}
END_TEST

START_TEST(after_a_stop_deletions_are_recorded_and_left_to_the_next_start)
{
	CLEANUP(volume_info_freep) struct volume_info *info = fixture_create("pvc-1", SIZE);

	volumes_stop(fx.v);
	delete (info->id);
	ck_assert(erasing_file_exists(info->id));
	ck_assert_uint_eq(fx.n_destroys, 0);
	fixture_restart();
	fixture_await_erased();
	assert_all_gone();
}
END_TEST

START_TEST(after_a_stop_no_new_block_volume_is_zeroed)
{
	struct volume_request q = fixture_request("pvc-1", SIZE);
	CLEANUP(volume_info_freep) struct volume_info *info = NULL;
	struct error *err = NULL;

	q.block = true;
	volumes_stop(fx.v);
	ASSERT_FAILS(volumes_create(fx.v, &q, &info, &err), ERR_UNAVAILABLE, "stopping");
	ck_assert_uint_eq(fixture_n_devices(), 0);
	ck_assert_uint_eq(fixture_n_files(), 0);
}
END_TEST

START_TEST(failed_erasing_is_tried_again_at_a_refresh)
{
	CLEANUP(volume_info_freep) struct volume_info *info = fixture_create("pvc-1", SIZE);
	struct error *err = NULL;

	fx.faults.destroy = ERR_INTERNAL;
	delete (info->id);
	while (fx.n_destroys == 0 || overview().erasures_running > 0)
		;
	ck_assert(erasing_file_exists(info->id));
	ck_assert_uint_eq(overview().n_erasing, 1);
	fx.faults.destroy = 0;
	ASSERT_OK(volumes_refresh(fx.v, &err));
	fixture_await_erased();
	ck_assert_uint_eq(overview().erased_bytes, SIZE);
	assert_all_gone();
}
END_TEST

START_TEST(failed_erasing_is_tried_again_when_the_volume_is_deleted_again)
{
	CLEANUP(volume_info_freep) struct volume_info *info = fixture_create("pvc-1", SIZE);

	fx.faults.destroy = ERR_INTERNAL;
	delete (info->id);
	while (fx.n_destroys == 0 || overview().erasures_running > 0)
		;
	fx.faults.destroy = 0;
	delete (info->id);
	fixture_await_erased();
	assert_all_gone();
}
END_TEST

/* Its pool was away for a while; whoever has the device then keeps it. */
START_TEST(device_that_is_in_use_when_erasing_goes_on_is_not_touched)
{
	CLEANUP(volume_info_freep) struct volume_info *info = fixture_create("pvc-1", SIZE);
	CLEANUP(device_freep) struct device *d = fixture_device(info->id);
	struct error *err = NULL;
	int fd = -1;

	volumes_stop(fx.v);
	delete (info->id);
	fixture_stop();
	content_fill(d, 'x');
	ASSERT_OK(blockdev_open_exclusive(d->path, &fd, &err));
	fx.in_background = false;
	fixture_restart();
	ASSERT_FAILS(volumes_delete(fx.v, info->id, &err), ERR_UNAVAILABLE, "in use");
	ck_assert_uint_eq(content_count(d, 'x'), SIZE / CONTENT_BLOCK);
	ck_assert(erasing_file_exists(info->id));
	close(fd);
	ASSERT_OK(volumes_refresh(fx.v, &err));
	assert_all_gone();
}
END_TEST

/* A volume whose erasure was recorded up to 4 MiB and did not go on. It is full. */
static struct device *leave_in_progress(bool raw)
{
	CLEANUP(volume_info_freep) struct volume_info *info = fixture_create("pvc-1", SIZE);
	CLEANUP(free_charp) char *file = x_asprintf("%s.erasing", info->id);
	CLEANUP(volume_record_freep) struct volume_record *r = NULL;
	CLEANUP(buf_done) struct buf text = BUF_INIT(65536);
	struct device *d = fixture_device(info->id);
	struct error *err = NULL;

	volumes_stop(fx.v);
	delete (info->id);
	fixture_stop();
	content_fill(d, 'x');
	CLEANUP(free_charp) char *old = fixture_read(file);
	ASSERT_OK(state_parse(span_of(old), &r, &err));
	r->erased_bytes = MIB(4);
	r->erased_raw = raw;
	ASSERT_OK(state_format(r, &text, &err));
	fixture_write(file, buf_str(&text));
	return d;
}

static void assert_resumed(bool raw)
{
	CLEANUP(device_freep) struct device *d = leave_in_progress(raw);

	fx.faults.in_destroy = hold;
	fx.faults.raw = raw;
	fixture_restart();
	sem_wait(&held);
	ck_assert_uint_eq(content_count(d, 'x'), MIB(4) / CONTENT_BLOCK);
	ck_assert_uint_eq(content_count(d, '\0'), (SIZE - MIB(4)) / CONTENT_BLOCK);
	ck_assert_uint_eq(overview().erased_bytes, SIZE - MIB(4));
	sem_post(&let_go);
	fixture_await_erased();
	assert_all_gone();
}

START_TEST(record_of_progress_spares_what_is_erased_already)
{
	assert_resumed(/* raw= */ false);
}
END_TEST

START_TEST(record_of_progress_counts_without_the_mode_in_which_it_was_made)
{
	assert_resumed(/* raw= */ true);
}
END_TEST

/* A block translation table has its sectors anywhere. */
START_TEST(record_of_progress_says_nothing_of_a_namespace_that_lost_its_mode)
{
	CLEANUP(device_freep) struct device *d = leave_in_progress(/* raw= */ false);

	fx.faults.in_destroy = hold;
	fx.faults.raw = true;
	fixture_restart();
	sem_wait(&held);
	ck_assert_uint_eq(content_count(d, '\0'), SIZE / CONTENT_BLOCK);
	sem_post(&let_go);
	fixture_await_erased();
	assert_all_gone();
}
END_TEST

static void fill_disk(const char *folder)
{
	CLEANUP(free_charp) char *path = x_asprintf("%s/filler", folder);
	CLEANUP(fd_closep) int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	char block[CONTENT_BLOCK] = {0};

	while (write(fd, block, sizeof(block)) > 0)
		;
	ck_assert_int_eq(errno, ENOSPC);
}

START_TEST(progress_is_recorded_once_per_gib)
{
	CLEANUP(volume_info_freep) struct volume_info *info = fixture_create("pvc-1", MIB(2500));
	CLEANUP(free_charp) char *file = x_asprintf("%s.erasing", info->id);
	CLEANUP(volume_record_freep) struct volume_record *r = NULL;
	struct error *err = NULL;

	fx.faults.in_destroy = hold;
	delete (info->id);
	sem_wait(&held);
	CLEANUP(free_charp) char *text = fixture_read(file);
	ASSERT_OK(state_parse(span_of(text), &r, &err));
	ck_assert_uint_eq(r->erased_bytes, MIB(2048));
	ck_assert_str_eq(strmap_get(&r->parameters, "name"), "pvc-1");
	sem_post(&let_go);
	fixture_await_erased();
	assert_all_gone();
}
END_TEST

/* As a state folder on a disk that filled up. */
START_TEST(progress_that_cannot_be_recorded_holds_nothing_up)
{
	CLEANUP(free_charp) char *state = fixture_path("state");
	CLEANUP(volume_info_freep) struct volume_info *info = NULL;
	struct error *err = NULL;

	fixture_stop();
	ck_assert_int_eq(mount("none", state, "tmpfs", 0, "size=16k"), 0);
	fixture_open();
	ASSERT_OK(volumes_start(fx.v, &err));
	info = fixture_create("pvc-1", MIB(1500));
	CLEANUP(free_charp) char *file = x_asprintf("%s.erasing", info->id);
	fill_disk(state);
	fx.faults.in_destroy = hold;
	delete (info->id);
	sem_wait(&held);
	CLEANUP(free_charp) char *text = fixture_read(file);
	ck_assert_ptr_null(strstr(text, "erasedBytes"));
	sem_post(&let_go);
	fixture_await_erased();
	ck_assert(!erasing_file_exists(info->id));
	ck_assert_uint_eq(fixture_n_devices(), 0);
	fixture_stop();
	ck_assert_int_eq(umount(state), 0);
	fixture_open();
}
END_TEST

START_TEST(deletion_goes_on_when_the_pool_comes_back)
{
	CLEANUP(volume_info_freep) struct volume_info *info = fixture_create("pvc-1", SIZE);
	CLEANUP(device_freep) struct device *d = fixture_device(info->id);
	struct error *err = NULL;

	volumes_stop(fx.v);
	delete (info->id);
	fx.faults.absent_pool = d->pool;
	fixture_restart();
	delete (info->id);
	while (overview().erasures_running > 0)
		;
	ck_assert(erasing_file_exists(info->id));
	ck_assert_uint_eq(fx.n_destroys, 0);
	fx.faults.absent_pool = NULL;
	ASSERT_OK(volumes_refresh(fx.v, &err));
	fixture_await_erased();
	assert_all_gone();
}
END_TEST

START_TEST(record_of_progress_beyond_the_end_is_no_reason_to_fail)
{
	CLEANUP(volume_info_freep) struct volume_info *info = fixture_create("pvc-1", SIZE);
	CLEANUP(free_charp) char *file = x_asprintf("%s.erasing", info->id);

	volumes_stop(fx.v);
	delete (info->id);
	fixture_stop();
	CLEANUP(free_charp) char *old = fixture_read(file);
	CLEANUP(free_charp) char *text = x_asprintf("{\"erasedBytes\":%llu,%s", 1ULL << 60, old + 1);
	fixture_write(file, text);
	fixture_restart();
	fixture_await_erased();
	assert_all_gone();
}
END_TEST

START_TEST(without_eraseafter_nothing_is_left_to_erase)
{
	CLEANUP(strmap_done) struct strmap parameters = {0};
	struct volume_request q = fixture_request("pvc-1", SIZE);
	CLEANUP(volume_info_freep) struct volume_info *info = NULL;
	struct error *err = NULL;

	strmap_set(&parameters, "eraseafter", "false");
	q.parameters = &parameters;
	ASSERT_OK(volumes_create(fx.v, &q, &info, &err));
	volumes_stop(fx.v);
	delete (info->id);
	ck_assert_uint_eq(overview().n_erasing, 1);
	ck_assert_uint_eq(overview().to_erase_bytes, 0);
}
END_TEST

FIXTURE_MAIN("volumes_erase", set_up, deleted_volume_is_gone_for_callers_while_it_is_erased,
	nobody_can_mount_what_waits_to_be_erased,
	volumes_of_others_are_served_while_as_many_as_can_are_erased,
	limit_holds_erasing_up_and_stopping_leaves_the_rest_to_the_next_start,
	after_a_stop_deletions_are_recorded_and_left_to_the_next_start,
	after_a_stop_no_new_block_volume_is_zeroed, failed_erasing_is_tried_again_at_a_refresh,
	failed_erasing_is_tried_again_when_the_volume_is_deleted_again,
	device_that_is_in_use_when_erasing_goes_on_is_not_touched,
	record_of_progress_spares_what_is_erased_already,
	record_of_progress_counts_without_the_mode_in_which_it_was_made,
	record_of_progress_says_nothing_of_a_namespace_that_lost_its_mode, progress_is_recorded_once_per_gib,
	progress_that_cannot_be_recorded_holds_nothing_up, deletion_goes_on_when_the_pool_comes_back,
	record_of_progress_beyond_the_end_is_no_reason_to_fail, without_eraseafter_nothing_is_left_to_erase)
