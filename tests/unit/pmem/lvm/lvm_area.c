/* SPDX-License-Identifier: Apache-2.0 */
#include "unit/pmem/lvm/lvm_area.h"

#include <check.h>
#include <endian.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

void lvm_area_put(const char *path, uint64_t offset, uint64_t size_bytes, bool used)
{
	static const char magic[] = " LVM2 x[5A%r0N*>";
	uint8_t header[512] = {0};
	uint32_t version = htole32(1);
	uint64_t numbers[] = {htole64(offset), htole64(size_bytes), htole64(used ? 512 : 0)};
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	memcpy(header + 4, magic, strlen(magic));
	memcpy(header + 20, &version, sizeof(version));
	memcpy(header + 24, numbers, sizeof(numbers));
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(pwrite(fd, header, sizeof(header), (off_t)offset), sizeof(header));
	close(fd);
}
