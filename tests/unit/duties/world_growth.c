/* SPDX-License-Identifier: Apache-2.0 */
/* external-resizer and users who let claims grow. After an answer that leaves the outcome open it asks for
 * the same size, whatever the claim wants meanwhile; after one that is final, for what the claim wants then
 * (pkg/controller/expand_and_recover.go). It knows nothing of what external-provisioner does at the same
 * time. */
#include <stdio.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/str.h"
#include "unit/duties/world.h"

#define CALL_TIMEOUT_NS (10 * NS_PER_S)
#define RETRY_MAX_MS    60000

/* One ControllerExpandVolume. */
struct ask {
	struct world_claim *claim;
	unsigned number; /* claim->expansions then */
	unsigned run;    /* of the controller */
	struct arena *arena;
	Csi__V1__ControllerExpandVolumeRequest request;
	Csi__V1__ControllerExpandVolumeResponse reply;
	Csi__V1__CapacityRange range;
	uint64_t asked_bytes;
	uint64_t size_bytes;
	bool failed;
	enum err_code code;
};

static void work(void *user);

static void kick(struct world_claim *c, uint64_t delay_ns)
{
	world_at(c->world, delay_ns, work, c);
}

static bool is_open(enum err_code code)
{
	return code == ERR_CANCELLED || code == ERR_DEADLINE || code == ERR_UNAVAILABLE ||
	       code == ERR_EXHAUSTED || code == ERR_ABORTED;
}

static void take_growth(struct world_claim *c, const struct ask *a)
{
	if (a->size_bytes < a->asked_bytes)
		world_break(c->world, "%s has grown less than was asked for", c->name);
	c->told_bytes = a->size_bytes;
	c->asked_bytes = 0;
	c->refused = false;
	c->world->n_grown++;
	kick(c, NS_PER_MS);
}

/* The user may be content with less. */
static void take_refusal(struct world_claim *c, enum err_code code)
{
	struct world *w = c->world;

	c->refused = code == ERR_RANGE;
	w->n_refused += c->refused;
	if (code == ERR_NOT_FOUND && !c->deleting)
		world_break(w, "%s, which exists, was not found", c->name);
	if (!is_open(code))
		c->asked_bytes = 0;
	if (c->asked_bytes == 0 && world_chance(w, 50))
		c->wanted_bytes = c->told_bytes;
	kick(c, NS_PER_S + world_delay_ms(w, is_open(code) ? 10000 : RETRY_MAX_MS));
}

static void take_answer(void *user)
{
	const struct ask *a = user;
	struct world_claim *c = a->claim;

	if (!c->expanding || a->number != c->expansions)
		return;
	c->expanding = false;
	if (a->failed)
		take_refusal(c, a->code);
	else
		take_growth(c, a);
}

static void time_out(void *user)
{
	struct ask *a = user;

	if (!a->claim->expanding || a->number != a->claim->expansions)
		return;
	a->failed = true;
	a->code = ERR_DEADLINE;
	take_answer(a);
}

static void finish(void *user, struct error *error)
{
	struct ask *a = user;
	struct world *w = a->claim->world;

	a->failed = error != NULL;
	a->code = error ? error->code : ERR_UNKNOWN;
	a->size_bytes = (uint64_t)a->reply.capacity_bytes;
	error_free(error);
	arena_free(a->arena);
	/* the answer of a controller that has ended, or the one that gets lost */
	if (a->run == w->run && (w->calm || !world_chance(w, 5)))
		world_at(w, world_delay_ms(w, 20), take_answer, a);
}

static bool is_wanted(void *user)
{
	const struct ask *a = user;

	return a->claim->expanding && a->number == a->claim->expansions;
}

static void start_call(struct world_claim *c)
{
	struct world *w = c->world;
	struct ask *a = arena_alloc(w->memory, sizeof(*a));
	const struct waiter waiter = {.arena = arena_new(1 << 20),
		.deadline_ns = w->now_ns + CALL_TIMEOUT_NS,
		.finish = finish,
		.is_wanted = is_wanted,
		.user = a};

	c->expanding = true;
	*a = (struct ask){.claim = c,
		.number = ++c->expansions,
		.run = w->run,
		.arena = waiter.arena,
		.asked_bytes = c->asked_bytes};
	csi__v1__controller_expand_volume_request__init(&a->request);
	csi__v1__controller_expand_volume_response__init(&a->reply);
	csi__v1__capacity_range__init(&a->range);
	a->range.required_bytes = (int64_t)c->asked_bytes;
	a->request.volume_id = arena_strdup(a->arena, c->handle);
	a->request.capacity_range = &a->range;
	world_at(w, CALL_TIMEOUT_NS, time_out, a);
	controller_expand(w->controller, &waiter, &a->request, &a->reply);
}

static bool is_bound(const struct world_claim *c)
{
	return c->has_pv && c->has_pvc && !c->retained;
}

static void work(void *user)
{
	struct world_claim *c = user;

	if (c->expanding || !is_bound(c) || c->world->closing)
		return;
	if (c->asked_bytes == 0 && c->wanted_bytes > c->told_bytes)
		c->asked_bytes = c->wanted_bytes;
	if (c->asked_bytes > 0)
		start_call(c);
}

void world_claim_grow(struct world_claim *c)
{
	if (!is_bound(c))
		return;
	c->wanted_bytes = c->told_bytes + (1 + world_random(c->world, 3)) * WORLD_UNIT / 2;
	kick(c, NS_PER_MS);
}

/* Restarts the resizer. It continues the expansions that it had asked for, since the status of each claim has
 * the size. */
void world_resizer_restart(struct world *w)
{
	for (size_t i = 0; i < WORLD_CLAIMS; i++) {
		struct world_claim *c = &w->claims[i];

		c->expansions++;
		c->expanding = false;
		kick(c, world_delay_ms(w, 5000));
	}
}

static void check_told(struct world *w, const struct world_claim *c)
{
	for (size_t i = 0; i < WORLD_NODES; i++) {
		const struct world_volume *v = world_node_find(&w->nodes[i], c->handle);

		if (c->on[i] && v && v->size_bytes < c->told_bytes)
			world_break(w, "%s on %s is smaller than its caller knows", c->name, w->nodes[i].id);
	}
}

static void check_recorded(struct world *w, const struct world_volume *v)
{
	CLEANUP(pmem_volume_freep) struct pmem_volume *record = world_record_of(w, v->id, v->name);

	if (record && (v->size_bytes > record->size_bytes || v->growing_bytes > record->size_bytes))
		world_break(w, "%s is larger than its record says", v->name);
}

void world_check_sizes(struct world *w)
{
	for (size_t i = 0; i < WORLD_CLAIMS; i++) {
		const struct world_claim *c = &w->claims[i];

		if ((c->has_pv && !c->deleting) || c->retained)
			check_told(w, c);
	}
	for (size_t i = 0; i < WORLD_NODES; i++) {
		for (size_t k = 0; k < w->nodes[i].n_volumes; k++)
			check_recorded(w, &w->nodes[i].volumes[k]);
	}
}

void world_check_grown(struct world *w)
{
	for (size_t i = 0; i < WORLD_CLAIMS; i++) {
		const struct world_claim *c = &w->claims[i];

		if (is_bound(c) && c->wanted_bytes > c->told_bytes && !c->refused)
			world_break(w, "%s has not grown", c->name);
	}
}
