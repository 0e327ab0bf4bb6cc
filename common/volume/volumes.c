/* SPDX-License-Identifier: Apache-2.0 */
#include "volume/volumes.h"

#include <stdlib.h>

#include "base/mem.h"
#include "base/str.h"
#include "volume/id.h"
#include "volume/params.h"
#include "volume/volumes_private.h"

#define MKFS_TIMEOUT_MS   300000
#define USAGE_HELPERS_MAX 8
/* More at once would not be faster; with those that wait they leave most workers to other calls. */
#define ZEROING_MAX         4
#define ZEROING_WAITING_MAX 8
/* Copies have limits of their own, so that a slow one does not delay the zeroing of block volumes. */
#define CLONING_MAX         4
#define CLONING_WAITING_MAX 4
/* Devices are made one after the other. While one takes long, those inside leave most workers to other calls.
 */
#define MAKING_MAX         12
#define MAKING_WAITING_MAX 32

struct volumes *volumes_new(const struct volumes_config *config)
{
	struct volumes *v = x_calloc(1, sizeof(*v));

	v->node_id = x_strdup(config->node_id);
	v->state_path = x_strdup(config->state_path);
	v->locks = volume_locks_new();
	v->erase_queue = erase_queue_new(&(struct erase_queue_config){.erase = volumes_erase,
		.user = v,
		.bytes_per_s = config->erase_bytes_per_s,
		.in_call = config->erase_in_call});
	v->making = concurrency_limit_new(MAKING_MAX, MAKING_WAITING_MAX);
	v->zeroing = concurrency_limit_new(ZEROING_MAX, ZEROING_WAITING_MAX);
	v->cloning = concurrency_limit_new(CLONING_MAX, CLONING_WAITING_MAX);
	v->devices = config->devices;
	v->roots = config->roots;
	v->pods = config->pods;
	v->direct_dir = x_strdup(config->direct_volumes_dir);
	v->guests = config->guests;
	v->copy_bytes_per_s = config->copy_bytes_per_s;
	v->inline_limits = config->inline_limits;
	v->mkfs_timeout_ms = config->mkfs_timeout_ms ? config->mkfs_timeout_ms : MKFS_TIMEOUT_MS;
	v->shared.changed = config->changed;
	v->shared.user = config->user;
	v->usage_helpers = fs_usage_helpers_new(USAGE_HELPERS_MAX);
	pthread_mutex_init(&v->shared.mutex, NULL);
	pthread_mutex_init(&v->durability_writing, NULL);
	v->records = records_new(&v->shared);
	v->device_view = device_view_new(&v->shared, v->records, v->devices, v->locks);
	return v;
}

void volumes_free(struct volumes *v)
{
	if (!v)
		return;
	erase_queue_free(v->erase_queue);
	concurrency_limit_free(v->making);
	concurrency_limit_free(v->zeroing);
	concurrency_limit_free(v->cloning);
	device_view_free(v->device_view);
	records_free(v->records);
	free(v->start_failure);
	free(v->no_kata);
	health_table_done(&v->health);
	dimms_done(&v->dimms);
	copy_reports_done(&v->copy_reports);
	inline_leftovers_done(&v->leftovers);
	region_durabilities_done(&v->durabilities);
	volume_locks_free(v->locks);
	fs_usage_helpers_free(v->usage_helpers);
	pthread_mutex_destroy(&v->shared.mutex);
	pthread_mutex_destroy(&v->durability_writing);
	free(v->node_id);
	free(v->state_path);
	free(v->direct_dir);
	free(v);
}

void volumes_stop(struct volumes *v)
{
	erase_queue_stop(v->erase_queue);
	concurrency_limit_close(v->zeroing);
	concurrency_limit_close(v->cloning);
}

int volumes_refuse_stranger(struct volumes *v, const char *id, struct error **err)
{
	pthread_mutex_lock(&v->shared.mutex);
	const struct device_list *seen = device_view_list(v->device_view);
	bool is_device = seen && device_list_find(seen, id) && volume_id_has_minted_form(id);
	bool is_damaged = strv_contains(records_view(v->records).damaged, id);
	pthread_mutex_unlock(&v->shared.mutex);
	if (is_damaged)
		return err_set(err, ERR_PRECONDITION,
			"the state file of %s is damaged; see pmem-csi-driver check -repair %s", id, id);
	if (is_device)
		return err_set(err, ERR_PRECONDITION,
			"device %s exists, but has no state file; see pmem-csi-driver check -repair %s", id,
			id);
	return 0;
}

bool volumes_is_ready(struct volumes *v)
{
	pthread_mutex_lock(&v->shared.mutex);
	bool ready = v->ready;
	pthread_mutex_unlock(&v->shared.mutex);
	return ready;
}

int volumes_require_ready(struct volumes *v, struct error **err)
{
	CLEANUP(free_charp) char *step = NULL;
	CLEANUP(free_charp) char *failure = NULL;

	pthread_mutex_lock(&v->shared.mutex);
	bool ready = v->ready;
	failure = x_strdup(v->start_failure);
	pthread_mutex_unlock(&v->shared.mutex);
	if (ready)
		return 0;
	step = volumes_current_step(v, NULL);
	return err_set(err, ERR_UNAVAILABLE, "the driver is still starting%s%s%s%s", step ? ": " : "",
		step ? step : "", failure ? "; the last attempt failed: " : "", failure ? failure : "");
}

void volumes_start_failed(struct volumes *v, const struct error *e)
{
	pthread_mutex_lock(&v->shared.mutex);
	free(v->start_failure);
	v->start_failure = x_strdup(e->msg);
	pthread_mutex_unlock(&v->shared.mutex);
}

static int require_kind(const struct volume_record *r, bool snapshot, const char *handle, struct error **err)
{
	if (r && r->phase == PHASE_READY && r->snapshot == snapshot)
		return 0;
	return err_set(err, ERR_NOT_FOUND, "%s %s does not exist", volume_noun(snapshot), handle);
}

static int lock_kind(struct volumes *v, const char *handle, bool snapshot, int wait_ms,
	struct volume_lock **ret_lock, struct volume_record **ret, struct error **err)
{
	CLEANUP(volume_record_freep) struct volume_record *known = records_find(v->records, handle);
	CLEANUP(volume_unlockp) struct volume_lock *lock = NULL;
	CLEANUP(volume_record_freep) struct volume_record *r = NULL;

	if (require_kind(known, snapshot, handle, err) < 0)
		return -1;
	if (volume_lock(v->locks, known->id, wait_ms, &lock, err) < 0)
		return -1;
	/* it may have changed or gone while we waited */
	r = records_find(v->records, known->id);
	if (require_kind(r, snapshot, handle, err) < 0)
		return -1;
	*ret_lock = TAKE_PTR(lock);
	*ret = TAKE_PTR(r);
	return 0;
}

int volumes_lock_ready(struct volumes *v, const char *handle, int wait_ms, struct volume_lock **ret_lock,
	struct volume_record **ret, struct error **err)
{
	return lock_kind(v, handle, /* snapshot= */ false, wait_ms, ret_lock, ret, err);
}

int volumes_lock_snapshot(struct volumes *v, const char *handle, int wait_ms, struct volume_lock **ret_lock,
	struct volume_record **ret, struct error **err)
{
	return lock_kind(v, handle, /* snapshot= */ true, wait_ms, ret_lock, ret, err);
}

bool volumes_may_exist_unrecorded(struct volumes *v, const char *id)
{
	pthread_mutex_lock(&v->shared.mutex);
	const struct device_list *seen = device_view_list(v->device_view);
	bool lacks = !seen || strv_contains(records_view(v->records).damaged, id) ||
		     (device_list_find(seen, id) && volume_id_has_minted_form(id));
	pthread_mutex_unlock(&v->shared.mutex);
	return lacks;
}

struct volume_info *volumes_info(struct volumes *v, const struct volume_record *r)
{
	struct volume_info *info = x_calloc(1, sizeof(*info));

	info->id = x_strdup(r->id);
	info->size_bytes = r->size_bytes;
	params_to_context(&r->parameters, &info->context);
	if (r->direct)
		strmap_set(&info->context, PARAMS_DIRECT, "true");
	info->is_cache = str_eq(strmap_get(&r->parameters, "persistencyModel"), "cache");
	info->may_be_block = volume_record_may_be_block(r);
	info->is_block_only = volume_record_is_block_only(r);
	info->is_taken_over = volume_record_is_taken_over(r);
	info->fs_type = x_strdup(r->fs_type);
	info->source = x_strdup(r->source);
	info->claim = claim_text(&r->claim);
	info->pod = claim_pod(&r->claim);
	pthread_mutex_lock(&v->shared.mutex);
	info->missing = device_view_is_missing(v->device_view, r);
	pthread_mutex_unlock(&v->shared.mutex);
	return info;
}

static uint64_t left_to_erase(const struct volumes *v, const struct volume_record *r)
{
	uint64_t done_bytes = erase_queue_done_bytes(v->erase_queue, r->id);

	if (!volumes_erases_whole(r))
		return 0;
	if (done_bytes < r->erased_bytes)
		done_bytes = r->erased_bytes;
	uint64_t end_bytes = volumes_erase_end(r, r->size_bytes);

	return end_bytes > done_bytes ? end_bytes - done_bytes : 0;
}

/* Pools of the other device mode are not counted, because no new volumes are made in them. */
static void count_pool(const struct volumes *v, const struct device_pool *p, struct volumes_overview *o)
{
	o->n_failing_pools += failing_pools_has(device_view_failing_pools(v->device_view), p->uuid);
	if (!p->closed)
		o->n_pools[region_durabilities_of(&v->durabilities, p->region)]++;
}

static void count_record(const struct volumes *v, const struct volume_record *r, struct volumes_overview *o)
{
	switch (device_view_phase(v->device_view, r)) {
	case PHASE_CREATING:
		o->n_creating++;
		break;
	case PHASE_READY:
		o->n_ready++;
		break;
	case PHASE_MISSING:
		o->n_missing++;
		break;
	case PHASE_ERASING:
		o->n_erasing++;
		o->to_erase_bytes += left_to_erase(v, r);
		break;
	case PHASE_DAMAGED:
	case PHASE_LATER:
		break;
	}
}

/* The caller has the mutex. */
static void count_unrecorded(
	const struct volumes *v, const struct device_list *seen, struct volumes_overview *o)
{
	const struct records_view view = records_view(v->records);

	for (size_t i = 0; i < seen->n_devices; i++) {
		const struct device *d = &seen->devices[i];
		o->n_strangers += !records_has(v->records, d->id) && !strv_contains(view.damaged, d->id) &&
				  volume_id_has_minted_form(d->id);
	}
	for (size_t i = 0; view.damaged && view.damaged[i]; i++)
		o->n_damaged += !records_has(v->records, view.damaged[i]);
}

void volumes_overview(struct volumes *v, struct volumes_overview *ret)
{
	struct volumes_overview o = {0};
	struct erase_queue_counts counts;

	pthread_mutex_lock(&v->shared.mutex);
	const struct device_list *seen = device_view_list(v->device_view);
	const struct records_view view = records_view(v->records);
	for (size_t i = 0; seen && i < view.n; i++)
		count_record(v, view.list[i], &o);
	if (seen)
		count_unrecorded(v, seen, &o);
	for (size_t i = 0; seen && i < seen->n_pools; i++)
		count_pool(v, &seen->pools[i], &o);
	const struct copy_counts copied = v->copied;
	pthread_mutex_unlock(&v->shared.mutex);
	erase_queue_count(v->erase_queue, &counts);
	o.copied_bytes = copied.bytes;
	o.to_copy_bytes = copied.left_bytes;
	o.copy_pauses = copied.pauses;
	o.copy_pause_ns = copied.pause_ns;
	o.erasures_running = counts.n_running;
	o.erased_bytes = counts.erased_bytes;
	*ret = o;
}

void volume_info_free(struct volume_info *i)
{
	if (!i)
		return;
	free(i->id);
	free(i->fs_type);
	free(i->source);
	free(i->claim);
	free(i->pod);
	strmap_done(&i->context);
	free(i);
}

int volumes_get(struct volumes *v, const char *handle, struct volume_info **ret, struct error **err)
{
	CLEANUP(volume_record_freep) struct volume_record *r = records_find(v->records, handle);

	if (require_kind(r, /* snapshot= */ false, handle, err) < 0)
		return -1;
	*ret = volumes_info(v, r);
	return 0;
}

void volumes_list(struct volumes *v, const char *after, size_t max, struct volume_info ***ret, size_t *ret_n,
	bool *ret_more)
{
	size_t n;
	struct volume_record **page =
		records_page(v->records, volume_record_is_volume, after, max, &n, ret_more);
	struct volume_info **infos = x_calloc(n, sizeof(struct volume_info *));

	for (size_t i = 0; i < n; i++) {
		infos[i] = volumes_info(v, page[i]);
		volume_record_free(page[i]);
	}
	free(page);
	*ret = infos;
	*ret_n = n;
}
