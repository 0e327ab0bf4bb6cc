/* SPDX-License-Identifier: Apache-2.0 */
#include "pmem/lvm/lvm_metadata_reserve.h"

/* Bytes of metadata text for one of our volumes, which has a name of up to 63 bytes, a tag and one segment.
 */
#define LV_TEXT_BYTES 512
/* Bytes of metadata text that describe a volume group and its devices, without its volumes. */
#define VG_TEXT_BYTES     2048
#define MIN_RESERVE_BYTES 2048
#define MAX_RESERVE_BYTES (64U << 10)

/*
 * The old and the new metadata text must both fit into a metadata area (_vg_write_raw() of LVM's
 * lib/format_text/format-text.c), so that a text can grow to half of the area.
 */
static uint64_t reserve_bytes(const struct lvm_vg *vg)
{
	uint64_t part = vg->mda_bytes / 32;

	return part < MIN_RESERVE_BYTES   ? MIN_RESERVE_BYTES
	       : part > MAX_RESERVE_BYTES ? MAX_RESERVE_BYTES
					  : part;
}

uint64_t lvm_metadata_max_volumes(const struct lvm_vg *vg)
{
	uint64_t taken = VG_TEXT_BYTES + reserve_bytes(vg);

	if (vg->mda_bytes == 0)
		return 0;
	return vg->mda_bytes / 2 > taken ? (vg->mda_bytes / 2 - taken) / LV_TEXT_BYTES : 1;
}

uint64_t lvm_metadata_more_volumes(const struct lvm_vg *vg)
{
	uint64_t reserve = reserve_bytes(vg);

	return vg->mda_free_bytes > reserve ? (vg->mda_free_bytes - reserve) / LV_TEXT_BYTES : 0;
}
