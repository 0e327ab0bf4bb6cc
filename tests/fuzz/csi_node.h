/* SPDX-License-Identifier: Apache-2.0 */
/*
 * csi_node.h - the CSI services of a node for fuzzing: devices in memory without block nodes, so that nothing
 * can be formatted or mounted, its files in CONFINED_DIR.
 */
#pragma once

#include "csi/csi.h"
#include "fuzz/confine.h"
#include "pmem/device/device.h"

#define CSI_NODE_PODS CONFINED_DIR "/pods" /* where paths of requests may lead */

struct csi_node {
	struct device_manager *devices;
	struct path_roots *roots;
	struct csi csi;
};

/** csi_node_open() - two regions of 1 GiB, a directory "dir", a file "file" and a symlink "link" in
 * CSI_NODE_PODS. */
void csi_node_open(struct csi_node *n);

/** csi_node_restart() - as after the end of the driver: all but devices and state is forgotten. */
void csi_node_restart(struct csi_node *n);

/** csi_node_close() - release everything and remove all files; none but those of csi_node_open() and the
 * state are there. */
void csi_node_close(struct csi_node *n);

/** csi_node_method() - method number @i of all services, in their order. @ret_self: what its handler wants.
 * Return: NULL beyond the last one. */
const struct grpc_method *csi_node_method(struct csi_node *n, size_t i, void **ret_self);
