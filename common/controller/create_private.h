/* SPDX-License-Identifier: Apache-2.0 */
/*
 * create_private.h - one CreateVolume at the controller: what is asked for, who could take it, and what nodes
 * have said so far. Lives in the call's arena. See controller.h for threads.
 */
#pragma once

#include "controller/controller_private.h"
#include "controller/placement.h"

/* Nodes whose reasons stand in the message when none can take the volume. */
#define CREATE_REASONS_MAX 3

struct create {
	struct controller *controller;
	struct waiter waiter;
	const Csi__V1__CreateVolumeRequest *request;
	Csi__V1__CreateVolumeResponse *reply;
	Csi__V1__CreateVolumeRequest forwarded; /* borrows from request */
	struct volume_key key;
	uint64_t required_bytes;
	bool sector;
	bool is_cache;
	size_t n_wanted; /* nodes; more than one only of cache volumes */

	struct candidate *candidates;
	size_t n_candidates;
	size_t n_dead;         /* nodes that could be, but are not live */
	const char *uncertain; /* one of those may have it; NULL: none; borrowed from request or arena */
	size_t n_doubtful;     /* asked */

	size_t n_asking;
	Csi__V1__Volume *volume; /* of the first node that has it */
	const char **made_on;    /* node IDs, n_wanted of them fit */
	size_t n_made;
	struct error *failure; /* the first that ends the search; NULL: none */
	char *reasons[CREATE_REASONS_MAX];
	size_t n_without_room;
	size_t n_out_of_range;
};

/** create_gather() - fill in the candidates. Return: 0, or -1 with ERR_UNAVAILABLE (not all that matter have
 * said what they have; a dead node may have the volume), ERR_EXHAUSTED (none is live). */
int create_gather(struct create *op, struct error **err) MUST_CHECK;

/** create_clean_up() - the volume was made: what other nodes began of it is deleted, as far as they are live.
 * The lock of @key is given back when they have answered. Returns before. */
void create_clean_up(struct create *op);
