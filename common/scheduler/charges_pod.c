/* SPDX-License-Identifier: Apache-2.0 */
/* Pods that passed. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "scheduler/charges_private.h"

#define WORD_BITS   64
#define FETCH_AHEAD 8

struct sched_pod *sched_pod_find(const struct sched_charges *c, const char *uid)
{
	struct name_link *l = name_index_first(&c->pods_by_uid, uid);

	return l ? OWNER_OF(l, struct sched_pod, by_uid) : NULL;
}

bool sched_pod_has(const struct sched_pod *pod, size_t index)
{
	size_t word = index / WORD_BITS;

	return pod->set && word < pod->n_words && (pod->set[word] >> (index % WORD_BITS) & 1);
}

void sched_pod_leave(struct sched_pod *pod, size_t index)
{
	if (sched_pod_has(pod, index))
		pod->set[index / WORD_BITS] &= ~(1ULL << (index % WORD_BITS));
}

typedef void (*load_fn)(struct sched_load *l, const struct sched_node *node, const struct sched_item *item);

static void count_everywhere(
	struct sched_charges *c, const struct sched_pod *pod, const struct sched_item *item, load_fn fn)
{
	for (size_t word = 0; pod->set && word < pod->n_words; word++) {
		for (uint64_t left = pod->set[word]; left; left &= left - 1) {
			size_t index = word * WORD_BITS + (size_t)__builtin_ctzll(left);
			const struct sched_node *next = sched_nodes_at(c->nodes, index + FETCH_AHEAD);

			if (next)
				__builtin_prefetch(next->pools);
			fn(&c->on_nodes[index].undecided, sched_nodes_at(c->nodes, index), item);
		}
	}
}

static void need_free(struct sched_charges *c, struct sched_need_charge *need)
{
	if (need->record)
		sched_record_free(c, need->record);
	else
		count_everywhere(c, need->pod, &need->item, sched_load_take);
	name_index_remove(&c->needs_by_name, &need->by_name);
	free(need->name);
	free(need);
}

void sched_pod_free(struct sched_charges *c, struct sched_pod *pod)
{
	while (pod->needs) {
		struct sched_need_charge *need = pod->needs;

		pod->needs = need->next;
		need_free(c, need);
	}
	*pod->place = pod->next;
	if (pod->next)
		pod->next->place = pod->place;
	name_index_remove(&c->pods_by_uid, &pod->by_uid);
	free(pod->set);
	free(pod->uid);
	free(pod);
}

void sched_need_free(struct sched_charges *c, struct sched_need_charge *need)
{
	struct sched_pod *pod = need->pod;
	struct sched_need_charge **at = &pod->needs;

	while (*at != need)
		at = &(*at)->next;
	*at = need->next;
	need_free(c, need);
	if (!pod->needs)
		sched_pod_free(c, pod);
}

static void settle_need(struct sched_charges *c, struct sched_need_charge *need, const char *node_id)
{
	struct sched_record *r = sched_record_find(c, need->name);

	/* Another pod that uses the claim, or the claim itself, has one already. */
	if (r && r != need->record)
		return;
	if (r)
		sched_record_move(c, r, node_id, &need->item);
	else
		need->record = sched_record_put(c, need->name, node_id, &need->item);
	need->record->need = need;
}

void sched_pod_settle(struct sched_charges *c, struct sched_pod *pod, const char *node_id)
{
	for (struct sched_need_charge *need = pod->needs; need; need = need->next) {
		if (pod->set)
			count_everywhere(c, pod, &need->item, sched_load_take);
	}
	free(TAKE_PTR(pod->set));
	pod->n_words = 0;
	for (struct sched_need_charge *need = pod->needs; need; need = need->next)
		settle_need(c, need, node_id);
}

static void add_need(struct sched_charges *c, struct sched_pod *pod, const struct pod_need *from)
{
	struct sched_need_charge *need = x_calloc(1, sizeof(*need));

	need->name = x_strdup(from->name);
	need->item = (struct sched_item){
		from->size_bytes < SCHED_SIZE_MAX ? from->size_bytes : SCHED_SIZE_MAX, from->sector};
	need->pod = pod;
	need->next = pod->needs;
	pod->needs = need;
	name_index_add(&c->needs_by_name, &need->by_name, need->name);
	count_everywhere(c, pod, &need->item, sched_load_add);
}

static struct sched_pod *pod_new(struct sched_charges *c, const char *uid, uint64_t now_ns)
{
	struct sched_pod *pod = x_calloc(1, sizeof(*pod));

	pod->uid = x_strdup(uid);
	pod->passed_ns = now_ns;
	pod->until_ns = now_ns + SCHED_CHARGE_NS;
	pod->next = c->pods;
	pod->place = &c->pods;
	if (pod->next)
		pod->next->place = &pod->next;
	c->pods = pod;
	name_index_add(&c->pods_by_uid, &pod->by_uid, pod->uid);
	return pod;
}

/* Indexes may have grown beyond what others know. */
static void make_set(struct sched_pod *pod, size_t limit, const struct sched_node *const *nodes, size_t n)
{
	pod->n_words = (limit + WORD_BITS - 1) / WORD_BITS;
	pod->set = x_calloc(pod->n_words, sizeof(*pod->set));
	for (size_t i = 0; i < n; i++)
		pod->set[nodes[i]->index / WORD_BITS] |= 1ULL << (nodes[i]->index % WORD_BITS);
}

/* kube-scheduler keeps a pod to the node that its claim has selected: when it asks for others, the claim has
 * none any more, and the watch will say so. */
static bool is_over(const struct sched_record *r, const struct sched_node *const *nodes, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (nodes[i]->index == r->node)
			return false;
	}
	return !r->need;
}

static void add_needs(struct sched_charges *c, struct sched_pod *pod, const struct pod_needs *needs,
	const struct sched_node *const *nodes, size_t n)
{
	for (size_t i = 0; i < needs->n; i++) {
		struct sched_record *r = sched_record_find(c, needs->v[i].name);

		if (r && is_over(r, nodes, n))
			sched_record_free(c, TAKE_PTR(r));
		if (!r)
			add_need(c, pod, &needs->v[i]);
	}
}

void sched_charges_pod(struct sched_charges *c, const char *pod_uid, const struct pod_needs *needs,
	const struct sched_node *const *nodes, size_t n, uint64_t now_ns)
{
	struct sched_pod *pod = sched_pod_find(c, pod_uid);

	if (pod)
		sched_pod_free(c, pod);
	if (n == 0)
		return;
	pod = pod_new(c, pod_uid, now_ns);
	pod->version = needs->pod_version;
	memcpy(pod->looked_at, needs->looked_at, sizeof(pod->looked_at));
	make_set(pod, sched_nodes_limit(c->nodes), nodes, n);
	add_needs(c, pod, needs, nodes, n);
	if (n == 1 && pod->needs)
		sched_pod_settle(c, pod, nodes[0]->report->node_id);
	if (!pod->needs)
		sched_pod_free(c, pod);
}
