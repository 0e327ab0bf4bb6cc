/* SPDX-License-Identifier: Apache-2.0 */
#include "nodes/registration_report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "net/limits.h"
#include "nodes/registry_private.h"
#include "unit/unit.h"
#include "volume/id.h"

#define PHASE(name) REGISTRY__V0__INVENTORY_VOLUME__PHASE__##name

static char name[] = "pvc-1";
static char id_1[] = "id-1";
static char id_2[] = "id-2";
static char pool[] = "region0";
static char none[] = "";

START_TEST(volumes_and_pools_are_told_as_they_are)
{
	CLEANUP(arena_freep) struct arena *arena = arena_new(0);
	Registry__V0__RegisterControllerRequest q;
	struct volume_report volumes[] = {{.id = id_1,
						  .name = name,
						  .size_bytes = 7,
						  .phase = PHASE_READY,
						  .made_by_controller = true,
						  .dax = VOLUME_DAX_FSYNC,
						  .lacks_sync = true},
		{.id = id_2, .name = none, .phase = PHASE_DAMAGED, .ever_staged = true, .is_inline = true}};
	struct pool_report pools[] = {{.name = pool,
		.capacity = {.total_bytes = 4,
			.available_bytes = 3,
			.max_volume_bytes = 2,
			.max_sector_volume_bytes = 1},
		.rules = {8, 9, 10},
		.free_extent_bytes = {12, 11},
		.n_free_extents = 2,
		.incomplete = true,
		.erasing_bytes = 13,
		.region_bytes = 14,
		.durability = DURABILITY_FSYNC}};
	const struct volumes_report report = {pools, 1, volumes, 2};

	registry__v0__register_controller_request__init(&q);
	ck_assert(registration_report(&report, &q, arena));
	ck_assert_uint_eq(q.n_regions, 1);
	ck_assert_str_eq(q.regions[0]->name, pool);
	ck_assert_uint_eq(q.regions[0]->total_bytes, 4);
	ck_assert_uint_eq(q.regions[0]->available_bytes, 3);
	ck_assert_uint_eq(q.regions[0]->max_volume_bytes, 2);
	ck_assert_uint_eq(q.regions[0]->max_sector_volume_bytes, 1);
	ck_assert_uint_eq(q.regions[0]->unit_bytes, 8);
	ck_assert_uint_eq(q.regions[0]->map_align_bytes, 9);
	ck_assert_uint_eq(q.regions[0]->btt_start_bytes, 10);
	ck_assert(q.regions[0]->incomplete);
	ck_assert_uint_eq(q.regions[0]->erasing_bytes, 13);
	ck_assert_uint_eq(q.regions[0]->region_bytes, 14);
	ck_assert_int_eq(q.regions[0]->durability, REGISTRY__V0__REGION_CAPACITY__DURABILITY__FSYNC);
	ck_assert_uint_eq(q.regions[0]->n_free_extent_bytes, 2);
	ck_assert_uint_eq(q.regions[0]->free_extent_bytes[0], 12);
	ck_assert_uint_eq(q.regions[0]->free_extent_bytes[1], 11);
	ck_assert_uint_eq(q.inventory->n_volumes, 2);
	ck_assert_int_eq(q.inventory->volumes[0]->dax, REGISTRY__V0__INVENTORY_VOLUME__DAX__WITHOUT_MAP_SYNC);
	ck_assert(q.inventory->volumes[0]->lacks_map_sync);
	ck_assert_int_eq(q.inventory->volumes[1]->dax, REGISTRY__V0__INVENTORY_VOLUME__DAX__NOT_KNOWN);
	ck_assert_str_eq(q.inventory->volumes[0]->id, id_1);
	ck_assert_str_eq(q.inventory->volumes[0]->name, name);
	ck_assert_uint_eq(q.inventory->volumes[0]->size_bytes, 7);
	ck_assert(q.inventory->volumes[0]->made_by_controller && !q.inventory->volumes[0]->ever_staged);
	ck_assert(!q.inventory->volumes[0]->is_inline && q.inventory->volumes[1]->is_inline);
	ck_assert_str_eq(q.inventory->volumes[1]->name, "");
	ck_assert(!q.inventory->volumes[1]->made_by_controller && q.inventory->volumes[1]->ever_staged);
}
END_TEST

START_TEST(claims_are_told_as_far_as_they_fit)
{
	CLEANUP(arena_freep) struct arena *arena = arena_new(0);
	Registry__V0__RegisterControllerRequest q;
	static char id[10000][6];
	static char claim[318];
	static struct volume_report volumes[10000];
	size_t reported = 0;

	memset(claim, 'a', sizeof(claim) - 1);
	claim[63] = '/';
	for (size_t i = 0; i < ARRAY_SIZE(volumes); i++) {
		snprintf(id[i], sizeof(id[i]), "%zu", i);
		volumes[i] = (struct volume_report){.id = id[i], .claim = claim};
	}
	registry__v0__register_controller_request__init(&q);
	ck_assert(registration_report(
		&(struct volumes_report){NULL, 0, volumes, ARRAY_SIZE(volumes)}, &q, arena));
	ck_assert_uint_eq(q.inventory->n_volumes, ARRAY_SIZE(volumes));
	while (reported < q.inventory->n_volumes && str_eq(q.inventory->volumes[reported]->claim, claim))
		reported++;
	ck_assert_uint_eq(reported, (1U << 20) / strlen(claim));
	for (size_t i = reported; i < q.inventory->n_volumes; i++)
		ck_assert_str_eq(q.inventory->volumes[i]->claim, "");
	ck_assert_uint_lt(registry__v0__register_controller_request__get_packed_size(&q), 2U << 20);
}
END_TEST

/* As many as a controller accepts, with the longest IDs and names, and something wrong with each. Those for
 * which there is no more room are snapshots of which the origin is not known. */
START_TEST(a_node_full_of_snapshots_can_be_reported)
{
	enum { MANY = REGISTRY_MAX_VOLUMES };
	CLEANUP(arena_freep) struct arena *arena = arena_new(0);
	Registry__V0__RegisterControllerRequest q;
	static char id[MANY][VOLUME_ID_MAX + 1];
	static char long_name[VOLUME_NAME_MAX + 1];
	static char source[VOLUME_HANDLE_MAX + 1];
	static struct volume_report volumes[MANY];
	size_t known = 0;

	memset(long_name, 'n', VOLUME_NAME_MAX);
	memset(source, 's', VOLUME_HANDLE_MAX);
	for (size_t i = 0; i < MANY; i++) {
		snprintf(id[i], sizeof(id[i]), "%0*zu", VOLUME_ID_MAX, i);
		volumes[i] = (struct volume_report){.id = id[i],
			.name = long_name,
			.size_bytes = UINT64_MAX,
			.phase = PHASE_READY,
			.ever_staged = true,
			.made_by_controller = true,
			.snapshot = true,
			.source = source,
			.group = id[0],
			.taken_s = UINT32_MAX};
		health_add(&volumes[i].health, HEALTH_DATA_LOSS, "Reason", "%0*d", HEALTH_MESSAGE_MAX, 0);
	}
	registry__v0__register_controller_request__init(&q);
	ck_assert(!registration_report(&(struct volumes_report){NULL, 0, volumes, MANY}, &q, arena));
	ck_assert_uint_lt(
		registry__v0__register_controller_request__get_packed_size(&q), LIMIT_MESSAGE_BYTES);
	while (known < MANY && str_eq(q.inventory->volumes[known]->snapshot->source_volume_id, source))
		known++;
	ck_assert_uint_eq(known, (1U << 20) / (VOLUME_HANDLE_MAX + VOLUME_ID_MAX));
	ck_assert_str_eq(q.inventory->volumes[known - 1]->snapshot->group_snapshot_id, id[0]);
	for (size_t i = known; i < MANY; i++) {
		const Registry__V0__Snapshot *snapshot = q.inventory->volumes[i]->snapshot;

		ck_assert_str_eq(snapshot->source_volume_id, "");
		ck_assert_str_eq(snapshot->group_snapshot_id, "");
		ck_assert_uint_eq(snapshot->taken_s, UINT32_MAX);
	}
	for (size_t i = 0; i < MANY; i++)
		health_done(&volumes[i].health);
}
END_TEST

START_TEST(health_is_reported_as_far_as_it_fits)
{
	enum { MANY = 4000 };
	CLEANUP(arena_freep) struct arena *arena = arena_new(0);
	Registry__V0__RegisterControllerRequest q;
	static struct volume_report volumes[MANY];
	char *message = x_calloc(HEALTH_MESSAGE_MAX + 1, 1);
	size_t reported = 0;

	memset(message, 'a', HEALTH_MESSAGE_MAX);
	for (size_t i = 0; i < MANY; i++) {
		volumes[i].id = id_1;
		health_add(&volumes[i].health, HEALTH_DATA_LOSS, "Reason", "%s", message);
	}
	registry__v0__register_controller_request__init(&q);
	ck_assert(!registration_report(&(struct volumes_report){NULL, 0, volumes, MANY}, &q, arena));
	while (reported < MANY && q.inventory->volumes[reported]->n_health == 1)
		reported++;
	ck_assert_uint_eq(reported, (1U << 19) / (HEALTH_MESSAGE_MAX + strlen("Reason")));
	ck_assert_uint_eq(q.inventory->volumes[reported]->n_health, 0);
	const Registry__V0__HealthStatus *s = q.inventory->volumes[0]->health[0];
	ck_assert_int_eq(s->severity, REGISTRY__V0__HEALTH_STATUS__SEVERITY__DATA_LOSS);
	ck_assert_str_eq(s->reason, "Reason");
	ck_assert_str_eq(s->message, message);
	for (size_t i = 0; i < MANY; i++)
		health_done(&volumes[i].health);
	free(message);
}
END_TEST

/* The worst is at the end, of a volume that has less bad statuses before it. */
START_TEST(health_that_is_cut_has_the_worst)
{
	enum { MANY = 4000 };
	CLEANUP(arena_freep) struct arena *arena = arena_new(0);
	Registry__V0__RegisterControllerRequest q;
	static struct volume_report volumes[MANY];
	struct volume_health *worst = &volumes[MANY - 1].health;
	size_t n = 0;

	for (size_t i = 0; i < MANY; i++) {
		volumes[i].id = id_1;
		health_add(&volumes[i].health, HEALTH_DEGRADED, "Degraded", "%0*d", HEALTH_MESSAGE_MAX, 0);
	}
	health_add(worst, HEALTH_INACCESSIBLE, "Inaccessible", "text");
	health_add(worst, HEALTH_DATA_LOSS, "DataLoss", "text");
	registry__v0__register_controller_request__init(&q);
	ck_assert(!registration_report(&(struct volumes_report){NULL, 0, volumes, MANY}, &q, arena));
	const Registry__V0__InventoryVolume *v = q.inventory->volumes[MANY - 1];
	ck_assert_uint_eq(v->n_health, 2);
	ck_assert_str_eq(v->health[0]->reason, "DataLoss");
	ck_assert_str_eq(v->health[1]->reason, "Inaccessible");
	for (size_t i = 0; i < MANY; i++) {
		n += q.inventory->volumes[i]->n_health;
		health_done(&volumes[i].health);
	}
	ck_assert_uint_gt(n, 2 + 900);
}
END_TEST

START_TEST(phases_are_those_of_the_wire)
{
	static const struct {
		enum volume_phase phase;
		Registry__V0__InventoryVolume__Phase wire;
	} cases[] = {{PHASE_DAMAGED, PHASE(UNKNOWN)}, {PHASE_CREATING, PHASE(CREATING)},
		{PHASE_READY, PHASE(READY)}, {PHASE_ERASING, PHASE(ERASING)},
		{PHASE_MISSING, PHASE(MISSING)}};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		CLEANUP(arena_freep) struct arena *arena = arena_new(0);
		Registry__V0__RegisterControllerRequest q;
		struct volume_report v = {.id = id_1, .phase = cases[i].phase};

		registry__v0__register_controller_request__init(&q);
		ck_assert(registration_report(&(struct volumes_report){NULL, 0, &v, 1}, &q, arena));
		ck_assert_int_eq(q.inventory->volumes[0]->phase, cases[i].wire);
	}
}
END_TEST

START_TEST(a_node_without_volumes_says_so)
{
	CLEANUP(arena_freep) struct arena *arena = arena_new(0);
	Registry__V0__RegisterControllerRequest q;

	registry__v0__register_controller_request__init(&q);
	ck_assert(registration_report(&(struct volumes_report){0}, &q, arena));
	ck_assert_ptr_nonnull(q.inventory);
	ck_assert_uint_eq(q.inventory->n_volumes, 0);
}
END_TEST

START_TEST(copies_are_reported_while_there_is_something_to_say)
{
	CLEANUP(arena_freep) struct arena *arena = arena_new(0);
	Registry__V0__RegisterControllerRequest q;
	struct volume_report volumes[] = {
		{.id = id_1, .phase = PHASE_CREATING, .filling = {3, 4}}, {.id = id_2, .pause = {5, 6}}};

	registry__v0__register_controller_request__init(&q);
	ck_assert(registration_report(&(struct volumes_report){NULL, 0, volumes, 2}, &q, arena));
	const Registry__V0__InventoryVolume *const *v =
		(const Registry__V0__InventoryVolume *const *)q.inventory->volumes;
	ck_assert_uint_eq(v[0]->filling->done_bytes, 3);
	ck_assert_uint_eq(v[0]->filling->total_bytes, 4);
	ck_assert_ptr_null(v[0]->pause);
	ck_assert_uint_eq(v[1]->pause->duration_ms, 5);
	ck_assert_uint_eq(v[1]->pause->ended_ms, 6);
	ck_assert_ptr_null(v[1]->filling);
}
END_TEST

UNIT_MAIN("nodes/registration_report", volumes_and_pools_are_told_as_they_are,
	claims_are_told_as_far_as_they_fit, a_node_full_of_snapshots_can_be_reported,
	health_is_reported_as_far_as_it_fits, health_that_is_cut_has_the_worst, phases_are_those_of_the_wire,
	copies_are_reported_while_there_is_something_to_say, a_node_without_volumes_says_so)
