/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fake_nodes.h - in place of scheduler/sched_nodes.h: says what it was told, one line per call: "begin", "put
 * a", "end a", "over" (of sched_nodes_end_table()).
 */
#pragma once

#include "base/buf.h"
#include "scheduler/sched_nodes.h"

/** fake_nodes_told() - all of it so far. */
const char *fake_nodes_told(const struct sched_nodes *nodes);
