/* SPDX-License-Identifier: Apache-2.0 */
/*
 * btt.h - what a block translation table keeps beside its sectors.
 *
 * Sources: drivers/nvdimm/btt.h, btt.c; Documentation/driver-api/nvdimm/btt.rst. Threads: safe. Blocks on the
 * device.
 */
#pragma once

#include <stdint.h>

#include "base/error.h"

/** btt_erase_spare() - zero the blocks that no sector shows. Each processor that wrote has left one with what
 * its last write replaced, so content outlives the erasing of all sectors. @fd: the whole namespace, without
 * the table before it, open for reading and writing; one that holds no table stays as it is. @size_bytes: its
 * size; nothing beyond is touched, whatever the table says. Idempotent. Return: 0, or -1 with ERR_INTERNAL.
 */
int btt_erase_spare(int fd, uint64_t size_bytes, struct error **err) MUST_CHECK;
