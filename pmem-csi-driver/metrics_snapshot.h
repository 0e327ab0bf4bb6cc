/* SPDX-License-Identifier: Apache-2.0 */
/*
 * metrics_snapshot.h - metrics whose values are in files. A worker thread reads the files into a sample, and
 * scrapes are answered from memory.
 *
 * Each scrape gets the previous sample and starts the next one, so what it gets is as old as the previous
 * scrape. While reading hangs, scrapes keep getting the previous sample. Threads: the loop's.
 */
#pragma once

#include "metrics_process.h"
#include "net/core/loop.h"
#include "net/core/workers.h"

struct metrics_snapshot {
	struct process_sample process;
	uint64_t regions_bytes; /* of all regions, ours or not; 0: not known */
};

struct sampler;

/** sampler_new() - make a sampler without a sample. @threads: borrowed; where files are read. @regions_path:
 * sysfs folder of the nvdimm bus, borrowed; NULL: none. Return: never NULL; sampler_free(). */
struct sampler *sampler_new(struct loop *loop, struct workers *threads, const char *regions_path);

/** sampler_free() - release @s; to be called when @threads have ended. NULL is allowed. */
void sampler_free(struct sampler *s);

/** sampler_get() - start reading the next sample, unless one is being read. Return: the previous sample,
 * borrowed. Never waits. */
const struct metrics_snapshot *sampler_get(struct sampler *s);

/** regions_bytes_read() - how large all regions in the sysfs folder @folder are together. Blocks on sysfs.
 * Return: 0, or -1 as dir_open(), file_read() and parse_u64(). */
int regions_bytes_read(const char *folder, uint64_t *ret_bytes, struct error **err) MUST_CHECK;
