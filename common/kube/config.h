/* SPDX-License-Identifier: Apache-2.0 */
/*
 * config.h - the address of the API server and the credentials for it: those of a pod, or of a kubeconfig
 * file.
 *
 * A kubeconfig is read for its current context: its cluster (server, certificate-authority, -data,
 * tls-server-name), its namespace, and its user (client-certificate, client-key, -data, token, tokenFile).
 * Settings for the server or the user that are not supported (exec plugins, auth providers, passwords,
 * impersonation, proxies, insecure-skip-tls-verify) are refused, and the error names them. Certificates in
 * the file itself become files in memory. Threads: a config is not changed after it was made. Source:
 * client-go tools/clientcmd/api/v1/types.go.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/span.h"

struct kube_config {
	char *host; /* numeric or a name */
	uint16_t port;
	char *path;      /* the path of the server's URL, without a final slash; usually "" */
	char *tls_name;  /* the name that the server's certificate must have */
	char *ca_file;   /* NULL: no TLS, which none of the functions below returns */
	char *cert_file; /* with key_file; NULL: no client certificate */
	char *key_file;
	char *token;
	char *token_file;  /* preferred to token; read again from time to time */
	char *namespace;   /* never NULL */
	int memory_fds[3]; /* of those files above that are in memory; 0: none */
};

/** kube_config_in_cluster() - read the configuration of the pod from KUBERNETES_SERVICE_HOST and _PORT and
 * the files of the pod's ServiceAccount. Blocks on files. Return: 0, or -1 with ERR_NOT_FOUND (not in a pod)
 * or ERR_INVALID_ARGUMENT. @ret: kube_config_free(). */
int kube_config_in_cluster(struct kube_config **ret, struct error **err) MUST_CHECK;

/** kube_config_of_pod() - kube_config_in_cluster() with the files in @folder, and with @host and @port, which
 * may be NULL, in place of the environment variables. */
int kube_config_of_pod(const char *folder, const char *host, const char *port, struct kube_config **ret,
	struct error **err) MUST_CHECK;

/** kube_config_load() - read the kubeconfig file @path. Blocks on files. Return: 0, or -1 with ERR_NOT_FOUND
 * or ERR_INVALID_ARGUMENT that names the file. @ret: kube_config_free(). */
int kube_config_load(const char *path, struct kube_config **ret, struct error **err) MUST_CHECK;

/** kube_config_find() - kube_config_load() of $KUBECONFIG if that is set, because it was set on purpose,
 * otherwise kube_config_in_cluster(). */
int kube_config_find(struct kube_config **ret, struct error **err) MUST_CHECK;

/** kube_config_parse() - parse the text of a kubeconfig. @folder: for relative paths in it. Return:
 * 0, or -1 with ERR_INVALID_ARGUMENT. @ret: kube_config_free(). */
int kube_config_parse(
	struct span yaml, const char *folder, struct kube_config **ret, struct error **err) MUST_CHECK;

/** kube_config_free() - destroy @c and the files in memory; NULL is allowed. */
void kube_config_free(struct kube_config *c);
DEFINE_CLEANUP(struct kube_config *, kube_config_free);
