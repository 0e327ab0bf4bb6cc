/* SPDX-License-Identifier: Apache-2.0 */
#include "volume/report.h"

#include <stdlib.h>
#include <string.h>

#include "base/str.h"

void pool_report_done(struct pool_report *p)
{
	free(p->name);
	*p = (struct pool_report){0};
}

void volume_report_done(struct volume_report *v)
{
	free(v->id);
	free(v->name);
	free(v->claim);
	free(v->source);
	free(v->group);
	health_done(&v->health);
	*v = (struct volume_report){0};
}

bool pool_report_equal(const struct pool_report *a, const struct pool_report *b)
{
	return str_eq(a->name, b->name) && memcmp(&a->capacity, &b->capacity, sizeof(a->capacity)) == 0 &&
	       memcmp(&a->rules, &b->rules, sizeof(a->rules)) == 0 && a->incomplete == b->incomplete &&
	       a->durability == b->durability && a->region_bytes == b->region_bytes &&
	       a->erasing_bytes == b->erasing_bytes && a->n_free_extents == b->n_free_extents &&
	       memcmp(a->free_extent_bytes, b->free_extent_bytes,
		       a->n_free_extents * sizeof(*a->free_extent_bytes)) == 0;
}

bool volume_report_equal(const struct volume_report *a, const struct volume_report *b)
{
	return str_eq(a->id, b->id) && str_eq(a->name, b->name) && a->size_bytes == b->size_bytes &&
	       a->phase == b->phase && a->ever_staged == b->ever_staged &&
	       a->made_by_controller == b->made_by_controller && a->is_inline == b->is_inline &&
	       a->snapshot == b->snapshot && str_eq(a->source, b->source) && str_eq(a->group, b->group) &&
	       a->taken_s == b->taken_s && a->dax == b->dax && a->lacks_sync == b->lacks_sync &&
	       str_eq(a->claim, b->claim) && a->filling.done_bytes == b->filling.done_bytes &&
	       a->filling.total_bytes == b->filling.total_bytes && a->pause.ms == b->pause.ms &&
	       a->pause.ended_ms == b->pause.ended_ms && health_equal(&a->health, &b->health);
}

void volumes_report_done(struct volumes_report *r)
{
	for (size_t i = 0; i < r->n_pools; i++)
		pool_report_done(&r->pools[i]);
	free(r->pools);
	for (size_t i = 0; i < r->n_volumes; i++)
		volume_report_done(&r->volumes[i]);
	free(r->volumes);
	*r = (struct volumes_report){0};
}
