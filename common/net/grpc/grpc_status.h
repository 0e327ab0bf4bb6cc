/* SPDX-License-Identifier: Apache-2.0 */
/*
 * grpc_status.h - how gRPC writes the result of a call in HTTP/2 headers: grpc-message, and what an HTTP
 * status means without grpc-status. Pure functions.
 *
 * Source: grpc/doc/PROTOCOL-HTTP2.md. Threads: safe.
 */
#pragma once

#include "base/buf.h"
#include "base/error.h"
#include "base/span.h"

/** grpc_percent_encode() - append @text, with bytes outside 0x20-0x7E, '%' and a blank at either end
 * as %XX. */
void grpc_percent_encode(const char *text, struct buf *out);

/** grpc_percent_decode() - append @text decoded; broken escapes stay as they are. Never fails. */
void grpc_percent_decode(struct span text, struct buf *out);

/** grpc_code_of_http() - the code for a reply without grpc-status (doc/http-grpc-status-mapping.md). */
enum err_code grpc_code_of_http(unsigned status);
