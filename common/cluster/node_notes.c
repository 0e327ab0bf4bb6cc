/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "cluster/node_table_private.h"

static void note_done(struct node_note *note)
{
	node_volume_done(&note->volume);
}

void node_notes_done(struct node *node)
{
	for (size_t i = 0; i < node->n_notes; i++)
		note_done(&node->notes[i]);
	free(TAKE_PTR(node->notes));
	node->n_notes = 0;
}

/* What the report says of the volume @id, or NULL. */
static const struct node_volume *reported(const struct node *node, const char *id)
{
	for (size_t i = 0; i < node->report.n_volumes; i++) {
		if (str_eq(node->report.volumes[i].id, id))
			return &node->report.volumes[i];
	}
	return NULL;
}

/* A volume that is being erased was deleted as far as any caller is concerned. */
static bool agrees(const struct node *node, const struct node_note *note)
{
	const struct node_volume *v = reported(node, note->volume.id);

	return note->deleted ? !v || v->phase == NODE_VOLUME_ERASING : v != NULL;
}

bool node_notes_settle(struct node *node, uint64_t now_ns, bool has_report)
{
	size_t kept = 0;
	size_t before = node->n_notes;

	for (size_t i = 0; i < before; i++) {
		struct node_note *note = &node->notes[i];

		if (now_ns >= note->until_ns ||
			(has_report && node->report.has_inventory && agrees(node, note)))
			note_done(note);
		else
			node->notes[kept++] = *note;
	}
	node->n_notes = kept;
	if (kept == 0)
		free(TAKE_PTR(node->notes));
	return kept < before;
}

static void drop_note(struct node *node, const char *id)
{
	for (size_t i = 0; i < node->n_notes; i++) {
		if (!str_eq(node->notes[i].volume.id, id))
			continue;
		note_done(&node->notes[i]);
		node->notes[i] = node->notes[--node->n_notes];
		return;
	}
}

/* Takes what @note points to. */
static void add_note(struct node_table *t, struct node_place *p, const struct node_note *note)
{
	struct node *node = &p->node;

	node_place_unindex(t, p);
	drop_note(node, note->volume.id);
	node->notes = x_realloc(node->notes, node->n_notes + 1, sizeof(*node->notes));
	node->notes[node->n_notes++] = *note;
	node_place_index(t, p);
	node_place_tell(t, p);
}

void node_table_note_created(
	struct node_table *t, const char *node_id, const struct node_volume *v, uint64_t now_ns)
{
	struct node_place *p = node_place_find(t, node_id);
	struct node_note note = {.until_ns = now_ns + NODE_NOTE_NS};

	if (!p)
		return;
	note.volume = *v;
	note.volume.id = x_strdup(v->id);
	note.volume.name = x_strdup(v->name);
	add_note(t, p, &note);
}

void node_table_note_deleted(struct node_table *t, const char *node_id, const char *id, uint64_t now_ns)
{
	struct node_place *p = node_place_find(t, node_id);
	struct node_note note = {.until_ns = now_ns + NODE_NOTE_NS, .deleted = true};

	if (!p)
		return;
	note.volume.id = x_strdup(id);
	note.volume.name = x_strdup("");
	add_note(t, p, &note);
}
