/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two device managers as one, so that volumes made in the other device mode are still served.
 *
 * Listing the secondary one may be expensive (LVM), and its devices do not change when one of the primary is
 * made or destroyed, so its last listing is kept.
 */
#include <pthread.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "pmem/device/device.h"

struct device_two_modes {
	struct device_ops ops; /* the primary's, but for what is done here */
	struct device_manager *primary;
	struct device_manager *secondary;
	pthread_mutex_t mutex;     /* guards what follows; never held around work */
	struct device_list *other; /* the last listing of the secondary; NULL: not known */
	char **other_pools;        /* uuids of all pools that it has ever shown: strv */
	uint64_t changes; /* of the secondary's devices by us: a listing that overlaps one is not kept */
	bool failing;     /* the last listing of the secondary failed */
};

/* @other: taken over; NULL: it could not be listed. Return: whether that is news. */
static bool keep(struct device_two_modes *m, struct device_list *other, uint64_t changes)
{
	pthread_mutex_lock(&m->mutex);
	bool news = m->failing != !other;
	m->failing = !other;
	for (size_t i = 0; other && i < other->n_pools; i++)
		if (!strv_contains(m->other_pools, other->pools[i].uuid))
			strv_add(&m->other_pools, other->pools[i].uuid);
	device_list_free(m->other);
	m->other = m->changes == changes ? TAKE_PTR(other) : NULL;
	pthread_mutex_unlock(&m->mutex);
	device_list_free(other);
	return news;
}

static void join_other(struct device_two_modes *m, struct device_list *joined)
{
	CLEANUP(error_freep) struct error *err = NULL;
	struct device_list *other = NULL;

	pthread_mutex_lock(&m->mutex);
	uint64_t changes = m->changes;
	pthread_mutex_unlock(&m->mutex);
	if (device_list_read(m->secondary, &other, &err) == 0)
		device_list_join(joined, other);
	if (!keep(m, other, changes))
		return;
	if (err)
		log_warn("volumes of the other device mode are missing: their devices cannot be listed",
			F_STR("mode", m->secondary->ops->mode), F_ERR(err));
	else
		log_info("devices of the other device mode are listed again",
			F_STR("mode", m->secondary->ops->mode));
}

static int list(void *self, struct device_list **ret, struct error **err)
{
	struct device_two_modes *m = self;
	struct device_list *joined = NULL;

	if (device_list_read(m->primary, &joined, err) < 0)
		return -1;
	join_other(m, joined);
	*ret = joined;
	return 0;
}

/* The secondary's pools do not change with the primary's devices. After a change in the secondary, it has to
 * be listed again. */
static struct device_list *latest_pools(void *self)
{
	struct device_two_modes *m = self;

	pthread_mutex_lock(&m->mutex);
	bool known = m->other || m->failing;
	pthread_mutex_unlock(&m->mutex);
	return known ? device_latest_pools(m->primary) : NULL;
}

static void forget_other(struct device_two_modes *m)
{
	pthread_mutex_lock(&m->mutex);
	m->changes++;
	device_list_free(TAKE_PTR(m->other));
	pthread_mutex_unlock(&m->mutex);
}

static bool is_of_secondary(struct device_two_modes *m, const char *pool)
{
	pthread_mutex_lock(&m->mutex);
	bool is = strv_contains(m->other_pools, pool);
	pthread_mutex_unlock(&m->mutex);
	return is;
}

static bool is_taken(struct device_two_modes *m, const char *id)
{
	pthread_mutex_lock(&m->mutex);
	bool is = m->other && device_list_find(m->other, id);
	pthread_mutex_unlock(&m->mutex);
	return is;
}

static int create(void *self, const struct device_spec *spec, struct device **ret, struct error **err)
{
	struct device_two_modes *m = self;

	if (is_taken(m, spec->id))
		return err_set(err, ERR_EXISTS, "device %s exists, of the other device mode", spec->id);
	return device_create(m->primary, spec, ret, err);
}

static int grow(void *self, const struct device_growth *growth, struct device **ret, struct error **err)
{
	struct device_two_modes *m = self;

	if (!is_of_secondary(m, growth->device->pool))
		return device_grow(m->primary, growth, ret, err);
	int rc = device_grow(m->secondary, growth, ret, err);
	forget_other(m);
	return rc;
}

/* Neither keeps the other from it. */
static int remove_leftovers(void *self, bool *ret_changed, struct error **err)
{
	struct device_two_modes *m = self;
	CLEANUP(error_freep) struct error *second = NULL;
	bool changed = false;

	int rc = device_remove_leftovers(m->primary, ret_changed, err);
	int second_rc = device_remove_leftovers(m->secondary, &changed, &second);
	*ret_changed = *ret_changed || changed;
	if (changed)
		forget_other(m);
	if (rc == 0 && second_rc < 0)
		*err = TAKE_PTR(second);
	return rc < 0 ? rc : second_rc;
}

static int destroy(void *self, const struct device *device, int exclusive_fd, struct error **err)
{
	struct device_two_modes *m = self;

	if (!is_of_secondary(m, device->pool))
		return device_destroy(m->primary, device, exclusive_fd, err);
	int rc = device_destroy(m->secondary, device, exclusive_fd, err);
	forget_other(m);
	return rc;
}

static int confirm(void *self, const struct device *d, struct error **err)
{
	struct device_two_modes *m = self;

	return device_confirm(is_of_secondary(m, d->pool) ? m->secondary : m->primary, d, err);
}

/* Return: those of @l that one of the managers owns; borrowed, the caller frees the arrays. */
static struct device_list share_of(struct device_two_modes *m, const struct device_list *l, bool of_secondary)
{
	struct device_list share = {
		.devices = x_calloc(l->n_devices, sizeof(*share.devices)),
		.pools = x_calloc(l->n_pools, sizeof(*share.pools)),
	};

	for (size_t i = 0; i < l->n_devices; i++)
		if (is_of_secondary(m, l->devices[i].pool) == of_secondary)
			share.devices[share.n_devices++] = l->devices[i];
	for (size_t i = 0; i < l->n_pools; i++)
		if (is_of_secondary(m, l->pools[i].uuid) == of_secondary)
			share.pools[share.n_pools++] = l->pools[i];
	return share;
}

static int activate_share(
	struct device_two_modes *m, const struct device_list *l, bool of_secondary, struct error **err)
{
	struct device_list share = share_of(m, l, of_secondary);
	int rc = device_activate(of_secondary ? m->secondary : m->primary, &share, err);

	free(share.devices);
	free(share.pools);
	return rc;
}

/* @ret: as of device_ops.media_errors, for all of @l */
static int find_share(struct device_two_modes *m, const struct device_list *l, bool of_secondary,
	struct media_errors *ret, struct error **err)
{
	struct device_list share = share_of(m, l, of_secondary);
	struct media_errors *found = NULL;
	size_t at = 0;

	int rc = device_media_errors(of_secondary ? m->secondary : m->primary, &share, &found, err);
	for (size_t i = 0; i < l->n_devices; i++) {
		if (at < share.n_devices && str_eq(l->devices[i].pool, share.devices[at].pool) &&
			str_eq(l->devices[i].id, share.devices[at].id))
			ret[i] = found[at++];
	}
	free(found);
	free(share.devices);
	free(share.pools);
	return rc;
}

/* Takes over both, each of which may be NULL. */
static int fail_with_first(struct error *first, struct error *second, struct error **err)
{
	if (first)
		error_free(second);
	*err = first ? first : second;
	return *err ? -1 : 0;
}

static int media_errors(
	void *self, const struct device_list *list, struct media_errors *ret, struct error **err)
{
	struct error *first = NULL;
	struct error *second = NULL;
	struct device_two_modes *m = self;

	(void)find_share(m, list, /* of_secondary= */ false, ret, &first);
	(void)find_share(m, list, /* of_secondary= */ true, ret, &second);
	return fail_with_first(first, second, err);
}

/* Neither keeps the other away. */
static int activate(void *self, const struct device_list *l, struct error **err)
{
	struct error *first = NULL;
	struct error *second = NULL;
	struct device_two_modes *m = self;

	(void)activate_share(m, l, /* of_secondary= */ false, &first);
	(void)activate_share(m, l, /* of_secondary= */ true, &second);
	return fail_with_first(first, second, err);
}

static void back_up(void *self)
{
	struct device_two_modes *m = self;

	device_back_up(m->primary);
	device_back_up(m->secondary);
}

static void tick(void *self)
{
	struct device_two_modes *m = self;

	device_tick(m->primary);
	device_tick(m->secondary);
}

/* Both may run a command; one is enough to describe what is waited for. */
static void activity(void *self, struct device_activity *ret)
{
	struct device_two_modes *m = self;
	struct device_activity first;

	device_activity(m->primary, &first);
	device_activity(m->secondary, ret);
	uint64_t restarts = first.restarts + ret->restarts;
	if (!str_empty(first.command))
		*ret = first;
	ret->restarts = restarts;
}

static void close_manager(void *self)
{
	struct device_two_modes *m = self;

	device_close(m->primary);
	device_close(m->secondary);
	device_list_free(m->other);
	strv_free(m->other_pools);
	pthread_mutex_destroy(&m->mutex);
	free(m);
}

struct device_manager *device_open_two_modes(struct device_manager *primary, struct device_manager *secondary)
{
	struct device_manager *manager = x_malloc(sizeof(*manager));
	struct device_two_modes *m = x_calloc(1, sizeof(*m));

	pthread_mutex_init(&m->mutex, NULL);
	m->primary = primary;
	m->secondary = secondary;
	m->ops = (struct device_ops){
		.mode = primary->ops->mode,
		.fixed_size = primary->ops->fixed_size && secondary->ops->fixed_size,
		.list = list,
		.latest_pools = primary->ops->latest_pools ? latest_pools : NULL,
		.confirm = confirm,
		.create = create,
		.grow = grow,
		.remove_leftovers = remove_leftovers,
		.destroy = destroy,
		.activate = activate,
		.fit = primary->ops->fit,
		.media_errors = media_errors,
		.tick = tick,
		.back_up = back_up,
		.activity = activity,
		.close = close_manager,
	};
	*manager = (struct device_manager){.ops = &m->ops, .self = m};
	return manager;
}
