/* SPDX-License-Identifier: Apache-2.0 */
/*
 * node_registry.h - registers the driver with the central controllers, and sends them its reports.
 *
 * Without -registryEndpoint, these functions do nothing and succeed. Threads: the loop's, except for
 * node_registry_changed().
 */
#pragma once

#include "nodes/registration.h"
#include "options.h"
#include "volume/volumes.h"

struct node_registry;

/** node_registry_new() - make a registry client that does not register yet. @options: borrowed. Return: never
 * NULL; node_registry_free() after the volumes. */
struct node_registry *node_registry_new(const struct options *options);
void node_registry_free(struct node_registry *r);

/** node_registry_pods() - what volumes_config.pods may be, which asks the controllers; valid as long as @r.
 * Return: NULL: there are none. */
const struct volume_pods *node_registry_pods(const struct node_registry *r);

/** node_registry_changed() - volumes_config.changed; @user: the registry. Any thread; never waits. */
void node_registry_changed(void *user);

struct node_registry_config {
	const struct options *options;
	struct loop *loop;
	struct handshakes *handshakes;
	struct volumes *volumes;
	const char *device_mode;
	uint16_t port; /* where the controller service listens */
};

/** node_registry_start() - begin to register. @config: what it points to is borrowed until
 * node_registry_close(). Return: 0, or -1 with ERR_INVALID_ARGUMENT (certificates). */
int node_registry_start(
	struct node_registry *r, const struct node_registry_config *config, struct error **err) MUST_CHECK;

/** node_registry_stop() - unregister from the controllers. @done: called once from the loop, within
 * REGISTRATION_STOP_MS. */
void node_registry_stop(struct node_registry *r, loop_fn done, void *user);

/** node_registry_close() - send nothing any more; to be called before the loop is freed. NULL is allowed. */
void node_registry_close(struct node_registry *r);

/** node_registry_metrics() - append metrics of each controller, as metrics_config.add; @user: the registry.
 */
void node_registry_metrics(void *user, struct buf *out);
