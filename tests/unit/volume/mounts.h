/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mounts.h - one volume on a loop device, the paths at which it is staged and published, and what is mounted
 * there.
 */
#pragma once

#include "os/mount_table.h"
#include "unit/volume/fixture.h"

struct mounts {
	struct volume_info *volume;
	struct device *device;
	char *staging; /* a folder */
	char *target;  /* its parent exists */
	char *other;   /* likewise */
};

extern struct mounts mt;

/** mounts_set_up() - set-up: fixture_folder() and a volume of @size_bytes. All of it goes with the tear-down.
 */
void mounts_set_up(uint64_t size_bytes);

/** mounts_set_up_block() - the same with a volume for block access. */
void mounts_set_up_block(uint64_t size_bytes);

/** mounts_stage_request() and mounts_publish_request() - for the volume, without flags and context. */
struct use_request mounts_stage_request(const char *fs_type);
struct use_request mounts_publish_request(const char *target, enum access_mode mode);

/** mounts_count() - how many mounts are stacked at @path. */
size_t mounts_count(const char *path);

/** mounts_top() - the topmost one; there must be one. Its strings stay until the next call. */
const struct mount_entry *mounts_top(const char *path);

/** mounts_record() - the volume's state file. Return: volume_record_free(). */
struct volume_record *mounts_record(void);

/** mounts_has_target() - whether @path is recorded as published. */
bool mounts_has_target(const char *path);

/** mounts_write() - make a file in @folder. Return: 0 or errno. */
int mounts_write(const char *folder);

/** mounts_has_file() - whether that file is in @folder. */
bool mounts_has_file(const char *folder);

/** mounts_damage() - some of the volume's memory loses its content: it is in the list of bad blocks.
 * Multiples of 512 bytes. The volume has to be the first one in its region. */
void mounts_damage(uint64_t offset_bytes, uint64_t length_bytes);
