/* SPDX-License-Identifier: Apache-2.0 */
/*
 * repair.h - the ways out of what check.h finds, one volume at a time, by an administrator's word.
 *
 * Needs the state folder for itself: a driver that runs is in the way. Each step is durable before the next
 * begins and leaves nothing worse than it was, so that a repair that was cut off is simply repeated; one that
 * has nothing to do changes nothing. What is not provably ours is never touched: such a step is left undone,
 * and the report says why. Threads: none. Blocks on devices, and on erasing where a deletion is finished.
 */
#pragma once

#include <stdbool.h>

#include "base/error.h"

struct volumes;

struct repair_report {
	char **done; /* what was changed, in this order: strv */
	char **left; /* what was not, and why: strv */
};

/**
 * volumes_repair() - do what is safe about every difference of one volume.
 * @v:     new, not started: it is loaded here
 * @id:    of a volume or device, or the name of a damaged state file without its suffix
 * @block: a device without state, or that had none when it was repaired before, is a block volume
 * @ret:   repair_report_done()
 *
 * Files: temporaries and files beside the one that counts are removed, damaged ones set aside. Then, by what
 * is recorded: an unfinished creation is undone, an unfinished deletion finished, a volume whose device is
 * provably gone forgotten; otherwise its device is activated and its size, pool, staging and targets are
 * recorded as they are. A device without state gets a state file and keeps its content: no file system is
 * ever made on it. Where that cannot be done, for instance because it is in use, its damaged file stays where
 * it is. An ID of which there is nothing is reported as not repaired. Return: 0, or -1 as volumes_load():
 * nothing was changed.
 */
int volumes_repair(struct volumes *v, const char *id, bool block, struct repair_report *ret,
	struct error **err) MUST_CHECK;

/**
 * volumes_forget() - drop the state of a volume whose device is not there, whatever the reason.
 * @v:   new, not started: it is loaded here
 * @id:  of a volume
 * @ret: repair_report_done()
 *
 * Return: 0, or -1 as volumes_load(): nothing was changed.
 */
int volumes_forget(
	struct volumes *v, const char *id, struct repair_report *ret, struct error **err) MUST_CHECK;

/** repair_report_done() - release what @r owns; safe on a zeroed one. */
void repair_report_done(struct repair_report *r);
