/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lvm_metadata_reserve.h - how many volumes the metadata of a volume group can describe, less a reserve that
 * is kept free.
 *
 * The reserve is for volumes with hundreds of segments, and for removing volumes, which writes a new text,
 * too. Sizes are those that LVM reports (struct lvm_vg). Threads: safe. Nothing blocks.
 */
#pragma once

#include "pmem/lvm/lvm.h"

/** lvm_metadata_max_volumes() - how many of our volumes @vg can describe in all, at least 1; 0: LVM does not
 * report the size of its metadata. */
uint64_t lvm_metadata_max_volumes(const struct lvm_vg *vg);

/** lvm_metadata_more_volumes() - how many more of our volumes @vg can describe. */
uint64_t lvm_metadata_more_volumes(const struct lvm_vg *vg);
