/* SPDX-License-Identifier: Apache-2.0 */
/* The checks that need block devices, and those that restart the device manager. */
#include "contract/device_contract_private.h"

#include <check.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/random.h"
#include "os/blockdev.h"
#include "unit/unit.h"

START_TEST(node_is_there_at_once_and_has_the_size)
{
	CLEANUP(device_freep) struct device *d = create("one", pools[0].uuid, pools[0].rules.unit_bytes + 1);
	CLEANUP(error_freep) struct error *err = NULL;
	struct blockdev_info info;

	ASSERT_OK(blockdev_stat(d->path, &info, &err));
	ck_assert_uint_eq(info.size_bytes, d->size_bytes);
	ck_assert_uint_eq(d->size_bytes, fitting(pools[0].rules.unit_bytes + 1));
	ck_assert_uint_gt(d->size_bytes, pools[0].rules.unit_bytes);
}
END_TEST

START_TEST(open_device_is_not_destroyed)
{
	CLEANUP(device_freep) struct device *d = create("one", pools[0].uuid, 1);
	int fd = open(d->path, O_RDONLY | O_CLOEXEC | (target->sees_opens ? 0 : O_EXCL));

	ck_assert_int_ge(fd, 0);
	assert_destroy_refused(d);
	assert_listed(&d, 1);
	close(fd);
	destroy(d);
	assert_listed(NULL, 0);
}
END_TEST

static int destroy_with_exclusive_fd(const struct device *d, struct error **err)
{
	int fd = -1;

	ck_assert_int_eq(blockdev_open_exclusive(d->path, &fd, err), 0);
	int rc = device_destroy(manager, d, fd, err);
	ck_assert_int_eq(fcntl(fd, F_GETFD), -1);
	return rc;
}

START_TEST(exclusive_descriptor_is_taken_over)
{
	CLEANUP(device_freep) struct device *d = create("one", pools[0].uuid, 1);
	struct device other = *d;
	char identity[UUID_TEXT_LEN + 1];
	struct error *err = NULL;

	uuid_generate_text(identity);
	other.identity = identity;
	ASSERT_FAILS(destroy_with_exclusive_fd(&other, &err), ERR_PRECONDITION, "one");
	assert_listed(&d, 1);
	ASSERT_OK(destroy_with_exclusive_fd(d, &err));
	assert_listed(NULL, 0);
}
END_TEST

static void transfer(const struct device *d, int flags, char *data, size_t n)
{
	CLEANUP(fd_closep) int fd = open(d->path, flags | O_CLOEXEC);

	ck_assert_int_ge(fd, 0);
	off_t at = (off_t)(d->size_bytes - n);
	ck_assert_int_eq(flags & O_WRONLY ? pwrite(fd, data, n, at) : pread(fd, data, n, at), (ssize_t)n);
	ck_assert_int_eq(fsync(fd), 0);
}

START_TEST(devices_and_content_stay_when_opened_again)
{
	CLEANUP(device_freep) struct device *d = create("one", pools[0].uuid, 1);
	char data[512] = "content", back[512] = "";

	if (target->has_nodes)
		transfer(d, O_WRONLY, data, sizeof(data));
	reopen();
	assert_listed(&d, 1);
	if (target->has_nodes)
		transfer(d, O_RDONLY, back, sizeof(back));
	ck_assert(!target->has_nodes || memcmp(data, back, sizeof(data)) == 0);

	struct device other = *d;
	char identity[UUID_TEXT_LEN + 1];
	uuid_generate_text(identity);
	other.identity = identity;
	reopen();
	assert_destroy_refused(&other);
	for (size_t i = 0; i < n_pools; i++)
		assert_create_fails("one", pools[i].uuid, 1, ERR_EXISTS);
}
END_TEST

START_TEST(inactive_devices_are_activated_with_their_content)
{
	CLEANUP(device_freep) struct device *a = create("one", pools[0].uuid, 1);
	CLEANUP(device_freep) struct device *b = create("two", pools[n_pools - 1].uuid, 1);
	CLEANUP(error_freep) struct error *err = NULL;
	char data[512] = "content", back[512] = "";

	transfer(b, O_WRONLY, data, sizeof(data));
	target->deactivate(a);
	target->deactivate(b);
	CLEANUP(device_list_freep) struct device_list *l = list();
	ck_assert_uint_eq(l->n_devices, 2);
	ck_assert(!l->devices[0].active && !l->devices[1].active);
	ASSERT_OK(device_activate(manager, l, &err));

	/* a loop device may have another number now */
	CLEANUP(device_list_freep) struct device_list *after = list();
	ck_assert_uint_eq(after->n_devices, 2);
	ck_assert(after->devices[0].active && after->devices[1].active);
	transfer(&after->devices[1], O_RDONLY, back, sizeof(back));
	ck_assert_mem_eq(data, back, sizeof(data));
	ASSERT_OK(device_activate(manager, l, &err));
}
END_TEST

START_TEST(inactive_device_can_be_destroyed)
{
	CLEANUP(device_freep) struct device *d = create("one", pools[0].uuid, 1);

	target->deactivate(d);
	destroy(d);
	assert_listed(NULL, 0);
}
END_TEST

void device_contract_add_nodes(TCase *tcase)
{
	tcase_add_test(tcase, node_is_there_at_once_and_has_the_size);
	tcase_add_test(tcase, open_device_is_not_destroyed);
	tcase_add_test(tcase, exclusive_descriptor_is_taken_over);
	if (!target->deactivate)
		return;
	tcase_add_test(tcase, inactive_devices_are_activated_with_their_content);
	tcase_add_test(tcase, inactive_device_can_be_destroyed);
}

void device_contract_add_durable(TCase *tcase)
{
	tcase_add_test(tcase, devices_and_content_stay_when_opened_again);
}
