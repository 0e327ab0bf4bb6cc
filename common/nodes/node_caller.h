/* SPDX-License-Identifier: Apache-2.0 */
/*
 * node_caller.h - how the controller calls nodes: one function, which tests replace by a simulated network.
 * node_clients.h implements it.
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
	 * @timeout_ms: also sent as grpc-timeout; 0: none
	 * @fn:         called exactly once, never before this returned. Errors that the
	 * node has not sent are ERR_UNAVAILABLE and ERR_DEADLINE, which do not say whether the node
	 * got the request, and ERR_CANCELLED: the caller is being freed
	 */
	void (*call)(void *self, const struct node *node, const char *path, const ProtobufCMessage *request,
		const ProtobufCMessageDescriptor *reply_type, uint64_t timeout_ms, grpc_reply_fn fn,
		void *user);
	void *self;
};
