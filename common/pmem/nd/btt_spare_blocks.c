/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The namespace is a chain of arenas. Each has a log with a group for each processor that may write at a
 * time; an entry has the old and the new block of a sector. The old block is where that processor writes
 * next. The order of the entries does not matter for erasing: every block in the log is zeroed.
 */
#include "pmem/nd/btt_spare_blocks.h"

#include <endian.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/mem.h"
#include "os/blockdev.h"

#define SIGNATURE        "BTT_ARENA_INFO\0"
#define SIGNATURE_BYTES  16
#define OLD_START_BYTES  4096 /* of BTT 1.1 */
#define ARENA_MIN_BYTES  (1ULL << 24)
#define BLOCK_MIN_BYTES  512
#define BLOCK_MAX_BYTES  65536
#define LANES_MAX        4096 /* the kernel has 256 */
#define GROUP_BYTES      64
#define ENTRIES          4           /* of a group; two are in use, but which ones differs (log_index) */
#define BLOCK_INDEX_MASK 0x3fffffffU /* without the flags of error and trim */

struct info {
	char signature[SIGNATURE_BYTES];
	uint8_t uuids[32];
	uint32_t flags;
	uint16_t version[2];
	uint32_t external_lbasize;
	uint32_t external_nlba;
	uint32_t internal_lbasize;
	uint32_t internal_nlba;
	uint32_t nfree;
	uint32_t infosize;
	uint64_t nextoff;
	uint64_t dataoff;
	uint64_t mapoff;
	uint64_t logoff;
	uint64_t info2off;
};

struct log_entry {
	uint32_t lba;
	uint32_t old_map;
	uint32_t new_map;
	uint32_t seq;
};

_Static_assert(sizeof(struct log_entry) * ENTRIES == GROUP_BYTES, "btt.h, struct log_group");

struct arena {
	uint64_t start_bytes;
	uint64_t left_bytes; /* of the namespace, from its start on */
	uint64_t data_bytes; /* its blocks and its log, from its start on */
	uint64_t log_bytes;
	uint64_t next_bytes; /* 0: it is the last one */
	uint32_t block_bytes;
	uint32_t n_blocks;
	uint32_t n_lanes;
};

static int read_at(int fd, void *to, size_t n, uint64_t at, struct error **err)
{
	ssize_t got = pread(fd, to, n, (off_t)at);

	if (got < 0 || (size_t)got != n)
		return err_set_errno(
			err, ERR_INTERNAL, got < 0 ? errno : EIO, "read the block translation table");
	return 0;
}

static bool fits(const struct arena *a)
{
	uint64_t log_bytes = (uint64_t)a->n_lanes * GROUP_BYTES;
	uint64_t data_bytes = (uint64_t)a->n_blocks * a->block_bytes;

	return a->n_lanes <= LANES_MAX && a->block_bytes >= BLOCK_MIN_BYTES &&
	       a->block_bytes <= BLOCK_MAX_BYTES && a->block_bytes % BLOCK_MIN_BYTES == 0 &&
	       a->log_bytes <= a->left_bytes && log_bytes <= a->left_bytes - a->log_bytes &&
	       a->data_bytes % BLOCK_MIN_BYTES == 0 && a->data_bytes <= a->left_bytes &&
	       data_bytes <= a->left_bytes - a->data_bytes &&
	       (a->next_bytes == 0 || (a->next_bytes >= ARENA_MIN_BYTES && a->next_bytes < a->left_bytes));
}

/* @ret_found: false where there is no arena, or none that can be trusted. */
static int read_arena(
	int fd, uint64_t start, uint64_t size_bytes, struct arena *ret, bool *ret_found, struct error **err)
{
	struct info info;

	*ret_found = false;
	if (size_bytes < ARENA_MIN_BYTES || start > size_bytes - sizeof(info))
		return 0;
	if (read_at(fd, &info, sizeof(info), start, err) < 0)
		return -1;
	if (memcmp(info.signature, SIGNATURE, SIGNATURE_BYTES) != 0)
		return 0;
	*ret = (struct arena){
		.start_bytes = start,
		.left_bytes = size_bytes - start,
		.data_bytes = le64toh(info.dataoff),
		.log_bytes = le64toh(info.logoff),
		.next_bytes = le64toh(info.nextoff),
		.block_bytes = le32toh(info.internal_lbasize),
		.n_blocks = le32toh(info.internal_nlba),
		.n_lanes = le32toh(info.nfree),
	};
	*ret_found = fits(ret);
	return 0;
}

static int compare(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a;
	uint32_t y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

/* The blocks in the log, in order. @ret: array with two elements for each entry. */
static size_t list_blocks(const struct arena *a, const struct log_entry *log, uint32_t *ret)
{
	size_t n = 0;

	for (size_t i = 0; i < (size_t)a->n_lanes * ENTRIES; i++) {
		uint32_t blocks[] = {le32toh(log[i].old_map) & BLOCK_INDEX_MASK,
			le32toh(log[i].new_map) & BLOCK_INDEX_MASK};
		for (size_t k = 0; k < 2; k++)
			if (blocks[k] < a->n_blocks)
				ret[n++] = blocks[k];
	}
	qsort(ret, n, sizeof(*ret), compare);
	return n;
}

static void log_freep(struct log_entry **log)
{
	free(*log);
}

static void blocks_freep(uint32_t **blocks)
{
	free(*blocks);
}

static int erase_arena(int fd, const struct arena *a, struct error **err)
{
	size_t n_entries = (size_t)a->n_lanes * ENTRIES;
	CLEANUP(log_freep) struct log_entry *log = x_calloc(n_entries, sizeof(*log));
	CLEANUP(blocks_freep) uint32_t *blocks = x_calloc(2 * n_entries, sizeof(*blocks));
	uint64_t data = a->start_bytes + a->data_bytes;

	if (read_at(fd, log, n_entries * sizeof(*log), a->start_bytes + a->log_bytes, err) < 0)
		return -1;

	size_t n = list_blocks(a, log, blocks);
	for (size_t i = 0, end; i < n; i = end) {
		for (end = i + 1; end < n && blocks[end] - blocks[end - 1] <= 1;)
			end++;
		if (blockdev_zero(fd, data + (uint64_t)blocks[i] * a->block_bytes,
			    (uint64_t)(blocks[end - 1] - blocks[i] + 1) * a->block_bytes, err) < 0)
			return -1;
	}
	return 0;
}

int btt_erase_spare(int fd, uint64_t size_bytes, struct error **err)
{
	struct arena a;
	bool found;

	if (read_arena(fd, 0, size_bytes, &a, &found, err) < 0)
		return -1;
	if (!found && read_arena(fd, OLD_START_BYTES, size_bytes, &a, &found, err) < 0)
		return -1;
	while (found) {
		if (erase_arena(fd, &a, err) < 0)
			return -1;
		if (a.next_bytes == 0)
			break;
		if (read_arena(fd, a.start_bytes + a.next_bytes, size_bytes, &a, &found, err) < 0)
			return -1;
	}
	return 0;
}
