/* SPDX-License-Identifier: Apache-2.0 */
#include "csi/node_volumes_service.h"

#include "registry.pb-c.h"

#include "csi/handler.h"

static int delete_if_never_staged(const struct csi *csi, struct grpc_call *call,
	const Registry__V0__DeleteIfNeverStagedRequest *request,
	Registry__V0__DeleteIfNeverStagedReply *reply, struct error **err)
{
	(void)call;
	(void)reply;
	if (csi_require(request->volume_id, "volume_id", err) < 0)
		return -1;
	return volumes_delete_if_never_staged(csi->volumes, request->volume_id, err);
}
CSI_HANDLER(delete_if_never_staged, Registry__V0__DeleteIfNeverStagedRequest,
	Registry__V0__DeleteIfNeverStagedReply);

static const struct grpc_method methods[] = {
	{
		.path = "/registry.v0.NodeVolumes/DeleteIfNeverStaged",
		.kind = GRPC_WORKER,
		.request = &registry__v0__delete_if_never_staged_request__descriptor,
		.reply = &registry__v0__delete_if_never_staged_reply__descriptor,
		.handle = delete_if_never_staged_call,
	},
	{0},
};

struct grpc_service node_volumes_service(struct csi *csi)
{
	return (struct grpc_service){.methods = methods,
		.self = csi,
		.current_step = csi_current_step,
		.volume_of = csi_volume_of};
}
