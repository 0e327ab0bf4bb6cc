/* SPDX-License-Identifier: Apache-2.0 */
/*
 * copy_completion.h - whether a copy of a volume was finished, as its device shows it.
 *
 * The record of a copy may be older than its device: the state folder was restored from a backup, and the
 * copy has been finished and written to since. So each copy ends with a step that can be seen: until then its
 * device begins with a mark instead of its first bytes, and its file system does not have the UUID that was
 * recorded for it before there was a device. docs/decisions/109-copies-show-that-they-are-finished.md.
 * Threads: safe. Blocks on the device.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "volume/state.h"

struct device;
struct volumes;

enum copy_completion {
	COPY_UNFINISHED, /* the device does not have all that was to be copied, or holds nothing at all */
	COPY_FINISHED,   /* and it may have been written to since */
	COPY_UNKNOWN,
};

/** copy_completion_mark() - mark the new device at the path @device durably as a copy that is not finished.
 * @identity: of the device. Idempotent. Return: 0, or -1 with ERR_PRECONDITION (in use), ERR_INTERNAL. */
int copy_completion_mark(const char *device, const char *identity, struct error **err) MUST_CHECK;

/** copy_completion_is_marked() - whether that mark, or a part of it, is on the device with @identity. Return:
 * 0, or -1 with ERR_INTERNAL. */
int copy_completion_is_marked(
	const char *device, const char *identity, bool *ret, struct error **err) MUST_CHECK;

/** copy_completion_look() - find out whether the copy @r was finished.
 * @source_uuid: recorded UUID of the file system of its source; NULL: not known
 * @device:      path of its device
 *
 * Of a copy that was begun before its device was marked, all of a device without a file system is read, up to
 * the first byte that is not zero. Return: 0, or -1 with ERR_INTERNAL. */
int copy_completion_look(const struct volume_record *r, const char *source_uuid, const char *device,
	enum copy_completion *ret, struct error **err) MUST_CHECK;

/** The last step of a copy; all is borrowed. */
struct copy_last_step {
	struct volume_record *r; /* in phase CREATING, with all that is to be recorded */
	const struct device *to;
	int *to_fd;          /* of the device, with O_DIRECT; closed before its UUID is set */
	const uint8_t *head; /* DATA_COPY_HEAD_BYTES with which the device begins */
	const char *fs_type; /* of the file system that gets its UUID; NULL: none does */
};

/**
 * copy_completion_finish() - record @s->r as it is to be when it is ready, replace the mark by the first
 * bytes of the copy, and then set the UUID of its file system.
 *
 * All else has to be durable on the device. The step of the lock of the volume is set. Return: 0, or -1 as
 * records_save(), fs_set_uuid(), or with ERR_INTERNAL.
 */
int copy_completion_finish(struct volumes *v, const struct copy_last_step *s, struct error **err) MUST_CHECK;
