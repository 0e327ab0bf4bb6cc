/* SPDX-License-Identifier: Apache-2.0 */
/*
 * registry_rig.h - a registry behind a gRPC server on a socket, one client, nodes that the test itself
 * answers for, and a clock that the test sets.
 */
#pragma once

#include "csi.pb-c.h"
#include "registry.pb-c.h"

#include "net/grpc/grpc_client.h"
#include "net/grpc/grpc_server.h"
#include "nodes/registry.h"
#include "unit/unit.h"

/* A call of the registry to a node that the test has not answered. */
struct rig_node_call {
	char *node_id;
	char *endpoint;
	char *path;
	char *token; /* of ListVolumes */
	grpc_reply_fn fn;
	void *user;
};

/* A call to the registry. */
struct rig_call {
	bool done;
	int code; /* 0: success */
	char *msg;
	Registry__V0__WatchNodesReply *watched;
};

struct rig {
	struct loop *loop;
	struct workers *workers;
	struct node_table *table;
	struct registry *registry;
	struct grpc_server *server;
	struct grpc_service services[2];
	struct grpc_client *client;
	struct rig_node_call calls[64];
	size_t n_calls;
	uint64_t now_ns;
	bool drained;
	bool waiting;
	bool loop_is_borrowed;
};

struct rig_tls {
	struct tls_context *server; /* NULL: plain */
	struct tls_context *client;
	struct handshakes *handshakes;
	enum registry_proof proof;
	struct node_tokens *tokens;
};

/** rig_open() - start. rig_close(): end; no call to a node is unanswered. */
void rig_open(struct rig *rig);
void rig_close(struct rig *rig);

/** rig_open_tls() - rig_open() on @loop, which is borrowed. */
void rig_open_tls(struct rig *rig, struct loop *loop, const struct rig_tls *tls);

/** rig_register() - a node of the Go driver's fields, and a lease of 90 s with an empty inventory unless
 * @is_go. Return: to be freed by rig_call_free(). */
struct rig_call *rig_register(struct rig *rig, const char *node_id, const char *endpoint, bool is_go);

/** rig_register_run() - with a lease of 90 s, an empty inventory and @instance. */
struct rig_call *rig_register_run(
	struct rig *rig, const char *node_id, const char *endpoint, const char *instance);

/** rig_send() - @request as it is. */
struct rig_call *rig_send(struct rig *rig, const Registry__V0__RegisterControllerRequest *request);

/** rig_unregister_run() - as it says. rig_unregister(): as a driver that knows node_id only. rig_watch():
 * WatchNodes after @since, NULL: the first call. */
struct rig_call *rig_unregister_run(
	struct rig *rig, const char *node_id, const char *endpoint, const char *instance);
struct rig_call *rig_unregister(struct rig *rig, const char *node_id);
struct rig_call *rig_watch(struct rig *rig, const Registry__V0__WatchNodesReply *since, uint32_t timeout_ms);

/** rig_end() - run the loop until @call has ended. Return: its code. */
int rig_end(struct rig *rig, struct rig_call *call);

/** rig_call_free() - of a call that has ended. */
void rig_call_free(struct rig_call *call);

/** rig_done() - rig_end(), with a check of the @code and of @text in the message, and rig_call_free(). */
void rig_done(struct rig *rig, struct rig_call *call, int code, const char *text);

/** rig_until_called() - run the loop until @n calls to nodes wait. */
void rig_until_called(struct rig *rig, size_t n);

/** rig_rounds() - run the loop for a while, in which nothing is to happen. */
void rig_rounds(struct rig *rig);

/** rig_answer() - the oldest call to a node ends with @reply, or with @code where that is NULL. */
void rig_answer(struct rig *rig, const ProtobufCMessage *reply, enum err_code code);

/** rig_answer_volumes() - the oldest call, a ListVolumes, ends with one volume and a token for more. @key: of
 * the name in its context. */
void rig_answer_volumes(
	struct rig *rig, const char *id, const char *key, const char *name, const char *next_token);

/** rig_answer_capacity() - the oldest call, a GetCapacity. */
void rig_answer_capacity(struct rig *rig, int64_t bytes);

/** rig_tick() - let @seconds pass. */
void rig_tick(struct rig *rig, uint64_t seconds);

/** rig_is_live() - whether the table says so. */
bool rig_is_live(const struct rig *rig, const char *node_id);
