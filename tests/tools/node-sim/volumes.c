/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "base/mem.h"
#include "base/parse.h"
#include "base/str.h"
#include "sim.h"
#include "volume/health/health.h"
#include "volume/id.h"

static void add_region(struct node *n, uint64_t size_bytes)
{
	size_bytes = size_bytes / UNIT_BYTES * UNIT_BYTES;
	n->regions = x_realloc(n->regions, n->n_regions + 1, sizeof(*n->regions));
	n->regions[n->n_regions] = (struct region){.name = x_asprintf("region%u", n->n_regions),
		.total_bytes = size_bytes,
		.free_bytes = size_bytes};
	n->n_regions++;
}

int node_add_regions(struct node *n, struct error **err)
{
	char *const *sizes = n->sim->options->region_sizes;

	if (!sizes)
		add_region(n, n->sim->options->capacity_bytes);
	for (; sizes && *sizes; sizes++) {
		uint64_t size_bytes;

		if (parse_quantity(*sizes, &size_bytes, err) < 0)
			return err_wrap(err, "-region");
		add_region(n, size_bytes);
	}
	return 0;
}

uint64_t node_room(const struct node *n, uint64_t *ret_free_bytes)
{
	uint64_t largest_bytes = 0;

	*ret_free_bytes = 0;
	for (uint32_t i = 0; i < n->n_regions; i++) {
		*ret_free_bytes += n->regions[i].free_bytes;
		if (n->regions[i].free_bytes > largest_bytes)
			largest_bytes = n->regions[i].free_bytes;
	}
	return largest_bytes;
}

static struct region *best_fit(const struct node *n, uint64_t size_bytes)
{
	struct region *best = NULL;

	for (uint32_t i = 0; i < n->n_regions; i++) {
		struct region *r = &n->regions[i];

		if (r->free_bytes >= size_bytes && (!best || r->free_bytes < best->free_bytes))
			best = r;
	}
	return best;
}

struct volume *node_add_volume(struct node *n, const char *name, uint64_t size_bytes)
{
	struct region *region;
	struct volume *v;
	char id[VOLUME_ID_MAX + 1];

	size_bytes = (size_bytes + UNIT_BYTES - 1) / UNIT_BYTES * UNIT_BYTES;
	region = best_fit(n, size_bytes);
	if (!region)
		return NULL;
	v = x_calloc(1, sizeof(*v));
	volume_id_mint(name, n->id, id);
	v->id = x_strdup(id);
	v->name = x_strdup(name);
	v->size_bytes = size_bytes;
	v->next = n->volumes;
	v->region = (uint32_t)(region - n->regions);
	n->volumes = v;
	n->n_volumes++;
	region->free_bytes -= size_bytes;
	return v;
}

void node_remove_volume(struct node *n, const char *id)
{
	for (struct volume **at = &n->volumes; *at; at = &(*at)->next) {
		struct volume *v = *at;

		if (!str_eq(v->id, id))
			continue;
		*at = v->next;
		n->n_volumes--;
		n->regions[v->region].free_bytes += v->size_bytes;
		free(v->id);
		free(v->name);
		free(v);
		return;
	}
}

struct volume *node_find_volume(const struct node *n, const char *name, const char *id)
{
	struct volume *v = n->volumes;

	while (v && !(name ? str_eq(v->name, name) : str_eq(v->id, id)))
		v = v->next;
	return v;
}

static char device_mode[] = "fake";
static char version[] = PMEM_VERSION;
static char boot_id[] = "sim";

static Registry__V0__RegionCapacity *region_message(const struct region *r, struct arena *arena)
{
	Registry__V0__RegionCapacity *m = arena_alloc(arena, sizeof(*m));

	registry__v0__region_capacity__init(m);
	m->name = r->name;
	m->total_bytes = r->total_bytes;
	m->available_bytes = r->free_bytes;
	m->max_volume_bytes = r->free_bytes;
	m->max_sector_volume_bytes = r->free_bytes;
	m->unit_bytes = UNIT_BYTES;
	return m;
}

static void add_health(Registry__V0__InventoryVolume *entry, struct arena *arena)
{
	static char reason[] = HEALTH_MEDIA_ERROR;
	Registry__V0__HealthStatus *m = arena_alloc(arena, sizeof(*m));

	registry__v0__health_status__init(m);
	m->severity = REGISTRY__V0__HEALTH_STATUS__SEVERITY__DATA_LOSS;
	m->reason = reason;
	entry->health = arena_alloc(arena, sizeof(Registry__V0__HealthStatus *));
	entry->health[0] = m;
	entry->n_health = 1;
}

static Registry__V0__Inventory *inventory(const struct node *n, struct arena *arena)
{
	Registry__V0__Inventory *m = arena_alloc(arena, sizeof(*m));

	registry__v0__inventory__init(m);
	m->volumes = arena_alloc(arena, n->n_volumes * sizeof(Registry__V0__InventoryVolume *));
	for (const struct volume *v = n->volumes; v; v = v->next) {
		Registry__V0__InventoryVolume *entry = arena_alloc(arena, sizeof(*entry));

		registry__v0__inventory_volume__init(entry);
		entry->id = v->id;
		entry->name = v->name;
		entry->size_bytes = v->size_bytes;
		entry->phase = REGISTRY__V0__INVENTORY_VOLUME__PHASE__READY;
		entry->made_by_controller = true;
		if (n->sim->is_sick)
			add_health(entry, arena);
		m->volumes[m->n_volumes++] = entry;
	}
	return m;
}

void node_fill(void *user, Registry__V0__RegisterControllerRequest *request, struct arena *arena)
{
	struct node *n = user;

	request->endpoint = n->endpoint;
	request->device_mode = device_mode;
	request->version = version;
	request->boot_id = boot_id;
	request->serves_node_volumes = true;
	request->regions = arena_alloc(arena, n->n_regions * sizeof(*request->regions));
	for (uint32_t i = 0; i < n->n_regions; i++)
		request->regions[request->n_regions++] = region_message(&n->regions[i], arena);
	request->inventory = inventory(n, arena);
}
