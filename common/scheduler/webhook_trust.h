/* SPDX-License-Identifier: Apache-2.0 */
/*
 * webhook_trust.h - keeps API servers trusting the webhook: the caBundle of each webhook of one
 * MutatingWebhookConfiguration that calls our Service has the authorities of a file.
 *
 * The object is followed by a watch, the file is looked at every few seconds: a caBundle that lacks one of
 * the authorities, whoever has reset it, gets them at once. Kubelet replaces the file of each replica at
 * another time, so authorities that only the caBundle has stay for a while after it has changed: they may be
 * those that another replica knows already. Replicas need no leader: those that write at once write the same,
 * and a patch bears the resourceVersion that was read.
 *
 * A file that is missing, malformed, holds a private key, or lacks the authority of the certificate that the
 * webhook serves changes nothing. An object with an annotation for
 * the injector of cert-manager or OpenShift is left to that. What fails is logged once and tried again after
 * a back-off; the webhook is served meanwhile. Threads: the loop's. Blocks on the file. Source: apiserver
 * pkg/util/webhook/client.go.
 */
#pragma once

#include "base/cleanup.h"
#include "kube/client.h"

/* How long authorities stay that only the caBundle has: kubelet replaces files within two minutes. */
#define WEBHOOK_TRUST_OTHERS_MS 300000

struct webhook_trust_config {
	struct kube_client *client; /* borrowed; its namespace is that of the Service */
	const char *configuration;  /* name of the object */
	const char *service;        /* name of the Service */
	const char *ca_file;
	const char *cert_file; /* the certificate that the webhook serves */
};

struct webhook_trust;

/** webhook_trust_new() - begin. @config: strings are copied. Return: never NULL; webhook_trust_free(). */
struct webhook_trust *webhook_trust_new(const struct webhook_trust_config *config);

/** webhook_trust_free() - stop; before the client is freed. NULL is allowed. */
void webhook_trust_free(struct webhook_trust *t);
DEFINE_CLEANUP(struct webhook_trust *, webhook_trust_free);

/** webhook_trust_is_complete() - whether the object is there and each of its webhooks that calls us has all
 * authorities of the file. */
bool webhook_trust_is_complete(const struct webhook_trust *t);

/** webhook_trust_tick() - look at the file and the object, as is done every five seconds. @now_ns: of
 * clock_ns(). */
void webhook_trust_tick(struct webhook_trust *t, uint64_t now_ns);
