/* SPDX-License-Identifier: Apache-2.0 */
/*
 * probes.h - the port that kubelet probes, on which nothing else is served. Threads: the loop's.
 */
#pragma once

#include "net/http_server.h"

/** probes_healthz() - /healthz: "ok" while the loop runs. A handler of http_server.h; needs no self. */
void probes_healthz(void *self, const struct http1_request *request, struct http_reply *reply);

/**
 * probes_start() - serve /healthz over plain HTTP.
 * @listen: as http_server_listen(); "": nothing is served
 * @ret:    NULL when nothing is served; http_server_free(). It need not be drained.
 *
 * Return: 0, or -1 with the error of http_server_listen(), which names the flag.
 */
int probes_start(
	struct loop *loop, const char *listen, struct http_server **ret, struct error **err) MUST_CHECK;
