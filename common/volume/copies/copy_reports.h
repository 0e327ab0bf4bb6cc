/* SPDX-License-Identifier: Apache-2.0 */
/*
 * copy_reports.h - what is reported of copies: how far those are that are being made, and how long
 * the writers of a volume stood still for the last one. In memory only.
 *
 * A report that has changed goes to each controller and is written to the Kubernetes API, so what is shown of
 * a copy changes at most every ten seconds, and by a tenth of the copy at least: short copies show nothing.
 * Threads: one at a time, with the mutex of the records. Nothing blocks or reads a clock.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "base/clock.h"
#include "volume/report.h"

#define COPY_REPORT_NS (10 * NS_PER_S)

/* Number of volumes whose last pause is kept: those whose pauses ended last. */
#define COPY_PAUSES_MAX 64

/* A copy that is being made. */
struct copy_progress {
	LIST_ENTRY(copy_progress) all;
	const char *id; /* of the new volume; borrowed */
	uint64_t total_bytes;
	uint64_t shown_bytes; /* of these */
	uint64_t shown_ns;    /* when that was set; when the copy began, before it is shown */
	bool shown;
};

struct copy_pause {
	char *id; /* of the source */
	struct volume_pause pause;
};

/* Zeroed at first. */
struct copy_reports {
	LIST_HEAD(, copy_progress) under_way;
	struct copy_pause pauses[COPY_PAUSES_MAX]; /* in the order in which they ended */
	size_t n_pauses;
	uint64_t last_ended_ms;
};

/** copy_reports_done() - release what @c owns. */
void copy_reports_done(struct copy_reports *c);

/** copy_reports_begin() - the volume @id (borrowed, as @p, until copy_reports_end()) is being filled with
 * @total_bytes. @now_ns: of clock_ns(), as in copy_reports_advance() */
void copy_reports_begin(struct copy_reports *c, struct copy_progress *p, const char *id, uint64_t total_bytes,
	uint64_t now_ns);

/** copy_reports_advance() - @done_bytes of @p are done. Less than before is ignored. Return: whether another
 * report is due. */
bool copy_reports_advance(struct copy_progress *p, uint64_t done_bytes, uint64_t now_ns);

/** copy_reports_end() - @p is not being filled any more. */
void copy_reports_end(struct copy_progress *p);

/** copy_reports_pause() - the writers of the volume @id (copied) stood still for @ns until @now_ms, in
 * milliseconds since 1970. */
void copy_reports_pause(struct copy_reports *c, const char *id, uint64_t ns, uint64_t now_ms);

/** copy_reports_progress() - what is shown of the volume @id; all zero: nothing. */
struct volume_filling copy_reports_progress(const struct copy_reports *c, const char *id);

/** copy_reports_add_pauses() - set the last pause in those of @n reports, sorted by ID, that have one. */
void copy_reports_add_pauses(const struct copy_reports *c, struct volume_report *volumes, size_t n);
