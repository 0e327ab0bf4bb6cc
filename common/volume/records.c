/* SPDX-License-Identifier: Apache-2.0 */
#include "volume/records.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/sorted.h"
#include "base/str.h"
#include "volume/id.h"
#include "volume/volumes.h"

#define INLINE_ADVICE                                                                                        \
	"delete pods that have inline volumes on this node, use a generic ephemeral volume, or raise the flag"

struct records {
	struct volumes_shared *shared;
	struct state_store *state; /* NULL until the folder is ours */
	/* guarded by the mutex: */
	struct volume_record **list; /* sorted by id */
	size_t n;
	struct volume_record **by_name; /* those that have one: sorted by it, and by id */
	size_t n_by_name;
	struct pending_creation *pending;
	size_t n_pending;
	char **damaged; /* as in records_view */
	char *no_space;
};

void volumes_changed(const struct volumes_shared *shared)
{
	if (shared->changed)
		shared->changed(shared->user);
}

struct records *records_new(struct volumes_shared *shared)
{
	struct records *t = x_calloc(1, sizeof(*t));

	t->shared = shared;
	return t;
}

void records_free(struct records *t)
{
	if (!t)
		return;
	for (size_t i = 0; i < t->n; i++)
		volume_record_free(t->list[i]);
	free(t->list);
	free(t->by_name);
	strv_free(t->damaged);
	free(t->no_space);
	state_close(t->state);
	free(t);
}

static int order_record(const void *element, const void *key)
{
	const struct volume_record *const *r = element;

	return strcmp((*r)->id, key);
}

/* Where @id is or belongs. Caller holds the mutex. */
static size_t record_index(const struct records *t, const char *id, bool *ret_found)
{
	return sorted_find(t->list, t->n, sizeof(struct volume_record *), id, order_record, ret_found);
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
static size_t name_index(const struct records *t, const char *name, const char *id)
{
	const struct name_key key = {name, id};
	bool found;

	return sorted_find(
		t->by_name, t->n_by_name, sizeof(struct volume_record *), &key, order_name, &found);
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
static void add_name(struct records *t, struct volume_record *r)
{
	if (name_of(r))
		insert_at(&t->by_name, &t->n_by_name, name_index(t, name_of(r), r->id), r);
}

/* Caller holds the mutex. */
static void remove_name(struct records *t, const struct volume_record *r)
{
	if (name_of(r))
		remove_at(t->by_name, &t->n_by_name, name_index(t, name_of(r), r->id));
}

struct volume_record *records_find_name(struct records *t, const char *name)
{
	struct volume_record *found = NULL;

	pthread_mutex_lock(&t->shared->mutex);
	size_t at = name_index(t, name, /* id= */ "");
	if (at < t->n_by_name && str_eq(name_of(t->by_name[at]), name))
		found = volume_record_dup(t->by_name[at]);
	pthread_mutex_unlock(&t->shared->mutex);
	return found;
}

struct volume_record *records_find(struct records *t, const char *handle)
{
	struct volume_record *copy = NULL;
	bool found;

	pthread_mutex_lock(&t->shared->mutex);
	size_t at = record_index(t, handle, &found);
	if (found)
		copy = volume_record_dup(t->list[at]);
	pthread_mutex_unlock(&t->shared->mutex);
	if (!copy && !volume_id_valid(handle))
		copy = records_find_name(t, handle);
	return copy;
}

char *records_mounted_at(struct records *t, const char *path, const char *but)
{
	char *id = NULL;

	pthread_mutex_lock(&t->shared->mutex);
	for (size_t i = 0; i < t->n && !id; i++) {
		const struct volume_record *r = t->list[i];

		if (!str_eq(r->id, but) && (str_eq(r->staging_path, path) || strv_contains(r->targets, path)))
			id = x_strdup(r->id);
	}
	pthread_mutex_unlock(&t->shared->mutex);
	return id;
}

struct volume_record **records_page(struct records *t, bool (*wanted)(const struct volume_record *r),
	const char *after, size_t max, size_t *ret_n, bool *ret_more)
{
	bool found = false, more = false;
	size_t n = 0;

	pthread_mutex_lock(&t->shared->mutex);
	size_t at = after ? record_index(t, after, &found) : 0;
	at += found ? 1 : 0;
	struct volume_record **page = x_calloc(t->n - at, sizeof(struct volume_record *));
	for (; at < t->n && !more; at++) {
		if (!wanted(t->list[at]))
			continue;
		if (max > 0 && n == max)
			more = true;
		else
			page[n++] = volume_record_dup(t->list[at]);
	}
	pthread_mutex_unlock(&t->shared->mutex);
	*ret_n = n;
	*ret_more = more;
	return page;
}

struct records_view records_view(const struct records *t)
{
	return (struct records_view){t->list, t->n, t->pending, t->n_pending, t->damaged, t->no_space};
}

bool records_has(const struct records *t, const char *id)
{
	bool found;

	(void)record_index(t, id, &found);
	return found;
}

void records_update_memory(struct records *t, const struct volume_record *r)
{
	struct volume_record *copy = volume_record_dup(r);
	bool found;

	pthread_mutex_lock(&t->shared->mutex);
	size_t at = record_index(t, r->id, &found);
	if (found) {
		remove_name(t, t->list[at]);
		volume_record_free(t->list[at]);
		t->list[at] = copy;
	} else {
		insert_at(&t->list, &t->n, at, copy);
	}
	add_name(t, copy);
	pthread_mutex_unlock(&t->shared->mutex);
	volumes_changed(t->shared);
}

int records_remove(struct records *t, const struct volume_record *r, struct error **err)
{
	bool found;

	if (state_remove(t->state, r, err) < 0)
		return -1;
	pthread_mutex_lock(&t->shared->mutex);
	size_t at = record_index(t, r->id, &found);
	if (found) {
		remove_name(t, t->list[at]);
		volume_record_free(t->list[at]);
		remove_at(t->list, &t->n, at);
	}
	pthread_mutex_unlock(&t->shared->mutex);
	volumes_changed(t->shared);
	return 0;
}

int records_save(struct records *t, const struct volume_record *r, struct error **err)
{
	if (state_put(t->state, r, err) < 0)
		return -1;
	records_update_memory(t, r);
	return 0;
}

int records_save_until_boot(struct records *t, const struct volume_record *r, struct error **err)
{
	if (state_put_until_boot(t->state, r, err) < 0)
		return -1;
	records_update_memory(t, r);
	return 0;
}

int records_advance(struct records *t, struct volume_record *r, enum volume_phase to, struct error **err)
{
	if (state_advance(t->state, r, to, err) < 0)
		return -1;
	records_update_memory(t, r);
	return 0;
}

void records_begin(struct records *t, struct pending_creation *a)
{
	pthread_mutex_lock(&t->shared->mutex);
	a->next = t->pending;
	t->pending = a;
	t->n_pending++;
	pthread_mutex_unlock(&t->shared->mutex);
}

/* Caller holds the mutex. */
static void sum_up_inline(const struct records *t, uint64_t *ret_n, uint64_t *ret_bytes)
{
	*ret_n = *ret_bytes = 0;
	for (size_t i = 0; i < t->n; i++) {
		if (!volume_record_is_inline(t->list[i]))
			continue;
		++*ret_n;
		*ret_bytes += t->list[i]->size_bytes;
	}
	for (const struct pending_creation *a = t->pending; a; a = a->next) {
		if (a->inline_bytes == 0 || records_has(t, a->r->id))
			continue;
		++*ret_n;
		*ret_bytes += a->inline_bytes;
	}
}

static int check_inline(const struct inline_limits *limits, uint64_t n, uint64_t bytes, uint64_t more_bytes,
	struct error **err)
{
	if (limits->max_volumes > 0 && n >= limits->max_volumes)
		return err_set(err, ERR_EXHAUSTED,
			"this node has %ju inline volumes, with those that are still being erased, and "
			"-maxInlineVolumes allows %u: " INLINE_ADVICE,
			(uintmax_t)n, limits->max_volumes);
	if (limits->max_bytes > 0 && (bytes > limits->max_bytes || more_bytes > limits->max_bytes - bytes))
		return err_set(err, ERR_EXHAUSTED,
			"the inline volumes of this node take %ju bytes, and with %ju more they would exceed "
			"-maxInlineBytes, %ju: " INLINE_ADVICE,
			(uintmax_t)bytes, (uintmax_t)more_bytes, (uintmax_t)limits->max_bytes);
	return 0;
}

int records_admit_inline(struct records *t, struct pending_creation *a, uint64_t size_bytes,
	const struct inline_limits *limits, struct error **err)
{
	uint64_t n, bytes;

	pthread_mutex_lock(&t->shared->mutex);
	sum_up_inline(t, &n, &bytes);
	int rc = check_inline(limits, n, bytes, size_bytes, err);
	if (rc == 0)
		a->inline_bytes = size_bytes;
	pthread_mutex_unlock(&t->shared->mutex);
	return rc;
}

void records_end(struct records *t, const struct pending_creation *a)
{
	struct pending_creation **at = &t->pending;

	pthread_mutex_lock(&t->shared->mutex);
	while (*at != a)
		at = &(*at)->next;
	*at = a->next;
	t->n_pending--;
	pthread_mutex_unlock(&t->shared->mutex);
	volumes_changed(t->shared);
}

bool records_note_space(struct records *t, const char *no_space)
{
	pthread_mutex_lock(&t->shared->mutex);
	bool news = !t->no_space != !no_space;
	free(t->no_space);
	t->no_space = x_strdup(no_space);
	pthread_mutex_unlock(&t->shared->mutex);
	if (news)
		volumes_changed(t->shared);
	return news;
}

int records_check_space(struct records *t, struct error **err)
{
	int rc = state_check_space(t->state, err);

	if (!records_note_space(t, rc < 0 ? (*err)->msg : NULL))
		return rc;
	if (rc < 0)
		log_warn("no volume can be created, and no capacity is offered", F_ERR(*err));
	else
		log_info("volumes can be created again: the state folder has space again");
	return rc;
}

/* A file that says "being created" or "deleted" licenses the destruction of the device; a damaged file of the
 * same volume may have said the opposite. */
static bool is_undecided(const struct state_content *content, const struct volume_record *r)
{
	for (size_t i = 0; r->phase != PHASE_READY && i < content->n_problems; i++) {
		if (str_eq(content->problems[i].id, r->id))
			return true;
	}
	return false;
}

int records_open(struct records *t, const char *path, struct error **err)
{
	return t->state ? 0 : state_open(path, &t->state, err);
}

struct state_store *records_store(const struct records *t)
{
	return t->state;
}

int records_load(struct records *t, bool for_repair, struct error **err)
{
	CLEANUP(state_content_done) struct state_content content = {0};

	if (state_load(t->state, &content, err) < 0)
		return -1;
	for (size_t i = 0; i < content.n_problems; i++)
		log_warn("state file is not used", F_STR("file", content.problems[i].file),
			F_STR("reason", content.problems[i].reason));
	for (size_t i = 0; i < content.n_records; i++) {
		const struct volume_record *r = content.records[i];

		if (for_repair || !is_undecided(&content, r))
			records_update_memory(t, r);
		else
			log_warn("volume is left as it is: one of its state files says that it is only "
				 "partly created or deleted, and another one is damaged; see pmem-csi-driver "
				 "check -repair",
				F_STR("volume", r->id));
	}
	pthread_mutex_lock(&t->shared->mutex);
	strv_free(TAKE_PTR(t->damaged));
	for (size_t i = 0; i < content.n_problems; i++) {
		const char *id = content.problems[i].id;

		if (id && !strv_contains(t->damaged, id))
			strv_add(&t->damaged, id);
	}
	pthread_mutex_unlock(&t->shared->mutex);
	return 0;
}
