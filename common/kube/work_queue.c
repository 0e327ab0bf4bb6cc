/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/work_queue.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/name_index.h"
#include "base/slab.h"
#include "pacing/backoff.h"

struct work_item {
	struct name_link link; /* its name is the key */
	struct work_item *next;
	struct work_item *previous;
	struct backoff backoff;
	uint64_t not_before_ns;
	bool wanted; /* waits for its turn, also while it is worked on */
	bool running;
	bool failing; /* its last work has failed */
	char key[];
};

struct work_queue {
	struct work_queue_config config;
	struct name_index index;
	struct slabs *memory; /* of the items */
	unsigned n_running;
	size_t n_failing;
	bool in_run;
	struct work_item items; /* head of a ring; what was added or begun longest ago comes first */
};

struct work_queue *work_queue_new(const struct work_queue_config *config)
{
	struct work_queue *q = x_calloc(1, sizeof(*q));

	q->config = *config;
	q->memory = slabs_new();
	name_index_init(&q->index);
	q->items.next = q->items.previous = &q->items;
	return q;
}

static uint64_t queue_now(const struct work_queue *q)
{
	return q->config.now_ns ? q->config.now_ns(q->config.user) : clock_ns();
}

static void append(struct work_queue *q, struct work_item *item)
{
	item->previous = q->items.previous;
	item->next = &q->items;
	q->items.previous->next = item;
	q->items.previous = item;
}

static void unlink_item(struct work_item *item)
{
	item->previous->next = item->next;
	item->next->previous = item->previous;
}

static void item_free(struct work_queue *q, struct work_item *item)
{
	q->n_failing -= item->failing;
	unlink_item(item);
	name_index_remove(&q->index, &item->link);
	slabs_release(q->memory, item);
}

void work_queue_clear(struct work_queue *q)
{
	while (q->items.next != &q->items)
		item_free(q, q->items.next);
	q->n_running = 0;
}

void work_queue_free(struct work_queue *q)
{
	if (!q)
		return;
	work_queue_clear(q);
	name_index_done(&q->index);
	slabs_free(q->memory);
	free(q);
}

static struct work_item *find(const struct work_queue *q, const char *key)
{
	struct name_link *link = name_index_first(&q->index, key);

	return link ? OWNER_OF(link, struct work_item, link) : NULL;
}

static struct work_item *item_new(struct work_queue *q, const char *key)
{
	size_t n = strlen(key) + 1;
	struct work_item *item = slabs_alloc(q->memory, sizeof(*item) + n);

	memcpy(item->key, key, n);
	backoff_init(&item->backoff, /* first_ms= */ 0);
	name_index_add(&q->index, &item->link, item->key);
	append(q, item);
	return item;
}

void work_queue_add(struct work_queue *q, const char *key)
{
	struct work_item *item = find(q, key);

	if (!item)
		item = item_new(q, key);
	item->wanted = true;
}

void work_queue_end(struct work_queue *q, const char *key, enum work_result result)
{
	struct work_item *item = find(q, key);

	if (!item || !item->running)
		return;
	item->running = false;
	q->n_running--;
	q->n_failing -= item->failing;
	item->failing = result == WORK_FAILED;
	q->n_failing += item->failing;
	if (item->failing) {
		backoff_fail(&item->backoff, queue_now(q));
		work_queue_add(q, item->key);
		return;
	}
	backoff_reset(&item->backoff);
}

static void begin(struct work_queue *q, struct work_item *item, uint64_t now_ns)
{
	unlink_item(item);
	append(q, item);
	item->wanted = false;
	item->running = true;
	item->not_before_ns = now_ns + q->config.interval_ns;
	q->n_running++;
	q->config.work(q->config.user, item->key);
}

/* Return: whether nothing is to be remembered of @item. Only work_queue_run() and work_queue_clear() free
 * items: work() may end the work on any other one, also on that which comes next. */
static bool is_over(const struct work_item *item, uint64_t now_ns)
{
	return !item->wanted && !item->running && now_ns >= item->not_before_ns;
}

static bool is_due(const struct work_item *item, uint64_t now_ns)
{
	return item->wanted && !item->running && now_ns >= item->not_before_ns &&
	       backoff_is_over(&item->backoff, now_ns);
}

/* Keys that may begin come first, so that a queue with tens of thousands of them is not walked each time:
 * what was begun is behind them, and is freed when they have gone. Keys that wait for their interval or
 * back-off are passed over. */
void work_queue_run(struct work_queue *q)
{
	uint64_t now_ns = queue_now(q);
	struct work_item *last = q->items.previous; /* what work() adds has its turn in the next run */
	struct work_item *next;

	if (q->in_run)
		return;
	q->in_run = true;
	for (struct work_item *item = q->items.next;
		item != &q->items && q->n_running < q->config.max_running; item = next) {
		bool is_last = item == last;

		next = item->next;
		if (is_over(item, now_ns))
			item_free(q, item);
		else if (is_due(item, now_ns))
			begin(q, item, now_ns);
		if (is_last)
			break;
	}
	q->in_run = false;
}

size_t work_queue_failing(const struct work_queue *q)
{
	return q->n_failing;
}

size_t work_queue_pending(const struct work_queue *q)
{
	size_t n = 0;

	for (const struct work_item *item = q->items.next; item != &q->items; item = item->next)
		n += item->wanted || item->running;
	return n;
}
