/* SPDX-License-Identifier: Apache-2.0 */
/*
 * node_volumes_service.h - what a node does for the central controller beyond the CSI specification: deletes
 * a volume if it was never staged.
 *
 * A controller that finds a copy of a volume that no caller was given deletes it with this call: what its own
 * copy of the node's inventory says may be outdated. Threads: the handler runs on workers. Source:
 * proto/registry.proto, service NodeVolumes.
 */
#pragma once

#include "csi/csi.h"

/** node_volumes_service() - make the service registry.v0.NodeVolumes. @csi is borrowed for the life of the
 * service. */
struct grpc_service node_volumes_service(struct csi *csi);
