/* SPDX-License-Identifier: Apache-2.0 */
#include "pmem/pool/pool_lost_pvs.h"

#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "pmem/lvm/lvm_metadata_area.h"
#include "pmem/pool/pool_backup.h"

void pool_lost_pvs_done(struct pool_lost_pvs *l)
{
	for (size_t i = 0; i < l->n; i++) {
		free(l->list[i].dev);
		free(l->list[i].device);
		free(l->list[i].group);
		free(l->list[i].command);
	}
	free(l->list);
	*l = (struct pool_lost_pvs){0};
}

/* @folder: of pool_backup.h, below the state folder */
static char *make_command(const char *folder, const char *group)
{
	const char *end = strrchr(folder, '/');

	return x_asprintf(
		"pmem-vgm -statePath=%.*s restore %s", (int)(end ? end - folder : 0), folder, group);
}

static void add_lost(const char *folder, const struct nd_namespace *ns, const struct pool_record *r,
	struct pool_lost_pvs *l)
{
	l->list = x_realloc(l->list, l->n + 1, sizeof(*l->list));
	l->list[l->n++] = (struct pool_lost_pv){
		.dev = x_strdup(ns->dev),
		.device = x_strdup(ns->block_path),
		.group = x_strdup(r->group),
		.command = make_command(folder, r->group),
	};
}

static void look_for_lost(const char *folder, const struct nd_region *region, const struct nd_namespace *ns,
	const struct lvm_report *report, struct pool_lost_pvs *l)
{
	const struct lvm_pv *pv = ns->block_path ? lvm_report_pv(report, ns->block_path) : NULL;
	CLEANUP(pool_record_done) struct pool_record r = {0};
	CLEANUP(error_freep) struct error *ignored = NULL;
	struct lvm_metadata_areas area = {0};

	if (!ns->active || !ns->block_path || (pv && *pv->vg_uuid))
		return;
	if (pool_backup_find(folder, region, ns, &r, &ignored) < 0 || !r.group)
		return;
	/* unreadable is no reason to keep silent */
	if (lvm_metadata_area_read(ns->block_path, &area, &ignored) == 0 && area.first == LVM_AREA_EMPTY)
		return;
	add_lost(folder, ns, &r, l);
}

void pool_lost_pvs_find(const char *folder, const struct nd_inventory *inv, const struct lvm_report *report,
	struct pool_lost_pvs *ret)
{
	struct pool_lost_pvs l = {0};

	for (size_t i = 0; i < inv->n_regions; i++)
		for (size_t k = 0; k < inv->regions[i].n_namespaces; k++)
			look_for_lost(folder, &inv->regions[i], &inv->regions[i].namespaces[k], report, &l);
	*ret = l;
}

char *pool_lost_pv_text(const struct pool_lost_pv *lost)
{
	return x_asprintf(
		"%s (%s) was in volume group %s, and LVM no longer finds it there: nothing new is "
		"created on it; this restores it, also while its volumes are in use, and with -dry-run "
		"shows what it would do: %s; if its volumes may be lost instead: lvm pvcreate -ff "
		"--yes --dataalignment 2m --pvmetadatacopies 2 %s",
		lost->dev, lost->device, lost->group, lost->command, lost->device);
}
