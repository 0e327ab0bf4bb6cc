/* SPDX-License-Identifier: Apache-2.0 */
/*
 * metrics_sample.h - what metrics take from files: read on a thread where that may take its time, told from
 * memory.
 *
 * A sample is started when one is told, and told by the next one who asks: so it is as old as the last
 * scrape. While a sample is stuck, the one before stays. Threads: the loop's.
 */
#pragma once

#include "metrics_process.h"
#include "net/core/loop.h"
#include "net/core/workers.h"

struct metrics_sample {
	struct process_sample process;
	uint64_t regions_bytes; /* of all regions, ours or not; 0: not known */
};

struct sampler;

/** sampler_new() - all unknown. @threads: borrowed; where files are read. @regions_path: sysfs folder of the
 * nvdimm bus, borrowed; NULL: none. Return: never NULL; sampler_free(). */
struct sampler *sampler_new(struct loop *loop, struct workers *threads, const char *regions_path);

/** sampler_free() - when @threads have ended. NULL is allowed. */
void sampler_free(struct sampler *s);

/** sampler_get() - the last sample, borrowed; start another one. Never waits. */
const struct metrics_sample *sampler_get(struct sampler *s);

/** regions_bytes_read() - how large all regions in the sysfs folder @folder are together. Blocks on sysfs.
 * Return: 0, or -1 as dir_open(), file_read() and parse_u64(). */
int regions_bytes_read(const char *folder, uint64_t *ret_bytes, struct error **err) MUST_CHECK;
