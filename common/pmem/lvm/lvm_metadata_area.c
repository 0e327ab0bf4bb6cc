/* SPDX-License-Identifier: Apache-2.0 */
#include "pmem/lvm/lvm_metadata_area.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <string.h>

#include "base/mem.h"

#define SECTOR_BYTES 512U
/* The data alignment, by which the second area's beginning is rounded down, is 2 MiB in our groups. */
#define TAIL_BYTES  (4ULL << 20)
#define MAGIC       "\040\114\126\115\062\040\170\133\065\101\045\162\060\116\052\076" /* FMTT_MAGIC */
#define MAGIC_LEN   16
#define VERSION     1
#define N_LOCATIONS 4
#define IGNORED     1U /* RAW_LOCN_IGNORED */

#define LABEL_SECTORS 4U
#define LABEL_ID      "LABELONE"
#define LABEL_TYPE    "LVM2 001"
#define LABEL_ID_LEN  8
#define RAW_UUID_LEN  32

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
	uint64_t tail = size > TAIL_BYTES + LVM_AREA_FIRST_OFFSET ? TAIL_BYTES : 0;
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
	if (read_at(fd, path, LVM_AREA_FIRST_OFFSET, &h, sizeof(h), err) < 0)
		return -1;
	a.first = judge(&h, LVM_AREA_FIRST_OFFSET);
	if (look_at_end(fd, path, (uint64_t)size, &a, err) < 0)
		return -1;
	*ret = a;
	return 0;
}

/* LVM's calc_crc(), in its lib/misc/crc.c: CRC-32 from another start, and not inverted at the end. */
static uint32_t checksum(const uint8_t *bytes, size_t n)
{
	uint32_t crc = 0xf597a6cfU;

	for (size_t i = 0; i < n; i++) {
		crc ^= bytes[i];
		for (unsigned bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? 0xedb88320U : 0);
	}
	return crc;
}

struct __attribute__((packed)) place {
	uint64_t offset;
	uint64_t size;
};

struct __attribute__((packed)) label {
	char id[LABEL_ID_LEN];
	uint64_t sector;
	uint32_t checksum; /* of what follows in the sector */
	uint32_t header_offset;
	char type[LABEL_ID_LEN];
	char pv_uuid[RAW_UUID_LEN];
	uint64_t device_size;
	struct place places[]; /* of data, an empty one, of metadata, an empty one */
};

static void format_uuid(const char *raw, char out[static LVM_UUID_LEN + 1])
{
	static const size_t groups[] = {6, 4, 4, 4, 4, 4, 6};
	size_t n = 0;

	for (size_t g = 0; g < sizeof(groups) / sizeof(groups[0]); g++) {
		if (g > 0)
			out[n++] = '-';
		memcpy(out + n, raw, groups[g]);
		n += groups[g];
		raw += groups[g];
	}
	out[n] = '\0';
}

static void read_places(const uint8_t *sector, struct lvm_label *l)
{
	bool in_metadata = false;
	struct place p;

	for (size_t at = sizeof(struct label); at + sizeof(p) <= SECTOR_BYTES; at += sizeof(p)) {
		memcpy(&p, sector + at, sizeof(p));
		if (p.offset == 0 && in_metadata)
			return;
		if (p.offset == 0)
			in_metadata = true;
		else if (in_metadata && l->n_areas < LVM_AREAS_MAX)
			l->area_offsets[l->n_areas++] = le64toh(p.offset);
	}
}

static bool parse_label(const uint8_t *sector, uint64_t number, struct lvm_label *ret)
{
	size_t checked = offsetof(struct label, header_offset);
	struct label l;

	memcpy(&l, sector, sizeof(l));
	if (memcmp(l.id, LABEL_ID, LABEL_ID_LEN) != 0 || memcmp(l.type, LABEL_TYPE, LABEL_ID_LEN) != 0)
		return false;
	if (le64toh(l.sector) != number || le32toh(l.header_offset) != offsetof(struct label, pv_uuid))
		return false;
	if (checksum(sector + checked, SECTOR_BYTES - checked) != le32toh(l.checksum))
		return false;
	ret->sound = true;
	format_uuid(l.pv_uuid, ret->pv_uuid);
	read_places(sector, ret);
	return true;
}

int lvm_label_read(const char *path, struct lvm_label *ret, struct error **err)
{
	CLEANUP(fd_closep) int fd = open(path, O_RDONLY | O_CLOEXEC);
	uint8_t sectors[LABEL_SECTORS * SECTOR_BYTES];
	struct lvm_label l = {0};

	if (fd < 0)
		return err_set_errno(err, ERR_INTERNAL, errno, "open %s", path);
	if (read_at(fd, path, 0, sectors, sizeof(sectors), err) < 0)
		return -1;
	for (uint64_t i = 0; i < LABEL_SECTORS; i++)
		if (parse_label(sectors + i * SECTOR_BYTES, i, &l))
			break;
	*ret = l;
	return 0;
}

/* Whether the header, a whole sector, says where a text is that LVM uses. */
static bool points_at_text(const uint8_t *sector, uint64_t offset, struct header *ret)
{
	struct header h;

	memcpy(&h, sector, sizeof(h));
	if (!has_magic(&h) || judge(&h, offset) != LVM_AREA_USED || le32toh(h.version) != VERSION)
		return false;
	if (checksum(sector + sizeof(h.checksum), SECTOR_BYTES - sizeof(h.checksum)) != le32toh(h.checksum))
		return false;
	uint64_t size = le64toh(h.size);
	uint64_t at = le64toh(h.locations[0].offset);
	uint64_t length = le64toh(h.locations[0].size);
	if (le64toh(h.start) != offset || at < SECTOR_BYTES || at >= size)
		return false;
	if (length < 2 || length > LVM_TEXT_MAX_BYTES || length > size - SECTOR_BYTES)
		return false;
	*ret = h;
	return !(le32toh(h.locations[0].flags) & IGNORED);
}

/* The text goes on behind the header where it reaches the end of the area. */
static int read_text(
	int fd, const char *path, uint64_t offset, const struct header *h, uint8_t *to, struct error **err)
{
	uint64_t at = le64toh(h->locations[0].offset);
	uint64_t length = le64toh(h->locations[0].size);
	uint64_t up_to_end = le64toh(h->size) - at;
	uint64_t first = length < up_to_end ? length : up_to_end;

	if (read_at(fd, path, offset + at, to, first, err) < 0)
		return -1;
	return read_at(fd, path, offset + SECTOR_BYTES, to + first, length - first, err);
}

int lvm_metadata_area_text(
	const char *path, uint64_t offset_bytes, struct buf *out, bool *ret_sound, struct error **err)
{
	CLEANUP(fd_closep) int fd = open(path, O_RDONLY | O_CLOEXEC);
	CLEANUP(buf_done) struct buf text = BUF_INIT(LVM_TEXT_MAX_BYTES);
	uint8_t sector[SECTOR_BYTES];
	struct header h;

	if (fd < 0)
		return err_set_errno(err, ERR_INTERNAL, errno, "open %s", path);
	*ret_sound = false;
	if (read_at(fd, path, offset_bytes, sector, sizeof(sector), err) < 0)
		return -1;
	if (!points_at_text(sector, offset_bytes, &h))
		return 0;
	size_t length = le64toh(h.locations[0].size);
	uint8_t *room = buf_reserve(&text, length);
	if (!room)
		return buf_check(&text, path, err);
	if (read_text(fd, path, offset_bytes, &h, room, err) < 0)
		return -1;
	if (room[length - 1] != '\0' || checksum(room, length) != le32toh(h.locations[0].checksum))
		return 0;
	buf_add(out, room, length - 1);
	*ret_sound = true;
	return buf_check(out, path, err);
}
