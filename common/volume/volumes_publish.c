/* NodePublish/NodeUnpublish: the staged file system, or the device's node, shown at a pod's path. */
#include <errno.h>
#include <fcntl.h>

#include "base/mem.h"
#include "base/str.h"
#include "os/blockdev.h"
#include "os/mount.h"
#include "os/mount_shown.h"
#include "os/paths.h"
#include "volume/id.h"
#include "volume/kata.h"
#include "volume/mount_flags.h"
#include "volume/params.h"
#include "volume/volumes_private.h"

struct publication {
	char *staging; /* canonical */
	char *target;  /* canonical */
	char **flags;  /* per-mount flags of the bind mount */
	enum mount_shown how;
	char *node; /* of the device */
	dev_t dev;
	const char *staged_fs; /* borrowed from the table */
	struct mount_table *table;
};

static void publication_done(struct publication *p)
{
	free(p->staging);
	free(p->target);
	strv_free(p->flags);
	free(p->node);
	mount_table_free(p->table);
}

static int check_request(
	struct volumes *v, const struct publish_request *q, struct publication *p, struct error **err)
{
	CLEANUP(params_done) struct volume_params params = {0};

	if (params_parse(PARAMS_CONTEXT, q->context, &params, err) < 0)
		return -1;
	if (str_empty(q->staging_path))
		return err_set(
			err, ERR_PRECONDITION, "staging_target_path is missing: the volume must be staged");
	if (path_canonical(v->roots, q->staging_path, &p->staging, err) < 0)
		return err_wrap(err, "staging path");
	if (path_canonical(v->roots, q->target_path, &p->target, err) < 0)
		return err_wrap(err, "target path");
	if (str_eq(p->staging, p->target))
		return err_set(
			err, ERR_INVALID_ARGUMENT, "target_path is staging_target_path: %s", p->target);
	for (size_t i = 0; q->mount_flags && q->mount_flags[i]; i++) {
		if (mount_flag_is_per_mount(q->mount_flags[i]))
			strv_add(&p->flags, q->mount_flags[i]);
	}
	if ((q->readonly || access_mode_is_reader(q->access_mode)) && !strv_contains(p->flags, "ro"))
		strv_add(&p->flags, "ro");
	p->how = q->block ? MOUNT_SHOWN_NODE : MOUNT_SHOWN_FS;
	return 0;
}

static int find_device(
	struct volumes *v, const struct volume_record *r, struct publication *p, struct error **err)
{
	CLEANUP(device_freep) struct device *d = NULL;
	struct blockdev_info info;

	if (volumes_require_content(v, r, &d, err) < 0)
		return -1;
	if (!d->path)
		return err_set(err, ERR_PRECONDITION, "volume %s has no block device: it cannot be published",
			r->id);
	if (p->how == MOUNT_SHOWN_NODE && volumes_confirm_path(v, r, d, err) < 0)
		return -1;
	if (blockdev_stat(d->path, &info, err) < 0)
		return -1;
	p->node = TAKE_PTR(d->path);
	p->dev = info.dev;
	return mount_table_read(&p->table, err);
}

/* The Go driver recorded no staging. */
static int check_staged_block(const struct volume_record *r, const struct publication *p, struct error **err)
{
	if (r->identity && !(r->staged_block && str_eq(r->staging_path, p->staging)))
		return err_set(err, ERR_PRECONDITION, "volume %s is not staged as a block device at %s",
			r->id, p->staging);
	return 0;
}

static int check_staged(const struct volume_record *r, const struct publish_request *q, struct publication *p,
	struct error **err)
{
	const struct mount_entry *e = mount_table_at(p->table, p->staging);

	if (!e || e->dev != p->dev)
		return err_set(err, ERR_PRECONDITION, "volume %s is not staged at %s", r->id, p->staging);
	p->staged_fs = e->fstype;
	if (mount_flags_check(q->mount_flags, p->staged_fs, err) < 0)
		return -1;
	if (!str_empty(q->fs_type) && !str_eq(q->fs_type, p->staged_fs))
		return err_set(err, mount_table_at(p->table, p->target) ? ERR_EXISTS : ERR_PRECONDITION,
			"volume %s is staged as %s, not %s", r->id, p->staged_fs, q->fs_type);
	return 0;
}

static bool is_shown_at(const struct publication *p, const char *path)
{
	return mount_shown(mount_table_at(p->table, path), p->dev) != MOUNT_SHOWN_NOT;
}

/* Compares an existing mount at the target with the request, ro in both directions. */
static int look_at_target(
	const struct volume_record *r, const struct publication *p, bool *ret_published, struct error **err)
{
	const struct mount_entry *e = mount_table_at(p->table, p->target);
	enum mount_shown how = mount_shown(e, p->dev);

	*ret_published = false;
	if (!e)
		return 0;
	if (how == MOUNT_SHOWN_NOT)
		return err_set(
			err, ERR_EXISTS, "something else than volume %s is mounted at %s", r->id, p->target);
	if (how != p->how)
		return err_set(err, ERR_EXISTS, "volume %s is published at %s as a %s", r->id, p->target,
			how == MOUNT_SHOWN_NODE ? "block device" : "file system");
	if (mount_entry_is_readonly(e) != strv_contains(p->flags, "ro"))
		return err_set(err, ERR_EXISTS, "volume %s is published at %s %s", r->id, p->target,
			mount_entry_is_readonly(e) ? "read-only" : "read-write");
	for (size_t i = 0; p->flags && p->flags[i]; i++) {
		if (!mount_flag_in_force(e, p->flags[i]))
			return err_set(err, ERR_EXISTS, "volume %s is published at %s without \"%s\"", r->id,
				p->target, p->flags[i]);
	}
	*ret_published = true;
	return 0;
}

/* SINGLE_NODE_SINGLE_WRITER: no other target may be a mount of this volume now. */
static int check_single(const struct volume_record *r, const struct publication *p, struct error **err)
{
	for (size_t i = 0; r->targets && r->targets[i]; i++) {
		if (str_eq(r->targets[i], p->target))
			continue;
		if (is_shown_at(p, r->targets[i]))
			return err_set(err, ERR_PRECONDITION,
				"volume %s is published at %s already and has a single writer", r->id,
				r->targets[i]);
	}
	return 0;
}

void volumes_forget_target(struct volume_record *r, const char *target)
{
	char **rest = NULL;

	for (size_t i = 0; r->targets && r->targets[i]; i++) {
		if (!str_eq(r->targets[i], target))
			strv_add(&rest, r->targets[i]);
	}
	strv_free(r->targets);
	r->targets = rest;
}

/* Devices have links as names, and /dev is none of the request's folders. */
static int open_source(struct volumes *v, const struct publish_request *q, const struct publication *p,
	int *ret_fd, struct error **err)
{
	if (p->how == MOUNT_SHOWN_FS)
		return path_open(v->roots, q->staging_path, PATH_DIR, ret_fd, err);

	int fd = open(p->node, O_PATH | O_CLOEXEC);
	if (fd < 0)
		return err_set_errno(err, ERR_INTERNAL, errno, "open %s", p->node);
	*ret_fd = fd;
	return 0;
}

static int bind_target(
	struct volumes *v, const struct publish_request *q, const struct publication *p, struct error **err)
{
	CLEANUP(fd_closep) int source_fd = -1;
	CLEANUP(fd_closep) int target_fd = -1;
	CLEANUP(error_freep) struct error *ignored = NULL;
	enum path_kind kind = p->how == MOUNT_SHOWN_NODE ? PATH_FILE : PATH_DIR;
	bool created;

	if (open_source(v, q, p, &source_fd, err) < 0)
		return err_wrap(err, "what is published");
	if (path_make(v->roots, q->target_path, kind, &target_fd, &created, err) < 0)
		return err_wrap(err, "target path");
	if (mount_bind(source_fd, target_fd, (const char *const *)p->flags, err) < 0) {
		if (created)
			(void)!path_remove(v->roots, q->target_path, &ignored);
		return -1;
	}
	return 0;
}

/* A target of a pod that ended with its node may never be unpublished: such ones would fill the record. */
static int record_target(
	struct volumes *v, struct volume_record *r, const struct publication *p, struct error **err)
{
	char **targets = NULL;

	if (strv_contains(r->targets, p->target) && r->staged_ever && !r->formatting)
		return 0;
	for (size_t i = 0; r->targets && r->targets[i]; i++) {
		if (!str_eq(r->targets[i], p->target) && is_shown_at(p, r->targets[i]))
			strv_add(&targets, r->targets[i]);
	}
	strv_add(&targets, p->target);
	strv_free(r->targets);
	r->targets = targets;
	r->staged_ever = true;
	r->formatting = false;
	return volumes_save(v, r, err);
}

/* The target is recorded before the mount, so that no mount of ours is ever unknown. */
static int mount_recorded(struct volumes *v, struct volume_record *r, const struct publish_request *q,
	const struct publication *p, struct error **err)
{
	if (record_target(v, r, p, err) < 0)
		return -1;
	if (bind_target(v, q, p, err) == 0)
		return 0;
	CLEANUP(error_freep) struct error *ignored = NULL;
	volumes_forget_target(r, p->target);
	(void)!volumes_save(v, r, &ignored);
	return -1;
}

static int publish_locked(struct volumes *v, struct volume_record *r, const struct publish_request *q,
	struct publication *p, struct error **err)
{
	bool published;

	if (find_device(v, r, p, err) < 0)
		return -1;
	if (q->block && volumes_check_block(r, p->table, p->dev, err) < 0)
		return -1;
	if (!q->block && check_staged(r, q, p, err) < 0)
		return -1;
	if (look_at_target(r, p, &published, err) < 0)
		return -1;
	if (published)
		return record_target(v, r, p, err);
	if (q->block && check_staged_block(r, p, err) < 0)
		return -1;
	if (q->access_mode == ACCESS_SINGLE_NODE_SINGLE_WRITER && check_single(r, p, err) < 0)
		return -1;
	if (mount_recorded(v, r, q, p, err) < 0)
		return err_wrap(err, "publish volume %s", r->id);
	return 0;
}

/* By the context's word. Kubernetes before 1.16 says nothing: what is neither known nor staged, and comes
 * with a size, must be one. */
static int is_inline(struct volumes *v, const struct publish_request *q, bool *ret, struct error **err)
{
	CLEANUP(volume_record_freep) struct volume_record *known = NULL;
	bool said;

	if (params_say_inline(q->context, &said, ret, err) < 0)
		return -1;
	if (said || !str_empty(q->staging_path) || !params_look_inline(q->context))
		return 0;
	known = volumes_record(v, q->handle);
	if (!known)
		known = volumes_record_by_name(v, q->handle);
	*ret = !known || volumes_is_inline(known);
	return 0;
}

int volumes_publish(struct volumes *v, const struct publish_request *q, struct error **err)
{
	CLEANUP(params_done) struct volume_params params = {0};
	CLEANUP(publication_done) struct publication p = {0};
	CLEANUP(volume_record_freep) struct volume_record *r = NULL;
	CLEANUP(volume_unlockp) struct volume_lock *lock = NULL;
	bool ephemeral;

	if (volumes_require_ready(v, err) < 0)
		return -1;
	if (is_inline(v, q, &ephemeral, err) < 0)
		return -1;
	if (ephemeral)
		return volumes_publish_inline(v, q, err);
	if (check_request(v, q, &p, err) < 0)
		return -1;
	if (volumes_lock_ready(v, q->handle, PUBLISH_WAIT_MS, &lock, &r, err) < 0)
		return -1;
	if (volumes_check_use(r, q->access_mode, &params, err) < 0)
		return -1;
	return publish_locked(v, r, q, &p, err);
}

/* An unknown volume: nothing to do, unless something is mounted that nobody here can answer for. */
static int unpublish_unknown(struct volumes *v, const char *handle, const char *target_path,
	const char *canonical, struct error **err)
{
	CLEANUP(mount_table_freep) struct mount_table *table = NULL;

	if (mount_table_read(&table, err) < 0)
		return -1;
	if (mount_table_at(table, canonical))
		return err_set(err, ERR_NOT_FOUND, "volume %s does not exist, but %s is a mount point",
			handle, canonical);
	return path_remove(v->roots, target_path, err);
}

/* An inline volume's handle is its name, in whatever form. */
static struct volume_record *find_published(struct volumes *v, const char *handle)
{
	struct volume_record *r = volumes_record(v, handle);

	if (r)
		return r;
	r = volumes_record_by_name(v, handle);
	if (r && volumes_is_inline(r))
		return r;
	volume_record_free(r);
	return NULL;
}

static int take_down(struct volumes *v, struct volume_record *r, const char *target_path, const char *target,
	struct error **err)
{
	if (str_eq(r->staging_path, target))
		return err_set(err, ERR_INVALID_ARGUMENT,
			"volume %s is staged at target_path %s, not published", r->id, target);
	if (volumes_unmount(v, r, target, err) < 0)
		return -1;
	if (path_remove(v->roots, target_path, err) < 0)
		return -1;
	return kata_has_image(r) ? kata_clean(v->state_path, r, err) : 0;
}

/* What is half made, or dying, is mounted nowhere. */
static int unpublish_unready(struct volumes *v, struct volume_lock **lock, struct volume_record *r,
	const char *handle, const char *target_path, const char *target, struct error **err)
{
	if (r && r->phase == PHASE_CREATING && volumes_is_inline(r) &&
		volumes_delete_record(v, lock, r, err) < 0)
		return err_wrap(err, "inline volume %s", handle);
	return unpublish_unknown(v, handle, target_path, target, err);
}

static int unpublish_locked(struct volumes *v, struct volume_lock **lock, struct volume_record *r,
	const char *target_path, const char *target, struct error **err)
{
	if (take_down(v, r, target_path, target, err) < 0)
		return err_wrap(err, "unpublish volume %s", r->id);
	if (volumes_is_inline(r))
		return volumes_delete_record(v, lock, r, err);
	if (!strv_contains(r->targets, target))
		return 0;
	volumes_forget_target(r, target);
	return volumes_save(v, r, err);
}

/* A volume that is not known yet may be about to be made: the publish that makes it has the lock of the ID
 * that the handle gives. */
static int lock_published(struct volumes *v, const char *handle, const struct volume_record *known,
	struct volume_lock **ret_lock, struct volume_record **ret, struct error **err)
{
	char id[VOLUME_ID_MAX + 1];

	volume_id_mint(handle, v->node_id, id);
	if (volume_lock(v->locks, known ? known->id : id, PUBLISH_WAIT_MS, ret_lock, err) < 0)
		return -1;
	/* it may have changed or gone while we waited, or be there now */
	*ret = volumes_record(v, known ? known->id : id);
	return 0;
}

int volumes_unpublish(struct volumes *v, const char *handle, const char *target_path, struct error **err)
{
	CLEANUP(volume_record_freep) struct volume_record *known = NULL;
	CLEANUP(volume_record_freep) struct volume_record *r = NULL;
	CLEANUP(volume_unlockp) struct volume_lock *lock = NULL;
	CLEANUP(free_charp) char *target = NULL;

	if (volumes_require_ready(v, err) < 0)
		return -1;
	if (path_canonical(v->roots, target_path, &target, err) < 0)
		return err_wrap(err, "target path");
	known = find_published(v, handle);
	if (known && (known->phase == PHASE_ERASING ||
			     (known->phase == PHASE_CREATING && !volumes_is_inline(known))))
		return unpublish_unknown(v, handle, target_path, target, err);
	if (lock_published(v, handle, known, &lock, &r, err) < 0)
		return -1;
	if (!r || r->phase != PHASE_READY || (!known && !volumes_is_inline(r)))
		return unpublish_unready(v, &lock, r, handle, target_path, target, err);
	return unpublish_locked(v, &lock, r, target_path, target, err);
}
