/* SPDX-License-Identifier: Apache-2.0 */
/*
 * handler.h - what every CSI handler does before and after its own work, written once.
 *
 * CSI_HANDLER(f, Request, Reply) defines f_call() for a method table from
 * int f(const struct csi *, struct grpc_call *, const Request *, Reply *, struct error **).
 */
#pragma once

#include "csi/csi.h"
#include "csi/field_limits.h"

#define CSI_HANDLER(f, Request, Reply)                                                                       \
	static int f##_call(                                                                                 \
		void *self, struct grpc_call *call, const void *request, void *reply, struct error **err)    \
	{                                                                                                    \
		const struct csi *csi = self;                                                                \
                                                                                                             \
		if (csi_check_request(request, err) < 0 ||                                                   \
			f(csi, call, (const Request *)request, (Reply *)reply, err) < 0)                     \
			return err_wrap(err, "%s", csi->node_id);                                            \
		return 0;                                                                                    \
	}                                                                                                    \
	struct f##_needs_semicolon

/* Initialises one row of a method table. */
#define CSI_METHOD(service, name, kind_, prefix, f)                                                          \
	{.path = "/csi.v1." service "/" name,                                                                \
		.kind = (kind_),                                                                             \
		.request = &prefix##_request__descriptor,                                                    \
		.reply = &prefix##_response__descriptor,                                                     \
		.handle = f##_call}
