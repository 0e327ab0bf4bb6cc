/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plugin_registration.h - what the kubelet asks a plugin whose socket it finds in its plugins_registry
 * folder.
 *
 * Both methods are cheap and may come again at any time: newer kubelets look again. Threads: handlers are
 * inline, on the loop thread. Source: k8s.io/kubelet, pluginregistration/v1.
 */
#pragma once

#include <stdbool.h>

#include "net/grpc/grpc_service.h"

struct plugin_registration {
	const char *driver_name;
	const char *endpoint; /* absolute path, on the host, of the socket that serves CSI */
	/* what the kubelet came to; @reason: why it has refused, borrowed */
	void (*on_registered)(void *user, bool registered, const char *reason);
	void *user;
};

/** plugin_registration_service() - pluginregistration.Registration. @p is borrowed for the life of the
 * service.
 */
struct grpc_service plugin_registration_service(struct plugin_registration *p);
