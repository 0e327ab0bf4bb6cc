/* SPDX-License-Identifier: Apache-2.0 */
/* ControllerExpandVolume: what the record says and when, and what is made of failures and crashes. */
#include <fcntl.h>
#include <limits.h>
#include <linux/loop.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"
#include "os/file.h"
#include "unit/volume/mounts.h"

#define OLD MIB(16)
#define NEW MIB(40)

static struct volume_info *volume;
static struct error *err;

static void make(void)
{
	volume = fixture_create("pvc-1", OLD);
}

static int expand_to(uint64_t required_bytes, uint64_t *ret_bytes)
{
	const struct expand_request q = {.handle = volume->id, .required_bytes = required_bytes};
	struct expand_result result = {0};

	if (volumes_expand(fx.v, &q, &result, &err) < 0)
		return -1;
	*ret_bytes = result.size_bytes;
	return 0;
}

static void expand(uint64_t required_bytes)
{
	uint64_t bytes;

	ASSERT_OK(expand_to(required_bytes, &bytes));
	ck_assert_uint_eq(bytes, required_bytes);
}

static struct volume_record *read_record(void)
{
	CLEANUP(free_charp) char *file = x_asprintf("%s.json", volume->id);
	CLEANUP(free_charp) char *text = fixture_read(file);
	struct volume_record *r = NULL;

	ASSERT_OK(state_parse(span_of(text), &r, &err));
	return r;
}

/* Compares the sizes of the volume in its state file, of its device, and in the list of volumes. */
static void assert_sizes(uint64_t recorded, uint64_t resizing, uint64_t device_bytes)
{
	CLEANUP(volume_record_freep) struct volume_record *r = read_record();
	CLEANUP(device_freep) struct device *d = fixture_device(volume->id);
	CLEANUP(volume_info_freep) struct volume_info *info = NULL;

	ck_assert_uint_eq(r->size_bytes, recorded);
	ck_assert_uint_eq(r->resizing_bytes, resizing);
	ck_assert_uint_eq(d->size_bytes, device_bytes);
	ASSERT_OK(volumes_get(fx.v, volume->id, &info, &err));
	ck_assert_uint_eq(info->size_bytes, recorded);
}

static uint64_t available(void)
{
	struct capacity c;

	ck_assert(volumes_capacity(fx.v, /* sync= */ true, &c));
	return c.available_bytes;
}

static unsigned n_looked;

static void look_at_record(void)
{
	CLEANUP(volume_record_freep) struct volume_record *r = read_record();

	ck_assert_uint_eq(r->resizing_bytes, NEW);
	ck_assert_uint_eq(r->size_bytes, OLD);
	n_looked++;
}

START_TEST(record_says_so_before_the_device_grows)
{
	make();
	uint64_t before = available();
	fx.faults.in_grow = look_at_record;
	expand(NEW);
	ck_assert_uint_eq(n_looked, 1);
	assert_sizes(NEW, 0, NEW);
	ck_assert_uint_eq(available(), before - (NEW - OLD));
	expand(NEW);
	ck_assert_uint_eq(n_looked, 1);
}
END_TEST

START_TEST(failed_growth_leaves_the_old_size)
{
	uint64_t bytes;

	make();
	uint64_t before = available();
	fx.faults.grow = ERR_INTERNAL;
	ASSERT_FAILS(expand_to(NEW, &bytes), ERR_INTERNAL, "injected");
	assert_sizes(OLD, 0, OLD);
	ck_assert_uint_eq(available(), before);
	fx.faults.grow = 0;
	expand(NEW);
	assert_sizes(NEW, 0, NEW);
}
END_TEST

START_TEST(failure_after_the_growth_is_success)
{
	make();
	fx.faults.grow = ERR_UNAVAILABLE;
	fx.faults.after = true;
	expand(NEW);
	assert_sizes(NEW, 0, NEW);
}
END_TEST

static void no_listing_from_now_on(void)
{
	fx.faults.list = ERR_UNAVAILABLE;
}

START_TEST(outcome_that_is_not_known_is_found_out_by_the_retry)
{
	for (unsigned after = 0; after < 2; after++) {
		uint64_t bytes;

		fx.faults = (struct faults){
			.grow = ERR_DEADLINE, .after = after, .in_grow = no_listing_from_now_on};
		volume_info_free(volume);
		volume = fixture_create(after ? "pvc-1" : "pvc-2", OLD);
		ASSERT_FAILS(expand_to(NEW, &bytes), ERR_DEADLINE, "injected");
		assert_sizes(OLD, NEW, after ? NEW : OLD);
		ASSERT_FAILS(expand_to(NEW, &bytes), ERR_UNAVAILABLE, volume->id);
		fx.faults = (struct faults){0};
		expand(NEW);
		assert_sizes(NEW, 0, NEW);
	}
}
END_TEST

START_TEST(growth_that_a_crash_ended_is_settled_at_the_start)
{
	for (unsigned grown = 0; grown < 2; grown++) {
		uint64_t bytes;

		fx.faults = (struct faults){
			.grow = ERR_DEADLINE, .after = grown, .in_grow = no_listing_from_now_on};
		volume_info_free(volume);
		volume = fixture_create(grown ? "pvc-1" : "pvc-2", OLD);
		ASSERT_FAILS(expand_to(NEW, &bytes), ERR_DEADLINE, "injected");
		fx.faults = (struct faults){0};
		fixture_restart();
		assert_sizes(grown ? NEW : OLD, 0, grown ? NEW : OLD);
	}
}
END_TEST

START_TEST(device_that_another_program_has_extended_is_recorded)
{
	CLEANUP(device_freep) struct device *grown = NULL;

	make();
	CLEANUP(device_freep) struct device *d = fixture_device(volume->id);
	const struct device_growth growth = {.device = d, .size_bytes = NEW};
	ASSERT_OK(device_grow(fx.fake, &growth, &grown, &err));
	ASSERT_OK(volumes_refresh(fx.v, &err));
	assert_sizes(NEW, 0, NEW);
}
END_TEST

START_TEST(volume_does_not_grow_while_its_pool_is_incomplete)
{
	uint64_t bytes;

	make();
	CLEANUP(device_freep) struct device *d = fixture_device(volume->id);
	fx.faults.absent_pool = d->pool;
	ASSERT_OK(volumes_refresh(fx.v, &err));
	ASSERT_FAILS(expand_to(NEW, &bytes), ERR_UNAVAILABLE, volume->id);
	fx.faults.absent_pool = NULL;
	assert_sizes(OLD, 0, OLD);
	expand(NEW);
}
END_TEST

START_TEST(deleted_volume_does_not_grow)
{
	uint64_t bytes;

	make();
	ASSERT_OK(volumes_delete(fx.v, volume->id, &err));
	ASSERT_FAILS(expand_to(NEW, &bytes), ERR_NOT_FOUND, volume->id);
}
END_TEST

START_TEST(deletion_settles_a_growth_first)
{
	uint64_t bytes;

	fx.faults = (struct faults){.grow = ERR_DEADLINE, .after = true, .in_grow = no_listing_from_now_on};
	make();
	ASSERT_FAILS(expand_to(NEW, &bytes), ERR_DEADLINE, "injected");
	ASSERT_FAILS(volumes_delete(fx.v, volume->id, &err), ERR_UNAVAILABLE, volume->id);
	assert_sizes(OLD, NEW, NEW);
	fx.faults = (struct faults){0};
	ASSERT_OK(volumes_delete(fx.v, volume->id, &err));
	fixture_await_erased();
	ck_assert_uint_eq(fixture_n_devices(), 0);
	ck_assert_uint_eq(fixture_n_files(), 0);
}
END_TEST

#define END_BYTES 4096

static void fill_end(const char *path)
{
	CLEANUP(fd_closep) int fd = open(path, O_WRONLY | O_CLOEXEC);
	char end[END_BYTES];

	memset(end, 0xab, sizeof(end));
	ck_assert_int_eq(pwrite(fd, end, sizeof(end), (off_t)(NEW - sizeof(end))), sizeof(end));
	ck_assert_int_eq(fsync(fd), 0);
}

static unsigned char last_byte(const char *path)
{
	CLEANUP(fd_closep) int fd = open(path, O_RDONLY | O_CLOEXEC);
	unsigned char byte = 1;

	ck_assert_int_eq(pread(fd, &byte, 1, (off_t)(NEW - 1)), 1);
	return byte;
}

/* A growth whose outcome is not known yet, with the last owner's data at the new end. */
static struct device *grown_unknown(void)
{
	uint64_t bytes;

	fx.faults = (struct faults){.grow = ERR_DEADLINE, .after = true, .in_grow = no_listing_from_now_on};
	make();
	ASSERT_FAILS(expand_to(NEW, &bytes), ERR_DEADLINE, "injected");
	fx.faults = (struct faults){0};
	struct device *d = fixture_device(volume->id);
	fill_end(d->path);
	return d;
}

START_TEST(signatures_at_the_new_end_are_cleared)
{
	CLEANUP(device_freep) struct device *d = grown_unknown();

	expand(NEW);
	ck_assert_uint_eq(last_byte(d->path), 0);
}
END_TEST

static unsigned n_listings;

/* From the second listing on, the kernel has given the name of the device to another one. */
static void move_devices(void)
{
	if (++n_listings > 1)
		fx.faults.moved_path = "/dev/null";
}

START_TEST(end_of_a_device_that_is_another_one_by_now_is_not_written)
{
	CLEANUP(device_freep) struct device *d = grown_unknown();

	fx.faults.in_list = move_devices;
	expand(NEW);
	ck_assert_uint_eq(n_listings, 2);
	ck_assert_uint_eq(last_byte(d->path), 0xab);
	fx.faults = (struct faults){0};
	assert_sizes(NEW, 0, NEW);
}
END_TEST

static char *device_path;

static void look_at_end(void)
{
	ck_assert_uint_eq(last_byte(device_path), 0);
	n_looked++;
}

/* Without a change of what the devices are listed as. */
static void make_larger(const char *loop, uint64_t size_bytes)
{
	CLEANUP(free_charp)
	char *attribute = x_asprintf("/sys/block/%s/loop/backing_file", strrchr(loop, '/') + 1);
	CLEANUP(buf_done) struct buf file = BUF_INIT(PATH_MAX);
	CLEANUP(fd_closep) int fd = open(loop, O_RDWR | O_CLOEXEC);

	ASSERT_OK(file_read(AT_FDCWD, attribute, &file, &err));
	ck_assert_uint_gt(file.len, 0);
	file.data[file.len - 1] = '\0';
	ck_assert_int_eq(truncate((const char *)file.data, (off_t)size_bytes), 0);
	ck_assert_int_eq(ioctl(fd, LOOP_SET_CAPACITY), 0);
}

START_TEST(all_that_a_device_has_is_erased_whatever_it_is_listed_with)
{
	make();
	CLEANUP(device_freep) struct device *d = fixture_device(volume->id);
	device_path = d->path;
	make_larger(d->path, NEW);
	fill_end(d->path);
	fx.faults.in_destroy = look_at_end;
	ASSERT_OK(volumes_delete(fx.v, volume->id, &err));
	fixture_await_erased();
	ck_assert_uint_eq(n_looked, 1);
}
END_TEST

static void set_up_mounted(void)
{
	mounts_set_up(MIB(300));
}

/* @bytes: what is left of the device; 0: all of it */
static void limit_device(const char *loop, uint64_t bytes)
{
	CLEANUP(fd_closep) int fd = open(loop, O_RDWR | O_CLOEXEC);
	struct loop_info64 info;

	ck_assert_int_eq(ioctl(fd, LOOP_GET_STATUS64, &info), 0);
	info.lo_sizelimit = bytes;
	ck_assert_int_eq(ioctl(fd, LOOP_SET_STATUS64, &info), 0);
}

/* As after an lvextend that was cut off before the kernel had the new size. */
START_TEST(file_system_waits_for_the_kernels_new_size)
{
	const struct use_request stage = mounts_stage_request("xfs");
	const struct node_expand_request node = {.handle = mt.volume->id, .path = mt.staging};
	uint64_t bytes;

	volume = mt.volume;
	ASSERT_OK(volumes_stage(fx.v, &stage, &err));
	expand(MIB(400));
	limit_device(mt.device->path, MIB(350));
	ASSERT_FAILS(volumes_node_expand(fx.v, &node, &bytes, &err), ERR_UNAVAILABLE, "the kernel has");
	limit_device(mt.device->path, 0);
	ASSERT_OK(volumes_node_expand(fx.v, &node, &bytes, &err));
	ck_assert_uint_eq(bytes, MIB(400));
	ASSERT_OK(volumes_unstage(fx.v, mt.volume->id, mt.staging, &err));
}
END_TEST

int main(void)
{
	const TTest *const in_memory[] = {record_says_so_before_the_device_grows,
		failed_growth_leaves_the_old_size, failure_after_the_growth_is_success,
		outcome_that_is_not_known_is_found_out_by_the_retry,
		growth_that_a_crash_ended_is_settled_at_the_start,
		device_that_another_program_has_extended_is_recorded,
		volume_does_not_grow_while_its_pool_is_incomplete, deleted_volume_does_not_grow,
		deletion_settles_a_growth_first};
	const TTest *const on_disk[] = {signatures_at_the_new_end_are_cleared,
		end_of_a_device_that_is_another_one_by_now_is_not_written,
		all_that_a_device_has_is_erased_whatever_it_is_listed_with};
	TCase *tcase = fixture_case("volume/volumes_expand", fixture_memory);

	if (!tcase)
		return SKIP_STATUS;
	for (size_t i = 0; i < ARRAY_SIZE(in_memory); i++)
		tcase_add_test(tcase, in_memory[i]);
	tcase = fixture_more_cases("volume/volumes_expand, disk", fixture_folder);
	for (size_t i = 0; i < ARRAY_SIZE(on_disk); i++)
		tcase_add_test(tcase, on_disk[i]);
	tcase = fixture_more_cases("volume/volumes_expand, mounted", set_up_mounted);
	tcase_add_test(tcase, file_system_waits_for_the_kernels_new_size);
	return fixture_finish();
}
