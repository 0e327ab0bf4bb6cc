/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pool_ns.h - the first stage: plans the pool namespaces of each region, and creates them (pmem-ns-init).
 *
 * A plan is a pure function of an inventory of nd_list(), so `plan` shows exactly what `create` would do.
 * Budget of a region: percent x size / 100 (multiplied first), less the raw sizes of its own pool namespaces,
 * never below 0. The rest goes to the largest free extent, then to the next one and so on, each part rounded
 * down to the region's unit and not smaller than the smallest pool namespace: so running it again adds
 * nothing, not even in a fragmented region. Namespaces are recognised as ours by their name, or without one
 * by their volume group, so that a broken one is not replaced by a second one. Threads: safe. pool_ns_apply()
 * blocks as nd_create().
 */
#pragma once

#include "pmem/nd/nd.h"

struct pool_ns_plan {
	const struct nd_region *region; /* borrowed from the inventory */
	bool skipped;                   /* the region cannot be used at all; @reason says why */
	uint64_t unit_bytes;
	uint64_t budget_bytes; /* percent of the region */
	uint64_t own_bytes;    /* raw bytes in existing pool namespaces */
	uint64_t *sizes_bytes; /* namespaces to create, largest first */
	size_t n_sizes;
	uint64_t create_bytes; /* the sum of their sizes; 0: nothing to do */
	char *reason; /* why nothing, or nothing more, is created; NULL when the budget is used up, except for
			 rounding */
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
	POOL_NS_WHOLE,      /* nothing had to be done */
	POOL_NS_USED,       /* it was enabled, and is now a pool namespace */
	POOL_NS_GIVEN_BACK, /* it was blank, and was destroyed */
	POOL_NS_LEFT,       /* it has content or another mode, and is left alone */
};

/**
 * pool_ns_settle() - finish or undo a creation that was interrupted: use @ns or free its space.
 * @ns: in the region @region of the last listing
 *
 * Only a namespace with the name of a pool namespace and a label is touched. It is enabled: with a page map
 * on the medium it is complete. One without a page map that is empty at its beginning, and where its data
 * would begin after the map, was never used and is destroyed. To be called under pool_ns_lock(). Idempotent.
 * Return: 0, or -1 with ERR_INTERNAL (the kernel does not enable or destroy it), ERR_UNAVAILABLE.
 */
int pool_ns_settle(struct nd *nd, const struct nd_region *region, const struct nd_namespace *ns,
	enum pool_ns_outcome *ret, struct error **err) MUST_CHECK;

/**
 * pool_ns_apply() - create one of the namespaces of @plan.
 * @i:   the index, below n_sizes; to be created in this order, since each is the largest that fits after the
 *       previous ones
 * @ret: the new namespace; nd_namespace_free()
 *
 * Not idempotent. Return: 0, or -1 as nd_create().
 */
int pool_ns_apply(struct nd *nd, const struct pool_ns_plan *plan, size_t i, struct nd_namespace **ret,
	struct error **err) MUST_CHECK;
