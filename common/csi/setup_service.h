/* SPDX-License-Identifier: Apache-2.0 */
/*
 * setup_service.h - reports with which settings a driver was started, for commands on the same host that
 * examine the same devices and folders.
 *
 * For unix sockets only, since clients on other hosts cannot use the paths. Nothing is changed, nothing
 * waits. Threads: the handler is inline, on the loop thread. Source: proto/inspect.proto.
 */
#pragma once

#include "csi/csi.h"

/* All borrowed. */
struct setup_service {
	const struct csi *csi;
	const char *device_manager;
	const char *state_path;
	const char *fake_path;     /* NULL: none */
	char *const *kubelet_dirs; /* strv; NULL: none */
};

/** setup_service() - make the service inspect.v0.Inspect. @s is borrowed for the life of the service. */
struct grpc_service setup_service(struct setup_service *s);
