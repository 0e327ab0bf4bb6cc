/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inspect.h - what commands on the same host ask a driver: how it was started, so that they look at the same
 * things.
 *
 * For unix sockets only: paths are of no use to others. Nothing is changed, nothing waits. Threads: the
 * handler is inline, on the loop thread. Source: proto/inspect.proto.
 */
#pragma once

#include "csi/csi.h"

/* All borrowed. */
struct inspect {
	const struct csi *csi;
	const char *device_manager;
	const char *state_path;
	const char *fake_path;     /* NULL: none */
	char *const *kubelet_dirs; /* strv; NULL: none */
};

/** inspect_service() - inspect.v0.Inspect. @i is borrowed for the life of the service. */
struct grpc_service inspect_service(struct inspect *i);
