/* SPDX-License-Identifier: Apache-2.0 */
/*
 * claim_lookup.h - what the cluster says of a volume by its name, read live from the API.
 *
 * The PV is read by its name. If it does not exist, or is another volume, PVs of other names are looked for
 * that have the handle, and PVCs with the uid. The API finds neither by those, so all of them are listed,
 * PVCs metadata only, once for all lookups that wait. Threads: the loop's; nothing blocks.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "kube/client.h"

/* The state of the objects in the cluster that belong to a volume called `pvc-<uid>`. */
struct claim_state {
	bool has_volume;             /* there is a PV of that name */
	const char *handle;          /* of that PV, when it is our driver's; NULL otherwise */
	const char *const *node_ids; /* that it can be used on; NULL: not said by the driver's key */
	size_t n_node_ids;
	bool has_claim;     /* there is a PVC with that uid, in any namespace */
	bool is_referenced; /* a PV of our driver that has another name has the handle that was asked for */
};

/** @state is NULL if and only if @error is set; both are borrowed for the time of the call. */
typedef void (*claim_lookup_fn)(void *user, const struct claim_state *state, const struct error *error);

struct claim_lookup {
	/* Reads live, from the API and from no cache; @fn is called exactly once, never before this returned.
	 * @volume_name: "pvc-<uid>", borrowed for this call only, as is @handle, of the volume in question */
	void (*look)(void *self, const char *volume_name, const char *handle, claim_lookup_fn fn, void *user);
	void *self;
};

struct claim_reader;

/** claim_reader_new() - @driver_name: borrowed. Return: never NULL; claim_reader_free(). */
struct claim_reader *claim_reader_new(struct kube_client *client, const char *driver_name);

/** claim_reader_free() - lookups that run end with ERR_CANCELLED before this returns. Before
 * kube_client_free(). NULL is allowed. */
void claim_reader_free(struct claim_reader *c);
DEFINE_CLEANUP(struct claim_reader *, claim_reader_free);

/** claim_lookup_finds() - whether @volume_name is `pvc-<uid>`, as external-provisioner names volumes: the
 * claims of other volumes cannot be found. */
bool claim_lookup_finds(const char *volume_name);

/** claim_reader_lookup() - valid as long as @c. */
struct claim_lookup claim_reader_lookup(struct claim_reader *c);
