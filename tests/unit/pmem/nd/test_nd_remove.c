/* SPDX-License-Identifier: Apache-2.0 */
/* Removing a namespace, over a folder in the place of /sys; its block device is a loop device. */
#include "base/mem.h"
#include "pmem/nd/nd_private.h"
#include "unit/os/scratch.h"
#include "unit/pmem/nd/nd_sys.h"

#define NAMESPACE  ND_SYS_REGION "/namespace0.0"
#define HOLDER     ND_SYS_REGION "/pfn0.0"
#define SIZE       "134217728"
#define DISK_BYTES KIB(64)
#define INFO_BYTES KIB(8)
#define PATTERN    'x'

/* Active, with a page map. The namespace and its pfn device are bound to their drivers. */
static struct scratch_disk have_namespace(void)
{
	struct scratch_disk d = scratch_disk("disk", DISK_BYTES);
	char pattern[DISK_BYTES];

	memset(pattern, PATTERN, sizeof(pattern));
	ck_assert_int_eq(pwrite(d.fd, pattern, sizeof(pattern), 0), (ssize_t)sizeof(pattern));
	ck_assert_int_eq(fsync(d.fd), 0);
	nd_sys_enter();
	nd_sys_namespace("namespace0.0", SIZE, "pfn");
	nd_sys_files(NAMESPACE, "holder", "pfn0.0", "mode", "memory", "force_raw", "-", NULL);
	nd_sys_bind(NAMESPACE);
	nd_sys_block(NAMESPACE, d.path + strlen("/dev/"), "128");
	nd_sys_device(ND_SYS_REGION, "pfn0.0");
	nd_sys_file(HOLDER, "namespace", "namespace0.0");
	nd_sys_bind(HOLDER);
	nd_sys_block(HOLDER, d.path + strlen("/dev/"), "128");
	return d;
}

/* The first @zeros bytes are zero, and no other is. */
static void assert_zeroed(const struct scratch_disk *d, size_t zeros)
{
	char found[DISK_BYTES];

	ck_assert_int_eq(pread(d->fd, found, sizeof(found), 0), (ssize_t)sizeof(found));
	for (size_t i = 0; i < sizeof(found); i++)
		ck_assert_msg(found[i] == (i < zeros ? 0 : PATTERN), "byte %zu", i);
}

static void assert_untouched(const struct scratch_disk *d)
{
	assert_zeroed(d, 0);
	ck_assert(nd_sys_begins(NAMESPACE, "holder_class", "pfn"));
	ck_assert(nd_sys_begins(NAMESPACE, "force_raw", "-"));
	ck_assert(nd_sys_begins(NAMESPACE, "size", SIZE));
}

START_TEST(info_block_is_zeroed_and_the_size_taken_away)
{
	CLEANUP(scratch_disk_done) struct scratch_disk d = have_namespace();
	struct error *err = NULL;

	ASSERT_OK(nd_remove(ND_SYS_UUID, ND_SYS_NAME, &err));
	assert_zeroed(&d, INFO_BYTES);
	ck_assert(nd_sys_begins(HOLDER, "namespace", "\n"));
	ck_assert(nd_sys_begins(NAMESPACE, "holder_class", "\n"));
	ck_assert(nd_sys_begins(NAMESPACE, "force_raw", "0"));
	ck_assert(nd_sys_begins(NAMESPACE, "size", "0"));
	ck_assert(nd_sys_begins(ND_SYS_DRIVER, "bind", "namespace0.0"));
	ck_assert(nd_sys_begins(ND_SYS_DRIVER, "unbind", "namespace0.0"));
}
END_TEST

struct change {
	const char *by;  /* what the UUID is read from, which is written to meanwhile */
	bool bound;      /* the holder, so that it is unbound */
	const char *raw; /* force_raw afterwards */
	size_t zeros;
	const char *class;
};

static const struct change changes[] = {
	/* when the holder is released: the namespace is not written to */
	{ND_SYS_DRIVER "/unbind", true, "-", 0, "pfn"},
	/* when the namespace itself is enabled: the medium is not written to */
	{ND_SYS_DRIVER "/bind", true, "0", 0, "\n"},
	/* when it is disabled: the label stays */
	{ND_SYS_DRIVER "/unbind", false, "0", INFO_BYTES, "\n"},
};

START_TEST(namespace_that_became_another_meanwhile_is_left_alone)
{
	const struct change *c = &changes[_i];
	CLEANUP(scratch_disk_done) struct scratch_disk d = have_namespace();
	struct error *err = NULL;

	if (!c->bound)
		ck_assert_int_eq(unlink(HOLDER "/driver"), 0);
	nd_sys_files(ND_SYS_DRIVER, "bind", ND_SYS_UUID, "unbind", ND_SYS_UUID, NULL);
	nd_sys_link(NAMESPACE, "uuid", c->by);
	ASSERT_FAILS(nd_remove(ND_SYS_UUID, ND_SYS_NAME, &err), ERR_PRECONDITION, "another namespace");
	assert_zeroed(&d, c->zeros);
	ck_assert(nd_sys_begins(NAMESPACE, "holder_class", c->class));
	ck_assert(nd_sys_begins(NAMESPACE, "force_raw", c->raw));
	ck_assert(nd_sys_begins(NAMESPACE, "size", SIZE));
}
END_TEST

/* It would not be assembled again as what it is. */
START_TEST(namespace_does_not_stay_raw_when_its_content_cannot_be_reached)
{
	CLEANUP(scratch_disk_done) struct scratch_disk d = have_namespace();
	struct error *err = NULL;

	ck_assert_int_eq(rename(NAMESPACE "/block", NAMESPACE "/gone"), 0);
	ASSERT_FAILS(nd_remove(ND_SYS_UUID, ND_SYS_NAME, &err), ERR_INTERNAL, "no block device as raw");
	ck_assert(nd_sys_begins(NAMESPACE, "force_raw", "0"));
	ck_assert(nd_sys_begins(ND_SYS_DRIVER, "unbind", "namespace0.0"));
	ck_assert(nd_sys_begins(NAMESPACE, "size", SIZE));
	ck_assert_int_eq(unlink(ND_SYS_DRIVER "/bind"), 0);
	ASSERT_FAILS(nd_remove(ND_SYS_UUID, ND_SYS_NAME, &err), ERR_INTERNAL, "enable it in raw mode");
	ck_assert(nd_sys_begins(NAMESPACE, "force_raw", "0"));
	ck_assert(nd_sys_begins(NAMESPACE, "size", SIZE));
	assert_zeroed(&d, 0);
}
END_TEST

START_TEST(namespace_that_stays_enabled_keeps_its_label)
{
	CLEANUP(scratch_disk_done) struct scratch_disk d = have_namespace();
	struct error *err = NULL;

	ck_assert_int_eq(unlink(HOLDER "/driver"), 0);
	ck_assert_int_eq(unlink(ND_SYS_DRIVER "/unbind"), 0);
	ASSERT_FAILS(nd_remove(ND_SYS_UUID, ND_SYS_NAME, &err), ERR_INTERNAL, "driver/unbind");
	assert_zeroed(&d, INFO_BYTES);
	ck_assert(nd_sys_begins(NAMESPACE, "size", SIZE));
}
END_TEST

START_TEST(devdax_namespace_is_left_alone)
{
	CLEANUP(scratch_disk_done) struct scratch_disk d = have_namespace();
	struct error *err = NULL;

	nd_sys_file(NAMESPACE, "mode", "dax");
	ASSERT_FAILS(nd_remove(ND_SYS_UUID, ND_SYS_NAME, &err), ERR_PRECONDITION, "devdax");
	assert_untouched(&d);
}
END_TEST

START_TEST(namespace_of_another_name_is_left_alone)
{
	CLEANUP(scratch_disk_done) struct scratch_disk d = have_namespace();
	struct error *err = NULL;

	ASSERT_FAILS(nd_remove(ND_SYS_UUID, "other", &err), ERR_PRECONDITION, ND_SYS_NAME);
	assert_untouched(&d);
	ck_assert(nd_sys_begins(ND_SYS_DRIVER, "unbind", "\n"));
}
END_TEST

START_TEST(namespace_in_use_is_left_alone)
{
	CLEANUP(scratch_disk_done) struct scratch_disk d = have_namespace();
	CLEANUP(fd_closep) int held = open(d.path, O_RDONLY | O_EXCL | O_CLOEXEC);
	struct error *err = NULL;

	ck_assert_int_ge(held, 0);
	ASSERT_FAILS(nd_remove(ND_SYS_UUID, ND_SYS_NAME, &err), ERR_PRECONDITION, d.path);
	assert_untouched(&d);
	ck_assert(nd_sys_begins(ND_SYS_DRIVER, "unbind", "\n"));
}
END_TEST

int main(void)
{
	const char *why = scratch_unavailable();
	Suite *suite = suite_create("pmem/nd/nd_remove");
	TCase *tc = tcase_create("sysfs");

	if (why) {
		fprintf(stderr, "SKIP pmem/nd/nd_remove: %s\n", why);
		return SCRATCH_SKIP_STATUS;
	}
	suite_add_tcase(suite, tc);
	tcase_add_checked_fixture(tc, scratch_enter, NULL);
	tcase_add_test(tc, info_block_is_zeroed_and_the_size_taken_away);
	tcase_add_loop_test(
		tc, namespace_that_became_another_meanwhile_is_left_alone, 0, ARRAY_SIZE(changes));
	tcase_add_test(tc, namespace_does_not_stay_raw_when_its_content_cannot_be_reached);
	tcase_add_test(tc, namespace_that_stays_enabled_keeps_its_label);
	tcase_add_test(tc, devdax_namespace_is_left_alone);
	tcase_add_test(tc, namespace_of_another_name_is_left_alone);
	tcase_add_test(tc, namespace_in_use_is_left_alone);
	return unit_runner_finish(srunner_create(suite));
}
