/* SPDX-License-Identifier: Apache-2.0 */
/*
 * node_ready_log.h - what the driver logs when it has become ready: its version, its volumes and its
 * capacity, and what to do if there is no capacity.
 *
 * Threads: any. If there is no capacity at all, it looks at all regions, and blocks as memory_advise().
 */
#pragma once

#include "volume/volumes.h"

/** node_ready_log() - log one line, "ready", and a warning if no volume can be created on this node.
 * @v:            ready
 * @mode:         of the device manager: "lvm", "direct" or "fake"
 * @regions_path: sysfs folder of the nvdimm bus
 * @state_path:   has records of former volume groups */
void node_ready_log(struct volumes *v, const char *mode, const char *regions_path, const char *state_path);
