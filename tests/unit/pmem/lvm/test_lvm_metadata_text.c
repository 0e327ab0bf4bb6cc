/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of the parser for LVM's metadata text, which describes a volume group. */
#include "pmem/lvm/lvm_metadata_text.h"

#include <fcntl.h>

#include "base/buf.h"
#include "base/str.h"
#include "os/file.h"
#include "unit/unit.h"

static void assert_text(const char *file, struct lvm_text *ret)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT(1U << 20);
	struct error *err = NULL;

	ASSERT_OK(file_read(AT_FDCWD, file, &text, &err));
	ASSERT_OK(lvm_text_parse(buf_span(&text), ret, &err));
	ck_assert_str_eq(ret->group, "ndbus0region0fsdax");
	ck_assert_str_eq(ret->group_uuid, "aaaaaa-bbbb-cccc-dddd-eeee-ffff-gggggg");
	ck_assert_uint_eq(ret->seqno, 7);
	ck_assert_uint_eq(ret->written_s, 1795683600);
	ck_assert_uint_eq(ret->n_pvs, 1);
	ck_assert_uint_eq(ret->pvs[0].device_bytes, 512ULL << 20);
	ck_assert_uint_eq(ret->pvs[0].data_offset_bytes, 2ULL << 20);
	ck_assert_uint_eq(ret->pvs[0].data_end_bytes, 510ULL << 20);
	ck_assert_ptr_eq(lvm_text_pv(ret, "000000-bbbb-cccc-dddd-eeee-ffff-iiiiii"), &ret->pvs[0]);
	ck_assert_ptr_null(lvm_text_pv(ret, "other"));
	ck_assert_uint_eq(ret->n_volumes, 1);
	ck_assert_str_eq(ret->volumes[0].name, "one");
}

START_TEST(copy_and_area_say_the_same)
{
	CLEANUP(lvm_text_done) struct lvm_text copy = {0};
	CLEANUP(lvm_text_done) struct lvm_text area = {0};

	assert_text(TEST_DATA "/fuzz/lvm_metadata/copy", &copy);
	assert_text(TEST_DATA "/fuzz/lvm_metadata/area", &area);
}
END_TEST

START_TEST(what_describes_no_group_is_refused)
{
	static const struct {
		const char *text, *why;
	} cases[] = {{"", "no volume group"}, {"version = 1", "no volume group"},
		{"g { id = \"u\" }", "no volume group"}, {"g { id = \"u\" seqno = 1", "truncated"},
		{"g { id = \"u", "malformed"}, {"g { id = \"u\" seqno = -1 }", "-1"},
		{"g { seqno = [ 1", "truncated"}, {"}", "malformed"},
		{"g { id = \"u\" seqno = 1 } h { id = \"v\" seqno = 2 }", "malformed"},
		{"g { id = \"u\" seqno = 1 physical_volumes { pv0 { pe_start = 1 } } }", "without a UUID"},
		{"g { id = \"u\" seqno = 1 extent_size = 18446744073709551615 physical_volumes { pv0 { id = \"p\" "
		 "pe_count = 2 } } }",
			"possible size"}};
	CLEANUP(lvm_text_done) struct lvm_text t = {0};
	struct error *err = NULL;

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		ASSERT_FAILS(
			lvm_text_parse(span_of(cases[i].text), &t, &err), ERR_INVALID_ARGUMENT, cases[i].why);
}
END_TEST

UNIT_MAIN("lvm_metadata_text", copy_and_area_say_the_same, what_describes_no_group_is_refused)
