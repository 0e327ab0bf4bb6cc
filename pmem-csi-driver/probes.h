/* SPDX-License-Identifier: Apache-2.0 */
/*
 * probes.h - answers kubelet's probes, which ask whether the driver is alive and whether it is ready; also on
 * a port of its own, where nothing else is served. Threads: the loop's. Nothing waits.
 */
#pragma once

#include "net/http1/http_server.h"

/* Whether the driver is ready, from memory. Return: 0, or -1 with the reason. */
struct readiness {
	int (*require)(void *user, struct error **err);
	void *user;
};

/**
 * probes_routes() - /healthz: "ok" while the loop runs; /readyz: "ok" as well, or 503 and the reason.
 * @ready:  borrowed for the life of the routes
 * @routes: room for two
 */
void probes_routes(const struct readiness *ready, struct http_route *routes);

struct probes;

/**
 * probes_start() - serve probes_routes() over plain HTTP.
 * @listen: as http_server_listen(); "": nothing is served
 * @ready:  copied
 * @ret:    NULL when nothing is served; probes_free(). It need not be drained.
 *
 * Return: 0, or -1 with the error of http_server_listen(), which names the flag.
 */
int probes_start(struct loop *loop, const char *listen, const struct readiness *ready, struct probes **ret,
	struct error **err) MUST_CHECK;

/** probes_free() - close the port and release @p. NULL is allowed. */
void probes_free(struct probes *p);
DEFINE_CLEANUP(struct probes *, probes_free);
