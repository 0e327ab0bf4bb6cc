/* SPDX-License-Identifier: Apache-2.0 */
#include "volume/durability/volumes_durability.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "os/blockdev.h"
#include "os/mount_table.h"
#include "volume/attachment/attachment.h"
#include "volume/durability/map_sync.h"
#include "volume/volumes_private.h"

/* A file without a name is made in less than a millisecond, but waits for the journal, and that for the
 * memory of a busy host. */
#define TRY_TIMEOUT_MS 10000

void volumes_load_durability(struct volumes *v)
{
	CLEANUP(error_freep) struct error *err = NULL;
	struct region_durabilities known;

	if (region_durabilities_read(v->state_path, &known, &err) < 0)
		log_warn("what is known of the durability of regions cannot be read, ignoring", F_ERR(err));
	pthread_mutex_lock(&v->shared.mutex);
	region_durabilities_done(&v->durabilities);
	v->durabilities = known;
	pthread_mutex_unlock(&v->shared.mutex);
}

/* Return: the identity of the region of @pool, caller frees; NULL: it is not known, or was tried. */
static char *begin(struct volumes *v, const char *pool)
{
	char *region = NULL;

	pthread_mutex_lock(&v->shared.mutex);
	const struct device_list *seen = device_view_list(v->device_view);
	const struct device_pool *p = seen ? device_list_pool(seen, pool) : NULL;
	if (p && p->region && region_durabilities_begin(&v->durabilities, p->region))
		region = x_strdup(p->region);
	pthread_mutex_unlock(&v->shared.mutex);
	return region;
}

/* One thread writes the file at a time, so that the file has the latest result. Return: whether it is news.
 */
static bool note(struct volumes *v, const char *region, enum durability durability, struct error **err)
{
	CLEANUP(region_durabilities_done) struct region_durabilities copy = {0};

	pthread_mutex_lock(&v->durability_writing);
	pthread_mutex_lock(&v->shared.mutex);
	bool news = region_durabilities_note(&v->durabilities, region, durability);
	if (news)
		region_durabilities_copy(&v->durabilities, &copy);
	pthread_mutex_unlock(&v->shared.mutex);
	if (news)
		(void)!region_durabilities_write(v->state_path, &copy, err);
	pthread_mutex_unlock(&v->durability_writing);
	return news;
}

static void log_news(struct volumes *v, const char *pool, const char *region, enum durability durability)
{
	CLEANUP(free_charp) char *name = volumes_pool_name(v, pool);

	if (durability == DURABILITY_SYNCHRONOUS)
		log_info("the kernel accepts MAP_SYNC on a region", F_STR("region", region),
			F_STR("pool", name));
	else
		log_warn("the kernel refuses MAP_SYNC on a region: what programs store through mappings is "
			 "durable after fsync only",
			F_STR("region", region), F_STR("pool", name),
			F_STR("effect",
				"no further volumes with usage=AppDirect are made there, except by a StorageClass "
				"with durability=fsync"));
}

static int try(const struct mount_entry *e, enum durability *ret, struct error **err)
{
	CLEANUP(fd_closep) int fd = -1;

	if (volumes_open_mounted(e, &fd, err) < 0)
		return -1;
	return map_sync_try(fd, TRY_TIMEOUT_MS, ret, err);
}

/* The kernel (seen with 6.1) may accept MAP_SYNC on a region that is only durable by fsync:
 * drivers/dax/super.c does not clear DAXDEV_SYNC when the memory of a device that is gone is used for another
 * one. virtio-pmem is never synchronous (drivers/nvdimm/virtio_pmem.c sets ND_REGION_ASYNC). */
static enum durability believe(const char *region, enum durability found)
{
	return str_starts(region, "virtio-pmem/") ? DURABILITY_FSYNC : found;
}

/* The next mount tries again. Where a thread was left behind, that mount has to succeed first, which it does
 * not on a device that hangs. @why: NULL: files of the file system have no DAX */
static void give_up(struct volumes *v, const char *region, const struct error *why)
{
	pthread_mutex_lock(&v->shared.mutex);
	region_durabilities_retry(&v->durabilities, region);
	pthread_mutex_unlock(&v->shared.mutex);
	if (why)
		log_warn(
			"whether the kernel accepts MAP_SYNC on a region could not be found out, will try again with "
			"the next mount",
			F_STR("region", region), F_ERR(why));
}

/* Return: whether the kernel was asked. */
static bool try_mount(
	struct volumes *v, const struct volume_record *r, const struct device *d, const struct mount_entry *e)
{
	CLEANUP(error_freep) struct error *err = NULL;
	enum durability durability = DURABILITY_UNKNOWN;
	CLEANUP(free_charp) char *region = NULL;

	if (mount_entry_is_readonly(e) || !mount_entry_has(e, "dax=always"))
		return false;
	region = begin(v, d->pool);
	if (!region)
		return false;
	volume_lock_set_step(v->locks, r->id, "trying MAP_SYNC");
	if (try(e, &durability, &err) < 0 || durability == DURABILITY_UNKNOWN) {
		give_up(v, region, err);
		return true;
	}
	durability = believe(region, durability);
	if (note(v, region, durability, &err)) {
		log_news(v, d->pool, region, durability);
		volumes_changed(&v->shared);
	}
	if (err)
		log_warn("what was found out about the durability of a region could not be recorded",
			F_STR("region", region), F_ERR(err));
	return true;
}

void volumes_try_durability(
	struct volumes *v, const struct volume_record *r, const struct device *d, const struct mount_entry *e)
{
	(void)try_mount(v, r, d, e);
}

/* A file system that could not be thawed hangs. */
static bool is_mounted(const struct volume_record *r)
{
	return r->phase == PHASE_READY && r->staging_path && !r->staged_block && !r->freezing &&
	       !r->suspending;
}

static bool has_mounted(void *user, const char *id)
{
	CLEANUP(volume_record_freep) struct volume_record *r = records_find(user, id);

	return r && is_mounted(r);
}

/* Pools in whose region nothing was tried, in this run or in an earlier one. */
static char **unknown_pools(struct volumes *v)
{
	char **pools = NULL;

	pthread_mutex_lock(&v->shared.mutex);
	const struct device_list *seen = device_view_list(v->device_view);
	for (size_t i = 0; i < seen->n_pools; i++) {
		const struct device_pool *p = &seen->pools[i];
		if (p->region && region_durabilities_of(&v->durabilities, p->region) == DURABILITY_UNKNOWN)
			strv_add(&pools, p->uuid);
	}
	pthread_mutex_unlock(&v->shared.mutex);
	return pools;
}

static char **mounted_in(struct volumes *v, const char *pool)
{
	char **ids = NULL;

	pthread_mutex_lock(&v->shared.mutex);
	const struct records_view view = records_view(v->records);
	for (size_t i = 0; i < view.n; i++) {
		if (is_mounted(view.list[i]) && str_eq(view.list[i]->pool, pool))
			strv_add(&ids, view.list[i]->id);
	}
	pthread_mutex_unlock(&v->shared.mutex);
	return ids;
}

/* Return: whether the kernel was asked. */
static bool try_volume(struct volumes *v, const char *id, const struct mount_table *table)
{
	CLEANUP(volume_unlockp) struct volume_lock *lock = NULL;
	CLEANUP(volume_record_freep) struct volume_record *r = NULL;
	CLEANUP(device_freep) struct device *d = NULL;
	CLEANUP(error_freep) struct error *ignored = NULL;
	struct blockdev_info info;

	if (!volume_lock_if(v->locks, id, has_mounted, v->records, &lock))
		return false;
	r = records_find(v->records, id);
	d = device_view_seen_device(v->device_view, r);
	if (!d || !d->path || blockdev_stat(d->path, &info, &ignored) < 0)
		return false;
	const struct mount_entry *e = volumes_find_whole_mount(table, r, info.dev, /* writable= */ true);
	return e && try_mount(v, r, d, e);
}

void volumes_try_durability_of_mounted(struct volumes *v)
{
	CLEANUP(strv_freep) char **pools = unknown_pools(v);
	CLEANUP(mount_table_freep) struct mount_table *table = NULL;
	CLEANUP(error_freep) struct error *err = NULL;

	if (pools && mount_table_read(&table, &err) < 0) {
		log_warn(
			"the durability of regions could not be found out, will try again with the next mount",
			F_ERR(err));
		return;
	}
	for (char **pool = pools; pool && *pool; pool++) {
		CLEANUP(strv_freep) char **ids = mounted_in(v, *pool);
		bool was_asked = false;

		for (char **id = ids; id && *id && !was_asked; id++)
			was_asked = try_volume(v, *id, table);
	}
}
