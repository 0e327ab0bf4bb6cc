/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/charges.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "scheduler/charges_private.h"

#define CACHE_LINE_BYTES 64
#define NODE_LINES       3 /* two pools and what is free in them */

static void tell(const struct sched_charges *c)
{
	if (c->changed)
		c->changed(c->user);
}

static void make_room(struct sched_charges *c)
{
	size_t n = sched_nodes_limit(c->nodes);

	if (n <= c->n_nodes)
		return;
	c->on_nodes = x_realloc(c->on_nodes, n, sizeof(*c->on_nodes));
	for (size_t i = 0; i < c->n_nodes; i++) {
		if (c->on_nodes[i].records)
			c->on_nodes[i].records->place = &c->on_nodes[i].records;
	}
	for (; c->n_nodes < n; c->n_nodes++)
		c->on_nodes[c->n_nodes] = (struct sched_on_node){0};
}

/* One that is being made may not have its space yet. */
static bool is_made(const struct sched_charges *c, const struct sched_node *node, const char *name)
{
	const struct volume_report *v = sched_node_volume(c->nodes, node, name);

	return v && v->phase != PHASE_CREATING;
}

/* With its need, when it was a pod's. */
static void record_end(struct sched_charges *c, struct sched_record *r)
{
	if (r->need)
		sched_need_free(c, r->need);
	else
		sched_record_free(c, r);
}

static void drop_made(struct sched_charges *c, const struct sched_node *node)
{
	for (struct sched_record *r = c->on_nodes[node->index].records, *next; r; r = next) {
		next = r->next;
		if (is_made(c, node, r->name))
			record_end(c, r);
	}
}

/* How the node rounds may be another way than when its load was summed up. */
static void sum_up(struct sched_charges *c, const struct sched_node *node)
{
	struct sched_on_node *on = &c->on_nodes[node->index];

	on->decided = on->undecided = (struct sched_load){0};
	for (const struct sched_record *r = on->records; r; r = r->next)
		sched_load_add(&on->decided, node, &r->item);
	for (const struct sched_pod *pod = c->pods; pod; pod = pod->next) {
		if (!sched_pod_has(pod, node->index))
			continue;
		for (const struct sched_need_charge *need = pod->needs; need; need = need->next)
			sched_load_add(&on->undecided, node, &need->item);
	}
}

static void find_homes(struct sched_charges *c, const struct sched_node *node)
{
	for (struct sched_record *r = c->homeless, *next; r; r = next) {
		struct sched_item item = r->item;

		next = r->next;
		if (str_eq(r->node_id, node->report->node_id))
			sched_record_move(c, r, node->report->node_id, &item);
	}
}

static void on_changed(void *user, const struct sched_node *node)
{
	struct sched_charges *c = user;

	make_room(c);
	sum_up(c, node);
	find_homes(c, node);
	drop_made(c, node);
	tell(c);
}

static void on_forgotten(void *user, size_t index)
{
	struct sched_charges *c = user;
	struct sched_on_node *on = &c->on_nodes[index];

	while (on->records) {
		struct sched_record *r = on->records;
		struct sched_item item = r->item;

		r->node = SCHED_NO_NODE;
		sched_record_move(c, r, r->node_id, &item);
	}
	for (struct sched_pod *pod = c->pods; pod; pod = pod->next)
		sched_pod_leave(pod, index);
	*on = (struct sched_on_node){0};
}

struct sched_charges *sched_charges_new(
	struct sched_nodes *nodes, sched_charges_changed_fn changed, void *user)
{
	struct sched_charges *c = x_calloc(1, sizeof(*c));

	c->nodes = nodes;
	c->changed = changed;
	c->user = user;
	name_index_init(&c->records_by_name);
	name_index_init(&c->needs_by_name);
	name_index_init(&c->pods_by_uid);
	make_room(c);
	sched_nodes_watch(nodes, &(struct sched_nodes_watcher){on_changed, on_forgotten, c});
	return c;
}

void sched_charges_free(struct sched_charges *c)
{
	if (!c)
		return;
	sched_nodes_watch(c->nodes, &(struct sched_nodes_watcher){0});
	while (c->pods)
		sched_pod_free(c, c->pods);
	while (c->homeless)
		sched_record_free(c, c->homeless);
	for (size_t i = 0; i < c->n_nodes; i++) {
		while (c->on_nodes[i].records)
			sched_record_free(c, c->on_nodes[i].records);
	}
	free(c->on_nodes);
	name_index_done(&c->records_by_name);
	name_index_done(&c->needs_by_name);
	name_index_done(&c->pods_by_uid);
	free(c);
}

/* All pods that use the claim go there. Return: whether there was one. */
static bool settle_pods(struct sched_charges *c, const char *name, const char *node_id)
{
	struct name_link *l;
	bool any = false;

	while ((l = name_index_first(&c->needs_by_name, name)) != NULL) {
		struct sched_need_charge *need = OWNER_OF(l, struct sched_need_charge, by_name);

		any = true;
		sched_pod_settle(c, need->pod, node_id);
		sched_need_free(c, need);
	}
	return any;
}

static bool says_so(const struct sched_record *r, const char *node_id, const struct sched_item *item)
{
	return r && !r->need && str_eq(r->node_id, node_id) && r->item.size_bytes == item->size_bytes &&
	       r->item.sector == item->sector;
}

void sched_charges_decided(
	struct sched_charges *c, const char *name, const char *node_id, uint64_t size_bytes, bool sector)
{
	const struct sched_node *node = sched_nodes_get(c->nodes, span_of(node_id));
	struct sched_item item = {size_bytes < SCHED_SIZE_MAX ? size_bytes : SCHED_SIZE_MAX, sector};
	bool news = settle_pods(c, name, node_id);
	struct sched_record *r = sched_record_find(c, name);

	if (node && is_made(c, node, name)) {
		news |= r != NULL;
		if (r)
			record_end(c, r);
	} else if (!r) {
		news = true;
		sched_record_put(c, name, node_id, &item);
	} else if (!says_so(r, node_id, &item)) {
		news = true;
		sched_record_move(c, r, node_id, &item);
	}
	if (news)
		tell(c);
}

void sched_charges_undecided(struct sched_charges *c, const char *name)
{
	struct sched_record *r = sched_record_find(c, name);

	if (!r || r->need)
		return;
	sched_record_free(c, r);
	tell(c);
}

void sched_charges_drop(struct sched_charges *c, const char *pod_uid)
{
	struct sched_pod *pod = sched_pod_find(c, pod_uid);

	if (!pod)
		return;
	sched_pod_free(c, pod);
	tell(c);
}

/* Both are of the clocks of hosts that serve one cluster; of the same second counts as later. */
static bool is_earlier(const char *since, const char *looked_at)
{
	return since && looked_at[0] && strncmp(since, looked_at, SCHED_TIME_LEN) < 0;
}

void sched_charges_unscheduled(
	struct sched_charges *c, const char *pod_uid, uint64_t version, const char *since, bool again)
{
	struct sched_pod *pod = sched_pod_find(c, pod_uid);

	if (!pod || (version != 0 && version <= pod->version))
		return;
	if (again)
		pod->doubtful = true;
	else if (!is_earlier(since, pod->looked_at))
		sched_charges_drop(c, pod_uid);
}

void sched_charges_seen(struct sched_charges *c, const char *pod_uid, uint64_t now_ns)
{
	struct sched_pod *pod = sched_pod_find(c, pod_uid);

	if (pod && !pod->set && !pod->doubtful)
		pod->until_ns = now_ns + SCHED_CHARGE_NS;
}

void sched_charges_expire(struct sched_charges *c, uint64_t now_ns)
{
	bool any = false;

	c->n_late = 0;
	for (struct sched_pod *pod = c->pods, *next; pod; pod = next) {
		next = pod->next;
		if (now_ns < pod->until_ns) {
			c->n_late += now_ns - pod->passed_ns >= SCHED_LATE_NS;
			continue;
		}
		sched_pod_free(c, pod);
		any = true;
	}
	if (any)
		tell(c);
}

static struct sched_load both(const struct sched_load *a, const struct sched_load *b)
{
	return (struct sched_load){a->n + b->n, a->size_bytes + b->size_bytes, a->raw_bytes + b->raw_bytes,
		a->max_raw_bytes > b->max_raw_bytes ? a->max_raw_bytes : b->max_raw_bytes};
}

void sched_charges_fetch(const struct sched_charges *c, const struct sched_node *node)
{
	const char *pools = (const char *)node->pools;

	__builtin_prefetch(&c->on_nodes[node->index]);
	for (size_t i = 0; i < NODE_LINES; i++)
		__builtin_prefetch(pools + i * CACHE_LINE_BYTES);
}

struct sched_load sched_charges_load(
	const struct sched_charges *c, const struct sched_node *node, bool undecided)
{
	const struct sched_on_node *on = &c->on_nodes[node->index];

	return undecided ? both(&on->decided, &on->undecided) : on->decided;
}

size_t sched_charges_items(
	const struct sched_charges *c, const struct sched_node *node, bool undecided, struct sched_item *ret)
{
	size_t n = 0;

	for (const struct sched_record *r = c->on_nodes[node->index].records; r; r = r->next)
		ret[n++] = r->item;
	undecided = undecided && c->on_nodes[node->index].undecided.n > 0;
	for (const struct sched_pod *pod = c->pods; undecided && pod; pod = pod->next) {
		if (!sched_pod_has(pod, node->index))
			continue;
		for (const struct sched_need_charge *need = pod->needs; need; need = need->next)
			ret[n++] = need->item;
	}
	return n;
}

bool sched_charges_node(
	const struct sched_charges *c, const char *name, size_t *ret_index, struct sched_item *ret)
{
	const struct sched_record *r = sched_record_find(c, name);

	if (!r || r->node == SCHED_NO_NODE)
		return false;
	*ret_index = r->node;
	*ret = r->item;
	return true;
}

size_t sched_charges_pods(const struct sched_charges *c)
{
	return c->pods_by_uid.n;
}

size_t sched_charges_late(const struct sched_charges *c)
{
	return c->n_late;
}

struct sched_charges_count sched_charges_count(const struct sched_charges *c)
{
	struct sched_charges_count count = {
		.pods = sched_charges_pods(c), .volumes_decided = c->records_by_name.n};

	for (const struct sched_pod *pod = c->pods; pod; pod = pod->next)
		count.pods_undecided += pod->set != NULL;
	return count;
}
