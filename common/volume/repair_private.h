/* SPDX-License-Identifier: Apache-2.0 */
/*
 * repair_private.h - what the files of repair.h share.
 */
#pragma once

#include "volume/repair.h"
#include "volume/volumes_private.h"

struct repair {
	struct volumes *v;
	const char *id;
	bool block; /* what is adopted is a block volume */
	struct repair_report *report;
};

/** repair_did() - report a change. */
void repair_did(struct repair *p, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/** repair_leave() - report what stays as it is. */
void repair_leave(struct repair *p, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/** repair_is_about() - whether @problem is one of the volume. */
bool repair_is_about(const struct repair *p, const struct state_problem *problem);

/** repair_files() - the files of the volume that do not count. Return: whether one that counts, or none, is
 * left, so that one may go on. */
bool repair_files(struct repair *p, const struct state_content *content);

/** repair_has_device() - whether there is a device of that name. */
bool repair_has_device(const struct repair *p);

/** repair_can_adopt() - whether repair_adopt() would write a state file now; if not, the report says why.
 * Changes nothing, but for activating the device. */
bool repair_can_adopt(struct repair *p);

/** repair_adopt() - write a state file for the device without state. */
void repair_adopt(struct repair *p);
