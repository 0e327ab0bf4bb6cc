/* SPDX-License-Identifier: Apache-2.0 */
/*
 * load.h - the calls of a volume's life, made by several workers at a time. Everything belongs to the loop
 * thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "net/grpc/grpc_client.h"

struct options {
	const char *endpoint;
	const char *ca_file, *cert_file, *key_file; /* NULL: no TLS */
	const char *name;                           /* volumes are called NAME-1, NAME-2, ... */
	const char *fs_type;
	const char *
		kubelet; /* folder for staging and target paths; NULL: volumes are created and deleted only */
	bool keep;       /* without @kubelet: they are not deleted */
	uint64_t size_bytes;
	uint64_t timeout_ms; /* of a call */
	uint64_t space_ms; /* how long the space may take to be back after the last call; 0: not looked at */
	uint32_t workers;
	uint32_t volumes;
	bool show_help;
};

struct worker {
	struct load *load;
	struct grpc_client *grpc;
	struct loop_timer *retry;
	uint32_t number; /* of the volume; from 1 */
	unsigned step;
	unsigned odd;      /* calls for the volume that should not have failed */
	uint64_t began_ns; /* of the step, with its retries */
	char *id;
};

/** A reply or an error, as grpc_reply_fn. */
typedef void (*reply_fn)(void *user, const ProtobufCMessage *reply, const struct error *error);

/** load_n_steps() - how many calls a volume's life has: with mounts or without, and with its end or not. */
unsigned load_n_steps(const struct options *o);

/** load_step_name() - such as "create". */
const char *load_step_name(const struct options *o, unsigned step);

/** load_call() - make the call of @w's step; @fn gets @w. Folders that kubelet would make are made.
 * Return: 0, or -1 with ERR_INTERNAL (no folder). */
int load_call(const struct options *o, struct worker *w, reply_fn fn, struct error **err) MUST_CHECK;

/** load_take_id() - remember the ID in a reply to create. */
void load_take_id(struct worker *w, const ProtobufCMessage *reply);

/** load_call_capacity() - ask for the capacity over @grpc; @fn gets @user. */
void load_call_capacity(struct grpc_client *grpc, uint64_t timeout_ms, reply_fn fn, void *user);

/** load_available() - bytes in a reply to load_call_capacity(). */
int64_t load_available(const ProtobufCMessage *reply);
