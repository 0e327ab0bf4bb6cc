/* SPDX-License-Identifier: Apache-2.0 */
/*
 * config_private.h - what config.c and kubeconfig.c share, and their tests.
 */
#pragma once

#include "kube/config.h"

/** kube_config_of_pod() - kube_config_in_cluster() with files in @folder, and @host and @port, which may be
 * NULL, from the environment. */
int kube_config_of_pod(const char *folder, const char *host, const char *port, struct kube_config **ret,
	struct error **err) MUST_CHECK;

/** kube_config_set_server() - host, port, path and the name for TLS from @url. Return: 0, or -1 with
 * ERR_INVALID_ARGUMENT. To be called once. */
int kube_config_set_server(struct kube_config *c, const char *url, struct error **err) MUST_CHECK;

/** kube_config_set_pem() - keep the content in memory, and its path in *@ret_path, which is freed. @what: for
 * messages. Return: 0, or -1 with ERR_INVALID_ARGUMENT or ERR_INTERNAL. */
int kube_config_set_pem(struct kube_config *c, const char *base64, char **ret_path, const char *what,
	struct error **err) MUST_CHECK;
