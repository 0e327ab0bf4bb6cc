/* SPDX-License-Identifier: Apache-2.0 */
#include "controller/volume_status.h"

#include "base/clock.h"
#include "base/mem.h"
#include "base/str.h"
#include "controller/volume_key.h"
#include "unit/nodes/fake_cluster_nodes.h"
#include "unit/nodes/reports.h"
#include "unit/unit.h"
#include "volume/id.h"

#define DRIVER "pmem"
#define NAME   "pvc-1"
#define GIB    (1ULL << 30)
#define SINCE  "2026-01-02T03:04:05Z"
#define NOW    (1000 * NS_PER_S)

static struct node_table *nodes;
static struct pmem_volume *record; /* of a volume that was given out and is on n1 */
static char id[VOLUME_ID_MAX + 1];

static const char *out_of_service;

static bool is_out_of_service(void *self, const char *node_id)
{
	(void)self;
	return str_eq(out_of_service, node_id);
}

static const char *existing; /* the one Node object that the watch shows */
static enum node_fate fate;
static bool cluster_is_ready = true;

static bool cluster_ready(void *self)
{
	(void)self;
	return cluster_is_ready;
}

static bool cluster_has(void *self, const char *node_id)
{
	(void)self;
	return str_eq(existing, node_id);
}

static enum node_fate judge(void *user, const char *node_id)
{
	(void)user;
	return str_eq(node_id, "n1") ? fate : FATE_UNKNOWN;
}

static struct cluster_nodes cluster = {
	.ready = cluster_ready, .has = cluster_has, .out_of_service = is_out_of_service};
static struct volume_view view = {.cluster = &cluster, .judge = judge};

static void set_up(void)
{
	struct volume_key key = volume_key_of_name(NAME);

	view.nodes = nodes = node_table_new();
	volume_id_mint(NAME, "n1", id);
	record = pmem_volume_new(key.hex, DRIVER);
	record->meta.resource_version = x_strdup("7");
	record->volume_name = x_strdup(NAME);
	record->handle = x_strdup(id);
	pmem_volume_add_node(record, "n1");
}

static void tear_down(void)
{
	pmem_volume_free(record);
	node_table_free(nodes);
}

/* @node_id has @volume_id in @phase; NULL: nothing. */
static struct volume_report *put(const char *node_id, const char *volume_id, enum volume_phase phase)
{
	struct node_report *r = report_new(node_id);
	struct volume_report *v = NULL;

	if (volume_id) {
		v = report_add_volume(r, volume_id, NAME);
		v->phase = phase;
	}
	node_table_put(nodes, r, NOW);
	return v;
}

/* "n1 Ready 1 n2 Missing 2 ", with sizes in GiB. */
static char *show_copies(const struct pmem_volume *v)
{
	char *all = x_strdup("");

	for (size_t i = 0; i < v->n_copies; i++) {
		const struct pmem_volume_copy *c = &v->copies[i];
		char *more =
			x_asprintf("%s%s %s %u ", all, c->node, c->phase, (unsigned)(c->size_bytes / GIB));

		free(all);
		all = more;
	}
	return all;
}

static void check(const char *phase, const char *ready, const char *reason, const char *copies)
{
	CLEANUP(pmem_volume_freep) struct pmem_volume *v = volume_status_new(record, &view);
	CLEANUP(free_charp) char *shown = show_copies(v);
	const struct pmem_condition *c = pmem_condition_find(&v->conditions, "Ready");

	ck_assert_str_eq(v->phase, phase);
	ck_assert_uint_eq(v->conditions.n, v->handle && !v->deleting ? 2 : 1);
	ck_assert_ptr_nonnull(c);
	ck_assert_str_eq(c->status, ready);
	ck_assert_str_eq(c->reason, reason);
	ck_assert_uint_gt(strlen(c->message), 0);
	ck_assert_str_eq(shown, copies);
}

START_TEST(a_volume_that_was_given_out_shows_the_phase_of_its_copy)
{
	put("n1", id, PHASE_READY);
	check("Ready", "True", "Ready", "n1 Ready 1 ");
	put("n1", id, PHASE_MISSING);
	check("Missing", "False", "DeviceMissing", "n1 Missing 1 ");
	put("n1", id, PHASE_DAMAGED);
	check("Damaged", "False", "StateFileDamaged", "n1 Damaged 1 ");
	put("n1", id, PHASE_CREATING);
	check("Missing", "False", "NoCopy", "n1 Creating 1 ");
	put("n1", id, PHASE_ERASING);
	check("Missing", "False", "NoCopy", "n1 Erasing 1 ");
	put("n1", id, PHASE_LATER);
	check("Missing", "False", "NoCopy", "n1 Unknown 1 ");
	put("n1", NULL, 0);
	check("Missing", "False", "NoCopy", "");
}
END_TEST

START_TEST(a_node_that_does_not_report_is_unreachable)
{
	struct node_report *r;

	check("Unreachable", "Unknown", "NodeUnreachable", "n1 Unreachable 0 ");
	put("n1", id, PHASE_READY);
	node_table_end(nodes, "n1");
	check("Unreachable", "Unknown", "NodeUnreachable", "n1 Unreachable 1 ");
	put("n1", NULL, 0);
	node_table_end(nodes, "n1");
	check("Unreachable", "Unknown", "NodeUnreachable", "n1 Unreachable 0 ");
	r = report_new("n1");
	r->has_inventory = false;
	node_table_put(nodes, r, NOW);
	check("Unreachable", "Unknown", "NodeUnreachable", "n1 Unreachable 0 ");
}
END_TEST

START_TEST(a_node_out_of_service_is_unreachable_whatever_it_reports)
{
	put("n1", id, PHASE_READY);
	out_of_service = "n1";
	check("Unreachable", "Unknown", "NodeOutOfService", "n1 Unreachable 1 ");
	put("n1", id, PHASE_DAMAGED);
	check("Unreachable", "Unknown", "NodeOutOfService", "n1 Unreachable 1 ");
	node_table_end(nodes, "n1");
	check("Unreachable", "Unknown", "NodeOutOfService", "n1 Unreachable 1 ");
	node_table_forget(nodes, "n1");
	check("Unreachable", "Unknown", "NodeOutOfService", "n1 Unreachable 0 ");
	put("n1", NULL, 0);
	check("Missing", "False", "NoCopy", "");
	put("n2", id, PHASE_READY);
	check("Ready", "True", "Ready", "n2 Ready 1 ");
}
END_TEST

static void note_copy(const char *node_id, const char *phase)
{
	pmem_volume_clear_copies(record);
	pmem_volume_add_copy(record, node_id, phase, GIB, 0);
}

START_TEST(a_node_that_is_lost_stays_so_until_it_reports_or_is_in_the_cluster)
{
	struct node_report *r;

	fate = FATE_LOST;
	check("Lost", "False", "NodeLost", "n1 Lost 0 ");
	fate = FATE_UNKNOWN;
	check("Unreachable", "Unknown", "NodeUnreachable", "n1 Unreachable 0 ");
	note_copy("n1", "Lost");
	check("Lost", "False", "NodeLost", "n1 Lost 1 ");
	cluster_is_ready = false;
	existing = "n1";
	check("Lost", "False", "NodeLost", "n1 Lost 1 ");
	cluster_is_ready = true;
	check("Unreachable", "Unknown", "NodeUnreachable", "n1 Unreachable 1 ");
	existing = NULL;
	fate = FATE_PRESENT;
	check("Unreachable", "Unknown", "NodeUnreachable", "n1 Unreachable 1 ");
	fate = FATE_LOST;
	r = report_new("n1");
	r->has_inventory = false;
	node_table_put(nodes, r, NOW);
	check("Unreachable", "Unknown", "NodeUnreachable", "n1 Unreachable 1 ");
	put("n1", id, PHASE_READY);
	check("Ready", "True", "Ready", "n1 Ready 1 ");
	node_table_end(nodes, "n1");
	check("Lost", "False", "NodeLost", "n1 Lost 1 ");
}
END_TEST

/* A replica that is not the leader goes by what the record says. */
START_TEST(without_a_judge_the_record_counts)
{
	view.judge = NULL;
	check("Unreachable", "Unknown", "NodeUnreachable", "n1 Unreachable 0 ");
	note_copy("n1", "Lost");
	check("Lost", "False", "NodeLost", "n1 Lost 1 ");
}
END_TEST

START_TEST(a_volume_is_lost_when_all_its_nodes_are)
{
	fate = FATE_LOST;
	pmem_volume_add_node(record, "n2");
	check("Unreachable", "Unknown", "NodeUnreachable", "n1 Lost 0 n2 Unreachable 0 ");
	put("n2", id, PHASE_READY);
	check("Ready", "True", "Ready", "n2 Ready 1 n1 Lost 0 ");
	put("n2", NULL, 0);
	check("Lost", "False", "NodeLost", "n1 Lost 0 ");
	record->deleting = true;
	check("Lost", "False", "NodeLost", "n1 Lost 0 ");
	put("n2", id, PHASE_READY);
	check("Deleting", "False", "Deleting", "n2 Ready 1 n1 Lost 0 ");
}
END_TEST

static void put_ill(const char *node_id, enum volume_phase phase, enum health_severity severity,
	const char *reason, const char *message)
{
	struct node_report *r = report_new(node_id);
	struct volume_report *v = report_add_volume(r, id, NAME);

	v->phase = phase;
	health_add(&v->health, severity, reason, "%s", message);
	node_table_put(nodes, r, NOW);
}

static void check_healthy(const char *status, const char *reason, const char *message)
{
	CLEANUP(pmem_volume_freep) struct pmem_volume *v = volume_status_new(record, &view);
	const struct pmem_condition *c = pmem_condition_find(&v->conditions, "Healthy");

	ck_assert_ptr_nonnull(c);
	ck_assert_str_eq(c->status, status);
	ck_assert_str_eq(c->reason, reason);
	ck_assert_msg(strstr(c->message, message) != NULL, "%s", c->message);
}

START_TEST(a_volume_is_healthy_as_its_nodes_report)
{
	check_healthy("Unknown", "NotReported", "");
	put("n1", id, PHASE_READY);
	check_healthy("True", "NoError", "No error is known");
	put_ill("n1", PHASE_READY, HEALTH_DATA_LOSS, "MediaError", "at offset 7");
	check_healthy("False", "MediaError", "Node n1: MediaError: at offset 7.");
	check("Ready", "True", "Ready", "n1 Ready 1 ");
	node_table_end(nodes, "n1");
	check_healthy("Unknown", "NotReported", "");
	put_ill("n1", PHASE_ERASING, HEALTH_DATA_LOSS, "MediaError", "at offset 7");
	check_healthy("Unknown", "NotReported", "");
	put("n1", id, PHASE_MISSING);
	check_healthy("False", "DeviceMissing", "");
	put("n1", id, PHASE_DAMAGED);
	check_healthy("False", "StateDamaged", "");
}
END_TEST

START_TEST(the_copy_with_the_worst_status_counts)
{
	pmem_volume_add_node(record, "n2");
	pmem_volume_add_node(record, "n3");
	put_ill("n1", PHASE_READY, HEALTH_DEGRADED, "FileSystemFull", "no space");
	put_ill("n2", PHASE_READY, HEALTH_DATA_LOSS, "MediaError", "at offset 7");
	put_ill("n3", PHASE_READY, HEALTH_INACCESSIBLE, "FileSystemHangs", "hangs");
	check_healthy("False", "MediaError", "Node n2: MediaError: at offset 7.");
}
END_TEST

START_TEST(what_returns_after_its_deletion_says_how_to_go_on)
{
	CLEANUP(pmem_volume_freep) struct pmem_volume *v = NULL;
	CLEANUP(free_charp) char *command = x_asprintf("csi-client delete %s", id);

	record->retained = true;
	note_copy("n1", "Lost");
	check("Lost", "False", "NodeLost", "n1 Lost 1 ");
	put("n1", id, PHASE_READY);
	check("Retained", "False", "NodeReturned", "n1 Ready 1 ");
	v = volume_status_new(record, &view);
	ck_assert_ptr_nonnull(strstr(pmem_condition_find(&v->conditions, "Ready")->message, command));
	put("n1", id, PHASE_DAMAGED);
	check("Damaged", "False", "StateFileDamaged", "n1 Damaged 1 ");
	node_table_end(nodes, "n1");
	check("Lost", "False", "NodeLost", "n1 Lost 1 ");
	existing = "n1";
	check("Unreachable", "Unknown", "NodeUnreachable", "n1 Unreachable 1 ");
	record->deleting = true;
	put("n1", id, PHASE_ERASING);
	check("Erasing", "False", "Erasing", "n1 Erasing 1 ");
}
END_TEST

START_TEST(a_volume_that_was_not_given_out_is_being_created)
{
	free(TAKE_PTR(record->handle));
	check("Creating", "False", "Creating", "n1 Unreachable 0 ");
	put("n1", NULL, 0);
	check("Creating", "False", "Creating", "");
	put("n1", id, PHASE_CREATING);
	check("Creating", "False", "Creating", "n1 Creating 1 ");
	put("n1", id, PHASE_READY);
	check("Creating", "False", "Creating", "n1 Ready 1 ");
}
END_TEST

START_TEST(a_volume_that_is_deleted_is_erased_at_last)
{
	record->deleting = true;
	pmem_volume_add_node(record, "n2");
	check("Deleting", "False", "Deleting", "n1 Unreachable 0 n2 Unreachable 0 ");
	put("n1", id, PHASE_ERASING);
	check("Deleting", "False", "Deleting", "n1 Erasing 1 n2 Unreachable 0 ");
	put("n2", id, PHASE_READY);
	check("Deleting", "False", "Deleting", "n1 Erasing 1 n2 Ready 1 ");
	put("n2", NULL, 0);
	check("Erasing", "False", "Erasing", "n1 Erasing 1 ");
	put("n1", NULL, 0);
	check("Deleting", "False", "Deleting", "");
	free(TAKE_PTR(record->handle));
	put("n1", id, PHASE_ERASING);
	check("Erasing", "False", "Erasing", "n1 Erasing 1 ");
}
END_TEST

/* Nodes of the record, and nodes that only report it. */
START_TEST(a_cache_volume_shows_all_its_copies)
{
	pmem_volume_add_node(record, "n2");
	pmem_volume_add_node(record, "n3");
	put("n1", id, PHASE_READY);
	put("n2", id, PHASE_READY)->size_bytes = 2 * GIB;
	put("n3", id, PHASE_READY);
	put("n4", id, PHASE_READY);
	check("Ready", "True", "Ready", "n1 Ready 1 n2 Ready 2 n3 Ready 1 n4 Ready 1 ");
	node_table_end(nodes, "n2");
	check("Ready", "True", "Ready", "n1 Ready 1 n2 Unreachable 2 n3 Ready 1 n4 Ready 1 ");
	node_table_forget(nodes, "n2");
	check("Ready", "True", "Ready", "n1 Ready 1 n3 Ready 1 n4 Ready 1 n2 Unreachable 0 ");
	put("n3", id, PHASE_MISSING);
	check("Missing", "False", "DeviceMissing", "n1 Ready 1 n3 Missing 1 n4 Ready 1 n2 Unreachable 0 ");
	put("n4", id, PHASE_DAMAGED);
	check("Damaged", "False", "StateFileDamaged",
		"n1 Ready 1 n3 Missing 1 n4 Damaged 1 n2 Unreachable 0 ");
	node_table_end(nodes, "n1");
	put("n3", NULL, 0);
	put("n4", NULL, 0);
	check("Unreachable", "Unknown", "NodeUnreachable", "n1 Unreachable 1 n2 Unreachable 0 ");
}
END_TEST

START_TEST(copies_of_other_volumes_are_not_shown)
{
	struct node_report *r = report_new("n1");

	report_add_volume(r, "other", "pvc-2");
	report_add_volume(r, "nameless", "");
	node_table_put(nodes, r, NOW);
	put("n2", "under-another-handle", PHASE_READY);
	check("Missing", "False", "NoCopy", "");
}
END_TEST

START_TEST(what_is_not_given_out_is_found_by_its_name)
{
	free(TAKE_PTR(record->handle));
	put("n1", "any", PHASE_CREATING);
	check("Creating", "False", "Creating", "n1 Creating 1 ");
}
END_TEST

/* A record without an origin was made by CreateVolume, which alone sets the handle when it is answered. */
START_TEST(the_handle_is_taken_of_a_reported_volume_only)
{
	CLEANUP(pmem_volume_freep) struct pmem_volume *asked = NULL;
	CLEANUP(pmem_volume_freep) struct pmem_volume *reported = NULL;

	free(TAKE_PTR(record->handle));
	put("n1", id, PHASE_READY);
	asked = volume_status_new(record, &view);
	ck_assert_ptr_null(asked->handle);
	record->origin = x_strdup(PMEM_VOLUME_REPORTED);
	reported = volume_status_new(record, &view);
	ck_assert_str_eq(reported->handle, id);
	check("Ready", "True", "Ready", "n1 Ready 1 ");
}
END_TEST

static struct volume_report *put_filling(enum volume_phase phase)
{
	struct node_report *r = report_new("n1");
	struct volume_report *v = report_add_volume(r, id, NAME);

	v->phase = phase;
	v->filling = (struct volume_filling){GIB, 4 * GIB};
	node_table_put(nodes, r, NOW);
	return v;
}

static void check_filling(uint64_t done_bytes, uint64_t total_bytes)
{
	CLEANUP(pmem_volume_freep) struct pmem_volume *v = volume_status_new(record, &view);

	ck_assert_uint_eq(v->n_copies, 1);
	ck_assert_uint_eq(v->copies[0].done_bytes, done_bytes);
	ck_assert_uint_eq(v->copies[0].total_bytes, total_bytes);
	ck_assert(volume_status_is_filling(record, nodes) == (total_bytes > 0));
	/* as it was written */
	pmem_volume_free(record);
	record = TAKE_PTR(v);
}

START_TEST(progress_is_shown_while_a_live_node_fills_the_volume)
{
	put_filling(PHASE_CREATING);
	check_filling(GIB, 4 * GIB);
	node_table_end(nodes, "n1");
	check_filling(0, 0);
	put_filling(PHASE_CREATING);
	check_filling(GIB, 4 * GIB);
	put_filling(PHASE_READY);
	check_filling(0, 0);
	put("n1", id, PHASE_CREATING);
	check_filling(0, 0);
}
END_TEST

START_TEST(claim_and_handle_are_those_that_were_known_first_and_the_size_that_of_the_last_report)
{
	CLEANUP(pmem_volume_freep) struct pmem_volume *first = NULL;
	CLEANUP(pmem_volume_freep) struct pmem_volume *second = NULL;
	CLEANUP(pmem_volume_freep) struct pmem_volume *third = NULL;
	struct node_report *r = report_new("n1");
	struct volume_report *v = report_add_volume(r, id, NAME);

	v->claim = x_strdup("default/data");
	v->size_bytes = 3 * GIB;
	node_table_put(nodes, r, NOW);
	first = volume_status_new(record, &view);
	ck_assert_str_eq(first->claim, "default/data");
	ck_assert_uint_eq(first->capacity_bytes, 3 * GIB);
	put("n1", id, PHASE_READY);
	second = volume_status_new(first, &view);
	ck_assert_str_eq(second->claim, "default/data");
	ck_assert_uint_eq(second->capacity_bytes, GIB);
	ck_assert_uint_eq(second->copies[0].size_bytes, GIB);
	node_table_forget(nodes, "n1");
	third = volume_status_new(second, &view);
	ck_assert_str_eq(third->claim, "default/data");
	ck_assert_uint_eq(third->capacity_bytes, GIB);
	ck_assert_str_eq(third->handle, id);
}
END_TEST

/* The status that another controller has written stays, also for copies that are erased and whose nodes are
 * not in the record any more. */
START_TEST(copies_on_nodes_that_have_not_registered_stay)
{
	struct node_report *r = report_new("n3");

	pmem_volume_add_copy(record, "n1", "Ready", 2 * GIB, 0);
	pmem_volume_add_copy(record, "n2", "Erasing", GIB, 0);
	pmem_volume_add_copy(record, "n3", "Ready", GIB, 0);
	check("Unreachable", "Unknown", "NodeUnreachable",
		"n1 Unreachable 2 n2 Unreachable 1 n3 Unreachable 1 ");
	r->has_inventory = false;
	node_table_put(nodes, r, NOW);
	put("n1", id, PHASE_READY);
	check("Ready", "True", "Ready", "n1 Ready 1 n2 Unreachable 1 n3 Unreachable 1 ");
	put("n2", id, PHASE_ERASING);
	put("n3", NULL, 0);
	check("Ready", "True", "Ready", "n1 Ready 1 n2 Erasing 1 ");
	put("n2", NULL, 0);
	node_table_end(nodes, "n2");
	check("Ready", "True", "Ready", "n1 Ready 1 ");
	pmem_volume_clear_copies(record);
	pmem_volume_add_copy(record, NULL, NULL, 0, 0);
	check("Ready", "True", "Ready", "n1 Ready 1 ");
}
END_TEST

static void report_is(uint64_t number, uint64_t wanted)
{
	CLEANUP(pmem_volume_freep) struct pmem_volume *v = NULL;
	struct node_report *r = report_new("n1");

	report_add_volume(r, id, "")->phase = number == 6 ? PHASE_CREATING : PHASE_READY;
	r->number = number;
	node_table_put(nodes, r, NOW);
	v = volume_status_new(record, &view);
	ck_assert_uint_eq(v->n_copies, 1);
	ck_assert_uint_eq(v->copies[0].report, wanted);
}

START_TEST(a_copy_names_the_report_that_has_shown_it_first)
{
	report_is(6, 0);
	report_is(7, 7);
	pmem_volume_add_copy(record, "n1", "Creating", GIB, 0);
	report_is(8, 8);
	pmem_volume_clear_copies(record);
	pmem_volume_add_copy(record, "n1", "Ready", GIB, 7);
	report_is(8, 7);
	node_table_forget(nodes, "n1");
	CLEANUP(pmem_volume_freep) struct pmem_volume *v = volume_status_new(record, &view);
	ck_assert_uint_eq(v->copies[0].report, 7);
}
END_TEST

/* The reply may come before the report that the volume is part of. */
START_TEST(a_copy_that_is_known_by_a_reply_is_in_no_report)
{
	struct node_report *r = report_new("n1");
	const struct volume_report made = {.id = id,
		.name = (char[]){NAME},
		.size_bytes = GIB,
		.phase = PHASE_READY,
		.made_by_controller = true};

	r->number = 10;
	node_table_put(nodes, r, NOW);
	node_table_note_created(nodes, "n1", &made, NOW);
	CLEANUP(pmem_volume_freep) struct pmem_volume *v = volume_status_new(record, &view);
	ck_assert_uint_eq(v->n_copies, 1);
	ck_assert_str_eq(v->copies[0].phase, "Ready");
	ck_assert_uint_eq(v->copies[0].report, 0);
	/* a later reply is about the same copy */
	pmem_volume_add_copy(record, "n1", "Ready", GIB, 9);
	CLEANUP(pmem_volume_freep) struct pmem_volume *again = volume_status_new(record, &view);
	ck_assert_uint_eq(again->copies[0].report, 9);
	pmem_volume_clear_copies(record);
	report_is(11, 11);
}
END_TEST

START_TEST(a_number_that_is_larger_than_that_of_the_report_is_of_an_earlier_run)
{
	pmem_volume_add_copy(record, "n1", "Ready", GIB, 100);
	report_is(8, 8);
}
END_TEST

START_TEST(the_record_itself_is_kept)
{
	CLEANUP(pmem_volume_freep) struct pmem_volume *v = NULL;

	record->attempts = 3;
	pmem_volume_add_copy(record, "old", "Ready", 1, 0);
	put("n1", id, PHASE_READY);
	v = volume_status_new(record, &view);
	ck_assert_str_eq(v->meta.name, record->meta.name);
	ck_assert_str_eq(v->meta.resource_version, "7");
	ck_assert_uint_eq(v->attempts, 3);
	ck_assert(pmem_volume_has_node(v, "n1"));
	ck_assert_uint_eq(record->n_copies, 1);
	ck_assert_ptr_null(record->phase);
}
END_TEST

static const char *since_of(const struct pmem_volume *v)
{
	return pmem_condition_find(&v->conditions, "Ready")->since;
}

START_TEST(the_time_of_a_transition_stays_with_the_status)
{
	CLEANUP(pmem_volume_freep) struct pmem_volume *same = NULL;
	CLEANUP(pmem_volume_freep) struct pmem_volume *reason = NULL;
	CLEANUP(pmem_volume_freep) struct pmem_volume *changed = NULL;

	pmem_condition_add(
		&record->conditions, "Ready", &(struct pmem_verdict){"False", "DeviceMissing", "old"}, SINCE);
	put("n1", id, PHASE_MISSING);
	same = volume_status_new(record, &view);
	ck_assert_str_eq(since_of(same), SINCE);
	put("n1", id, PHASE_DAMAGED);
	reason = volume_status_new(record, &view);
	ck_assert_str_eq(since_of(reason), SINCE);
	put("n1", id, PHASE_READY);
	changed = volume_status_new(record, &view);
	ck_assert_str_ne(since_of(changed), SINCE);
	ck_assert_uint_eq(strlen(since_of(changed)), KUBE_SECONDS_LEN);
}
END_TEST

START_TEST(the_same_reports_give_the_same_status)
{
	CLEANUP(pmem_volume_freep) struct pmem_volume *first = NULL;
	CLEANUP(pmem_volume_freep) struct pmem_volume *second = NULL;

	pmem_volume_add_node(record, "n2");
	put("n1", id, PHASE_READY);
	first = volume_status_new(record, &view);
	second = volume_status_new(first, &view);
	ck_assert(!pmem_volume_status_equal(record, first));
	ck_assert(pmem_volume_status_equal(first, second));
}
END_TEST

/* The definition of the object has one copy per node. A copy that is being erased is left over from an
 * earlier volume of that name. */
START_TEST(a_node_has_one_copy)
{
	struct node_report *r = report_new("n1");

	free(TAKE_PTR(record->handle));
	pmem_volume_add_node(record, "n2");
	report_add_volume(r, "a", NAME)->phase = PHASE_ERASING;
	report_add_volume(r, "b", NAME)->phase = PHASE_CREATING;
	report_add_volume(r, "c", NAME)->phase = PHASE_ERASING;
	node_table_put(nodes, r, NOW);
	put("n2", "a", PHASE_ERASING);
	check("Creating", "False", "Creating", "n1 Creating 1 n2 Erasing 1 ");
}
END_TEST

START_TEST(a_deleted_volume_is_not_erased_before_all_copies_are)
{
	static const enum volume_phase others[] = {
		PHASE_CREATING, PHASE_READY, PHASE_MISSING, PHASE_DAMAGED, PHASE_LATER};

	record->deleting = true;
	put("n1", id, PHASE_ERASING);
	for (size_t i = 0; i < ARRAY_SIZE(others); i++) {
		CLEANUP(pmem_volume_freep) struct pmem_volume *v = NULL;

		put("n2", id, others[i]);
		v = volume_status_new(record, &view);
		ck_assert_msg(str_eq(v->phase, "Deleting"), "case %zu: %s", i, v->phase);
	}
	put("n2", id, PHASE_ERASING);
	check("Erasing", "False", "Erasing", "n1 Erasing 1 n2 Erasing 1 ");
}
END_TEST

/* The report of a damaged copy has only its ID. */
START_TEST(a_reported_volume_without_a_name_is_found_on_its_nodes)
{
	CLEANUP(pmem_volume_freep) struct pmem_volume *v = NULL;
	struct node_report *r = report_new("n1");

	report_add_volume(r, "other", "");
	report_add_volume(r, id, "")->phase = PHASE_DAMAGED;
	node_table_put(nodes, r, NOW);
	free(TAKE_PTR(record->handle));
	free(TAKE_PTR(record->volume_name));
	record->origin = x_strdup(PMEM_VOLUME_REPORTED);
	check("Damaged", "False", "StateFileDamaged", "n1 Damaged 1 ");
	v = volume_status_new(record, &view);
	ck_assert_str_eq(v->handle, id);
}
END_TEST

static bool is_copy(const struct pmem_volume *v, const char *handle, const char *name)
{
	struct volume_report r = {.id = x_strdup(handle), .name = x_strdup(name)};
	bool ret = volume_status_is_copy(v, &r);

	volume_report_done(&r);
	return ret;
}

START_TEST(a_copy_is_known_by_handle_name_and_key)
{
	const struct volume_key key = volume_key_of_name("reported");
	CLEANUP(pmem_volume_freep) struct pmem_volume *reported = pmem_volume_new(key.hex, DRIVER);
	char on_n2[VOLUME_ID_MAX + 1];

	volume_id_mint(NAME, "n2", on_n2);
	ck_assert(is_copy(record, id, "other"));
	ck_assert(is_copy(record, on_n2, ""));
	ck_assert(is_copy(record, "any", NAME));
	ck_assert(!is_copy(record, "any", "other"));
	ck_assert(!is_copy(record, "any", ""));
	ck_assert(!is_copy(record, "reported", ""));
	ck_assert(is_copy(reported, "reported", ""));
	ck_assert(!is_copy(reported, id, ""));
	free(record->handle);
	record->handle = x_strdup("reported");
	ck_assert(is_copy(record, "reported", ""));
}
END_TEST

START_TEST(more_copies_than_are_read_make_no_difference)
{
	CLEANUP(pmem_volume_freep) struct pmem_volume *v = NULL;
	CLEANUP(pmem_volume_freep) struct pmem_volume *read = NULL;
	CLEANUP(buf_done) struct buf out = BUF_INIT(1 << 20);
	CLEANUP(free_charp) char *json = NULL;
	struct error *err = NULL;

	for (unsigned i = 0; i < KUBE_MAX_ITEMS + 2; i++) {
		CLEANUP(free_charp) char *node_id = x_asprintf("n%u", 10000 + i);

		put(node_id, id, PHASE_READY);
	}
	v = volume_status_new(record, &view);
	pmem_volume_write_status(v, &out);
	json = x_asprintf("{\"metadata\":{\"name\":\"x\"},%s", strstr(buf_str(&out), "\"status\":"));
	read = kube_object_decode(&kube_kind_pmem_volumes, span_of(json), &err);
	ck_assert_ptr_nonnull(read);
	ck_assert(pmem_volume_status_equal(v, read));
	ck_assert_str_eq(v->phase, "Ready");
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {a_volume_that_was_given_out_shows_the_phase_of_its_copy,
		a_node_that_does_not_report_is_unreachable,
		a_node_out_of_service_is_unreachable_whatever_it_reports,
		a_node_that_is_lost_stays_so_until_it_reports_or_is_in_the_cluster,
		without_a_judge_the_record_counts, a_volume_is_lost_when_all_its_nodes_are,
		what_returns_after_its_deletion_says_how_to_go_on, a_volume_is_healthy_as_its_nodes_report,
		the_copy_with_the_worst_status_counts, a_volume_that_was_not_given_out_is_being_created,
		a_volume_that_is_deleted_is_erased_at_last, a_cache_volume_shows_all_its_copies,
		copies_of_other_volumes_are_not_shown, what_is_not_given_out_is_found_by_its_name,
		the_handle_is_taken_of_a_reported_volume_only,
		claim_and_handle_are_those_that_were_known_first_and_the_size_that_of_the_last_report,
		progress_is_shown_while_a_live_node_fills_the_volume,
		copies_on_nodes_that_have_not_registered_stay,
		a_copy_names_the_report_that_has_shown_it_first,
		a_copy_that_is_known_by_a_reply_is_in_no_report,
		a_number_that_is_larger_than_that_of_the_report_is_of_an_earlier_run,
		the_record_itself_is_kept, the_time_of_a_transition_stays_with_the_status,
		the_same_reports_give_the_same_status, a_node_has_one_copy,
		a_deleted_volume_is_not_erased_before_all_copies_are,
		a_reported_volume_without_a_name_is_found_on_its_nodes,
		a_copy_is_known_by_handle_name_and_key, more_copies_than_are_read_make_no_difference};
	Suite *suite = suite_create("controller/volume_status");
	TCase *tcase = tcase_create("volume_status");

	suite_add_tcase(suite, tcase);
	tcase_add_checked_fixture(tcase, set_up, tear_down);
	for (size_t i = 0; i < ARRAY_SIZE(tests); i++)
		tcase_add_test(tcase, tests[i]);
	return unit_runner_finish(srunner_create(suite));
}
