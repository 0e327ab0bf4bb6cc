/* SPDX-License-Identifier: Apache-2.0 */
/*
 * webhook_ca_bundle.h - keeps the caBundle of the webhook up to date, so that API servers trust it. One
 * MutatingWebhookConfiguration is changed: each of its webhooks that calls our Service gets the authorities
 * of a file.
 *
 * The object is watched, and the file is read every few seconds. A caBundle that lacks one of the authorities
 * gets it at once. Kubelet replaces the files of the replicas at different times, so unknown authorities in
 * the caBundle are kept for a while after a change: another replica may already have them in its file.
 * Replicas need no leader: those that write at the same time write the same, and a patch has the
 * resourceVersion that was read.
 *
 * A file that is missing, malformed, holds a private key, or lacks the authority of the certificate that the
 * webhook serves changes nothing. An object with an annotation for the injector
 * of cert-manager or OpenShift is left to that injector. Failures are logged once and retried after a
 * back-off; the webhook is served meanwhile. Threads: the loop's. Blocks on the file. Source: apiserver
 * pkg/util/webhook/client.go.
 */
#pragma once

#include "base/cleanup.h"
#include "kube/client.h"

/* How long authorities that are only in the caBundle are kept: kubelet replaces files within two minutes. */
#define WEBHOOK_CA_BUNDLE_OTHERS_MS 300000

struct webhook_ca_bundle_config {
	struct kube_client *client; /* borrowed; its namespace is that of the Service */
	const char *configuration;  /* name of the object */
	const char *service;        /* name of the Service */
	const char *ca_file;
	const char *cert_file; /* the certificate that the webhook serves */
};

struct webhook_ca_bundle;

/** webhook_ca_bundle_new() - begin. @config: strings are copied. Return: never NULL;
 * webhook_ca_bundle_free(). */
struct webhook_ca_bundle *webhook_ca_bundle_new(const struct webhook_ca_bundle_config *config);

/** webhook_ca_bundle_free() - stop; before the client is freed. NULL is allowed. */
void webhook_ca_bundle_free(struct webhook_ca_bundle *t);
DEFINE_CLEANUP(struct webhook_ca_bundle *, webhook_ca_bundle_free);

/** webhook_ca_bundle_is_complete() - whether the object exists and each of its webhooks that calls us has all
 * authorities of the file. */
bool webhook_ca_bundle_is_complete(const struct webhook_ca_bundle *t);

/** webhook_ca_bundle_tick() - check the file and the object, as is done every five seconds. @now_ns: of
 * clock_ns(). */
void webhook_ca_bundle_tick(struct webhook_ca_bundle *t, uint64_t now_ns);
