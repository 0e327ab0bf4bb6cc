/* SPDX-License-Identifier: Apache-2.0 */
/*
 * registry_rig.h - a registry behind a gRPC server on a socket, one client, and a clock that the test sets.
 */
#pragma once

#include "registry.pb-c.h"

#include "net/grpc/grpc_client.h"
#include "net/grpc/grpc_server.h"
#include "nodes/registry.h"
#include "unit/unit.h"

/* A call to the registry. */
struct rig_call {
	bool done;
	int code; /* 0: success */
	char *msg;
};

struct rig {
	struct loop *loop;
	struct workers *workers;
	struct node_table *table;
	struct registry *registry;
	struct grpc_server *server;
	struct grpc_service services[2];
	struct grpc_client *client;
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
	struct pod_reader *pods;
};

/** rig_open() - start. rig_close(): end. */
void rig_open(struct rig *rig);
void rig_close(struct rig *rig);

/** rig_open_tls() - rig_open() on @loop, which is borrowed. */
void rig_open_tls(struct rig *rig, struct loop *loop, const struct rig_tls *tls);

/** rig_register() - with a lease of 90 s, an empty inventory and @instance. Return: to be freed by
 * rig_call_free(). */
struct rig_call *rig_register(
	struct rig *rig, const char *node_id, const char *endpoint, const char *instance);

/** rig_send() - @request as it is. */
struct rig_call *rig_send(struct rig *rig, const Registry__V0__RegisterControllerRequest *request);

/** rig_unregister() - as it says. */
struct rig_call *rig_unregister(
	struct rig *rig, const char *node_id, const char *endpoint, const char *instance);

/** rig_end() - run the loop until @call has ended. Return: its code. */
int rig_end(struct rig *rig, struct rig_call *call);

/** rig_call_free() - of a call that has ended. */
void rig_call_free(struct rig_call *call);

/** rig_done() - rig_end(), with a check of the @code and of @text in the message, and rig_call_free(). */
void rig_done(struct rig *rig, struct rig_call *call, int code, const char *text);

/** rig_rounds() - run the loop for a while, in which nothing is to happen. */
void rig_rounds(struct rig *rig);

/** rig_tick() - let @seconds pass. */
void rig_tick(struct rig *rig, uint64_t seconds);

/** rig_is_live() - whether the table says so. */
bool rig_is_live(const struct rig *rig, const char *node_id);
