/* SPDX-License-Identifier: Apache-2.0 */
/*
 * csi.h - the CSI services of one node: translation between messages and volume/, nothing else.
 *
 * Identity, Controller (for this node's volumes) and Node as tables for net/grpc/grpc_service.h. Each request
 * is checked against the specification's limits first (field_limits.h); errors begin with the node's name.
 * Methods that only read memory are inline, the others run on workers. Threads: handlers run concurrently.
 * Source: CSI specification 1.13.
 */
#pragma once

#include <stdbool.h>

#include "net/grpc/grpc_service.h"
#include "volume/volumes.h"

struct csi {
	const char *driver_name;
	const char *version;
	const char *node_id;
	bool offers_health; /* the capabilities of CSI 1.13 for health; the calls are served in any case */
	bool made_by_controller; /* serves the central controller: new volumes are recorded as made by it */
	struct volumes *volumes;
};

/** csi_current_step() - grpc_service.current_step of all services: call volumes_current_step() for the volume
 * of
 * @request. */
char *csi_current_step(void *self, const ProtobufCMessage *request);

/** csi_volume_of() - grpc_service.volume_of of all services, including those of the central controller: get
 * the handle of the volume of @request, or the volume name. */
const char *csi_volume_of(const ProtobufCMessage *request);

/** csi_identity_service() - make the service csi.v1.Identity. @csi is borrowed for the life of the service.
 */
struct grpc_service csi_identity_service(struct csi *csi);

/** csi_controller_service() - make the service csi.v1.Controller for the volumes of this node. @csi is
 * borrowed. */
struct grpc_service csi_controller_service(struct csi *csi);

/** csi_node_service() - make the service csi.v1.Node. @csi is borrowed. */
struct grpc_service csi_node_service(struct csi *csi);
