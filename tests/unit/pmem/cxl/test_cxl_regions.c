/* SPDX-License-Identifier: Apache-2.0 */
/* Recording and making regions, on a fake kernel that makes a region of what it is given, or refuses. */
#include "pmem/cxl/cxl_regions.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"
#include "pmem/cxl/cxl_match.h"
#include "unit/os/scratch.h"
#include "unit/pmem/cxl/cxl_model.h"
#include "unit/pmem/nd/nd_sys.h"
#include "unit/unit.h"

#define STATE SCRATCH "/state"

/* The kernel. */
static struct cxl_device devices[2];
static size_t n_devices;
static struct cxl_set sets[2];
static size_t n_sets;
static unsigned n_made;
static enum err_code refusal; /* of cxl_make(); 0: none */
static bool recorded_before;  /* the record was there when the region was made */
static bool labels_empty;
static const char *unreadable; /* name of a device, or NULL */

static int fake_read(void *self, struct cxl_topology *ret, struct error **err)
{
	static const struct cxl_root root = MODEL_ROOT;

	(void)self;
	(void)err;
	*ret = (struct cxl_topology){.devices = x_calloc(n_devices, sizeof(*devices)),
		.n_devices = n_devices,
		.roots = x_calloc(1, sizeof(root)),
		.n_roots = 1,
		.sets = x_calloc(n_sets, sizeof(*sets)),
		.n_sets = n_sets};
	for (size_t i = 0; i < n_devices; i++)
		ret->devices[i] = devices[i];
	for (size_t i = 0; i < n_sets; i++)
		ret->sets[i] = sets[i];
	ret->roots[0] = root;
	if (unreadable)
		strv_add(&ret->unreadable, unreadable);
	return 0;
}

static int fake_make(void *self, const struct cxl_layout *l, struct error **err)
{
	CLEANUP(free_charp) char *path = cxl_record_path(STATE, l->uuid);

	(void)self;
	n_made++;
	recorded_before = access(path, F_OK) == 0;
	if (refusal)
		return err_set(err, refusal, "as asked");
	sets[n_sets++] =
		(struct cxl_set){.name = "region0", .committed = true, .enabled = true, .layout = *l};
	devices[0].used = devices[1].used = true;
	return 0;
}

static int fake_labels(void *self, const char *device, bool *ret_empty, struct error **err)
{
	(void)self;
	(void)device;
	(void)err;
	*ret_empty = labels_empty;
	return 0;
}

static const struct cxl_ops ops = {.read = fake_read, .make = fake_make, .labels = fake_labels};
static const struct cxl cxl = {.ops = &ops};

static void boot(void)
{
	n_sets = 0;
	n_made = 0;
	devices[0].used = devices[1].used = false;
}

static void set_up(void)
{
	scratch_enter();
	devices[0] = (struct cxl_device)MODEL_DEVICE("mem0", SERIAL1);
	devices[1] = (struct cxl_device)MODEL_DEVICE("mem1", SERIAL2);
	n_devices = 2;
	labels_empty = true;
	boot();
}

static void make_by_hand(const char *uuid, uint64_t first, uint64_t second)
{
	struct cxl_layout l = MODEL_LAYOUT("", first, second);

	memcpy(l.uuid, uuid, sizeof(l.uuid));
	sets[0] = (struct cxl_set){.name = "region0", .committed = true, .enabled = true, .layout = l};
	n_sets = 1;
	devices[0].used = devices[1].used = true;
}

/* Runs cxl_regions_settle(), and asserts that it has one finding, of this kind and with this text. */
static void settle(enum cxl_rule rule, enum cxl_finding_kind kind, const char *text)
{
	CLEANUP(cxl_findings_done) struct cxl_findings f = {0};
	struct error *err = NULL;

	ASSERT_OK(cxl_regions_settle(&cxl, STATE, rule, &f, &err));
	ck_assert_uint_eq(f.n, 1);
	ck_assert_msg(f.list[0].kind == kind && strstr(f.list[0].text, text), "%d: %s", f.list[0].kind,
		f.list[0].text);
	ck_assert_uint_eq(f.n_problems, kind == CXL_MISSING || kind == CXL_PROBLEM);
}

static void settle_silently(enum cxl_rule rule)
{
	CLEANUP(cxl_findings_done) struct cxl_findings f = {0};
	struct error *err = NULL;

	ASSERT_OK(cxl_regions_settle(&cxl, STATE, rule, &f, &err));
	ck_assert_uint_eq(f.n, 0);
}

static size_t count_records(void)
{
	CLEANUP(cxl_records_done) struct cxl_records r = {0};
	struct error *err = NULL;

	ASSERT_OK(cxl_records_read(STATE, &r, &err));
	ck_assert_ptr_null(r.damaged);
	return r.n;
}

START_TEST(region_is_recorded_and_made_again_after_a_boot)
{
	make_by_hand(UUID_A, SERIAL1, SERIAL2);
	settle(CXL_LOOK, CXL_NOT_RECORDED, UUID_A " of devices 0x1001, 0x1002");
	ck_assert_uint_eq(count_records(), 0);
	settle(CXL_KEEP, CXL_NOW_RECORDED, UUID_A);
	settle(CXL_KEEP, CXL_AS_RECORDED, UUID_A);
	boot();
	settle(CXL_LOOK, CXL_MISSING, UUID_A);
	ck_assert_uint_eq(n_made, 0);
	settle(CXL_KEEP, CXL_MADE_AGAIN, UUID_A);
	ck_assert_uint_eq(n_made, 1);
	ck_assert_str_eq(sets[0].layout.uuid, UUID_A);
	ck_assert_uint_eq(sets[0].layout.places[0].serial, SERIAL1);
}
END_TEST

START_TEST(region_made_by_hand_with_another_uuid_is_the_same)
{
	make_by_hand(UUID_A, SERIAL1, SERIAL2);
	settle(CXL_KEEP, CXL_NOW_RECORDED, UUID_A);
	boot();
	make_by_hand(UUID_B, SERIAL1, SERIAL2);
	settle(CXL_KEEP, CXL_AS_RECORDED, UUID_A);
	ck_assert_uint_eq(count_records(), 1);
}
END_TEST

START_TEST(other_order_is_refused_and_not_recorded)
{
	make_by_hand(UUID_A, SERIAL1, SERIAL2);
	settle(CXL_KEEP, CXL_NOW_RECORDED, UUID_A);
	boot();
	make_by_hand(UUID_B, SERIAL2, SERIAL1);
	settle(CXL_KEEP, CXL_PROBLEM, "has the devices 0x1002, 0x1001");
	settle(CXL_CREATE, CXL_PROBLEM, "has the devices 0x1002, 0x1001");
	ck_assert_uint_eq(n_made, 0);
	ck_assert_uint_eq(count_records(), 1);
}
END_TEST

START_TEST(missing_device_is_refused)
{
	make_by_hand(UUID_A, SERIAL1, SERIAL2);
	settle(CXL_KEEP, CXL_NOW_RECORDED, UUID_A);
	boot();
	n_devices = 1;
	settle(CXL_CREATE, CXL_PROBLEM, "0x1002 (position 1 of 2) is missing");
	ck_assert_uint_eq(n_made, 0);
}
END_TEST

START_TEST(failure_to_make_it_again_keeps_the_record)
{
	make_by_hand(UUID_A, SERIAL1, SERIAL2);
	settle(CXL_KEEP, CXL_NOW_RECORDED, UUID_A);
	boot();
	refusal = ERR_INTERNAL;
	settle(CXL_KEEP, CXL_PROBLEM, "could not be made again: as asked");
	ck_assert_uint_eq(count_records(), 1);
}
END_TEST

START_TEST(new_region_is_recorded_before_it_is_made)
{
	settle_silently(CXL_KEEP);
	settle(CXL_CREATE, CXL_MADE_NEW, "of devices 0x1001, 0x1002 was made");
	ck_assert(recorded_before);
	ck_assert_uint_eq(count_records(), 1);
	settle(CXL_CREATE, CXL_AS_RECORDED, "0x1001");
	ck_assert_uint_eq(n_made, 1);
}
END_TEST

START_TEST(new_region_that_fails_has_no_record)
{
	refusal = ERR_INTERNAL;
	settle(CXL_CREATE, CXL_PROBLEM, "could not be made: as asked");
	ck_assert(recorded_before);
	ck_assert_uint_eq(count_records(), 0);
}
END_TEST

START_TEST(nothing_is_made_over_labels)
{
	labels_empty = false;
	settle(CXL_CREATE, CXL_PROBLEM, "the label area of mem0 (0x1001) is not empty");
	ck_assert_uint_eq(n_made, 0);
	ck_assert_uint_eq(count_records(), 0);
}
END_TEST

START_TEST(nothing_new_is_made_while_a_record_is_damaged)
{
	make_by_hand(UUID_A, SERIAL1, SERIAL2);
	settle(CXL_KEEP, CXL_NOW_RECORDED, UUID_A);
	boot();
	CLEANUP(free_charp) char *path = cxl_record_path(STATE, UUID_A);
	ck_assert_int_eq(truncate(path, 10), 0);
	settle(CXL_CREATE, CXL_PROBLEM, "the record of a CXL region cannot be used");
	ck_assert_uint_eq(n_made, 0);
}
END_TEST

START_TEST(device_that_cannot_be_read_is_named_and_nothing_new_is_made)
{
	CLEANUP(cxl_findings_done) struct cxl_findings f = {0};
	struct error *err = NULL;

	unreadable = "mem2";
	settle(CXL_LOOK, CXL_PROBLEM, "CXL memory device mem2 cannot be read: its node /dev/cxl/mem2");
	settle(CXL_CREATE, CXL_PROBLEM, "mem2");
	ck_assert_uint_eq(n_made, 0);
	make_by_hand(UUID_A, SERIAL1, SERIAL2);
	ASSERT_OK(cxl_regions_settle(&cxl, STATE, CXL_KEEP, &f, &err));
	ck_assert_uint_eq(f.n, 2);
	ck_assert_int_eq(f.list[1].kind, CXL_NOW_RECORDED);
}
END_TEST

/* It may consist of the devices of that record in another order. */
START_TEST(no_region_is_recorded_while_a_record_is_damaged)
{
	CLEANUP(cxl_findings_done) struct cxl_findings f = {0};
	struct error *err = NULL;

	make_by_hand(UUID_A, SERIAL1, SERIAL2);
	settle(CXL_KEEP, CXL_NOW_RECORDED, UUID_A);
	boot();
	CLEANUP(free_charp) char *path = cxl_record_path(STATE, UUID_A);
	ck_assert_int_eq(truncate(path, 10), 0);
	make_by_hand(UUID_B, SERIAL2, SERIAL1);
	ASSERT_OK(cxl_regions_settle(&cxl, STATE, CXL_KEEP, &f, &err));
	ck_assert_uint_eq(f.n_problems, 2);
	ck_assert_msg(strstr(f.list[1].text, UUID_B) && strstr(f.list[1].text, "cannot be used"), "%s",
		f.list[1].text);
	CLEANUP(free_charp) char *other = cxl_record_path(STATE, UUID_B);
	ck_assert_int_lt(access(other, F_OK), 0);
}
END_TEST

START_TEST(serial_number_0_is_not_recorded)
{
	make_by_hand(UUID_A, 0, 0);
	settle(CXL_KEEP, CXL_PROBLEM, "region0 cannot be recorded");
	ck_assert_uint_eq(count_records(), 0);
}
END_TEST

START_TEST(record_that_cannot_be_written_is_a_problem)
{
	int fd = open(STATE, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);

	close(fd);
	make_by_hand(UUID_A, SERIAL1, SERIAL2);
	CLEANUP(cxl_findings_done) struct cxl_findings f = {0};
	CLEANUP(error_freep) struct error *err = NULL;
	ck_assert_int_lt(cxl_regions_settle(&cxl, STATE, CXL_KEEP, &f, &err), 0);
	(void)err;
}
END_TEST

/* --- the guard */

#define CXL_BUS "/sys/devices/ndbus0"

static struct nd_region guarded(const char *identity)
{
	static char bus[] = "ndbus0";
	CLEANUP(free_charp) char *copy = x_strdup(identity);
	struct nd_region r = {
		.bus = bus, .identity = copy, .available_bytes = PART, .max_extent_bytes = PART};
	struct nd_inventory inv = {.regions = &r, .n_regions = 1};

	cxl_guard(STATE, &inv);
	r.identity = NULL;
	return r;
}

START_TEST(region_that_is_not_recorded_is_not_used_while_others_are)
{
	struct cxl_layout l = MODEL_LAYOUT(UUID_A, SERIAL1, SERIAL2);
	CLEANUP(free_charp) char *own = x_asprintf("iset-%016jx", (uintmax_t)cxl_layout_cookie(&l));
	struct error *err = NULL;

	nd_sys_enter();
	nd_sys_file(CXL_BUS, "provider", "CXL");
	ck_assert_ptr_null(guarded("iset-0000000000000001").refused);
	ASSERT_OK(cxl_record_write(STATE, &l, &err));
	struct nd_region r = guarded("iset-0000000000000001");
	ck_assert_ptr_nonnull(r.refused);
	ck_assert_uint_eq(r.available_bytes, 0);
	ck_assert_uint_eq(r.max_extent_bytes, 0);
	ck_assert_ptr_null(guarded(own).refused);
	nd_sys_file(CXL_BUS, "provider", "ACPI.NFIT");
	ck_assert_ptr_null(guarded("iset-0000000000000001").refused);
}
END_TEST

int main(void)
{
	const char *why = scratch_unavailable();
	Suite *suite = suite_create("pmem/cxl_regions");
	TCase *tcase = tcase_create("cxl_regions");

	if (why) {
		fprintf(stderr, "SKIP pmem/cxl_regions: %s\n", why);
		return SCRATCH_SKIP_STATUS;
	}
	suite_add_tcase(suite, tcase);
	tcase_add_checked_fixture(tcase, set_up, NULL);
	tcase_add_test(tcase, region_is_recorded_and_made_again_after_a_boot);
	tcase_add_test(tcase, region_made_by_hand_with_another_uuid_is_the_same);
	tcase_add_test(tcase, other_order_is_refused_and_not_recorded);
	tcase_add_test(tcase, missing_device_is_refused);
	tcase_add_test(tcase, failure_to_make_it_again_keeps_the_record);
	tcase_add_test(tcase, new_region_is_recorded_before_it_is_made);
	tcase_add_test(tcase, new_region_that_fails_has_no_record);
	tcase_add_test(tcase, nothing_is_made_over_labels);
	tcase_add_test(tcase, nothing_new_is_made_while_a_record_is_damaged);
	tcase_add_test(tcase, device_that_cannot_be_read_is_named_and_nothing_new_is_made);
	tcase_add_test(tcase, no_region_is_recorded_while_a_record_is_damaged);
	tcase_add_test(tcase, serial_number_0_is_not_recorded);
	tcase_add_test(tcase, record_that_cannot_be_written_is_a_problem);
	tcase_add_test(tcase, region_that_is_not_recorded_is_not_used_while_others_are);
	return unit_runner_finish(srunner_create(suite));
}
