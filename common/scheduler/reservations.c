/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/reservations.h"

#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "base/mem.h"
#include "base/name_index.h"
#include "base/str.h"

#define NO_NODE     SIZE_MAX
#define WORD_BITS   64
#define FETCH_AHEAD 8

#define CACHE_LINE_BYTES 64
#define NODE_LINES       3 /* two pools and what is free in them */

/* A volume counts on the node that it is placed on, or, as long as that is not decided, on all nodes in the
 * set of its pod. */
struct reserved {
	struct name_link by_name;
	LIST_ENTRY(reserved) of_pod;
	LIST_ENTRY(reserved) on_node; /* or among those without */
	struct pod *pod;              /* NULL: an object says where it is made */
	char *name;
	char *node_id; /* NULL: not decided */
	size_t node;   /* NO_NODE: not decided, or not known yet */
	struct sched_item item;
	uint64_t until_ns; /* without a pod */
	uint64_t report;   /* that shows what it takes; 0: not known */
};

LIST_HEAD(reserved_list, reserved);

/* A pod that passed. */
struct pod {
	struct name_link by_uid;
	LIST_ENTRY(pod) all;
	struct reserved_list volumes; /* never without, but while it is made or freed */
	uint64_t until_ns;
	bool doubtful;    /* it may have found no node */
	uint64_t version; /* pod_needs.pod_version */
	char looked_at[SCHED_TIME_LEN + 1];
	uint64_t *set; /* of node indexes; NULL: decided */
	size_t n_words;
	char *uid;
};

struct on_node {
	struct reserved_list volumes;
	struct sched_load decided;
	struct sched_load undecided;
};

struct reservations {
	struct sched_nodes *nodes;
	reservations_changed_fn changed;
	void *user;
	struct name_index by_name;
	struct name_index pods_by_uid;
	LIST_HEAD(, pod) pods;
	struct reserved_list homeless; /* on nodes that are not known */
	struct on_node *on_nodes;      /* by index */
	size_t n_nodes;
	size_t n_placed;
	size_t n_undecided; /* pods */
};

static void notify(const struct reservations *r)
{
	if (r->changed)
		r->changed(r->user);
}

typedef void (*load_fn)(struct sched_load *l, const struct sched_node *node, const struct sched_item *item);

static void load_add(struct sched_load *l, const struct sched_node *node, const struct sched_item *item)
{
	uint64_t raw_bytes = sched_node_most_bytes(node, item->size_bytes, item->sector);

	l->n++;
	l->size_bytes += item->size_bytes;
	l->raw_bytes += raw_bytes;
	if (raw_bytes > l->max_raw_bytes)
		l->max_raw_bytes = raw_bytes;
}

/* The largest may have gone: it stays a bound. */
static void load_take(struct sched_load *l, const struct sched_node *node, const struct sched_item *item)
{
	l->n--;
	l->size_bytes -= item->size_bytes;
	l->raw_bytes -= sched_node_most_bytes(node, item->size_bytes, item->sector);
	if (l->n == 0)
		l->max_raw_bytes = 0;
}

static bool may_go_to(const struct pod *pod, size_t index)
{
	size_t word = index / WORD_BITS;

	return pod->set && word < pod->n_words && (pod->set[word] >> (index % WORD_BITS) & 1);
}

static void count_in_set(
	struct reservations *r, const struct pod *pod, const struct sched_item *item, load_fn fn)
{
	for (size_t word = 0; pod->set && word < pod->n_words; word++) {
		for (uint64_t left = pod->set[word]; left; left &= left - 1) {
			size_t index = word * WORD_BITS + (size_t)__builtin_ctzll(left);
			const struct sched_node *next = sched_nodes_at(r->nodes, index + FETCH_AHEAD);

			if (next)
				__builtin_prefetch(next->pools);
			fn(&r->on_nodes[index].undecided, sched_nodes_at(r->nodes, index), item);
		}
	}
}

/* Wherever @v counts. */
static void count(struct reservations *r, const struct reserved *v, load_fn fn)
{
	if (v->node != NO_NODE)
		fn(&r->on_nodes[v->node].decided, sched_nodes_at(r->nodes, v->node), &v->item);
	else if (!v->node_id && v->pod)
		count_in_set(r, v->pod, &v->item, fn);
}

/* Finds a reservation for the volume @name: with @by_pod that of a pod, otherwise the only one that an object
 * of the cluster has caused. */
static struct reserved *find(const struct reservations *r, const char *name, bool by_pod)
{
	for (struct name_link *l = name_index_first(&r->by_name, name); l; l = name_index_next(l)) {
		struct reserved *v = OWNER_OF(l, struct reserved, by_name);

		if ((v->pod != NULL) == by_pod)
			return v;
	}
	return NULL;
}

static struct pod *find_pod(const struct reservations *r, const char *uid)
{
	struct name_link *l = name_index_first(&r->pods_by_uid, uid);

	return l ? OWNER_OF(l, struct pod, by_uid) : NULL;
}

static struct sched_item item_of(const struct sched_item *item)
{
	return (struct sched_item){item->size_bytes < SCHED_SIZE_MAX ? item->size_bytes : SCHED_SIZE_MAX,
		item->sector, item->sync};
}

/* Counts nowhere yet. */
static struct reserved *reserve(struct reservations *r, const char *name, const struct sched_item *item)
{
	struct reserved *v = x_calloc(1, sizeof(*v));

	v->name = x_strdup(name);
	v->item = *item;
	v->node = NO_NODE;
	name_index_add(&r->by_name, &v->by_name, v->name);
	return v;
}

static void unplace(struct reservations *r, struct reserved *v)
{
	if (!v->node_id)
		return;
	LIST_REMOVE(v, on_node);
	free(TAKE_PTR(v->node_id));
	v->node = NO_NODE;
	v->report = 0;
	r->n_placed--;
}

/* Counts there alone. The node may be known later. */
static void place(struct reservations *r, struct reserved *v, const char *node_id)
{
	const struct sched_node *node = sched_nodes_get(r->nodes, span_of(node_id));
	char *id = x_strdup(node_id);

	unplace(r, v);
	v->node_id = id;
	v->node = node ? node->index : NO_NODE;
	LIST_INSERT_HEAD(node ? &r->on_nodes[node->index].volumes : &r->homeless, v, on_node);
	r->n_placed++;
	count(r, v, load_add);
}

static void decide(struct reservations *r, struct pod *pod)
{
	r->n_undecided -= pod->set != NULL;
	free(TAKE_PTR(pod->set));
	pod->n_words = 0;
}

static void pod_free(struct reservations *r, struct pod *pod)
{
	decide(r, pod);
	LIST_REMOVE(pod, all);
	name_index_remove(&r->pods_by_uid, &pod->by_uid);
	free(pod->uid);
	free(pod);
}

/* A pod that needs nothing else goes, too. */
static void leave_pod(struct reservations *r, struct reserved *v)
{
	struct pod *pod = TAKE_PTR(v->pod);

	if (!pod)
		return;
	LIST_REMOVE(v, of_pod);
	if (LIST_EMPTY(&pod->volumes))
		pod_free(r, pod);
}

static void release(struct reservations *r, struct reserved *v)
{
	count(r, v, load_take);
	unplace(r, v);
	leave_pod(r, v);
	name_index_remove(&r->by_name, &v->by_name);
	free(v->name);
	free(v);
}

static void release_pod(struct reservations *r, struct pod *pod)
{
	struct reserved *next;

	for (struct reserved *v = LIST_FIRST(&pod->volumes); v; v = next) {
		next = LIST_NEXT(v, of_pod);
		release(r, v);
	}
}

/* Decides that @pod runs on @node_id: its volumes are reserved on that node and no longer on the others. */
static void settle(struct reservations *r, struct pod *pod, const char *node_id)
{
	struct reserved *v;

	LIST_FOREACH(v, &pod->volumes, of_pod)
	count(r, v, load_take);
	decide(r, pod);
	LIST_FOREACH(v, &pod->volumes, of_pod)
	place(r, v, node_id);
}

/* Whether the space that the node's PmemNode offers no longer includes the space of the volume. */
static bool is_shown(const struct reservations *r, const struct reserved *v)
{
	return v->node != NO_NODE && v->report > 0 && sched_nodes_at(r->nodes, v->node)->report >= v->report;
}

static void make_room(struct reservations *r)
{
	size_t n = sched_nodes_limit(r->nodes);

	if (n <= r->n_nodes)
		return;
	r->on_nodes = x_realloc(r->on_nodes, n, sizeof(*r->on_nodes));
	/* The first volume of a list points to its head. */
	for (size_t i = 0; i < r->n_nodes; i++) {
		struct reserved_list *volumes = &r->on_nodes[i].volumes;

		if (!LIST_EMPTY(volumes))
			LIST_FIRST(volumes)->on_node.le_prev = &LIST_FIRST(volumes);
	}
	for (; r->n_nodes < n; r->n_nodes++)
		r->on_nodes[r->n_nodes] = (struct on_node){0};
}

/* How the node rounds may be another way than when its load was summed up. */
static void sum_up(struct reservations *r, const struct sched_node *node)
{
	struct on_node *on = &r->on_nodes[node->index];
	const struct reserved *v;
	const struct pod *pod;

	on->decided = on->undecided = (struct sched_load){0};
	LIST_FOREACH(v, &on->volumes, on_node)
	load_add(&on->decided, node, &v->item);
	LIST_FOREACH(pod, &r->pods, all)
	{
		if (!may_go_to(pod, node->index))
			continue;
		LIST_FOREACH(v, &pod->volumes, of_pod)
		load_add(&on->undecided, node, &v->item);
	}
}

static void bring_home(struct reservations *r, const struct sched_node *node)
{
	struct reserved *next;

	for (struct reserved *v = LIST_FIRST(&r->homeless); v; v = next) {
		next = LIST_NEXT(v, on_node);
		if (!str_eq(v->node_id, node->name))
			continue;
		LIST_REMOVE(v, on_node);
		v->node = node->index;
		LIST_INSERT_HEAD(&r->on_nodes[node->index].volumes, v, on_node);
	}
}

static void on_changed(void *user, const struct sched_node *node)
{
	struct reservations *r = user;
	struct reserved *next;

	make_room(r);
	bring_home(r, node);
	sum_up(r, node);
	for (struct reserved *v = LIST_FIRST(&r->on_nodes[node->index].volumes); v; v = next) {
		next = LIST_NEXT(v, on_node);
		if (is_shown(r, v))
			release(r, v);
	}
	notify(r);
}

static void on_removed(void *user, size_t index)
{
	struct reservations *r = user;
	struct on_node *on = &r->on_nodes[index];
	struct pod *pod;

	while (!LIST_EMPTY(&on->volumes)) {
		struct reserved *v = LIST_FIRST(&on->volumes);

		LIST_REMOVE(v, on_node);
		v->node = NO_NODE;
		LIST_INSERT_HEAD(&r->homeless, v, on_node);
	}
	LIST_FOREACH(pod, &r->pods, all)
	{
		if (may_go_to(pod, index))
			pod->set[index / WORD_BITS] &= ~(1ULL << (index % WORD_BITS));
	}
	*on = (struct on_node){0};
}

struct reservations *reservations_new(struct sched_nodes *nodes, reservations_changed_fn changed, void *user)
{
	struct reservations *r = x_calloc(1, sizeof(*r));

	r->nodes = nodes;
	r->changed = changed;
	r->user = user;
	name_index_init(&r->by_name);
	name_index_init(&r->pods_by_uid);
	make_room(r);
	sched_nodes_watch(nodes, &(struct sched_nodes_watcher){on_changed, on_removed, r});
	return r;
}

void reservations_free(struct reservations *r)
{
	if (!r)
		return;
	sched_nodes_watch(r->nodes, &(struct sched_nodes_watcher){0});
	while (!LIST_EMPTY(&r->pods))
		release_pod(r, LIST_FIRST(&r->pods));
	while (!LIST_EMPTY(&r->homeless))
		release(r, LIST_FIRST(&r->homeless));
	for (size_t i = 0; i < r->n_nodes; i++) {
		while (!LIST_EMPTY(&r->on_nodes[i].volumes))
			release(r, LIST_FIRST(&r->on_nodes[i].volumes));
	}
	free(r->on_nodes);
	name_index_done(&r->by_name);
	name_index_done(&r->pods_by_uid);
	free(r);
}

static bool says_so(const struct reserved *v, const char *node_id, const struct sched_item *item)
{
	return str_eq(v->node_id, node_id) && v->item.size_bytes == item->size_bytes &&
	       v->item.sector == item->sector && v->item.sync == item->sync;
}

/* All pods that need the volume go there, and need it no longer by themselves. Return: whether there was one.
 */
static bool settle_pods(struct reservations *r, const char *name, const char *node_id)
{
	struct reserved *v;
	bool any = false;

	while ((v = find(r, name, /* by_pod= */ true)) != NULL) {
		settle(r, v->pod, node_id);
		release(r, v);
		any = true;
	}
	return any;
}

void reservations_place(struct reservations *r, const char *name, const char *node_id,
	const struct sched_item *item, uint64_t until_ns)
{
	bool changed = settle_pods(r, name, node_id);
	struct reserved *v = find(r, name, /* by_pod= */ false);
	struct sched_item own = item_of(item);

	if (!v)
		v = reserve(r, name, &own);
	v->until_ns = until_ns;
	if (!says_so(v, node_id, &own)) {
		count(r, v, load_take);
		v->item = own;
		place(r, v, node_id);
		changed = true;
	}
	if (changed)
		notify(r);
}

void reservations_end_at(struct reservations *r, const char *name, uint64_t end_ns)
{
	struct reserved *v = find(r, name, /* by_pod= */ false);

	if (v && v->until_ns > end_ns)
		v->until_ns = end_ns;
}

void reservations_withdraw(struct reservations *r, const char *name)
{
	struct reserved *v = find(r, name, /* by_pod= */ false);

	if (!v)
		return;
	release(r, v);
	notify(r);
}

void reservations_made(struct reservations *r, const char *name, const char *node_id, uint64_t report)
{
	struct name_link *next;
	bool any = false;

	for (struct name_link *l = name_index_first(&r->by_name, name); l; l = next) {
		struct reserved *v = OWNER_OF(l, struct reserved, by_name);

		next = name_index_next(l);
		if (!str_eq(v->node_id, node_id))
			continue;
		v->report = report;
		if (!is_shown(r, v))
			continue;
		release(r, v);
		any = true;
	}
	if (any)
		notify(r);
}

static struct pod *pod_new(struct reservations *r, const char *uid, const struct pod_needs *needs)
{
	struct pod *pod = x_calloc(1, sizeof(*pod));

	pod->uid = x_strdup(uid);
	pod->version = needs->pod_version;
	memcpy(pod->looked_at, needs->looked_at, sizeof(pod->looked_at));
	LIST_INSERT_HEAD(&r->pods, pod, all);
	name_index_add(&r->pods_by_uid, &pod->by_uid, pod->uid);
	return pod;
}

/* Indexes may have grown beyond what others know. */
static void make_set(struct reservations *r, struct pod *pod, const struct sched_node *const *nodes, size_t n)
{
	r->n_undecided++;
	pod->n_words = (sched_nodes_limit(r->nodes) + WORD_BITS - 1) / WORD_BITS;
	pod->set = x_calloc(pod->n_words, sizeof(*pod->set));
	for (size_t i = 0; i < n; i++)
		pod->set[nodes[i]->index / WORD_BITS] |= 1ULL << (nodes[i]->index % WORD_BITS);
}

/* kube-scheduler keeps a pod to the node that its claim has selected: when it asks for others, the claim has
 * none any more, and the watch will say so. */
static bool is_over(const struct reserved *v, const struct sched_node *const *nodes, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (nodes[i]->index == v->node)
			return false;
	}
	return true;
}

static bool is_there(const struct pod_need *need, const struct sched_node *const *nodes, size_t n)
{
	return n == 1 && strv_contains(need->nodes, nodes[0]->name);
}

static void add_needs(struct reservations *r, struct pod *pod, const struct pod_needs *needs,
	const struct sched_node *const *nodes, size_t n)
{
	for (size_t i = 0; i < needs->n; i++) {
		const struct pod_need *need = &needs->v[i];
		struct sched_item item =
			item_of(&(struct sched_item){need->size_bytes, need->sector, need->sync});
		struct reserved *v = find(r, need->name, /* by_pod= */ false);

		if (v && is_over(v, nodes, n))
			release(r, TAKE_PTR(v));
		if (v || is_there(need, nodes, n))
			continue;
		v = reserve(r, need->name, &item);
		v->pod = pod;
		LIST_INSERT_HEAD(&pod->volumes, v, of_pod);
		count(r, v, load_add);
	}
}

void reservations_add_pod(struct reservations *r, const char *pod_uid, const struct pod_needs *needs,
	const struct sched_node *const *nodes, size_t n, uint64_t now_ns)
{
	struct pod *pod = find_pod(r, pod_uid);

	if (pod)
		release_pod(r, pod);
	if (n == 0)
		return;
	pod = pod_new(r, pod_uid, needs);
	pod->until_ns = now_ns + RESERVATION_NS;
	make_set(r, pod, nodes, n);
	add_needs(r, pod, needs, nodes, n);
	if (LIST_EMPTY(&pod->volumes))
		pod_free(r, pod);
	else if (n == 1)
		settle(r, pod, nodes[0]->name);
}

void reservations_drop_pod(struct reservations *r, const char *pod_uid)
{
	struct pod *pod = find_pod(r, pod_uid);

	if (!pod)
		return;
	release_pod(r, pod);
	notify(r);
}

/* Both are of the clocks of hosts that serve one cluster; of the same second counts as later. */
static bool is_earlier(const char *since, const char *looked_at)
{
	return since && looked_at[0] && strncmp(since, looked_at, SCHED_TIME_LEN) < 0;
}

void reservations_unscheduled(
	struct reservations *r, const char *pod_uid, uint64_t version, const char *since, bool again)
{
	struct pod *pod = find_pod(r, pod_uid);

	if (!pod || (version != 0 && version <= pod->version))
		return;
	if (again)
		pod->doubtful = true;
	else if (!is_earlier(since, pod->looked_at))
		reservations_drop_pod(r, pod_uid);
}

void reservations_seen(struct reservations *r, const char *pod_uid, uint64_t now_ns)
{
	struct pod *pod = find_pod(r, pod_uid);

	if (pod && !pod->set && !pod->doubtful)
		pod->until_ns = now_ns + RESERVATION_NS;
}

static bool expire_pods(struct reservations *r, uint64_t now_ns)
{
	bool any = false;
	struct pod *next;

	for (struct pod *pod = LIST_FIRST(&r->pods); pod; pod = next) {
		next = LIST_NEXT(pod, all);
		if (now_ns < pod->until_ns)
			continue;
		release_pod(r, pod);
		any = true;
	}
	return any;
}

/* Arguments for deciding whether the reservation of a placed volume ends. */
struct expiry {
	uint64_t now_ns;
	reservations_keep_fn keep;
	void *user;
};

static bool expire_placed(struct reservations *r, const struct reserved_list *list, const struct expiry *e)
{
	struct reserved *next;
	bool any = false;

	for (struct reserved *v = LIST_FIRST(list); v; v = next) {
		next = LIST_NEXT(v, on_node);
		if (v->pod || e->now_ns < v->until_ns)
			continue;
		if (e->keep && e->keep(e->user, v->name)) {
			v->until_ns = e->now_ns + RESERVATION_NS;
			continue;
		}
		release(r, v);
		any = true;
	}
	return any;
}

void reservations_expire(struct reservations *r, uint64_t now_ns, reservations_keep_fn keep, void *user)
{
	const struct expiry e = {now_ns, keep, user};
	bool any = expire_pods(r, now_ns);

	any |= expire_placed(r, &r->homeless, &e);
	for (size_t i = 0; i < r->n_nodes; i++)
		any |= expire_placed(r, &r->on_nodes[i].volumes, &e);
	if (any)
		notify(r);
}

static struct sched_load both(const struct sched_load *a, const struct sched_load *b)
{
	return (struct sched_load){a->n + b->n, a->size_bytes + b->size_bytes, a->raw_bytes + b->raw_bytes,
		a->max_raw_bytes > b->max_raw_bytes ? a->max_raw_bytes : b->max_raw_bytes};
}

void reservations_fetch(const struct reservations *r, const struct sched_node *node)
{
	const char *pools = (const char *)node->pools;

	__builtin_prefetch(&r->on_nodes[node->index]);
	for (size_t i = 0; i < NODE_LINES; i++)
		__builtin_prefetch(pools + i * CACHE_LINE_BYTES);
}

struct sched_load reservations_load(
	const struct reservations *r, const struct sched_node *node, bool undecided)
{
	const struct on_node *on = &r->on_nodes[node->index];

	return undecided ? both(&on->decided, &on->undecided) : on->decided;
}

size_t reservations_items(
	const struct reservations *r, const struct sched_node *node, bool undecided, struct sched_item *ret)
{
	const struct on_node *on = &r->on_nodes[node->index];
	const struct reserved *v;
	const struct pod *pod;
	size_t n = 0;

	LIST_FOREACH(v, &on->volumes, on_node)
	ret[n++] = v->item;
	if (!undecided || on->undecided.n == 0)
		return n;
	LIST_FOREACH(pod, &r->pods, all)
	{
		if (!may_go_to(pod, node->index))
			continue;
		LIST_FOREACH(v, &pod->volumes, of_pod)
		ret[n++] = v->item;
	}
	return n;
}

bool reservations_node(
	const struct reservations *r, const char *name, size_t *ret_index, struct sched_item *ret)
{
	for (struct name_link *l = name_index_first(&r->by_name, name); l; l = name_index_next(l)) {
		const struct reserved *v = OWNER_OF(l, struct reserved, by_name);

		if (v->node == NO_NODE)
			continue;
		*ret_index = v->node;
		*ret = v->item;
		return true;
	}
	return false;
}

struct reservations_count reservations_count(const struct reservations *r)
{
	return (struct reservations_count){r->pods_by_uid.n, r->n_undecided, r->n_placed};
}

int reservations_check_limit(const struct reservations *r, size_t max_pods, struct error **err)
{
	size_t max = max_pods > 0 ? max_pods : RESERVATIONS_PODS_MAX;

	if (r->pods_by_uid.n < max)
		return 0;
	return err_set(err, ERR_EXHAUSTED, "the limit of %zu pods that are being scheduled is reached", max);
}
