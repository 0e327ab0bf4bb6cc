/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kata.h - what is set up for a pod that uses a volume with kataContainers=true, and taking it down again.
 *
 * The volume is mounted at <state folder>/mount/<id>, too, one image file is in there (kata_image.h), and a
 * loop device over that is mounted at the pod's target (volumes_publish_kata.c). The Go driver did the same,
 * so that each driver takes down what the other one has set up. Source: the Go driver's
 * pkg/pmem-csi-driver/nodeserver.go. Threads: safe under the volume's lock. Blocks on the file system.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "base/error.h"

struct mount_entry;
struct mount_table;
struct volume_record;
struct volumes;

/** kata_has_image() - whether @r is a volume for Kata Containers. */
bool kata_has_image(const struct volume_record *r);

/** kata_may_have_image() - the same for what takes down: parameters that cannot be read do not rule it out.
 */
bool kata_may_have_image(const struct volume_record *r);

/**
 * kata_is_loop() - whether @dev is a loop device over the image in a volume.
 * @id: of the volume
 * @r:  its record; NULL: none that can be read
 *
 * Such a device is found by the file system that it lies in, so that an image which was moved, or whose file
 * system fails, is found, too (os/loopdev.h). Return: 0, or -1 with ERR_INTERNAL.
 */
int kata_is_loop(struct volumes *v, const char *id, const struct volume_record *r, dev_t dev, bool *ret,
	struct error **err) MUST_CHECK;

/** kata_find_folder() - the folder in which @r is mounted besides, or was, as mountinfo shows it. Return:
 * caller frees; NULL: no such folder exists. */
char *kata_find_folder(const char *state_path, const struct volume_record *r);

/** kata_find_target() - where the image of @r is mounted for a pod. @ret: borrowed from @t; NULL: nowhere.
 * Return: 0, or -1 with ERR_INTERNAL. */
int kata_find_target(struct volumes *v, const struct volume_record *r, const struct mount_table *t,
	const struct mount_entry **ret, struct error **err) MUST_CHECK;

/** kata_refuse_published() - fail if a pod uses the image of @r, which grows when it is published next.
 * Return: 0, or -1 with ERR_PRECONDITION, ERR_INTERNAL. */
int kata_refuse_published(struct volumes *v, const struct volume_record *r, struct error **err) MUST_CHECK;

/** kata_flush() - write what ordinary pods have written to the file system in the image of @r to the image.
 * Failures do not count: what pods have flushed themselves is there. */
void kata_flush(struct volumes *v, const struct volume_record *r);

/**
 * kata_clean() - once the last target of a volume is unmounted: detach the loop device, unmount the volume
 * from its folder and remove that. While the loop is still mounted nothing is done.
 * @id: of the volume
 * @r:  its record; NULL: none that can be read
 *
 * A mount of something else over the folder is left alone, with a warning: the volume then counts as in use
 * until that is unmounted, and the pod ends. Idempotent. Return: 0, or -1 with ERR_PRECONDITION (busy),
 * ERR_INTERNAL.
 */
int kata_clean(
	struct volumes *v, const char *id, const struct volume_record *r, struct error **err) MUST_CHECK;
