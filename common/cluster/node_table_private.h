/* SPDX-License-Identifier: Apache-2.0 */
/*
 * node_table_private.h - inside of the node table. Private to node_table*.c and node_notes.c.
 *
 * Threads: as node_table.h.
 */
#pragma once

#include "base/random.h"
#include "cluster/name_index.h"
#include "cluster/node_table.h"

/* One volume of a node, as it is found by ID and by name. */
struct volume_place {
	struct name_link by_id;
	struct name_link by_name;
	struct node_place *node;
	const struct node_volume *volume;
};

struct node_place {
	struct node node;
	struct name_link by_id;
	struct name_link by_hash;
	struct node_place *older; /* by generation */
	struct node_place *newer;
	struct volume_place *volumes; /* what node_next_volume() gives */
	size_t n_volumes;
};

struct node_watcher {
	struct node_watcher *next;
	node_changed_fn fn;
	void *user;
};

struct node_table {
	struct node **nodes; /* of places; sorted by ID */
	size_t n;
	size_t room;
	struct name_index by_id;
	struct name_index by_hash;
	struct name_index volumes_by_id;
	struct name_index volumes_by_name;
	struct node_place *oldest;
	struct node_place *newest;
	uint64_t generation;
	char instance[UUID_TEXT_LEN + 1];
	struct node_watcher *watchers;
};

/** node_place_find() - Return: NULL if the node is not in @t. */
struct node_place *node_place_find(const struct node_table *t, const char *node_id);

/** node_place_unindex() - the volumes of @p are about to change. node_place_index(): they have. */
void node_place_unindex(struct node_table *t, struct node_place *p);
void node_place_index(struct node_table *t, struct node_place *p);

/** node_place_tell() - tell the watchers that @p has changed. */
void node_place_tell(struct node_table *t, const struct node_place *p);

/** node_notes_settle() - drop the notes that are over at @now_ns and, if there is a new report, those that it
 * agrees with. The caller has unindexed @node. Return: whether any went. */
bool node_notes_settle(struct node *node, uint64_t now_ns, bool has_report);

/** node_notes_done() - release them all. */
void node_notes_done(struct node *node);
