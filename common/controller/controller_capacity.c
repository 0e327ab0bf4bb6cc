/* SPDX-License-Identifier: Apache-2.0 */
/* GetCapacity: what nodes have reported that are live and in service. */
#include "controller/controller_private.h"
#include "controller/placement.h"
#include "csi/capability.h"
#include "csi/controller_request.h"
#include "csi/convert.h"
#include "csi/reply.h"
#include "pmem/capacity.h"
#include "volume/params.h"

static void add_node(struct capacity *sum, const struct node *node, bool sync)
{
	const struct capacity c = node_capacity(node, sync);

	capacity_add(sum, &c);
}

static bool is_offered(const struct controller *c, const struct node *node, unsigned needs)
{
	return node->live && !controller_is_out_of_service(c, node->report.node_id) &&
	       node_report_makes(&node->report, needs);
}

/* @needs: of the volumes (params_needs()); @sync: they need MAP_SYNC */
static int read_capacity(const struct controller *c, const Csi__V1__Topology *t, unsigned needs, bool sync,
	struct capacity *ret, struct error **err)
{
	const char *node_id = t ? csi_topology_node(c->config.driver_name, t) : NULL;
	const struct node *const *nodes;
	struct capacity sum = {0};

	if (controller_require_ready(c, err) < 0)
		return -1;
	if (node_id) {
		const struct node *node = controller_live_node(c, node_id);

		if (!node && controller_in_start_window(c))
			return err_set(err, ERR_UNAVAILABLE, "node %s has not registered yet", node_id);
		if (node && is_offered(c, node, needs))
			add_node(&sum, node, sync);
		*ret = sum;
		return 0;
	}
	for (size_t i = 0, n = node_table_nodes(c->config.nodes, &nodes); i < n; i++) {
		if (is_offered(c, nodes[i], needs))
			add_node(&sum, nodes[i], sync);
	}
	*ret = sum;
	return 0;
}

int controller_capacity(struct controller *c, struct arena *arena, const Csi__V1__GetCapacityRequest *request,
	Csi__V1__GetCapacityResponse *reply, struct error **err)
{
	CLEANUP(strmap_done) struct strmap parameters = {0};
	struct capacity sum = {0};

	if (capabilities_require(request->volume_capabilities, request->n_volume_capabilities,
		    /* any_mode= */ true, err) < 0 ||
		csi_topology_check(c->config.driver_name, request->accessible_topology, err) < 0)
		return -1;
	CSI_READ_MAP(request, parameters, &parameters);
	const char *usage = strmap_get(&parameters, PARAMS_USAGE);
	const char *durability = strmap_get(&parameters, PARAMS_DURABILITY);
	unsigned needs = params_needs(
		strmap_get(&parameters, PARAMS_KATA), strmap_get(&parameters, PARAMS_DIRECT), durability);
	if (csi_can_serve(request, &parameters) &&
		read_capacity(c, request->accessible_topology, needs,
			durability_needs_sync(usage, durability), &sum, err) < 0)
		return -1;
	csi_fill_capacity(
		reply, arena, sum.available_bytes, capacity_max_bytes(&sum, volume_usage_is_file_io(usage)));
	return 0;
}
