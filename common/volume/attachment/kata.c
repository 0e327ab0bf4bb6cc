/* SPDX-License-Identifier: Apache-2.0 */
#include "volume/attachment/kata.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/major.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/durable_step.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "os/blockdev.h"
#include "os/blockdev_mounts.h"
#include "os/loopdev.h"
#include "os/mount.h"
#include "volume/attachment/kata_image.h"
#include "volume/attachment/kata_layout.h"
#include "volume/id.h"
#include "volume/params.h"
#include "volume/state.h"
#include "volume/volumes_private.h"

/* @otherwise: what is said of parameters that cannot be read */
static bool has_image(const struct volume_record *r, bool otherwise)
{
	CLEANUP(params_done) struct volume_params params = {0};
	CLEANUP(error_freep) struct error *ignored = NULL;

	if (params_parse(PARAMS_STATE, &r->parameters, &params, &ignored) < 0)
		return otherwise;
	return params.kata_containers;
}

bool kata_has_image(const struct volume_record *r)
{
	return has_image(r, /* otherwise= */ false);
}

bool kata_may_have_image(const struct volume_record *r)
{
	return has_image(r, /* otherwise= */ true);
}

/* The Go driver named it as the request did, for inline volumes by the name. @r: NULL: unknown */
static char *find_folder(const char *state_path, const char *id, const struct volume_record *r)
{
	const char *const names[] = {id, r ? strmap_get(&r->parameters, "name") : NULL};
	char *found = NULL;

	for (size_t i = 0; !found && i < ARRAY_SIZE(names); i++) {
		if (!names[i] || !volume_handle_valid(names[i]))
			continue;
		CLEANUP(free_charp) char *path = x_asprintf("%s/mount/%s", state_path, names[i]);
		found = realpath(path, NULL);
	}
	return found;
}

char *kata_find_folder(const char *state_path, const struct volume_record *r)
{
	return find_folder(state_path, r->id, r);
}

/* Where the image of a volume lies. */
struct image_home {
	char *folder; /* as kata_find_folder() */
	char *path;   /* of the image in that folder, which need not exist */
	dev_t fs_dev; /* of the volume; 0: not known */
};

static void image_home_done(struct image_home *h)
{
	free(h->folder);
	free(h->path);
}

static void numbers_freep(dev_t **p)
{
	free(*p);
}

static char *make_image_path(const char *state_path, const char *id, const char *folder)
{
	CLEANUP(free_charp) char *state = realpath(state_path, NULL);

	if (folder)
		return x_asprintf("%s/%s", folder, KATA_IMAGE_NAME);
	return x_asprintf("%s/mount/%s/%s", state ? state : state_path, id, KATA_IMAGE_NAME);
}

/* A device that is missing is known by what is mounted in our folder. */
static int find_fs(struct volumes *v, const char *id, const struct volume_record *r, struct image_home *h,
	struct error **err)
{
	CLEANUP(device_freep)
	struct device *d =
		r ? device_view_seen_device(v->device_view, r) : device_view_seen_as(v->device_view, id);
	CLEANUP(mount_table_freep) struct mount_table *table = NULL;
	struct blockdev_info info = {0};
	bool there = false;

	if (d && d->path && blockdev_stat_if_there(d->path, &info, &there, err) < 0)
		return -1;
	h->fs_dev = there ? info.dev : 0;
	if (there || !h->folder)
		return 0;
	if (mount_table_read(&table, err) < 0)
		return -1;
	const struct mount_entry *e = mount_table_at(table, h->folder);
	h->fs_dev = e ? e->dev : 0;
	return 0;
}

static int find_home(struct volumes *v, const char *id, const struct volume_record *r, struct image_home *ret,
	struct error **err)
{
	ret->folder = find_folder(v->state_path, id, r);
	ret->path = make_image_path(v->state_path, id, ret->folder);
	return find_fs(v, id, r, ret, err);
}

static struct loop_place place_of(const struct image_home *h)
{
	return (struct loop_place){.fs_dev = h->fs_dev, .offset_bytes = KATA_ALIGN_BYTES, .path = h->path};
}

/* The numbers of the loop devices over it, @ret_n in @ret (free()), without those that have gone meanwhile.
 */
static int find_loops(const struct image_home *h, dev_t **ret, size_t *ret_n, struct error **err)
{
	const struct loop_place place = place_of(h);
	CLEANUP(strv_freep) char **paths = NULL;
	CLEANUP(numbers_freep) dev_t *numbers = NULL;
	size_t n = 0;

	if (loop_find_in(&place, &paths, err) < 0)
		return -1;
	numbers = x_calloc(strv_len(paths) + 1, sizeof(*numbers));
	for (size_t i = 0; i < strv_len(paths); i++) {
		struct blockdev_info info;
		bool there;

		if (blockdev_stat_if_there(paths[i], &info, &there, err) < 0)
			return -1;
		if (there)
			numbers[n++] = info.dev;
	}
	*ret = TAKE_PTR(numbers);
	*ret_n = n;
	return 0;
}

int kata_is_loop(struct volumes *v, const char *id, const struct volume_record *r, dev_t dev, bool *ret,
	struct error **err)
{
	CLEANUP(image_home_done) struct image_home home = {0};
	CLEANUP(numbers_freep) dev_t *loops = NULL;
	size_t n;

	*ret = false;
	if (major(dev) != LOOP_MAJOR)
		return 0;
	if (find_home(v, id, r, &home, err) < 0 || find_loops(&home, &loops, &n, err) < 0)
		return -1;
	for (size_t i = 0; i < n; i++)
		*ret = *ret || loops[i] == dev;
	return 0;
}

/* @ret: where a loop device over it is mounted; NULL: nowhere */
static int find_mount(const struct image_home *h, const struct mount_table *t, const struct mount_entry **ret,
	struct error **err)
{
	CLEANUP(numbers_freep) dev_t *loops = NULL;
	size_t n;

	*ret = NULL;
	if (find_loops(h, &loops, &n, err) < 0)
		return -1;
	for (size_t i = 0; !*ret && i < n; i++)
		*ret = blockdev_mount_find(t, loops[i]);
	return 0;
}

int kata_find_target(struct volumes *v, const struct volume_record *r, const struct mount_table *t,
	const struct mount_entry **ret, struct error **err)
{
	CLEANUP(image_home_done) struct image_home home = {0};

	*ret = NULL;
	return find_home(v, r->id, r, &home, err) < 0 ? -1 : find_mount(&home, t, ret, err);
}

/* Unmounts the image, unless an administrator has mounted another file system over it, which is not
 * unmounted. @ret_covered: that is so, and the folder stays */
static int unmount_folder(const char *id, const struct image_home *h, bool *ret_covered, struct error **err)
{
	CLEANUP(mount_table_freep) struct mount_table *table = NULL;

	if (mount_table_read(&table, err) < 0)
		return -1;
	const struct mount_entry *e = mount_table_at(table, h->folder);
	*ret_covered = e && h->fs_dev != 0 && e->dev != h->fs_dev;
	if (*ret_covered)
		log_warn(
			"something else is mounted over the folder of an image: unmount that, and the volume "
			"beneath it",
			F_STR("volume", id), F_STR("path", h->folder), F_STR("source", e->source));
	return *ret_covered ? 0 : mount_remove(h->folder, err);
}

static int remove_folder(const char *id, const struct image_home *h, struct error **err)
{
	bool covered;

	if (unmount_folder(id, h, &covered, err) < 0)
		return -1;
	/* on a disk that refuses changes the empty folder stays */
	if (!covered && STEP("kata-folder", rmdir(h->folder)) < 0 && errno != ENOENT && errno != EROFS)
		return err_set_errno(err,
			errno == ENOTEMPTY || errno == EBUSY ? ERR_PRECONDITION : ERR_INTERNAL, errno,
			"remove %s", h->folder);
	return 0;
}

int kata_clean(struct volumes *v, const char *id, const struct volume_record *r, struct error **err)
{
	CLEANUP(image_home_done) struct image_home home = {0};
	CLEANUP(mount_table_freep) struct mount_table *table = NULL;
	const struct mount_entry *shown;

	if (find_home(v, id, r, &home, err) < 0)
		return -1;
	if (mount_table_read(&table, err) < 0 || find_mount(&home, table, &shown, err) < 0)
		return -1;
	if (shown)
		return 0;
	const struct loop_place place = place_of(&home);
	if (loop_detach_in(&place, err) < 0)
		return -1;
	return home.folder ? remove_folder(id, &home, err) : 0;
}

int kata_refuse_published(struct volumes *v, const struct volume_record *r, struct error **err)
{
	CLEANUP(mount_table_freep) struct mount_table *table = NULL;
	const struct mount_entry *e;

	if (mount_table_read(&table, err) < 0 || kata_find_target(v, r, table, &e, err) < 0)
		return -1;
	if (!e)
		return 0;
	return err_set(err, ERR_PRECONDITION,
		"volume %s is for Kata Containers and published at %s: such a volume is expanded only while no pod "
		"uses it",
		r->id, e->target);
}

void kata_flush(struct volumes *v, const struct volume_record *r)
{
	for (size_t i = 0; r->targets && r->targets[i]; i++) {
		CLEANUP(error_freep) struct error *ignored = NULL;
		CLEANUP(fd_closep)
		int fd = open(r->targets[i], O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		bool ours = false;
		struct stat st;

		if (fd >= 0 && fstat(fd, &st) == 0 &&
			kata_is_loop(v, r->id, r, st.st_dev, &ours, &ignored) == 0 && ours)
			(void)STEP("kata-flush", syncfs(fd));
	}
}
