/* SPDX-License-Identifier: Apache-2.0 */
#include "base/json/json.h"
#include "base/parse.h"
#include "base/str.h"
#include "commands.h"

/* The region with the namespace behind @path, or NULL. */
static const struct nd_region *region_of(const struct view *v, const char *path)
{
	for (size_t i = 0; i < v->inv->n_regions; i++)
		for (size_t k = 0; k < v->inv->regions[i].n_namespaces; k++)
			if (str_eq(v->inv->regions[i].namespaces[k].block_path, path))
				return &v->inv->regions[i];
	return NULL;
}

/* Regions of a group: one, unless an administrator joined several. */
static char **regions_of(const struct view *v, const struct lvm_vg *vg)
{
	char **names = NULL;

	for (size_t i = 0; i < v->report->n_pvs; i++) {
		const struct lvm_pv *pv = &v->report->pvs[i];
		const struct nd_region *r = str_eq(pv->vg_uuid, vg->uuid) ? region_of(v, pv->path) : NULL;
		if (r && !strv_contains(names, r->name))
			strv_add(&names, r->name);
	}
	return names;
}

static size_t count_volumes(const struct view *v, const struct lvm_vg *vg, bool active_only)
{
	size_t n = 0;

	for (size_t i = 0; i < v->report->n_lvs; i++)
		if (str_eq(v->report->lvs[i].vg_uuid, vg->uuid))
			n += !active_only || v->report->lvs[i].active;
	return n;
}

static void write_group(const struct view *v, const struct lvm_vg *vg, struct buf *out)
{
	CLEANUP(strv_freep) char **regions = regions_of(v, vg);
	char size[24];
	char free_size[24];

	buf_addf(out, "%s: %s, free %s, %zu volumes, %zu active, region", vg->name,
		format_bytes(vg->size_bytes, size), format_bytes(vg->free_bytes, free_size),
		count_volumes(v, vg, false), count_volumes(v, vg, true));
	for (char **name = regions; name && *name; name++)
		buf_addf(out, " %s", *name);
	if (vg->missing_pvs > 0)
		buf_addf(out, ", INCOMPLETE: %u devices are missing", vg->missing_pvs);
	if (vg->exported)
		buf_adds(out, ", EXPORTED: import it with vgimport(8)");
	if (*vg->system_id)
		buf_adds(out, ", NOT OF THIS MACHINE by its LVM system ID: see pmem-vgm plan");
	buf_addc(out, '\n');
	for (size_t i = 0; i < v->report->n_pvs; i++)
		if (str_eq(v->report->pvs[i].vg_uuid, vg->uuid))
			buf_addf(out, "  device %s %s\n", v->report->pvs[i].path,
				format_bytes(v->report->pvs[i].size_bytes, size));
	for (size_t i = 0; i < v->report->n_lvs; i++)
		if (str_eq(v->report->lvs[i].vg_uuid, vg->uuid))
			buf_addf(out, "  volume %s %s%s\n", v->report->lvs[i].name,
				format_bytes(v->report->lvs[i].size_bytes, size),
				v->report->lvs[i].active ? "" : " inactive");
}

static void write_unused(const struct view *v, struct buf *out)
{
	for (size_t i = 0; i < v->inv->n_regions; i++) {
		const struct nd_region *r = &v->inv->regions[i];
		for (size_t k = 0; k < r->n_namespaces; k++) {
			const char *path = r->namespaces[k].block_path;
			bool used = !nd_is_pool(&r->namespaces[k]);
			for (size_t p = 0; p < v->report->n_pvs; p++)
				used |= str_eq(v->report->pvs[p].path, path) && *v->report->pvs[p].vg_uuid;
			if (!used)
				buf_addf(out, "no group: %s in %s\n", path, r->name);
		}
	}
}

static void json_devices(const struct view *v, const struct lvm_vg *vg, struct json_writer *w)
{
	json_key(w, "devices");
	json_array(w);
	for (size_t i = 0; i < v->report->n_pvs; i++) {
		const struct lvm_pv *pv = &v->report->pvs[i];
		if (!str_eq(pv->vg_uuid, vg->uuid))
			continue;
		json_object(w);
		json_key_str(w, "device", pv->path);
		json_key_u64(w, "sizeBytes", pv->size_bytes);
		json_key_bool(w, "missing", pv->missing);
		json_object_end(w);
	}
	json_array_end(w);
}

static void json_volumes(const struct view *v, const struct lvm_vg *vg, struct json_writer *w)
{
	json_key(w, "volumes");
	json_array(w);
	for (size_t i = 0; i < v->report->n_lvs; i++) {
		const struct lvm_lv *lv = &v->report->lvs[i];
		if (!str_eq(lv->vg_uuid, vg->uuid))
			continue;
		json_object(w);
		json_key_str(w, "name", lv->name);
		json_key_u64(w, "sizeBytes", lv->size_bytes);
		json_key_bool(w, "active", lv->active);
		json_object_end(w);
	}
	json_array_end(w);
}

static void json_group(const struct view *v, const struct lvm_vg *vg, struct json_writer *w)
{
	CLEANUP(strv_freep) char **regions = regions_of(v, vg);

	json_object(w);
	json_key_str(w, "group", vg->name);
	json_key_str(w, "uuid", vg->uuid);
	json_key_u64(w, "sizeBytes", vg->size_bytes);
	json_key_u64(w, "freeBytes", vg->free_bytes);
	json_key_u64(w, "extentBytes", vg->extent_bytes);
	json_key_bool(w, "complete", vg->missing_pvs == 0);
	json_key_bool(w, "exported", vg->exported);
	json_key(w, "regions");
	json_array(w);
	for (char **name = regions; name && *name; name++)
		json_str(w, *name);
	json_array_end(w);
	json_devices(v, vg, w);
	json_volumes(v, vg, w);
	json_object_end(w);
}

void cmd_status(const struct view *v, bool json, struct buf *out)
{
	struct json_writer w = JSON_WRITER(out);

	if (!json) {
		for (size_t i = 0; i < v->report->n_vgs; i++)
			write_group(v, &v->report->vgs[i], out);
		if (v->report->n_vgs == 0)
			buf_adds(out, "no volume groups\n");
		write_unused(v, out);
		return;
	}
	json_document(&w);
	json_key(&w, "groups");
	json_array(&w);
	for (size_t i = 0; i < v->report->n_vgs; i++)
		json_group(v, &v->report->vgs[i], &w);
	json_array_end(&w);
	json_object_end(&w);
	buf_addc(out, '\n');
}
