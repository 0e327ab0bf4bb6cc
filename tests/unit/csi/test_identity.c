/* SPDX-License-Identifier: Apache-2.0 */
#include "unit/csi/harness.h"
#include "unit/unit.h"

static struct error *err;

START_TEST(plugin_info_has_name_and_version)
{
	struct harness h;
	Csi__V1__GetPluginInfoRequest q;
	csi__v1__get_plugin_info_request__init(&q);
	void *reply;

	harness_open(&h, /* start= */ false);
	ASSERT_OK(harness_call(&h, "/csi.v1.Identity/GetPluginInfo", &q, &reply, &err));
	Csi__V1__GetPluginInfoResponse *r = reply;
	ck_assert_str_eq(r->name, DRIVER_NAME);
	ck_assert_str_eq(r->vendor_version, "1.2.3");
	harness_close(&h);
}
END_TEST

START_TEST(probe_is_not_ready_before_the_first_listing)
{
	struct harness h;
	Csi__V1__ProbeRequest q;
	csi__v1__probe_request__init(&q);
	void *reply;

	harness_open(&h, /* start= */ false);
	ASSERT_OK(harness_call(&h, "/csi.v1.Identity/Probe", &q, &reply, &err));
	ck_assert(!((Csi__V1__ProbeResponse *)reply)->ready->value);
	ASSERT_OK(volumes_start(h.csi.volumes, &err));
	ASSERT_OK(harness_call(&h, "/csi.v1.Identity/Probe", &q, &reply, &err));
	ck_assert(((Csi__V1__ProbeResponse *)reply)->ready->value);
	harness_close(&h);
}
END_TEST

START_TEST(capabilities_say_controller_topology_groups_and_online_expansion)
{
	struct harness h;
	Csi__V1__GetPluginCapabilitiesRequest q;
	csi__v1__get_plugin_capabilities_request__init(&q);
	void *reply;

	harness_open(&h, /* start= */ false);
	ASSERT_OK(harness_call(&h, "/csi.v1.Identity/GetPluginCapabilities", &q, &reply, &err));
	Csi__V1__GetPluginCapabilitiesResponse *r = reply;
	ck_assert_uint_eq(r->n_capabilities, 4);
	ck_assert_int_eq(r->capabilities[0]->service->type, 1);
	ck_assert_int_eq(r->capabilities[1]->service->type, 2);
	ck_assert_int_eq(r->capabilities[2]->service->type, 3);
	ck_assert_int_eq(r->capabilities[3]->volume_expansion->type, 1);
	harness_close(&h);
}
END_TEST

START_TEST(node_info_has_id_and_topology)
{
	struct harness h;
	Csi__V1__NodeGetInfoRequest q;
	csi__v1__node_get_info_request__init(&q);
	void *reply;

	harness_open(&h, /* start= */ false);
	ASSERT_OK(harness_call(&h, "/csi.v1.Node/NodeGetInfo", &q, &reply, &err));
	Csi__V1__NodeGetInfoResponse *r = reply;
	ck_assert_str_eq(r->node_id, NODE_ID);
	ck_assert_int_eq(r->max_volumes_per_node, 0);
	ck_assert_uint_eq(r->accessible_topology->n_segments, 1);
	ck_assert_str_eq(r->accessible_topology->segments[0]->key, DRIVER_NAME "/node");
	ck_assert_str_eq(r->accessible_topology->segments[0]->value, NODE_ID);
	harness_close(&h);
}
END_TEST

START_TEST(single_node_multi_writer_is_offered_by_controller_and_node_together)
{
	struct harness h;
	Csi__V1__ControllerGetCapabilitiesRequest cq;
	csi__v1__controller_get_capabilities_request__init(&cq);
	Csi__V1__NodeGetCapabilitiesRequest nq;
	csi__v1__node_get_capabilities_request__init(&nq);
	unsigned controller = 0;
	unsigned node = 0;
	void *reply;

	harness_open(&h, /* start= */ false);
	ASSERT_OK(harness_call(&h, "/csi.v1.Controller/ControllerGetCapabilities", &cq, &reply, &err));
	Csi__V1__ControllerGetCapabilitiesResponse *c = reply;
	for (size_t i = 0; i < c->n_capabilities; i++)
		controller |= 1u << c->capabilities[i]->rpc->type;
	ASSERT_OK(harness_call(&h, "/csi.v1.Node/NodeGetCapabilities", &nq, &reply, &err));
	Csi__V1__NodeGetCapabilitiesResponse *n = reply;
	for (size_t i = 0; i < n->n_capabilities; i++)
		node |= 1u << n->capabilities[i]->rpc->type;
	ck_assert_uint_eq(controller, 1u << 1 | 1u << 3 | 1u << 4 | 1u << 5 | 1u << 6 | 1u << 7 | 1u << 9 |
					      1u << 13 | 1u << 14 | 1u << 15);
	ck_assert_uint_eq(node, 1u << 1 | 1u << 2 | 1u << 3 | 1u << 4 | 1u << 5);
	harness_close(&h);
}
END_TEST

START_TEST(health_of_csi_1_13_is_offered_if_that_is_set)
{
	struct harness h;
	Csi__V1__ControllerGetCapabilitiesRequest cq;
	csi__v1__controller_get_capabilities_request__init(&cq);
	Csi__V1__NodeGetCapabilitiesRequest nq;
	csi__v1__node_get_capabilities_request__init(&nq);
	void *reply;

	harness_open(&h, /* start= */ false);
	h.csi.offers_health = true;
	ASSERT_OK(harness_call(&h, "/csi.v1.Controller/ControllerGetCapabilities", &cq, &reply, &err));
	Csi__V1__ControllerGetCapabilitiesResponse *c = reply;
	ck_assert_uint_eq(c->n_capabilities, 12);
	ck_assert_int_eq(c->capabilities[10]->rpc->type, 16);
	ck_assert_int_eq(c->capabilities[11]->rpc->type, 17);
	ASSERT_OK(harness_call(&h, "/csi.v1.Node/NodeGetCapabilities", &nq, &reply, &err));
	Csi__V1__NodeGetCapabilitiesResponse *n = reply;
	ck_assert_uint_eq(n->n_capabilities, 7);
	ck_assert_int_eq(n->capabilities[5]->rpc->type, 7);
	ck_assert_int_eq(n->capabilities[6]->rpc->type, 8);
	harness_close(&h);
}
END_TEST

UNIT_MAIN("csi/identity", plugin_info_has_name_and_version, probe_is_not_ready_before_the_first_listing,
	capabilities_say_controller_topology_groups_and_online_expansion, node_info_has_id_and_topology,
	health_of_csi_1_13_is_offered_if_that_is_set,
	single_node_multi_writer_is_offered_by_controller_and_node_together)
