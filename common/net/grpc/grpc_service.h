/* SPDX-License-Identifier: Apache-2.0 */
/*
 * grpc_service.h - a gRPC service as the server sees it: a table of methods with protobuf types and handlers.
 *
 * A handler gets the unpacked request and an initialised reply, both living in the call's arena. `inline`
 * handlers run on the loop thread and must never wait; `worker` handlers run on a pool thread; `async` ones
 * begin on the loop thread and end later, without a thread. Handlers of one service run concurrently.
 */
#pragma once

#include <protobuf-c/protobuf-c.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"

/* Names the node that a call is meant for: addresses are given to others, and a stale or false one must not
 * make another node act. */
#define GRPC_RECIPIENT_HEADER "pmem-csi-node"

struct grpc_call {
	struct arena *arena;  /* for everything that the reply points to */
	uint64_t deadline_ns; /* DEADLINE_NONE when the client gave none */
	uint64_t id;          /* number of the call in its server, for logs */
	/* dNSNames of the peer's verified certificate, NULL-terminated, in arena; NULL without TLS */
	const char *const *peer_names;
	const char *authorization; /* value of that header, in arena; NULL if absent. A secret */
};

struct workers;

enum grpc_kind { GRPC_INLINE, GRPC_WORKER, GRPC_ASYNC };

struct grpc_method {
	const char *path; /* "/csi.v1.Identity/Probe" */
	enum grpc_kind kind;
	const ProtobufCMessageDescriptor *request;
	const ProtobufCMessageDescriptor *reply;
	/* Return: 0, or -1 with the error that becomes the call's status. */
	int (*handle)(
		void *self, struct grpc_call *call, const void *request, void *reply, struct error **err);
	/* GRPC_ASYNC instead: the handler must call grpc_call_finish(), at once or later. Its arguments live
	 * until then, also when the client has gone or was answered that its deadline is over. At most
	 * LIMIT_ASYNC_CALLS of a server have begun and not ended */
	void (*start)(void *self, struct grpc_call *call, const void *request, void *reply);
};

/** grpc_call_finish() - the call of an async method has ended, with what is in its reply, or with @error
 * (taken). Exactly once; @call belongs to the server again. Loop thread. */
void grpc_call_finish(struct grpc_call *call, struct error *error);

/** grpc_call_peer() - append the address that the call comes from to @out, as addr_peer() gives it; nothing
 * if the client has gone. Loop thread. */
void grpc_call_peer(const struct grpc_call *call, struct buf *out);

/** grpc_call_is_wanted() - whether the client still waits for the answer of an async call. Loop thread. */
bool grpc_call_is_wanted(const struct grpc_call *call);

struct grpc_service {
	const struct grpc_method *methods; /* ends with path NULL */
	void *self;
	struct workers *workers; /* for its worker handlers only; borrowed; NULL: those of the server */
	/* Describes what the call with @request, which a worker handles, is doing: for a client that does
	 * not get an answer in time. NULL is any call: for a client whose call finds no worker. Called on
	 * the loop thread, so it must not wait. Return: caller frees; NULL: nothing is known. May be NULL. */
	char *(*current_step)(void *self, const ProtobufCMessage *request);
	/* The volume that @request names, for logs. Any thread. Return: borrowed from @request; NULL: none.
	 * May be NULL. */
	const char *(*volume_of)(const ProtobufCMessage *request);
};
