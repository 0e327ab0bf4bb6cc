/* SPDX-License-Identifier: Apache-2.0 */
#include "pmem/pool/pool_lost_pvs.h"

#include "base/mem.h"
#include "base/str.h"
#include "pmem/lvm/lvm_metadata_area.h"
#include "pmem/pool/pool_backup.h"

/* Whatever filters and devices file of the host say. */
#define SEES_ALL "--config 'devices { use_devicesfile=0 filter=[\"a|.*|\"] global_filter=[\"a|.*|\"] }'"

void pool_lost_pvs_done(struct pool_lost_pvs *l)
{
	for (size_t i = 0; i < l->n; i++) {
		free(l->list[i].dev);
		free(l->list[i].device);
		free(l->list[i].group);
		free(l->list[i].copy);
		free(l->list[i].command);
	}
	free(l->list);
	*l = (struct pool_lost_pvs){0};
}

/*
 * pvck finds a second area by itself only where LVM's default alignment puts it (_check_for_mda2() of LVM's
 * tools/pvck.c looks 1 MiB before the end), and finds the device by a name that may belong to another one by
 * now. The devices file of the host need not have the device, and its filters may reject it.
 */
static char *make_command(const struct pool_record *r, const char *device,
	const struct lvm_metadata_areas *area, const char *copy)
{
	CLEANUP(free_charp) char *second = x_strdup("");

	if (area->second_offset_bytes > 0) {
		free(second);
		second = x_asprintf(" mda2_offset=%ju mda2_size=%ju", (uintmax_t)area->second_offset_bytes,
			(uintmax_t)area->second_bytes);
	}
	return x_asprintf("lvm pvck " SEES_ALL
			  " --yes --repair --file '%s' --settings 'pv_uuid=%s%s' %s && lvm vgchange " SEES_ALL
			  " -ay %s",
		copy, r->pv_uuid, second, device, r->group);
}

static void add_lost(const char *folder, const struct nd_namespace *ns, const struct pool_record *r,
	const struct lvm_metadata_areas *area, struct pool_lost_pvs *l)
{
	CLEANUP(free_charp) char *copy = pool_backup_newest(folder, r->group_uuid);
	CLEANUP(free_charp) char *command = copy ? make_command(r, ns->block_path, area, copy) : NULL;

	l->list = x_realloc(l->list, l->n + 1, sizeof(*l->list));
	l->list[l->n++] = (struct pool_lost_pv){
		.dev = x_strdup(ns->dev),
		.device = x_strdup(ns->block_path),
		.group = x_strdup(r->group),
		.copy = TAKE_PTR(copy),
		.command = TAKE_PTR(command),
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
	add_lost(folder, ns, &r, &area, l);
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
	CLEANUP(free_charp)
	char *how = lost->command
			    ? x_asprintf("this restores it from %s, also while its volumes are in use: %s",
				      lost->copy, lost->command)
			    : x_strdup("there is no saved copy of the group's metadata; see pvck(8), "
				       "metadata_search");

	return x_asprintf("%s (%s) was in volume group %s, and LVM no longer finds it there: nothing new is "
			  "created on it; %s; if its volumes may be lost instead: lvm pvcreate -ff --yes "
			  "--dataalignment 2m --pvmetadatacopies 2 %s",
		lost->dev, lost->device, lost->group, how, lost->device);
}
