/* SPDX-License-Identifier: Apache-2.0 */
/*
 * grpc_wire.h - gRPC's bits over HTTP/2 as pure functions: message prefix, grpc-message, status codes;
 * grpc-timeout is in grpc_timeout.h.
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

/** grpc_percent_encode() - append @text, with bytes outside 0x20-0x7E, '%' and a blank at either end
 * as %XX. */
void grpc_percent_encode(const char *text, struct buf *out);

/** grpc_percent_decode() - append @text decoded; broken escapes stay as they are. Never fails. */
void grpc_percent_decode(struct span text, struct buf *out);

/** grpc_code_of_http() - the code for a reply without grpc-status (doc/http-grpc-status-mapping.md). */
enum err_code grpc_code_of_http(unsigned status);
