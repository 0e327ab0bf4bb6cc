/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lvm_area.h - headers of LVM's metadata areas, as in its lib/format_text/layout.h, without their
 * checksums.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define LVM_AREA_FIRST 4096

/** lvm_area_put() - write a header at @offset of @path. @used: whether it points at a text. */
void lvm_area_put(const char *path, uint64_t offset, uint64_t size_bytes, bool used);
