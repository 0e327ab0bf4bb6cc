/* SPDX-License-Identifier: Apache-2.0 */
/* Which kind of memory a region is made of, by what the kernel shows. Label areas that can be read are in the
 * machine: tests/machine/vm/blank.sh. */
#include "pmem/nd/nd_kind.h"

#include "base/mem.h"
#include "base/str.h"
#include "unit/os/scratch.h"
#include "unit/pmem/nd/nd_sys.h"

#define ALL_COMMANDS "smart get_size get_data set_data "

static struct nd_memory read_kind(void)
{
	CLEANUP(error_freep) struct error *err = NULL;
	struct nd_memory m = {0};

	ASSERT_OK(nd_kind_read("region0", &m, &err));
	return m;
}

struct row {
	const char *provider;
	const char *nstype; /* "5" with labels, "4" without, "6" volatile */
	const char *commands;
	enum nd_memory_kind kind;
	bool is_cxl;
};

/* The control device nmem0 does not exist here. */
static const struct row rows[] = {
	{"ACPI.NFIT", "5", ALL_COMMANDS, ND_MEMORY_LABELLED, false},
	{"CXL", "5", ALL_COMMANDS, ND_MEMORY_LABELLED, true},
	{"ACPI.NFIT", "4", "", ND_MEMORY_NO_LABELS, false},
	{"ACPI.NFIT", "4", "smart ", ND_MEMORY_NO_LABELS, false},
	{"ACPI.NFIT", "4", "get_size get_data ", ND_MEMORY_NO_LABELS, false}, /* read-only */
	{"ACPI.NFIT", "4", "get_size get_data_other set_data ", ND_MEMORY_NO_LABELS, false},
	{"ACPI.NFIT", "4", ALL_COMMANDS, ND_MEMORY_ODD, false}, /* it cannot be read */
	{"e820", "4", "", ND_MEMORY_LEGACY, false},
	{"virtio-pmem", "4", "", ND_MEMORY_VIRTIO, false},
	{"of_pmem", "4", "", ND_MEMORY_NO_LABELS, false},
	{"ACPI.NFIT", "0", ALL_COMMANDS, ND_MEMORY_VOLATILE, false},
};

START_TEST(kind_follows_provider_and_commands)
{
	const struct row *row = &rows[_i];
	CLEANUP(nd_memory_done) struct nd_memory m = {0};

	nd_sys_enter();
	nd_sys_file(ND_SYS_BUS, "provider", row->provider);
	nd_sys_file(ND_SYS_REGION, "nstype", row->nstype);
	nd_sys_file(ND_SYS_BUS "/nmem0", "commands", row->commands);
	m = read_kind();
	ck_assert_int_eq(m.kind, row->kind);
	ck_assert_int_eq(m.is_cxl, row->is_cxl);
	ck_assert_uint_eq(strv_len(m.modules), 1);
	ck_assert_str_eq(m.modules[0], "nmem0");
	ck_assert_int_eq(m.problem != NULL, row->kind == ND_MEMORY_ODD);
}
END_TEST

START_TEST(area_that_cannot_be_read_is_named)
{
	CLEANUP(nd_memory_done) struct nd_memory m = {0};

	nd_sys_enter();
	nd_sys_file(ND_SYS_REGION, "nstype", "4");
	nd_sys_file(ND_SYS_BUS "/nmem0", "commands", ALL_COMMANDS);
	m = read_kind();
	ck_assert(str_starts(m.problem, "label area of nmem0: open /dev/nmem0"));
}
END_TEST

START_TEST(unknown_region_is_not_found)
{
	CLEANUP(error_freep) struct error *err = NULL;
	struct nd_memory m = {0};

	nd_sys_enter();
	ck_assert_int_lt(nd_kind_read("region7", &m, &err), 0);
	ck_assert_int_eq(err->code, ERR_NOT_FOUND);
}
END_TEST

int main(void)
{
	const char *why = scratch_unavailable();
	Suite *suite = suite_create("pmem/nd_kind");
	TCase *tcase = tcase_create("nd_kind");

	if (why) {
		fprintf(stderr, "SKIP pmem/nd_kind: %s\n", why);
		return SCRATCH_SKIP_STATUS;
	}
	suite_add_tcase(suite, tcase);
	tcase_add_checked_fixture(tcase, scratch_enter, NULL);
	tcase_add_loop_test(tcase, kind_follows_provider_and_commands, 0, ARRAY_SIZE(rows));
	tcase_add_test(tcase, area_that_cannot_be_read_is_named);
	tcase_add_test(tcase, unknown_region_is_not_found);
	return unit_runner_finish(srunner_create(suite));
}
