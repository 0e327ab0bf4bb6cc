/* SPDX-License-Identifier: Apache-2.0 */
#include "cluster/node_table.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/mem.h"
#include "base/str.h"
#include "cluster/node_table_private.h"

struct node_table *node_table_new(void)
{
	struct node_table *t = x_calloc(1, sizeof(*t));

	name_index_init(&t->by_id);
	name_index_init(&t->by_hash);
	name_index_init(&t->volumes_by_id);
	name_index_init(&t->volumes_by_name);
	uuid_generate_text(t->instance);
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

struct node_place *node_place_find(const struct node_table *t, const char *node_id)
{
	struct name_link *l = name_index_first(&t->by_id, node_id);

	return l ? OWNER_OF(l, struct node_place, by_id) : NULL;
}

void node_place_unindex(struct node_table *t, struct node_place *p)
{
	for (size_t i = 0; i < p->n_volumes; i++) {
		name_index_remove(&t->volumes_by_id, &p->volumes[i].by_id);
		if (!str_empty(p->volumes[i].volume->name))
			name_index_remove(&t->volumes_by_name, &p->volumes[i].by_name);
	}
	free(TAKE_PTR(p->volumes));
	p->n_volumes = 0;
}

void node_place_index(struct node_table *t, struct node_place *p)
{
	const struct node_volume *v;
	size_t at = 0;

	p->volumes = x_calloc(p->node.report.n_volumes + p->node.n_notes, sizeof(*p->volumes));
	while ((v = node_next_volume(&p->node, &at)) != NULL) {
		struct volume_place *place = &p->volumes[p->n_volumes++];

		place->node = p;
		place->volume = v;
		name_index_add(&t->volumes_by_id, &place->by_id, v->id);
		/* Nobody looks for volumes without a name, of which there may be any number. */
		if (!str_empty(v->name))
			name_index_add(&t->volumes_by_name, &place->by_name, v->name);
	}
}

static void unlink_change(struct node_table *t, struct node_place *p)
{
	*(p->older ? &p->older->newer : &t->oldest) = p->newer;
	*(p->newer ? &p->newer->older : &t->newest) = p->older;
}

static void link_change(struct node_table *t, struct node_place *p)
{
	p->older = t->newest;
	p->newer = NULL;
	*(t->newest ? &t->newest->newer : &t->oldest) = p;
	t->newest = p;
}

void node_place_tell(struct node_table *t, const struct node_place *p)
{
	for (struct node_watcher *w = t->watchers, *next; w; w = next) {
		next = w->next;
		w->fn(w->user, &p->node);
	}
}

static void change(struct node_table *t, struct node_place *p)
{
	unlink_change(t, p);
	link_change(t, p);
	p->node.generation = ++t->generation;
	node_place_tell(t, p);
}

/* Where @node_id is or belongs in the array. */
static size_t place_index(const struct node_table *t, const char *node_id)
{
	size_t from = 0;
	size_t to = t->n;

	while (from < to) {
		size_t mid = from + (to - from) / 2;

		if (strcmp(t->nodes[mid]->report.node_id, node_id) < 0)
			from = mid + 1;
		else
			to = mid;
	}
	return from;
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
	link_change(t, p);
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

/* Whether anything but the lease is new. */
static bool brings_news(const struct node_place *p, const struct node_report *report)
{
	return !p || !p->node.live || p->node.n_notes > 0 || !node_report_equal(&p->node.report, report);
}

void node_table_put(struct node_table *t, struct node_report *report, uint64_t now_ns)
{
	struct node_place *p = node_place_find(t, report->node_id);
	bool news = brings_news(p, report);
	uint64_t lease_ms = report->lease_ms;

	if (p && news) {
		node_place_unindex(t, p);
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
	p->node.lease_until_ns = lease_ms > 0 ? now_ns + lease_ms * NS_PER_MS : DEADLINE_NONE;
	if (!news)
		return;
	node_notes_settle(&p->node, now_ns, /* has_report= */ true);
	node_place_index(t, p);
	change(t, p);
}

static void end_lease(struct node_table *t, struct node_place *p)
{
	p->node.live = false;
	p->node.lease_until_ns = 0;
	change(t, p);
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
	unlink_change(t, p);
	place_free(p);
	/* Who has not yet seen that it is gone could not be told. */
	uuid_generate_text(t->instance);
}

static void expire_notes(struct node_table *t, struct node_place *p, uint64_t now_ns)
{
	node_place_unindex(t, p);
	bool changed = node_notes_settle(&p->node, now_ns, /* has_report= */ false);
	node_place_index(t, p);
	if (changed)
		node_place_tell(t, p);
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
