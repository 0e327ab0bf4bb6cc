/* SPDX-License-Identifier: Apache-2.0 */
#include "unit/duties/world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/str.h"

#define LEASE_MS 90000
#define TICK_NS  (5 * NS_PER_S)
#define NEVER_NS (1000000 * NS_PER_S)

static uint64_t now_ns(void *user)
{
	const struct world *w = user;

	return w->now_ns;
}

static size_t cluster_list(void *self, const char *const **ret)
{
	struct world *w = self;
	size_t n = 0;

	for (size_t i = 0; i < WORLD_NODES; i++) {
		if (!w->nodes[i].gone)
			w->node_ids[n++] = w->nodes[i].id;
	}
	*ret = w->node_ids;
	return w->config.defect == DEFECT_UNROUTED ? 0 : n;
}

static bool cluster_has(void *self, const char *node_id)
{
	const struct world *w = self;
	bool gone = w->config.defect == DEFECT_UNROUTED;

	for (size_t i = 0; i < WORLD_NODES; i++)
		gone = gone || (w->nodes[i].gone && str_eq(w->nodes[i].id, node_id));
	return !gone;
}

static void on_deleted(void *user, const char *node_id, const char *volume_id, const struct error *error)
{
	struct world *w = user;

	(void)node_id;
	(void)volume_id;
	w->n_deleted += error == NULL;
}

static void on_kept(void *user, const char *node_id, const char *volume_id, const char *why)
{
	(void)user;
	(void)node_id;
	(void)volume_id;
	(void)why;
}

static void controller_begin(struct world *w)
{
	enum world_defect defect = w->config.defect;
	w->cluster = (struct cluster_nodes){.list = cluster_list, .has = cluster_has, .self = w};
	const struct controller_config config = {
		.driver_name = WORLD_DRIVER,
		.version = "1.2.3",
		.nodes = w->table = node_table_new(),
		.caller = &w->caller,
		.cluster = &w->cluster,
		.records = world_records(w),
		.start_window_ms = defect == DEFECT_UNROUTED ? 0 : LEASE_MS,
		.forget_gone_nodes = defect == DEFECT_UNROUTED,
		.now_ns = now_ns,
		.user = w,
	};

	w->controller = controller_new(&config);
	const struct orphans_config search = {.controller = w->controller,
		.records = world_record_list(w),
		.lookup = {world_look, w},
		.observer = {.deleted = on_deleted, .kept = on_kept, .user = w}};
	w->orphans = orphans_new(&search);
}

/* Answers that are on their way are lost; the callers get none. */
static void controller_end(struct world *w)
{
	w->run++;
	orphans_free(w->orphans);
	world_net_drop_all(w);
	world_records_drop_all(w);
	controller_free(w->controller);
	node_table_free(w->table);
}

static void report_again(void *user)
{
	world_node_report(user);
}

void world_controller_restart(struct world *w)
{
	controller_end(w);
	controller_begin(w);
	for (size_t i = 0; i < WORLD_NODES; i++)
		world_at(w, world_delay_ms(w, 40000), report_again, &w->nodes[i]);
}

static void tick(void *user)
{
	struct world *w = user;

	if (w->closing)
		return;
	node_table_expire(w->table, w->now_ns);
	if (w->config.wild && w->config.defect != DEFECT_NO_SEARCH)
		orphans_tick(w->orphans, w->now_ns);
	world_at(w, TICK_NS, tick, w);
}

void world_open(struct world *w, const struct world_config *config)
{
	*w = (struct world){.config = *config, .memory = arena_new(0), .now_ns = NS_PER_S};
	w->random = config->seed * 0x9e3779b97f4a7c15ULL + 1;
	world_net_init(w);
	w->memory_records = memory_records_new(WORLD_DRIVER);
	controller_begin(w);
	for (unsigned i = 0; i < WORLD_NODES; i++)
		world_node_init(w, i);
	for (size_t i = 0; i < WORLD_CLAIMS; i++)
		w->claims[i] = (struct world_claim){.world = w};
	world_at(w, TICK_NS, tick, w);
	world_leader_begin(w);
}

/* Runs all calls and timers to their end first, since they own memory. */
void world_close(struct world *w)
{
	w->calm = true;
	w->closing = true;
	world_run(w, NEVER_NS);
	controller_end(w);
	for (size_t i = 0; i < WORLD_NODES; i++)
		world_node_done(&w->nodes[i]);
	memory_records_free(w->memory_records);
	free(w->kept);
	arena_free(w->memory);
	free(w->broken);
}

void world_check_told(struct world *w)
{
	for (size_t i = 0; i < WORLD_CLAIMS; i++) {
		const struct world_claim *c = &w->claims[i];

		if ((!c->has_pv || c->deleting) && !c->retained)
			continue;
		for (size_t k = 0; k < WORLD_NODES; k++) {
			const struct world_volume *v = world_node_find(&w->nodes[k], c->handle);

			if (c->on[k] && (!v || v->creating))
				world_break(w, "%s is not on %s any more", c->name, w->nodes[k].id);
		}
	}
}

void world_check_recorded(struct world *w)
{
	for (size_t i = 0; i < WORLD_NODES; i++) {
		for (size_t k = 0; k < w->nodes[i].n_volumes; k++) {
			const struct world_volume *v = &w->nodes[i].volumes[k];
			CLEANUP(pmem_volume_freep) struct pmem_volume *record = NULL;

			if (!v->made_by_controller)
				continue;
			record = world_record_of(w, v->id, v->name);
			if (!record || !pmem_volume_has_node(record, w->nodes[i].id))
				world_break(w, "the record of %s does not name %s", v->name, w->nodes[i].id);
		}
	}
}

static bool is_told(const struct world *w, size_t node, const struct world_volume *v)
{
	for (size_t i = 0; i < WORLD_CLAIMS; i++) {
		const struct world_claim *c = &w->claims[i];

		if ((c->has_pv || c->retained) && c->on[node] && str_eq(c->handle, v->id))
			return true;
	}
	return world_is_kept(w, node, v->id);
}

static void check_nodes(struct world *w)
{
	unsigned n_foreign = 0;

	for (size_t i = 0; i < WORLD_NODES; i++) {
		for (size_t k = 0; k < w->nodes[i].n_volumes; k++) {
			const struct world_volume *v = &w->nodes[i].volumes[k];

			n_foreign += !v->made_by_controller;
			/* a clone that was left over has content: its node does not delete it */
			if (v->made_by_controller && !is_told(w, i, v) && !(w->config.wild && v->is_clone))
				world_break(w, "%s on %s has no owner", v->name, w->nodes[i].id);
		}
	}
	if (n_foreign != w->n_foreign)
		world_break(w, "%u of %u volumes that others made are there", n_foreign, w->n_foreign);
}

void world_check_all(struct world *w)
{
	world_check_told(w);
	world_check_recorded(w);
	world_check_sizes(w);
	world_check_grown(w);
	world_check_kept(w);
	check_nodes(w);
	for (size_t i = 0; i < WORLD_CLAIMS; i++) {
		if (w->claims[i].has_pv && !w->claims[i].has_pvc)
			world_break(w, "%s is not deleted", w->claims[i].name);
	}
}
