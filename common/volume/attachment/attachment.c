/* SPDX-License-Identifier: Apache-2.0 */
#include "volume/attachment/attachment.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "os/blockdev.h"
#include "os/blockdev_mounts.h"
#include "os/file.h"
#include "os/fs.h"
#include "os/kmsg.h"
#include "os/mount.h"
#include "os/paths.h"
#include "volume/attachment/allowed_mount_flags.h"
#include "volume/attachment/attachment_dax.h"
#include "volume/attachment/mount_flags.h"
#include "volume/durability/volumes_durability.h"
#include "volume/params.h"
#include "volume/volumes_private.h"

struct attachment {
	struct volumes *v;
	struct volume_record *r;
	const struct attachment_request *q;
	const char *fs_type; /* wanted, or of what is staged; borrowed */
	char **flags;        /* wanted of the file system itself, "dax" where it applies included; one each */
	struct mount_attributes attributes; /* wanted of the mount */
	enum dax_wish dax;
	bool dax_added; /* by us, as the last of the flags */
	struct device *device;
	struct blockdev_info info;
	struct mount_table *table;
	const struct mount_entry *here;   /* what is mounted at the path, on top; borrowed from the table */
	const struct mount_entry *staged; /* what is bound; likewise */
	int source_fd;                    /* what is bound: O_PATH */
	uint64_t begun_ns;
};

#define ATTACHMENT_INIT ((struct attachment){.source_fd = -1})

static void attachment_done(struct attachment *a)
{
	strv_free(a->flags);
	device_free(a->device);
	mount_table_free(a->table);
	fd_closep(&a->source_fd);
}

static bool is_target(enum attachment_kind kind)
{
	return kind == ATTACHMENT_TARGET || kind == ATTACHMENT_TARGET_NODE;
}

static bool is_node(enum attachment_kind kind)
{
	return kind == ATTACHMENT_STAGED_NODE || kind == ATTACHMENT_TARGET_NODE;
}

static const char *participle(enum attachment_kind kind)
{
	return kind == ATTACHMENT_STAGED || kind == ATTACHMENT_STAGED_NODE ? "staged" : "published";
}

static const char *path_name(enum attachment_kind kind)
{
	return kind == ATTACHMENT_STAGED || kind == ATTACHMENT_STAGED_NODE ? "staging path" : "target path";
}

/* --- what is wanted */

static void take_flags(struct attachment *a, char *const *asked)
{
	a->attributes = mount_attributes_of_flags(asked);
	a->attributes.readonly = a->attributes.readonly || a->q->readonly;
	for (size_t i = 0; asked && asked[i]; i++) {
		if (!mount_flag_is_per_mount(asked[i]) && !mount_flag_is_no_option(asked[i]))
			strv_add(&a->flags, asked[i]);
	}
}

static int read_flags(struct attachment *a, struct error **err)
{
	char *const *asked = a->q->use->mount_flags;

	if (volume_record_is_taken_over(a->r) ? allowed_mount_flags_check_taken_over(asked, err) < 0
					      : allowed_mount_flags_check(asked, a->fs_type, err) < 0)
		return err_wrap(err, "volume %s", a->r->id);
	take_flags(a, asked);
	return mount_flags_fit_kernel(a->r, a->fs_type, &a->flags, err);
}

static int choose_fs(struct attachment *a, struct error **err)
{
	const char *recorded = a->r->fs_type ? a->r->fs_type : VOLUME_DEFAULT_FS;

	a->fs_type = str_empty(a->q->use->fs_type) ? recorded : a->q->use->fs_type;
	if (!fs_known(a->fs_type))
		return err_set(
			err, ERR_INVALID_ARGUMENT, "file system \"%s\" is neither ext4 nor xfs", a->fs_type);
	return read_flags(a, err);
}

int volumes_find_block_device(struct volumes *v, const struct volume_record *r, const char *use,
	struct device **ret, struct error **err)
{
	CLEANUP(device_freep) struct device *d = NULL;
	const char *why = v->devices->why_no_path;

	if (device_view_require_content(v->device_view, r, &d, err) < 0)
		return -1;
	if (!d->path)
		return err_set(err, ERR_PRECONDITION, "volume %s has no block device: it cannot be %s%s%s",
			r->id, use, why ? "; " : "", why ? why : "");
	*ret = TAKE_PTR(d);
	return 0;
}

static int find_device(struct attachment *a, struct error **err)
{
	bool to_mount = a->q->kind == ATTACHMENT_STAGED || a->q->kind == ATTACHMENT_INLINE;
	const char *use = to_mount ? "mounted" : "published";

	if (volumes_find_block_device(a->v, a->r, use, &a->device, err) < 0)
		return -1;
	if (is_node(a->q->kind) && device_view_confirm_path(a->v->device_view, a->r, a->device, err) < 0)
		return -1;
	return blockdev_stat(a->device->path, &a->info, err);
}

/* @e: its mount; NULL: it is not mounted yet. A mount keeps the usage with which it was staged when the usage
 * of the volume is changed later. */
static enum dax_wish choose_dax(const struct attachment *a, const struct mount_entry *e)
{
	enum volume_usage usage = a->q->params->usage;

	/* what a guest flushes is durable with DAX only, whatever flags are asked for */
	if (a->q->params->kata_containers && !str_eq(a->v->devices->ops->mode, "fake"))
		return DAX_REQUIRED;
	/* what is no usage, in a file that was edited, counts as none */
	if (e)
		(void)volume_usage_parse(a->r->staged_usage, &usage);
	return attachment_dax_choose(a->v->devices->ops->mode, usage, a->flags);
}

static int wish_for_dax(struct attachment *a, struct error **err)
{
	a->dax = choose_dax(a, a->here);
	if (attachment_dax_check_device(a->dax, a->v, a->r, a->device, &a->info, err) < 0)
		return -1;
	a->dax_added = attachment_dax_add_flag(a->dax, &a->info, &a->flags);
	return 0;
}

/* --- what is there */

/* Finds the mount that an opened path leads to. A descriptor of -1 means that nothing is there. */
static int look_through(const struct mount_table *t, int fd, const char *at, const struct mount_entry **ret,
	const struct mount_entry **ret_through, struct error **err)
{
	*ret = NULL;
	*ret_through = NULL;
	if (fd >= 0 && mount_table_of(t, fd, ret_through, err) < 0)
		return -1;
	if (*ret_through && str_eq((*ret_through)->target, at))
		*ret = *ret_through;
	return 0;
}

static const struct mount_entry *find_hidden(const struct mount_table *t, const char *at, dev_t dev)
{
	for (size_t i = 0; i < t->n; i++) {
		if (str_eq(t->entries[i].target, at) &&
			blockdev_mount_kind(&t->entries[i], dev) != BLOCKDEV_MOUNT_NONE)
			return &t->entries[i];
	}
	return NULL;
}

static int refuse_hidden(const struct attachment *a, const char *at, const struct mount_entry *here,
	const struct mount_entry *through, struct error **err)
{
	if (here || !find_hidden(a->table, at, a->info.dev))
		return 0;
	return err_set(err, ERR_PRECONDITION,
		"volume %s is mounted at %s, but the mount at %s hides it: unmount the latter, or mount it "
		"before the driver is started and its volumes are staged",
		a->r->id, at, through ? through->target : "a folder above");
}

/* A mount over it would hide it, and after that mount is gone the path could not be removed. */
int volumes_refuse_content(const char *at, int fd, struct error **err)
{
	CLEANUP(free_charp) char *name = NULL;
	CLEANUP(fd_closep) int dir_fd = -1;
	struct stat st;

	if (fstat(fd, &st) < 0)
		return err_set_errno(err, ERR_INTERNAL, errno, "stat %s", at);
	if (S_ISREG(st.st_mode) && st.st_size > 0)
		return err_set(
			err, ERR_PRECONDITION, "%s is a file with content: nothing is mounted over it", at);
	if (!S_ISDIR(st.st_mode))
		return 0;
	dir_fd = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir_fd < 0)
		return err_set_errno(err, ERR_INTERNAL, errno, "open %s", at);
	if (dir_first(dir_fd, &name, err) < 0)
		return -1;
	if (name)
		return err_set(err, ERR_PRECONDITION,
			"%s is not empty (it contains \"%s\") and not a mount point: remove its content, "
			"which a mount would hide",
			at, name);
	return 0;
}

static int look_at_path(struct attachment *a, int fd, struct error **err)
{
	const struct mount_entry *through;

	if (look_through(a->table, fd, a->q->canonical_path, &a->here, &through, err) < 0)
		return -1;
	if (refuse_hidden(a, a->q->canonical_path, a->here, through, err) < 0)
		return -1;
	if (!a->here && fd >= 0 && (is_target(a->q->kind) || a->q->kind == ATTACHMENT_INLINE))
		return volumes_refuse_content(a->q->canonical_path, fd, err);
	return 0;
}

/* The descriptor decides: what is bound is what it stands for, whatever the path leads to by then. */
static int look_at_staged(struct attachment *a, struct error **err)
{
	const struct mount_entry *through;
	struct stat st;

	if (look_through(a->table, a->source_fd, a->q->canonical_staging_path, &a->staged, &through, err) < 0)
		return -1;
	if (refuse_hidden(a, a->q->canonical_staging_path, a->staged, through, err) < 0)
		return -1;
	if (!a->staged || a->staged->dev != a->info.dev || !str_eq(a->staged->root, "/"))
		return err_set(err, ERR_PRECONDITION, "volume %s is not staged at %s", a->r->id,
			a->q->canonical_staging_path);
	if (fstat(a->source_fd, &st) < 0)
		return err_set_errno(err, ERR_INTERNAL, errno, "stat %s", a->q->canonical_staging_path);
	if (st.st_dev != a->info.dev)
		return err_set(err, ERR_PRECONDITION, "the file system at %s is not that of volume %s",
			a->q->canonical_staging_path, a->r->id);
	return 0;
}

/* Devices have links as names, and /dev is none of the request's folders. */
static int open_node(struct attachment *a, struct error **err)
{
	struct stat st;

	a->source_fd = open(a->device->path, O_PATH | O_CLOEXEC);
	if (a->source_fd < 0)
		return err_set_errno(err, ERR_INTERNAL, errno, "open %s", a->device->path);
	if (fstat(a->source_fd, &st) < 0)
		return err_set_errno(err, ERR_INTERNAL, errno, "stat %s", a->device->path);
	if (!S_ISBLK(st.st_mode) || st.st_rdev != a->info.dev)
		return err_set(err, ERR_UNAVAILABLE, "%s is a different device now", a->device->path);
	return 0;
}

static int open_source(struct attachment *a, struct error **err)
{
	if (a->q->kind == ATTACHMENT_TARGET)
		return volumes_open_if_exists(a->q->canonical_staging_path, &a->source_fd, err);
	return a->q->kind == ATTACHMENT_TARGET_NODE ? open_node(a, err) : 0;
}

/* Descriptors first: the table that is read after them has their mounts. */
static int find_mounts(struct attachment *a, struct error **err)
{
	CLEANUP(fd_closep) int fd = -1;

	if (open_source(a, err) < 0)
		return err_wrap(err, "find the device of the published volume");
	if (volumes_open_if_exists(a->q->canonical_path, &fd, err) < 0)
		return err_wrap(err, "%s", path_name(a->q->kind));
	if (mount_table_read(&a->table, err) < 0)
		return -1;
	if (a->q->kind == ATTACHMENT_TARGET && look_at_staged(a, err) < 0)
		return -1;
	return look_at_path(a, fd, err);
}

/* --- whether what is there is what is wanted */

static int compare_attributes(const struct attachment *a, const struct mount_entry *e, struct error **err)
{
	const struct mount_attributes is = mount_attributes_in_force(e);
	const char *is_word;
	const char *wanted = mount_attributes_differ(&a->attributes, &is, &is_word);

	/* the node of a device is bound with what its /dev has */
	if (!wanted || (is_node(a->q->kind) && is.readonly == a->attributes.readonly))
		return 0;
	if (is.readonly != a->attributes.readonly)
		return err_set(err, ERR_EXISTS, "volume %s is already %s at %s %s, but \"%s\" was requested",
			a->r->id, participle(a->q->kind), a->q->canonical_path,
			is.readonly ? "read-only" : "read-write", wanted);
	return err_set(err, ERR_EXISTS, "volume %s is already %s at %s with \"%s\", but \"%s\" was requested",
		a->r->id, participle(a->q->kind), a->q->canonical_path, is_word, wanted);
}

/* Flags of the file system that the kernel does not show are no difference if they were asked for when it was
 * mounted: it dropped them then (as discard on a device without). The Go driver recorded none. */
static int compare_fs_flags(const struct attachment *a, const struct mount_entry *e, struct error **err)
{
	for (size_t i = 0; a->flags && a->flags[i]; i++) {
		if (mount_flag_in_force(e, a->flags[i]) || strv_contains(a->r->staged_flags, a->flags[i]) ||
			volume_record_is_taken_over(a->r))
			continue;
		/* said by attachment_dax_check_mount(), with more words */
		if (a->dax == DAX_REQUIRED && attachment_dax_is_flag(a->flags[i]))
			continue;
		return err_set(err, ERR_EXISTS,
			"volume %s is already %s at %s without \"%s\", which was requested", a->r->id,
			participle(a->q->kind), a->q->canonical_path, a->flags[i]);
	}
	return 0;
}

static int compare_fs(const struct attachment *a, struct error **err)
{
	const struct mount_entry *e = a->here;

	if (e->dev != a->info.dev || !str_eq(e->root, "/"))
		return err_set(err, ERR_EXISTS, "something other than volume %s is mounted at %s", a->r->id,
			a->q->canonical_path);
	if (!str_eq(e->fstype, a->fs_type))
		return err_set(err, ERR_EXISTS, "volume %s is already %s at %s as %s, but %s was requested",
			a->r->id, participle(a->q->kind), a->q->canonical_path, e->fstype, a->fs_type);
	if (compare_attributes(a, e, err) < 0)
		return -1;
	if (compare_fs_flags(a, e, err) < 0)
		return -1;
	return attachment_dax_check_mount(a->dax, a->r->id, e, err);
}

static int compare_target(const struct attachment *a, struct error **err)
{
	enum blockdev_mount wanted = is_node(a->q->kind) ? BLOCKDEV_MOUNT_NODE : BLOCKDEV_MOUNT_FS;
	enum blockdev_mount how = blockdev_mount_kind(a->here, a->info.dev);

	if (how == BLOCKDEV_MOUNT_NONE)
		return err_set(err, ERR_EXISTS, "something other than volume %s is mounted at %s", a->r->id,
			a->q->canonical_path);
	if (how != wanted)
		return err_set(err, ERR_EXISTS, "volume %s is published at %s as a %s", a->r->id,
			a->q->canonical_path, how == BLOCKDEV_MOUNT_NODE ? "block device" : "file system");
	return compare_attributes(a, a->here, err);
}

/* --- which other uses forbid it */

/* CSI: "The CO SHALL ensure that there is only one staging_target_path per volume" (NodeStageVolume). */
static int refuse_second(const struct attachment *a, struct error **err)
{
	const struct mount_entry *bound =
		blockdev_mount_find_kind(a->table, a->info.dev, BLOCKDEV_MOUNT_NODE);
	const char *other = a->r->staging_path;
	const struct mount_entry *e = other ? mount_table_at(a->table, other) : NULL;

	if (!a->here && bound)
		return err_set(err, ERR_PRECONDITION, "volume %s is published as a block device at %s",
			a->r->id, bound->target);
	if (!e || e->dev != a->info.dev)
		return 0;
	if (a->q->kind == ATTACHMENT_INLINE)
		return err_set(err, ERR_PRECONDITION, "volume %s is staged at %s", a->r->id, other);
	if (str_eq(other, a->q->canonical_path))
		return 0;
	return err_set(err, ERR_PRECONDITION, "volume %s is staged at %s already", a->r->id, other);
}

/* The same where nothing is mounted at the staging path. */
static int refuse_second_node(const struct attachment *a, struct error **err)
{
	if (!a->r->staged_block || str_eq(a->r->staging_path, a->q->canonical_path) ||
		!blockdev_mount_find_kind(a->table, a->info.dev, BLOCKDEV_MOUNT_NODE))
		return 0;
	return err_set(err, ERR_PRECONDITION, "volume %s is staged at %s already, and published", a->r->id,
		a->r->staging_path);
}

/* The Go driver recorded no staging. */
static int require_staged_node(const struct attachment *a, struct error **err)
{
	if (a->r->identity &&
		!(a->r->staged_block && str_eq(a->r->staging_path, a->q->canonical_staging_path)))
		return err_set(err, ERR_PRECONDITION, "volume %s is not staged as a block device at %s",
			a->r->id, a->q->canonical_staging_path);
	return 0;
}

static bool is_shown_at(const struct attachment *a, const char *path)
{
	return blockdev_mount_kind(mount_table_at(a->table, path), a->info.dev) != BLOCKDEV_MOUNT_NONE;
}

/* SINGLE_NODE_SINGLE_WRITER: no other target may be a mount of this volume now. */
static int refuse_second_writer(const struct attachment *a, struct error **err)
{
	if (a->q->use->access_mode != ACCESS_SINGLE_NODE_SINGLE_WRITER)
		return 0;
	for (size_t i = 0; a->r->targets && a->r->targets[i]; i++) {
		if (!str_eq(a->r->targets[i], a->q->canonical_path) && is_shown_at(a, a->r->targets[i]))
			return err_set(err, ERR_PRECONDITION,
				"volume %s is published at %s already and has a single writer", a->r->id,
				a->r->targets[i]);
	}
	return 0;
}

/* --- what is recorded: before the mount, so that no mount of ours is ever unknown */

static char **fs_flags_of(const struct attachment *a)
{
	char **flags = NULL;

	for (size_t i = 0; a->flags && a->flags[i]; i++) {
		if (a->flags[i + 1] || !a->dax_added)
			strv_add(&flags, a->flags[i]);
	}
	return flags;
}

static bool same_strings(char *const *x, char *const *y)
{
	if (strv_len(x) != strv_len(y))
		return false;
	for (size_t i = 0; x && y && x[i]; i++) {
		if (!str_eq(x[i], y[i]))
			return false;
	}
	return true;
}

static bool is_recorded(const struct attachment *a, char *const *flags)
{
	const struct volume_record *r = a->r;

	if (r->formatting || !r->ever_staged || !same_strings(r->staged_flags, flags) ||
		(r->staged_usage && !a->here))
		return false;
	if (a->q->kind == ATTACHMENT_INLINE)
		return strv_contains(r->targets, a->q->canonical_path) && strv_len(r->targets) == 1;
	return str_eq(r->staging_path, a->q->canonical_path) && r->staged_block == is_node(a->q->kind);
}

static int record_staging(struct attachment *a, struct error **err)
{
	struct volume_record *r = a->r;
	CLEANUP(strv_freep) char **flags = a->here ? NULL : fs_flags_of(a);

	/* of what is mounted already, the flags that were given then count */
	for (size_t i = 0; a->here && r->staged_flags && r->staged_flags[i]; i++)
		strv_add(&flags, r->staged_flags[i]);
	if (is_recorded(a, flags))
		return 0;
	strv_free(r->staged_flags);
	r->staged_flags = TAKE_PTR(flags);
	r->formatting = false;
	r->ever_staged = true;
	if (!a->here)
		free(TAKE_PTR(r->staged_usage));
	if (a->q->kind == ATTACHMENT_INLINE) {
		strv_free(TAKE_PTR(r->targets));
		strv_add(&r->targets, a->q->canonical_path);
	} else {
		free(r->staging_path);
		r->staging_path = x_strdup(a->q->canonical_path);
		r->staged_block = is_node(a->q->kind);
	}
	return records_save(a->v->records, r, err);
}

/* A target of a pod that ended with its node may never be unpublished: such ones would fill the record. */
static int record_target(struct attachment *a, struct error **err)
{
	struct volume_record *r = a->r;
	char **targets = NULL;
	bool holds_data = r->ever_staged && !r->formatting;

	if (strv_contains(r->targets, a->q->canonical_path) && holds_data)
		return 0;
	for (size_t i = 0; r->targets && r->targets[i]; i++) {
		if (!str_eq(r->targets[i], a->q->canonical_path) && is_shown_at(a, r->targets[i]))
			strv_add(&targets, r->targets[i]);
	}
	strv_add(&targets, a->q->canonical_path);
	strv_free(r->targets);
	r->targets = targets;
	r->ever_staged = true;
	r->formatting = false;
	/* no mount outlives a power cut, so that only what is said of the content has to be durable */
	return holds_data ? records_save_until_boot(a->v->records, r, err)
			  : records_save(a->v->records, r, err);
}

/* --- making it, and what the kernel made of it */

/* The kernel says EINVAL, and why only in its log. */
static int explain_twin(const struct attachment *a, struct error **err)
{
	CLEANUP(free_charp) char *twin = NULL;
	CLEANUP(error_freep) struct error *refusal = NULL;

	if ((*err)->code == ERR_INVALID_ARGUMENT)
		twin = volumes_find_twin(a->v, a->fs_type, a->device, a->table);
	if (!twin)
		return -1;
	refusal = TAKE_PTR(*err);
	return err_set(err, ERR_PRECONDITION, "%s (%s)", twin, refusal->msg);
}

/* Otherwise the content decides, and an ext4 whose superblock says so stops the node at the first error
 * (ext4(5), errors). */
static bool lacks_errors_flag(const struct attachment *a)
{
	for (size_t i = 0; a->flags && a->flags[i]; i++) {
		if (str_starts(a->flags[i], "errors="))
			return false;
	}
	return str_eq(a->fs_type, "ext4");
}

static int mount_fs(struct attachment *a, int target_fd, struct error **err)
{
	CLEANUP(strv_freep) char **options = NULL;

	volume_lock_set_step(a->v->locks, a->r->id, "mounting");
	mount_attributes_to_flags(&a->attributes, /* all= */ false, &options);
	for (size_t i = 0; a->flags && a->flags[i]; i++)
		strv_add(&options, a->flags[i]);
	if (lacks_errors_flag(a))
		strv_add(&options, "errors=remount-ro");
	if (mount_device(a->device->path, target_fd, a->fs_type, (const char *const *)options, err) == 0)
		return 0;
	return explain_twin(a, err);
}

static int bind_source(struct attachment *a, int target_fd, struct error **err)
{
	CLEANUP(strv_freep) char **flags = NULL;

	if (!is_node(a->q->kind))
		mount_attributes_to_flags(&a->attributes, /* all= */ true, &flags);
	else if (a->attributes.readonly)
		strv_add(&flags, "ro");
	return mount_bind(a->source_fd, target_fd, (const char *const *)flags, err);
}

static void warn_of_dropped(const struct attachment *a)
{
	attachment_dax_warn(a->dax, a->r->id, a->device, a->here);
	for (size_t i = 0; a->flags && a->flags[i]; i++) {
		if (!mount_flag_in_force(a->here, a->flags[i]))
			log_warn("mount flag may have no effect: the kernel does not list it",
				F_STR("volume", a->r->id), F_STR("flag", a->flags[i]));
	}
}

/* The path is opened again, so that what it leads to now is what is compared. */
static int read_back(struct attachment *a, int kmsg_fd, struct error **err)
{
	CLEANUP(fd_closep) int fd = -1;
	const struct mount_entry *through;

	a->staged = NULL;
	a->here = NULL;
	mount_table_free(TAKE_PTR(a->table));
	if (volumes_open_if_exists(a->q->canonical_path, &fd, err) < 0)
		return -1;
	if (mount_table_read(&a->table, err) < 0)
		return -1;
	if (look_through(a->table, fd, a->q->canonical_path, &a->here, &through, err) < 0)
		return -1;
	if (!a->here)
		return err_set(err, ERR_INTERNAL, "%s was mounted, but the path does not lead to the mount",
			a->q->canonical_path);
	if (is_target(a->q->kind))
		return compare_target(a, err);
	if (attachment_dax_check_mount(a->dax, a->r->id, a->here, err) < 0)
		return attachment_dax_explain(&a->info, kmsg_fd, err);
	if (compare_fs(a, err) < 0)
		return -1;
	warn_of_dropped(a);
	return 0;
}

static int make_mount(struct attachment *a, int target_fd, struct error **err)
{
	CLEANUP(fd_closep) int kmsg_fd = -1;
	CLEANUP(fd_closep) int parent_fd = -1;
	CLEANUP(error_freep) struct error *undo = NULL;

	if (mount_open_parent(a->q->canonical_path, &parent_fd, err) < 0)
		return -1;
	if (is_target(a->q->kind)) {
		if (bind_source(a, target_fd, err) < 0)
			return -1;
	} else {
		kmsg_fd = kmsg_mark();
		if (mount_fs(a, target_fd, err) < 0)
			return -1;
	}
	if (read_back(a, kmsg_fd, err) == 0)
		return 0;
	if (mount_remove_from(parent_fd, a->q->canonical_path, &undo) < 0)
		return err_wrap(err, "the mount at %s is not the requested one and cannot be unmounted (%s)",
			a->q->canonical_path, undo->msg);
	return -1;
}

/* The roots were opened when the driver started: a mount over one of them since then would hide what is
 * mounted beneath, from all but us. */
static int refuse_stale_root(const struct attachment *a, int target_fd, struct error **err)
{
	CLEANUP(fd_closep) int fd = -1;
	const struct mount_entry *ours = NULL;
	const struct mount_entry *shown = NULL;
	struct stat st[2];

	if (volumes_open_if_exists(a->q->canonical_path, &fd, err) < 0)
		return -1;
	if (mount_table_of(a->table, target_fd, &ours, err) < 0)
		return -1;
	if (fd >= 0 && mount_table_of(a->table, fd, &shown, err) < 0)
		return -1;
	if (fstat(target_fd, &st[0]) < 0 || (fd >= 0 && fstat(fd, &st[1]) < 0))
		return err_set_errno(err, ERR_INTERNAL, errno, "stat %s", a->q->canonical_path);
	if (fd >= 0 && ours == shown && st[0].st_ino == st[1].st_ino)
		return 0;
	return err_set(err, ERR_PRECONDITION,
		"something was mounted over a folder above %s since the driver started: restart the driver",
		a->q->canonical_path);
}

static int open_staging(const struct attachment *a, int *ret_fd, struct error **err)
{
	if (!a->q->own_folder)
		return path_open(a->v->roots, a->q->requested_path, PATH_DIR, ret_fd, err) < 0
			       ? err_wrap(err, "staging path")
			       : 0;
	return path_open_canonical(a->q->canonical_path, ret_fd, err);
}

/* The folder is last, so that no failure before leaves one. */
static int mount_at(struct attachment *a, struct error **err)
{
	CLEANUP(error_freep) struct error *ignored = NULL;
	CLEANUP(fd_closep) int target_fd = -1;
	enum path_kind kind = is_node(a->q->kind) ? PATH_FILE : PATH_DIR;
	bool created = false;

	if (a->q->kind == ATTACHMENT_STAGED) {
		if (open_staging(a, &target_fd, err) < 0)
			return -1;
	} else if (path_make(a->v->roots, a->q->requested_path, kind, &target_fd, &created, err) < 0) {
		return err_wrap(err, "target path");
	}
	if (refuse_stale_root(a, target_fd, err) == 0 && make_mount(a, target_fd, err) == 0)
		return 0;
	if (created)
		(void)!path_remove(a->v->roots, a->q->requested_path, &ignored);
	return -1;
}

/* --- the kinds */

/* A missing folder must not cause anything to be written. */
static int require_folder(const struct attachment *a, struct error **err)
{
	CLEANUP(fd_closep) int fd = -1;

	return a->q->kind == ATTACHMENT_STAGED ? open_staging(a, &fd, err) : 0;
}

static void log_change(const struct attachment *a)
{
	bool staged = a->q->kind == ATTACHMENT_STAGED || a->q->kind == ATTACHMENT_STAGED_NODE;
	const struct volume_change change = {.what = staged ? "volume staged" : "volume published",
		.staging = staged ? a->q->canonical_path : NULL,
		.target = staged ? NULL : a->q->canonical_path,
		.device = a->device->path,
		.of = a->q->claim,
		.begun_ns = a->begun_ns};

	volumes_log_change(a->v, a->r, &change);
}

static int attach_fs(struct attachment *a, struct error **err)
{
	if (volume_record_is_block_only(a->r))
		return err_set(err, ERR_PRECONDITION,
			"it was created for block access only, so that no file system in it is mounted: pods and "
			"guests may have written any content");
	if (require_folder(a, err) < 0)
		return -1;
	if (device_view_confirm_path(a->v->device_view, a->r, a->device, err) < 0)
		return -1;
	const struct fs_layout layout = {.project_quota = strv_contains(a->flags, "prjquota"),
		.without_dax = a->q->params->usage == USAGE_FILE_IO};
	if (volumes_prepare_fs(a->v, a->r, a->device, a->fs_type, layout, a->attributes.readonly, err) < 0)
		return -1;
	if (record_staging(a, err) < 0)
		return -1;
	return mount_at(a, err);
}

/* Grows the file system of a volume that was expanded while it was not staged. If that fails, the volume is
 * usable with its old size, and NodeExpandVolume, which kubelet calls, returns the error. */
static void grow(const struct attachment *a)
{
	CLEANUP(error_freep) struct error *err = NULL;

	if (a->attributes.readonly || volumes_grow_fs(a->v, a->r, a->device, a->here, &err) == 0)
		return;
	log_warn("the file system of a volume did not grow to the size of its device",
		F_STR("volume", a->r->id), F_ERR(err));
}

static int stage_fs(struct attachment *a, struct error **err)
{
	if (choose_fs(a, err) < 0)
		return -1;
	if (find_device(a, err) < 0)
		return -1;
	if (find_mounts(a, err) < 0)
		return -1;
	if (wish_for_dax(a, err) < 0)
		return -1;
	if (a->here && compare_fs(a, err) < 0)
		return -1;
	if (refuse_second(a, err) < 0)
		return -1;
	if (a->here)
		return record_staging(a, err);
	if (attach_fs(a, err) < 0)
		return err_wrap(
			err, "%s volume %s", a->q->kind == ATTACHMENT_STAGED ? "stage" : "publish", a->r->id);
	log_change(a);
	volumes_try_durability(a->v, a->r, a->device, a->here);
	if (a->q->kind == ATTACHMENT_STAGED)
		grow(a);
	return 0;
}

/* Whether the device itself may be handed out. */
static int check_block(const struct attachment *a, struct error **err)
{
	const struct mount_entry *mounted =
		blockdev_mount_find_kind(a->table, a->info.dev, BLOCKDEV_MOUNT_FS);

	if (!volume_record_may_be_block(a->r))
		return err_set(err, ERR_PRECONDITION,
			"volume %s was not created as a block volume, so it may still contain data of an "
			"earlier volume",
			a->r->id);
	if (mounted)
		return err_set(err, ERR_PRECONDITION,
			"the file system of volume %s is mounted at %s: it must be unmounted before the "
			"volume can be published as a block device",
			a->r->id, mounted->target);
	return 0;
}

/* From here on the content counts as data. */
static int stage_node(struct attachment *a, struct error **err)
{
	if (find_device(a, err) < 0)
		return -1;
	if (mount_table_read(&a->table, err) < 0)
		return -1;
	if (check_block(a, err) < 0)
		return -1;
	if (refuse_second_node(a, err) < 0)
		return -1;
	bool news = !a->r->staged_block || !str_eq(a->r->staging_path, a->q->canonical_path);
	if (record_staging(a, err) < 0)
		return -1;
	if (news)
		log_change(a);
	return 0;
}

/* Checks the request for a bind mount against the staged mount, which has the flags of the same volume. */
static int check_staged_fs(struct attachment *a, struct error **err)
{
	a->fs_type = a->staged->fstype;
	if (read_flags(a, err) < 0)
		return -1;
	/* a file system that is mounted read-only as a whole is not writable through a bind */
	if (mount_entry_is_readonly(a->staged))
		a->attributes.readonly = true;
	if (!str_empty(a->q->use->fs_type) && !str_eq(a->q->use->fs_type, a->fs_type))
		return err_set(err, a->here ? ERR_EXISTS : ERR_PRECONDITION,
			"volume %s is staged as %s, but %s was requested", a->r->id, a->fs_type,
			a->q->use->fs_type);
	a->dax = attachment_dax_has_flag(a->r->staged_flags) ? DAX_AS_IT_IS : choose_dax(a, a->staged);
	return attachment_dax_check_mount(a->dax, a->r->id, a->staged, err);
}

static int mount_target(struct attachment *a, struct error **err)
{
	CLEANUP(error_freep) struct error *ignored = NULL;

	if (record_target(a, err) < 0)
		return -1;
	if (mount_at(a, err) == 0)
		return 0;
	volumes_forget_target(a->r, a->q->canonical_path);
	(void)!records_save(a->v->records, a->r, &ignored);
	return -1;
}

static int publish(struct attachment *a, struct error **err)
{
	bool node = a->q->kind == ATTACHMENT_TARGET_NODE;

	if (find_device(a, err) < 0)
		return -1;
	if (find_mounts(a, err) < 0)
		return -1;
	if (node && check_block(a, err) < 0)
		return -1;
	if (!node && check_staged_fs(a, err) < 0)
		return -1;
	a->attributes.readonly = a->attributes.readonly || a->q->readonly;
	if (a->here)
		return compare_target(a, err) < 0 ? -1 : record_target(a, err);
	if (node && require_staged_node(a, err) < 0)
		return -1;
	if (refuse_second_writer(a, err) < 0)
		return -1;
	if (mount_target(a, err) < 0)
		return err_wrap(err, "publish volume %s", a->r->id);
	log_change(a);
	return 0;
}

int volumes_attach(
	struct volumes *v, struct volume_record *r, const struct attachment_request *q, struct error **err)
{
	CLEANUP(attachment_done) struct attachment a = ATTACHMENT_INIT;

	a.v = v;
	a.r = r;
	a.q = q;
	a.begun_ns = clock_ns();
	switch (q->kind) {
	case ATTACHMENT_STAGED:
	case ATTACHMENT_INLINE:
		return stage_fs(&a, err);
	case ATTACHMENT_STAGED_NODE:
		return stage_node(&a, err);
	case ATTACHMENT_TARGET:
	case ATTACHMENT_TARGET_NODE:
		break;
	}
	return publish(&a, err);
}
