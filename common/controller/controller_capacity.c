/* SPDX-License-Identifier: Apache-2.0 */
/* GetCapacity: what live nodes have reported. */
#include "controller/controller_private.h"
#include "controller/placement.h"
#include "csi/capability.h"
#include "csi/controller_request.h"
#include "csi/convert.h"
#include "csi/reply.h"
#include "volume/params.h"

struct room {
	uint64_t available_bytes;
	uint64_t max_volume_bytes;
};

static void add_node(struct room *room, const struct node *node, bool sector)
{
	uint64_t max = 0;

	for (size_t i = 0; i < node->report.n_regions; i++) {
		const struct node_region *r = &node->report.regions[i];
		uint64_t region_max = sector ? r->max_sector_volume_bytes : r->max_volume_bytes;

		room->available_bytes += r->available_bytes;
		max = region_max > max ? region_max : max;
	}
	if (max > room->max_volume_bytes)
		room->max_volume_bytes = max;
}

static int read_room(const struct controller *c, const Csi__V1__Topology *t, bool sector, struct room *ret,
	struct error **err)
{
	const char *node_id = t ? csi_topology_node(c->config.driver_name, t) : NULL;
	const struct node *const *nodes;
	struct room room = {0};

	if (node_id) {
		const struct node *node = controller_live_node(c, node_id);

		if (!node && controller_in_start_window(c))
			return err_set(err, ERR_UNAVAILABLE, "node %s has not registered yet", node_id);
		if (node)
			add_node(&room, node, sector);
		*ret = room;
		return 0;
	}
	for (size_t i = 0, n = node_table_nodes(c->config.nodes, &nodes); i < n; i++) {
		if (nodes[i]->live)
			add_node(&room, nodes[i], sector);
	}
	*ret = room;
	return 0;
}

int controller_capacity(struct controller *c, struct arena *arena, const Csi__V1__GetCapacityRequest *request,
	Csi__V1__GetCapacityResponse *reply, struct error **err)
{
	CLEANUP(strmap_done) struct strmap parameters = {0};
	struct room room = {0};

	if (capabilities_require(request->volume_capabilities, request->n_volume_capabilities,
		    /* any_mode= */ true, err) < 0)
		return -1;
	CSI_READ_MAP(request, parameters, &parameters);
	bool sector = volume_usage_is_file_io(strmap_get(&parameters, "usage"));
	if (csi_can_serve(request, &parameters) &&
		read_room(c, request->accessible_topology, sector, &room, err) < 0)
		return -1;
	csi_fill_capacity(reply, arena, room.available_bytes, room.max_volume_bytes);
	return 0;
}
