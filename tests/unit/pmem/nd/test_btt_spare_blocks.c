/* SPDX-License-Identifier: Apache-2.0 */
#include "pmem/nd/btt_spare_blocks.h"

#include <endian.h>
#include <stdbool.h>
#include <string.h>

#include "unit/os/scratch.h"

#define SIZE_BYTES  MIB(64)
#define ARENA_BYTES MIB(32)
#define BLOCK_BYTES 4096
#define DATA_AT     MIB(1)
#define LOG_AT      MIB(24)
#define N_BLOCKS    1024
#define N_LANES     4
#define PATTERN     'x'

/* Where the kernel's struct btt_sb has what (drivers/nvdimm/btt.h) */
enum {
	AT_INTERNAL_LBASIZE = 64,
	AT_INTERNAL_NLBA = 68,
	AT_NFREE = 72,
	AT_NEXTOFF = 80,
	AT_DATAOFF = 88,
	AT_LOGOFF = 104
};

static void put(const struct scratch_disk *d, uint64_t at, const void *from, size_t n)
{
	ck_assert_int_eq(pwrite(d->fd, from, n, (off_t)at), (ssize_t)n);
}

static void put32(const struct scratch_disk *d, uint64_t at, uint32_t value)
{
	uint32_t raw = htole32(value);

	put(d, at, &raw, sizeof(raw));
}

static void put64(const struct scratch_disk *d, uint64_t at, uint64_t value)
{
	uint64_t raw = htole64(value);

	put(d, at, &raw, sizeof(raw));
}

/* An arena whose blocks are all full of the pattern, and whose log names no block but the first. */
static void make_arena(const struct scratch_disk *d, uint64_t start, uint64_t next)
{
	char block[BLOCK_BYTES];

	put(d, start, "BTT_ARENA_INFO\0", 16);
	put32(d, start + AT_INTERNAL_LBASIZE, BLOCK_BYTES);
	put32(d, start + AT_INTERNAL_NLBA, N_BLOCKS);
	put32(d, start + AT_NFREE, N_LANES);
	put64(d, start + AT_NEXTOFF, next);
	put64(d, start + AT_DATAOFF, DATA_AT);
	put64(d, start + AT_LOGOFF, LOG_AT);
	memset(block, PATTERN, sizeof(block));
	for (uint64_t i = 0; i < N_BLOCKS; i++)
		put(d, start + DATA_AT + i * BLOCK_BYTES, block, sizeof(block));
}

/* @entry: of the four of a lane's group */
static void note(const struct scratch_disk *d, uint64_t start, unsigned lane, unsigned entry,
	uint32_t old_map, uint32_t new_map)
{
	uint64_t at = start + LOG_AT + lane * 64ULL + entry * 16ULL;

	put32(d, at + 4, old_map);
	put32(d, at + 8, new_map);
}

static bool is_zero(const struct scratch_disk *d, uint64_t start, uint32_t block)
{
	static const char zeros[BLOCK_BYTES];
	char found[BLOCK_BYTES];
	uint64_t at = start + DATA_AT + (uint64_t)block * BLOCK_BYTES;

	ck_assert_int_eq(pread(d->fd, found, sizeof(found), (off_t)at), sizeof(found));
	return memcmp(found, zeros, sizeof(found)) == 0;
}

static unsigned count_zero(const struct scratch_disk *d, uint64_t start)
{
	unsigned n = 0;

	for (uint32_t i = 0; i < N_BLOCKS; i++)
		n += is_zero(d, start, i);
	return n;
}

START_TEST(blocks_that_the_log_names_are_zeroed_in_every_arena_and_no_others)
{
	CLEANUP(scratch_disk_done) struct scratch_disk d = scratch_disk("disk", SIZE_BYTES);
	struct error *err = NULL;

	for (uint64_t start = 0; start < SIZE_BYTES; start += ARENA_BYTES) {
		make_arena(&d, start, start == 0 ? ARENA_BYTES : 0);
		note(&d, start, 1, 1, 17, 18);
		note(&d, start, 2, 2, 500 | 1U << 31 | 1U << 30, N_BLOCKS - 1);
	}
	ASSERT_OK(btt_erase_spare(d.fd, SIZE_BYTES, &err));
	for (uint64_t start = 0; start < SIZE_BYTES; start += ARENA_BYTES) {
		ck_assert(is_zero(&d, start, 17) && is_zero(&d, start, 18) && is_zero(&d, start, 500) &&
			  is_zero(&d, start, N_BLOCKS - 1));
		/* and the first, which entries name that were never written */
		ck_assert_uint_eq(count_zero(&d, start), 5);
	}
	ASSERT_OK(btt_erase_spare(d.fd, SIZE_BYTES, &err));
}
END_TEST

START_TEST(old_tables_begin_at_four_kib)
{
	CLEANUP(scratch_disk_done) struct scratch_disk d = scratch_disk("disk", SIZE_BYTES);
	struct error *err = NULL;

	make_arena(&d, 4096, 0);
	note(&d, 4096, 3, 0, 77, 0);
	ASSERT_OK(btt_erase_spare(d.fd, SIZE_BYTES, &err));
	ck_assert(is_zero(&d, 4096, 77));
	ck_assert_uint_eq(count_zero(&d, 4096), 2);
}
END_TEST

struct lie {
	const char *what;
	uint32_t at;
	uint64_t value;
};

static const struct lie lies[] = {
	{"no signature", 0, 0},
	{"a block size of 0", AT_INTERNAL_LBASIZE, (uint64_t)N_BLOCKS << 32},
	{"more blocks than fit", AT_INTERNAL_LBASIZE, BLOCK_BYTES | (uint64_t)UINT32_MAX << 32},
	{"endless lanes", AT_NFREE, UINT32_MAX},
	{"data beyond the end", AT_DATAOFF, SIZE_BYTES},
	{"data that wraps", AT_DATAOFF, UINT64_MAX - 511},
	{"a log beyond the end", AT_LOGOFF, SIZE_BYTES},
	{"a log that wraps", AT_LOGOFF, UINT64_MAX},
	{"a next arena within this one", AT_NEXTOFF, 4096},
	{"a next arena beyond the end", AT_NEXTOFF, SIZE_BYTES},
};

START_TEST(table_that_cannot_be_trusted_is_none)
{
	CLEANUP(scratch_disk_done) struct scratch_disk d = scratch_disk("disk", SIZE_BYTES);
	struct error *err = NULL;

	for (size_t i = 0; i < ARRAY_SIZE(lies); i++) {
		make_arena(&d, 0, 0);
		note(&d, 0, 0, 0, 7, 8);
		put64(&d, lies[i].at, lies[i].value);
		ASSERT_OK(btt_erase_spare(d.fd, SIZE_BYTES, &err));
		ck_assert_msg(count_zero(&d, 0) == 0, "%s", lies[i].what);
	}
}
END_TEST

START_TEST(blocks_beyond_the_table_stay)
{
	CLEANUP(scratch_disk_done) struct scratch_disk d = scratch_disk("disk", SIZE_BYTES);
	struct error *err = NULL;

	make_arena(&d, 0, 0);
	put32(&d, AT_INTERNAL_NLBA, 100);
	note(&d, 0, 0, 1, 100, 99);
	ASSERT_OK(btt_erase_spare(d.fd, SIZE_BYTES, &err));
	ck_assert(is_zero(&d, 0, 99));
	ck_assert(!is_zero(&d, 0, 100));
}
END_TEST

START_TEST(small_namespaces_have_no_table)
{
	CLEANUP(scratch_disk_done) struct scratch_disk d = scratch_disk("disk", MIB(1));
	struct error *err = NULL;

	ASSERT_OK(btt_erase_spare(d.fd, MIB(1), &err));
}
END_TEST

START_TEST(namespace_that_cannot_be_read_is_an_error)
{
	struct error *err = NULL;
	int fd = open("/dev/null", O_RDWR | O_CLOEXEC);

	ASSERT_FAILS(btt_erase_spare(fd, SIZE_BYTES, &err), ERR_INTERNAL, "translation table");
	close(fd);
}
END_TEST

SCRATCH_MAIN("btt", blocks_that_the_log_names_are_zeroed_in_every_arena_and_no_others,
	old_tables_begin_at_four_kib, table_that_cannot_be_trusted_is_none, blocks_beyond_the_table_stay,
	small_namespaces_have_no_table, namespace_that_cannot_be_read_is_an_error)
