/* SPDX-License-Identifier: Apache-2.0 */
/*
 * registration_report.h - what a node says of itself to the controller, as a message; the controller passes
 * it on to the scheduler extender in the same form.
 *
 * Threads: safe. Never waits. Source: registry.proto.
 */
#pragma once

#include "registry.pb-c.h"

#include "base/arena.h"
#include "volume/report.h"

/** registration_report() - add regions and inventory to @q, copied into @arena. Without a call @q has
 * neither, which tells the controller that the node cannot say yet. */
void registration_report(
	const struct volumes_report *report, Registry__V0__RegisterControllerRequest *q, struct arena *arena);

/** registration_pool(), registration_volume() - one of them, copied into @arena; a volume without its claim.
 */
Registry__V0__RegionCapacity *registration_pool(const struct pool_report *p, struct arena *arena);
Registry__V0__InventoryVolume *registration_volume(const struct volume_report *v, struct arena *arena);
