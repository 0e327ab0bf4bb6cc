/* SPDX-License-Identifier: Apache-2.0 */
#include "pmem/pool/pool_restore.h"

#include "base/durable_step.h"
#include "base/str.h"
#include "os/process.h"
#include "pmem/pool/pool_backup.h"

static const struct lvm_vg *find_vg(const struct lvm_report *report, const char *uuid)
{
	for (size_t i = 0; i < report->n_vgs; i++)
		if (str_eq(report->vgs[i].uuid, uuid))
			return &report->vgs[i];
	return NULL;
}

static bool has_volume(const struct lvm_report *report, const char *group_uuid, const char *name)
{
	for (size_t i = 0; i < report->n_lvs; i++)
		if (str_eq(report->lvs[i].vg_uuid, group_uuid) && str_eq(report->lvs[i].name, name))
			return true;
	return false;
}

/* LVM is asked, because its commands also succeed where they leave something undone. */
static int check_shown(
	const struct pool_restore_group *g, const struct lvm_report *report, struct error **err)
{
	const struct lvm_vg *vg = find_vg(report, g->uuid);

	if (!vg)
		return err_set(err, ERR_INTERNAL, "LVM does not show volume group %s yet", g->name);
	if (vg->seqno < g->text.seqno)
		return err_set(err, ERR_INTERNAL,
			"LVM shows version %ju of the metadata of volume group %s, and not version %ju of %s",
			(uintmax_t)vg->seqno, g->name, (uintmax_t)g->text.seqno, g->source);
	for (size_t i = 0; i < g->text.n_volumes; i++)
		if (!has_volume(report, g->uuid, g->text.volumes[i].name))
			return err_set(err, ERR_INTERNAL,
				"LVM does not show volume %s of volume group %s, which %s has",
				g->text.volumes[i].name, g->name, g->source);
	if (vg->missing_pvs > 0)
		return err_set(err, ERR_PRECONDITION,
			"volume group %s has its labels back, and %u of its devices are missing: bring them back, "
			"or if LVM has marked them as missing, use \"lvm vgextend --restoremissing\"",
			g->name, vg->missing_pvs);
	return 0;
}

static int list_and_check(
	struct lvm *l, const struct pool_restore_group *g, struct lvm_report **report, struct error **err)
{
	struct lvm_report *now = NULL;

	if (lvm_list(l, &now, err) < 0)
		return err_wrap(err, "look at the result");
	lvm_report_free(*report);
	*report = now;
	return check_shown(g, now, err);
}

static int run_step(struct lvm *l, struct nd *nd, const struct pool_restore_group *g,
	const struct pool_restore_step *s, struct error **err)
{
	const struct pool_restore_pv *pv = s->pv < g->n_pvs ? &g->pvs[s->pv] : NULL;

	if (pv && *pv->uuid && nd_confirm(nd, pv->device, pv->uuid, err) < 0)
		return err_wrap(err, "restore %s", pv->dev);
	return STEP("lvm-restore", lvm_run(l, (const char *const *)s->argv, NULL, err));
}

int pool_restore_apply(struct lvm *l, struct nd *nd, const char *folder, const struct pool_restore_group *g,
	struct lvm_report **ret_report, struct error **err)
{
	CLEANUP(lvm_report_freep) struct lvm_report *report = NULL;

	if (g->problem)
		return err_set(err, ERR_PRECONDITION, "%s", g->problem);
	if (g->file && pool_backup_keep_text(folder, g->uuid, g->text.seqno, span_of(g->raw), err) < 0)
		return err_wrap(err, "keep the metadata that %s has", g->source);
	for (size_t i = 0; i < g->n_steps; i++) {
		if (process_stop_signal())
			return err_set(err, ERR_ABORTED, "stopped between two steps");
		if (g->steps[i].activates && g->n_pvs > 0 && list_and_check(l, g, &report, err) < 0)
			return -1;
		if (run_step(l, nd, g, &g->steps[i], err) < 0)
			return -1;
	}
	lvm_report_free(TAKE_PTR(report));
	if (lvm_list(l, &report, err) < 0)
		return err_wrap(err, "look at the result");
	*ret_report = TAKE_PTR(report);
	return 0;
}
