/* SPDX-License-Identifier: Apache-2.0 */
/*
 * repair.h - repairs of what check.h finds, one volume at a time, at an administrator's request.
 *
 * Needs the lock of the state folder, so no driver may be running. Each step is durable before the next one
 * begins and makes nothing worse, so that a repair that was interrupted can be repeated; a repair that has
 * nothing to do changes nothing. A device or file that does not provably belong to the driver is never
 * changed: such a step is omitted, and the report says why. Threads: none. Blocks on devices, and on erasing
 * where a deletion is finished.
 */
#pragma once

#include "base/error.h"
#include "inspect/adopted_kind.h"

struct volumes;

struct repair_report {
	char **done; /* changes, in the order in which they were made: strv */
	char **left; /* what was not repaired, and why: strv */
};

/**
 * volumes_repair() - repair those differences of one volume that can be repaired safely.
 * @v:     new, not started: it is loaded here
 * @id:    of a volume or device, or the name of a damaged state file without its suffix
 * @kind:  for a device that has no state file, or had none when it was repaired before
 * @ret:   repair_report_done()
 *
 * First, temporary files and further files of the volume beside the one that is used are removed, and damaged
 * files are renamed. Then, depending on the record: an unfinished creation is undone, an unfinished deletion
 * is finished, and the record of a volume whose device is provably gone is removed. Otherwise the device is
 * activated, and its actual size, pool, staging path and targets are recorded. A device without a state file
 * gets one and keeps its content: it is never formatted. If its content does not show of which kind it is, it
 * gets none until @kind names one. If that is not possible, for instance because the device is in use, its
 * damaged file is not renamed. A device whose name does not have the form of our IDs is foreign and gets
 * none. If there is neither a volume nor a device with that ID, this is reported as not repaired. Return: 0,
 * or -1 as volumes_load(): nothing was changed.
 */
int volumes_repair(struct volumes *v, const char *id, enum adopted_kind kind, struct repair_report *ret,
	struct error **err) MUST_CHECK;

/**
 * volumes_drop_state() - remove the state of a volume whose device is foreign, or not available for whatever
 * reason.
 * @v:   new, not started: it is loaded here
 * @id:  of a volume
 * @ret: repair_report_done()
 *
 * Return: 0, or -1 as volumes_load(): nothing was changed.
 */
int volumes_drop_state(
	struct volumes *v, const char *id, struct repair_report *ret, struct error **err) MUST_CHECK;

/** repair_report_done() - release what @r owns; safe on a zeroed one. */
void repair_report_done(struct repair_report *r);
