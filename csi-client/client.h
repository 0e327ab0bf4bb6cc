/* SPDX-License-Identifier: Apache-2.0 */
/*
 * client.h - the commands of csi-client: each makes one request from the command line and prints the reply.
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
	const char *fs_type;
	const char *access_mode;
	char **mount_flags;
	struct strmap parameters; /* -parameter and -context */
	uint32_t max_entries;
	const char *token;
	bool readonly;
	bool block;
};

struct command {
	const char *name;
	const char *operands; /* shown in help */
	int n_operands;
	const char *help;
	int (*run)(struct client *c, char *const *operands, struct error **err);
};

/** command_find() - the command called @name. Return: 0, or -1 with ERR_INVALID_ARGUMENT. */
int command_find(const char *name, const struct command **ret, struct error **err) MUST_CHECK;

/** command_help() - one line per command. Return: caller frees. */
char *command_help(void);

/**
 * client_ask() - make a call.
 * @ret: the reply; protobuf_c_message_free_unpacked()
 * Return: 0, or -1 with the status of the call.
 */
int client_ask(struct client *c, const char *path, const ProtobufCMessage *request,
	const ProtobufCMessageDescriptor *reply_type, ProtobufCMessage **ret, struct error **err) MUST_CHECK;

#define CLIENT_OUTPUT_MAX_BYTES (64U << 20)

/** client_print() - @out to stdout. Return: 0, or -1 when it is too long or stdout takes nothing. */
int client_print(const struct buf *out, struct error **err) MUST_CHECK;

/**
 * client_call() - make a call, print the reply as asked for.
 * Return: 0, or -1 with the status of the call.
 */
int client_call(struct client *c, const char *path, const ProtobufCMessage *request,
	const ProtobufCMessageDescriptor *reply_type, struct error **err) MUST_CHECK;
