/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of the properties that only the fake device manager has: its folder, crashes, fragmentation. */
#include <sys/stat.h>

#include "base/random.h"
#include "base/str.h"
#include "os/blockdev.h"
#include "os/file.h"
#include "os/loopdev.h"
#include "pmem/device/device.h"
#include "unit/os/scratch.h"

#define FOLDER     SCRATCH "/fake"
#define UNIT       MIB(2)
#define REGION     (10 * UNIT)
#define N_REGIONS  2
#define TEXT_BYTES 4096

static int open_with(const char *path, size_t n_regions, uint64_t region_bytes, uint64_t unit_bytes,
	struct device_manager **ret, struct error **err)
{
	const struct device_fake_config config = {
		.path = path, .n_regions = n_regions, .region_bytes = region_bytes, .unit_bytes = unit_bytes};

	return device_open_fake(&config, ret, err);
}

static struct device_manager *open_fake(const char *path)
{
	struct device_manager *m = NULL;
	struct error *err = NULL;

	ASSERT_OK(open_with(path, N_REGIONS, REGION, UNIT, &m, &err));
	return m;
}

static struct device_list *list(struct device_manager *m)
{
	struct device_list *l = NULL;
	struct error *err = NULL;

	ASSERT_OK(device_list_read(m, &l, &err));
	return l;
}

static struct device *create(struct device_manager *m, const char *id, uint64_t size_bytes)
{
	CLEANUP(device_list_freep) struct device_list *l = list(m);
	char identity[UUID_TEXT_LEN + 1];
	const struct device_spec spec = {id, l->pools[0].uuid, identity, size_bytes, false};
	struct device *d = NULL;
	struct error *err = NULL;

	uuid_generate_text(identity);
	ASSERT_OK(device_create(m, &spec, &d, &err));
	return d;
}

static void destroy(struct device_manager *m, const struct device *d)
{
	struct error *err = NULL;

	ASSERT_OK(device_destroy(m, d, /* exclusive_fd= */ -1, &err));
}

static void write_text(const char *path, const char *text)
{
	CLEANUP(fd_closep) int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
}

static void assert_refused(const char *text)
{
	struct device_manager *m = NULL;
	struct error *err = NULL;

	ASSERT_FAILS(open_with(FOLDER, N_REGIONS, REGION, UNIT, &m, &err), ERR_PRECONDITION, text);
}

START_TEST(gaps_between_devices_bound_the_largest_device)
{
	CLEANUP(device_closep) struct device_manager *m = open_fake(NULL);
	struct device *devices[5];
	char id[] = "v0";

	for (size_t i = 0; i < ARRAY_SIZE(devices); i++) {
		devices[i] = create(m, id, 2 * UNIT);
		id[1]++;
	}
	destroy(m, devices[1]);
	destroy(m, devices[3]);

	CLEANUP(device_list_freep) struct device_list *l = list(m);
	ck_assert_uint_eq(l->pools[0].capacity.available_bytes, 4 * UNIT);
	ck_assert_uint_eq(l->pools[0].capacity.max_volume_bytes, 2 * UNIT);
	ck_assert_uint_eq(l->pools[1].capacity.max_volume_bytes, REGION);

	destroy(m, devices[2]);
	CLEANUP(device_list_freep) struct device_list *merged = list(m);
	ck_assert_uint_eq(merged->pools[0].capacity.max_volume_bytes, 6 * UNIT);
	for (size_t i = 0; i < ARRAY_SIZE(devices); i++)
		device_free(devices[i]);
}
END_TEST

START_TEST(what_is_no_multiple_of_the_unit_is_not_offered)
{
	struct device_manager *m = NULL;
	struct error *err = NULL;

	ASSERT_OK(open_with(NULL, 1, REGION + UNIT - 1, UNIT, &m, &err));
	CLEANUP(device_list_freep) struct device_list *l = list(m);
	ck_assert_uint_eq(l->pools[0].capacity.total_bytes, REGION);
	ck_assert_uint_eq(l->pools[0].capacity.available_bytes, REGION);
	ck_assert_uint_eq(l->pools[0].capacity.max_volume_bytes, REGION);
	device_close(m);
}
END_TEST

START_TEST(pools_and_places_stay_when_opened_again)
{
	struct device_manager *m = open_fake(FOLDER);
	CLEANUP(device_list_freep) struct device_list *before = NULL;
	CLEANUP(device_list_freep) struct device_list *after = NULL;
	CLEANUP(device_freep) struct device *a = create(m, "a", 4 * UNIT);
	CLEANUP(device_freep) struct device *b = create(m, "b", 2 * UNIT);

	destroy(m, a);
	before = list(m);
	device_close(m);
	m = open_fake(FOLDER);
	after = list(m);
	for (size_t i = 0; i < N_REGIONS; i++) {
		ck_assert_str_eq(before->pools[i].uuid, after->pools[i].uuid);
		ck_assert_str_eq(before->pools[i].name, after->pools[i].name);
		ck_assert_uint_eq(
			before->pools[i].capacity.available_bytes, after->pools[i].capacity.available_bytes);
		ck_assert_uint_eq(before->pools[i].capacity.max_volume_bytes,
			after->pools[i].capacity.max_volume_bytes);
	}
	ck_assert_uint_eq(after->pools[0].capacity.available_bytes, 8 * UNIT);
	ck_assert_uint_eq(after->pools[0].capacity.max_volume_bytes, 4 * UNIT);
	destroy(m, b);
	device_close(m);
}
END_TEST

START_TEST(missing_parent_is_not_found)
{
	struct device_manager *m = NULL;
	struct error *err = NULL;

	ASSERT_FAILS(open_with(SCRATCH "/none/fake", 1, REGION, UNIT, &m, &err), ERR_NOT_FOUND, "none");
}
END_TEST

START_TEST(folder_of_another_shape_is_refused)
{
	struct device_manager *m = NULL;
	struct error *err = NULL;

	device_close(open_fake(FOLDER));
	ASSERT_FAILS(open_with(FOLDER, 1, REGION, UNIT, &m, &err), ERR_PRECONDITION, FOLDER);
	ASSERT_FAILS(open_with(FOLDER, N_REGIONS, 2 * REGION, UNIT, &m, &err), ERR_PRECONDITION, FOLDER);
	ASSERT_FAILS(open_with(FOLDER, N_REGIONS, REGION, 2 * UNIT, &m, &err), ERR_PRECONDITION, FOLDER);
	device_close(open_fake(FOLDER));
}
END_TEST

START_TEST(folder_of_somebody_else_is_refused_and_left_alone)
{
	ck_assert_int_eq(mkdir(FOLDER, 0755), 0);
	write_text(FOLDER "/debian.image", "precious");
	assert_refused("debian.image");
	ck_assert_int_eq(access(FOLDER "/debian.image", F_OK), 0);
	ck_assert_int_ne(access(FOLDER "/model.json", F_OK), 0);
}
END_TEST

START_TEST(folder_has_one_user_at_a_time)
{
	struct device_manager *first = open_fake(FOLDER);
	struct device_manager *second = NULL;
	struct error *err = NULL;

	ASSERT_FAILS(open_with(FOLDER, N_REGIONS, REGION, UNIT, &second, &err), ERR_UNAVAILABLE,
		"is held by process");
	device_close(first);
	device_close(open_fake(FOLDER));
}
END_TEST

/* The files are as crashes leave them: before the model was in place; after the image was made; after the
 * description was removed; while a description was written. */
START_TEST(rubbish_of_a_crash_is_cleared_away)
{
	ck_assert_int_eq(mkdir(FOLDER, 0755), 0);
	write_text(FOLDER "/.model.json.tmp", "{");

	struct device_manager *m = open_fake(FOLDER);
	CLEANUP(device_freep) struct device *d = create(m, "whole", UNIT);
	device_close(m);
	write_text(FOLDER "/half.image", "");
	write_text(FOLDER "/.half.device.tmp", "{");

	m = open_fake(FOLDER);
	CLEANUP(device_list_freep) struct device_list *l = list(m);
	ck_assert_uint_eq(l->n_devices, 1);
	ck_assert_str_eq(l->devices[0].id, "whole");
	ck_assert_int_ne(access(FOLDER "/half.image", F_OK), 0);
	ck_assert_int_ne(access(FOLDER "/.half.device.tmp", F_OK), 0);
	CLEANUP(device_freep) struct device *half = create(m, "half", UNIT);
	destroy(m, half);
	destroy(m, d);
	device_close(m);
}
END_TEST

START_TEST(damaged_descriptions_are_refused_and_left_alone)
{
	static const char *const damaged[] = {
		"",
		"{\"id\":\"other\",\"identity\":\"\",\"pool\":\"%s\",\"offset\":0,\"size\":2097152}",
		"{\"id\":\"bad\",\"identity\":\"\",\"pool\":\"none\",\"offset\":0,\"size\":2097152}",
		"{\"id\":\"bad\",\"identity\":\"\",\"pool\":\"%s\",\"offset\":1,\"size\":2097152}",
		"{\"id\":\"bad\",\"identity\":\"\",\"pool\":\"%s\",\"offset\":0,\"size\":0}",
		"{\"id\":\"bad\",\"identity\":\"\",\"pool\":\"%s\",\"offset\":20971520,\"size\":2097152}",
		"{\"id\":\"bad\",\"identity\":\"\",\"pool\":\"%s\",\"offset\":2097152,\"size\":4194304}",
		"{\"id\":\"bad\",\"pool\":\"%s\",\"offset\":0,\"size\":2097152}",
		"{\"id\":\"bad\",\"identity\":\"\",\"pool\":\"%s\",\"offset\":0,\"size\":2097152,\"x\":1}",
	};
	struct device_manager *m = open_fake(FOLDER);
	CLEANUP(device_freep) struct device *spare = create(m, "spare", 2 * UNIT);
	CLEANUP(device_freep) struct device *d = create(m, "good", UNIT);

	destroy(m, spare);
	device_close(m);
	for (size_t i = 0; i < ARRAY_SIZE(damaged); i++) {
		char text[TEXT_BYTES];
		const char *pool = strstr(damaged[i], "%s");

		snprintf(text, sizeof(text), "%.*s%s%s", pool ? (int)(pool - damaged[i]) : 0, damaged[i],
			pool ? d->pool : "", pool ? pool + 2 : damaged[i]);
		write_text(FOLDER "/bad.device", text);
		assert_refused("bad");
		ck_assert_int_eq(access(FOLDER "/bad.device", F_OK), 0);
		ck_assert_int_eq(access(FOLDER "/good.image", F_OK), 0);
	}
	ck_assert_int_eq(unlink(FOLDER "/bad.device"), 0);
	m = open_fake(FOLDER);
	destroy(m, d);
	device_close(m);
}
END_TEST

START_TEST(backing_files_are_sparse_and_go_with_their_device)
{
	CLEANUP(device_closep) struct device_manager *m = open_fake(FOLDER);
	CLEANUP(device_freep) struct device *d = create(m, "a", REGION);
	CLEANUP(free_charp) char *loop = NULL;
	struct error *err = NULL;
	struct stat st;
	int fd = open(FOLDER "/a.image", O_RDONLY | O_CLOEXEC);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(fstat(fd, &st), 0);
	ck_assert_uint_eq((uint64_t)st.st_size, REGION);
	ck_assert_int_eq(st.st_blocks, 0);
	destroy(m, d);
	ASSERT_OK(loop_find(fd, &loop, &err));
	ck_assert_ptr_null(loop);
	close(fd);
	ck_assert_int_ne(access(FOLDER "/a.image", F_OK), 0);
	ck_assert_int_ne(access(FOLDER "/a.device", F_OK), 0);
}
END_TEST

START_TEST(device_in_use_is_not_destroyed)
{
	CLEANUP(device_closep) struct device_manager *m = open_fake(FOLDER);
	CLEANUP(device_freep) struct device *d = create(m, "a", UNIT);
	struct error *err = NULL;
	int fd = -1;

	ASSERT_OK(blockdev_open_exclusive(d->path, &fd, &err));
	ASSERT_FAILS(device_destroy(m, d, /* exclusive_fd= */ -1, &err), ERR_PRECONDITION, "a");
	CLEANUP(device_list_freep) struct device_list *l = list(m);
	ck_assert_uint_eq(l->n_devices, 1);
	ck_assert(l->devices[0].active);
	ck_assert_str_eq(l->devices[0].path, d->path);
	ASSERT_OK(device_destroy(m, d, fd, &err));
}
END_TEST

START_TEST(disk_full_leaves_no_device)
{
	CLEANUP(device_closep) struct device_manager *m = open_fake(FOLDER);
	CLEANUP(device_list_freep) struct device_list *l = list(m);
	const struct device_spec spec = {"a", l->pools[0].uuid, "identity", UNIT, false};
	struct device *d = NULL;
	struct error *err = NULL;

	ck_assert_int_eq(mount("scratch", SCRATCH, NULL, MS_REMOUNT, "size=4k"), 0);
	ASSERT_FAILS(device_create(m, &spec, &d, &err), ERR_EXHAUSTED, "a");
	ck_assert_int_ne(access(FOLDER "/a.image", F_OK), 0);
	CLEANUP(device_list_freep) struct device_list *after = list(m);
	ck_assert_uint_eq(after->n_devices, 0);
	ck_assert_uint_eq(after->pools[0].capacity.available_bytes, REGION);
	ck_assert_int_eq(mount("scratch", SCRATCH, NULL, MS_REMOUNT, "size=1m"), 0);
	ASSERT_OK(device_create(m, &spec, &d, &err));
	destroy(m, d);
	device_free(d);
}
END_TEST

SCRATCH_MAIN("device_fake", gaps_between_devices_bound_the_largest_device,
	what_is_no_multiple_of_the_unit_is_not_offered, pools_and_places_stay_when_opened_again,
	missing_parent_is_not_found, folder_of_another_shape_is_refused,
	folder_of_somebody_else_is_refused_and_left_alone, folder_has_one_user_at_a_time,
	rubbish_of_a_crash_is_cleared_away, damaged_descriptions_are_refused_and_left_alone,
	backing_files_are_sparse_and_go_with_their_device, device_in_use_is_not_destroyed,
	disk_full_leaves_no_device)
