/* SPDX-License-Identifier: Apache-2.0 */
#include "base/json/json.h"
#include "base/parse.h"
#include "base/str.h"
#include "commands.h"
#include "region_map.h"

#define BAR_WIDTH 64

static const char *dax_use(const struct dax_device *d)
{
	return d->is_system_ram ? "system-ram" : "devdax";
}

static void write_remarks(const struct nd_region *r, struct buf *out)
{
	buf_adds(out, r->is_pmem ? "" : ", not persistent memory");
	buf_adds(out, r->enabled ? "" : ", disabled");
	buf_adds(out, r->readonly ? ", read-only" : "");
	buf_adds(out, r->has_labels ? "" : ", without labels");
	if (r->refused)
		buf_addf(out, ", not used: %s", r->refused);
}

static void write_head(const struct nd_region *r, const struct region_map *m, struct buf *out)
{
	char a[24];
	char b[24];
	char c[24];
	char d[24];
	char bar[BAR_WIDTH + 1];

	buf_addf(out, "%s on %s: %s, interleave %u, ", r->name, r->bus, format_bytes(r->size_bytes, a),
		r->ways);
	if (r->numa_node >= 0)
		buf_addf(out, "NUMA node %d, ", r->numa_node);
	buf_addf(out, "unit %s", format_bytes(nd_region_unit(r), a));
	write_remarks(r, out);
	buf_addf(out, "\n  own %s, foreign %s, free %s (largest extent %s)\n", format_bytes(m->own_bytes, a),
		format_bytes(m->foreign_bytes, b), format_bytes(r->available_bytes, c),
		format_bytes(r->max_extent_bytes, d));
	region_map_bar(m, r->size_bytes, bar, BAR_WIDTH);
	buf_addf(out, "  [%s]  O own  F foreign  . free\n", bar);
	buf_addf(out, "  %10s %10s  %-8s %-13s %-6s NAME  DEVICE (USABLE)\n", "OFFSET", "SIZE", "KIND",
		"NAMESPACE", "MODE");
}

/* The program that wrote the label may have chosen any bytes as the name: those that could control a terminal
 * are replaced. */
static void write_name(const char *name, struct buf *out)
{
	if (!*name)
		buf_addc(out, '-');
	for (; *name; name++)
		buf_addc(out, *name > ' ' && *name <= '~' ? *name : '?');
}

static void write_extent(const struct map_extent *e, struct buf *out)
{
	char offset[24] = "?";
	char size[24];

	if (e->offset_bytes != ND_OFFSET_UNKNOWN)
		format_bytes(e->offset_bytes, offset);
	buf_addf(out, "  %10s %10s  ", offset, format_bytes(e->size_bytes, size));
	if (!e->ns) {
		buf_addf(out, "%s\n", map_kind_name(e->kind));
		return;
	}
	buf_addf(out, "%-8s %-13s %-6s ", map_kind_name(e->kind), e->ns->dev, nd_mode_name(e->ns->mode));
	write_name(e->ns->name, out);
	if (e->ns->block_path)
		buf_addf(out, "  %s (%s)", e->ns->block_path, format_bytes(e->ns->usable_bytes, size));
	buf_adds(out, e->ns->active ? "\n" : "  inactive\n");
}

static void write_region(const struct nd_region *r, const struct dax_list *dax, struct buf *out)
{
	CLEANUP(region_map_done) struct region_map m = {0};
	char size[24];

	region_map_build(r, &m);
	write_head(r, &m, out);
	for (size_t i = 0; i < m.n; i++)
		write_extent(&m.extents[i], out);
	for (size_t i = 0; i < dax->n; i++)
		if (str_eq(dax->devices[i].region, r->name))
			buf_addf(out, "  %s: %s, %s\n", dax->devices[i].dev,
				format_bytes(dax->devices[i].size_bytes, size), dax_use(&dax->devices[i]));
}

static void json_extent(const struct map_extent *e, struct json_writer *w)
{
	json_object(w);
	json_key_str(w, "kind", map_kind_name(e->kind));
	if (e->offset_bytes != ND_OFFSET_UNKNOWN)
		json_key_u64(w, "offsetBytes", e->offset_bytes);
	json_key_u64(w, "sizeBytes", e->size_bytes);
	if (e->ns) {
		json_key_str(w, "namespace", e->ns->dev);
		json_key_str(w, "name", e->ns->name);
		json_key_str(w, "uuid", e->ns->uuid);
		json_key_str(w, "mode", nd_mode_name(e->ns->mode));
		json_key_bool(w, "active", e->ns->active);
		json_key_u64(w, "usableBytes", e->ns->usable_bytes);
		json_key_str(w, "device", e->ns->block_path);
	}
	json_object_end(w);
}

static void json_dax(const struct nd_region *r, const struct dax_list *dax, struct json_writer *w)
{
	json_key(w, "dax");
	json_array(w);
	for (size_t i = 0; i < dax->n; i++) {
		const struct dax_device *d = &dax->devices[i];
		if (!str_eq(d->region, r->name))
			continue;
		json_object(w);
		json_key_str(w, "device", d->dev);
		json_key_u64(w, "sizeBytes", d->size_bytes);
		json_key_str(w, "use", dax_use(d));
		json_object_end(w);
	}
	json_array_end(w);
}

static void json_region(const struct nd_region *r, const struct dax_list *dax, struct json_writer *w)
{
	CLEANUP(region_map_done) struct region_map m = {0};

	region_map_build(r, &m);
	json_object(w);
	json_key_str(w, "bus", r->bus);
	json_key_str(w, "region", r->name);
	json_key_u64(w, "sizeBytes", r->size_bytes);
	json_key_u64(w, "availableBytes", r->available_bytes);
	json_key_u64(w, "maxExtentBytes", r->max_extent_bytes);
	json_key_u64(w, "ownBytes", m.own_bytes);
	json_key_u64(w, "foreignBytes", m.foreign_bytes);
	json_key_u64(w, "unitBytes", nd_region_unit(r));
	json_key_u64(w, "interleaveWays", r->ways);
	json_key_bool(w, "persistentMemory", r->is_pmem);
	json_key_bool(w, "enabled", r->enabled);
	json_key_bool(w, "readOnly", r->readonly);
	json_key_bool(w, "labels", r->has_labels);
	json_key_known(w, "refused", r->refused);
	if (r->numa_node >= 0)
		json_key_u64(w, "numaNode", (uint64_t)r->numa_node);
	json_key(w, "extents");
	json_array(w);
	for (size_t i = 0; i < m.n; i++)
		json_extent(&m.extents[i], w);
	json_array_end(w);
	json_dax(r, dax, w);
	json_object_end(w);
}

void cmd_status(const struct nd_inventory *inv, const struct dax_list *dax, bool json, struct buf *out)
{
	struct json_writer w = JSON_WRITER(out);

	if (!json) {
		for (size_t i = 0; i < inv->n_regions; i++)
			write_region(&inv->regions[i], dax, out);
		if (inv->n_regions == 0)
			buf_adds(out, "no regions\n");
		return;
	}
	json_document(&w);
	json_key(&w, "regions");
	json_array(&w);
	for (size_t i = 0; i < inv->n_regions; i++)
		json_region(&inv->regions[i], dax, &w);
	json_array_end(&w);
	json_object_end(&w);
	buf_addc(out, '\n');
}
