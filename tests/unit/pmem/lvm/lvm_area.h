/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lvm_area.h - LVM's labels and metadata areas, as in its lib/format_text/layout.h.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define LVM_AREA_FIRST 4096

/** lvm_area_put() - write a header without its checksum at @offset of @path. @used: whether it points at a
 * text. */
void lvm_area_put(const char *path, uint64_t offset, uint64_t size_bytes, bool used);

/** lvm_area_put_text() - write a sound area whose text begins @skip bytes behind its beginning (512 at
 * least), and goes on behind the header where it reaches the end. */
void lvm_area_put_text(
	const char *path, uint64_t offset, uint64_t size_bytes, uint64_t skip, const char *text);

/** lvm_area_damage() - change a byte at @offset of @path. */
void lvm_area_damage(const char *path, uint64_t offset);

/** lvm_label_put() - write a sound label. @uuid: with dashes; @second_offset: of a second area; 0: none */
void lvm_label_put(const char *path, const char *uuid, uint64_t second_offset);
