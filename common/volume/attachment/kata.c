/* SPDX-License-Identifier: Apache-2.0 */
#include "volume/attachment/kata.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/durable_step.h"
#include "base/mem.h"
#include "base/str.h"
#include "os/blockdev.h"
#include "os/blockdev_mounts.h"
#include "os/loopdev.h"
#include "os/mount.h"
#include "volume/attachment/kata_image.h"
#include "volume/id.h"
#include "volume/params.h"
#include "volume/state.h"

bool kata_has_image(const struct volume_record *r)
{
	CLEANUP(params_done) struct volume_params params = {0};
	CLEANUP(error_freep) struct error *ignored = NULL;

	return params_parse(PARAMS_STATE, &r->parameters, &params, &ignored) == 0 && params.kata_containers;
}

/* The Go driver named it as the request did, for inline volumes by the name. */
char *kata_find_folder(const char *state_path, const struct volume_record *r)
{
	const char *const names[] = {r->id, strmap_get(&r->parameters, "name")};
	char *found = NULL;

	for (size_t i = 0; !found && i < ARRAY_SIZE(names); i++) {
		if (!names[i] || !volume_handle_valid(names[i]))
			continue;
		CLEANUP(free_charp) char *path = x_asprintf("%s/mount/%s", state_path, names[i]);
		found = realpath(path, NULL);
	}
	return found;
}

/* @ret_fd: -1 when there is no image */
static int open_image(const char *folder, int *ret_fd, struct error **err)
{
	CLEANUP(free_charp) char *path = x_asprintf("%s/%s", folder, KATA_IMAGE_NAME);
	int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

	if (fd < 0 && errno != ENOENT)
		return err_set_errno(err, ERR_INTERNAL, errno, "open %s", path);
	*ret_fd = fd;
	return 0;
}

/* @ret: 0 when nothing is attached to the image, or there is none */
static int find_loop(int image_fd, dev_t *ret, struct error **err)
{
	CLEANUP(free_charp) char *loop = NULL;
	struct blockdev_info info = {0};

	if (image_fd >= 0 && loop_find(image_fd, &loop, err) < 0)
		return -1;
	if (loop && blockdev_stat(loop, &info, err) < 0)
		return -1;
	*ret = info.dev;
	return 0;
}

int kata_is_loop(
	const char *state_path, const struct volume_record *r, dev_t dev, bool *ret, struct error **err)
{
	CLEANUP(free_charp) char *folder = kata_find_folder(state_path, r);
	CLEANUP(fd_closep) int image_fd = -1;
	dev_t loop = 0;

	if (folder && open_image(folder, &image_fd, err) < 0)
		return -1;
	if (find_loop(image_fd, &loop, err) < 0)
		return -1;
	*ret = loop != 0 && loop == dev;
	return 0;
}

/* @image_fd: -1 when there is no image. @ret: where a loop device over it is mounted; NULL: nowhere. */
static int find_mount(int image_fd, const struct mount_table *t, const struct mount_entry **ret,
	dev_t *ret_loop, struct error **err)
{
	*ret = NULL;
	if (find_loop(image_fd, ret_loop, err) < 0)
		return -1;
	if (*ret_loop != 0)
		*ret = blockdev_mount_find(t, *ret_loop);
	return 0;
}

int kata_find_target(const char *state_path, const struct volume_record *r, const struct mount_table *t,
	const struct mount_entry **ret, struct error **err)
{
	CLEANUP(free_charp) char *folder = kata_find_folder(state_path, r);
	CLEANUP(fd_closep) int image_fd = -1;
	dev_t loop = 0;

	*ret = NULL;
	if (folder && open_image(folder, &image_fd, err) < 0)
		return -1;
	return find_mount(image_fd, t, ret, &loop, err);
}

/* @ret_busy: a target still shows it */
static int detach(const char *folder, bool *ret_busy, struct error **err)
{
	CLEANUP(mount_table_freep) struct mount_table *table = NULL;
	CLEANUP(fd_closep) int image_fd = -1;
	const struct mount_entry *e;
	dev_t loop = 0;

	if (open_image(folder, &image_fd, err) < 0 || mount_table_read(&table, err) < 0 ||
		find_mount(image_fd, table, &e, &loop, err) < 0)
		return -1;
	*ret_busy = e != NULL;
	return e || loop == 0 ? 0 : loop_detach(image_fd, err);
}

int kata_clean(const char *state_path, const struct volume_record *r, struct error **err)
{
	CLEANUP(free_charp) char *folder = kata_find_folder(state_path, r);
	bool busy;

	if (!folder)
		return 0;
	if (detach(folder, &busy, err) < 0)
		return -1;
	if (busy)
		return 0;
	if (mount_remove(folder, err) < 0)
		return -1;
	/* on a disk that refuses changes the empty folder stays */
	if (STEP("kata-folder", rmdir(folder)) < 0 && errno != ENOENT && errno != EROFS)
		return err_set_errno(err,
			errno == ENOTEMPTY || errno == EBUSY ? ERR_PRECONDITION : ERR_INTERNAL, errno,
			"remove %s", folder);
	return 0;
}

int kata_refuse_published(const char *state_path, const struct volume_record *r, struct error **err)
{
	CLEANUP(mount_table_freep) struct mount_table *table = NULL;
	const struct mount_entry *e;

	if (mount_table_read(&table, err) < 0 || kata_find_target(state_path, r, table, &e, err) < 0)
		return -1;
	if (!e)
		return 0;
	return err_set(err, ERR_PRECONDITION,
		"volume %s is for Kata Containers and published at %s: such a volume is expanded only while no pod "
		"uses it",
		r->id, e->target);
}

void kata_flush(const char *state_path, const struct volume_record *r)
{
	for (size_t i = 0; r->targets && r->targets[i]; i++) {
		CLEANUP(error_freep) struct error *ignored = NULL;
		CLEANUP(fd_closep)
		int fd = open(r->targets[i], O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		bool ours = false;
		struct stat st;

		if (fd >= 0 && fstat(fd, &st) == 0 &&
			kata_is_loop(state_path, r, st.st_dev, &ours, &ignored) == 0 && ours)
			(void)STEP("kata-flush", syncfs(fd));
	}
}
