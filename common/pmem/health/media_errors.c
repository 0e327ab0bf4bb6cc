/* SPDX-License-Identifier: Apache-2.0 */
#include "pmem/health/media_errors.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/parse.h"
#include "os/blockdev.h"
#include "os/file.h"

#define SECTOR_BYTES 512
/* A page, whatever its size is here. */
#define TEXT_MAX_BYTES (64U << 10)

void bad_ranges_done(struct bad_ranges *b)
{
	free(b->list);
	*b = (struct bad_ranges){0};
}

static int parse_sectors(const char *text, size_t len, uint64_t *ret_bytes, struct error **err)
{
	CLEANUP(free_charp) char *number = x_strndup(text, len);
	uint64_t sectors;

	if (parse_u64(number, &sectors, err) < 0)
		return -1;
	if (sectors > INT64_MAX / SECTOR_BYTES)
		return err_set(err, ERR_INTERNAL, "sector %s is beyond every device", number);
	*ret_bytes = sectors * SECTOR_BYTES;
	return 0;
}

static int parse_line(const char *line, size_t len, struct media_error *ret, struct error **err)
{
	const char *blank = memchr(line, ' ', len);
	size_t first_len = blank ? (size_t)(blank - line) : len;

	if (!blank)
		return err_set(err, ERR_INTERNAL, "a bad block has no length");
	if (parse_sectors(line, first_len, &ret->offset_bytes, err) < 0)
		return -1;
	return parse_sectors(blank + 1, len - first_len - 1, &ret->length_bytes, err);
}

int bad_ranges_parse(const char *text, struct bad_ranges *ret, struct error **err)
{
	CLEANUP(bad_ranges_done)
	struct bad_ranges b = {.is_cut = strlen(text) == (size_t)sysconf(_SC_PAGESIZE) - 1};

	for (const char *line = text; *line;) {
		size_t len = strcspn(line, "\n");
		struct media_error e;
		bool incomplete = b.is_cut && !line[len];

		if (len > 0 && !incomplete) {
			if (parse_line(line, len, &e, err) < 0) {
				err_recode(err, ERR_INTERNAL);
				return err_wrap(err, "list of bad blocks");
			}
			b.list = x_realloc(b.list, b.n + 1, sizeof(*b.list));
			b.list[b.n++] = e;
		}
		line += len + (line[len] == '\n');
	}
	*ret = b;
	b = (struct bad_ranges){0};
	return 0;
}

static int stat_device(const char *path, dev_t *ret, struct error **err)
{
	struct blockdev_info info;

	if (blockdev_stat(path, &info, err) < 0)
		return -1;
	*ret = info.dev;
	return 0;
}

int bad_ranges_read(const char *path, struct bad_ranges *ret, struct error **err)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT(TEXT_MAX_BYTES);
	CLEANUP(free_charp) char *file = NULL;
	dev_t dev;

	if (stat_device(path, &dev, err) < 0)
		return -1;
	file = x_asprintf("/sys/dev/block/%u:%u/badblocks", major(dev), minor(dev));
	*ret = (struct bad_ranges){.dev = dev, .unknown = true};
	if (file_read(AT_FDCWD, file, &text, err) < 0) {
		if ((*err)->code != ERR_NOT_FOUND)
			return err_wrap(err, "%s", path);
		error_clear(err);
	}
	if (bad_ranges_parse(buf_str(&text), ret, err) < 0)
		return err_wrap(err, "%s", path);
	ret->dev = dev;
	return 0;
}

/* The kernel cuts long ranges into pieces. */
static void add_range(struct media_errors *e, uint64_t offset_bytes, uint64_t length_bytes)
{
	struct media_error *last = e->n > 0 ? &e->list[e->n - 1] : NULL;

	e->bytes += length_bytes;
	if (last && last->offset_bytes + last->length_bytes == offset_bytes)
		last->length_bytes += length_bytes;
	else if (e->n < MEDIA_ERRORS_MAX)
		e->list[e->n++] = (struct media_error){offset_bytes, length_bytes};
}

void media_errors_add(struct media_errors *e, const struct bad_ranges *bad, uint64_t start_bytes,
	uint64_t length_bytes, uint64_t offset_bytes)
{
	for (size_t i = 0; i < bad->n; i++) {
		uint64_t from = bad->list[i].offset_bytes;
		uint64_t to = from + bad->list[i].length_bytes;

		if (from < start_bytes)
			from = start_bytes;
		if (to > start_bytes + length_bytes)
			to = start_bytes + length_bytes;
		if (from < to) {
			add_range(e, from - start_bytes + offset_bytes, to - from);
			e->is_cut = e->is_cut || bad->is_cut;
		}
	}
}

static void segments_freep(struct dm_segment **segments)
{
	free(*segments);
}

int media_errors_of_mapped(const char *path, const struct bad_ranges *bad, size_t n_bad,
	struct media_errors *e, struct error **err)
{
	CLEANUP(segments_freep) struct dm_segment *segments = NULL;
	size_t n = 0;
	struct stat st;

	if (stat(path, &st) < 0 || !S_ISBLK(st.st_mode))
		return 0;
	if (dm_list_segments(st.st_rdev, &segments, &n, err) < 0)
		return err_wrap(err, "%s", path);
	for (size_t i = 0; i < n; i++) {
		for (size_t k = 0; k < n_bad; k++) {
			if (bad[k].dev != segments[i].dev)
				continue;
			e->unknown = e->unknown || bad[k].unknown;
			media_errors_add(e, &bad[k], segments[i].start_bytes, segments[i].length_bytes,
				segments[i].offset_bytes);
		}
	}
	return 0;
}
