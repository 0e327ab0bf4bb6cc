/* SPDX-License-Identifier: Apache-2.0 */
#include "inspect/lost_files.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/str.h"
#include "os/blockdev_mounts.h"
#include "volume/presence.h"

#define PAGE_BYTES    4096
#define UTF8_MAX      4
#define PATH_TEXT_MAX (4U * (PATH_MAX + NAME_MAX + 1))

#define OR_DELETE "; deleting the volume ends it, too, and loses all that is in it"

static const struct mount_entry *find_mount(const struct check_view *v, dev_t dev)
{
	for (size_t i = 0; dev && i < v->mounts->n; i++) {
		const struct mount_entry *e = &v->mounts->entries[i];

		if (str_eq(e->root, "/") && blockdev_mount_kind(e, dev) == BLOCKDEV_MOUNT_FS)
			return e;
	}
	return NULL;
}

/* That mount, and not one that hides it. */
static int open_root(const struct check_view *v, const struct mount_entry *e, int *ret_fd, struct error **err)
{
	CLEANUP(fd_closep) int fd = open(e->target, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	const struct mount_entry *shown = NULL;

	if (fd < 0)
		return err_set_errno(err, ERR_INTERNAL, errno, "open %s", e->target);
	if (mount_table_of(v->mounts, fd, &shown, err) < 0)
		return -1;
	if (!shown || shown->dev != e->dev)
		return err_set(err, ERR_UNAVAILABLE, "another mount hides %s", e->target);
	*ret_fd = TAKE_FD(fd);
	return 0;
}

static int search(const struct check_view *v, const struct mount_entry *e,
	const struct fs_owners_bound *bound, struct lost_volume *lost, struct error **err)
{
	CLEANUP(fd_closep) int fd = -1;
	struct fs_part parts[MEDIA_ERRORS_MAX];

	for (size_t i = 0; i < lost->media->n; i++)
		parts[i] = (struct fs_part){
			lost->media->list[i].offset_bytes, lost->media->list[i].length_bytes};
	if (open_root(v, e, &fd, err) < 0)
		return -1;
	return fs_owners_find(fd, parts, lost->media->n, bound, &lost->owners, err);
}

static void look_at_volume(
	const struct check_view *v, const struct fs_owners_bound *bound, dev_t dev, struct lost_volume *lost)
{
	CLEANUP(error_freep) struct error *failure = NULL;
	const struct mount_entry *e = find_mount(v, dev);

	if (!e) {
		lost->why_not = x_strdup(lost->record->snapshot
						 ? "it is a snapshot, which is never mounted"
						 : "no file system on it is mounted here: look again while a "
						   "pod uses it; of a block volume only the place is known");
		return;
	}
	lost->mount = e->target;
	if (search(v, e, bound, lost, &failure) < 0)
		lost->why_not = x_strdup(failure->msg);
}

static void add_volume(const struct check_view *v, const struct volume_record *r,
	const struct fs_owners_bound *bound, struct lost_files *f)
{
	const struct device *d = NULL;

	if (r->phase != PHASE_READY || presence_of(v->devices, r, &d) != DEVICE_PRESENT)
		return;
	size_t at = (size_t)(d - v->devices->devices);
	const struct media_errors *media = v->media ? &v->media[at] : NULL;

	f->n_unknown += !media || media->unknown;
	if (!media || media->n == 0)
		return;
	f->list = x_realloc(f->list, f->n + 1, sizeof(*f->list));
	f->list[f->n] = (struct lost_volume){.record = r, .device = d, .media = media};
	look_at_volume(v, bound, v->numbers[at], &f->list[f->n++]);
}

void lost_files_find(const struct check_view *v, const struct fs_owners_bound *bound, struct lost_files *ret)
{
	struct lost_files f = {0};

	for (size_t i = 0; i < v->state.n_records; i++)
		add_volume(v, v->state.records[i], bound, &f);
	*ret = f;
}

void lost_files_done(struct lost_files *f)
{
	for (size_t i = 0; i < f->n; i++) {
		free(f->list[i].why_not);
		fs_owners_done(&f->list[i].owners);
	}
	free(f->list);
	*f = (struct lost_files){0};
}

/* Holes are made of whole pages: less than a page would be written to, and fail. */
static char *file_remedy(const struct fs_owner *o)
{
	uint64_t from = o->file_offset / PAGE_BYTES * PAGE_BYTES;
	uint64_t to = (o->file_offset + o->length_bytes + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;

	if (o->unwritten)
		return x_strdup("nothing is lost: the file was never written there, and reads as zeros");
	return x_asprintf(
		"these bytes of the file are lost: restore it from a backup under another name, and "
		"remove it; or give up the bytes with fallocate -p -o %ju -l %ju FILE, which then "
		"read as zeros and can be written again" OR_DELETE,
		(uintmax_t)from, (uintmax_t)(to - from));
}

static char *unknown_remedy(const struct lost_volume *v)
{
	const struct fs_owners *o = &v->owners;

	if (o->bound)
		return x_asprintf(
			"not found within the bound: %s was reached after %ju files; look again with "
			"a larger -maxFiles or -maxTime",
			o->bound, (uintmax_t)o->n_files);
	if (o->n_skipped > 0)
		return x_asprintf(
			"not found, and %ju files or directories could not be looked at: they fail, "
			"are in use with a lease, or have too long a path" OR_DELETE,
			(uintmax_t)o->n_skipped);
	return x_strdup(
		"no file has it: it is metadata that the file system does not name, or a deleted file "
		"that is still open; copy what can be read to another volume" OR_DELETE);
}

char *lost_file_remedy(const struct lost_volume *v, const struct fs_owner *o)
{
	switch (o->kind) {
	case FS_OWNER_FILE:
		return file_remedy(o);
	case FS_OWNER_DIRECTORY:
		return x_strdup("names of files in it are lost, and the files cannot be reached: copy what "
				"can be read to another volume; while no pod uses the volume, e2fsck moves "
				"files without a name to lost+found" OR_DELETE);
	case FS_OWNER_INODE:
		return x_asprintf(
			"attributes or the list of blocks of an inode, or a file that was not "
			"found: find %s -xdev -inum %ju names it; restore it from a backup" OR_DELETE,
			v->mount, (uintmax_t)o->inode);
	case FS_OWNER_METADATA:
		return x_strdup("the file system itself has it, which may fail at any time: copy what can be "
				"read to another volume" OR_DELETE);
	case FS_OWNER_FREE:
		return x_strdup(
			"nothing is lost: no file has it; the file system writes zeros there before a "
			"file gets it, which makes it readable where the platform can");
	case FS_OWNER_UNKNOWN:
		break;
	}
	return unknown_remedy(v);
}

/* Return: length of the character at @p, of which @n bytes are left; 0: it is not shown as it is. */
static size_t plain_char(const char *p, size_t n)
{
	for (size_t len = 1; len <= UTF8_MAX && len <= n; len++) {
		if (str_is_utf8(p, len))
			return *p == '\\' || str_is_control(p) || str_is_format(p) ? 0 : len;
	}
	return 0;
}

char *lost_file_path(const struct fs_owner *o)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT(PATH_TEXT_MAX);
	size_t left = o->path ? strlen(o->path) : 0;

	if (!o->path)
		return NULL;
	for (const char *p = o->path; left > 0;) {
		size_t plain = plain_char(p, left);

		if (plain > 0)
			buf_add(&text, p, plain);
		else
			buf_addf(&text, "\\%03o", (unsigned)(unsigned char)*p);
		p += plain > 0 ? plain : 1;
		left -= plain > 0 ? plain : 1;
	}
	return x_strdup(buf_str(&text));
}
