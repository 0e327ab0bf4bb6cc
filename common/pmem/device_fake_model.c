/* SPDX-License-Identifier: Apache-2.0 */
/* The fake's regions: what lies where, and what still fits. */
#include <string.h>

#include "base/mem.h"
#include "base/random.h"
#include "base/str.h"
#include "pmem/device_fake_private.h"
#include "pmem/layout.h"

void fake_model_init(struct fake_model *m, const struct device_fake_config *config)
{
	*m = (struct fake_model){.n_regions = config->n_regions,
		.region_bytes = config->region_bytes ? config->region_bytes : DEVICE_FAKE_REGION_BYTES,
		.unit_bytes = config->unit_bytes};
	for (size_t i = 0; i < m->n_regions; i++) {
		char uuid[UUID_TEXT_LEN + 1];

		uuid_generate_text(uuid);
		strv_add(&m->uuids, uuid);
	}
}

static void extent_done(struct fake_extent *e)
{
	free(e->id);
	free(e->identity);
}

void fake_model_clear(struct fake_model *m)
{
	for (size_t i = 0; i < m->n_extents; i++)
		extent_done(&m->extents[i]);
	m->n_extents = 0;
}

void fake_model_done(struct fake_model *m)
{
	strv_free(m->uuids);
	fake_model_clear(m);
	free(m->extents);
	*m = (struct fake_model){0};
}

const struct fake_extent *fake_model_find(const struct fake_model *m, const char *id)
{
	for (size_t i = 0; i < m->n_extents; i++) {
		if (str_eq(m->extents[i].id, id))
			return &m->extents[i];
	}
	return NULL;
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

static int compare_starts(const void *a, const void *b)
{
	const struct extent *x = a;
	const struct extent *y = b;

	return x->start_bytes < y->start_bytes ? -1 : x->start_bytes > y->start_bytes;
}

/* Return: *@ret_n extents of @region, sorted by start; caller frees. */
static struct extent *used_extents(const struct fake_model *m, size_t region, size_t *ret_n)
{
	struct extent *used = x_calloc(m->n_extents, sizeof(*used));
	size_t n = 0;

	for (size_t i = 0; i < m->n_extents; i++) {
		const struct fake_extent *e = &m->extents[i];
		if (e->region == region)
			used[n++] = (struct extent){e->start_bytes, e->size_bytes};
	}
	qsort(used, n, sizeof(*used), compare_starts);
	*ret_n = n;
	return used;
}

int fake_model_place(const struct fake_model *m, size_t region, uint64_t size_bytes,
	uint64_t *ret_start_bytes, struct error **err)
{
	size_t n;
	struct extent *used = used_extents(m, region, &n);
	bool fits = layout_find_gap(used, n, m->region_bytes, size_bytes, m->unit_bytes, ret_start_bytes);

	free(used);
	if (!fits)
		return err_set(err, ERR_EXHAUSTED, "no gap in region%zu holds %ju bytes", region,
			(uintmax_t)size_bytes);
	return 0;
}

int fake_model_check(const struct fake_model *m, const struct fake_extent *e, struct error **err)
{
	if (e->start_bytes % m->unit_bytes || e->size_bytes % m->unit_bytes || e->size_bytes == 0)
		return err_set(err, ERR_PRECONDITION, "device %s is not aligned", e->id);
	if (e->start_bytes > m->region_bytes || e->size_bytes > m->region_bytes - e->start_bytes)
		return err_set(err, ERR_PRECONDITION, "device %s lies outside its region", e->id);
	for (size_t i = 0; i < m->n_extents; i++) {
		const struct fake_extent *other = &m->extents[i];
		if (str_eq(other->id, e->id))
			return err_set(err, ERR_PRECONDITION, "device %s exists twice", e->id);
		if (other->region == e->region && other->start_bytes < e->start_bytes + e->size_bytes &&
			e->start_bytes < other->start_bytes + other->size_bytes)
			return err_set(err, ERR_PRECONDITION, "devices %s and %s overlap", e->id, other->id);
	}
	return 0;
}

void fake_model_add(struct fake_model *m, const struct fake_extent *e)
{
	size_t at = m->n_extents;

	m->extents = x_realloc(m->extents, m->n_extents + 1, sizeof(*m->extents));
	for (; at > 0 && strcmp(m->extents[at - 1].id, e->id) > 0; at--)
		m->extents[at] = m->extents[at - 1];
	m->extents[at] = *e;
	m->extents[at].id = x_strdup(e->id);
	m->extents[at].identity = x_strdup(e->identity);
	m->n_extents++;
}

void fake_model_remove(struct fake_model *m, const char *id)
{
	const struct fake_extent *e = fake_model_find(m, id);

	if (!e)
		return;
	size_t at = (size_t)(e - m->extents);
	extent_done(&m->extents[at]);
	m->n_extents--;
	memmove(&m->extents[at], &m->extents[at + 1], (m->n_extents - at) * sizeof(*m->extents));
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
	size_t n;
	struct extent *used = used_extents(m, region, &n);
	uint64_t largest = layout_largest_gap(used, n, m->region_bytes, m->unit_bytes);
	struct device_pool p = {.uuid = x_strdup(m->uuids[region]),
		.name = x_asprintf("region%zu", region),
		.total_bytes = layout_round_down(m->region_bytes, m->unit_bytes),
		.max_bytes = largest,
		.max_sector_bytes = largest,
		.unit_bytes = m->unit_bytes,
		.complete = true};

	p.n_free_extents = layout_gaps(used, n, m->region_bytes, m->unit_bytes, p.free_extent_bytes);
	p.free_bytes = p.total_bytes;
	for (size_t i = 0; i < n; i++)
		p.free_bytes -= used[i].size_bytes;
	free(used);
	return p;
}

struct device_list *fake_model_list(const struct fake_model *m)
{
	struct device_list *list = x_calloc(1, sizeof(*list));

	list->devices = x_calloc(m->n_extents, sizeof(*list->devices));
	for (; list->n_devices < m->n_extents; list->n_devices++)
		list->devices[list->n_devices] = as_device(m, &m->extents[list->n_devices]);
	list->pools = x_calloc(m->n_regions, sizeof(*list->pools));
	for (; list->n_pools < m->n_regions; list->n_pools++)
		list->pools[list->n_pools] = as_pool(m, list->n_pools);
	return list;
}
