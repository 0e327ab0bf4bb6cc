/* SPDX-License-Identifier: Apache-2.0 */
/*
 * echo_service.h - the gRPC service that tests of the server call: it echoes, fails, grows and waits as
 * asked.
 *
 * All messages are csi.v1.GetPluginInfoResponse, which has two strings and a map, except of GetPluginInfo,
 * which is CSI's own. Methods of /pmem.test.Echo/:
 *   Echo, Work   the request; Work on a worker thread
 *   Fail         error with the number in `name` as code and `vendor_version` as message
 *   Grow         `vendor_version` of as many bytes as `name` says
 *   Wait         on a worker thread: the request, after echo_release() was called once more
 *   Waiting      in `name`: how many calls of Wait run
 *   Park         async: the request, at once if `name` is "now", otherwise when echo_unpark() is called
 */
#pragma once

#include <semaphore.h>
#include <stdatomic.h>

#include "net/grpc/grpc_service.h"
#include "net/limits.h"

struct echo {
	sem_t gate;
	atomic_uint waiting;
	atomic_uint worked; /* calls of Work and Wait that have ended */
	struct grpc_call *parked[LIMIT_ASYNC_CALLS];
	unsigned n_parked;
};

extern const struct grpc_method echo_methods[];

/** echo_init() - state behind the methods, for the `self` of the service. */
void echo_init(struct echo *e);

/** echo_release() - let one call of Wait end. Safe in signal handlers and on any thread. */
void echo_release(struct echo *e);

/** echo_unpark() - end the call of Park that came last, with @error (taken) or the request. */
void echo_unpark(struct echo *e, struct error *error);
