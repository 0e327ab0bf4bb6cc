/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Namespaces as devices.
 *
 * Every operation lists the namespaces again: that costs a few reads of sysfs, and other programs may use the
 * same regions. A name alone proves nothing: a namespace is destroyed only if it has both the name and the
 * UUID that were recorded.
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"
#include "pmem/bounded_lock.h"
#include "pmem/device/device.h"
#include "pmem/namespace_layout.h"
#include "pmem/nd/nd.h"

/* As nd.h, whose operations it is about. */
#define WAIT_MS 20000

struct device_direct {
	struct bounded_lock lock; /* so that no other operation of ours comes between a listing and the change
			     that is based on it */
	struct nd *nd;
	pthread_mutex_t
		mutex; /* protects the following for callers that do not hold the lock; held for moments */
	/* The last listing; NULL after a failure, which may have changed something. Only the holder of the
	 * lock replaces it. */
	struct nd_inventory *latest;
};

/* Only regions with labels can be pools: a region without labels is one namespace, which cannot have a
 * name. */
static bool is_pool_region(const struct nd_region *r)
{
	return r->is_pmem && r->has_labels;
}

static bool is_volume(const struct nd_namespace *ns)
{
	return ns->mode != ND_DEVDAX && device_id_valid(ns->name) && !str_eq(ns->name, POOL_NAMESPACE_NAME);
}

static struct device to_device(const struct nd_region *r, const struct nd_namespace *ns)
{
	return (struct device){
		.id = x_strdup(ns->name),
		.pool = x_strdup(r->identity),
		.identity = x_strdup(ns->uuid),
		.path = x_strdup(ns->block_path),
		.size_bytes = ns->active ? ns->usable_bytes : nd_usable_bytes(r, ns->mode, ns->raw_bytes),
		.active = ns->active && ns->block_path,
		.raw = ns->mode == ND_RAW,
	};
}

/* Return: false: where a namespace lies is not known. */
static bool used_extents(const struct nd_region *r, struct extent *ret)
{
	for (size_t i = 0; i < r->n_namespaces; i++) {
		if (r->namespaces[i].offset_bytes == ND_OFFSET_UNKNOWN)
			return false;
		ret[i] = (struct extent){r->namespaces[i].offset_bytes, r->namespaces[i].raw_bytes};
	}
	return true;
}

/* None where they would give more than the kernel does. */
static size_t free_extents(
	const struct nd_region *r, uint64_t unit_bytes, uint64_t ret_bytes[static LAYOUT_EXTENTS_MAX])
{
	struct extent *used = x_calloc(r->n_namespaces, sizeof(*used));
	size_t n = 0;

	if (used_extents(r, used))
		n = layout_free_extents(used, r->n_namespaces, r->size_bytes, unit_bytes, ret_bytes);
	free(used);
	return n > 0 && ret_bytes[0] > r->max_extent_bytes ? 0 : n;
}

static struct device_pool to_pool(const struct nd_region *r)
{
	uint64_t unit = nd_region_unit(r);
	bool full = !r->enabled || r->readonly || r->refused || r->free_labels == 0;
	uint64_t largest = full ? 0 : layout_round_down(r->max_extent_bytes, unit);

	struct device_pool p = {
		.uuid = x_strdup(r->identity),
		.name = x_asprintf("%s%s", r->bus, r->name),
		.region = x_strdup(r->identity),
		.capacity.total_bytes = r->size_bytes,
		.region_bytes = r->size_bytes,
		.capacity.available_bytes = full ? 0 : layout_round_down(r->available_bytes, unit),
		.capacity.max_volume_bytes = nd_usable_bytes(r, ND_FSDAX, largest),
		.capacity.max_sector_volume_bytes = nd_usable_bytes(r, ND_SECTOR, largest),
		.rules = {unit, r->pfn_align_bytes, r->btt_start_bytes},
		.complete = r->enabled,
		.fixed_size = DEVICE_FIXED_SIZE,
		.used_up =
			r->enabled && r->free_labels == 0 && r->available_bytes > 0 ? DEVICE_NO_SLOT : NULL,
	};

	if (!full)
		p.n_free_extents = free_extents(r, unit, p.free_extent_bytes);
	return p;
}

/* The smallest namespace for @size_bytes, which is no more than the pool's largest. */
static uint64_t raw_bytes_for(const struct device_pool *p, bool sector, uint64_t size_bytes)
{
	return layout_raw_bytes(&p->rules, sector, size_bytes);
}

static uint64_t fit(const struct device_pool *pool, bool sector, uint64_t requested_bytes)
{
	uint64_t largest = capacity_max_bytes(&pool->capacity, sector);

	if (largest == 0 || requested_bytes > largest)
		return UINT64_MAX;
	return layout_usable(&pool->rules, sector, raw_bytes_for(pool, sector, requested_bytes));
}

static int compare_devices(const void *a, const void *b)
{
	const struct device *x = a;
	const struct device *y = b;
	int order = strcmp(x->id, y->id);

	return order ? order : strcmp(x->identity, y->identity);
}

static struct device_list *to_pools(const struct nd_inventory *inv)
{
	struct device_list *l = x_calloc(1, sizeof(*l));

	l->pools = x_calloc(inv->n_regions, sizeof(*l->pools));
	for (size_t i = 0; i < inv->n_regions; i++) {
		if (is_pool_region(&inv->regions[i]))
			l->pools[l->n_pools++] = to_pool(&inv->regions[i]);
	}
	return l;
}

static struct device_list *to_list(const struct nd_inventory *inv)
{
	struct device_list *l = to_pools(inv);

	for (size_t i = 0; i < inv->n_regions; i++) {
		const struct nd_region *r = &inv->regions[i];
		if (!is_pool_region(r))
			continue;
		l->devices = x_realloc(l->devices, l->n_devices + r->n_namespaces, sizeof(*l->devices));
		for (size_t k = 0; k < r->n_namespaces; k++)
			if (is_volume(&r->namespaces[k]))
				l->devices[l->n_devices++] = to_device(r, &r->namespaces[k]);
	}
	if (l->n_devices)
		qsort(l->devices, l->n_devices, sizeof(*l->devices), compare_devices);
	return l;
}

/* @inv: taken over; NULL: what there is is not known any more. */
static void remember(struct device_direct *m, struct nd_inventory *inv)
{
	pthread_mutex_lock(&m->mutex);
	struct nd_inventory *old = m->latest;
	m->latest = inv;
	pthread_mutex_unlock(&m->mutex);
	nd_inventory_free(old);
}

static int list_namespaces(struct device_direct *m, struct error **err)
{
	struct nd_inventory *inv = NULL;

	if (nd_list(m->nd, &inv, err) < 0)
		return err_wrap(err, "list namespaces");
	remember(m, inv);
	return 0;
}

static int list(void *self, struct device_list **ret, struct error **err)
{
	struct device_direct *m = self;
	CLEANUP(bounded_lock_releasep) struct bounded_lock *lock = NULL;

	if (bounded_lock_take(&m->lock, "list devices", WAIT_MS, &lock, err) < 0 ||
		list_namespaces(m, err) < 0)
		return -1;
	*ret = to_list(m->latest);
	return 0;
}

static struct device_list *latest_pools(void *self)
{
	struct device_direct *m = self;

	pthread_mutex_lock(&m->mutex);
	struct device_list *l = m->latest ? to_pools(m->latest) : NULL;
	pthread_mutex_unlock(&m->mutex);
	return l;
}

static int confirm(void *self, const struct device *d, struct error **err)
{
	struct device_direct *m = self;

	return nd_confirm(m->nd, d->path, d->identity, err);
}

static const struct nd_region *find_region(const struct nd_inventory *inv, const char *identity)
{
	for (size_t i = 0; i < inv->n_regions; i++)
		if (is_pool_region(&inv->regions[i]) && str_eq(inv->regions[i].identity, identity))
			return &inv->regions[i];
	return NULL;
}

static const struct nd_namespace *find_named(const struct nd_region *r, const char *name)
{
	for (size_t i = 0; i < r->n_namespaces; i++)
		if (str_eq(r->namespaces[i].name, name))
			return &r->namespaces[i];
	return NULL;
}

/* Whether a namespace in any region, also of another kind, has the name in its label. */
static bool is_taken(const struct nd_inventory *inv, const char *name)
{
	for (size_t i = 0; i < inv->n_regions; i++)
		if (find_named(&inv->regions[i], name))
			return true;
	return false;
}

static int refuse_size(
	const struct nd_region *r, const struct device_spec *spec, uint64_t largest_bytes, struct error **err)
{
	if (!r->enabled)
		return err_set(err, ERR_UNAVAILABLE, "%s is disabled", r->name);
	if (r->free_labels == 0)
		return err_set(err, ERR_EXHAUSTED, "no free label slot in %s", r->name);
	return err_set(err, ERR_EXHAUSTED, "%ju bytes do not fit in %s, which has room for %ju",
		(uintmax_t)spec->size_bytes, r->name, (uintmax_t)largest_bytes);
}

/* @ret: what nd_create() is to make; strings are borrowed. */
static int plan(const struct nd_inventory *inv, const struct device_spec *spec, struct nd_spec *ret,
	struct error **err)
{
	const struct nd_region *r = find_region(inv, spec->pool);

	if (!device_id_valid(spec->id) || str_eq(spec->id, POOL_NAMESPACE_NAME))
		return err_set(err, ERR_INVALID_ARGUMENT, "\"%s\" is not a valid name of a volume", spec->id);
	if (!r)
		return err_set(err, ERR_NOT_FOUND, "region %s does not exist", spec->pool);
	if (is_taken(inv, spec->id))
		return err_set(err, ERR_EXISTS, "a namespace of that name exists");

	struct device_pool pool = to_pool(r);
	free(pool.uuid);
	free(pool.name);
	free(pool.region);
	if (fit(&pool, spec->sector, spec->size_bytes) == UINT64_MAX)
		return refuse_size(r, spec, capacity_max_bytes(&pool.capacity, spec->sector), err);
	*ret = (struct nd_spec){
		.bus = r->bus,
		.region = r->name,
		.label = spec->id,
		.uuid = spec->identity,
		.raw_bytes = raw_bytes_for(&pool, spec->sector, spec->size_bytes),
		.mode = spec->sector ? ND_SECTOR : ND_FSDAX,
	};
	return 0;
}

/* If the kernel's layout differs from ours, a volume must not become smaller than promised. */
static int check_size(
	struct device_direct *m, const struct device_spec *spec, const struct device *d, struct error **err)
{
	CLEANUP(nd_inventory_freep) struct nd_inventory *after = NULL;
	CLEANUP(error_freep) struct error *second = NULL;

	if (d->size_bytes >= spec->size_bytes)
		return 0;
	err_set(err, ERR_INTERNAL, "the device has %ju bytes instead of %ju", (uintmax_t)d->size_bytes,
		(uintmax_t)spec->size_bytes);
	if (nd_destroy(m->nd, d->identity, d->id, &after, &second) < 0)
		err_wrap(err, "could not be removed again (%s)", second->msg);
	return -1;
}

static int create_locked(
	struct device_direct *m, const struct device_spec *spec, struct device **ret, struct error **err)
{
	CLEANUP(nd_inventory_freep) struct nd_inventory *after = NULL;
	CLEANUP(nd_namespace_freep) struct nd_namespace *ns = NULL;
	CLEANUP(device_freep) struct device *d = NULL;
	struct nd_spec wanted;

	if (list_namespaces(m, err) < 0 || plan(m->latest, spec, &wanted, err) < 0)
		return -1;
	if (nd_create(m->nd, &wanted, &ns, &after, err) < 0)
		return -1;
	d = x_malloc(sizeof(*d));
	*d = to_device(find_region(m->latest, spec->pool), ns);
	if (check_size(m, spec, d, err) < 0)
		return -1;
	remember(m, TAKE_PTR(after));
	*ret = TAKE_PTR(d);
	return 0;
}

static int create(void *self, const struct device_spec *spec, struct device **ret, struct error **err)
{
	struct device_direct *m = self;
	CLEANUP(bounded_lock_releasep) struct bounded_lock *lock = NULL;

	if (bounded_lock_take(&m->lock, "create a device", WAIT_MS, &lock, err) < 0)
		return err_wrap(err, "device %s", spec->id);
	if (create_locked(m, spec, ret, err) == 0)
		return 0;
	remember(m, NULL);
	return err_wrap(err, "device %s", spec->id);
}

static const struct nd_namespace *find_own(const struct nd_inventory *inv, const struct device *d)
{
	const struct nd_region *r = find_region(inv, d->pool);

	for (size_t i = 0; r && i < r->n_namespaces; i++) {
		const struct nd_namespace *ns = &r->namespaces[i];
		if (is_volume(ns) && str_eq(ns->name, d->id) && str_eq(ns->uuid, d->identity))
			return ns;
	}
	return NULL;
}

/* A namespace that is missing in an incomplete region may come back with the region. Return: NULL with
 * ERR_UNAVAILABLE.
 */
static const struct nd_region *complete_region(
	const struct nd_inventory *inv, const char *pool, struct error **err)
{
	const struct nd_region *r = find_region(inv, pool);

	if (r && r->enabled)
		return r;
	err_set(err, ERR_UNAVAILABLE, "region %s is absent or disabled", pool);
	return NULL;
}

/* @ret: whether it was there; else its region is complete and lacks it. */
static int find_to_destroy(
	struct device_direct *m, const struct device *wanted, bool *ret, struct error **err)
{
	*ret = m->latest && find_own(m->latest, wanted);
	if (*ret)
		return 0;
	if (list_namespaces(m, err) < 0)
		return -1;
	const struct nd_region *r = complete_region(m->latest, wanted->pool, err);
	if (!r)
		return -1;
	*ret = find_own(m->latest, wanted);
	if (!*ret && find_named(r, wanted->id))
		return err_set(err, ERR_PRECONDITION, "another namespace has its name");
	return 0;
}

static int destroy_locked(
	struct device_direct *m, const struct device *wanted, int exclusive_fd, struct error **err)
{
	CLEANUP(nd_inventory_freep) struct nd_inventory *after = NULL;
	CLEANUP(fd_closep) int fd = exclusive_fd;
	bool found = false;

	if (find_to_destroy(m, wanted, &found, err) < 0)
		return -1;
	if (!found)
		return 0;
	if (fd >= 0)
		close(TAKE_FD(fd));
	if (nd_destroy(m->nd, wanted->identity, wanted->id, &after, err) < 0) {
		remember(m, NULL);
		return -1;
	}
	remember(m, TAKE_PTR(after));
	return complete_region(m->latest, wanted->pool, err) ? 0 : -1;
}

static int grow(void *self, const struct device_growth *growth, struct device **ret, struct error **err)
{
	(void)self;
	(void)ret;
	return err_set(err, ERR_INVALID_ARGUMENT, "device %s cannot grow: %s", growth->device->id,
		DEVICE_FIXED_SIZE);
}

static int destroy(void *self, const struct device *device, int exclusive_fd, struct error **err)
{
	struct device_direct *m = self;
	CLEANUP(bounded_lock_releasep) struct bounded_lock *lock = NULL;
	CLEANUP(fd_closep) int fd = exclusive_fd;

	if (bounded_lock_take(&m->lock, "remove a device", WAIT_MS, &lock, err) < 0 ||
		destroy_locked(m, device, TAKE_FD(fd), err) < 0)
		return err_wrap(err, "device %s", device->id);
	return 0;
}

/* A namespace that the kernel refuses to enable must not keep the other ones from being enabled. */
static int activate(void *self, const struct device_list *l, struct error **err)
{
	struct device_direct *m = self;
	CLEANUP(bounded_lock_releasep) struct bounded_lock *lock = NULL;
	int rc = 0;

	if (bounded_lock_take(&m->lock, "activate devices", WAIT_MS, &lock, err) < 0)
		return -1;
	for (size_t i = 0; i < l->n_devices; i++) {
		const struct device *d = &l->devices[i];
		CLEANUP(error_freep) struct error *refusal = NULL;

		if (d->active)
			continue;
		remember(m, NULL);
		if (nd_enable(m->nd, d->identity, d->id, &refusal) == 0)
			continue;
		if (rc == 0)
			err_set(err, ERR_INTERNAL, "device %s: %s", d->id, refusal->msg);
		rc = -1;
	}
	return rc;
}

/* The activity is that of the whole process, since all managers of a process use the same kernel. */
static void activity(void *self, struct device_activity *ret)
{
	char step[BOUNDED_LOCK_STEP_MAX];

	(void)self;
	*ret = (struct device_activity){.since_ns = nd_activity(step)};
	snprintf(ret->command, sizeof(ret->command), "%s", step);
}

static void tick(void *self)
{
	(void)self;
}

static void close_manager(void *self)
{
	struct device_direct *m = self;

	nd_close(m->nd);
	nd_inventory_free(m->latest);
	pthread_mutex_destroy(&m->mutex);
	bounded_lock_done(&m->lock);
	free(m);
}

static const struct device_ops ops = {
	.mode = "direct",
	.fixed_size = true,
	.list = list,
	.latest_pools = latest_pools,
	.confirm = confirm,
	.create = create,
	.grow = grow,
	.destroy = destroy,
	.activate = activate,
	.fit = fit,
	.tick = tick,
	.activity = activity,
	.close = close_manager,
};

struct device_manager *device_open_direct(struct nd *nd)
{
	struct device_manager *manager = x_malloc(sizeof(*manager));
	struct device_direct *m = x_calloc(1, sizeof(*m));

	bounded_lock_init(&m->lock);
	pthread_mutex_init(&m->mutex, NULL);
	m->nd = nd;
	*manager = (struct device_manager){.ops = &ops, .self = m};
	return manager;
}
