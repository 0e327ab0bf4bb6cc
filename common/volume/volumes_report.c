/* SPDX-License-Identifier: Apache-2.0 */
/* Reports about volumes, which are made from memory and without waiting: operations in progress, the
 * capacity, and the report for the central controller. */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/str.h"
#include "volume/id.h"
#include "volume/report.h"
#include "volume/volumes_private.h"

/* By the name's ID in both forms (id.h). */
static char *step_of_new(struct volumes *v, const char *name)
{
	char id[VOLUME_ID_MAX + 1];

	volume_id_mint(name, v->node_id, id);
	char *text = volume_lock_current_step(v->locks, id);
	if (text)
		return text;
	volume_id_mint(name, NULL, id);
	return volume_lock_current_step(v->locks, id);
}

static char *step_of(struct volumes *v, const char *handle)
{
	CLEANUP(volume_record_freep) struct volume_record *r = records_find(v->records, handle);

	if (!r)
		r = records_find_name(v->records, handle);
	return r ? volume_lock_current_step(v->locks, r->id) : step_of_new(v, handle);
}

char *volumes_current_step(struct volumes *v, const char *handle)
{
	CLEANUP(free_charp)
	char *text = handle ? step_of(v, handle) : volume_lock_current_step(v->locks, NULL);
	struct device_activity a;

	device_activity(v->devices, &a);
	if (!a.command[0])
		return TAKE_PTR(text);
	return x_asprintf("%s%s%s for %llu s", text ? text : "", text ? "; " : "", a.command,
		(unsigned long long)((clock_ns() - a.since_ns) / NS_PER_S));
}

/* Whether new devices are made in @p now. */
static bool takes_new(const struct volumes *v, const struct device_pool *p)
{
	return p->complete && !p->closed && !records_view(v->records).no_space &&
	       !failing_pools_avoids(device_view_failing_pools(v->device_view), p->uuid, clock_ns());
}

/* The capacity that is available in @p now. A closed pool belongs to the other device mode and has none. */
static struct capacity pool_capacity(const struct volumes *v, const struct device_pool *p)
{
	if (p->closed)
		return (struct capacity){0};
	if (!takes_new(v, p))
		return (struct capacity){.total_bytes = p->capacity.total_bytes};
	return p->capacity;
}

static enum durability durability_of(const struct volumes *v, const struct device_pool *p)
{
	return region_durabilities_of(&v->durabilities, p->region);
}

bool volumes_capacity(struct volumes *v, bool sync, struct capacity *ret)
{
	struct capacity sum = {0};

	pthread_mutex_lock(&v->shared.mutex);
	const struct device_list *seen = device_view_list(v->device_view);
	for (size_t i = 0; seen && i < seen->n_pools; i++) {
		const struct device_pool *p = &seen->pools[i];
		const struct capacity all = pool_capacity(v, p);
		const struct capacity usable = capacity_for(&all, durability_of(v, p), sync);

		capacity_add(&sum, &usable);
	}
	pthread_mutex_unlock(&v->shared.mutex);
	if (seen)
		*ret = sum;
	return seen != NULL;
}

uint64_t volumes_limit(struct volumes *v)
{
	uint64_t sum = 0;
	bool limited = true;

	pthread_mutex_lock(&v->shared.mutex);
	const struct device_list *seen = device_view_list(v->device_view);
	for (size_t i = 0; seen && i < seen->n_pools; i++) {
		const struct device_pool *p = &seen->pools[i];

		if (p->closed)
			continue;
		limited = limited && p->max_devices > 0;
		sum += p->max_devices;
	}
	pthread_mutex_unlock(&v->shared.mutex);
	return limited ? sum : 0;
}

static uint64_t erasing_bytes(const struct volumes *v, const struct device_pool *p)
{
	const struct records_view view = records_view(v->records);
	uint64_t sum = 0;

	for (size_t i = 0; i < view.n; i++) {
		if (view.list[i]->phase == PHASE_ERASING && str_eq(view.list[i]->pool, p->uuid))
			sum += view.list[i]->size_bytes;
	}
	return sum;
}

static struct pool_report report_pool(const struct volumes *v, const struct device_pool *p)
{
	struct pool_report out = {.name = x_strdup(p->name),
		.capacity = pool_capacity(v, p),
		.region_bytes = p->region_bytes,
		.rules = p->rules,
		.durability = durability_of(v, p),
		.incomplete = !p->complete,
		.erasing_bytes = erasing_bytes(v, p)};

	if (!takes_new(v, p))
		return out;
	memcpy(out.free_extent_bytes, p->free_extent_bytes, sizeof(out.free_extent_bytes));
	out.n_free_extents = p->n_free_extents;
	return out;
}

static void report_pools(const struct volumes *v, const struct device_list *seen, struct volumes_report *out)
{
	out->pools = x_calloc(seen->n_pools, sizeof(*out->pools));
	for (size_t i = 0; i < seen->n_pools; i++) {
		const struct device_pool *p = &seen->pools[i];

		if (p->closed)
			continue;
		out->pools[out->n_pools++] = report_pool(v, p);
	}
}

static char *name_of(const struct volume_record *r)
{
	const char *name = strmap_get(&r->parameters, "name");

	return x_strdup(name ? name : "");
}

static char *source_of(const struct volume_record *r)
{
	return r->snapshot ? x_strdup(r->source) : NULL;
}

static void report_pending(
	const struct volumes *v, const struct records_view *view, struct volumes_report *out)
{
	for (const struct pending_creation *a = view->pending; a; a = a->next) {
		if (records_has(v->records, a->r->id) || strv_contains(view->damaged, a->r->id))
			continue;
		out->volumes[out->n_volumes++] = (struct volume_report){
			.id = x_strdup(a->r->id),
			.name = name_of(a->r),
			.phase = PHASE_CREATING,
			.made_by_controller = a->r->made_by_controller,
			.is_inline = volume_record_is_inline(a->r),
			.claim = claim_text(&a->r->claim),
			.snapshot = a->r->snapshot,
			.source = source_of(a->r),
			.group = x_strdup(a->r->group),
			.filling = copy_reports_progress(&v->copy_reports, a->r->id),
		};
	}
}

static void report_dax(const struct volumes *v, const struct volume_record *r, struct volume_report *out)
{
	const struct device_list *seen = device_view_list(v->device_view);
	const struct device_pool *p = seen && r->pool ? device_list_pool(seen, r->pool) : NULL;
	const char *mode = v->devices->ops->mode;

	out->dax = volume_dax_of(r, mode, p ? durability_of(v, p) : DURABILITY_UNKNOWN);
	out->lacks_sync = volume_dax_lacks_sync(r, mode, out->dax);
}

static void report_volumes(const struct volumes *v, struct volumes_report *out)
{
	const struct records_view view = records_view(v->records);

	out->volumes = x_calloc(view.n + view.n_pending + strv_len(view.damaged), sizeof(*out->volumes));
	for (size_t i = 0; i < view.n; i++) {
		const struct volume_record *r = view.list[i];

		out->volumes[out->n_volumes++] = (struct volume_report){
			.id = x_strdup(r->id),
			.name = name_of(r),
			.size_bytes = r->size_bytes,
			.phase = device_view_phase(v->device_view, r),
			.ever_staged = volume_record_may_hold_data(r),
			.made_by_controller = r->made_by_controller,
			.is_inline = volume_record_is_inline(r),
			.claim = claim_text(&r->claim),
			.snapshot = r->snapshot,
			.source = source_of(r),
			.group = x_strdup(r->group),
			.taken_s = r->taken_s,
		};
		report_dax(v, r, &out->volumes[out->n_volumes - 1]);
		if (r->phase == PHASE_READY)
			volumes_copy_health(v, r->id, &out->volumes[out->n_volumes - 1].health);
		if (r->phase == PHASE_CREATING)
			out->volumes[out->n_volumes - 1].filling =
				copy_reports_progress(&v->copy_reports, r->id);
	}
	copy_reports_add_pauses(&v->copy_reports, out->volumes, out->n_volumes);
	report_pending(v, &view, out);
	for (size_t i = 0; view.damaged && view.damaged[i]; i++) {
		/* another file of it counts, and a volume is named once */
		if (records_has(v->records, view.damaged[i]))
			continue;
		out->volumes[out->n_volumes++] = (struct volume_report){.id = x_strdup(view.damaged[i]),
			.name = x_strdup(""),
			.phase = PHASE_DAMAGED,
			.ever_staged = true};
	}
}

bool volumes_report(struct volumes *v, struct volumes_report *ret)
{
	struct volumes_report out = {0};

	pthread_mutex_lock(&v->shared.mutex);
	bool ready = v->ready;
	if (ready) {
		report_pools(v, device_view_list(v->device_view), &out);
		report_volumes(v, &out);
	}
	pthread_mutex_unlock(&v->shared.mutex);
	if (ready)
		*ret = out;
	return ready;
}
