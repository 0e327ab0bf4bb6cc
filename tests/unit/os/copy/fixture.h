/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fixture.h - file systems on disks of their own, in the scratch folder, for tests of what copies them.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "unit/os/scratch.h"

#define TIMEOUT_MS 120000
#define DIRTY      0xa5 /* all bytes of a new disk: the content of a former owner */

struct fixture_disk {
	const char *fstype;
	uint64_t size_bytes;
	struct scratch_disk disk;
	char file[32];  /* below the disk */
	char mount[32]; /* where it is mounted; "" when it is not */
	int dir_fd;     /* its root; -1 when it is not mounted */
};

/** fixture_types - NULL-terminated. */
extern const char *const fixture_types[];

/** fixture_disk() - new disk full of DIRTY, without a file system. */
struct fixture_disk fixture_disk(const char *name, uint64_t size_bytes);

/** fixture_make() - the same with a file system that is mounted, as small as its kind can be in earnest. */
struct fixture_disk fixture_make(const char *fstype, const char *name);

/** fixture_mount() - mount at SCRATCH "/mNAME", which is made. */
void fixture_mount(struct fixture_disk *d, const char *name, const char *options);
void fixture_unmount(struct fixture_disk *d);

/** fixture_disk_done() - unmount and detach; the file below it is removed. */
void fixture_disk_done(struct fixture_disk *d);

/** fixture_write() - new file of @n bytes @value in @dir_fd, durable. */
void fixture_write(int dir_fd, const char *name, int value, uint64_t n);

/** fixture_is_clean() - whether e2fsck -fn or xfs_repair -n finds nothing wrong; it is not mounted. */
bool fixture_is_clean(const struct fixture_disk *d);

/** fixture_check_clean() - the test fails with their output if not. */
void fixture_check_clean(const struct fixture_disk *d);
