/* SPDX-License-Identifier: Apache-2.0 */
/*
 * table_check.h - what holds of every node table that only the registry changes.
 *
 * Threads: the table's.
 */
#pragma once

#include "nodes/node_table.h"

/** table_check() - assert that what is in @t is within the registry's limits, sorted, and found in each way
 * that it can be looked up. */
void table_check(const struct node_table *t);
