/* SPDX-License-Identifier: Apache-2.0 */
/*
 * grpc_client.h - unary gRPC calls to one endpoint, over a channel (h2_channel.h): connections, back-off and
 * the retry of calls that the server did not process are the channel's task.
 *
 * A call that gets no answer because the connection failed ends with ERR_UNAVAILABLE. Threads: everything
 * belongs to the loop thread.
 */
#pragma once

#include <protobuf-c/protobuf-c.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "net/http2/h2_channel.h"

struct grpc_client;
struct grpc_client_call;

/** @reply is NULL if and only if @error is set; both are borrowed for the time of the callback. It may do
 * everything, make calls and free the client included. */
typedef void (*grpc_reply_fn)(void *user, const ProtobufCMessage *reply, const struct error *error);

/** grpc_client_new() - a client; nothing is connected yet. Return: 0, or -1 with ERR_INVALID_ARGUMENT. @ret:
 * grpc_client_free(). */
int grpc_client_new(
	const struct h2_channel_config *config, struct grpc_client **ret, struct error **err) MUST_CHECK;

/** grpc_client_free() - close; calls in flight end with ERR_CANCELLED before this returns, except when called
 * from a grpc_reply_fn: then right after it. NULL is allowed. */
void grpc_client_free(struct grpc_client *c);
DEFINE_CLEANUP(struct grpc_client *, grpc_client_free);

/** grpc_client_authorize() - calls begun from now on have the header "authorization" with @value (copied);
 * NULL: without that header. The value is a secret: the caller ensures that the channel uses TLS. */
void grpc_client_authorize(struct grpc_client *c, const char *value);

/** grpc_client_set_recipient() - calls begun from now on have the header GRPC_RECIPIENT_HEADER with @node_id
 * (copied). */
void grpc_client_set_recipient(struct grpc_client *c, const char *node_id);

/**
 * grpc_client_call() - start a unary call.
 * @path:       "/csi.v1.Identity/Probe"
 * @request:    packed before return
 * @reply_type: descriptor of the reply
 * @timeout_ms: also sent as grpc-timeout; 0 is none
 * @fn:         called exactly once, never before this function returned
 *
 * Return: never NULL; valid until @fn is called.
 */
struct grpc_client_call *grpc_client_call(struct grpc_client *c, const char *path,
	const ProtobufCMessage *request, const ProtobufCMessageDescriptor *reply_type, uint64_t timeout_ms,
	grpc_reply_fn fn, void *user);

/** grpc_client_call_refused() - whether the error passed to the call's function is a status that the server
 * has sent: the server has seen the request and chosen the code. Otherwise the error was made locally, with
 * a code that says what happened to the connection, the stream or the reply. To be called from that function
 * only.
 */
bool grpc_client_call_refused(const struct grpc_client_call *call);

/** grpc_client_cancel() - cancel @call; its function is called with ERR_CANCELLED. Idempotent. */
void grpc_client_cancel(struct grpc_client_call *call);

/**
 * grpc_client_call_sync() - make a call and run the loop until it is answered; for command-line tools.
 * @ret_reply: caller frees with protobuf_c_message_free_unpacked(reply, NULL)
 *
 * Blocks. Return: 0, or -1 with the status of the call.
 */
int grpc_client_call_sync(struct grpc_client *c, const char *path, const ProtobufCMessage *request,
	const ProtobufCMessageDescriptor *reply_type, uint64_t timeout_ms, ProtobufCMessage **ret_reply,
	struct error **err) MUST_CHECK;
