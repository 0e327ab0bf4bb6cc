/* SPDX-License-Identifier: Apache-2.0 */
/* CreateVolume: one node after the other until enough have the volume; of a cache volume several at a time.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "controller/create_private.h"
#include "csi/controller_request.h"
#include "csi/convert.h"
#include "volume/id.h"
#include "volume/params.h"

#define CREATE_PATH "/csi.v1.Controller/CreateVolume"
/* Nodes that are asked at a time for copies of one cache volume. */
#define CACHE_CALLS_MAX 64

struct create_call {
	struct create *op;
	struct candidate *candidate;
	bool again; /* it was asked before, and the outcome is unknown */
};

static void pump(struct create *op);

static int read_parameters(struct create *op, const struct capability_set *set, struct error **err)
{
	CLEANUP(strmap_done) struct strmap map = {0};
	CLEANUP(params_done) struct volume_params params = {0};

	CSI_READ_MAP(op->request, parameters, &map);
	if (params_parse(PARAMS_CREATE, &map, &params, err) < 0)
		return -1;
	if (access_check(set->spans_nodes, params.is_cache, err) < 0)
		return -1;
	op->sector = params.usage == USAGE_FILE_IO;
	op->is_cache = params.is_cache;
	op->n_wanted = params.is_cache && params.cache_size > 1 ? params.cache_size : 1;
	return 0;
}

/* What no node needs to be asked for. */
static int check_request(struct create *op, struct error **err)
{
	struct capability_set set;
	uint64_t limit_bytes;

	if (csi_check_create(op->request, &set, err) < 0)
		return -1;
	if (volume_name_check(op->request->name, err) < 0)
		return -1;
	if (csi_read_range(op->request->capacity_range, &op->required_bytes, &limit_bytes, err) < 0)
		return -1;
	return read_parameters(op, &set, err);
}

/* Nodes need not be told where else the volume could be: a thousand topologies are 60 KB. */
static void prepare_forwarded(struct create *op)
{
	op->forwarded = *op->request;
	op->forwarded.accessibility_requirements = NULL;
	op->forwarded.n_secrets = 0;
	op->forwarded.secrets = NULL;
}

static void fill_reply(struct create *op)
{
	Csi__V1__Volume *v = op->volume;

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

static void add_count(struct create *op, char **text, size_t n, const char *what)
{
	char more[96];

	if (n == 0)
		return;
	snprintf(more, sizeof(more), "%zu %s", n, what);
	add_text(op, text, more);
}

/* Nobody has room, and all that could have said so. */
static void set_no_room(struct create *op, struct error **err)
{
	static char start[] = "no node can take the volume";
	char *text = start;
	size_t n_reasons = op->n_without_room < CREATE_REASONS_MAX ? op->n_without_room : CREATE_REASONS_MAX;
	size_t n_too_small = 0;
	bool out_of_range = op->n_out_of_range > 0 && op->n_out_of_range == op->n_without_room;

	for (size_t i = 0; i < op->n_candidates; i++)
		n_too_small += op->candidates[i].claim != PLACEMENT_ASKED;
	for (size_t i = 0; i < n_reasons; i++)
		add_text(op, &text, op->reasons[i]);
	add_count(op, &text, op->n_without_room - n_reasons, "more give the same reason");
	add_count(op, &text, n_too_small, "report less room");
	add_count(op, &text, op->n_dead, "are not connected");
	if (op->uncertain)
		err_set(err, ERR_UNAVAILABLE, "%s; of them %s may have the volume", text, op->uncertain);
	else
		err_set(err, out_of_range && n_too_small + op->n_dead == 0 ? ERR_RANGE : ERR_EXHAUSTED, "%s",
			text);
}

static void finish(struct create *op, struct error *error)
{
	attempts_unlock(op->controller->attempts, &op->key);
	op->waiter.finish(op->waiter.user, error);
}

static void conclude(struct create *op)
{
	struct error *error = TAKE_PTR(op->failure);

	if (!error && op->n_made == 0)
		set_no_room(op, &error);
	if (error) {
		finish(op, error);
		return;
	}
	fill_reply(op);
	create_clean_up(op);
	op->waiter.finish(op->waiter.user, /* error= */ NULL);
}

static void note_made(struct create *op, const char *node_id, const Csi__V1__Volume *v)
{
	const struct volume_report made = {.id = v->volume_id,
		.name = op->request->name,
		.size_bytes = (uint64_t)v->capacity_bytes,
		.phase = PHASE_READY,
		.made_by_controller = true};

	node_table_note_created(
		op->controller->config.nodes, node_id, &made, controller_now_ns(op->controller));
}

/* What is borrowed from a reply lives no longer than its callback. */
static Csi__V1__Volume *copy_volume(const Csi__V1__Volume *from, struct arena *arena)
{
	Csi__V1__Volume *v = arena_alloc(arena, sizeof(*v));

	csi__v1__volume__init(v);
	v->volume_id = arena_strdup(arena, from->volume_id);
	v->capacity_bytes = from->capacity_bytes;
	v->volume_context = arena_alloc(arena, from->n_volume_context * sizeof(*v->volume_context));
	for (size_t i = 0; i < from->n_volume_context; i++) {
		Csi__V1__Volume__VolumeContextEntry *e = arena_alloc(arena, sizeof(*e));

		csi__v1__volume__volume_context_entry__init(e);
		e->key = arena_strdup(arena, from->volume_context[i]->key);
		e->value = arena_strdup(arena, from->volume_context[i]->value);
		v->volume_context[v->n_volume_context++] = e;
	}
	return v;
}

static void take_volume(struct create *op, const char *node_id, const Csi__V1__Volume *v)
{
	if (!op->volume)
		op->volume = copy_volume(v, op->waiter.arena);
	op->made_on[op->n_made++] = node_id;
	note_made(op, node_id, v);
	attempts_end(op->controller->attempts, &op->key, node_id);
}

static void take_no_room(struct create *op, const char *node_id, const struct error *error)
{
	if (op->n_without_room < CREATE_REASONS_MAX) {
		CLEANUP(free_charp) char *text = x_asprintf("%s: %s", node_id, error->msg);

		op->reasons[op->n_without_room] = arena_strdup(op->waiter.arena, text);
	}
	op->n_without_room++;
	op->n_out_of_range += error->code == ERR_RANGE;
	attempts_end(op->controller->attempts, &op->key, node_id);
}

static void take_failure(const struct create_call *call, const struct error *error)
{
	struct create *op = call->op;
	const char *node_id = call->candidate->node_id;

	/* a refusal says nothing about what an earlier call, which may have asked for less, has begun */
	if (controller_classify(error) == ANSWER_REFUSED && !call->again)
		attempts_end(op->controller->attempts, &op->key, node_id);
	if (!op->failure)
		op->failure = controller_pass_on(node_id, error);
}

/* An answer without a volume, or of a cache volume another one than the first node's, is no answer. */
static int check_answer(const struct create *op, const Csi__V1__Volume *v, struct error **err)
{
	if (!v || str_empty(v->volume_id))
		return err_set(err, ERR_INTERNAL, "the answer names no volume");
	if (op->volume && !str_eq(op->volume->volume_id, v->volume_id))
		return err_set(err, ERR_INTERNAL, "the copy is called %s, others %s", v->volume_id,
			op->volume->volume_id);
	return 0;
}

static void on_answer(void *user, const ProtobufCMessage *message, const struct error *error)
{
	CLEANUP(error_freep) struct error *bad = NULL;
	const struct create_call *call = user;
	struct create *op = call->op;
	const Csi__V1__CreateVolumeResponse *reply = (const Csi__V1__CreateVolumeResponse *)message;

	op->n_asking--;
	if (!error && check_answer(op, reply->volume, &bad) < 0)
		error = bad;
	if (!error)
		take_volume(op, call->candidate->node_id, reply->volume);
	else if (controller_classify(error) == ANSWER_NO_ROOM)
		take_no_room(op, call->candidate->node_id, error);
	else
		take_failure(call, error);
	pump(op);
}

static void ask(struct create *op, const struct node *node, struct candidate *candidate, uint64_t timeout_ms)
{
	struct controller *c = op->controller;
	struct create_call *call = arena_alloc(op->waiter.arena, sizeof(*call));

	*call = (struct create_call){.op = op, .candidate = candidate};
	call->again = !attempts_begin(c->attempts, &op->key, candidate->node_id, controller_now_ns(c));
	op->n_asking++;
	controller_call(c, node, CREATE_PATH, &op->forwarded.base,
		&csi__v1__create_volume_response__descriptor, timeout_ms, on_answer, call);
}

/* Return: false: nobody else is to be asked now. */
static bool ask_next(struct create *op)
{
	struct candidate *candidate = placement_next(op->candidates, op->n_candidates);
	uint64_t timeout_ms = controller_timeout_ms(op->controller, op->waiter.deadline_ns);
	const struct node *node;

	if (!candidate)
		return false;
	if (candidate->claim == PLACEMENT_DOUBTFUL && op->n_doubtful++ >= PLACEMENT_DOUBTFUL_MAX)
		return false;
	if (timeout_ms == 0 || !op->waiter.is_wanted(op->waiter.user)) {
		err_set(&op->failure, ERR_DEADLINE, "no time is left to ask another node");
		return false;
	}
	node = controller_live_node(op->controller, candidate->node_id);
	if (node) {
		candidate->claim = PLACEMENT_ASKED;
		ask(op, node, candidate, timeout_ms);
		return true;
	}
	err_set(&op->failure, ERR_UNAVAILABLE, "node %s has been removed in the meantime",
		candidate->node_id);
	return false;
}

static void pump(struct create *op)
{
	while (!op->failure && op->n_made + op->n_asking < op->n_wanted && op->n_asking < CACHE_CALLS_MAX) {
		if (!ask_next(op))
			break;
	}
	if (op->n_asking == 0)
		conclude(op);
}

void controller_create(struct controller *c, const struct waiter *waiter,
	const Csi__V1__CreateVolumeRequest *request, Csi__V1__CreateVolumeResponse *reply)
{
	struct create *op = arena_alloc(waiter->arena, sizeof(*op));
	struct error *err = NULL;

	*op = (struct create){.controller = c, .waiter = *waiter, .request = request, .reply = reply};
	attempts_expire(c->attempts, controller_now_ns(c));
	if (check_request(op, &err) < 0) {
		waiter->finish(waiter->user, err);
		return;
	}
	op->key = volume_key_of_name(request->name);
	if (!attempts_lock(c->attempts, &op->key, controller_now_ns(c))) {
		err_set(&err, ERR_ABORTED, "another call for volume \"%s\" is under way", request->name);
		waiter->finish(waiter->user, err);
		return;
	}
	if (create_gather(op, &err) < 0) {
		finish(op, err);
		return;
	}
	if (op->n_wanted > op->n_candidates)
		op->n_wanted = op->n_candidates;
	op->made_on = arena_alloc(waiter->arena, op->n_wanted * sizeof(*op->made_on));
	prepare_forwarded(op);
	pump(op);
}
