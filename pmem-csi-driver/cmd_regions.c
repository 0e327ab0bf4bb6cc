/* SPDX-License-Identifier: Apache-2.0 */
#include <limits.h>
#include <stdint.h>

#include "base/json/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "commands.h"
#include "inspect/inventory.h"
#include "os/table.h"
#include "regions_and_groups.h"

static const char help[] =
	"usage: pmem-csi-driver regions [flags]\n"
	"\n"
	"Shows the regions of persistent memory that the kernel manages: free bytes and the number of free\n"
	"extents, the unit of allocation, free label slots, NUMA node, and how much of the region pool\n"
	"namespaces, volumes and namespaces of other owners occupy. DURABILITY says whether the kernel takes\n"
	"MAP_SYNC there (synchronous) or refuses it, so that only fsync makes stores durable; unknown until a\n"
	"volume was mounted with DAX. Below are the pools from which volumes are created, which are volume\n"
	"groups, or regions in direct mode, each with the exact size of the largest volume that can be\n"
	"created with DAX and with usage=FileIO.\n"
	"\n"
	"Exit status: 0 done, 2 wrong usage, 3 the node cannot be examined.\n";

struct view {
	const struct check_view *check;
	const struct regions_and_groups *map;
};

static void count_cell(struct table *t, uint32_t n, uint32_t unknown)
{
	if (n == unknown)
		table_cell(t, "?");
	else
		table_number(t, n);
}

static void share_cell(struct table *t, uint64_t bytes, const struct nd_region *r)
{
	CLEANUP(free_charp)
	char *share = x_asprintf("%ju %%", (uintmax_t)(r->size_bytes ? bytes * 100 / r->size_bytes : 0));

	table_cell(t, share);
}

static const char *durability_of(const struct view *v, const char *region)
{
	return durability_name(region_durabilities_of(&v->check->durabilities, region));
}

static void region_row(const struct view *v, const struct nd_region *r, struct table *t)
{
	CLEANUP(free_charp) char *name = x_asprintf("%s/%s", r->bus, r->name);
	struct inventory_region row;

	inventory_region(r, v->check, &row);
	table_cell(t, name);
	table_bytes(t, r->size_bytes);
	table_bytes(t, r->available_bytes);
	table_bytes(t, r->max_extent_bytes);
	count_cell(t, row.n_free_extents, INVENTORY_UNKNOWN);
	table_bytes(t, nd_region_unit(r));
	count_cell(t, r->has_labels ? r->free_labels : 0, UINT_MAX);
	count_cell(t, (uint32_t)r->numa_node, UINT32_MAX);
	share_cell(t, row.pool_bytes, r);
	table_number(t, row.n_volumes);
	table_number(t, row.n_foreign);
	table_bytes(t, row.foreign_bytes);
	table_cell(t, durability_of(v, r->identity));
	table_cell(t, str_empty(r->persistence_domain) ? "?" : r->persistence_domain);
}

static void write_regions(const struct view *v, struct buf *out)
{
	static const char *const heading[] = {"REGION", "TOTAL", "FREE", "LARGEST PIECE", "PIECES", "UNIT",
		"FREE LABELS", "NUMA", "POOL SHARE", "VOLUMES", "FOREIGN", "FOREIGN BYTES", "DURABILITY",
		"PERSISTENCE DOMAIN"};
	CLEANUP(table_done) struct table t = {.n_columns = ARRAY_SIZE(heading)};

	for (size_t i = 0; i < ARRAY_SIZE(heading); i++)
		table_cell(&t, heading[i]);
	for (size_t i = 0; i < v->map->regions->n_regions; i++)
		region_row(v, &v->map->regions->regions[i], &t);
	table_write(&t, out);
	buf_addc(out, '\n');
}

/* Names of the regions that a pool is made of. Return: caller frees. */
static char *regions_of(const struct view *v, const struct device_pool *p)
{
	char *names = x_strdup("");

	for (size_t i = 0; v->map->regions && i < v->map->regions->n_regions; i++) {
		const struct nd_region *r = &v->map->regions->regions[i];
		if (!inventory_pool_has(p, r, v->map->report))
			continue;
		char *more = x_asprintf("%s%s%s", names, *names ? "," : "", r->name);
		free(names);
		names = more;
	}
	return names;
}

static const char *pool_remark(const struct device_pool *p)
{
	if (!p->complete)
		return "incomplete";
	return p->closed ? "other mode: no new volumes" : "";
}

static void pool_row(const struct view *v, const struct device_pool *p, struct table *t)
{
	CLEANUP(free_charp) char *regions = regions_of(v, p);

	table_cell(t, p->name);
	table_bytes(t, p->capacity.total_bytes);
	table_bytes(t, p->capacity.available_bytes);
	table_bytes(t, p->closed ? 0 : p->capacity.max_volume_bytes);
	table_bytes(t, p->closed ? 0 : p->capacity.max_sector_volume_bytes);
	table_bytes(t, p->rules.unit_bytes);
	table_bytes(t, inventory_erasing(v->check, p));
	table_cell(t, regions);
	table_cell(t, pool_remark(p));
}

static void write_text(const struct view *v, struct buf *out)
{
	static const char *const heading[] = {"POOL", "TOTAL", "FREE", "LARGEST DAX", "LARGEST FILEIO",
		"UNIT", "ERASING", "REGIONS", "REMARK"};
	CLEANUP(table_done) struct table t = {.n_columns = ARRAY_SIZE(heading)};
	const struct device_list *l = v->check->devices;

	if (v->map->regions)
		write_regions(v, out);
	for (size_t i = 0; i < ARRAY_SIZE(heading); i++)
		table_cell(&t, heading[i]);
	for (size_t i = 0; i < l->n_pools; i++)
		pool_row(v, &l->pools[i], &t);
	if (l->n_pools > 0)
		table_write(&t, out);
	else
		buf_adds(out, no_pools_remedy(v->map->regions));
}

static void json_region(const struct view *v, const struct nd_region *r, struct json_writer *w)
{
	struct inventory_region row;

	inventory_region(r, v->check, &row);
	json_object(w);
	json_key_str(w, "bus", r->bus);
	json_key_str(w, "region", r->name);
	json_key_str(w, "identity", r->identity);
	json_key_u64(w, "sizeBytes", r->size_bytes);
	json_key_u64(w, "availableBytes", r->available_bytes);
	json_key_u64(w, "maxExtentBytes", r->max_extent_bytes);
	if (row.n_free_extents != INVENTORY_UNKNOWN)
		json_key_u64(w, "freeExtents", row.n_free_extents);
	json_key_u64(w, "unitBytes", nd_region_unit(r));
	json_key_u64(w, "interleaveWays", r->ways);
	json_key_bool(w, "labels", r->has_labels);
	if (r->free_labels != UINT_MAX)
		json_key_u64(w, "freeLabels", r->free_labels);
	if (r->numa_node >= 0)
		json_key_u64(w, "numaNode", (uint64_t)r->numa_node);
	json_key_bool(w, "enabled", r->enabled);
	json_key_bool(w, "readOnly", r->readonly);
	json_key_u64(w, "poolNamespaces", row.n_pool);
	json_key_u64(w, "poolBytes", row.pool_bytes);
	json_key_u64(w, "volumeNamespaces", row.n_volumes);
	json_key_u64(w, "volumeBytes", row.volume_bytes);
	json_key_u64(w, "foreignNamespaces", row.n_foreign);
	json_key_u64(w, "foreignBytes", row.foreign_bytes);
	json_key_str(w, "durability", durability_of(v, r->identity));
	json_key_str(w, "persistenceDomain", r->persistence_domain ? r->persistence_domain : "");
	json_object_end(w);
}

static void json_pool(const struct view *v, const struct device_pool *p, struct json_writer *w)
{
	json_object(w);
	json_key_str(w, "pool", p->name);
	json_key_str(w, "uuid", p->uuid);
	json_key_u64(w, "totalBytes", p->capacity.total_bytes);
	json_key_u64(w, "freeBytes", p->capacity.available_bytes);
	json_key_u64(w, "largestBytes", p->capacity.max_volume_bytes);
	json_key_u64(w, "largestFileIOBytes", p->capacity.max_sector_volume_bytes);
	json_key_u64(w, "unitBytes", p->rules.unit_bytes);
	json_key_u64(w, "erasingBytes", inventory_erasing(v->check, p));
	json_key_bool(w, "complete", p->complete);
	json_key_str(w, "durability", durability_of(v, p->region));
	json_key_bool(w, "otherMode", p->closed);
	json_key(w, "regions");
	json_array(w);
	for (size_t i = 0; v->map->regions && i < v->map->regions->n_regions; i++) {
		const struct nd_region *r = &v->map->regions->regions[i];
		if (inventory_pool_has(p, r, v->map->report))
			json_str(w, r->name);
	}
	json_array_end(w);
	json_object_end(w);
}

static void write_json(const struct view *v, struct buf *out)
{
	struct json_writer w = JSON_WRITER(out);

	json_document(&w);
	json_key(&w, "regions");
	json_array(&w);
	for (size_t i = 0; v->map->regions && i < v->map->regions->n_regions; i++)
		json_region(v, &v->map->regions->regions[i], &w);
	json_array_end(&w);
	json_key(&w, "pools");
	json_array(&w);
	for (size_t i = 0; i < v->check->devices->n_pools; i++)
		json_pool(v, &v->check->devices->pools[i], &w);
	json_array_end(&w);
	json_object_end(&w);
	buf_addc(out, '\n');
}

static int read_map(const struct command *c, void *user, struct error **err)
{
	return regions_and_groups_read(&c->o, user, err);
}

static void write_view(const struct check_view *check, const void *user, bool json, struct buf *out)
{
	const struct view v = {.check = check, .map = user};

	if (json)
		write_json(&v, out);
	else
		write_text(&v, out);
}

int cmd_regions(int argc, char **argv)
{
	static const struct command_view view = {
		.name = "regions", .help = help, .read = read_map, .write = write_view};
	CLEANUP(regions_and_groups_done) struct regions_and_groups map = {0};

	return command_show(&view, argc, argv, &map);
}
