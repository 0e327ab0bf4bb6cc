/* SPDX-License-Identifier: Apache-2.0 */
#include "volume/direct/volumes_direct.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "os/boot_id.h"
#include "os/fs.h"
#include "os/mount.h"
#include "os/mount_table.h"
#include "os/paths.h"
#include "volume/attachment/allowed_mount_flags.h"
#include "volume/attachment/attachment.h"
#include "volume/attachment/attachment_dax.h"
#include "volume/attachment/mount_flags.h"
#include "volume/direct/direct_folder.h"
#include "volume/volumes_private.h"

#define SOURCE_PREFIX     "pmem-csi-direct-"
#define CONTENT_MAX_BYTES 16384

void direct_pod_done(struct direct_pod *p)
{
	free(p->fs_group);
	free(p->fs_group_change_policy);
	*p = (struct direct_pod){0};
}

int volumes_find_fs_group(
	struct volumes *v, const struct use_request *q, struct direct_pod *ret, struct error **err)
{
	if (!v->pods || !v->pods->fs_group)
		return 0;
	return v->pods->fs_group(
		v->pods->user, q->context, &ret->fs_group, &ret->fs_group_change_policy, err);
}

bool volumes_is_direct_mount(const char *id, const struct mount_entry *e)
{
	return str_eq(e->fstype, "tmpfs") && str_starts(e->source, SOURCE_PREFIX) &&
	       str_eq(e->source + strlen(SOURCE_PREFIX), id);
}

const struct mount_entry *volumes_direct_target(const struct volume_record *r, const struct mount_table *t)
{
	for (size_t i = 0; i < t->n; i++) {
		if (volumes_is_direct_mount(r->id, &t->entries[i]))
			return &t->entries[i];
	}
	return NULL;
}

/* --- stage */

static const char *fs_type_of(const struct volume_record *r, const struct use_request *q)
{
	if (!str_empty(q->fs_type))
		return q->fs_type;
	return r->fs_type ? r->fs_type : VOLUME_DEFAULT_FS;
}

static int check_use(const struct volume_record *r, const struct use_request *q, struct error **err)
{
	const char *fs_type = fs_type_of(r, q);

	if (q->block)
		return err_set(err, ERR_INVALID_ARGUMENT,
			"volume %s is a direct volume, and such volumes have a file system", r->id);
	if (!fs_known(fs_type))
		return err_set(
			err, ERR_INVALID_ARGUMENT, "file system \"%s\" is neither ext4 nor xfs", fs_type);
	return allowed_mount_flags_check(q->mount_flags, fs_type, err);
}

static bool is_staged_at(const struct volume_record *r, const char *at)
{
	return r->staged_block && str_eq(r->staging_path, at);
}

/* A volume that cannot grow is usable as it is; NodeExpandVolume says why. */
static void grow(
	struct volumes *v, const struct volume_record *r, const struct device *d, const char *fs_type)
{
	CLEANUP(error_freep) struct error *err = NULL;

	if (volumes_grow_unmounted(v, r, d, fs_type, &err) < 0)
		log_warn("the file system of a volume did not grow to the size of its device",
			F_STR("volume", r->id), F_ERR(err));
}

static int record_staging(
	struct volumes *v, struct volume_record *r, const struct attachment_request *q, struct error **err)
{
	if (r->ever_staged && is_staged_at(r, q->canonical_path) && !r->sandboxes)
		return 0;
	r->ever_staged = true;
	r->formatting = false;
	r->staged_block = true;
	free(r->staging_path);
	r->staging_path = x_strdup(q->canonical_path);
	strv_free(TAKE_PTR(r->staged_flags));
	/* none of them runs any more */
	volumes_forget_sandboxes(r);
	return records_save(v->records, r, err);
}

/* A missing folder must not cause anything to be written. */
static int require_folder(struct volumes *v, const struct attachment_request *q, struct error **err)
{
	CLEANUP(fd_closep) int fd = -1;

	return path_open(v->roots, q->requested_path, PATH_DIR, &fd, err) < 0 ? err_wrap(err, "staging path")
									      : 0;
}

static int prepare(
	struct volumes *v, struct volume_record *r, const struct attachment_request *q, struct error **err)
{
	CLEANUP(device_freep) struct device *d = NULL;
	const char *fs_type = fs_type_of(r, q->use);
	/* a guest has no DAX with a disk */
	const struct fs_layout layout = {
		.project_quota = strv_contains(q->use->mount_flags, "prjquota"), .without_dax = true};
	const struct volume_change change = {
		.what = "volume staged", .staging = q->canonical_path, .begun_ns = clock_ns()};

	if (volumes_find_block_device(v, r, "staged", &d, err) < 0)
		return -1;
	if (volumes_refuse_guest(v, r, d, err) < 0) {
		if ((*err)->code != ERR_PRECONDITION || !is_staged_at(r, q->canonical_path))
			return -1;
		/* as when kubelet was restarted: what is staged already stays so, whatever uses it */
		error_clear(err);
		return 0;
	}
	if (device_view_confirm_path(v->device_view, r, d, err) < 0 ||
		volumes_prepare_fs(v, r, d, fs_type, layout, /* readonly= */ false, err) < 0)
		return -1;
	grow(v, r, d, fs_type);
	bool news = !is_staged_at(r, q->canonical_path);
	if (record_staging(v, r, q, err) < 0)
		return -1;
	if (news)
		volumes_log_change(v, r, &change);
	return 0;
}

int volumes_stage_direct(
	struct volumes *v, struct volume_record *r, const struct attachment_request *q, struct error **err)
{
	if (check_use(r, q->use, err) < 0 || require_folder(v, q, err) < 0)
		return -1;
	return prepare(v, r, q, err) < 0 ? err_wrap(err, "stage volume %s", r->id) : 0;
}

/* --- publish */

struct direct_publication {
	struct volumes *v;
	struct volume_record *r;
	const struct attachment_request *q;
	struct mount_table *table;
	struct device *device;
	char *entry;
	int folder_fd;
	struct buf content; /* of mountInfo.json */
	bool was_ours;      /* the entry was recorded before */
	bool is_made;       /* it may be there now */
	uint64_t begun_ns;
};

static void direct_publication_done(struct direct_publication *p)
{
	mount_table_free(p->table);
	device_free(p->device);
	free(p->entry);
	fd_closep(&p->folder_fd);
	buf_done(&p->content);
}

/* Without DAX, and mount(2) takes no words that only take others back. */
static char **options_of(const struct attachment_request *q)
{
	char *const *asked = q->use->mount_flags;
	char **options = NULL;

	for (size_t i = 0; asked && asked[i]; i++) {
		if (!attachment_dax_is_flag(asked[i]) && !mount_flag_is_no_option(asked[i]))
			strv_add(&options, asked[i]);
	}
	if (q->readonly && !strv_contains(options, "ro"))
		strv_add(&options, "ro");
	return options;
}

static int describe(
	struct direct_publication *p, const char *device, const struct direct_pod *pod, struct error **err)
{
	CLEANUP(strv_freep) char **options = options_of(p->q);
	const struct direct_mount m = {.device = device,
		.fs_type = fs_type_of(p->r, p->q->use),
		.fs_group = pod->fs_group,
		.fs_group_change_policy = pod->fs_group_change_policy,
		.options = options};

	return direct_mount_format(&m, &p->content, err);
}

static int open_folder(struct direct_publication *p, struct error **err)
{
	if (!p->v->direct_dir)
		return err_set(err, ERR_PRECONDITION,
			"this node gives no volumes to guests: -directVolumesDir does not say where runtimes look for "
			"them");
	return direct_folder_open(p->v->direct_dir, /* create= */ true, &p->folder_fd, err);
}

/* As when kubelet was restarted. A guest has read the entry, or may do so at any time: it stays as it is. */
static int compare(struct direct_publication *p, const struct mount_entry *here, const struct direct_pod *pod,
	struct error **err)
{
	CLEANUP(buf_done) struct buf is = BUF_INIT(CONTENT_MAX_BYTES);

	if (!volumes_is_direct_mount(p->r->id, here) || !p->r->direct_entry || !p->r->direct_device)
		return err_set(err, ERR_EXISTS, "something other than volume %s is mounted at %s", p->r->id,
			here->target);
	if (describe(p, p->r->direct_device, pod, err) < 0 ||
		direct_entry_read(p->folder_fd, p->r->direct_entry, &is, err) < 0)
		return -1;
	if (str_eq(buf_str(&is), buf_str(&p->content)))
		return 0;
	if (is.len == 0)
		return err_set(err, ERR_PRECONDITION,
			"volume %s is published at %s, and its entry %s is gone: it has to be unpublished first",
			p->r->id, here->target, p->r->direct_entry);
	return err_set(err, ERR_EXISTS,
		"volume %s is already published at %s in another way: as %s, but %s was requested", p->r->id,
		here->target, buf_str(&is), buf_str(&p->content));
}

/* Recorded first: an entry is removed only if a record names it. One of a publication that was cut off was
 * removed before. */
static int record(struct direct_publication *p, struct error **err)
{
	struct volume_record *r = p->r;

	p->was_ours = str_eq(r->direct_entry, p->entry);
	if (r->direct_entry && !p->was_ours) {
		volumes_remove_direct(p->v, r);
		if (r->direct_entry)
			return err_set(err, ERR_PRECONDITION,
				"entry %s of a target where volume %s is not published any more cannot be removed "
				"(see the log)",
				r->direct_entry, r->id);
	}
	free(r->direct_entry);
	r->direct_entry = x_strdup(p->entry);
	free(r->direct_device);
	r->direct_device = x_strdup(p->device->path);
	volumes_forget_sandboxes(r);
	if (boot_id_read(&r->sandbox_boot, err) < 0)
		return -1;
	strv_free(TAKE_PTR(r->targets));
	strv_add(&r->targets, p->q->canonical_path);
	return records_save(p->v->records, r, err);
}

static int write_entry(struct direct_publication *p, struct error **err)
{
	if (direct_entry_write(p->folder_fd, p->entry, p->was_ours, buf_span(&p->content), err) == 0) {
		p->is_made = true;
		return 0;
	}
	p->is_made = (*err)->code != ERR_EXISTS;
	if (!p->is_made)
		err_recode(err, ERR_PRECONDITION);
	return -1;
}

static int read_back(const struct direct_publication *p, struct error **err)
{
	CLEANUP(mount_table_freep) struct mount_table *table = NULL;

	if (mount_table_read(&table, err) < 0)
		return -1;
	const struct mount_entry *e = mount_table_at(table, p->q->canonical_path);
	if (e && volumes_is_direct_mount(p->r->id, e) && mount_entry_is_readonly(e))
		return 0;
	return err_set(err, ERR_INTERNAL, "the mount at %s is not the requested one", p->q->canonical_path);
}

static int mount_target(struct direct_publication *p, struct error **err)
{
	CLEANUP(free_charp) char *source = x_asprintf(SOURCE_PREFIX "%s", p->r->id);
	CLEANUP(error_freep) struct error *ignored = NULL;
	CLEANUP(fd_closep) int parent_fd = -1;
	CLEANUP(fd_closep) int target_fd = -1;
	bool created = false;

	if (path_make(p->v->roots, p->q->requested_path, PATH_DIR, &target_fd, &created, err) < 0)
		return err_wrap(err, "target path");
	if (volumes_refuse_content(p->q->canonical_path, target_fd, err) == 0 &&
		mount_open_parent(p->q->canonical_path, &parent_fd, err) == 0 &&
		mount_empty(source, target_fd, err) == 0) {
		if (read_back(p, err) == 0)
			return 0;
		(void)!mount_remove_from(parent_fd, p->q->canonical_path, &ignored);
		error_clear(&ignored);
	}
	if (created)
		(void)!path_remove(p->v->roots, p->q->requested_path, &ignored);
	return -1;
}

/* Undoes a publication that failed. If the entry was not made by this call, it belongs to another program:
 * then only its name is removed from the record, so that it is not taken for ours later. */
static void undo(struct direct_publication *p)
{
	if (p->is_made)
		volumes_remove_direct(p->v, p->r);
	else
		free(TAKE_PTR(p->r->direct_entry));
	volumes_forget_target(p->r, p->q->canonical_path);
	volumes_save_detached(p->v, p->r);
}

static int publish_new(struct direct_publication *p, const struct direct_pod *pod, struct error **err)
{
	const struct volume_change change = {.what = "volume published to a guest",
		.target = p->q->canonical_path,
		.of = p->q->claim,
		.begun_ns = p->begun_ns};

	/* the kernel uses names of devices again */
	if (volumes_find_block_device(p->v, p->r, "published", &p->device, err) < 0 ||
		device_view_confirm_path(p->v->device_view, p->r, p->device, err) < 0 ||
		volumes_refuse_guest(p->v, p->r, p->device, err) < 0 ||
		describe(p, p->device->path, pod, err) < 0 || record(p, err) < 0)
		return -1;
	if (write_entry(p, err) < 0 || mount_target(p, err) < 0) {
		undo(p);
		return -1;
	}
	volumes_log_change(p->v, p->r, &change);
	return 0;
}

int volumes_publish_direct(struct volumes *v, struct volume_record *r, const struct attachment_request *q,
	const struct direct_pod *pod, struct error **err)
{
	CLEANUP(direct_publication_done)
	struct direct_publication p = {.v = v,
		.r = r,
		.q = q,
		.folder_fd = -1,
		.content = BUF_INIT(CONTENT_MAX_BYTES),
		.begun_ns = clock_ns()};

	if (check_use(r, q->use, err) < 0 || direct_entry_name(q->requested_path, &p.entry, err) < 0)
		return -1;
	if (!is_staged_at(r, q->canonical_staging_path))
		return err_set(err, ERR_PRECONDITION, "volume %s is not staged at %s", r->id,
			q->canonical_staging_path);
	if (open_folder(&p, err) < 0 || mount_table_read(&p.table, err) < 0)
		return err_wrap(err, "publish volume %s", r->id);
	const struct mount_entry *here = mount_table_at(p.table, q->canonical_path);
	if (here)
		return compare(&p, here, pod, err);
	return publish_new(&p, pod, err) < 0 ? err_wrap(err, "publish volume %s", r->id) : 0;
}
