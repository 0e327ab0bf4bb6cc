/* SPDX-License-Identifier: Apache-2.0 */
/*
 * claim.h - for whom a volume was made, in Kubernetes' names: shown to people, and nothing depends on it.
 *
 * external-provisioner says it with --extra-create-metadata, kubelet says the pod where the CSIDriver object
 * has podInfoOnMount. Whoever calls may say anything: a name that Kubernetes would not take is left out.
 * Threads: none.
 */
#pragma once

#include <stdbool.h>

#include "base/strmap.h"

#define CLAIM_TEXT_MAX 317 /* bytes of claim_text(): a namespace, a slash and a name */

/* Of each pair both are known, or neither. */
struct volume_claim {
	char *namespace; /* of the PersistentVolumeClaim; NULL: not known */
	char *name;
	char *pv;            /* NULL: not known */
	char *pod_namespace; /* of the pod of an inline volume; NULL: not known */
	char *pod;
};

enum claim_part {
	CLAIM_PVC, /* the claim and its PersistentVolume */
	CLAIM_POD,
};

/** claim_read() - what @said, parameters or volume_context of a call, says of one part; the other stays
 * unknown. Keys that are missing and values that are no names are no failure. @ret: claim_done() */
void claim_read(const struct strmap *said, enum claim_part part, struct volume_claim *ret);

/** claim_add() - take over into @c what it lacks and @more says. Return: whether there was something. */
bool claim_add(struct volume_claim *c, const struct volume_claim *more);

/** claim_check() - drop what is no name, or half of a pair. */
void claim_check(struct volume_claim *c);

/** claim_copy() - a deep copy. @ret: claim_done() */
void claim_copy(const struct volume_claim *c, struct volume_claim *ret);

/** claim_text() - "namespace/name" of the claim, and claim_pod() of the pod. Return: caller frees; NULL: not
 * known. */
char *claim_text(const struct volume_claim *c);
char *claim_pod(const struct volume_claim *c);

/** claim_text_valid() - whether @text is what claim_text() may say. */
bool claim_text_valid(const char *text);

/** claim_done() - release what @c owns; safe on a zeroed one. */
void claim_done(struct volume_claim *c);
