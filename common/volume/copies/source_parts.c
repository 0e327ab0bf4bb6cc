/* SPDX-License-Identifier: Apache-2.0 */
#include "volume/copies/source_parts.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "base/mem.h"
#include "os/blockdev.h"

void source_parts_free(struct source_parts *p)
{
	if (!p)
		return;
	for (size_t i = 0; i < p->n; i++)
		fd_closep(&p->list[i].fd);
	free(p->list);
	free(p->segments);
	free(p);
}

static int open_part(const struct dm_segment *s, struct data_copy_part *ret, struct error **err)
{
	CLEANUP(free_charp) char *path = NULL;
	CLEANUP(fd_closep) int fd = -1;
	struct stat st;

	if (blockdev_path(s->dev, &path, err) < 0 || data_copy_open(path, DATA_COPY_SOURCE, &fd, err) < 0)
		return -1;
	if (fstat(fd, &st) < 0 || st.st_rdev != s->dev)
		return err_set(
			err, ERR_INTERNAL, "%s is not device %u:%u", path, major(s->dev), minor(s->dev));
	*ret = (struct data_copy_part){
		.fd = TAKE_FD(fd), .start_bytes = s->start_bytes, .length_bytes = s->length_bytes};
	return 0;
}

static int open_parts(const struct dm_segment *list, size_t n, uint64_t size_bytes, struct source_parts *p,
	struct error **err)
{
	uint64_t at = 0;

	p->list = x_calloc(n, sizeof(*p->list));
	for (size_t i = 0; i < n; i++) {
		if (list[i].offset_bytes != at)
			break;
		if (open_part(&list[i], &p->list[i], err) < 0)
			return -1;
		p->n++;
		at += list[i].length_bytes;
	}
	if (at != size_bytes)
		return err_set(err, ERR_PRECONDITION,
			"of its %ju bytes only the first %ju lie on persistent memory as those of a plain logical volume",
			(uintmax_t)size_bytes, (uintmax_t)at);
	return 0;
}

int source_parts_open(dev_t dev, uint64_t size_bytes, struct source_parts **ret, struct error **err)
{
	CLEANUP(source_parts_freep) struct source_parts *p = x_calloc(1, sizeof(*p));
	struct dm_segment *segments = NULL;
	size_t n;

	*ret = NULL;
	if (dm_list_segments(dev, &segments, &n, err) < 0)
		return -1;
	p->segments = segments;
	int rc = n > 0 ? open_parts(segments, n, size_bytes, p, err) : 0;
	if (rc == 0 && n > 0)
		*ret = TAKE_PTR(p);
	return rc;
}

static bool is_same(const struct dm_segment *a, const struct dm_segment *b)
{
	return a->dev == b->dev && a->offset_bytes == b->offset_bytes && a->start_bytes == b->start_bytes &&
	       a->length_bytes == b->length_bytes;
}

int source_parts_confirm(const struct source_parts *p, dev_t dev, struct error **err)
{
	struct dm_segment *segments = NULL;
	size_t n;

	if (dm_list_segments(dev, &segments, &n, err) < 0)
		return -1;
	bool same = n == p->n;
	for (size_t i = 0; same && i < n; i++)
		same = is_same(&segments[i], &p->segments[i]);
	free(segments);
	if (same)
		return 0;
	return err_set(err, ERR_ABORTED,
		"device %u:%u was moved or changed by another program while it was to be copied: try again",
		major(dev), minor(dev));
}
