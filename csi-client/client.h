/* SPDX-License-Identifier: Apache-2.0 */
/*
 * client.h - makes one call to the driver and prints the response to stdout.
 *
 * Threads: the caller's. Calls block until the reply is there or their deadline has passed.
 */
#pragma once

#include <protobuf-c/protobuf-c.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/strmap.h"
#include "net/grpc/grpc_client.h"

struct client {
	struct grpc_client *grpc;
	uint64_t timeout_ms;
	bool json;
	bool show_time;

	/* options of commands */
	uint64_t size_bytes;
	uint64_t limit_bytes;
	const char *source;   /* volume ID */
	const char *snapshot; /* snapshot ID */
	const char *fs_type;
	const char *access_mode;
	char **mount_flags;
	struct strmap parameters; /* of -parameter */
	uint32_t max_entries;
	const char *token;
	bool readonly;
	bool block;
};

/**
 * client_ask() - make a call.
 * @ret: the reply; protobuf_c_message_free_unpacked()
 * Return: 0, or -1 with the status of the call.
 */
int client_ask(struct client *c, const char *path, const ProtobufCMessage *request,
	const ProtobufCMessageDescriptor *reply_type, ProtobufCMessage **ret, struct error **err) MUST_CHECK;

#define CLIENT_OUTPUT_MAX_BYTES (64U << 20)

/** client_print() - write @out to stdout. Return: 0, or -1 when it is too long or stdout cannot be written.
 */
int client_print(const struct buf *out, struct error **err) MUST_CHECK;

/** client_show() - print @reply as asked for. Return: as client_print(). */
int client_show(const struct client *c, const ProtobufCMessage *reply, struct error **err) MUST_CHECK;

/**
 * client_call() - make a call, print the reply as asked for.
 * Return: 0, or -1 with the status of the call.
 */
int client_call(struct client *c, const char *path, const ProtobufCMessage *request,
	const ProtobufCMessageDescriptor *reply_type, struct error **err) MUST_CHECK;
