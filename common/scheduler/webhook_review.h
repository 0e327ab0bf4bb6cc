/* SPDX-License-Identifier: Apache-2.0 */
/*
 * webhook_review.h - the mutating admission webhook for pods: an AdmissionReview in, an AdmissionReview out.
 *
 * kube-scheduler asks the extender about pods that request the resource "<driver name>/scheduler" only. A pod
 * of a scheduler that asks, with a volume of ours that is still to be made where the pod runs (inline, or an
 * unbound claim of a class that binds late), gets it: 1, as request and limit of its first container. No node
 * offers the resource, so a scheduler that does not ask the extender leaves such a pod pending. Every other
 * pod, one that has a node, one that is labelled "<driver name>/webhook: ignore", and one whose claims or
 * classes do not exist, is allowed as it is. A pod that requests the resource in any container is not changed
 * again.
 *
 * Nothing is remembered and nothing is written, so dry runs need no care. Threads: any; nothing blocks.
 * Sources: k8s.io/api/admission/v1/types.go, RFC 6902, PMEM-CSI 1.0 pkg/scheduler/mutate_pod.go.
 */
#pragma once

#include <stdbool.h>

#include "base/buf.h"
#include "base/span.h"

#define WEBHOOK_BODY_BYTES (8u << 20) /* of a request; API servers accept pods of at most 3 MiB */

enum webhook_class {
	WEBHOOK_CLASS_OTHER,  /* a class of another driver, or one that binds immediately */
	WEBHOOK_CLASS_OURS,   /* a class of our driver that waits for the first consumer */
	WEBHOOK_CLASS_UNKNOWN /* not there */
};

enum webhook_claim {
	WEBHOOK_CLAIM_UNBOUND,
	WEBHOOK_CLAIM_BOUND,  /* it has a volume, so nothing has to be decided */
	WEBHOOK_CLAIM_UNKNOWN /* not there */
};

/* The webhook's questions about the cluster. They are answered at once. */
struct webhook_cluster {
	/* @ret_class: the class of a claim that exists, borrowed until the next call, NULL without one */
	enum webhook_claim (*claim)(
		void *user, const char *namespace, const char *name, const char **ret_class);
	/* @name NULL: the cluster's default class; WEBHOOK_CLASS_OTHER if the cluster has no default */
	enum webhook_class (*class)(void *user, const char *name);
	void *user;
};

/* Claims and classes that were not found and on which the answer depends. */
struct webhook_missing {
	char *namespace;
	char **claims;  /* strv */
	char **classes; /* strv */
};

/* The administrator's settings. All borrowed. */
struct webhook_rules {
	const char *driver_name;
	char *const *schedulers; /* strv: names of the schedulers that ask the extender */
};

/** webhook_missing_done() - release the content of @m, which is empty then. */
void webhook_missing_done(struct webhook_missing *m);

/**
 * webhook_review() - answer one request.
 * @cluster:       what is asked
 * @rules:       which pods are ours
 * @body:        of the request
 * @missing:     objects that have to be looked up before the answer is given, empty on entry; the caller
 *               releases it
 * @out:         the reply, application/json
 *
 * Return: the HTTP status: 200, 400 (not an AdmissionReview; the reply says so in its own status, too) or
 * 413. An object that is not a pod is denied with code 400 in a reply of 200, because only then does the API
 * server report the reason.
 */
unsigned webhook_review(const struct webhook_cluster *cluster, const struct webhook_rules *rules,
	struct span body, struct webhook_missing *missing, struct buf *out);
