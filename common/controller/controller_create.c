/* SPDX-License-Identifier: Apache-2.0 */
/* CreateVolume, and CreateSnapshot, which makes a volume that no pod uses: one node after the other until
 * enough have the volume; of a cache volume several at a time. A node is asked when the volume's record names
 * it, and the call is answered when the record has the outcome.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "controller/candidates.h"
#include "controller/node_facts.h"
#include "controller/volume_status.h"
#include "csi/controller_request.h"
#include "csi/convert.h"
#include "csi/reply.h"
#include "volume/claim.h"
#include "volume/id.h"
#include "volume/params.h"

#define CREATE_PATH          "/csi.v1.Controller/CreateVolume"
#define CREATE_SNAPSHOT_PATH "/csi.v1.Controller/CreateSnapshot"
/* Nodes that are asked at a time for copies of one cache volume. */
#define CACHE_CALLS_MAX 64
/* Nodes whose reasons are in the message when no node can take the volume. */
#define REASONS_MAX 3

/* One CreateVolume: what is asked for, which nodes could take it, and what nodes have said so far. Lives in
 * the call's arena. */
struct create {
	struct controller *controller;
	struct waiter waiter;
	const Csi__V1__CreateVolumeRequest *request;
	Csi__V1__CreateVolumeResponse *reply;
	Csi__V1__CreateVolumeRequest forwarded; /* borrows from request */
	Csi__V1__CreateVolumeRequest merged;    /* see merge_parameters() */
	/* CreateSnapshot; NULL: CreateVolume. Then request is what would make a volume of the same content.
	 */
	const Csi__V1__CreateSnapshotRequest *snapshot;
	Csi__V1__CreateSnapshotResponse *snapshot_reply;
	char *volume_snapshot; /* "namespace/name"; NULL: not known */
	uint64_t taken_s;
	const struct joint_call *joint; /* that makes this snapshot and others; NULL: none */
	size_t member;                  /* its number among them */
	char group[VOLUME_ID_MAX + 1];  /* ID of the group on the node that is asked; "": none */
	struct volume_key key;
	struct csi_source source; /* that is to be copied; borrowed from request */
	uint64_t required_bytes;
	bool sector;
	unsigned needs; /* params_needs() */
	bool is_cache;
	size_t n_copies; /* that were asked for; more than one only of cache volumes */
	size_t n_wanted; /* of them, as many as there are candidates */
	char *claim;     /* that the volume is for; NULL: not known */

	struct pmem_volume *record; /* as it was read or written last, without absent nodes; NULL: none */
	bool record_differs;        /* from what was read or written, by absent nodes */
	char **absent;              /* strv: nodes that have confirmed that they have no copy */
	unsigned n_reads;
	bool writing;                              /* the record */
	struct candidate *chosen[CACHE_CALLS_MAX]; /* asked as soon as the record names them */
	size_t n_chosen;

	struct candidates found;
	size_t n_doubtful; /* asked */

	size_t n_asking;
	bool is_starting_calls;  /* answers are evaluated when all are started */
	Csi__V1__Volume *volume; /* of the first node that has it */
	const char **made_on;    /* node IDs, n_wanted of them fit */
	size_t n_made;
	struct error *failure; /* the first that ends the search; NULL: none */
	char *reasons[REASONS_MAX];
	size_t n_without_room;
	size_t n_out_of_range;
};

/* The record gets its final state. The lock of the key is released when that is done, perhaps after this has
 * returned. @made: the call has succeeded */
static void settle(struct create *op, bool made)
{
	const struct settlement_of of = {.key = op->key,
		.record_differs = op->record_differs,
		.name = op->request->name,
		.is_cache = op->is_cache,
		.made_on = op->made_on,
		.n_made = made ? op->n_made : 0};

	strv_free(op->absent);
	controller_settle(op->controller, &of, TAKE_PTR(op->record));
}

/* "volume" or "snapshot", for messages. */
static const char *noun_of(const struct create *op)
{
	return volume_noun(op->snapshot != NULL);
}

struct create_call {
	struct create *op;
	struct candidate *candidate;
	bool again; /* it was asked before, and the outcome is unknown */
};

static void pump(struct create *op);

static void read_claim(struct create *op, const struct strmap *parameters)
{
	struct volume_claim claim = {0};
	CLEANUP(free_charp) char *text = NULL;

	claim_read(parameters, CLAIM_PVC, &claim);
	claim_check(&claim);
	text = claim_text(&claim);
	op->claim = text ? arena_strdup(op->waiter.arena, text) : NULL;
	claim_done(&claim);
}

/* For whom it is, as csi-snapshotter says. */
static void read_volume_snapshot(struct create *op, const struct strmap *parameters)
{
	const char *namespace = strmap_get(parameters, PARAMS_SNAPSHOT_NAMESPACE);
	const char *name = strmap_get(parameters, PARAMS_SNAPSHOT_NAME);
	CLEANUP(free_charp) char *text = NULL;

	if (str_empty(namespace) || str_empty(name))
		return;
	text = x_asprintf("%s/%s", namespace, name);
	op->volume_snapshot = arena_strdup(op->waiter.arena, text);
}

static int check_snapshot_request(struct create *op, struct error **err)
{
	CLEANUP(strmap_done) struct strmap map = {0};
	CLEANUP(params_done) struct volume_params params = {0};

	if (csi_check_snapshot(op->snapshot, err) < 0 || volume_name_check(op->snapshot->name, err) < 0)
		return -1;
	CSI_READ_MAP(op->snapshot, parameters, &map);
	if (params_parse(PARAMS_SNAPSHOT, &map, &params, err) < 0)
		return -1;
	read_volume_snapshot(op, &map);
	op->source = (struct csi_source){.handle = op->snapshot->source_volume_id};
	op->n_copies = 1;
	return 0;
}

static void set_parameters(Csi__V1__CreateVolumeRequest *q, const struct strmap *map, struct arena *arena)
{
	q->n_parameters = 0;
	q->parameters = arena_alloc(arena, map->n * sizeof(*q->parameters));
	for (size_t i = 0; i < map->n; i++) {
		Csi__V1__CreateVolumeRequest__ParametersEntry *e = arena_alloc(arena, sizeof(*e));

		csi__v1__create_volume_request__parameters_entry__init(e);
		e->key = arena_strdup(arena, map->entries[i].key);
		e->value = arena_strdup(arena, map->entries[i].value);
		q->parameters[q->n_parameters++] = e;
	}
}

/* Nodes need not know which parameters are of a VolumeAttributesClass, which drivers of earlier releases
 * refuse. */
static void merge_parameters(struct create *op, const struct strmap *parameters)
{
	if (op->request->n_mutable_parameters == 0)
		return;
	op->merged = *op->request;
	op->merged.n_mutable_parameters = 0;
	op->merged.mutable_parameters = NULL;
	set_parameters(&op->merged, parameters, op->waiter.arena);
	op->request = &op->merged;
}

static int read_parameters(struct create *op, const struct capability_set *set, struct error **err)
{
	CLEANUP(strmap_done) struct strmap map = {0};
	CLEANUP(params_done) struct volume_params params = {0};

	if (csi_read_create_parameters(op->request, &map, err) < 0 ||
		params_parse(PARAMS_CREATE, &map, &params, err) < 0)
		return -1;
	merge_parameters(op, &map);
	read_claim(op, &map);
	if (access_check(set->spans_nodes, params.is_cache, err) < 0)
		return -1;
	op->sector = params.usage == USAGE_FILE_IO;
	op->needs = params_needs_of(&params);
	op->is_cache = params.is_cache;
	op->n_copies = params.is_cache && params.cache_size > 1 ? params.cache_size : 1;
	return 0;
}

/* Checks the fields of the request, which does not involve any node. */
static int check_request(struct create *op, struct error **err)
{
	CLEANUP(capability_set_done) struct capability_set set = {0};
	uint64_t limit_bytes;

	if (op->snapshot)
		return check_snapshot_request(op, err);
	if (csi_check_create(op->request, &set, err) < 0 ||
		csi_read_source(op->request, &op->source, err) < 0 ||
		csi_accessibility_check(
			op->controller->config.driver_name, op->request->accessibility_requirements, err) < 0)
		return -1;
	if (volume_name_check(op->request->name, err) < 0)
		return -1;
	if (csi_read_range(op->request->capacity_range, &op->required_bytes, &limit_bytes, err) < 0)
		return -1;
	return read_parameters(op, &set, err);
}

/* Nodes do not need the other places that the volume could have: a thousand topologies are 60 KB. */
static void prepare_forwarded(struct create *op)
{
	op->forwarded = *op->request;
	op->forwarded.accessibility_requirements = NULL;
	op->forwarded.n_secrets = 0;
	op->forwarded.secrets = NULL;
}

static void fill_snapshot(struct create *op)
{
	const struct csi_snapshot s = {.id = op->volume->volume_id,
		.source = op->source.handle,
		.group = op->group,
		.size_bytes = (uint64_t)op->volume->capacity_bytes,
		.taken_s = op->taken_s,
		.ready = true};

	op->snapshot_reply->snapshot = csi_snapshot(&s, op->waiter.arena);
}

static void fill_reply(struct create *op)
{
	Csi__V1__Volume *v = op->volume;

	if (op->snapshot) {
		fill_snapshot(op);
		return;
	}
	v->n_accessible_topology = 0;
	v->accessible_topology = arena_alloc(op->waiter.arena, op->n_made * sizeof(*v->accessible_topology));
	for (size_t i = 0; i < op->n_made; i++)
		v->accessible_topology[v->n_accessible_topology++] =
			csi_topology(op->controller->config.driver_name, op->made_on[i], op->waiter.arena);
	op->reply->volume = v;
}

static void add_text(struct create *op, char **text, const char *more)
{
	size_t n = strlen(*text) + strlen(more) + 3;
	char *longer = arena_alloc(op->waiter.arena, n);

	snprintf(longer, n, "%s; %s", *text, more);
	*text = longer;
}

static void add_count(struct create *op, char **text, size_t n, const char *noun, const char *what)
{
	char more[96];

	if (n == 0)
		return;
	snprintf(more, sizeof(more), "%zu %s%s %s", n, noun, n > 1 ? "s" : "", what);
	add_text(op, text, more);
}

/* No candidate has room. */
static void set_no_room(struct create *op, struct error **err)
{
	CLEANUP(free_charp)
	char *start = op->source.handle ? x_asprintf("no node that has %s %s can take a copy of it",
						  volume_noun(op->source.is_snapshot), op->source.handle)
					: x_strdup("no node can take the volume");
	char *text = start;
	size_t n_reasons = op->n_without_room < REASONS_MAX ? op->n_without_room : REASONS_MAX;
	size_t n_others = op->found.n_dead + op->found.n_out + op->found.n_silent + op->found.n_unable;
	size_t n_too_small = 0;
	bool out_of_range = op->n_out_of_range > 0 && op->n_out_of_range == op->n_without_room;

	for (size_t i = 0; i < op->found.n; i++)
		n_too_small += op->found.list[i].claim != PLACEMENT_ASKED;
	for (size_t i = 0; i < n_reasons; i++)
		add_text(op, &text, op->reasons[i]);
	add_count(op, &text, op->n_without_room - n_reasons, "more node", "refused it");
	add_count(op, &text, n_too_small, "node", "with too little reported capacity");
	add_count(op, &text, op->found.n_dead, "node", "not connected");
	add_count(op, &text, op->found.n_out, "node", "out of service");
	add_count(op, &text, op->found.n_silent, "node", "without a report of volumes");
	add_count(op, &text, op->found.n_unable, "node", "without volumes for Kata Containers");
	if (op->found.uncertain)
		err_set(err, ERR_UNAVAILABLE, "%s; node %s may have the volume", text, op->found.uncertain);
	else
		err_set(err, out_of_range && n_too_small + n_others == 0 ? ERR_RANGE : ERR_EXHAUSTED, "%s",
			text);
}

static void finish(struct create *op, struct error *error)
{
	settle(op, /* made= */ false);
	op->waiter.finish(op->waiter.user, error);
}

static void write_outcome(struct create *op);

/* Whether the record is still that of what was made. */
static bool is_outcome_of(const struct create *op, const struct pmem_volume *record)
{
	bool names_all = record && !record->deleting && !record->retained;

	for (size_t i = 0; i < op->n_made && names_all; i++)
		names_all = pmem_volume_has_node(record, op->made_on[i]);
	return names_all;
}

static void on_outcome_read(void *user, struct pmem_volume *record, const struct error *error)
{
	struct create *op = user;
	struct error *err = NULL;

	controller_take_record(&op->record, record);
	if (!error && is_outcome_of(op, record)) {
		strv_free(TAKE_PTR(op->absent));
		write_outcome(op);
		return;
	}
	op->record_differs = false;
	if (error)
		err = controller_record_failure(op->request->name, error);
	else
		err_set(&err, ERR_UNAVAILABLE,
			"the PmemVolume of %s \"%s\" was changed meanwhile: the %s was deleted, or its "
			"nodes are no longer listed; try again",
			noun_of(op), op->request->name, noun_of(op));
	finish(op, err);
}

/* The leader shows in the record what nodes report, perhaps between the last read and this write. */
static void on_outcome_written(void *user, struct pmem_volume *record, const struct error *error)
{
	struct create *op = user;

	if (error && error->code == ERR_ABORTED && op->n_reads++ < RECORD_READS_MAX) {
		controller_read_record(op->controller, &op->key, on_outcome_read, op);
		return;
	}
	if (error) {
		op->record_differs = false;
		finish(op, controller_record_failure(op->request->name, error));
		return;
	}
	controller_take_record(&op->record, record);
	op->record_differs = controller_drop_nodes(op->record, op->absent);
	fill_reply(op);
	settle(op, /* made= */ true);
	op->waiter.finish(op->waiter.user, /* error= */ NULL);
}

/* The caller gets the volume when the record has its handle: a delete finds it then. */
static void write_outcome(struct create *op)
{
	CLEANUP(pmem_volume_freep) struct pmem_volume *outcome = NULL;
	const struct controller_config *config = &op->controller->config;
	const struct volume_view view = {.nodes = config->nodes, .cluster = config->cluster};
	struct pmem_volume *r = op->record;
	bool is_known = str_eq(r->handle, op->volume->volume_id);

	if (!is_known) {
		free(r->handle);
		r->handle = x_strdup(op->volume->volume_id);
	}
	outcome = volume_status_new(r, &view);
	if (is_known && pmem_volume_status_equal(outcome, r))
		on_outcome_written(op, pmem_volume_dup(r), NULL);
	else
		controller_write_record(op->controller, RECORD_STATUS, outcome, on_outcome_written, op);
}

static void conclude(struct create *op)
{
	struct error *error = TAKE_PTR(op->failure);

	if (!error && op->n_made == 0)
		set_no_room(op, &error);
	if (error)
		finish(op, error);
	else
		write_outcome(op);
}

static void note_made(struct create *op, const char *node_id, const Csi__V1__Volume *v)
{
	const struct volume_report made = {.id = v->volume_id,
		.name = op->request->name,
		.size_bytes = (uint64_t)v->capacity_bytes,
		.phase = PHASE_READY,
		.made_by_controller = true,
		.claim = op->claim,
		.snapshot = op->snapshot != NULL,
		.source = op->snapshot ? (char *)(uintptr_t)op->source.handle : NULL,
		.group = op->joint ? (char *)(uintptr_t)op->group : NULL,
		.taken_s = op->taken_s};

	node_table_note_created(
		op->controller->config.nodes, node_id, &made, controller_now_ns(op->controller));
}

static void take_volume(struct create *op, const char *node_id, Csi__V1__Volume *v)
{
	if (!op->volume)
		op->volume = v;
	op->made_on[op->n_made++] = node_id;
	note_made(op, node_id, v);
}

/* @node_id has confirmed that it has no copy. */
static void take_absence(struct create *op, const char *node_id)
{
	strv_add(&op->absent, node_id);
	op->record_differs = pmem_volume_drop_node(op->record, node_id) || op->record_differs;
}

static void take_no_room(struct create *op, const char *node_id, const struct error *error)
{
	if (op->n_without_room < REASONS_MAX) {
		CLEANUP(free_charp) char *text = x_asprintf("%s: %s", node_id, error->msg);

		op->reasons[op->n_without_room] = arena_strdup(op->waiter.arena, text);
	}
	op->n_without_room++;
	op->n_out_of_range += error->code == ERR_RANGE;
	take_absence(op, node_id);
}

static void take_failure(const struct create_call *call, const struct error *error)
{
	struct create *op = call->op;
	const char *node_id = call->candidate->node_id;

	/* A refusal says nothing about what an earlier call, which may have asked for less, has begun. Others
	 * than this one may mean that the node has something of that name. */
	if (error->code == ERR_INVALID_ARGUMENT && !call->again)
		take_absence(op, node_id);
	if (op->failure)
		return;
	/* only a source can be missing: then nothing was made, as after a refusal */
	if (op->source.handle && error->code == ERR_NOT_FOUND)
		err_set(&op->failure, ERR_NOT_FOUND, "node %s: %s", node_id, error->msg);
	else
		op->failure = controller_pass_on(node_id, error);
}

/* An answer about another volume than the one that a node has given before is no answer. */
static int check_same(const struct create *op, const Csi__V1__Volume *v, struct error **err)
{
	if (op->volume && !str_eq(op->volume->volume_id, v->volume_id))
		return err_set(err, ERR_INTERNAL, "the copy has volume ID %s, other copies have %s",
			v->volume_id, op->volume->volume_id);
	return 0;
}

static int read_answer(struct create *op, const char *node_id, const ProtobufCMessage *message,
	Csi__V1__Volume **ret, struct error **err)
{
	const struct made_question q = {.node_id = node_id,
		.name = op->request->name,
		.is_cache = op->is_cache,
		.source = op->source.handle,
		.source_is_snapshot = op->source.is_snapshot,
		/* the size of a snapshot is that of its source when it was taken */
		.least_bytes = op->snapshot ? 0 : op->required_bytes};
	int rv = op->snapshot ? node_fact_snapshot(&q, message, op->waiter.arena, ret, &op->taken_s, err)
			      : node_fact_volume(&q, message, op->waiter.arena, ret, err);

	return rv < 0 ? -1 : check_same(op, *ret, err);
}

static void on_answer(void *user, const ProtobufCMessage *message, const struct error *error)
{
	CLEANUP(error_freep) struct error *bad = NULL;
	const struct create_call *call = user;
	struct create *op = call->op;
	Csi__V1__Volume *v = NULL;

	op->n_asking--;
	if (!error && read_answer(op, call->candidate->node_id, message, &v, &bad) < 0)
		error = bad;
	if (!error)
		take_volume(op, call->candidate->node_id, v);
	else if (controller_classify(error) == ANSWER_NO_ROOM)
		take_no_room(op, call->candidate->node_id, error);
	else
		take_failure(call, error);
	if (!op->is_starting_calls)
		pump(op);
}

static void ask(
	struct create *op, const struct node *node, const struct create_call *what, uint64_t timeout_ms)
{
	struct create_call *call = arena_alloc(op->waiter.arena, sizeof(*call));

	*call = *what;
	op->n_asking++;
	if (op->joint) {
		op->joint->ask(op->joint->user, op->member, node, timeout_ms, on_answer, call);
		return;
	}
	if (op->snapshot) {
		controller_call(op->controller, node, CREATE_SNAPSHOT_PATH, &op->snapshot->base,
			&csi__v1__create_snapshot_response__descriptor, timeout_ms, on_answer, call);
		return;
	}
	controller_call(op->controller, node, CREATE_PATH, &op->forwarded.base,
		&csi__v1__create_volume_response__descriptor, timeout_ms, on_answer, call);
}

/* The time that a node which is asked now may take. Return: 0: the caller has gone, or no time is left. */
static uint64_t time_to_ask_ms(const struct create *op)
{
	if (!op->waiter.is_wanted(op->waiter.user))
		return 0;
	return controller_timeout_ms(op->controller, op->waiter.deadline_ns);
}

static void set_too_late(struct create *op)
{
	if (!op->failure)
		err_set(&op->failure, ERR_DEADLINE, "the deadline does not allow asking another node");
}

/* Return: false: no other node is asked now. */
static bool choose_next(struct create *op)
{
	struct candidate *candidate = placement_next(op->found.list, op->found.n);

	if (!candidate)
		return false;
	if (candidate->claim == PLACEMENT_DOUBTFUL && op->n_doubtful++ >= PLACEMENT_DOUBTFUL_MAX)
		return false;
	if (time_to_ask_ms(op) == 0) {
		set_too_late(op);
		return false;
	}
	candidate->claim = PLACEMENT_ASKED;
	op->chosen[op->n_chosen++] = candidate;
	return true;
}

static void choose(struct create *op)
{
	while (op->n_made + op->n_asking + op->n_chosen < op->n_wanted &&
		op->n_asking + op->n_chosen < CACHE_CALLS_MAX) {
		if (!choose_next(op))
			break;
	}
	if (op->failure)
		op->n_chosen = 0;
}

static void read_record(struct create *op);

/* Whether the write of the record failed because another replica, or a user, has changed the record in the
 * meantime: then the record is read and the nodes are chosen again. */
static bool starts_over(const struct create *op, const struct error *error)
{
	bool changed =
		error->code == ERR_ABORTED || error->code == ERR_EXISTS || error->code == ERR_NOT_FOUND;

	return changed && op->n_asking == 0 && op->n_made == 0 && op->n_reads < RECORD_READS_MAX;
}

static void ask_chosen(struct create *op, const struct pmem_volume *before)
{
	size_t n = op->n_chosen;

	op->n_chosen = 0;
	op->is_starting_calls = true;
	for (size_t i = 0; i < n; i++) {
		struct candidate *candidate = op->chosen[i];
		const struct node *node = controller_live_node(op->controller, candidate->node_id);
		const struct create_call call = {.op = op,
			.candidate = candidate,
			.again = before && pmem_volume_has_node(before, candidate->node_id)};
		uint64_t timeout_ms = time_to_ask_ms(op); /* the record took some of it */

		if (timeout_ms == 0)
			set_too_late(op);
		else if (node)
			ask(op, node, &call, timeout_ms);
		else if (!op->failure)
			err_set(&op->failure, ERR_UNAVAILABLE, "node %s has been removed in the meantime",
				candidate->node_id);
	}
	op->is_starting_calls = false;
}

static void on_nodes_written(void *user, struct pmem_volume *record, const struct error *error)
{
	CLEANUP(pmem_volume_freep) struct pmem_volume *before = NULL;
	struct create *op = user;

	op->writing = false;
	if (error && starts_over(op, error)) {
		read_record(op);
		return;
	}
	if (error) {
		op->n_chosen = 0;
		if (!op->failure)
			op->failure = controller_record_failure(op->request->name, error);
	} else {
		before = TAKE_PTR(op->record);
		op->record = record;
		op->record_differs = controller_drop_nodes(record, op->absent);
		ask_chosen(op, before);
	}
	pump(op);
}

/* A record that does not exist yet: what was asked for. */
static struct pmem_volume *make_record(const struct create *op)
{
	struct pmem_volume *v = pmem_volume_new(op->key.hex, op->controller->config.driver_name);

	v->volume_name = x_strdup(op->request->name);
	v->source = x_strdup(op->source.handle);
	v->snapshot = op->snapshot != NULL;
	v->volume_snapshot = x_strdup(op->volume_snapshot);
	v->group = op->joint ? x_strdup(op->group) : NULL;
	v->size_bytes = op->required_bytes;
	for (size_t i = 0; i < op->request->n_parameters; i++) {
		strv_add(&v->parameters, op->request->parameters[i]->key);
		strv_add(&v->parameters, op->request->parameters[i]->value);
	}
	return v;
}

/* Each attempt changes the record, also when it names the nodes already: another replica that has read it
 * before cannot drop them then. */
static void write_nodes(struct create *op)
{
	if (op->joint)
		volume_group_id(op->joint->name, op->chosen[0]->node_id, op->group);
	CLEANUP(pmem_volume_freep)
	struct pmem_volume *v = op->record ? pmem_volume_dup(op->record) : make_record(op);

	for (size_t i = 0; i < op->n_chosen; i++)
		pmem_volume_add_node(v, op->chosen[i]->node_id);
	v->attempts++;
	op->writing = true;
	controller_write_record(
		op->controller, op->record ? RECORD_SPEC : RECORD_CREATE, v, on_nodes_written, op);
}

static void pump(struct create *op)
{
	if (op->writing)
		return;
	if (!op->failure)
		choose(op);
	if (op->n_chosen > 0)
		write_nodes(op);
	else if (op->n_asking == 0)
		conclude(op);
}

/* The record shows it as the size that was asked for. */
static void set_snapshot_size(struct create *op, const struct pmem_volume *source_record)
{
	struct node_hit *hits;
	size_t n =
		volume_status_holders(source_record, op->controller->config.nodes, op->source.handle, &hits);

	op->required_bytes = n > 0           ? hits[0].volume->size_bytes
			     : source_record ? source_record->capacity_bytes
					     : 0;
	free(hits);
}

/* @source_record: of the volume or snapshot that is to be copied; NULL: none */
static void begin(struct create *op, const struct pmem_volume *source_record)
{
	if (op->snapshot)
		set_snapshot_size(op, source_record);
	const struct candidates_query query = {.controller = op->controller,
		.arena = op->waiter.arena,
		.request = op->request,
		.key = &op->key,
		.required_bytes = op->required_bytes,
		.sector = op->sector,
		.needs = op->needs,
		.is_cache = op->is_cache,
		.record = op->record,
		.source = &op->source,
		.source_record = source_record};
	struct error *err = NULL;

	op->n_doubtful = op->n_without_room = op->n_out_of_range = 0;
	if (candidates_find(&query, &op->found, &err) < 0) {
		finish(op, err);
		return;
	}
	op->n_wanted = op->n_copies < op->found.n ? op->n_copies : op->found.n;
	op->made_on = arena_alloc(op->waiter.arena, op->n_wanted * sizeof(*op->made_on));
	pump(op);
}

static void on_source_read(void *user, struct pmem_volume *record, const struct error *error)
{
	struct create *op = user;

	if (error)
		finish(op, controller_record_failure(op->source.handle, error));
	else
		begin(op, record);
	pmem_volume_free(record);
}

static void look_for_source(struct create *op)
{
	struct volume_key key;

	if (!op->source.handle) {
		begin(op, /* source_record= */ NULL);
		return;
	}
	key = volume_key_of_handle(op->source.handle);
	controller_read_record(op->controller, &key, on_source_read, op);
}

/* A record that was made of a report may know neither source nor kind: the node that has the volume does. */
static int check_source(const struct create *op, struct error **err)
{
	const struct pmem_volume *r = op->record;

	if (r && !r->origin && r->snapshot != (op->snapshot != NULL))
		return err_set(err, ERR_EXISTS, "\"%s\" exists, and is a %s", op->request->name,
			volume_noun(r->snapshot));
	if (!r || r->origin || str_eq(r->source, op->source.handle))
		return 0;
	return err_set(err, ERR_EXISTS, "%s \"%s\" exists, and is %s%s", noun_of(op), op->request->name,
		r->source ? "a copy of " : "no copy", r->source ? r->source : "");
}

static void on_released(void *user, struct pmem_volume *record, const struct error *error)
{
	struct create *op = user;

	pmem_volume_free(record);
	if (error)
		finish(op, controller_record_failure(op->request->name, error));
	else
		look_for_source(op);
}

static void on_read(void *user, struct pmem_volume *record, const struct error *error)
{
	struct create *op = user;
	struct error *err = NULL;

	if (error) {
		finish(op, controller_record_failure(op->request->name, error));
		return;
	}
	controller_take_record(&op->record, record);
	if (!record || (!record->deleting && !record->retained)) {
		if (check_source(op, &err) < 0)
			finish(op, err);
		else
			look_for_source(op);
	} else if (strv_len(record->nodes) > 0) {
		if (record->retained)
			err_set(&err, ERR_ABORTED,
				"%s \"%s\" was deleted while its node was lost, and may still be there; when the node "
				"has returned, erase it with csi-client %s, otherwise remove its PmemVolume",
				noun_of(op), op->request->name,
				record->snapshot ? "delete-snapshot" : "delete");
		else
			err_set(&err, ERR_ABORTED, "%s \"%s\" is being deleted", noun_of(op),
				op->request->name);
		finish(op, err);
	} else {
		/* what is left of the deleted volume is erased under a handle of its own */
		CLEANUP(pmem_volume_freep) struct pmem_volume *old = TAKE_PTR(op->record);
		controller_write_record(op->controller, RECORD_RELEASE, old, on_released, op);
	}
}

static void read_record(struct create *op)
{
	op->n_reads++;
	op->n_chosen = 0;
	op->record_differs = false;
	strv_free(TAKE_PTR(op->absent));
	controller_read_record(op->controller, &op->key, on_read, op);
}

static void start(struct create *op)
{
	const struct waiter *waiter = &op->waiter;
	const char *name = op->request->name;
	struct error *err = NULL;

	if (check_request(op, &err) < 0) {
		waiter->finish(waiter->user, err);
		return;
	}
	op->key = volume_key_of_name(name);
	if (!key_lock(op->controller->locks, &op->key)) {
		err_set(&err, ERR_ABORTED, "another call for %s \"%s\" is in progress", noun_of(op), name);
		waiter->finish(waiter->user, err);
		return;
	}
	prepare_forwarded(op);
	read_record(op);
}

void controller_create(struct controller *c, const struct waiter *waiter,
	const Csi__V1__CreateVolumeRequest *request, Csi__V1__CreateVolumeResponse *reply)
{
	struct create *op = arena_alloc(waiter->arena, sizeof(*op));

	*op = (struct create){.controller = c, .waiter = *waiter, .request = request, .reply = reply};
	start(op);
}

/* Makes a request for a volume of @request for a snapshot: only the fields that are written into the
 * record. */
static Csi__V1__CreateVolumeRequest *as_volume(
	const Csi__V1__CreateSnapshotRequest *request, struct arena *arena)
{
	Csi__V1__CreateVolumeRequest *q = arena_alloc(arena, sizeof(*q));
	CLEANUP(strmap_done) struct strmap map = {0};

	csi__v1__create_volume_request__init(q);
	q->name = request->name;
	CSI_READ_MAP(request, parameters, &map);
	set_parameters(q, &map, arena);
	return q;
}

void controller_create_snapshot(struct controller *c, const struct waiter *waiter,
	const Csi__V1__CreateSnapshotRequest *request, Csi__V1__CreateSnapshotResponse *reply,
	const struct joint_call *joint, size_t member)
{
	struct create *op = arena_alloc(waiter->arena, sizeof(*op));

	*op = (struct create){.controller = c,
		.waiter = *waiter,
		.request = as_volume(request, waiter->arena),
		.snapshot = request,
		.snapshot_reply = reply,
		.joint = joint,
		.member = member};
	start(op);
}
