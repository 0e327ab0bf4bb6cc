/* SPDX-License-Identifier: Apache-2.0 */
/*
 * leftovers.h - finds volumes on nodes whose creation was reported to nobody, and deletes those that
 * certainly are such.
 *
 * A copy is left over when a reply got lost and nobody asked again. It is deleted when all of that holds: our
 * controller made it; it was never staged or published; its name is `pvc-<uid>`; no PV of any name has its
 * handle; and either the PV of that name is another volume (of a cache volume: does not list this node), or,
 * read twice at least five minutes apart, there is neither that PV nor a PVC of that uid, nor was there ever
 * such a PV as far as this controller has seen. A PV that has gone without a call to delete its volume was
 * removed by hand, or with all others when etcd was restored. Anything else that fits no PV is only reported,
 * once. Nothing is done about a name while a call for it is under way. Threads: the loop's; nothing blocks.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "controller/controller.h"

struct leftovers;

/* What the cluster says of `pvc-<uid>`. */
struct claim_state {
	bool has_volume;             /* there is a PV of that name */
	const char *handle;          /* of that PV, when it is our driver's; NULL otherwise */
	const char *const *node_ids; /* that it can be used on */
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

struct leftovers_observer {
	/* @error: NULL: it is deleted; otherwise deleting it failed and is tried again */
	void (*deleted)(void *user, const char *node_id, const char *volume_id, const struct error *error);
	/* No PV is this volume, but it may hold data. @why: what keeps it from being deleted */
	void (*kept)(void *user, const char *node_id, const char *volume_id, const char *why);
	void *user;
};

struct leftovers_config {
	struct controller *controller; /* borrowed, and its node table and caller */
	struct claim_lookup lookup;
	struct leftovers_observer observer;
};

/** leftovers_new() - Return: never NULL. leftovers_free(): answers that come later are ignored; before the
 * controller is freed. */
struct leftovers *leftovers_new(const struct leftovers_config *config);
void leftovers_free(struct leftovers *l);
DEFINE_CLEANUP(struct leftovers *, leftovers_free);

/** leftovers_tick() - look at what is due; to be called every few seconds by the one controller that leads.
 * @now_ns: the clock of the controller */
void leftovers_tick(struct leftovers *l, uint64_t now_ns);
