/* SPDX-License-Identifier: Apache-2.0 */
#include "pmem/pool/pool_convert.h"

#include "base/mem.h"
#include "base/str.h"
#include "os/blockdev.h"
#include "os/fs.h"
#include "pmem/pool/pool_backup.h"
#include "pmem/pool/pool_vg.h"
#include "pmem/pool/raw_content.h"

static bool can_be_used(const struct nd_region *r)
{
	return r->is_pmem && r->enabled && !r->readonly;
}

/* Only the label of an inactive namespace says which mode it was to get; without a label that is unknown. */
static bool may_be_raw(const struct nd_namespace *ns)
{
	return !ns->active && (ns->mode == ND_RAW || str_eq(ns->name, POOL_NAMESPACE_NAME));
}

static bool is_of_interest(const struct nd_region *r, const struct nd_namespace *ns)
{
	if (!can_be_used(r) || nd_is_pool(ns))
		return false;
	return ns->bare || may_be_raw(ns) || (!r->has_labels && pool_vg_may_claim(ns));
}

static bool has_foreign_name(const struct nd_namespace *ns)
{
	return *ns->name && !str_eq(ns->name, POOL_NAMESPACE_NAME);
}

static void decide_bare(bool force, bool asked_for, struct convert_item *item)
{
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(free_charp) char *type = NULL;

	item->action = CONVERT_REFUSE;
	if (has_foreign_name(item->ns) && !force && !asked_for) {
		item->reason = x_strdup("it has been given a name");
	} else if (raw_content_check_unused(item->ns->block_path, &err) < 0) {
		item->reason = x_strdup(err->msg);
	} else if (raw_content_find(item->ns->block_path, &type, &err) < 0) {
		item->reason = x_strdup(err->msg);
		if (force && err->code == ERR_PRECONDITION)
			item->action = CONVERT_MAP;
	} else {
		item->action = force || !*type ? CONVERT_MAP : CONVERT_REFUSE;
		item->reason = *type ? x_asprintf("holds %s", type) : NULL;
	}
}

static void decide_fsdax(const struct lvm_report *report, struct convert_item *item)
{
	const struct lvm_pv *pv = lvm_report_pv(report, item->ns->block_path);
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(free_charp) char *type = NULL;

	item->action = CONVERT_LEAVE;
	if (pv && *pv->vg_uuid)
		item->reason = x_asprintf("fsdax, in volume group %s", pv->vg_name);
	else if (raw_content_check_unused(item->ns->block_path, &err) < 0 ||
		 fs_probe(item->ns->block_path, &type, &err) < 0)
		item->reason = x_asprintf("fsdax; %s", err->msg);
	else if (*type && !pv)
		item->reason = x_asprintf("fsdax, holds %s", type);
	else
		item->action = CONVERT_GROUP;
}

/* Without the label or the info block a probe recognises nothing, although volumes may still be there. */
static void heed_record(const char *folder, bool insisted, struct convert_item *item)
{
	char *refusal = NULL;

	if (item->action != CONVERT_MAP && item->action != CONVERT_GROUP)
		return;
	refusal = item->action == CONVERT_GROUP ? pool_vg_refusal(folder, item->region, item->ns)
						: raw_content_former_group(folder, item->region, item->ns);
	if (!refusal)
		return;
	free(item->reason);
	item->reason = refusal;
	item->action = insisted ? item->action : CONVERT_REFUSE;
}

/* Refuses to convert a raw namespace that may hide data behind its page map. This is checked after the record
 * of the volume group, whose message says more about such data. */
static void heed_hidden(struct convert_item *item)
{
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(free_charp) char *found = NULL;

	if (item->action != CONVERT_MAP || !raw_content_may_hide(item->region, item->ns))
		return;
	if (raw_content_find_hidden(item->ns->block_path, &found, &err) == 0 && !*found)
		return;
	item->action = CONVERT_REFUSE;
	item->reason = found ? x_asprintf("holds %s", found) : x_strdup(err->msg);
}

static void decide(const struct lvm_report *report, bool force, bool asked_for, struct convert_item *item)
{
	if (!item->ns->active) {
		bool leave = has_foreign_name(item->ns) && !force && !asked_for;
		item->action = leave ? CONVERT_LEAVE : CONVERT_ENABLE;
		item->reason = x_strdup("inactive: what it holds can be seen when it is enabled");
	} else if (item->ns->bare) {
		decide_bare(force, asked_for, item);
	} else {
		decide_fsdax(report, item);
	}
}

static void collect(const struct nd_inventory *inv, char *const *only, struct convert_plan *p)
{
	for (size_t i = 0; i < inv->n_regions; i++)
		for (size_t k = 0; k < inv->regions[i].n_namespaces; k++) {
			const struct nd_region *r = &inv->regions[i];
			const struct nd_namespace *ns = &r->namespaces[k];
			if (!is_of_interest(r, ns) || (only && !strv_contains(only, ns->dev)))
				continue;
			p->items = x_realloc(p->items, p->n + 1, sizeof(*p->items));
			p->items[p->n++] = (struct convert_item){.region = r, .ns = ns};
		}
}

/* A namespace that is already ours is not an error: the command may be repeated. */
static bool is_known(const struct nd_inventory *inv, const struct convert_plan *p, const char *dev)
{
	for (size_t i = 0; i < p->n; i++)
		if (str_eq(p->items[i].ns->dev, dev))
			return true;
	for (size_t i = 0; i < inv->n_regions; i++)
		for (size_t k = 0; k < inv->regions[i].n_namespaces; k++)
			if (str_eq(inv->regions[i].namespaces[k].dev, dev))
				return nd_is_pool(&inv->regions[i].namespaces[k]);
	return false;
}

static int list_fsdax(
	struct lvm *l, const struct convert_plan *p, struct lvm_report **ret, struct error **err)
{
	CLEANUP(strv_freep) char **paths = NULL;

	for (size_t i = 0; i < p->n; i++)
		if (pool_vg_may_claim(p->items[i].ns))
			strv_add(&paths, p->items[i].ns->block_path);
	lvm_set_devices(l, (const char *const *)paths, strv_len(paths));
	return lvm_list(l, ret, err);
}

int pool_convert_plan(struct lvm *l, const char *folder, const struct nd_inventory *inv, bool force,
	char *const *only, struct convert_plan *ret, struct error **err)
{
	CLEANUP(convert_plan_done) struct convert_plan p = {0};
	CLEANUP(lvm_report_freep) struct lvm_report *report = NULL;

	collect(inv, only, &p);
	for (char *const *dev = only; dev && *dev; dev++)
		if (!is_known(inv, &p, *dev))
			return err_set(err, ERR_NOT_FOUND,
				"%s cannot be converted: it does not exist, has another mode, or is in a "
				"region that cannot be used",
				*dev);
	if (list_fsdax(l, &p, &report, err) < 0)
		return -1;
	for (size_t i = 0; i < p.n; i++) {
		decide(report, force, only != NULL, &p.items[i]);
		heed_record(folder, force && only != NULL, &p.items[i]);
		if (!force)
			heed_hidden(&p.items[i]);
	}
	*ret = p;
	p = (struct convert_plan){0};
	return 0;
}

void convert_plan_done(struct convert_plan *p)
{
	for (size_t i = 0; i < p->n; i++)
		free(p->items[i].reason);
	free(p->items);
	*p = (struct convert_plan){0};
}

const char *convert_action_name(enum convert_action action)
{
	switch (action) {
	case CONVERT_REFUSE:
		return "refuse";
	case CONVERT_ENABLE:
		return "enable";
	case CONVERT_MAP:
		return "convert";
	case CONVERT_GROUP:
		return "group";
	case CONVERT_LEAVE:
		break;
	}
	return "leave";
}

static struct nd_region *find_region(struct nd_inventory *inv, const char *bus, const char *name)
{
	for (size_t i = 0; i < inv->n_regions; i++)
		if (str_eq(inv->regions[i].bus, bus) && str_eq(inv->regions[i].name, name))
			return &inv->regions[i];
	return NULL;
}

/* This makes namespaces without a name ours; from then on their group shows it. */
static void hand_over(struct nd_region *r, char *const *devs)
{
	for (size_t i = 0; i < r->n_namespaces; i++)
		if (pool_vg_may_claim(&r->namespaces[i]) && strv_contains(devs, r->namespaces[i].dev))
			r->namespaces[i].grouped = true;
}

int pool_convert_group(struct nd *nd, struct lvm *l, const char *folder, const char *bus, const char *region,
	char *const *devs, char **ret_vg, struct error **err)
{
	CLEANUP(nd_inventory_freep) struct nd_inventory *inv = NULL;
	CLEANUP(lvm_report_freep) struct lvm_report *report = NULL;
	CLEANUP(pool_vg_plan_done) struct pool_vg_plan plan = {0};
	CLEANUP(strv_freep) char **paths = NULL;

	if (nd_list(nd, &inv, err) < 0 || pool_vg_claim(l, inv, err) < 0)
		return -1;

	struct nd_region *r = find_region(inv, bus, region);
	if (!r)
		return err_set(err, ERR_NOT_FOUND, "no region %s on %s", region, bus);
	hand_over(r, devs);
	pool_vg_devices(inv, &paths);
	lvm_set_devices(l, (const char *const *)paths, strv_len(paths));
	if (lvm_list(l, &report, err) < 0)
		return err_wrap(err, "list volume groups");
	pool_vg_plan_region(r, report, &plan);
	pool_vg_examine(folder, devs, &plan);
	if (pool_vg_apply(l, folder, &plan, err) < 0)
		return -1;
	*ret_vg = plan.add_paths ? TAKE_PTR(plan.vg_name) : NULL;
	return 0;
}
