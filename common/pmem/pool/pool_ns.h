/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pool_ns.h - the first stage: pool namespaces, one plan per region, and carrying it out (pmem-ns-init).
 *
 * A plan is a pure function of what nd_list() saw, so `plan` shows exactly what `create` would do. Budget of
 * a region: percent x size / 100 (multiplied first), less the raw sizes of its own pool namespaces, never
 * below 0. The rest goes to the largest free extent, then to the next one and so on, each part rounded down
 * to the region's unit and not smaller than the smallest pool namespace: so a repeat adds nothing, in a
 * fragmented region neither. Namespaces count as own by their name (or, having none, by their volume group),
 * so that a broken one is not made up for with a second one. Threads: safe. pool_ns_apply() blocks as
 * nd_create().
 */
#pragma once

#include "pmem/nd/nd.h"

struct pool_ns_plan {
	const struct nd_region *region; /* borrowed from the inventory */
	bool skipped;                   /* the region cannot be used at all; @reason says why */
	uint64_t unit_bytes;
	uint64_t budget_bytes; /* percent of the region */
	uint64_t own_bytes;    /* raw, in pool namespaces already */
	uint64_t *sizes_bytes; /* namespaces to create, largest first */
	size_t n_sizes;
	uint64_t create_bytes; /* their sum; 0: nothing to do */
	char *reason; /* why nothing, or why not more; NULL when the budget is used up, but for rounding */
};

/** pool_ns_plan_region() - the plan for one region. @percent: 0..100. @ret: pool_ns_plan_done(). Cannot fail.
 */
void pool_ns_plan_region(const struct nd_region *region, unsigned percent, struct pool_ns_plan *ret);
void pool_ns_plan_done(struct pool_ns_plan *p);

/**
 * pool_ns_lock() - keep other processes from planning and creating pool namespaces, from before nd_list() to
 * the last pool_ns_apply(): two plans of the same space would together exceed the budget. Waits up to 5
 * minutes.
 * @ret_fd: holds the lock until closed
 *
 * Return: 0, or -1 as host_lock().
 */
int pool_ns_lock(int *ret_fd, struct error **err) MUST_CHECK;

enum pool_ns_outcome {
	POOL_NS_WHOLE,      /* nothing was to be done */
	POOL_NS_USED,       /* it was enabled, and is a pool namespace now */
	POOL_NS_GIVEN_BACK, /* it was blank, and is gone */
	POOL_NS_LEFT,       /* it holds something, or is of another mode */
};

/**
 * pool_ns_settle() - end what a creation that was cut off has begun: use @ns or give its space back.
 * @ns: in the region @region of the last listing
 *
 * Only a namespace with the name of a pool namespace and a label is touched. It is enabled: with a page map
 * on the medium it is whole. One without, which holds nothing at its beginning nor where its data would begin
 * behind the map, was never used, and is destroyed. To be called under pool_ns_lock(). Idempotent. Return: 0,
 * or -1 with ERR_INTERNAL (the kernel does not enable or destroy it), ERR_UNAVAILABLE.
 */
int pool_ns_settle(struct nd *nd, const struct nd_region *region, const struct nd_namespace *ns,
	enum pool_ns_outcome *ret, struct error **err) MUST_CHECK;

/** pool_ns_min_bytes() - smallest pool namespace of a region whose unit is @unit_bytes. */
uint64_t pool_ns_min_bytes(uint64_t unit_bytes);

/**
 * pool_ns_apply() - create one of the namespaces that @plan says.
 * @i:   which, below n_sizes; in this order, since each is the largest that fits after those before it
 * @ret: the new namespace; nd_namespace_free()
 *
 * Not idempotent. Return: 0, or -1 as nd_create().
 */
int pool_ns_apply(struct nd *nd, const struct pool_ns_plan *plan, size_t i, struct nd_namespace **ret,
	struct error **err) MUST_CHECK;
