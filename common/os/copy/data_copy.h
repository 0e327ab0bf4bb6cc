/* SPDX-License-Identifier: Apache-2.0 */
/*
 * data_copy.h - copies parts of a block device to another one, past the page cache: what is read through the
 * cache of a device is stale while its file system is mounted with DAX.
 *
 * Pieces of 1 MiB are read into memory and written, which is as fast as larger ones, and twice as fast as
 * pieces of 64 KiB can be. A call works on larger ranges with a second thread of its own. Threads: safe.
 * Blocks until all is copied, cancelled, or failed.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "os/copy/fs_extents.h"

/* A multiple of all block sizes. */
#define DATA_COPY_HEAD_BYTES 4096

enum data_copy_role {
	DATA_COPY_SOURCE,        /* for reading; it may be mounted */
	DATA_COPY_SOURCE_UNUSED, /* for reading, and nothing else may have it */
	DATA_COPY_TARGET,        /* for reading and writing, and nothing else may have it */
};

/**
 * data_copy_open() - open a block device for data_copy.
 * @ret_fd: while it is open, a device that nothing else may have cannot be mounted; caller closes
 *
 * Return: 0, or -1 with ERR_PRECONDITION (in use, after a second of waiting), ERR_NOT_FOUND, ERR_INTERNAL.
 */
int data_copy_open(const char *device, enum data_copy_role role, int *ret_fd, struct error **err) MUST_CHECK;

/* Where a part of a source is to be read. */
struct data_copy_part {
	int fd;                /* as from_fd */
	uint64_t start_bytes;  /* of the part there */
	uint64_t length_bytes; /* not 0 */
};

struct data_copy {
	int from_fd;
	/* @n_parts of them, in their order all of the source; NULL: it is read by from_fd */
	const struct data_copy_part *parts;
	size_t n_parts;
	int to_fd;
	uint64_t bytes_per_s; /* of all threads together; 0: as fast as it can */
	/* Asked before each piece, and ten times in a second while the limit is waited for, by one thread at
	 * a time. false: stop. @done_bytes: of this call. NULL: never stop */
	bool (*go_on)(void *user, uint64_t done_bytes);
	void *user;
	/* Extended before each piece, so that nothing of the target is written outside of it; length 0:
	 * nothing is. NULL: it is not wanted. Zeros do not count */
	struct fs_extent *written;
	/* Gets the first DATA_COPY_HEAD_BYTES of what is copied, which are neither written nor zeroed then:
	 * the caller writes them last. Zeros at first. NULL: they are written */
	uint8_t *head;
};

/**
 * data_copy_extents() - copy some extents to the same places, durably.
 * @x: all of them within both devices, and multiples of their blocks
 *
 * Idempotent. Return: 0, or -1 with ERR_ABORTED (go_on() said so), ERR_INTERNAL (with the byte, within a
 * block of 4 KiB, at which the source could not be read or the target not be written).
 */
int data_copy_extents(const struct data_copy *c, const struct fs_extents *x, struct error **err) MUST_CHECK;

/**
 * data_copy_zero_gaps() - zero what no extent covers, durably, so that nothing of a former owner stays.
 * @c:        from_fd is not used
 * @x:        as data_copy_extents()
 * @to_bytes: size of the target, a multiple of its block
 *
 * The limit counts here, too. Idempotent. Return: 0, or -1 as data_copy_extents().
 */
int data_copy_zero_gaps(const struct data_copy *c, const struct fs_extents *x, uint64_t to_bytes,
	struct error **err) MUST_CHECK;
