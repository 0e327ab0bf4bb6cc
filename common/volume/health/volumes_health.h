/* SPDX-License-Identifier: Apache-2.0 */
/*
 * volumes_health.h - the health of the volumes of a node: media errors, file systems that failed, and what
 * memory modules report.
 *
 * A look finds what is wrong and keeps it in memory, from where reports and calls take it. Problems that are
 * known from the records and the device view, such as missing devices, are added when the health is read.
 * Threads: safe; one look at a time.
 */
#pragma once

#include "base/error.h"
#include "volume/health/health.h"

struct volumes;

/**
 * volumes_look_at_health() - look at all volumes that are ready and whose device was seen last.
 *
 * A problem that cannot be checked does not count as over, such as errors of a file system that is not
 * mounted. Problems that begin or end are logged and reported (volumes_config.changed). Waits at most 1 s for
 * each file system that hangs, of which there are at most 8, and for no device. Return: 0, or -1 with
 * ERR_UNAVAILABLE (not ready), or as mount_table_read(): what was known stays; or as device_media_errors():
 * media errors that were known stay where they cannot be found, and everything else is looked at.
 */
int volumes_look_at_health(struct volumes *v, struct error **err) MUST_CHECK;

/** volumes_health() - get what is known to be wrong with the volume @handle. Never waits. Return: 0, or -1
 * with ERR_NOT_FOUND. @ret: health_done(). */
int volumes_health(
	struct volumes *v, const char *handle, struct volume_health *ret, struct error **err) MUST_CHECK;

/** volumes_list_unhealthy() - list the volumes with which something is known to be wrong. Never waits. @ret:
 * health_table_done() */
void volumes_list_unhealthy(struct volumes *v, struct health_table *ret);

/** volumes_list_dimms() - the memory modules of the node as the last look has seen them, also those below no
 * volume. Never waits. @ret: dimms_done() */
void volumes_list_dimms(struct volumes *v, struct dimms *ret);

/* How many volumes have a status with that reason. */
struct health_count {
	const char *reason;
	size_t n;
};

/** volumes_count_health() - count the volumes of each reason, also of those of which there is none. Never
 * waits.
 */
void volumes_count_health(struct volumes *v, struct health_count ret[static HEALTH_REASONS]);
