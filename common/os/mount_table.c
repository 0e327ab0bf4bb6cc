/* SPDX-License-Identifier: Apache-2.0 */
#include "os/mount_table.h"

#include <errno.h>
#include <fcntl.h>
#include <libmount.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/parse.h"
#include "base/str.h"
#include "os/file.h"

#define FDINFO_MAX_BYTES 4096

DEFINE_CLEANUP(struct libmnt_table *, mnt_unref_table);
DEFINE_CLEANUP(struct libmnt_iter *, mnt_free_iter);

static bool is_shared(struct libmnt_fs *fs)
{
	unsigned long flags = 0;

	return mnt_fs_get_propagation(fs, &flags) == 0 && (flags & MS_SHARED);
}

static void add_entry(struct mount_table *t, struct libmnt_fs *fs)
{
	t->entries = x_realloc(t->entries, t->n + 1, sizeof(*t->entries));
	t->entries[t->n++] = (struct mount_entry){
		.id = (uint64_t)mnt_fs_get_id(fs),
		.dev = mnt_fs_get_devno(fs),
		.root = x_strdup(mnt_fs_get_root(fs)),
		.target = x_strdup(mnt_fs_get_target(fs)),
		.fstype = x_strdup(mnt_fs_get_fstype(fs)),
		.source = x_strdup(mnt_fs_get_source(fs)),
		.options = x_strdup(mnt_fs_get_vfs_options(fs)),
		.fs_options = x_strdup(mnt_fs_get_fs_options(fs)),
		.shared = is_shared(fs),
	};
}

/* libmount skips a line that it does not understand unless the callback says otherwise. */
static int refuse_line(struct libmnt_table *tb, const char *filename, int line)
{
	(void)tb;
	(void)filename;
	(void)line;
	return -EINVAL;
}

/* mnt_table_parse_mtab() would mix in /run/mount/utab, which other programs write; here only the kernel's
 * data is used. */
static int parse_stream(FILE *f, struct mount_table **ret, struct error **err)
{
	CLEANUP(mnt_unref_tablep) struct libmnt_table *tb = mnt_new_table();
	CLEANUP(mnt_free_iterp) struct libmnt_iter *it = mnt_new_iter(MNT_ITER_FORWARD);
	CLEANUP(mount_table_freep) struct mount_table *t = x_calloc(1, sizeof(*t));
	struct libmnt_fs *fs = NULL;
	int rc;

	if (!tb || !it)
		return err_set_errno(err, ERR_INTERNAL, ENOMEM, "read mount table");
	mnt_table_set_parser_errcb(tb, refuse_line);
	rc = mnt_table_parse_stream(tb, f, "mountinfo");
	if (rc != 0 && rc != -EINVAL)
		return err_set_errno(err, ERR_INTERNAL, rc < 0 ? -rc : EIO, "read mount table");
	if (rc != 0)
		return err_set(err, ERR_INTERNAL, "malformed mount table");
	while ((rc = mnt_table_next_fs(tb, it, &fs)) == 0) {
		if (!mnt_fs_get_root(fs) || !mnt_fs_get_target(fs) || !mnt_fs_get_vfs_options(fs))
			return err_set(err, ERR_INTERNAL, "mount table is not in mountinfo's format");
		add_entry(t, fs);
	}
	if (rc < 0)
		return err_set_errno(err, ERR_INTERNAL, -rc, "read mount table");
	*ret = TAKE_PTR(t);
	return 0;
}

int mount_table_read(struct mount_table **ret, struct error **err)
{
	CLEANUP(file_closep) FILE *f = fopen("/proc/self/mountinfo", "re");

	if (!f)
		return err_set_errno(err, ERR_INTERNAL, errno, "open /proc/self/mountinfo");
	return parse_stream(f, ret, err);
}

int mount_table_parse(const char *text, struct mount_table **ret, struct error **err)
{
	CLEANUP(free_charp) char *copy = x_strdup(text);
	CLEANUP(file_closep) FILE *f = fmemopen(copy, strlen(copy), "r");

	if (!f)
		return err_set_errno(err, ERR_INTERNAL, errno, "read mount table");
	return parse_stream(f, ret, err);
}

void mount_table_free(struct mount_table *t)
{
	if (!t)
		return;
	for (size_t i = 0; i < t->n; i++) {
		struct mount_entry *e = &t->entries[i];
		free(e->root);
		free(e->target);
		free(e->fstype);
		free(e->source);
		free(e->options);
		free(e->fs_options);
	}
	free(t->entries);
	free(t);
}

const struct mount_entry *mount_table_at(const struct mount_table *t, const char *target)
{
	for (size_t i = t->n; i > 0; i--)
		if (str_eq(t->entries[i - 1].target, target))
			return &t->entries[i - 1];
	return NULL;
}

static int read_mount_id(int fd, uint64_t *ret, struct error **err)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT(FDINFO_MAX_BYTES);
	CLEANUP(free_charp) char *path = x_asprintf("/proc/self/fdinfo/%d", fd);
	static const char key[] = "mnt_id:\t";

	if (file_read(AT_FDCWD, path, &text, err) < 0)
		return -1;
	const char *value = strstr(buf_str(&text), key);
	if (!value)
		return err_set(err, ERR_INTERNAL, "%s does not name the mount", path);
	value += strlen(key);
	CLEANUP(free_charp) char *number = x_strndup(value, strcspn(value, "\n"));
	return parse_u64(number, ret, err);
}

int mount_table_of(const struct mount_table *t, int fd, const struct mount_entry **ret, struct error **err)
{
	uint64_t id;

	if (read_mount_id(fd, &id, err) < 0)
		return err_wrap(err, "find the mount of a path");
	*ret = NULL;
	for (size_t i = 0; i < t->n && !*ret; i++) {
		if (t->entries[i].id == id)
			*ret = &t->entries[i];
	}
	return 0;
}

/* Whether @path is at or below @folder. */
static bool is_within(const char *path, const char *folder)
{
	size_t n = strlen(folder);

	if (str_eq(folder, "/"))
		return true;
	return str_starts(path, folder) && (path[n] == '\0' || path[n] == '/');
}

/* The mount that shows @path: the deepest, and of several at one place the last. */
static const struct mount_entry *shown_by(const struct mount_table *t, const char *path)
{
	const struct mount_entry *best = NULL;

	for (size_t i = 0; i < t->n; i++) {
		const struct mount_entry *e = &t->entries[i];
		if (is_within(path, e->target) && (!best || strlen(e->target) >= strlen(best->target)))
			best = e;
	}
	return best;
}

bool mount_table_propagates(const struct mount_table *t, const char *path, const char **ret_target)
{
	const struct mount_entry *e = shown_by(t, path);

	*ret_target = e ? e->target : "/";
	return e && e->shared;
}

static bool list_has(char *list, const char *option)
{
	char *name;
	char *value;
	size_t name_len;
	size_t value_len;
	size_t len = strlen(option);

	while (list && mnt_optstr_next_option(&list, &name, &name_len, &value, &value_len) == 0) {
		size_t whole_len = value ? (size_t)(value - name) + value_len : name_len;
		if (whole_len == len && memcmp(name, option, len) == 0)
			return true;
	}
	return false;
}

static bool either_has(const struct mount_entry *e, const char *option)
{
	return list_has(e->options, option) || list_has(e->fs_options, option);
}

/* Kernels before 5.8 show "dax", later ones "dax=always" for the same request
 * (Documentation/filesystems/dax.rst). */
bool mount_entry_has(const struct mount_entry *e, const char *option)
{
	if (str_eq(option, "dax") || str_eq(option, "dax=always"))
		return either_has(e, "dax") || either_has(e, "dax=always");
	return either_has(e, option);
}

/* fs/proc_namespace.c, show_mountinfo(): it comes first. */
bool mount_entry_is_readonly(const struct mount_entry *e)
{
	return str_eq(e->options, "ro") || str_starts(e->options, "ro,");
}
