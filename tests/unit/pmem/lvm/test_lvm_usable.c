/* SPDX-License-Identifier: Apache-2.0 */
#include "pmem/lvm/lvm_usable.h"

#include "base/mem.h"
#include "base/str.h"
#include "unit/unit.h"

#define EXTENT 4096
#define START  1024
#define MANY   5000

/* A group of two PVs: extents 0 to 9 and 20 to 29 of the first are free, and 5 to 8 of the second. */
static struct lvm_free pieces[] = {{(char[]){"/dev/pmem0"}, START, 0, 10},
	{(char[]){"/dev/pmem1"}, START, 5, 4}, {(char[]){"/dev/pmem0"}, START, 20, 10}};
static struct lvm_pv pvs[] = {{.path = (char[]){"/dev/pmem0"}, .vg_uuid = (char[]){"u"}},
	{.path = (char[]){"/dev/pmem1"}, .vg_uuid = (char[]){"u"}},
	{.path = (char[]){"/dev/pmem2"}, .vg_uuid = (char[]){"another"}}};
static const struct lvm_report report = {
	.pvs = pvs, .n_pvs = ARRAY_SIZE(pvs), .free = pieces, .n_free = ARRAY_SIZE(pieces)};

static char name[] = "g";

static struct lvm_vg find(const struct bad_ranges *bad)
{
	struct lvm_vg vg = {
		.name = name, .uuid = pvs[0].vg_uuid, .extent_bytes = EXTENT, .free_bytes = 24 * EXTENT};

	lvm_usable_find(&report, bad, &vg);
	ck_assert_uint_eq(vg.free_bytes + vg.bad_bytes, 24 * EXTENT);
	return vg;
}

static char *text_of(const struct lvm_vg *vg)
{
	const char *argv[LVM_WORDS_MAX + 1] = {"x"};
	CLEANUP(error_freep) struct error *err = NULL;
	char *text = x_strdup("");

	ASSERT_OK(lvm_usable_add(vg, argv, &err));
	for (size_t i = 1; argv[i]; i++) {
		char *longer = x_asprintf("%s%s%s", text, i > 1 ? " " : "", argv[i]);
		free(text);
		text = longer;
	}
	return text;
}

static const struct {
	struct media_error first[3]; /* bad blocks of the first PV, in bytes from its extents on */
	bool is_cut;
	const char *text;
	uint64_t usable;
} cases[] = {
	{{{0}}, false, "", 24},
	/* within, at the end of and over two extents; in what is not free */
	{{{2 * EXTENT + 512, 512}}, false, "/dev/pmem0:0-1:3-9:20-29 /dev/pmem1:5-8", 23},
	{{{3 * EXTENT - 512, 512}}, false, "/dev/pmem0:0-1:3-9:20-29 /dev/pmem1:5-8", 23},
	{{{3 * EXTENT - 512, 1024}}, false, "/dev/pmem0:0-1:4-9:20-29 /dev/pmem1:5-8", 22},
	{{{0, 1}, {9 * EXTENT, 1}, {25 * EXTENT, 5 * EXTENT}}, false, "/dev/pmem0:1-8:20-24 /dev/pmem1:5-8",
		17},
	{{{12 * EXTENT, 512}}, false, "", 24},
	/* not in order, and one within another */
	{{{4 * EXTENT, 1}, {1 * EXTENT, 5 * EXTENT}, {2 * EXTENT, 1}}, false,
		"/dev/pmem0:0-0:6-9:20-29 /dev/pmem1:5-8", 19},
	/* more than is listed */
	{{{4 * EXTENT, 1}}, true, "/dev/pmem0:0-3 /dev/pmem1:5-8", 8},
};

START_TEST(extents_with_bad_blocks_are_left_out)
{
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct media_error list[ARRAY_SIZE(cases[i].first)];
		struct bad_ranges bad[ARRAY_SIZE(pvs)] = {{.list = list, .is_cut = cases[i].is_cut}};

		for (size_t k = 0; k < ARRAY_SIZE(list) && cases[i].first[k].length_bytes > 0; k++) {
			list[bad->n] = cases[i].first[k];
			list[bad->n++].offset_bytes += START;
		}
		struct lvm_vg vg = find(bad);
		CLEANUP(free_charp) char *text = text_of(&vg);
		ck_assert_str_eq(text, cases[i].text);
		ck_assert_uint_eq(vg.free_bytes, cases[i].usable * EXTENT);
		ck_assert_int_eq(vg.is_limited, *text != '\0');
		strv_free(vg.usable);
	}
}
END_TEST

START_TEST(no_usable_extent_is_not_all_of_them)
{
	struct media_error all = {0, UINT32_MAX};
	const struct bad_ranges bad[ARRAY_SIZE(pvs)] = {{.list = &all, .n = 1}, {.list = &all, .n = 1}};
	const char *argv[LVM_WORDS_MAX + 1] = {"x"};
	struct error *err = NULL;
	struct lvm_vg vg = find(bad);

	ck_assert_uint_eq(vg.free_bytes, 0);
	ASSERT_FAILS(lvm_usable_add(&vg, argv, &err), ERR_EXHAUSTED,
		"all free space of volume group g has media errors");
}
END_TEST

/* Each second extent is bad. */
START_TEST(what_a_command_cannot_name_is_not_free)
{
	struct media_error *list = x_calloc(MANY, sizeof(*list));
	struct lvm_free piece = {pieces[0].pv_path, START, 0, 2 * MANY};
	const struct lvm_report many = {.pvs = pvs, .n_pvs = ARRAY_SIZE(pvs), .free = &piece, .n_free = 1};
	const struct bad_ranges bad[ARRAY_SIZE(pvs)] = {{.list = list, .n = MANY}};
	struct lvm_vg vg = {
		.uuid = pvs[0].vg_uuid, .extent_bytes = EXTENT, .free_bytes = 2ULL * MANY * EXTENT};
	uint64_t named = 0;

	for (size_t i = 0; i < MANY; i++)
		list[i] = (struct media_error){START + 2 * i * EXTENT, 1};
	lvm_usable_find(&many, bad, &vg);
	CLEANUP(free_charp) char *text = text_of(&vg);
	for (const char *c = text; *c; c++)
		named += *c == ':';
	ck_assert_uint_gt(named, 100);
	ck_assert_uint_lt(named, MANY);
	ck_assert_uint_eq(vg.free_bytes, named * EXTENT);
	ck_assert_uint_eq(vg.bad_bytes, (2 * MANY - named) * EXTENT);
	strv_free(vg.usable);
	free(list);
}
END_TEST

UNIT_MAIN("lvm_usable", extents_with_bad_blocks_are_left_out, no_usable_extent_is_not_all_of_them,
	what_a_command_cannot_name_is_not_free)
