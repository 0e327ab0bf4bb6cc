/* SPDX-License-Identifier: Apache-2.0 */
/*
 * node_caller.h - how the controller calls nodes: one function, so that tests can put a network of their own
 * in its place. node_clients.h is the real one.
 *
 * Threads: the loop's; nothing blocks.
 */
#pragma once

#include "net/grpc/grpc_client.h"
#include "nodes/node_table.h"

struct node_caller {
	/**
	 * call() - start a unary call to @node at its report's endpoint.
	 * @node:       borrowed for this call only; need not be in a table
	 * @request:    packed before return
	 * @timeout_ms: also sent as grpc-timeout; 0 is none
	 * @fn:         called exactly once, never before this returned. What the node has not sent is
	 * ERR_UNAVAILABLE or ERR_DEADLINE, and nobody can tell whether it has seen the request, or
	 * ERR_CANCELLED: the caller is being freed
	 */
	void (*call)(void *self, const struct node *node, const char *path, const ProtobufCMessage *request,
		const ProtobufCMessageDescriptor *reply_type, uint64_t timeout_ms, grpc_reply_fn fn,
		void *user);
	void *self;
};
