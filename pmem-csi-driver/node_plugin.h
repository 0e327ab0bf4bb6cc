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
	loop_fn end; /* kubelet has refused: the driver is to end; from the loop */
	void *user;
};

struct node_plugin {
	struct node_plugin_config config;
	struct plugin_socket *socket; /* NULL: none */
	char *endpoint;
	char *boot_id;
	struct error *failure; /* why kubelet has refused; NULL: it has not */
};

/** node_plugin_start() - register; the CSI socket is there. @config: what it points to is borrowed. Return:
 * 0, or -1 as plugin_socket_new(). */
int node_plugin_start(
	struct node_plugin *p, const struct node_plugin_config *config, struct error **err) MUST_CHECK;

/** node_plugin_stop() - take that back. @done: called once when the kubelet's calls are answered, maybe at
 * once. */
void node_plugin_stop(struct node_plugin *p, loop_fn done, void *user);

/** node_plugin_result() - whether the driver has ended in order. Return: 0, or -1 with ERR_PRECONDITION:
 * kubelet has refused. */
int node_plugin_result(struct node_plugin *p, struct error **err) MUST_CHECK;

/** node_plugin_metrics() - whether kubelet has registered the driver; nothing without
 * -pluginRegistrationPath. */
void node_plugin_metrics(const struct node_plugin *p, struct buf *out);

/** node_plugin_done() - release what @p owns; safe on a zeroed one. */
void node_plugin_done(struct node_plugin *p);
