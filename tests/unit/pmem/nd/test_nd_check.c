/* SPDX-License-Identifier: Apache-2.0 */
/* Checks before and after writes to the kernel, over a folder in the place of /sys. */
#include "base/mem.h"
#include "pmem/nd/nd_private.h"
#include "unit/os/scratch.h"
#include "unit/pmem/nd/nd_sys.h"

#define NAMESPACE  ND_SYS_REGION "/namespace0.0"
#define HOLDER     ND_SYS_REGION "/pfn0.0"
#define DISK_BYTES MIB(16)
#define HEAD_BYTES MIB(1)
#define END_BYTES  MIB(4)
#define PATTERN    'x'

static const struct nd_spec spec = {.bus = "ndbus0",
	.region = "region0",
	.label = ND_SYS_NAME,
	.uuid = ND_SYS_UUID,
	.raw_bytes = MIB(128),
	.mode = ND_FSDAX};

/* Makes the files of a namespace as nd_make() leaves them. */
static struct scratch_disk have_namespace(void)
{
	struct scratch_disk d = scratch_disk("disk", DISK_BYTES);
	CLEANUP(free_charp) char *sectors = x_asprintf("%ju", (uintmax_t)DISK_BYTES / 512);

	for (uint64_t at = 0; at < DISK_BYTES; at += KIB(512))
		ck_assert_int_eq(pwrite(d.fd, (const char[]){PATTERN}, 1, (off_t)at), 1);
	nd_sys_enter();
	nd_sys_namespace("namespace0.0", "134217728", "pfn");
	nd_sys_files(NAMESPACE, "holder", "pfn0.0", "mode", "memory", NULL);
	nd_sys_device(ND_SYS_REGION, "pfn0.0");
	nd_sys_bind(HOLDER);
	nd_sys_block(HOLDER, d.path + strlen("/dev/"), sectors);
	return d;
}

static char byte_at(const struct scratch_disk *d, uint64_t at)
{
	char found = 0;

	ck_assert_int_eq(pread(d->fd, &found, 1, (off_t)at), 1);
	return found;
}

START_TEST(read_only_sys_is_unavailable_and_named)
{
	CLEANUP(error_freep) struct error *err = NULL;

	nd_sys_enter();
	ASSERT_OK(nd_check_writable("region0", &err));
	ck_assert_int_eq(mount(NULL, "/sys", NULL, MS_REMOUNT | MS_BIND | MS_RDONLY, NULL), 0);
	/* Kubernetes tries again here, where the pod may be repaired, instead of giving up. */
	ASSERT_FAILS(nd_check_writable("region0", &err), ERR_UNAVAILABLE, "/sys is mounted read-only");
}
END_TEST

START_TEST(what_was_made_is_read_back_and_has_no_old_signature)
{
	CLEANUP(scratch_disk_done) struct scratch_disk d = have_namespace();
	CLEANUP(nd_namespace_freep) struct nd_namespace *ns = NULL;
	CLEANUP(nd_inventory_freep) struct nd_inventory *after = NULL;
	struct error *err = NULL;

	ASSERT_OK(nd_check_created(&spec, &ns, &after, &err));
	ck_assert_str_eq(ns->uuid, ND_SYS_UUID);
	ck_assert_str_eq(ns->block_path, d.path);
	ck_assert_uint_eq(after->regions[0].n_namespaces, 1);
	for (uint64_t at = 0; at < DISK_BYTES; at += KIB(512)) {
		bool is_erased = at < HEAD_BYTES || at >= DISK_BYTES - END_BYTES;
		ck_assert_int_eq(byte_at(&d, at), is_erased ? 0 : PATTERN);
	}
}
END_TEST

struct flaw {
	const char *folder;
	const char *attribute; /* or a link that is missing, when there is no content */
	const char *content;
	const char *text;
};

static const struct flaw flaws[] = {
	{NAMESPACE, "uuid", "6f1d2c3b-0000-4000-8000-00000000000a", "does not exist"},
	{NAMESPACE, "alt_name", "other", "has name \"other\""},
	{NAMESPACE, "size", "67108864", "67108864 bytes instead"},
	{NAMESPACE, "mode", "safe", "did not become a block device of mode fsdax"},
	{HOLDER, "driver", NULL, "did not become a block device of mode fsdax"},
};

START_TEST(what_was_not_made_as_asked_for_is_not_wiped)
{
	const struct flaw *f = &flaws[_i];
	CLEANUP(scratch_disk_done) struct scratch_disk d = have_namespace();
	CLEANUP(free_charp) char *path = x_asprintf("%s/%s", f->folder, f->attribute);
	struct nd_namespace *ns = NULL;
	struct nd_inventory *after = NULL;
	struct error *err = NULL;

	if (f->content)
		nd_sys_file(f->folder, f->attribute, f->content);
	else
		ck_assert_int_eq(unlink(path), 0);
	ASSERT_FAILS(nd_check_created(&spec, &ns, &after, &err), ERR_INTERNAL, f->text);
	ck_assert_int_eq(byte_at(&d, 0), PATTERN);
}
END_TEST

START_TEST(what_somebody_uses_is_not_wiped)
{
	CLEANUP(scratch_disk_done) struct scratch_disk d = have_namespace();
	CLEANUP(fd_closep) int held = open(d.path, O_RDONLY | O_EXCL | O_CLOEXEC);
	struct nd_namespace *ns = NULL;
	struct nd_inventory *after = NULL;
	struct error *err = NULL;

	ck_assert_int_ge(held, 0);
	ASSERT_FAILS(nd_check_created(&spec, &ns, &after, &err), ERR_PRECONDITION, d.path);
	ck_assert_int_eq(byte_at(&d, 0), PATTERN);
}
END_TEST

START_TEST(what_is_still_there_is_not_gone)
{
	CLEANUP(scratch_disk_done) struct scratch_disk d = have_namespace();
	CLEANUP(nd_inventory_freep) struct nd_inventory *after = NULL;
	struct error *err = NULL;

	ASSERT_FAILS(nd_check_gone(ND_SYS_UUID, &after, &err), ERR_INTERNAL, "namespace0.0 still exists");
	nd_sys_file(NAMESPACE, "size", "0");
	ASSERT_OK(nd_check_gone(ND_SYS_UUID, &after, &err));
	ck_assert_uint_eq(after->regions[0].n_namespaces, 0);
	ck_assert_int_eq(byte_at(&d, 0), PATTERN);
}
END_TEST

START_TEST(what_has_no_block_device_is_not_enabled)
{
	CLEANUP(scratch_disk_done) struct scratch_disk d = have_namespace();
	struct error *err = NULL;

	ASSERT_OK(nd_check_enabled(ND_SYS_UUID, &err));
	ck_assert_int_eq(rename(HOLDER "/block", HOLDER "/gone"), 0);
	ASSERT_FAILS(nd_check_enabled(ND_SYS_UUID, &err), ERR_INTERNAL, "did not become a block device");
	ck_assert_int_eq(byte_at(&d, 0), PATTERN);
}
END_TEST

int main(void)
{
	const char *why = scratch_unavailable();
	Suite *suite = suite_create("pmem/nd/nd_check");
	TCase *tc = tcase_create("sysfs");

	if (why) {
		fprintf(stderr, "SKIP pmem/nd/nd_check: %s\n", why);
		return SCRATCH_SKIP_STATUS;
	}
	suite_add_tcase(suite, tc);
	tcase_add_checked_fixture(tc, scratch_enter, NULL);
	tcase_add_test(tc, read_only_sys_is_unavailable_and_named);
	tcase_add_test(tc, what_was_made_is_read_back_and_has_no_old_signature);
	tcase_add_loop_test(tc, what_was_not_made_as_asked_for_is_not_wiped, 0, ARRAY_SIZE(flaws));
	tcase_add_test(tc, what_somebody_uses_is_not_wiped);
	tcase_add_test(tc, what_is_still_there_is_not_gone);
	tcase_add_test(tc, what_has_no_block_device_is_not_enabled);
	return unit_runner_finish(srunner_create(suite));
}
