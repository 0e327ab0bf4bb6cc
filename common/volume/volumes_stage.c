/* NodeStage/NodeUnstage: a file system on the device, mounted at the staging path; a block volume is only
 * looked at. */
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"
#include "os/blockdev.h"
#include "os/fs.h"
#include "os/mount.h"
#include "os/mount_shown.h"
#include "os/paths.h"
#include "volume/mount_flags.h"
#include "volume/params.h"
#include "volume/volumes_private.h"

/* what every CreateVolume has zeroed, also the Go driver's with eraseafter=false */
#define HEAD_BYTES 4096

struct staging {
	const char *fs_type; /* borrowed from request or record */
	char *path;          /* canonical */
	int dir_fd;          /* O_PATH */
	char **options;      /* for mount: what was asked for, and dax where it applies */
	struct device *device;
	struct blockdev_info info;
	struct mount_table *table;
	bool is_inline; /* the path is a pod's target */
	bool is_block;
};

#define STAGING_INIT ((struct staging){.dir_fd = -1})

static void staging_done(struct staging *s)
{
	free(s->path);
	if (s->dir_fd >= 0)
		close(s->dir_fd);
	strv_free(s->options);
	device_free(s->device);
	mount_table_free(s->table);
}

static int check_request(
	struct volumes *v, const struct stage_request *q, struct staging *s, struct error **err)
{
	CLEANUP(params_done) struct volume_params params = {0};

	if (params_parse(PARAMS_CONTEXT, q->context, &params, err) < 0)
		return -1;
	if (path_canonical(v->roots, q->staging_path, &s->path, err) < 0)
		return err_wrap(err, "staging path");
	return 0;
}

static int choose_fs(
	const struct volume_record *r, const struct stage_request *q, struct staging *s, struct error **err)
{
	s->fs_type = !str_empty(q->fs_type) ? q->fs_type : r->fs_type ? r->fs_type : VOLUME_DEFAULT_FS;
	if (!fs_known(s->fs_type))
		return err_set(
			err, ERR_INVALID_ARGUMENT, "file system \"%s\" is neither ext4 nor xfs", s->fs_type);
	return mount_flags_check(q->mount_flags, s->fs_type, err);
}

static int find_device(
	struct volumes *v, const struct volume_record *r, struct staging *s, struct error **err)
{
	if (volumes_require_content(v, r, &s->device, err) < 0)
		return -1;
	if (!s->device->path)
		return err_set(
			err, ERR_PRECONDITION, "volume %s has no block device: it cannot be mounted", r->id);
	if (blockdev_stat(s->device->path, &s->info, err) < 0)
		return -1;
	return mount_table_read(&s->table, err);
}

/* dax is added where the device has it and the volume is meant for it; the request's own word on dax wins. */
static void choose_options(
	const struct stage_request *q, const struct volume_params *params, struct staging *s)
{
	bool says_dax = false;

	for (size_t i = 0; q->mount_flags && q->mount_flags[i]; i++) {
		says_dax =
			says_dax || str_eq(q->mount_flags[i], "dax") || str_starts(q->mount_flags[i], "dax=");
		if (!str_eq(q->mount_flags[i], "defaults"))
			strv_add(&s->options, q->mount_flags[i]);
	}
	if (!says_dax && s->info.has_dax && params->usage == USAGE_APP_DIRECT)
		strv_add(&s->options, "dax");
}

static const char *how(const struct staging *s)
{
	return s->is_inline ? "published" : "staged";
}

static int compare_mount(const struct volume_record *r, const struct staging *s, const struct mount_entry *e,
	struct error **err)
{
	if (!str_eq(e->fstype, s->fs_type))
		return err_set(err, ERR_EXISTS, "volume %s is %s as %s, not %s", r->id, how(s), e->fstype,
			s->fs_type);
	for (size_t i = 0; s->options && s->options[i]; i++) {
		if (!mount_flag_in_force(e, s->options[i]))
			return err_set(err, ERR_EXISTS, "volume %s is %s without \"%s\"", r->id, how(s),
				s->options[i]);
	}
	if (mount_entry_is_readonly(e) && !strv_contains(s->options, "ro"))
		return err_set(err, ERR_EXISTS, "volume %s is %s read-only", r->id, how(s));
	return 0;
}

/* Something mounted at the path must be this volume, in the way that is asked for. */
static int look_at_path(
	const struct volume_record *r, const struct staging *s, bool *ret_staged, struct error **err)
{
	const struct mount_entry *e = mount_table_at(s->table, s->path);
	const struct mount_entry *bound = mount_shown_as(s->table, s->info.dev, MOUNT_SHOWN_NODE);

	*ret_staged = false;
	if (e && e->dev != s->info.dev)
		return err_set(
			err, ERR_EXISTS, "something else than volume %s is mounted at %s", r->id, s->path);
	if (e && compare_mount(r, s, e, err) < 0)
		return -1;
	*ret_staged = e != NULL;
	if (!e && bound)
		return err_set(err, ERR_PRECONDITION, "volume %s is published as a block device at %s", r->id,
			bound->target);
	return 0;
}

/* CSI: "The CO SHALL ensure that there is only one staging_target_path per volume" (NodeStageVolume). */
static int refuse_second(const struct volume_record *r, const struct staging *s, struct error **err)
{
	const struct mount_entry *e = r->staging_path ? mount_table_at(s->table, r->staging_path) : NULL;

	if (s->is_inline && e && e->dev == s->info.dev)
		return err_set(err, ERR_PRECONDITION, "volume %s is staged at %s", r->id, r->staging_path);
	if (!e || e->dev != s->info.dev || str_eq(r->staging_path, s->path))
		return 0;
	return err_set(err, ERR_PRECONDITION, "volume %s is staged at %s already", r->id, r->staging_path);
}

/* The same where nothing is mounted at the staging path. */
static int refuse_second_block(const struct volume_record *r, const struct staging *s, struct error **err)
{
	if (!r->staged_block || str_eq(r->staging_path, s->path) ||
		!mount_shown_as(s->table, s->info.dev, MOUNT_SHOWN_NODE))
		return 0;
	return err_set(err, ERR_PRECONDITION, "volume %s is staged at %s already, and published", r->id,
		r->staging_path);
}

/* Data in no form that is recognised is data nevertheless. */
static int refuse_data(const struct volume_record *r, const struct staging *s, struct error **err)
{
	bool zero;

	if (r->staged_ever)
		return err_set(err, ERR_PRECONDITION,
			"the device was in use before, and no file system is recognised on it now: it is not "
			"formatted again");
	if (blockdev_starts_zero(s->device->path, HEAD_BYTES, &zero, err) < 0)
		return -1;
	if (!zero)
		return err_set(err, ERR_PRECONDITION,
			"the device holds data, and no file system is recognised on it: it is not formatted");
	return 0;
}

/* A mkfs that was started before the driver ended goes on without it, and holds the device. */
static int refuse_held(
	struct volumes *v, const struct volume_record *r, const struct staging *s, struct error **err)
{
	CLEANUP(fd_closep) int fd = -1;

	if (blockdev_open_exclusive(s->device->path, &fd, err) == 0)
		return volumes_confirm_path(v, r, s->device, err);
	if ((*err)->code == ERR_PRECONDITION)
		(*err)->code = ERR_UNAVAILABLE;
	return err_wrap(err, "another program holds the device, it may be a mkfs that an earlier call began");
}

/* A mkfs that a crash interrupted may have left anything; the mark says that the device was empty before it.
 */
static int format_if_empty(
	struct volumes *v, struct volume_record *r, const struct staging *s, struct error **err)
{
	CLEANUP(free_charp) char *found = NULL;

	if (!r->formatting) {
		volumes_say(v, r->id, "looking at the device");
		if (fs_probe(s->device->path, &found, err) < 0)
			return -1;
		if (str_eq(found, s->fs_type))
			return 0;
		if (*found)
			return err_set(
				err, ERR_EXISTS, "the device holds %s already, not %s", found, s->fs_type);
		if (refuse_data(r, s, err) < 0)
			return -1;
		r->formatting = true;
		if (volumes_save(v, r, err) < 0)
			return -1;
	}
	if (refuse_held(v, r, s, err) < 0)
		return -1;
	volumes_say(v, r->id, str_eq(s->fs_type, "xfs") ? "mkfs.xfs" : "mkfs.ext4");
	return fs_make(s->fs_type, s->device->path, v->mkfs_timeout_ms, err);
}

static bool is_recorded(const struct volume_record *r, const struct staging *s)
{
	if (r->formatting || !r->staged_ever)
		return false;
	if (s->is_inline)
		return strv_contains(r->targets, s->path) && strv_len(r->targets) == 1;
	return str_eq(r->staging_path, s->path) && r->staged_block == s->is_block;
}

/* Before the mount, so that no mount of ours is ever unknown. */
static int record_staging(
	struct volumes *v, struct volume_record *r, const struct staging *s, struct error **err)
{
	if (is_recorded(r, s))
		return 0;
	r->formatting = false;
	r->staged_ever = true;
	if (s->is_inline) {
		strv_free(TAKE_PTR(r->targets));
		strv_add(&r->targets, s->path);
	} else {
		free(r->staging_path);
		r->staging_path = x_strdup(s->path);
		r->staged_block = s->is_block;
	}
	return volumes_save(v, r, err);
}

/* The folder is last, so that no failure before leaves one. */
static int mount_at(struct volumes *v, const char *path, struct staging *s, struct error **err)
{
	CLEANUP(error_freep) struct error *ignored = NULL;
	bool created = false;

	if (s->is_inline && path_make(v->roots, path, PATH_DIR, &s->dir_fd, &created, err) < 0)
		return err_wrap(err, "target path");
	if (mount_device(s->device->path, s->dir_fd, s->fs_type, (const char *const *)s->options, err) == 0)
		return 0;
	if (created)
		(void)!path_remove(v->roots, path, &ignored);
	return -1;
}

static int format_and_mount(
	struct volumes *v, struct volume_record *r, const char *path, struct staging *s, struct error **err)
{
	if (volumes_confirm_path(v, r, s->device, err) < 0)
		return -1;
	if (format_if_empty(v, r, s, err) < 0)
		return -1;
	if (record_staging(v, r, s, err) < 0)
		return -1;
	volumes_say(v, r->id, "mounting");
	return mount_at(v, path, s, err);
}

static int stage_mount(struct volumes *v, struct volume_record *r, const struct stage_request *q,
	const struct volume_params *params, struct staging *s, struct error **err)
{
	bool staged;

	if (choose_fs(r, q, s, err) < 0)
		return -1;
	if (find_device(v, r, s, err) < 0)
		return -1;
	choose_options(q, params, s);
	if (look_at_path(r, s, &staged, err) < 0)
		return -1;
	if (refuse_second(r, s, err) < 0)
		return -1;
	if (staged)
		return record_staging(v, r, s, err);
	if (!s->is_inline && path_open(v->roots, q->staging_path, PATH_DIR, &s->dir_fd, err) < 0)
		return err_wrap(err, "staging path");
	if (format_and_mount(v, r, q->staging_path, s, err) < 0)
		return err_wrap(err, "stage volume %s", r->id);
	return 0;
}

int volumes_mount_inline(struct volumes *v, struct volume_record *r, const struct stage_request *q,
	const struct volume_params *params, struct error **err)
{
	CLEANUP(staging_done) struct staging s = STAGING_INIT;

	s.is_inline = true;
	if (path_canonical(v->roots, q->staging_path, &s.path, err) < 0)
		return err_wrap(err, "target path");
	return stage_mount(v, r, q, params, &s, err);
}

/* From here on nobody may take the content for nothing. */
static int stage_block(struct volumes *v, struct volume_record *r, struct staging *s, struct error **err)
{
	s->is_block = true;
	if (find_device(v, r, s, err) < 0)
		return -1;
	if (volumes_check_block(r, s->table, s->info.dev, err) < 0)
		return -1;
	if (refuse_second_block(r, s, err) < 0)
		return -1;
	return record_staging(v, r, s, err);
}

int volumes_stage(struct volumes *v, const struct stage_request *q, struct error **err)
{
	CLEANUP(staging_done) struct staging s = STAGING_INIT;
	CLEANUP(volume_record_freep) struct volume_record *r = NULL;
	CLEANUP(volume_unlockp) struct volume_lock *lock = NULL;
	CLEANUP(params_done) struct volume_params params = {0};

	if (volumes_require_ready(v, err) < 0)
		return -1;
	if (check_request(v, q, &s, err) < 0)
		return -1;
	if (volumes_lock_ready(v, q->handle, /* wait_ms= */ 0, &lock, &r, err) < 0)
		return -1;
	if (volumes_check_use(r, q->access_mode, &params, err) < 0)
		return -1;
	return q->block ? stage_block(v, r, &s, err) : stage_mount(v, r, q, &params, &s, err);
}

int volumes_unstage(struct volumes *v, const char *handle, const char *staging_path, struct error **err)
{
	CLEANUP(volume_record_freep) struct volume_record *r = NULL;
	CLEANUP(volume_unlockp) struct volume_lock *lock = NULL;
	CLEANUP(free_charp) char *path = NULL;

	if (volumes_require_ready(v, err) < 0)
		return -1;
	if (path_canonical(v->roots, staging_path, &path, err) < 0)
		return err_wrap(err, "staging path");
	if (volumes_lock_ready(v, handle, /* wait_ms= */ 0, &lock, &r, err) < 0)
		return -1;
	if (volumes_unmount(v, r, path, err) < 0)
		return err_wrap(err, "unstage volume %s", r->id);
	if (!str_eq(r->staging_path, path))
		return 0;
	free(TAKE_PTR(r->staging_path));
	r->staged_block = false;
	return volumes_save(v, r, err);
}
