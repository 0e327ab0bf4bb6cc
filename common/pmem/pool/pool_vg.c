/* SPDX-License-Identifier: Apache-2.0 */
#include "pmem/pool/pool_vg.h"

#include <string.h>

#include "base/durable_step.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "os/fs.h"
#include "pmem/lvm/lvm_metadata_area.h"
#include "pmem/pool/pool_backup.h"
#include "pmem/pool/pool_lost_pvs.h"

/*
 * Extents begin at a multiple of the huge page: with LVM's default of 1 MiB no volume could be mapped with
 * huge pages, since namespaces begin at such a multiple too.
 */
#define DATA_ALIGNMENT "2m"
/* The second area, at the end of the device, remains if the first is overwritten. */
#define METADATA_COPIES "2"

void pool_vg_devices(const struct nd_inventory *inv, char ***ret)
{
	char **paths = NULL;

	for (size_t i = 0; i < inv->n_regions; i++)
		for (size_t k = 0; k < inv->regions[i].n_namespaces; k++)
			if (nd_is_pool(&inv->regions[i].namespaces[k]))
				strv_add(&paths, inv->regions[i].namespaces[k].block_path);
	*ret = paths;
}

bool pool_vg_may_claim(const struct nd_namespace *ns)
{
	return ns->active && ns->mode == ND_FSDAX && ns->block_path && !*ns->name;
}

/* Returns the text behind @prefix and the digits that must follow it; NULL: @text does not begin so. */
static const char *skip_numbered(const char *text, const char *prefix)
{
	size_t digits = 0;

	if (!str_starts(text, prefix))
		return NULL;
	text += strlen(prefix);
	digits = strspn(text, "0123456789");
	return digits ? text + digits : NULL;
}

static bool is_group_name(const char *name)
{
	const char *region = skip_numbered(name, "ndbus");
	const char *rest = region ? skip_numbered(region, "region") : NULL;

	return rest && str_eq(rest, "fsdax");
}

/* Return: how many there are. */
static size_t add_candidates(const struct nd_inventory *inv, char ***paths)
{
	size_t n = 0;

	for (size_t i = 0; i < inv->n_regions; i++)
		for (size_t k = 0; k < inv->regions[i].n_namespaces; k++) {
			const struct nd_namespace *ns = &inv->regions[i].namespaces[k];
			if (!pool_vg_may_claim(ns) || nd_is_pool(ns))
				continue;
			strv_add(paths, ns->block_path);
			n++;
		}
	return n;
}

int pool_vg_claim(struct lvm *l, struct nd_inventory *inv, struct error **err)
{
	CLEANUP(lvm_report_freep) struct lvm_report *report = NULL;
	CLEANUP(strv_freep) char **paths = NULL;

	pool_vg_devices(inv, &paths);
	if (add_candidates(inv, &paths) == 0)
		return 0;
	lvm_set_devices(l, (const char *const *)paths, strv_len(paths));
	if (lvm_list(l, &report, err) < 0)
		return err_wrap(err, "find the volume groups of namespaces without a name");
	for (size_t i = 0; i < inv->n_regions; i++)
		for (size_t k = 0; k < inv->regions[i].n_namespaces; k++) {
			struct nd_namespace *ns = &inv->regions[i].namespaces[k];
			const struct lvm_pv *pv =
				ns->block_path ? lvm_report_pv(report, ns->block_path) : NULL;
			if (pv && pool_vg_may_claim(ns) && is_group_name(pv->vg_name))
				ns->grouped = true;
		}
	return 0;
}

static const struct lvm_vg *find_vg(const struct lvm_report *r, const char *uuid)
{
	for (size_t i = 0; i < r->n_vgs; i++)
		if (str_eq(r->vgs[i].uuid, uuid))
			return &r->vgs[i];
	return NULL;
}

static size_t count_named(const struct lvm_report *r, const char *name)
{
	size_t n = 0;

	for (size_t i = 0; i < r->n_vgs; i++)
		n += str_eq(r->vgs[i].name, name);
	return n;
}

/* Classifies the namespace's device: it is in a group, or it has to be added to one. */
static void plan_path(const char *path, const struct lvm_report *report, const struct lvm_pv **group,
	struct pool_vg_plan *p)
{
	const struct lvm_pv *pv = lvm_report_pv(report, path);

	if (!pv || !*pv->vg_uuid) {
		strv_add(&p->add_paths, path);
		if (pv)
			strv_add(&p->pv_paths, path);
	} else if (*group && !str_eq((*group)->vg_uuid, pv->vg_uuid)) {
		free(p->problem);
		p->problem = x_asprintf("its namespaces are in several volume groups: %s, %s",
			(*group)->vg_name, pv->vg_name);
	} else {
		*group = pv;
	}
}

static void plan_extension(
	const struct lvm_report *report, const struct lvm_pv *group, struct pool_vg_plan *p)
{
	const struct lvm_vg *vg = find_vg(report, group->vg_uuid);

	p->vg_name = x_strdup(group->vg_name);
	p->vg_uuid = x_strdup(group->vg_uuid);
	if (p->problem || !(p->add_paths || (vg && lvm_vg_is_withheld(vg))))
		return;
	if (count_named(report, group->vg_name) > 1)
		p->problem = x_asprintf("there are several volume groups called %s", group->vg_name);
	else if (vg)
		p->problem = lvm_vg_obstacle(vg);
}

static void plan_creation(const struct lvm_report *report, struct pool_vg_plan *p)
{
	p->vg_name = x_asprintf("%s%sfsdax", p->region->bus, p->region->name);
	p->vg_uuid = x_strdup("");
	p->create = p->add_paths != NULL;
	if (p->create && count_named(report, p->vg_name) > 0)
		p->problem = x_asprintf(
			"volume group %s exists on another region; rename it after that region (vgrename)",
			p->vg_name);
}

void pool_vg_plan_region(
	const struct nd_region *region, const struct lvm_report *report, struct pool_vg_plan *ret)
{
	struct pool_vg_plan p = {.region = region};
	const struct lvm_pv *group = NULL;

	for (size_t i = 0; i < region->n_namespaces; i++)
		if (nd_is_pool(&region->namespaces[i]))
			plan_path(region->namespaces[i].block_path, report, &group, &p);
	if (group)
		plan_extension(report, group, &p);
	else
		plan_creation(report, &p);
	*ret = p;
}

void pool_vg_plan_done(struct pool_vg_plan *p)
{
	free(p->vg_name);
	free(p->vg_uuid);
	strv_free(p->add_paths);
	strv_free(p->pv_paths);
	free(p->problem);
	*p = (struct pool_vg_plan){0};
}

static const struct nd_namespace *namespace_at(const struct nd_region *r, const char *path)
{
	for (size_t i = 0; i < r->n_namespaces; i++)
		if (str_eq(r->namespaces[i].block_path, path))
			return &r->namespaces[i];
	return NULL;
}

/* LVM itself takes devices out of groups by emptying their metadata area. Return: why not, caller frees; NULL
 * when the namespace may be grouped. */
char *pool_vg_refusal(const char *folder, const struct nd_region *region, const struct nd_namespace *ns)
{
	const struct nd_inventory just_this = {&(struct nd_region){.identity = region->identity,
						       .namespaces = (struct nd_namespace *)(uintptr_t)ns,
						       .n_namespaces = 1},
		1};
	const struct lvm_report in_no_group = {0};
	CLEANUP(pool_lost_pvs_done) struct pool_lost_pvs lost = {0};
	CLEANUP(pool_record_done) struct pool_record record = {0};
	CLEANUP(error_freep) struct error *err = NULL;

	if (!folder)
		return NULL;
	if (pool_backup_find(folder, region, ns, &record, &err) < 0)
		return x_asprintf(
			"%s; until that can be read, nothing new is created on %s", err->msg, ns->block_path);
	pool_lost_pvs_find(folder, &just_this, &in_no_group, &lost);
	return lost.n > 0 ? pool_lost_pv_text(&lost.list[0]) : NULL;
}

void pool_vg_examine(const char *folder, char *const *but, struct pool_vg_plan *plan)
{
	for (char **path = plan->add_paths; path && *path; path++) {
		const struct nd_namespace *ns = namespace_at(plan->region, *path);
		char *reason = NULL;

		if (ns && !strv_contains(but, ns->dev))
			reason = pool_vg_refusal(folder, plan->region, ns);
		if (!reason)
			continue;
		free(plan->problem);
		plan->problem = reason;
		return;
	}
}

/*
 * The text that describes volumes may still exist without the label. LVM also shows a device without a group
 * if its metadata area cannot be read, so that alone does not prove that it has none.
 */
static int check_area(const struct pool_vg_plan *plan, const char *path, struct error **err)
{
	bool is_pv = strv_contains(plan->pv_paths, path);
	struct lvm_metadata_areas area;

	if (lvm_metadata_area_read(path, &area, err) < 0)
		return err_wrap(err, "pool namespace %s", path);
	if (is_pv && area.first == LVM_AREA_EMPTY)
		return 0;
	if (!is_pv && area.first != LVM_AREA_USED && area.second != LVM_AREA_USED)
		return 0;
	return err_set(err, ERR_PRECONDITION,
		"pool namespace %s is in no volume group that LVM shows, but %s: its label or its metadata "
		"is damaged, and nothing new is created on it; the state folder (-statePath) has no record of "
		"its group, which \"pmem-vgm restore\" needs; pvck --dump metadata_search shows what can be "
		"restored by hand; if its volumes may be lost instead: lvm pvcreate -ff --yes --dataalignment 2m "
		"--pvmetadatacopies 2 %s",
		path,
		is_pv ? "has LVM's label without a metadata area that says it is free"
		      : "holds metadata of LVM",
		path);
}

/* LVM would wipe a signature, because its question is answered with yes. So a device with a signature is
 * refused here, unless LVM itself showed it as a PV without group. A damaged PV has LVM's signature and is
 * not shown. */
static int check_blank(const struct pool_vg_plan *plan, const char *path, struct error **err)
{
	CLEANUP(free_charp) char *type = NULL;

	if (strv_contains(plan->pv_paths, path))
		return 0;
	if (fs_probe(path, &type, err) < 0)
		return err_wrap(err, "pool namespace %s", path);
	if (*type)
		return err_set(err, ERR_PRECONDITION,
			"pool namespace %s holds %s; if that may be lost, remove it with wipefs", path, type);
	return 0;
}

static int check_name(struct lvm *l, const struct pool_vg_plan *plan, struct error **err)
{
	bool taken = false;

	if (!plan->create)
		return 0;
	if (lvm_group_exists(l, plan->vg_name, &taken, err) < 0)
		return -1;
	if (taken)
		return err_set(err, ERR_EXISTS, "a volume group %s exists that is not ours", plan->vg_name);
	return 0;
}

/* Make physical volumes of those namespaces that are not one yet. Until they are in a group nothing can be
 * lost. */
static int make_pvs(struct lvm *l, const struct pool_vg_plan *plan, struct error **err)
{
	const char *argv[LVM_WORDS_MAX + 1] = {
		"pvcreate", "-y", "--dataalignment", DATA_ALIGNMENT, "--pvmetadatacopies", METADATA_COPIES};
	size_t n_options = 6, n = n_options;

	for (char **path = plan->add_paths; *path; path++) {
		if (n == LVM_WORDS_MAX)
			return err_set(err, ERR_INTERNAL, "too many new namespaces for one command");
		if (!strv_contains(plan->pv_paths, *path))
			argv[n++] = *path;
	}
	return n == n_options ? 0 : STEP("lvm-pv", lvm_run(l, argv, NULL, err));
}

/* @grouped: they are in the group; otherwise they are going to be */
static int record_all(
	struct lvm *l, const char *folder, const struct pool_vg_plan *plan, bool grouped, struct error **err)
{
	CLEANUP(lvm_report_freep) struct lvm_report *report = NULL;

	if (lvm_list(l, &report, err) < 0)
		return -1;
	for (char **path = plan->add_paths; *path; path++) {
		const struct nd_namespace *ns = namespace_at(plan->region, *path);
		const struct lvm_pv *pv = lvm_report_pv(report, *path);

		if (!ns || !pv || !*pv->uuid || (grouped && !*pv->vg_uuid))
			return err_set(
				err, ERR_INTERNAL, "LVM does not show the physical volume on %s", *path);
		struct lvm_pv recorded = *pv;
		if (!grouped) {
			recorded.vg_name = plan->vg_name;
			recorded.vg_uuid = plan->vg_uuid;
		}
		if (pool_backup_record(folder, plan->region, ns, &recorded, err) < 0)
			return -1;
	}
	return 0;
}

static int make_group(struct lvm *l, const struct pool_vg_plan *plan, struct error **err)
{
	const char *argv[LVM_WORDS_MAX + 1] = {plan->create ? "vgcreate" : "vgextend", "-y", plan->vg_name};
	size_t n = 3;

	for (char **path = plan->add_paths; *path; path++)
		argv[n++] = *path;
	return STEP("lvm-group", lvm_run(l, argv, NULL, err));
}

int pool_vg_apply(struct lvm *l, const char *folder, const struct pool_vg_plan *plan, struct error **err)
{
	CLEANUP(error_freep) struct error *later = NULL;

	if (plan->problem)
		return err_set(err, ERR_PRECONDITION, "%s", plan->problem);
	if (!plan->add_paths)
		return 0;
	if (check_name(l, plan, err) < 0)
		return -1;
	for (char **path = plan->add_paths; *path; path++)
		if (check_area(plan, *path, err) < 0 || check_blank(plan, *path, err) < 0)
			return -1;
	if (make_pvs(l, plan, err) < 0 || record_all(l, folder, plan, /* grouped= */ false, err) < 0)
		return -1;
	STEP_POINT("group-recorded");
	if (make_group(l, plan, err) < 0)
		return -1;
	if (record_all(l, folder, plan, /* grouped= */ true, &later) < 0)
		log_warn("the record of a volume group lacks its UUID until pmem-vgm runs again",
			F_STR("group", plan->vg_name), F_ERR(later));
	return 0;
}

int pool_vg_activate(struct lvm *l, const struct lvm_report *report, struct error **err)
{
	CLEANUP(strv_freep) char **names = NULL;

	for (size_t i = 0; i < report->n_lvs; i++)
		if (!report->lvs[i].active && !strv_contains(names, report->lvs[i].vg_name))
			strv_add(&names, report->lvs[i].vg_name);
	return lvm_activate(l, names, err);
}
