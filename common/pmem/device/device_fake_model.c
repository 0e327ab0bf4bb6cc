/* SPDX-License-Identifier: Apache-2.0 */
/* The fake's regions: what lies where, and what still fits. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/random.h"
#include "base/sorted.h"
#include "base/str.h"
#include "pmem/device/device_fake_model.h"
#include "pmem/namespace_layout.h"

void fake_model_init(struct fake_model *m, const struct device_fake_config *config)
{
	*m = (struct fake_model){.n_regions = config->n_regions,
		.region_bytes = config->region_bytes ? config->region_bytes : DEVICE_FAKE_REGION_BYTES,
		.unit_bytes = config->unit_bytes};
	m->regions = x_calloc(m->n_regions, sizeof(*m->regions));
	for (size_t i = 0; i < m->n_regions; i++) {
		char uuid[UUID_TEXT_LEN + 1];

		uuid_generate_text(uuid);
		strv_add(&m->uuids, uuid);
	}
}

static void extent_free(struct fake_extent *e)
{
	free(e->id);
	free(e->identity);
	free(e);
}

void fake_model_clear(struct fake_model *m)
{
	for (size_t i = 0; i < m->n_extents; i++)
		extent_free(m->extents[i]);
	m->n_extents = 0;
	for (size_t i = 0; i < m->n_regions; i++) {
		free(m->regions[i].used);
		m->regions[i] = (struct fake_region){0};
	}
}

void fake_model_done(struct fake_model *m)
{
	strv_free(m->uuids);
	fake_model_clear(m);
	free(m->extents);
	free(m->regions);
	*m = (struct fake_model){0};
}

static int order_extent(const void *element, const void *key)
{
	const struct fake_extent *const *e = element;

	return strcmp((*e)->id, key);
}

/* Index at which @id is, or would be inserted. */
static size_t place_of(const struct fake_model *m, const char *id, bool *ret_found)
{
	return sorted_find(m->extents, m->n_extents, sizeof(*m->extents), id, order_extent, ret_found);
}

const struct fake_extent *fake_model_find(const struct fake_model *m, const char *id)
{
	bool found;
	size_t at = place_of(m, id, &found);

	return found ? m->extents[at] : NULL;
}

bool fake_model_region(const struct fake_model *m, const char *uuid, size_t *ret)
{
	for (size_t i = 0; i < m->n_regions; i++) {
		if (str_eq(m->uuids[i], uuid)) {
			*ret = i;
			return true;
		}
	}
	return false;
}

static uint64_t end_of(const struct extent *e)
{
	return e->start_bytes + e->size_bytes;
}

static int order_used(const void *element, const void *key)
{
	const struct extent *used = element;
	const uint64_t *start_bytes = key;

	return used->start_bytes < *start_bytes ? -1 : used->start_bytes > *start_bytes;
}

/* Return: place of the first piece in use that does not begin before @start_bytes. */
static size_t used_from(const struct fake_region *r, uint64_t start_bytes)
{
	bool found;

	return sorted_find(r->used, r->n_used, sizeof(*r->used), &start_bytes, order_used, &found);
}

static void insert_used(struct fake_region *r, size_t at, struct extent e)
{
	r->used = x_realloc(r->used, r->n_used + 1, sizeof(*r->used));
	memmove(&r->used[at + 1], &r->used[at], (r->n_used - at) * sizeof(*r->used));
	r->used[at] = e;
	r->n_used++;
}

static void remove_used(struct fake_region *r, size_t at)
{
	r->n_used--;
	memmove(&r->used[at], &r->used[at + 1], (r->n_used - at) * sizeof(*r->used));
}

static void take(struct fake_region *r, struct extent e)
{
	size_t at = used_from(r, e.start_bytes);

	r->used_bytes += e.size_bytes;
	if (at < r->n_used && r->used[at].start_bytes == end_of(&e)) {
		e.size_bytes += r->used[at].size_bytes;
		remove_used(r, at);
	}
	if (at > 0 && end_of(&r->used[at - 1]) == e.start_bytes)
		r->used[at - 1].size_bytes += e.size_bytes;
	else
		insert_used(r, at, e);
}

static void give_back(struct fake_region *r, struct extent e)
{
	size_t at = used_from(r, e.start_bytes + 1) - 1;
	const struct extent around = r->used[at];
	const struct extent before = {around.start_bytes, e.start_bytes - around.start_bytes};
	const struct extent behind = {end_of(&e), end_of(&around) - end_of(&e)};

	r->used_bytes -= e.size_bytes;
	remove_used(r, at);
	if (behind.size_bytes > 0)
		insert_used(r, at, behind);
	if (before.size_bytes > 0)
		insert_used(r, at, before);
}

int fake_model_place(const struct fake_model *m, size_t region, uint64_t size_bytes,
	uint64_t *ret_start_bytes, struct error **err)
{
	const struct fake_region *r = &m->regions[region];

	if (!layout_find_extent(
		    r->used, r->n_used, m->region_bytes, size_bytes, m->unit_bytes, ret_start_bytes))
		return err_set(err, ERR_EXHAUSTED, "no free extent of region%zu holds %ju bytes", region,
			(uintmax_t)size_bytes);
	return 0;
}

/* Whether nothing lies in [start, start + size) of the region. */
static bool is_free(const struct fake_model *m, size_t region, uint64_t start_bytes, uint64_t size_bytes)
{
	const struct fake_region *r = &m->regions[region];

	if (start_bytes > m->region_bytes || size_bytes > m->region_bytes - start_bytes)
		return false;
	size_t behind = used_from(r, start_bytes + size_bytes);
	return behind == 0 || end_of(&r->used[behind - 1]) <= start_bytes;
}

int fake_model_place_growth(struct fake_model *m, const struct fake_extent *e, uint64_t size_bytes,
	uint64_t *ret_start_bytes, struct error **err)
{
	const struct extent now = {e->start_bytes, e->size_bytes};
	int rc = 0;

	give_back(&m->regions[e->region], now);
	if (is_free(m, e->region, e->start_bytes, size_bytes))
		*ret_start_bytes = e->start_bytes;
	else
		rc = fake_model_place(m, e->region, size_bytes, ret_start_bytes, err);
	take(&m->regions[e->region], now);
	return rc;
}

static bool overlap(const struct fake_extent *a, const struct fake_extent *b)
{
	return a->region == b->region && a->start_bytes < b->start_bytes + b->size_bytes &&
	       b->start_bytes < a->start_bytes + a->size_bytes;
}

static int refuse_overlap(const struct fake_model *m, const struct fake_extent *e, struct error **err)
{
	size_t i = 0;

	while (!overlap(m->extents[i], e))
		i++;
	return err_set(err, ERR_PRECONDITION, "devices %s and %s overlap", e->id, m->extents[i]->id);
}

int fake_model_check(const struct fake_model *m, const struct fake_extent *e, struct error **err)
{
	if (e->start_bytes % m->unit_bytes || e->size_bytes % m->unit_bytes || e->size_bytes == 0)
		return err_set(err, ERR_PRECONDITION, "device %s is not aligned", e->id);
	if (e->start_bytes > m->region_bytes || e->size_bytes > m->region_bytes - e->start_bytes)
		return err_set(err, ERR_PRECONDITION, "device %s lies outside its region", e->id);
	if (fake_model_find(m, e->id))
		return err_set(err, ERR_PRECONDITION, "device %s exists twice", e->id);
	return is_free(m, e->region, e->start_bytes, e->size_bytes) ? 0 : refuse_overlap(m, e, err);
}

void fake_model_add(struct fake_model *m, const struct fake_extent *e)
{
	bool found;
	size_t at = place_of(m, e->id, &found);
	struct fake_extent *copy = x_malloc(sizeof(*copy));

	*copy = *e;
	copy->id = x_strdup(e->id);
	copy->identity = x_strdup(e->identity);
	m->extents = x_realloc(m->extents, m->n_extents + 1, sizeof(struct fake_extent *));
	memmove(&m->extents[at + 1], &m->extents[at], (m->n_extents - at) * sizeof(struct fake_extent *));
	m->extents[at] = copy;
	m->n_extents++;
	take(&m->regions[e->region], (struct extent){e->start_bytes, e->size_bytes});
}

void fake_model_remove(struct fake_model *m, const char *id)
{
	bool found;
	size_t at = place_of(m, id, &found);

	if (!found)
		return;
	struct fake_extent *e = m->extents[at];
	give_back(&m->regions[e->region], (struct extent){e->start_bytes, e->size_bytes});
	m->n_extents--;
	memmove(&m->extents[at], &m->extents[at + 1], (m->n_extents - at) * sizeof(struct fake_extent *));
	extent_free(e);
}

static struct device as_device(const struct fake_model *m, const struct fake_extent *e)
{
	return (struct device){.id = x_strdup(e->id),
		.pool = x_strdup(m->uuids[e->region]),
		.identity = x_strdup(e->identity),
		.size_bytes = e->size_bytes};
}

struct device *fake_model_device(const struct fake_model *m, const struct fake_extent *e)
{
	struct device *d = x_malloc(sizeof(*d));

	*d = as_device(m, e);
	return d;
}

static struct device_pool as_pool(const struct fake_model *m, size_t region)
{
	const struct fake_region *r = &m->regions[region];
	uint64_t largest = layout_largest_extent(r->used, r->n_used, m->region_bytes, m->unit_bytes);
	struct device_pool p = {.uuid = x_strdup(m->uuids[region]),
		.name = x_asprintf("region%zu", region),
		.region = x_strdup(m->uuids[region]),
		.capacity.total_bytes = layout_round_down(m->region_bytes, m->unit_bytes),
		.region_bytes = m->region_bytes,
		.capacity.max_volume_bytes = largest,
		.capacity.max_sector_volume_bytes = largest,
		.rules.unit_bytes = m->unit_bytes,
		.complete = true};

	p.n_free_extents =
		layout_free_extents(r->used, r->n_used, m->region_bytes, m->unit_bytes, p.free_extent_bytes);
	p.capacity.available_bytes = p.capacity.total_bytes - r->used_bytes;
	return p;
}

struct device_list *fake_model_pools(const struct fake_model *m)
{
	struct device_list *list = x_calloc(1, sizeof(*list));

	list->pools = x_calloc(m->n_regions, sizeof(*list->pools));
	for (; list->n_pools < m->n_regions; list->n_pools++)
		list->pools[list->n_pools] = as_pool(m, list->n_pools);
	return list;
}

struct device_list *fake_model_list(const struct fake_model *m)
{
	struct device_list *list = fake_model_pools(m);

	list->devices = x_calloc(m->n_extents, sizeof(*list->devices));
	for (; list->n_devices < m->n_extents; list->n_devices++)
		list->devices[list->n_devices] = as_device(m, m->extents[list->n_devices]);
	return list;
}
