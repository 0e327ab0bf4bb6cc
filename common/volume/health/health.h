/* SPDX-License-Identifier: Apache-2.0 */
/*
 * health.h - what is wrong with a volume: a list of statuses, empty if nothing is known to be wrong.
 *
 * Severities and reasons are those of CSI's volume health (csi.proto of CSI 1.13, VolumeHealth): a reason is
 * one word in CamelCase, and appears once. Messages say what is wrong, without amounts that change all the
 * time, since each change is reported to the controllers. Threads: one owner at a time.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/cleanup.h"
#include "pmem/health/media_errors.h"
#include "pmem/nd/nd_dimms.h"
#include "volume/phase.h"

/* In the order of how bad they are. */
enum health_severity {
	HEALTH_DEGRADED = 1, /* usable, with restrictions */
	HEALTH_INACCESSIBLE, /* not usable, while its content may be complete */
	HEALTH_DATA_LOSS     /* part of its content is lost */
};

/* How many statuses a volume has at most, and how long their texts may be; for what peers send. */
#define HEALTH_STATUSES_MAX 16
#define HEALTH_REASON_MAX   64
#define HEALTH_MESSAGE_MAX  512

#define HEALTH_MEDIA_ERROR    "MediaError"
#define HEALTH_DEVICE_MISSING "DeviceMissing"
#define HEALTH_STATE_DAMAGED  "StateDamaged"
#define HEALTH_FS_READONLY    "FileSystemReadOnly"
#define HEALTH_FS_FULL        "FileSystemFull"
#define HEALTH_FS_ERROR       "FileSystemError"
#define HEALTH_FS_SHUT_DOWN   "FileSystemShutDown"
#define HEALTH_FS_HANGS       "FileSystemHangs"
#define HEALTH_DIMM_LOST_DATA "DimmLostData"
#define HEALTH_DIRTY_SHUTDOWN "DirtyShutdown"
#define HEALTH_DIMM_DEGRADED  "DimmDegraded"
#define HEALTH_OTHER          "Other" /* of a later release */

/* The number of reasons that this release knows, without HEALTH_OTHER. */
#define HEALTH_REASONS 11

/** health_reason_at() - the reason with that number, below HEALTH_REASONS. */
const char *health_reason_at(size_t i);

/** health_reason_known() - @reason if this release knows it, otherwise HEALTH_OTHER. Static storage. */
const char *health_reason_known(const char *reason);

/** health_reason_text() - what @reason means, in words that are the same on all nodes. @reason: of
 * health_reason_known() */
const char *health_reason_text(const char *reason);

struct health_status {
	enum health_severity severity;
	char *reason;
	char *message;
};

/* All zero: nothing is wrong. */
struct volume_health {
	struct health_status *list;
	size_t n;
};

/** health_add() - append a status; all texts are copied. Without effect from HEALTH_STATUSES_MAX on. */
void health_add(struct volume_health *h, enum health_severity severity, const char *reason, const char *fmt,
	...) __attribute__((format(printf, 4, 5)));

/** health_add_media_errors() - append a status about what of a device cannot be read, if there is any. */
void health_add_media_errors(struct volume_health *h, const struct media_errors *e);

/** health_add_dimms() - append statuses about the memory modules below a device: one each for flags that mean
 * that content is lost, for dirty shutdowns, and for all other flags. @below: which of them are below it */
void health_add_dimms(struct volume_health *h, const struct dimms *d, const bool *below);

/** health_add_phase() - append the status of a volume in @phase, if it means that something is wrong. */
void health_add_phase(struct volume_health *h, enum volume_phase phase);

/** health_copy() - append copies of all statuses of @from to @to. */
void health_copy(struct volume_health *to, const struct volume_health *from);

/** health_done() - release what @h owns, which has no status then. */
void health_done(struct volume_health *h);

/** health_equal() - whether both say the same. */
bool health_equal(const struct volume_health *a, const struct volume_health *b);

/** health_find() - the status with @reason, borrowed; NULL: there is none. */
const struct health_status *health_find(const struct volume_health *h, const char *reason);

/** health_worst() - the first of the statuses with the highest severity, borrowed; NULL: there is none. */
const struct health_status *health_worst(const struct volume_health *h);

/** health_text() - all messages in one line, for people. Return: caller frees; "" for none. */
char *health_text(const struct volume_health *h);

/** health_severity_name() - "degraded", "inaccessible" or "data-loss". */
const char *health_severity_name(enum health_severity severity);

/* The health of one of several volumes. */
struct health_entry {
	char *id;
	struct volume_health health;
};

/* The health of several volumes, by their IDs. */
struct health_table {
	struct health_entry *list;
	size_t n;
};

/** health_table_add() - append an entry for @id (copied), unless nothing is wrong. @h: taken over, and empty
 * then */
void health_table_add(struct health_table *t, const char *id, struct volume_health *h);

/** health_table_sort() - bring the entries of @t into the order of their IDs. */
void health_table_sort(struct health_table *t);

/** health_table_done() - release what @t owns; safe on a zeroed one. */
void health_table_done(struct health_table *t);
