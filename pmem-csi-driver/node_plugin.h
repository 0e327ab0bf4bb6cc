/* SPDX-License-Identifier: Apache-2.0 */
/*
 * node_plugin.h - the driver's part of being registered with kubelet. Without -pluginRegistrationPath there
 * is none, and all is allowed. Threads: the loop's.
 */
#pragma once

#include "base/buf.h"
#include "csi/plugin_socket.h"
#include "options.h"

struct node_plugin_config {
	const struct options *options;
	struct loop *loop;
	struct workers *workers;
	loop_fn end; /* the socket is lost for good: the driver is to end; from the loop */
	void *user;
};

struct node_plugin {
	struct node_plugin_config config;
	struct plugin_socket *socket; /* NULL: none yet */
	char *endpoint;
	char *boot_id;
	struct error *failure; /* why the socket is lost; NULL: it is not */
};

/** node_plugin_open() - prepare. @config: what it points to is borrowed. Return: 0, or -1 with
 * ERR_INVALID_ARGUMENT or as boot_id_read(). */
int node_plugin_open(
	struct node_plugin *p, const struct node_plugin_config *config, struct error **err) MUST_CHECK;

/** node_plugin_offer() - let kubelet find the driver, which is ready: NodeGetInfo gives the number of volumes
 * from then on. Idempotent. Return: 0, or -1 as plugin_socket_new(). */
int node_plugin_offer(struct node_plugin *p, struct error **err) MUST_CHECK;

/** node_plugin_require_accepted() - as plugin_socket_require_accepted(); 0 before the offer. */
int node_plugin_require_accepted(const struct node_plugin *p, struct error **err) MUST_CHECK;

/** node_plugin_stop() - take that back. @done: called once when the kubelet's calls are answered, maybe at
 * once. */
void node_plugin_stop(struct node_plugin *p, loop_fn done, void *user);

/** node_plugin_result() - whether the driver has ended in order. Return: 0, or -1 with the reason why the
 * socket was lost. */
int node_plugin_result(struct node_plugin *p, struct error **err) MUST_CHECK;

/** node_plugin_metrics() - whether kubelet has registered the driver; nothing without
 * -pluginRegistrationPath. */
void node_plugin_metrics(const struct node_plugin *p, struct buf *out);

/** node_plugin_done() - release what @p owns; safe on a zeroed one. */
void node_plugin_done(struct node_plugin *p);
