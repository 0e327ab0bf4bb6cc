/* SPDX-License-Identifier: Apache-2.0 */
#include "base/log.h"
#include "base/str.h"
#include "commands.h"
#include "os/process.h"
#include "pmem/pool/pool_backup.h"
#include "pmem/pool/pool_vg.h"

int view_read(struct nd *nd, struct lvm *lvm, struct view *ret, struct error **err)
{
	CLEANUP(view_done) struct view v = {0};
	CLEANUP(strv_freep) char **paths = NULL;

	if (nd_list(nd, &v.inv, err) < 0)
		return err_wrap(err, "list namespaces");
	if (pool_vg_claim(lvm, v.inv, err) < 0)
		return -1;
	pool_vg_devices(v.inv, &paths);
	lvm_set_devices(lvm, (const char *const *)paths, strv_len(paths));
	if (lvm_list(lvm, &v.report, err) < 0)
		return err_wrap(err, "list volume groups");
	view_done(ret);
	*ret = v;
	v = (struct view){0};
	return 0;
}

void view_done(struct view *v)
{
	nd_inventory_free(v->inv);
	lvm_report_free(v->report);
	*v = (struct view){0};
}

/* Return: whether the region's group is as it should be. */
static bool create_in(struct lvm *lvm, const char *folder, const struct nd_region *r,
	const struct lvm_report *report, bool *ret_changed)
{
	CLEANUP(pool_vg_plan_done) struct pool_vg_plan p = {0};
	CLEANUP(error_freep) struct error *err = NULL;

	pool_vg_plan_region(r, report, &p);
	pool_vg_examine(folder, /* but= */ NULL, &p);
	if (pool_vg_apply(lvm, folder, &p, &err) < 0) {
		log_error("volume group not created", F_STR("region", r->name), F_STR("group", p.vg_name),
			F_ERR(err));
		return false;
	}
	for (char **path = p.add_paths; path && *path; path++)
		log_info(p.create ? "created volume group" : "extended volume group",
			F_STR("region", r->name), F_STR("group", p.vg_name), F_STR("device", *path));
	*ret_changed |= p.add_paths != NULL;
	return true;
}

static bool activate(struct lvm *lvm, const struct lvm_report *report)
{
	CLEANUP(error_freep) struct error *err = NULL;

	if (pool_vg_activate(lvm, report, &err) == 0)
		return true;
	log_warn("not everything could be activated", F_ERR(err));
	return false;
}

void view_save(struct lvm *lvm, const char *folder, const struct view *v)
{
	CLEANUP(error_freep) struct error *not_noted = NULL;
	CLEANUP(error_freep) struct error *not_saved = NULL;

	if (pool_backup_note(folder, v->inv, v->report, &not_noted) < 0)
		log_warn("continuing without a record of which namespaces are in volume groups",
			F_ERR(not_noted));
	if (pool_backup_catch_up(folder, lvm, v->report, &not_saved) < 0)
		log_warn("continuing without a current copy of the metadata", F_ERR(not_saved));
}

int cmd_create(struct nd *nd, struct lvm *lvm, const char *folder, bool *ret_complete, struct error **err)
{
	CLEANUP(view_done) struct view v = {0};
	bool changed = false;
	bool complete = true;

	if (view_read(nd, lvm, &v, err) < 0)
		return -1;
	view_save(lvm, folder, &v);
	for (size_t i = 0; i < v.inv->n_regions && !process_stop_signal(); i++)
		complete = create_in(lvm, folder, &v.inv->regions[i], v.report, &changed) && complete;
	if (changed) {
		if (view_read(nd, lvm, &v, err) < 0)
			return -1;
		view_save(lvm, folder, &v);
	}
	if (process_stop_signal()) {
		*ret_complete = false;
		return 0;
	}
	if (v.report->n_vgs == 0) {
		log_warn("there is no volume group: no region has a pool namespace");
		complete = false;
	}
	complete = activate(lvm, v.report) && complete;
	*ret_complete = complete;
	return 0;
}
