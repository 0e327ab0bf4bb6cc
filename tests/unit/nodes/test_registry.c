/* SPDX-License-Identifier: Apache-2.0 */
/* Registration, heartbeat, change of endpoint. */
#include "base/mem.h"
#include "base/str.h"
#include "nodes/registry_private.h"
#include "unit/nodes/registry_rig.h"
#include "unit/nodes/reports.h"
#include "volume/id.h"

#define A "tcp://192.0.2.1:10001"
#define B "tcp://192.0.2.2:10001"

static struct rig rig;

static void reg(const char *id, const char *endpoint)
{
	rig_done(&rig, rig_register(&rig, id, endpoint, "1"), 0, "");
}

static const char *endpoint_of(const char *id)
{
	return node_table_get(rig.table, id)->report.endpoint;
}

START_TEST(a_node_is_live_until_its_lease_is_over)
{
	rig_open(&rig);
	reg("a", A);
	rig_tick(&rig, 89);
	ck_assert(rig_is_live(&rig, "a"));
	reg("a", A);
	rig_tick(&rig, 89);
	ck_assert(rig_is_live(&rig, "a"));
	rig_tick(&rig, 1);
	ck_assert(!rig_is_live(&rig, "a"));
	rig_close(&rig);
}
END_TEST

static void check_pool(const struct pool_report *p)
{
	ck_assert_str_eq(p->name, "r");
	ck_assert_uint_eq(p->capacity.total_bytes, 5);
	ck_assert_uint_eq(p->capacity.available_bytes, 4);
	ck_assert_uint_eq(p->capacity.max_volume_bytes, 3);
	ck_assert_uint_eq(p->capacity.max_sector_volume_bytes, 2);
}

static void check_volume(const struct volume_report *v)
{
	ck_assert_str_eq(v->id, "id");
	ck_assert_str_eq(v->name, "name");
	ck_assert_uint_eq(v->size_bytes, 7);
	ck_assert_int_eq(v->phase, PHASE_MISSING);
	ck_assert(v->ever_staged && v->made_by_controller && v->is_inline);
}

START_TEST(all_that_a_node_says_is_in_the_table)
{
	Registry__V0__RegisterControllerRequest m;
	registry__v0__register_controller_request__init(&m);
	Registry__V0__RegionCapacity region;
	registry__v0__region_capacity__init(&region);
	Registry__V0__InventoryVolume volume;
	registry__v0__inventory_volume__init(&volume);
	Registry__V0__Inventory inventory;
	registry__v0__inventory__init(&inventory);
	char texts[][24] = {"n", A, "lvm", "2.0.0", "boot", "id", "name", "r"};
	const struct node_report *r;

	region.name = texts[7];
	region.total_bytes = 5;
	region.available_bytes = 4;
	region.max_volume_bytes = 3;
	region.max_sector_volume_bytes = 2;
	volume.id = texts[5];
	volume.name = texts[6];
	volume.size_bytes = 7;
	volume.phase = REGISTRY__V0__INVENTORY_VOLUME__PHASE__MISSING;
	volume.ever_staged = true;
	volume.made_by_controller = true;
	volume.is_inline = true;
	inventory.n_volumes = 1;
	inventory.volumes = (Registry__V0__InventoryVolume *[]){&volume};
	m.node_id = texts[0];
	m.endpoint = texts[1];
	m.device_mode = texts[2];
	m.version = texts[3];
	m.boot_id = texts[4];
	m.lease_seconds = 100000;
	m.report_number = INT64_MAX;
	m.serves_node_volumes = m.serves_expansion = m.serves_modification = true;
	m.makes_kata_volumes = true;
	m.n_regions = 1;
	m.regions = (Registry__V0__RegionCapacity *[]){&region};
	m.inventory = &inventory;
	rig_open(&rig);
	m.report_number = 1ULL + INT64_MAX;
	rig_done(&rig, rig_send(&rig, &m), ERR_INVALID_ARGUMENT, "report_number");
	m.report_number = INT64_MAX;
	rig_done(&rig, rig_send(&rig, &m), 0, "");
	r = &node_table_get(rig.table, "n")->report;
	ck_assert_str_eq(r->endpoint, A);
	ck_assert_str_eq(r->device_mode, "lvm");
	ck_assert_str_eq(r->version, "2.0.0");
	ck_assert_str_eq(r->boot_id, "boot");
	ck_assert_uint_eq(r->lease_ms, 3600000);
	ck_assert_uint_eq(r->number, INT64_MAX);
	check_pool(&r->pools[0]);
	ck_assert(r->has_inventory);
	check_volume(&r->volumes[0]);
	ck_assert(!r->bound && r->serves_node_volumes && r->serves_expansion && r->serves_modification &&
		  r->makes_kata_volumes);
	rig_close(&rig);
}
END_TEST

/* The heartbeat of a node without volumes. Texts are borrowed from static storage. */
static void request_init(Registry__V0__RegisterControllerRequest *m)
{
	static char node[] = "n", endpoint[] = A;

	registry__v0__register_controller_request__init(m);
	m->node_id = node;
	m->endpoint = endpoint;
	m->lease_seconds = 90;
}

START_TEST(phases_are_kept_and_those_of_later_releases_kept_apart)
{
	static const struct {
		int wire;
		enum volume_phase phase;
	} cases[] = {{0, PHASE_DAMAGED}, {1, PHASE_CREATING}, {2, PHASE_READY}, {3, PHASE_ERASING},
		{4, PHASE_MISSING}, {5, PHASE_LATER}, {1000, PHASE_LATER}, {INT32_MAX, PHASE_LATER},
		{-1, PHASE_LATER}};
	Registry__V0__RegisterControllerRequest m;
	Registry__V0__InventoryVolume volume;
	Registry__V0__Inventory inventory;
	char node[] = "n", endpoint[] = A, id[] = "id";

	registry__v0__register_controller_request__init(&m);
	registry__v0__inventory_volume__init(&volume);
	registry__v0__inventory__init(&inventory);
	volume.id = id;
	inventory.n_volumes = 1;
	inventory.volumes = (Registry__V0__InventoryVolume *[]){&volume};
	m.node_id = node;
	m.endpoint = endpoint;
	m.lease_seconds = 90;
	m.inventory = &inventory;
	rig_open(&rig);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		volume.phase = (Registry__V0__InventoryVolume__Phase)cases[i].wire;
		rig_done(&rig, rig_send(&rig, &m), 0, "");
		ck_assert_int_eq(node_table_get(rig.table, "n")->report.volumes[0].phase, cases[i].phase);
	}
	rig_close(&rig);
}
END_TEST

START_TEST(health_is_shown_in_words_of_the_controller)
{
	Registry__V0__RegisterControllerRequest m;
	Registry__V0__InventoryVolume volume;
	Registry__V0__Inventory inventory;
	char id[] = "id";
	char reasons[][16] = {"MediaError", "MediaError", "Later", "With Blank"};
	char message[] = "call +1 555 0100";
	Registry__V0__HealthStatus statuses[ARRAY_SIZE(reasons)];
	Registry__V0__HealthStatus *list[ARRAY_SIZE(statuses)];

	request_init(&m);
	registry__v0__inventory_volume__init(&volume);
	registry__v0__inventory__init(&inventory);
	for (size_t i = 0; i < ARRAY_SIZE(statuses); i++) {
		list[i] = &statuses[i];
		registry__v0__health_status__init(list[i]);
		list[i]->severity = REGISTRY__V0__HEALTH_STATUS__SEVERITY__DATA_LOSS;
		list[i]->reason = reasons[i];
		list[i]->message = message;
	}
	list[2]->severity = (Registry__V0__HealthStatus__Severity)77;
	volume.id = id;
	volume.n_health = ARRAY_SIZE(list);
	volume.health = list;
	inventory.n_volumes = 1;
	inventory.volumes = (Registry__V0__InventoryVolume *[]){&volume};
	m.inventory = &inventory;
	rig_open(&rig);
	rig_done(&rig, rig_send(&rig, &m), 0, "");
	const struct volume_health *h = &node_table_get(rig.table, "n")->report.volumes[0].health;
	ck_assert_uint_eq(h->n, 2);
	ck_assert_str_eq(h->list[0].reason, "MediaError");
	ck_assert_str_eq(h->list[0].message, "part of its memory cannot be read");
	ck_assert_int_eq(h->list[0].severity, HEALTH_DATA_LOSS);
	ck_assert_str_eq(h->list[1].reason, "Other");
	ck_assert_int_eq(h->list[1].severity, HEALTH_DEGRADED);
	/* what is over is a change */
	volume.n_health = 1;
	rig_done(&rig, rig_send(&rig, &m), 0, "");
	ck_assert_uint_eq(node_table_get(rig.table, "n")->report.volumes[0].health.n, 1);
	rig_close(&rig);
}
END_TEST

START_TEST(progress_and_pauses_are_kept_if_they_can_be_true)
{
	static const struct {
		Registry__V0__InventoryVolume__Phase phase;
		uint64_t done, total, kept;
	} cases[] = {{REGISTRY__V0__INVENTORY_VOLUME__PHASE__CREATING, 3, 4, 4},
		{REGISTRY__V0__INVENTORY_VOLUME__PHASE__CREATING, INT64_MAX, INT64_MAX, INT64_MAX},
		{REGISTRY__V0__INVENTORY_VOLUME__PHASE__READY, 3, 4, 0},
		{REGISTRY__V0__INVENTORY_VOLUME__PHASE__CREATING, 5, 4, 0},
		{REGISTRY__V0__INVENTORY_VOLUME__PHASE__CREATING, 1, UINT64_MAX, 0}};
	Registry__V0__RegisterControllerRequest m;
	registry__v0__register_controller_request__init(&m);
	Registry__V0__InventoryVolume volume;
	registry__v0__inventory_volume__init(&volume);
	Registry__V0__Inventory inventory;
	registry__v0__inventory__init(&inventory);
	Registry__V0__Filling filling;
	registry__v0__filling__init(&filling);
	Registry__V0__Pause pause;
	registry__v0__pause__init(&pause);
	char node[] = "n", endpoint[] = A, id[] = "id";

	volume.id = id;
	volume.filling = &filling;
	volume.pause = &pause;
	inventory.n_volumes = 1;
	inventory.volumes = (Registry__V0__InventoryVolume *[]){&volume};
	m.node_id = node;
	m.endpoint = endpoint;
	m.lease_seconds = 90;
	m.inventory = &inventory;
	rig_open(&rig);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		volume.phase = cases[i].phase;
		filling.done_bytes = cases[i].done;
		filling.total_bytes = cases[i].total;
		pause.duration_ms = i == 1 ? 86400001 : i;
		pause.ended_ms = 9;
		rig_done(&rig, rig_send(&rig, &m), 0, "");
		const struct volume_report *v = &node_table_get(rig.table, "n")->report.volumes[0];
		ck_assert_uint_eq(v->filling.total_bytes, cases[i].kept);
		ck_assert_uint_eq(v->filling.done_bytes, cases[i].kept > 0 ? cases[i].done : 0);
		ck_assert_uint_eq(v->pause.ended_ms, i == 1 ? 0 : 9);
		ck_assert_uint_eq(v->pause.ms, i == 1 ? 0 : i);
	}
	rig_close(&rig);
}
END_TEST

START_TEST(claims_of_volumes_are_kept_if_they_can_be_true)
{
	Registry__V0__RegisterControllerRequest m;
	Registry__V0__InventoryVolume volume;
	Registry__V0__Inventory inventory;
	char node[] = "n", endpoint[] = A, id[] = "id";
	char claims[][16] = {"default/data", "other/data", "../data", ""};

	registry__v0__register_controller_request__init(&m);
	registry__v0__inventory_volume__init(&volume);
	registry__v0__inventory__init(&inventory);
	volume.id = id;
	inventory.n_volumes = 1;
	inventory.volumes = (Registry__V0__InventoryVolume *[]){&volume};
	m.node_id = node;
	m.endpoint = endpoint;
	m.lease_seconds = 90;
	m.inventory = &inventory;
	rig_open(&rig);
	for (size_t i = 0; i < ARRAY_SIZE(claims); i++) {
		/* nothing else is new in the report */
		volume.claim = claims[i];
		rig_done(&rig, rig_send(&rig, &m), 0, "");
		const char *kept = node_table_get(rig.table, "n")->report.volumes[0].claim;
		ck_assert(i < 2 ? str_eq(kept, claims[i]) : !kept);
	}
	rig_close(&rig);
}
END_TEST

START_TEST(how_a_region_hands_out_space_is_kept)
{
	Registry__V0__RegisterControllerRequest m;
	Registry__V0__RegionCapacity region;
	Registry__V0__Inventory inventory;
	uint64_t extents[33] = {12, 11};
	char name[] = "n";
	char endpoint[] = A;
	const struct pool_report *r;

	registry__v0__register_controller_request__init(&m);
	registry__v0__region_capacity__init(&region);
	registry__v0__inventory__init(&inventory);
	m.lease_seconds = 90;
	m.inventory = &inventory;
	region.unit_bytes = 8;
	region.map_align_bytes = 9;
	region.btt_start_bytes = 10;
	region.incomplete = true;
	region.total_bytes = 100;
	region.erasing_bytes = 13;
	region.region_bytes = 14;
	region.durability = REGISTRY__V0__REGION_CAPACITY__DURABILITY__FSYNC;
	region.n_free_extent_bytes = 2;
	region.free_extent_bytes = extents;
	m.node_id = name;
	m.endpoint = endpoint;
	m.n_regions = 1;
	m.regions = (Registry__V0__RegionCapacity *[]){&region};
	rig_open(&rig);
	rig_done(&rig, rig_send(&rig, &m), 0, "");
	r = &node_table_get(rig.table, "n")->report.pools[0];
	ck_assert_uint_eq(r->rules.unit_bytes, 8);
	ck_assert_uint_eq(r->rules.map_align_bytes, 9);
	ck_assert_uint_eq(r->rules.btt_start_bytes, 10);
	ck_assert(r->incomplete);
	ck_assert_uint_eq(r->erasing_bytes, 13);
	ck_assert_uint_eq(r->region_bytes, 14);
	ck_assert_int_eq(r->durability, DURABILITY_FSYNC);
	ck_assert_uint_eq(r->n_free_extents, 2);
	ck_assert_uint_eq(r->free_extent_bytes[1], 11);
	region.durability = (Registry__V0__RegionCapacity__Durability)7;
	rig_done(&rig, rig_send(&rig, &m), 0, "");
	ck_assert_int_eq(node_table_get(rig.table, "n")->report.pools[0].durability, DURABILITY_UNKNOWN);
	region.n_free_extent_bytes = ARRAY_SIZE(extents);
	rig_done(&rig, rig_send(&rig, &m), ERR_INVALID_ARGUMENT, "more than 32 free extents");
	rig_close(&rig);
}
END_TEST

START_TEST(what_cannot_be_is_refused)
{
	static const struct {
		const char *id, *endpoint, *text;
	} cases[] = {
		{"", A, "node_id is empty"},
		{"a", "", "endpoint is empty"},
		{"a\nb", A, "control character"},
		{"a", "unix:///csi/csi.sock", "reached from elsewhere"},
		{"a", "tcp://:10001", "reached from elsewhere"},
		{"a", "tcp://192.0.2.1:0", "reached from elsewhere"},
		{"a", "tcp://node-1:10001", "not a numeric address"},
		{"a", "tcp://[::ffff:192.0.2.1]:10001", "which is " A ": give that"},
		{"a", "tcp://192.0.2.1:010001", "which is " A ": give that"},
		{"a", "tcp://[2001:DB8:0:0::1]:10001", "which is tcp://[2001:db8::1]:10001: give that"},
	};
	char *longish = x_malloc(REGISTRY_MAX_NODE_ID + 2);

	rig_open(&rig);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		rig_done(&rig, rig_register(&rig, cases[i].id, cases[i].endpoint, "1"), ERR_INVALID_ARGUMENT,
			cases[i].text);
	memset(longish, 'x', REGISTRY_MAX_NODE_ID + 1);
	longish[REGISTRY_MAX_NODE_ID + 1] = '\0';
	rig_done(&rig, rig_register(&rig, longish, A, "1"), ERR_INVALID_ARGUMENT, "longer than 253");
	rig_done(&rig, rig_unregister(&rig, "", A, "1"), ERR_INVALID_ARGUMENT, "node_id is empty");
	free(longish);
	rig_close(&rig);
}
END_TEST

START_TEST(a_volume_that_is_named_twice_is_refused)
{
	Registry__V0__RegisterControllerRequest m;
	registry__v0__register_controller_request__init(&m);
	Registry__V0__InventoryVolume volumes[3];
	Registry__V0__Inventory inventory;
	registry__v0__inventory__init(&inventory);
	char texts[][24] = {"n", A, "v2", "v1", "v2"};

	for (size_t i = 0; i < ARRAY_SIZE(volumes); i++) {
		registry__v0__inventory_volume__init(&volumes[i]);
		volumes[i].id = texts[2 + i];
	}
	inventory.volumes = (Registry__V0__InventoryVolume *[]){&volumes[0], &volumes[1], &volumes[2]};
	inventory.n_volumes = 3;
	m.node_id = texts[0];
	m.endpoint = texts[1];
	m.lease_seconds = 90;
	m.inventory = &inventory;
	rig_open(&rig);
	rig_done(&rig, rig_send(&rig, &m), ERR_INVALID_ARGUMENT, "node \"n\": volume v2 is named twice");
	ck_assert_ptr_null(node_table_get(rig.table, "n"));
	inventory.n_volumes = 2;
	rig_done(&rig, rig_send(&rig, &m), 0, "");
	rig_close(&rig);
}
END_TEST

START_TEST(unregistering_ends_the_lease_and_may_be_repeated)
{
	rig_open(&rig);
	reg("a", A);
	rig_done(&rig, rig_unregister(&rig, "a", A, "1"), 0, "");
	ck_assert(!rig_is_live(&rig, "a"));
	rig_done(&rig, rig_unregister(&rig, "a", A, "1"), 0, "");
	rig_done(&rig, rig_unregister(&rig, "unknown", A, "1"), 0, "");
	/* from anywhere */
	reg("a", B);
	ck_assert_str_eq(endpoint_of("a"), B);
	rig_close(&rig);
}
END_TEST

START_TEST(unregistering_ends_no_lease_of_another_run)
{
	static const struct {
		const char *endpoint, *instance;
	} cases[] = {{B, "1"}, {A, "2"}, {B, "2"}, {A, ""}, {"", "1"}, {"", ""}};

	rig_open(&rig);
	rig_done(&rig, rig_register(&rig, "a", A, "1"), 0, "");
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		rig_done(&rig, rig_unregister(&rig, "a", cases[i].endpoint, cases[i].instance), 0, "");
		ck_assert_msg(rig_is_live(&rig, "a"), "case %zu", i);
	}
	rig_done(&rig, rig_unregister(&rig, "a", A, "1"), 0, "");
	ck_assert(!rig_is_live(&rig, "a"));
	rig_close(&rig);
}
END_TEST

START_TEST(a_late_end_of_the_run_before_does_not_end_the_lease)
{
	rig_open(&rig);
	rig_done(&rig, rig_register(&rig, "a", A, "1"), 0, "");
	rig_done(&rig, rig_register(&rig, "a", A, "2"), 0, "");
	rig_done(&rig, rig_unregister(&rig, "a", A, "1"), 0, "");
	ck_assert(rig_is_live(&rig, "a"));
	rig_close(&rig);
}
END_TEST

START_TEST(a_duplicate_that_ends_leaves_the_lease)
{
	rig_open(&rig);
	reg("a", A);
	rig_done(&rig, rig_register(&rig, "a", B, "2"), ERR_ABORTED, "has a lease at " A);
	rig_done(&rig, rig_unregister(&rig, "a", B, "2"), 0, "");
	ck_assert(rig_is_live(&rig, "a"));
	ck_assert_str_eq(endpoint_of("a"), A);
	rig_close(&rig);
}
END_TEST

START_TEST(a_lease_stays_with_its_endpoint_until_it_is_over)
{
	rig_open(&rig);
	reg("a", A);
	rig_tick(&rig, 89);
	rig_done(&rig, rig_register(&rig, "a", B, "2"), ERR_ABORTED,
		"node \"a\" has a lease at " A ": it is given to " B
		" when the driver there has unregistered, or has sent nothing for 90 s");
	/* what was refused does not count as a heartbeat */
	rig_tick(&rig, 1);
	rig_done(&rig, rig_register(&rig, "a", B, "2"), 0, "");
	ck_assert_str_eq(endpoint_of("a"), B);
	rig_close(&rig);
}
END_TEST

START_TEST(two_drivers_do_not_take_turns)
{
	rig_open(&rig);
	reg("a", A);
	for (int i = 0; i < 10; i++) {
		rig_tick(&rig, 30);
		rig_done(&rig, rig_register(&rig, "a", B, "2"), ERR_ABORTED, "");
		reg("a", A);
	}
	ck_assert_str_eq(endpoint_of("a"), A);
	rig_close(&rig);
}
END_TEST

START_TEST(two_live_nodes_have_two_endpoints)
{
	rig_open(&rig);
	reg("a", A);
	rig_done(&rig, rig_register(&rig, "b", A, "1"), ERR_ABORTED, "node \"a\" has a lease at " A);
	rig_tick(&rig, 90);
	reg("b", A);
	rig_done(&rig, rig_register(&rig, "a", A, "1"), ERR_ABORTED, "node \"b\" has a lease at " A);
	rig_close(&rig);
}
END_TEST

/* The address of a pod is given out again while its lease lasts; a node that only says that it is there gets
 * nothing. */
START_TEST(a_node_that_is_at_an_endpoint_takes_it)
{
	struct node_report *r = report_new("b");

	rig_open(&rig);
	reg("a", A);
	free(r->endpoint);
	r->endpoint = x_strdup(A);
	r->is_at_endpoint = true;
	registry_admit(rig.registry, r);
	ck_assert(!rig_is_live(&rig, "a"));
	ck_assert(rig_is_live(&rig, "b"));
	rig_done(&rig, rig_register(&rig, "a", B, "2"), 0, "");
	rig_close(&rig);
}
END_TEST

START_TEST(the_driver_of_another_name_is_refused)
{
	Registry__V0__RegisterControllerRequest m;
	char other[] = "pmem-csi.other", own[] = "pmem-csi.example";

	request_init(&m);
	m.driver_name = other;
	rig_open(&rig);
	rig_done(&rig, rig_send(&rig, &m), ERR_PRECONDITION,
		"node \"n\" runs driver \"pmem-csi.other\", and this is the controller of \"pmem-csi.example\"");
	ck_assert_ptr_null(node_table_get(rig.table, "n"));
	m.driver_name = own;
	rig_done(&rig, rig_send(&rig, &m), 0, "");
	rig_close(&rig);
}
END_TEST

START_TEST(volumes_of_another_node_are_not_reported)
{
	Registry__V0__RegisterControllerRequest m;
	Registry__V0__InventoryVolume volumes[3];
	Registry__V0__InventoryVolume *list[ARRAY_SIZE(volumes)];
	Registry__V0__Inventory inventory;
	char ids[ARRAY_SIZE(volumes)][VOLUME_ID_MAX + 1];
	struct node_hit *hits;

	request_init(&m);
	registry__v0__inventory__init(&inventory);
	volume_id_mint("pvc-1", "n", ids[0]);
	volume_id_mint("pvc-2", "victim", ids[1]);
	volume_id_mint("pvc-3", NULL, ids[2]);
	for (size_t i = 0; i < ARRAY_SIZE(volumes); i++) {
		list[i] = &volumes[i];
		registry__v0__inventory_volume__init(list[i]);
		list[i]->id = ids[i];
	}
	inventory.n_volumes = ARRAY_SIZE(list);
	inventory.volumes = list;
	m.inventory = &inventory;
	rig_open(&rig);
	rig_done(&rig, rig_send(&rig, &m), 0, "");
	const struct node_report *r = &node_table_get(rig.table, "n")->report;
	ck_assert_uint_eq(r->n_volumes, 2);
	ck_assert_uint_eq(strv_len(r->foreign), 1);
	ck_assert_str_eq(r->foreign[0], ids[1]);
	ck_assert_uint_eq(node_table_find_volume(rig.table, ids[1], &hits), 0);
	free(hits);
	rig_close(&rig);
}
END_TEST

START_TEST(amounts_are_within_what_a_machine_can_have)
{
	Registry__V0__RegisterControllerRequest m;
	Registry__V0__RegionCapacity region;

	request_init(&m);
	registry__v0__region_capacity__init(&region);
	m.n_regions = 1;
	m.regions = (Registry__V0__RegionCapacity *[]){&region};
	region.total_bytes = NODE_BYTES_MAX + 1;
	rig_open(&rig);
	rig_done(&rig, rig_send(&rig, &m), ERR_INVALID_ARGUMENT, "larger than any memory");
	region.total_bytes = 10;
	region.available_bytes = UINT64_MAX;
	region.max_volume_bytes = UINT64_MAX;
	region.max_sector_volume_bytes = 9;
	region.erasing_bytes = UINT64_MAX;
	rig_done(&rig, rig_send(&rig, &m), 0, "");
	const struct pool_report *p = &node_table_get(rig.table, "n")->report.pools[0];
	ck_assert_uint_eq(p->capacity.available_bytes, 10);
	ck_assert_uint_eq(p->capacity.max_volume_bytes, 10);
	ck_assert_uint_eq(p->capacity.max_sector_volume_bytes, 9);
	ck_assert_uint_eq(p->erasing_bytes, 10);
	rig_close(&rig);
}
END_TEST

START_TEST(a_driver_without_a_lease_time_is_refused)
{
	Registry__V0__RegisterControllerRequest m;
	char node[] = "a", endpoint[] = A;

	registry__v0__register_controller_request__init(&m);
	m.node_id = node;
	m.endpoint = endpoint;
	rig_open(&rig);
	rig_done(&rig, rig_send(&rig, &m), ERR_INVALID_ARGUMENT,
		"lease_seconds of node \"a\" is 0: its driver is too old");
	ck_assert_ptr_null(node_table_get(rig.table, "a"));
	/* not even the lease of a driver that gave one */
	reg("a", A);
	rig_done(&rig, rig_send(&rig, &m), ERR_INVALID_ARGUMENT, "lease_seconds");
	ck_assert(node_table_get(rig.table, "a")->report.has_inventory);
	rig_close(&rig);
}
END_TEST

UNIT_MAIN("registry", a_node_is_live_until_its_lease_is_over, all_that_a_node_says_is_in_the_table,
	phases_are_kept_and_those_of_later_releases_kept_apart, health_is_shown_in_words_of_the_controller,
	progress_and_pauses_are_kept_if_they_can_be_true, claims_of_volumes_are_kept_if_they_can_be_true,
	how_a_region_hands_out_space_is_kept, what_cannot_be_is_refused,
	a_volume_that_is_named_twice_is_refused, unregistering_ends_the_lease_and_may_be_repeated,
	unregistering_ends_no_lease_of_another_run, a_late_end_of_the_run_before_does_not_end_the_lease,
	a_duplicate_that_ends_leaves_the_lease, a_lease_stays_with_its_endpoint_until_it_is_over,
	two_drivers_do_not_take_turns, two_live_nodes_have_two_endpoints,
	a_node_that_is_at_an_endpoint_takes_it, the_driver_of_another_name_is_refused,
	volumes_of_another_node_are_not_reported, amounts_are_within_what_a_machine_can_have,
	a_driver_without_a_lease_time_is_refused)
