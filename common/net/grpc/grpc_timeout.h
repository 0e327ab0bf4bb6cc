/* SPDX-License-Identifier: Apache-2.0 */
/*
 * grpc_timeout.h - the header grpc-timeout, in which a caller says how long it waits for its call: up to
 * eight digits and a unit (H, M, S, m, u or n).
 *
 * Source: grpc/doc/PROTOCOL-HTTP2.md. Threads: safe.
 */
#pragma once

#include <stdint.h>

#include "base/error.h"
#include "base/span.h"

/** grpc_timeout_parse() - value of grpc-timeout. @ret_ns: clamped to UINT64_MAX / 2.
 * Return: 0, or -1 with ERR_INVALID_ARGUMENT. */
int grpc_timeout_parse(struct span value, uint64_t *ret_ns, struct error **err) MUST_CHECK;

/** grpc_timeout_format() - @ns, rounded up, at most 8 digits, into @out. */
void grpc_timeout_format(uint64_t ns, char out[static 12]);
