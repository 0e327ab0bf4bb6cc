/* SPDX-License-Identifier: Apache-2.0 */
/*
 * metrics_process.h - metrics of this process, under the names that Prometheus' own libraries give them.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"

/* Values from /proc. */
struct process_sample {
	bool has_pages;
	uint64_t virtual_bytes;
	uint64_t resident_bytes;
	long descriptors; /* -1: not known */
};

/** process_sample_read() - read /proc/self: takes longer the more descriptors there are. Any thread. */
void process_sample_read(struct process_sample *ret);

/** metrics_process() - append all metrics; those that @sample does not have are left out. @started: seconds
 * since 1970. Never waits. */
void metrics_process(struct buf *out, double started, const struct process_sample *sample);
