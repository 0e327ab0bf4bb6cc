/* SPDX-License-Identifier: Apache-2.0 */
#include "pmem/lvm/lvm_metadata_area.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>

#include "base/mem.h"

#define SECTOR_BYTES 512U
#define FIRST_OFFSET 4096U
/* The data alignment, by which the second area's beginning is rounded down, is 2 MiB in our groups. */
#define TAIL_BYTES  (4ULL << 20)
#define MAGIC       "\040\114\126\115\062\040\170\133\065\101\045\162\060\116\052\076" /* FMTT_MAGIC */
#define MAGIC_LEN   16
#define VERSION     1
#define N_LOCATIONS 4

struct __attribute__((packed)) location {
	uint64_t offset;
	uint64_t size;
	uint32_t checksum;
	uint32_t flags;
};

struct __attribute__((packed)) header {
	uint32_t checksum;
	uint8_t magic[MAGIC_LEN];
	uint32_t version;
	uint64_t start;
	uint64_t size;
	struct location locations[N_LOCATIONS];
};

static int read_at(int fd, const char *path, uint64_t offset, void *to, size_t n, struct error **err)
{
	ssize_t got;

	do
		got = pread(fd, to, n, (off_t)offset);
	while (got < 0 && errno == EINTR);
	if (got < 0)
		return err_set_errno(err, ERR_INTERNAL, errno, "read %s", path);
	if ((size_t)got != n)
		return err_set(err, ERR_INTERNAL, "%s ends at %ju", path, (uintmax_t)offset + (size_t)got);
	return 0;
}

static bool has_magic(const struct header *h)
{
	return memcmp(h->magic, MAGIC, MAGIC_LEN) == 0;
}

static enum lvm_metadata_area_state judge(const struct header *h, uint64_t offset)
{
	if (!has_magic(h))
		return LVM_AREA_NONE;
	if (le32toh(h->version) != VERSION || le64toh(h->start) != offset)
		return LVM_AREA_USED;
	for (size_t i = 0; i < N_LOCATIONS; i++)
		if (h->locations[i].offset != 0)
			return LVM_AREA_USED;
	return LVM_AREA_EMPTY;
}

/* The text of a header further up may contain the magic, but not where it says that it begins. */
static int look_at_end(
	int fd, const char *path, uint64_t size, struct lvm_metadata_areas *a, struct error **err)
{
	uint64_t tail = size > TAIL_BYTES + FIRST_OFFSET ? TAIL_BYTES : 0;
	CLEANUP(free_charp) char *bytes = x_calloc(1, tail + 1);

	size &= ~(uint64_t)(SECTOR_BYTES - 1);
	if (read_at(fd, path, size - tail, bytes, tail, err) < 0)
		return -1;
	for (uint64_t at = 0; at < tail; at += SECTOR_BYTES) {
		uint64_t offset = size - tail + at;
		struct header h;

		memcpy(&h, bytes + at, sizeof(h));
		if (!has_magic(&h) || le64toh(h.start) != offset || le64toh(h.size) > size - offset)
			continue;
		a->second = judge(&h, offset);
		a->second_offset_bytes = offset;
		a->second_bytes = le64toh(h.size);
		return 0;
	}
	return 0;
}

int lvm_metadata_area_read(const char *path, struct lvm_metadata_areas *ret, struct error **err)
{
	CLEANUP(fd_closep) int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct lvm_metadata_areas a = {0};
	struct header h;

	if (fd < 0)
		return err_set_errno(err, ERR_INTERNAL, errno, "open %s", path);
	off_t size = lseek(fd, 0, SEEK_END);
	if (size < 0)
		return err_set_errno(err, ERR_INTERNAL, errno, "size of %s", path);
	if (read_at(fd, path, FIRST_OFFSET, &h, sizeof(h), err) < 0)
		return -1;
	a.first = judge(&h, FIRST_OFFSET);
	if (look_at_end(fd, path, (uint64_t)size, &a, err) < 0)
		return -1;
	*ret = a;
	return 0;
}
