/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nd_fake.h - an nd.h of regions in memory, for tests: honours sizes, alignment, extents and label slots.
 */
#pragma once

#include "pmem/nd/nd.h"

struct nd_fake_region {
	uint64_t size_bytes;
	uint64_t align_bytes; /* 0: the region does not have it; sizes are then bound to 16 MiB as on x86 */
	unsigned ways;        /* 0 is 1 */
	unsigned label_slots; /* 0: without labels */
	bool blank_labels;    /* its label slots can be used once they are initialised */
	enum nd_memory_kind kind; /* of one without label slots; 0: ND_MEMORY_NO_LABELS */
	bool new_labels;          /* 1.2 or later: BTT 2.0 */
	bool disabled;
	bool readonly;
	bool not_pmem;
};

/** Steps of nd_convert(). */
enum nd_fake_step { ND_FAKE_DISABLED = 1, ND_FAKE_NAMED, ND_FAKE_MAPPED };

/** nd_open_fake() - a fake with @n regions "region0".. on bus "ndbus0". Return: never NULL; nd_close(). */
struct nd *nd_open_fake(const struct nd_fake_region *regions, size_t n);

/** nd_fake_add() - put a foreign or own namespace at @offset_bytes of region number @region. */
void nd_fake_add(struct nd *nd, size_t region, const char *name, enum nd_mode mode, uint64_t offset_bytes,
	uint64_t size_bytes);

/** nd_fake_disable() - take the device of the own or foreign namespace at @offset_bytes away. */
void nd_fake_disable(struct nd *nd, size_t region, uint64_t offset_bytes);

/** nd_fake_enable_region() - take region number @region away, or give it back. */
void nd_fake_enable_region(struct nd *nd, size_t region, bool enabled);

/** nd_fake_fail() - the next create or convert fails with @code after its side effects would have begun. */
void nd_fake_fail(struct nd *nd, enum err_code code);

/** nd_fake_legacy() - what fsdax is at @offset_bytes has its page map in RAM. */
void nd_fake_legacy(struct nd *nd, size_t region, uint64_t offset_bytes);

/** nd_fake_block() - the block device of the namespace at @offset_bytes is really @path. */
void nd_fake_block(struct nd *nd, size_t region, uint64_t offset_bytes, const char *path);

/** nd_fake_stop() - the next conversion ends behind @step as if the process had been killed there. */
void nd_fake_stop(struct nd *nd, enum nd_fake_step step);
