/* SPDX-License-Identifier: Apache-2.0 */
/*
 * records_by_node.h - which records of volumes name a node, for work that begins with a node.
 *
 * Threads: one owner. Nothing blocks.
 */
#pragma once

#include <stddef.h>

#include "controller/volume_key.h"

struct records_by_node;

/** records_by_node_new() - an empty index. Return: never NULL; records_by_node_free(). */
struct records_by_node *records_by_node_new(void);

/** records_by_node_free() - release @index. NULL is allowed. */
void records_by_node_free(struct records_by_node *index);

/** records_by_node_note() - the nodes of the record with @key have changed. @before, @after: strv of node
 * IDs, NULL: none; @before has to be what was noted last. */
void records_by_node_note(
	struct records_by_node *index, const struct volume_key *key, char *const *before, char *const *after);

/** records_by_node_get() - the records that name @node_id. @ret: borrowed until the next change. Return: how
 * many. */
size_t records_by_node_get(
	const struct records_by_node *index, const char *node_id, const struct volume_key **ret);

/** records_by_node_each() - call @fn for each node that a record names, in any order. @fn must not change
 * @index. */
void records_by_node_each(
	const struct records_by_node *index, void (*fn)(void *user, const char *node_id), void *user);
