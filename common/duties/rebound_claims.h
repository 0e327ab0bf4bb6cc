/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rebound_claims.h - the claims that are bound to a volume which was made for another claim.
 *
 * A volume is named after the claim that it is made for. Afterwards its PersistentVolume may be bound to
 * another claim: volume populators do that when they have filled it, and administrators by hand. Only a claim
 * with the phase Bound counts, since everyone may write the name of a volume into a claim. Threads: the
 * loop's; nothing blocks.
 */
#pragma once

#include "base/cleanup.h"
#include "kube/objects/objects.h"
#include "resources/pmem_volume.h"

struct rebound_claims;

/** Another claim may have the volume @volume_name now. */
typedef void (*rebound_claims_changed_fn)(void *user, const char *volume_name);

/** rebound_claims_new() - none are known. Return: never NULL; rebound_claims_free(). */
struct rebound_claims *rebound_claims_new(rebound_claims_changed_fn changed, void *user);
void rebound_claims_free(struct rebound_claims *r);
DEFINE_CLEANUP(struct rebound_claims *, rebound_claims_free);

/** rebound_claims_note() - the claim with @key is @claim now; NULL: it is gone. */
void rebound_claims_note(struct rebound_claims *r, const char *key, const struct kube_claim *claim);

/** rebound_claims_show() - let @v show the claim that its volume is bound to, if it was made for another one.
 * @r: NULL: none are known */
void rebound_claims_show(const struct rebound_claims *r, struct pmem_volume *v);
