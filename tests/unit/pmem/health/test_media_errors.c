/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/str.h"
#include "os/blockdev.h"
#include "pmem/health/media_errors.h"
#include "unit/unit.h"

static struct bad_ranges parse(const char *text)
{
	struct bad_ranges b = {0};
	struct error *err = NULL;

	ASSERT_OK(bad_ranges_parse(text, &b, &err));
	return b;
}

START_TEST(list_of_the_kernel_is_read)
{
	CLEANUP(bad_ranges_done) struct bad_ranges b = parse("8 1\n2048 512\n");

	ck_assert_uint_eq(b.n, 2);
	ck_assert_uint_eq(b.list[0].offset_bytes, 4096);
	ck_assert_uint_eq(b.list[0].length_bytes, 512);
	ck_assert_uint_eq(b.list[1].offset_bytes, 1 << 20);
	ck_assert_uint_eq(b.list[1].length_bytes, 256 << 10);
}
END_TEST

START_TEST(empty_list_has_no_ranges)
{
	CLEANUP(bad_ranges_done) struct bad_ranges none = parse("");
	CLEANUP(bad_ranges_done) struct bad_ranges line = parse("\n");

	ck_assert_uint_eq(none.n, 0);
	ck_assert_uint_eq(line.n, 0);
}
END_TEST

START_TEST(text_of_another_form_is_refused)
{
	static const char *const texts[] = {"8", "8 ", " 8", "8 x\n", "8 1 2\n", "8\t1\n",
		"18446744073709551615 1\n", "8 1\n9\n", "-8 1\n"};

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		struct bad_ranges b = {0};
		struct error *err = NULL;

		ASSERT_FAILS(bad_ranges_parse(texts[i], &b, &err), ERR_INTERNAL, "list of bad blocks");
	}
}
END_TEST

/* Lines of 9 bytes, cut at @n_bytes as the kernel cuts them at the end of a page. */
static void fill_page(struct buf *text, size_t n_bytes)
{
	for (unsigned i = 100000; text->len < n_bytes; i += 16)
		buf_addf(text, "%u 8\n", i);
	text->len = n_bytes;
	text->data[n_bytes] = '\0';
}

START_TEST(line_that_the_end_of_a_page_cuts_is_left_out)
{
	size_t page_bytes = (size_t)sysconf(_SC_PAGESIZE);

	for (int cut_in = 0; cut_in < 9; cut_in++) {
		CLEANUP(buf_done) struct buf text = BUF_INIT(2 * page_bytes);
		buf_addf(&text, "1%0*d 8\n", cut_in, 0);
		size_t first = text.len;
		fill_page(&text, page_bytes - 1);
		CLEANUP(bad_ranges_done) struct bad_ranges b = parse(buf_str(&text));
		ck_assert(b.is_cut);
		ck_assert_uint_eq(b.n, 1 + (page_bytes - 1 - first) / 9);
		for (size_t i = 0; i < b.n; i++)
			ck_assert_uint_eq(b.list[i].length_bytes, 8 * 512);
	}
}
END_TEST

START_TEST(list_that_is_cut_is_marked_only_in_devices_with_errors)
{
	CLEANUP(bad_ranges_done) struct bad_ranges b = parse("8 1\n");
	struct media_errors sound = {0};
	struct media_errors e = {0};

	ck_assert(!b.is_cut);
	b.is_cut = true;
	media_errors_add(&sound, &b, 0, 4096, 0);
	ck_assert(!sound.is_cut);
	media_errors_add(&e, &b, 0, 8192, 0);
	ck_assert(e.is_cut);
}
END_TEST

START_TEST(other_text_that_ends_within_a_line_is_refused)
{
	size_t page_bytes = (size_t)sysconf(_SC_PAGESIZE);
	CLEANUP(buf_done) struct buf text = BUF_INIT(2 * page_bytes);
	struct bad_ranges b = {0};
	struct error *err = NULL;

	fill_page(&text, 9 * 10 - 4);
	ASSERT_FAILS(bad_ranges_parse(buf_str(&text), &b, &err), ERR_INTERNAL, "list of bad blocks");
	buf_reset(&text);
	buf_addf(&text, "8 x\n");
	fill_page(&text, page_bytes - 1);
	ASSERT_FAILS(bad_ranges_parse(buf_str(&text), &b, &err), ERR_INTERNAL, "list of bad blocks");
}
END_TEST

START_TEST(device_that_is_gone_is_not_found)
{
	struct bad_ranges b = {0};
	struct error *err = NULL;

	ASSERT_FAILS(bad_ranges_read("/dev/pmem99", &b, &err), ERR_NOT_FOUND, "/dev/pmem99");
}
END_TEST

/* Finds which of the bad sectors 8 to 15 and 100 are in the @n sectors from @start on, which are at sector
 * 1000 of a device. */
static struct media_errors find(uint64_t start, uint64_t n)
{
	CLEANUP(bad_ranges_done) struct bad_ranges b = parse("8 8\n100 1\n");
	struct media_errors e = {0};

	media_errors_add(&e, &b, start * 512, n * 512, 1000 * 512);
	return e;
}

static void assert_one(const struct media_errors *e, uint64_t sector, uint64_t n)
{
	ck_assert_uint_eq(e->n, 1);
	ck_assert_uint_eq(e->list[0].offset_bytes, sector * 512);
	ck_assert_uint_eq(e->list[0].length_bytes, n * 512);
	ck_assert_uint_eq(e->bytes, n * 512);
}

START_TEST(ranges_are_cut_at_the_ends_of_the_part)
{
	struct media_errors e = find(0, 8);
	ck_assert_uint_eq(e.n, 0);
	ck_assert_uint_eq(e.bytes, 0);
	e = find(16, 84);
	ck_assert_uint_eq(e.n, 0);
	e = find(0, 9);
	assert_one(&e, 1008, 1);
	e = find(15, 85);
	assert_one(&e, 1000, 1);
	e = find(10, 2);
	assert_one(&e, 1000, 2);
	e = find(8, 8);
	assert_one(&e, 1000, 8);
	e = find(101, 1000);
	ck_assert_uint_eq(e.n, 0);
	e = find(0, 1000);
	ck_assert_uint_eq(e.n, 2);
	ck_assert_uint_eq(e.list[1].offset_bytes, 1100 * 512);
	ck_assert_uint_eq(e.bytes, 9 * 512);
}
END_TEST

START_TEST(pieces_of_one_range_are_joined)
{
	CLEANUP(bad_ranges_done) struct bad_ranges b = parse("0 512\n512 512\n1024 8\n");
	struct media_errors e = {0};

	media_errors_add(&e, &b, 0, 1 << 20, 0);
	assert_one(&e, 0, 1032);
}
END_TEST

START_TEST(no_more_ranges_are_kept_than_allowed_and_all_are_counted)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT(4096);
	struct media_errors e = {0};

	for (unsigned i = 0; i < MEDIA_ERRORS_MAX + 3; i++)
		buf_addf(&text, "%u 1\n", 2 * i);
	CLEANUP(bad_ranges_done) struct bad_ranges b = parse(buf_str(&text));
	media_errors_add(&e, &b, 0, 1 << 20, 0);
	ck_assert_uint_eq(e.n, MEDIA_ERRORS_MAX);
	ck_assert_uint_eq(e.bytes, (MEDIA_ERRORS_MAX + 3) * 512);
}
END_TEST

#define MAPPED "/dev/mapped"

int __real_stat(const char *path, struct stat *ret);
int __wrap_stat(const char *path, struct stat *ret);
int __wrap_dm_list_segments(dev_t dev, struct dm_segment **ret, size_t *ret_n, struct error **err);

int __wrap_stat(const char *path, struct stat *ret)
{
	if (!str_eq(path, MAPPED))
		return __real_stat(path, ret);
	*ret = (struct stat){.st_mode = S_IFBLK};
	return 0;
}

/* One part on the device 259:1. */
int __wrap_dm_list_segments(dev_t dev, struct dm_segment **ret, size_t *ret_n, struct error **err)
{
	(void)dev;
	(void)err;
	*ret = x_calloc(1, sizeof(**ret));
	**ret = (struct dm_segment){.dev = makedev(259, 1), .length_bytes = 1 << 20};
	*ret_n = 1;
	return 0;
}

START_TEST(list_that_cannot_be_read_counts_only_below_the_device)
{
	struct bad_ranges bad[] = {{.dev = makedev(259, 2), .unknown = true}, {.dev = makedev(259, 1)}};
	struct media_errors e = {0};
	struct error *err = NULL;

	ASSERT_OK(media_errors_of_mapped(MAPPED, bad, ARRAY_SIZE(bad), &e, &err));
	ck_assert(!e.unknown);
	bad[1].unknown = true;
	ASSERT_OK(media_errors_of_mapped(MAPPED, bad, ARRAY_SIZE(bad), &e, &err));
	ck_assert(e.unknown);
}
END_TEST

UNIT_MAIN("pmem/media_errors", list_of_the_kernel_is_read, empty_list_has_no_ranges,
	text_of_another_form_is_refused, line_that_the_end_of_a_page_cuts_is_left_out,
	list_that_is_cut_is_marked_only_in_devices_with_errors, other_text_that_ends_within_a_line_is_refused,
	list_that_cannot_be_read_counts_only_below_the_device, device_that_is_gone_is_not_found,
	ranges_are_cut_at_the_ends_of_the_part, pieces_of_one_range_are_joined,
	no_more_ranges_are_kept_than_allowed_and_all_are_counted)
