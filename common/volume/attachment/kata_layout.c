/* SPDX-License-Identifier: Apache-2.0 */
#include "volume/attachment/kata_layout.h"

#include <string.h>

#include "base/mem.h"

#define SECTOR_BYTES 512
#define PFN_AT       4096
#define PFN_BYTES    4096

/* Offsets of the first entry and the signature of the MBR partition table in the first sector, and the type
 * of the partition. */
#define MBR_ENTRY_AT     446
#define MBR_SIGNATURE_AT 510
#define MBR_TYPE_LINUX   0x83

/* Offsets and values of fields in struct nd_pfn_sb. */
#define SB_VERSION_MINOR_AT 54
#define SB_DATAOFF_AT       56
#define SB_MODE_AT          72
#define SB_ALIGN_AT         84
#define SB_CHECKSUM_AT      4088
#define SB_VERSION_MINOR    2
#define SB_MODE_RAM         1 /* the guest keeps its page structures in its own memory */

static const char signature[16] = "NVDIMM_PFN_INFO";

static void put_le(uint8_t *at, uint64_t value, size_t n)
{
	for (size_t i = 0; i < n; i++)
		at[i] = (uint8_t)(value >> (8 * i));
}

static uint64_t get_le(const uint8_t *at, size_t n)
{
	uint64_t value = 0;

	for (size_t i = 0; i < n; i++)
		value |= (uint64_t)at[i] << (8 * i);
	return value;
}

static uint64_t fletcher64(const uint8_t *data, size_t n)
{
	uint32_t low = 0;
	uint64_t high = 0;

	for (size_t i = 0; i < n; i += sizeof(uint32_t)) {
		low += (uint32_t)get_le(data + i, sizeof(uint32_t));
		high += low;
	}
	return high << 32 | low;
}

void kata_layout_pfn(uint64_t data_bytes, uint32_t align_bytes, uint8_t sb[static 4096])
{
	memset(sb, 0, PFN_BYTES);
	memcpy(sb, signature, sizeof(signature));
	put_le(sb + SB_VERSION_MINOR_AT, SB_VERSION_MINOR, sizeof(uint16_t));
	put_le(sb + SB_DATAOFF_AT, data_bytes, sizeof(uint64_t));
	put_le(sb + SB_MODE_AT, SB_MODE_RAM, sizeof(uint32_t));
	put_le(sb + SB_ALIGN_AT, align_bytes, sizeof(uint32_t));
	put_le(sb + SB_CHECKSUM_AT, fletcher64(sb, PFN_BYTES), sizeof(uint64_t));
}

/* One primary partition. Its numbers of sectors have 32 bits: what lies beyond 2 TiB is in none. Addresses of
 * cylinder, head and sector say that only the other ones count. */
static void put_partition(uint64_t image_bytes, uint8_t *mbr)
{
	uint64_t sectors = (image_bytes - KATA_ALIGN_BYTES) / SECTOR_BYTES;
	uint8_t *entry = mbr + MBR_ENTRY_AT;

	memset(entry + 1, 0xff, 3);
	entry[1] = 0xfe;
	entry[4] = MBR_TYPE_LINUX;
	memset(entry + 5, 0xff, 3);
	entry[5] = 0xfe;
	put_le(entry + 8, KATA_ALIGN_BYTES / SECTOR_BYTES, sizeof(uint32_t));
	put_le(entry + 12, sectors > UINT32_MAX ? UINT32_MAX : sectors, sizeof(uint32_t));
	mbr[MBR_SIGNATURE_AT] = 0x55;
	mbr[MBR_SIGNATURE_AT + 1] = 0xaa;
}

void kata_layout_write(uint64_t image_bytes, uint8_t head[static KATA_HEAD_BYTES])
{
	memset(head, 0, KATA_HEAD_BYTES);
	put_partition(image_bytes, head);
	kata_layout_pfn(KATA_ALIGN_BYTES, KATA_ALIGN_BYTES, head + PFN_AT);
}

bool kata_layout_is_image(const uint8_t head[static KATA_HEAD_BYTES])
{
	const uint8_t *sb = head + PFN_AT;

	return memcmp(sb, signature, sizeof(signature)) == 0 &&
	       get_le(sb + SB_DATAOFF_AT, sizeof(uint64_t)) == KATA_ALIGN_BYTES;
}
