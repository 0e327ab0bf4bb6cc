/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NodePublish of volumes for Kata Containers: the file system in an image, which lies in the staged one, is
 * mounted at the pod's path through a loop device.
 *
 * Kata's runtime finds the image by that mount, and its guest then writes to the image itself
 * (virtcontainers, IsDeviceLoop and IsPFNImage): a host that mounted it for writing would destroy what the
 * guest writes. So the loop device is read-only for a pod that runs in a guest, and the log of the file
 * system is not replayed. An ordinary pod uses the mount as any other, without DAX.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/durable_step.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "os/blockdev.h"
#include "os/blockdev_mounts.h"
#include "os/loopdev.h"
#include "os/mount.h"
#include "os/paths.h"
#include "volume/attachment/allowed_mount_flags.h"
#include "volume/attachment/attachment.h"
#include "volume/attachment/attachment_dax.h"
#include "volume/attachment/kata.h"
#include "volume/attachment/kata_image.h"
#include "volume/attachment/kata_layout.h"
#include "volume/attachment/mount_flags.h"
#include "volume/volumes_private.h"

#define FOLDER_MODE 0700

struct kata_publication {
	struct volumes *v;
	struct volume_record *r;
	const struct attachment_request *q;
	bool guest;   /* the pod runs in one */
	char **flags; /* wanted of the mount at the target: strv */
	struct mount_table *table;
	const struct mount_entry
		*staged; /* the file system in which the image lies; borrowed from the table */
	char *folder;    /* ours, through which the runtime finds the image */
	int dir_fd;      /* root of the staged file system, through that folder */
	int image_fd;
	char *loop;
	int loop_fd;
	uint64_t begun_ns;
};

static void kata_publication_done(struct kata_publication *p)
{
	strv_free(p->flags);
	mount_table_free(p->table);
	free(p->folder);
	free(p->loop);
	fd_closep(&p->loop_fd);
	fd_closep(&p->image_fd);
	fd_closep(&p->dir_fd);
}

/* --- whether it is offered */

/* The reason why images for Kata Containers cannot be offered; NULL: they can. The mounts that this program
 * makes in the folders of images must propagate to the host, where the runtime of Kata looks for them. */
static char *why_not(const char *state_path)
{
	CLEANUP(mount_table_freep) struct mount_table *table = NULL;
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(free_charp) char *path = realpath(state_path, NULL);
	const char *decides;

	if (!path)
		return x_asprintf("its state folder %s cannot be found", state_path);
	if (mount_table_read(&table, &err) < 0)
		return x_asprintf("it is not known what is mounted (%s)", err->msg);
	if (mount_table_propagates(table, path, &decides))
		return NULL;
	return x_asprintf(
		"mounts in the state folder %s do not reach the host, where Kata's runtime looks for images: the "
		"mount at %s is not shared (mountPropagation: Bidirectional)",
		path, decides);
}

void volumes_look_at_propagation(struct volumes *v)
{
	CLEANUP(free_charp) char *old = NULL;
	char *why = why_not(v->state_path);

	pthread_mutex_lock(&v->shared.mutex);
	old = v->no_kata;
	v->no_kata = why;
	pthread_mutex_unlock(&v->shared.mutex);
}

bool volumes_offers_kata(struct volumes *v, char **ret_why)
{
	pthread_mutex_lock(&v->shared.mutex);
	bool offers = !v->no_kata;
	if (ret_why)
		*ret_why = x_strdup(v->no_kata);
	pthread_mutex_unlock(&v->shared.mutex);
	return offers;
}

/* --- what is asked for */

static bool is_readonly(const struct kata_publication *p)
{
	return p->guest || p->q->readonly;
}

static int check_request(const struct kata_publication *p, struct error **err)
{
	if (p->q->use->block)
		return err_set(err, ERR_INVALID_ARGUMENT,
			"volume %s is for Kata Containers, and such volumes have a file system", p->r->id);
	if (p->guest && p->q->readonly)
		return err_set(err, ERR_INVALID_ARGUMENT,
			"volume %s cannot be published read-only to a pod of Kata Containers, whose runtime does "
			"not pass that on: the guest could write to it",
			p->r->id);
	return 0;
}

/* As for other volumes (attachment.c). */
static int read_flags(struct kata_publication *p, struct error **err)
{
	char *const *asked = p->q->use->mount_flags;
	const char *fs_type = p->r->fs_type ? p->r->fs_type : VOLUME_DEFAULT_FS;
	int checked = volume_record_is_taken_over(p->r) ? allowed_mount_flags_check_taken_over(asked, err)
							: allowed_mount_flags_check(asked, fs_type, err);

	for (size_t i = 0; checked == 0 && asked && asked[i]; i++)
		strv_add(&p->flags, asked[i]);
	return checked < 0 ? -1 : mount_flags_fit_kernel(p->r, fs_type, &p->flags, err);
}

static int find_staged(struct kata_publication *p, struct error **err)
{
	CLEANUP(device_freep) struct device *d = NULL;
	struct blockdev_info info;

	if (volumes_find_block_device(p->v, p->r, "published", &d, err) < 0)
		return -1;
	if (blockdev_stat(d->path, &info, err) < 0 || mount_table_read(&p->table, err) < 0)
		return -1;
	p->staged = volumes_find_whole_mount(p->table, p->r, info.dev, /* writable= */ true);
	if (!p->staged || !str_eq(p->staged->target, p->q->canonical_staging_path))
		return err_set(err, ERR_PRECONDITION, "volume %s is not staged for writing at %s", p->r->id,
			p->q->canonical_staging_path);
	return 0;
}

/* --- what is mounted at the path already */

static int record_target(struct kata_publication *p, struct error **err)
{
	const char *target = p->q->canonical_path;

	if (strv_len(p->r->targets) == 1 && str_eq(p->r->targets[0], target))
		return 0;
	strv_free(TAKE_PTR(p->r->targets));
	strv_add(&p->r->targets, target);
	return records_save(p->v->records, p->r, err);
}

static int compare(struct kata_publication *p, const struct mount_entry *here, struct error **err)
{
	bool ours;

	if (kata_is_loop(p->v, p->r->id, p->r, here->dev, &ours, err) < 0)
		return -1;
	if (!ours)
		return err_set(err, ERR_EXISTS, "something other than volume %s is mounted at %s", p->r->id,
			here->target);
	/* the Go driver mounted all of them for writing */
	if (mount_entry_is_readonly(here) != is_readonly(p) && !volume_record_is_taken_over(p->r))
		return err_set(err, ERR_EXISTS,
			"volume %s is already published at %s %s, but %s was requested", p->r->id,
			here->target, mount_entry_is_readonly(here) ? "read-only" : "read-write",
			is_readonly(p) ? "read-only" : "read-write");
	return record_target(p, err);
}

/* A guest and a second pod would both write to the image. */
static int refuse_second_pod(const struct kata_publication *p, struct error **err)
{
	const struct mount_entry *e;

	if (kata_find_target(p->v, p->r, p->table, &e, err) < 0)
		return -1;
	if (!e)
		return 0;
	return err_set(err, ERR_PRECONDITION,
		"volume %s is published at %s already: one that is for Kata Containers is used by one pod at a time",
		p->r->id, e->target);
}

/* A guest that outlives its pod keeps the image open, and a loop device over it may be mounted where we do
 * not see it: then what was set up for the last pod cannot be taken down. */
static int take_down_last(struct kata_publication *p, struct error **err)
{
	CLEANUP(free_charp) char *folder = kata_find_folder(p->v->state_path, p->r);

	/* of an inline volume it is where the volume is mounted, for one pod */
	if (!folder || str_eq(folder, p->q->canonical_staging_path))
		return 0;
	if (kata_clean(p->v, p->r->id, p->r, err) == 0) {
		mount_table_free(TAKE_PTR(p->table));
		return find_staged(p, err);
	}
	return err_wrap(err,
		"the image of volume %s may still be used by a guest of the last pod that had it: end what has "
		"files open in %s",
		p->r->id, folder);
}

/* --- the image */

static int make_folder(const char *state_path, const struct volume_record *r, char **ret, struct error **err)
{
	CLEANUP(free_charp) char *all = x_asprintf("%s/mount", state_path);
	CLEANUP(free_charp) char *folder = x_asprintf("%s/%s", all, r->id);

	*ret = kata_find_folder(state_path, r);
	if (*ret)
		return 0;
	if ((STEP("kata-folders", mkdir(all, FOLDER_MODE)) < 0 && errno != EEXIST) ||
		(STEP("kata-make-folder", mkdir(folder, FOLDER_MODE)) < 0 && errno != EEXIST))
		return err_set_errno(
			err, errno == ENOSPC ? ERR_UNAVAILABLE : ERR_INTERNAL, errno, "create %s", folder);
	*ret = realpath(folder, NULL);
	return *ret ? 0 : err_set_errno(err, ERR_INTERNAL, errno, "resolve %s", folder);
}

static int bind_staged(const struct kata_publication *p, struct error **err)
{
	static const char *const flags[] = {"nosuid", "nodev", "noexec", NULL};
	CLEANUP(fd_closep) int staged_fd = -1;
	CLEANUP(fd_closep) int folder_fd = open(p->folder, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (folder_fd < 0)
		return err_set_errno(err, ERR_INTERNAL, errno, "open %s", p->folder);
	if (volumes_open_mounted(p->staged, &staged_fd, err) < 0)
		return -1;
	return mount_bind(staged_fd, folder_fd, flags, err);
}

/* The runtime opens the image by the path that the kernel shows for the loop device: that of the folder of
 * the descriptor by which it was opened. */
static int open_folder(struct kata_publication *p, struct error **err)
{
	struct stat st;

	if (make_folder(p->v->state_path, p->r, &p->folder, err) < 0)
		return -1;
	const struct mount_entry *e = mount_table_at(p->table, p->folder);
	if (e && e->dev != p->staged->dev)
		return err_set(err, ERR_PRECONDITION, "something other than volume %s is mounted at %s",
			p->r->id, p->folder);
	if (!e && bind_staged(p, err) < 0)
		return -1;
	p->dir_fd = open(p->folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (p->dir_fd < 0 || fstat(p->dir_fd, &st) < 0)
		return err_set_errno(err, ERR_INTERNAL, errno, "open %s", p->folder);
	if (st.st_dev != p->staged->dev)
		return err_set(err, ERR_PRECONDITION, "the mount at %s is hidden by another one", p->folder);
	return 0;
}

static int make_image(struct kata_publication *p, uint64_t *ret_bytes, struct error **err)
{
	if (p->r->image_bytes > 0)
		return err_set(err, ERR_PRECONDITION,
			"the image %s of %ju bytes, which held the data of volume %s, is not in its file system any "
			"more: no new one is made",
			KATA_IMAGE_NAME, (uintmax_t)p->r->image_bytes, p->r->id);
	const struct fs_layout layout = {.project_quota = strv_contains(p->flags, "prjquota")};
	volume_lock_set_step(p->v->locks, p->r->id, "making its image for Kata Containers");
	if (kata_image_make(p->dir_fd, p->staged->fstype, &layout, p->v->mkfs_timeout_ms, err) < 0 ||
		kata_image_open(p->dir_fd, &p->image_fd, ret_bytes, err) < 0)
		return -1;
	return p->image_fd >= 0 ? 0 : err_set(err, ERR_INTERNAL, "%s is gone", KATA_IMAGE_NAME);
}

static int require_whole(const struct kata_publication *p, uint64_t bytes, struct error **err)
{
	if (bytes >= p->r->image_bytes)
		return 0;
	return err_set(err, ERR_PRECONDITION, "the image %s of volume %s has %ju bytes, and had %ju",
		KATA_IMAGE_NAME, p->r->id, (uintmax_t)bytes, (uintmax_t)p->r->image_bytes);
}

/* Grows the image to the size of the volume. If that fails, the image is usable with its old size. */
static void grow_image(struct kata_publication *p)
{
	CLEANUP(error_freep) struct error *err = NULL;

	volume_lock_set_step(p->v->locks, p->r->id, "growing its image for Kata Containers");
	if (kata_image_grow(p->dir_fd, p->image_fd, p->staged->fstype, &p->r->image_bytes, &err) < 0)
		log_warn("the image in a volume did not grow to the size of the volume",
			F_STR("volume", p->r->id), F_ERR(err));
}

/* Opens the image, which is made if it does not exist, and records its size. An image that exists and has no
 * size in the record was made by a publication that was interrupted, or by the Go driver. */
static int open_image(struct kata_publication *p, struct error **err)
{
	uint64_t bytes = 0;
	uint64_t had = p->r->image_bytes;

	if (kata_image_open(p->dir_fd, &p->image_fd, &bytes, err) < 0)
		return -1;
	if (p->image_fd < 0 && make_image(p, &bytes, err) < 0)
		return -1;
	if (require_whole(p, bytes, err) < 0 || (had == 0 && kata_image_check(p->image_fd, err) < 0))
		return -1;
	p->r->image_bytes = had > 0 ? had : bytes;
	grow_image(p);
	return p->r->image_bytes == had ? 0 : records_save(p->v->records, p->r, err);
}

/* --- the mount */

/* Guests and pods write to the file system as they like: none of its files is a device or gives rights. */
static char **mount_options(const struct kata_publication *p)
{
	bool ext4 = str_eq(p->staged->fstype, "ext4");
	char **options = NULL;

	/* options of a log that is not loaded are refused */
	for (size_t i = 0; p->flags && p->flags[i]; i++) {
		if (!attachment_dax_is_flag(p->flags[i]) &&
			(!p->guest || mount_flag_is_per_mount(p->flags[i])))
			strv_add(&options, p->flags[i]);
	}
	strv_add(&options, "nodev");
	strv_add(&options, "nosuid");
	/* a copy of the volume has the same UUID in its image */
	strv_add(&options, ext4 ? "errors=remount-ro" : "nouuid");
	if (is_readonly(p))
		strv_add(&options, "ro");
	if (p->guest)
		strv_add(&options, ext4 ? "noload" : "norecovery");
	return options;
}

static int read_back(const struct kata_publication *p, struct error **err)
{
	CLEANUP(mount_table_freep) struct mount_table *table = NULL;
	struct blockdev_info info;

	if (blockdev_stat(p->loop, &info, err) < 0 || mount_table_read(&table, err) < 0)
		return -1;
	const struct mount_entry *e = mount_table_at(table, p->q->canonical_path);
	if (!e || e->dev != info.dev || mount_entry_is_readonly(e) != is_readonly(p))
		return err_set(
			err, ERR_INTERNAL, "the mount at %s is not the requested one", p->q->canonical_path);
	return 0;
}

static int mount_loop(struct kata_publication *p, int target_fd, struct error **err)
{
	CLEANUP(strv_freep) char **options = mount_options(p);
	CLEANUP(fd_closep) int parent_fd = -1;
	CLEANUP(error_freep) struct error *undo = NULL;

	if (mount_open_parent(p->q->canonical_path, &parent_fd, err) < 0)
		return -1;
	volume_lock_set_step(p->v->locks, p->r->id, "mounting");
	if (mount_device(p->loop, target_fd, p->staged->fstype, (const char *const *)options, err) < 0)
		return -1;
	if (read_back(p, err) == 0)
		return 0;
	if (mount_remove_from(parent_fd, p->q->canonical_path, &undo) < 0)
		return err_wrap(err, "%s cannot be unmounted (%s)", p->q->canonical_path, undo->msg);
	return -1;
}

/* The target is made last, so that no failure before leaves one. */
static int mount_image(struct kata_publication *p, struct error **err)
{
	CLEANUP(error_freep) struct error *ignored = NULL;
	CLEANUP(fd_closep) int target_fd = -1;
	bool created = false;

	if (loop_attach_part(p->image_fd, KATA_ALIGN_BYTES, p->guest, &p->loop_fd, &p->loop, err) < 0)
		return -1;
	if (!is_readonly(p) && volumes_check_fs(p->v, p->r, p->loop, p->staged->fstype, err) < 0)
		return -1;
	if (record_target(p, err) < 0)
		return -1;
	if (path_make(p->v->roots, p->q->requested_path, PATH_DIR, &target_fd, &created, err) < 0)
		return err_wrap(err, "target path");
	if (volumes_refuse_content(p->q->canonical_path, target_fd, err) == 0 &&
		mount_loop(p, target_fd, err) == 0)
		return 0;
	if (created)
		(void)!path_remove(p->v->roots, p->q->requested_path, &ignored);
	return -1;
}

static void undo(struct kata_publication *p)
{
	CLEANUP(error_freep) struct error *err = NULL;

	fd_closep(&p->loop_fd);
	fd_closep(&p->image_fd);
	fd_closep(&p->dir_fd);
	if (kata_clean(p->v, p->r->id, p->r, &err) < 0)
		log_warn("what a failed publication has mounted is unmounted when its target is unpublished",
			F_STR("volume", p->r->id), F_ERR(err));
}

static void log_publication(const struct kata_publication *p)
{
	const struct volume_change change = {
		.what = p->guest ? "volume published to a guest" : "volume published",
		.target = p->q->canonical_path,
		.device = p->loop,
		.of = p->q->claim,
		.begun_ns = p->begun_ns};

	volumes_log_change(p->v, p->r, &change);
}

int volumes_find_runtime(struct volumes *v, const struct use_request *q, bool *ret_guest, struct error **err)
{
	*ret_guest = true;
	return v->pods ? v->pods->runs_in_guest(v->pods->user, q->context, ret_guest, err) : 0;
}

int volumes_publish_kata(struct volumes *v, struct volume_record *r, const struct attachment_request *q,
	bool guest, struct error **err)
{
	CLEANUP(kata_publication_done)
	struct kata_publication p = {.v = v,
		.r = r,
		.q = q,
		.guest = guest,
		.dir_fd = -1,
		.image_fd = -1,
		.loop_fd = -1,
		.begun_ns = clock_ns()};

	if (check_request(&p, err) < 0 || read_flags(&p, err) < 0 || find_staged(&p, err) < 0)
		return -1;
	const struct mount_entry *here = mount_table_at(p.table, q->canonical_path);
	if (here)
		return compare(&p, here, err);
	if (refuse_second_pod(&p, err) < 0 || take_down_last(&p, err) < 0)
		return -1;
	if (open_folder(&p, err) == 0 && open_image(&p, err) == 0 && mount_image(&p, err) == 0) {
		log_publication(&p);
		return 0;
	}
	undo(&p);
	return err_wrap(err, "publish volume %s", r->id);
}

int volumes_publish_kata_inline(struct volumes *v, struct volume_record *r,
	const struct attachment_request *q, bool guest, struct error **err)
{
	CLEANUP(free_charp) char *folder = NULL;
	CLEANUP(error_freep) struct error *later = NULL;

	if (make_folder(v->state_path, r, &folder, err) < 0)
		return -1;
	const struct attachment_request outer = {.kind = ATTACHMENT_STAGED,
		.requested_path = folder,
		.canonical_path = folder,
		.own_folder = true,
		.use = q->use,
		.params = q->params,
		.claim = q->claim};
	struct attachment_request published = *q;
	published.canonical_staging_path = folder;
	if (volumes_attach(v, r, &outer, err) == 0 && volumes_publish_kata(v, r, &published, guest, err) == 0)
		return 0;
	if (kata_clean(v, r->id, r, &later) < 0)
		log_debug("the folder of an image is removed later", F_STR("volume", r->id), F_ERR(later));
	return -1;
}
