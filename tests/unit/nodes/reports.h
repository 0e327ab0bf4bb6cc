/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reports.h - registrations of nodes for tests.
 */
#pragma once

#include "nodes/node_table.h"

/** report_new() - of a node with a lease of 90 s, an empty inventory and one region of 16 GiB. Return: never
 * NULL; node_report_free() or node_table_put(). */
struct node_report *report_new(const char *node_id);

/** report_add_volume() - one more, ready, of 1 GiB. Return: borrowed until the next one. */
struct volume_report *report_add_volume(struct node_report *r, const char *id, const char *name);
