/* SPDX-License-Identifier: Apache-2.0 */
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "commands.h"
#include "os/process.h"
#include "pmem/pool/memory_advice.h"
#include "pmem/pool/pool_ns.h"
#include "pmem/pool/pool_vg.h"

static void log_created(const struct nd_region *r, const struct nd_namespace *ns)
{
	log_info("created pool namespace", F_STR("region", r->name), F_STR("namespace", ns->dev),
		F_STR("device", ns->block_path), F_U64("rawBytes", ns->raw_bytes),
		F_U64("usableBytes", ns->usable_bytes));
}

/* @advice: on this inventory; NULL: none could be given */
static void log_skipped(const struct pool_ns_plan *p, const struct memory_advices *advice)
{
	CLEANUP(free_charp) char *line = NULL;

	for (size_t i = 0; i < advice->n && !line; i++)
		if (advice->list[i].region == p->region && advice->list[i].action != MEMORY_NOTHING)
			line = memory_advice_line(&advice->list[i]);
	LOG_AT(p->region->is_pmem ? LOG_WARN : LOG_INFO, "skipped region", F_STR("region", p->region->name),
		F_STR("reason", p->reason), F_STR("advice", line ? line : ""));
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

static bool create_in(
	struct nd *nd, const struct nd_region *r, unsigned percent, const struct memory_advices *advice)
{
	CLEANUP(pool_ns_plan_done) struct pool_ns_plan p = {0};

	pool_ns_plan_region(r, percent, &p);
	if (p.skipped) {
		log_skipped(&p, advice);
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

static void init_labels(struct nd *nd, const char *folder, const struct memory_advice *a, bool *ret_changed)
{
	const struct nd_look look = {memory_look, folder, a->region};
	CLEANUP(error_freep) struct error *err = NULL;

	*ret_changed = true;
	if (nd_init_labels(nd, a->region, &look, &err) < 0)
		log_warn("labels not initialised", F_STR("region", a->region->name), F_ERR(err));
	else
		log_info("initialised blank label areas", F_STR("region", a->region->name),
			F_STR("memory", a->what));
}

static int convert(
	struct nd *nd, struct lvm *lvm, const struct create_options *o, char *const *devs, struct error **err)
{
	const struct convert_options convert = {
		.only = devs, .state_path = o->state_path, .folder = o->folder};
	bool complete = true;

	if (cmd_convert(nd, lvm, &convert, &complete, err) < 0)
		return -1;
	if (!complete)
		log_warn("not all memory without labels was converted");
	return 0;
}

/* Initialises labels and converts memory as the flags say. */
static int prepare(struct nd *nd, struct lvm *lvm, const struct create_options *o,
	const struct nd_inventory *inv, bool *ret_changed, struct error **err)
{
	CLEANUP(memory_advices_done) struct memory_advices advice = {0};
	CLEANUP(strv_freep) char **devs = NULL;

	if (memory_advise(nd, o->folder, inv, /* devices= */ NULL, &advice, err) < 0)
		return -1;
	for (size_t i = 0; i < advice.n && !process_stop_signal(); i++) {
		const struct memory_advice *a = &advice.list[i];
		if (a->action == MEMORY_INIT_LABELS && o->init_labels)
			init_labels(nd, o->folder, a, ret_changed);
		for (size_t k = 0; a->action == MEMORY_CONVERT && o->convert_unlabelled && a->namespaces[k];
			k++)
			strv_add(&devs, a->namespaces[k]);
	}
	if (!devs || process_stop_signal())
		return 0;
	*ret_changed = true;
	return convert(nd, lvm, o, devs, err);
}

static bool has_unlabelled(const struct nd_inventory *inv)
{
	for (size_t i = 0; i < inv->n_regions; i++)
		if (!inv->regions[i].has_labels || !inv->regions[i].enabled)
			return true;
	return false;
}

/* If memory cannot be examined, the log says less, and namespaces are created all the same. @ret: on @inv */
static void advise(
	struct nd *nd, const char *folder, const struct nd_inventory *inv, struct memory_advices *ret)
{
	CLEANUP(error_freep) struct error *err = NULL;

	if (has_unlabelled(inv) && memory_advise(nd, folder, inv, /* devices= */ NULL, ret, &err) < 0)
		log_warn("memory cannot be examined", F_ERR(err));
}

/* Finishes what earlier runs have left unfinished, and prepares memory. @inv: read again where that has
 * changed anything */
static int make_ready(struct nd *nd, struct lvm *lvm, const struct create_options *o,
	struct nd_inventory **inv, bool *ret_complete, struct error **err)
{
	bool changed = false;

	if (nd_settle_labels(nd, &changed, err) < 0)
		return -1;
	if (changed)
		log_info("enabled again what an interrupted initialisation of labels had disabled");
	if (inventory_read(nd, lvm, inv, err) < 0)
		return -1;
	changed = false;
	*ret_complete = settle_all(nd, *inv, &changed);
	if ((o->init_labels || o->convert_unlabelled) && has_unlabelled(*inv) &&
		prepare(nd, lvm, o, *inv, &changed, err) < 0)
		return -1;
	if (!changed)
		return 0;
	nd_inventory_free(TAKE_PTR(*inv));
	return inventory_read(nd, lvm, inv, err);
}

int cmd_create(struct nd *nd, struct lvm *lvm, const struct create_options *o, bool *ret_complete,
	struct error **err)
{
	CLEANUP(nd_inventory_freep) struct nd_inventory *inv = NULL;
	CLEANUP(memory_advices_done) struct memory_advices advice = {0};
	bool complete = true;

	if (make_ready(nd, lvm, o, &inv, &complete, err) < 0)
		return -1;
	if (inv->n_regions == 0) {
		log_warn("there is no region of persistent memory: pmem-ns-init advise says what there is");
		complete = false;
	}
	advise(nd, o->folder, inv, &advice);
	for (size_t i = 0; i < inv->n_regions && !process_stop_signal(); i++)
		complete = create_in(nd, &inv->regions[i], o->percent, &advice) && complete;
	*ret_complete = complete;
	return 0;
}
