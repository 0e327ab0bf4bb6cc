/* SPDX-License-Identifier: Apache-2.0 */
/*
 * prime_claims.h - the claims that volume populators make, to fill the volumes of others.
 *
 * A populator gives a claim its content through a second one, the prime claim: it is called "prime-", or
 * "tmp-pvc-" if it is to be a clone, and the UID of the first one, has its size and selected node, and its
 * PersistentVolume is bound to the first claim when it is filled. Both get one volume, so that only that of
 * the prime claim is reserved. Anyone can make a claim of such a name: it counts if the claim in its
 * namespace owns it, or if the same node was selected for both, so that it keeps no pod from a node. Source:
 * CDI pkg/controller/populators (PVCPrimeName(), createPVCPrime()) and pkg/controller/clone/planner.go;
 * lib-volume-populator populator-machinery/controller.go. Threads: one owner. Nothing blocks.
 */
#pragma once

#include "base/cleanup.h"
#include "kube/informer.h"
#include "kube/objects/objects.h"

struct prime_claims;

/** prime_claims_new() - none are known. Return: never NULL; prime_claims_free(). */
struct prime_claims *prime_claims_new(void);
void prime_claims_free(struct prime_claims *p);
DEFINE_CLEANUP(struct prime_claims *, prime_claims_free);

/** prime_claims_target() - UID of the claim whose volume @claim is to fill, if it has the name of a prime
 * claim. Return: borrowed from @claim; NULL: it has not. */
const char *prime_claims_target(const struct kube_claim *claim);

/** prime_claims_note() - the claim with @key is @claim now; NULL: it is gone. */
void prime_claims_note(struct prime_claims *p, const char *key, const struct kube_claim *claim);

/** prime_claims_of() - the prime claim of @target among the @claims, all of which were noted. Return:
 * borrowed from @claims; NULL: none. */
const struct kube_claim *prime_claims_of(
	const struct prime_claims *p, const struct informer *claims, const struct kube_claim *target);
