/* SPDX-License-Identifier: Apache-2.0 */
#include "volume/volumes.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/sorted.h"
#include "base/str.h"
#include "volume/id.h"
#include "volume/params.h"
#include "volume/volumes_private.h"

struct volumes *volumes_new(const struct volumes_config *config)
{
	struct volumes *v = x_calloc(1, sizeof(*v));

	v->node_id = x_strdup(config->node_id);
	v->state_path = x_strdup(config->state_path);
	v->locks = volume_locks_new();
	v->eraser = eraser_new(&(struct eraser_config){.erase = volumes_erase,
		.user = v,
		.bytes_per_s = config->erase_bytes_per_s,
		.in_call = config->erase_in_call});
	v->making = concurrency_limit_new(MAKING_MAX, MAKING_WAITING_MAX);
	v->zeroing = concurrency_limit_new(ZEROING_MAX, ZEROING_WAITING_MAX);
	v->devices = config->devices;
	v->roots = config->roots;
	v->mkfs_timeout_ms = config->mkfs_timeout_ms ? config->mkfs_timeout_ms : MKFS_TIMEOUT_MS;
	v->changed = config->changed;
	v->changed_user = config->user;
	v->usage_helpers = fs_usage_helpers_new(USAGE_HELPERS_MAX);
	v->failing = failing_new();
	turn_init(&v->relisting);
	pthread_mutex_init(&v->mutex, NULL);
	return v;
}

void volumes_free(struct volumes *v)
{
	if (!v)
		return;
	eraser_free(v->eraser);
	concurrency_limit_free(v->making);
	concurrency_limit_free(v->zeroing);
	for (size_t i = 0; i < v->n_records; i++)
		volume_record_free(v->records[i]);
	free(v->records);
	free(v->by_name);
	device_list_free(v->seen);
	strv_free(v->damaged);
	strv_free(v->in_doubt);
	failing_free(v->failing);
	free(v->no_room);
	free(v->start_failure);
	state_close(v->state);
	volume_locks_free(v->locks);
	fs_usage_helpers_free(v->usage_helpers);
	pthread_mutex_destroy(&v->mutex);
	turn_done(&v->relisting);
	free(v->node_id);
	free(v->state_path);
	free(v);
}

void volumes_stop(struct volumes *v)
{
	eraser_stop(v->eraser);
	concurrency_limit_close(v->zeroing);
}

static int order_record(const void *element, const void *key)
{
	const struct volume_record *const *r = element;

	return strcmp((*r)->id, key);
}

/* Where @id is or belongs. Caller holds the mutex. */
static size_t record_index(const struct volumes *v, const char *id, bool *ret_found)
{
	return sorted_find(
		v->records, v->n_records, sizeof(struct volume_record *), id, order_record, ret_found);
}

static const char *name_of(const struct volume_record *r)
{
	return strmap_get(&r->parameters, "name");
}

struct name_key {
	const char *name;
	const char *id;
};

static int order_name(const void *element, const void *sought)
{
	const struct volume_record *const *r = element;
	const struct name_key *key = sought;
	int by_name = strcmp(name_of(*r), key->name);

	return by_name != 0 ? by_name : strcmp((*r)->id, key->id);
}

/* Place of the first in by_name that is not before @name with @id. Caller holds the mutex. */
static size_t name_index(const struct volumes *v, const char *name, const char *id)
{
	const struct name_key key = {name, id};
	bool found;

	return sorted_find(
		v->by_name, v->n_by_name, sizeof(struct volume_record *), &key, order_name, &found);
}

static void insert_at(struct volume_record ***list, size_t *n, size_t at, struct volume_record *r)
{
	*list = x_realloc(*list, *n + 1, sizeof(struct volume_record *));
	memmove(*list + at + 1, *list + at, (*n - at) * sizeof(struct volume_record *));
	(*list)[at] = r;
	++*n;
}

static void remove_at(struct volume_record **list, size_t *n, size_t at)
{
	--*n;
	memmove(list + at, list + at + 1, (*n - at) * sizeof(struct volume_record *));
}

/* Caller holds the mutex. */
static void add_name(struct volumes *v, struct volume_record *r)
{
	if (name_of(r))
		insert_at(&v->by_name, &v->n_by_name, name_index(v, name_of(r), r->id), r);
}

/* Caller holds the mutex. */
static void remove_name(struct volumes *v, const struct volume_record *r)
{
	if (name_of(r))
		remove_at(v->by_name, &v->n_by_name, name_index(v, name_of(r), r->id));
}

/* Caller holds the mutex. */
static void replace_name(struct volumes *v, const struct volume_record *old, struct volume_record *new)
{
	if (name_of(old) && str_eq(name_of(old), name_of(new))) {
		v->by_name[name_index(v, name_of(old), old->id)] = new;
		return;
	}
	remove_name(v, old);
	add_name(v, new);
}

struct volume_record *volumes_record_by_name(struct volumes *v, const char *name)
{
	struct volume_record *found = NULL;

	pthread_mutex_lock(&v->mutex);
	size_t at = name_index(v, name, /* id= */ "");
	if (at < v->n_by_name && str_eq(name_of(v->by_name[at]), name))
		found = volume_record_dup(v->by_name[at]);
	pthread_mutex_unlock(&v->mutex);
	return found;
}

struct volume_record *volumes_record(struct volumes *v, const char *handle)
{
	struct volume_record *copy = NULL;
	bool found;

	pthread_mutex_lock(&v->mutex);
	size_t at = record_index(v, handle, &found);
	if (found)
		copy = volume_record_dup(v->records[at]);
	pthread_mutex_unlock(&v->mutex);
	if (!copy && !volume_id_valid(handle))
		copy = volumes_record_by_name(v, handle);
	return copy;
}

char *volumes_mounted_at(struct volumes *v, const char *path)
{
	char *id = NULL;

	pthread_mutex_lock(&v->mutex);
	for (size_t i = 0; i < v->n_records && !id; i++) {
		const struct volume_record *r = v->records[i];
		if (str_eq(r->staging_path, path) || strv_contains(r->targets, path))
			id = x_strdup(r->id);
	}
	pthread_mutex_unlock(&v->mutex);
	return id;
}

int volumes_refuse_stranger(struct volumes *v, const char *id, struct error **err)
{
	pthread_mutex_lock(&v->mutex);
	bool is_device = v->seen && device_list_find(v->seen, id);
	bool is_damaged = strv_contains(v->damaged, id);
	pthread_mutex_unlock(&v->mutex);
	if (is_damaged)
		return err_set(err, ERR_PRECONDITION,
			"the state file of %s is damaged; see pmem-csi-driver check -repair %s", id, id);
	if (is_device)
		return err_set(err, ERR_PRECONDITION,
			"a device %s exists without state; see pmem-csi-driver check -repair %s", id, id);
	return 0;
}

void volumes_tell(struct volumes *v)
{
	if (v->changed)
		v->changed(v->changed_user);
}

void volumes_keep(struct volumes *v, const struct volume_record *r)
{
	struct volume_record *copy = volume_record_dup(r);
	bool found;

	pthread_mutex_lock(&v->mutex);
	size_t at = record_index(v, r->id, &found);
	if (found) {
		replace_name(v, v->records[at], copy);
		volume_record_free(v->records[at]);
		v->records[at] = copy;
	} else {
		insert_at(&v->records, &v->n_records, at, copy);
		add_name(v, copy);
	}
	pthread_mutex_unlock(&v->mutex);
	volumes_tell(v);
}

static void forget(struct volumes *v, const char *id)
{
	bool found;

	pthread_mutex_lock(&v->mutex);
	size_t at = record_index(v, id, &found);
	if (found) {
		remove_name(v, v->records[at]);
		volume_record_free(v->records[at]);
		remove_at(v->records, &v->n_records, at);
	}
	pthread_mutex_unlock(&v->mutex);
	volumes_tell(v);
}

int volumes_drop(struct volumes *v, const struct volume_record *r, struct error **err)
{
	if (state_remove(v->state, r, err) < 0)
		return -1;
	forget(v, r->id);
	return 0;
}

int volumes_save(struct volumes *v, const struct volume_record *r, struct error **err)
{
	if (state_put(v->state, r, err) < 0)
		return -1;
	volumes_keep(v, r);
	return 0;
}

bool volumes_note_room(struct volumes *v, const char *no_room)
{
	pthread_mutex_lock(&v->mutex);
	bool news = !v->no_room != !no_room;
	free(v->no_room);
	v->no_room = x_strdup(no_room);
	pthread_mutex_unlock(&v->mutex);
	if (news)
		volumes_tell(v);
	return news;
}

int volumes_check_room(struct volumes *v, struct error **err)
{
	int rc = state_check_room(v->state, err);

	if (!volumes_note_room(v, rc < 0 ? (*err)->msg : NULL))
		return rc;
	if (rc < 0)
		log_warn("no volume can be made, and no capacity is offered", F_ERR(*err));
	else
		log_info("volumes can be made again: the state folder has room again");
	return rc;
}

bool volumes_is_ready(struct volumes *v)
{
	pthread_mutex_lock(&v->mutex);
	bool ready = v->loaded && v->seen;
	pthread_mutex_unlock(&v->mutex);
	return ready;
}

int volumes_require_ready(struct volumes *v, struct error **err)
{
	CLEANUP(free_charp) char *step = NULL;
	CLEANUP(free_charp) char *failure = NULL;

	pthread_mutex_lock(&v->mutex);
	bool ready = v->loaded && v->seen;
	failure = x_strdup(v->start_failure);
	pthread_mutex_unlock(&v->mutex);
	if (ready)
		return 0;
	step = volumes_current_step(v, NULL);
	return err_set(err, ERR_UNAVAILABLE, "the driver is still starting%s%s%s%s", step ? ": " : "",
		step ? step : "", failure ? "; the last attempt failed: " : "", failure ? failure : "");
}

void volumes_start_failed(struct volumes *v, const struct error *e)
{
	pthread_mutex_lock(&v->mutex);
	free(v->start_failure);
	v->start_failure = x_strdup(e->msg);
	pthread_mutex_unlock(&v->mutex);
}

int volumes_lock_ready(struct volumes *v, const char *handle, int wait_ms, struct volume_lock **ret_lock,
	struct volume_record **ret, struct error **err)
{
	CLEANUP(volume_record_freep) struct volume_record *known = volumes_record(v, handle);
	CLEANUP(volume_unlockp) struct volume_lock *lock = NULL;

	if (!known || known->phase != PHASE_READY)
		return err_set(err, ERR_NOT_FOUND, "volume %s does not exist", handle);
	if (volume_lock(v->locks, known->id, wait_ms, &lock, err) < 0)
		return -1;
	/* it may have changed or gone while we waited */
	struct volume_record *r = volumes_record(v, known->id);
	if (!r || r->phase != PHASE_READY) {
		volume_record_free(r);
		return err_set(err, ERR_NOT_FOUND, "volume %s does not exist", handle);
	}
	*ret_lock = TAKE_PTR(lock);
	*ret = r;
	return 0;
}

bool volumes_is_taken_over(const struct volume_record *r)
{
	return !r->identity && !r->adopted;
}

bool volumes_may_be_block(const struct volume_record *r)
{
	return r->block_clean || volumes_is_taken_over(r);
}

bool volumes_lacks_record(struct volumes *v, const char *id)
{
	pthread_mutex_lock(&v->mutex);
	bool lacks = !v->loaded || !v->seen || strv_contains(v->damaged, id) || device_list_find(v->seen, id);
	pthread_mutex_unlock(&v->mutex);
	return lacks;
}

/* A device of its name that bears another identity is not its own. The caller has the mutex. */
static bool is_missing(const struct volumes *v, const struct volume_record *r)
{
	const struct device *ignored;

	return !v->seen || presence_of(v->seen, r, &ignored) != DEVICE_PRESENT;
}

enum volume_phase volumes_phase(const struct volumes *v, const struct volume_record *r)
{
	return r->phase == PHASE_READY && is_missing(v, r) ? PHASE_MISSING : r->phase;
}

struct volume_info *volumes_info(struct volumes *v, const struct volume_record *r)
{
	struct volume_info *info = x_calloc(1, sizeof(*info));

	info->id = x_strdup(r->id);
	info->size_bytes = r->size_bytes;
	params_to_context(&r->parameters, &info->context);
	info->is_cache = str_eq(strmap_get(&r->parameters, "persistencyModel"), "cache");
	info->may_be_block = volumes_may_be_block(r);
	info->is_taken_over = volumes_is_taken_over(r);
	info->fs_type = x_strdup(r->fs_type);
	info->claim = claim_text(&r->claim);
	info->pod = claim_pod(&r->claim);
	pthread_mutex_lock(&v->mutex);
	info->missing = is_missing(v, r);
	pthread_mutex_unlock(&v->mutex);
	return info;
}

static uint64_t left_to_erase(const struct volumes *v, const struct volume_record *r)
{
	uint64_t done_bytes = eraser_done_bytes(v->eraser, r->id);

	if (!volumes_erases_whole(r))
		return 0;
	if (done_bytes < r->erased_bytes)
		done_bytes = r->erased_bytes;
	return r->size_bytes > done_bytes ? r->size_bytes - done_bytes : 0;
}

static void count_record(const struct volumes *v, const struct volume_record *r, struct volumes_overview *o)
{
	switch (volumes_phase(v, r)) {
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

bool volumes_is_recorded(const struct volumes *v, const char *id)
{
	bool found;

	(void)record_index(v, id, &found);
	return found;
}

/* The caller has the mutex. */
static void count_unrecorded(const struct volumes *v, struct volumes_overview *o)
{
	for (size_t i = 0; i < v->seen->n_devices; i++) {
		const struct device *d = &v->seen->devices[i];
		o->n_strangers += !volumes_is_recorded(v, d->id) && !strv_contains(v->damaged, d->id) &&
				  presence_may_be_stranger(v->seen, v->devices->ops->mode, d);
	}
	for (size_t i = 0; v->damaged && v->damaged[i]; i++)
		o->n_damaged += !volumes_is_recorded(v, v->damaged[i]);
}

void volumes_overview(struct volumes *v, struct volumes_overview *ret)
{
	struct volumes_overview o = {0};
	struct eraser_counts counts;

	pthread_mutex_lock(&v->mutex);
	for (size_t i = 0; v->loaded && v->seen && i < v->n_records; i++)
		count_record(v, v->records[i], &o);
	if (v->loaded && v->seen)
		count_unrecorded(v, &o);
	for (size_t i = 0; v->loaded && v->seen && i < v->seen->n_pools; i++)
		o.n_failing_pools += failing_has(v->failing, v->seen->pools[i].uuid);
	pthread_mutex_unlock(&v->mutex);
	eraser_count(v->eraser, &counts);
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
	free(i->claim);
	free(i->pod);
	strmap_done(&i->context);
	free(i);
}

int volumes_get(struct volumes *v, const char *handle, struct volume_info **ret, struct error **err)
{
	CLEANUP(volume_record_freep) struct volume_record *r = volumes_record(v, handle);

	if (!r || r->phase != PHASE_READY)
		return err_set(err, ERR_NOT_FOUND, "volume %s does not exist", handle);
	*ret = volumes_info(v, r);
	return 0;
}

void volumes_list(struct volumes *v, const char *after, size_t max, struct volume_info ***ret, size_t *ret_n,
	bool *ret_more)
{
	struct volume_record **page = NULL;
	size_t n = 0;
	size_t at = 0;
	bool more = false;

	pthread_mutex_lock(&v->mutex);
	if (after) {
		bool found;

		at = record_index(v, after, &found);
		at += found ? 1 : 0;
	}
	page = x_calloc(v->n_records - at, sizeof(struct volume_record *));
	for (; at < v->n_records && !more; at++) {
		if (v->records[at]->phase != PHASE_READY)
			continue;
		if (max > 0 && n == max)
			more = true;
		else
			page[n++] = volume_record_dup(v->records[at]);
	}
	pthread_mutex_unlock(&v->mutex);

	struct volume_info **infos = x_calloc(n, sizeof(struct volume_info *));
	for (size_t i = 0; i < n; i++) {
		infos[i] = volumes_info(v, page[i]);
		volume_record_free(page[i]);
	}
	free(page);
	*ret = infos;
	*ret_n = n;
	*ret_more = more;
}
