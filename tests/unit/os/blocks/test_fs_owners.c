/* SPDX-License-Identifier: Apache-2.0 */
#include "os/blocks/fs_owners.h"

#include <linux/fiemap.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/str.h"
#include "os/blocks/fs_map.h"
#include "unit/os/copy/fixture.h"

#define PIECES     1000
#define DEEP       3000
#define PATIENT_NS (60 * NS_PER_S)

static const struct fs_owners_bound *patient(void)
{
	static struct fs_owners_bound bound;

	bound = (struct fs_owners_bound){.max_files = 1000000, .deadline_ns = clock_ns() + PATIENT_NS};
	return &bound;
}

static struct fs_owners find(const struct fixture_disk *d, const struct fs_part *p, size_t n)
{
	CLEANUP(error_freep) struct error *err = NULL;
	struct fs_owners o = {0};

	ASSERT_OK(fs_owners_find(d->dir_fd, p, n, patient(), &o, &err));
	return o;
}

/* Returns the offset in the device at which byte @offset of the file is. */
static uint64_t place_of(int fd, uint64_t offset)
{
	union {
		struct fiemap head;
		uint8_t room[sizeof(struct fiemap) + sizeof(struct fiemap_extent)];
	} u = {.head = {.fm_start = offset, .fm_length = 1, .fm_extent_count = 1}};

	ck_assert_int_eq(ioctl(fd, FS_IOC_FIEMAP, &u), 0);
	ck_assert_uint_eq(u.head.fm_mapped_extents, 1);
	return u.head.fm_extents[0].fe_physical + offset - u.head.fm_extents[0].fe_logical;
}

static uint64_t place_in(int dir_fd, const char *name, uint64_t offset)
{
	CLEANUP(fd_closep) int fd = openat(dir_fd, name, O_RDONLY | O_CLOEXEC);

	ck_assert_int_ge(fd, 0);
	return place_of(fd, offset);
}

static int make_folder(int dir_fd, const char *name)
{
	ck_assert_int_eq(mkdirat(dir_fd, name, 0700), 0);
	int fd = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	ck_assert_int_ge(fd, 0);
	return fd;
}

/* "folder/below/file" of 64 KiB. Return: where its byte 8192 is. */
static uint64_t make_tree(const struct fixture_disk *d)
{
	CLEANUP(fd_closep) int folder = make_folder(d->dir_fd, "folder");
	CLEANUP(fd_closep) int below = make_folder(folder, "below");

	fixture_write(d->dir_fd, "other", 1, KIB(64));
	fixture_write(below, "file", 2, KIB(64));
	ck_assert_int_eq(syncfs(d->dir_fd), 0);
	return place_in(below, "file", 8192);
}

static void assert_is_file(const struct fs_owner *o, const char *path, uint64_t offset, uint64_t length)
{
	ck_assert_int_eq(o->kind, FS_OWNER_FILE);
	ck_assert_str_eq(o->path, path);
	ck_assert_uint_eq(o->file_offset, offset);
	ck_assert_uint_eq(o->length_bytes, length);
}

START_TEST(file_of_a_part_is_found_with_its_place)
{
	for (const char *const *type = fixture_types; *type; type++) {
		CLEANUP(fixture_disk_done) struct fixture_disk d = fixture_make(*type, *type);
		const struct fs_part part = {make_tree(&d) + 512, 1024};
		CLEANUP(fs_owners_done) struct fs_owners o = find(&d, &part, 1);

		ck_assert_uint_eq(o.n, 1);
		assert_is_file(&o.list[0], "folder/below/file", 8192 + 512, 1024);
		ck_assert_uint_eq(o.list[0].at_bytes, part.at_bytes);
		ck_assert(!o.list[0].unwritten);
		ck_assert_ptr_null(o.bound);
		ck_assert_uint_eq(o.n_skipped, 0);
	}
}
END_TEST

START_TEST(parts_of_several_files_are_distinguished)
{
	for (const char *const *type = fixture_types; *type; type++) {
		CLEANUP(fixture_disk_done) struct fixture_disk d = fixture_make(*type, *type);
		uint64_t second = make_tree(&d);
		uint64_t first = place_in(d.dir_fd, "other", 0);
		bool swapped = first > second;
		struct fs_part parts[] = {{first, 4096}, {second, 4096}};

		if (swapped) {
			parts[0].at_bytes = second;
			parts[1].at_bytes = first;
		}
		CLEANUP(fs_owners_done) struct fs_owners o = find(&d, parts, ARRAY_SIZE(parts));
		ck_assert_uint_eq(o.n, 2);
		assert_is_file(&o.list[swapped], "other", 0, 4096);
		assert_is_file(&o.list[!swapped], "folder/below/file", 8192, 4096);
	}
}
END_TEST

/* A part that is free, and one of the file system itself. */
static struct fs_part part_of(const struct fixture_disk *d, enum fs_map_kind kind)
{
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(fs_map_closep) struct fs_map *map = NULL;
	struct fs_map_record r;

	ASSERT_OK(fs_map_open(d->dir_fd, &map, &err));
	while (fs_map_next(map, &r, &err) > 0) {
		if (r.kind == kind && r.length_bytes >= 4096)
			return (struct fs_part){r.at_bytes, 4096};
	}
	ck_abort_msg("%s has nothing of kind %d", d->fstype, kind);
}

static void assert_needs_no_walk(
	const struct fixture_disk *d, enum fs_map_kind kind, enum fs_owner_kind wanted)
{
	const struct fs_part part = part_of(d, kind);
	CLEANUP(fs_owners_done) struct fs_owners o = find(d, &part, 1);

	ck_assert_uint_eq(o.n, 1);
	ck_assert_int_eq(o.list[0].kind, wanted);
	ck_assert_uint_eq(o.n_files, 0);
}

/* An xfs without a reverse map says only what is free. */
START_TEST(free_space_and_metadata_need_no_walk)
{
	for (const char *const *type = fixture_types; *type; type++) {
		CLEANUP(fixture_disk_done) struct fixture_disk d = fixture_make(*type, *type);

		assert_needs_no_walk(&d, FS_MAP_FREE, FS_OWNER_FREE);
		if (str_eq(*type, "ext4"))
			assert_needs_no_walk(&d, FS_MAP_METADATA, FS_OWNER_METADATA);
	}
}
END_TEST

START_TEST(directory_of_ext4_is_found)
{
	CLEANUP(fixture_disk_done) struct fixture_disk d = fixture_make("ext4", "ext4");

	make_tree(&d);
	const struct fs_part part = {place_in(d.dir_fd, "folder/below", 0), 512};
	CLEANUP(fs_owners_done) struct fs_owners o = find(&d, &part, 1);
	ck_assert_uint_eq(o.n, 1);
	ck_assert_int_eq(o.list[0].kind, FS_OWNER_DIRECTORY);
	ck_assert_str_eq(o.list[0].path, "folder/below");
}
END_TEST

static bool is_unfound(const struct fs_owners *o)
{
	return o->n == 1 && (o->list[0].kind == FS_OWNER_UNKNOWN || o->list[0].kind == FS_OWNER_INODE);
}

START_TEST(walk_ends_at_its_bounds)
{
	for (const char *const *type = fixture_types; *type; type++) {
		CLEANUP(error_freep) struct error *err = NULL;
		CLEANUP(fixture_disk_done) struct fixture_disk d = fixture_make(*type, *type);
		CLEANUP(fs_owners_done) struct fs_owners few = {0};
		CLEANUP(fs_owners_done) struct fs_owners late = {0};
		const struct fs_owners_bound few_files = {2, clock_ns() + PATIENT_NS};
		const struct fs_owners_bound no_time = {1000000, clock_ns()};
		const struct fs_part part = {make_tree(&d), 4096};

		ASSERT_OK(fs_owners_find(d.dir_fd, &part, 1, &few_files, &few, &err));
		ck_assert(is_unfound(&few));
		ck_assert_str_eq(few.bound, "the number of files");
		ck_assert_uint_eq(few.n_files, 2);
		ASSERT_OK(fs_owners_find(d.dir_fd, &part, 1, &no_time, &late, &err));
		ck_assert(is_unfound(&late));
		ck_assert_str_eq(late.bound, "the time");
		ck_assert_uint_eq(late.n_files, 0);
	}
}
END_TEST

/* A file that is deleted and open has no name; a walk that is complete says so. */
START_TEST(deleted_file_is_not_found_and_nothing_was_left_out)
{
	for (const char *const *type = fixture_types; *type; type++) {
		CLEANUP(fixture_disk_done) struct fixture_disk d = fixture_make(*type, *type);
		const struct fs_part part = {make_tree(&d), 4096};
		CLEANUP(fd_closep) int fd = openat(d.dir_fd, "folder/below/file", O_RDONLY | O_CLOEXEC);

		ck_assert_int_ge(fd, 0);
		ck_assert_int_eq(unlinkat(d.dir_fd, "folder/below/file", 0), 0);
		CLEANUP(fs_owners_done) struct fs_owners o = find(&d, &part, 1);
		ck_assert(is_unfound(&o));
		ck_assert_ptr_null(o.bound);
		ck_assert_uint_eq(o.n_skipped, 0);
	}
}
END_TEST

START_TEST(last_of_many_extents_is_found_and_unwritten_ones_are_marked)
{
	for (const char *const *type = fixture_types; *type; type++) {
		CLEANUP(fixture_disk_done) struct fixture_disk d = fixture_make(*type, *type);
		CLEANUP(fd_closep)
		int fd = openat(d.dir_fd, "pieces", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
		uint64_t last = (uint64_t)(PIECES - 1) * KIB(8);

		ck_assert_int_eq(fallocate(fd, 0, 0, (off_t)KIB(8) * PIECES), 0);
		for (uint64_t i = 0; i < PIECES; i++)
			ck_assert_int_eq(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
						 (off_t)(i * KIB(8) + KIB(4)), (off_t)KIB(4)),
				0);
		ck_assert_int_eq(fsync(fd), 0);
		const struct fs_part part = {place_of(fd, last), 4096};
		CLEANUP(fs_owners_done) struct fs_owners o = find(&d, &part, 1);
		ck_assert_uint_eq(o.n, 1);
		assert_is_file(&o.list[0], "pieces", last, 4096);
		ck_assert(o.list[0].unwritten);
	}
}
END_TEST

/* The walk finds files below a directory on which another file system is mounted, and does not enter that
 * one; it does not follow links. */
START_TEST(walk_stays_in_the_file_system)
{
	for (const char *const *type = fixture_types; *type; type++) {
		CLEANUP(fixture_disk_done) struct fixture_disk d = fixture_make(*type, *type);
		const struct fs_part part = {make_tree(&d), 4096};
		CLEANUP(free_charp) char *folder = x_asprintf("%s/folder", d.mount);

		ck_assert_int_eq(symlinkat("/", d.dir_fd, "root"), 0);
		ck_assert_int_eq(symlinkat(".", d.dir_fd, "itself"), 0);
		ck_assert_int_eq(mkfifoat(d.dir_fd, "pipe", 0600), 0);
		ck_assert_int_eq(mount("none", folder, "tmpfs", 0, NULL), 0);
		CLEANUP(fs_owners_done) struct fs_owners o = find(&d, &part, 1);
		ck_assert_int_eq(umount(folder), 0);
		ck_assert_uint_eq(o.n, 1);
		assert_is_file(&o.list[0], "folder/below/file", 8192, 4096);
		ck_assert_uint_le(o.n_files, 6);
	}
}
END_TEST

static struct stat stat_of(const struct fixture_disk *d, const char *name)
{
	struct stat st;

	ck_assert_int_eq(fstatat(d->dir_fd, name, &st, AT_SYMLINK_NOFOLLOW), 0);
	return st;
}

START_TEST(nothing_is_changed)
{
	static const char *const names[] = {"folder", "folder/below", "folder/below/file"};
	const struct timespec times[2] = {{.tv_sec = 1000}, {.tv_sec = 2000}};

	for (const char *const *type = fixture_types; *type; type++) {
		CLEANUP(fixture_disk_done) struct fixture_disk d = fixture_make(*type, *type);
		struct stat before[ARRAY_SIZE(names)];

		ck_assert_int_eq(mount(NULL, d.mount, NULL, MS_REMOUNT | MS_STRICTATIME, NULL), 0);
		const struct fs_part part = {make_tree(&d), 4096};
		for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
			ck_assert_int_eq(utimensat(d.dir_fd, names[i], times, 0), 0);
			before[i] = stat_of(&d, names[i]);
		}
		CLEANUP(fs_owners_done) struct fs_owners o = find(&d, &part, 1);
		ck_assert_uint_eq(o.n, 1);
		for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
			struct stat now = stat_of(&d, names[i]);

			ck_assert_mem_eq(&now.st_atim, &before[i].st_atim, sizeof(now.st_atim));
			ck_assert_mem_eq(&now.st_ctim, &before[i].st_ctim, sizeof(now.st_ctim));
		}
	}
}
END_TEST

/* Directories whose path is longer than the kernel takes are left out, which the result says. */
START_TEST(what_is_too_deep_is_left_out)
{
	for (const char *const *type = fixture_types; *type; type++) {
		CLEANUP(fixture_disk_done) struct fixture_disk d = fixture_make(*type, *type);
		int fd = fcntl(d.dir_fd, F_DUPFD_CLOEXEC, 0);

		for (unsigned i = 0; i < DEEP; i++) {
			int below = make_folder(fd, "d");

			close(fd);
			fd = below;
		}
		fixture_write(fd, "file", 1, KIB(64));
		const struct fs_part part = {place_in(fd, "file", 0), 4096};
		close(fd);
		CLEANUP(fs_owners_done) struct fs_owners o = find(&d, &part, 1);
		ck_assert(is_unfound(&o));
		ck_assert_uint_eq(o.n_skipped, 1);
		ck_assert_ptr_null(o.bound);
	}
}
END_TEST

/* The list is bounded, however many names are found: files of one block each, of which every second one
 * counts. */
START_TEST(more_owners_than_are_kept_are_cut)
{
	CLEANUP(fixture_disk_done) struct fixture_disk d = fixture_make("ext4", "ext4");

	for (unsigned i = 0; i < 2 * FS_OWNERS_MAX; i++) {
		CLEANUP(free_charp) char *name = x_asprintf("file%u", i);

		fixture_write(d.dir_fd, name, 1, KIB(4));
	}
	const struct fs_part all = {0, d.size_bytes};
	CLEANUP(fs_owners_done) struct fs_owners o = find(&d, &all, 1);
	ck_assert_uint_eq(o.n, FS_OWNERS_MAX);
	ck_assert(o.is_cut);
}
END_TEST

START_TEST(what_has_no_map_has_no_owners)
{
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(fd_closep) int fd = open(SCRATCH, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CLEANUP(fs_owners_done) struct fs_owners o = {0};
	const struct fs_part part = {0, 4096};

	ASSERT_OK(fs_owners_find(fd, &part, 1, patient(), &o, &err));
	ck_assert_uint_eq(o.n, 1);
	ck_assert_int_eq(o.list[0].kind, FS_OWNER_UNKNOWN);
	ck_assert_str_eq(fs_owner_kind_name(o.list[0].kind), "unknown");
}
END_TEST

SCRATCH_MAIN("os/fs_owners", file_of_a_part_is_found_with_its_place, parts_of_several_files_are_distinguished,
	free_space_and_metadata_need_no_walk, directory_of_ext4_is_found, walk_ends_at_its_bounds,
	deleted_file_is_not_found_and_nothing_was_left_out,
	last_of_many_extents_is_found_and_unwritten_ones_are_marked, walk_stays_in_the_file_system,
	nothing_is_changed, what_is_too_deep_is_left_out, more_owners_than_are_kept_are_cut,
	what_has_no_map_has_no_owners)
