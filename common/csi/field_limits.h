/* SPDX-License-Identifier: Apache-2.0 */
/*
 * field_limits.h - limits that the CSI specification puts on every request, checked by walking the message's
 * descriptor.
 *
 * Strings: at most 128 bytes, paths at most 4096; a map or a list of strings: at most 4 KiB in all ("Size
 * Limits" in the specification). That strings are UTF-8 was checked when they were unpacked
 * (net/grpc/grpc_protobuf.h). Threads: safe.
 */
#pragma once

#include <protobuf-c/protobuf-c.h>

#include "base/error.h"

/** csi_check_request() - check all fields of @request. Return: 0, or -1 with ERR_INVALID_ARGUMENT that names
 * the field. */
int csi_check_request(const ProtobufCMessage *request, struct error **err) MUST_CHECK;

/** csi_require() - check that a string field is given. @field: its name in the specification.
 * Return: 0, or -1 with ERR_INVALID_ARGUMENT. */
int csi_require(const char *value, const char *field, struct error **err) MUST_CHECK;
