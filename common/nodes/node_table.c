/* SPDX-License-Identifier: Apache-2.0 */
#include "nodes/node_table.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/mem.h"
#include "base/name_index.h"
#include "base/random.h"
#include "base/sorted.h"
#include "base/str.h"
#include "volume/params.h"

/* One volume of a node, as it is found by ID and by name. */
struct volume_place {
	struct name_link by_id;
	struct name_link by_name;
	struct node_place *node;
	const struct volume_report *volume;
};

struct node_place {
	struct node node;
	struct name_link by_id;
	struct name_link by_hash;
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
	struct node_watcher *watchers;
};

static void node_place_index(struct node_table *t, struct node_place *p);
static bool node_notes_settle(struct node *node, uint64_t now_ns, bool has_report);
static void node_notes_done(struct node *node);

struct node_table *node_table_new(void)
{
	struct node_table *t = x_calloc(1, sizeof(*t));

	name_index_init(&t->by_id);
	name_index_init(&t->by_hash);
	name_index_init(&t->volumes_by_id);
	name_index_init(&t->volumes_by_name);
	return t;
}

static void place_free(struct node_place *p)
{
	node_report_done(&p->node.report);
	node_notes_done(&p->node);
	free(p->volumes);
	free(p);
}

void node_table_free(struct node_table *t)
{
	if (!t)
		return;
	for (size_t i = 0; i < t->n; i++)
		place_free(OWNER_OF(t->nodes[i], struct node_place, node));
	free(t->nodes);
	while (t->watchers)
		node_table_unwatch(t, t->watchers->fn, t->watchers->user);
	name_index_done(&t->by_id);
	name_index_done(&t->by_hash);
	name_index_done(&t->volumes_by_id);
	name_index_done(&t->volumes_by_name);
	free(t);
}

/* Return: NULL if the node is not in @t. */
static struct node_place *node_place_find(const struct node_table *t, const char *node_id)
{
	struct name_link *l = name_index_first(&t->by_id, node_id);

	return l ? OWNER_OF(l, struct node_place, by_id) : NULL;
}

/* The volumes of @p are about to change. node_place_index(): they have. */
static void node_place_unindex(struct node_table *t, struct node_place *p)
{
	for (size_t i = 0; i < p->n_volumes; i++) {
		name_index_remove(&t->volumes_by_id, &p->volumes[i].by_id);
		if (!str_empty(p->volumes[i].volume->name))
			name_index_remove(&t->volumes_by_name, &p->volumes[i].by_name);
	}
	free(TAKE_PTR(p->volumes));
	p->n_volumes = 0;
}

static void node_place_index(struct node_table *t, struct node_place *p)
{
	const struct volume_report *v;
	size_t at = 0;

	p->volumes = x_calloc(p->node.report.n_volumes + p->node.n_notes, sizeof(*p->volumes));
	while ((v = node_next_volume(&p->node, &at)) != NULL) {
		struct volume_place *place = &p->volumes[p->n_volumes++];

		place->node = p;
		place->volume = v;
		name_index_add(&t->volumes_by_id, &place->by_id, v->id);
		/* Volumes without a name are never looked up, and there may be any number of them. */
		if (!str_empty(v->name))
			name_index_add(&t->volumes_by_name, &place->by_name, v->name);
	}
}

/* Call the watchers: @p has changed. */
static void notify_watchers(struct node_table *t, const struct node_place *p)
{
	for (struct node_watcher *w = t->watchers, *next; w; w = next) {
		next = w->next;
		w->fn(w->user, &p->node);
	}
}

static int order_node(const void *element, const void *key)
{
	const struct node *const *node = element;

	return strcmp((*node)->report.node_id, key);
}

/* Index in the array at which @node_id is, or would be inserted. */
static size_t place_index(const struct node_table *t, const char *node_id)
{
	bool found;

	return sorted_find(t->nodes, t->n, sizeof(*t->nodes), node_id, order_node, &found);
}

/* Takes what @report points to. */
static struct node_place *add_place(struct node_table *t, struct node_report *report)
{
	struct node_place *p = x_calloc(1, sizeof(*p));
	size_t at = place_index(t, report->node_id);
	char digest[SHA224_HEX_LEN + 1];

	sha224_hex(report->node_id, strlen(report->node_id), digest);
	memcpy(p->node.hash, digest, NODE_HASH_LEN);
	p->node.report = *report;
	if (t->n == t->room) {
		t->room = t->room > 0 ? t->room * 2 : 16;
		t->nodes = x_realloc(t->nodes, t->room, sizeof(struct node *));
	}
	memmove(&t->nodes[at + 1], &t->nodes[at], (t->n - at) * sizeof(struct node *));
	t->nodes[at] = &p->node;
	t->n++;
	name_index_add(&t->by_id, &p->by_id, p->node.report.node_id);
	name_index_add(&t->by_hash, &p->by_hash, p->node.hash);
	return p;
}

/* Takes what @report points to. The ID stays: it is what the index points to. */
static void replace_report(struct node_place *p, struct node_report *report)
{
	char *id = TAKE_PTR(p->node.report.node_id);

	node_report_done(&p->node.report);
	free(report->node_id);
	p->node.report = *report;
	p->node.report.node_id = id;
}

/* A driver that starts reports none at first, and has those that it had before. */
static void keep_volumes(struct node_report *old, struct node_report *report)
{
	if (report->has_inventory || report->n_volumes > 0)
		return;
	report->volumes = TAKE_PTR(old->volumes);
	report->n_volumes = old->n_volumes;
	old->n_volumes = 0;
}

/* Whether anything but the lease is new. */
static bool brings_news(const struct node_place *p, const struct node_report *report)
{
	return !p || !p->node.live || p->node.n_notes > 0 || !node_report_equal(&p->node.report, report);
}

/* Finds the volume @id in the last report of @p; NULL: the report does not have it. Notes of replies are not
 * searched. */
static const struct volume_report *find_reported(
	const struct node_table *t, const struct node_place *p, const char *id)
{
	for (struct name_link *l = name_index_first(&t->volumes_by_id, id); l; l = name_index_next(l)) {
		const struct volume_place *place = OWNER_OF(l, struct volume_place, by_id);

		if (place->node == p && !node_hit_is_noted(&(struct node_hit){&p->node, place->volume}))
			return place->volume;
	}
	return NULL;
}

/* Compares @report with the previous report of the node, which it is about to replace, and notes in it since
 * when each volume was seen and which pauses are new. */
static void note_new_volumes(
	const struct node_table *t, const struct node_place *p, struct node_report *report, uint64_t now_ns)
{
	/* Without a list to compare with, none is known to be new. */
	for (size_t i = 0; p->node.report.has_inventory && i < report->n_volumes; i++) {
		struct volume_report *v = &report->volumes[i];
		const struct volume_report *old = find_reported(t, p, v->id);

		if (v->phase != PHASE_CREATING)
			v->seen_ns = old && old->phase != PHASE_CREATING ? old->seen_ns : now_ns;
		v->pause_is_new = old && v->pause.ended_ms > 0 && v->pause.ended_ms != old->pause.ended_ms;
	}
}

void node_table_put(struct node_table *t, struct node_report *report, uint64_t now_ns)
{
	struct node_place *p = node_place_find(t, report->node_id);
	bool news = brings_news(p, report);
	uint64_t lease_ms = report->lease_ms;

	if (p && news) {
		note_new_volumes(t, p, report, now_ns);
		node_place_unindex(t, p);
		keep_volumes(&p->node.report, report);
		replace_report(p, report);
		free(report);
	} else if (p) {
		node_report_free(report);
	} else {
		p = add_place(t, report);
		free(report);
	}
	p->node.live = true;
	p->node.report.lease_ms = lease_ms;
	p->node.registered_ns = now_ns;
	p->node.lease_until_ns = now_ns + lease_ms * NS_PER_MS;
	if (!news)
		return;
	node_notes_settle(&p->node, now_ns, /* has_report= */ true);
	node_place_index(t, p);
	notify_watchers(t, p);
	for (size_t i = 0; i < p->node.report.n_volumes; i++)
		p->node.report.volumes[i].pause_is_new = false;
}

static void end_lease(struct node_table *t, struct node_place *p)
{
	p->node.live = false;
	p->node.lease_until_ns = 0;
	notify_watchers(t, p);
}

void node_table_end(struct node_table *t, const char *node_id)
{
	struct node_place *p = node_place_find(t, node_id);

	if (p && p->node.live)
		end_lease(t, p);
}

void node_table_forget(struct node_table *t, const char *node_id)
{
	struct node_place *p = node_place_find(t, node_id);
	size_t at;

	if (!p)
		return;
	if (p->node.live)
		end_lease(t, p);
	at = place_index(t, p->node.report.node_id);
	memmove(&t->nodes[at], &t->nodes[at + 1], (t->n - at - 1) * sizeof(struct node *));
	t->n--;
	node_place_unindex(t, p);
	name_index_remove(&t->by_id, &p->by_id);
	name_index_remove(&t->by_hash, &p->by_hash);
	place_free(p);
}

static void expire_notes(struct node_table *t, struct node_place *p, uint64_t now_ns)
{
	node_place_unindex(t, p);
	bool changed = node_notes_settle(&p->node, now_ns, /* has_report= */ false);
	node_place_index(t, p);
	if (changed)
		notify_watchers(t, p);
}

void node_table_expire(struct node_table *t, uint64_t now_ns)
{
	for (size_t i = 0; i < t->n; i++) {
		struct node_place *p = OWNER_OF(t->nodes[i], struct node_place, node);

		if (p->node.live && now_ns >= p->node.lease_until_ns)
			end_lease(t, p);
		if (p->node.n_notes > 0)
			expire_notes(t, p, now_ns);
	}
}

void node_table_watch(struct node_table *t, node_changed_fn fn, void *user)
{
	struct node_watcher *w = x_malloc(sizeof(*w));

	*w = (struct node_watcher){t->watchers, fn, user};
	t->watchers = w;
}

void node_table_unwatch(struct node_table *t, node_changed_fn fn, void *user)
{
	for (struct node_watcher **at = &t->watchers; *at; at = &(*at)->next) {
		struct node_watcher *w = *at;

		if (w->fn != fn || w->user != user)
			continue;
		*at = w->next;
		free(w);
		return;
	}
}

const struct node *node_table_get(const struct node_table *t, const char *node_id)
{
	struct node_place *p = node_place_find(t, node_id);

	return p ? &p->node : NULL;
}

const struct node *node_table_get_live(const struct node_table *t, const char *node_id)
{
	const struct node *node = node_table_get(t, node_id);

	return node && node->live ? node : NULL;
}

size_t node_table_nodes(const struct node_table *t, const struct node *const **ret)
{
	*ret = (const struct node *const *)t->nodes;
	return t->n;
}

static int compare_nodes(const void *a, const void *b)
{
	const struct node *const *x = a;
	const struct node *const *y = b;

	return strcmp((*x)->report.node_id, (*y)->report.node_id);
}

size_t node_table_find_hash(const struct node_table *t, const char *hash, const struct node ***ret)
{
	const struct node **found = NULL;
	size_t n = 0;

	for (struct name_link *l = name_index_first(&t->by_hash, hash); l; l = name_index_next(l)) {
		found = x_realloc(found, n + 1, sizeof(*found));
		found[n++] = &OWNER_OF(l, struct node_place, by_hash)->node;
	}
	if (n > 1)
		qsort(found, n, sizeof(*found), compare_nodes);
	*ret = found;
	return n;
}

static int compare_hits(const void *a, const void *b)
{
	const struct node_hit *x = a;
	const struct node_hit *y = b;

	return strcmp(x->node->report.node_id, y->node->report.node_id);
}

static void add_hit(const struct volume_place *place, struct node_hit **hits, size_t n)
{
	*hits = x_realloc(*hits, n + 1, sizeof(**hits));
	(*hits)[n] = (struct node_hit){&place->node->node, place->volume};
}

static void sort_hits(struct node_hit *hits, size_t n)
{
	if (n > 1)
		qsort(hits, n, sizeof(*hits), compare_hits);
}

size_t node_table_find_volume(const struct node_table *t, const char *id, struct node_hit **ret)
{
	struct node_hit *hits = NULL;
	size_t n = 0;

	for (struct name_link *l = name_index_first(&t->volumes_by_id, id); l; l = name_index_next(l))
		add_hit(OWNER_OF(l, struct volume_place, by_id), &hits, n++);
	sort_hits(hits, n);
	*ret = hits;
	return n;
}

size_t node_table_find_name(const struct node_table *t, const char *name, struct node_hit **ret)
{
	struct node_hit *hits = NULL;
	size_t n = 0;

	for (struct name_link *l = name_index_first(&t->volumes_by_name, name); l; l = name_index_next(l))
		add_hit(OWNER_OF(l, struct volume_place, by_name), &hits, n++);
	sort_hits(hits, n);
	*ret = hits;
	return n;
}

bool node_hit_is_noted(const struct node_hit *hit)
{
	for (size_t i = 0; i < hit->node->n_notes; i++) {
		if (hit->volume == &hit->node->notes[i].volume)
			return true;
	}
	return false;
}

static void note_done(struct node_note *note)
{
	volume_report_done(&note->volume);
}

/* Release them all. */
static void node_notes_done(struct node *node)
{
	for (size_t i = 0; i < node->n_notes; i++)
		note_done(&node->notes[i]);
	free(TAKE_PTR(node->notes));
	node->n_notes = 0;
}

/* Finds the volume @id in the report of @node; NULL: the report does not have it. */
static const struct volume_report *reported(const struct node *node, const char *id)
{
	for (size_t i = 0; i < node->report.n_volumes; i++) {
		if (str_eq(node->report.volumes[i].id, id))
			return &node->report.volumes[i];
	}
	return NULL;
}

static uint64_t reported_bytes(const struct node *node, const char *id)
{
	const struct volume_report *v = reported(node, id);

	return v && v->phase != PHASE_CREATING ? v->size_bytes : 0;
}

/* A volume that is being erased was deleted as far as any caller is concerned. If the volume of the reply is
 * reported as being created or erased, or as smaller than in the reply, the report is older than the
 * reply. */
static bool agrees(const struct node *node, const struct node_note *note)
{
	const struct volume_report *v = reported(node, note->volume.id);

	if (note->deleted)
		return !v || v->phase == PHASE_ERASING;
	return v && v->phase != PHASE_CREATING && v->phase != PHASE_ERASING &&
	       v->size_bytes >= note->volume.size_bytes;
}

/* Drop the notes that are over at @now_ns and, if there is a new report, those that it agrees with. The
 * caller has unindexed @node. Return: whether any was dropped. */
static bool node_notes_settle(struct node *node, uint64_t now_ns, bool has_report)
{
	size_t kept = 0;
	size_t before = node->n_notes;

	for (size_t i = 0; i < before; i++) {
		struct node_note *note = &node->notes[i];

		if (now_ns >= note->until_ns ||
			(has_report && node->report.has_inventory && agrees(node, note))) {
			note_done(note);
			continue;
		}
		note->reported_bytes = reported_bytes(node, note->volume.id);
		node->notes[kept++] = *note;
	}
	node->n_notes = kept;
	if (kept == 0)
		free(TAKE_PTR(node->notes));
	return kept < before;
}

/* Return: whether there was one. */
static bool drop_note(struct node *node, const char *id)
{
	for (size_t i = 0; i < node->n_notes; i++) {
		if (!str_eq(node->notes[i].volume.id, id))
			continue;
		note_done(&node->notes[i]);
		node->notes[i] = node->notes[--node->n_notes];
		return true;
	}
	return false;
}

/* Takes what @note points to. A report can overtake the reply: a note on a volume that it shows already would
 * only hide which report has shown it. */
static void add_note(struct node_table *t, struct node_place *p, struct node_note *note)
{
	struct node *node = &p->node;

	node_place_unindex(t, p);
	bool was_noted = drop_note(node, note->volume.id);
	if (!was_noted && !note->deleted && agrees(node, note)) {
		note_done(note);
	} else {
		node->notes = x_realloc(node->notes, node->n_notes + 1, sizeof(*node->notes));
		node->notes[node->n_notes++] = *note;
	}
	node_place_index(t, p);
	notify_watchers(t, p);
}

static void note_made(
	struct node_table *t, struct node_place *p, const struct volume_report *v, uint64_t now_ns)
{
	struct node_note note = {
		.reported_bytes = reported_bytes(&p->node, v->id), .until_ns = now_ns + NODE_NOTE_NS};

	note.volume = *v;
	note.volume.id = x_strdup(v->id);
	note.volume.name = x_strdup(v->name);
	note.volume.claim = x_strdup(v->claim);
	note.volume.source = x_strdup(v->source);
	note.volume.group = x_strdup(v->group);
	note.volume.health = (struct volume_health){0};
	health_copy(&note.volume.health, &v->health);
	add_note(t, p, &note);
}

void node_table_note_created(
	struct node_table *t, const char *node_id, const struct volume_report *v, uint64_t now_ns)
{
	struct node_place *p = node_place_find(t, node_id);

	if (p)
		note_made(t, p, v, now_ns);
}

void node_table_note_grown(
	struct node_table *t, const char *node_id, const char *id, uint64_t size_bytes, uint64_t now_ns)
{
	struct node_place *p = node_place_find(t, node_id);
	const struct volume_report *v;
	size_t at = 0;

	while (p && (v = node_next_volume(&p->node, &at)) != NULL) {
		struct volume_report grown = *v;

		if (!str_eq(v->id, id) || v->size_bytes >= size_bytes)
			continue;
		grown.size_bytes = size_bytes;
		note_made(t, p, &grown, now_ns);
		return;
	}
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

void node_report_done(struct node_report *r)
{
	for (size_t i = 0; i < r->n_pools; i++)
		pool_report_done(&r->pools[i]);
	for (size_t i = 0; i < r->n_volumes; i++)
		volume_report_done(&r->volumes[i]);
	free(r->pools);
	free(r->volumes);
	free(r->node_id);
	free(r->endpoint);
	free(r->device_mode);
	free(r->version);
	free(r->boot_id);
	free(r->instance);
	strv_free(r->foreign);
}

bool node_report_makes(const struct node_report *r, unsigned needs)
{
	return (!(needs & PARAMS_NEED_KATA) || r->makes_kata_volumes) &&
	       (!(needs & PARAMS_NEED_DIRECT) || r->makes_direct_volumes) &&
	       (!(needs & PARAMS_NEED_DURABILITY) || r->knows_durability);
}

void node_report_free(struct node_report *r)
{
	if (r)
		node_report_done(r);
	free(r);
}

bool node_report_equal(const struct node_report *a, const struct node_report *b)
{
	if (!str_eq(a->node_id, b->node_id) || !str_eq(a->endpoint, b->endpoint) ||
		!str_eq(a->device_mode, b->device_mode) || !str_eq(a->version, b->version) ||
		!str_eq(a->boot_id, b->boot_id) || !str_eq(a->instance, b->instance) ||
		a->number != b->number || a->n_pools != b->n_pools || a->n_volumes != b->n_volumes ||
		a->has_inventory != b->has_inventory || a->bound != b->bound ||
		a->serves_node_volumes != b->serves_node_volumes ||
		a->serves_expansion != b->serves_expansion ||
		a->serves_modification != b->serves_modification ||
		a->makes_kata_volumes != b->makes_kata_volumes ||
		a->makes_direct_volumes != b->makes_direct_volumes ||
		a->knows_durability != b->knows_durability || strv_len(a->foreign) != strv_len(b->foreign))
		return false;
	for (size_t i = 0; i < a->n_pools; i++) {
		if (!pool_report_equal(&a->pools[i], &b->pools[i]))
			return false;
	}
	for (size_t i = 0; i < strv_len(a->foreign); i++) {
		if (!str_eq(a->foreign[i], b->foreign[i]))
			return false;
	}
	for (size_t i = 0; i < a->n_volumes; i++) {
		if (!volume_report_equal(&a->volumes[i], &b->volumes[i]))
			return false;
	}
	return true;
}

struct capacity node_capacity(const struct node *node, bool sync)
{
	struct capacity sum = {0};

	for (size_t i = 0; i < node->report.n_pools; i++) {
		const struct pool_report *p = &node->report.pools[i];
		const struct capacity usable = capacity_for(&p->capacity, p->durability, sync);

		capacity_add(&sum, &usable);
	}
	return sum;
}

/* Whether there is a note on the volume @id, which then takes precedence over the report. */
static bool is_noted(const struct node *node, const char *id)
{
	for (size_t i = 0; i < node->n_notes; i++) {
		if (str_eq(node->notes[i].volume.id, id))
			return true;
	}
	return false;
}

const struct volume_report *node_next_volume(const struct node *node, size_t *at)
{
	const struct node_report *r = &node->report;

	while (*at < r->n_volumes) {
		const struct volume_report *v = &r->volumes[(*at)++];

		if (!is_noted(node, v->id))
			return v;
	}
	while (*at < r->n_volumes + node->n_notes) {
		const struct node_note *note = &node->notes[(*at)++ - r->n_volumes];

		if (!note->deleted)
			return &note->volume;
	}
	return NULL;
}
