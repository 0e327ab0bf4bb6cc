/* SPDX-License-Identifier: Apache-2.0 */
#include "duties/orphans.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/name_index.h"
#include "base/str.h"
#include "controller/controller_private.h"
#include "duties/claim_lookup.h"
#include "volume/id.h"

/* Between the two looks that must find neither PV nor PVC, and before the first one at all. */
#define TWICE_NS (300 * NS_PER_S)
/* After a look that failed, or while a call for the volume is under way. */
#define SOON_NS (60 * NS_PER_S)
/* A volume that is in order, or that is only reported, is looked at again rarely: twenty thousand of them are
 * one request per second. */
#define AGAIN_NS (6 * 3600 * NS_PER_S)
/* How often all records are looked at: a hundred thousand of them take a fraction of a second. */
#define WALK_NS (60 * NS_PER_S)
/* The API has other work: look-ups under way at a time. */
#define LOOKS_MAX 32

#define KEY_MAX (VOLUME_ID_MAX + 256)

/* One copy: a volume on a node. */
struct suspect {
	struct name_link link; /* by "<volume id>/<node id>" */
	struct orphans *all;
	struct suspect *next;
	char *key;
	char *node_id;
	char *id;
	char *name;
	uint64_t due_ns;
	uint64_t absent_ns; /* when neither PV nor PVC was found first; 0: not so */
	bool busy;          /* being looked up, or deleted */
	bool had_volume;    /* it was seen to be that of a PV */
	bool was_reported;  /* as being kept */
	bool is_reported;   /* its record was made of reports */
	bool is_checked;    /* its node can check that it was never staged */
	bool present;       /* seen by the walk over the table that runs */
};

struct orphans {
	struct orphans_config config;
	struct name_index index;
	struct suspect *first;
	size_t n_busy;
	uint64_t now_ns;    /* of the last tick */
	uint64_t walked_ns; /* when all records were looked at last; 0: never */
	bool closed;
};

struct orphans *orphans_new(const struct orphans_config *config)
{
	struct orphans *l = x_calloc(1, sizeof(*l));

	l->config = *config;
	name_index_init(&l->index);
	return l;
}

static void suspect_free(struct orphans *l, struct suspect *s)
{
	name_index_remove(&l->index, &s->link);
	free(s->key);
	free(s->node_id);
	free(s->id);
	free(s->name);
	free(s);
}

static void release(struct orphans *l)
{
	while (l->first) {
		struct suspect *s = l->first;

		l->first = s->next;
		suspect_free(l, s);
	}
	name_index_done(&l->index);
	free(l);
}

void orphans_free(struct orphans *l)
{
	if (!l)
		return;
	l->closed = true;
	if (l->n_busy == 0)
		release(l);
}

static void set_busy(struct suspect *s)
{
	s->busy = true;
	s->all->n_busy++;
}

/* Return: false: the owner has gone, and with it the suspect. */
static bool end_busy(struct suspect *s)
{
	struct orphans *l = s->all;

	s->busy = false;
	l->n_busy--;
	if (!l->closed)
		return true;
	if (l->n_busy == 0)
		release(l);
	return false;
}

static struct suspect *add_suspect(
	struct orphans *l, const char *key, const struct node *node, const struct volume_report *v)
{
	struct suspect *s = x_calloc(1, sizeof(*s));

	*s = (struct suspect){.all = l,
		.next = l->first,
		.key = x_strdup(key),
		.node_id = x_strdup(node->report.node_id),
		.id = x_strdup(v->id),
		.name = x_strdup(v->name),
		.due_ns = l->now_ns + TWICE_NS};
	l->first = s;
	name_index_add(&l->index, &s->link, s->key);
	return s;
}

/* A copy under another handle of a volume of the same name has a record of its own. */
static bool belongs_to(const struct pmem_volume *record, const struct node_hit *hit)
{
	struct volume_key key = volume_key_of_handle(hit->volume->id);

	return strncmp(record->meta.name, key.hex, PMEM_VOLUME_KEY_LEN) == 0 &&
	       strv_contains(record->nodes, hit->node->report.node_id);
}

static void see_copy(struct orphans *l, const struct pmem_volume *record, const struct node_hit *hit)
{
	char key[KEY_MAX];
	struct suspect *s;

	if (!hit->node->live || hit->volume->phase != PHASE_READY || !belongs_to(record, hit))
		return;
	snprintf(key, sizeof(key), "%s/%s", hit->volume->id, hit->node->report.node_id);
	s = (struct suspect *)name_index_first(&l->index, key);
	if (!s)
		s = add_suspect(l, key, hit->node, hit->volume);
	s->is_reported = record->origin != NULL;
	s->is_checked = hit->node->report.serves_node_volumes;
	s->present = true;
}

static void see_record(void *user, const struct pmem_volume *record)
{
	struct orphans *l = user;
	struct node_hit *hits;
	size_t n;

	if (record->deleting || !record->volume_name || !claim_lookup_finds(record->volume_name))
		return;
	n = node_table_find_name(l->config.controller->config.nodes, record->volume_name, &hits);
	for (size_t i = 0; i < n; i++)
		see_copy(l, record, &hits[i]);
	free(hits);
}

static void drop_absent(struct orphans *l)
{
	struct suspect **at = &l->first;

	while (*at) {
		struct suspect *s = *at;

		if (s->present || s->busy) {
			s->present = false;
			at = &s->next;
			continue;
		}
		*at = s->next;
		suspect_free(l, s);
	}
}

static void keep(struct suspect *s, const char *why)
{
	struct orphans *l = s->all;
	const struct orphans_observer *o = &l->config.observer;

	s->due_ns = l->now_ns + AGAIN_NS;
	if (s->was_reported)
		return;
	s->was_reported = true;
	o->kept(o->user, s->node_id, s->id, why);
}

static void on_deleted(void *user, const struct error *error)
{
	struct suspect *s = user;
	struct orphans *l = s->all;
	const struct orphans_observer *o = &l->config.observer;
	struct volume_key key = volume_key_of_name(s->name);

	key_unlock(l->config.controller->locks, &key);
	if (!end_busy(s))
		return;
	if (error && error->code == ERR_PRECONDITION) {
		keep(s, error->msg);
		return;
	}
	s->due_ns = l->now_ns + TWICE_NS;
	o->deleted(o->user, s->node_id, s->id, error);
}

/* The volume as the table has it now. Return: NULL: it is gone, or not ready. */
static const struct volume_report *find_now(const struct suspect *s, const struct node **ret_node)
{
	const struct node *node = controller_live_node(s->all->config.controller, s->node_id);
	const struct volume_report *v;
	size_t at = 0;

	while (node && (v = node_next_volume(node, &at)) != NULL) {
		if (!str_eq(v->id, s->id))
			continue;
		*ret_node = node;
		return v->phase == PHASE_READY && str_eq(v->name, s->name) ? v : NULL;
	}
	return NULL;
}

/* No caller was given this copy, as far as the API knows. */
static void delete_orphan(struct suspect *s)
{
	struct orphans *l = s->all;
	struct controller *c = l->config.controller;
	struct volume_key key = volume_key_of_name(s->name);
	const struct node *node = NULL;
	const struct volume_report *v = find_now(s, &node);

	if (!v)
		return;
	if (v->ever_staged) {
		keep(s, "it was in use and may hold data");
		return;
	}
	if (s->is_reported || !v->made_by_controller) {
		keep(s, "no record says that this controller asked for it");
		return;
	}
	if (!s->is_checked) {
		keep(s, "the driver of its node cannot check that it was never in use; update it");
		return;
	}
	s->due_ns = l->now_ns + SOON_NS;
	if (!key_lock(c->locks, &key))
		return;
	set_busy(s);
	controller_remove_copy(c, node, s->id, on_deleted, s);
}

/* Whether the PersistentVolume can be used on the node of the suspected copy. This matters for volumes whose
 * ID names no node, such as cache volumes: each of their nodes has its own copy under the same ID. */
static bool lists_node(const struct claim_state *state, const struct suspect *s)
{
	if (volume_id_has_node(s->id) || state->n_node_ids == 0)
		return true;
	for (size_t i = 0; i < state->n_node_ids; i++) {
		if (str_eq(state->node_ids[i], s->node_id))
			return true;
	}
	return false;
}

static void judge_by_volume(struct suspect *s, const struct claim_state *state)
{
	bool own = str_eq(state->handle, s->id);

	s->absent_ns = 0;
	s->due_ns = s->all->now_ns + AGAIN_NS;
	s->had_volume = s->had_volume || own || state->is_referenced;
	if (!state->is_referenced && (!own || !lists_node(state, s)))
		delete_orphan(s);
}

static void judge(struct suspect *s, const struct claim_state *state)
{
	uint64_t now_ns = s->all->now_ns;

	if (state->has_volume || state->is_referenced) {
		judge_by_volume(s, state);
		return;
	}
	s->due_ns = now_ns + TWICE_NS;
	if (state->has_claim) {
		s->absent_ns = 0;
	} else if (s->absent_ns == 0) {
		s->absent_ns = now_ns;
	} else if (now_ns - s->absent_ns >= TWICE_NS) {
		if (s->had_volume)
			keep(s, "its PersistentVolume has gone without being deleted through this driver");
		else
			delete_orphan(s);
	}
}

static void on_looked(void *user, const struct claim_state *state, const struct error *error)
{
	struct suspect *s = user;

	if (!end_busy(s))
		return;
	if (error)
		s->due_ns = s->all->now_ns + SOON_NS;
	else
		judge(s, state);
}

static void look(struct suspect *s)
{
	struct orphans *l = s->all;
	struct volume_key key = volume_key_of_name(s->name);

	if (key_is_locked(l->config.controller->locks, &key)) {
		s->absent_ns = 0;
		s->due_ns = l->now_ns + SOON_NS;
		return;
	}
	set_busy(s);
	l->config.lookup.look(l->config.lookup.self, s->name, s->id, on_looked, s);
}

void orphans_tick(struct orphans *l, uint64_t now_ns)
{
	l->now_ns = now_ns;
	if (l->walked_ns == 0 || now_ns - l->walked_ns >= WALK_NS) {
		l->walked_ns = now_ns;
		l->config.records.each(l->config.records.self, see_record, l);
		drop_absent(l);
	}
	for (struct suspect *s = l->first; s && l->n_busy < LOOKS_MAX; s = s->next) {
		if (!s->busy && now_ns >= s->due_ns)
			look(s);
	}
}
