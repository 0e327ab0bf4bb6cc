/* SPDX-License-Identifier: Apache-2.0 */
/* The part of the contract that is about devices that grow. */
#include "contract/device_contract_private.h"

#include <check.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/random.h"
#include "os/blockdev.h"
#include "pmem/zero_range.h"
#include "unit/unit.h"

#define CHUNK_BYTES (1U << 20)

/* The calls of device_growth.zero, which this test counts and checks. */
struct zeroing {
	unsigned calls;
	uint64_t bytes;
	const char *grown;    /* path of the device that grows */
	enum err_code refuse; /* 0: zero it */
};

static int zero(void *user, const char *path, uint64_t size_bytes, struct error **err)
{
	struct zeroing *z = user;
	CLEANUP(fd_closep) int fd = -1;

	z->calls++;
	z->bytes = size_bytes;
	ck_assert_str_ne(path, z->grown);
	if (blockdev_open_exclusive(path, &fd, err) < 0)
		return -1;
	if (z->refuse)
		return err_set(err, z->refuse, "not zeroed");
	return zero_range(fd, 0, size_bytes, err);
}

static int try_grow(const struct device *d, uint64_t size_bytes, struct zeroing *z, struct device **ret,
	struct error **err)
{
	const struct device_growth growth = {
		.device = d, .size_bytes = size_bytes, .zero = z ? zero : NULL, .user = z};

	return device_grow(manager, &growth, ret, err);
}

/* Replaces @d. */
static void grow(struct device **d, uint64_t size_bytes, struct zeroing *z)
{
	struct device *grown = NULL;
	struct error *err = NULL;

	ASSERT_OK(try_grow(*d, size_bytes, z, &grown, &err));
	ck_assert_uint_eq(grown->size_bytes, size_bytes);
	ck_assert_str_eq(grown->identity, (*d)->identity);
	device_free(*d);
	*d = grown;
}

static uint64_t unit(void)
{
	return pools[0].rules.unit_bytes;
}

static uint64_t free_now(void)
{
	return pool_now(pools[0].uuid).capacity.available_bytes;
}

START_TEST(grown_device_is_listed_and_takes_what_it_gained)
{
	CLEANUP(device_freep) struct device *d = create("one", pools[0].uuid, 1);
	CLEANUP(device_freep) struct device *other = create("other", pools[0].uuid, 1);

	ck_assert_uint_eq(device_fit_growth(&pools[0], d->size_bytes, 1), d->size_bytes);
	ck_assert_uint_eq(device_fit_growth(&pools[0], unit(), unit() + 1), 2 * unit());
	grow(&d, 3 * unit(), NULL);
	assert_listed((struct device *[]){d, other}, 2);
	ck_assert_uint_eq(free_now(), pools[0].capacity.available_bytes - 4 * unit());
	destroy(other);
	grow(&d, 4 * unit(), NULL);
	assert_listed(&d, 1);
	ck_assert_uint_eq(taken_by(d), 4 * unit());
	destroy(d);
	ck_assert_uint_eq(free_now(), pools[0].capacity.available_bytes);
}
END_TEST

START_TEST(growing_again_to_the_same_size_is_success)
{
	CLEANUP(device_freep) struct device *d = create("one", pools[0].uuid, 1);
	CLEANUP(device_freep) struct device *as_before = device_dup(d);
	CLEANUP(device_freep) struct device *again = NULL;
	struct zeroing z = {.grown = d->path};
	struct error *err = NULL;

	grow(&d, 2 * unit(), NULL);
	ASSERT_OK(try_grow(as_before, 2 * unit(), &z, &again, &err));
	ck_assert_uint_eq(again->size_bytes, 2 * unit());
	ck_assert_uint_eq(z.calls, 0);
	assert_listed(&d, 1);
}
END_TEST

START_TEST(device_grows_by_the_reported_maximum_and_no_more)
{
	CLEANUP(device_freep) struct device *d = create("one", pools[0].uuid, 1);
	CLEANUP(error_freep) struct error *err = NULL;
	uint64_t largest = d->size_bytes + pool_now(d->pool).capacity.max_volume_bytes;
	const struct device_pool now = pool_now(d->pool);
	struct zeroing z = {.grown = d->path};
	struct device *grown = NULL;

	ck_assert_uint_eq(device_fit_growth(&now, d->size_bytes, largest), largest);
	ck_assert_uint_eq(device_fit_growth(&now, d->size_bytes, largest + 1), UINT64_MAX);
	ck_assert_int_eq(try_grow(d, largest + unit(), NULL, &grown, &err), -1);
	ck_assert_msg(err->code == ERR_EXHAUSTED, "%s", err->msg);
	error_clear(&err);
	ck_assert_int_eq(try_grow(d, largest + unit(), target->has_nodes ? &z : NULL, &grown, &err), -1);
	ck_assert_msg(err->code == ERR_EXHAUSTED, "%s", err->msg);
	assert_listed(&d, 1);
	grow(&d, largest, NULL);
	ck_assert_uint_eq(pool_now(d->pool).capacity.max_volume_bytes, 0);
}
END_TEST

START_TEST(device_of_another_identity_does_not_grow)
{
	CLEANUP(device_freep) struct device *d = create("one", pools[0].uuid, 1);
	struct device other = *d;
	char identity[UUID_TEXT_LEN + 1];
	struct device *grown = NULL;
	struct error *err = NULL;

	uuid_generate_text(identity);
	other.identity = identity;
	ASSERT_FAILS(try_grow(&other, 2 * unit(), NULL, &grown, &err), ERR_PRECONDITION, d->id);
	assert_listed(&d, 1);
	destroy(d);
	ASSERT_FAILS(try_grow(d, 2 * unit(), NULL, &grown, &err), ERR_UNAVAILABLE, d->id);
	assert_listed(NULL, 0);
}
END_TEST

START_TEST(no_leftovers_are_found_where_nothing_was_cut_off)
{
	CLEANUP(device_freep) struct device *d = create("one", pools[0].uuid, 1);
	struct error *err = NULL;
	bool changed = true;

	ASSERT_OK(device_remove_leftovers(manager, &changed, &err));
	ck_assert(!changed);
	assert_listed(&d, 1);
}
END_TEST

START_TEST(devices_of_a_fixed_size_are_refused_with_the_reason)
{
	CLEANUP(device_freep) struct device *d = create("one", pools[0].uuid, 1);
	struct device *grown = NULL;
	struct error *err = NULL;
	bool changed = true;

	for (size_t i = 0; i < n_pools; i++) {
		ck_assert_str_eq(pools[i].fixed_size, DEVICE_FIXED_SIZE);
		ck_assert_uint_eq(device_fit_growth(&pools[i], unit(), 2 * unit()), UINT64_MAX);
	}
	ASSERT_FAILS(try_grow(d, 2 * d->size_bytes, NULL, &grown, &err), ERR_INVALID_ARGUMENT,
		"create a larger volume and copy the data");
	ASSERT_OK(device_remove_leftovers(manager, &changed, &err));
	ck_assert(!changed);
	assert_listed(&d, 1);
}
END_TEST

static int open_node(const char *path)
{
	int fd = open(path, O_RDWR | O_CLOEXEC);

	ck_assert_int_ge(fd, 0);
	return fd;
}

/* Past the page cache, which may be of the device's last owner. */
static void fill(const char *path, uint64_t size_bytes, unsigned char byte)
{
	CLEANUP(fd_closep) int fd = open(path, O_WRONLY | O_DIRECT | O_CLOEXEC);
	CLEANUP(free_charp) char *chunk = aligned_alloc(4096, CHUNK_BYTES);

	memset(chunk, byte, CHUNK_BYTES);
	for (uint64_t at = 0; at < size_bytes; at += CHUNK_BYTES)
		ck_assert_int_eq(pwrite(fd, chunk, CHUNK_BYTES, (off_t)at), CHUNK_BYTES);
}

static void assert_filled(const char *path, uint64_t from, uint64_t to, unsigned char byte)
{
	CLEANUP(fd_closep) int fd = open(path, O_RDONLY | O_DIRECT | O_CLOEXEC);
	CLEANUP(free_charp) char *chunk = aligned_alloc(4096, CHUNK_BYTES);
	CLEANUP(free_charp) char *expected = x_malloc(CHUNK_BYTES);

	memset(expected, byte, CHUNK_BYTES);
	for (uint64_t at = from; at < to; at += CHUNK_BYTES) {
		ck_assert_int_eq(pread(fd, chunk, CHUNK_BYTES, (off_t)at), CHUNK_BYTES);
		ck_assert_msg(memcmp(chunk, expected, CHUNK_BYTES) == 0, "from byte %ju on", (uintmax_t)at);
	}
}

static uint64_t size_of(int fd)
{
	uint64_t bytes;

	ck_assert_int_eq(ioctl(fd, BLKGETSIZE64, &bytes), 0);
	return bytes;
}

/* The pool holds data of an earlier device all over. */
static void dirty_pool(void)
{
	CLEANUP(device_freep)
	struct device *d = create("earlier", pools[0].uuid, pools[0].capacity.max_volume_bytes);

	fill(d->path, d->size_bytes, 0xab);
	destroy(d);
}

START_TEST(content_stays_and_open_descriptors_see_the_new_size)
{
	CLEANUP(device_freep) struct device *d = create("one", pools[0].uuid, 1);
	CLEANUP(fd_closep) int fd = open_node(d->path);

	fill(d->path, d->size_bytes, 7);
	ck_assert_uint_eq(size_of(fd), unit());
	grow(&d, 3 * unit(), NULL);
	ck_assert_uint_eq(size_of(fd), 3 * unit());
	assert_filled(d->path, 0, unit(), 7);
}
END_TEST

START_TEST(new_space_is_zero_before_the_device_has_it)
{
	dirty_pool();
	CLEANUP(device_freep) struct device *d = create("one", pools[0].uuid, 1);
	CLEANUP(device_freep) struct device *other = create("other", pools[0].uuid, 1);
	CLEANUP(fd_closep) int fd = open_node(d->path);

	fill(d->path, d->size_bytes, 7);
	for (uint64_t units = 2; units < 6; units++) {
		struct zeroing z = {.grown = d->path};

		grow(&d, units * unit(), &z);
		ck_assert(z.calls == 0 || (z.calls == 1 && z.bytes == unit()));
		ck_assert_uint_eq(size_of(fd), units * unit());
	}
	assert_filled(d->path, 0, unit(), 7);
	assert_filled(d->path, unit(), 5 * unit(), 0);
	assert_listed((struct device *[]){d, other}, 2);
	ck_assert_uint_eq(free_now(), pools[0].capacity.available_bytes - 6 * unit());
}
END_TEST

START_TEST(free_space_in_pieces_is_used_and_zeroed)
{
	CLEANUP(device_freep) struct device *d = NULL;
	struct device *parts[8];
	char id[] = "part-0";

	dirty_pool();
	for (size_t i = 0; i < 8; i++, id[5]++)
		parts[i] = create(id, pools[0].uuid, unit());
	d = create("one", pools[0].uuid, unit());
	uint64_t rest = pool_now(d->pool).capacity.max_volume_bytes;
	device_free(create("filler", d->pool, rest));
	for (size_t i = 0; i < 8; i += 2)
		destroy(parts[i]);
	struct zeroing z = {.grown = d->path};
	uint64_t more = pool_now(d->pool).capacity.max_volume_bytes;
	struct device *grown = NULL;
	struct error *err = NULL;
	/* the fake keeps a device in one piece, so that this may be too much for it */
	int rc = try_grow(d, d->size_bytes + more, &z, &grown, &err);
	ck_assert(rc == 0 || err->code == ERR_EXHAUSTED);
	if (rc == 0)
		assert_filled(d->path, unit(), unit() + more, 0);
	error_free(err);
	device_free(grown);
	for (size_t i = 0; i < 8; i++)
		device_free(parts[i]);
}
END_TEST

START_TEST(device_that_cannot_be_zeroed_does_not_grow)
{
	CLEANUP(device_freep) struct device *d = create("one", pools[0].uuid, 1);
	struct zeroing z = {.grown = d->path, .refuse = ERR_UNAVAILABLE};
	struct device *grown = NULL;
	CLEANUP(error_freep) struct error *err = NULL;

	int rc = try_grow(d, 2 * unit(), &z, &grown, &err);
	/* a manager whose new space is zero anyway does not ask */
	if (z.calls == 0) {
		ck_assert_int_eq(rc, 0);
		device_free(grown);
		return;
	}
	ck_assert_int_eq(rc, -1);
	ck_assert_int_eq(err->code, ERR_UNAVAILABLE);
	assert_listed(&d, 1);
	ck_assert_uint_eq(free_now(), pools[0].capacity.available_bytes - unit());
	z.refuse = 0;
	grow(&d, 2 * unit(), &z);
}
END_TEST

START_TEST(grown_device_is_as_large_after_a_restart_and_when_it_was_inactive)
{
	CLEANUP(device_freep) struct device *d = create("one", pools[0].uuid, 1);
	CLEANUP(device_list_freep) struct device_list *l = NULL;
	struct error *err = NULL;
	struct blockdev_info info = {0};

	grow(&d, 3 * unit(), NULL);
	if (target->deactivate)
		target->deactivate(d);
	reopen();
	l = list();
	ASSERT_OK(device_activate(manager, l, &err));
	device_list_free(l);
	l = list();
	const struct device *now = device_list_find(l, "one");
	ck_assert(now && now->active);
	ck_assert_uint_eq(now->size_bytes, 3 * unit());
	ASSERT_OK(blockdev_stat(now->path, &info, &err));
	ck_assert_uint_eq(info.size_bytes, 3 * unit());
}
END_TEST

void device_contract_add_growth(TCase *tcase)
{
	if (target->fixed_size) {
		tcase_add_test(tcase, devices_of_a_fixed_size_are_refused_with_the_reason);
		return;
	}
	tcase_add_test(tcase, grown_device_is_listed_and_takes_what_it_gained);
	tcase_add_test(tcase, growing_again_to_the_same_size_is_success);
	tcase_add_test(tcase, device_grows_by_the_reported_maximum_and_no_more);
	tcase_add_test(tcase, device_of_another_identity_does_not_grow);
	tcase_add_test(tcase, no_leftovers_are_found_where_nothing_was_cut_off);
	if (!target->has_nodes)
		return;
	tcase_add_test(tcase, content_stays_and_open_descriptors_see_the_new_size);
	tcase_add_test(tcase, new_space_is_zero_before_the_device_has_it);
	tcase_add_test(tcase, free_space_in_pieces_is_used_and_zeroed);
	tcase_add_test(tcase, device_that_cannot_be_zeroed_does_not_grow);
	if (target->is_durable)
		tcase_add_test(tcase, grown_device_is_as_large_after_a_restart_and_when_it_was_inactive);
}
