/* SPDX-License-Identifier: Apache-2.0 */
#include "os/blocks/fs_owners.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/fiemap.h>
#include <linux/fs.h>
#include <linux/openat2.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "os/blocks/fs_map.h"
#include "os/mount.h"

#define DENTS_BYTES    (32U << 10)
#define EXTENTS        256         /* that are read at once */
#define FOLDERS_BYTES  (64U << 20) /* paths of directories that are still to be read */
#define REST_PARTS_MAX 4096        /* from then on, parts are no longer divided */
#define NO_PLACE_FLAGS (FIEMAP_EXTENT_UNKNOWN | FIEMAP_EXTENT_DELALLOC)

struct parts {
	struct fs_part *list;
	size_t n;
};

struct search {
	const struct fs_owners_bound *bound;
	struct fs_owners found;
	struct parts rest;      /* of what was asked for: what has no owner yet */
	struct parts wanted;    /* the rest before the walk */
	struct fs_owners noted; /* inodes that the map names */
	bool shares;            /* a file shares a part with others, whose names are wanted, too */
	int mount_fd;
	struct buf folders; /* paths, each with its NUL */
	char *dents;
	struct fiemap *extents;
};

void fs_owners_done(struct fs_owners *o)
{
	for (size_t i = 0; i < o->n; i++)
		free(o->list[i].path);
	free(o->list);
	*o = (struct fs_owners){0};
}

const char *fs_owner_kind_name(enum fs_owner_kind kind)
{
	static const char *const names[] = {
		[FS_OWNER_FILE] = "file",
		[FS_OWNER_DIRECTORY] = "directory",
		[FS_OWNER_INODE] = "inode",
		[FS_OWNER_METADATA] = "metadata",
		[FS_OWNER_FREE] = "free",
		[FS_OWNER_UNKNOWN] = "unknown",
	};

	return names[kind];
}

static void search_done(struct search *s)
{
	fs_owners_done(&s->found);
	fs_owners_done(&s->noted);
	free(s->rest.list);
	free(s->wanted.list);
	fd_closep(&s->mount_fd);
	buf_done(&s->folders);
	free(s->dents);
	free(s->extents);
}

/* --- parts */

static struct parts copy_parts(const struct fs_part *list, size_t n)
{
	struct parts p = {.list = x_calloc(n + 1, sizeof(*list)), .n = n};

	if (n > 0)
		memcpy(p.list, list, n * sizeof(*list));
	return p;
}

/* Return: whether anything of @p is in the range. @ret: that */
static bool clip(const struct fs_part *p, uint64_t at_bytes, uint64_t length_bytes, struct fs_part *ret)
{
	uint64_t end = p->at_bytes + p->length_bytes;
	uint64_t from = at_bytes > p->at_bytes ? at_bytes : p->at_bytes;
	uint64_t to = at_bytes + length_bytes < end ? at_bytes + length_bytes : end;

	*ret = (struct fs_part){from, from < to ? to - from : 0};
	return from < to;
}

static void remove_part(struct parts *p, const struct fs_part *gone)
{
	struct parts left = {.list = x_calloc(p->n + 2, sizeof(*p->list))};
	uint64_t gone_end = gone->at_bytes + gone->length_bytes;

	for (size_t i = 0; i < p->n; i++) {
		const struct fs_part *e = &p->list[i];
		uint64_t end = e->at_bytes + e->length_bytes;
		struct fs_part both;

		if (!clip(e, gone->at_bytes, gone->length_bytes, &both) || left.n == REST_PARTS_MAX) {
			left.list[left.n++] = *e;
			continue;
		}
		if (e->at_bytes < gone->at_bytes)
			left.list[left.n++] = (struct fs_part){e->at_bytes, gone->at_bytes - e->at_bytes};
		if (end > gone_end)
			left.list[left.n++] = (struct fs_part){gone_end, end - gone_end};
	}
	free(p->list);
	*p = left;
}

/* Takes over @o.path. */
static void add_owner(struct fs_owners *to, struct fs_owner o)
{
	if (to->n == FS_OWNERS_MAX) {
		to->is_cut = true;
		free(o.path);
		return;
	}
	to->list = x_realloc(to->list, to->n + 1, sizeof(*to->list));
	to->list[to->n++] = o;
}

/* --- the map of the file system */

static void take_record(
	struct search *s, const struct fs_part *parts, size_t n, const struct fs_map_record *r)
{
	struct fs_part piece;

	for (size_t i = 0; r->kind != FS_MAP_UNKNOWN && i < n; i++) {
		if (!clip(&parts[i], r->at_bytes, r->length_bytes, &piece))
			continue;
		struct fs_owner o = {.kind = r->kind == FS_MAP_FREE    ? FS_OWNER_FREE
					     : r->kind == FS_MAP_INODE ? FS_OWNER_INODE
								       : FS_OWNER_METADATA,
			.at_bytes = piece.at_bytes,
			.length_bytes = piece.length_bytes,
			.inode = r->inode};
		add_owner(r->kind == FS_MAP_INODE ? &s->noted : &s->found, o);
		if (r->kind != FS_MAP_INODE)
			remove_part(&s->rest, &piece);
	}
}

/* Without a map, or with part of it, files are found all the same. */
static void read_map(struct search *s, int root_fd, const struct fs_part *parts, size_t n)
{
	CLEANUP(error_freep) struct error *failure = NULL;
	CLEANUP(fs_map_closep) struct fs_map *map = NULL;
	struct fs_map_record r;
	int rc = fs_map_open(root_fd, &map, &failure);

	while (rc == 0 && (rc = fs_map_next(map, &r, &failure)) > 0) {
		take_record(s, parts, n, &r);
		if (clock_ns() >= s->bound->deadline_ns)
			return;
		rc = 0;
	}
	if (rc < 0)
		log_debug("a file system does not say which of its blocks are free", F_ERR(failure));
}

/* --- one file */

static void take_extent(struct search *s, const char *path, bool is_folder, const struct fiemap_extent *e)
{
	struct fs_part piece;

	for (size_t i = 0; i < s->wanted.n; i++) {
		if (!clip(&s->wanted.list[i], e->fe_physical, e->fe_length, &piece))
			continue;
		add_owner(&s->found, (struct fs_owner){.kind = is_folder ? FS_OWNER_DIRECTORY : FS_OWNER_FILE,
					     .at_bytes = piece.at_bytes,
					     .length_bytes = piece.length_bytes,
					     .path = x_strdup(path),
					     .file_offset = e->fe_logical + piece.at_bytes - e->fe_physical,
					     .unwritten = e->fe_flags & FIEMAP_EXTENT_UNWRITTEN});
		remove_part(&s->rest, &piece);
		s->shares = s->shares || e->fe_flags & FIEMAP_EXTENT_SHARED;
	}
}

static bool is_late(const struct search *s)
{
	return clock_ns() >= s->bound->deadline_ns;
}

/* Return: whether all was read. Directories of xfs have no FIEMAP. */
static bool look_at_extents(struct search *s, int fd, const char *path, bool is_folder)
{
	uint64_t from = 0;

	for (;;) {
		*s->extents = (struct fiemap){
			.fm_start = from, .fm_length = UINT64_MAX - from, .fm_extent_count = EXTENTS};
		if (ioctl(fd, FS_IOC_FIEMAP, s->extents) < 0)
			return is_folder && (errno == EOPNOTSUPP || errno == ENOTTY);
		if (s->extents->fm_mapped_extents == 0)
			return true;
		for (uint32_t i = 0; i < s->extents->fm_mapped_extents; i++) {
			const struct fiemap_extent *e = &s->extents->fm_extents[i];

			if (!(e->fe_flags & NO_PLACE_FLAGS))
				take_extent(s, path, is_folder, e);
			if (e->fe_flags & FIEMAP_EXTENT_LAST)
				return true;
			from = e->fe_logical + e->fe_length;
		}
		if (is_late(s))
			return true; /* the walk ends for that reason */
	}
}

static bool is_gone(int os_errno)
{
	return os_errno == ENOENT || os_errno == ELOOP || os_errno == ENOTDIR || os_errno == ENXIO;
}

static void look_at_file(struct search *s, int dir_fd, const char *name, const char *path)
{
	CLEANUP(fd_closep)
	int fd = openat(dir_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	struct stat st;

	if (fd < 0 && is_gone(errno))
		return;
	s->found.n_files++;
	if (fd >= 0 && fstat(fd, &st) == 0 && !S_ISREG(st.st_mode))
		return;
	if (fd < 0 || !look_at_extents(s, fd, path, false))
		s->found.n_skipped++;
}

/* --- the walk */

/* Return: whether the walk goes on. */
static bool may_go_on(struct search *s)
{
	if (s->rest.n == 0 && !s->shares)
		return false;
	if (s->found.n_files >= s->bound->max_files)
		s->found.bound = "the number of files";
	else if (is_late(s))
		s->found.bound = "the time";
	return !s->found.bound;
}

static void note_folder(struct search *s, const char *path)
{
	size_t bytes = strlen(path) + 1;

	if (bytes > PATH_MAX || s->folders.len + bytes > FOLDERS_BYTES)
		s->found.n_skipped++;
	else
		buf_add(&s->folders, path, bytes);
}

/* Some file systems do not say it in their directories. */
static int find_type(int dir_fd, const struct dirent64 *d)
{
	struct stat st;

	if (d->d_type != DT_UNKNOWN)
		return d->d_type;
	return fstatat(dir_fd, d->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0 ? DT_UNKNOWN : IFTODT(st.st_mode);
}

static void look_at_entry(struct search *s, int dir_fd, const char *folder, const struct dirent64 *d)
{
	CLEANUP(free_charp) char *path = NULL;
	int type;

	if (str_eq(d->d_name, ".") || str_eq(d->d_name, ".."))
		return;
	path = x_asprintf("%s%s%s", folder, *folder ? "/" : "", d->d_name);
	type = find_type(dir_fd, d);
	if (type == DT_REG)
		look_at_file(s, dir_fd, d->d_name, path);
	else if (type == DT_DIR)
		note_folder(s, path);
}

static void read_folder(struct search *s, int fd, const char *path)
{
	ssize_t n;

	while ((n = getdents64(fd, s->dents, DENTS_BYTES)) > 0) {
		for (ssize_t at = 0; at < n;) {
			const struct dirent64 *d = (const struct dirent64 *)(const void *)(s->dents + at);

			if (!may_go_on(s))
				return;
			look_at_entry(s, fd, path, d);
			at += d->d_reclen;
		}
	}
	if (n < 0 && errno != ENOENT)
		s->found.n_skipped++;
}

static void look_at_folder(struct search *s, const char *path)
{
	struct open_how how = {.flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC,
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV};
	CLEANUP(fd_closep)
	int fd = (int)syscall(SYS_openat2, s->mount_fd, *path ? path : ".", &how, sizeof(how));

	if (fd < 0 && is_gone(errno))
		return;
	s->found.n_files++;
	if (fd < 0 || !look_at_extents(s, fd, path, true)) {
		s->found.n_skipped++;
		return;
	}
	read_folder(s, fd, path);
}

/* The last one that was found is read first, so that the list stays short. */
static char *take_folder(struct search *s)
{
	size_t at = s->folders.len - 1;

	while (at > 0 && s->folders.data[at - 1])
		at--;
	char *path = x_strdup((const char *)s->folders.data + at);
	s->folders.len = at;
	return path;
}

static void walk(struct search *s)
{
	note_folder(s, "");
	while (s->folders.len > 0 && may_go_on(s)) {
		CLEANUP(free_charp) char *path = take_folder(s);

		look_at_folder(s, path);
	}
}

/* --- the result */

static void add_inodes(struct search *s)
{
	for (size_t i = 0; i < s->noted.n; i++) {
		const struct fs_owner *note = &s->noted.list[i];
		struct parts rest = copy_parts(s->rest.list, s->rest.n);
		struct fs_part piece;

		for (size_t k = 0; k < rest.n; k++) {
			if (!clip(&rest.list[k], note->at_bytes, note->length_bytes, &piece))
				continue;
			add_owner(&s->found, (struct fs_owner){.kind = FS_OWNER_INODE,
						     .at_bytes = piece.at_bytes,
						     .length_bytes = piece.length_bytes,
						     .inode = note->inode});
			remove_part(&s->rest, &piece);
		}
		free(rest.list);
	}
}

static void add_rest(struct search *s)
{
	add_inodes(s);
	for (size_t i = 0; i < s->rest.n; i++)
		add_owner(&s->found, (struct fs_owner){.kind = FS_OWNER_UNKNOWN,
					     .at_bytes = s->rest.list[i].at_bytes,
					     .length_bytes = s->rest.list[i].length_bytes});
}

static int compare_owners(const void *a, const void *b)
{
	const struct fs_owner *x = a;
	const struct fs_owner *y = b;

	if (x->at_bytes != y->at_bytes)
		return x->at_bytes < y->at_bytes ? -1 : 1;
	return strcmp(x->path ? x->path : "", y->path ? y->path : "");
}

int fs_owners_find(int root_fd, const struct fs_part *parts, size_t n, const struct fs_owners_bound *bound,
	struct fs_owners *ret, struct error **err)
{
	CLEANUP(search_done)
	struct search s = {.bound = bound, .mount_fd = -1, .folders = BUF_INIT(FOLDERS_BYTES)};

	if (mount_open_apart(root_fd, &s.mount_fd, err) < 0)
		return -1;
	s.dents = x_malloc(DENTS_BYTES);
	s.extents = x_malloc(sizeof(*s.extents) + EXTENTS * sizeof(s.extents->fm_extents[0]));
	s.rest = copy_parts(parts, n);
	read_map(&s, s.mount_fd, parts, n);
	s.wanted = copy_parts(s.rest.list, s.rest.n);
	walk(&s);
	add_rest(&s);
	if (s.found.n > 0)
		qsort(s.found.list, s.found.n, sizeof(*s.found.list), compare_owners);
	*ret = s.found;
	s.found = (struct fs_owners){0};
	return 0;
}
