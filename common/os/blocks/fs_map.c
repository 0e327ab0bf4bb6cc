/* SPDX-License-Identifier: Apache-2.0 */
#include "os/blocks/fs_map.h"

#include <errno.h>
#include <linux/fsmap.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "base/mem.h"

#define BATCH 1024 /* records that are read at once, of 64 bytes each */

struct fs_map {
	int dir_fd;
	struct fsmap_head *head;
	uint32_t next; /* of those that were read last */
	bool ended;    /* the kernel has no more */
};

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

int fs_map_open(int dir_fd, struct fs_map **ret, struct error **err)
{
	struct stat st;

	if (fstat(dir_fd, &st) < 0)
		return fail(errno, err);
	struct fs_map *m = x_calloc(1, sizeof(*m));
	m->dir_fd = dir_fd;
	m->head = x_malloc(fsmap_sizeof(BATCH));
	set_keys(m->head, encode_device(st.st_dev));
	*ret = m;
	return 0;
}

static int read_batch(struct fs_map *m, struct error **err)
{
	if (m->next > 0)
		fsmap_advance(m->head);
	if (ioctl(m->dir_fd, FS_IOC_GETFSMAP, m->head) < 0)
		return fail(errno, err);
	uint32_t n = m->head->fmh_entries;
	m->next = 0;
	m->ended = n == 0 || m->head->fmh_recs[n - 1].fmr_flags & FMR_OF_LAST;
	return 0;
}

static void judge(const struct fsmap *r, struct fs_map_record *ret)
{
	*ret = (struct fs_map_record){.at_bytes = r->fmr_physical, .length_bytes = r->fmr_length};
	if (!(r->fmr_flags & FMR_OF_SPECIAL_OWNER)) {
		ret->kind = FS_MAP_INODE;
		ret->inode = r->fmr_owner;
	} else if (r->fmr_owner == FMR_OWN_FREE) {
		ret->kind = FS_MAP_FREE;
	} else {
		ret->kind = r->fmr_owner == FMR_OWN_UNKNOWN ? FS_MAP_UNKNOWN : FS_MAP_METADATA;
	}
}

int fs_map_next(struct fs_map *m, struct fs_map_record *ret, struct error **err)
{
	if (m->next == m->head->fmh_entries) {
		if (m->ended)
			return 0;
		if (read_batch(m, err) < 0)
			return -1;
		if (m->head->fmh_entries == 0)
			return 0;
	}
	judge(&m->head->fmh_recs[m->next++], ret);
	return 1;
}

void fs_map_close(struct fs_map *m)
{
	if (!m)
		return;
	free(m->head);
	free(m);
}
