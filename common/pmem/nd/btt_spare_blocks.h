/* SPDX-License-Identifier: Apache-2.0 */
/*
 * btt_spare_blocks.h - the blocks of a block translation table that belong to no sector.
 *
 * Sources: drivers/nvdimm/btt.h, drivers/nvdimm/btt.c; Documentation/driver-api/nvdimm/btt.rst. Threads:
 * safe. Blocks on the device.
 */
#pragma once

#include <stdint.h>

#include "base/error.h"

/** btt_erase_spare() - zero the blocks that belong to no sector. Each processor that wrote has left one, with
 * the data that its last write replaced, so old content would remain after erasing all sectors. @fd: the
 * whole namespace, without the table before it, open for reading and writing; one without a table is left
 * unchanged. @size_bytes: its size; nothing beyond it is changed, whatever the table says. Idempotent.
 * Return: 0, or -1 with ERR_INTERNAL.
 */
int btt_erase_spare(int fd, uint64_t size_bytes, struct error **err) MUST_CHECK;
