/* SPDX-License-Identifier: Apache-2.0 */
/*
 * grpc_message.h - the message of a gRPC call in bytes: its prefix, its size limit, and how it is put
 * together from pieces. Pure functions.
 *
 * Source: grpc/doc/PROTOCOL-HTTP2.md. Threads: safe.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/span.h"
#include "net/limits.h"

/* Collects the one message of a unary call from body bytes that may be split anywhere. */
struct grpc_assembler {
	uint8_t prefix[5];
	size_t prefix_len;
	bool have_prefix;
	uint32_t expected;
	struct buf message;
	bool complete;
};

/** grpc_assembler_init() - prepare for one message. grpc_assembler_done(): release what was collected. */
void grpc_assembler_init(struct grpc_assembler *a);
void grpc_assembler_done(struct grpc_assembler *a);

/** grpc_assembler_feed() - add body bytes. Return: 0, or -1 with ERR_EXHAUSTED (longer than 4 MiB, known from
 * the prefix), ERR_UNIMPLEMENTED (compressed), ERR_INTERNAL (a second message). */
int grpc_assembler_feed(struct grpc_assembler *a, struct span bytes, struct error **err) MUST_CHECK;

/** grpc_prefix() - the five bytes before a message of @length bytes. */
void grpc_prefix(uint32_t length, uint8_t out[static 5]);
