/* SPDX-License-Identifier: Apache-2.0 */
/*
 * candidates.h - which nodes could make a volume, by what its caller admits and what nodes have said of
 * themselves. In which order they are asked: placement.h. Threads: the loop's; nothing blocks.
 */
#pragma once

#include "controller/controller_private.h"
#include "controller/placement.h"
#include "csi/controller_request.h"

/* The volume that is to be made; all borrowed. */
struct candidates_query {
	const struct controller *controller;
	struct arena *arena; /* of the call */
	const Csi__V1__CreateVolumeRequest *request;
	const struct volume_key *key;
	uint64_t required_bytes;
	bool sector;    /* for usage=FileIO */
	unsigned needs; /* params_needs_of() */
	bool is_cache;
	const struct pmem_volume *record;        /* NULL: none */
	const struct csi_source *source;         /* that is to be copied */
	const struct pmem_volume *source_record; /* its record, in which other handles may be; NULL: none */
};

struct candidates {
	struct candidate *list; /* of live nodes in service */
	size_t n;
	size_t n_dead;         /* nodes that could be, but are not live */
	size_t n_out;          /* nodes that could be, but are out of service */
	size_t n_silent;       /* nodes that could be, but are not waited for any more (inventory_waits.h) */
	size_t n_unable;       /* nodes that could be, but do not make volumes for Kata Containers */
	const char *uncertain; /* one of both may have the volume; NULL: none */
};

/** candidates_find() - the nodes that could make the volume of @q. A copy can be made only by nodes that
 * have its source, and by those that may have begun it. @ret: lives as long as the request and the arena of
 * @q. Return: 0, or -1 with ERR_UNAVAILABLE (not all that matter have said what they have; a dead node may
 * have the volume, or has its source; no volume may be made yet), ERR_EXHAUSTED (none is live, in service
 * and makes such volumes; the caller admits no node that has the source, or not the node where the volume was
 * in use), ERR_NOT_FOUND (there is no such
 * source). */
int candidates_find(const struct candidates_query *q, struct candidates *ret, struct error **err) MUST_CHECK;
