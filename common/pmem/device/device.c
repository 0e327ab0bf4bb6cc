/* SPDX-License-Identifier: Apache-2.0 */
#include "pmem/device/device.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/durable_step.h"
#include "base/mem.h"
#include "base/str.h"
#include "pmem/namespace_layout.h"

#define DEVICE_ID_MAX 63

void device_close(struct device_manager *m)
{
	if (!m)
		return;
	m->ops->close(m->self);
	free(m);
}

int device_list_read(struct device_manager *m, struct device_list **ret, struct error **err)
{
	return m->ops->list(m->self, ret, err);
}

struct device_list *device_latest_pools(struct device_manager *m)
{
	return m->ops->latest_pools ? m->ops->latest_pools(m->self) : NULL;
}

int device_confirm(struct device_manager *m, const struct device *device, struct error **err)
{
	return m->ops->confirm ? m->ops->confirm(m->self, device, err) : 0;
}

int device_create(
	struct device_manager *m, const struct device_spec *spec, struct device **ret, struct error **err)
{
	return STEP("device-create", m->ops->create(m->self, spec, ret, err));
}

int device_grow(
	struct device_manager *m, const struct device_growth *growth, struct device **ret, struct error **err)
{
	return STEP("device-grow", m->ops->grow(m->self, growth, ret, err));
}

int device_remove_leftovers(struct device_manager *m, bool *ret_changed, struct error **err)
{
	*ret_changed = false;
	return m->ops->remove_leftovers ? m->ops->remove_leftovers(m->self, ret_changed, err) : 0;
}

int device_destroy(
	struct device_manager *m, const struct device *device, int exclusive_fd, struct error **err)
{
	return STEP("device-destroy", m->ops->destroy(m->self, device, exclusive_fd, err));
}

int device_activate(struct device_manager *m, const struct device_list *list, struct error **err)
{
	return m->ops->activate(m->self, list, err);
}

static int read_own(const struct device *d, struct media_errors *ret, struct error **err)
{
	CLEANUP(bad_ranges_done) struct bad_ranges bad = {0};

	if (!d->active || !d->path)
		return 0;
	if (bad_ranges_read(d->path, &bad, err) < 0) {
		if ((*err)->code != ERR_NOT_FOUND) {
			ret->unknown = true;
			return err_wrap(err, "device %s", d->id);
		}
		error_clear(err);
	}
	media_errors_add(ret, &bad, 0, d->size_bytes, 0);
	return 0;
}

static int read_each(const struct device_list *list, struct media_errors *ret, struct error **err)
{
	int rc = 0;

	for (size_t i = 0; i < list->n_devices; i++) {
		CLEANUP(error_freep) struct error *e = NULL;

		if (read_own(&list->devices[i], &ret[i], &e) == 0 || rc < 0)
			continue;
		*err = TAKE_PTR(e);
		rc = -1;
	}
	return rc;
}

int device_media_errors(struct device_manager *m, const struct device_list *list, struct media_errors **ret,
	struct error **err)
{
	struct media_errors *found = x_calloc(list->n_devices, sizeof(*found));
	int rc = m->ops->media_errors ? m->ops->media_errors(m->self, list, found, err)
				      : read_each(list, found, err);

	*ret = found;
	return rc < 0 ? err_wrap(err, "find media errors") : 0;
}

void device_tick(struct device_manager *m)
{
	m->ops->tick(m->self);
}

void device_back_up(struct device_manager *m)
{
	if (m->ops->back_up)
		m->ops->back_up(m->self);
}

void device_activity(struct device_manager *m, struct device_activity *ret)
{
	*ret = (struct device_activity){0};
	if (m->ops->activity)
		m->ops->activity(m->self, ret);
}

static void device_done(struct device *d)
{
	free(d->id);
	free(d->pool);
	free(d->identity);
	free(d->path);
}

void device_free(struct device *d)
{
	if (!d)
		return;
	device_done(d);
	free(d);
}

void device_list_free(struct device_list *l)
{
	if (!l)
		return;
	for (size_t i = 0; i < l->n_devices; i++)
		device_done(&l->devices[i]);
	for (size_t i = 0; i < l->n_pools; i++) {
		free(l->pools[i].uuid);
		free(l->pools[i].name);
		free(l->pools[i].region);
	}
	free(l->devices);
	free(l->pools);
	free(l);
}

static struct device copy_of(const struct device *d)
{
	return (struct device){
		.id = x_strdup(d->id),
		.pool = x_strdup(d->pool),
		.identity = x_strdup(d->identity),
		.path = x_strdup(d->path),
		.size_bytes = d->size_bytes,
		.active = d->active,
		.raw = d->raw,
	};
}

bool device_id_valid(const char *id)
{
	size_t len = strlen(id);

	if (len == 0 || len > DEVICE_ID_MAX || !isalnum((unsigned char)*id))
		return false;
	for (; *id; id++)
		if (!isalnum((unsigned char)*id) && !strchr("+_.-", *id))
			return false;
	return true;
}

struct device *device_dup(const struct device *d)
{
	struct device *copy = x_malloc(sizeof(*copy));

	*copy = copy_of(d);
	return copy;
}

/* Return: place of the first device that is not before @id. */
static size_t place_of(const struct device_list *l, const char *id)
{
	size_t from = 0, to = l->n_devices;

	while (from < to) {
		size_t middle = from + (to - from) / 2;
		if (strcmp(l->devices[middle].id, id) < 0)
			from = middle + 1;
		else
			to = middle;
	}
	return from;
}

const struct device *device_list_find(const struct device_list *l, const char *id)
{
	size_t at = place_of(l, id);

	return at < l->n_devices && str_eq(l->devices[at].id, id) ? &l->devices[at] : NULL;
}

/* The one that bears @identity too, or NULL. */
static const struct device *find_exact(const struct device_list *l, const char *id, const char *identity)
{
	for (size_t at = place_of(l, id); at < l->n_devices && str_eq(l->devices[at].id, id); at++) {
		if (str_eq(l->devices[at].identity, identity))
			return &l->devices[at];
	}
	return NULL;
}

uint64_t device_fit(
	const struct device_manager *m, const struct device_pool *pool, bool sector, uint64_t requested_bytes)
{
	if (!pool->complete || pool->closed)
		return UINT64_MAX;
	return m->ops->fit(pool, sector, requested_bytes);
}

uint64_t device_fit_growth(const struct device_pool *pool, uint64_t size_bytes, uint64_t requested_bytes)
{
	uint64_t more_bytes = requested_bytes > size_bytes ? requested_bytes - size_bytes : 0;
	uint64_t rounded = layout_round_up(more_bytes, pool->rules.unit_bytes);

	if (pool->fixed_size || !pool->complete || rounded > pool->capacity.max_volume_bytes)
		return UINT64_MAX;
	return size_bytes + rounded;
}

uint64_t device_fit_units(const struct device_pool *pool, bool sector, uint64_t requested_bytes)
{
	uint64_t rounded = layout_round_up(requested_bytes > 0 ? requested_bytes : 1, pool->rules.unit_bytes);

	return rounded <= capacity_max_bytes(&pool->capacity, sector) ? rounded : UINT64_MAX;
}

static struct device_pool *pool_of(const struct device_list *l, const char *uuid)
{
	for (size_t i = 0; i < l->n_pools; i++)
		if (str_eq(l->pools[i].uuid, uuid))
			return &l->pools[i];
	return NULL;
}

int device_list_confirm(const struct device_list *l, const struct device *d, struct error **err)
{
	for (size_t i = 0; i < l->n_devices; i++) {
		const struct device *now = &l->devices[i];
		if (str_eq(now->id, d->id) && str_eq(now->identity, d->identity) &&
			str_eq(now->pool, d->pool) && str_eq(now->path, d->path))
			return 0;
	}
	return err_set(err, ERR_UNAVAILABLE, "its device is no longer %s", d->path);
}

const struct device_pool *device_list_pool(const struct device_list *l, const char *uuid)
{
	return pool_of(l, uuid);
}

static void insert(struct device_list *l, const struct device *d)
{
	size_t at = place_of(l, d->id);

	l->devices = x_realloc(l->devices, l->n_devices + 1, sizeof(*l->devices));
	memmove(&l->devices[at + 1], &l->devices[at], (l->n_devices - at) * sizeof(*l->devices));
	l->devices[at] = copy_of(d);
	l->n_devices++;
}

static int compare_devices(const void *a, const void *b)
{
	return strcmp(((const struct device *)a)->id, ((const struct device *)b)->id);
}

void device_list_join(struct device_list *l, const struct device_list *other)
{
	l->devices = x_realloc(l->devices, l->n_devices + other->n_devices, sizeof(*l->devices));
	for (size_t i = 0; i < other->n_devices; i++)
		l->devices[l->n_devices++] = copy_of(&other->devices[i]);
	if (other->n_devices)
		qsort(l->devices, l->n_devices, sizeof(*l->devices), compare_devices);

	l->pools = x_realloc(l->pools, l->n_pools + other->n_pools, sizeof(*l->pools));
	for (size_t i = 0; i < other->n_pools; i++) {
		struct device_pool *p = &l->pools[l->n_pools++];
		*p = other->pools[i];
		p->uuid = x_strdup(p->uuid);
		p->name = x_strdup(p->name);
		p->region = x_strdup(p->region);
		p->closed = true;
	}
}

static void erase(struct device_list *l, size_t at)
{
	device_done(&l->devices[at]);
	l->n_devices--;
	memmove(&l->devices[at], &l->devices[at + 1], (l->n_devices - at) * sizeof(*l->devices));
}

static void note_described(struct device_pool *p, bool exists)
{
	if (p->max_devices == 0)
		return;
	if (!exists)
		p->more_devices++;
	else if (p->more_devices > 0)
		p->more_devices--;
	p->used_up = p->more_devices == 0 ? p->limit : NULL;
}

static void note_free(struct device_pool *p, uint64_t free_bytes)
{
	p->capacity.available_bytes = free_bytes;
	if (p->used_up)
		p->capacity.max_sector_volume_bytes = p->capacity.max_volume_bytes = 0;
	else if (p->complete)
		p->capacity.max_sector_volume_bytes = p->capacity.max_volume_bytes =
			layout_round_down(free_bytes, p->rules.unit_bytes);
}

void device_list_note(struct device_list *l, const struct device *d, bool exists)
{
	struct device_pool *p = pool_of(l, d->pool);
	const struct device *listed = find_exact(l, d->id, d->identity);

	if (exists == (listed != NULL))
		return;
	if (p)
		note_described(p, exists);
	if (exists) {
		insert(l, d);
		if (p)
			note_free(p, p->capacity.available_bytes > d->size_bytes
					     ? p->capacity.available_bytes - d->size_bytes
					     : 0);
	} else {
		erase(l, (size_t)(listed - l->devices));
		if (p)
			note_free(p, p->capacity.available_bytes + d->size_bytes);
	}
}
