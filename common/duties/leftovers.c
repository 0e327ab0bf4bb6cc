/* SPDX-License-Identifier: Apache-2.0 */
#include "duties/leftovers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/name_index.h"
#include "base/random.h"
#include "base/str.h"
#include "controller/controller_private.h"
#include "volume/id.h"

/* Between the two looks that must find neither PV nor PVC, and before the first one at all. */
#define TWICE_NS (300 * NS_PER_S)
/* After a look that failed, or while a call for the volume is under way. */
#define SOON_NS (60 * NS_PER_S)
/* A volume that is in order, or that is only reported, is looked at again rarely: twenty thousand of them are
 * one request per second. */
#define AGAIN_NS (6 * 3600 * NS_PER_S)
/* The API has other work: look-ups under way at a time. */
#define LOOKS_MAX 32

#define NAME_PREFIX "pvc-"
#define KEY_MAX     (VOLUME_ID_MAX + 256)

/* One copy: a volume on a node. */
struct suspect {
	struct name_link link; /* by "<volume id>/<node id>" */
	struct leftovers *all;
	struct suspect *next;
	char *key;
	char *node_id;
	char *id;
	char *name;
	uint64_t due_ns;
	uint64_t absent_ns; /* when neither PV nor PVC was found first; 0: not so */
	bool busy;          /* being looked up, or deleted */
	bool had_volume;    /* it was seen to be that of a PV */
	bool told;          /* of being kept */
	bool present;       /* seen by the walk over the table that runs */
};

struct leftovers {
	struct leftovers_config config;
	struct name_index index;
	struct suspect *first;
	size_t n_busy;
	uint64_t now_ns; /* of the last tick */
	bool closed;
};

struct leftovers *leftovers_new(const struct leftovers_config *config)
{
	struct leftovers *l = x_calloc(1, sizeof(*l));

	l->config = *config;
	name_index_init(&l->index);
	return l;
}

static void suspect_free(struct leftovers *l, struct suspect *s)
{
	name_index_remove(&l->index, &s->link);
	free(s->key);
	free(s->node_id);
	free(s->id);
	free(s->name);
	free(s);
}

static void release(struct leftovers *l)
{
	while (l->first) {
		struct suspect *s = l->first;

		l->first = s->next;
		suspect_free(l, s);
	}
	name_index_done(&l->index);
	free(l);
}

void leftovers_free(struct leftovers *l)
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
	struct leftovers *l = s->all;

	s->busy = false;
	l->n_busy--;
	if (!l->closed)
		return true;
	if (l->n_busy == 0)
		release(l);
	return false;
}

/* `pvc-<uid>`, as external-provisioner names volumes. */
static bool is_of_claim(const char *name)
{
	return str_starts(name, NAME_PREFIX) && strlen(name) == strlen(NAME_PREFIX) + UUID_TEXT_LEN &&
	       strspn(name + strlen(NAME_PREFIX), "0123456789abcdef-") == UUID_TEXT_LEN;
}

static struct suspect *add_suspect(
	struct leftovers *l, const char *key, const struct node *node, const struct volume_report *v)
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

static void see(struct leftovers *l, const struct node *node, const struct volume_report *v)
{
	char key[KEY_MAX];
	struct suspect *s;

	if (v->phase != PHASE_READY || !is_of_claim(v->name))
		return;
	snprintf(key, sizeof(key), "%s/%s", v->id, node->report.node_id);
	s = (struct suspect *)name_index_first(&l->index, key);
	if (!s)
		s = add_suspect(l, key, node, v);
	s->present = true;
}

static void walk(struct leftovers *l)
{
	const struct node *const *nodes;
	size_t n = node_table_nodes(l->config.controller->config.nodes, &nodes);

	for (size_t i = 0; i < n; i++) {
		const struct volume_report *v;
		size_t at = 0;

		while (nodes[i]->live && (v = node_next_volume(nodes[i], &at)) != NULL)
			see(l, nodes[i], v);
	}
}

static void drop_absent(struct leftovers *l)
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

static void on_deleted(void *user, const ProtobufCMessage *reply, const struct error *error)
{
	struct suspect *s = user;
	struct leftovers *l = s->all;
	const struct leftovers_observer *o = &l->config.observer;
	struct volume_key key = volume_key_of_name(s->name);

	(void)reply;
	attempts_unlock(l->config.controller->attempts, &key);
	if (!end_busy(s))
		return;
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

static void keep(struct suspect *s, const char *why)
{
	struct leftovers *l = s->all;
	const struct leftovers_observer *o = &l->config.observer;

	s->due_ns = l->now_ns + AGAIN_NS;
	if (s->told)
		return;
	s->told = true;
	o->kept(o->user, s->node_id, s->id, why);
}

/* This copy was reported to nobody, as far as the API knows. */
static void get_rid_of(struct suspect *s)
{
	struct leftovers *l = s->all;
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
	if (!v->made_by_controller) {
		keep(s, "it was not made by this controller");
		return;
	}
	s->due_ns = l->now_ns + SOON_NS;
	if (!attempts_lock(c->attempts, &key, l->now_ns))
		return;
	set_busy(s);
	controller_delete_copy(c, node, s->id, on_deleted, s);
}

/* Of a volume whose ID names no node, as of a cache volume, each node has its own copy. */
static bool lists_node(const struct claim_state *state, const struct suspect *s)
{
	if (strchr(s->id, '.') || state->n_node_ids == 0)
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
		get_rid_of(s);
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
			get_rid_of(s);
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
	struct leftovers *l = s->all;
	struct volume_key key = volume_key_of_name(s->name);

	if (attempts_locked(l->config.controller->attempts, &key)) {
		s->absent_ns = 0;
		s->due_ns = l->now_ns + SOON_NS;
		return;
	}
	set_busy(s);
	l->config.lookup.look(l->config.lookup.self, s->name, s->id, on_looked, s);
}

void leftovers_tick(struct leftovers *l, uint64_t now_ns)
{
	l->now_ns = now_ns;
	walk(l);
	drop_absent(l);
	for (struct suspect *s = l->first; s && l->n_busy < LOOKS_MAX; s = s->next) {
		if (!s->busy && now_ns >= s->due_ns)
			look(s);
	}
}
