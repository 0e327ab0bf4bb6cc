/* SPDX-License-Identifier: Apache-2.0 */
#include "pmem/pool/pool_backup.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/durable_step.h"
#include "base/json/json.h"
#include "base/mem.h"
#include "base/parse.h"
#include "base/str.h"
#include "os/file.h"

#define STATE_MODE       0750 /* as state.c makes it */
#define FOLDER_MODE      0700
#define RECORD_MODE      0600
#define RECORD_MAX_BYTES 4096
/* Limit for the lines that LVM writes before the metadata in a backup file: its version, the host and the
 * whole command. */
#define COPY_HEAD_BYTES (64U << 10)
#define OLDER_MAX       5

char *pool_backup_folder(const char *state_path)
{
	return x_asprintf("%s/lvm", state_path);
}

static char *part_of(const char *folder, const char *part)
{
	return x_asprintf("%s/%s", folder, part);
}

static int make_folder(const char *path, mode_t mode, struct error **err)
{
	CLEANUP(fd_closep) int fd = -1;

	return dir_open(path, /* create= */ true, mode, &fd, err);
}

int pool_backup_open(const char *state_path, struct lvm *l, struct error **err)
{
	static const char *const parts[] = {"namespaces", "older", "copies"};
	CLEANUP(free_charp) char *folder = pool_backup_folder(state_path);
	CLEANUP(free_charp) char *copies = part_of(folder, "copies");

	if (make_folder(state_path, STATE_MODE, err) < 0 || make_folder(folder, FOLDER_MODE, err) < 0)
		return -1;
	for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
		CLEANUP(free_charp) char *path = part_of(folder, parts[i]);
		if (make_folder(path, FOLDER_MODE, err) < 0)
			return -1;
	}
	lvm_set_backup_dir(l, copies);
	return 0;
}

/* Where there are no labels, a region is one namespace, and only its identity stays the same. */
static char *record_name(const struct nd_region *region, const struct nd_namespace *ns)
{
	char *name = x_asprintf("%s.json", *ns->uuid ? ns->uuid : region->identity);

	for (char *c = name; *c; c++)
		if (!isalnum((unsigned char)*c) && !strchr("-_.", *c))
			*c = '_';
	return name;
}

void pool_record_done(struct pool_record *r)
{
	free(r->group);
	free(r->group_uuid);
	free(r->pv_uuid);
	*r = (struct pool_record){0};
}

static int read_member(void *user, const char *key, struct json_reader *j, struct error **err)
{
	struct pool_record *r = user;

	if (str_eq(key, "group"))
		return json_read_str(j, &r->group, err);
	if (str_eq(key, "groupUUID"))
		return json_read_str(j, &r->group_uuid, err);
	if (str_eq(key, "pvUUID"))
		return json_read_str(j, &r->pv_uuid, err);
	return json_skip_value(j, err);
}

static int parse_record(struct span text, struct pool_record *r, struct error **err)
{
	if (json_read_document(text, read_member, r, err) < 0)
		return -1;
	if (str_empty(r->group) || !r->group_uuid || str_empty(r->pv_uuid))
		return err_set(err, ERR_INVALID_ARGUMENT, "it names no group");
	return 0;
}

int pool_backup_find(const char *folder, const struct nd_region *region, const struct nd_namespace *ns,
	struct pool_record *ret, struct error **err)
{
	CLEANUP(pool_record_done) struct pool_record r = {0};
	CLEANUP(buf_done) struct buf text = BUF_INIT(RECORD_MAX_BYTES);
	CLEANUP(error_freep) struct error *why = NULL;

	*ret = (struct pool_record){0};
	if (!folder)
		return 0;
	CLEANUP(free_charp) char *name = record_name(region, ns);
	CLEANUP(free_charp) char *path = x_asprintf("%s/namespaces/%s", folder, name);
	if (file_read(AT_FDCWD, path, &text, &why) < 0) {
		if (why->code == ERR_NOT_FOUND)
			return 0;
		return err_set(err, ERR_INTERNAL, "record of %s: %s", ns->dev, why->msg);
	}
	if (parse_record(buf_span(&text), &r, &why) < 0)
		return err_set(err, ERR_INTERNAL, "record of %s: %s: %s", ns->dev, path, why->msg);
	*ret = r;
	r = (struct pool_record){0};
	return 0;
}

static bool is_same(const struct pool_record *r, const struct lvm_pv *pv)
{
	return str_eq(r->group, pv->vg_name) && str_eq(r->group_uuid, pv->vg_uuid) &&
	       str_eq(r->pv_uuid, pv->uuid);
}

static int write_record(const char *folder, const char *name, const struct lvm_pv *pv, struct error **err)
{
	CLEANUP(free_charp) char *path = part_of(folder, "namespaces");
	CLEANUP(buf_done) struct buf text = BUF_INIT(RECORD_MAX_BYTES);
	struct json_writer w = JSON_WRITER(&text);
	CLEANUP(fd_closep) int fd = -1;

	json_object(&w);
	json_key_str(&w, "group", pv->vg_name);
	json_key_str(&w, "groupUUID", pv->vg_uuid);
	json_key_str(&w, "pvUUID", pv->uuid);
	json_object_end(&w);
	buf_addc(&text, '\n');
	if (buf_check(&text, name, err) < 0)
		return -1;
	if (dir_open(path, /* create= */ false, 0, &fd, err) < 0)
		return -1;
	return file_write_atomic(fd, name, buf_span(&text), RECORD_MODE, err);
}

int pool_backup_record(const char *folder, const struct nd_region *region, const struct nd_namespace *ns,
	const struct lvm_pv *pv, struct error **err)
{
	CLEANUP(pool_record_done) struct pool_record known = {0};
	CLEANUP(free_charp) char *name = record_name(region, ns);
	CLEANUP(error_freep) struct error *ignored = NULL;

	/* one that cannot be read is replaced */
	if (pool_backup_find(folder, region, ns, &known, &ignored) == 0 && is_same(&known, pv))
		return 0;
	if (write_record(folder, name, pv, err) < 0)
		return err_wrap(err, "record that %s is in volume group %s", ns->dev, pv->vg_name);
	return 0;
}

/* Keeps the first of several failures. */
static void keep_first(struct error **first, struct error **later)
{
	if (!*first)
		*first = TAKE_PTR(*later);
	error_clear(later);
}

int pool_backup_note(const char *folder, const struct nd_inventory *inv, const struct lvm_report *report,
	struct error **err)
{
	CLEANUP(error_freep) struct error *first = NULL;

	for (size_t i = 0; i < inv->n_regions; i++)
		for (size_t k = 0; k < inv->regions[i].n_namespaces; k++) {
			const struct nd_namespace *ns = &inv->regions[i].namespaces[k];
			const struct lvm_pv *pv =
				nd_is_pool(ns) ? lvm_report_pv(report, ns->block_path) : NULL;
			CLEANUP(error_freep) struct error *later = NULL;

			if (pv && *pv->vg_uuid && *pv->uuid &&
				pool_backup_record(folder, &inv->regions[i], ns, pv, &later) < 0)
				keep_first(&first, &later);
		}
	if (!first)
		return 0;
	*err = TAKE_PTR(first);
	return -1;
}

/* --- copies of metadata */

struct copy {
	char *path; /* NULL: none */
	uint64_t seqno;
};

static void copy_done(struct copy *c)
{
	free(c->path);
	*c = (struct copy){0};
}

/* The value of `key = value` in the group's own section, which it begins with. Return: caller frees, or NULL.
 */
static char *find_value(const char *text, const char *key)
{
	CLEANUP(free_charp) char *start = x_asprintf("\n\t%s = ", key);
	const char *at = strstr(text, start);

	if (!at)
		return NULL;
	at += strlen(start);
	at += *at == '"';
	return x_strndup(at, strcspn(at, "\"\n"));
}

/* Reads only the beginning of a copy that LVM has written. Return: whether it is a copy of that group.
 */
static bool read_copy(const char *path, const char *group_uuid, uint64_t *ret_seqno)
{
	CLEANUP(fd_closep) int fd = open(path, O_RDONLY | O_CLOEXEC);
	CLEANUP(free_charp) char *text = x_calloc(1, COPY_HEAD_BYTES + 1);
	CLEANUP(error_freep) struct error *ignored = NULL;

	if (fd < 0 || read(fd, text, COPY_HEAD_BYTES) <= 0)
		return false;
	CLEANUP(free_charp) char *uuid = find_value(text, "id");
	CLEANUP(free_charp) char *seqno = find_value(text, "seqno");
	return uuid && seqno && str_eq(uuid, group_uuid) && parse_u64(seqno, ret_seqno, &ignored) == 0;
}

/* The newest copy of a group, whatever its name was when it was written. */
static void find_copy(const char *folder, const char *group_uuid, struct copy *ret)
{
	CLEANUP(free_charp) char *copies = part_of(folder, "copies");
	CLEANUP(error_freep) struct error *ignored = NULL;
	CLEANUP(copy_done) struct copy best = {0};
	CLEANUP(strv_freep) char **names = NULL;
	CLEANUP(fd_closep) int fd = -1;

	*ret = (struct copy){0};
	if (dir_open(copies, /* create= */ false, 0, &fd, &ignored) < 0 || dir_list(fd, &names, &ignored) < 0)
		return;
	for (char **name = names; name && *name; name++) {
		CLEANUP(free_charp) char *path = part_of(copies, *name);
		uint64_t seqno = 0;

		if (**name == '.' || !read_copy(path, group_uuid, &seqno))
			continue;
		if (best.path && seqno <= best.seqno)
			continue;
		copy_done(&best);
		best = (struct copy){.path = TAKE_PTR(path), .seqno = seqno};
	}
	*ret = best;
	best = (struct copy){0};
}

struct older {
	char *name;
	uint64_t seqno;
};

static int compare_older(const void *a, const void *b)
{
	const struct older *x = a, *y = b;

	return x->seqno < y->seqno ? -1 : x->seqno > y->seqno;
}

/* Names in older/ are the group's UUID, a dot and the sequence number. */
static void drop_oldest(int dir_fd, const char *group_uuid)
{
	CLEANUP(free_charp) char *prefix = x_asprintf("%s.", group_uuid);
	CLEANUP(error_freep) struct error *ignored = NULL;
	CLEANUP(strv_freep) char **names = NULL;
	struct older *found = NULL;
	size_t n = 0;

	if (dir_list(dir_fd, &names, &ignored) < 0)
		return;
	for (char **name = names; name && *name; name++) {
		struct older o = {.name = *name};
		if (!str_starts(*name, prefix) || parse_u64(*name + strlen(prefix), &o.seqno, &ignored) < 0) {
			error_clear(&ignored);
			continue;
		}
		found = x_realloc(found, n + 1, sizeof(*found));
		found[n++] = o;
	}
	if (n > 0)
		qsort(found, n, sizeof(*found), compare_older);
	for (size_t i = 0; i + OLDER_MAX < n; i++)
		(void)!STEP("copy-drop", unlinkat(dir_fd, found[i].name, 0));
	free(found);
}

/* A second name for the file: LVM replaces the first one and does not write into it. */
static int keep_older(const char *folder, const char *group_uuid, const struct copy *c, struct error **err)
{
	CLEANUP(free_charp) char *path = part_of(folder, "older");
	CLEANUP(free_charp) char *name = x_asprintf("%s.%ju", group_uuid, (uintmax_t)c->seqno);
	CLEANUP(fd_closep) int fd = -1;

	if (dir_open(path, /* create= */ false, 0, &fd, err) < 0)
		return -1;
	if (STEP("copy-keep", linkat(AT_FDCWD, c->path, fd, name, 0)) < 0 && errno != EEXIST)
		return err_set_errno(err, ERR_INTERNAL, errno, "keep %s in %s", c->path, path);
	drop_oldest(fd, group_uuid);
	return 0;
}

static bool is_current(const char *folder, const struct lvm_vg *vg)
{
	CLEANUP(free_charp) char *path = x_asprintf("%s/copies/%s", folder, vg->name);
	uint64_t seqno = 0;

	return read_copy(path, vg->uuid, &seqno) && seqno == vg->seqno;
}

/* LVM does not write a copy of what it sees only in parts. */
static bool can_be_copied(const struct lvm_vg *vg)
{
	return vg->missing_pvs == 0 && vg->seqno > 0;
}

char **pool_backup_stale(const char *folder, const struct lvm_report *report)
{
	char **names = NULL;

	for (size_t i = 0; i < report->n_vgs; i++)
		if (can_be_copied(&report->vgs[i]) && !is_current(folder, &report->vgs[i]))
			strv_add(&names, report->vgs[i].name);
	return names;
}

static int catch_up(const char *folder, struct lvm *l, const struct lvm_vg *vg, struct error **err)
{
	const char *const argv[] = {"vgcfgbackup", vg->name, NULL};
	CLEANUP(copy_done) struct copy copy = {0};

	if (is_current(folder, vg))
		return 0;
	find_copy(folder, vg->uuid, &copy);
	if (copy.path && keep_older(folder, vg->uuid, &copy, err) < 0)
		return -1;
	return STEP("lvm-copy", lvm_run(l, argv, NULL, err));
}

int pool_backup_catch_up(
	const char *folder, struct lvm *l, const struct lvm_report *report, struct error **err)
{
	CLEANUP(error_freep) struct error *first = NULL;

	for (size_t i = 0; i < report->n_vgs; i++) {
		const struct lvm_vg *vg = &report->vgs[i];
		CLEANUP(error_freep) struct error *later = NULL;

		if (!can_be_copied(vg))
			continue;
		if (catch_up(folder, l, vg, &later) < 0) {
			(void)!err_wrap(&later, "save the metadata of volume group %s", vg->name);
			keep_first(&first, &later);
		}
	}
	if (!first)
		return 0;
	*err = TAKE_PTR(first);
	return -1;
}

char *pool_backup_newest(const char *folder, const char *group_uuid)
{
	CLEANUP(copy_done) struct copy copy = {0};

	find_copy(folder, group_uuid, &copy);
	return TAKE_PTR(copy.path);
}

char *pool_backup_older_path(const char *folder, const char *group_uuid, uint64_t seqno)
{
	return x_asprintf("%s/older/%s.%ju", folder, group_uuid, (uintmax_t)seqno);
}

int pool_backup_keep_text(
	const char *folder, const char *group_uuid, uint64_t seqno, struct span text, struct error **err)
{
	CLEANUP(free_charp) char *path = part_of(folder, "older");
	CLEANUP(free_charp) char *name = x_asprintf("%s.%ju", group_uuid, (uintmax_t)seqno);
	CLEANUP(fd_closep) int fd = -1;

	if (dir_open(path, /* create= */ false, 0, &fd, err) < 0)
		return -1;
	return file_write_atomic(fd, name, text, RECORD_MODE, err);
}
