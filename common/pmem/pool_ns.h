/*
 * pool_ns.h - the first stage: pool namespaces, one plan per region, and carrying it out (pmem-ns-init).
 *
 * A plan is a pure function of what nd_list() saw, so `plan` shows exactly what `create` would do. Budget of a
 * region: percent x size / 100 (multiplied first), less the raw sizes of its own pool namespaces, never below 0;
 * then clamped to the largest free extent and rounded down to the region's unit. Repeating adds nothing.
 */
#pragma once

#include "pmem/nd.h"

struct pool_ns_plan {
	const struct nd_region *region; /* borrowed from the inventory */
	bool skipped;			/* the region cannot be used at all; @reason says why */
	uint64_t unit_bytes;
	uint64_t budget_bytes; /* percent of the region */
	uint64_t own_bytes;    /* raw, in pool namespaces already */
	uint64_t create_bytes; /* 0: nothing to do */
	char *reason;	       /* why nothing, or why not more; NULL when the budget is used up by the plan */
};

/** pool_ns_plan_region() - the plan for one region. @percent: 0..100. @ret: pool_ns_plan_done(). Cannot fail. */
void pool_ns_plan_region(const struct nd_region *region, unsigned percent, struct pool_ns_plan *ret);
void pool_ns_plan_done(struct pool_ns_plan *p);

/**
 * pool_ns_apply() - create what @plan says.
 * @ret: the new namespace, or NULL when there was nothing to do; nd_namespace_free()
 * Return: 0, or -1 as nd_create().
 */
int pool_ns_apply(struct nd *nd, const struct pool_ns_plan *plan, struct nd_namespace **ret,
	struct error **err) MUST_CHECK;
