/* SPDX-License-Identifier: Apache-2.0 */
#include "unit/pmem/lvm/lvm_area.h"

#include <check.h>
#include <endian.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#define SECTOR 512

static const char magic[] = " LVM2 x[5A%r0N*>";

static uint32_t checksum(const uint8_t *bytes, size_t n)
{
	uint32_t crc = 0xf597a6cf;

	for (size_t i = 0; i < n; i++) {
		crc ^= bytes[i];
		for (int bit = 0; bit < 8; bit++)
			crc = (crc >> 1) ^ (0xedb88320 & (0 - (crc & 1)));
	}
	return crc;
}

static void put(const char *path, uint64_t offset, const void *bytes, size_t n)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(pwrite(fd, bytes, n, (off_t)offset), (ssize_t)n);
	close(fd);
}

static void put_u32(uint8_t *at, uint32_t value)
{
	value = htole32(value);
	memcpy(at, &value, sizeof(value));
}

static void put_u64(uint8_t *at, uint64_t value)
{
	value = htole64(value);
	memcpy(at, &value, sizeof(value));
}

void lvm_area_put_text(
	const char *path, uint64_t offset, uint64_t size_bytes, uint64_t skip, const char *text)
{
	uint8_t header[SECTOR] = {0};
	size_t n = strlen(text) + 1;
	size_t first = n < size_bytes - skip ? n : (size_t)(size_bytes - skip);

	memcpy(header + 4, magic, strlen(magic));
	put_u32(header + 20, 1);
	put_u64(header + 24, offset);
	put_u64(header + 32, size_bytes);
	put_u64(header + 40, skip);
	put_u64(header + 48, n);
	put_u32(header + 56, checksum((const uint8_t *)text, n));
	put_u32(header, checksum(header + 4, SECTOR - 4));
	put(path, offset, header, sizeof(header));
	put(path, offset + skip, text, first);
	put(path, offset + SECTOR, text + first, n - first);
}

void lvm_area_damage(const char *path, uint64_t offset)
{
	put(path, offset, "?", 1);
}

void lvm_label_put(const char *path, const char *uuid, uint64_t second_offset)
{
	uint8_t sector[SECTOR] = {0};
	size_t n = 32;

	memcpy(sector, "LABELONE", 8);
	put_u64(sector + 8, 1);
	put_u32(sector + 20, 32);
	memcpy(sector + 24, "LVM2 001", 8);
	for (const char *c = uuid; *c; c++)
		if (*c != '-')
			sector[n++] = (uint8_t)*c;
	ck_assert_uint_eq(n, 64);
	put_u64(sector + 72, 2 << 20);
	put_u64(sector + 104, LVM_AREA_FIRST);
	put_u64(sector + 112, (2 << 20) - LVM_AREA_FIRST);
	put_u64(sector + 120, second_offset);
	put_u32(sector + 16, checksum(sector + 20, SECTOR - 20));
	put(path, SECTOR, sector, sizeof(sector));
}

void lvm_area_put(const char *path, uint64_t offset, uint64_t size_bytes, bool used)
{
	uint8_t header[SECTOR] = {0};

	memcpy(header + 4, magic, strlen(magic));
	put_u32(header + 20, 1);
	put_u64(header + 24, offset);
	put_u64(header + 32, size_bytes);
	put_u64(header + 40, used ? SECTOR : 0);
	put(path, offset, header, sizeof(header));
}
