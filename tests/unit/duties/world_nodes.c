/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/str.h"
#include "csi/reply.h"
#include "unit/duties/world.h"
#include "unit/nodes/reports.h"
#include "volume/id.h"

#define HEARTBEAT_MS 30000

struct delivery {
	struct world_node *node;
	struct node_report *report;
	unsigned run;
};

static void heartbeat(void *user)
{
	struct world_node *n = user;

	if (n->world->closing)
		return;
	world_node_report(n);
	world_at(n->world, (HEARTBEAT_MS - 5000) * NS_PER_MS + world_delay_ms(n->world, 5000), heartbeat, n);
}

void world_node_init(struct world *w, unsigned index)
{
	struct world_node *n = &w->nodes[index];

	*n = (struct world_node){.world = w, .size_bytes = (6 + world_random(w, 8)) * WORLD_UNIT};
	snprintf(n->id, sizeof(n->id), "node-%u", index);
	world_at(w, world_delay_ms(w, 1000), heartbeat, n);
}

void world_node_done(struct world_node *n)
{
	free(n->volumes);
}

struct world_volume *world_node_find(struct world_node *n, const char *id)
{
	for (size_t i = 0; i < n->n_volumes; i++) {
		if (str_eq(n->volumes[i].id, id))
			return &n->volumes[i];
	}
	return NULL;
}

static struct world_volume *find_name(struct world_node *n, const char *name)
{
	for (size_t i = 0; i < n->n_volumes; i++) {
		if (str_eq(n->volumes[i].name, name))
			return &n->volumes[i];
	}
	return NULL;
}

struct world_volume *world_node_add(
	struct world_node *n, const char *id, const char *name, uint64_t size_bytes)
{
	struct world_volume *v;

	n->volumes = x_realloc(n->volumes, n->n_volumes + 1, sizeof(*n->volumes));
	v = &n->volumes[n->n_volumes++];
	*v = (struct world_volume){.size_bytes = size_bytes, .content = ++n->world->n_contents};
	snprintf(v->id, sizeof(v->id), "%s", id);
	snprintf(v->name, sizeof(v->name), "%s", name);
	return v;
}

void world_node_remove(struct world_node *n, const struct world_volume *v)
{
	n->volumes[v - n->volumes] = n->volumes[--n->n_volumes];
}

static uint64_t used_bytes(const struct world_volume *v)
{
	return v->growing_bytes > v->size_bytes ? v->growing_bytes : v->size_bytes;
}

static uint64_t free_bytes(const struct world_node *n)
{
	uint64_t left = n->size_bytes;

	for (size_t i = 0; i < n->n_volumes; i++)
		left -= used_bytes(&n->volumes[i]) < left ? used_bytes(&n->volumes[i]) : left;
	return left;
}

static struct node_report *make_report(const struct world_node *n)
{
	struct node_report *r = report_new(n->id);
	enum world_defect defect = n->world->config.defect;
	struct pool_report *region = &r->pools[0];

	region->capacity.total_bytes = n->size_bytes;
	region->capacity.available_bytes = region->capacity.max_volume_bytes =
		region->capacity.max_sector_volume_bytes = free_bytes(n);
	for (size_t i = 0; i < n->n_volumes; i++) {
		struct volume_report *v = report_add_volume(r, n->volumes[i].id, n->volumes[i].name);

		v->size_bytes = n->volumes[i].size_bytes;
		v->phase = n->volumes[i].creating ? PHASE_CREATING : PHASE_READY;
		v->ever_staged = n->volumes[i].ever_staged && defect != DEFECT_STAGED;
		v->made_by_controller = n->volumes[i].made_by_controller || defect == DEFECT_ORIGIN;
	}
	return r;
}

static void deliver(void *user)
{
	struct delivery *d = user;
	struct world *w = d->node->world;

	if (d->node->cut || d->run != w->run)
		node_report_free(d->report);
	else
		node_table_put(w->table, d->report, w->now_ns);
}

/* As it is now; it arrives later, in order. */
void world_node_report(struct world_node *n)
{
	struct world *w = n->world;
	struct delivery *d = arena_alloc(w->memory, sizeof(*d));
	uint64_t at_ns = w->now_ns + world_delay_ms(w, 300);

	if (n->cut)
		return;
	if (at_ns < n->last_sent_ns)
		at_ns = n->last_sent_ns;
	n->last_sent_ns = at_ns;
	*d = (struct delivery){.node = n, .report = make_report(n), .run = w->run};
	world_at(w, at_ns - w->now_ns, deliver, d);
}

static void report_again(void *user)
{
	world_node_report(user);
}

void world_node_restart(struct world_node *n)
{
	n->boot++;
	for (size_t i = n->n_volumes; i > 0; i--) {
		struct world_volume *v = &n->volumes[i - 1];

		/* the old size or the new one */
		if (v->growing_bytes > 0 && world_chance(n->world, 50))
			v->size_bytes = v->growing_bytes;
		v->growing_bytes = 0;
		if (v->creating)
			world_node_remove(n, v);
	}
	world_net_node_lost(n->world, n);
	world_at(n->world, world_delay_ms(n->world, 5000), report_again, n);
}

struct healing {
	struct world_node *node;
	unsigned cuts;
};

static void heal(void *user)
{
	const struct healing *h = user;

	if (h->node->cuts != h->cuts)
		return;
	h->node->cut = false;
	world_at(h->node->world, world_delay_ms(h->node->world, 10000), report_again, h->node);
}

void world_node_cut(struct world_node *n, uint64_t duration_ns)
{
	struct healing *h = arena_alloc(n->world->memory, sizeof(*h));

	n->cut = true;
	*h = (struct healing){n, ++n->cuts};
	world_at(n->world, duration_ns, heal, h);
}

struct work {
	struct world_node *node;
	unsigned boot;
	char id[64];
};

static void work_done(void *user)
{
	const struct work *work = user;
	struct world_volume *v = world_node_find(work->node, work->id);

	if (work->node->boot != work->boot || !v)
		return;
	v->creating = false;
	world_node_report(work->node);
}

/* As on a node, it counts as staged from the beginning. */
void world_node_fill(struct world_node *n, struct world_volume *v, const struct world_volume *source)
{
	v->is_clone = v->ever_staged = true;
	if (n->world->config.defect != DEFECT_BLANK)
		v->content = source->content;
}

static struct world_volume *begin_work(
	struct world_node *n, const char *id, const char *name, uint64_t bytes, uint64_t work_ns)
{
	struct work *work = arena_alloc(n->world->memory, sizeof(*work));
	struct world_volume *v = world_node_add(n, id, name, bytes);

	v->creating = true;
	v->made_by_controller = true;
	*work = (struct work){.node = n, .boot = n->boot};
	snprintf(work->id, sizeof(work->id), "%s", id);
	world_at(n->world, work_ns, work_done, work);
	return v;
}

static bool is_cache(const Csi__V1__CreateVolumeRequest *q)
{
	return q->n_parameters > 0;
}

static ProtobufCMessage *make_reply(
	struct arena *arena, const char *id, uint64_t size_bytes, const char *source)
{
	Csi__V1__CreateVolumeResponse *reply = arena_alloc(arena, sizeof(*reply));

	csi__v1__create_volume_response__init(reply);
	reply->volume = arena_alloc(arena, sizeof(*reply->volume));
	csi__v1__volume__init(reply->volume);
	reply->volume->volume_id = arena_strdup(arena, id);
	reply->volume->capacity_bytes = (int64_t)size_bytes;
	reply->volume->content_source =
		source ? csi_content_source(arena, source, /* is_snapshot= */ false) : NULL;
	return &reply->base;
}

/* Return: 0, or -1: it cannot make a clone of @source with @bytes. */
static int check_source(struct world_node *n, const char *source, uint64_t bytes, struct error **err)
{
	const struct world_volume *v = world_node_find(n, source);

	if (volume_id_names_other_node(source, n->id))
		world_break(n->world, "%s is asked for a clone of %s", n->id, source);
	if (!v || v->creating)
		return err_set(err, ERR_NOT_FOUND, "no volume %s", source);
	if (bytes < v->size_bytes)
		return err_set(err, ERR_RANGE, "volume %s is larger", source);
	return 0;
}

ProtobufCMessage *world_node_create(struct world_node *n, const Csi__V1__CreateVolumeRequest *q,
	struct arena *arena, uint64_t *ret_work_ns, struct error **err)
{
	struct world *w = n->world;
	uint64_t bytes = (uint64_t)q->capacity_range->required_bytes;
	const char *source = q->volume_content_source ? q->volume_content_source->volume->volume_id : NULL;
	struct world_volume *v = find_name(n, q->name);
	char id[VOLUME_ID_MAX + 1];

	*ret_work_ns = 0;
	if (v && v->creating) {
		err_set(err, ERR_ABORTED, "volume %s is being made", v->id);
		return NULL;
	}
	if (v)
		return make_reply(arena, v->id, v->size_bytes, source);
	if (source && check_source(n, source, bytes, err) < 0)
		return NULL;
	if (free_bytes(n) < bytes) {
		err_set(err, ERR_EXHAUSTED, "not enough space");
		return NULL;
	}
	if (!w->calm && world_chance(w, 3)) {
		err_set(err, ERR_INTERNAL, "the device could not be made");
		return NULL;
	}
	volume_id_mint(q->name, is_cache(q) ? NULL : n->id, id);
	*ret_work_ns = world_chance(w, 85) || w->calm ? world_delay_ms(w, 500) : world_delay_ms(w, 40000);
	v = begin_work(n, id, q->name, bytes, *ret_work_ns);
	if (source)
		world_node_fill(n, v, world_node_find(n, source));
	world_node_report(n);
	return make_reply(arena, id, bytes, source);
}

static void growth_done(void *user)
{
	const struct work *work = user;
	struct world_volume *v = world_node_find(work->node, work->id);

	if (work->node->boot != work->boot || !v)
		return;
	v->size_bytes = v->growing_bytes;
	v->growing_bytes = 0;
	world_node_report(work->node);
}

static ProtobufCMessage *make_growth(struct arena *arena, uint64_t size_bytes)
{
	Csi__V1__ControllerExpandVolumeResponse *reply = arena_alloc(arena, sizeof(*reply));

	csi__v1__controller_expand_volume_response__init(reply);
	reply->capacity_bytes = (int64_t)size_bytes;
	reply->node_expansion_required = true;
	return &reply->base;
}

/* Return: 0, or -1: it cannot grow now to @bytes. */
static int check_growth(
	struct world_node *n, const struct world_volume *v, uint64_t bytes, struct error **err)
{
	if (!v)
		return err_set(err, ERR_NOT_FOUND, "no such volume");
	if (v->creating || v->growing_bytes > 0)
		return err_set(err, ERR_ABORTED, "volume %s is being made or grows", v->id);
	if (v->size_bytes < bytes && free_bytes(n) < bytes - v->size_bytes)
		return err_set(err, ERR_EXHAUSTED, "not enough space");
	if (v->size_bytes < bytes && !n->world->calm && world_chance(n->world, 3))
		return err_set(err, ERR_INTERNAL, "the device could not grow");
	return 0;
}

ProtobufCMessage *world_node_expand(struct world_node *n, const Csi__V1__ControllerExpandVolumeRequest *q,
	struct arena *arena, uint64_t *ret_work_ns, struct error **err)
{
	struct world *w = n->world;
	uint64_t bytes = (uint64_t)q->capacity_range->required_bytes;
	struct world_volume *v = world_node_find(n, q->volume_id);
	struct work *work;

	*ret_work_ns = 0;
	if (check_growth(n, v, bytes, err) < 0)
		return NULL;
	if (v->size_bytes >= bytes || w->config.defect == DEFECT_SHORT)
		return make_growth(arena, v->size_bytes >= bytes ? v->size_bytes : bytes);
	*ret_work_ns = world_chance(w, 85) || w->calm ? world_delay_ms(w, 500) : world_delay_ms(w, 40000);
	v->growing_bytes = bytes;
	work = arena_alloc(w->memory, sizeof(*work));
	*work = (struct work){.node = n, .boot = n->boot};
	snprintf(work->id, sizeof(work->id), "%s", v->id);
	world_at(w, *ret_work_ns, growth_done, work);
	return make_growth(arena, bytes);
}

int world_node_delete(
	struct world_node *n, const Csi__V1__DeleteVolumeRequest *q, bool if_never_staged, struct error **err)
{
	struct world_volume *v = world_node_find(n, q->volume_id);

	if (!v)
		return 0;
	if (v->creating || v->growing_bytes > 0)
		return err_set(err, ERR_ABORTED, "volume %s is being made or grows", v->id);
	if (if_never_staged && v->ever_staged && n->world->config.defect != DEFECT_STAGED)
		return err_set(err, ERR_PRECONDITION, "volume %s was in use", v->id);
	/* what was never staged is not in use */
	if (!if_never_staged && !n->world->calm && world_chance(n->world, 5))
		return err_set(err, ERR_PRECONDITION, "volume %s is in use", v->id);
	world_check_erasure(n, v);
	world_node_remove(n, v);
	world_node_report(n);
	return 0;
}
