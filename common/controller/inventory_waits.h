/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inventory_waits.h - for how long CreateVolume waits for a node that is live and has not reported its
 * volumes.
 *
 * A driver that has just started may need a moment for its first report. A node that never sends one would
 * otherwise keep all claims waiting that any node may serve. Each node has a budget of INVENTORY_WAIT_NS in
 * every INVENTORY_PERIOD_NS; both begin when a call is held up by the node. The caller waits
 * without a limit for nodes that may have the volume (docs/decisions/108-nodes-that-report-no-volumes.md).
 * Threads: one owner. Nothing blocks or reads a clock.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"

#define INVENTORY_WAIT_NS   90000000000ULL
#define INVENTORY_PERIOD_NS 3600000000000ULL

struct inventory_waits;

/** inventory_waits_new() - no node was waited for yet. Return: never NULL; inventory_waits_free(). */
struct inventory_waits *inventory_waits_new(void);
void inventory_waits_free(struct inventory_waits *w);
DEFINE_CLEANUP(struct inventory_waits *, inventory_waits_free);

/** inventory_waits_for() - whether a call waits for @node_id (copied), which has not reported its volumes.
 * @now_ns: a clock that goes forward, the same in all calls */
bool inventory_waits_for(struct inventory_waits *w, const char *node_id, uint64_t now_ns);
