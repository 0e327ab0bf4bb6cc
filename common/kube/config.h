/* SPDX-License-Identifier: Apache-2.0 */
/*
 * config.h - where the API server is and who we are there: in a pod, or by a kubeconfig file.
 *
 * Of a kubeconfig the current context counts: its cluster (server, certificate-authority, -data,
 * tls-server-name), its namespace, and its user (client-certificate, client-key, -data, token, tokenFile).
 * What would change the server or the user and is not supported (exec plugins, auth providers, passwords,
 * impersonation, proxies, insecure-skip-tls-verify) is refused by name. Certificates that stand in the file
 * itself become files in memory. Threads: a config is not changed once it is there.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/span.h"

struct kube_config {
	char *host; /* numeric or a name */
	uint16_t port;
	char *path;      /* what the server's URL has behind the port, without a final slash; "" mostly */
	char *tls_name;  /* whom the server's certificate must name */
	char *ca_file;   /* NULL: no TLS at all, which none of the functions below gives */
	char *cert_file; /* with key_file; NULL: shows none */
	char *key_file;
	char *token;
	char *token_file;  /* preferred to token; read again now and then */
	char *namespace;   /* never NULL */
	int memory_fds[3]; /* of the files above that are in memory; 0: none */
};

/** kube_config_in_cluster() - from KUBERNETES_SERVICE_HOST and _PORT and the files of the pod's
 * ServiceAccount. Blocks on files. Return: 0, or -1 with ERR_NOT_FOUND (not in a pod) or
 * ERR_INVALID_ARGUMENT. @ret: kube_config_free(). */
int kube_config_in_cluster(struct kube_config **ret, struct error **err) MUST_CHECK;

/** kube_config_load() - from the kubeconfig file @path. Blocks on files. Return: 0, or -1 with ERR_NOT_FOUND
 * or ERR_INVALID_ARGUMENT that names the file. @ret: kube_config_free(). */
int kube_config_load(const char *path, struct kube_config **ret, struct error **err) MUST_CHECK;

/** kube_config_parse() - from the text of a kubeconfig. @folder: what relative paths in it begin at. Return:
 * 0, or -1 with ERR_INVALID_ARGUMENT. @ret: kube_config_free(). */
int kube_config_parse(
	struct span yaml, const char *folder, struct kube_config **ret, struct error **err) MUST_CHECK;

/** kube_config_free() - destroy @c and the files in memory; NULL is allowed. */
void kube_config_free(struct kube_config *c);
DEFINE_CLEANUP(struct kube_config *, kube_config_free);
