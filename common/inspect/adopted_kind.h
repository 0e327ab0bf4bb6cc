/* SPDX-License-Identifier: Apache-2.0 */
/*
 * adopted_kind.h - finds out of which kind a volume is whose record was lost: whether the node mounts it, it
 * has an image for Kata Containers, it is given to guests, or it is a block volume.
 *
 * An image can be recognised. But a file system that the node mounts looks like one that a guest mounts, and
 * after a wrong guess both could write to it. So an administrator has to name the kind. Threads: none. Blocks
 * on the device.
 */
#pragma once

#include <stdbool.h>

#include "base/error.h"

struct device;
struct volume_record;

/* The kind of the volume that the administrator names. */
enum adopted_kind {
	ADOPTED_AS_FOUND, /* the administrator names none */
	ADOPTED_BLOCK,
	ADOPTED_FILESYSTEM, /* the node mounts its file system, in which there may be an image */
	ADOPTED_DIRECT,
};

/** adopted_kind_noun() - the noun for @kind in messages, such as "block volume". Return: static. */
const char *adopted_kind_noun(enum adopted_kind kind);

/** adopted_kind_is() - whether @r is recorded as @kind already, so that the device need not be examined. */
bool adopted_kind_is(const struct volume_record *r, enum adopted_kind kind);

/**
 * adopted_kind_settle() - replace the kind in @r, in memory, by @kind or by the kind that the content of the
 * device shows.
 * @r:     of a volume whose record was lost
 * @d:     its device, which nothing uses
 * @found: the content that volumes_recognise() has found on it; NULL: none
 *
 * Only with ADOPTED_FILESYSTEM the log of the file system is replayed, which writes to the device: otherwise
 * a guest may use the device, and nothing is written to it. Return: 0, or -1 with ERR_PRECONDITION (a file
 * system, and nothing shows who mounts it), or as fs_open_detached().
 */
int adopted_kind_settle(struct volume_record *r, const struct device *d, const char *found,
	enum adopted_kind kind, struct error **err) MUST_CHECK;
