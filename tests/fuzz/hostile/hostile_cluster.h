/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hostile_cluster.h - a history of a cluster in which one node lies: a controller with its records and its
 * registry, a provisioner, two honest nodes, and one that replies and reports what bytes of an input say.
 *
 * Each step begins with a byte for the action and one for its object. These invariants are asserted after
 * each of them (hostile_invariants.c):
 * - a handle that is given out is one that each node named with it mints for the name;
 * - the snapshots of a group are on one node, which has all of them;
 * - no handle has two names, and no name a second handle where the first one is on a node that was connected
 * when the provisioner asked;
 * - no call reaches a node for a volume whose ID, or record, names others;
 * - a record names a node only while the provisioner asks for that volume, and that of a copy only a node
 * that its source can be on;
 * - a call that waits for nodes has asked one;
 * - after the history nothing waits for ever (hostile_end.c): while the node that lies registers and is
 *   silent otherwise, volumes that it was not asked for are made and deleted, and all are, and are listed,
 *   when it was taken out of the cluster;
 * - what an honest node has is deleted only if the provisioner has asked for that very volume, or has been
 *   given another one instead of it before any pod used it.
 * Threads: one; nothing sleeps.
 */
#pragma once

#include "base/span.h"

/** hostile_cluster_run() - play the history @in from the start of a controller to its end. */
void hostile_cluster_run(struct span in);
