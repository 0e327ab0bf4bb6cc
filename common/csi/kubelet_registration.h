/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kubelet_registration.h - the socket in kubelet's plugins_registry folder by which kubelet finds the driver,
 * and the gRPC service that kubelet calls there.
 *
 * kubelet retries a socket that no program serves at growing intervals of up to two minutes, and keeps the
 * intervals by path, even if the file at that path is another one. With the path of the previous boot,
 * kubelet could therefore find the driver late after a power failure, so the name of the socket differs after
 * each boot. Within one boot it stays the same: kubelet removes a registration before it makes the next one
 * only if both have the same path.
 *
 * If kubelet refuses the driver, a new socket is created after a back-off: the reason may have been an entry
 * in CSINode that kubelet has removed by then, or an API server that did not respond.
 *
 * Creating the socket registers the driver, and removing it unregisters the driver. So it is created after
 * the socket that serves CSI, and removed before everything else. When another program removes it, it is
 * created again. If kubelet does not register the driver, that is logged once for each socket, because
 * kubelet itself reports nothing: the folder may not be the one that kubelet uses. Threads: the loop's;
 * creating the socket waits for a lock on its folder, for 2 s at most. Source:
 * k8s.io/kubernetes/pkg/kubelet/pluginmanager, operationexecutor and reconciler; RegisterPlugin() of
 * pkg/volume/csi/csi_plugin.go; pkg/util/goroutinemap/exponentialbackoff.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "net/core/loop.h"
#include "net/core/workers.h"

struct kubelet_registration;

struct kubelet_registration_config {
	struct loop *loop;       /* borrowed */
	struct workers *workers; /* borrowed */
	const char *folder;      /* absolute */
	const char *boot_id;     /* its first four digits are in the name, <driver name>-<digits>.sock */
	const char *driver_name; /* borrowed, as the next one */
	const char *endpoint;    /* absolute path, on the host, of the socket that serves CSI */
	/* Called once when the socket could not be created again for a minute. @err is borrowed. */
	void (*on_lost)(void *user, const struct error *err);
	void *user;
	uint64_t check_ms;   /* how often to check whether the socket exists; 0: 10 s */
	uint64_t silence_ms; /* how long kubelet may take before a warning is logged; 0: 30 s */
	uint64_t again_ms;   /* back-off after the first refusal; 0: BACKOFF_FIRST_MS */
	uint64_t lost_ms;    /* until on_lost; 0: a minute */
};

/** kubelet_registration_new() - create the socket and listen on it; a stale one is replaced. Return: 0, or -1
 * as grpc_server_listen(). Stale sockets of other boots, and of node-driver-registrar (<driver
 * name>-reg.sock), are removed. After the removal of one of node-driver-registrar, the socket is created two
 * seconds later, when kubelet has removed the registration of that. A missing folder is created if its parent
 * exists, with a warning, because kubelet creates it when it starts.
 * @ret: kubelet_registration_free() after it has drained. */
int kubelet_registration_new(const struct kubelet_registration_config *config,
	struct kubelet_registration **ret, struct error **err) MUST_CHECK;

/** kubelet_registration_is_registered() - whether kubelet has confirmed since the socket was created that the
 * driver is registered. */
bool kubelet_registration_is_registered(const struct kubelet_registration *s);

/** kubelet_registration_require_accepted() - check that the socket exists, and that the last registration was
 * not refused by kubelet. Return: 0, or -1 with ERR_UNAVAILABLE and the reason. */
int kubelet_registration_require_accepted(
	const struct kubelet_registration *s, struct error **err) MUST_CHECK;

/** kubelet_registration_drain() - remove the socket at once, then call grpc_server_drain(). */
void kubelet_registration_drain(struct kubelet_registration *s, loop_fn on_drained, void *user);

/** kubelet_registration_free() - release @s. NULL is allowed. */
void kubelet_registration_free(struct kubelet_registration *s);
