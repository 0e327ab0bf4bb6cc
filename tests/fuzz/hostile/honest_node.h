/* SPDX-License-Identifier: Apache-2.0 */
/*
 * honest_node.h - a node that does what it is asked to, in a few words: a list of volumes and snapshots. It
 * stands for a driver when a controller is tested against other nodes that lie.
 *
 * Threads: one owner.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "csi.pb-c.h"
#include "registry.pb-c.h"

#include "base/arena.h"
#include "base/error.h"
#include "volume/id.h"

#define HONEST_VOLUMES_MAX 8
#define HONEST_GIB         (1ULL << 30)

struct honest_volume {
	char id[VOLUME_ID_MAX + 1];
	char name[VOLUME_NAME_MAX + 1];
	char source[VOLUME_HANDLE_MAX + 1]; /* "": none */
	char group[VOLUME_ID_MAX + 1];      /* of a snapshot; "": none */
	uint64_t size_bytes;
	bool is_snapshot;
	bool staged; /* at least once */
};

struct honest_node {
	const char *node_id;
	const char *endpoint;
	struct honest_volume volumes[HONEST_VOLUMES_MAX];
	size_t n;
	uint64_t report_number;
	/* Called before a volume is deleted. */
	void (*on_delete)(void *user, const struct honest_node *n, const struct honest_volume *v);
	void *user;
};

/** honest_node_find() - find the volume or snapshot @id. Return: borrowed, or NULL. */
struct honest_volume *honest_node_find(struct honest_node *n, const char *id);

/** honest_node_serve() - do what @request says. @ret: the reply, in @arena. Return: 0, or -1 with the error
 * of the driver. */
int honest_node_serve(struct honest_node *n, const ProtobufCMessage *request, struct arena *arena,
	const ProtobufCMessage **ret, struct error **err);

/** honest_node_report() - the registration of @n, in @arena. @is_silent: without its volumes, as a driver
 * that has just started; otherwise with all of them */
const Registry__V0__RegisterControllerRequest *honest_node_report(
	struct honest_node *n, bool is_silent, struct arena *arena);
