/* SPDX-License-Identifier: Apache-2.0 */
/*
 * node_room.h - what a driver that has become ready says of itself: its version, its volumes and its room,
 * and what to do where it has none.
 *
 * Threads: any. Reads sizes of regions from sysfs where there is no room at all.
 */
#pragma once

#include "volume/volumes.h"

/** node_room_log() - one line, "ready", and a warning where no volume can ever be made as things are.
 * @v:            ready
 * @mode:         of the device manager: "lvm", "direct" or "fake"
 * @regions_path: sysfs folder of the nvdimm bus */
void node_room_log(struct volumes *v, const char *mode, const char *regions_path);
