/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The fake's folder: model.json describes the regions, <id>.device the extent of a device, and <id>.image has
 * its content.
 *
 * A device exists while its .device does: that is written after the image is there and removed before it
 * goes, so whatever a crash interrupts, an image without description is unused, and is removed when the
 * folder is opened next.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "base/durable_step.h"
#include "base/json/json.h"
#include "base/mem.h"
#include "base/parse.h"
#include "base/str.h"
#include "os/blockdev.h"
#include "os/file.h"
#include "os/lock.h"
#include "os/loopdev.h"
#include "pmem/device/device_fake_folder.h"

#define FOLDER_MODE   0700
#define FILE_MODE     0600
#define MODEL_NAME    "model.json"
#define LOCK_NAME     ".lock"
#define JSON_MAX      65536
#define LOOKS         5
#define DEVICE_SUFFIX ".device"
#define IMAGE_SUFFIX  ".image"
#define BAD_NAME      "badblocks"

/* The members of both kinds of files; others stay NULL or 0. */
struct content {
	char *id;
	char *identity;
	char *pool;
	char **pools;
	uint64_t offset_bytes;
	uint64_t size_bytes;
	uint64_t unit_bytes;
};

static void content_done(struct content *c)
{
	free(c->id);
	free(c->identity);
	free(c->pool);
	strv_free(c->pools);
}

static int read_member(void *user, const char *key, struct json_reader *r, struct error **err)
{
	struct content *c = user;

	if (str_eq(key, "id"))
		return json_read_str(r, &c->id, err);
	if (str_eq(key, "identity"))
		return json_read_str(r, &c->identity, err);
	if (str_eq(key, "pool"))
		return json_read_str(r, &c->pool, err);
	if (str_eq(key, "pools"))
		return json_read_strv(r, &c->pools, err);
	if (str_eq(key, "offset"))
		return json_read_u64(r, &c->offset_bytes, err);
	if (str_eq(key, "size"))
		return json_read_u64(r, &c->size_bytes, err);
	if (str_eq(key, "unit"))
		return json_read_u64(r, &c->unit_bytes, err);
	return err_set(err, ERR_INVALID_ARGUMENT, "unknown member");
}

/* Only this module writes these files, and atomically: a file that cannot be parsed is damaged. */
static int read_file(struct fake_folder *f, const char *name, struct content *c, struct error **err)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT(JSON_MAX);

	if (file_read(f->dir_fd, name, &text, err) < 0)
		return -1;
	if (json_read_document(buf_span(&text), read_member, c, err) < 0) {
		err_recode(err, ERR_PRECONDITION);
		return err_wrap(err, "%s", name);
	}
	return 0;
}

static int write_file(struct fake_folder *f, const char *name, const struct buf *text, struct error **err)
{
	if (buf_check(text, name, err) < 0)
		return -1;
	return file_write_atomic(f->dir_fd, name, buf_span(text), FILE_MODE, err);
}

static int write_model(struct fake_folder *f, const struct fake_model *m, struct error **err)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT(JSON_MAX);
	struct json_writer w = JSON_WRITER(&text);

	json_object(&w);
	json_key_u64(&w, "size", m->region_bytes);
	json_key_u64(&w, "unit", m->unit_bytes);
	json_key(&w, "pools");
	json_array(&w);
	for (size_t i = 0; i < m->n_regions; i++)
		json_str(&w, m->uuids[i]);
	json_array_end(&w);
	json_object_end(&w);
	return write_file(f, MODEL_NAME, &text, err);
}

static int write_device(
	struct fake_folder *f, const struct fake_extent *e, const char *pool, struct error **err)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT(JSON_MAX);
	CLEANUP(free_charp) char *name = x_asprintf("%s" DEVICE_SUFFIX, e->id);
	struct json_writer w = JSON_WRITER(&text);

	json_object(&w);
	json_key_str(&w, "id", e->id);
	json_key_str(&w, "identity", e->identity);
	json_key_str(&w, "pool", pool);
	json_key_u64(&w, "offset", e->start_bytes);
	json_key_u64(&w, "size", e->size_bytes);
	json_object_end(&w);
	return write_file(f, name, &text, err);
}

static int load_model(struct fake_folder *f, const struct device_fake_config *config, struct fake_model *m,
	struct error **err)
{
	CLEANUP(content_done) struct content c = {0};

	if (read_file(f, MODEL_NAME, &c, err) < 0)
		return -1;
	if (config->region_bytes == 0)
		m->region_bytes = c.size_bytes;
	if (c.size_bytes != m->region_bytes || c.unit_bytes != m->unit_bytes ||
		strv_len(c.pools) != m->n_regions)
		return err_set(err, ERR_PRECONDITION,
			"it holds %zu regions of %ju bytes in units of %ju, not %zu of %ju in units of %ju: "
			"omit -fakeRegionSize to use it as it is",
			strv_len(c.pools), (uintmax_t)c.size_bytes, (uintmax_t)c.unit_bytes, m->n_regions,
			(uintmax_t)m->region_bytes, (uintmax_t)m->unit_bytes);
	strv_free(m->uuids);
	m->uuids = TAKE_PTR(c.pools);
	return 0;
}

static int load_device(struct fake_folder *f, struct fake_model *m, const char *name, struct error **err)
{
	CLEANUP(content_done) struct content c = {0};
	size_t id_len = strlen(name) - strlen(DEVICE_SUFFIX);
	struct fake_extent e = {0};

	if (read_file(f, name, &c, err) < 0)
		return -1;
	if (!c.id || !c.identity || strlen(c.id) != id_len || memcmp(c.id, name, id_len) != 0)
		return err_set(err, ERR_PRECONDITION,
			"%s does not describe the device that it is named after", name);
	if (!fake_model_region(m, c.pool, &e.region))
		return err_set(err, ERR_PRECONDITION, "%s names no region of this folder", name);
	e.id = c.id;
	e.identity = c.identity;
	e.start_bytes = c.offset_bytes;
	e.size_bytes = c.size_bytes;
	if (fake_model_check(m, &e, err) < 0)
		return -1;
	fake_model_add(m, &e);
	return 0;
}

static int load_devices(struct fake_folder *f, struct fake_model *m, char *const *names, struct error **err)
{
	for (size_t i = 0; names[i]; i++) {
		if (names[i][0] != '.' && str_ends(names[i], DEVICE_SUFFIX) &&
			load_device(f, m, names[i], err) < 0)
			return -1;
	}
	return 0;
}

/* No loop device is over such an image: it gets one after its description, and loses it before. */
static int remove_leftovers(
	struct fake_folder *f, const struct fake_model *m, char *const *names, struct error **err)
{
	for (size_t i = 0; names[i]; i++) {
		bool is_leftover = names[i][0] == '.' && str_ends(names[i], ".tmp");

		if (str_ends(names[i], IMAGE_SUFFIX)) {
			CLEANUP(free_charp)
			char *id = x_strndup(names[i], strlen(names[i]) - strlen(IMAGE_SUFFIX));
			is_leftover = !fake_model_find(m, id);
		}
		if (is_leftover && file_unlink_durable(f->dir_fd, names[i], err) < 0)
			return -1;
	}
	return 0;
}

static int open_image(struct fake_folder *f, const char *id, int *ret_fd, struct error **err)
{
	CLEANUP(free_charp) char *name = x_asprintf("%s" IMAGE_SUFFIX, id);
	int fd = openat(f->dir_fd, name, O_RDWR | O_CLOEXEC | O_NOFOLLOW);

	if (fd < 0)
		return err_set_errno(err, ERR_INTERNAL, errno, "open %s", name);
	*ret_fd = fd;
	return 0;
}

static int set_image_size(int fd, const char *id, uint64_t size_bytes, struct error **err)
{
	if (STEP("image-resize", ftruncate(fd, (off_t)size_bytes)) < 0 ||
		STEP("image-resize-sync", fsync(fd)) < 0)
		return err_set_errno(err, errno == ENOSPC ? ERR_EXHAUSTED : ERR_INTERNAL, errno,
			"resize the image of %s", id);
	return 0;
}

static int stat_image(struct fake_folder *f, const char *id, struct stat *ret, struct error **err)
{
	CLEANUP(free_charp) char *name = x_asprintf("%s" IMAGE_SUFFIX, id);

	if (fstatat(f->dir_fd, name, ret, AT_SYMLINK_NOFOLLOW) == 0)
		return 0;
	/* without the lock, the device may just be removed, and there is no loop device then */
	if (errno == ENOENT && f->lock_fd < 0) {
		*ret = (struct stat){0};
		return 0;
	}
	return err_set_errno(err, ERR_INTERNAL, errno, "stat %s", name);
}

/* Whether image and loop device have the size that the description says. */
static bool has_size(const struct device *d, const struct stat *image)
{
	CLEANUP(error_freep) struct error *ignored = NULL;
	struct blockdev_info info;

	if ((uint64_t)image->st_size != d->size_bytes)
		return false;
	return !d->path || blockdev_stat(d->path, &info, &ignored) < 0 || info.size_bytes == d->size_bytes;
}

static int fit_image(struct fake_folder *f, const struct device *d, struct error **err)
{
	CLEANUP(fd_closep) int fd = -1;

	if (open_image(f, d->id, &fd, err) < 0)
		return -1;
	if (set_image_size(fd, d->id, d->size_bytes, err) < 0)
		return -1;
	return loop_update_size(fd, err);
}

/* Gives each image the size that the model's description says: a crash in fake_folder_grow() leaves them
 * different. */
static int fit_images(struct fake_folder *f, const struct fake_model *m, struct error **err)
{
	CLEANUP(device_list_freep) struct device_list *l = fake_model_list(m);

	if (fake_folder_find(f, l, err) < 0)
		return -1;
	for (size_t i = 0; i < l->n_devices; i++) {
		const struct device *d = &l->devices[i];
		struct stat image;

		if (stat_image(f, d->id, &image, err) < 0)
			return -1;
		if (!has_size(d, &image) && fit_image(f, d, err) < 0)
			return -1;
	}
	return 0;
}

/* Nothing is removed from a folder that we did not start ourselves. */
static int check_unused(char *const *names, struct error **err)
{
	for (size_t i = 0; names[i]; i++) {
		if (names[i][0] != '.')
			return err_set(err, ERR_PRECONDITION, "it holds %s, and no %s", names[i], MODEL_NAME);
	}
	return 0;
}

/* A driver that has the folder makes and removes files while they are read, all of them whole. */
static int load_consistently(struct fake_folder *f, const struct device_fake_config *config,
	struct fake_model *m, struct error **err)
{
	for (unsigned i = 0;; i++) {
		CLEANUP(strv_freep) char **names = NULL;

		if (load_model(f, config, m, err) < 0 || dir_list(f->dir_fd, &names, err) < 0)
			return -1;
		if (load_devices(f, m, names, err) == 0)
			return 0;
		if (i == LOOKS)
			return -1;
		error_clear(err);
		fake_model_clear(m);
	}
}

static int load(struct fake_folder *f, const struct device_fake_config *config, struct fake_model *m,
	struct error **err)
{
	CLEANUP(strv_freep) char **names = NULL;

	if (dir_list(f->dir_fd, &names, err) < 0)
		return -1;
	if (!strv_contains(names, MODEL_NAME))
		return check_unused(names, err) < 0 ? -1 : write_model(f, m, err);
	if (load_model(f, config, m, err) < 0)
		return -1;
	if (load_devices(f, m, names, err) < 0)
		return -1;
	if (remove_leftovers(f, m, names, err) < 0)
		return -1;
	return fit_images(f, m, err);
}

int fake_folder_open(const struct device_fake_config *config, struct fake_model *m, struct fake_folder **ret,
	struct error **err)
{
	CLEANUP(fake_folder_closep) struct fake_folder *f = x_malloc(sizeof(*f));

	*f = (struct fake_folder){.dir_fd = -1, .lock_fd = -1};
	if (dir_open(config->path, /* create= */ !config->read_only, FOLDER_MODE, &f->dir_fd, err) < 0)
		return -1;
	if (!config->read_only && host_lock(f->dir_fd, LOCK_NAME, /* timeout_ms= */ 0, &f->lock_fd, err) < 0)
		return err_wrap(err, "folder %s", config->path);
	if ((config->read_only ? load_consistently : load)(f, config, m, err) < 0)
		return err_wrap(err, "folder %s", config->path);
	*ret = TAKE_PTR(f);
	return 0;
}

void fake_folder_close(struct fake_folder *f)
{
	if (!f)
		return;
	fd_closep(&f->dir_fd);
	fd_closep(&f->lock_fd);
	free(f);
}

/* An existing file of that name is left from a creation that could not be undone: the model knows no such
 * device. fsync, so that the size is on the disk before the description is. */
static int make_image(
	struct fake_folder *f, const char *name, uint64_t size_bytes, int *ret_fd, struct error **err)
{
	if (STEP("image-clear", unlinkat(f->dir_fd, name, 0)) < 0 && errno != ENOENT)
		return err_set_errno(err, ERR_INTERNAL, errno, "remove %s", name);

	CLEANUP(fd_closep)
	int fd = STEP("image-create",
		openat(f->dir_fd, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, FILE_MODE));

	if (fd < 0)
		return err_set_errno(
			err, errno == ENOSPC ? ERR_EXHAUSTED : ERR_INTERNAL, errno, "create %s", name);
	if (STEP("image-size", ftruncate(fd, (off_t)size_bytes)) < 0 || STEP("image-sync", fsync(fd)) < 0)
		return err_set_errno(
			err, errno == ENOSPC ? ERR_EXHAUSTED : ERR_INTERNAL, errno, "extend %s", name);
	*ret_fd = TAKE_FD(fd);
	return 0;
}

static int make_device(struct fake_folder *f, const struct fake_extent *e, const char *image,
	const char *pool, char **ret_path, struct error **err)
{
	CLEANUP(fd_closep) int fd = -1;

	if (make_image(f, image, e->size_bytes, &fd, err) < 0)
		return -1;
	if (write_device(f, e, pool, err) < 0)
		return -1;
	return loop_attach(fd, ret_path, err);
}

static int remove_file(struct fake_folder *f, const char *id, const char *suffix, struct error **err)
{
	CLEANUP(free_charp) char *name = x_asprintf("%s%s", id, suffix);

	return file_unlink_durable(f->dir_fd, name, err);
}

int fake_folder_create(struct fake_folder *f, const struct fake_extent *e, const char *pool, char **ret_path,
	struct error **err)
{
	CLEANUP(free_charp) char *image = x_asprintf("%s" IMAGE_SUFFIX, e->id);
	CLEANUP(error_freep) struct error *undo = NULL;

	if (make_device(f, e, image, pool, ret_path, err) == 0)
		return 0;
	if (remove_file(f, e->id, DEVICE_SUFFIX, &undo) < 0 || remove_file(f, e->id, IMAGE_SUFFIX, &undo) < 0)
		return err_wrap(err, "could not be undone (%s)", undo->msg);
	return -1;
}

int fake_folder_grow(struct fake_folder *f, const struct fake_extent *e, const char *pool, struct error **err)
{
	CLEANUP(fd_closep) int fd = -1;

	if (open_image(f, e->id, &fd, err) < 0)
		return -1;
	if (set_image_size(fd, e->id, e->size_bytes, err) < 0)
		return -1;
	if (write_device(f, e, pool, err) < 0)
		return -1;
	return loop_update_size(fd, err);
}

static int find_loops(
	struct fake_folder *f, struct device_list *l, struct stat *files, char **paths, struct error **err)
{
	for (size_t i = 0; i < l->n_devices; i++) {
		if (stat_image(f, l->devices[i].id, &files[i], err) < 0)
			return -1;
	}
	return loop_find_each(files, l->n_devices, paths, err);
}

int fake_folder_find(struct fake_folder *f, struct device_list *l, struct error **err)
{
	struct stat *files = x_calloc(l->n_devices, sizeof(*files));
	char **paths = x_calloc(l->n_devices, sizeof(*paths));
	int rc = find_loops(f, l, files, paths, err);

	for (size_t i = 0; i < l->n_devices; i++)
		l->devices[i].path = paths[i];
	free(paths);
	free(files);
	return rc;
}

int fake_folder_attach(struct fake_folder *f, const char *id, struct error **err)
{
	CLEANUP(fd_closep) int fd = -1;
	CLEANUP(free_charp) char *path = NULL;

	if (open_image(f, id, &fd, err) < 0)
		return -1;
	return loop_attach(fd, &path, err);
}

int fake_folder_forget(struct fake_folder *f, const char *id, struct error **err)
{
	CLEANUP(fd_closep) int fd = -1;

	if (open_image(f, id, &fd, err) < 0)
		return -1;
	if (loop_detach(fd, err) < 0)
		return -1;
	return remove_file(f, id, DEVICE_SUFFIX, err);
}

int fake_folder_clear(struct fake_folder *f, const char *id, struct error **err)
{
	return remove_file(f, id, IMAGE_SUFFIX, err);
}

int fake_folder_bad_ranges(struct fake_folder *f, struct bad_ranges *ret, struct error **err)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT(JSON_MAX);

	if (file_read(f->dir_fd, BAD_NAME, &text, err) < 0) {
		if ((*err)->code != ERR_NOT_FOUND)
			return -1;
		error_clear(err);
	}
	return bad_ranges_parse(buf_str(&text), ret, err);
}
