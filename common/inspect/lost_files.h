/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lost_files.h - which files of a node's volumes have lost part of their content, because the memory below
 * them cannot be read.
 *
 * Nothing is changed, no lock is taken, and no device is read, so that this is allowed while a driver and
 * pods run. Threads: none. Blocks on the file systems that it looks at; while it looks at one, that stays
 * mounted for the kernel.
 */
#pragma once

#include "inspect/check.h"
#include "os/blocks/fs_owners.h"

/** A volume below which there is a media error. */
struct lost_volume {
	const struct volume_record *record; /* borrowed from the view */
	const struct device *device;        /* likewise */
	const struct media_errors *media;   /* likewise */
	const char *mount;       /* where its file system is mounted, borrowed from the view; NULL: nowhere */
	char *why_not;           /* why files were not looked for; NULL: they were */
	struct fs_owners owners; /* with the parts that could not be looked up as FS_OWNER_UNKNOWN, unless
				  * why_not is set */
};

struct lost_files {
	struct lost_volume *list; /* in the order of the view's records */
	size_t n;
	size_t n_unknown; /* volumes of which it is not known whether their memory can be read */
};

/**
 * lost_files_find() - find to which files the media errors of all volumes belong.
 * @v:     has to outlive the result
 * @bound: of the walk through each file system; the deadline is for all together
 * @ret:   lost_files_done()
 */
void lost_files_find(const struct check_view *v, const struct fs_owners_bound *bound, struct lost_files *ret);

/** lost_files_done() - release what @f owns; safe on a zeroed one. */
void lost_files_done(struct lost_files *f);

/**
 * lost_file_remedy() - what can be done about the part @o of volume @v, and what that loses.
 *
 * Return: caller frees.
 */
char *lost_file_remedy(const struct lost_volume *v, const struct fs_owner *o);

/** lost_file_path() - the path of @o with everything that is not printable UTF-8, and each backslash, as
 * "\ooo" in octal. Return: caller frees; NULL: it has none. */
char *lost_file_path(const struct fs_owner *o);
