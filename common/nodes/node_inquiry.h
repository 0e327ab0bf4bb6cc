/* SPDX-License-Identifier: Apache-2.0 */
/*
 * node_inquiry.h - asks a node for what a Go driver does not report: its volumes, page by page, and its
 * capacity.
 *
 * VolumeContext has the name that a volume was made for: as "name" from release 0.7 on, as "Name" before.
 * Threads: the loop's.
 */
#pragma once

#include "nodes/node_caller.h"

/** @report is the one that was given, with region and inventory filled in, and taken by the callee; NULL if
 * and only if @error (borrowed) is set. */
typedef void (*node_inquiry_fn)(void *user, struct node_report *report, const struct error *error);

/** node_inquire() - ask the node of @report (taken) at its endpoint. @fn: called once, never before this
 * returned; errors are those of the calls, or ERR_INVALID_ARGUMENT for an answer that cannot be. */
void node_inquire(const struct node_caller *caller, struct node_report *report, uint64_t timeout_ms,
	node_inquiry_fn fn, void *user);
