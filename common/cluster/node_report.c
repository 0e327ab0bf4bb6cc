/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "cluster/node_table.h"

void node_region_done(struct node_region *r)
{
	free(r->name);
	free(r->free_extent_bytes);
}

void node_volume_done(struct node_volume *v)
{
	free(v->id);
	free(v->name);
	free(v->claim);
}

void node_report_done(struct node_report *r)
{
	for (size_t i = 0; i < r->n_regions; i++)
		node_region_done(&r->regions[i]);
	for (size_t i = 0; i < r->n_volumes; i++)
		node_volume_done(&r->volumes[i]);
	free(r->regions);
	free(r->volumes);
	free(r->node_id);
	free(r->endpoint);
	free(r->device_mode);
	free(r->version);
	free(r->boot_id);
	free(r->instance);
}

void node_report_free(struct node_report *r)
{
	if (r)
		node_report_done(r);
	free(r);
}

static bool extents_equal(const struct node_region *a, const struct node_region *b)
{
	return a->n_free_extents == b->n_free_extents &&
	       (a->n_free_extents == 0 || memcmp(a->free_extent_bytes, b->free_extent_bytes,
						  a->n_free_extents * sizeof(*a->free_extent_bytes)) == 0);
}

static bool regions_equal(const struct node_region *a, const struct node_region *b)
{
	return str_eq(a->name, b->name) && a->total_bytes == b->total_bytes &&
	       a->available_bytes == b->available_bytes && a->max_volume_bytes == b->max_volume_bytes &&
	       a->max_sector_volume_bytes == b->max_sector_volume_bytes && a->unit_bytes == b->unit_bytes &&
	       a->map_align_bytes == b->map_align_bytes && a->btt_start_bytes == b->btt_start_bytes &&
	       a->incomplete == b->incomplete && extents_equal(a, b);
}

static bool volumes_equal(const struct node_volume *a, const struct node_volume *b)
{
	return str_eq(a->id, b->id) && str_eq(a->name, b->name) && a->size_bytes == b->size_bytes &&
	       a->phase == b->phase && a->ever_staged == b->ever_staged &&
	       a->made_by_controller == b->made_by_controller && str_eq(a->claim, b->claim);
}

bool node_report_equal(const struct node_report *a, const struct node_report *b)
{
	if (!str_eq(a->node_id, b->node_id) || !str_eq(a->endpoint, b->endpoint) ||
		!str_eq(a->device_mode, b->device_mode) || !str_eq(a->version, b->version) ||
		!str_eq(a->boot_id, b->boot_id) || !str_eq(a->instance, b->instance) ||
		a->n_regions != b->n_regions || a->n_volumes != b->n_volumes ||
		a->has_inventory != b->has_inventory || a->bound != b->bound)
		return false;
	for (size_t i = 0; i < a->n_regions; i++) {
		if (!regions_equal(&a->regions[i], &b->regions[i]))
			return false;
	}
	for (size_t i = 0; i < a->n_volumes; i++) {
		if (!volumes_equal(&a->volumes[i], &b->volumes[i]))
			return false;
	}
	return true;
}

struct node_amounts node_amounts_of(const struct node *node)
{
	struct node_amounts a = {0};

	for (size_t i = 0; i < node->report.n_regions; i++) {
		const struct node_region *r = &node->report.regions[i];

		a.total_bytes += r->total_bytes;
		a.available_bytes += r->available_bytes;
		if (r->max_volume_bytes > a.max_volume_bytes)
			a.max_volume_bytes = r->max_volume_bytes;
	}
	return a;
}

/* Whether a note speaks for the volume @id, so that what the report says of it does not count. */
static bool is_noted(const struct node *node, const char *id)
{
	for (size_t i = 0; i < node->n_notes; i++) {
		if (str_eq(node->notes[i].volume.id, id))
			return true;
	}
	return false;
}

const struct node_volume *node_next_volume(const struct node *node, size_t *at)
{
	const struct node_report *r = &node->report;

	while (*at < r->n_volumes) {
		const struct node_volume *v = &r->volumes[(*at)++];

		if (!is_noted(node, v->id))
			return v;
	}
	while (*at < r->n_volumes + node->n_notes) {
		const struct node_note *note = &node->notes[(*at)++ - r->n_volumes];

		if (!note->deleted)
			return &note->volume;
	}
	return NULL;
}
