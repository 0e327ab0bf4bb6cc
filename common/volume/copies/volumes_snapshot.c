/* SPDX-License-Identifier: Apache-2.0 */
/* Snapshots: copies of volumes that are kept until they are restored or deleted. They are made, reported and
 * erased as volumes are, and differ in that nothing ever uses them. */
#include <stdlib.h>

#include "base/mem.h"
#include "base/str.h"
#include "volume/params.h"
#include "volume/volumes_private.h"

void snapshot_info_free(struct snapshot_info *i)
{
	if (!i)
		return;
	free(i->id);
	free(i->source);
	free(i->group);
	free(i);
}

struct snapshot_info *volumes_snapshot_info(struct volumes *v, const struct volume_record *r)
{
	struct snapshot_info *i = x_calloc(1, sizeof(*i));

	i->id = x_strdup(r->id);
	i->source = x_strdup(r->source);
	i->group = x_strdup(r->group);
	i->size_bytes = r->size_bytes;
	i->taken_s = r->taken_s;
	pthread_mutex_lock(&v->shared.mutex);
	i->missing = device_view_is_missing(v->device_view, r);
	pthread_mutex_unlock(&v->shared.mutex);
	return i;
}

static void set_bandwidth(struct strmap *out, const char *key, uint64_t bytes_per_s)
{
	CLEANUP(free_charp) char *text = x_asprintf("%ju", (uintmax_t)bytes_per_s);

	strmap_set(out, key, text);
}

/* It holds the same data as the volume, so that it is laid out, erased and copied like it. */
static void take_over_class(const struct volume_record *source, struct strmap *out)
{
	static const char *const keys[] = {PARAMS_ERASE_AFTER, PARAMS_USAGE};

	for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
		const char *value = strmap_get(&source->parameters, keys[i]);

		if (value)
			strmap_set(out, keys[i], value);
	}
	set_bandwidth(out, PARAMS_ERASE_BANDWIDTH, source->erase_bytes_per_s);
	set_bandwidth(out, PARAMS_COPY_BANDWIDTH, source->copy_bytes_per_s);
}

/* Whether it is for block access, as far as that is known: the Go driver recorded nothing of that. */
static bool is_block(const struct volume_record *source)
{
	return !source->direct && !source->fs_type && (source->block_clean || source->staged_block);
}

struct volume_request volumes_snapshot_request(
	const struct volume_record *source, const struct snapshot_request *q, struct strmap *parameters)
{
	const char *max_pause = strmap_get(q->parameters, "maxPause");
	struct volume_request made = {.name = q->name,
		.source = q->source,
		.snapshot = true,
		.made_by_controller = q->made_by_controller,
		.parameters = parameters};

	if (max_pause)
		strmap_set(parameters, "maxPause", max_pause);
	if (source) {
		take_over_class(source, parameters);
		made.fs_type = source->fs_type;
		made.block = is_block(source);
	}
	return made;
}

static int create(struct volumes *v, const struct snapshot_request *q, struct strmap *parameters,
	struct snapshot_info **ret, struct error **err)
{
	CLEANUP(volume_record_freep) struct volume_record *source = records_find(v->records, q->source);
	CLEANUP(volume_record_freep) struct volume_record *r = NULL;
	CLEANUP(volume_unlockp) struct volume_lock *lock = NULL;
	const struct volume_request made = volumes_snapshot_request(source, q, parameters);

	if (volumes_create_and_lock(v, &made, /* wait_ms= */ 0, &lock, &r, err) < 0)
		return -1;
	*ret = volumes_snapshot_info(v, r);
	return 0;
}

int volumes_create_snapshot(
	struct volumes *v, const struct snapshot_request *q, struct snapshot_info **ret, struct error **err)
{
	CLEANUP(params_done) struct volume_params params = {0};
	CLEANUP(strmap_done) struct strmap parameters = {0};

	if (params_parse(PARAMS_SNAPSHOT, q->parameters, &params, err) < 0)
		return -1;
	return create(v, q, &parameters, ret, err);
}

static bool is_snapshot(const struct volume_record *r)
{
	return r->phase == PHASE_READY && r->snapshot;
}

int volumes_get_snapshot(
	struct volumes *v, const char *handle, struct snapshot_info **ret, struct error **err)
{
	CLEANUP(volume_record_freep) struct volume_record *r = records_find(v->records, handle);

	if (!r || !is_snapshot(r))
		return err_set(err, ERR_NOT_FOUND, "snapshot %s does not exist", handle);
	*ret = volumes_snapshot_info(v, r);
	return 0;
}

void volumes_list_snapshots(struct volumes *v, const char *after, size_t max, struct snapshot_info ***ret,
	size_t *ret_n, bool *ret_more)
{
	size_t n;
	struct volume_record **page = records_page(v->records, is_snapshot, after, max, &n, ret_more);
	struct snapshot_info **infos = x_calloc(n, sizeof(struct snapshot_info *));

	for (size_t i = 0; i < n; i++) {
		infos[i] = volumes_snapshot_info(v, page[i]);
		volume_record_free(page[i]);
	}
	free(page);
	*ret = infos;
	*ret_n = n;
}
