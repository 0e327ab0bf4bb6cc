/* SPDX-License-Identifier: Apache-2.0 */
/* Device manager without persistent memory: regions are a model, devices are loop devices over sparse files,
 * or nothing at all. */
#include <assert.h>
#include <pthread.h>

#include "base/mem.h"
#include "base/str.h"
#include "pmem/device/device_fake_folder.h"
#include "pmem/namespace_layout.h"

struct fake {
	pthread_mutex_t mutex;
	struct fake_model model;
	struct fake_folder *folder; /* NULL: in memory */
};

static int list_locked(struct fake *fake, struct device_list **ret, struct error **err)
{
	CLEANUP(device_list_freep) struct device_list *list = fake_model_list(&fake->model);

	if (fake->folder && fake_folder_find(fake->folder, list, err) < 0)
		return -1;
	for (size_t i = 0; i < list->n_devices; i++)
		list->devices[i].active = list->devices[i].path || !fake->folder;
	*ret = TAKE_PTR(list);
	return 0;
}

static int fake_list(void *self, struct device_list **ret, struct error **err)
{
	struct fake *fake = self;

	pthread_mutex_lock(&fake->mutex);
	int rc = list_locked(fake, ret, err);
	pthread_mutex_unlock(&fake->mutex);
	return rc;
}

static struct device_list *fake_latest_pools(void *self)
{
	struct fake *fake = self;

	pthread_mutex_lock(&fake->mutex);
	struct device_list *pools = fake_model_pools(&fake->model);
	pthread_mutex_unlock(&fake->mutex);
	return pools;
}

/* Loop devices are given away again, too. */
static int fake_confirm(void *self, const struct device *d, struct error **err)
{
	CLEANUP(device_list_freep) struct device_list *l = NULL;

	if (fake_list(self, &l, err) < 0)
		return -1;
	return device_list_confirm(l, d, err);
}

static int create_locked(
	struct fake *fake, const struct device_spec *spec, struct device **ret, struct error **err)
{
	CLEANUP(free_charp) char *id = x_strdup(spec->id);
	CLEANUP(free_charp) char *identity = x_strdup(spec->identity);
	CLEANUP(free_charp) char *path = NULL;
	struct fake_extent e = {.id = id, .identity = identity};

	if (!fake_model_region(&fake->model, spec->pool, &e.region))
		return err_set(err, ERR_NOT_FOUND, "no pool %s", spec->pool);
	if (fake_model_find(&fake->model, spec->id))
		return err_set(err, ERR_EXISTS, "device %s exists", spec->id);
	e.size_bytes = layout_round_up(spec->size_bytes ? spec->size_bytes : 1, fake->model.unit_bytes);
	if (fake_model_place(&fake->model, e.region, e.size_bytes, &e.start_bytes, err) < 0)
		return -1;
	if (fake->folder && fake_folder_create(fake->folder, &e, spec->pool, &path, err) < 0)
		return -1;
	fake_model_add(&fake->model, &e);

	struct device *d = fake_model_device(&fake->model, &e);
	d->path = TAKE_PTR(path);
	d->active = true;
	*ret = d;
	return 0;
}

static int fake_create(void *self, const struct device_spec *spec, struct device **ret, struct error **err)
{
	struct fake *fake = self;

	pthread_mutex_lock(&fake->mutex);
	int rc = create_locked(fake, spec, ret, err);
	pthread_mutex_unlock(&fake->mutex);
	if (rc < 0)
		return err_wrap(err, "create device %s", spec->id);
	return 0;
}

/* Resizes the image and its loop device, also if the model has the new size already: after a failure the loop
 * device may still have its old size. */
static int resize(struct fake *fake, const struct fake_extent *e, struct error **err)
{
	if (fake->folder && fake_folder_grow(fake->folder, e, fake->model.uuids[e->region], err) < 0)
		return -1;
	CLEANUP(free_charp) char *id = x_strdup(e->id);
	CLEANUP(free_charp) char *identity = x_strdup(e->identity);
	struct fake_extent now = *e;
	now.id = id;
	now.identity = identity;
	fake_model_remove(&fake->model, id);
	fake_model_add(&fake->model, &now);
	return 0;
}

static int grow_locked(
	struct fake *fake, const struct device_growth *growth, struct device **ret, struct error **err)
{
	const struct fake_extent *e = fake_model_find(&fake->model, growth->device->id);

	if (!e || !str_eq(fake->model.uuids[e->region], growth->device->pool))
		return err_set(err, ERR_UNAVAILABLE, "there is no such device in its pool");
	if (!str_eq(e->identity, growth->device->identity))
		return err_set(err, ERR_PRECONDITION, "it has another identity");
	struct fake_extent larger = *e;
	larger.size_bytes = layout_round_up(growth->size_bytes, fake->model.unit_bytes);
	if (larger.size_bytes <= e->size_bytes)
		larger.size_bytes = e->size_bytes;
	else if (fake_model_place_growth(&fake->model, e, larger.size_bytes, &larger.start_bytes, err) < 0)
		return -1;
	if (resize(fake, &larger, err) < 0)
		return -1;
	struct device *d = fake_model_device(&fake->model, fake_model_find(&fake->model, growth->device->id));
	d->path = x_strdup(growth->device->path);
	d->active = growth->device->active;
	*ret = d;
	return 0;
}

static int fake_grow(void *self, const struct device_growth *growth, struct device **ret, struct error **err)
{
	struct fake *fake = self;

	pthread_mutex_lock(&fake->mutex);
	int rc = grow_locked(fake, growth, ret, err);
	pthread_mutex_unlock(&fake->mutex);
	if (rc < 0)
		return err_wrap(err, "grow device %s", growth->device->id);
	return 0;
}

static int destroy_locked(
	struct fake *fake, const struct device *device, int exclusive_fd, struct error **err)
{
	CLEANUP(fd_closep) int fd = exclusive_fd;
	const struct fake_extent *e = fake_model_find(&fake->model, device->id);

	if (!e || !str_eq(fake->model.uuids[e->region], device->pool))
		return 0;
	if (!str_eq(e->identity, device->identity))
		return err_set(err, ERR_PRECONDITION, "it has another identity");
	if (fd >= 0)
		close(TAKE_FD(fd));
	if (fake->folder && fake_folder_forget(fake->folder, device->id, err) < 0)
		return -1;
	fake_model_remove(&fake->model, device->id);
	return fake->folder ? fake_folder_clear(fake->folder, device->id, err) : 0;
}

static int fake_destroy(void *self, const struct device *device, int exclusive_fd, struct error **err)
{
	struct fake *fake = self;

	pthread_mutex_lock(&fake->mutex);
	int rc = destroy_locked(fake, device, exclusive_fd, err);
	pthread_mutex_unlock(&fake->mutex);
	if (rc < 0)
		return err_wrap(err, "destroy device %s", device->id);
	return 0;
}

static int activate_locked(struct fake *fake, const struct device_list *list, struct error **err)
{
	for (size_t i = 0; fake->folder && i < list->n_devices; i++) {
		const struct device *d = &list->devices[i];
		if (d->active || !fake_model_find(&fake->model, d->id))
			continue;
		if (fake_folder_attach(fake->folder, d->id, err) < 0)
			return err_wrap(err, "activate device %s", d->id);
	}
	return 0;
}

static int fake_activate(void *self, const struct device_list *list, struct error **err)
{
	struct fake *fake = self;

	pthread_mutex_lock(&fake->mutex);
	int rc = activate_locked(fake, list, err);
	pthread_mutex_unlock(&fake->mutex);
	return rc;
}

static void find_errors(
	const struct fake_model *m, const struct bad_ranges *bad, const char *id, struct media_errors *ret)
{
	const struct fake_extent *e = fake_model_find(m, id);

	if (e)
		media_errors_add(ret, bad, e->region * m->region_bytes + e->start_bytes, e->size_bytes, 0);
}

static int fake_media_errors(
	void *self, const struct device_list *list, struct media_errors *ret, struct error **err)
{
	CLEANUP(bad_ranges_done) struct bad_ranges bad = {0};
	struct fake *fake = self;

	if (fake->folder && fake_folder_bad_ranges(fake->folder, &bad, err) < 0) {
		for (size_t i = 0; i < list->n_devices; i++)
			ret[i].unknown = true;
		return -1;
	}
	pthread_mutex_lock(&fake->mutex);
	for (size_t i = 0; i < list->n_devices; i++)
		find_errors(&fake->model, &bad, list->devices[i].id, &ret[i]);
	pthread_mutex_unlock(&fake->mutex);
	return 0;
}

static void fake_tick(void *self)
{
	(void)self;
}

static void fake_close(void *self)
{
	struct fake *fake = self;

	fake_model_done(&fake->model);
	fake_folder_close(fake->folder);
	pthread_mutex_destroy(&fake->mutex);
	free(fake);
}

static const struct device_ops fake_ops = {
	.mode = "fake",
	.list = fake_list,
	.latest_pools = fake_latest_pools,
	.confirm = fake_confirm,
	.create = fake_create,
	.grow = fake_grow,
	.destroy = fake_destroy,
	.activate = fake_activate,
	.fit = device_fit_units,
	.media_errors = fake_media_errors,
	.tick = fake_tick,
	.close = fake_close,
};

int device_open_fake(const struct device_fake_config *config, struct device_manager **ret, struct error **err)
{
	CLEANUP(fake_model_done) struct fake_model model = {0};
	struct fake_folder *folder = NULL;

	assert(config->unit_bytes > 0);
	fake_model_init(&model, config);
	if (config->path && fake_folder_open(config, &model, &folder, err) < 0)
		return err_wrap(err, "fake devices");

	struct fake *fake = x_malloc(sizeof(*fake));
	*fake = (struct fake){.model = model, .folder = folder};
	model = (struct fake_model){0};
	pthread_mutex_init(&fake->mutex, NULL);

	struct device_manager *m = x_malloc(sizeof(*m));
	*m = (struct device_manager){.ops = &fake_ops, .self = fake};
	if (!config->path)
		m->why_no_path = "-deviceManager=fake keeps volumes in memory only: start the driver with "
				 "-fakePath=DIR as well";
	*ret = m;
	return 0;
}
