/* SPDX-License-Identifier: Apache-2.0 */
/* ListVolumes, GetCapacity, ValidateVolumeCapabilities and Identity. */
#include <stdio.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/str.h"
#include "csi/convert.h"
#include "unit/controller/desk.h"
#include "volume/id.h"

static struct desk d;
static struct desk_ask a;
static struct error *err;

static void begin(bool early)
{
	desk_open(&d, early, /* forget_gone= */ false);
	desk_ask_init(&a, "x");
}

static void end(void)
{
	desk_ask_done(&a);
	desk_close(&d);
}

static int list(int max, const char *token, Csi__V1__ListVolumesResponse *reply)
{
	Csi__V1__ListVolumesRequest q;

	csi__v1__list_volumes_request__init(&q);
	csi__v1__list_volumes_response__init(reply);
	q.max_entries = max;
	q.starting_token = arena_strdup(a.arena, token);
	return controller_list(d.controller, a.arena, &q, reply, &err);
}

START_TEST(volumes_of_all_nodes_are_listed_in_pages_that_stay_stable)
{
	struct node_report *r1 = report_new("n1");
	struct node_report *r2 = report_new("n2");
	Csi__V1__ListVolumesResponse page;

	begin(/* early= */ false);
	report_add_volume(r1, "b", "")->claim = x_strdup("default/data");
	report_add_volume(r1, "cache", "");
	report_add_volume(r1, "making", "")->phase = PHASE_CREATING;
	report_add_volume(r1, "erasing", "")->phase = PHASE_ERASING;
	report_add_volume(r2, "a", "");
	report_add_volume(r2, "cache", "");
	report_add_volume(r2, "z", "")->phase = PHASE_MISSING;
	node_table_put(d.table, r1, d.now_ns);
	node_table_put(d.table, r2, d.now_ns);
	ASSERT_OK(list(2, "", &page));
	ck_assert_uint_eq(page.n_entries, 2);
	ck_assert_str_eq(page.entries[0]->volume->volume_id, "a");
	ck_assert_str_eq(page.entries[1]->volume->volume_id, "b");
	ck_assert_uint_eq(page.entries[0]->volume->n_volume_context, 0);
	ck_assert_uint_eq(page.entries[1]->volume->n_volume_context, 2);
	ck_assert_str_eq(page.entries[1]->volume->volume_context[0]->key, "csi.storage.k8s.io/pvc/namespace");
	ck_assert_str_eq(page.entries[1]->volume->volume_context[0]->value, "default");
	ck_assert_str_eq(page.entries[1]->volume->volume_context[1]->key, "csi.storage.k8s.io/pvc/name");
	ck_assert_str_eq(page.entries[1]->volume->volume_context[1]->value, "data");
	node_table_note_deleted(d.table, "n1", "b", d.now_ns);
	ASSERT_OK(list(2, page.next_token, &page));
	ck_assert_uint_eq(page.n_entries, 2);
	ck_assert_str_eq(page.entries[0]->volume->volume_id, "cache");
	ck_assert_uint_eq(page.entries[0]->volume->n_accessible_topology, 2);
	ck_assert_ptr_null(page.entries[0]->status);
	ck_assert(page.entries[1]->status->volume_condition->abnormal);
	ck_assert_str_eq(page.next_token, "");
	end();
}
END_TEST

START_TEST(a_page_always_fits_into_a_message)
{
	struct node_report *r = report_new("n1");
	Csi__V1__ListVolumesResponse page;
	size_t n = 0;

	begin(/* early= */ false);
	for (unsigned i = 0; i < 9000; i++) {
		char id[64];

		snprintf(id, sizeof(id), "pvc-%08u-0123456789abcdef0123456789abcdef0123456789abcdef01", i);
		report_add_volume(r, id, "")->claim = x_asprintf("%063d/%0253d", 1, 1);
	}
	node_table_put(d.table, r, d.now_ns);
	ASSERT_OK(list(0, "", &page));
	for (n = page.n_entries; *page.next_token; n += page.n_entries) {
		ck_assert_uint_lt(csi__v1__list_volumes_response__get_packed_size(&page), 4u << 20);
		ASSERT_OK(list(0, page.next_token, &page));
	}
	ck_assert_uint_eq(n, 9000);
	end();
}
END_TEST

START_TEST(a_list_without_some_nodes_is_none)
{
	Csi__V1__ListVolumesResponse page;
	struct node_report *r = report_new("n1");

	begin(/* early= */ true);
	d.cluster_ids[d.n_cluster++] = "n2";
	ASSERT_FAILS(list(0, "", &page), ERR_UNAVAILABLE, "node n2 has not registered");
	d.now_ns += 10 * DESK_LEASE_NS;
	ASSERT_FAILS(list(0, "", &page), ERR_UNAVAILABLE, "node n2 has not registered");
	d.cluster_ready = false;
	d.n_cluster = 0;
	ASSERT_FAILS(list(0, "", &page), ERR_UNAVAILABLE, "list of nodes");
	d.cluster_ready = true;
	ASSERT_OK(list(0, "", &page));
	r->has_inventory = false;
	node_table_put(d.table, r, d.now_ns);
	ASSERT_FAILS(list(0, "", &page), ERR_UNAVAILABLE, "node n1 has not reported");
	node_table_end(d.table, "n1");
	d.cluster_ids[d.n_cluster++] = "n1";
	ASSERT_FAILS(list(0, "", &page), ERR_UNAVAILABLE, "node n1 has not reported its volumes yet");
	ASSERT_FAILS(list(-1, "", &page), ERR_INVALID_ARGUMENT, "negative");
	ASSERT_FAILS(list(0, "17", &page), ERR_ABORTED, "starting_token");
	end();
}
END_TEST

/* @value: of the parameter @key; NULL: no parameter */
static int capacity_with(
	const char *node_id, const char *key, const char *value, Csi__V1__GetCapacityResponse *reply)
{
	Csi__V1__GetCapacityRequest q;
	Csi__V1__GetCapacityRequest__ParametersEntry entry;
	Csi__V1__GetCapacityRequest__ParametersEntry *entries[] = {&entry};

	csi__v1__get_capacity_request__init(&q);
	csi__v1__get_capacity_response__init(reply);
	csi__v1__get_capacity_request__parameters_entry__init(&entry);
	entry.key = arena_strdup(a.arena, key);
	entry.value = arena_strdup(a.arena, value);
	if (value) {
		q.n_parameters = 1;
		q.parameters = entries;
	}
	if (node_id)
		q.accessible_topology = csi_topology(DESK_DRIVER, node_id, a.arena);
	return controller_capacity(d.controller, a.arena, &q, reply, &err);
}

static int capacity(const char *node_id, const char *usage, Csi__V1__GetCapacityResponse *reply)
{
	return capacity_with(node_id, "usage", usage, reply);
}

START_TEST(capacity_by_a_topology_key_of_others_is_refused)
{
	Csi__V1__GetCapacityRequest q;
	Csi__V1__GetCapacityResponse reply;

	begin(/* early= */ false);
	desk_add_node(&d, "n1", 4);
	csi__v1__get_capacity_request__init(&q);
	csi__v1__get_capacity_response__init(&reply);
	q.accessible_topology = csi_topology(DESK_DRIVER, "n1", a.arena);
	q.accessible_topology->segments[0]->key = arena_strdup(a.arena, "topology.kubernetes.io/zone");
	ASSERT_FAILS(controller_capacity(d.controller, a.arena, &q, &reply, &err), ERR_INVALID_ARGUMENT,
		"topology.kubernetes.io/zone");
	end();
}
END_TEST

START_TEST(capacity_is_of_one_node_or_summed_over_those_that_live)
{
	Csi__V1__GetCapacityResponse reply;

	begin(/* early= */ true);
	desk_add_node(&d, "n1", 4);
	desk_add_node(&d, "n2", 6);
	desk_add_node(&d, "n3", 7);
	node_table_end(d.table, "n3");
	ASSERT_OK(capacity("n1", NULL, &reply));
	ck_assert_int_eq(reply.available_capacity, 8 * DESK_GIB);
	ck_assert_int_eq(reply.maximum_volume_size->value, 4 * DESK_GIB);
	ASSERT_OK(capacity("n1", "FileIO", &reply));
	ck_assert_int_eq(reply.maximum_volume_size->value, 3 * DESK_GIB);
	ASSERT_OK(capacity(NULL, NULL, &reply));
	ck_assert_int_eq(reply.available_capacity, 16 * DESK_GIB);
	ck_assert_int_eq(reply.maximum_volume_size->value, 6 * DESK_GIB);
	d.out_of_service = "n2";
	ASSERT_OK(capacity(NULL, NULL, &reply));
	ck_assert_int_eq(reply.available_capacity, 8 * DESK_GIB);
	ASSERT_OK(capacity("n2", NULL, &reply));
	ck_assert_int_eq(reply.available_capacity, 0);
	d.out_of_service = NULL;
	ASSERT_FAILS(capacity("n9", NULL, &reply), ERR_UNAVAILABLE, "node n9");
	d.now_ns += DESK_LEASE_NS;
	ASSERT_OK(capacity("n9", NULL, &reply));
	ck_assert_int_eq(reply.available_capacity, 0);
	ck_assert_int_eq(reply.maximum_volume_size->value, 0);
	end();
}
END_TEST

START_TEST(capacity_for_kata_is_of_nodes_that_make_such_volumes)
{
	Csi__V1__GetCapacityResponse reply;
	struct node_report *r = report_new("n2");

	begin(/* early= */ false);
	desk_add_node(&d, "n1", 4);
	r->makes_kata_volumes = true;
	node_table_put(d.table, r, d.now_ns);
	ASSERT_OK(capacity_with("n1", "kataContainers", "true", &reply));
	ck_assert_int_eq(reply.available_capacity, 0);
	ck_assert_int_eq(reply.maximum_volume_size->value, 0);
	ASSERT_OK(capacity_with("n2", "kataContainers", "true", &reply));
	ck_assert_int_eq(reply.available_capacity, 8 * DESK_GIB);
	ASSERT_OK(capacity_with(NULL, "kataContainers", "true", &reply));
	ck_assert_int_eq(reply.available_capacity, 8 * DESK_GIB);
	ASSERT_OK(capacity_with(NULL, "kataContainers", "false", &reply));
	ck_assert_int_eq(reply.available_capacity, 16 * DESK_GIB);
	end();
}
END_TEST

START_TEST(what_can_never_be_served_has_no_capacity)
{
	Csi__V1__GetCapacityRequest q;
	Csi__V1__GetCapacityResponse reply;

	begin(/* early= */ false);
	desk_add_node(&d, "n1", 4);
	csi__v1__get_capacity_request__init(&q);
	csi__v1__get_capacity_response__init(&reply);
	q.n_volume_capabilities = 1;
	q.volume_capabilities = a.create.volume_capabilities;
	ASSERT_OK(controller_capacity(d.controller, a.arena, &q, &reply, &err));
	ck_assert_int_eq(reply.available_capacity, 8 * DESK_GIB);
	q.volume_capabilities[0]->mount->fs_type = (char[]){"btrfs"};
	ASSERT_OK(controller_capacity(d.controller, a.arena, &q, &reply, &err));
	ck_assert_int_eq(reply.available_capacity, 0);
	end();
}
END_TEST

static void validate(const char *id, Csi__V1__ValidateVolumeCapabilitiesResponse *reply)
{
	Csi__V1__ValidateVolumeCapabilitiesRequest *q = arena_alloc(a.arena, sizeof(*q));
	const struct waiter waiter = desk_waiter(&a);

	csi__v1__validate_volume_capabilities_request__init(q);
	csi__v1__validate_volume_capabilities_response__init(reply);
	q->volume_id = arena_strdup(a.arena, id);
	q->n_volume_capabilities = 1;
	q->volume_capabilities = a.create.volume_capabilities;
	controller_validate(d.controller, &waiter, q, reply);
}

static void again(void)
{
	desk_ask_done(&a);
	desk_ask_init(&a, "x");
}

START_TEST(capabilities_are_judged_by_the_node_that_has_the_volume)
{
	Csi__V1__ValidateVolumeCapabilitiesResponse reply;
	Csi__V1__ValidateVolumeCapabilitiesResponse answer;
	Csi__V1__ValidateVolumeCapabilitiesResponse__Confirmed confirmed;
	char id[VOLUME_ID_MAX + 1];

	begin(/* early= */ false);
	desk_add_node(&d, "n1", 4);
	volume_id_mint("pvc-1", "n1", id);
	validate(id, &reply);
	csi__v1__validate_volume_capabilities_response__init(&answer);
	csi__v1__validate_volume_capabilities_response__confirmed__init(&confirmed);
	answer.confirmed = &confirmed;
	struct desk_call *c = desk_last(&d, "n1");
	c->answered = true;
	c->fn(c->user, &answer.base, NULL);
	DESK_OK(&a);
	ck_assert_uint_eq(reply.confirmed->n_volume_capabilities, 1);
	again();
	validate(id, &reply);
	desk_failed(desk_last(&d, "n1"), ERR_NOT_FOUND, "unknown");
	DESK_FAILED(&a, ERR_NOT_FOUND, "node n1: unknown");
	again();
	validate("nonsense", &reply);
	DESK_FAILED(&a, ERR_NOT_FOUND, "nonsense");
	again();
	node_table_end(d.table, "n1");
	validate(id, &reply);
	DESK_FAILED(&a, ERR_UNAVAILABLE, "node n1, which has volume");
	again();
	validate("", &reply);
	DESK_FAILED(&a, ERR_INVALID_ARGUMENT, "volume_id is missing");
	end();
}
END_TEST

START_TEST(both_services_are_complete_and_say_who_they_are)
{
	Csi__V1__GetPluginInfoRequest q;
	Csi__V1__GetPluginInfoResponse reply;
	struct grpc_call call = {0};

	begin(/* early= */ false);
	call.arena = a.arena;
	struct grpc_service identity = controller_identity_service(d.controller);
	csi__v1__get_plugin_info_request__init(&q);
	csi__v1__get_plugin_info_response__init(&reply);
	ck_assert_str_eq(identity.methods[0].path, "/csi.v1.Identity/GetPluginInfo");
	ASSERT_OK(identity.methods[0].handle(identity.self, &call, &q, &reply, &err));
	ck_assert_str_eq(reply.name, DESK_DRIVER);
	ck_assert_str_eq(reply.vendor_version, "1.2.3");
	const struct grpc_method *m = controller_service(d.controller).methods;
	for (; m->path; m++)
		ck_assert_msg((m->kind == GRPC_ASYNC) == (m->start != NULL), "%s", m->path);
	end();
}
END_TEST

UNIT_MAIN("controller/list", volumes_of_all_nodes_are_listed_in_pages_that_stay_stable,
	a_page_always_fits_into_a_message, a_list_without_some_nodes_is_none,
	capacity_by_a_topology_key_of_others_is_refused,
	capacity_is_of_one_node_or_summed_over_those_that_live,
	capacity_for_kata_is_of_nodes_that_make_such_volumes, what_can_never_be_served_has_no_capacity,
	capabilities_are_judged_by_the_node_that_has_the_volume,
	both_services_are_complete_and_say_who_they_are)
