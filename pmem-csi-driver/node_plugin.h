/* SPDX-License-Identifier: Apache-2.0 */
/*
 * node_plugin.h - registers the driver with kubelet. Without -pluginRegistrationPath, these functions do
 * nothing and succeed. Threads: the loop's.
 */
#pragma once

#include "base/buf.h"
#include "csi/kubelet_registration.h"
#include "options.h"

struct node_plugin_config {
	const struct options *options;
	struct loop *loop;
	struct workers *workers;
	loop_fn end; /* called from the loop when the socket is lost for good, so that the driver has to end
		      */
	void *user;
};

struct node_plugin {
	struct node_plugin_config config;
	struct kubelet_registration *socket; /* NULL: none yet */
	char *endpoint;
	char *boot_id;
	struct error *failure; /* why the socket is lost; NULL: it is not */
};

/** node_plugin_open() - initialise @p, and find the path of the CSI socket. @config: what it points to is
 * borrowed. Return: 0, or -1 with
 * ERR_INVALID_ARGUMENT or as boot_id_read(). */
int node_plugin_open(
	struct node_plugin *p, const struct node_plugin_config *config, struct error **err) MUST_CHECK;

/** node_plugin_offer() - create the registration socket; to be called when the driver is ready, because
 * kubelet then calls NodeGetInfo, which returns the number of volumes. Idempotent. Return: 0, or -1 as
 * kubelet_registration_new(). */
int node_plugin_offer(struct node_plugin *p, struct error **err) MUST_CHECK;

/** node_plugin_require_accepted() - as kubelet_registration_require_accepted(); 0 before the offer. */
int node_plugin_require_accepted(const struct node_plugin *p, struct error **err) MUST_CHECK;

/** node_plugin_stop() - remove the registration socket. @done: called once when kubelet's calls are answered,
 * maybe before this returns. */
void node_plugin_stop(struct node_plugin *p, loop_fn done, void *user);

/** node_plugin_result() - report whether the driver ended because the registration socket was lost. Return:
 * 0, or -1 with the reason why the socket was lost. */
int node_plugin_result(struct node_plugin *p, struct error **err) MUST_CHECK;

/** node_plugin_metrics() - append the metric that shows whether kubelet has registered the driver; nothing
 * without -pluginRegistrationPath. */
void node_plugin_metrics(const struct node_plugin *p, struct buf *out);

/** node_plugin_done() - release what @p owns; safe on a zeroed one. */
void node_plugin_done(struct node_plugin *p);
