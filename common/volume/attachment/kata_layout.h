/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kata_layout.h - the first bytes of an image from which a guest of Kata Containers gets a file system with
 * DAX.
 *
 * The runtime shows the whole file to the guest as an NVDIMM. A PFN superblock at 4 KiB, as ndctl writes it
 * for a namespace in mode fsdax, makes the guest's kernel offer a block device with DAX whose data begin at 2
 * MiB, where the file system is; a partition table lets other programs find that, too. Sources: Linux,
 * drivers/nvdimm/pfn.h (struct nd_pfn_sb) and drivers/nvdimm/core.c (nd_fletcher64()); the Go driver's
 * pkg/imagefile. Threads: safe. Nothing blocks.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Where the file system begins, and what sizes of images are multiples of, in bytes. */
#define KATA_ALIGN_BYTES (2ULL << 20)

/* Number of bytes that kata_layout_write() writes. */
#define KATA_HEAD_BYTES 8192

/** kata_layout_write() - the head of an image. @image_bytes: size of the whole image, a multiple of
 * KATA_ALIGN_BYTES and at least two of them. */
void kata_layout_write(uint64_t image_bytes, uint8_t head[static KATA_HEAD_BYTES]);

/** kata_layout_is_image() - whether @head begins an image: it has a PFN superblock with that signature, whose
 * data begin at KATA_ALIGN_BYTES. The root of a guest may have changed it. */
bool kata_layout_is_image(const uint8_t head[static KATA_HEAD_BYTES]);

/** kata_layout_pfn() - a PFN superblock. @data_bytes: where data begin; @align_bytes: alignment of pages.
 * @sb: 4096 bytes */
void kata_layout_pfn(uint64_t data_bytes, uint32_t align_bytes, uint8_t sb[static 4096]);
