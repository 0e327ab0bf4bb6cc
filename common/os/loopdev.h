/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loopdev.h - loop devices over files (fake volumes, Kata image files). Source: linux/loop.h.
 *
 * A loop is found again by the device and inode of its backing file, or by their file system, so nothing
 * needs to be remembered across a crash. Threads: safe. Blocks briefly.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "base/error.h"

/**
 * loop_attach() - a loop device over a whole file.
 * @file_fd:  regular file; read-only if the descriptor is
 * @ret_path: "/dev/loopN", caller frees
 *
 * Idempotent: an attached one is returned; two callers at once for one file must exclude each other.
 * Return: 0, or -1 with ERR_UNAVAILABLE (no free loop; the old one is still being detached), ERR_INTERNAL.
 */
int loop_attach(int file_fd, char **ret_path, struct error **err) MUST_CHECK;

/**
 * loop_attach_part() - a new loop device over the end of a file, which the kernel detaches as soon as nothing
 * has it open or mounted.
 * @file_fd:      regular file, open for writing unless @readonly
 * @offset_bytes: where the device begins in the file; a multiple of 512
 * @ret_fd:       keeps it attached; caller closes
 * @ret_path:     "/dev/loopN", caller frees
 *
 * Not idempotent: each call makes one. Source: drivers/block/loop.c, LO_FLAGS_AUTOCLEAR. Return: 0, or -1
 * with ERR_UNAVAILABLE (no free loop device).
 */
int loop_attach_part(int file_fd, uint64_t offset_bytes, bool readonly, int *ret_fd, char **ret_path,
	struct error **err) MUST_CHECK;

/**
 * loop_find() - the loop device over a file.
 * @ret_path: "/dev/loopN", caller frees; NULL when there is none
 *
 * Return: 0, or -1 with ERR_INTERNAL.
 */
int loop_find(int file_fd, char **ret_path, struct error **err) MUST_CHECK;

/**
 * loop_find_each() - the loop devices over several files, in one pass over all loop devices.
 * @files:     what stat(2) says of them
 * @n:         how many
 * @ret_paths: array of @n, NULL before; "/dev/loopN", caller frees, after failure, too; NULL where there is
 * none
 *
 * Return: 0, or -1 with ERR_INTERNAL.
 */
int loop_find_each(const struct stat *files, size_t n, char **ret_paths, struct error **err) MUST_CHECK;

/* Describes the loop devices over one file, for a search when the file may have been moved, or cannot be
 * read. */
struct loop_place {
	dev_t fs_dev;          /* the file system of the file, as stat(2) says; 0: not known */
	uint64_t offset_bytes; /* where the devices begin in the file */
	const char *path;      /* of the file as it was when they were attached: that alone counts where the
				  file system is not known, or fails */
};

/**
 * loop_find_in() - the loop devices over files of a file system that begin at an offset.
 * @place:     where
 * @ret_paths: strv of "/dev/loopN", NULL: none; caller frees
 *
 * An xfs that has shut down answers nothing, so that the kernel does not say of a loop device over its files
 * where they are (drivers/block/loop.c, loop_get_status(); fs/xfs/xfs_iops.c, xfs_vn_getattr()). For such a
 * device sysfs shows only the path of the file, and only a part of the path if the device was attached in a
 * mount namespace that has ended: then the device is not found. Return: 0, or -1 with ERR_INTERNAL.
 */
int loop_find_in(const struct loop_place *place, char ***ret_paths, struct error **err) MUST_CHECK;

/** loop_detach_in() - loop_detach() for all that loop_find_in() finds. Return: as loop_detach(). */
int loop_detach_in(const struct loop_place *place, struct error **err) MUST_CHECK;

/** loop_detach() - detach the loop device over a file; none is success. Idempotent. Blocks up to 2 s while
 * others have the device open. Return: 0, or -1 with ERR_PRECONDITION (mounted: nothing changed; still open:
 * the last close detaches it), ERR_INTERNAL. */
int loop_detach(int file_fd, struct error **err) MUST_CHECK;

/** loop_update_size() - make the loop device over a file as large as the file is now, which programs that
 * have it open or mounted see at once; no loop device is success. Idempotent. Return: 0, or -1 with
 * ERR_INTERNAL.
 */
int loop_update_size(int file_fd, struct error **err) MUST_CHECK;

struct loop_entry {
	char *path;    /* "/dev/loopN" */
	char *backing; /* path of its file as it was when it was attached, " (deleted)" behind if it is gone
			*/
};

struct loop_list {
	struct loop_entry *entries; /* in the order of their numbers */
	size_t n;
};

/**
 * loop_list_read() - all loop devices over files, from sysfs: none is opened.
 * @ret: loop_list_free()
 *
 * Return: 0, or -1 with ERR_INTERNAL.
 */
int loop_list_read(struct loop_list **ret, struct error **err) MUST_CHECK;
void loop_list_free(struct loop_list *l);
DEFINE_CLEANUP(struct loop_list *, loop_list_free);
