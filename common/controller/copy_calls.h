/* SPDX-License-Identifier: Apache-2.0 */
/*
 * copy_calls.h - one call to each node that has a copy of a volume: which nodes those are, and what their
 * failures come to.
 *
 * Threads: those of controller.h. Nothing blocks.
 */
#pragma once

#include "controller/controller_private.h"

/* Calls to the nodes that have copies of one volume. Lives in the caller's arena, as all that it points to.
 */
struct copy_calls {
	/* Set by the caller: */
	struct controller *controller;
	const struct waiter *waiter;
	const char *id;         /* of the volume */
	const char *participle; /* what a volume cannot be where this is refused: "expanded" */
	/* Whether the driver of @node serves the method. Return: 0, or -1 with ERR_UNIMPLEMENTED. */
	int (*require)(const struct node *node, struct error **err);
	const char *path; /* of the method */
	const ProtobufCMessage *request;
	const ProtobufCMessageDescriptor *reply_type;
	/* Takes the answer of a node that has done it; NULL: there is nothing in it. Return: 0, or -1: the
	 * answer is bad. */
	int (*take)(void *user, const char *node_id, const ProtobufCMessage *answer, struct error **err);
	/* Called exactly once. @failure: taken; NULL: all copies have done it. If several nodes fail, a
	 * failure that leaves the outcome open (e.g. DEADLINE_EXCEEDED) is returned in preference to a
	 * definite one: external-resizer must not request another size then */
	void (*end)(void *user, struct error *failure);
	void *user;

	/* Found by copy_calls_find(): */
	const char **targets; /* node IDs */
	size_t n_targets;

	/* Used by copy_calls.c only: */
	size_t next;
	size_t n_asking;
	bool any;              /* a node has done it */
	struct error *absent;  /* of a node that has no copy; NULL: none */
	struct error *failure; /* the one that matters most of others; NULL: none */
};

/**
 * copy_calls_find() - find the nodes that are to be asked, by their reports and the record of the volume.
 * @record: as it was read; nodes that report a copy are added to it; NULL: the volume has no record
 *
 * May be called again before copy_calls_begin(). Return: 0, or -1 with ERR_NOT_FOUND (no such volume, or a
 * snapshot), ERR_INVALID_ARGUMENT (an inline volume), ERR_ABORTED (it is being deleted), ERR_UNIMPLEMENTED (a
 * driver is too old), ERR_UNAVAILABLE (a node that may have a copy cannot be asked; not known yet).
 */
int copy_calls_find(struct copy_calls *calls, struct pmem_volume *record, struct error **err) MUST_CHECK;

/** copy_calls_begin() - ask the nodes that were found. end() may be called before this returns. */
void copy_calls_begin(struct copy_calls *calls);
