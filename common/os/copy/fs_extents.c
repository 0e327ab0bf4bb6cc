/* SPDX-License-Identifier: Apache-2.0 */
#include "os/copy/fs_extents.h"

#include <errno.h>
#include <linux/fsmap.h>
#include <stdbool.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "base/mem.h"

#define CAPACITY_MIN  64
#define GAP_MIN_BYTES 4096
#define BATCH         1024 /* records that are read at once, of 64 bytes each */

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

/* What is left out before or between records counts as used, as what ext4 with blocks of 1 KiB has before its
 * superblock. Records of files that share blocks overlap. */
static void add_record(struct map *m, const struct fsmap *r)
{
	bool is_free = r->fmr_flags & FMR_OF_SPECIAL_OWNER && r->fmr_owner == FMR_OWN_FREE;
	uint64_t end_bytes = r->fmr_physical + r->fmr_length;

	if (r->fmr_physical > m->seen_bytes)
		add_clipped(m, m->seen_bytes, r->fmr_physical);
	if (end_bytes <= m->seen_bytes)
		return;
	if (!is_free)
		add_clipped(m, r->fmr_physical, end_bytes);
	m->seen_bytes = end_bytes;
}

/* As include/linux/kdev_t.h, new_encode_dev(). */
static uint32_t encode_device(dev_t dev)
{
	return (minor(dev) & 0xffU) | major(dev) << 8 | (minor(dev) & ~0xffU) << 12;
}

static int fail(int os_errno, struct error **err)
{
	bool lacks_map = os_errno == ENOTTY || os_errno == EOPNOTSUPP;

	return err_set_errno(err, lacks_map ? ERR_UNIMPLEMENTED : ERR_INTERNAL, os_errno,
		"read which blocks the file system uses");
}

/* The high key is all ones, but for the length and what is reserved, which have to be 0 (fs/xfs/xfs_ioctl.c,
 * xfs_ioc_getfsmap(); fs/ext4/ioctl.c, ext4_ioc_getfsmap()). */
static void set_keys(struct fsmap_head *head, uint32_t device)
{
	*head = (struct fsmap_head){.fmh_count = BATCH};
	head->fmh_keys[0].fmr_device = device;
	head->fmh_keys[1] = (struct fsmap){
		.fmr_device = device,
		.fmr_flags = UINT32_MAX,
		.fmr_physical = UINT64_MAX,
		.fmr_owner = UINT64_MAX,
		.fmr_offset = UINT64_MAX,
	};
}

static int read_records(int dir_fd, struct fsmap_head *head, struct map *m, struct error **err)
{
	bool more = true;

	while (more) {
		if (ioctl(dir_fd, FS_IOC_GETFSMAP, head) < 0)
			return fail(errno, err);
		for (uint32_t i = 0; i < head->fmh_entries; i++)
			add_record(m, &head->fmh_recs[i]);
		more = head->fmh_entries > 0 &&
		       !(head->fmh_recs[head->fmh_entries - 1].fmr_flags & FMR_OF_LAST);
		if (more)
			fsmap_advance(head);
	}
	return 0;
}

static void map_done(struct map *m)
{
	fs_extents_done(&m->x);
}

static void free_headp(struct fsmap_head **head)
{
	free(*head);
}

int fs_extents_read(int dir_fd, uint64_t device_bytes, struct fs_extents *ret, struct error **err)
{
	CLEANUP(free_headp) struct fsmap_head *head = x_malloc(fsmap_sizeof(BATCH));
	CLEANUP(map_done) struct map m = {.device_bytes = device_bytes};
	struct stat st;

	if (fstat(dir_fd, &st) < 0)
		return fail(errno, err);
	set_keys(head, encode_device(st.st_dev));
	if (read_records(dir_fd, head, &m, err) < 0)
		return -1;
	if (m.seen_bytes == 0)
		return err_set(
			err, ERR_INTERNAL, "the file system says of none of its blocks whether it is used");
	*ret = m.x;
	m.x = FS_EXTENTS_INIT;
	return 0;
}
