/* SPDX-License-Identifier: Apache-2.0 */
/*
 * prime_claims.h - the claims that volume populators make, to fill the volumes of others.
 *
 * A populator gives a claim its content through a second one, the prime claim: its name is "prime-", or
 * "tmp-pvc-" if it is to be a clone, and the UID of the first one. It has the size and the selected node of
 * the first one, and its PersistentVolume is bound to that when it is filled. Both get one volume, so that
 * only that of the prime claim is reserved. Anyone can make a claim of such a name in a namespace of their
 * own, so it counts only in the namespace of the first one, if that owns it, or if the same node was selected
 * for both: CDI's clones have no owner there. Source: CDI pkg/controller/populators (PVCPrimeName(),
 * createPVCPrime()) and pkg/controller/clone/planner.go; lib-volume-populator
 * populator-machinery/controller.go. Threads: one owner. Nothing blocks.
 */
#pragma once

#include "kube/informer.h"
#include "kube/objects/objects.h"

/** prime_claim_target() - UID of the claim whose volume @claim is to fill, if it has the name of a prime
 * claim. Return: borrowed from @claim; NULL: it has not. */
const char *prime_claim_target(const struct kube_claim *claim);

/** prime_claim_find() - the prime claim of @target, by two look-ups in @claims. Return: borrowed from
 * @claims; NULL: none. */
const struct kube_claim *prime_claim_find(const struct informer *claims, const struct kube_claim *target);
