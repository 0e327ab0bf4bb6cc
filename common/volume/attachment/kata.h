/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kata.h - what the Go driver set up for volumes with kataContainers=true, and taking it down again.
 *
 * It mounted the volume at <state folder>/mount/<id>, made one image file in there, and mounted a loop device
 * over that at the pod's target. We make none of that; pods that were started before we took the node over
 * still end. Source: the Go driver's pkg/pmem-csi-driver/nodeserver.go. Threads: safe under the volume's
 * lock. Blocks on the file system.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "base/error.h"

struct volume_record;

/** kata_has_image() - whether @r is a volume for Kata Containers. */
bool kata_has_image(const struct volume_record *r);

/** kata_is_loop() - whether @dev is the loop device over the image in @r. Return: 0, or -1 with ERR_INTERNAL.
 */
int kata_is_loop(const char *state_path, const struct volume_record *r, dev_t dev, bool *ret,
	struct error **err) MUST_CHECK;

/**
 * kata_clean() - once the last target of @r is unmounted: detach the loop device, unmount the volume from its
 * folder and remove that. While the loop is still mounted nothing is done.
 *
 * Idempotent. Return: 0, or -1 with ERR_PRECONDITION (busy), ERR_INTERNAL.
 */
int kata_clean(const char *state_path, const struct volume_record *r, struct error **err) MUST_CHECK;
