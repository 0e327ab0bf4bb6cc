/* SPDX-License-Identifier: Apache-2.0 */
#include "nodes/registration_report.h"

#include <string.h>

static Registry__V0__InventoryVolume__Phase wire_phase(enum volume_phase phase)
{
	switch (phase) {
	case PHASE_CREATING:
		return REGISTRY__V0__INVENTORY_VOLUME__PHASE__CREATING;
	case PHASE_READY:
		return REGISTRY__V0__INVENTORY_VOLUME__PHASE__READY;
	case PHASE_ERASING:
		return REGISTRY__V0__INVENTORY_VOLUME__PHASE__ERASING;
	case PHASE_MISSING:
		return REGISTRY__V0__INVENTORY_VOLUME__PHASE__MISSING;
	case PHASE_LATER:
		return (Registry__V0__InventoryVolume__Phase)-1;
	case PHASE_DAMAGED:
		break;
	}
	return REGISTRY__V0__INVENTORY_VOLUME__PHASE__UNKNOWN;
}

static Registry__V0__RegionCapacity__Durability wire_durability(enum durability durability)
{
	switch (durability) {
	case DURABILITY_SYNCHRONOUS:
		return REGISTRY__V0__REGION_CAPACITY__DURABILITY__SYNCHRONOUS;
	case DURABILITY_FSYNC:
		return REGISTRY__V0__REGION_CAPACITY__DURABILITY__FSYNC;
	case DURABILITY_UNKNOWN:
		break;
	}
	return REGISTRY__V0__REGION_CAPACITY__DURABILITY__UNTRIED;
}

/* The text is limited so that a message with the largest number of volumes that a controller accepts stays
 * below its limit. */
#define TEXTS_MAX_BYTES  (1U << 20)
#define HEALTH_MAX_BYTES (1U << 19)

static void add_copying(
	const struct volume_report *v, Registry__V0__InventoryVolume *out, struct arena *arena)
{
	if (v->filling.total_bytes > 0) {
		out->filling = arena_alloc(arena, sizeof(*out->filling));
		registry__v0__filling__init(out->filling);
		out->filling->done_bytes = v->filling.done_bytes;
		out->filling->total_bytes = v->filling.total_bytes;
	}
	if (v->pause.ended_ms > 0) {
		out->pause = arena_alloc(arena, sizeof(*out->pause));
		registry__v0__pause__init(out->pause);
		out->pause->duration_ms = v->pause.ms;
		out->pause->ended_ms = v->pause.ended_ms;
	}
}

static Registry__V0__InventoryVolume__Dax wire_dax(enum volume_dax dax)
{
	switch (dax) {
	case VOLUME_DAX_NONE:
		return REGISTRY__V0__INVENTORY_VOLUME__DAX__NONE;
	case VOLUME_DAX_UNTRIED:
		return REGISTRY__V0__INVENTORY_VOLUME__DAX__IN_FORCE;
	case VOLUME_DAX_SYNCHRONOUS:
		return REGISTRY__V0__INVENTORY_VOLUME__DAX__WITH_MAP_SYNC;
	case VOLUME_DAX_FSYNC:
		return REGISTRY__V0__INVENTORY_VOLUME__DAX__WITHOUT_MAP_SYNC;
	case VOLUME_DAX_UNKNOWN:
		break;
	}
	return REGISTRY__V0__INVENTORY_VOLUME__DAX__NOT_KNOWN;
}

Registry__V0__InventoryVolume *registration_volume(const struct volume_report *v, struct arena *arena)
{
	Registry__V0__InventoryVolume *out = arena_alloc(arena, sizeof(*out));

	registry__v0__inventory_volume__init(out);
	out->id = arena_strdup(arena, v->id);
	out->name = arena_strdup(arena, v->name);
	out->size_bytes = v->size_bytes;
	out->phase = wire_phase(v->phase);
	out->ever_staged = v->ever_staged;
	out->made_by_controller = v->made_by_controller;
	out->is_inline = v->is_inline;
	out->dax = wire_dax(v->dax);
	out->lacks_map_sync = v->lacks_sync;
	if (v->snapshot) {
		out->snapshot = arena_alloc(arena, sizeof(*out->snapshot));
		registry__v0__snapshot__init(out->snapshot);
		out->snapshot->taken_s = v->taken_s;
	}
	add_copying(v, out, arena);
	return out;
}

Registry__V0__RegionCapacity *registration_pool(const struct pool_report *p, struct arena *arena)
{
	Registry__V0__RegionCapacity *out = arena_alloc(arena, sizeof(*out));

	registry__v0__region_capacity__init(out);
	out->name = arena_strdup(arena, p->name);
	out->total_bytes = p->capacity.total_bytes;
	out->available_bytes = p->capacity.available_bytes;
	out->max_volume_bytes = p->capacity.max_volume_bytes;
	out->max_sector_volume_bytes = p->capacity.max_sector_volume_bytes;
	out->unit_bytes = p->rules.unit_bytes;
	out->map_align_bytes = p->rules.map_align_bytes;
	out->btt_start_bytes = p->rules.btt_start_bytes;
	out->incomplete = p->incomplete;
	out->erasing_bytes = p->erasing_bytes;
	out->region_bytes = p->region_bytes;
	out->durability = wire_durability(p->durability);
	out->free_extent_bytes = arena_alloc(arena, p->n_free_extents * sizeof(*out->free_extent_bytes));
	for (size_t i = 0; i < p->n_free_extents; i++)
		out->free_extent_bytes[out->n_free_extent_bytes++] = p->free_extent_bytes[i];
	return out;
}

static void add_origin(const struct volume_report *v, Registry__V0__Snapshot *out, struct arena *arena)
{
	out->source_volume_id = arena_strdup(arena, v->source);
	if (v->group)
		out->group_snapshot_id = arena_strdup(arena, v->group);
}

/* Claims of volumes, and of snapshots their sources and groups. */
static void add_texts(
	const struct volumes_report *report, Registry__V0__Inventory *inventory, struct arena *arena)
{
	size_t bytes = 0;

	for (size_t i = 0; i < report->n_volumes; i++) {
		const struct volume_report *v = &report->volumes[i];
		const char *text = v->snapshot ? v->source : v->claim;

		if (!text)
			continue;
		bytes += strlen(text) + (v->group ? strlen(v->group) : 0);
		if (bytes > TEXTS_MAX_BYTES)
			return;
		if (!v->snapshot)
			inventory->volumes[i]->claim = arena_strdup(arena, text);
		else
			add_origin(v, inventory->volumes[i]->snapshot, arena);
	}
}

static Registry__V0__HealthStatus *make_status(const struct health_status *s, struct arena *arena)
{
	Registry__V0__HealthStatus *out = arena_alloc(arena, sizeof(*out));

	registry__v0__health_status__init(out);
	out->severity = (Registry__V0__HealthStatus__Severity)s->severity;
	out->reason = arena_strdup(arena, s->reason);
	out->message = arena_strdup(arena, s->message);
	return out;
}

/* Adds the statuses in @h that have @severity to @v. @bytes: size of all statuses so far. Return: whether all
 * had room */
static bool add_statuses(const struct volume_health *h, enum health_severity severity,
	Registry__V0__InventoryVolume *v, size_t *bytes, struct arena *arena)
{
	for (size_t i = 0; i < h->n; i++) {
		if (h->list[i].severity != severity)
			continue;
		*bytes += strlen(h->list[i].reason) + strlen(h->list[i].message);
		if (*bytes > HEALTH_MAX_BYTES)
			return false;
		if (!v->health)
			v->health = arena_alloc(arena, h->n * sizeof(*v->health));
		v->health[v->n_health++] = make_status(&h->list[i], arena);
	}
	return true;
}

/* The worst of all volumes first. */
static bool add_health(
	const struct volumes_report *report, Registry__V0__Inventory *inventory, struct arena *arena)
{
	size_t bytes = 0;

	for (int severity = HEALTH_DATA_LOSS; severity >= HEALTH_DEGRADED; severity--) {
		for (size_t i = 0; i < report->n_volumes; i++) {
			if (!add_statuses(&report->volumes[i].health, (enum health_severity)severity,
				    inventory->volumes[i], &bytes, arena))
				return false;
		}
	}
	return true;
}

bool registration_report(
	const struct volumes_report *report, Registry__V0__RegisterControllerRequest *q, struct arena *arena)
{
	q->regions = arena_alloc(arena, report->n_pools * sizeof(*q->regions));
	for (size_t i = 0; i < report->n_pools; i++)
		q->regions[q->n_regions++] = registration_pool(&report->pools[i], arena);
	q->inventory = arena_alloc(arena, sizeof(*q->inventory));
	registry__v0__inventory__init(q->inventory);
	q->inventory->volumes = arena_alloc(arena, report->n_volumes * sizeof(*q->inventory->volumes));
	for (size_t i = 0; i < report->n_volumes; i++)
		q->inventory->volumes[q->inventory->n_volumes++] =
			registration_volume(&report->volumes[i], arena);
	add_texts(report, q->inventory, arena);
	return add_health(report, q->inventory, arena);
}
