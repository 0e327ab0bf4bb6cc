/* SPDX-License-Identifier: Apache-2.0 */
/* WatchNodes: the table's changes for the scheduler extender. */
#include <stdlib.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/str.h"
#include "nodes/registration_report.h"
#include "nodes/registry_private.h"

/* Before its deadline the server answers by itself (LIMIT_ANSWER_EARLY_MS), with an error. */
#define EARLY_NS (2 * NS_PER_S)

static Registry__V0__Inventory *inventory_entry(struct arena *arena, const struct node_report *from)
{
	Registry__V0__Inventory *m = arena_alloc(arena, sizeof(*m));

	registry__v0__inventory__init(m);
	m->volumes = arena_alloc(arena, from->n_volumes * sizeof(Registry__V0__InventoryVolume *));
	for (; m->n_volumes < from->n_volumes; m->n_volumes++)
		m->volumes[m->n_volumes] = registration_volume(&from->volumes[m->n_volumes], arena);
	return m;
}

static Registry__V0__NodeEntry *node_entry(struct arena *arena, const struct node_report *from)
{
	Registry__V0__NodeEntry *m = arena_alloc(arena, sizeof(*m));

	registry__v0__node_entry__init(m);
	m->node_id = arena_strdup(arena, from->node_id);
	m->device_mode = arena_strdup(arena, from->device_mode);
	m->regions = arena_alloc(arena, from->n_pools * sizeof(Registry__V0__RegionCapacity *));
	for (; m->n_regions < from->n_pools; m->n_regions++)
		m->regions[m->n_regions] = registration_pool(&from->pools[m->n_regions], arena);
	if (from->has_inventory)
		m->inventory = inventory_entry(arena, from);
	return m;
}

/* Tag and length of an entry */
#define ENTRY_BYTES 6

/* Puts @node into @reply, unless *@bytes, its size, is more than 0 and would become too much. */
static bool add_node(
	Registry__V0__WatchNodesReply *reply, struct arena *arena, const struct node *node, size_t *bytes)
{
	Registry__V0__NodeEntry *entry = node->live ? node_entry(arena, &node->report) : NULL;
	size_t more = ENTRY_BYTES + (entry ? protobuf_c_message_get_packed_size(&entry->base)
					   : strlen(node->report.node_id));

	if (*bytes > 0 && *bytes + more > REGISTRY_WATCH_BYTES)
		return false;
	*bytes += more;
	if (entry)
		reply->changed[reply->n_changed++] = entry;
	else
		reply->removed_node_ids[reply->n_removed_node_ids++] =
			arena_strdup(arena, node->report.node_id);
	return true;
}

/* The generation that the caller of @w has, 0 when it has none of this table. */
static uint64_t known_generation(const struct registry *r, const struct registry_watch *w)
{
	const struct node_table *t = r->config.table;

	if (!str_eq(w->request->instance, node_table_instance(t)) ||
		w->request->generation > node_table_generation(t))
		return 0;
	return w->request->generation;
}

static void fill(const struct registry *r, struct registry_watch *w)
{
	uint64_t since = known_generation(r, w);
	struct arena *arena = w->call->arena;
	Registry__V0__WatchNodesReply *reply = w->reply;
	const struct node **changed;
	size_t n = node_table_changes(r->config.table, since, &changed);
	size_t bytes = 0;

	reply->instance = arena_strdup(arena, node_table_instance(r->config.table));
	reply->generation = node_table_generation(r->config.table);
	reply->changed = arena_alloc(arena, n * sizeof(*reply->changed));
	reply->removed_node_ids = arena_alloc(arena, n * sizeof(*reply->removed_node_ids));
	for (size_t i = 0; i < n; i++) {
		/* A watcher that starts a new table knows of no node that could be gone. */
		if (since == 0 && !changed[i]->live)
			continue;
		if (add_node(reply, arena, changed[i], &bytes))
			continue;
		reply->generation = changed[i - 1]->generation;
		break;
	}
	free(changed);
}

/* A new table, an empty one included, is reported at once, because its instance has changed. */
static bool has_news(const struct registry *r, const struct registry_watch *w)
{
	return !str_eq(w->request->instance, node_table_instance(r->config.table)) ||
	       known_generation(r, w) != node_table_generation(r->config.table);
}

static void answer(struct registry *r, struct registry_watch *w)
{
	if (grpc_call_is_wanted(w->call))
		fill(r, w);
	grpc_call_finish(w->call, NULL);
	r->n_watches--;
	free(w);
}

void registry_watch_answer(struct registry *r, uint64_t now_ns)
{
	for (struct registry_watch **at = &r->watches, *w; (w = *at) != NULL;) {
		if (!r->stopping && now_ns < w->until_ns && grpc_call_is_wanted(w->call) && !has_news(r, w)) {
			at = &w->next;
			continue;
		}
		*at = w->next;
		answer(r, w);
	}
}

static uint64_t end_of(const struct registry *r, const struct registry_watch *w)
{
	uint64_t timeout_ms = w->request->timeout_ms;
	uint64_t left_ns = UINT64_MAX;
	uint64_t deadline_ns = w->call->deadline_ns;
	uint64_t now_ns = clock_ns();

	if (timeout_ms > REGISTRY_MAX_WATCH_MS)
		timeout_ms = REGISTRY_MAX_WATCH_MS;
	if (deadline_ns != DEADLINE_NONE)
		left_ns = deadline_ns > now_ns + EARLY_NS ? deadline_ns - now_ns - EARLY_NS : 0;
	return registry_now(r) + (left_ns < timeout_ms * NS_PER_MS ? left_ns : timeout_ms * NS_PER_MS);
}

void registry_watch_start(void *self, struct grpc_call *call, const void *request, void *reply)
{
	struct registry *r = self;
	struct error *err = NULL;
	struct registry_watch *w;

	if (registry_check_scheduler(call, &err) < 0) {
		err_wrap(&err, "registry");
		grpc_call_finish(call, err);
		return;
	}
	if (r->n_watches >= REGISTRY_MAX_WATCHERS) {
		err_set(&err, ERR_UNAVAILABLE, "registry: the limit of %d watches is reached",
			REGISTRY_MAX_WATCHERS);
		grpc_call_finish(call, err);
		return;
	}
	w = x_calloc(1, sizeof(*w));
	*w = (struct registry_watch){.next = r->watches, .call = call, .request = request, .reply = reply};
	w->until_ns = end_of(r, w);
	r->watches = w;
	r->n_watches++;
	registry_watch_answer(r, registry_now(r));
}

static void on_timer(void *user)
{
	struct registry *r = user;

	r->watch_due = false;
	registry_watch_answer(r, registry_now(r));
}

static void on_changed(void *user, const struct node *node)
{
	struct registry *r = user;

	(void)node;
	if (r->watch_due || r->n_watches == 0)
		return;
	r->watch_due = true;
	loop_timer_set(r->watch_timer, REGISTRY_WATCH_DELAY_MS, 0);
}

void registry_watch_init(struct registry *r)
{
	r->watch_timer = loop_timer_new(r->config.loop, on_timer, r);
	loop_timer_detach(r->watch_timer);
	node_table_watch(r->config.table, on_changed, r);
}

void registry_watch_done(struct registry *r)
{
	node_table_unwatch(r->config.table, on_changed, r);
	loop_timer_close(r->watch_timer);
}
