/* SPDX-License-Identifier: Apache-2.0 */
/*
 * prometheus.h - writes metrics in Prometheus' text format 0.0.4 into a buf.
 *
 * A family is announced once by prometheus_family(), and its samples follow directly. Names of metrics and
 * labels are given by the caller and not checked. Values of labels may be any text; bytes that are not UTF-8
 * are left to the reader. Nothing here fails: callers check the limit of the buf at the end. Threads: one
 * owner at a time. Source: prometheus.io/docs/instrumenting/exposition_formats.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

#define PROMETHEUS_CONTENT_TYPE "text/plain; version=0.0.4; charset=utf-8"

enum prometheus_type { PROMETHEUS_GAUGE, PROMETHEUS_COUNTER, PROMETHEUS_HISTOGRAM };

/* Arrays of labels end with an entry whose name is NULL. */
struct prometheus_label {
	const char *name;
	const char *value;
};

#define PROMETHEUS_MAX_BUCKETS 24

struct prometheus_histogram {
	const double *bounds; /* upper ones, inclusive, rising; +Inf is not among them. Borrowed */
	size_t n_bounds;      /* at most PROMETHEUS_MAX_BUCKETS */
	uint64_t counts[PROMETHEUS_MAX_BUCKETS + 1]; /* of each bucket alone; the last one ends at +Inf */
	double sum;
};

/** prometheus_family() - HELP and TYPE lines. @help: one sentence. */
void prometheus_family(struct buf *out, const char *name, enum prometheus_type type, const char *help);

/** prometheus_sample() - one value. @labels: NULL: none. */
void prometheus_sample(
	struct buf *out, const char *name, const struct prometheus_label *labels, double value);

/** prometheus_observe() - count @value in @h. */
void prometheus_observe(struct prometheus_histogram *h, double value);

/** prometheus_sample_histogram() - all buckets, sum and count. @labels: without "le"; NULL: none. */
void prometheus_sample_histogram(struct buf *out, const char *name, const struct prometheus_label *labels,
	const struct prometheus_histogram *h);
