/* SPDX-License-Identifier: Apache-2.0 */
#include "duties/create_gate.h"

#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/name_index.h"
#include "controller/controller_private.h"
#include "kube/informer.h"
#include "resources/pmem_volume.h"

#define DIGESTS_MIN 1024
/* How often reports are searched for what is missing. */
#define LOOK_NS (5 * NS_PER_S)

static const struct kube_field name_fields[] = {KUBE_META(names), KUBE_FIELDS_END};

/* A node whose inventory was looked at. */
struct seen_node {
	struct name_link link;
	LIST_ENTRY(seen_node) all;
	char node_id[];
};

/* Names of records: one that is taken for another delays nothing. Blocks of memory for tens of thousands of
 * them would leave holes in the heap. */
struct digests {
	uint64_t *slots; /* 0: free */
	size_t room;     /* a power of two, or 0 */
	size_t n;
};

struct create_gate {
	struct create_gate_config config;
	struct kube_kind kind;
	char *selector;
	struct informer *records; /* which keeps none of them; NULL: nothing is looked for any more */
	struct create_gate *self;
	struct digests known;
	struct digests missing; /* of what nodes report; some are known meanwhile */
	size_t n_missing;       /* of them are not known */
	char *example;          /* handle of one that is not; NULL: not at hand */
	struct name_index index;
	LIST_HEAD(, seen_node) nodes;
	uint64_t started_ns; /* when the records were known */
	uint64_t looked_ns;
	uint64_t progress_ns; /* when the missing ones became more or fewer */
};

static uint64_t now_ns(const struct create_gate *g)
{
	return controller_now_ns(g->config.controller);
}

static struct node_table *nodes_of(const struct create_gate *g)
{
	return g->config.controller->config.nodes;
}

static void add_node(struct create_gate *g, const char *node_id)
{
	size_t n = strlen(node_id) + 1;
	struct seen_node *new = x_calloc(1, sizeof(*new) + n);

	memcpy(new->node_id, node_id, n);
	name_index_add(&g->index, &new->link, new->node_id);
	LIST_INSERT_HEAD(&g->nodes, new, all);
}

static void drop_nodes(struct create_gate *g)
{
	struct seen_node *node;

	while ((node = LIST_FIRST(&g->nodes)) != NULL) {
		name_index_remove(&g->index, &node->link);
		LIST_REMOVE(node, all);
		free(node);
	}
}

/* FNV-1a: names begin with a digest already. */
static uint64_t digest_of(const char *name)
{
	uint64_t digest = 14695981039346656037ULL;

	for (const unsigned char *c = (const unsigned char *)name; *c; c++)
		digest = (digest ^ *c) * 1099511628211ULL;
	return digest == 0 ? 1 : digest;
}

/* Return: where @digest is, or would be; there is always a free slot. */
static uint64_t *digests_find(const struct digests *d, uint64_t digest)
{
	size_t at = digest & (d->room - 1);

	while (d->slots[at] != 0 && d->slots[at] != digest)
		at = (at + 1) & (d->room - 1);
	return &d->slots[at];
}

static bool digests_has(const struct digests *d, uint64_t digest)
{
	return d->room > 0 && *digests_find(d, digest) == digest;
}

static void digests_grow(struct digests *d)
{
	struct digests larger = {.room = d->room > 0 ? 2 * d->room : DIGESTS_MIN, .n = d->n};

	larger.slots = x_calloc(larger.room, sizeof(*larger.slots));
	for (size_t i = 0; i < d->room; i++) {
		if (d->slots[i] != 0)
			*digests_find(&larger, d->slots[i]) = d->slots[i];
	}
	free(d->slots);
	*d = larger;
}

static void digests_add(struct digests *d, uint64_t digest)
{
	uint64_t *slot;

	if (2 * d->n >= d->room)
		digests_grow(d);
	slot = digests_find(d, digest);
	d->n += *slot == 0;
	*slot = digest;
}

static void digests_done(struct digests *d)
{
	free(d->slots);
	*d = (struct digests){0};
}

/* Whether the leader makes a record of it. */
static bool needs_record(const struct volume_report *v)
{
	return !v->is_inline && v->phase != PHASE_ERASING && v->phase != PHASE_CREATING;
}

static uint64_t digest_of_record(const struct create_gate *g, const char *handle)
{
	struct volume_key key = volume_key_of_handle(handle);
	CLEANUP(free_charp) char *name = pmem_volume_object_name(key.hex, g->config.driver_name);

	return digest_of(name);
}

static bool is_missing(const struct create_gate *g, uint64_t digest)
{
	return digests_has(&g->missing, digest) && !digests_has(&g->known, digest);
}

static void add_missing(struct create_gate *g, uint64_t digest, const char *handle)
{
	if (digests_has(&g->known, digest) || digests_has(&g->missing, digest))
		return;
	digests_add(&g->missing, digest);
	g->n_missing++;
	if (!g->example)
		g->example = x_strdup(handle);
}

static void look_at_volume(struct create_gate *g, const struct volume_report *v)
{
	size_t before = g->n_missing;

	if (needs_record(v))
		add_missing(g, digest_of_record(g, v->id), v->id);
	if (g->n_missing > before)
		g->progress_ns = now_ns(g);
}

/* Only the first inventory of a node is examined: volumes that it reports later were made by calls of
 * CreateVolume, which write the record first. */
static void look_at_node(struct create_gate *g, const struct node *node)
{
	const struct volume_report *v;
	size_t at = 0;

	if (!node->live || !node->report.has_inventory || name_index_first(&g->index, node->report.node_id))
		return;
	add_node(g, node->report.node_id);
	while ((v = node_next_volume(node, &at)) != NULL)
		look_at_volume(g, v);
}

static void node_changed(void *user, const struct node *node)
{
	struct create_gate *g = user;

	if (informer_is_synced(g->records) && controller_in_start_window(g->config.controller))
		look_at_node(g, node);
}

static void synced(void *user)
{
	struct create_gate *g = user;
	const struct node *const *nodes;
	size_t n = node_table_nodes(nodes_of(g), &nodes);

	g->started_ns = g->progress_ns = now_ns(g);
	for (size_t i = 0; i < n; i++)
		look_at_node(g, nodes[i]);
}

/* kube_kind.keeps, of each record that is listed or has changed. */
static bool take_record(const void *user, const void *object)
{
	struct create_gate *const *self = user;
	const struct kube_meta *meta = object;
	struct create_gate *g = *self;
	uint64_t digest = digest_of(meta->name);

	if (is_missing(g, digest)) {
		g->n_missing--;
		g->progress_ns = now_ns(g);
	}
	digests_add(&g->known, digest);
	if (g->example && digest_of_record(g, g->example) == digest)
		free(TAKE_PTR(g->example));
	return false;
}

static void keep_missing_of(struct create_gate *g, const struct node *node, const struct digests *before)
{
	const struct volume_report *v;
	size_t at = 0;

	while (node->live && (v = node_next_volume(node, &at)) != NULL) {
		uint64_t digest = needs_record(v) ? digest_of_record(g, v->id) : 0;

		if (digest != 0 && digests_has(before, digest))
			add_missing(g, digest, v->id);
	}
}

/* Volumes that were deleted meanwhile, or whose nodes have gone: nothing leads to a record of them. */
static void drop_unreported(struct create_gate *g)
{
	struct digests before = g->missing;
	size_t n_before = g->n_missing;
	const struct node *const *nodes;
	size_t n = node_table_nodes(nodes_of(g), &nodes);

	g->looked_ns = now_ns(g);
	g->missing = (struct digests){0};
	g->n_missing = 0;
	free(TAKE_PTR(g->example));
	for (size_t i = 0; i < n; i++)
		keep_missing_of(g, nodes[i], &before);
	digests_done(&before);
	if (g->n_missing < n_before)
		g->progress_ns = now_ns(g);
}

static void end(struct create_gate *g)
{
	if (!g->records)
		return;
	node_table_unwatch(nodes_of(g), node_changed, g);
	informer_free(TAKE_PTR(g->records));
	drop_nodes(g);
	digests_done(&g->missing);
	digests_done(&g->known);
	free(TAKE_PTR(g->example));
	g->n_missing = 0;
}

/* Only what is missing is a reason to give up: without the API server, calls fail by themselves. */
static bool is_overdue(const struct create_gate *g)
{
	return g->n_missing > 0 && (now_ns(g) - g->progress_ns >= CREATE_GATE_STALL_NS ||
					   now_ns(g) - g->started_ns >= CREATE_GATE_MAX_NS);
}

void create_gate_tick(struct create_gate *g)
{
	if (!g->records || !informer_is_synced(g->records))
		return;
	if (g->n_missing > 0 && now_ns(g) - g->looked_ns >= LOOK_NS)
		drop_unreported(g);
	if (is_overdue(g)) {
		log_warn(
			"creating volumes although not all that nodes report have a PmemVolume: it could not be "
			"written, or there are too many of them",
			F_STR("volume", g->example), F_U64("volumes", g->n_missing));
		end(g);
	} else if (g->n_missing == 0 && !controller_in_start_window(g->config.controller)) {
		end(g);
	}
}

int create_gate_require(const struct create_gate *g, struct error **err)
{
	if (!g->records)
		return 0;
	if (!informer_is_synced(g->records))
		return err_set(err, ERR_UNAVAILABLE,
			"the controller is still starting: the PmemVolumes have not been read from the "
			"Kubernetes API yet");
	if (g->n_missing == 0)
		return 0;
	return err_set(err, ERR_UNAVAILABLE,
		"the controller is still starting: %zu volumes that nodes report have no PmemVolume yet%s%s",
		g->n_missing, g->example ? ", among them " : "", g->example ? g->example : "");
}

struct create_gate *create_gate_new(const struct create_gate_config *config)
{
	static const struct informer_events events = {.synced = synced};
	struct create_gate *g = x_calloc(1, sizeof(*g));

	g->config = *config;
	g->self = g;
	g->selector = x_asprintf(PMEM_LABEL_DRIVER "=%s", config->driver_name);
	g->kind = (struct kube_kind){.path = kube_kind_pmem_volumes.path,
		.what = kube_kind_pmem_volumes.what,
		.label_selector = g->selector,
		.metadata_only = true,
		.size = sizeof(struct kube_meta),
		.fields = name_fields,
		.keeps = take_record,
		.keeps_user = &g->self};
	name_index_init(&g->index);
	LIST_INIT(&g->nodes);
	node_table_watch(nodes_of(g), node_changed, g);
	g->records = informer_new(config->client, &g->kind, &events, g);
	return g;
}

void create_gate_free(struct create_gate *g)
{
	if (!g)
		return;
	end(g);
	name_index_done(&g->index);
	free(g->selector);
	free(g);
}
