/* SPDX-License-Identifier: Apache-2.0 */
/*
 * check_private.h - what the files of check.h share.
 */
#pragma once

#include "inspect/check.h"
#include "volume/presence.h"

/** check_add() - add a finding that is a mismatch. @text and @remedy are taken over. Return: it, until the
 * next is added. */
struct check_finding *check_add(
	struct check_findings *f, enum check_kind kind, const char *id, char *text, char *remedy);

/** check_note() - turn the finding that was added last into a note. */
void check_note(struct check_findings *f);

/** check_mounts_of() - what is mounted against what @r records. @d: its device, or NULL while it is missing
 */
void check_mounts_of(const struct check_view *v, const struct volume_record *r, const struct device *d,
	struct check_findings *f);

/** check_is_stale() - whether @r, whose device is @d (NULL: missing), is not mounted at @path, which it
 * records. Where nothing can be known of what is mounted there, it is not stale. */
bool check_is_stale(
	const struct check_view *v, const struct volume_record *r, const char *path, const struct device *d);

/** check_staging_is_stale() - check_is_stale() of the staging path; for block access nothing is mounted
 * there.
 */
bool check_staging_is_stale(
	const struct check_view *v, const struct volume_record *r, const struct device *d);

/** check_mounts_of_stranger() - mounts of a device without state. */
void check_mounts_of_stranger(const struct check_view *v, const struct device *d, struct check_findings *f);

/** check_loops() - loop devices over files of ours that belong to nothing any more. */
void check_loops(const struct check_view *v, struct check_findings *f);

/** check_record() - the record of @id, borrowed, or NULL. */
const struct volume_record *check_record(const struct check_view *v, const char *id);

/** check_mount_shows() - whether @e shows the device number @at of the listing, or its node. */
bool check_mount_shows(const struct check_view *v, const struct mount_entry *e, size_t at);
