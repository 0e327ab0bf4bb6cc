/* SPDX-License-Identifier: Apache-2.0 */
/*
 * possible_owners.h - which nodes may own volumes although they have not registered: a delete whose way is
 * not known is only done when all of them have said so (docs/architecture/controller.md).
 *
 * Threads: the loop's; nothing blocks.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct possible_owners {
	/* Whether list() is complete; until then nothing can be concluded from it. */
	bool (*ready)(void *self);
	/* Node IDs besides those in the node table. @ret: borrowed until the next call. Return: how many. */
	size_t (*list)(void *self, const char *const **ret);
	/* Whether the cluster still has that node; true while that is not known. */
	bool (*exists)(void *self, const char *node_id);
	void *self;
};
