/* SPDX-License-Identifier: Apache-2.0 */
#include "csi/csi_health.h"

#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/str.h"
#include "csi/controller_request.h"
#include "csi/field_limits.h"
#include "csi/reply.h"

/* With HEALTH_STATUSES_MAX statuses of the largest size for each, a page is below 4 MiB, the limit of gRPC's
 * clients. */
#define PAGE_MAX       256
#define POOL_NAMES_MAX 4096

int csi_fill_health_page(const Csi__V1__ControllerListVolumeHealthRequest *request,
	const struct health_table *all, Csi__V1__ControllerListVolumeHealthResponse *reply,
	struct arena *arena, struct error **err)
{
	const char *after;
	size_t max;

	if (csi_read_page(request->max_entries, request->starting_token, &after, &max, err) < 0)
		return -1;
	if (max > PAGE_MAX)
		max = PAGE_MAX;
	reply->entries = arena_alloc(arena, (all->n < max ? all->n : max) * sizeof(*reply->entries));
	for (size_t i = 0; i < all->n; i++) {
		const struct health_entry *e = &all->list[i];

		if (after && strcmp(e->id, after) <= 0)
			continue;
		if (reply->n_entries == max) {
			reply->next_token = csi_token(arena, reply->entries[max - 1]->volume_id);
			return 0;
		}
		reply->entries[reply->n_entries++] = csi_volume_health(e->id, &e->health, arena);
	}
	return 0;
}

int csi_list_volume_health(const struct csi *csi, struct grpc_call *call,
	const Csi__V1__ControllerListVolumeHealthRequest *request,
	Csi__V1__ControllerListVolumeHealthResponse *reply, struct error **err)
{
	CLEANUP(health_table_done) struct health_table all = {0};

	if (volumes_require_ready(csi->volumes, err) < 0)
		return -1;
	volumes_list_unhealthy(csi->volumes, &all);
	return csi_fill_health_page(request, &all, reply, call->arena, err);
}

static int find(const struct csi *csi, struct grpc_call *call, const char *volume_id,
	Csi__V1__VolumeHealth **ret, struct error **err)
{
	CLEANUP(health_done) struct volume_health h = {0};

	if (csi_require(volume_id, "volume_id", err) < 0 || volumes_require_ready(csi->volumes, err) < 0 ||
		volumes_health(csi->volumes, volume_id, &h, err) < 0)
		return -1;
	*ret = csi_volume_health(volume_id, &h, call->arena);
	return 0;
}

int csi_get_volume_health(const struct csi *csi, struct grpc_call *call,
	const Csi__V1__ControllerGetVolumeHealthRequest *request,
	Csi__V1__ControllerGetVolumeHealthResponse *reply, struct error **err)
{
	return find(csi, call, request->volume_id, &reply->volume_health, err);
}

/* The paths do not matter: it is asked for volumes, too, that could not be staged. */
int csi_node_volume_health(const struct csi *csi, struct grpc_call *call,
	const Csi__V1__NodeGetVolumeHealthRequest *request, Csi__V1__NodeGetVolumeHealthResponse *reply,
	struct error **err)
{
	return find(csi, call, request->volume_id, &reply->volume_health, err);
}

static void name_incomplete(const struct volumes_report *r, struct buf *names)
{
	for (size_t i = 0; i < r->n_pools; i++) {
		if (r->pools[i].incomplete)
			buf_addf(names, "%s%s", names->len > 0 ? ", " : "", r->pools[i].name);
	}
}

/* Returns one entry for all pools, because CSI permits each pair of status and reason only once. */
int csi_storage_health(const struct csi *csi, struct grpc_call *call,
	const Csi__V1__NodeGetStorageHealthRequest *request, Csi__V1__NodeGetStorageHealthResponse *reply,
	struct error **err)
{
	CLEANUP(volumes_report_done) struct volumes_report report = {0};
	CLEANUP(buf_done) struct buf names = BUF_INIT(POOL_NAMES_MAX);
	CLEANUP(free_charp) char *message = NULL;
	Csi__V1__NodeGetStorageHealthResponse__StorageBackendHealth *h;

	(void)request;
	if (volumes_require_ready(csi->volumes, err) < 0)
		return -1;
	if (volumes_report(csi->volumes, &report))
		name_incomplete(&report, &names);
	if (names.len == 0)
		return 0;
	message = x_asprintf("devices of these pools are missing: %s", buf_str(&names));
	h = arena_alloc(call->arena, sizeof(*h));
	csi__v1__node_get_storage_health_response__storage_backend_health__init(h);
	h->status = CSI__V1__STORAGE_HEALTH_ERROR_TYPE__STORAGE_DEGRADED;
	h->reason = arena_strdup(call->arena, "PoolIncomplete");
	h->message = arena_strdup(call->arena, message);
	reply->backend_health = arena_alloc(call->arena, sizeof(*reply->backend_health));
	reply->backend_health[reply->n_backend_health++] = h;
	return 0;
}
