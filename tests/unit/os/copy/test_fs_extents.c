/* SPDX-License-Identifier: Apache-2.0 */
#include "os/copy/fs_extents.h"

#include <linux/fiemap.h>
#include <linux/fs.h>
#include <linux/fsmap.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "base/mem.h"
#include "unit/os/copy/fixture.h"

#define MAX 8

static void check_list(const struct fs_extents *x)
{
	uint64_t total = 0;

	for (size_t i = 0; i < x->n; i++) {
		ck_assert_uint_gt(x->list[i].length_bytes, 0);
		total += x->list[i].length_bytes;
		if (i > 0)
			ck_assert_uint_gt(
				x->list[i].at_bytes, x->list[i - 1].at_bytes + x->list[i - 1].length_bytes);
	}
	ck_assert_uint_eq(total, x->total_bytes);
}

START_TEST(ranges_that_touch_or_overlap_are_one_extent)
{
	CLEANUP(fs_extents_done) struct fs_extents x = FS_EXTENTS_INIT;

	fs_extents_add(&x, 0, 0, MAX);
	ck_assert_uint_eq(x.n, 0);
	fs_extents_add(&x, 0, 4096, MAX);
	fs_extents_add(&x, 4096, 8192, MAX);
	fs_extents_add(&x, 4096, 4097, MAX);
	fs_extents_add(&x, 8000, 12288, MAX);
	ck_assert_uint_eq(x.n, 1);
	ck_assert_uint_eq(x.total_bytes, 12288);
	fs_extents_add(&x, 12289, 12290, MAX);
	ck_assert_uint_eq(x.n, 2);
	ck_assert_uint_eq(x.list[1].at_bytes, 12289);
	ck_assert_uint_eq(x.list[1].length_bytes, 1);
	check_list(&x);
}
END_TEST

START_TEST(a_full_list_closes_its_smallest_gaps)
{
	CLEANUP(fs_extents_done) struct fs_extents x = FS_EXTENTS_INIT;
	uint64_t at = 0;

	/* the gaps are of 1, 2, 4 ... 64 KiB */
	for (unsigned i = 0; i < MAX; i++) {
		fs_extents_add(&x, at, at + 512, MAX);
		at += 512 + (KIB(1) << i);
	}
	ck_assert_uint_eq(x.n, MAX);
	ck_assert_uint_eq(x.total_bytes, MAX * 512);
	ck_assert_uint_eq(x.min_gap_bytes, 0);
	fs_extents_add(&x, at, at + 512, MAX);
	check_list(&x);
	ck_assert_uint_eq(x.min_gap_bytes, KIB(16));
	ck_assert_uint_eq(x.n, 5);
	ck_assert_uint_eq(x.list[0].length_bytes, 5 * 512 + KIB(1 + 2 + 4 + 8));
	fs_extents_add(&x, at + KIB(15), at + KIB(15) + 512, MAX);
	ck_assert_uint_eq(x.n, 5);
	check_list(&x);
}
END_TEST

START_TEST(a_whole_device_is_one_extent)
{
	CLEANUP(fs_extents_done) struct fs_extents x;

	fs_extents_whole(MIB(4), &x);
	ck_assert_uint_eq(x.n, 1);
	ck_assert_uint_eq(x.list[0].at_bytes, 0);
	ck_assert_uint_eq(x.total_bytes, MIB(4));
}
END_TEST

static bool covers(const struct fs_extents *x, uint64_t at, uint64_t length)
{
	for (size_t i = 0; i < x->n; i++) {
		const struct fs_extent *e = &x->list[i];

		if (e->at_bytes <= at && at + length <= e->at_bytes + e->length_bytes)
			return true;
	}
	return false;
}

/* Where the file system says that the file is. */
static void check_file_is_covered(int dir_fd, const char *name, const struct fs_extents *x)
{
	enum { MAPPED_MAX = 256 };
	CLEANUP(free_charp)
	char *memory = x_calloc(1, sizeof(struct fiemap) + MAPPED_MAX * sizeof(struct fiemap_extent));
	struct fiemap *map = (struct fiemap *)(void *)memory;
	CLEANUP(fd_closep) int fd = openat(dir_fd, name, O_RDONLY | O_CLOEXEC);

	map->fm_length = UINT64_MAX;
	map->fm_extent_count = MAPPED_MAX;
	ck_assert_int_eq(ioctl(fd, FS_IOC_FIEMAP, map), 0);
	ck_assert_uint_gt(map->fm_mapped_extents, 0);
	for (unsigned i = 0; i < map->fm_mapped_extents; i++)
		ck_assert(covers(x, map->fm_extents[i].fe_physical, map->fm_extents[i].fe_length));
}

START_TEST(what_files_use_is_covered_and_what_is_free_is_not)
{
	for (size_t i = 0; fixture_types[i]; i++) {
		CLEANUP(error_freep) struct error *err = NULL;
		CLEANUP(fixture_disk_done)
		struct fixture_disk d = fixture_make(fixture_types[i], "from");
		CLEANUP(fs_extents_done) struct fs_extents empty = FS_EXTENTS_INIT;
		CLEANUP(fs_extents_done) struct fs_extents used = FS_EXTENTS_INIT;
		CLEANUP(fs_extents_done) struct fs_extents clipped = FS_EXTENTS_INIT;

		ASSERT_OK(fs_extents_read(d.dir_fd, d.size_bytes, &empty, &err));
		check_list(&empty);
		fixture_write(d.dir_fd, "a", 1, MIB(10));
		fixture_write(d.dir_fd, "b", 2, MIB(10));
		fixture_write(d.dir_fd, "c", 3, MIB(10));
		ck_assert_int_eq(unlinkat(d.dir_fd, "b", 0), 0);
		/* xfs frees blocks of deleted files later; freezing it waits for that */
		ck_assert_int_eq(ioctl(d.dir_fd, FIFREEZE, 0), 0);
		int rc = fs_extents_read(d.dir_fd, d.size_bytes, &used, &err);
		ck_assert_int_eq(ioctl(d.dir_fd, FITHAW, 0), 0);
		ASSERT_OK(rc);
		check_list(&used);
		ck_assert(covers(&used, 0, 4096));
		check_file_is_covered(d.dir_fd, "a", &used);
		check_file_is_covered(d.dir_fd, "c", &used);
		ck_assert_uint_ge(used.total_bytes, empty.total_bytes + MIB(20));
		ck_assert_uint_lt(used.total_bytes, empty.total_bytes + MIB(25));
		ck_assert_uint_lt(used.total_bytes, d.size_bytes / 2);

		ASSERT_OK(fs_extents_read(d.dir_fd, MIB(1), &clipped, &err));
		check_list(&clipped);
		for (size_t k = 0; k < clipped.n; k++)
			ck_assert_uint_le(clipped.list[k].at_bytes + clipped.list[k].length_bytes, MIB(1));
	}
}
END_TEST

/* Records that the replaced ioctl() returns in place of the kernel's, two per call. */
static const struct fsmap *records;
static uint32_t n_records;
static uint32_t n_given;

/* As the kernel encodes it for programs (new_encode_dev() of its linux/kdev_t.h), of a file system without a
 * device. */
static uint32_t scratch_device(void)
{
	struct stat st;

	ck_assert_int_eq(stat(SCRATCH, &st), 0);
	ck_assert_uint_eq(major(st.st_dev), 0);
	uint32_t number = minor(st.st_dev);
	return (number & 0xff) | (number & ~0xffU) << 12;
}

int __real_ioctl(int fd, unsigned long request, ...);
int __wrap_ioctl(int fd, unsigned long request, ...);

int __wrap_ioctl(int fd, unsigned long request, ...)
{
	va_list ap;

	va_start(ap, request);
	void *argument = va_arg(ap, void *);
	va_end(ap);
	if (request != FS_IOC_GETFSMAP || !records)
		return __real_ioctl(fd, request, argument);

	struct fsmap_head *head = argument;
	if (n_given > 0)
		ck_assert(memcmp(&head->fmh_keys[0], &records[n_given - 1], sizeof(*records)) == 0);
	else
		ck_assert_uint_eq(head->fmh_keys[0].fmr_device, scratch_device());
	ck_assert_uint_eq(head->fmh_keys[1].fmr_device, scratch_device());
	ck_assert_uint_eq(head->fmh_keys[1].fmr_length, 0);
	head->fmh_entries = n_records - n_given < 2 ? n_records - n_given : 2;
	memcpy(head->fmh_recs, records + n_given, head->fmh_entries * sizeof(*records));
	n_given += head->fmh_entries;
	return 0;
}

#define USED(at, end) {.fmr_owner = 1, .fmr_physical = KIB(at), .fmr_length = KIB((end) - (at))}
#define FREE(at, end)                                                                                        \
	{.fmr_flags = FMR_OF_SPECIAL_OWNER,                                                                  \
		.fmr_owner = FMR_OWN_FREE,                                                                   \
		.fmr_physical = KIB(at),                                                                     \
		.fmr_length = KIB((end) - (at))}

static void check_extents_of(
	const struct fsmap *list, uint32_t n, const struct fs_extent *wanted, size_t n_wanted)
{
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(fs_extents_done) struct fs_extents x = FS_EXTENTS_INIT;
	CLEANUP(fd_closep) int fd = open(SCRATCH, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	records = list;
	n_records = n;
	n_given = 0;
	ASSERT_OK(fs_extents_read(fd, KIB(100), &x, &err));
	ck_assert_uint_eq(n_given, n);
	check_list(&x);
	ck_assert_uint_eq(x.n, n_wanted);
	for (size_t i = 0; i < n_wanted; i++) {
		ck_assert_uint_eq(x.list[i].at_bytes, KIB(wanted[i].at_bytes));
		ck_assert_uint_eq(x.list[i].length_bytes, KIB(wanted[i].length_bytes));
	}
}

START_TEST(records_are_understood)
{
	/* an inode has the number of the special owner of free space; files share blocks */
	static const struct fsmap shared[] = {
		FREE(0, 4), USED(4, 8), USED(4, 12), USED(6, 8), FREE(12, 16), USED(16, 20), FREE(20, 100)};
	static const struct fs_extent of_shared[] = {{4, 8}, {16, 4}};
	/* before the first one, between two, and beyond the device */
	static const struct fsmap missing[] = {FREE(4, 8), FREE(12, 16), USED(90, 200)};
	static const struct fs_extent of_missing[] = {{0, 4}, {8, 4}, {16, 84}};
	static const struct fsmap all_free[] = {FREE(0, 100)};
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(fd_closep) int fd = open(SCRATCH, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct fs_extents x;

	check_extents_of(shared, ARRAY_SIZE(shared), of_shared, ARRAY_SIZE(of_shared));
	check_extents_of(missing, ARRAY_SIZE(missing), of_missing, ARRAY_SIZE(of_missing));
	check_extents_of(all_free, 1, NULL, 0);
	n_records = 0;
	n_given = 0;
	ASSERT_FAILS(fs_extents_read(fd, KIB(100), &x, &err), ERR_INTERNAL, "none of its blocks");
}
END_TEST

/* More records than are read at once. */
START_TEST(a_file_system_in_many_pieces_is_read_to_its_end)
{
	for (size_t i = 0; fixture_types[i]; i++) {
		CLEANUP(error_freep) struct error *err = NULL;
		CLEANUP(fixture_disk_done)
		struct fixture_disk d = fixture_make(fixture_types[i], "from");
		CLEANUP(fs_extents_done) struct fs_extents x = FS_EXTENTS_INIT;
		CLEANUP(fd_closep)
		int fd = openat(d.dir_fd, "holes", O_RDWR | O_CREAT | O_CLOEXEC, 0600);

		ck_assert_int_eq(fallocate(fd, 0, 0, (off_t)MIB(40)), 0);
		for (uint64_t at = 0; at < MIB(40); at += KIB(8))
			ck_assert_int_eq(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)at,
						 (off_t)KIB(4)),
				0);
		fixture_write(d.dir_fd, "last", 1, MIB(20));
		ck_assert_int_eq(syncfs(d.dir_fd), 0);
		ASSERT_OK(fs_extents_read(d.dir_fd, d.size_bytes, &x, &err));
		check_list(&x);
		ck_assert_uint_gt(x.n, 4000);
		check_file_is_covered(d.dir_fd, "last", &x);
	}
}
END_TEST

START_TEST(what_has_no_map_says_so)
{
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(fd_closep) int fd = open(SCRATCH, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct fs_extents x;

	ASSERT_FAILS(fs_extents_read(fd, MIB(1), &x, &err), ERR_UNIMPLEMENTED, "which blocks");
}
END_TEST

SCRATCH_MAIN("os/copy/fs_extents", ranges_that_touch_or_overlap_are_one_extent,
	a_full_list_closes_its_smallest_gaps, a_whole_device_is_one_extent,
	what_files_use_is_covered_and_what_is_free_is_not, records_are_understood,
	a_file_system_in_many_pieces_is_read_to_its_end, what_has_no_map_says_so)
