/*
 * repair_private.h - what the files of repair.h share.
 */
#pragma once

#include "volume/repair.h"
#include "volume/volumes_private.h"

struct repair {
	struct volumes *v;
	const char *id;
	struct repair_report *report;
};

/** repair_did() - report a change. */
void repair_did(struct repair *p, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/** repair_leave() - report what stays as it is. */
void repair_leave(struct repair *p, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/** repair_files() - the files of the volume that do not count. Return: whether one that counts, or none, is
 * left, so that one may go on. */
bool repair_files(struct repair *p, const struct state_content *content);

/** repair_adopt() - write a state file for the device without state, if there is one. */
void repair_adopt(struct repair *p);
