/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plugin_socket.h - the socket in kubelet's plugins_registry folder by which it finds the driver.
 *
 * kubelet retries a socket that nobody serves at growing intervals, of up to two minutes, and counts them by
 * path: they go on when the file is another one. So after a power failure it would come late to a driver that
 * has the path of the last boot. The name is therefore another one after each boot. Within one boot it stays:
 * kubelet takes a registration back before it makes the next one only if both have one path.
 *
 * A refusal takes the driver's entry out of CSINode, so that one that was refused because of what stood there
 * is registered the next time: the socket is made again once, and only the second refusal in a row is handed
 * on.
 *
 * Its appearance registers the driver, its removal takes that back: so it comes after the socket that serves
 * CSI, and goes before all else. When somebody else removes it, it is made again. A kubelet that does not
 * register the driver says nothing, so that the log does, once for each socket: in the wrong folder nobody
 * ever looks at it. Threads: the loop's; nothing blocks. Source: k8s.io/kubernetes/pkg/kubelet/pluginmanager,
 * operationexecutor and reconciler; RegisterPlugin() of pkg/volume/csi/csi_plugin.go;
 * pkg/util/goroutinemap/exponentialbackoff.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "csi/plugin_registration.h"
#include "net/loop.h"
#include "net/workers.h"

struct plugin_socket;

struct plugin_socket_config {
	struct loop *loop;       /* borrowed */
	struct workers *workers; /* borrowed */
	const char *folder;      /* absolute */
	const char *boot_id;     /* its first four digits are in the name, <driver name>-<digits>.sock */
	struct plugin_registration registration; /* its strings are borrowed */
	uint64_t check_ms;                       /* how often to look whether the socket is there; 0: 10 s */
	uint64_t silence_ms; /* how long kubelet may take before the log says so; 0: 30 s */
};

/** plugin_socket_new() - listen there; a stale socket is replaced. Return: 0, or -1 as grpc_server_listen().
 * Stale sockets of other boots, and of node-driver-registrar (<driver name>-reg.sock), are removed.
 * A missing folder is made if its parent exists, with a warning: kubelet makes it when it starts.
 * @ret: plugin_socket_free() after it has drained. */
int plugin_socket_new(
	const struct plugin_socket_config *config, struct plugin_socket **ret, struct error **err) MUST_CHECK;

/** plugin_socket_is_registered() - whether kubelet has said that the driver is registered, since the socket
 * was made. */
bool plugin_socket_is_registered(const struct plugin_socket *s);

/** plugin_socket_drain() - remove the socket at once, and then as grpc_server_drain(). */
void plugin_socket_drain(struct plugin_socket *s, loop_fn on_drained, void *user);

/** plugin_socket_free() - NULL is allowed. */
void plugin_socket_free(struct plugin_socket *s);
