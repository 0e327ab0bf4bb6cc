/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plugin_socket.h - the socket in kubelet's plugins_registry folder by which it finds the driver.
 *
 * kubelet retries a socket that nobody serves at growing intervals, of up to two minutes, and counts them by
 * path: they go on when the file is another one. So after a power failure it would come late to a driver that
 * has the path of the last boot. The name is therefore another one after each boot. Within one boot it stays:
 * kubelet takes a registration back before it makes the next one only if both have one path.
 *
 * A driver that kubelet has refused is offered again by a new socket, after a back-off: what it refuses today
 * may be what stood in CSINode before, which it has taken out then, or an API server that was away.
 *
 * The socket's appearance registers the driver, its removal takes that back: so it comes after the socket
 * that serves CSI, and goes before all else. When another program removes it, it is made again. A kubelet
 * that does not register the driver says nothing, so that the log does, once for each socket: in the wrong
 * folder nobody ever looks at it. Threads: the loop's; making the socket waits for a lock on its folder, for
 * 2 s at most. Source: k8s.io/kubernetes/pkg/kubelet/pluginmanager, operationexecutor and reconciler;
 * RegisterPlugin() of pkg/volume/csi/csi_plugin.go; pkg/util/goroutinemap/exponentialbackoff.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "csi/plugin_registration.h"
#include "net/core/loop.h"
#include "net/core/workers.h"

struct plugin_socket;

struct plugin_socket_config {
	struct loop *loop;       /* borrowed */
	struct workers *workers; /* borrowed */
	const char *folder;      /* absolute */
	const char *boot_id;     /* its first four digits are in the name, <driver name>-<digits>.sock */
	const char *driver_name; /* borrowed, as the next one */
	const char *endpoint;    /* absolute path, on the host, of the socket that serves CSI */
	/* The socket could not be made again for a minute; called once. @err is borrowed. */
	void (*on_lost)(void *user, const struct error *err);
	void *user;
	uint64_t check_ms;   /* how often to look whether the socket is there; 0: 10 s */
	uint64_t silence_ms; /* how long kubelet may take before the log says so; 0: 30 s */
	uint64_t again_ms;   /* after the first refusal; 0: BACKOFF_FIRST_MS */
	uint64_t lost_ms;    /* until on_lost; 0: a minute */
};

/** plugin_socket_new() - listen there; a stale socket is replaced. Return: 0, or -1 as grpc_server_listen().
 * Stale sockets of other boots, and of node-driver-registrar (<driver name>-reg.sock), are removed; after one
 * of the latter the socket comes two seconds later, when kubelet has taken the other registration back.
 * A missing folder is made if its parent exists, with a warning: kubelet makes it when it starts.
 * @ret: plugin_socket_free() after it has drained. */
int plugin_socket_new(
	const struct plugin_socket_config *config, struct plugin_socket **ret, struct error **err) MUST_CHECK;

/** plugin_socket_is_registered() - whether kubelet has said that the driver is registered, since the socket
 * was made. */
bool plugin_socket_is_registered(const struct plugin_socket *s);

/** plugin_socket_require_accepted() - whether the socket is there, and kubelet has not refused the driver the
 * last time. Return: 0, or -1 with ERR_UNAVAILABLE and the reason. */
int plugin_socket_require_accepted(const struct plugin_socket *s, struct error **err) MUST_CHECK;

/** plugin_socket_drain() - remove the socket at once, and then as grpc_server_drain(). */
void plugin_socket_drain(struct plugin_socket *s, loop_fn on_drained, void *user);

/** plugin_socket_free() - NULL is allowed. */
void plugin_socket_free(struct plugin_socket *s);
