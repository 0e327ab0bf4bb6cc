/* SPDX-License-Identifier: Apache-2.0 */
/*
 * raw_content.h - whether a raw namespace may hold something: a signature, an info block of another mode, a
 * user, or a record that it was in a volume group.
 *
 * Code that removes or overwrites a raw namespace calls these functions first. Threads: safe. Blocks on the
 * device.
 */
#pragma once

#include "pmem/nd/nd.h"

/** raw_content_check_unused() - check that @path is not mounted, and that no program holds it exclusively.
 * Return: 0, or -1 as blockdev_open_exclusive(). */
int raw_content_check_unused(const char *path, struct error **err) MUST_CHECK;

/** raw_content_find() - what the block device @path holds: a file system, an LVM device, a partition table,
 * or the info block of a namespace. @ret: "" if nothing is recognised; caller frees. Return: 0, or -1 as
 * fs_probe(). */
int raw_content_find(const char *path, char **ret, struct error **err) MUST_CHECK;

/** raw_content_may_hide() - whether raw_content_find_hidden() matters for @ns, which is raw. Legacy memory is
 * DRAM, which begins with anything; where there are labels, a raw namespace has what earlier ones left there.
 */
bool raw_content_may_hide(const struct nd_region *region, const struct nd_namespace *ns);

/**
 * raw_content_find_hidden() - what @path holds although raw_content_find() recognises nothing: bytes at its
 * beginning that are neither all 0 nor all 0xff, or the info block of a namespace that began further on, when
 * there were labels.
 *
 * Takes some seconds for each TiB. @ret: "" if there is neither; caller frees. Return: 0, or -1 with
 * ERR_INTERNAL.
 */
int raw_content_find_hidden(const char *path, char **ret, struct error **err) MUST_CHECK;

/** raw_content_former_group() - why @ns, which is raw, may hold the volumes of a group that it was in.
 * @folder: of pool_backup.h; NULL: there are no records. Return: caller frees; NULL: no record says so. */
char *raw_content_former_group(
	const char *folder, const struct nd_region *region, const struct nd_namespace *ns);
