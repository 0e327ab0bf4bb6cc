/* SPDX-License-Identifier: Apache-2.0 */
/*
 * claim.h - the claim or pod for which a volume was created, by its names in Kubernetes: shown to people;
 * nothing depends on it.
 *
 * external-provisioner sends the claim if it has --extra-create-metadata, and kubelet sends the pod if the
 * CSIDriver object has podInfoOnMount. Callers can send anything: a name that is not valid in Kubernetes is
 * left out. Threads: none.
 */
#pragma once

#include <stdbool.h>

#include "base/json/json.h"
#include "base/strmap.h"

/* The UID of the pod, in the volume_context of NodePublishVolume; no part of what is kept. */
#define CLAIM_POD_UID "csi.storage.k8s.io/pod.uid"

/* A namespace and the name with it are both known, or neither of them is. */
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

/** claim_read() - read one part from @said, the parameters or volume_context of a call; the other part stays
 * unknown. Missing keys and values that are not valid names are ignored. @ret: claim_done() */
void claim_read(const struct strmap *said, enum claim_part part, struct volume_claim *ret);

/** claim_add() - copy from @more to @c what @c does not have. Return: whether anything was copied. */
bool claim_add(struct volume_claim *c, const struct volume_claim *more);

/** claim_check() - drop what is not a valid name, and a name or namespace without the other. */
void claim_check(struct volume_claim *c);

/** claim_copy() - a deep copy. @ret: claim_done() */
void claim_copy(const struct volume_claim *c, struct volume_claim *ret);

/** claim_text() - "namespace/name" of the claim, and claim_pod() of the pod. Return: caller frees; NULL: not
 * known. */
char *claim_text(const struct volume_claim *c);
char *claim_pod(const struct volume_claim *c);

/** claim_text_valid() - whether @text has the form of claim_text(). */
bool claim_text_valid(const char *text);

/** claim_write_json() - add what is known of @c to the object that @w is in, as claimNamespace, claimName,
 * pvName, podNamespace and podName. State files and -o json have these members: their names must not change.
 */
void claim_write_json(const struct volume_claim *c, struct json_writer *w);

/** claim_done() - release what @c owns; safe on a zeroed one. */
void claim_done(struct volume_claim *c);
