/* SPDX-License-Identifier: Apache-2.0 */
/*
 * adopted_kind.h - of what kind a volume is whose record was lost: mounted on the node, an image for Kata
 * Containers, given to guests, or a block volume.
 *
 * An image shows itself. File systems that the node or a guest mounts look the same, and a wrong guess makes
 * two writers, so that an administrator has to say which it is. Threads: none. Blocks on the device.
 */
#pragma once

#include <stdbool.h>

#include "base/error.h"

struct device;
struct volume_record;

/* What the administrator says. */
enum adopted_kind {
	ADOPTED_AS_FOUND, /* nothing */
	ADOPTED_BLOCK,
	ADOPTED_FILESYSTEM, /* the node mounts its file system, in which there may be an image */
	ADOPTED_DIRECT,
};

/** adopted_kind_noun() - such as "block volume". */
const char *adopted_kind_noun(enum adopted_kind kind);

/** adopted_kind_is() - whether @r is recorded as @kind already, so that nothing has to be looked at. */
bool adopted_kind_is(const struct volume_record *r, enum adopted_kind kind);

/**
 * adopted_kind_settle() - record in @r, in memory, of which kind it is, instead of what it says.
 * @r:     of a volume whose record was lost
 * @d:     its device, which nothing uses
 * @found: what volumes_recognise() says of it; NULL: nothing
 *
 * As long as a guest may have the device, which is unless the administrator says ADOPTED_FILESYSTEM, nothing
 * is written to it. Return: 0, or -1 with ERR_PRECONDITION (a file system, and nothing shows who mounts it),
 * or as fs_open_detached().
 */
int adopted_kind_settle(struct volume_record *r, const struct device *d, const char *found,
	enum adopted_kind kind, struct error **err) MUST_CHECK;
