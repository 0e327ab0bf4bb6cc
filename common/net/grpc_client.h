/*
 * grpc_client.h - unary gRPC calls to one endpoint.
 *
 * Threads: everything belongs to the loop thread. The connection is opened with the first call and again
 * after a loss; calls in flight at a loss end with UNAVAILABLE.
 */
#pragma once

#include <protobuf-c/protobuf-c.h>
#include <stdint.h>

#include "base/error.h"
#include "net/loop.h"

struct grpc_client;

/** @reply is NULL if and only if @error is set; both are borrowed for the time of the callback. */
typedef void (*grpc_reply_fn)(void *user, const ProtobufCMessage *reply, const struct error *error);

/** grpc_client_new() - a client for @endpoint (addr.h). Return: 0, or -1 with ERR_INVALID_ARGUMENT. */
int grpc_client_new(
	struct loop *loop, const char *endpoint, struct grpc_client **ret, struct error **err) MUST_CHECK;

/** grpc_client_free() - close; calls in flight end with CANCELLED. NULL is allowed. */
void grpc_client_free(struct grpc_client *c);
DEFINE_CLEANUP(struct grpc_client *, grpc_client_free);

/**
 * grpc_client_call() - start a unary call.
 * @path:       "/csi.v1.Identity/Probe"
 * @request:    packed before return
 * @reply_type: descriptor of the reply
 * @timeout_ms: also sent as grpc-timeout; 0 is none
 * @fn:         called exactly once, never before this function returned
 */
void grpc_client_call(struct grpc_client *c, const char *path, const ProtobufCMessage *request,
	const ProtobufCMessageDescriptor *reply_type, uint64_t timeout_ms, grpc_reply_fn fn, void *user);

/**
 * grpc_client_call_sync() - make a call and run the loop until it is answered; for command-line tools.
 * @ret_reply: caller frees with protobuf_c_message_free_unpacked(reply, NULL)
 * Return: 0, or -1 with the status of the call.
 */
int grpc_client_call_sync(struct grpc_client *c, const char *path, const ProtobufCMessage *request,
	const ProtobufCMessageDescriptor *reply_type, uint64_t timeout_ms, ProtobufCMessage **ret_reply,
	struct error **err) MUST_CHECK;
