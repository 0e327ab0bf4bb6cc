/* SPDX-License-Identifier: Apache-2.0 */
/*
 * registration_report.h - makes the message with a node's report to the controller, which passes it on to the
 * scheduler extender in the same form.
 *
 * Threads: safe. Never waits. Source: registry.proto.
 */
#pragma once

#include <stdbool.h>

#include "registry.pb-c.h"

#include "base/arena.h"
#include "volume/report.h"

/** registration_report() - add regions and inventory to @q, copied into @arena. Without a call @q has
 * neither, which means for the controller that the node does not know them yet. Return: whether all that is
 * wrong with volumes had room; otherwise the worst of it has. */
bool registration_report(
	const struct volumes_report *report, Registry__V0__RegisterControllerRequest *q, struct arena *arena);

/** registration_pool(), registration_volume() - copy one of them into @arena; a volume without its claim and
 * its health.
 */
Registry__V0__RegionCapacity *registration_pool(const struct pool_report *p, struct arena *arena);
Registry__V0__InventoryVolume *registration_volume(const struct volume_report *v, struct arena *arena);
