#include "base/log.h"
#include "commands.h"
#include "pmem/pool_ns.h"
#include "pmem/pool_vg.h"

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
	for (size_t i = 0; i < p->n_sizes; i++) {
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
		log_warn("namespaces without a name are taken for foreign ones", F_ERR(unknown));
	*ret = TAKE_PTR(inv);
	return 0;
}

int cmd_create(struct nd *nd, struct lvm *lvm, unsigned percent, bool *ret_complete, struct error **err)
{
	CLEANUP(nd_inventory_freep) struct nd_inventory *inv = NULL;
	bool complete = true;

	if (inventory_read(nd, lvm, &inv, err) < 0)
		return -1;
	if (inv->n_regions == 0) {
		log_warn("there is no region of persistent memory");
		complete = false;
	}
	for (size_t i = 0; i < inv->n_regions; i++)
		complete = create_in(nd, &inv->regions[i], percent) && complete;
	*ret_complete = complete;
	return 0;
}
