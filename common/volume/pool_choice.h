/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pool_choice.h - finds the pools in which a new volume can be created, best first. Pure: works on the last
 * listing of pools. Threads: safe.
 */
#pragma once

#include "pmem/device/device.h"
#include "volume/durability/region_durability.h"
#include "volume/failing_pools.h"
#include "volume/volumes.h"

struct pool_request {
	uint64_t required_bytes;
	uint64_t limit_bytes; /* 0: none */
	bool sector;          /* for usage=FileIO */
	bool sync;            /* it needs MAP_SYNC */
};

struct pool_candidate {
	char *uuid;
	bool avoided;           /* creating a device there has failed recently */
	uint64_t granted_bytes; /* as device_fit() returns it */
	uint64_t max_volume_bytes;
};

struct pool_choice {
	struct pool_candidate *list;
	size_t n;
	uint64_t max_volume_bytes; /* over all complete pools */
	bool over_limit;           /* the volume fits into a pool, but its rounded size exceeds the limit */
	char no_sync[96];          /* a pool in which it would fit, if it did not need MAP_SYNC; or "" */
	char used_up[192]; /* what has run out in a pool with free space, such as "label slot in region0"; or
			      "" */
};

/** pool_min_bytes() - the size of the smallest volume with a file system @fs_type, and an image for Kata
 * Containers in it (@image). */
uint64_t pool_min_bytes(const char *fs_type, bool image);

/** pool_required_bytes() - get the smallest size that satisfies @q: its file system may need more than was
 * requested, and more with an image for Kata Containers (@image) in it. Return: 0, or -1 with ERR_RANGE
 * (above limit_bytes). */
int pool_required_bytes(
	const struct volume_request *q, bool image, uint64_t *ret, struct error **err) MUST_CHECK;

/**
 * pool_choice_find() - find the pools of @seen that have room for the volume, in the order of best_fit.h;
 * pools that are avoided come last.
 * @failing: the pools that are avoided at @now_ns
 * @known:   what is known of the regions of pools
 * @ret:     pool_choice_done()
 */
void pool_choice_find(const struct device_manager *devices, const struct device_list *seen,
	const struct failing_pools *failing, const struct region_durabilities *known, uint64_t now_ns,
	const struct pool_request *q, struct pool_choice *ret);

/** pool_choice_require() - fail if there is no candidate. @required_bytes: for the message. Return: 0, or -1
 * with ERR_RANGE (its rounded size exceeds the limit), ERR_EXHAUSTED. */
int pool_choice_require(const struct pool_choice *c, uint64_t required_bytes, struct error **err) MUST_CHECK;

/** pool_choice_done() - release what @c owns; safe on a zeroed one. */
void pool_choice_done(struct pool_choice *c);
