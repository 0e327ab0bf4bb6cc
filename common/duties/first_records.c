/* SPDX-License-Identifier: Apache-2.0 */
#include "duties/first_records.h"

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

struct first_records {
	struct first_records_config config;
	struct kube_kind kind;
	char *selector;
	struct informer *records; /* which keeps none of them; NULL: nothing is looked for any more */
	struct first_records *self;
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

static uint64_t now_ns(const struct first_records *f)
{
	return controller_now_ns(f->config.controller);
}

static struct node_table *nodes_of(const struct first_records *f)
{
	return f->config.controller->config.nodes;
}

static void add_node(struct first_records *f, const char *node_id)
{
	size_t n = strlen(node_id) + 1;
	struct seen_node *new = x_calloc(1, sizeof(*new) + n);

	memcpy(new->node_id, node_id, n);
	name_index_add(&f->index, &new->link, new->node_id);
	LIST_INSERT_HEAD(&f->nodes, new, all);
}

static void drop_nodes(struct first_records *f)
{
	struct seen_node *node;

	while ((node = LIST_FIRST(&f->nodes)) != NULL) {
		name_index_remove(&f->index, &node->link);
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

static uint64_t digest_of_record(const struct first_records *f, const char *handle)
{
	struct volume_key key = volume_key_of_handle(handle);
	CLEANUP(free_charp) char *name = pmem_volume_object_name(key.hex, f->config.driver_name);

	return digest_of(name);
}

static bool is_missing(const struct first_records *f, uint64_t digest)
{
	return digests_has(&f->missing, digest) && !digests_has(&f->known, digest);
}

static void add_missing(struct first_records *f, uint64_t digest, const char *handle)
{
	if (digests_has(&f->known, digest) || digests_has(&f->missing, digest))
		return;
	digests_add(&f->missing, digest);
	f->n_missing++;
	if (!f->example)
		f->example = x_strdup(handle);
}

static void look_at_volume(struct first_records *f, const struct volume_report *v)
{
	size_t before = f->n_missing;

	if (needs_record(v))
		add_missing(f, digest_of_record(f, v->id), v->id);
	if (f->n_missing > before)
		f->progress_ns = now_ns(f);
}

/* What a node reports later was made by a call, which has written a record before. */
static void look_at_node(struct first_records *f, const struct node *node)
{
	const struct volume_report *v;
	size_t at = 0;

	if (!node->live || !node->report.has_inventory || name_index_first(&f->index, node->report.node_id))
		return;
	add_node(f, node->report.node_id);
	while ((v = node_next_volume(node, &at)) != NULL)
		look_at_volume(f, v);
}

static void node_changed(void *user, const struct node *node)
{
	struct first_records *f = user;

	if (informer_is_synced(f->records) && controller_in_start_window(f->config.controller))
		look_at_node(f, node);
}

static void synced(void *user)
{
	struct first_records *f = user;
	const struct node *const *nodes;
	size_t n = node_table_nodes(nodes_of(f), &nodes);

	f->started_ns = f->progress_ns = now_ns(f);
	for (size_t i = 0; i < n; i++)
		look_at_node(f, nodes[i]);
}

/* kube_kind.keeps, of each record that is listed or has changed. */
static bool take_record(const void *user, const void *object)
{
	struct first_records *const *self = user;
	const struct kube_meta *meta = object;
	struct first_records *f = *self;
	uint64_t digest = digest_of(meta->name);

	if (is_missing(f, digest)) {
		f->n_missing--;
		f->progress_ns = now_ns(f);
	}
	digests_add(&f->known, digest);
	if (f->example && digest_of_record(f, f->example) == digest)
		free(TAKE_PTR(f->example));
	return false;
}

static void keep_missing_of(struct first_records *f, const struct node *node, const struct digests *before)
{
	const struct volume_report *v;
	size_t at = 0;

	while (node->live && (v = node_next_volume(node, &at)) != NULL) {
		uint64_t digest = needs_record(v) ? digest_of_record(f, v->id) : 0;

		if (digest != 0 && digests_has(before, digest))
			add_missing(f, digest, v->id);
	}
}

/* Volumes that were deleted meanwhile, or whose nodes have gone: nothing leads to a record of them. */
static void drop_unreported(struct first_records *f)
{
	struct digests before = f->missing;
	size_t n_before = f->n_missing;
	const struct node *const *nodes;
	size_t n = node_table_nodes(nodes_of(f), &nodes);

	f->looked_ns = now_ns(f);
	f->missing = (struct digests){0};
	f->n_missing = 0;
	free(TAKE_PTR(f->example));
	for (size_t i = 0; i < n; i++)
		keep_missing_of(f, nodes[i], &before);
	digests_done(&before);
	if (f->n_missing < n_before)
		f->progress_ns = now_ns(f);
}

static void end(struct first_records *f)
{
	if (!f->records)
		return;
	node_table_unwatch(nodes_of(f), node_changed, f);
	informer_free(TAKE_PTR(f->records));
	drop_nodes(f);
	digests_done(&f->missing);
	digests_done(&f->known);
	free(TAKE_PTR(f->example));
	f->n_missing = 0;
}

/* Only what is missing is a reason to give up: without the API server, calls fail by themselves. */
static bool is_overdue(const struct first_records *f)
{
	return f->n_missing > 0 && (now_ns(f) - f->progress_ns >= FIRST_RECORDS_STALL_NS ||
					   now_ns(f) - f->started_ns >= FIRST_RECORDS_MAX_NS);
}

void first_records_tick(struct first_records *f)
{
	if (!f->records || !informer_is_synced(f->records))
		return;
	if (f->n_missing > 0 && now_ns(f) - f->looked_ns >= LOOK_NS)
		drop_unreported(f);
	if (is_overdue(f)) {
		log_warn(
			"creating volumes although not all that nodes report have a PmemVolume: it could not be "
			"written, or there are too many of them",
			F_STR("volume", f->example), F_U64("volumes", f->n_missing));
		end(f);
	} else if (f->n_missing == 0 && !controller_in_start_window(f->config.controller)) {
		end(f);
	}
}

int first_records_require(const struct first_records *f, struct error **err)
{
	if (!f->records)
		return 0;
	if (!informer_is_synced(f->records))
		return err_set(err, ERR_UNAVAILABLE,
			"the controller is still starting: the PmemVolumes have not been read from the "
			"Kubernetes API yet");
	if (f->n_missing == 0)
		return 0;
	return err_set(err, ERR_UNAVAILABLE,
		"the controller is still starting: %zu volumes that nodes report have no PmemVolume yet%s%s",
		f->n_missing, f->example ? ", among them " : "", f->example ? f->example : "");
}

struct first_records *first_records_new(const struct first_records_config *config)
{
	static const struct informer_events events = {.synced = synced};
	struct first_records *f = x_calloc(1, sizeof(*f));

	f->config = *config;
	f->self = f;
	f->selector = x_asprintf(PMEM_LABEL_DRIVER "=%s", config->driver_name);
	f->kind = (struct kube_kind){.path = kube_kind_pmem_volumes.path,
		.what = kube_kind_pmem_volumes.what,
		.label_selector = f->selector,
		.metadata_only = true,
		.size = sizeof(struct kube_meta),
		.fields = name_fields,
		.keeps = take_record,
		.keeps_user = &f->self};
	name_index_init(&f->index);
	LIST_INIT(&f->nodes);
	node_table_watch(nodes_of(f), node_changed, f);
	f->records = informer_new(config->client, &f->kind, &events, f);
	return f;
}

void first_records_free(struct first_records *f)
{
	if (!f)
		return;
	end(f);
	name_index_done(&f->index);
	free(f->selector);
	free(f);
}
