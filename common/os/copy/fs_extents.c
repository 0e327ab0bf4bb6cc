/* SPDX-License-Identifier: Apache-2.0 */
#include "os/copy/fs_extents.h"

#include <stdbool.h>

#include "base/mem.h"
#include "os/blocks/fs_map.h"

#define CAPACITY_MIN  64
#define GAP_MIN_BYTES 4096

void fs_extents_done(struct fs_extents *x)
{
	free(x->list);
	*x = FS_EXTENTS_INIT;
}

static uint64_t end_of(const struct fs_extent *e)
{
	return e->at_bytes + e->length_bytes;
}

static void close_gaps(struct fs_extents *x)
{
	size_t last = 0;

	x->min_gap_bytes = x->min_gap_bytes ? 2 * x->min_gap_bytes : GAP_MIN_BYTES;
	for (size_t i = 1; i < x->n; i++) {
		uint64_t gap_bytes = x->list[i].at_bytes - end_of(&x->list[last]);

		if (gap_bytes < x->min_gap_bytes) {
			x->list[last].length_bytes += gap_bytes + x->list[i].length_bytes;
			x->total_bytes += gap_bytes;
		} else {
			x->list[++last] = x->list[i];
		}
	}
	x->n = last + 1;
}

static void grow_list(struct fs_extents *x, size_t max)
{
	x->capacity = x->capacity ? 2 * x->capacity : CAPACITY_MIN;
	if (x->capacity > max)
		x->capacity = max;
	x->list = x_realloc(x->list, x->capacity, sizeof(*x->list));
}

/* Return: whether the list has an extent that the range continues or that a gap before it need not end. */
static bool joins_last(const struct fs_extents *x, uint64_t at_bytes)
{
	if (x->n == 0)
		return false;
	uint64_t last_end = end_of(&x->list[x->n - 1]);
	return at_bytes <= last_end || at_bytes - last_end < x->min_gap_bytes;
}

static void lengthen_last(struct fs_extents *x, uint64_t end_bytes)
{
	struct fs_extent *last = &x->list[x->n - 1];

	if (end_bytes <= end_of(last))
		return;
	x->total_bytes += end_bytes - end_of(last);
	last->length_bytes = end_bytes - last->at_bytes;
}

void fs_extents_add(struct fs_extents *x, uint64_t at_bytes, uint64_t end_bytes, size_t max)
{
	if (end_bytes <= at_bytes)
		return;
	if (x->n == max) {
		while (x->n > max / 2)
			close_gaps(x);
	}
	if (joins_last(x, at_bytes)) {
		lengthen_last(x, end_bytes);
		return;
	}
	if (x->n == x->capacity)
		grow_list(x, max);
	x->list[x->n++] = (struct fs_extent){at_bytes, end_bytes - at_bytes};
	x->total_bytes += end_bytes - at_bytes;
}

void fs_extents_whole(uint64_t device_bytes, struct fs_extents *ret)
{
	*ret = FS_EXTENTS_INIT;
	fs_extents_add(ret, 0, device_bytes, FS_EXTENTS_MAX);
}

struct map {
	struct fs_extents x;
	uint64_t device_bytes;
	uint64_t seen_bytes; /* what lies before this has been reported */
};

static void add_clipped(struct map *m, uint64_t at_bytes, uint64_t end_bytes)
{
	fs_extents_add(
		&m->x, at_bytes, end_bytes < m->device_bytes ? end_bytes : m->device_bytes, FS_EXTENTS_MAX);
}

/* Adds a record of the kernel. A gap before or between records counts as used, such as the first block of an
 * ext4 with blocks of 1 KiB, which lies before its superblock and has no record. Records of files that share
 * blocks overlap. */
static void add_record(struct map *m, const struct fs_map_record *r)
{
	uint64_t end_bytes = r->at_bytes + r->length_bytes;

	if (r->at_bytes > m->seen_bytes)
		add_clipped(m, m->seen_bytes, r->at_bytes);
	if (end_bytes <= m->seen_bytes)
		return;
	if (r->kind != FS_MAP_FREE)
		add_clipped(m, r->at_bytes, end_bytes);
	m->seen_bytes = end_bytes;
}

static void map_done(struct map *m)
{
	fs_extents_done(&m->x);
}

int fs_extents_read(int dir_fd, uint64_t device_bytes, struct fs_extents *ret, struct error **err)
{
	CLEANUP(fs_map_closep) struct fs_map *records = NULL;
	CLEANUP(map_done) struct map m = {.device_bytes = device_bytes};
	struct fs_map_record r;
	int rc;

	if (fs_map_open(dir_fd, &records, err) < 0)
		return -1;
	while ((rc = fs_map_next(records, &r, err)) > 0)
		add_record(&m, &r);
	if (rc < 0)
		return -1;
	if (m.seen_bytes == 0)
		return err_set(
			err, ERR_INTERNAL, "the file system says of none of its blocks whether it is used");
	*ret = m.x;
	m.x = FS_EXTENTS_INIT;
	return 0;
}
