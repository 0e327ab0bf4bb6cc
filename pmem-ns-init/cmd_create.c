/* SPDX-License-Identifier: Apache-2.0 */
#include "base/log.h"
#include "commands.h"
#include "os/process.h"
#include "pmem/pool/pool_ns.h"
#include "pmem/pool/pool_vg.h"

static void log_created(const struct nd_region *r, const struct nd_namespace *ns)
{
	log_info("created pool namespace", F_STR("region", r->name), F_STR("namespace", ns->dev),
		F_STR("device", ns->block_path), F_U64("rawBytes", ns->raw_bytes),
		F_U64("usableBytes", ns->usable_bytes));
}

static void log_skipped(const struct pool_ns_plan *p)
{
	LOG_AT(p->region->is_pmem ? LOG_WARN : LOG_INFO, "skipped region", F_STR("region", p->region->name),
		F_STR("reason", p->reason));
}

/* Return: whether all that was planned is there; later ones count on the places of earlier ones. */
static bool carry_out(struct nd *nd, const struct pool_ns_plan *p)
{
	for (size_t i = 0; i < p->n_sizes && !process_stop_signal(); i++) {
		CLEANUP(nd_namespace_freep) struct nd_namespace *ns = NULL;
		CLEANUP(error_freep) struct error *err = NULL;
		if (pool_ns_apply(nd, p, i, &ns, &err) < 0) {
			log_warn("pool namespace not created", F_STR("region", p->region->name),
				F_U64("rawBytes", p->sizes_bytes[i]), F_ERR(err));
			return false;
		}
		log_created(p->region, ns);
	}
	return true;
}

static bool create_in(struct nd *nd, const struct nd_region *r, unsigned percent)
{
	CLEANUP(pool_ns_plan_done) struct pool_ns_plan p = {0};

	pool_ns_plan_region(r, percent, &p);
	if (p.skipped) {
		log_skipped(&p);
		return !r->is_pmem;
	}
	if (p.n_sizes == 0)
		log_info("nothing to create", F_STR("region", r->name), F_U64("ownBytes", p.own_bytes),
			F_U64("budgetBytes", p.budget_bytes));
	if (p.reason)
		log_info("region is not used up to its budget", F_STR("region", r->name),
			F_STR("reason", p.reason));
	return carry_out(nd, &p);
}

int inventory_read(struct nd *nd, struct lvm *lvm, struct nd_inventory **ret, struct error **err)
{
	CLEANUP(nd_inventory_freep) struct nd_inventory *inv = NULL;
	CLEANUP(error_freep) struct error *unknown = NULL;

	if (nd_list(nd, &inv, err) < 0)
		return -1;
	if (pool_vg_claim(lvm, inv, &unknown) < 0)
		log_warn("namespaces without a name are treated as foreign", F_ERR(unknown));
	*ret = TAKE_PTR(inv);
	return 0;
}

/* Return: whether nothing is lost to what a creation that was cut off has left. */
static bool settle(struct nd *nd, const struct nd_region *r, const struct nd_namespace *ns, bool *ret_changed)
{
	CLEANUP(error_freep) struct error *err = NULL;
	enum pool_ns_outcome outcome;

	if (pool_ns_settle(nd, r, ns, &outcome, &err) < 0) {
		log_warn("an unfinished pool namespace can be neither used nor removed",
			F_STR("region", r->name), F_STR("namespace", ns->dev), F_ERR(err));
		return false;
	}
	*ret_changed = *ret_changed || outcome == POOL_NS_USED || outcome == POOL_NS_GIVEN_BACK;
	switch (outcome) {
	case POOL_NS_WHOLE:
		break;
	case POOL_NS_USED:
		log_info("enabled a pool namespace", F_STR("region", r->name), F_STR("namespace", ns->dev));
		break;
	case POOL_NS_GIVEN_BACK:
		log_info("removed a pool namespace whose creation was interrupted", F_STR("region", r->name),
			F_STR("namespace", ns->dev), F_U64("rawBytes", ns->raw_bytes));
		break;
	case POOL_NS_LEFT:
		log_warn("a pool namespace is not an active fsdax namespace, "
			 "but holds something and is left alone: its space is unused until it is "
			 "converted (pmem-ns-init -force convert) or destroyed (ndctl destroy-namespace)",
			F_STR("region", r->name), F_STR("namespace", ns->dev),
			F_U64("rawBytes", ns->raw_bytes));
		break;
	}
	return outcome != POOL_NS_LEFT;
}

static bool settle_all(struct nd *nd, const struct nd_inventory *inv, bool *ret_changed)
{
	bool complete = true;

	for (size_t i = 0; i < inv->n_regions; i++)
		for (size_t k = 0; k < inv->regions[i].n_namespaces && !process_stop_signal(); k++)
			complete =
				settle(nd, &inv->regions[i], &inv->regions[i].namespaces[k], ret_changed) &&
				complete;
	return complete;
}

int cmd_create(struct nd *nd, struct lvm *lvm, unsigned percent, bool *ret_complete, struct error **err)
{
	CLEANUP(nd_inventory_freep) struct nd_inventory *inv = NULL;
	bool changed = false;

	if (inventory_read(nd, lvm, &inv, err) < 0)
		return -1;
	bool complete = settle_all(nd, inv, &changed);
	if (changed) {
		nd_inventory_free(TAKE_PTR(inv));
		if (inventory_read(nd, lvm, &inv, err) < 0)
			return -1;
	}
	if (inv->n_regions == 0) {
		log_warn("there is no region of persistent memory");
		complete = false;
	}
	for (size_t i = 0; i < inv->n_regions && !process_stop_signal(); i++)
		complete = create_in(nd, &inv->regions[i], percent) && complete;
	*ret_complete = complete;
	return 0;
}
