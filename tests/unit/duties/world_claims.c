/* SPDX-License-Identifier: Apache-2.0 */
/* external-provisioner and the API, as far as they matter: what is asked again, where, and what is known. */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/str.h"
#include "csi/convert.h"
#include "csi/reply.h"
#include "unit/duties/world.h"

#define CALL_TIMEOUT_NS (10 * NS_PER_S)

/* One CreateVolume or DeleteVolume. */
struct ask {
	struct world_claim *claim;
	unsigned number; /* claim->calls then */
	unsigned run;    /* of the controller */
	struct arena *arena;
	Csi__V1__CreateVolumeRequest create;
	Csi__V1__DeleteVolumeRequest delete;
	Csi__V1__CreateVolumeResponse reply;
	Csi__V1__CapacityRange range;
	bool is_create;
	bool failed;
	enum err_code code;
	char handle[64];
	bool on[WORLD_NODES];
};

static bool is_final(enum err_code code)
{
	return code != ERR_CANCELLED && code != ERR_DEADLINE && code != ERR_UNAVAILABLE &&
	       code != ERR_ABORTED;
}

static void check_content(struct world_claim *c)
{
	for (size_t i = 0; i < WORLD_NODES; i++) {
		const struct world_volume *v = world_node_find(&c->world->nodes[i], c->handle);

		if (c->on[i] && v && v->content != c->content)
			world_break(c->world, "%s is no clone of %s", c->name, c->source);
	}
	c->world->n_cloned++;
}

static void take_created(struct world_claim *c, const struct ask *a)
{
	c->in_background = false;
	c->has_pv = true;
	c->world->n_told++;
	snprintf(c->handle, sizeof(c->handle), "%s", a->handle);
	memcpy(c->on, a->on, sizeof(c->on));
	c->wanted_bytes = c->told_bytes = c->size_bytes;
	if (c->late && !c->cached && !c->on[c->selected])
		world_break(c->world, "%s is not on the node that was asked for", c->name);
	if (*c->source)
		check_content(c);
	if (!c->has_pvc)
		world_claim_kick(c, NS_PER_MS);
}

static void take_failed_create(struct world_claim *c, enum err_code code)
{
	struct world *w = c->world;

	c->in_background = !is_final(code);
	if (!c->in_background && c->late && (code == ERR_EXHAUSTED || world_chance(w, 20)))
		c->selected = (unsigned)world_random(w, WORLD_NODES);
	world_claim_kick(c, NS_PER_S + world_delay_ms(w, 10000));
}

static void take_deleted(struct world_claim *c)
{
	world_keep_lost(c->world, c);
	*c = (struct world_claim){.world = c->world, .calls = c->calls, .expansions = c->expansions + 1};
}

static void take_answer(void *user)
{
	const struct ask *a = user;
	struct world_claim *c = a->claim;

	if (!c->calling || a->number != c->calls)
		return;
	c->calling = false;
	if (a->is_create && !a->failed)
		take_created(c, a);
	else if (a->is_create)
		take_failed_create(c, a->code);
	else if (a->failed)
		world_claim_kick(c, NS_PER_S + world_delay_ms(c->world, 10000));
	else
		take_deleted(c);
}

static void time_out(void *user)
{
	struct ask *a = user;

	if (!a->claim->calling || a->number != a->claim->calls)
		return;
	a->failed = true;
	a->code = ERR_DEADLINE;
	take_answer(a);
}

static void finish(void *user, struct error *error)
{
	struct ask *a = user;
	struct world *w = a->claim->world;
	const Csi__V1__Volume *v = a->reply.volume;

	a->failed = error != NULL;
	a->code = error ? error->code : ERR_UNKNOWN;
	if (a->is_create && !error) {
		snprintf(a->handle, sizeof(a->handle), "%s", v->volume_id);
		for (size_t i = 0; i < v->n_accessible_topology; i++)
			a->on[csi_topology_node(WORLD_DRIVER, v->accessible_topology[i])[5] - '0'] = true;
	}
	error_free(error);
	arena_free(a->arena);
	/* the answer of a controller that has ended, or the one that gets lost */
	if (a->run == w->run && (w->calm || !world_chance(w, 5)))
		world_at(w, world_delay_ms(w, 20), take_answer, a);
}

static bool is_wanted(void *user)
{
	const struct ask *a = user;

	return a->claim->calling && a->number == a->claim->calls;
}

static Csi__V1__VolumeCapability *make_capability(struct arena *arena, bool cached)
{
	Csi__V1__VolumeCapability *c = arena_alloc(arena, sizeof(*c));

	csi__v1__volume_capability__init(c);
	c->access_mode = arena_alloc(arena, sizeof(*c->access_mode));
	csi__v1__volume_capability__access_mode__init(c->access_mode);
	c->access_mode->mode = cached ? CSI__V1__VOLUME_CAPABILITY__ACCESS_MODE__MODE__MULTI_NODE_MULTI_WRITER
				      : CSI__V1__VOLUME_CAPABILITY__ACCESS_MODE__MODE__SINGLE_NODE_WRITER;
	c->access_type_case = CSI__V1__VOLUME_CAPABILITY__ACCESS_TYPE_MOUNT;
	c->mount = arena_alloc(arena, sizeof(*c->mount));
	csi__v1__volume_capability__mount_volume__init(c->mount);
	return c;
}

static void add_parameter(
	struct arena *arena, Csi__V1__CreateVolumeRequest *q, const char *key, const char *value)
{
	Csi__V1__CreateVolumeRequest__ParametersEntry *e = arena_alloc(arena, sizeof(*e));

	csi__v1__create_volume_request__parameters_entry__init(e);
	e->key = arena_strdup(arena, key);
	e->value = arena_strdup(arena, value);
	q->parameters[q->n_parameters++] = e;
}

/* Immediate binding: all nodes, in an order that differs each time. */
static void add_topology(struct ask *a)
{
	struct world *w = a->claim->world;
	size_t first = world_random(w, WORLD_NODES);
	Csi__V1__TopologyRequirement *t = arena_alloc(a->arena, sizeof(*t));
	bool late = a->claim->late;

	csi__v1__topology_requirement__init(t);
	t->n_requisite = late ? 1 : WORLD_NODES;
	t->requisite = arena_alloc(a->arena, t->n_requisite * sizeof(*t->requisite));
	for (size_t i = 0; i < t->n_requisite; i++) {
		size_t at = late ? a->claim->selected : (first + i) % WORLD_NODES;

		t->requisite[i] = csi_topology(WORLD_DRIVER, w->nodes[at].id, a->arena);
	}
	t->preferred = t->requisite;
	t->n_preferred = t->n_requisite;
	a->create.accessibility_requirements = t;
}

static void fill_create(struct ask *a)
{
	struct arena *arena = a->arena;
	const struct world_claim *c = a->claim;

	csi__v1__create_volume_request__init(&a->create);
	csi__v1__create_volume_response__init(&a->reply);
	csi__v1__capacity_range__init(&a->range);
	a->range.required_bytes = (int64_t)c->size_bytes;
	a->create.name = arena_strdup(arena, c->name);
	a->create.capacity_range = &a->range;
	a->create.n_volume_capabilities = 1;
	a->create.volume_capabilities = arena_alloc(arena, sizeof(*a->create.volume_capabilities));
	a->create.volume_capabilities[0] = make_capability(arena, c->cached);
	if (*c->source)
		a->create.volume_content_source =
			csi_content_source(arena, c->source, /* is_snapshot= */ false);
	if (c->cached) {
		a->create.parameters = arena_alloc(arena, 2 * sizeof(*a->create.parameters));
		add_parameter(arena, &a->create, "persistencyModel", "cache");
		add_parameter(arena, &a->create, "cacheSize", "3");
	}
	if (c->late || !c->cached || world_chance(c->world, 50))
		add_topology(a);
}

static void start_call(struct world_claim *c, bool create)
{
	struct world *w = c->world;
	struct ask *a = arena_alloc(w->memory, sizeof(*a));
	const struct waiter waiter = {.arena = arena_new(1 << 20),
		.deadline_ns = w->now_ns + CALL_TIMEOUT_NS,
		.finish = finish,
		.is_wanted = is_wanted,
		.user = a};

	c->calling = true;
	*a = (struct ask){
		.claim = c, .number = ++c->calls, .run = w->run, .arena = waiter.arena, .is_create = create};
	world_at(w, CALL_TIMEOUT_NS, time_out, a);
	if (create) {
		fill_create(a);
		controller_create(w->controller, &waiter, &a->create, &a->reply);
		return;
	}
	csi__v1__delete_volume_request__init(&a->delete);
	a->delete.volume_id = arena_strdup(a->arena, c->handle);
	controller_delete(w->controller, &waiter, &a->delete);
}

static void work(void *user)
{
	struct world_claim *c = user;

	if (c->calling || c->retained || c->world->closing)
		return;
	if (c->has_pv && !c->has_pvc) {
		c->deleting = true;
		start_call(c, /* create= */ false);
	} else if (!c->has_pv && (c->has_pvc || c->in_background)) {
		start_call(c, /* create= */ true);
	} else if (!c->has_pv) {
		*c = (struct world_claim){
			.world = c->world, .calls = c->calls, .expansions = c->expansions + 1};
	}
}

void world_claim_kick(struct world_claim *c, uint64_t delay_ns)
{
	world_at(c->world, delay_ns, work, c);
}

bool world_claim_is_free(const struct world_claim *c)
{
	return !c->has_pvc && !c->has_pv && !c->calling && !c->in_background && !c->retained;
}

/* @c becomes a clone of some volume, if there is one. */
static void choose_source(struct world_claim *c)
{
	struct world *w = c->world;
	const struct world_claim *s = &w->claims[world_random(w, WORLD_CLAIMS)];

	for (size_t i = 0; i < WORLD_NODES && s->has_pv && !s->deleting && !s->cached; i++) {
		const struct world_volume *v = world_node_find(&w->nodes[i], s->handle);

		if (!s->on[i] || !v)
			continue;
		snprintf(c->source, sizeof(c->source), "%s", s->handle);
		c->content = v->content;
		c->size_bytes = v->size_bytes + world_random(w, 2) * WORLD_UNIT;
		c->cached = false;
	}
}

void world_claim_add(struct world *w)
{
	struct world_claim *c = &w->claims[world_random(w, WORLD_CLAIMS)];

	if (!world_claim_is_free(c))
		return;
	*c = (struct world_claim){
		.world = w, .calls = c->calls, .expansions = c->expansions, .has_pvc = true};
	c->size_bytes = (1 + world_random(w, 3)) * WORLD_UNIT;
	c->late = world_chance(w, 50);
	c->cached = !c->late && world_chance(w, 20);
	c->selected = (unsigned)world_random(w, WORLD_NODES);
	if (world_chance(w, 20))
		choose_source(c);
	snprintf(c->name, sizeof(c->name), "pvc-00000000-0000-4000-8000-%012x", ++w->n_names);
	world_claim_kick(c, NS_PER_MS);
}

void world_claim_delete(struct world_claim *c)
{
	if (!c->has_pvc)
		return;
	c->has_pvc = false;
	world_claim_kick(c, world_delay_ms(c->world, 1000));
}

void world_claim_stage(struct world_claim *c)
{
	if (!c->has_pv || !c->has_pvc)
		return;
	for (size_t i = 0; i < WORLD_NODES; i++) {
		struct world_volume *v = world_node_find(&c->world->nodes[i], c->handle);

		if (c->on[i] && v && !v->ever_staged) {
			v->ever_staged = true;
			world_node_report(&c->world->nodes[i]);
		}
	}
}

/* By hand: the volume's content may still be wanted. */
void world_claim_retain(struct world_claim *c)
{
	if (!c->has_pv || !c->has_pvc || c->cached)
		return;
	world_claim_stage(c);
	c->retained = true;
	c->has_pv = false;
	c->has_pvc = false;
}

/* All that it had under way is forgotten; the scheduler may have changed its mind meanwhile. */
void world_provisioner_restart(struct world *w)
{
	for (size_t i = 0; i < WORLD_CLAIMS; i++) {
		struct world_claim *c = &w->claims[i];

		c->calls++;
		c->calling = false;
		c->in_background = false;
		if (c->late && !c->has_pv && world_chance(w, 50))
			c->selected = (unsigned)world_random(w, WORLD_NODES);
		world_claim_kick(c, world_delay_ms(w, 5000));
	}
}

struct looking {
	struct world *world;
	char name[48];
	claim_lookup_fn fn;
	void *user;
};

static void found(void *user)
{
	struct looking *l = user;
	struct world *w = l->world;
	CLEANUP(error_freep) struct error *error = NULL;
	struct claim_state state = {0};
	const char *ids[WORLD_NODES];

	if (!w->calm && world_chance(w, 5) && err_set(&error, ERR_UNAVAILABLE, "no API") < 0) {
		l->fn(l->user, NULL, error);
		return;
	}
	for (size_t i = 0; i < WORLD_CLAIMS; i++) {
		const struct world_claim *c = &w->claims[i];

		if (!str_eq(c->name, l->name) || w->config.defect == DEFECT_LOOK)
			continue;
		state = (struct claim_state){.has_volume = c->has_pv,
			.handle = c->has_pv ? c->handle : NULL,
			.node_ids = ids,
			.has_claim = c->has_pvc};
		for (size_t k = 0; k < WORLD_NODES; k++) {
			if (c->on[k])
				ids[state.n_node_ids++] = w->nodes[k].id;
		}
	}
	l->fn(l->user, &state, NULL);
}

void world_look(void *self, const char *volume_name, const char *handle, claim_lookup_fn fn, void *user)
{
	(void)handle; /* each PV has the name of its volume here */
	struct world *w = self;
	struct looking *l = arena_alloc(w->memory, sizeof(*l));

	*l = (struct looking){.world = w, .fn = fn, .user = user};
	snprintf(l->name, sizeof(l->name), "%s", volume_name);
	world_at(w, world_delay_ms(w, 200), found, l);
}
